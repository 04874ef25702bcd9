//! Tests of the command line.

use super::values::*;
use super::*;

fn words(line: &str) -> impl Iterator<Item = String> {
    line.split(' ').map(str::to_owned)
}

fn plan(line: &str) -> Result<Plan, String> {
    match read(words(line))? {
        Command::Run(plan) => Ok(*plan),
        other => panic!("{line}: {other:?}"),
    }
}

#[test]
fn a_line_becomes_requests() {
    let plan = plan(
        "http --path /a --path /b --header A:b --method POST --body-bytes 3 --close \
         http://127.0.0.1:81/c 127.0.0.1:82 unix@/tmp/s --expect-status=200,300-308",
    )
    .unwrap();
    let paths: Vec<usize> = plan.origins.iter().map(|o| o.urls.len()).collect();
    assert_eq!(paths, [3, 2, 2]);
    assert_eq!(
        String::from_utf8(plan.origins[0].urls[0].head.clone()).unwrap(),
        "POST /c HTTP/1.1\r\nHost: 127.0.0.1:81\r\nA:b\r\nContent-Length: 3\r\n\
         Connection: close\r\n\r\n"
    );
    assert_eq!(&plan.body[..], b"xxx");
    assert_eq!(plan.origins[2].address.to_string(), "unix@/tmp/s");
    assert_eq!(plan.expect.statuses, [200..=200, 300..=308]);
    assert!(!plan.is_idempotent());
}

#[test]
fn what_is_not_said_is_usual() {
    let http = plan("127.0.0.1").unwrap();
    assert_eq!(http.origins[0].address.to_string(), "127.0.0.1:80");
    assert_eq!(http.duration, Some(Duration::from_secs(10)));
    assert!(!http.is_closing && http.is_idempotent());
    assert!(plan("connect 127.0.0.1:1").unwrap().is_closing);
    let sockets = plan("websockets 127.0.0.1:1").unwrap();
    assert_eq!(sockets.mode, Mode::WebSockets);
    assert_eq!(sockets.origins[0].urls[0].path, "/ws");
}

#[test]
fn a_mode_behind_other_words_is_no_host() {
    for word in ["http", "connect", "handshakes", "websockets", "report"] {
        let message = plan(&format!("--connections 2 {word} 127.0.0.1:1")).unwrap_err();
        assert!(message.contains("comes before all others"), "{message}");
    }
}

#[test]
fn requests_may_be_http2() {
    assert_eq!(plan("127.0.0.1:1").unwrap().streams, None);
    assert_eq!(plan("--h2 127.0.0.1:1").unwrap().streams, Some(1));
    assert_eq!(
        plan("--streams 3 --h2 127.0.0.1:1").unwrap().streams,
        Some(3)
    );
    assert!(plan("--h2 https://127.0.0.1:1 --insecure").is_ok());
    assert!(plan("connect --h2 127.0.0.1:1").unwrap().is_closing);
}

#[test]
fn a_target_may_be_over_tls() {
    let name = |line: &str| {
        let plan = plan(&format!("{line} --insecure")).unwrap();
        assert!(plan.tls.is_some(), "{line}");
        let name = plan.origins[0].tls.as_ref().unwrap().to_str().into_owned();
        (name, plan.origins[0].address.to_string())
    };
    let expected = |name: &str, address: &str| (name.to_owned(), address.to_owned());
    assert_eq!(
        name("https://127.0.0.1"),
        expected("127.0.0.1", "127.0.0.1:443")
    );
    assert_eq!(name("https://[::1]:81/x"), expected("::1", "[::1]:81"));
    assert_eq!(
        name("--tls 127.0.0.1:81"),
        expected("127.0.0.1", "127.0.0.1:81")
    );
    assert_eq!(
        name("handshakes unix@/tmp/s"),
        expected("localhost", "unix@/tmp/s")
    );
    assert!(plan("--tls http://127.0.0.1:81 --insecure").is_err());
}

#[test]
fn times_have_units() {
    for (text, ms) in [("2", 2000), ("1.5s", 1500), ("20ms", 20), ("1m", 60_000)] {
        assert_eq!(duration("", text), Ok(Duration::from_millis(ms)));
    }
}

