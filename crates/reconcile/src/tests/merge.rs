//! Merges, the history, and the keys of overrides.

use std::sync::Arc;

use ballast_model::{Address, Backend, Config, Server};

use crate::history::{HISTORY_COUNT_MAX, HISTORY_TEXT_BYTES_MAX};
use crate::{ConfigHistory, ConfigSource, Override, OverrideKey, OverrideValue, kinds};

fn server(name: &str, weight: u16) -> Arc<Server> {
    let mut server = Server::new(name.into(), Address::Unix(format!("/{name}")));
    server.weight = weight;
    Arc::new(server)
}

fn config(servers: &[(&str, u16)]) -> Config {
    let mut backend = Backend::default();
    backend.common.name = "be".into();
    backend.servers = servers
        .iter()
        .map(|(name, weight)| server(name, *weight))
        .collect();
    Config {
        backends: vec![Arc::new(backend)],
        ..Config::default()
    }
}

fn begun(file: Config) -> ConfigHistory {
    let file = Arc::new(file);
    let written = ConfigSource::of_files(Vec::new(), Arc::clone(&file));
    ConfigHistory::begin(file, written, 0)
}

fn names(config: &Config) -> Vec<String> {
    let servers = &config.backends[0].servers;
    servers
        .iter()
        .map(|one| format!("{}={}", one.name, one.weight))
        .collect()
}

#[test]
fn an_override_stays_where_the_file_did_not_change() {
    let file = config(&[("a", 1), ("b", 1)]);
    let config_history = begun(file);
    // By command: c came, b went.
    let now = config(&[("a", 1), ("c", 3)]);
    let read = config(&[("a", 9), ("b", 1), ("d", 1)]);
    let merged = config_history.merge_base().merge(&now, &read);
    assert_eq!(names(&merged.config), ["a=9", "d=1", "c=3"]);
    assert_eq!((merged.kept.len(), merged.dropped.len()), (2, 0));
}

#[test]
fn the_file_wins_where_it_changed() {
    let file = config(&[("a", 1), ("b", 1)]);
    let config_history = begun(file);
    let now = config(&[("a", 1), ("c", 3)]);
    // The file has its own c now, and changed b.
    let read = config(&[("a", 1), ("b", 5), ("c", 4)]);
    let merged = config_history.merge_base().merge(&now, &read);
    assert_eq!(names(&merged.config), ["a=1", "b=5", "c=4"]);
    assert_eq!((merged.kept.len(), merged.dropped.len()), (0, 2));
}

#[test]
fn an_override_of_a_word_goes_when_the_file_has_another_there() {
    let mut config_history = begun(config(&[("a", 1), ("b", 1)]));
    for key in [
        "server be/a weight",
        "server be/a state",
        "server be/b weight",
        "server be/mine weight",
        "global rate-limit sessions",
        "global persist",
    ] {
        let entry = Override {
            value: OverrideValue::Text("x".into()),
            at_unix_s: 0,
            command: "set".into(),
        };
        config_history.note(kinds::parse_override_key(key).unwrap(), entry);
    }
    let now = config(&[("a", 1), ("b", 1), ("mine", 1)]);
    let overruled = |read: &Config| {
        let keys = config_history.merge_base().merge(&now, read).overruled;
        keys.iter().map(OverrideKey::to_string).collect::<Vec<_>>()
    };
    assert_eq!(overruled(&config(&[("a", 1), ("b", 1)])), [""; 0]);
    assert_eq!(
        overruled(&config(&[("a", 2), ("b", 1)])),
        ["server be/a weight"]
    );
    // A server that goes takes what was set of it along.
    assert_eq!(overruled(&config(&[("a", 1)])), ["server be/b weight"]);
}

#[test]
fn history_and_overrides_are_bounded() {
    let mut config_history = begun(config(&[("a", 1)]));
    for number in 0..(HISTORY_COUNT_MAX as u64 + 5) {
        let mut past = config_history.history().next_back().unwrap().clone();
        past.number = number;
        config_history.put_in_force(past);
    }
    assert_eq!(config_history.history().count(), HISTORY_COUNT_MAX);
    // Large texts leave fewer, and one text is counted once.
    let long = Arc::new(vec![("f".to_owned(), vec![0; HISTORY_TEXT_BYTES_MAX / 8])]);
    for number in 0..20 {
        let mut past = config_history.history().next_back().unwrap().clone();
        past.number = number;
        past.written.files = if number < 10 {
            Arc::clone(&long)
        } else {
            Arc::new(Vec::clone(&long))
        };
        config_history.put_in_force(past);
    }
    assert_eq!(config_history.history().count(), 8);
}

#[test]
fn keys_are_what_operators_read() {
    let texts = [
        "acl #3",
        "acl /etc/a b.lst",
        "backend be dynamic-cookie",
        "backend be dynamic-cookie-key",
        "backend be published",
        "frontend fe maxconn",
        "frontend fe state",
        "global maxconn",
        "global persist",
        "global rate-limit connections",
        "global rate-limit http-compression",
        "global rate-limit sessions",
        "global rate-limit ssl-sessions",
        "map virt@m",
        "server a-b/s weight",
        "server a/s added",
        "server a/s addr",
        "server a/s agent",
        "server a/s agent-addr",
        "server a/s agent-port",
        "server a/s agent-send",
        "server a/s check-addr",
        "server a/s check-port",
        "server a/s health",
        "server a/s maxconn",
        "server a/s state",
        "server a/s weight",
        "server a/s-2 weight",
        "variable proc.x",
    ];
    let keys: Vec<OverrideKey> = texts
        .iter()
        .map(|text| kinds::parse_override_key(text).unwrap())
        .collect();
    assert!(keys.is_sorted(), "keys are in the order of their texts");
    let shown: Vec<String> = keys.iter().map(OverrideKey::to_string).collect();
    assert_eq!(shown, texts);
    for unknown in [
        "",
        "server",
        "server a weight",
        "server a/s colour",
        "table t size",
    ] {
        assert!(kinds::parse_override_key(unknown).is_none(), "{unknown}");
    }
    let value = |key: &str, text: &str| {
        kinds::parse_override_key(key)
            .unwrap()
            .setting
            .value
            .read(text)
    };
    assert_eq!(value("server a/s weight", "5"), OverrideValue::Number(5));
    assert_eq!(
        value("server a/s state", "drain"),
        OverrideValue::Word("drain")
    );
    let odd = OverrideValue::Text("50%".into());
    assert_eq!(value("server a/s weight", "50%"), odd);
}
