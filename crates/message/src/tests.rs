//! Tests of what all other crates rely on.

use proptest::collection::vec;
use proptest::prelude::*;

use crate::{
    BodyLength, ConnectionOptions, Fields, HeadLimits, HostError, LengthError, Method, NoRoom,
    ReceivedTarget, Request, Response, TargetForm, TransferCoding, Version, comma_values,
    connection_options, content_length, cookies, is_field_name, is_field_value, is_persistent,
    is_target, parse_authority, parse_content_length, remove_connection_options,
    request_body_length, response_body_length, transfer_coding, upgrade_protocol, validate_host,
};

fn fields(lines: &[(&str, &str)]) -> Fields {
    let mut fields = Fields::default();
    for (name, value) in lines {
        fields.add(name.as_bytes(), value.as_bytes()).unwrap();
    }
    fields
}

fn lines(fields: &Fields) -> Vec<(String, String)> {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    fields
        .iter()
        .map(|field| (text(field.name), text(field.value)))
        .collect()
}

fn own(lines: &[(&str, &str)]) -> Vec<(String, String)> {
    lines
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect()
}

fn request(method: &str, target: &str, lines: &[(&str, &str)]) -> Request {
    let mut request = Request::default();
    request.set_method(method.as_bytes()).unwrap();
    request.set_target(target.as_bytes()).unwrap();
    for (name, value) in lines {
        request
            .fields_mut()
            .add(name.as_bytes(), value.as_bytes())
            .unwrap();
    }
    request
}

/// Measured on HAProxy 2.6.12: `req.hdr_cnt(x-l)`, `req.hdr(x-l)`, `req.hdr(x-l,2)`.
#[test]
fn lists_split_as_by_the_oracle() {
    for (values, count, last, second) in [
        (&["a,,b , \"c,d\"", "e"][..], 5, "e", Some("")),
        (&[""], 1, "", None),
        (&["a,"], 2, "", Some("")),
        (&[",a"], 2, "a", Some("a")),
        (&[","], 2, "", Some("")),
        (&["\"a\\\",b\",c"], 2, "c", Some("c")),
        (&["a\"b,c"], 1, "a\"b,c", None),
        (&["  a , b  "], 2, "b", Some("b")),
        (&["a;x=\"1,2\",b"], 2, "b", Some("b")),
    ] {
        let lines: Vec<_> = values.iter().map(|value| ("X-L", *value)).collect();
        let fields = fields(&lines);
        assert_eq!(fields.value_count(b"x-l"), count, "{values:?}");
        assert_eq!(
            fields.value_at(b"x-l", 0),
            Some(last.as_bytes()),
            "{values:?}"
        );
        assert_eq!(
            fields.value_at(b"x-l", 2),
            second.map(str::as_bytes),
            "{values:?}"
        );
    }
    assert_eq!(fields(&[]).value_count(b"x"), 0);
}

#[test]
fn occurrences_count_from_either_end() {
    let fields = fields(&[("a", "1,2"), ("b", "x"), ("A", "3")]);
    let value = |occurrence| fields.value_at(b"a", occurrence).map(|value| value[0]);
    let expected = [None, Some(b'1'), Some(b'2'), Some(b'3'), Some(b'3')];
    assert_eq!([-4, -3, -2, -1, 0].map(value), expected);
    assert_eq!(
        [1, 2, 3, 4].map(value),
        [Some(b'1'), Some(b'2'), Some(b'3'), None]
    );
    assert_eq!([i32::MIN, i32::MAX].map(value), [None, None]);
    assert_eq!(fields.line_at(b"a", 1), Some(&b"1,2"[..]));
    assert_eq!(fields.line_at(b"a", -1), Some(&b"3"[..]));
}

