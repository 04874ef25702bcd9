//! What commands send of certificates, authorities and revocation lists: no panic, what is refused
//! changes nothing, and what is taken is dumped as it was.
#![no_main]

use std::sync::Arc;

use ballast_fuzz::with_pem;
use ballast_tls::authorities::Authorities;
use ballast_tls::certificate::CertificateParts;
use ballast_tls::store::{CertificateStore, StoredCertificate};
use ballast_tls::store_transaction::{
    CertificatePart, CertificateTransaction, describe, dump, ocsp_key,
};
use libfuzzer_sys::fuzz_target;

/// Everything of the parts that can be compared.
fn shown(parts: &CertificateParts) -> impl PartialEq + std::fmt::Debug + use<> {
    let CertificateParts {
        ocsp, issuer, sctl, ..
    } = parts.clone();
    (dump(parts), ocsp, issuer, sctl)
}

fuzz_target!(|input: &[u8]| {
    let input = &with_pem(input)[..];
    let mut store = CertificateStore::default();
    // Commands are divided by zero bytes: the ending of the name in the first line, the payload.
    let commands = input.split(|byte| *byte == 0).map(|command| {
        let end = command.iter().position(|byte| *byte == b'\n');
        let (ending, payload) = command.split_at(end.map_or(command.len(), |end| end + 1));
        let name = format!("a.pem{}", String::from_utf8_lossy(ending.trim_ascii_end()));
        (name, payload)
    });
    for (name, payload) in commands {
        let (name, part) = CertificatePart::split(&name);
        let stored = store.get(name).cloned();
        let mut transaction = CertificateTransaction::new(name, stored.as_deref());
        let before = shown(&transaction.parts);
        if transaction.set(part, payload).is_err() {
            assert_eq!(shown(&transaction.parts), before);
            continue;
        }
        let _ = describe(&transaction.parts);
        let dumped = CertificateParts::read(dump(&transaction.parts).as_bytes());
        assert!(dumped.is_ok_and(|read| read.certificates == transaction.parts.certificates));
        if let Ok(certificate) = store.build_certificate(transaction.parts) {
            let stored = StoredCertificate::new(name, Arc::new(certificate));
            let _ = ocsp_key(&stored);
            store.insert(Arc::new(stored));
        }
    }

    let mut authorities = Authorities::empty("ca.pem");
    if authorities.add(input).is_ok() {
        let mut again = Authorities::empty("ca.pem");
        assert!(again.add(authorities.pem().as_bytes()).is_ok());
        assert_eq!(again.pem(), authorities.pem());
    }
});
