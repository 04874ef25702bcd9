//! Spellings of field names, for peers that require a certain case.
//!
//! Case does not matter in field names (RFC 9110, section 5.1); internally they are in lower case.
//! A peer that does not follow this rule gets the spelling it requires (`h1-case-adjust`), over
//! HTTP/1 only.

use std::collections::HashMap;

/// The spelling of each name.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct NameCases {
    by_name: HashMap<Box<[u8]>, Box<[u8]>>,
}

impl NameCases {
    /// From pairs of a name in lower case and its spelling. The first pair of a name wins.
    pub fn new<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> NameCases {
        let mut by_name: HashMap<Box<[u8]>, Box<[u8]>> = HashMap::new();
        for (from, to) in pairs {
            by_name
                .entry(from.as_bytes().into())
                .or_insert_with(|| to.as_bytes().into());
        }
        NameCases { by_name }
    }

    /// Whether there is no special spelling.
    pub fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    /// The spelling of a name given in lower case; `None` leaves it in lower case.
    pub fn of(&self, name: &[u8]) -> Option<&[u8]> {
        self.by_name.get(name).map(|written| &**written)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listed_names_have_a_case_of_their_own() {
        let cases = NameCases::new([("host", "HoSt"), ("x-a", "X-A"), ("host", "HOST")]);
        assert!(!cases.is_empty());
        assert_eq!(cases.of(b"host"), Some(&b"HoSt"[..]));
        assert_eq!(cases.of(b"x-a"), Some(&b"X-A"[..]));
        assert_eq!(cases.of(b"x-b"), None);
        assert!(NameCases::default().is_empty());
    }
}