#[test]
fn fields_keep_their_order_and_lose_their_case() {
    let mut f = fields(&[
        ("Host", "A"),
        ("X-One", "1"),
        ("x-two", "2"),
        ("X-ONE", "3"),
    ]);
    assert_eq!(
        (f.len(), f.count(b"x-ONE"), f.contains(b"HOST")),
        (4, 2, true)
    );
    assert_eq!(
        (f.first(b"x-one"), f.last(b"x-one")),
        (Some(&b"1"[..]), Some(&b"3"[..]))
    );
    assert_eq!(f.find(b"X-One").rev().collect::<Vec<_>>(), [b"3", b"1"]);
    assert_eq!(f.positions(b"x-one").collect::<Vec<_>>(), [1, 3]);
    f.add_front(b"First", b"0").unwrap();
    f.replace_value(2, b"one").unwrap();
    let expected = [
        ("first", "0"),
        ("host", "A"),
        ("x-one", "one"),
        ("x-two", "2"),
        ("x-one", "3"),
    ];
    assert_eq!(lines(&f), own(&expected));
    f.set(b"X-One", b"only").unwrap();
    let expected = [
        ("first", "0"),
        ("host", "A"),
        ("x-two", "2"),
        ("x-one", "only"),
    ];
    assert_eq!(lines(&f), own(&expected));
    assert_eq!(f.remove_matching(|field| field.value == b"2"), 1);
    assert_eq!((f.remove(b"FIRST"), f.remove(b"first")), (1, 0));
    assert!(f.remove_at(0) && !f.remove_at(7));
    assert_eq!(lines(&f), own(&[("x-one", "only")]));
    assert_eq!(f.wire_bytes(), "x-one: only\r\n".len());
    f.replace_value(9, b"nothing").unwrap();
    f.clear();
    assert!(f.is_empty() && f.wire_bytes() == 0);
}

#[test]
fn a_head_is_bounded_and_a_refusal_changes_nothing() {
    let limits = HeadLimits {
        field_count_max: 3,
        head_bytes_max: 20,
    };
    let mut f = Fields::new(limits);
    f.add(b"a", b"12345").unwrap();
    f.add(b"b", b"1234").unwrap();
    assert_eq!(f.wire_bytes(), 19);
    assert_eq!(f.add(b"c", b""), Err(NoRoom));
    assert_eq!(f.set(b"a", b"1234567"), Err(NoRoom));
    assert_eq!(f.replace_value(0, b"1234567"), Err(NoRoom));
    assert_eq!(lines(&f), own(&[("a", "12345"), ("b", "1234")]));
    f.set(b"a", b"123456").unwrap();
    assert_eq!((f.wire_bytes(), f.limits()), (20, limits));
    // The limit applies to reception, as in HAProxy: one entry is for the end mark.
    f.clear();
    assert_eq!(f.push_received(0..1, 2..3), Ok(()));
    assert_eq!(f.push_received(4..5, 6..7), Ok(()));
    assert_eq!(f.push_received(8..9, 10..11), Err(NoRoom));
}

#[test]
fn replacing_for_ever_takes_no_more_memory() {
    let mut request = request("GET", "/a?b", &[("host", "h"), ("x", "0")]);
    for round in 0..20_000 {
        let value = format!("{round:05}");
        request.fields_mut().set(b"X", value.as_bytes()).unwrap();
        request.set_path(format!("/{value}").as_bytes()).unwrap();
        assert_eq!(request.fields().first(b"x"), Some(value.as_bytes()));
    }
    assert_eq!(request.target(), b"/19999?b");
    assert_eq!(
        (request.method_token(), request.host()),
        (&b"GET"[..], Some(&b"h"[..]))
    );
    assert!(request.fields().arena_bytes() <= 2 * 16_384);
}

