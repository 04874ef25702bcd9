//! Proxy lines and the model they give.

use std::time::Duration;

use ballast_model::{
    Balance, CheckMethod, CheckPort, CheckRule, ConnectionMode, CookieMode, ErrorPage,
    ExpectSubject, HashFunction, HttpReuse, LogEndpoint, Mode, PersistenceAction, ProtocolCheck,
    RouteTarget, Splicing, UseServerTarget,
};
use ballast_syntax::Severity;

use crate::LoadedConfig;
use crate::tests::{load_with_stand_ins, messages};

const TIMEOUTS: &str = " timeout client 1s\n timeout server 1s\n timeout connect 1s\n";

/// A frontend and a backend in mode http with these lines, which must be accepted.
fn proxies(front: &str, back: &str) -> LoadedConfig {
    let text = format!(
        "defaults\n mode http\n{TIMEOUTS}frontend f\n bind :80\n default_backend b\n{front}\n\
         backend b\n{back}\n server s1 192.0.2.1:80\n server s2 192.0.2.2:80\n"
    );
    let loaded = load_with_stand_ins(&text);
    assert_eq!(
        messages(&loaded, Severity::Alert),
        Vec::<String>::new(),
        "{text}"
    );
    loaded
}

fn front(lines: &str) -> ballast_model::Frontend {
    std::sync::Arc::unwrap_or_clone(proxies(lines, "").config.frontends.remove(0))
}

fn back(lines: &str) -> ballast_model::Backend {
    std::sync::Arc::unwrap_or_clone(proxies("", lines).config.backends.remove(0))
}

/// The alerts about lines of a frontend.
fn refusals(lines: &str) -> Vec<String> {
    let text = format!(
        "defaults\n mode http\n{TIMEOUTS}frontend f\n bind :80\n{lines}\nbackend b\n \
         server s1 192.0.2.1:80\n"
    );
    messages(&load_with_stand_ins(&text), Severity::Alert)
}

#[test]
fn routes_keep_their_order_and_kind() {
    let front = front(
        " acl a path /a\n use_backend b if a\n use_backend %[req.hdr(host),lower] unless a\n \
         use_backend b",
    );
    assert_eq!(front.routes.len(), 3);
    assert_eq!(front.routes[0].target, RouteTarget::Static("b".into()));
    assert!(matches!(front.routes[1].target, RouteTarget::Dynamic(_)));
    assert_eq!(
        front.routes[1].condition.as_ref().unwrap().to_string(),
        "unless a"
    );
    assert!(front.routes[2].condition.is_none());
    assert_eq!(front.default_backend.as_deref(), Some("b"));
}

#[test]
fn use_server_needs_a_condition_and_a_server() {
    let back = back(" use-server s2 if { path /a }\n use-server %[req.hdr(x)] if { path /b }");
    assert_eq!(
        back.use_servers[0].target,
        UseServerTarget::Static("s2".into())
    );
    assert!(matches!(
        back.use_servers[1].target,
        UseServerTarget::Dynamic(_)
    ));
}

#[test]
fn balance_in_all_forms() {
    let of = |line: &str| back(&format!(" {line}")).balance;
    assert_eq!(of("balance"), Balance::RoundRobin);
    assert_eq!(of("balance random(3)"), Balance::Random(3));
    assert_eq!(of("balance random"), Balance::Random(2));
    assert_eq!(
        of("balance hdr(Host) use_domain_only"),
        Balance::Header {
            name: "Host".into(),
            domain_only: true
        }
    );
    let Balance::Uri(key) = of("balance uri whole len 10 depth 3") else {
        panic!("not a uri");
    };
    assert!(key.whole && !key.path_only);
    assert_eq!((key.length_max, key.depth_max), (Some(10), Some(3)));
    assert!(matches!(
        of("balance hash req.hdr(host),lower"),
        Balance::Hash(_)
    ));
    let back =
        back(" balance source\n hash-type consistent wt6 avalanche\n hash-balance-factor 150");
    assert!(back.hash_type.consistent && back.hash_type.avalanche);
    assert_eq!(back.hash_type.function, HashFunction::Wt6);
    assert_eq!(back.hash_balance_factor, 150);
}

