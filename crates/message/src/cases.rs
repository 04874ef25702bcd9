//! Field names in a case of their own, for peers that insist on one.
//!
//! Names mean the same in every case (RFC 9110, section 5.1) and travel in lower case here. A
//! peer that breaks that rule is told the names it knows (`h1-case-adjust`), by HTTP/1 alone.

use std::collections::HashMap;

/// Which names are written how.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct NameCases {
    by_name: HashMap<Box<[u8]>, Box<[u8]>>,
}

impl NameCases {
    /// From pairs of a name in lower case and the same name as it is to be written. The first
    /// pair of a name wins.
    pub fn new<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> NameCases {
        let mut by_name: HashMap<Box<[u8]>, Box<[u8]>> = HashMap::new();
        for (from, to) in pairs {
            by_name
                .entry(from.as_bytes().into())
                .or_insert_with(|| to.as_bytes().into());
        }
        NameCases { by_name }
    }

    /// Whether no name has a case of its own.
    pub fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    /// How the name, given in lower case, is written; `None` leaves it as it is.
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
