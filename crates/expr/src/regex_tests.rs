//! Expressions as PCRE2 reads them, byte by byte. Expected values are HAProxy 3.2's.

use super::*;

fn found(source: &str, subject: impl AsRef<[u8]>) -> bool {
    Regex::new(source, false)
        .unwrap()
        .is_match(subject.as_ref())
}

fn whole(source: &str, subject: impl AsRef<[u8]>) -> Option<(usize, usize)> {
    let regex = Regex::new(source, false).unwrap();
    regex.groups(subject.as_ref(), 0)?[0]
}

#[test]
fn subjects_need_not_be_text() {
    assert!(found("^(?!Mozilla)", b"curl\xff"));
    assert!(!found("^(?!Mozilla)", b"Mozilla\xff"));
    assert!(found("(?<=\\xff)x", b"\xe9\xffx"));
    assert!(found("(?=a)[^b]\\xff", b"a\xff"));
    assert!(found("(.)\\1", b"\xff\xff"));
    assert!(!found("(.)\\1", b"\xff\xfe"));
    // A count is for the last byte of a character.
    assert!(found("(?=é)é+$", "éé"));
    assert!(!found("^(?=é)é+$", "éé"));
    assert_eq!(whole("(?<=\\xe9)b", b"\xe9b"), Some((1, 2)));
}

#[test]
fn dollar_matches_before_the_last_newline() {
    assert!(found("\\.php$", "/index.php\n"));
    assert!(found("\\.php\\Z", "/index.php\n"));
    assert!(!found("\\.php\\z", "/index.php\n"));
    assert!(!found("\\.php$", "/index.php\n\n"));
    assert!(!found("\\.php$", "/index.php\nx"));
    assert!(found("(?!x)\\.php$", "/index.php\n"));
    assert!(found("a$\\n", "a\n"));
    assert!(!found("a$\\z", "a\n"));
    assert_eq!(whole("b$", "ab\n"), Some((1, 2)));
    assert_eq!(whole("b$", "ab"), Some((1, 2)));
    assert!(found("(?m)a$", "a\nb"));
    assert!(found("(?m)^$", "a\n\nb"));
    assert!(!found("(?m)^$", "a\n"));
}

#[test]
fn escapes_are_those_of_pcre() {
    for (source, subject) in [
        ("\\<script\\>", "<script>"),
        ("a[[]b", "a[b"),
        ("^[a&&b]+$", "a&b"),
        ("^[+--b]+$", "-,b"),
        ("^[a~~b]+$", "~a"),
        ("^[]a]+$", "]a"),
        ("^[^]a]+$", "bc"),
        ("^\\v$", "\r"),
        ("^\\h\\H$", "\tx"),
        ("^\\R$", "\r\n"),
        ("^\\N\\V$", "xy"),
        ("\\b{start}", "a{start}"),
        ("(?x) a [ ] b # c", "a b"),
        ("^\\012$", "\n"),
        ("^\\101[\\101]\\o{101}$", "AAA"),
        ("^\\x4z\\cA$", "\u{4}z\u{1}"),
        ("^a{,2}$", "aa"),
        ("^a{x}{$", "a{x}{"),
        ("^a{ 1, 2 }$", "aa"),
        ("^\\Qa.b\\E+$", "a.bbb"),
        ("^\\_\\/\\-\\e$", "_/-\x1b"),
        ("^[[:alpha:]_-]+$", "a_-"),
        ("^[\\w.-]+$", "a.-"),
        ("^(?i:A)a$", "aa"),
        ("^(?i)[^b]$", "a"),
        ("^(a)(?(1)b|c)$", "ab"),
        ("(?<n>a)\\k<n>", "aa"),
    ] {
        assert!(found(source, subject), "{source} {subject:?}");
    }
    for (source, subject) in [
        ("^\\<script", "script"),
        ("^a++ab", "aaab"),
        ("^(?U)a+$", "b"),
        ("^\\v$", "x"),
        ("(?x)a b", "a b"),
        ("^(?i)[^b]$", "B"),
        ("^\\R\\n", "\r\n"),
        ("^\\h$", "h"),
    ] {
        assert!(!found(source, subject), "{source} {subject:?}");
    }
    assert_eq!(whole("(?U)a+", "aaa"), Some((0, 1)));
}

