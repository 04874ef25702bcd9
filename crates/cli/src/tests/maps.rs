//! Maps and lists over a session: the words are those HAProxy 2.6 answers.

use std::sync::Arc;
use std::time::Instant;

use ballast_expr::{AclSet, ConfigLine as CommandLine, Expr, Linker, Store};

use super::{limits, worker};

/// A map of numbers, a map of networks and a list.
pub(super) fn patterns() -> Arc<Store> {
    let store = Store::new();
    let mut files = |name: &str| {
        Ok(match name {
            "m.map" => b"a 1\nb 2\nb 3\n".to_vec(),
            "ip.map" => b"10.0.0.0/8 x\n10.1.0.0/16 y\n".to_vec(),
            _ => b"foo\nbar baz\n".to_vec(),
        })
    };
    let at = |line| CommandLine {
        file: "h.cfg".into(),
        line,
    };
    let mut acls = AclSet::new();
    acls.declare(&["one", "path", "-i", "-f", "l.lst", "/In"])
        .unwrap();
    acls.set_config_line("one", &at(3));
    acls.link(&store, &mut files).unwrap();
    for (line, text) in [(5, "path,map_str_int(m.map)"), (6, "src,map_ip(ip.map)")] {
        store.set_config_line(&at(line));
        let mut expr: Expr = text.parse().unwrap();
        let mut linker = Linker {
            store: &store,
            files: &mut files,
            acls: &acls,
        };
        expr.link(&mut linker).unwrap();
    }
    Arc::new(store)
}

#[test]
fn lists_are_shown_with_where_they_are_used() {
    let server = worker("maps-show", limits(), 1);
    assert_eq!(
        server.ask("show map; show acl\n"),
        "# id (file) description\n\
         2 (m.map) pattern loaded from file 'm.map' used by map at file 'h.cfg' line 5. \
         curr_ver=0 next_ver=0 entry_cnt=3\n\
         3 (ip.map) pattern loaded from file 'ip.map' used by map at file 'h.cfg' line 6. \
         curr_ver=0 next_ver=0 entry_cnt=2\n\n\
         # id (file) description\n\
         0 (l.lst) pattern loaded from file 'l.lst' used by acl at file 'h.cfg' line 3. \
         curr_ver=0 next_ver=0 entry_cnt=2\n\
         1 () acl 'path' file 'h.cfg' line 3. curr_ver=0 next_ver=0 entry_cnt=1\n\n"
    );
    assert_eq!(
        server.ask("show map m.map; show map #0; show acl #1; show map @4 m.map\n"),
        "0x1 a 1\n0x2 b 2\n0x3 b 3\n\n\
         Unknown map identifier. Please use #<id> or <file>.\n\n0x1 /In\n\n\n"
    );
    assert_eq!(
        server.ask("get map m.map b; get map ip.map 10.1.2.3; get map m.map z; get map m.map\n"),
        "type=str, case=sensitive, found=yes, idx=tree, key=\"b\", value=\"2\", type=\"sint\"\n\n\
         type=ip, case=sensitive, found=yes, idx=tree, key=\"10.1.0.0/16\", value=\"y\", \
         type=\"str\"\n\n\
         type=str, case=sensitive, found=no\n\nMissing map identifier and/or key.\n\n"
    );
    assert_eq!(
        server.ask("get acl l.lst FOO; get acl #1 /in; get acl #9 x\n"),
        "type=str, case=insensitive, match=yes, idx=list, pattern=\"foo\"\n\n\
         type=str, case=insensitive, match=yes, idx=list, pattern=\"/In\"\n\n\
         Unknown ACL identifier. Please use #<id> or <file>.\n\n"
    );
}

#[test]
fn entries_come_change_and_go() {
    let server = worker("maps-change", limits(), 1);
    assert_eq!(
        server.ask("add map m.map k 7; add map m.map k x; add map ip.map z 1; add map m.map k\n"),
        "\nunable to parse 'x'.\n\n'z' is not a valid IPv4 or IPv6 address.\n\n\
         'add map' expects three parameters (map identifier, key and value) or one parameter \
         (map identifier) and a payload\n\n"
    );
    assert_eq!(
        server
            .ask("set map m.map b 9; set map m.map #0x1 8; set map m.map z 1; set map m.map b x\n"),
        "\n\nentry not found.\n\nunable to parse 'x'.\n\n"
    );
    assert_eq!(
        server.ask("del map m.map #0x2; del map m.map z; del acl x y; show map m.map\n"),
        "\nKey not found.\n\nUnknown ACL identifier. Please use #<id> or <file>.\n\n\
         0x1 a 8\n0x3 b 9\n0x4 k 7\n\n"
    );
    assert_eq!(
        server
            .ask("add acl #1 /new; add acl #1; add acl m.map x; clear acl l.lst; show acl l.lst\n"),
        "\n'add acl' expects two parameters: ACL identifier and pattern.\n\n\
         This ACL is shared with a map containing samples. You must use the command 'add map' \
         to add values.\n\n\n\n"
    );
}

#[test]
fn a_prepared_version_is_matched_once_committed() {
    let server = worker("maps-version", limits(), 1);
    assert_eq!(
        server.ask("set severity-output number; add map @1 m.map n 1; prepare map m.map\n"),
        "\n[3]: Version number in the future, please use 'prepare map' before.\n\n\
         [6]: New version created: 1\n\n"
    );
    assert_eq!(
        server.ask(
            "prompt i\nadd map @1 m.map <<\nn 1\n  o   2 \n\nget map m.map n; show map @1 m.map\n"
        ),
        "\n\ntype=str, case=sensitive, found=no\n\n0x4 n 1\n0x5 o 2\n\n"
    );
    assert_eq!(
        server.ask("commit map m.map; commit map @2 m.map; commit map @1 m.map; get map m.map o\n"),
        "Missing version number.\n\nVersion number out of range.\n\n\n\
         type=str, case=sensitive, found=yes, idx=tree, key=\"o\", value=\"2\", type=\"sint\"\n\n"
    );
}

#[test]
fn a_payload_is_added_whole_or_not_at_all() {
    let server = worker("maps-payload", limits(), 1);
    assert_eq!(
        server.ask(
            "prompt i\nadd map m.map <<\nx 1\ny\n\nadd map m.map <<\nx 1\ny z\n\nshow map m.map\n"
        ),
        "\nMissing value for key 'y'.\n\nunable to parse 'z'.\n\n0x1 a 1\n0x2 b 2\n0x3 b 3\n\n"
    );
    assert_eq!(
        server.ask("prompt i\nadd acl l.lst <<END\n  /a b\n#c\nEND\nshow acl l.lst\n"),
        "\n\n0x1 foo\n0x2 bar baz\n0x3 /a b\n0x4 #c\n\n"
    );
}

#[test]
fn a_hundred_thousand_entries_take_about_a_second() {
    let server = worker("maps-bulk", limits(), 1);
    let lines: String = (0..100_000)
        .map(|number| format!("key{number} {number}\n"))
        .collect();
    let begun = Instant::now();
    assert_eq!(server.ask(&format!("add map m.map <<\n{lines}\n")), "\n");
    // Were an entry to cost the list, it would be hours: a slow machine is no reason to fail.
    assert!(begun.elapsed().as_secs() < 30, "{:?}", begun.elapsed());
    let shown = server.ask("show map m.map\n");
    assert_eq!(
        shown.lines().filter(|line| line.starts_with("0x")).count(),
        100_003
    );
}
