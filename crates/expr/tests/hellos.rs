//! The samples of a client's first bytes, beside what HAProxy 3.2 gives for the same bytes and for
//! each beginning of them.

#![allow(clippy::panic, clippy::unwrap_used, reason = "tests")]

use ballast_expr::{Expr, Facts, Needs, Scratch, Side, Time, Value, eval, eval_with};
use proptest::prelude::*;

/// What was recorded of HAProxy.
const RECORDED: &str = include_str!("hellos.txt");

const WORDS: [&str; 13] = [
    "req.ssl_hello_type",
    "req.ssl_ver",
    "req.ssl_sni",
    "req.ssl_st_ext",
    "req.ssl_ec_ext",
    "req.ssl_cipherlist,hex",
    "req.ssl_alpn",
    "req.ssl_supported_groups,hex",
    "req.ssl_sigalgs,hex",
    "req.ssl_keyshare_groups,hex",
    "req.rdp_cookie",
    "req.rdp_cookie_cnt",
    "req.rdp_cookie(mstshash)",
];

/// Those for which HAProxy takes the header of a message for a part of it, and a hello without its
/// last four bytes for a whole one.
const LISTS: [&str; 5] = [
    "req.ssl_ec_ext",
    "req.ssl_cipherlist,hex",
    "req.ssl_supported_groups,hex",
    "req.ssl_sigalgs,hex",
    "req.ssl_keyshare_groups,hex",
];

/// Whether up to four bytes are missing of the hello of which this is the beginning.
fn counts_header(hello: &[u8], sent: &[u8]) -> bool {
    let length = |bytes: &[u8]| {
        bytes
            .iter()
            .fold(0, |sum, byte| sum << 8 | usize::from(*byte))
    };
    let end = hello.get(6..9).map_or(0, |bytes| 9 + length(bytes));
    (end.saturating_sub(4)..end).contains(&sent.len())
}

struct Sent<'a>(&'a [u8]);

impl Facts for Sent<'_> {
    fn now(&self) -> Time {
        Time::default()
    }
    fn random(&self) -> u64 {
        0
    }
    fn data(&self, sent_by: Side) -> Option<&[u8]> {
        (sent_by == Side::Client).then_some(self.0)
    }
}

fn exprs() -> Vec<Expr> {
    let words = WORDS.iter();
    words.map(|word| Expr::parse(word).unwrap()).collect()
}

fn from_hex(text: &str) -> Vec<u8> {
    let digit = |at: usize| u8::from_str_radix(&text[at..at + 2], 16).unwrap();
    (0..text.len()).step_by(2).map(digit).collect()
}

/// The value as HAProxy logs it, `-` for none, with other bytes than ASCII text escaped.
fn shown(expr: &Expr, sent: &[u8]) -> String {
    let mut scratch = Scratch::new();
    match eval(expr, &Sent(sent), &mut scratch) {
        None => "-".to_owned(),
        Some(Value::Bool(flag)) => i64::from(flag).to_string(),
        Some(Value::Int(number)) => number.to_string(),
        Some(Value::Str(bytes) | Value::Bin(bytes)) => {
            let bytes = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
            match bytes {
                [] => "-".to_owned(),
                bytes => bytes.iter().map(escaped).collect(),
            }
        }
        Some(other) => panic!("{other:?}"),
    }
}

fn escaped(byte: &u8) -> String {
    match byte {
        b' '..=b'~' => char::from(*byte).to_string(),
        byte => format!("\\x{byte:02x}"),
    }
}

/// Whether more bytes are waited for.
fn waits(expr: &Expr, sent: &[u8]) -> bool {
    let coming = Needs::REQUEST_BYTES | Needs::TLS_HELLO;
    eval_with(expr, &Sent(sent), &mut Scratch::new(), coming).is_err()
}

/// Each recorded client: its name, its bytes and the lines about it.
fn clients() -> Vec<(&'static str, Vec<u8>, Vec<&'static str>)> {
    let mut clients = Vec::new();
    for line in RECORDED.lines() {
        if let Some(client) = line.strip_prefix("= ") {
            let (name, rest) = client.split_once('\t').unwrap();
            let (bytes, values) = rest.split_once('\t').unwrap();
            clients.push((name, from_hex(bytes), vec![values]));
        } else if let Some(beginning) = line.strip_prefix("< ") {
            clients.last_mut().unwrap().2.push(beginning);
        }
    }
    clients
}

#[test]
fn values_and_waits_are_those_of_haproxy() {
    let exprs = exprs();
    let mut wrong = Vec::new();
    let clients = clients();
    assert!(clients.len() > 200, "{} clients", clients.len());
    for (name, bytes, lines) in clients {
        let values: Vec<&str> = lines[0].split('|').collect();
        for (at, expr) in exprs.iter().enumerate() {
            let here = shown(expr, &bytes);
            if here != values[at] {
                wrong.push(format!("{name}: {}: {here}, not {}", WORDS[at], values[at]));
            }
        }
        for beginning in &lines[1..] {
            let (length, verdicts) = beginning.split_once(' ').unwrap();
            let sent = &bytes[..length.parse::<usize>().unwrap()];
            for (at, expr) in exprs.iter().enumerate() {
                let waits = waits(expr, sent);
                if waits && counts_header(&bytes, sent) && LISTS.contains(&WORDS[at]) {
                    continue;
                }
                if waits != (verdicts.as_bytes()[at] == b'h') {
                    wrong.push(format!("{name}, {length}: {} waits: {waits}", WORDS[at]));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}\n{}", wrong.len(), wrong.join("\n"));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    /// What is decided before all bytes are there stays so: a value that was found, and that there
    /// is none.
    #[test]
    fn what_is_decided_early_does_not_change(
        of in 0..clients().len(),
        changes in prop::collection::vec((0_usize..400, any::<u8>()), 0..4),
    ) {
        let mut bytes = clients().swap_remove(of).1;
        for (at, byte) in changes {
            if let Some(target) = bytes.get_mut(at) {
                *target = byte;
            }
        }
        for (expr, word) in exprs().iter().zip(WORDS) {
            let whole = shown(expr, &bytes);
            for length in 0..bytes.len() {
                let sent = &bytes[..length];
                if !waits(expr, sent) {
                    prop_assert_eq!(&shown(expr, sent), &whole, "{} of {} bytes", word, length);
                }
            }
        }
    }
}
