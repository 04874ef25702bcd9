//! Patterns against what the manual says of them.
