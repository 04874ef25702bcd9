//! The certificates of a bind line: which one a ClientHello gets, and on which terms.
//!
//! The list is an immutable snapshot. Who serves holds it behind an atomic pointer and swaps the
//! whole; a renewal that keeps its names swaps the certificate inside its entry
//! ([`StoredCertificate::replace`]) and leaves the list as it is.

use std::sync::Arc;

use crate::certificate::Certificate;
use crate::hello::ClientHello;
use crate::names::{ClientKeys, NameFilters, NameIndex, NameMatch};
use crate::server_config::{HandshakeTerms, ServerTerms};
use crate::store::StoredCertificate;

/// A certificate on a bind line, with its place among the others.
#[derive(Clone, Debug)]
pub struct BindEntry {
    /// The certificate.
    pub certificate: Arc<StoredCertificate>,
    /// The filters of its line in a crt-list; `None` for the certificate's own names.
    pub filters: Option<NameFilters>,
    /// True for `default-crt`, and for all of a bundle that comes first on the line.
    pub is_default: bool,
    /// The terms of the handshake.
    pub terms: Arc<ServerTerms>,
}

/// All certificates of a bind line, in the order of the line.
#[derive(Clone, Debug, Default)]
pub struct BindCertificates {
    entries: Vec<BindEntry>,
    index: NameIndex,
    strict_sni: bool,
}

/// What a handshake gets.
#[derive(Clone, Debug)]
pub struct BindChoice {
    /// The terms, with the certificate.
    pub terms: HandshakeTerms,
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
            index: NameIndex::default(),
            strict_sni,
        };
        for entry in entries {
            list.push(entry);
        }
        list
    }

    /// Adds an entry behind the others.
    pub fn push(&mut self, entry: BindEntry) {
        let place = self.entries.len();
        let certificate = entry.certificate.current();
        let algorithm = certificate.algorithm();
        match &entry.filters {
            Some(filters) => self.index.insert(place, algorithm, filters),
            None => {
                let names = NameFilters::of_names(certificate.names());
                // A certificate for the name `*` is no default.
                let names = NameFilters {
                    is_default: false,
                    ..names
                };
                self.index.insert(place, algorithm, &names);
            }
        }
        if entry.is_default || (place == 0 && self.index.has_no_default()) {
            self.index.insert_default(place, algorithm);
        }
        self.entries.push(entry);
    }

    /// The entries, in the order of the line.
    #[must_use]
    pub fn entries(&self) -> &[BindEntry] {
        &self.entries
    }

    /// The entry for a ClientHello; `None`: the handshake is refused with `unrecognized_name`.
    #[must_use]
    pub fn find(&self, hello: &ClientHello<'_>) -> Option<NameMatch> {
        self.index
            .choose(hello.server_name(), ClientKeys::of(hello), self.strict_sni)
    }

    /// The certificate for a ClientHello, and the terms it comes with; `None`: the handshake is
    /// refused with `unrecognized_name`.
    #[must_use]
    pub fn choose(&self, hello: &ClientHello<'_>) -> Option<BindChoice> {
        let found = self.find(hello)?;
        let entry = &self.entries[found.entry];
        let certificate = entry.certificate.current();
        Some(BindChoice {
            terms: entry.terms.for_handshake(hello, &certificate),
            certificate,
            found,
        })
    }
}
