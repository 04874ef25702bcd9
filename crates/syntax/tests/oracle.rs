//! The same texts parsed by HAProxy and by us: what is refused, and what words and conditions mean.
//!
//! HAProxy shows the meaning of a word in the message of `.notice`. Where we differ on purpose, the
//! table says so.

#[path = "../../../tests/src/oracle.rs"]
mod installed;

use std::collections::BTreeMap;
use std::process::{Command, Output};

use ballast_syntax::{
    Diagnostic, Document, Env, FixedFacts, HaproxyVersion, Severity, SslVersion, TimeUnit,
    evaluate_condition, parse, parse_size, parse_time,
};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

const VARIABLES: [(&str, &str); 5] = [
    ("FOO", "foo"),
    ("EMPTY", ""),
    ("LIST", "A b"),
    ("Q", "a\"b\\c'd#e"),
    ("TABS", "x\ty"),
];

/// HAProxy with our environment; `None`, with a message, when it is not installed.
fn haproxy(arguments: &[&str]) -> Option<Output> {
    let output = Command::new(installed::haproxy()?)
        .args(arguments)
        .env_clear()
        .envs(VARIABLES)
        .output();
    Some(output.expect("haproxy can be run"))
}

/// HAProxy's messages about a file, as level, line and text.
fn asked(text: &[u8]) -> Option<Vec<(String, u32, String)>> {
    let directory = tempfile::tempdir().expect("a directory can be made");
    let path = directory.path().join("t.cfg");
    std::fs::write(&path, text).expect("a file can be written");
    let path = path.to_str().expect("the path is UTF-8");
    let output = haproxy(&["-c", "-f", path])?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let mut found = Vec::new();
    let mut said = format!("\n{said}");
    for level in ["ALERT", "DIAG", "NOTICE", "WARNING"] {
        // Messages may contain line feeds: only a level at the start of a line separates them.
        said = said.replace(&format!("\n[{level}]"), &format!("\0{level}]"));
    }
    for message in said.split('\0').skip(1) {
        let level = message.split(']').next().unwrap_or_default().to_owned();
        let Some((_, rest)) = message.split_once(&format!("parsing [{path}:")) else {
            continue;
        };
        let (line, message) = rest
            .split_once(']')
            .expect("a line number is followed by a bracket");
        let message = message
            .trim_start_matches([' ', ':'])
            .trim_end_matches('\n');
        found.push((
            level,
            line.parse().expect("a line number"),
            message.to_owned(),
        ));
    }
    Some(found)
}

fn ours(text: &[u8]) -> Document {
    parse(
        [("t.cfg", text.to_vec())],
        VARIABLES.into_iter().collect(),
        &FixedFacts::default(),
    )
}

fn line_of(document: &Document, found: &Diagnostic) -> u32 {
    found
        .span
        .map_or(0, |span| document.sources.locate(span).line)
}

/// HAProxy before 3.2 takes one word too many after `setenv`.
fn is_before_dialect() -> bool {
    installed::version() < (3, 2)
}

/// The result for each line on both sides: refused, or the notice.
type Verdicts = BTreeMap<u32, String>;

fn our_verdicts(text: &[u8]) -> Verdicts {
    let document = ours(text);
    let mut verdicts = Verdicts::new();
    for found in &document.diagnostics {
        let line = line_of(&document, found);
        match found.severity {
            Severity::Alert => drop(verdicts.insert(line, "refused".to_owned())),
            Severity::Notice => drop(verdicts.insert(line, found.message.clone())),
            _ => {}
        }
    }
    verdicts
}

