//! Words that nobody knows: the message names the place, the word, what is allowed and the word that
//! was probably meant, for each kind of word of the rule language.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use ballast_tests::Program;

/// The sections around a line; `{global}`, `{front}`, `{back}` and `{more}` are where it may stand.
const AROUND: &str = "\
global
    expose-experimental-directives
    {global}
userlist members
    user anne insecure-password x
http-errors site
    errorfile 404 /dev/null
defaults
    mode http
    timeout client 10s
    timeout server 10s
    timeout connect 10s
frontend entry
    bind 127.0.0.1:1
    acl is_static path_beg /static
    {front}
    default_backend servers
backend servers
    stick-table type ip size 10 store gpc0
    server main1 127.0.0.1:2
    {back}
backend another
    server main2 127.0.0.1:2
    {more}
";

/// The place, the line, the word that is wrong, and what the message suggests; after `=` what it
/// says is allowed, where no word is near.
const MISSPELLED: &[(&str, &str, &str, &str)] = &[
    // keywords
    ("global", "maxcon 5", "maxcon", "maxconn"),
    ("front", "bnid 127.0.0.1:3", "bnid", "bind"),
    ("front", "htp-request deny", "htp-request", "http-request"),
    ("front", "option httplgo", "httplgo", "httplog"),
    ("front", "mode htttp", "htttp", "http"),
    ("front", "timeout clent 5s", "clent", "client"),
    ("back", "balence roundrobin", "balence", "balance"),
    ("back", "balance rondrobin", "rondrobin", "roundrobin"),
    ("back", "server s 127.0.0.1:1 chek", "chek", "check"),
    // actions
    ("front", "http-request dney", "dney", "deny"),
    (
        "front",
        "http-request set-heder a b",
        "set-heder",
        "set-header",
    ),
    (
        "front",
        "http-request redirct location /",
        "redirct",
        "redirect",
    ),
    (
        "front",
        "http-response del-heder a",
        "del-heder",
        "del-header",
    ),
    (
        "front",
        "http-after-response set-statos 200",
        "set-statos",
        "set-status",
    ),
    (
        "front",
        "http-request set-vr(txn.a) src",
        "set-vr(txn.a)",
        "set-var",
    ),
    ("front", "tcp-request connection rejekt", "rejekt", "reject"),
    ("front", "tcp-request session acept", "acept", "accept"),
    ("front", "tcp-request content acept", "acept", "accept"),
    ("back", "tcp-response content clsoe", "clsoe", "close"),
    // words of actions
    ("front", "http-request deny iff { path / }", "iff", "if"),
    (
        "front",
        "http-request deny unles { path / }",
        "unles",
        "unless",
    ),
    (
        "front",
        "http-request normalize-uri path-strip-dots",
        "path-strip-dots",
        "path-strip-dot",
    ),
    (
        "front",
        "http-request set-log-level warnin",
        "warnin",
        "warning",
    ),
    (
        "back",
        "http-request set-timeout servr 5s",
        "servr",
        "server",
    ),
    (
        "front",
        "http-request redirect lcation /",
        "lcation",
        "location",
    ),
    (
        "front",
        "http-request return statsu 200",
        "statsu",
        "status",
    ),
    ("front", "http-request del-header x -m sbu", "sbu", "sub"),
    (
        "front",
        "http-request use-service prometheus-exportr",
        "prometheus-exportr",
        "prometheus-exporter",
    ),
    ("front", "http-request strict-mode onn", "onn", "on"),
    ("front", "http-request capture path lenn 10", "lenn", "len"),
    (
        "front",
        "http-request set-var(txn.a,ifexist) src",
        "ifexist",
        "ifexists",
    ),
    (
        "front",
        "http-request return status 404 errorfiles ste",
        "ste",
        "site",
    ),
    // variables
    ("front", "http-request set-var(tnx.a) src", "tnx.a", "txn.a"),
    (
        "front",
        "http-request unset-var(session.a)",
        "session.a",
        "sess.a",
    ),
    (
        "front",
        "http-request deny if { var(request.a) x }",
        "request.a",
        "req.a",
    ),
    ("global", "set-var pro.a int(1)", "pro.a", "proc.a"),
    // samples
    ("front", "http-request set-header x %[sorc]", "sorc", "src"),
    (
        "front",
        "http-request set-header x %[req.hrd(host)]",
        "req.hrd",
        "req.hdr",
    ),
    (
        "front",
        "http-request set-var(txn.a) methd",
        "methd",
        "method",
    ),
    ("front", "use_backend servers if { pth /x }", "pth", "path"),
    (
        "front",
        "use_backend servers if { hdr_doom(host) x }",
        "hdr_doom",
        "hdr_dom",
    ),
    ("back", "stick on scr", "scr", "src"),
    ("back", "balance hash path,lwoer", "lwoer", "lower"),
    // converters
    (
        "front",
        "use_backend %[req.hdr(host),lowr]",
        "lowr",
        "lower",
    ),
    (
        "front",
        "log-format %[capture.req.hdr(0),regsb(a,b)]",
        "regsb",
        "regsub",
    ),
    ("front", "acl a path,url_decode /x", "url_decode", "url_dec"),
    // arguments
    (
        "front",
        "http-request set-header x %[date(0,sec)]",
        "sec",
        "=use 's', 'ms' or 'us'",
    ),
    (
        "front",
        "http-request set-header x %[fc_rtt(msec)]",
        "msec",
        "=use 'us' or 'ms'",
    ),
    (
        "front",
        "http-request set-header x %[uuid(5)]",
        "5",
        "=use '4' or '7'",
    ),
    (
        "front",
        "http-request set-header x %[bool(ture)]",
        "ture",
        "true",
    ),
    (
        "front",
        "http-request set-header x %[fc_pp_tlv(SSL_CM)]",
        "SSL_CM",
        "SSL_CN",
    ),
    (
        "front",
        "http-request set-header x %[path,json(uft8)]",
        "uft8",
        "utf8",
    ),
    (
        "front",
        "http-request set-header x %[path,url_enc(qery)]",
        "qery",
        "query",
    ),
    (
        "front",
        "http-request set-header x %[path,sha2(265)]",
        "265",
        "256",
    ),
    (
        "front",
        "http-request set-header x %[path,digest(sha265)]",
        "sha265",
        "sha256",
    ),
    (
        "front",
        "http-request set-header x %[path,hmac(sha1x,a2V5)]",
        "sha1x",
        "sha1",
    ),
    (
        "front",
        "http-request set-header x %[path,jwt_verify(hs256,k)]",
        "hs256",
        "HS256",
    ),
    (
        "front",
        "http-request set-header x %[path,mqtt_field_value(conect,username)]",
        "conect",
        "connect",
    ),
    (
        "front",
        "http-request set-header x %[path,mqtt_field_value(connect,usrname)]",
        "usrname",
        "username",
    ),
    (
        "front",
        "http-request set-header x %[req.body,protobuf(1,int23)]",
        "int23",
        "int32",
    ),
    (
        "front",
        "http-request set-header x %[req.body,fix_tag_value(MsgTyp)]",
        "MsgTyp",
        "MsgType",
    ),
    (
        "front",
        "http-request set-header x %[req.body,json_query(a,itn)]",
        "itn",
        "int",
    ),
    (
        "front",
        "http-request set-header x %[path,when(norml)]",
        "norml",
        "normal",
    ),
    (
        "front",
        "http-request set-header x \"%[path,regsub(a,b,x)]\"",
        "x",
        "=use 'g' or 'i'",
    ),
    (
        "front",
        "http-request set-header x %[path,set-var(txn.a,ifexsts)]",
        "ifexsts",
        "ifexists",
    ),
    (
        "front",
        "http-request set-header x %[path,concat(,tnx.b)]",
        "tnx.b",
        "txn.b",
    ),
    (
        "front",
        "http-request set-header x %[int(1),add(tnx.a)]",
        "tnx.a",
        "txn.a",
    ),
    // flags and matching methods
    ("front", "acl a path -I /x", "-I", "-i"),
    ("front", "acl a path -k /x", "-k", "='-i', '-f', '-m'"),
    ("front", "acl a path -m regex x", "regex", "reg"),
    ("front", "acl a path -m STR x", "STR", "str"),
    ("front", "acl a path -m begin x", "begin", "beg"),
    (
        "front",
        "acl a path -m foo x",
        "foo",
        "='found', 'int', 'ip'",
    ),
    // ACLs
    (
        "front",
        "use_backend servers if is_statc",
        "is_statc",
        "is_static",
    ),
    (
        "front",
        "http-request deny if !is_sttic",
        "is_sttic",
        "is_static",
    ),
    (
        "front",
        "http-request deny if METH_GTE",
        "METH_GTE",
        "METH_GET",
    ),
    (
        "front",
        "http-request deny if foo",
        "foo",
        "=declared before: is_static",
    ),
    (
        "front",
        "http-request deny if { acl(is_statik) }",
        "is_statik",
        "is_static",
    ),
    (
        "front",
        "http-request set-header x %[path,when(acl,is_statik)]",
        "is_statik",
        "is_static",
    ),
    ("front", "acl a acl(is_statik)", "is_statik", "is_static"),
    (
        "front",
        "log-format %[acl(is_statik)]",
        "is_statik",
        "is_static",
    ),
    // names of sections, servers and tables
    ("front", "use_backend sevrers if TRUE", "sevrers", "servers"),
    ("back", "use-server man1 if TRUE", "man1", "main1"),
    (
        "front",
        "http-request deny if { nbsrv(servrs) 1 }",
        "servrs",
        "servers",
    ),
    (
        "front",
        "http-request deny if { fe_conn(enrty) gt 1 }",
        "enrty",
        "entry",
    ),
    (
        "front",
        "http-request deny if { srv_is_up(servers/man1) }",
        "servers/man1",
        "main1",
    ),
    (
        "front",
        "http-request deny if { srv_is_up(srvers/main1) }",
        "srvers/main1",
        "servers",
    ),
    (
        "front",
        "http-request deny if { src,table_gpc0(servrs) gt 1 }",
        "servrs",
        "servers",
    ),
    (
        "front",
        "http-request track-sc0 src table servrs",
        "servrs",
        "servers",
    ),
    ("back", "stick on src table servrs", "servrs", "servers"),
    (
        "front",
        "http-request deny if !{ http_auth(membrs) }",
        "membrs",
        "members",
    ),
    // stick tables
    ("more", "stick-table type ipp size 1", "ipp", "ip"),
    (
        "more",
        "stick-table type ip size 1 exipre 5s",
        "exipre",
        "expire",
    ),
    (
        "more",
        "stick-table type ip size 1 srvkey adr",
        "adr",
        "addr",
    ),
    (
        "more",
        "stick-table type ip size 1 store gpc00",
        "gpc00",
        "gpc0",
    ),
    (
        "more",
        "stick-table type ip size 1 store conn_rat(10s)",
        "conn_rat",
        "conn_rate",
    ),
    (
        "more",
        "stick-table type ip size 1 store requests",
        "requests",
        "=one of:",
    ),
    // log formats
    ("front", "log-format %cii", "cii", "ci"),
    ("front", "error-log-format %ftt", "ftt", "ft"),
    ("front", "unique-id-format %cpp", "cpp", "cp"),
    ("front", "log-format %(n:strr)ci", "strr", "str"),
    ("front", "log-format %{+q}ci", "q", "Q"),
];

