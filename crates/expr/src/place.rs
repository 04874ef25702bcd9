//! Lines of a configuration.

use std::sync::Arc;

/// A line of a configuration, for telling where a list is used.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Place {
    /// The file's name as given on the command line.
    pub file: Arc<str>,
    /// From 1; 0 when not known.
    pub line: u32,
}