/// HAProxy 3.2 prints no notices for a file that it refuses, so refused lines are left out the next
/// time.
fn their_verdicts(text: &[u8]) -> Option<Verdicts> {
    let mut lines: Vec<&[u8]> = text.split(|&byte| byte == b'\n').collect();
    let mut refused = Verdicts::new();
    loop {
        let found = asked(&lines.join(&b'\n'))?;
        let said = |wanted: &str| {
            let of_level = found.iter().filter(|(level, ..)| level == wanted);
            of_level
                .map(|(_, line, message)| (*line, message.clone()))
                .collect::<Verdicts>()
        };
        let alerts = said("ALERT");
        let known = refused.len();
        for &line in alerts.keys() {
            refused.insert(line, "refused".to_owned());
            if let Some(line) = (line as usize)
                .checked_sub(1)
                .and_then(|at| lines.get_mut(at))
            {
                *line = b"";
            }
        }
        if refused.len() == known {
            refused.extend(said("NOTICE"));
            return Some(refused);
        }
    }
}

/// Texts after `.notice`: quotes, escapes, variables, comments.
const NOTICES: &[&str] = &[
    "a",
    "\"a b\"",
    "a b",
    "${FOO}",
    "$FOO",
    "\\$FOO",
    "\"\\$FOO\"",
    "\"${FOO}\"",
    "\"<${NOPE}>\"",
    "\"$FOO|$FOO-y\"",
    "\"$FOO[*]\"",
    "\"${FOO[*]}\"",
    "\"${FOO[0]}\"",
    "\"${FOO:x}\"",
    "\"${FOO\"",
    "\"${}\"",
    "\"${1A}\"",
    "\"$\"",
    "\"$1\"",
    "\"$$\"",
    "\"$.LINE ${.SECTION}\"",
    "\"${.NOPE}\"",
    "\"${Q}\"",
    "\"${TABS}\"",
    "\"${LIST[*]}\"",
    "x\"${LIST[*]}\"",
    "x\\x41\\t\\#\\ y\\q",
    "\"x\\x41\\t\\#\\ y\\q\\$\\\"\\'\"",
    "'x\\x41\\n'",
    "x\\x4",
    "x\\x",
    "x\\xg1",
    "\"\\x0\"",
    "x\\x00y",
    "a\\",
    "\"a\\",
    "'a\\",
    "\"a\\\"",
    "'a''b'",
    "a\"b c\"d",
    "\"abc",
    "'abc",
    "$",
    "a$b",
    "\\\"a\\\"",
    "\"'\"",
    "\"\"",
    "x \"\"",
    "",
    "a#b \"c",
    "\"a#b\"",
    "a\\#b",
    "x\ty",
    "x\u{b}y",
    "x\u{c}y",
    "a\rb",
    "\"a\rb\"",
    "'#' x",
    "'it'\\''s'",
];

/// Whole texts: sections, directives, variables set by lines, blocks.
const TEXTS: &[&str] = &[
    "global\r\n .notice a\r\n",
    "global\n .notice \"${.LINE}\"\r\r\n",
    "",
    "\n",
    "# x\n",
    "\tglobal\n",
    "\u{b}global\n",
    "global\n\0\n",
    "foo\n",
    "Global\n",
    "x: y\n",
    "\"global\"\n.notice \"${.SECTION}\"\n",
    "defaults\n.notice \"${.SECTION}\"\n",
    "defaults a\n.notice \"${.SECTION}\"\n",
    "userlist u\n.notice \"${.SECTION}\"\n",
    "global\n setenv A 1\n.notice \"$A\"\n",
    "global\n setenv A\n",
    "global\n setenv A \"\"\n",
    "global\n setenv A 1 2\n.notice \"$A\"\n",
    "global\n setenv A=B 1\n",
    "global\n presetenv A 1\n presetenv A 2\n presetenv FOO x\n.notice \"$A $FOO\"\n",
    "global\n unsetenv A=B\n",
    "global\n unsetenv FOO NOPE\n.notice \"<$FOO>\"\n",
    "global\n unsetenv\n",
    "global\n resetenv\n.notice \"<$FOO>\"\n",
    "global\n resetenv FOO\n.notice \"<$FOO> <$Q>\"\n",
    "global\n setenv \"${LIST[*]}\"\n.notice \"<$A>\"\n",
    "global\n localpeer zz\n.notice \"$HAPROXY_LOCALPEER\"\n",
    "global\n setenv A 1 # c\n unsetenv A B \"\" C\n",
    ".if 1\n.notice y\n.endif\n",
    ".if\n.notice y\n.else\n.notice n\n.endif\n",
    ".if \"\"\n.else\n.notice n\n.endif\n",
    ".if 0\na \"b\n.endif\n",
    ".if 0\n.if junk(\n.endif\n.endif\n",
    ".if 1\n",
    ".if 1\n.else\n.else\n.endif\n",
    ".else\n",
    ".if 1\n.else\n.elif 1\n.endif\n",
    ".endif\n",
    ".elif 1\n",
    ".if 1&&0\n.else\n.notice n\n.endif\n",
    ".else x\n",
    ".foo\n",
    ".\n",
    ".if 0\nfrontend f\n.endif\n.notice \"<${.SECTION}>\"\n",
    ".if 0\n.alert x\n.endif\n",
    ".alert hi\n",
    ".IF 1\n",
    ".diag a b\n",
    ".diag a\n",
    ".warning a\n",
    "\".if\" 1\n.endif\n",
    ".if 0\n\".else\"\n.notice y\n.endif\n",
    ".if 0\n.elif\n.else\n.notice n\n.endif\n",
    ".if 1\n.elif 1 2\n.notice y\n.endif\n",
    ".if 0\n.foo\n.endif\n",
    ".if 0\n.else\n.elif 1\n.endif\n",
    ".if streq(\"a  b\",\"a  b\")\n.notice y\n.endif\n",
];

