//! `persist` of servers in backends with a `default-server`.

use ballast_config::{KeywordState, Sections};
use ballast_edit::{SectionName, SectionOperation, SectionWord};

use super::Toy;
use crate::kinds::server;
use crate::{ChangeRequest, OverrideValue, Persist, ReconcilerHost};

/// A word of `default-server`, and whether a line can take it back.
const WORDS: &[(&str, bool)] = &[
    ("addr 192.0.2.7", true),
    ("agent-addr 192.0.2.7", true),
    ("agent-check agent-port 8080", true),
    ("agent-inter 5s", true),
    ("agent-port 8080", true),
    ("agent-send hello", true),
    ("alpn http/1.1 ssl verify none", true),
    ("backup", true),
    ("cc reno", false),
    ("check", true),
    ("check-alpn http/1.1 check-ssl verify none", true),
    ("check-proto h1", true),
    ("check-send-proxy", true),
    ("check-sni a.test check-ssl verify none", true),
    ("check-ssl verify none", true),
    ("check-via-socks4", true),
    ("ciphers ECDHE-RSA-AES128-GCM-SHA256 ssl verify none", true),
    ("ciphersuites TLS_AES_128_GCM_SHA256 ssl verify none", true),
    ("client-sigalgs RSA+SHA256 ssl verify none", true),
    ("cookie c", false),
    ("curves X25519 ssl verify none", true),
    ("disabled", true),
    ("downinter 10s", true),
    ("enabled", true),
    ("error-limit 5", true),
    ("fall 7", true),
    ("fastinter 1s", true),
    ("force-tlsv10", true),
    ("force-tlsv11", true),
    ("force-tlsv12 ssl verify none", true),
    ("force-tlsv13 ssl verify none", true),
    ("hash-key addr", true),
    ("idle-ping 10s", true),
    ("init-addr none", true),
    ("init-state down", true),
    ("inter 500ms", true),
    ("max-reuse 100", true),
    ("maxconn 100", true),
    ("maxqueue 10", true),
    ("minconn 10 maxconn 20", true),
    ("namespace *", false),
    ("non-stick", true),
    ("observe layer4", true),
    ("on-error mark-down", true),
    ("on-marked-down shutdown-sessions", false),
    ("on-marked-up shutdown-backup-sessions", false),
    ("pool-conn-name str(a)", false),
    ("pool-max-conn 10", true),
    ("pool-purge-delay 10s", true),
    ("port 8080", true),
    ("proto h1", false),
    ("proxy-v2-options crc32c send-proxy-v2", true),
    ("redir http://other", false),
    ("rise 7", true),
    ("send-proxy", true),
    ("send-proxy-v2", true),
    ("send-proxy-v2-ssl", true),
    ("send-proxy-v2-ssl-cn", true),
    ("set-proxy-v2-tlv-fmt(0x20) abc send-proxy-v2", true),
    ("sigalgs RSA+SHA256 ssl verify none", true),
    ("slowstart 30s", true),
    ("sni str(a) ssl verify none", true),
    ("socks4 192.0.2.1:1080", false),
    ("source 192.0.2.1", false),
    ("ssl verify none", true),
    ("ssl-max-ver TLSv1.2 ssl verify none", true),
    ("ssl-min-ver TLSv1.3 ssl verify none", true),
    ("ssl-reuse", true),
    ("stick", true),
    ("strict-maxconn maxconn 3", true),
    ("tcp-ut 30s", true),
    ("tfo", true),
    ("tls-tickets", true),
    ("verify none", true),
    ("verifyhost a.test ssl verify none", true),
    ("weight 50", true),
    ("ws h1", true),
    // Several at once.
    (
        "check inter 500ms fall 2 rise 1 weight 9 maxconn 5 ssl verify none send-proxy slowstart 5s \
         observe layer7 init-addr none pool-max-conn 3 max-reuse 9 tcp-ut 3s",
        true,
    ),
];

