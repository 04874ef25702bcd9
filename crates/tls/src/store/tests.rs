use super::*;
use crate::ocsp::OcspError;
use crate::testing::{EC, MemoryFiles, RSA, intermediate, params, root, self_signed, signed};

fn names(found: &[Arc<StoredCertificate>]) -> Vec<&str> {
    found.iter().map(|stored| stored.name()).collect()
}

#[test]
fn a_directory_is_loaded_in_order_without_side_files() {
    let mut files = MemoryFiles::default();
    let pem = self_signed(EC, "a", &[]);
    files.add("/d/b.pem", pem.both());
    files.add("/d/a.pem", pem.certificate.clone());
    files.add("/d/a.pem.key", pem.key.clone());
    files.add("/d/.hidden", "");
    files.add("/d/b.pem.ocsp", "staple");
    files.add("/d/c.pem.rsa", self_signed(RSA, "c", &[]).both());
    let mut store = CertificateStore::new(StoreOptions::default());
    let found = store.load_crt(&files, "/d/").expect("good");
    assert_eq!(names(&found), ["/d/a.pem", "/d/b.pem", "/d/c.pem.rsa"]);
    assert_eq!(found[1].current().ocsp_error, Some(OcspError::Broken));
    let again = store.load_crt(&files, "/d/b.pem").expect("there already");
    assert!(Arc::ptr_eq(&again[0], &found[1]));
}

#[test]
fn a_bundle_stands_in_for_a_file_that_is_missing() {
    let mut files = MemoryFiles::default();
    files.add("/x.pem.rsa", self_signed(RSA, "x", &[]).both());
    files.add("/x.pem.ecdsa", self_signed(EC, "x", &[]).both());
    let mut store = CertificateStore::new(StoreOptions {
        crt_base: Some("/".to_owned()),
        ..StoreOptions::default()
    });
    let found = store.load_crt(&files, "x.pem").expect("good");
    assert_eq!(names(&found), ["/x.pem.ecdsa", "/x.pem.rsa"]);
    let error = store.load_crt(&files, "y.pem").expect_err("nothing");
    assert_eq!(error.to_string(), "'/y.pem': No such file or directory");
    let error = store.load_crt(&files, "@/y").expect_err("nothing");
    assert_eq!(error.reason, LoadReason::UnknownName);
}

#[test]
fn a_key_beside_is_looked_for_and_named_when_it_is_missing() {
    let mut files = MemoryFiles::default();
    let pem = self_signed(EC, "a", &[]);
    files.add("/a.crt", pem.certificate.clone());
    let load = |files: &MemoryFiles, replaces_ending, extra| {
        let options = StoreOptions {
            replaces_ending,
            extra,
            ..StoreOptions::default()
        };
        CertificateStore::new(options)
            .load_crt(files, "/a.crt")
            .map(|_| ())
            .map_err(|e| e.to_string())
    };
    let all = ExtraFiles::default();
    let beside = |file: &str| {
        Err(format!(
            "'/a.crt': no private key found, neither here nor in '{file}'"
        ))
    };
    assert_eq!(load(&files, false, all), beside("/a.crt.key"));
    assert_eq!(load(&files, true, all), beside("/a.key"));
    let none = ExtraFiles { key: false, ..all };
    assert!(
        load(&files, false, none)
            .expect_err("no key")
            .contains("append it")
    );
    files.add("/a.key", pem.key.clone());
    assert_eq!(load(&files, true, all), Ok(()));
    files.add(
        "/a.key",
        "-----BEGIN EC PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\nAA==\n\
        -----END EC PRIVATE KEY-----\n",
    );
    assert!(
        load(&files, true, all)
            .expect_err("encrypted")
            .starts_with("'/a.key': the private key at line 1 is encrypted")
    );
}

#[test]
fn named_files_are_used_and_no_other_is_looked_for() {
    let mut files = MemoryFiles::default();
    let pem = self_signed(EC, "a", &[]);
    files.add("/a.pem", pem.certificate.clone());
    files.add("/k", pem.key.clone());
    files.add("/a.pem.ocsp", "staple");
    let mut store = CertificateStore::default();
    let load = LoadOptions {
        key: Some("/k".to_owned()),
        ..LoadOptions::default()
    };
    let stored = store
        .load_as(&files, "@/alias", "/a.pem", &load)
        .expect("good");
    assert_eq!(stored.current().ocsp_error, None);
    assert!(store.load_crt(&files, "@/alias").is_ok());
    let load = LoadOptions {
        ocsp: Some("/nothing".to_owned()),
        ..load
    };
    let error = store.load(&files, "/a.pem", &load).expect_err("missing");
    assert_eq!(
        (error.file.as_str(), error.reason),
        ("/nothing", LoadReason::Missing)
    );
}

#[test]
fn chains_are_shared_and_completed() {
    let root = root("root");
    let middle = intermediate("middle", &root);
    let pem = signed(&params("a", &["a.org"]), &middle);
    let mut files = MemoryFiles::default();
    files.add("/a.pem", format!("{}{}", pem.both(), middle.pem()));
    files.add("/b.pem", pem.both());
    files.add("/i/middle.pem", middle.pem());
    files.add("/i/broken.pem", "none");
    files.add("/r.pem", format!("{}{}", pem.both(), root.pem()));
    let mut store = CertificateStore::new(StoreOptions {
        skips_self_issued: true,
        ..StoreOptions::default()
    });
    let left_out = store.load_issuers(&files, "/i").expect("there");
    assert_eq!(left_out.len(), 1);
    let chain = |store: &mut CertificateStore, path: &str| {
        let found = store.load_crt(&files, path).expect("good");
        Arc::clone(found[0].current().chain())
    };
    let (a, b) = (chain(&mut store, "/a.pem"), chain(&mut store, "/b.pem"));
    assert!(a.len() == 1 && Arc::ptr_eq(&a, &b));
    assert!(chain(&mut store, "/r.pem").is_empty());
}

#[test]
fn a_renewal_says_whether_an_index_must_change() {
    let mut store = CertificateStore::default();
    let mut certificate = |cn: &str| {
        let parts = CertificateParts::read(self_signed(EC, cn, &[]).both().as_bytes());
        store.build_certificate(parts.expect("good")).expect("good")
    };
    let stored = StoredCertificate::new("a", Arc::new(certificate("a")));
    assert!(stored.replace(Arc::new(certificate("a"))));
    assert!(!stored.replace(Arc::new(certificate("b"))));
}