#[test]
fn targets_have_parts() {
    use TargetForm as F;
    for (target, form, scheme, authority, path, query) in [
        ("/a/b?c?d", F::Origin, None, None, "/a/b", Some("c?d")),
        ("/a?", F::Origin, None, None, "/a", None),
        ("/", F::Origin, None, None, "/", None),
        ("//x/y", F::Origin, None, None, "//x/y", None),
        ("*", F::Asterisk, None, None, "", None),
        ("a:443", F::Authority, None, Some("a:443"), "", None),
        (
            "http://u@h:1/p?q",
            F::Absolute,
            Some("http"),
            Some("u@h:1"),
            "/p",
            Some("q"),
        ),
        ("http://h", F::Absolute, Some("http"), Some("h"), "", None),
        (
            "http://h?q/x",
            F::Absolute,
            Some("http"),
            Some("h"),
            "",
            Some("q/x"),
        ),
        ("1a://h/", F::Authority, None, Some("1a://h/"), "", None),
        ("", F::Origin, None, None, "", None),
    ] {
        let request = request("GET", target, &[]);
        let text = |bytes: Option<&[u8]>| bytes.map(|b| String::from_utf8(b.to_vec()).unwrap());
        assert_eq!(request.form(), form, "{target}");
        assert_eq!(text(request.scheme()).as_deref(), scheme, "{target}");
        assert_eq!(
            text(request.target_authority()).as_deref(),
            authority,
            "{target}"
        );
        assert_eq!(request.path(), path.as_bytes(), "{target}");
        if target != "/a?" {
            assert_eq!(text(request.query()).as_deref(), query, "{target}");
        }
    }
    // A `?` with nothing after it is an empty query.
    assert_eq!(request("GET", "/a?", &[]).query(), Some(&b""[..]));
}

#[test]
fn targets_change_in_part() {
    let mut r = request("GET", "http://h/a?b", &[("Host", "h:8")]);
    r.set_path(b"/x/y").unwrap();
    assert_eq!(r.target(), b"http://h/x/y?b");
    r.set_query(b"c=d").unwrap();
    assert_eq!(r.target(), b"http://h/x/y?c=d");
    r.set_query(b"").unwrap();
    assert_eq!(r.target(), b"http://h/x/y");
    r.set_query(b"e").unwrap();
    r.set_path_and_query(b"/z?f").unwrap();
    assert_eq!(
        (r.path_and_query(), r.target()),
        (&b"/z?f"[..], &b"http://h/z?f"[..])
    );
    r.set_method(b"PURGE").unwrap();
    assert_eq!(
        (r.method(), r.method_token()),
        (Method::Other, &b"PURGE"[..])
    );
    assert_eq!(r.authority(), Some(&b"h"[..]));
    let mut base = Vec::new();
    r.append_base(&mut base);
    assert_eq!(base, b"h:8/z");
    r.set_target(b"/new").unwrap();
    assert_eq!(
        (r.form(), r.authority()),
        (TargetForm::Origin, Some(&b"h:8"[..]))
    );
    let mut copy = Request::default();
    copy.copy_from(&r);
    r.clear();
    assert_eq!(
        (copy.target(), copy.host(), r.target()),
        (&b"/new"[..], Some(&b"h:8"[..]), &b""[..])
    );
}

#[test]
fn responses_have_status_and_reason() {
    let mut response = Response::default();
    response.set_status(404).unwrap();
    assert_eq!(
        (response.status(), response.reason()),
        (404, &b"Not Found"[..])
    );
    response.set_status_and_reason(200, b"Fine").unwrap();
    assert_eq!((response.status(), response.reason()), (200, &b"Fine"[..]));
    assert!(!response.is_interim());
    response.set_status(103).unwrap();
    assert!(response.is_interim());
}

