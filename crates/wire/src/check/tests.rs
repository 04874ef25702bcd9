// Payloads and verdicts as HAProxy 2.6.12 and 3.2 sent and reported them.

use super::*;

fn sent(steps: &[CheckStep]) -> Vec<u8> {
    let bytes = steps.iter().filter_map(|step| match step {
        CheckStep::Send(bytes) => Some(bytes.as_slice()),
        CheckStep::Expect(_) => None,
    });
    bytes.collect::<Vec<_>>().concat()
}

fn pass(code: u32, text: &str, bytes: usize) -> ReplyVerdict<'_> {
    ReplyVerdict::Pass {
        bytes,
        code: Some(code),
        text: text.as_bytes(),
    }
}

fn no(code: u32, text: &str) -> ReplyVerdict<'_> {
    ReplyVerdict::Fail {
        kind: ReplyFailure::WrongStatus,
        code: Some(code),
        text: text.as_bytes(),
    }
}

fn bad(text: &str) -> ReplyVerdict<'_> {
    invalid(text.as_bytes())
}

/// The verdict on the whole reply; a part of it must not give another one.
fn judged(expectation: Expectation, received: &[u8]) -> ReplyVerdict<'_> {
    let verdict = expectation.parse_reply(received, false);
    for cut in 0..received.len() {
        let early = expectation.parse_reply(&received[..cut], false);
        let same = std::mem::discriminant(&early) == std::mem::discriminant(&verdict);
        assert!(early == ReplyVerdict::Undecided || same, "{cut}: {early:?}");
        assert_ne!(
            expectation.parse_reply(&received[..cut], true),
            ReplyVerdict::Undecided
        );
    }
    verdict
}

#[test]
fn mysql_packets() {
    assert_eq!(mysql(None), [CheckStep::Expect(Expectation::MysqlPacket)]);
    let post = mysql(Some((b"hap", MysqlLogin::Post41)));
    let mut expected = b"%\0\0\x01\0\x82\0\0\0\x80\0\x01!".to_vec();
    expected.extend([0; 23]);
    expected.extend(b"hap\0\0\x01\0\0\0\x01");
    assert_eq!(sent(&post), expected);
    let pre = mysql(Some((b"hap", MysqlLogin::Pre41)));
    assert_eq!(sent(&pre), b"\n\0\0\x01\0\x80\0\0\x01hap\0\0\x01\0\0\0\x01");
    assert_eq!(pre.len(), 3);

    let judged = |bytes| judged(Expectation::MysqlPacket, bytes);
    assert_eq!(judged(b"\x0a\0\0\0\x0a8.0.30\0ab"), pass(0, "", 14));
    assert_eq!(judged(b"\x01\0\0\0\x0amore"), pass(0, "", 5));
    assert_eq!(
        judged(b"\x12\0\0\0\xff\x69\x04Host is blocked"),
        no(1129, "Host is blocked")
    );
    assert_eq!(
        judged(b"\x1f\0\0\x02\xff\x15\x04#28000Access denied for user"),
        no(1045, "#28000Access denied for user")
    );
    // The packet that this announces is longer than what is ever received.
    assert_eq!(judged(b"garbage"), ReplyVerdict::Undecided);
    assert_eq!(judged(b"\0\0\0\0"), pass(0, "", 4));
    assert_eq!(judged(b"\x02\0\0\0\xff\x15"), no(0x15, ""));
    assert_eq!(judged(b"\x01\0\0\0\xff"), no(0, ""));
}