/// Words that name files, sections or other servers, and those that `default-server` does not take.
const ELSEWHERE: &[&str] = &[
    "ca-file",
    "crl-file",
    "crt",
    "guid",
    "healthcheck",
    "id",
    "track",
    "usesrc",
];

fn file(words: &str) -> String {
    format!(
        "frontend fe\n  mode http\n  bind 127.0.0.1:1\n  default_backend be\n\
         backend be\n  mode http\n  default-server {words}\n  server s 127.0.0.1:2\n"
    )
}

#[test]
fn every_word_is_tried() {
    let rows = ballast_config::keywords().into_iter();
    let own = rows.filter(|row| {
        row.sections.has(Sections::SERVER) && matches!(row.state, KeywordState::Honoured)
    });
    for word in own.map(|row| row.word) {
        let is_tried = |(words, _): &(&str, bool)| {
            let first = words.split([' ', '(']).next();
            first == Some(word)
        };
        assert!(
            word.starts_with("no-") || ELSEWHERE.contains(&word) || WORDS.iter().any(is_tried),
            "{word}"
        );
    }
}

#[test]
fn a_server_is_written_without_what_default_server_says() {
    let wrong = WORDS.iter().filter_map(|(words, can_say)| {
        let (text, notes, servers) = written(words);
        let is_right = text.contains("weight 33")
            && text.contains("server new") == *can_say
            && notes.contains("Not written: server be/new: its line would say") != *can_say
            && servers == 2;
        (!is_right).then(|| format!("{words}: {servers} servers\n{notes}{text}"))
    });
    let wrong: Vec<String> = wrong.collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The file after a weight was set and a server was added, the notes, and how many servers run.
fn written(words: &str) -> (String, String, usize) {
    let toy = Toy::begin();
    *toy.host.files.lock().unwrap() = vec![("f.cfg".to_owned(), file(words).as_bytes().to_vec())];
    let read = toy.carry_out(ChangeRequest::Reload { keep: false });
    assert!(read.is_ok(), "{words}: {read:?}");
    let added = toy.carry_out(ChangeRequest::AddServer {
        backend: "be".to_owned(),
        server: "new".to_owned(),
        words: vec!["127.0.0.1:3".to_owned()],
    });
    assert!(added.is_ok(), "{words}: {added:?}");
    let key = server::override_key("be", "s", &server::WEIGHT);
    let controller = &toy.reconciler.controller;
    let weight = OverrideValue::Number(33);
    controller.note_override(key, weight, "set weight".to_owned());
    let report = toy.carry_out(ChangeRequest::Persist(Persist::Now));
    let notes = match report {
        Ok(report) => report.notes,
        Err(refused) => refused.0,
    };
    let text = toy.host.files.lock().unwrap()[0].1.clone();
    let now = toy.host.generation();
    let servers = now.config.backend("be").unwrap().servers.len();
    (String::from_utf8(text).unwrap(), notes, servers)
}

#[test]
fn what_was_not_written_is_forgotten_with_persist() {
    let toy = Toy::begin();
    toy.reconciler.controller.unwritten().failure = Some("the disk is full".to_owned());
    let off = toy.carry_out(ChangeRequest::Persist(Persist::Off));
    assert!(off.is_ok(), "{off:?}");
    assert_eq!(toy.reconciler.controller.unwritten().failure, None);
}

#[test]
fn a_section_that_changes_before_removed_or_added_is_named() {
    let toy = Toy::begin();
    let ask = |name: &str, edit| {
        let refused = toy.carry_out(ChangeRequest::Edit {
            section: SectionName {
                kind: SectionWord::Backend,
                name: name.to_owned(),
            },
            edit,
            command: "x".to_owned(),
        });
        refused.unwrap_err().0
    };
    assert_eq!(ask("gone", SectionOperation::Remove), "No such backend.");
    let add = SectionOperation::Add(Vec::new(), " mode http\n".to_owned());
    assert_eq!(ask("be", add), "A backend 'be' already exists.");
}