#[test]
fn lines_mean_the_same() {
    let mut texts: Vec<String> = NOTICES
        .iter()
        .map(|words| format!("global\n.notice {words}\n"))
        .collect();
    texts.extend(TEXTS.iter().map(|text| (*text).to_owned()));
    if installed::haproxy().is_some() && is_before_dialect() {
        texts.retain(|text| !text.contains("setenv A 1 2"));
    }
    for text in &texts {
        let Some(theirs) = their_verdicts(text.as_bytes()) else {
            return;
        };
        // HAProxy reports an open block at the last line, we at the `.if`.
        if text.starts_with(".if") && theirs.values().any(|said| said == "refused") {
            assert!(ours(text.as_bytes()).has_alerts(), "{text:?}");
        } else {
            assert_eq!(our_verdicts(text.as_bytes()), theirs, "{text:?}");
        }
    }
}

/// What HAProxy 2.6 refuses and we do not: each gives at least a warning, or follows the manual.
#[test]
fn what_we_do_on_purpose() {
    let many = format!("global\nunsetenv {}\n", "w ".repeat(70));
    for (text, code) in [
        ("\u{feff}global\n", "byte-order-mark"),
        (many.as_str(), "many-words"),
    ] {
        let Some(theirs) = asked(text.as_bytes()) else {
            return;
        };
        assert!(
            theirs.iter().any(|(level, ..)| level == "ALERT"),
            "{text:?}"
        );
        let document = ours(text.as_bytes());
        assert!(!document.has_alerts(), "{text:?}");
        let warned = document
            .diagnostics
            .iter()
            .any(|found| found.code == code && found.severity == Severity::Warning);
        assert!(warned, "{text:?}");
    }
}