/// Rows whose word HAProxy 3.2 takes, and reads something else than what stands there.
const TAKEN_BY_HAPROXY: &[&str] = &["log-format %{+q}ci"];

/// The configuration with `line` at `place`, and the number of the line.
fn configuration(place: &str, line: &str) -> (String, usize) {
    let mark = format!("{{{place}}}");
    let number = AROUND.lines().position(|one| one.contains(&mark));
    let mut text = AROUND.replace(&mark, line);
    for other in ["{global}", "{front}", "{back}", "{more}"] {
        text = text.replace(other, "");
    }
    (text, number.expect("there is such a place") + 1)
}

/// What is wrong with the message of a row, if anything.
fn fault(row: &(&str, &str, &str, &str), ballast: &Program) -> Option<String> {
    let (place, line, word, wanted) = row;
    let (text, number) = configuration(place, line);
    let result = ballast.check(&text);
    let said = result.stderr + &result.stdout;
    let mut wanted_texts = vec![format!("haproxy.cfg:{number}]"), format!("'{word}'")];
    wanted_texts.push(match wanted.strip_prefix('=') {
        Some(allowed) => allowed.to_owned(),
        None => format!("did you mean '{wanted}'"),
    });
    if result.status.success() {
        return Some(format!("{line}: is accepted"));
    }
    let missing: Vec<_> = wanted_texts
        .iter()
        .filter(|text| !said.contains(*text))
        .collect();
    (!missing.is_empty()).then(|| format!("{line}: no {missing:?} in\n{said}"))
}

