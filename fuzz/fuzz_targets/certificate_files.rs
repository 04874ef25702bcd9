//! The files of a certificate: bundles, side files, directories and crt-lists that name them. No
//! panic, and what is loaded twice is loaded once.
#![no_main]

use std::sync::Arc;

use ballast_fuzz::with_pem;
use ballast_tls::files::CertificateFileReader;
use ballast_tls::store::{CertificateStore, ExtraFiles, StoreOptions, StoredCertificate};
use libfuzzer_sys::fuzz_target;

const ENDINGS: [&str; 8] = [
    "", ".rsa", ".ecdsa", ".dsa", ".key", ".ocsp", ".issuer", ".sctl",
];

/// The files `d/a.pem` with each ending, and the list `l`, divided by zero bytes.
struct Pieces<'a>(Vec<&'a [u8]>);

impl CertificateFileReader for Pieces<'_> {
    fn read(&self, path: &str) -> Result<Option<Vec<u8>>, String> {
        let found = match path.strip_prefix("d/a.pem") {
            Some(ending) => ENDINGS.iter().position(|one| *one == ending),
            None => (path == "l").then_some(ENDINGS.len()),
        };
        let content = found.and_then(|index| self.0.get(index));
        Ok(content
            .filter(|content| !content.is_empty())
            .map(|content| content.to_vec()))
    }

    fn list(&self, path: &str) -> Result<Option<Vec<String>>, String> {
        let names = ENDINGS.iter().map(|ending| format!("a.pem{ending}"));
        let there = names.filter(|name| matches!(self.read(&format!("d/{name}")), Ok(Some(_))));
        Ok((path == "d").then(|| there.collect()))
    }
}

fn is_whole(stored: &StoredCertificate) -> bool {
    let current = stored.current();
    stored.name().starts_with("d/a.pem") && !current.leaf().is_empty()
}

fuzz_target!(|input: &[u8]| {
    let Some((&options, input)) = input.split_first() else {
        return;
    };
    let input = with_pem(input);
    let is_set = |bit: u8| options >> bit & 1 == 0;
    let files = Pieces(input.split(|byte| *byte == 0).collect());
    let mut store = CertificateStore::new(StoreOptions {
        extra: ExtraFiles {
            bundle: is_set(0),
            key: is_set(1),
            ocsp: is_set(2),
            issuer: is_set(3),
            sctl: is_set(4),
        },
        skips_self_issued: is_set(5),
        ..StoreOptions::default()
    });
    for path in ["d/a.pem", "d"] {
        let Ok(found) = store.load_crt(&files, path) else {
            continue;
        };
        assert!(found.iter().all(|stored| is_whole(stored)));
        let again = store.load_crt(&files, path).expect("it was loaded");
        assert!(
            found
                .iter()
                .zip(&again)
                .all(|(one, other)| Arc::ptr_eq(one, other))
        );
        assert_eq!(found.len(), again.len());
    }
});
