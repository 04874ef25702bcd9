//! The tree of small texts, part by part. `tests/oracle.rs` checks the same rules against HAProxy.

use proptest::prelude::*;

use super::*;
use crate::{HAPROXY_WORD_COUNT_MAX, LinePartKind, RESOLVED_LINE_BYTES_MAX, WORD_COUNT_MAX};

fn env() -> Env {
    let pairs = [
        ("FOO", "foo"),
        ("EMPTY", ""),
        ("LIST", " a  b "),
        ("Q", "a\"b\\c'd#e f"),
    ];
    pairs.into_iter().collect()
}

fn parsed(text: impl AsRef<[u8]>) -> Document {
    let document = parse(
        [("t.cfg", text.as_ref().to_vec())],
        env(),
        &FixedFacts::default(),
    );
    let file = document.sources.files().next().unwrap();
    assert_eq!(document.reassemble(file), text.as_ref());
    document
}

/// The words of one line, and the codes of its diagnostics.
fn words(line: &str) -> (Vec<String>, Vec<&'static str>) {
    let document = parsed(format!("global\n{line}\n"));
    let words = &document.sections[1].lines[0].words;
    let words = words.iter().map(|word| word.text().to_owned()).collect();
    (words, codes(&document))
}

fn codes(document: &Document) -> Vec<&'static str> {
    document
        .diagnostics
        .iter()
        .map(|diagnostic| diagnostic.code)
        .collect()
}

#[test]
fn a_word_is_the_same_whether_it_is_made_at_once_or_piece_by_piece() {
    // A line over the limit is cut after the byte that is too much, wherever runs of bytes end.
    let large = "a".repeat(RESOLVED_LINE_BYTES_MAX / 8);
    let all = "${A}".repeat(8);
    for (line, last, ignored) in [
        (format!("\"{all}\""), RESOLVED_LINE_BYTES_MAX, None),
        (format!("\"{all}\"bc"), RESOLVED_LINE_BYTES_MAX + 1, Some(1)),
        (format!("\"{all}bc\""), RESOLVED_LINE_BYTES_MAX + 1, Some(2)),
        (format!("\"{all}\" bc d"), 1, Some(3)),
    ] {
        let document = parsed(format!("global\nsetenv A {large}\n{line}\n"));
        let cut = &document.sections[1].lines[1];
        let last_word = cut.words.last().map(|word| word.text().len());
        assert_eq!(
            (last_word, cut.ignored.map(Span::len)),
            (Some(last), ignored)
        );
    }
    for word in ["plain", "tail#comment", "e\u{e9}", "a$b{c}"] {
        let split = format!("{}\"\"{}", &word[..1], &word[1..]);
        let texts = [word, &split].map(|line| words(line).0);
        assert_eq!(texts[0], texts[1], "{word}");
    }
}

/// The messages of the active `.notice` lines.
fn notices(text: &str) -> Vec<String> {
    let document = parsed(text);
    let notices = document
        .diagnostics
        .iter()
        .filter(|found| found.code == "notice-directive");
    notices.map(|found| found.message.clone()).collect()
}

