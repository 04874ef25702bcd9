//! The certificates of a bind line: which one a ClientHello gets, and with which TLS settings.
//!
//! The list is an immutable snapshot. Who serves holds it behind an atomic pointer and swaps the
//! whole; a renewal that keeps its names swaps the certificate inside its entry
//! ([`StoredCertificate::replace`]) and leaves the list as it is.

use std::sync::Arc;

use crate::certificate::Certificate;
use crate::hello::ClientHello;
use crate::names::{ClientKeys, NameFilters, NameIndex, NameMatch, is_suite_with_ecdsa};
use crate::server_config::{BindTlsSettings, HandshakeTlsSettings};
use crate::store::StoredCertificate;

/// A line of a crt-list, or a file of a directory, as commands show it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ListRow {
    /// The path of the list, or of the directory.
    pub list: Arc<str>,
    /// The number of the line; 0 for a file of a directory.
    pub number: usize,
    /// Options in brackets and filters, each with a space before it.
    pub words: String,
}

/// A certificate on a bind line, with its index among the others.
#[derive(Clone, Debug)]
pub struct BindEntry {
    /// The certificate.
    pub certificate: Arc<StoredCertificate>,
    /// The filters of its line in a crt-list; `None` for the certificate's own names.
    pub filters: Option<NameFilters>,
    /// True for `default-crt`, and for all of a bundle that comes first on the line.
    pub is_default: bool,
    /// The TLS settings of the handshake.
    pub tls_settings: Arc<BindTlsSettings>,
    /// Its line in a crt-list, or its place in a directory.
    pub row: Option<Arc<ListRow>>,
}

impl BindEntry {
    /// Whether it stands in this crt-list or directory.
    #[must_use]
    pub fn is_in(&self, list: &str) -> bool {
        self.row.as_ref().is_some_and(|row| &*row.list == list)
    }

    /// The names that it is chosen for: those of its line, or else those of its certificate. `*` is
    /// no name: see [`Self::is_default`] and [`NameFilters::is_default`].
    #[must_use]
    pub fn names(&self) -> NameFilters {
        match &self.filters {
            Some(filters) => filters.clone(),
            None => NameFilters {
                // A certificate for the name `*` is no default.
                is_default: false,
                ..NameFilters::of_names(self.certificate.current().names())
            },
        }
    }
}

/// All certificates of a bind line, in the order of the line.
#[derive(Clone, Debug, Default)]
pub struct BindCertificates {
    entries: Vec<BindEntry>,
    /// The numbers of the entries, by the names of their certificates: a command finds its one of
    /// thousands by it.
    by_certificate: Vec<u32>,
    index: NameIndex,
    strict_sni: bool,
    /// The suites that any of the entries serves with an ECDSA certificate.
    ecdsa_suites: Vec<u16>,
    /// Its crt-lists and directories, also those without a certificate.
    lists: Arc<[String]>,
}

/// What a handshake gets.
#[derive(Clone, Debug)]
pub struct BindChoice {
    /// The TLS settings, with the certificate.
    pub tls_settings: HandshakeTlsSettings,
    /// The certificate.
    pub certificate: Arc<Certificate>,
    /// The entry it comes from.
    pub found: NameMatch,
}

impl BindCertificates {
    /// The list of a bind line. The first entry is a default one, unless its filters say `*`.
    #[must_use]
    pub fn new(entries: Vec<BindEntry>, strict_sni: bool) -> Self {
        let mut list = Self {
            entries: Vec::with_capacity(entries.len()),
            by_certificate: Vec::new(),
            index: NameIndex::default(),
            strict_sni,
            ecdsa_suites: Vec::new(),
            lists: Arc::default(),
        };
        for mut entry in entries {
            let is_first = list.entries.is_empty();
            let says_default = entry.filters.as_ref().is_some_and(|one| one.is_default);
            entry.is_default |= is_first && !says_default;
            list.push(entry);
        }
        list.sort_names();
        list
    }

    /// The same line with other entries. None becomes a default one that was not: where the default
    /// certificate was removed there is none.
    #[must_use]
    pub fn with_entries(&self, entries: Vec<BindEntry>) -> Self {
        let mut list = Self {
            entries: Vec::with_capacity(entries.len()),
            by_certificate: Vec::new(),
            index: NameIndex::default(),
            strict_sni: self.strict_sni,
            ecdsa_suites: Vec::new(),
            lists: Arc::clone(&self.lists),
        };
        for entry in entries {
            list.push(entry);
        }
        list.sort_names();
        list
    }

    /// The same line with these crt-lists and directories.
    #[must_use]
    pub fn with_lists(self, lists: Vec<String>) -> Self {
        Self {
            lists: lists.into(),
            ..self
        }
    }

    /// The crt-lists and directories of the line.
    #[must_use]
    pub fn lists(&self) -> &[String] {
        &self.lists
    }

    /// Adds an entry behind the others.
    fn push(&mut self, entry: BindEntry) {
        let index = self.entries.len();
        let algorithm = entry.certificate.current().algorithm();
        self.index.insert(index, algorithm, &entry.names());
        if entry.is_default {
            self.index.insert_default(index, algorithm);
        }
        for suite in entry
            .tls_settings
            .suites()
            .filter(|one| is_suite_with_ecdsa(*one))
        {
            if !self.ecdsa_suites.contains(&suite) {
                self.ecdsa_suites.push(suite);
            }
        }
        self.entries.push(entry);
    }

    fn sort_names(&mut self) {
        let entries = &self.entries;
        let count = u32::try_from(entries.len()).unwrap_or(u32::MAX);
        self.by_certificate = (0..count).collect();
        let name = |number: &u32| entries[*number as usize].certificate.name();
        self.by_certificate
            .sort_by(|one, other| name(one).cmp(name(other)));
    }

    /// The entries with the certificate of this name, in the order of the line.
    pub fn with_certificate(&self, name: &str) -> impl Iterator<Item = &BindEntry> {
        let entry = |number: &u32| &self.entries[*number as usize];
        let first = self
            .by_certificate
            .partition_point(|number| entry(number).certificate.name() < name);
        let found = self.by_certificate[first..].iter().map(entry);
        found.take_while(move |entry| entry.certificate.name() == name)
    }

    /// The entries, in the order of the line.
    #[must_use]
    pub fn entries(&self) -> &[BindEntry] {
        &self.entries
    }

    /// The entry for a ClientHello; `None`: the handshake is refused with `unrecognized_name`.
    #[must_use]
    pub fn find(&self, hello: &ClientHello<'_>) -> Option<NameMatch> {
        self.index.choose(
            hello.server_name(),
            self.client_keys(hello),
            self.strict_sni,
        )
    }

    /// Which keys the client can verify in a handshake with this line.
    #[must_use]
    pub fn client_keys(&self, hello: &ClientHello<'_>) -> ClientKeys {
        ClientKeys::of(hello, &self.ecdsa_suites)
    }

    /// The certificate for a ClientHello, and the TLS settings it comes with; `None`: the handshake is
    /// refused with `unrecognized_name`.
    #[must_use]
    pub fn choose(&self, hello: &ClientHello<'_>) -> Option<BindChoice> {
        let found = self.find(hello)?;
        let entry = &self.entries[found.entry];
        let certificate = entry.certificate.current();
        Some(BindChoice {
            tls_settings: entry.tls_settings.for_handshake(hello, &certificate),
            certificate,
            found,
        })
    }
}
