use super::*;

fn keys() -> TicketKeys {
    TicketKeys::random()
}

fn context(name: &str, keys: TicketKeys) -> SharedStore {
    SharedStore::new(StoreState {
        ticket_keys: BTreeMap::from([(name.to_owned(), Arc::new(keys))]),
        ..StoreState::default()
    })
}

fn copy(of: &TicketKeys) -> TicketKeys {
    TicketKeys::read(of.reveal().join("\n").as_bytes()).unwrap()
}

fn key() -> String {
    keys().reveal().remove(0)
}

#[test]
fn keys_of_the_process_survive_a_reload_and_those_of_a_file_are_its() {
    let random = context(KEYS_OF_PROCESS, keys());
    assert!(
        random
            .former(TakeOver::ProcessKeys)
            .ticket_keys(KEYS_OF_PROCESS)
            .is_some()
    );
    let file = keys();
    let of_file = context("keys", copy(&file));
    let object = Arc::clone(&of_file.lock().ticket_keys["keys"]);
    for take_over in [TakeOver::ProcessKeys, TakeOver::Changes] {
        let former = of_file.former(take_over);
        assert!(former.ticket_keys("keys").is_none());
        // Equal keys are one object: who sets the next one sets it for all lines.
        let kept = former.ticket_keys_after("keys", Some(copy(&file))).unwrap();
        assert!(Arc::ptr_eq(&kept, &object));
        let other = keys();
        let read = former
            .ticket_keys_after("keys", Some(copy(&other)))
            .unwrap();
        assert_eq!(read.reveal(), other.reveal());
    }
    let former = of_file.former(TakeOver::All);
    assert!(Arc::ptr_eq(&former.ticket_keys("keys").unwrap(), &object));
}

#[test]
fn a_key_that_a_command_set_stays_until_the_file_changes() {
    let file = keys();
    let context = context("keys", copy(&file));
    let pushed = Arc::clone(&context.lock().ticket_keys["keys"]);
    pushed.push(&key()).unwrap();
    let after = |take_over, read: &TicketKeys| {
        let former = context.former(take_over);
        former.ticket_keys_after("keys", Some(copy(read))).unwrap()
    };
    assert!(Arc::ptr_eq(&after(TakeOver::Changes, &file), &pushed));
    assert_eq!(
        after(TakeOver::ProcessKeys, &file).reveal(),
        file.reveal(),
        "a reload reads the file"
    );
    let other = keys();
    assert_eq!(after(TakeOver::Changes, &other).reveal(), other.reveal());
    let gone = |take_over| context.former(take_over).ticket_keys_after("keys", None);
    assert!(gone(TakeOver::Changes).is_some());
    assert!(gone(TakeOver::ProcessKeys).is_none());
}

#[test]
fn a_change_gives_another_version_and_a_look_does_not() {
    let one = context("keys", keys());
    let before = one.version();
    assert_eq!(one.lock().ticket_keys.len(), 1);
    assert_eq!(one.version(), before);
    one.lock().empty.insert("x".to_owned());
    assert_ne!(one.version(), before);
    assert_ne!(context("keys", keys()).version(), one.version());
}

#[test]
fn a_copy_has_what_commands_did() {
    let context = context("keys", keys());
    {
        let mut state = context.lock();
        state.empty.insert("x".to_owned());
        let authorities = TrustFile {
            content: Arc::default(),
            of_file: Some([1; 32]),
        };
        let trust = state.trust(TrustKind::Authorities);
        trust.files.insert("ca".to_owned(), authorities);
    }
    let before = context.version();
    let copy = context.copy();
    assert_eq!(context.version(), before, "to copy is no change");
    assert!(copy.empty.contains("x") && copy.ticket_keys.contains_key("keys"));
    assert!(copy.authorities.files.contains_key("ca"));
}
