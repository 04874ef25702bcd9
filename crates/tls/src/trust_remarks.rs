//! What of authorities and revocation lists cannot be used here, said when they are loaded: files of a
//! directory are left out, and OpenSSL
//! checks signatures that the library here cannot ([`signatures`](crate::signatures)), and whoever
//! depends on one is refused at the handshake, where nobody sees why.

use x509_parser::prelude::{CertificateRevocationList, FromDer, X509Certificate, X509Name};

use crate::authorities::{Authorities, RevocationList, TrustedAuthorities};
use crate::details::{DistinguishedName, algorithm_name};
use crate::signatures::{SignedObject, is_usable_key};
use crate::x509::Facts;

impl TrustedAuthorities {
    /// What cannot be used, and what to do about it: a text for each.
    #[must_use]
    pub fn remarks(&self) -> Vec<String> {
        let files = || self.files().into_iter().flatten();
        let keys =
            files().flat_map(|file| file.facts().filter_map(|facts| key_remark(file, facts)));
        let lists = files().flat_map(|file| {
            let lists = file.lists().iter();
            lists.filter_map(|list| self.list_remark(file, list))
        });
        let left_out = files().flat_map(|file| {
            let texts = file.left_out().iter();
            texts.map(|text| format!("ca-file: {text}"))
        });
        left_out.chain(keys).chain(lists).collect()
    }

    fn list_remark(&self, file: &Authorities, list: &RevocationList) -> Option<String> {
        let signed = SignedObject::read(&list.der)?;
        let mut issuers = self
            .of_subject(&list.issuer)
            .filter(|issuer| issuer.has_key_id(list.authority_key_id.as_deref()))
            .filter(|issuer| is_usable_key(&issuer.key, issuer.key_bits))
            .peekable();
        issuers.peek()?;
        if issuers.any(|issuer| signed.can_be_checked(&issuer.key, issuer.key_bits)) {
            return None;
        }
        let (_, parsed) = CertificateRevocationList::from_der(&list.der).ok()?;
        Some(format!(
            "'{}' : the revocation list of '{}' is signed with {}, which cannot be checked here: \
             whoever it is about is refused. Have it signed with SHA-256.",
            file.name(),
            name(parsed.issuer()),
            algorithm_name(&parsed.signature_algorithm.algorithm),
        ))
    }
}

fn key_remark(file: &Authorities, facts: &Facts) -> Option<String> {
    if is_usable_key(&facts.key, facts.key_bits) {
        return None;
    }
    let (_, parsed) = X509Certificate::from_der(&facts.der).ok()?;
    Some(format!(
        "'{}' : what '{}' signs cannot be checked here, for its key is of {} bits of {}: certificates \
         and revocation lists that it signed are refused. Use RSA of 2048 bits, P-256, P-384, P-521 or \
         Ed25519.",
        file.name(),
        name(parsed.subject()),
        facts.key_bits,
        algorithm_name(&parsed.public_key().algorithm.algorithm),
    ))
}

fn name(name: &X509Name<'_>) -> String {
    let name = DistinguishedName::read(name);
    String::from_utf8_lossy(name.whole().unwrap_or_default()).into_owned()
}
