//! Why changes of lists are refused.

use std::fmt;

/// Why a change of a list was refused.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum PatternError {
    /// The text is no pattern or value for one of the list's users.
    Invalid(String),
    /// No entry with that key.
    NotFound,
    /// The list is full.
    Full,
    /// The version was not prepared.
    Future,
    /// The version is not one that may be committed, or no longer matched.
    Version,
}

impl fmt::Display for PatternError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PatternError::Invalid(why) => f.write_str(why),
            PatternError::NotFound => f.write_str("entry not found"),
            PatternError::Full => f.write_str("the list is full"),
            PatternError::Future => f.write_str("version number in the future"),
            PatternError::Version => f.write_str("version number out of range"),
        }
    }
}

impl std::error::Error for PatternError {}
