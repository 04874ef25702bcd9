//! Which entry of a bind line's certificates a server name belongs to (manual, 5.1, `crt-list`).
//!
//! The rules were observed on HAProxy 3.2. The name is looked up whole, then with its first label
//! replaced by `*`. Of all entries found, the first ECDSA one is taken if the client can verify
//! ECDSA, else the first RSA one if it can verify RSA: so a wildcard with an ECDSA key wins over an
//! exact name with an RSA key. Without any match the default entries are asked the same way.

use std::collections::HashMap;
use std::sync::Arc;

use crate::hello::ClientHello;

/// The longest name that is looked up (RFC 1035, 2.3.4; OpenSSL refuses longer ones).
const NAME_BYTES_MAX: usize = 255;
/// The suite numbers of TLS 1.3 begin with this byte.
const TLS13_SUITES: u16 = 0x13;

/// What kind of key a certificate has: the choice among twins depends on it.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum KeyAlgorithm {
    /// ECDSA, on any curve.
    Ecdsa,
    /// RSA.
    Rsa,
    /// Any other: Ed25519.
    Other,
}

/// Which keys a client can verify, as HAProxy reads it from a ClientHello.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ClientKeys {
    /// It lists an ECDSA signature scheme, and a cipher suite to use it with that is served.
    pub ecdsa: bool,
    /// It lists an RSA signature scheme.
    pub rsa: bool,
}

impl ClientKeys {
    /// Reads them from a hello. A client that lists no signature schemes gets RSA. `ecdsa_suites`
    /// are the suites served that [`is_suite_with_ecdsa`] names: twins are of no use when the one
    /// that is chosen has no suite in common with the client.
    #[must_use]
    pub fn of(hello: &ClientHello<'_>, ecdsa_suites: &[u16]) -> Self {
        if hello.signature_algorithm_list().is_none() {
            return Self {
                ecdsa: false,
                rsa: true,
            };
        }
        let mut keys = Self {
            ecdsa: false,
            rsa: false,
        };
        for scheme in hello.signature_algorithms() {
            match scheme {
                // The second byte is the algorithm before TLS 1.3 (RFC 5246, 7.4.1.4.1), and the
                // schemes of TLS 1.3 keep to it where they can (RFC 8446, 4.2.3).
                0x0804..=0x0806 | 0x0809..=0x080b => keys.rsa = true,
                _ if scheme & 0xff == 1 => keys.rsa = true,
                _ if scheme & 0xff == 3 => keys.ecdsa = true,
                _ => {}
            }
        }
        keys.ecdsa &= hello.ciphers().any(|suite| ecdsa_suites.contains(&suite));
        keys
    }
}

/// True for the suites with which a server may use an ECDSA certificate.
#[must_use]
pub fn is_suite_with_ecdsa(suite: u16) -> bool {
    suite >> 8 == TLS13_SUITES
        // ECDHE-ECDSA with 3DES, AES-CBC, GCM, CCM, ChaCha20, Camellia and ARIA (IANA).
        || matches!(
            suite,
            0xc006..=0xc00a
                | 0xc023 | 0xc024 | 0xc02b | 0xc02c
                | 0xc048 | 0xc049 | 0xc05c | 0xc05d
                | 0xc072 | 0xc073 | 0xc086 | 0xc087
                | 0xc0ac..=0xc0af
                | 0xcca9
        )
}

/// The SNI filters of one line of a crt-list, or the names of a certificate.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct NameFilters {
    /// Names and wildcards (`*.example.org`), without the filter `*`.
    pub names: Vec<Box<[u8]>>,
    /// Names that a wildcard of the same line does not match (`!name`).
    pub excluded: Vec<Box<[u8]>>,
    /// The filter `*`: a default certificate.
    pub is_default: bool,
}

impl NameFilters {
    /// The filters that stand for the names of a certificate.
    #[must_use]
    pub fn of_names<'n>(names: impl IntoIterator<Item = &'n [u8]>) -> Self {
        let mut filters = Self::default();
        for name in names {
            filters.add(name);
        }
        filters
    }

    /// Adds one word of a crt-list line. An exclusion of a wildcard (`!*.x`) is left out, as
    /// HAProxy does.
    pub fn add(&mut self, word: &[u8]) {
        match word {
            b"*" => self.is_default = true,
            [b'!', b'*', ..] => {}
            [b'!', name @ ..] => self.excluded.push(name.to_ascii_lowercase().into()),
            name => self.names.push(name.to_ascii_lowercase().into()),
        }
    }
}