#[test]
fn cookie_with_everything() {
    let cookie = back(
        " cookie SRV insert indirect nocache postonly preserve httponly secure domain .a.net \
         domain .b.net maxidle 30m maxlife 8h dynamic attr SameSite=Lax",
    )
    .cookie
    .unwrap();
    assert_eq!(cookie.mode, CookieMode::Insert);
    assert!(cookie.indirect && cookie.nocache && cookie.postonly && cookie.preserve);
    assert!(cookie.httponly && cookie.secure && cookie.dynamic);
    assert_eq!(cookie.domains, [".a.net", ".b.net"]);
    assert_eq!(cookie.idle_max, Some(Duration::from_secs(1800)));
    assert_eq!(cookie.life_max, Some(Duration::from_secs(8 * 3600)));
    assert_eq!(cookie.attributes, ["SameSite=Lax"]);
}

#[test]
fn timeouts_go_to_the_sides_that_know_them() {
    let loaded = proxies(
        " timeout http-request 5s\n timeout client 0",
        " timeout http-request 6s\n timeout queue 100\n timeout tunnel 1h",
    );
    let (front, back) = (&loaded.config.frontends[0], &loaded.config.backends[0]);
    assert_eq!(front.timeouts.http_request, Some(Duration::from_secs(5)));
    assert_eq!(front.timeouts.client, None);
    assert_eq!(back.timeouts.http_request, Some(Duration::from_secs(6)));
    assert_eq!(back.timeouts.queue, Some(Duration::from_millis(100)));
    assert_eq!(back.timeouts.connect, Some(Duration::from_secs(1)));
    assert_eq!(back.timeouts.tunnel, Some(Duration::from_secs(3600)));
}

#[test]
fn the_last_ending_wins_and_no_undoes_its_own() {
    let of = |lines: &str| front(lines).common.connection_mode;
    assert_eq!(of(""), ConnectionMode::KeepAlive);
    assert_eq!(
        of(" option httpclose\n option http-server-close"),
        ConnectionMode::ServerClose
    );
    assert_eq!(
        of(" option httpclose\n no option http-server-close"),
        ConnectionMode::Close
    );
    assert_eq!(
        of(" option httpclose\n no option httpclose"),
        ConnectionMode::KeepAlive
    );
}

#[test]
fn switches_are_undone_by_no_and_default() {
    let options = |lines: &str| front(lines).log;
    assert!(options(" option dontlognull").skip_null);
    assert!(!options(" option dontlognull\n no option dontlognull").skip_null);
    assert!(!options(" option dontlognull\n default option dontlognull").skip_null);
    assert!(back(" option abortonclose").common.abort_on_close);
    assert!(
        !back(" option abortonclose\n no option abortonclose")
            .common
            .abort_on_close
    );
}

#[test]
fn retries_and_redispatch() {
    let back = back(" retries 5\n option redispatch 2\n retry-on 503 empty-response");
    assert_eq!(back.retry_count_max, 5);
    assert_eq!(back.redispatch.unwrap().interval, 2);
    assert!(back.retry_on.empty_response && !back.retry_on.conn_failure);
    assert_eq!(back.retry_on.statuses, [503]);
    assert_eq!(
        super::tests::back(" option redispatch")
            .redispatch
            .unwrap()
            .interval,
        -1
    );
    assert!(
        super::tests::back(" option redispatch 0")
            .redispatch
            .is_none()
    );
    assert_eq!(super::tests::back("").retry_count_max, 3);
}

