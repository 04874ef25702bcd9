//! What the next process gets of certificates and keys: records of bytes, each with its name. They
//! hold keys, and travel in a sealed memory file only.
//!
//! The next process may be of another version: a record of a kind that it does not know is left
//! out.

use std::sync::Arc;

use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::authorities::Authorities;
use crate::certificate::{CertificateParts, KeySource};
use crate::files::ContentDigest;
use crate::shared_store::StoreState;
use crate::store::{CertificateFiles, CertificateOrigin, StoredCertificate};
use crate::store_transaction::{
    CertificateTransaction, ListEdit, TrustFile, TrustKind, TrustTransaction,
};
use crate::tickets::TicketKeys;

/// A name and a content.
pub type NamedContent = (Vec<u8>, Vec<u8>);

/// Keys of tickets: what their file had, and the keys.
const TICKET_KEYS: u8 = b'k';
/// A certificate that a command changed or brought: what its files had, their names, its parts.
const CERTIFICATE: u8 = b'c';
/// A name without a certificate.
const EMPTY: u8 = b'e';
/// A certificate that is being changed: the names of its files, its parts.
const CERTIFICATE_TRANSACTION: u8 = b't';
/// A file of authorities that a command changed or brought: what the file had, and PEM text.
const AUTHORITIES: u8 = b'a';
/// The same of revocation lists.
const REVOCATION: u8 = b'r';
/// A file of authorities that is being changed: PEM text.
const AUTHORITIES_TRANSACTION: u8 = b'A';
/// The same of revocation lists.
const REVOCATION_TRANSACTION: u8 = b'R';
/// A line of a list that a command added or removed.
const LIST_EDIT: u8 = b'l';

/// All that the next process cannot read in files.
#[must_use]
pub fn records(state: &StoreState) -> Vec<NamedContent> {
    let mut records = Vec::new();
    for (name, keys) in &state.ticket_keys {
        let text = keys.reveal().join("\n");
        records.push(record(
            TICKET_KEYS,
            name,
            &[&keys.of_file(), text.as_bytes()],
        ));
    }
    for stored in state.store.iter().filter(|stored| stored.is_changed()) {
        let origin = stored.origin();
        let files_digest = origin
            .files_digest
            .as_ref()
            .map_or(&[][..], |digest| digest);
        let files = list(&file_names(&origin.files));
        let parts = parts_fields(&stored.current().parts());
        records.push(record(
            CERTIFICATE,
            stored.name(),
            &[files_digest, &files, &parts],
        ));
    }
    for name in &state.empty {
        records.push(record(EMPTY, name, &[]));
    }
    if let Some(open) = &state.transaction {
        let files = list(&file_names(&open.files));
        let parts = parts_fields(&open.parts);
        records.push(record(
            CERTIFICATE_TRANSACTION,
            &open.name,
            &[&files, &parts],
        ));
    }
    for (trust, file_kind, transaction_kind) in [
        (&state.authorities, AUTHORITIES, AUTHORITIES_TRANSACTION),
        (&state.revocation, REVOCATION, REVOCATION_TRANSACTION),
    ] {
        for (name, file) in trust.files.iter().filter(|(_, file)| file.is_changed()) {
            let of_file = file.of_file.as_ref().map_or(&[][..], |digest| digest);
            let pem = file.content.pem();
            records.push(record(file_kind, name, &[of_file, pem.as_bytes()]));
        }
        if let Some(open) = &trust.transaction {
            let pem = open.content.pem();
            records.push(record(transaction_kind, &open.name, &[pem.as_bytes()]));
        }
    }
    records.extend(state.list_edits.iter().map(edit_record));
    records
}

fn edit_record(edit: &ListEdit) -> NamedContent {
    let number = (edit.number as u64).to_be_bytes();
    let line = optional(edit.line.as_deref().map(str::as_bytes));
    let is_added = [u8::from(edit.is_added)];
    let (certificate, words) = (edit.certificate.as_bytes(), edit.words.as_bytes());
    let fields = [&is_added[..], &number, certificate, words, &line];
    record(LIST_EDIT, &edit.list, &fields)
}

