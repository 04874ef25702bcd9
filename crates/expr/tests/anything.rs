//! Any text and any bytes: nothing panics, errors stay within their words, what was parsed
//! prints back to itself.

#![allow(
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test says what went wrong by failing"
)]

use ballast_expr::{
    AclSet, Condition, Criterion, Expr, Facts, Linker, LogFormat, Regex, Scratch, Side, Store,
    Time, Usage, converters, eval, fetches,
};
use ballast_message::{HeadLimits, Request};
use proptest::prelude::*;

struct World(Request, Vec<u8>);

impl Facts for World {
    fn now(&self) -> Time {
        Time {
            secs: -5_000_000_000_000_000,
            micros: 999_999,
        }
    }
    fn random(&self) -> u64 {
        u64::MAX
    }
    fn request(&self) -> Option<&Request> {
        Some(&self.0)
    }
    fn data(&self, sent_by: Side) -> Option<&[u8]> {
        (sent_by == Side::Client).then_some(&self.1)
    }
}

fn world(target: &str, header: &str, data: &[u8]) -> World {
    let mut request = Request::new(HeadLimits::default());
    request.set_method(b"GET").unwrap();
    request.set_target(target.as_bytes()).unwrap();
    for name in ["host", "cookie", "x", "authorization"] {
        request
            .fields_mut()
            .add(name.as_bytes(), header.as_bytes())
            .unwrap();
    }
    World(request, data.to_vec())
}

/// Text made of the language's own pieces, which gets further than noise.
fn pieces() -> impl Strategy<Value = String> {
    let words: Vec<&'static str> = fetches()
        .map(|row| row.word)
        .chain(converters().map(|row| row.word))
        .collect();
    let word = proptest::sample::select(words).prop_map(str::to_owned);
    let other = prop_oneof!["[(),'\"\\\\ %\\[\\]{}+!|.:/0-9a-z-]{0,4}", "\\PC{0,3}"];
    let argument = "\\(([a-z0-9./,-]{0,6})\\)";
    let piece = prop_oneof![3 => word, 2 => other, 2 => argument, 2 => Just(",".to_owned())];
    proptest::collection::vec(piece, 0..7).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn expressions(text in pieces(), target in "\\PC{0,12}", header in "[a-z=;, \":0-9.]{0,16}",
                   data in proptest::collection::vec(any::<u8>(), 0..40)) {
        match Expr::parse(&text) {
            Err(error) => prop_assert!(error.range.end <= text.len()
                && error.range.start <= error.range.end, "{:?} {:?}", text, error),
            Ok(mut expr) => {
                let printed = expr.to_string();
                let again = Expr::parse(&printed);
                prop_assert_eq!(again.as_ref(), Ok(&expr), "{} became {}", text, printed);
                let store = Store::new();
                let mut files = |_: &str| Ok(b"a 1\nb 2\n".to_vec());
                let _ = expr.link(&mut Linker {
                    store: &store,
                    files: &mut files,
                    acls: &AclSet::new(),
                });
                let _ = eval(&expr, &world(&target, &header, &data), &mut Scratch::new());
            }
        }
    }

    #[test]
    fn formats(text in pieces()) {
        for usage in [Usage::Log, Usage::Http] {
            match LogFormat::parse(&format!("%{text}x%[{text}]%{{{text}}}ci"), usage) {
                Err(error) => prop_assert!(error.range.start <= error.range.end),
                Ok(format) => {
                    let mut out = Vec::new();
                    format.render(&world("/", "a", b""), &mut Scratch::new(), &mut out);
                }
            }
        }
    }

    #[test]
    fn criteria_and_conditions(words in proptest::collection::vec(pieces(), 0..6)) {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        if let Err(error) = Criterion::parse(&words) {
            prop_assert!(error.word <= words.len());
        }
        let mut all = vec!["if", "{"];
        all.extend(&words);
        all.push("}");
        if let Err(error) = Condition::parse(&all, &AclSet::new()) {
            prop_assert!(error.word < all.len());
        }
    }

    #[test]
    fn expressions_of_patterns(source in "[a-c(){}\\[\\]^$.*+?|\\\\QE0-9:=!<>-]{0,12}", subject in "\\PC{0,12}") {
        if let Ok(regex) = Regex::new(&source, false) {
            let _ = regex.is_match(subject.as_bytes());
        }
    }
}

#[test]
fn an_empty_text_is_printed_as_one() {
    for text in [
        "hdr_ip(,)",
        "hdr_ip(\"\")",
        "hdr_ip()",
        "hdr_ip",
        "hdr_ip(,2)",
    ] {
        let expr = Expr::parse(text).unwrap();
        assert_eq!(Expr::parse(&expr.to_string()), Ok(expr), "{text}");
    }
}

#[test]
fn a_pattern_that_backtracks_without_end_stops() {
    let regex = Regex::new("^(?=(a+)+b)(a|a)*\\1$", false).unwrap();
    let began = std::time::Instant::now();
    assert!(!regex.is_match("a".repeat(60).as_bytes()));
    assert!(began.elapsed().as_secs() < 5);
}

/// A row's good and bad example: of a word without arguments itself, and itself with one.
fn examples(word: &str, written: (&str, &str)) -> (String, String) {
    match written {
        ("", _) => (word.to_owned(), format!("{word}(x)")),
        (good, bad) => (good.to_owned(), bad.to_owned()),
    }
}

#[test]
fn examples_of_rows_are_true() {
    let fetches = fetches().map(|row| (row.word, row.is_implemented(), row.help, row.examples, ""));
    let converters = converters().map(|row| {
        (
            row.word,
            row.is_implemented(),
            row.help,
            row.examples,
            "str(a),",
        )
    });
    let mut untrue = Vec::new();
    for (word, is_implemented, help, written, before) in fetches.chain(converters) {
        assert_eq!(is_implemented, !help.is_empty(), "{word} has no help");
        if !is_implemented {
            continue;
        }
        let (good, bad) = examples(word, written);
        let parsed = Expr::parse(&format!("{before}{good}"));
        if !good.starts_with(word) || !parsed.is_ok_and(|expr| expr.unimplemented().is_empty()) {
            untrue.push(good);
        }
        if Expr::parse(&format!("{before}{bad}")).is_ok() {
            untrue.push(bad);
        }
    }
    assert!(untrue.is_empty(), "{untrue:?}");
}

#[test]
fn the_catalogue_is_whole() {
    assert_eq!(fetches().count(), 562);
    assert_eq!(converters().count(), 208);
    let served = fetches().filter(|row| row.is_implemented()).count();
    let convs_served = converters().filter(|row| row.is_implemented()).count();
    eprintln!("{served} of 562 fetches and {convs_served} of 208 converters are evaluated");
    assert!(served >= 286 && convs_served >= 108);
}