/// Runs `judge` on every row, on two threads.
fn judge_all(judge: impl Fn(&(&str, &str, &str, &str)) -> Option<String> + Sync) {
    let next = AtomicUsize::new(0);
    let faults = Mutex::new(Vec::new());
    let work = || {
        while let Some(row) = MISSPELLED.get(next.fetch_add(1, Ordering::Relaxed)) {
            if let Some(fault) = judge(row) {
                faults.lock().expect("no judge panics").push(fault);
            }
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(work);
        scope.spawn(work);
    });
    let faults = faults.into_inner().expect("no judge panics");
    assert!(
        faults.is_empty(),
        "{} of {} rows:\n{}",
        faults.len(),
        MISSPELLED.len(),
        faults.join("\n")
    );
}

#[test]
fn a_misspelled_word_is_named_with_the_nearest_known_one() {
    let ballast = Program::ballast();
    let (good, _) = configuration("front", "http-request allow");
    let result = ballast.check(&good);
    assert!(result.status.success(), "{}", result.stderr);
    judge_all(|row| fault(row, &ballast));
}

#[test]
fn haproxy_knows_none_of_the_words_either() {
    let haproxy = Program::haproxy();
    judge_all(|row| {
        let (text, _) = configuration(row.0, row.1);
        let is_taken = haproxy.check(&text).status.success();
        let is_known = TAKEN_BY_HAPROXY.contains(&row.1);
        (is_taken != is_known).then(|| format!("{}: accepted: {is_taken}", row.1))
    });
}
