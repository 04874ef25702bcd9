//! No value ends a line: each keyword that writes a part of a head gets line ends, NUL and a second
//! request, and nobody receives a field or a request that was not sent.

use std::fmt::Write as _;

use ballast_tests::{Client, Origin, Program, Proxy, Request, Response, free_port};

/// The samples with the value from the request.
const ASKED: &str = "%[url_param(v),url_dec]";
/// The same, where the request is not available any more.
const KEPT: &str = "%[var(txn.v)]";
const EXPR: &str = "url_param(v),url_dec";

/// Rules of the frontend; `V` stands for the value.
const RULES: [&str; 28] = [
    "http-request set-header x-v aVb",
    "http-request add-header x-v aVb",
    "http-request replace-header x-r (.*) aVb",
    "http-request replace-value x-r (.*) aVb",
    "http-request set-method GETV",
    "http-request set-uri /aVb",
    "http-request set-path /aVb",
    "http-request set-pathq /aVb",
    "http-request set-query aVb",
    "http-request replace-path (.*) /aVb",
    "http-request replace-pathq (.*) /aVb",
    "http-request replace-uri (.*) /aVb",
    "http-request redirect location /aVb",
    "http-request redirect prefix /aVb",
    "http-request redirect scheme aVb",
    "http-request return status 200 hdr x-v aVb",
    "http-request return status 200 content-type text/plain lf-string aVb",
    "http-request deny status 403 hdr x-v aVb",
    "http-response set-header x-v aVb",
    "http-response add-header x-v aVb",
    "http-response replace-header x-r (.*) aVb",
    "http-response replace-value x-r (.*) aVb",
    "http-response redirect location /aVb",
    "http-response return status 200 hdr x-v aVb",
    "http-after-response set-header x-v aVb",
    "http-after-response add-header x-v aVb",
    "http-after-response replace-header x-r (.*) aVb",
    "http-after-response replace-value x-r (.*) aVb",
];

/// Lines of a backend; `E` stands for the expression.
const OPTIONS: [&str; 6] = [
    "option forwarded host-expr E",
    "option forwarded for-expr E",
    "option forwarded by-expr E",
    "option forwarded for for_port-expr E",
    "option forwarded by by_port-expr E",
    "option forwarded host-expr E for-expr E for_port-expr E by-expr E by_port-expr E",
];

/// A harmless value.
const HARMLESS: &str = "zz9";

/// The value as sent in a query.
const VALUES: [&str; 7] = [
    "%0d%0ax-evil:%201",
    "%0ax-evil:%201",
    "%0dx-evil:%201",
    "%0d%0ax-evil:%201%0d%0a%0d%0aGET%20/evil%20HTTP/1.1%0d%0ahost:%20evil%0d%0a%0d%0a",
    "%00%0ax-evil:1",
    "%22%0d%0ax-evil:1",
    "_x%0d%0ax-evil:1",
];

fn configuration(port: u16, origin: u16) -> String {
    let mut text = format!(
        "\
defaults
    mode http
    timeout connect 5s
    timeout client 20s
    timeout server 20s
    retries 0
frontend www
    bind 127.0.0.1:{port}
    http-request set-var(txn.v) {EXPR}
    http-request set-var(txn.n) url_param(n)
    unique-id-format id-{ASKED}
    unique-id-header x-id
    use_backend b%[var(txn.n)] if {{ path /option }}
    default_backend plain
"
    );
    let ends = |rule: &&&str| rule.contains(" redirect ") || rule.contains(" return ");
    // Actions that end the evaluation come last in each rule set.
    let mut rules: Vec<(usize, &&str)> = RULES.iter().enumerate().collect();
    rules.sort_by_key(|(_, rule)| ends(rule));
    for (n, rule) in rules {
        let value = if rule.starts_with("http-request") {
            ASKED
        } else {
            KEPT
        };
        let rule = rule.replace('V', value);
        let _ = writeln!(text, "    {rule} if {{ var(txn.n) -m str r{n} }}");
    }
    let _ = writeln!(text, "backend plain\n    server s 127.0.0.1:{origin}");
    for (n, option) in OPTIONS.iter().enumerate() {
        let option = option.replace('E', EXPR);
        let _ = writeln!(
            text,
            "backend b{n}\n    {option}\n    server s 127.0.0.1:{origin}"
        );
    }
    text
}

/// Whether the harmless value was written to the expected place: the query that was sent contains
/// it too, and so does the unique id.
fn writes(path: &str, response: &Response, seen: &[Request]) -> bool {
    let forwarded = |request: &Request| {
        let value = request.header("forwarded");
        value.is_some_and(|value| value.contains(HARMLESS))
    };
    if path == "/option" {
        return seen.iter().any(forwarded);
    }
    let everything = format!("{seen:?} {response:?} {}", response.text());
    let [framed, method] = [format!("a{HARMLESS}b"), format!("GET{HARMLESS} ")];
    everything.contains(&framed) || everything.contains(&method)
}

fn ask(port: u16, path: &str, n: &str, value: &str) -> Response {
    let mut client = Client::connect(port);
    client.send(format!(
        "GET {path}?n={n}&v={value} HTTP/1.1\r\nHost: test\r\nX-R: r\r\nConnection: close\r\n\r\n"
    ));
    client.response()
}

#[test]
fn no_value_ends_a_line() {
    for program in Program::both() {
        let origin =
            Origin::start(|_| b"HTTP/1.1 200 OK\r\nX-R: r\r\nContent-Length: 2\r\n\r\nok".to_vec());
        let port = free_port();
        let _proxy = Proxy::start(&program, &configuration(port, origin.port()), &[port]);
        let words = (0..RULES.len())
            .map(|n| (RULES[n], "/rule", format!("r{n}")))
            .chain((0..OPTIONS.len()).map(|n| (OPTIONS[n], "/option", n.to_string())));
        for (word, path, n) in words {
            let before = origin.requests().len();
            let response = ask(port, path, &n, HARMLESS);
            let seen = &origin.requests()[before..];
            assert!(
                writes(path, &response, seen),
                "{}: {word} does not act: {response:?}, {seen:?}",
                program.name()
            );
            for value in VALUES {
                let before = origin.requests().len();
                let response = ask(port, path, &n, value);
                let told = format!("{}: {word} with {value}", program.name());
                assert!(response.header("x-evil").is_none(), "{told}: {response:?}");
                let seen = &origin.requests()[before..];
                assert!(seen.len() <= 1, "{told}: {seen:?}");
                for request in seen {
                    assert!(request.header("x-evil").is_none(), "{told}: {request:?}");
                    let bytes = [
                        request.line.as_str(),
                        request.header("forwarded").unwrap_or(""),
                    ];
                    let holds = |byte: &char| matches!(byte, '\r' | '\n' | '\0');
                    let bad = bytes
                        .iter()
                        .any(|text| text.chars().any(|byte| holds(&byte)));
                    assert!(!bad, "{told}: {request:?}");
                }
            }
        }
    }
}
