//! Odd requests over HTTP/2: targets, hosts, fields, lengths and tunnels in many forms. Tests of the
//! codec include this file by its path (`#[path = "../../../tests/src/http2_cases.rs"]`).

#![allow(dead_code, reason = "no test needs all of it")]

/// What a client of HTTP/2 says first.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("short").to_be_bytes();
    let mut out = vec![length[1], length[2], length[3], kind, flags];
    out.extend_from_slice(&stream.to_be_bytes());
    out.extend_from_slice(payload);
    out
}

/// All requests.
pub(crate) fn all() -> Vec<Case> {
    let mut cases = Vec::new();
    targets(&mut cases);
    fields(&mut cases);
    lengths(&mut cases);
    tunnels(&mut cases);
    assert!(cases.len() > 300, "{}", cases.len());
    cases
}

impl Case {
    /// The bytes of a client that sends this request on its first stream.
    pub(crate) fn client_bytes(&self) -> Vec<u8> {
        let mut block = Vec::new();
        for (name, value) in &self.fields {
            // A literal without indexing, of a new name, without Huffman's code.
            block.push(0);
            push_text(&mut block, name);
            push_text(&mut block, value);
        }
        let flags = END_HEADERS | if self.has_body { 0 } else { END_STREAM };
        let mut out = PREFACE.to_vec();
        out.extend(frame(4, 0, 0, &[]));
        out.extend(frame(1, flags, 1, &block));
        out
    }
}

/// Each character is a byte.
fn push_text(block: &mut Vec<u8>, text: &str) {
    let bytes: Vec<u8> = text
        .chars()
        .map(|c| u8::try_from(u32::from(c)).expect("a byte"))
        .collect();
    let length = u8::try_from(bytes.len()).expect("short");
    assert!(length < 127, "one byte tells the length");
    block.push(length);
    block.extend(bytes);
}

/// Names and values.
pub(crate) type Pairs = Vec<(&'static str, &'static str)>;

/// A request.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    /// Its fields, pseudo-fields among them.
    pub(crate) fields: Pairs,
    /// A body follows, which never comes.
    pub(crate) has_body: bool,
}

/// A list of pseudo-fields; those with a value of `-` are left out.
fn line(
    method: &'static str,
    scheme: &'static str,
    path: &'static str,
    authority: &'static str,
) -> Pairs {
    [
        (":method", method),
        (":scheme", scheme),
        (":path", path),
        (":authority", authority),
    ]
    .into_iter()
    .filter(|(_, value)| *value != "-")
    .collect()
}

fn get() -> Pairs {
    line("GET", "http", "/", "a.b")
}

fn with(mut fields: Pairs, more: &[(&'static str, &'static str)]) -> Case {
    fields.extend_from_slice(more);
    Case {
        fields,
        has_body: false,
    }
}

/// Targets and hosts in many combinations.
fn targets(cases: &mut Vec<Case>) {
    for authority in [
        "-", "", "a.b", "A.B", "a.b:80", "a.b:443", "a.b:8080", "a.b:", "[::1]:80", "[::1]", "a b",
        "u@b", "a/b", "a,b", "a[b",
    ] {
        for host in ["-", "a.b", "x.y:80", "a/b"] {
            for scheme in ["http", "https", "ftp"] {
                let fields = line("GET", scheme, "/p?q", authority);
                match host {
                    "-" => cases.push(with(fields, &[])),
                    host => cases.push(with(fields, &[("x", "1"), ("host", host)])),
                }
            }
        }
    }
    for path in [
        "-",
        "",
        "/",
        "*",
        "/a?b#c",
        "abc",
        "?x",
        "//",
        "/a b",
        "/a\tb",
        "/a\x01b",
        "/a\x7fb",
        "/\u{e9}",
        "http://x/y",
        "/%00",
        "/a;b",
        "/[]",
        "/\\",
        "/\"<>",
    ] {
        for method in ["GET", "OPTIONS", "POST"] {
            cases.push(with(line(method, "https", path, "a.b"), &[]));
        }
    }
    for method in [
        "-", "", "get", "G T", "G\u{e9}T", "PRI", "pri", "PRIX", "M-SEARCH", "(", "\u{1}",
    ] {
        cases.push(with(line(method, "http", "/", "a.b"), &[]));
    }
    for scheme in [
        "-", "", "HTTP", "HttpS", "ht tp", "1x", "a+b.c-d", "x:", "http:",
    ] {
        cases.push(with(line("GET", scheme, "/", "a.b"), &[]));
    }
}

