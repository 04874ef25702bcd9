//! The effects of actions, on a transaction of plain values.

#![allow(
    clippy::panic,
    clippy::unwrap_used,
    unreachable_pub,
    reason = "a test says what went wrong by failing"
)]

mod common;

use std::sync::Arc;
use std::time::Duration;

use ballast_message::HeadLimits;
use ballast_rules::{
    ExchangeSetting, LocalResponse, LogLevel, ResponseCause, ResponseContent, RuleSetKind,
    SettableTimeout, Verdict, Workspace, run,
};
use common::{Fake, Owned, act, head_text, rules};

use RuleSetKind::{HttpAfterResponse, HttpRequest, HttpResponse, Redirect, TcpConnection};

/// The request after these rules.
fn after(lines: &[&str], fake: &mut Fake) -> String {
    assert_eq!(
        act(HttpRequest, lines, fake),
        Verdict::Continue,
        "{lines:?}"
    );
    fake.request_text()
}

fn get(target: &str) -> Fake {
    Fake::asking(
        "GET",
        target,
        &[("host", "h"), ("x-a", "1"), ("x-a", "2, 3"), ("x-b", "q")],
    )
}

#[test]
fn headers_are_set_added_and_removed() {
    let set = after(&["set-header X-A %[src]-%[req.hdr(x-a)]"], &mut get("/"));
    assert_eq!(set, "GET /\nhost: h\nx-b: q\nx-a: 127.0.0.1-3\n");
    let added = after(&["add-header X-A \" z \""], &mut get("/"));
    assert!(added.ends_with("x-b: q\nx-a: z\n"), "{added}");
    assert_eq!(
        after(&["del-header x-A"], &mut get("/")),
        "GET /\nhost: h\nx-b: q\n"
    );
    for (how, left) in [
        ("X- -m beg", "host: h\n"),
        ("b -m end", "host: h\nx-a: 1\nx-a: 2, 3\n"),
        ("-a -m sub", "host: h\nx-b: q\n"),
        ("^x-[b-z]$ -m reg", "host: h\nx-a: 1\nx-a: 2, 3\n"),
        ("x-b -m str", "host: h\nx-a: 1\nx-a: 2, 3\n"),
    ] {
        assert_eq!(
            after(&[&format!("del-header {how}")], &mut get("/")),
            format!("GET /\n{left}")
        );
    }
}

#[test]
fn headers_are_rewritten_by_lines_and_by_members() {
    let lines = after(
        &["replace-header x-a (.),.(.) \\2\\x2c\\\\\\\\\\1"],
        &mut get("/"),
    );
    assert!(lines.contains("x-a: 1\nx-a: 3,\\2\n"), "{lines}");
    let members = after(&["replace-value x-a [13] <\\0%[src_port]>"], &mut get("/"));
    assert!(
        members.contains("x-a: <15000>\nx-a: 2,<35000>\n"),
        "{members}"
    );
    let none = after(
        &["replace-value x-a zzz y", "replace-header nothing .* y"],
        &mut get("/"),
    );
    assert_eq!(none, get("/").request_text());
}

#[test]
fn the_request_line_is_rewritten() {
    for (line, target) in [
        ("set-path /new%[path]", "/new/p/q?a=b"),
        ("set-pathq /new?x", "/new?x"),
        ("set-query c=d", "/p/q?c=d"),
        ("set-uri http://o/z?y", "http://o/z?y"),
        ("replace-path /p/(.*) /\\1", "/q?a=b"),
        ("replace-pathq (.*)\\?(.*) \\1/\\2", "/p/q/a=b"),
        ("replace-uri .*=(.*) /\\1", "/b"),
        ("replace-path nothing /x", "/p/q?a=b"),
    ] {
        let text = after(&[line], &mut get("/p/q?a=b"));
        assert!(
            text.starts_with(&format!("GET {target}\n")),
            "{line}: {text}"
        );
    }
    assert!(after(&["set-method PUT"], &mut get("/")).starts_with("PUT /\n"));
}

