//! Log formats against what the manual says of them.

use super::*;
use crate::facts::{
    AddressPair, ConnectionFacts, ExchangeNumbers, Facts, FrontendFacts, ProcessFacts, Side, Time,
};
use crate::scratch::Scratch;

struct Line(ExchangeNumbers);

impl Facts for Line {
    fn now(&self) -> Time {
        Time::default()
    }
    fn random(&self) -> u64 {
        0
    }
    fn process(&self) -> &dyn ProcessFacts {
        self
    }
    fn connection(&self, to: Side) -> Option<&dyn ConnectionFacts> {
        (to == Side::Client).then_some(self)
    }
    fn frontend(&self) -> Option<&dyn FrontendFacts> {
        Some(self)
    }
    fn numbers(&self) -> Option<&ExchangeNumbers> {
        Some(&self.0)
    }
}

impl ProcessFacts for Line {
    fn utc_offset_secs(&self, _: i64) -> i32 {
        -12_600
    }
    fn pid(&self) -> i64 {
        65_536
    }
}

impl ConnectionFacts for Line {
    fn address_pair(&self) -> AddressPair<'_> {
        AddressPair::default()
    }
    fn is_tls(&self) -> bool {
        true
    }
}

impl FrontendFacts for Line {
    fn name(&self) -> &str {
        "www"
    }
}

fn written(format: &str, usage: Usage) -> String {
    let record = ExchangeNumbers {
        accepted: Time {
            secs: 1_700_000_000,
            micros: 7_000,
        },
        requested: Time {
            secs: 1_700_000_001,
            micros: 999_999,
        },
        bytes_out: 1234,
        total_ms: 56,
        retries: 2,
        redispatched: true,
        asap: true,
        ..ExchangeNumbers::default()
    };
    let format = LogFormat::parse(format, usage).unwrap();
    let mut out = Vec::new();
    format.render(&Line(record), &mut Scratch::new(), &mut out);
    String::from_utf8(out).unwrap()
}

#[test]
fn dates_numbers_and_names() {
    for (format, wanted) in [
        ("%t", "14/Nov/2023:18:43:20.007"),
        ("%T", "14/Nov/2023:22:13:20 +0000"),
        ("%Tl", "14/Nov/2023:18:43:20 -0330"),
        ("%tr", "14/Nov/2023:18:43:21.999"),
        ("%trg", "14/Nov/2023:22:13:21 +0000"),
        ("%Ts.%ms", "1700000000.007"),
        ("%{+X}Ts.%{+X}ms", "6553F100.07"),
        ("%B %Tt %rc", "+1234 +56 +2"),
        ("%Tw/%Tc/%ST", "-1/-1/-1"),
        ("%pid %{+X}pid", "65536 10000"),
        ("%ft %f %b %s", "www~ www www <NOSRV>"),
        ("%{+Q}ft", "\"www~\""),
        ("%ci:%fi:%si", "unix:-:-"),
        ("%r %HM %HQ", "<BADREQ> <BADREQ> <BADREQ>"),
        ("%%[%ts]", "%[--]"),
    ] {
        assert_eq!(written(format, Usage::Log), wanted, "{format}");
    }
}

#[test]
fn blanks_are_one_in_logs_and_kept_in_rules() {
    assert_eq!(written("  a  %f   b ", Usage::Log), "a www b ");
    assert_eq!(written("  a  %f   b ", Usage::Http), "  a  www   b ");
    assert_eq!(written("%[str()]|%{+Q}[str()]", Usage::Log), "-|\"\"");
    // As in HAProxy, samples of rules stand without quotes.
    assert_eq!(written("%[str()]|%{+Q}[str()]", Usage::Http), "|");
    assert_eq!(
        written("%{+Q}[str(a)]|%{+Q,+E}[str(b]c)]", Usage::Http),
        "a|b\\]c"
    );
    assert_eq!(written("%{+Q}[str(a)]", Usage::Text), "\"a\"");
}

#[test]
fn the_built_in_formats_parse() {
    for text in [
        DEFAULT_HTTP_LOG_FORMAT,
        DEFAULT_TCP_LOG_FORMAT,
        TCP_LOG_FORMAT,
        HTTP_LOG_FORMAT,
        CLF_HTTP_LOG_FORMAT,
        CLF_TCP_LOG_FORMAT,
        HTTPS_LOG_FORMAT,
    ] {
        LogFormat::parse(text, Usage::Log).unwrap();
    }
}

#[test]
fn every_alias_is_known_once() {
    let mut words: Vec<_> = ALIASES.iter().map(|row| row.word).collect();
    words.sort_unstable();
    words.dedup();
    assert_eq!(words.len(), ALIASES.len());
    for row in ALIASES {
        LogFormat::parse(&format!("%{}", row.word), Usage::Log).unwrap();
    }
}

#[test]
fn names_of_items_are_kept() {
    let format = LogFormat::parse("%{+json}o %(client)ci %(n:sint)[int(5)]", Usage::Log).unwrap();
    let names: Vec<_> = format
        .items
        .iter()
        .filter_map(|item| match item {
            Item::Alias { name, .. } | Item::Sample { name, .. } => name.as_deref(),
            _ => None,
        })
        .collect();
    assert_eq!(names, ["client", "n"]);
}