/// One entry at one name.
#[derive(Clone, Debug)]
struct NamedEntry {
    entry: u32,
    algorithm: KeyAlgorithm,
    excluded: Option<Arc<[Box<[u8]>]>>,
}

type NamedEntries = HashMap<Arc<[u8]>, Vec<NamedEntry>, foldhash::fast::RandomState>;

/// The entries of one bind line by name.
#[derive(Clone, Debug, Default)]
pub struct NameIndex {
    exact: NamedEntries,
    /// By what follows the asterisk: `.example.org`.
    wildcard: NamedEntries,
    defaults: Vec<NamedEntry>,
}

/// What was found for a name.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct NameMatch {
    /// The number of the entry, as given to [`NameIndex::insert`].
    pub entry: usize,
    /// False when a default entry stands in for a name that nothing matches.
    pub is_named: bool,
}

impl NameIndex {
    /// Adds an entry behind those that are there. Names that it has twice count once.
    ///
    /// # Panics
    ///
    /// Never: a bind line with more than 2^32 entries does not fit into memory.
    pub fn insert(&mut self, entry: usize, algorithm: KeyAlgorithm, filters: &NameFilters) {
        let entry = u32::try_from(entry).expect("fewer than 2^32 entries");
        let excluded = (!filters.excluded.is_empty()).then(|| filters.excluded.clone().into());
        let named_entry = |excluded| NamedEntry {
            entry,
            algorithm,
            excluded,
        };
        for name in &filters.names {
            let (named_entries, key, excluded) = match name.strip_prefix(b"*") {
                Some(suffix) => (&mut self.wildcard, suffix, excluded.clone()),
                None => (&mut self.exact, &name[..], None),
            };
            let list = named_entries.entry(key.into()).or_default();
            if list.last().is_none_or(|last| last.entry != entry) {
                list.push(named_entry(excluded));
            }
        }
        if filters.is_default {
            self.insert_default(entry as usize, algorithm);
        }
    }

    /// Makes an entry a default one.
    ///
    /// # Panics
    ///
    /// Never, as [`NameIndex::insert`].
    pub fn insert_default(&mut self, entry: usize, algorithm: KeyAlgorithm) {
        let entry = u32::try_from(entry).expect("fewer than 2^32 entries");
        if self
            .defaults
            .iter()
            .all(|named_entry| named_entry.entry != entry)
        {
            self.defaults.push(NamedEntry {
                entry,
                algorithm,
                excluded: None,
            });
        }
    }

    /// The entry for a server name. Without a name, or where nothing matches, a default entry,
    /// unless `strict_sni`. Upper and lower case are the same.
    #[must_use]
    pub fn choose(
        &self,
        server_name: Option<&[u8]>,
        client: ClientKeys,
        strict_sni: bool,
    ) -> Option<NameMatch> {
        let named = server_name.and_then(|name| self.choose_named(name, client));
        if let Some(entry) = named {
            return Some(NameMatch {
                entry,
                is_named: true,
            });
        }
        if strict_sni {
            return None;
        }
        let mut best = BestByKeyType::default();
        best.offer_all(&self.defaults, &[]);
        best.choose(client).map(|entry| NameMatch {
            entry,
            is_named: false,
        })
    }

    fn choose_named(&self, name: &[u8], client: ClientKeys) -> Option<usize> {
        let mut lower = [0; NAME_BYTES_MAX];
        let lower = lower.get_mut(..name.len())?;
        lower.copy_from_slice(name);
        lower.make_ascii_lowercase();
        let mut best = BestByKeyType::default();
        if let Some(named_entries) = self.exact.get(&*lower) {
            best.offer_all(named_entries, lower);
        }
        let dot = lower.iter().position(|byte| *byte == b'.');
        if let Some(named_entries) = dot.and_then(|dot| self.wildcard.get(&lower[dot..])) {
            best.offer_all(named_entries, lower);
        }
        best.choose(client)
    }
}

/// The first entry for each kind of key.
#[derive(Default)]
struct BestByKeyType {
    ecdsa: Option<u32>,
    rsa: Option<u32>,
    other: Option<u32>,
}

impl BestByKeyType {
    fn offer_all(&mut self, named_entries: &[NamedEntry], name: &[u8]) {
        for named_entry in named_entries {
            let excluded = named_entry.excluded.as_deref().unwrap_or_default();
            if excluded.iter().any(|excluded| **excluded == *name) {
                continue;
            }
            let first = match named_entry.algorithm {
                KeyAlgorithm::Ecdsa => &mut self.ecdsa,
                KeyAlgorithm::Rsa => &mut self.rsa,
                KeyAlgorithm::Other => &mut self.other,
            };
            first.get_or_insert(named_entry.entry);
        }
    }