#[test]
fn a_failed_rewrite_is_500_unless_strict_mode_is_off() {
    let failure = Verdict::Respond(LocalResponse {
        cause: ResponseCause::FailedRewrite,
        status: 500,
        page: ResponseContent::Proxy,
    });
    let tight = || {
        let mut fake = get("/");
        let limits = HeadLimits {
            head_bytes_max: 100,
            ..HeadLimits::default()
        };
        fake.request
            .as_mut()
            .unwrap()
            .fields_mut()
            .set_limits(limits);
        fake
    };
    let long = format!("set-header x-long {}", "y".repeat(100));
    let mut fake = tight();
    let before = fake.request_text();
    assert_eq!(
        act(HttpRequest, &[&long, "set-header x-b z"], &mut fake),
        failure
    );
    assert_eq!((fake.failures, fake.request_text()), (1, before));

    let mut fake = tight();
    let text = after(&["strict-mode off", &long, "set-header x-b z"], &mut fake);
    assert_eq!(fake.failures, 1);
    assert!(text.ends_with("x-b: z\n"), "{text}");

    // Bytes that are not allowed in a request line or a header are escaped.
    for line in [
        "set-method \"a b\"",
        "set-path \"/a b\"",
        "replace-path .* \"/ \"",
        "set-header a x\\ny",
    ] {
        assert_eq!(act(HttpRequest, &[line], &mut get("/")), failure, "{line}");
    }
    // An invalid name is left out, as the parser warned.
    assert_eq!(
        after(&["set-header x: y"], &mut get("/")),
        get("/").request_text()
    );
}

#[test]
fn rules_stop_where_they_should() {
    let seen = |rule_set, lines: &[&str]| act(rule_set, lines, &mut get("/stop"));
    assert_eq!(
        seen(HttpRequest, &["allow if { path /stop }", "deny"]),
        Verdict::Allow
    );
    assert_eq!(
        seen(HttpRequest, &["allow unless { path /stop }"]),
        Verdict::Continue
    );
    assert_eq!(seen(HttpRequest, &["reject"]), Verdict::Close);
    assert_eq!(
        seen(TcpConnection, &["reject if { src 127.0.0.0/8 }"]),
        Verdict::Close
    );
    assert_eq!(seen(TcpConnection, &["accept", "reject"]), Verdict::Allow);
    // A rule without an implementation lets nothing through.
    assert!(matches!(
        seen(HttpRequest, &["cache-use c"]),
        Verdict::Respond(_)
    ));
    assert_eq!(
        seen(TcpConnection, &["silent-drop", "reject"]),
        Verdict::SilentDrop(None)
    );
    assert_eq!(
        seen(HttpRequest, &["silent-drop rst-ttl 3"]),
        Verdict::SilentDrop(Some(3))
    );
}

#[test]
fn answers_name_their_page() {
    let page = |line: &str| match act(HttpRequest, &[line], &mut get("/")) {
        Verdict::Respond(answer) => answer,
        other => panic!("{line}: {other:?}"),
    };
    let answer = |cause, status, page| LocalResponse {
        cause,
        status,
        page,
    };
    assert_eq!(
        page("deny"),
        answer(ResponseCause::Deny, 403, ResponseContent::Proxy)
    );
    assert_eq!(
        page("deny deny_status 429"),
        answer(ResponseCause::Deny, 429, ResponseContent::Proxy)
    );
    assert_eq!(
        page("deny status 429"),
        answer(ResponseCause::Deny, 429, ResponseContent::Made)
    );
    assert_eq!(
        page("return status 404 default-errorfiles"),
        answer(ResponseCause::Return, 404, ResponseContent::Proxy)
    );
    assert_eq!(
        page("return status 404 errorfiles none"),
        answer(ResponseCause::Return, 404, ResponseContent::Proxy)
    );
    let raw: Arc<[u8]> = common::no_files("/page").unwrap().into();
    assert_eq!(
        page("return errorfile /page"),
        answer(ResponseCause::Return, 200, ResponseContent::Raw(raw))
    );

    let mut fake = get("/").answered(200, &[]);
    let denied = act(HttpResponse, &["deny"], &mut fake);
    assert_eq!(
        denied,
        Verdict::Respond(answer(ResponseCause::Deny, 502, ResponseContent::Proxy))
    );
}