#[test]
fn hosts_must_agree() {
    let check = |target: &str, hosts: &[&str]| {
        let lines: Vec<_> = hosts.iter().map(|host| ("host", *host)).collect();
        let method = if target.contains("//") || target.starts_with('/') {
            "GET"
        } else {
            "CONNECT"
        };
        validate_host(&request(method, target, &lines))
    };
    for (target, hosts) in [
        ("/", &[][..]),
        ("/", &["a", "A"]),
        ("http://a/", &["a:80"]),
        ("http://a:80/", &["a"]),
        ("http://a:/", &["a"]),
        ("https://A:443/", &["a"]),
        ("http://u:p@a/", &["a"]),
        ("http://[::1]/", &["[::1]:80"]),
        ("a:443", &["a"]),
        ("ftp://a:21/", &["a:21"]),
    ] {
        assert_eq!(check(target, hosts), Ok(()), "{target} {hosts:?}");
    }
    for (target, hosts, error) in [
        ("/", &["a", "b"][..], HostError::HostsDiffer),
        ("http://b/", &["a"], HostError::HostNotAuthority),
        ("http://a:443/", &["a"], HostError::HostNotAuthority),
        ("ftp://a:21/", &["a"], HostError::HostNotAuthority),
        ("a:8080", &["a"], HostError::HostNotAuthority),
        ("a:443", &["a:80"], HostError::HostNotAuthority),
        ("http://a/", &[""], HostError::HostNotAuthority),
        ("http://a:x/", &["a"], HostError::HostNotAuthority),
        ("http://[::1/", &["[::1"], HostError::AuthorityInvalid),
    ] {
        let result = check(target, hosts);
        if target == "http://[::1/" {
            assert_eq!(result, Ok(()), "the same bytes are the same host");
        } else {
            assert_eq!(result, Err(error), "{target} {hosts:?}");
        }
    }
    assert_eq!(
        parse_authority(b"u@[::1]:8"),
        Some((&b"[::1]"[..], Some(&b"8"[..])))
    );
    assert_eq!(parse_authority(b"[::1"), None);
    assert_eq!(parse_authority(b"[::1]x"), None);
}

#[test]
fn lengths_are_sure_or_refused() {
    assert_eq!(
        parse_content_length(b"9223372036854775807"),
        Some(i64::MAX.unsigned_abs())
    );
    for bad in [
        "9223372036854775808",
        "",
        "-1",
        "+1",
        "1 ",
        "0x1",
        "1.0",
        "a",
    ] {
        assert_eq!(parse_content_length(bad.as_bytes()), None, "{bad}");
    }
    let cl = |values: &[&str]| {
        let lines: Vec<_> = values
            .iter()
            .map(|value| ("Content-Length", *value))
            .collect();
        content_length(&fields(&lines))
    };
    assert_eq!(cl(&[]), Ok(None));
    assert_eq!(cl(&["3", "3, 03"]), Ok(Some(3)));
    assert_eq!(cl(&["3, 4"]), Err(LengthError::ContentLengthsDiffer));
    assert_eq!(cl(&["3", ""]), Err(LengthError::ContentLengthInvalid));
    let te = |value: &str| transfer_coding(&fields(&[("transfer-encoding", value)]));
    assert_eq!(te("CHUNKED"), Ok(TransferCoding::Chunked));
    assert_eq!(te("gzip, chunked"), Ok(TransferCoding::CodedThenChunked));
    assert_eq!(te("gzip"), Ok(TransferCoding::Unknown));
    assert_eq!(te("chunked, gzip"), Err(LengthError::ChunkedNotLast));
    assert_eq!(te(" , "), Err(LengthError::ChunkedMissing));
}

#[test]
fn bodies_end_somewhere() {
    let chunked = ("transfer-encoding", "chunked");
    let five = ("content-length", "5");
    let length = |lines: &[(&str, &str)], version| {
        let mut request = request("POST", "/", lines);
        request.set_version(version);
        request_body_length(&request)
    };
    assert_eq!(length(&[], Version::Http11), Ok(BodyLength::None));
    assert_eq!(length(&[five], Version::Http10), Ok(BodyLength::Known(5)));
    assert_eq!(length(&[chunked], Version::Http11), Ok(BodyLength::Chunked));
    let both = Err(LengthError::ContentLengthAndTransferEncoding);
    assert_eq!(length(&[five, chunked], Version::Http11), both);
    let early = Err(LengthError::TransferEncodingBeforeHttp11);
    assert_eq!(length(&[chunked], Version::Http10), early);

    let length = |status, lines: &[(&str, &str)], method| {
        let mut response = Response::default();
        response.set_status(status).unwrap();
        for (name, value) in lines {
            response
                .fields_mut()
                .add(name.as_bytes(), value.as_bytes())
                .unwrap();
        }
        response_body_length(&response, method)
    };
    assert_eq!(
        length(200, &[five, chunked], Method::Get),
        Ok(BodyLength::Chunked)
    );
    assert_eq!(length(200, &[five], Method::Head), Ok(BodyLength::None));
    assert_eq!(length(204, &[five], Method::Get), Ok(BodyLength::None));
    assert_eq!(
        length(200, &[five], Method::Connect),
        Ok(BodyLength::Tunnel)
    );
    assert_eq!(
        length(403, &[five], Method::Connect),
        Ok(BodyLength::Known(5))
    );
    assert_eq!(length(101, &[], Method::Get), Ok(BodyLength::Tunnel));
    assert_eq!(length(200, &[], Method::Get), Ok(BodyLength::UntilClose));
    let gzip = ("transfer-encoding", "gzip");
    assert_eq!(
        length(200, &[gzip], Method::Get),
        Err(LengthError::ChunkedMissing)
    );
}

