//! PEM content of a certificate with its key: no panic, and what is taken serves as it says.
#![no_main]

use ballast_fuzz::with_pem;
use ballast_tls::certificate::{Certificate, CertificateParts};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let Ok(parts) = CertificateParts::read(&with_pem(input)) else {
        return;
    };
    let Ok(certificate) = Certificate::new(parts, |_, rest| rest.into()) else {
        return;
    };
    assert!(certificate.names().all(|name| !name.is_empty()));
    let again = Certificate::new(certificate.parts(), |_, rest| rest.into());
    assert!(again.is_ok_and(|again| again.leaf() == certificate.leaf()));
});