#[test]
fn made_answers_have_head_and_body() {
    let made = |line: &str| {
        let mut fake = get("/");
        let verdict = act(HttpRequest, &[line], &mut fake);
        assert!(
            matches!(
                verdict,
                Verdict::Respond(LocalResponse {
                    page: ResponseContent::Made,
                    ..
                })
            ),
            "{line}"
        );
        (head_text(&fake.answer), common::lossy(&fake.body))
    };
    assert_eq!(
        made("return status 200 content-type text/plain lf-string \"%[src]!\" hdr X-One %[dst]"),
        (
            "200 OK\nx-one: 127.0.0.2\ncontent-length: 10\ncontent-type: text/plain\n".to_owned(),
            "127.0.0.1!".to_owned()
        )
    );
    assert_eq!(
        made("return status 204"),
        ("204 No Content\n".to_owned(), String::new())
    );
    assert_eq!(made("return content-type a file /text").1, "from a file");
    assert_eq!(
        made("return content-type a lf-file /fmt").1,
        "you are 127.0.0.1"
    );
    assert_eq!(made("return file /empty").0, "200 OK\ncontent-length: 0\n");
}

#[test]
fn pages_of_sections_are_linked() {
    let mut sets = ballast_rules::RuleSets {
        http_request: rules(HttpRequest, &["deny status 403 errorfiles pages"]).into(),
        ..Default::default()
    };
    let page: Arc<[u8]> = (*b"HTTP/1.0 403 No\r\n\r\n").into();
    sets.link_pages(|name, status| ((name, status) == ("pages", 403)).then(|| Arc::clone(&page)));
    let verdict = run(&sets.http_request, &mut get("/"), &mut Workspace::new());
    let raw = ResponseContent::Raw(page);
    assert_eq!(
        verdict,
        Verdict::Respond(LocalResponse {
            cause: ResponseCause::Deny,
            status: 403,
            page: raw
        })
    );
}

#[test]
fn redirects_go_where_they_say() {
    let to = |rule_set, target: &str, line: &str| {
        let mut fake = get(target);
        match act(rule_set, &[line], &mut fake) {
            Verdict::Respond(answer) => assert_eq!(answer.cause, ResponseCause::Redirect),
            Verdict::Continue => return "none".to_owned(),
            other => panic!("{other:?}"),
        }
        assert!(fake.body.is_empty());
        format!(
            "{} {}",
            fake.answer.status(),
            common::lossy(fake.answer.fields().first(b"location").unwrap())
        )
    };
    assert_eq!(
        to(HttpRequest, "/a?b", "redirect scheme https code 301"),
        "301 https://h/a?b"
    );
    assert_eq!(
        to(HttpRequest, "/a?b", "redirect location /c keep-query"),
        "302 /c?b"
    );
    assert_eq!(
        to(
            HttpRequest,
            "/a?b",
            "redirect prefix / append-slash drop-query"
        ),
        "302 /a/"
    );
    assert_eq!(
        to(HttpRequest, "http://o/a?b", "redirect prefix /p"),
        "302 /p/a?b"
    );
    assert_eq!(
        to(HttpRequest, "*", "redirect scheme https"),
        "302 https://h/"
    );
    assert_eq!(
        to(
            HttpRequest,
            "/",
            "redirect location %[req.hdr(no)] ignore-empty"
        ),
        "none"
    );
    // The old keyword takes literal text.
    assert_eq!(to(Redirect, "/", "location /%[src]"), "302 /%[src]");
}