#[test]
fn pgsql_answers() {
    assert_eq!(sent(&pgsql(b"hap")), b"\0\0\0\x12\0\x03\0\0user\0hap\0\0");
    let judged = |bytes| judged(Expectation::PgsqlAuthentication, bytes);
    let ok = "PostgreSQL server is ok";
    assert_eq!(judged(b"R\0\0\0\x08\0\0\0\0"), pass(0, ok, 9));
    assert_eq!(
        judged(b"E\0\0\0\x30SFATAL\0C28000\0Mno pg_hba\0\0"),
        bad("FATAL")
    );
    assert_eq!(
        judged(b"X\0\0\0\x08\0\0\0\0"),
        no(0, "PostgreSQL unknown error")
    );
    assert_eq!(judged(b"N"), ReplyVerdict::Undecided);
    assert_eq!(judged(b"12345678"), ReplyVerdict::Undecided);
    let unknown = no(0, "PostgreSQL unknown error");
    for (kind, is_known) in [(1, false), (5, true), (8, false), (10, true), (11, false)] {
        let verdict = if is_known { pass(0, ok, 9) } else { unknown };
        let answer = [b'R', 0, 0, 0, 8, 0, 0, 0, kind];
        let found = Expectation::PgsqlAuthentication.parse_reply(&answer, false);
        assert_eq!(found, verdict, "{kind}");
    }
}

#[test]
fn redis_answers() {
    assert_eq!(sent(&redis()), b"*1\r\n$4\r\nPING\r\n");
    let judged = |bytes| judged(Expectation::RedisPong, bytes);
    assert_eq!(judged(b"+PONG\r\n"), pass(0, "Redis server is ok", 7));
    assert_eq!(judged(b"-NOAUTH x\r\n"), ReplyVerdict::Undecided);
    assert_eq!(
        judged(b"-LOADING\r\n+PONG\r\n"),
        pass(0, "Redis server is ok", 17)
    );
    assert_eq!(judged(b"+PONG"), ReplyVerdict::Undecided);
}

#[test]
fn smtp_answers() {
    assert_eq!(sent(&smtp(None)), b"HELO localhost\r\nQUIT\r\n");
    assert_eq!(sent(&smtp(Some(("EHLO", b"a.b")))), b"EHLO a.b\r\nQUIT\r\n");
    assert_eq!(sent(&smtp(Some(("XHLO", b"a.b")))), b"HELO a.b\r\nQUIT\r\n");
    let hello = |bytes, ended| Expectation::SmtpHello.parse_reply(bytes, ended);
    assert_eq!(hello(b"250-a\r\n250 ok\r\nx", false), pass(250, "a", 16));
    assert_eq!(hello(b"250 ok", false), pass(250, "ok", 6));
    for other in [
        &b"554 no\r\n"[..],
        b"250-a\n250 b\n",
        b"250-a\r\n554 no\r\n",
    ] {
        assert_eq!(hello(other, false), ReplyVerdict::Undecided);
    }
    assert_eq!(hello(b"554 no\r\n", true), no(554, "no"));
    assert_eq!(hello(b"250-a\r\n554 no\r\n", true), no(250, "a"));
    assert_eq!(hello(b"2500 ok\r\n", true), no(250, "ok"));
    let quit = |bytes| judged(Expectation::SmtpQuit, bytes);
    assert_eq!(quit(b"221-bye\r\n"), pass(221, "bye", 9));
    assert_eq!(quit(b"221   x\r\n"), pass(221, "x", 9));
    assert_eq!(quit(b"500 no\r\n"), no(500, "no"));
    assert_eq!(quit(b"xyz abc\r\n"), no(0, "abc"));
    assert_eq!(quit(b"221"), ReplyVerdict::Undecided);
    let greeting = |bytes, ended| Expectation::SmtpGreeting.parse_reply(bytes, ended);
    assert_eq!(greeting(b"220 hi", false), pass(220, "hi", 6));
    assert_eq!(greeting(b"554 no\r\n", false), no(554, "no"));
    assert_eq!(greeting(b"2200\r\n", false), bad("2200"));
    assert_eq!(greeting(b"220\n", false), bad("220"));
    assert_eq!(greeting(b"220-hi\r\n220 ho\r\n", false), bad("220-hi"));
    assert_eq!(greeting(b"220", true), bad("220"), "a code must be ended");
}