fn file_names(files: &CertificateFiles) -> Vec<Vec<u8>> {
    let all = [
        &files.certificate,
        &files.key,
        &files.ocsp,
        &files.issuer,
        &files.sctl,
    ];
    let bytes = |name: &Option<String>| optional(name.as_deref().map(str::as_bytes));
    all.map(bytes).into()
}

fn read_file_names(content: &[u8]) -> Option<CertificateFiles> {
    let names = fields(content)?.into_iter().map(|field| {
        let name = read_optional(field)?;
        name.map(|name| String::from_utf8(name.to_vec()).ok())
            .map_or(Some(None), |name| name.map(Some))
    });
    let names: Vec<Option<String>> = names.collect::<Option<_>>()?;
    let [certificate, key, ocsp, issuer, sctl] = names.try_into().ok()?;
    Some(CertificateFiles {
        certificate,
        key,
        ocsp,
        issuer,
        sctl,
    })
}

fn parts_fields(parts: &CertificateParts) -> Vec<u8> {
    let certificates: Vec<Vec<u8>> = parts.certificates.iter().map(|der| der.to_vec()).collect();
    // The next process asks the device itself for a key that a device holds.
    let key = match parts.key.as_ref().and_then(KeySource::der) {
        None => Vec::new(),
        Some(der) => {
            let kind = match der {
                PrivateKeyDer::Pkcs1(_) => PKCS1,
                PrivateKeyDer::Sec1(_) => SEC1,
                _ => PKCS8,
            };
            [&[kind], der.secret_der()].concat()
        }
    };
    list(&[
        list(&certificates),
        key,
        optional(parts.ocsp.as_deref()),
        optional(parts.issuer.as_deref()),
        optional(parts.sctl.as_deref()),
    ])
}

const PKCS8: u8 = 8;
const PKCS1: u8 = 1;
const SEC1: u8 = 2;

fn read_parts(content: &[u8]) -> Option<CertificateParts> {
    let [certificates, key, ocsp, issuer, sctl] = fields(content)?.try_into().ok()?;
    let der = |der: &[u8]| CertificateDer::from(der.to_vec());
    let key = match key.split_first() {
        None => None,
        Some((&PKCS8, der)) => Some(PrivateKeyDer::Pkcs8(der.to_vec().into())),
        Some((&PKCS1, der)) => Some(PrivateKeyDer::Pkcs1(der.to_vec().into())),
        Some((&SEC1, der)) => Some(PrivateKeyDer::Sec1(der.to_vec().into())),
        Some(_) => return None,
    };
    Some(CertificateParts {
        certificates: fields(certificates)?.into_iter().map(der).collect(),
        key: key.map(KeySource::Der),
        ocsp: read_optional(ocsp)?.map(Into::into),
        issuer: read_optional(issuer)?.map(der),
        sctl: read_optional(sctl)?.map(Into::into),
    })
}

/// A field that may be missing.
fn optional(field: Option<&[u8]>) -> Vec<u8> {
    field.map_or_else(Vec::new, |field| [&[1], field].concat())
}

fn read_optional(field: &[u8]) -> Option<Option<&[u8]>> {
    match field.split_first() {
        None => Some(None),
        Some((1, field)) => Some(Some(field)),
        Some(_) => None,
    }
}

fn read_digest(field: &[u8]) -> Option<Option<ContentDigest>> {
    match field {
        [] => Some(None),
        digest => ContentDigest::try_from(digest).ok().map(Some),
    }
}

fn read_authorities(name: &str, pem: &[u8]) -> Option<Arc<Authorities>> {
    let mut content = Authorities::empty(name);
    content.add(pem).ok()?;
    Some(Arc::new(content))
}

fn text(field: &[u8]) -> Option<String> {
    String::from_utf8(field.to_vec()).ok()
}

