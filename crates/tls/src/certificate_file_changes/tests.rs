use super::*;
use crate::store::CertificateStore;
use crate::store::LoadOptions;
use crate::testing::{EC, MemoryFiles, Pem, self_signed};

fn load(files: &MemoryFiles, options: &LoadOptions) -> Certificate {
    let mut store = CertificateStore::default();
    let read = store.read_certificate(files, "/a.pem", options);
    read.expect("a start loads it")
}

/// Whatever is there when the process dies, a start finds the old certificate or the new one.
fn survives(mut files: MemoryFiles, options: &LoadOptions, renewed: &Pem) {
    let mut store = CertificateStore::default();
    let stored = store.load(&files, "/a.pem", options).expect("good");
    let old = stored.current();
    let parts = CertificateParts::read(renewed.both().as_bytes()).expect("PEM");
    let new = store.build_certificate(parts).expect("a certificate");
    let origin = stored.origin();
    let (changes, after) = changes("/a.pem", &new, (&origin, Some(&old))).expect("files");
    assert!(!changes.is_empty());
    for change in &changes {
        match &change.content {
            Some(content) => files.add(&change.path, content.clone()),
            None => files.remove(&change.path),
        }
        let found = load(&files, options);
        assert!(
            found.leaf() == old.leaf() || found.leaf() == new.leaf(),
            "after {}",
            change.path
        );
    }
    let found = load(&files, options);
    assert!(found.is_same(&new));
    assert_eq!(after.files_digest, Some(found.content_digest()));
    let again = super::changes("/a.pem", &new, (&after, Some(&new))).expect("files");
    assert!(
        again.0.len() <= 1,
        "nothing else changed: {:?}",
        again.0.len()
    );
}

#[test]
fn a_start_after_each_change_finds_the_old_certificate_or_the_new_one() {
    let (old, new) = (self_signed(EC, "a", &[]), self_signed(EC, "a", &[]));
    // One file with both.
    let mut files = MemoryFiles::default();
    files.add("/a.pem", old.both());
    files.add("/a.pem.sctl", "\0\0");
    survives(files, &LoadOptions::default(), &new);
    // A key beside it, which is looked for.
    let mut files = MemoryFiles::default();
    files.add("/a.pem", old.certificate.clone());
    files.add("/a.pem.key", old.key.clone());
    survives(files, &LoadOptions::default(), &new);
    // A key that a line names.
    let mut files = MemoryFiles::default();
    files.add("/a.pem", old.certificate.clone());
    files.add("/k", old.key.clone());
    let options = LoadOptions {
        key: Some("/k".to_owned()),
        ..LoadOptions::default()
    };
    survives(files, &options, &new);
}

#[test]
fn a_certificate_of_a_command_goes_where_its_name_says() {
    let pem = self_signed(EC, "a", &[]);
    let parts = CertificateParts::read(pem.both().as_bytes()).expect("PEM");
    let certificate = CertificateStore::default()
        .build_certificate(parts)
        .expect("good");
    let none = CertificateOrigin::default();
    let (plan, origin) = changes("/d/a.pem", &certificate, (&none, None)).expect("a path");
    let mut files = MemoryFiles::default();
    for change in plan.into_iter().filter(|change| change.content.is_some()) {
        assert!(change.is_secret);
        files.add(&change.path, change.content.unwrap_or_default());
    }
    let mut store = CertificateStore::default();
    let found = store.load_crt(&files, "/d/").expect("good");
    assert!(found[0].current().is_same(&certificate));
    assert_eq!(*found[0].origin(), origin);
    let error = changes("@web/a", &certificate, (&none, None)).expect_err("no path");
    assert_eq!(error, "'@web/a' is no name of a file");
    let gone: Vec<String> = removals(&origin.files)
        .into_iter()
        .map(|change| change.path)
        .collect();
    assert_eq!(gone.len(), 3, "{gone:?}");
    assert_eq!(gone[0], "/d/a.pem");
}