#[test]
fn ldap_answers() {
    assert_eq!(
        sent(&ldap()),
        b"0\x0c\x02\x01\x01`\x07\x02\x01\x03\x04\0\x80\0"
    );
    let judged = |bytes| judged(Expectation::LdapBound, bytes);
    let see = "See RFC: http://tools.ietf.org/html/rfc4511#section-4.1.9";
    let ok = b"0\x0c\x02\x01\x01a\x07\x0a\x01\0\x04\0\x04\0";
    assert!(matches!(
        judged(ok),
        ReplyVerdict::Pass { code: Some(0), .. }
    ));
    let long = b"0\x84\0\0\0\x10\x02\x01\x01a\x84\0\0\0\x07\x0a\x01\0\x04\0\x04\0";
    assert!(matches!(judged(long), ReplyVerdict::Pass { .. }));
    let refused = b"0\x0c\x02\x01\x01a\x07\x0a\x01\x31\x04\0\x04\0";
    assert_eq!(judged(refused), no(49, see));
    let not = "Not LDAPv3 protocol";
    assert_eq!(judged(b"xxxxxxx"), ReplyVerdict::Undecided);
    assert_eq!(judged(b"xxxxxxxxxxxxxx"), bad(not));
    let waits = b"0\x0e\x02\x01\x01a\x07\x0a\x01\x31\x04\0\x04\0";
    assert_eq!(judged(waits), ReplyVerdict::Undecided);
    assert_eq!(
        judged(b"0\x0c\x02\x01\x02a\x07\x0a\x01\0\x04\0\x04\0"),
        bad(not)
    );
    for form in [0x80, 0x81, 0x83, 0x85] {
        let reply = [&[0x30, form], &[0; 12][..]].concat();
        let found = Expectation::LdapBound.parse_reply(&reply, false);
        assert_eq!(found, bad(not), "{form}");
    }
}

#[test]
fn ssl_answers() {
    let hello = sent(&ssl_hello(0x6b01_6646));
    assert_eq!(hello.len(), 126);
    assert_eq!(
        hello[..15],
        *b"\x16\x03\0\0\x79\x01\0\0\x75\x03\0\x6b\x01\x66\x46"
    );
    assert_eq!(hello[43..50], *b"\0\0\x4e\0\x01\0\x02");
    assert_eq!(hello[120..], *b"\0\x39\0\x3a\x01\0");
    let judge = |bytes| Expectation::SslHello.parse_reply(bytes, false);
    assert!(matches!(
        judge(b"\x16\x03\0\0\x02\x02"),
        ReplyVerdict::Pass { .. }
    ));
    assert!(matches!(
        judge(b"\x15\x03\0\0\x02\x02"),
        ReplyVerdict::Pass { .. }
    ));
    assert_eq!(judge(b"\x16"), ReplyVerdict::Undecided);
    assert_eq!(judge(b"HTTP/1.0 400\r\n"), bad(""));
}

