//! Names of fields that are checked once.

use crate::check::is_field_name;

/// The name of a field, checked once where it is used often: a token in lower case.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct FieldName(Box<[u8]>);

impl FieldName {
    /// The name that these bytes are, in any case; `None` where they are no token.
    pub fn new(name: &[u8]) -> Option<FieldName> {
        is_field_name(name).then(|| FieldName(name.to_ascii_lowercase().into()))
    }

    /// The name in lower case.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}
