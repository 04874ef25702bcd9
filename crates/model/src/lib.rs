//! The validated configuration as plain data.