#[test]
fn words_are_resolved() {
    for (line, expected) in [
        ("a b\tc", &["a", "b", "c"][..]),
        ("a#b", &["a"]),
        ("a \"#b\" c", &["a", "#b", "c"]),
        ("'a b'\"c d\"e", &["a bc de"]),
        ("'${FOO}\\n\"'", &["${FOO}\\n\""]),
        ("${FOO} $FOO \\$FOO", &["${FOO}", "$FOO", "\\$FOO"]),
        ("\"${FOO}|$FOO|$FOO-x|\\$FOO\"", &["foo|foo|foo-x|$FOO"]),
        ("\"${NOPE-a b}|${EMPTY-d}|${NOPE-}\"", &["a b||"]),
        ("a \"${LIST[*]}\" z", &["a", "a", "b", "z"]),
        ("x\"${LIST[*]}\"y", &["x", "a", "b", "y"]),
        ("a \"${EMPTY[*]}\" \"${EMPTY}\"", &["a"]),
        (
            "\"${NOPE[*]-p q}\" \"${NOPE-p q[*]}\"",
            &["p", "q", "p", "q"],
        ),
        ("\"$Q\"", &["a\"b\\c'd#e f"]),
        (
            "\"${.FILE}:${.LINE}:${.SECTION}:$.LINE\"",
            &["t.cfg:2:global:2"],
        ),
        (
            r#"a\ b \#c \\ \' \" \n\t\r \x41\x7e \q"#,
            &["a b", "#c", "\\", "'", "\"", "\n\t\r", "A~", "\\q"],
        ),
        (r#""a\ b\#c\\\'\"\n\x41\q""#, &["a b#c\\'\"\nA\\q"]),
        ("a\\", &["a\\"]),
        ("a \"\" ''", &["a"]),
        ("a\x0bb\x0cc", &["a", "b", "c"]),
    ] {
        let (found, codes) = words(line);
        assert_eq!(found, expected, "{line}");
        assert!(
            codes
                .iter()
                .all(|&code| matches!(code, "unset-variable" | "empty-word")),
            "{line}: {codes:?}"
        );
    }
}

#[test]
fn bad_words_are_reported_and_the_line_goes_on() {
    for (line, code, count) in [
        ("a \"b c", "unmatched-quote", 2),
        ("a 'b c", "unmatched-quote", 2),
        ("a \"b\\\"", "unmatched-quote", 2),
        ("a \\x4 b", "bad-hex-escape", 3),
        ("a \"\\xzz\" b", "bad-hex-escape", 3),
        ("a \"$\" b", "bad-variable-name", 3),
        ("a \"${}\" b", "bad-variable-name", 3),
        ("a \"${1A}\" b", "bad-variable-name", 3),
        ("a \"${.NOPE}\" b", "bad-variable-name", 3),
        ("a \"${FOO\" b", "unmatched-brace", 3),
        ("a \"${FOO-x\" b", "unmatched-brace", 3),
        ("a \"${FOO:x}\" b", "unmatched-brace", 3),
        ("a \"${FOO[0]}\" b", "bad-word-expansion", 3),
        ("a b\\x00c d", "nul-in-word", 3),
        ("a \"\" b", "empty-word", 1),
        ("a b\rc", "carriage-return", 2),
        ("a b\0c", "nul-character", 2),
    ] {
        let (found, codes) = words(line);
        assert_eq!((found.len(), codes), (count, vec![code]), "{line}");
    }
}

#[test]
fn spans_map_back_into_the_source() {
    let document = parsed("global\n log \"${FOO}:\\x41b\" a\\ b plain\n");
    let words = &document.sections[1].lines[0].words;
    let source = |span| document.sources.text(span).into_owned();
    assert_eq!(words[1].text(), "foo:Ab");
    assert_eq!(source(words[1].span()), "\"${FOO}:\\x41b\"");
    assert_eq!(source(words[1].span_of(0..3)), "${FOO}");
    assert_eq!(source(words[1].span_of(3..4)), ":");
    assert_eq!(source(words[1].span_of(3..5)), ":\\x41");
    assert_eq!(source(words[1].span_of(5..6)), "b");
    assert_eq!(source(words[1].span_of(0..99)), "${FOO}:\\x41b");
    assert_eq!(source(words[2].span_of(1..3)), "\\ b");
    assert_eq!(source(words[3].span_of(1..3)), "la");
    assert!(words[3].is_verbatim() && !words[3].is_quoted());
    assert!(words[1].is_expanded() && words[1].is_quoted() && !words[1].is_verbatim());
    assert!(!words[2].is_verbatim() && !words[2].is_quoted());
}

#[test]
fn sections_hold_their_lines() {
    let text = "# head\n\nglobal # c\n daemon\ndefaults from x\ndefaults\ndefaults d from x\nfrontend f\n\
                listen \"l\" from d\n mode tcp\n";
    let document = parsed(text);
    let seen: Vec<_> = document
        .sections
        .iter()
        .map(|section| {
            let [name, from] =
                [section.name(), section.from()].map(|word| word.map_or("-", Word::text));
            (section.kind, name, from, section.lines.len())
        })
        .collect();
    use SectionKind::{Defaults, Frontend, Global, Listen, Preamble};
    assert_eq!(
        seen,
        [
            (Preamble, "-", "-", 2),
            (Global, "-", "-", 1),
            (Defaults, "-", "x", 0),
            (Defaults, "-", "-", 0),
            (Defaults, "d", "x", 0),
            (Frontend, "f", "-", 0),
            (Listen, "l", "d", 1),
        ]
    );
    assert!(codes(&document).is_empty());
    let cut_off = parsed("listen l\n mode tcp");
    assert_eq!(codes(&cut_off), ["missing-final-newline"]);
    assert!(cut_off.has_alerts());
    let last = document
        .sections
        .last()
        .unwrap()
        .statements()
        .next()
        .unwrap();
    assert_eq!(
        (last.text(0), last.text(1), last.text(2), last.number),
        ("mode", "tcp", "", 10)
    );
    let global = document.sections[1].header.as_ref().unwrap();
    assert_eq!(document.sources.text(global.comment.unwrap()), "# c");
}

#[test]
fn each_file_starts_without_section() {
    let files = [
        ("a", "global\n setenv A 1\n.if 1\n"),
        ("b", "mode http\n.notice \"$A${.SECTION}\"\n"),
    ];
    let files = files.map(|(name, text)| (name, text.as_bytes().to_vec()));
    let document = parse(files, Env::new(), &FixedFacts::default());
    assert_eq!(
        codes(&document),
        ["unterminated-if", "out-of-section", "notice-directive"]
    );
    assert_eq!(document.diagnostics[2].message, "'1'.");
    assert_eq!(
        document
            .sources
            .locate(document.diagnostics[1].span.unwrap())
            .file,
        "b"
    );
    let kinds: Vec<_> = document
        .sections
        .iter()
        .map(|section| section.kind)
        .collect();
    assert_eq!(
        kinds,
        [
            SectionKind::Preamble,
            SectionKind::Global,
            SectionKind::Preamble
        ]
    );
}

#[test]
fn a_word_out_of_section_is_helped() {
    let document = parsed("fronted x\nlog a\n");
    assert_eq!(codes(&document), ["out-of-section", "out-of-section"]);
    let edit = document.diagnostics[0].replacement.as_ref().unwrap();
    assert_eq!(
        (
            edit.text.as_str(),
            document.sources.text(edit.span).as_ref()
        ),
        ("frontend", "fronted")
    );
    assert_eq!(document.diagnostics[1].replacement, None);
}

#[test]
fn branches_are_chosen() {
    for (text, said) in [
        (".if 1\n.notice a\n.else\n.notice b\n.endif\n", "'a'."),
        (
            ".if 0\n.notice a\n.elif 1\n.notice b\n.elif junk(\n.notice c\n.else\n.notice d\n.endif\n",
            "'b'.",
        ),
        (
            ".if\n.notice a\n.elif\n.notice b\n.else\n.notice c\n.endif\n",
            "'c'.",
        ),
        (
            ".if 0\n.if junk(\n.notice a\n.else\n.notice b\n.endif\n.endif\n.notice c\n",
            "'c'.",
        ),
        (".if 1\n.if 0\n.else\n.notice a\n.endif\n.endif\n", "'a'."),
        (".if 0\n.foo\n.notice a b\n.endif\n.notice c\n", "'c'."),
        (
            ".if 0\nglobal\n.endif\n.notice \"<${.SECTION}>\"\n",
            "'<>'.",
        ),
        (
            "global\n.if 0\nsetenv FOO x\n.endif\n.notice \"$FOO\"\n",
            "'foo'.",
        ),
        (
            ".if streq(\"$FOO\",foo) && !defined(NOPE)\n.notice a\n.endif\n",
            "'a'.",
        ),
    ] {
        let document = parsed(text);
        assert_eq!(codes(&document), ["notice-directive"], "{text}");
        assert_eq!(notices(text), [said], "{text}");
    }
}

#[test]
fn bad_directives_are_reported_once() {
    for (text, code) in [
        (".if 1\n", "unterminated-if"),
        (".else\n", "lone-branch"),
        (".elif 1\n", "lone-branch"),
        (".endif\n", "lone-branch"),
        (".if 1\n.else\n.else\n.endif\n", "branch-after-else"),
        (".if 0\n.else\n.elif 1\n.endif\n", "branch-after-else"),
        (".if 1\n.else x\n.endif\n", "unexpected-word"),
        (".if 1\n.endif x\n", "unexpected-word"),
        (".notice a b\n", "unexpected-word"),
        (".nope\n", "unknown-directive"),
        (".if junk\n.foo\n.else\n.foo\n.endif\n", "bad-condition"),
        (".if \"\n.foo\n.endif\n", "unmatched-quote"),
        (".if 0\na \"b\n.endif\n", "unmatched-quote"),
        (".if 0\n.endif \"\n", "unmatched-quote"),
        (
            ".if 0\na \"${NOPE}\" \"\" x \\x00\n.endif\n.diag x\n",
            "diag-directive",
        ),
        (".alert x\n", "alert-directive"),
        (".warning x\n", "warning-directive"),
    ] {
        assert_eq!(codes(&parsed(text)), [code], "{text}");
    }
    let document = parsed(".if 1 && \"x y\"\n.endif\n");
    let span = document.diagnostics[0].span.unwrap();
    assert_eq!(document.sources.text(span), "x");
}

#[test]
fn skipped_lines_stay_in_the_tree() {
    let document = parsed("global\n.if 0\nfrontend f\n mode tcp\n.endif\n daemon\n");
    let lines = &document.sections[1].lines;
    let skipped: Vec<bool> = lines.iter().map(|line| line.skipped).collect();
    assert_eq!(skipped, [false, true, true, true, false]);
    let counted: Vec<&str> = document.sections[1]
        .statements()
        .map(|line| line.text(0))
        .collect();
    assert_eq!(counted, ["daemon"]);
}

/// HAProxy 3.2 refuses these lines, in an excluded block too: it splits a line into words first.
#[test]
fn a_skipped_line_that_cannot_be_split_is_an_error() {
    for (line, code) in [
        (" x \"y", "unmatched-quote"),
        (" x 'y", "unmatched-quote"),
        (" x \"$\"", "bad-variable-name"),
        (" x \"${1A}\"", "bad-variable-name"),
        (" x \"${A[*]x}\"", "unmatched-brace"),
        (" x \\xZZ", "bad-hex-escape"),
        (" x\0y", "nul-character"),
    ] {
        let document = parsed(format!("global\n.if 0\n{line}\n.endif\n"));
        assert_eq!(codes(&document), [code], "{line}");
        let line = &document.sections[1].lines[1];
        assert!(line.skipped && line.has_error, "{line:?}");
    }
    // What is wrong with the words, and what is only worth a warning, is not reported.
    let words = " x".repeat(HAPROXY_WORD_COUNT_MAX + 1);
    for line in [" nonsense", ".nonsense", ".alert x y", " x a\rb", &words] {
        let document = parsed(format!("global\n.if 0\n{line}\n.endif\n"));
        assert!(codes(&document).is_empty(), "{line}");
    }
}

#[test]
fn the_environment_changes_on_the_way() {
    let show = ".notice \"<$A|$FOO|$HAPROXY_LOCALPEER>\"\n";
    for (text, said) in [
        ("global\nsetenv A 1\n", "'<1|foo|>'."),
        ("global\nsetenv A \"x y\"\n", "'<x y|foo|>'."),
        (
            "global\npresetenv A 1\npresetenv A 2\npresetenv FOO x\n",
            "'<1|foo|>'.",
        ),
        ("global\nunsetenv FOO NOPE\n", "'<||>'."),
        ("global\nsetenv A 1\nresetenv FOO\n", "'<|foo|>'."),
        ("global\nsetenv A 1\nresetenv\n", "'<||>'."),
        ("global\nlocalpeer p\n", "'<|foo|p>'."),
        ("defaults\nsetenv A 1\n", "'<|foo|>'."),
        ("global\nsetenv A \"1\n", "'<|foo|>'."),
    ] {
        assert_eq!(notices(&format!("{text}{show}")), [said], "{text}");
    }
    for text in [
        "setenv A",
        "setenv",
        "presetenv A \"\"",
        "unsetenv",
        "setenv A=B 1",
        "setenv A \"x y\" more",
        "setenv \"\" 1",
        "unsetenv A=B",
    ] {
        let codes = codes(&parsed(format!("global\n{text}\n")));
        assert!(codes.contains(&"bad-environment"), "{text}: {codes:?}");
    }
}

#[test]
fn line_ends_marks_and_bytes() {
    let document = parsed("\u{feff}global\r\n daemon \r\r\n\r\n");
    assert_eq!(codes(&document), ["byte-order-mark"]);
    assert_eq!(document.sections[1].lines[0].words.len(), 1);
    let kinds: Vec<_> = document
        .lines()
        .next()
        .unwrap()
        .pieces()
        .iter()
        .map(|piece| piece.kind)
        .collect();
    assert_eq!(
        kinds,
        [
            LinePartKind::Space,
            LinePartKind::Word,
            LinePartKind::LineEnd
        ]
    );

    let document = parsed(b"global\n # \xff\n log \xfe\xff\"x\" ok\n");
    assert_eq!(codes(&document), ["not-utf8"]);
    let word = &document.sections[1].lines[1].words[1];
    assert_eq!((word.bytes(), word.is_utf8()), (&b"\xfe\xffx"[..], false));
    assert_eq!(word.span_of(0..1), word.span());

    assert_eq!(parsed("").sections.len(), 1);
    assert!(parsed("").diagnostics.is_empty());
}

#[test]
fn bounds_are_kept() {
    let many = |count: usize| format!("global\n{}#c\n", "w ".repeat(count));
    assert!(codes(&parsed(many(HAPROXY_WORD_COUNT_MAX))).is_empty());
    assert_eq!(
        codes(&parsed(many(HAPROXY_WORD_COUNT_MAX + 1))),
        ["many-words"]
    );
    let document = parsed(many(WORD_COUNT_MAX + 9));
    assert_eq!(codes(&document), ["many-words", "too-many-words"]);
    assert_eq!(document.sections[1].lines[0].words.len(), WORD_COUNT_MAX);

    let document = parsed(format!(
        "global\n{}\n daemon\n",
        "w".repeat(LINE_BYTES_MAX + 1)
    ));
    assert_eq!(codes(&document), ["line-too-long"]);
    assert!(document.sections[1].lines[0].has_error && !document.sections[1].lines[1].has_error);

    let doubling = format!(
        "global\nsetenv A 0123456789abcdef\n{}",
        "setenv A \"$A$A\"\n".repeat(600)
    );
    let document = parsed(doubling);
    assert_eq!(codes(&document).first(), Some(&"line-too-long"));
    let spread = format!(
        "global\n{}{}",
        "setenv A \"$A$A${A}0123456789abcdef\"\n".repeat(9),
        "\"$A$A$A\"\n".repeat(4000)
    );
    let document = parsed(spread);
    assert_eq!(codes(&document).last(), Some(&"expansion-too-long"));

    let document = parsed(".if 1\n".repeat(101) + &".endif\n".repeat(101));
    assert_eq!(codes(&document), ["if-too-deep"]);
    let document = parsed("\n".repeat(LINE_COUNT_MAX as usize + 7));
    assert_eq!(codes(&document), ["too-many-lines"]);
    let document = parsed("x\n".repeat(DIAGNOSTIC_COUNT_MAX + 5));
    assert_eq!(document.diagnostics.len(), DIAGNOSTIC_COUNT_MAX + 1);
    assert_eq!(
        document.diagnostics.last().unwrap().message,
        "5 more messages are not shown"
    );
}

/// Texts made of everything that is special in the grammar.
fn tricky() -> impl Strategy<Value = Vec<u8>> {
    let parts = prop::sample::select(vec![
        &b"global"[..],
        b"frontend f",
        b"setenv A ",
        b".if 1",
        b".if 0",
        b".elif ",
        b".else",
        b".endif",
        b".notice ",
        b"\n",
        b"\n",
        b"\n",
        b"\r\n",
        b"\r",
        b" ",
        b"\t",
        b"\"",
        b"'",
        b"\\",
        b"\\x41",
        b"\\x00",
        b"#",
        b"$",
        b"${",
        b"}",
        b"[*]",
        b"-",
        b"\"${LIST[*]}\"",
        b"\"${A-b c}\"",
        b"\"$A\"",
        b"(",
        b")",
        b"&&",
        b"!",
        b"a",
        b"\0",
        b"\xff",
        b"\xef\xbb\xbf",
    ]);
    prop::collection::vec(parts, 0..60).prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn any_bytes_come_back(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        crate::fuzz_one(&bytes);
    }

    #[test]
    fn any_text_comes_back(bytes in tricky()) {
        crate::fuzz_one(&bytes);
    }

    #[test]
    fn any_text_can_be_quoted(text in "[^\r\n\0]{1,40}") {
        let escaped = |c: char| if "\\\"$".contains(c) { format!("\\{c}") } else { c.to_string() };
        let weak: String = text.chars().map(escaped).collect();
        let document = parsed(format!("global\nword \"{weak}\" end\n"));
        let word = &document.sections[1].lines[0].words[1];
        prop_assert_eq!(word.text(), text.as_str());
        for (at, c) in text.char_indices() {
            let source = document.sources.text(word.span_of(at..at + c.len_utf8())).into_owned();
            prop_assert_eq!(source, escaped(c));
        }
    }
}