#[test]
fn replies_that_end_early() {
    let ends: [(Expectation, &[u8], ReplyVerdict<'_>); 14] = [
        (Expectation::LdapBound, b"", bad("Not LDAPv3 protocol")),
        (Expectation::LdapBound, b"0\x0c\x02\x01", bad("")),
        (
            Expectation::LdapBound,
            b"0\x0c\x02\x01\x01a\x07\x0a\x01\0\x04\0",
            bad(""),
        ),
        (Expectation::MysqlPacket, b"", bad("")),
        (Expectation::MysqlPacket, b"\x4a\0\0\0\x0a5", bad("")),
        (
            Expectation::PgsqlAuthentication,
            b"",
            no(0, "PostgreSQL unknown error"),
        ),
        (
            Expectation::PgsqlAuthentication,
            b"R\0",
            no(0, "PostgreSQL unknown error"),
        ),
        (Expectation::RedisPong, b"", no(0, "")),
        (Expectation::RedisPong, b"+PONG", no(0, "+PONG")),
        (Expectation::SmtpGreeting, b"", bad("")),
        (Expectation::SmtpGreeting, b"22", bad("22")),
        (Expectation::SmtpHello, b"", no(0, "")),
        (Expectation::SmtpQuit, b"25", no(25, "")),
        (Expectation::SslHello, b"", bad("")),
    ];
    for (expectation, received, expected) in ends {
        let verdict = expectation.parse_reply(received, true);
        assert_eq!(verdict, expected, "{expectation:?} {received:?}");
    }
    assert!(matches!(
        Expectation::SslHello.parse_reply(b"\x16", true),
        ReplyVerdict::Pass { .. }
    ));
}

/// A frame that holds these entries.
fn frame(kind: u8, entries: &[u8]) -> Vec<u8> {
    let length = u8::try_from(entries.len() + 7).unwrap();
    [&[0, 0, 0, length, kind, 0, 0, 0, 1, 0, 0], entries].concat()
}

#[test]
fn spop_answers() {
    let hello: &[u8] = b"\0\0\0\x4e\x01\0\0\0\x01\0\0\x12supported-versions\x08\x032.0\
        \x0emax-frame-size\x03\xfc\xf0\x06\x0ccapabilities\x08\0\x0bhealthcheck\x11";
    assert_eq!(sent(&spop(16380)), hello);
    let expectation = Expectation::SpopHello {
        frame_bytes_max: 16380,
    };
    const SIZE: &[u8] = b"\x0emax-frame-size\x03\xfc\xf0\x06";
    const REST: &[u8] = b"\x0ccapabilities\x08\0";
    let version = |text: &[u8]| {
        let length = u8::try_from(text.len()).unwrap();
        [b"\x07version\x08", &[length][..], text].concat()
    };
    let whole = |text: &[u8]| [&version(text), SIZE, REST].concat();
    let bad_frame = bad("invalid frame received");
    let verdict = |bytes: &[u8]| match expectation.parse_reply(bytes, false) {
        ReplyVerdict::Fail { text, .. } => String::from_utf8(text.to_vec()).unwrap(),
        ReplyVerdict::Pass { .. } => "pass".into(),
        ReplyVerdict::Undecided => "wait".into(),
    };
    for (text, is_version) in [
        ("2.0", true),
        ("02.00", true),
        (" 2.0\t", true),
        ("2.", false),
        ("2.0x", false),
        ("2.1000", false),
    ] {
        let expected = if is_version {
            "pass"
        } else {
            "invalid frame received"
        };
        assert_eq!(
            verdict(&frame(101, &whole(text.as_bytes()))),
            expected,
            "{text}"
        );
    }
    for (entries, text) in [
        (whole(b"1.0"), "unsupported version"),
        (whole(b"2.1"), "unsupported version"),
        ([SIZE, REST].concat(), "version value not found"),
        (
            [&version(b"2.0"), REST].concat(),
            "max-frame-size value not found",
        ),
        (
            [&version(b"2.0"), SIZE].concat(),
            "capabilities value not found",
        ),
        (
            b"\x0emax-frame-size\x03\x05".to_vec(),
            "max-frame-size too big or too small",
        ),
        (b"\x01a\x06\x01\x02\x03".to_vec(), "invalid frame received"),
        (b"\0\0".to_vec(), "invalid frame received"),
    ] {
        assert_eq!(verdict(&frame(101, &entries)), text);
        assert_eq!(verdict(&frame(102, &entries)), text);
    }
    let good = frame(101, &whole(b"2.0"));
    for cut in 0..good.len() {
        assert_eq!(verdict(&good[..cut]), "wait", "{cut}");
        let ended = expectation.parse_reply(&good[..cut], true);
        assert_eq!(ended, if cut == 0 { bad("") } else { bad_frame });
    }
    assert_eq!(
        verdict(&[&good[..], b"x"].concat()),
        "invalid frame received"
    );
    assert_eq!(
        verdict(&frame(103, &whole(b"2.0"))),
        "invalid frame received"
    );
    assert_eq!(verdict(&[0xff; 11]), "invalid frame received");
}