#[test]
fn variables_are_set_under_conditions() {
    let mut fake = get("/");
    let lines = [
        "set-var(txn.a) int(5)",
        "set-var(txn.a,ifnotexists) int(6)",
        "set-var(txn.b,ifexists) int(6)",
        "set-var(txn.c,ifnotempty) req.hdr(none)",
        "set-var(txn.d,ifempty) str()",
        "set-var-fmt(req.e) \"%[src]:%[var(txn.a)]\"",
        "set-var(txn.a,ifgt) int(4)",
        "set-var(txn.a,ifgt) int(9)",
        "set-var(txn.f) src",
        "unset-var(txn.f)",
        "set-var(txn.f,ifset) src",
        "set-var(proc.g,ifexists) bool(true)",
        "set-var(txn.m) method",
    ];
    assert_eq!(act(HttpRequest, &lines, &mut fake), Verdict::Continue);
    assert_eq!(fake.var("txn.a"), Some(&Owned::Int(4)));
    assert_eq!(fake.var("txn.b"), None);
    assert_eq!(fake.var("txn.c"), None);
    assert_eq!(fake.var("txn.d"), Some(&Owned::Str(Vec::new())));
    assert_eq!(
        fake.var("req.e"),
        Some(&Owned::Str(b"127.0.0.1:5".to_vec()))
    );
    assert_eq!(fake.var("txn.f"), None);
    assert_eq!(fake.var("proc.g"), Some(&Owned::Bool(true)));
    assert_eq!(fake.var("txn.m"), Some(&Owned::Meth(b"GET".to_vec())));
}

#[test]
fn captures_levels_and_statuses_are_set() {
    let mut fake = get("/long");
    let lines = [
        "capture src len 20",
        "capture path id 4",
        "set-log-level silent",
    ];
    act(HttpRequest, &lines, &mut fake);
    assert_eq!(fake.request_captures[&0], b"127.0.0.1");
    assert_eq!(fake.request_captures[&4], b"/long");
    assert_eq!(fake.level, Some(LogLevel::Silent));

    let mut fake = get("/").answered(200, &[("server", "s"), ("set-cookie", "a=b; path=/")]);
    let lines = [
        "set-status 503 reason \"Slow Down\"",
        "capture res.hdr(server) id 1",
        "replace-header set-cookie (.*) \"\\1; Secure\"",
        "del-header server",
        "set-log-level err",
    ];
    act(HttpResponse, &lines, &mut fake);
    assert_eq!(
        fake.response_text(),
        "503 Slow Down\nset-cookie: a=b; path=/; Secure\n"
    );
    assert_eq!(fake.response_captures[&1], b"s");
    assert_eq!(fake.level, Some(LogLevel::Severity(3)));
    act(HttpAfterResponse, &["set-status 431"], &mut fake);
    assert!(
        fake.response_text()
            .starts_with("431 Request Header Fields Too Large\n")
    );
}

#[test]
fn settings_are_made_for_the_exchange() {
    let settings = |rules: &[&str]| {
        let mut fake = Fake::asking("GET", "/", &[("x", "7")]);
        assert_eq!(act(HttpRequest, rules, &mut fake), Verdict::Continue);
        fake.settings
    };
    let rules = [
        "set-src str(192.0.2.1)",
        "set-dst str(nothing)",
        "set-src-port int(65537)",
        "set-fc-tos 300",
        "set-bc-mark req.hdr(x)",
        "set-bc-tos req.hdr(y)",
        "set-timeout server 5s",
        "set-timeout tunnel int(0)",
        "set-retries 3",
        "set-retries int(101)",
        "disable-l7-retry",
        "set-nice 5",
    ];
    let expected = [
        ExchangeSetting::SourceAddress([192, 0, 2, 1].into()),
        ExchangeSetting::SourcePort(1),
        ExchangeSetting::ClientTos(44),
        ExchangeSetting::ServerMark(7),
        ExchangeSetting::Timeout(SettableTimeout::Server, Duration::from_secs(5)),
        ExchangeSetting::RetryCountMax(3),
        ExchangeSetting::DisableL7Retry,
    ];
    assert_eq!(settings(&rules), expected);
}

#[test]
fn hints_that_follow_each_other_belong_together() {
    let mut fake = Fake::asking("GET", "/", &[]);
    let rules = [
        "early-hint A 1",
        "early-hint b 2",
        "set-nice 1",
        "early-hint c 3",
        "early-hint d 4 if TRUE",
        "early-hint e 5",
    ];
    act(HttpRequest, &rules, &mut fake);
    let hints = [
        (0, "a: 1"),
        (0, "b: 2"),
        (3, "c: 3"),
        (4, "d: 4"),
        (4, "e: 5"),
    ];
    let hints = hints.map(|(group, hint)| (group, hint.to_owned()));
    assert_eq!(fake.hints, hints);
}
