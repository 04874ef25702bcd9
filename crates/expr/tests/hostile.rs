//! The worst inputs that a client may send, as large as a buffer: no evaluation holds up a worker.

#![allow(
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test says what went wrong by failing"
)]

use std::time::{Duration, Instant};

use ballast_expr::{AclSet, Expr, Facts, Linker, ProcessFacts, Scratch, Store, Time, Value, eval};

/// Bytes of a buffer (`tune.bufsize`).
const BUFFER_BYTES: usize = 16 << 10;

/// What one evaluation may take where the compiler optimises nothing.
const EVALUATION_MAX: Duration = Duration::from_millis(5);

/// What an expression may take that needs the backtracking engine: it gives up after ten million
/// steps, PCRE2's own limit, which good expressions come near on long subjects. They were measured
/// at half a second on a busy machine.
const BACKTRACKING_MAX: Duration = Duration::from_secs(5);

struct World(Vec<u8>);

impl Facts for World {
    fn now(&self) -> Time {
        Time::default()
    }
    fn random(&self) -> u64 {
        7
    }
    fn process(&self) -> &dyn ProcessFacts {
        self
    }
}

impl ProcessFacts for World {
    fn env(&self, _: &str) -> Option<std::sync::Arc<[u8]>> {
        Some(self.0.as_slice().into())
    }
}