    /// What the client can verify; else what there is: the handshake then fails by itself.
    fn choose(&self, client: ClientKeys) -> Option<usize> {
        let wanted = [
            self.ecdsa.filter(|_| client.ecdsa),
            self.rsa.filter(|_| client.rsa),
            self.other,
            self.rsa,
            self.ecdsa,
        ];
        wanted
            .into_iter()
            .flatten()
            .next()
            .map(|entry| entry as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOTH: ClientKeys = ClientKeys {
        ecdsa: true,
        rsa: true,
    };
    const RSA: ClientKeys = ClientKeys {
        ecdsa: false,
        rsa: true,
    };

    /// Entries by their line in a crt-list, the number being the entry.
    fn index(lines: &[(KeyAlgorithm, &str)]) -> NameIndex {
        let mut index = NameIndex::default();
        for (entry, (algorithm, words)) in lines.iter().enumerate() {
            let filters = NameFilters::of_names(words.split_whitespace().map(str::as_bytes));
            index.insert(entry, *algorithm, &filters);
        }
        index
    }

    fn chosen(index: &NameIndex, name: &str, client: ClientKeys) -> Option<usize> {
        let found = index.choose(Some(name.as_bytes()), client, true);
        found.map(|found| found.entry)
    }

    #[test]
    fn ecdsa_wins_and_exact_wins_among_equals() {
        use KeyAlgorithm::{Ecdsa, Other, Rsa};
        let index = index(&[
            (Rsa, "a.ex.com"),
            (Ecdsa, "*.ex.com"),
            (Ecdsa, "E.ex.com"),
            (Rsa, "*.ex.com"),
            (Ecdsa, "e.ex.com"),
            (Other, "ed.net"),
        ]);
        assert_eq!(chosen(&index, "A.ex.COM", BOTH), Some(1));
        assert_eq!(chosen(&index, "a.ex.com", RSA), Some(0));
        assert_eq!(chosen(&index, "b.ex.com", RSA), Some(3));
        assert_eq!(chosen(&index, "e.ex.com", BOTH), Some(2));
        assert_eq!(chosen(&index, "e.ex.com", RSA), Some(3));
        assert_eq!(chosen(&index, "ed.net", RSA), Some(5));
        assert_eq!(chosen(&index, ".ex.com", BOTH), Some(1));
        assert_eq!(chosen(&index, "*.ex.com", BOTH), Some(1));
        for name in ["ex.com", "x.a.ex.com", "a.ex.com.", "", "."] {
            assert_eq!(chosen(&index, name, BOTH), None, "{name}");
        }
        assert_eq!(chosen(&index, &"a".repeat(300), BOTH), None);
    }

    #[test]
    fn an_exclusion_acts_on_the_wildcards_of_its_line() {
        use KeyAlgorithm::{Ecdsa, Rsa};
        let index = index(&[
            (Rsa, "*.neg.com !no.neg.com FOO.neg.com"),
            (Ecdsa, "no.neg.com !zz.qq.com"),
            (Rsa, "q.com !*.q.com"),
        ]);
        assert_eq!(chosen(&index, "no.neg.com", BOTH), Some(1));
        assert_eq!(chosen(&index, "yes.neg.com", BOTH), Some(0));
        assert_eq!(chosen(&index, "foo.neg.com", BOTH), Some(0));
        assert_eq!(chosen(&index, "q.com", BOTH), Some(2));
        assert_eq!(chosen(&index, "b.q.com", BOTH), None);
    }

    #[test]
    fn defaults_are_chosen_by_key_too() {
        use KeyAlgorithm::{Ecdsa, Rsa};
        let index = index(&[(Ecdsa, "*"), (Rsa, "* b.org"), (Ecdsa, "c.org")]);
        let found = |name, client| index.choose(name, client, false);
        let default = |entry| {
            Some(NameMatch {
                entry,
                is_named: false,
            })
        };
        assert_eq!(found(None, BOTH), default(0));
        assert_eq!(found(Some(b"none.org"), RSA), default(1));
        assert_eq!(found(Some(b"c.org"), RSA).map(|found| found.entry), Some(2));
        assert_eq!(index.choose(None, BOTH, true), None);
    }
}