/// Fields in many forms.
fn fields(cases: &mut Vec<Case>) {
    for name in [
        "X-Up",
        "x-uP",
        "a b",
        "a:b",
        "a\u{e9}",
        "a\u{1}",
        "a\0",
        "a(",
        "a\r",
        "a\n",
        ":",
        ":foo",
        ":status",
        ":path",
        "connection",
        "keep-alive",
        "proxy-connection",
        "transfer-encoding",
        "upgrade",
        "http2-settings",
        "te",
        "trailer",
        "expect",
        "a.b",
        "a_b",
        "a~",
        "-",
    ] {
        cases.push(with(get(), &[(name, "x")]));
        cases.push(with(get(), &[("y", "1"), (name, ""), ("z", "2")]));
    }
    for value in [
        "",
        "x",
        " x",
        "x ",
        "\tx\t",
        "  ",
        "x\0y",
        "x\ry",
        "x\ny",
        "x\u{1}y",
        "x\u{7f}y",
        "\u{e9}",
        "x\r\ny: z",
        "a, b",
    ] {
        for name in ["a", "host", "cookie", "content-length", "te"] {
            cases.push(with(get(), &[(name, value)]));
        }
    }
    for value in [
        "trailers",
        "Trailers",
        "trailers, x",
        "x, trailers",
        "trailers;q=1",
        " trailers",
        "trailers ",
    ] {
        cases.push(with(get(), &[("te", value)]));
    }
    cases.push(with(get(), &[("te", "trailers"), ("te", "trailers")]));
    for more in [
        &[
            ("cookie", "a=1"),
            ("x", "y"),
            ("cookie", "b=2"),
            ("cookie", "c=3"),
        ][..],
        &[("cookie", ""), ("cookie", "a"), ("cookie", "")],
        &[("x", "1"), ("x", "2"), ("y", "3"), ("x", "4")],
        &[("x", "y"), (":authority", "a.b")],
        &[(":method", "GET")],
        &[(":scheme", "http")],
        &[(":authority", "a.b")],
        &[("host", "a.b"), ("host", "a.b")],
    ] {
        cases.push(with(get(), more));
    }
}

/// Lengths, with and without a body.
fn lengths(cases: &mut Vec<Case>) {
    for value in [
        "0",
        "5",
        "00",
        "0005",
        "+5",
        "-1",
        "5.0",
        "0x5",
        "5,5",
        "5, 5",
        "5,6",
        "5 5",
        "5,",
        ",5",
        "9223372036854775807",
        "9223372036854775808",
        "18446744073709551616",
    ] {
        for has_body in [false, true] {
            let mut case = with(
                line("POST", "http", "/", "a.b"),
                &[("content-length", value)],
            );
            case.has_body = has_body;
            cases.push(case);
        }
    }
    for (one, other) in [("5", "5"), ("5", "6"), ("5", "05"), ("0", "5")] {
        let lengths = [
            ("content-length", one),
            ("x", "y"),
            ("content-length", other),
        ];
        let mut case = with(line("POST", "http", "/", "a.b"), &lengths);
        case.has_body = true;
        cases.push(case);
    }
}

/// CONNECT, plain and extended.
fn tunnels(cases: &mut Vec<Case>) {
    for (scheme, path, authority) in [
        ("-", "-", "a.b:443"),
        ("-", "-", "a.b"),
        ("-", "-", "a b"),
        ("-", "-", "-"),
        ("http", "-", "a.b:443"),
        ("-", "/", "a.b:443"),
        ("http", "/", "a.b:443"),
    ] {
        let mut case = with(line("CONNECT", scheme, path, authority), &[]);
        case.has_body = true;
        cases.push(case.clone());
        case.fields.push(("host", "c.d:443"));
        cases.push(case);
        let mut extended = line("CONNECT", scheme, path, authority);
        extended.extend([(":protocol", "websocket"), ("origin", "x")]);
        let mut case = with(extended, &[]);
        case.has_body = true;
        cases.push(case);
    }
    cases.push(with(get(), &[(":protocol", "websocket")]));
    for protocol in [
        "foo",
        "foo/1.0",
        "h3",
        "h2",
        "h2c",
        "H2C",
        "h2-14",
        "h2c/1",
        "connect-udp",
        "PRI",
        "HTTP/2.0",
        "",
        "h2c, foo",
        " h2c",
        "a b",
    ] {
        let mut other = with(
            line("CONNECT", "http", "/", "a.b"),
            &[(":protocol", protocol), ("x", "y")],
        );
        other.has_body = true;
        cases.push(other);
    }
}