/// Lines made of everything that is special in the grammar, hundreds per file. Variables without a
/// value are left out: 3.2 joins such a word with the text after it, which
/// `command_line_empty_variable` of the conformance scripts shows.
#[test]
fn random_words_mean_the_same() {
    if installed::haproxy().is_none() || is_before_dialect() {
        return;
    }
    let parts = prop::sample::select(vec![
        "a",
        "b",
        " ",
        "\t",
        "\"",
        "\"",
        "'",
        "'",
        "\\",
        "#",
        "$",
        "{",
        "}",
        "$FOO",
        "${FOO}",
        "\"$FOO\"",
        "\"${LIST[*]}\"",
        "\\x41",
        "\\x",
        "\\n",
        "\\t",
        "\\ ",
        "\\\"",
        "\\'",
        "\\\\",
        "\\$",
        "\\#",
        "[*]",
        ".",
        "é",
    ]);
    let line = prop::collection::vec(parts, 1..9);
    let mut runner = TestRunner::deterministic();
    // HAProxy stops after 100 errors, so a file contains fewer lines.
    for _ in 0..60 {
        let mut text = String::from("global\n");
        for _ in 0..33 {
            let words = line
                .new_tree(&mut runner)
                .expect("lines can be made")
                .current()
                .concat();
            text.push_str(&format!("unsetenv A\nsetenv A {words}\n.notice \"<$A>\"\n"));
        }
        let Some(theirs) = their_verdicts(text.as_bytes()) else {
            return;
        };
        // What is no UTF-8 is shown as HAProxy's output is read here.
        let shown = |said: String| {
            String::from_utf8_lossy(&ballast_syntax::byte_text::bytes_of_text(&said)).into_owned()
        };
        let ours: BTreeMap<_, _> = (our_verdicts(text.as_bytes()).into_iter())
            .map(|(line, said)| (line, shown(said)))
            .collect();
        let differing: Vec<_> = (1..)
            .zip(text.lines())
            .filter(|(line, _)| ours.get(line) != theirs.get(line))
            .map(|(line, written)| {
                (
                    line,
                    text.lines().nth(line as usize - 2),
                    written,
                    ours.get(&line),
                    theirs.get(&line),
                )
            })
            .collect();
        assert!(differing.is_empty(), "{differing:#?}");
    }
}

const CONDITIONS: &[&str] = &[
    "",
    "0",
    "1",
    "-1",
    "00",
    "01",
    "1a",
    "a",
    "!1",
    "!0",
    "!!1",
    "! 1",
    "!",
    "!!",
    "()",
    "(1)",
    "((1)",
    "(1))",
    "( 1 )",
    " 1 ",
    "1 && 0",
    "1&&0",
    "1 & 0",
    "1 &&",
    "&& 1",
    "1 || 0 && 0",
    "(1 || 0) && 0",
    "0||0||1",
    "1 || junk",
    "0 && junk",
    "junk || 1",
    "1 || (",
    "streq(a,a)",
    "streq(a,b)",
    "streq(a)",
    "streq(a,b,c)",
    "streq(,)",
    "streq()",
    "streq( a , a )",
    "streq(a,a )",
    "streq(\"a\",\"a\")",
    "streq(\"a,b\",'a,b')",
    "streq(a\\,b,\"a,b\")",
    "streq (a,a)",
    "streq",
    "strneq(a,b)",
    "version_atleast(2.6)",
    "version_atleast(2.6.9999)",
    "version_atleast(2.6-dev3)",
    "version_atleast()",
    "version_atleast",
    "version_atleast(abc)",
    "version_atleast(2)",
    "version_atleast(99)",
    "version_before(99)",
    "version_before(2.x)",
    "feature(OPENSSL)",
    "feature(openssl)",
    "feature(NOPE)",
    "defined(FOO)",
    "defined(EMPTY)",
    "defined(NOPE)",
    "defined(\"FOO\")",
    "defined( FOO )",
    "defined(FOO",
    "defined(FOO) x",
    "defined(FOO)x",
    "defined(FOO)&&1",
    "defined(A,B)",
    "openssl_version_atleast(1.1.1)",
    "openssl_version_before(1.1.1a)",
    "openssl_version_before(4)",
    "openssl_version_atleast(1.1.1-beta1)",
    "openssl_version_atleast(abc)",
    "openssl_version_atleast()",
    "openssl_version_atleast(3.1.0)",
    "ssllib_name_startswith(OpenSSL)",
    "ssllib_name_startswith(Libre)",
    "0x10",
    "1 1",
    "99999999999999999999",
    "2 && 3",
    "(streq(a,a))",
    "!(streq(a,a))",
    "!streq(a,b)&&0",
    "1 && !0 || 0",
    "defined(FOO),1",
    "streq(${FOO},foo)",
    "$FOO",
    "streq(\"$FOO\",foo)",
    "streq(a b,a b)",
    "streq(a\"b,a)",
    "streq(a\"b\"c,abc)",
    "\t1",
    "(1)(1)",
    "Defined(FOO)",
    "streq(a\\b,a)",
    "'streq(\\(a\\),\"(a)\")'",
    "'streq(a\\nb,\"a\\nb\")'",
    "'streq(a\\qb,a\\\\qb)'",
    "1 ||| 1",
    "'streq(a\" ,\"b,\"a ,b\")'",
    "'streq(\"a\\\"b\",a\\\"b)'",
    "'streq(\"\\$a\",\"\\x41\")'",
    "'streq(\"a,b)'",
    "defined",
    "(!)",
];