#[test]
fn connection_options_are_a_list() {
    let all = ConnectionOptions {
        close: true,
        keep_alive: true,
        upgrade: true,
    };
    let mut f = fields(&[
        ("Connection", "close, X-A"),
        ("connection", "Keep-Alive,Upgrade"),
    ]);
    assert_eq!(connection_options(&f), all);
    f.add(b"Upgrade", b"websocket, h2c").unwrap();
    assert_eq!(upgrade_protocol(&f), Some(&b"websocket"[..]));
    let gone = ConnectionOptions {
        upgrade: false,
        ..all
    };
    remove_connection_options(&mut f, gone).unwrap();
    let expected = [
        ("connection", "X-A"),
        ("connection", "Upgrade"),
        ("upgrade", "websocket, h2c"),
    ];
    assert_eq!(lines(&f), own(&expected));
    remove_connection_options(&mut f, all).unwrap();
    assert_eq!(upgrade_protocol(&f), None);
    let none = ConnectionOptions::default();
    assert!(is_persistent(Version::Http11, none) && !is_persistent(Version::Http10, none));
    assert!(!is_persistent(Version::Http11, all) && is_persistent(Version::Http2, all));
}

#[test]
fn bytes_have_their_place() {
    assert!(is_field_name(b"X-a_!") && !is_field_name(b"") && !is_field_name(b"a b"));
    assert!(is_field_value(b"a\tb\xff") && !is_field_value(b"a\0") && !is_field_value(b"a\x7f"));
    assert!(is_target(b"/a\"<>") && !is_target(b"/#") && !is_target(b"/\x80") && !is_target(b""));
}

#[derive(Clone, Debug)]
enum Operation {
    Add(u8, String),
    Front(u8, String),
    Remove(u8),
    Replace(usize, String),
    Set(u8, String),
}

