//! Conditions against a table; `tests/oracle.rs` checks the same table against HAProxy.

use super::*;
use crate::FixedFacts;

fn facts() -> FixedFacts {
    FixedFacts {
        version: HaproxyVersion::release(2, 6, 12),
        features: vec!["OPENSSL".to_owned(), "LUA".to_owned()],
        enabled: vec!["EPOLL".to_owned()],
        openssl_version: SslVersion::parse("3.0.19"),
        ssl_library: Some("OpenSSL 3.0".to_owned()),
        awslc_api: None,
    }
}

fn check(text: &str) -> Result<bool, Diagnostic> {
    let env: Env = [("FOO", "foo"), ("EMPTY", "")].into_iter().collect();
    evaluate_condition(text, &env, &facts())
}

#[test]
fn conditions_that_hold() {
    for text in [
        "1",
        "-1",
        "01",
        "!0",
        "!!1",
        "(1)",
        "((1))",
        "( 1 )",
        " 1 ",
        "1 || 0 && 0",
        "0||0||1",
        "0x10",
        "\t1",
        "99999999999999999999",
        "streq(a,a)",
        "streq(,)",
        "streq( a , a )",
        "streq(\"a\",\"a\")",
        "strneq(a,b)",
        "strstr(abc,b)",
        "strstr(abc,)",
        "version_atleast(2.6)",
        "version_atleast()",
        "version_atleast",
        "version_atleast(abc)",
        "version_before(3)",
        "feature(OPENSSL)",
        "defined(FOO)",
        "defined(EMPTY)",
        "defined(\"FOO\")",
        "enabled(EPOLL)",
        "openssl_version_atleast(1.1.1)",
        "ssllib_name_startswith(OpenSSL)",
        "streq(\"$FOO\",foo)",
        "streq(a b,a b)",
        "streq(a\"b\"c,abc)",
        "1 && !0 || 0",
        "streq(\\\"a\\\"x,ax)",
        "'streq(\"a,b\",\"a,b\")'",
        "'streq(a\\nb,\"a\\nb\")'",
        "'streq(a\\qb,a\\\\qb)'",
        "defined(FOO)&&1",
    ] {
        assert_eq!(check(text), Ok(true), "{text}");
    }
}

#[test]
fn conditions_that_do_not() {
    for text in [
        "",
        " ",
        "\"\"",
        "0",
        "00",
        "!1",
        "! 1",
        "1 && 0",
        "1&&0",
        "(1 || 0) && 0",
        "streq(a,b)",
        "streq(a,a )",
        "strstr(abc,z)",
        "version_atleast(2.6.13)",
        "version_atleast(3)",
        "version_before(2.6.12)",
        "feature(openssl)",
        "feature(QUIC)",
        "feature()",
        "defined(NOPE)",
        "defined( FOO )",
        "defined",
        "enabled(KQUEUE)",
        "enabled",
        "openssl_version_before(1.1.1)",
        "openssl_version_atleast(3.1.0)",
        "awslc_api_atleast(1)",
        "ssllib_name_startswith(Libre)",
        "streq(${FOO},foo)",
        "!(streq(a,a))",
        "strneq(a,a)",
    ] {
        assert_eq!(check(text), Ok(false), "{text}");
    }
}

#[test]
fn conditions_that_make_no_sense() {
    for text in [
        "1a",
        "a",
        "!",
        "!!",
        "()",
        "( )",
        "((1)",
        "(1))",
        "1 & 0",
        "1 &&",
        "&& 1",
        "1 || junk",
        "0 && junk",
        "junk || 1",
        "1 || (",
        "streq(a)",
        "streq(a,b,c)",
        "streq()",
        "streq",
        "streq (a,a)",
        "defined(FOO",
        "defined(FOO) x",
        "defined(A,B)",
        "openssl_version_before(4)",
        "openssl_version_atleast()",
        "awslc_api_before(x)",
        "1 1",
        "2 ! 3",
        "(1)(1)",
        "Defined(FOO)",
        "streq(a\"b,a)",
        "'streq(\"a,b)'",
        "1 ||| 1",
        "\"${\"",
        "streq(\\(a\\),a)",
    ] {
        let error = check(text).expect_err(text);
        assert_eq!(
            (error.severity, error.span),
            (Severity::Alert, None),
            "{text}"
        );
    }
    let error = check("defind(FOO)").unwrap_err();
    assert_eq!(error.help.as_deref(), Some("did you mean 'defined'?"));
    let deep = "(".repeat(100_000);
    assert!(evaluate(&deep, &Env::new(), &facts()).is_err());
    assert!(PREDICATES.is_sorted_by_key(|row| row.word));
}

#[test]
fn errors_say_where() {
    let at = |text| evaluate(text, &Env::new(), &facts()).unwrap_err().at;
    assert_eq!(at("1 && junk(x)"), 5..9);
    assert_eq!(at("(1 && 1"), 0..1);
    assert_eq!(at("1 é"), 2..4);
    assert_eq!(at("1 && streq(a)"), 5..13);
}
