//! Names of fields: checked once, and looked for.

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

/// The number of a name below 64, independent of case, chosen so that the names that are looked up
/// most share theirs with few others.
#[inline]
pub(crate) fn name_number(name: &[u8]) -> u8 {
    let (first, last) = match name {
        [first, .., last] => (*first, *last),
        [only] => (*only, *only),
        [] => (0, 0),
    };
    let number = name.len() * 3 + usize::from(first | 0x20) * 5 + usize::from(last | 0x20) * 10;
    (number % 64) as u8
}

/// The number of a name that is not here yet.
pub(crate) const NO_NAME_NUMBER: u8 = u8::MAX;

/// The name that a search looks for, in any case.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WantedName<'a> {
    pub(crate) name: &'a [u8],
    pub(crate) number: u8,
}

impl<'a> WantedName<'a> {
    #[inline]
    pub(crate) fn of(name: &'a [u8]) -> Self {
        Self {
            name,
            number: name_number(name),
        }
    }
}
