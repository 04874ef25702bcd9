//! The Runtime API: one file per family of commands.