fn http_rules(lines: &str) -> Vec<CheckRule> {
    match back(lines).check {
        CheckMethod::Http { rules, .. } => rules,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_bare_httpchk_sends_and_expects() {
    let rules = http_rules(" option httpchk");
    let [CheckRule::HttpSend(send), CheckRule::Expect(expect)] = rules.as_slice() else {
        panic!("{rules:?}");
    };
    assert_eq!(
        (&send.method, &send.uri, &send.version),
        (&None, &None, &None)
    );
    assert_eq!(expect.subject, ExpectSubject::Status(vec![(200, 399)]));
}

#[test]
fn http_check_send_is_completed_by_the_option() {
    let rules = http_rules(
        " http-check connect port 81\n http-check send hdr Host a.net\n http-check expect ! \
         status 500-599\n option httpchk GET /health HTTP/1.1",
    );
    let [
        CheckRule::Connect(connect),
        CheckRule::HttpSend(send),
        CheckRule::Expect(expect),
    ] = rules.as_slice()
    else {
        panic!("{rules:?}");
    };
    assert_eq!(connect.port, Some(CheckPort::Fixed(81)));
    assert_eq!(send.method.as_deref(), Some("GET"));
    assert_eq!(send.uri.as_deref(), Some("/health"));
    assert_eq!(send.version.as_deref(), Some("HTTP/1.1"));
    assert_eq!(send.headers[0].0, "Host");
    assert!(expect.negated);
}

#[test]
fn an_own_request_of_a_check_forgets_that_of_the_defaults() {
    for (own, method, uri) in [
        ("option httpchk", None, None),
        ("option httpchk /own", None, Some("/own")),
        ("http-check send uri /own", None, Some("/own")),
        ("http-check send hdr x b", None, None),
        // A rule that is no request leaves the option's.
        (
            "http-check expect status 200",
            Some("HEAD"),
            Some("/health"),
        ),
    ] {
        let text = format!(
            "defaults\n mode http\n{TIMEOUTS} option httpchk HEAD /health\n http-check send body \
             c\n http-check expect status 201\nbackend b\n {own}\n server s 192.0.2.1:80\n"
        );
        let loaded = load_with_stand_ins(&text);
        assert_eq!(messages(&loaded, Severity::Alert), Vec::<String>::new());
        let CheckMethod::Http { rules, .. } = &loaded.config.backends[0].check else {
            panic!("{:?}", loaded.config.backends[0].check);
        };
        let [CheckRule::HttpSend(send), CheckRule::Expect(expect)] = rules.as_slice() else {
            panic!("{own}: {rules:?}");
        };
        let seen = (send.method.as_deref(), send.uri.as_deref(), &send.body);
        assert_eq!(seen, (method, uri, &None), "{own}");
        assert_ne!(
            expect.subject,
            ExpectSubject::Status(vec![(201, 201)]),
            "{own}"
        );
    }
}

#[test]
fn states_of_http_checks_are_ignored_by_other_checks() {
    for (option, ignored) in [
        ("option ssl-hello-chk", true),
        ("option tcp-check", true),
        ("option httpchk", false),
        ("", false),
    ] {
        let text = format!(
            "defaults\n mode http\n{TIMEOUTS} http-check send-state\nbackend b\n {option}\n http-check \
             disable-on-404\n server s 192.0.2.1:80 check\nbackend c\n server s 192.0.2.1:80 track b/s\n"
        );
        let loaded = load_with_stand_ins(&text);
        let said = messages(&loaded, Severity::Warning);
        let expected: &[&str] = match ignored {
            true => &[
                "'disable-on-404' will be ignored for backend 'b' (requires 'option httpchk')",
                "'send-state' will be ignored for backend 'b' (requires 'option httpchk')",
            ],
            false => &[],
        };
        assert_eq!(said, expected, "{option}");
        // Servers that track must agree on what holds.
        let agree = messages(&loaded, Severity::Alert).is_empty();
        assert_eq!(agree, ignored, "{option}");
    }
}

#[test]
fn headers_hidden_in_the_version_are_refused() {
    let line = " option httpchk GET / HTTP/1.1\\r\\nHost:\\ a.net\n";
    let loaded = load_with_stand_ins(&format!("backend b\n mode http\n{TIMEOUTS}{line}"));
    let said = messages(&loaded, Severity::Alert);
    assert!(said[0].contains("Use 'http-check send'"), "{said:?}");
}

#[test]
fn own_check_rules_replace_those_of_the_defaults() {
    let text = format!(
        "defaults\n mode http\n{TIMEOUTS} option tcp-check\n tcp-check send a\n tcp-check \
         expect string b\nbackend one\n server s 192.0.2.1:80\nbackend two\n tcp-check connect\n \
         server s 192.0.2.1:80\n"
    );
    let loaded = load_with_stand_ins(&text);
    assert_eq!(messages(&loaded, Severity::Alert), Vec::<String>::new());
    let count = |at: usize| match &loaded.config.backends[at].check {
        CheckMethod::Tcp { rules, .. } => rules.len(),
        other => panic!("{other:?}"),
    };
    assert_eq!((count(0), count(1)), (2, 1));
}

#[test]
fn protocol_checks_are_named() {
    let of = |line: &str| back(&format!(" {line}")).check;
    assert_eq!(
        of("option redis-check"),
        CheckMethod::Protocol(ProtocolCheck::Redis)
    );
    assert_eq!(
        of("option mysql-check user u pre-41"),
        CheckMethod::Protocol(ProtocolCheck::Mysql {
            user: Some("u".into()),
            before_41: true
        })
    );
    assert_eq!(
        of("option smtpchk"),
        CheckMethod::Protocol(ProtocolCheck::Smtp { hello: None })
    );
}

#[test]
fn logs_inherit_and_are_taken_back() {
    let text = format!(
        "global\n log 192.0.2.9 local0\ndefaults\n mode http\n{TIMEOUTS} log global\n option \
         httplog\nfrontend f\n bind :80\n log 192.0.2.8:515 local1 info\nfrontend g\n bind :81\n \
         no log\n"
    );
    let loaded = load_with_stand_ins(&text);
    let fronts = &loaded.config.frontends;
    assert_eq!(fronts[0].common.log_targets.len(), 2);
    assert!(matches!(
        fronts[0].common.log_targets[1].endpoint,
        LogEndpoint::Udp(_)
    ));
    assert!(fronts[0].log.format.is_some());
    assert!(fronts[1].common.log_targets.is_empty());
}

#[test]
fn a_format_that_replaces_another_in_defaults_is_warned_about() {
    let text = format!(
        "defaults\n mode http\n{TIMEOUTS} log 192.0.2.9 local0\n option httplog\n log-format \
         %ci\nfrontend f\n bind :80\n"
    );
    let said = messages(&load_with_stand_ins(&text), Severity::Warning);
    assert_eq!(
        said,
        ["'log-format' overrides previous 'option httplog' in 'defaults' section"]
    );
}

#[test]
fn error_pages_follow_the_order_of_lines() {
    let text = format!(
        "http-errors site\n errorfile 503 /dev/null\n errorfile 404 /dev/null\ndefaults\n mode \
         http\n{TIMEOUTS}frontend f\n bind :80\n errorfiles site\n errorloc303 503 http://x/\n"
    );
    let loaded = load_with_stand_ins(&text);
    let pages = &loaded.config.frontends[0].common.error_pages;
    assert_eq!(
        pages.page(503),
        Some(&ErrorPage::Location {
            status: 303,
            location: "http://x/".into()
        })
    );
    assert!(matches!(pages.page(404), Some(ErrorPage::Raw { .. })));
}

#[test]
fn http_error_makes_a_whole_response() {
    let front = front(" http-error status 429 content-type text/plain string slow hdr X-A b");
    let Some(ErrorPage::Raw { bytes, .. }) = front.common.error_pages.page(429) else {
        panic!("no page");
    };
    assert_eq!(
        String::from_utf8_lossy(bytes),
        "HTTP/1.1 429 Too Many Requests\r\ncontent-length: 4\r\ncontent-type: text/plain\r\n\
         X-A: b\r\n\r\nslow"
    );
}

#[test]
fn http_error_with_a_format_is_made_by_a_rule_of_its_own() {
    let loaded = load_with_stand_ins(
        "defaults\n mode http\n http-error status 404 content-type a/b string x hdr a %[path]\n\
         frontend f\n bind 127.0.0.1:80\n\
         http-error status 503 content-type a/b lf-string %[path]\n",
    );
    let common = &loaded.config.frontends[0].common;
    assert_eq!(common.error_pages.page(404), Some(&ErrorPage::Reply(0)));
    assert_eq!(common.error_pages.page(503), Some(&ErrorPage::Reply(1)));
    assert_eq!(common.rules.error_replies.len(), 2);
}

#[test]
fn forwarding_headers() {
    let front = front(" option forwardfor except 10.0.0.0/8 header X-C if-none");
    let forward = front.common.forward_for.unwrap();
    assert_eq!(forward.header, "X-C");
    assert!(forward.if_none);
    assert!(
        forward
            .except
            .unwrap()
            .contains("10.1.2.3".parse().unwrap())
    );
    let forwarded = back(" option forwarded").forwarded.unwrap();
    assert!(forwarded.proto && forwarded.for_.is_some() && forwarded.host.is_none());
}

#[test]
fn masks_are_bits_or_addresses() {
    let of = super::forwarding::network;
    assert_eq!(of("10.0.0.0/255.0.0.0"), of("10.0.0.0/8"));
    assert_eq!(of("10.0.0.0/255.0.255.0"), None);
    assert_eq!(of("10.0.0.0/33"), None);
    assert_eq!(of("::1").unwrap().prefix_bits, 128);
    assert_eq!(of("host"), None);
}

#[test]
fn captures_and_numbers() {
    let front = front(
        " capture request header Host len 32\n capture cookie SID* len 20\n declare capture \
         request len 9\n maxconn 500\n rate-limit sessions 10\n backlog 7",
    );
    assert_eq!(front.request_captures[0].value_bytes_max, 32);
    let cookie = front.cookie_capture.unwrap();
    assert!(cookie.prefix && cookie.name == "SID");
    assert_eq!(
        (
            &front.request_captures[1].header,
            front.request_captures[1].value_bytes_max
        ),
        (&None, 9)
    );
    assert_eq!(front.connection_count_max, Some(500));
    assert_eq!(front.session_rate_max, Some(10));
    assert_eq!(front.backlog, Some(7));
}

#[test]
fn splicing_is_unsaid_wanted_or_refused() {
    let splicing = |lines| front(lines).common.splicing;
    assert_eq!(splicing(""), Splicing::default());
    let auto = |auto| Splicing {
        auto,
        ..Splicing::default()
    };
    assert_eq!(splicing(" option splice-auto"), auto(Some(true)));
    assert_eq!(splicing(" no option splice-auto"), auto(Some(false)));
    let forced =
        splicing(" option splice-request\n option splice-response\n no option splice-request");
    assert!(forced.response && !forced.request && forced.is_wanted());
}

#[test]
fn both_halves_of_a_listen_share_what_is_common() {
    let text = format!(
        "listen l\n mode http\n{TIMEOUTS} bind :80\n option forwardfor\n http-reuse always\n \
         server s 192.0.2.1:80\n"
    );
    let loaded = load_with_stand_ins(&text);
    let (front, back) = (&loaded.config.frontends[0], &loaded.config.backends[0]);
    assert_eq!(front.common.mode, Mode::Http);
    assert_eq!(front.common.forward_for, back.common.forward_for);
    assert_eq!(back.http_reuse, HttpReuse::Always);
    assert_eq!(front.default_backend.as_deref(), Some("l"));
}

#[test]
fn rules_of_named_defaults_run_first() {
    let text = format!(
        "defaults base\n mode http\n{TIMEOUTS} acl a path /a\n http-request set-header X-A 1 if \
         a\nfrontend f from base\n bind :80\n http-request set-header X-B 2\n"
    );
    let loaded = load_with_stand_ins(&text);
    assert_eq!(messages(&loaded, Severity::Alert), Vec::<String>::new());
    let rules = &loaded.config.frontends[0].common.rules.http_request;
    let words: Vec<_> = rules.iter().map(|rule| rule.words[1].as_str()).collect();
    assert_eq!(words, ["X-A", "X-B"]);
}

#[test]
fn persistence_rules_keep_their_order() {
    let back = back(" force-persist if { path /a }\n ignore-persist unless { path /b }");
    let rules: Vec<_> = back
        .persistence_rules
        .iter()
        .map(|rule| (rule.action, rule.condition.to_string()))
        .collect();
    assert_eq!(
        rules,
        [
            (PersistenceAction::Force, "if { path /a }".to_owned()),
            (PersistenceAction::Ignore, "unless { path /b }".to_owned()),
        ]
    );
}

#[test]
fn a_captured_cookie_is_cut_to_what_the_process_allows() {
    let text = format!(
        "defaults\n mode http\n{TIMEOUTS}frontend f\n bind :80\n capture cookie a len 100\n\
         global\n tune.http.cookielen 70\n"
    );
    let loaded = load_with_stand_ins(&text);
    let capture = loaded.config.frontends[0].cookie_capture.as_ref().unwrap();
    assert_eq!(capture.value_bytes_max, 70);
    let warned = "truncating capture length to 70 bytes for frontend 'f'.".to_owned();
    assert!(messages(&loaded, Severity::Warning).contains(&warned));
    assert_eq!(
        front(" capture cookie a len 63")
            .cookie_capture
            .unwrap()
            .value_bytes_max,
        63
    );
}

#[test]
fn a_switch_of_accepting_has_three_positions() {
    let accept = |line: &str| front(line).options.smart_accept;
    assert_eq!(accept(""), None);
    assert_eq!(accept(" option tcp-smart-accept"), Some(true));
    assert_eq!(accept(" no option tcp-smart-accept"), Some(false));
}

#[test]
fn what_is_not_served_is_named() {
    let loaded = proxies(" compression algo gzip", " be-unpublished");
    let words: Vec<_> = loaded
        .unimplemented
        .iter()
        .map(|one| one.word.as_str())
        .collect();
    assert_eq!(words, ["compression algo", "be-unpublished"]);
}

/// Wherever the delay is written.
#[test]
fn rules_may_wait_for_data() {
    let delay = " tcp-request inspect-delay 5s\n";
    for (of_defaults, of_frontend) in [(delay, ""), ("", delay)] {
        let loaded = load_with_stand_ins(&format!(
            "defaults d\n mode tcp\n timeout client 1s\n{of_defaults}\
             frontend f from d\n bind 192.0.2.1:1\n{of_frontend} \
             tcp-request content accept if {{ req.len gt 4 }}\n"
        ));
        assert!(loaded.unimplemented.is_empty(), "{of_defaults:?}");
        let rules = &loaded.config.frontends[0].common.rules;
        assert_eq!(
            rules.request_inspect_delay,
            Some(Duration::from_secs(5)),
            "{of_defaults:?}"
        );
    }
}

#[test]
fn near_words_are_suggested() {
    let cases = [
        (
            " optoin httplog",
            "unknown keyword 'optoin' in 'frontend' section; did you mean 'option' maybe ?",
        ),
        (
            " option httplogg",
            "unknown option 'httplogg'; did you mean 'httplog' maybe ?",
        ),
        (
            " mode htttp",
            "unknown proxy mode 'htttp'; did you mean 'http' maybe ?",
        ),
    ];
    for (line, message) in cases {
        assert_eq!(refusals(line), [message]);
    }
}

#[test]
fn all_errors_come_at_once_with_their_places() {
    let text = format!(
        "frontend f\n mode http\n{TIMEOUTS} bind :80\n maxconn\n use_backend b if nosuch\n \
         timeout client 5x\nbackend b\n balance uri len x\n server s 192.0.2.1:80\n"
    );
    let loaded = load_with_stand_ins(&text);
    let lines: Vec<u32> = loaded
        .diagnostics
        .iter()
        .filter(|said| said.severity == Severity::Alert)
        .map(|said| loaded.sources.locate(said.span.unwrap()).line)
        .collect();
    assert_eq!(lines, [7, 8, 9, 11]);
}

#[test]
fn rules_run_in_an_order_of_their_own() {
    let loaded = proxies(
        " log 192.0.2.9 local0\n use_backend b if { path /a }\n http-request deny if { path /b }\n \
         tcp-request content accept",
        "",
    );
    assert_eq!(
        messages(&loaded, Severity::Warning),
        [
            "a 'http-request' rule placed after a 'use_backend' rule will still be processed before",
            "a 'tcp-request content' rule placed after an 'http-request' rule will still be \
             processed before",
        ]
    );
}