#[test]
fn what_is_wrong_is_named() {
    for line in [
        "",
        "--rate 0 127.0.0.1:1",
        "--rate fast 127.0.0.1:1",
        "--connections 0 127.0.0.1:1",
        "--duration 1h 127.0.0.1:1",
        "--duration -1 127.0.0.1:1",
        "--expect-status 20 127.0.0.1:1",
        "--header nothing 127.0.0.1:1",
        "--what 127.0.0.1:1",
        "--streams 2 127.0.0.1:1",
        "--h2 --streams 0 127.0.0.1:1",
        "connect --h2 --streams 2 127.0.0.1:1",
        "websockets --h2 127.0.0.1:1",
        "--h2 https://127.0.0.1:1 --insecure --alpn http/1.1",
        "--path",
        "--urls /nowhere",
        "--body @/nowhere 127.0.0.1:1",
        "--connections 1 127.0.0.1:1 127.0.0.1:2",
        "websockets --body x 127.0.0.1:1",
        "--message-bytes 0 127.0.0.1:1",
        "127.0.0.1:99999",
        "--sni a.example --insecure 127.0.0.1:1",
        "https://127.0.0.1:1",
        "https://127.0.0.1:1 --insecure --cacert /nowhere",
        "https://127.0.0.1:1 --cacert /nowhere",
        "https://127.0.0.1:1 --insecure --alpn h2",
        "https://127.0.0.1:1 --insecure --ciphers RC4-MD5",
        "https://127.0.0.1:1 --insecure --groups P-192",
        "https://127.0.0.1:1 --insecure --tls-version 1.1",
        "https://127.0.0.1:1 --insecure --tls-version 1.3 --ciphers ECDHE-RSA-AES128-GCM-SHA256",
        "https://127.0.0.1:1 --insecure --resume sometimes",
        "https://127.0.0.1:1 --insecure --key /nowhere",
        "handshakes --insecure http://127.0.0.1:1",
    ] {
        assert!(plan(line).is_err(), "{line}");
    }
}

#[test]
fn a_body_is_text_a_file_or_a_number_of_bytes() {
    let text = plan("--body a=b --content-type text/x 127.0.0.1:1").unwrap();
    assert_eq!(
        (&text.body[..], text.method.as_str()),
        (&b"a=b"[..], "POST")
    );
    let head = String::from_utf8(text.origins[0].urls[0].head.clone()).unwrap();
    assert!(
        head.contains("\r\nContent-Type: text/x\r\nContent-Length: 3\r\n"),
        "{head}"
    );
    let path = std::env::temp_dir().join(format!("ballast-body-{}", std::process::id()));
    std::fs::write(&path, "{}").unwrap();
    let file = plan(&format!(
        "--method PUT --body @{} 127.0.0.1:1",
        path.display()
    ));
    std::fs::remove_file(&path).unwrap();
    let file = file.unwrap();
    assert_eq!((&file.body[..], file.method.as_str()), (&b"{}"[..], "PUT"));
    assert_eq!(plan("--body-bytes 9 127.0.0.1:1").unwrap().body.len(), 9);
}

#[test]
fn urls_come_from_the_line_and_from_a_file() {
    let path = std::env::temp_dir().join(format!("ballast-urls-{}", std::process::id()));
    std::fs::write(
        &path,
        "# mixed\nhttp://127.0.0.1:1/a 3\nhttp://127.0.0.1:2/b\n",
    )
    .unwrap();
    let plan = plan(&format!("127.0.0.1:1/c --urls {}", path.display()));
    std::fs::remove_file(&path).unwrap();
    let plan = plan.unwrap();
    assert_eq!((plan.origins.len(), plan.url_count()), (2, 3));
    assert_eq!(plan.origins[0].urls[1].weight, 3);
    // The first server has four of the five shares.
    let first = plan.shares.iter().filter(|share| **share == 0).count();
    assert_eq!((first, plan.shares.len()), (13, 16));
}

#[test]
fn reports_become_a_page() {
    let page = |line: &str| read(words(line));
    let Ok(Command::Page { reports, html }) = page("report a.json b.json --html x.html") else {
        panic!("it is a page");
    };
    assert_eq!((reports.len(), html.to_str()), (2, Some("x.html")));
    for line in [
        "report a.json",
        "report --html x",
        "report a --json --html x",
    ] {
        assert!(page(line).is_err(), "{line}");
    }
}

#[test]
fn secrets_are_not_shown() {
    let line = "http --header Authorization:secret --body secret --rate 5 127.0.0.1:1";
    let plan = plan(line).unwrap();
    assert_eq!(
        plan.command,
        "ballast-load http --header 'Authorization: ...' --body ... --rate 5 127.0.0.1:1"
    );
}