fn operation() -> impl Strategy<Value = Operation> {
    let value = || "[a-z]{0,30}";
    prop_oneof![
        (0..4_u8, value()).prop_map(|(name, value)| Operation::Add(name, value)),
        (0..4_u8, value()).prop_map(|(name, value)| Operation::Front(name, value)),
        (0..4_u8).prop_map(Operation::Remove),
        (0..6_usize, value()).prop_map(|(at, value)| Operation::Replace(at, value)),
        (0..4_u8, value()).prop_map(|(name, value)| Operation::Set(name, value)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    /// Fields behave as a list of pairs with a limit, whenever the arena is compacted.
    #[test]
    fn fields_are_a_list(operations in vec(operation(), 0..60)) {
        let max = 120;
        let mut fields = Fields::new(HeadLimits { field_count_max: 101, head_bytes_max: max });
        let mut model: Vec<(u8, String)> = Vec::new();
        let size = |model: &[(u8, String)]| {
            model.iter().map(|(_, value)| value.len() + 5).sum::<usize>()
        };
        for operation in operations {
            let mut next = model.clone();
            let name = |name: u8| [b'A' + name];
            let done = match &operation {
                Operation::Add(n, value) => {
                    next.push((*n, value.clone()));
                    fields.add(&name(*n), value.as_bytes())
                }
                Operation::Front(n, value) => {
                    next.insert(0, (*n, value.clone()));
                    fields.add_front(&name(*n), value.as_bytes())
                }
                Operation::Remove(n) => {
                    next.retain(|(name, _)| name != n);
                    prop_assert_eq!(fields.remove(&name(*n)), model.len() - next.len());
                    Ok(())
                }
                Operation::Replace(at, value) => {
                    if let Some(entry) = next.get_mut(*at) {
                        entry.1.clone_from(value);
                    }
                    fields.replace_value(*at, value.as_bytes())
                }
                Operation::Set(n, value) => {
                    next.retain(|(name, _)| name != n);
                    next.push((*n, value.clone()));
                    fields.set(&name(*n), value.as_bytes())
                }
            };
            prop_assert_eq!(done.is_ok(), size(&next) <= max as usize);
            if done.is_ok() {
                model = next;
            }
            prop_assert_eq!(fields.wire_bytes(), size(&model));
            let list: Vec<(u8, String)> = fields
                .iter()
                .map(|f| (f.name[0] - b'a', String::from_utf8(f.value.to_vec()).unwrap()))
                .collect();
            prop_assert_eq!(&list, &model);
            prop_assert!(fields.arena_bytes() <= 2 * max as usize);
        }
    }

    #[test]
    fn members_hold_every_byte_but_commas_and_space(value in "[a-c,\" \\\\]{0,20}") {
        let kept: usize = comma_values(value.as_bytes()).map(<[u8]>::len).sum();
        let count = comma_values(value.as_bytes()).count();
        prop_assert!(kept + count - 1 <= value.len());
        prop_assert!(count <= value.matches(',').count() + 1);
    }

    #[test]
    fn what_is_left_of_a_list_is_the_list_of_what_follows(value in "[ab,;=$\" \\\\]{0,20}", sets: bool) {
        let value = value.as_bytes();
        let (mut members, mut walked) = (comma_values(value), Vec::new());
        while let Some(member) = members.next() {
            walked.push(member);
            let Some(rest) = members.rest() else { break };
            members = comma_values(rest);
        }
        prop_assert_eq!(walked, comma_values(value).collect::<Vec<_>>());
        let (mut pairs, mut walked) = (cookies(value, sets), Vec::new());
        while let Some(pair) = pairs.next() {
            walked.push(pair);
            pairs = cookies(pairs.rest(), sets);
        }
        prop_assert_eq!(walked, cookies(value, sets).collect::<Vec<_>>());
    }

    #[test]
    fn any_target_can_be_taken_apart_and_changed(target in "[a-z:/?#*@\\[\\]]{0,20}") {
        let mut r = request("GET", &target, &[]);
        let whole = [r.path(), r.query().map_or(&b""[..], |_| b"?"), r.query().unwrap_or_default()];
        prop_assert_eq!(r.path_and_query(), whole.concat());
        let form = r.form();
        r.set_path_and_query(b"/p?q").unwrap();
        r.set_query(b"z").unwrap();
        if form == TargetForm::Origin || form == TargetForm::Absolute {
            prop_assert_eq!((r.path(), r.query()), (&b"/p"[..], Some(&b"z"[..])));
        }
    }
}

#[test]
fn a_field_is_found_in_any_case_and_names_of_any_length_are_lowered() {
    for len in 1..40 {
        let mixed: String = ('A'..='Z')
            .chain('a'..='z')
            .cycle()
            .skip(len)
            .take(len)
            .collect();
        let lower = mixed.to_ascii_lowercase();
        let head = format!("{mixed}: V\r\n");
        let mut fields = Fields::default();
        fields.push_received(0..len, len + 2..len + 3).unwrap();
        fields.finish_received(head.as_bytes(), false);
        for name in [&mixed, &lower] {
            assert_eq!(fields.first(name.as_bytes()), Some(&b"V"[..]), "{name}");
        }
        let written = format!("{lower}: V\r\n");
        assert_eq!(fields.wire_run(0), Some((written.as_bytes(), 1)));
        assert_eq!(fields.pair_bytes(), len + 1);
        assert_eq!(fields.remove(mixed.as_bytes()), 1);
        assert_eq!(
            (fields.first(lower.as_bytes()), fields.wire_run(0)),
            (None, None)
        );
    }
}

#[test]
fn what_was_changed_is_not_in_the_run_that_goes_on_as_it_came() {
    let head = b"A: 1\r\nB: 2\r\nC:3\r\nD: 4\r\n";
    let mut fields = Fields::default();
    for (name, value) in [(0, 3), (6, 9), (12, 14), (17, 20)] {
        fields
            .push_received(name..name + 1, value..value + 1)
            .unwrap();
    }
    fields.finish_received(head, false);
    assert_eq!(fields.wire_run(0), Some((&b"a: 1\r\nb: 2\r\n"[..], 2)));
    assert_eq!(fields.wire_run(2), None);
    assert_eq!(fields.wire_run(3), Some((&b"d: 4\r\n"[..], 4)));
    fields.replace_value(1, b"9").unwrap();
    assert_eq!(fields.wire_run(0), Some((&b"a: 1\r\n"[..], 1)));
    assert_eq!(fields.wire_run(1), None);
    fields.remove_at(1);
    assert_eq!(fields.wire_run(0), Some((&b"a: 1\r\n"[..], 1)));
}

/// Whatever it is composed from, the result is one part of a head: nothing in it ends a line, a
/// name or a word.
#[test]
fn what_is_composed_stays_one_piece() {
    let evil = b"a\r\nx-evil: 1\r\n\r\nGET /\0";
    let written = "a%0D%0Ax-evil: 1%0D%0A%0D%0AGET /%00";
    let mut fields = Fields::default();
    fields.add(b"added", evil).unwrap();
    fields.add_front(b"first", evil).unwrap();
    fields.insert(1, b"between", evil).unwrap();
    fields.set(b"set", evil).unwrap();
    fields.add(b"replaced", b"x").unwrap();
    fields.replace_value(4, evil).unwrap();
    for field in fields.iter() {
        assert_eq!(String::from_utf8_lossy(field.value), written);
    }
    assert_eq!(fields.len(), 5);
    let mut named = Fields::default();
    named.add(b"x: y\r\nz", b"").unwrap();
    assert_eq!(named.field(0).unwrap().name, b"x%3a%20y%0d%0az");

    let mut request = Request::default();
    request.set_method(b"GET / HTTP/1.1\r\n").unwrap();
    assert_eq!(request.method_token(), b"GET%20/%20HTTP/1.1%0D%0A");
    request.set_target(b"/a b\r\n?c\td").unwrap();
    assert_eq!(request.target(), b"/a%20b%0D%0A?c%09d");
    request.set_path(b"/\r\n").unwrap();
    assert_eq!(request.target(), b"/%0D%0A?c%09d");
    request.set_query(b"\0 \x7f").unwrap();
    assert_eq!(request.target(), b"/%0D%0A?%00%20%7F");
    request.set_path_and_query(b"/?\n").unwrap();
    assert_eq!(request.target(), b"/?%0A");

    let mut response = Response::default();
    response.set_status_and_reason(299, b"a b\r\nx: y").unwrap();
    assert_eq!(response.reason(), b"a b%0D%0Ax: y");
}

#[test]
fn fields_that_came_one_by_one_go_out_in_one_run() {
    let mut request = Request::default();
    request
        .set_received_line(b"GET", absolute(b"/p?q"), true)
        .unwrap();
    for (name, value) in [("host", "a.b"), ("x", ""), ("y", "1, 2")] {
        let fields = request.fields_mut();
        fields
            .append_received(name.as_bytes(), value.as_bytes())
            .unwrap();
    }
    let run = request.fields().wire_run(0);
    let text = b"host: a.b\r\nx: \r\ny: 1, 2\r\n";
    assert_eq!(run, Some((&text[..], 3)));
    assert_eq!(request.fields().first(b"y"), Some(&b"1, 2"[..]));
    assert_eq!(
        request.fields().wire_bytes(),
        text.len() + "GET".len() + "https://a.b/p?q".len()
    );
    let mut full = Fields::new(HeadLimits {
        field_count_max: 3,
        head_bytes_max: 40,
    });
    assert_eq!(full.append_received(b"a", &[b'v'; 36]), Err(NoRoom));
    assert_eq!(full.append_received(b"a", &[b'v'; 20]), Ok(()));
    assert_eq!(full.append_received(b"b", &[b'v'; 20]), Err(NoRoom));
    assert_eq!(full.append_received(b"b", b""), Ok(()));
    assert_eq!(full.append_received(b"c", b""), Err(NoRoom), "by the count");
    assert_eq!(full.len(), 2);
}

#[test]
fn a_composed_target_goes_out_as_a_path() {
    let mut request = Request::default();
    request
        .set_received_line(b"GET", absolute(b"/p?q"), true)
        .unwrap();
    assert_eq!(request.form(), TargetForm::Absolute);
    assert_eq!(request.target(), b"https://a.b/p?q");
    assert_eq!(request.wire_target(), b"/p?q");
    request.set_path(b"/other").unwrap();
    assert_eq!(request.wire_target(), b"/other?q");
    let mut copy = Request::default();
    copy.copy_from(&request);
    assert_eq!(copy.wire_target(), b"/other?q");
    // What a rule sets as a whole goes out as it was set.
    request.set_target(b"http://c.d/").unwrap();
    assert_eq!(request.wire_target(), b"http://c.d/");
    // Also of a target without an authority that a rule rewrites to nothing.
    request.clear();
    request
        .set_received_line(b"OPTIONS", ReceivedTarget::Whole(b"*"), true)
        .unwrap();
    request.set_path_and_query(b"").unwrap();
    assert_eq!(request.wire_target(), b"*");
    request.clear();
    for (target, is_composed) in [(&b"ftp://a.b/"[..], false), (b"*", true), (b"/x", true)] {
        let received = ReceivedTarget::Whole(target);
        request
            .set_received_line(b"GET", received, is_composed)
            .unwrap();
        assert_eq!(request.wire_target(), target);
    }
}

#[test]
fn a_line_in_parts_is_the_line_that_rules_set() {
    for path in [
        &b""[..],
        b"/",
        b"/p?q",
        b"/a?b?c/d",
        b"/\x7f",
        b"/p q?",
        &[b'/'; 90],
    ] {
        for method in [&b"GET"[..], b"G T", b"PATCH"] {
            let mut expected = Request::default();
            expected.set_method(method).unwrap();
            let target = [b"https://a.b", path].concat();
            expected.set_target(&target).unwrap();
            for received in [absolute(path), ReceivedTarget::Whole(&target)] {
                let mut request = Request::default();
                request.set_received_line(method, received, true).unwrap();
                assert_eq!(request.method_token(), expected.method_token());
                assert_eq!(request.method(), expected.method());
                assert_eq!(request.target(), expected.target());
                assert_eq!(request.scheme(), expected.scheme());
                assert_eq!(request.target_authority(), expected.target_authority());
                assert_eq!(request.path(), expected.path());
                assert_eq!(request.query(), expected.query());
                let bytes = expected.fields().wire_bytes();
                assert_eq!(request.fields().wire_bytes(), bytes);
            }
        }
    }
    let mut small = Request::new(HeadLimits {
        field_count_max: 3,
        head_bytes_max: 15,
    });
    let set = small.set_received_line(b"GET", absolute(b"/"), true);
    assert_eq!((set, small.target()), (Ok(()), &b"https://a.b/"[..]));
    small.clear();
    let set = small.set_received_line(b"GET", absolute(b"/p"), true);
    assert_eq!((set, small.target()), (Err(NoRoom), &b""[..]));
}

/// `https://a.b` and a path, as HTTP/2 has it.
fn absolute(path: &[u8]) -> ReceivedTarget<'_> {
    ReceivedTarget::Absolute {
        scheme: b"https",
        authority: b"a.b",
        path,
    }
}
