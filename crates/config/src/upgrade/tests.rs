//! What upgrading changes, and that it changes nothing else.

use crate::tests::load_with_stand_ins;
use crate::upgrade;
use ballast_syntax::Severity;

fn lines(section: &str, line: &str) -> Vec<String> {
    let text = format!("{section}\n    {line}\n");
    let upgraded = upgrade("t.cfg", text.as_bytes());
    let new = String::from_utf8(upgraded.text).unwrap();
    new.lines()
        .skip(1)
        .map(|line| line.trim().to_owned())
        .collect()
}

fn proxy(line: &str) -> Vec<String> {
    lines("listen l", line)
}

#[test]
fn removed_words_become_what_replaces_them() {
    for (old, new) in [
        ("contimeout 5000", "timeout connect 5000"),
        ("clitimeout 50s # slow", "timeout client 50s # slow"),
        ("redispatch", "option redispatch"),
        ("block if bad", "http-request deny if bad"),
        ("option forceclose", "option httpclose"),
        (
            "reqadd X-A:\\ b\\ 100% if x",
            "http-request add-header X-A 'b 100%%' if x",
        ),
        (
            "rspadd Strict-TransportPrefix-Security:\\ max-age=1",
            "http-response add-header Strict-TransportPrefix-Security max-age=1",
        ),
        (
            "reqidel ^X-Forwarded-For:.*",
            "http-request del-header X-Forwarded-For",
        ),
        ("rspidel ^Server.*", "http-response del-header Server"),
        (
            "reqirep ^Host:\\ www.(.*)$ Host:\\ \\1 if w",
            "http-request replace-header Host '(?i)^www.(.*)$' '\\1' if w",
        ),
        (
            "reqrep ^([^\\ :]*)\\ /a/(.*) \\1\\ /\\2",
            "http-request replace-pathq ^/a/(.*) '/\\1'",
        ),
        (
            "reqrep ^([^\\ ]*\\ /)a[/]?(.*) \\1\\2",
            "http-request replace-pathq ^/a[/]?(.*) '/\\1'",
        ),
        (
            "rsprep ^Location:\\ http://(.*) Location:\\ https://\\1",
            "http-response replace-header Location ^http://(.*) 'https://\\1'",
        ),
        (
            "reqideny ^Host:\\ bad",
            "http-request deny if { req.fhdr(Host) -i -m reg ^bad }",
        ),
        (
            "monitor-net 192.0.2.0/24",
            "http-request return status 200 if { src 192.0.2.0/24 }",
        ),
        ("dispatch 192.0.2.1:80", "server dispatch 192.0.2.1:80"),
    ] {
        assert_eq!(proxy(old), [new], "{old}");
    }
    assert_eq!(lines("global", "nbproc 4"), ["nbthread 4"]);
    assert!(lines("global", "debug").is_empty());
    assert!(proxy("option http-tunnel").is_empty());
    assert_eq!(
        proxy("appsession SID len 52 timeout 3h"),
        [
            "stick-table type string len 52 size 1m expire 3h",
            "stick store-response res.cook(SID)",
            "stick match req.cook(SID)"
        ]
    );
}

#[test]
fn an_address_moves_to_its_own_line() {
    let upgraded = upgrade("t.cfg", b"listen stats :1936\n    mode http\n");
    assert_eq!(
        upgraded.text,
        b"listen stats\n    bind :1936\n    mode http\n"
    );
    assert_eq!(upgraded.changes[0].line, 1);
    assert_eq!(
        upgraded.diff,
        "--- t.cfg\n+++ t.cfg\n@@ -1,2 +1,3 @@\n-listen stats :1936\n+listen stats\n+    bind :1936\n     mode http\n"
    );
}

#[test]
fn the_rest_stays_byte_for_byte() {
    let text =
        "# head\r\nglobal\r\n\tmaxconn  10   # many\r\n\r\n  debug\r\nlisten  l  \r\n  bind :80";
    let upgraded = upgrade("t.cfg", text.as_bytes());
    assert_eq!(
        String::from_utf8(upgraded.text).unwrap(),
        "# head\r\nglobal\r\n\tmaxconn  10   # many\r\n\r\nlisten  l  \r\n  bind :80\n"
    );
    let plain = "frontend f\n  bind :80\n";
    let upgraded = upgrade("t.cfg", plain.as_bytes());
    assert_eq!(
        (upgraded.text, upgraded.diff),
        (plain.into(), String::new())
    );
}

#[test]
fn what_cannot_be_told_is_left() {
    let upgraded = upgrade("t.cfg", b"listen l\n  reqrep ^(GET|POST)\\ /x.* \\1\\ /y\n");
    assert!(upgraded.changes.is_empty());
    assert_eq!(upgraded.left.len(), 1);
}

#[test]
fn what_stands_between_other_words_is_rewritten_too() {
    for (old, new) in [
        (
            "option httpchk GET / HTTP/1.1\\r\\nHost:\\ a.example\\r\\nX-A:\\ 1%",
            &[
                "option httpchk GET /",
                "http-check send ver HTTP/1.1 hdr Host a.example hdr X-A 1%%",
            ][..],
        ),
        ("bind :80 process all", &["bind :80"]),
        (
            "bind :80 process 1/2-3 name x",
            &["bind :80 thread 2-3 name x"],
        ),
    ] {
        assert_eq!(proxy(old), new, "{old}");
    }
}

#[test]
fn a_file_with_a_refused_line_is_not_rewritten() {
    for line in [
        "reqpass ^Host:",
        "option httpchk GET / HTTP/1.0\\r\\nnothing",
        "usesrc 192.0.2.1",
    ] {
        let upgraded = upgrade("t.cfg", format!("listen l\n  {line}\n").as_bytes());
        let left: Vec<&str> = upgraded.left.iter().map(|left| left.from.trim()).collect();
        assert_eq!((left, upgraded.changes.len()), (vec![line], 0), "{line}");
    }
}

#[test]
fn an_upgraded_file_loads() {
    let old = "global\n nbproc 2\ndefaults\n mode http\n contimeout 5s\n clitimeout 5s\n srvtimeout 5s\nlisten a :80\n reqadd X:\\ y\n rspidel ^Server\n option httpchk GET / HTTP/1.0\\r\\nHost:\\ a\n server s 192.0.2.1:80";
    assert!(load_with_stand_ins(old).has_alerts());
    let new = String::from_utf8(upgrade("t.cfg", old.as_bytes()).text).unwrap();
    let loaded = load_with_stand_ins(&new);
    assert!(
        crate::tests::messages(&loaded, Severity::Alert).is_empty(),
        "{new}: {:?}",
        loaded.diagnostics
    );
}