/// The shortest time of some evaluations, for others may use the processor.
fn time_of(text: &str, input: &[u8], limit: Duration) -> Duration {
    const TRIES: usize = 20;
    let mut expr = Expr::parse(&format!("env(x),{text}")).unwrap();
    let mut files = |_: &str| Err("none".to_owned());
    expr.link(&mut Linker {
        store: &Store::new(),
        files: &mut files,
        acls: &AclSet::new(),
    })
    .unwrap();
    let world = World(input.to_vec());
    let mut scratch = Scratch::new();
    let mut least = Duration::MAX;
    for _ in 0..TRIES {
        let start = Instant::now();
        let _ = eval(&expr, &world, &mut scratch).map(|value: Value<'_>| value.kind());
        least = least.min(start.elapsed());
        if least <= limit {
            break;
        }
    }
    least
}

/// Repeats a text until it fills a buffer.
fn filled(text: &str) -> Vec<u8> {
    text.bytes().cycle().take(BUFFER_BYTES).collect()
}

fn filled_after(head: &str, text: &str, tail: &str) -> Vec<u8> {
    let mut bytes = head.as_bytes().to_vec();
    let room = BUFFER_BYTES - head.len() - tail.len();
    bytes.extend(text.bytes().cycle().take(room));
    bytes.extend_from_slice(tail.as_bytes());
    bytes
}

/// A message of Protocol buffers in which each field holds the rest.
fn nested_fields() -> Vec<u8> {
    let mut message = Vec::new();
    while message.len() < BUFFER_BYTES {
        let mut outer = vec![0x0a];
        let mut length = message.len();
        while length > 0x7f {
            outer.push(0x80 | (length & 0x7f) as u8);
            length >>= 7;
        }
        outer.push(length as u8);
        outer.extend_from_slice(&message);
        message = outer;
    }
    message
}

#[test]
fn no_input_holds_up_a_worker() {
    let any = "[*]".repeat(15);
    let deep = format!("{}1", ".a".repeat(19));
    let zeros = format!("protobuf({}2)", "1.".repeat(63));
    let rows: Vec<(String, Vec<u8>)> = vec![
        // JSON: nested deeper than is read, wide at each level, without an end, all escapes.
        ("json_query('$.a')".into(), filled("[")),
        ("json_query('$[0][0][0]')".into(), filled("[")),
        (
            format!("json_query('${any}')"),
            filled("[[[[[[[[[[[[[[[1],"),
        ),
        (
            format!("json_query('${any}.x')"),
            filled_after("[", "[[[[1,2,3,4],[5]]],", "[]]"),
        ),
        (format!("json_query('${deep}')"), filled("{\"a\":")),
        (
            "json_query('$.a')".into(),
            filled_after("{\"a\":\"", "\\u0041", "\"}"),
        ),
        (
            "json_query('$.a',int)".into(),
            filled_after("{\"a\":", "9", "}"),
        ),
        (
            "json_query('$.a')".into(),
            filled_after("{\"a\":1.", "9", "e308}"),
        ),
        ("json(utf8s)".into(), filled("\u{1}\"\\")),
        // Web tokens.
        (
            "jwt_header_query('$.alg')".into(),
            filled_after("eyJhbGciOiJ", "a", ".b.c"),
        ),
        (
            "jwt_payload_query('$.a')".into(),
            filled_after("a.", "W1tb", ".c"),
        ),
        (
            "jwt_verify(HS512,secret)".into(),
            filled_after("a.", "b", ".abcd"),
        ),
        (
            "jwt_verify(HS512,secret)".into(),
            filled_after("a.b.", "c", ""),
        ),
        ("jwt_verify(HS512,secret)".into(), filled(".")),
        (
            "jwt_verify(RS256,/nonexistent)".into(),
            filled_after("a.", "b", ".abcd"),
        ),
        // Encodings.
        ("b64dec".into(), filled("QUJD")),
        ("b64dec".into(), filled("=")),
        ("ub64dec".into(), filled("_-")),
        ("url_dec(1)".into(), filled("%4")),
        ("base64".into(), filled("\u{7f}")),
        ("hex".into(), filled("a")),
        // Protocol buffers: lengths beyond the end, numbers without an end, fields in fields.
        ("protobuf(1)".into(), filled("\n\u{7f}")),
        ("protobuf(1.1.1,int64)".into(), vec![0xff; BUFFER_BYTES]),
        ("protobuf(2)".into(), filled("\u{8}\u{0}")),
        (zeros, nested_fields()),
        ("ungrpc(1.1)".into(), filled("\u{0}\u{0}\u{0}\u{0}\u{0}")),
        // Other formats.
        (
            "mqtt_field_value(connect,username)".into(),
            filled("\u{10}\u{7f}"),
        ),
        ("fix_tag_value(35)".into(), filled("8=\u{1}")),
        (
            "fix_is_valid".into(),
            filled("8=FIX.4.2\u{1}9=1\u{1}35=A\u{1}"),
        ),
        ("rfc7239_is_valid".into(), filled("for=1;by=2,")),
        ("rfc7239_field(host)".into(), filled("for=\"[::1]:1\",")),
        ("language(a;b;c;d,e)".into(), filled("x;q=0.1,")),
        ("word(-1,.)".into(), filled("a.")),
        ("field(-9999,.)".into(), filled("a.")),
        ("param(a)".into(), filled("a&")),
        // Expressions whose engine needs time in proportion to the subject.
        ("regsub(\"(a+)+$\",x,g)".into(), filled_after("", "a", "b")),
        ("regsub(\"(a|aa)+b\",x,g)".into(), filled("a")),
        ("regsub(\"(.*)(.*)(.*)(.*)x\",y)".into(), filled("a")),
    ];
    let mut slow = Vec::new();
    for (text, input) in &rows {
        assert!(input.len() >= BUFFER_BYTES, "{text}: {} bytes", input.len());
        let time = time_of(text, input, EVALUATION_MAX);
        if time > EVALUATION_MAX {
            slow.push(format!("{text}: {time:?}"));
        }
    }
    assert!(slow.is_empty(), "{}", slow.join("\n"));
}

#[test]
fn the_backtracking_engine_gives_up() {
    let rows = [
        ("regsub(\"^(?=a)(a+)+$\",x)", filled_after("", "a", "b")),
        ("regsub(\"(a*)*\\\\1b\",x)", filled("a")),
        ("regsub(\"(?=(a+))(a|aa)+b\",x)", filled("a")),
        ("regsub(\"^((?!b)a|a?)*c\",x)", filled("a")),
    ];
    for (text, input) in rows {
        let time = time_of(text, &input, BACKTRACKING_MAX);
        assert!(time <= BACKTRACKING_MAX, "{text}: {time:?}");
    }
}
