use super::*;
use crate::shared_store::KEYS_OF_PROCESS;
use crate::testing::{EC, self_signed};

fn handed_over(state: &StoreState) -> StoreState {
    let mut next = StoreState::default();
    for (name, content) in records(state) {
        assert!(add(&mut next, (&name, &content)));
    }
    next
}

#[test]
fn keys_of_tickets_arrive_with_what_their_file_had() {
    let mut state = StoreState::default();
    let keys = Arc::new(TicketKeys::random());
    let pushed = TicketKeys::random().reveal().remove(0);
    let of_file = keys.of_file();
    keys.push(&pushed).unwrap();
    state
        .ticket_keys
        .insert("a file".to_owned(), Arc::clone(&keys));
    state
        .ticket_keys
        .insert(KEYS_OF_PROCESS.to_owned(), Arc::new(TicketKeys::random()));
    let next = handed_over(&state);
    assert_eq!(next.ticket_keys.len(), 2);
    for (name, keys) in &next.ticket_keys {
        assert_eq!(keys.reveal(), state.ticket_keys[name].reveal());
    }
    assert_eq!(next.ticket_keys["a file"].of_file(), of_file);
}

#[test]
fn what_is_malformed_or_of_another_version_is_left_out() {
    let mut state = StoreState::default();
    let (name, content) = record(TICKET_KEYS, "x", &[&[0; 32], b"no key"]);
    for cut in 0..content.len() {
        assert!(!add(&mut state, (&name, &content[..cut])));
    }
    assert!(!add(&mut state, (&name, &content)));
    assert!(!add(&mut state, (b"", b"")));
    assert!(!add(&mut state, (b"?later", b"")));
    assert!(!add(&mut state, (&name, &[0xff; 20])));
    assert!(state.ticket_keys.is_empty());
}

#[test]
fn what_commands_brought_arrives() {
    let pem = self_signed(EC, "a.test", &["a.test"]);
    let mut state = StoreState::default();
    let parts = CertificateParts::read(pem.both().as_bytes()).unwrap();
    let certificate = Arc::new(state.store.build_certificate(parts.clone()).unwrap());
    let files_digest = Some([7; 32]);
    for (name, files_digest) in [("changed", files_digest), ("new", None)] {
        let files = CertificateFiles {
            certificate: files_digest.map(|_| "a.pem".to_owned()),
            ..CertificateFiles::default()
        };
        let stored = StoredCertificate::new(name, Arc::clone(&certificate));
        let stored = stored.with_origin(CertificateOrigin {
            files,
            files_digest,
        });
        state.store.insert(Arc::new(stored));
    }
    // What its files have goes by them.
    let unchanged = StoredCertificate::new("as in its file", Arc::clone(&certificate));
    state
        .store
        .insert(Arc::new(unchanged.with_origin(CertificateOrigin {
            files_digest: Some(certificate.content_digest()),
            ..CertificateOrigin::default()
        })));
    state.empty.insert("empty".to_owned());
    state.transaction = Some(CertificateTransaction {
        name: "begun".to_owned(),
        parts: CertificateParts {
            key: None,
            sctl: Some([0, 1, 2].into()),
            ..parts
        },
        files: CertificateFiles::default(),
        is_being_written: false,
    });
    let authorities = read_authorities("ca", pem.certificate.as_bytes()).unwrap();
    for kind in [TrustKind::Authorities, TrustKind::Revocation] {
        let trust = state.trust(kind);
        let file = TrustFile {
            content: Arc::clone(&authorities),
            of_file: None,
        };
        trust.files.insert("ca".to_owned(), file);
        trust.transaction = Some(TrustTransaction {
            name: "ca".to_owned(),
            content: Arc::clone(&authorities),
        });
    }
    let edit = |line: Option<&str>| ListEdit {
        is_added: line.is_some(),
        list: "list".to_owned(),
        number: 3,
        certificate: "a.pem".to_owned(),
        words: " a.test".to_owned(),
        line: line.map(str::to_owned),
    };
    state.list_edits = vec![edit(Some("a.pem a.test")), edit(None)];
    let mut next = handed_over(&state);
    let names = |state: &StoreState| {
        let names = state.store.iter().map(|stored| stored.name().to_owned());
        names.collect::<std::collections::BTreeSet<_>>()
    };
    assert_eq!(
        names(&next).into_iter().collect::<Vec<_>>(),
        ["changed", "new"]
    );
    for stored in next.store.iter() {
        assert!(stored.current().is_same(&certificate));
        assert_eq!(
            stored.origin(),
            state.store.get(stored.name()).unwrap().origin()
        );
    }
    assert_eq!(next.empty, state.empty);
    assert_eq!(next.list_edits, state.list_edits);
    let begun = next.transaction.take().unwrap();
    assert_eq!(
        (begun.name.as_str(), begun.parts.key.is_none()),
        ("begun", true)
    );
    assert_eq!(begun.parts.sctl.as_deref(), Some(&[0, 1, 2][..]));
    assert_eq!(begun.parts.certificates.len(), 1);
    for kind in [TrustKind::Authorities, TrustKind::Revocation] {
        let trust = next.trust(kind);
        assert_eq!(trust.files["ca"].content.pem(), authorities.pem());
        assert!(trust.files["ca"].of_file.is_none());
        assert_eq!(
            trust.transaction.as_ref().unwrap().content.pem(),
            authorities.pem()
        );
    }
}