/// The version in `Running on OpenSSL version : OpenSSL 3.0.19 27 Jan 2026`, or `SSL library` of 3.2.
fn openssl_version(said: &str) -> Option<SslVersion> {
    let line = said.lines().find(|line| line.starts_with("Running on "))?;
    let (_, library) = line.split_once(": ")?;
    SslVersion::parse(library.split_whitespace().nth(1)?)
}

#[test]
fn conditions_mean_the_same() {
    let Some(version) = haproxy(&["-vv"]) else {
        return;
    };
    let version = String::from_utf8_lossy(&version.stdout).into_owned();
    let number = version.split_whitespace().nth(2).unwrap_or_default();
    let features = version
        .split_whitespace()
        .filter_map(|word| word.strip_prefix('+'));
    let facts = FixedFacts {
        version: HaproxyVersion::parse(number),
        features: features.map(str::to_owned).collect(),
        openssl_version: openssl_version(&version),
        ssl_library: Some("OpenSSL".to_owned()),
        ..FixedFacts::default()
    };
    let env: Env = VARIABLES.into_iter().collect();
    for text in CONDITIONS {
        let Some(output) = haproxy(&["-cc", text]) else {
            return;
        };
        let theirs = match output.status.code() {
            Some(0) => Some(true),
            Some(1) => Some(false),
            _ => None,
        };
        assert_eq!(
            evaluate_condition(text, &env, &facts).ok(),
            theirs,
            "{text:?}"
        );
    }
}

/// `10sx` is left out: HAProxy 2.6 warns and says that later versions refuse it, as we do.
#[test]
fn values_mean_the_same() {
    let refused = |line: &str| {
        let found = asked(format!("{line}\n").as_bytes())?;
        Some(found.iter().any(|(level, ..)| level == "ALERT"))
    };
    for text in [
        "0",
        "10",
        "10ms",
        "10s",
        "1d",
        "24d",
        "25d",
        "2147483647",
        "2147483648",
        "4294967296",
        "99999999999999999999",
        "1us",
        "0us",
        "10x",
        "1.5s",
        "-1",
        "s",
        "10S",
        "1M",
        "1w",
        "35791m",
        "35792m",
        "596h",
        "597h",
        "+5",
        "0x10",
        "1000000000000us",
    ] {
        let line = format!("defaults\n mode http\n timeout client {text}");
        let Some(theirs) = refused(&line) else { return };
        assert_eq!(
            parse_time(text, TimeUnit::Millisecond).is_err(),
            theirs,
            "{text}"
        );
    }
    for text in [
        "10",
        "10k",
        "10K",
        "10kb",
        "10m",
        "1g",
        "4g",
        "3g",
        "1t",
        "1.5k",
        "-1",
        "abc",
        "4294967295",
        "4294967296",
        "5G",
        "4194304k",
        "4194303k",
        "2048m",
        "4096m",
        "10b",
        "10kk",
        "+1",
        "0x10",
    ] {
        let line = format!("backend b\n stick-table type ip size {text}");
        let Some(theirs) = refused(&line) else { return };
        assert_eq!(
            parse_size(text, u64::from(u32::MAX)).is_err(),
            theirs,
            "{text}"
        );
    }
}
