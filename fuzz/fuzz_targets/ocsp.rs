//! OCSP responses: no panic, what is taken has a time from which it holds, and of what a responder
//! sends nothing is taken that the issuer has not signed.
#![no_main]

use ballast_tls::certificate::CertificateParts;
use ballast_tls::ocsp::{OcspError, OcspResponse};
use ballast_tls::ocsp_request::verify_response;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let pem = include_bytes!("../seeds/certificate/ecdsa");
    let parts = CertificateParts::read(pem).expect("a good certificate");
    let leaf = &parts.certificates[0];
    if let Ok(response) = OcspResponse::read(input, leaf, Some(leaf)) {
        assert_eq!(response.der(), input);
        assert!(!response.is_valid_at(i64::MIN));
    }
    let alone = OcspResponse::read(input, leaf, None);
    assert!(alone.is_err_and(|error| error != OcspError::OtherCertificate));
    // Nobody has its key.
    assert!(verify_response(input, leaf, Some(leaf), 1_800_000_000).is_err());
});