/// Adds a record to a state. False: it is of a kind that is not known, or malformed.
pub fn add(state: &mut StoreState, (name, content): (&[u8], &[u8])) -> bool {
    add_known(state, name, content).is_some()
}

fn add_known(state: &mut StoreState, name: &[u8], content: &[u8]) -> Option<()> {
    let (kind, name) = name.split_first()?;
    let name = std::str::from_utf8(name).ok()?.to_owned();
    let fields = fields(content)?;
    match *kind {
        TICKET_KEYS => {
            let [of_file, text] = fields[..] else {
                return None;
            };
            let keys = TicketKeys::read(text).ok()?;
            keys.note_of_file(ContentDigest::try_from(of_file).ok()?);
            state.ticket_keys.insert(name, Arc::new(keys));
        }
        CERTIFICATE => {
            let [files_digest, files, parts] = fields[..] else {
                return None;
            };
            let origin = CertificateOrigin {
                files: read_file_names(files)?,
                files_digest: read_digest(files_digest)?,
            };
            let certificate = state.store.build_certificate(read_parts(parts)?).ok()?;
            let stored = StoredCertificate::new(&name, Arc::new(certificate));
            state.store.insert(Arc::new(stored.with_origin(origin)));
        }
        EMPTY => {
            state.empty.insert(name);
        }
        CERTIFICATE_TRANSACTION => {
            let [files, parts] = fields[..] else {
                return None;
            };
            state.transaction = Some(CertificateTransaction {
                name,
                parts: read_parts(parts)?,
                files: read_file_names(files)?,
                is_being_written: false,
            });
        }
        AUTHORITIES | REVOCATION => {
            let [of_file, pem] = fields[..] else {
                return None;
            };
            let file = TrustFile {
                content: read_authorities(&name, pem)?,
                of_file: read_digest(of_file)?,
            };
            state.trust(trust_kind(*kind)).files.insert(name, file);
        }
        AUTHORITIES_TRANSACTION | REVOCATION_TRANSACTION => {
            let [pem] = fields[..] else {
                return None;
            };
            let content = read_authorities(&name, pem)?;
            let begun = TrustTransaction { name, content };
            state.trust(trust_kind(*kind)).transaction = Some(begun);
        }
        LIST_EDIT => {
            let [is_added, number, certificate, words, line] = fields[..] else {
                return None;
            };
            let number = u64::from_be_bytes(number.try_into().ok()?);
            state.list_edits.push(ListEdit {
                is_added: is_added == [1],
                list: name,
                number: usize::try_from(number).ok()?,
                certificate: text(certificate)?,
                words: text(words)?,
                line: match read_optional(line)? {
                    None => None,
                    Some(line) => Some(text(line)?),
                },
            });
        }
        _ => return None,
    }
    Some(())
}

fn trust_kind(kind: u8) -> TrustKind {
    match kind {
        REVOCATION | REVOCATION_TRANSACTION => TrustKind::Revocation,
        _ => TrustKind::Authorities,
    }
}

fn record(kind: u8, name: &str, fields: &[&[u8]]) -> NamedContent {
    let name = [&[kind], name.as_bytes()].concat();
    (name, list(fields))
}

/// Fields, each with its length before it.
fn list(fields: &[impl AsRef<[u8]>]) -> Vec<u8> {
    let fields = fields.iter().map(AsRef::as_ref);
    let bytes = fields.clone().map(|field| field.len() + 8).sum();
    let mut content = Vec::with_capacity(bytes);
    for field in fields {
        content.extend_from_slice(&(field.len() as u64).to_be_bytes());
        content.extend_from_slice(field);
    }
    content
}

fn fields(mut content: &[u8]) -> Option<Vec<&[u8]>> {
    let mut fields = Vec::new();
    while !content.is_empty() {
        let (length, rest) = content.split_first_chunk()?;
        let length = usize::try_from(u64::from_be_bytes(*length)).ok()?;
        let (field, rest) = rest.split_at_checked(length)?;
        fields.push(field);
        content = rest;
    }
    Some(fields)
}

#[cfg(test)]
mod tests;