#[test]
fn what_has_no_equivalent_is_refused() {
    for source in [
        "a**",
        "*a",
        "(a",
        "a)",
        "[a",
        "\\",
        "a\\i",
        "(a)\\2",
        "[b-a]",
        "\\777",
        "a(?(1)b|c)",
        "\\p",
        "\\p{",
        "(?n)(a)\\1",
        "a{65536}",
        "[a-\\d]",
        "[\\d-a]",
        "^*a",
        "(?<n>a)(?<n>b)",
        "(?<1n>a)",
        "(?<=a+)b",
    ] {
        assert!(Regex::new(source, false).is_err(), "{source}");
    }
    // What PCRE2 takes is refused with what to write instead.
    for (source, named) in [
        ("(?R)", "recursion"),
        ("(a)(?1)", "recursion"),
        ("(a)(?-1)", "recursion"),
        ("(?<n>a)(?&n)", "recursion"),
        ("(?<n>a)\\g<n>", "recursion"),
        ("(?|a|b)", "(?|"),
        ("(*UTF)a", "(*UTF)"),
        ("a(*MARK:m)b", "(*MARK)"),
        ("a(?C1)", "(?C)"),
        ("(?J)a", "(?J)"),
        ("(?xx)a", "(?xx)"),
        ("(?(?=a)b|c)", "a condition"),
        ("(?(DEFINE)a)", "a condition"),
        ("\\p{Greek}", "\\p{Greek}"),
        ("[\\P{Han}]", "\\p{Han}"),
    ] {
        let message = Regex::new(source, false).unwrap_err().message;
        assert!(message.contains(named), "{source}: {message}");
        assert!(
            message.contains("is not supported: "),
            "{source}: {message}"
        );
    }
}

#[test]
fn properties_are_those_of_bytes() {
    let matching: [(&str, &[u8]); 7] = [
        ("^\\p{Lu}\\pL\\P{L}$", b"Ab1"),
        ("^[\\p{Nd}\\p{^Lu}]{2}$", b"1a"),
        ("^\\p{Ll}\\p{Lu}\\p{Sm}\\p{Zs}$", b"\xe9\xc9\xd7\xa0"),
        ("^\\p{L&}\\p{Any}\\p{Xwd}\\p{Xsp}$", b"a\xff_\x85"),
        ("^\\X\\X$", b"\r\nx"),
        ("^(?:a(*FAIL)|ab)$", b"ab"),
        ("^(?<n>a)(?n:(b))(c)\\2$", b"abcc"),
    ];
    for (source, subject) in matching {
        assert!(found(source, subject), "{source} {subject:?}");
    }
    let others: [(&str, &[u8]); 4] = [
        ("\\p{Lu}", b"a\xe9"),
        ("\\p{Mn}", b"a"),
        ("^\\X$", b"ab"),
        ("(*F)", b"a"),
    ];
    for (source, subject) in others {
        assert!(!found(source, subject), "{source} {subject:?}");
    }
    assert!(Regex::new("^\\p{Lu}$", true).unwrap().is_match(b"\xe9"));
}

#[test]
fn patterns_refer_to_named_groups_only() {
    let check = |source| Pcre::check_pattern(source, false);
    assert!(check("(?<n>a)\\1").is_ok());
    assert!(check("(a)(?<n>b)\\1").is_ok());
    assert!(check("(a)\\1").is_err());
    assert!(check("(a)(?(1)b)").is_err());
}

#[test]
fn long_subjects_do_not_exhaust_the_steps() {
    let subject = format!("{}><a evil", "<a".repeat(1000));
    assert!(found("<a(?:(?!>).)*evil", subject));
}

#[test]
fn a_text_at_the_beginning_is_found_as_by_the_engine() {
    for source in [
        "^/a",
        "^/a\\.b",
        "^\\Q/a.b\\E",
        "^(/a)",
        "^[/]a",
        "^/a$",
        "/a",
        "^",
        "(?i)^/A",
        "^\\xff",
    ] {
        let Ok(regex) = Regex::new(source, false) else {
            continue;
        };
        for subject in [
            &b"/a"[..],
            b"/a.b",
            b"x/a",
            b"",
            b"/ab",
            b"/A",
            b"\xff",
            b"/a\n",
            b"\n/a",
        ] {
            let groups = regex.groups(subject, 0);
            let whole = groups.and_then(|groups| groups[0]);
            assert_eq!(regex.find(subject), whole, "{source} in {subject:?}");
            assert_eq!(
                regex.is_match(subject),
                whole.is_some(),
                "{source} in {subject:?}"
            );
        }
    }
    assert_eq!(
        anchored_literal("^/some", false).as_deref(),
        Some(&b"/some"[..])
    );
    assert_eq!(anchored_literal("^/some", true), None);
}
