//! TLS towards servers, on HAProxy and on Ballast: what the servers see, what clients and logs get
//! when a handshake fails, probes, and how connections and sessions are used again.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use ballast_tests::{
    Authority, Client, Launch, LogSink, Profile, Program, Proxy, RuntimeApi, WAIT_MAX, free_port,
    program,
};
use rustix::process::Signal;
use tempfile::TempDir;

/// The servers: a name, and how the dummy origin is started.
const SERVERS: &[(&str, &str)] = &[
    ("good", "--tls-cert a.pem --tls-cert c.pem"),
    ("old", "--tls-cert a.pem --tls-version 1.2"),
    ("new", "--tls-cert a.pem --tls-version 1.3"),
    ("expired", "--tls-cert expired.pem"),
    ("stranger", "--tls-cert stranger.pem"),
    ("asks", "--tls-cert a.pem --tls-client-ca ca.pem"),
    (
        "asks12",
        "--tls-cert a.pem --tls-client-ca ca.pem --tls-version 1.2",
    ),
    ("clear", ""),
];

/// Backends: a name, the server, and the words of its line.
const BACKENDS: &[(&str, &str, &str)] = &[
    ("none", "good", "verify none"),
    ("required", "good", "ca-file ca.pem"),
    ("stranger", "stranger", "ca-file ca.pem"),
    ("stranger-none", "stranger", "verify none"),
    ("expired", "expired", "ca-file ca.pem"),
    ("expired-none", "expired", "verify none"),
    ("host", "good", "ca-file ca.pem verifyhost b.example"),
    ("other-host", "good", "ca-file ca.pem verifyhost x.example"),
    ("name", "good", "ca-file ca.pem sni str(c.example)"),
    ("other-name", "good", "ca-file ca.pem sni str(x.example)"),
    (
        "name-and-host",
        "good",
        "ca-file ca.pem sni str(a.example) verifyhost x.example",
    ),
    ("header", "good", "ca-file ca.pem sni req.hdr(x-name)"),
    (
        "header-and-host",
        "good",
        "ca-file ca.pem sni req.hdr(x-name) verifyhost x.example",
    ),
    ("header-none", "good", "verify none sni req.hdr(x-name)"),
    ("certificate", "asks", "verify none crt client.pem"),
    ("certificate12", "asks12", "verify none crt client.pem"),
    ("no-certificate", "asks12", "verify none"),
    ("alpn", "good", "verify none alpn http/1.1"),
    ("max12", "good", "verify none ssl-max-ver TLSv1.2"),
    (
        "max12-no-tickets",
        "good",
        "verify none ssl-max-ver TLSv1.2 no-tls-tickets",
    ),
    ("min13", "good", "verify none ssl-min-ver TLSv1.3"),
    ("min13-old", "old", "verify none ssl-min-ver TLSv1.3"),
    ("max12-new", "new", "verify none ssl-max-ver TLSv1.2"),
    ("no-reuse", "good", "verify none no-ssl-reuse"),
    ("proxy-header", "good", "verify none send-proxy"),
];

/// Backends that try twice: a name, the first server, and the words of its line. The second is good.
const RETRIES: &[(&str, &str, &str)] = &[
    ("retried", "stranger", "ca-file ca.pem"),
    (
        "retried-host",
        "good",
        "ca-file ca.pem verifyhost x.example",
    ),
    ("retried-name", "good", "ca-file ca.pem sni str(x.example)"),
    (
        "retried-name-and-host",
        "good",
        "ca-file ca.pem sni str(x.example) verifyhost a.example",
    ),
    (
        "retried-header",
        "good",
        "ca-file ca.pem sni req.hdr(x-name)",
    ),
];

/// Requests: the backend, and the value of `x-name` if it is sent.
const CASES: &[(&str, Option<&str>)] = &[
    ("none", None),
    ("required", None),
    ("stranger", None),
    ("stranger-none", None),
    ("expired", None),
    ("expired-none", None),
    ("host", None),
    ("other-host", None),
    ("name", None),
    ("other-name", None),
    ("name-and-host", None),
    ("header", None),
    ("header", Some("a.example")),
    ("header", Some("b.example")),
    ("header", Some("c.example")),
    ("header", Some("A.Example")),
    ("header", Some("x.example")),
    ("header", Some("127.0.0.1")),
    ("header", Some("a b")),
    ("header-and-host", None),
    ("header-and-host", Some("b.example")),
    ("header-none", None),
    ("header-none", Some("a.example")),
    ("header-none", Some("x.example")),
    ("certificate", None),
    ("certificate12", None),
    ("no-certificate", None),
    ("alpn", None),
    ("max12", None),
    ("max12-no-tickets", None),
    ("min13", None),
    ("min13-old", None),
    ("max12-new", None),
    ("no-reuse", None),
    ("proxy-header", None),
    ("retried", None),
    ("retried", None),
    ("retried-host", None),
    ("retried-name", None),
    ("retried-name-and-host", None),
    ("retried-header", None),
    ("retried-header", Some("x.example")),
    ("retried-header", Some("127.0.0.1")),
];

/// The dummy origins, with the certificates of the test. Dropping them kills them.
struct Origins {
    children: Vec<Child>,
    ports: BTreeMap<&'static str, u16>,
    directory: TempDir,
}

impl Origins {
    fn start() -> Self {
        let directory = TempDir::new().expect("a temporary directory");
        write_certificates(directory.path());
        let mut origins = Self {
            children: Vec::new(),
            ports: BTreeMap::new(),
            directory,
        };
        for (name, words) in SERVERS {
            let port = free_port();
            let child = Command::new(program("ORIGIN", "target/debug/ballast-origin"))
                .args(words.split_whitespace())
                .args(["--name", name, "--listen", &format!("127.0.0.1:{port}")])
                .current_dir(origins.directory.path())
                .stdin(Stdio::null())
                .spawn()
                .expect("the origin starts");
            origins.children.push(child);
            origins.ports.insert(name, port);
        }
        let began = Instant::now();
        for port in origins.ports.values() {
            while std::net::TcpStream::connect(("127.0.0.1", *port)).is_err() {
                assert!(began.elapsed() < WAIT_MAX, "the origins listen");
                std::thread::yield_now();
            }
        }
        origins
    }

    /// The address of a server, and the words of its line with whole paths.
    fn line(&self, server: &str, words: &str) -> String {
        let at = self.directory.path().display();
        let words = ["ca.pem", "client.pem"]
            .iter()
            .fold(words.to_owned(), |words, file| {
                words.replace(file, &format!("{at}/{file}"))
            });
        format!("127.0.0.1:{} {words}", self.ports[server])
    }
}

impl Drop for Origins {
    fn drop(&mut self) {
        for child in &mut self.children {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn write_certificates(at: &Path) {
    let authority = Authority::new("the authority of the test");
    let stranger = Authority::new("another authority");
    let write = |name: &str, text: String| fs::write(at.join(name), text).expect("it is written");
    write("ca.pem", authority.certificate());
    let names = ["a.example", "b.example"];
    write("a.pem", authority.issue(&Profile::server(&names)).bundle());
    let other = Profile::server(&["c.example"]);
    write("c.pem", authority.issue(&other).bundle());
    let late = Profile {
        days: -20..=-10,
        ..Profile::server(&names)
    };
    write("expired.pem", authority.issue(&late).bundle());
    write(
        "stranger.pem",
        stranger.issue(&Profile::server(&names)).bundle(),
    );
    write("stranger-ca.pem", stranger.certificate());
    for (name, subject) in [("client.pem", "a client"), ("other.pem", "another client")] {
        write(name, authority.issue(&Profile::client(subject)).bundle());
    }
}

const DEFAULTS: &str = "\
defaults
    mode http
    timeout connect 2s
    timeout client 10s
    timeout server 10s
    retries 0
";

/// A proxy with all backends. A request says in `x-backend` where it goes.
fn start(program: &Program, origins: &Origins, log: &LogSink) -> (Proxy, u16) {
    let port = free_port();
    let mut text = format!(
        "global\n    log 127.0.0.1:{} format raw local0\n{DEFAULTS}    log global\n    \
         http-reuse never\n    log-format \"%b %ST %ts %rc\"\nfrontend site\n    \
         bind 127.0.0.1:{port}\n    http-request set-path /tls\n    \
         use_backend %[req.hdr(x-backend)]\n",
        log.port()
    );
    for (name, server, words) in BACKENDS {
        let line = origins.line(server, words);
        text.push_str(&format!("backend {name}\n    server s {line} ssl\n"));
    }
    for (name, server, words) in RETRIES {
        text.push_str(&format!(
            "backend {name}\n    retries 1\n    option redispatch 1\n    balance roundrobin\n    \
             server s1 {} ssl\n    server s2 {} ssl\n",
            origins.line(server, words),
            origins.line("good", "ca-file ca.pem"),
        ));
    }
    (Proxy::start(program, &text, &[port]), port)
}

/// What a client and the log get of two requests, each on a connection of its own to the server.
/// Ciphers and groups are left out: the libraries prefer others. So is, where names change, whether
/// a session was resumed: HAProxy remembers those of the last name only.
fn ask(port: u16, log: &LogSink, (backend, name): (&str, Option<&str>)) -> Vec<String> {
    let resumed = if name.is_some() { "resumed" } else { "<" };
    let name = name.map(|name| format!("x-name: {name}\r\n"));
    let name = name.unwrap_or_default();
    let mut told = Vec::new();
    for _ in 0..2 {
        let mut client = Client::connect(port);
        client.send(format!(
            "GET / HTTP/1.1\r\nhost: site\r\nx-backend: {backend}\r\n{name}connection: close\r\n\r\n"
        ));
        let response = client.response();
        let text = response.text();
        let lines = text.lines().filter(|line| {
            let left_out = ["cipher", "group", resumed];
            response.status == 200 && !left_out.iter().any(|begin| line.starts_with(begin))
        });
        let lines: Vec<&str> = lines.collect();
        told.push(format!(
            "{} {} | {}",
            response.status,
            lines.join(" "),
            log.line_with(backend)
        ));
    }
    told
}

#[test]
fn servers_see_and_clients_get_what_haproxy_gives() {
    let origins = Origins::start();
    let log = LogSink::start();
    let mut told = Program::both().map(|program| {
        let (_proxy, port) = start(&program, &origins, &log);
        CASES
            .iter()
            .map(|case| ask(port, &log, *case))
            .collect::<Vec<_>>()
    });
    let ours = told[1].split_off(0);
    let theirs = told[0].split_off(0);
    let mut differences = Vec::new();
    for ((case, theirs), ours) in CASES.iter().zip(theirs).zip(ours) {
        eprintln!("{case:?}: {theirs:?}");
        if theirs != ours {
            differences.push(format!(
                "{case:?}\n  HAProxy {theirs:?}\n  Ballast {ours:?}"
            ));
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

/// Checks: a name, lines of the backend, the server, the words of its line.
const CHECKS: &[(&str, &str, &str, &str)] = &[
    ("connects", "", "good", "ssl ca-file ca.pem"),
    (
        "asks",
        "option httpchk GET /tls",
        "good",
        "ssl ca-file ca.pem",
    ),
    (
        "steps",
        "option tcp-check\n    tcp-check connect ssl",
        "good",
        "ssl ca-file ca.pem",
    ),
    ("stranger", "", "stranger", "ssl ca-file ca.pem"),
    (
        "expired",
        "option httpchk GET /tls",
        "expired",
        "ssl ca-file ca.pem",
    ),
    (
        "host",
        "",
        "good",
        "ssl ca-file ca.pem verifyhost x.example",
    ),
    ("name", "", "good", "ssl ca-file ca.pem check-sni c.example"),
    (
        "other-name",
        "",
        "good",
        "ssl ca-file ca.pem check-sni x.example",
    ),
    (
        "traffic-name",
        "",
        "good",
        "ssl ca-file ca.pem sni str(x.example)",
    ),
    ("only-checks", "", "good", "check-ssl verify none"),
    ("not-checks", "", "clear", "ssl no-check-ssl verify none"),
    ("other-port", "", "clear", "ssl verify none port CLEAR"),
    (
        "other-port-ssl",
        "",
        "clear",
        "ssl check-ssl verify none port GOOD",
    ),
    (
        "certificate",
        "option httpchk GET /tls",
        "asks12",
        "ssl verify none crt client.pem",
    ),
    (
        "no-certificate",
        "option httpchk GET /tls",
        "asks12",
        "ssl verify none",
    ),
    (
        "rule-name",
        "option httpchk\n    http-check connect ssl sni c.example alpn http/1.1\n    \
         http-check send meth GET uri /tls\n    http-check expect string \"alpn: http/1.1\"",
        "good",
        "ssl verify none check-sni a.example",
    ),
    (
        "rule-without-default",
        "option httpchk\n    http-check connect ssl\n    http-check send meth GET uri /tls\n    \
         http-check expect string a.example",
        "good",
        "ssl verify none check-sni a.example",
    ),
    (
        "rule-with-default",
        "option httpchk\n    http-check connect default\n    http-check send meth GET uri /tls\n    \
         http-check expect string a.example",
        "good",
        "ssl verify none check-sni a.example",
    ),
    (
        "rule-clear",
        "option httpchk\n    http-check connect\n    http-check send meth GET uri /tls\n    \
         http-check expect string clear",
        "clear",
        "ssl verify none",
    ),
    (
        "rule-on-clear-line",
        "option tcp-check\n    tcp-check connect ssl port GOOD comment \"over TLS\"",
        "clear",
        "verify none",
    ),
    (
        "rule-fails",
        "option tcp-check\n    tcp-check connect ssl comment \"over TLS\"",
        "stranger",
        "ssl ca-file ca.pem",
    ),
];

#[test]
fn probes_have_haproxys_states_and_texts() {
    let origins = Origins::start();
    let told = Program::both().map(|program| {
        let (port, log) = (free_port(), LogSink::start());
        let mut text = format!(
            "global\n    log 127.0.0.1:{} format raw local0\n{DEFAULTS}    log global\n    \
             option log-health-checks\n    default-server check inter 4s fall 1 rise 1\n\
             frontend site\n    bind 127.0.0.1:{port}\n",
            log.port()
        );
        for (name, lines, server, words) in CHECKS {
            let ports = |text: &str| {
                let text = text.replace("GOOD", &origins.ports["good"].to_string());
                text.replace("CLEAR", &origins.ports["clear"].to_string())
            };
            let (lines, line) = (ports(lines), ports(&origins.line(server, words)));
            text.push_str(&format!(
                "backend {name}\n    {lines}\n    server s {line}\n"
            ));
        }
        let _proxy = Proxy::start(&program, &text, &[port]);
        let mut told = BTreeMap::new();
        while told.len() < CHECKS.len() {
            let line = log.line_with("Health check for server ");
            let line = line.replace(" (Connection reset by peer)", "");
            let (_, line) = line.split_once("server ").expect("a name");
            let (name, line) = line.split_once("/s ").expect("a server's name");
            let (line, _) = line.split_once("check duration").expect("a duration");
            told.entry(name.to_owned()).or_insert(line.to_owned());
        }
        told
    });
    let mut differences = Vec::new();
    for (name, ..) in CHECKS {
        let (theirs, ours) = (&told[0][*name], &told[1][*name]);
        eprintln!("{name}: {theirs}");
        if theirs != ours {
            differences.push(format!("{name}\n  HAProxy {theirs}\n  Ballast {ours}"));
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

#[test]
fn connections_over_tls_are_used_again_as_clear_ones_are() {
    let origins = Origins::start();
    for program in Program::both() {
        let port = free_port();
        let text = format!(
            "global\n    nbthread 1\n    stats socket unix@api.sock level admin\n{DEFAULTS}    \
             http-reuse always\n\
             frontend site\n    bind 127.0.0.1:{port}\n    use_backend %[path,field(2,/)]\n\
             backend fixed\n    server s {}\nbackend named\n    server s {}\n",
            origins.line("good", "ssl ca-file ca.pem sni str(a.example)"),
            origins.line("good", "ssl ca-file ca.pem sni req.hdr(host)"),
        );
        let proxy = Proxy::start(&program, &text, &[port]);
        let mut clients: Vec<Client> = (0..4).map(|_| Client::connect(port)).collect();
        for round in 0..50 {
            for backend in ["fixed", "named"] {
                // All at once, so that connections of both names are needed at once.
                for (index, client) in clients.iter_mut().enumerate() {
                    let name = ["a.example", "b.example"][(index + round) % 2];
                    let line = format!("GET /{backend}?delay=5 HTTP/1.1");
                    client.send(format!("{line}\r\nhost: {name}\r\n\r\n"));
                }
                for client in &mut clients {
                    assert_eq!(client.response().status, 200, "{}", program.name());
                }
            }
        }
        let api = RuntimeApi::at(proxy.directory().join("api.sock"));
        for backend in ["fixed", "named"] {
            let count = |column: &str| {
                let text = api.stat_of(&format!("{backend}/s"), column);
                text.parse::<u32>().expect("a number")
            };
            let (opened, reused) = (count("connect"), count("reuse"));
            assert_eq!(opened + reused, 200);
            assert!(
                reused * 100 >= 95 * (opened + reused),
                "{}: {backend}: {opened} opened, {reused} used again",
                program.name()
            );
        }
    }
}

/// The calls that move data, for this many requests on one connection.
fn data_calls(line: &str, requests: usize) -> usize {
    let port = free_port();
    let text = format!(
        "global\n    nbthread 1\n{DEFAULTS}frontend site\n    bind 127.0.0.1:{port}\n    \
         default_backend app\nbackend app\n    server s {line}\n"
    );
    let launch = Launch {
        ports: &[port],
        under: &["strace", "-D", "-f", "-c", "-o", "calls"],
        ..Launch::default()
    };
    let mut proxy = Proxy::launch(&Program::ballast(), &text, &launch);
    let mut client = Client::connect(port);
    for _ in 0..requests {
        assert_eq!(client.get("/any").status, 200);
    }
    drop(client);
    proxy.signal(Signal::TERM);
    proxy.wait();
    // The tracer writes its table after the program has ended.
    let (file, began) = (proxy.directory().join("calls"), Instant::now());
    let table = loop {
        let table = fs::read_to_string(&file).unwrap_or_default();
        if table.contains(" total\n") {
            break table;
        }
        assert!(began.elapsed() < WAIT_MAX, "strace writes its table");
        std::thread::yield_now();
    };
    let count = |line: &str| {
        let columns: Vec<&str> = line.split_ascii_whitespace().collect();
        let name = columns.last()?;
        let moves = ["recv", "send", "read", "write"];
        // A plain `write` wakes a thread, the more often the longer this takes; sockets are sent to.
        let is_counted = *name != "write" && moves.iter().any(|kind| name.starts_with(kind));
        is_counted
            .then(|| columns.get(3)?.parse::<usize>().ok())
            .flatten()
    };
    table.lines().filter_map(count).sum::<usize>()
}

#[test]
fn a_request_on_an_open_connection_costs_the_calls_of_a_clear_one() {
    let origins = Origins::start();
    let (warm, counted) = (200, 500);
    for (server, words) in [
        ("clear", ""),
        ("good", "ssl verify none"),
        ("good", "ssl ca-file ca.pem sni str(a.example)"),
        ("old", "ssl verify none"),
    ] {
        let line = origins.line(server, words);
        let calls = data_calls(&line, warm + counted) - data_calls(&line, warm);
        // Four for each request, and a few for the process.
        assert!(calls <= 4 * counted + 20, "{words}: {calls}");
    }
}

#[test]
fn a_change_leaves_connections_alone_unless_tls_changes_with_it() {
    let origins = Origins::start();
    let at = origins.directory.path();
    let port = free_port();
    let configuration = |words: &str| {
        let line = origins.line("good", &format!("ssl ca-file ca.pem {words}"));
        format!(
            "global\n    nbthread 1\n    stats socket unix@api.sock level admin\n{DEFAULTS}    \
             http-reuse always\nfrontend site\n    bind 127.0.0.1:{port}\n    \
             default_backend app\nbackend app\n    server s {line}\n"
        )
    };
    let named = |name: &str| configuration(&format!("sni str({name})"));
    let proxy = Proxy::start(&Program::ballast(), &named("a.example"), &[port]);
    let api = RuntimeApi::at(proxy.directory().join("api.sock"));
    let file = proxy.directory().join("haproxy.cfg");
    let reload = |text: &str| {
        fs::write(&file, text).expect("it is written");
        api.ask("reload")
    };
    let ask = || {
        let response = Client::get_once(port, "/tls");
        let text = response.text();
        let mut lines = text.lines();
        let sni = lines.find_map(|line| line.strip_prefix("sni: "));
        let sni = sni.unwrap_or_default().to_owned();
        (response.status, sni, api.stat_of("app/s", "connect"))
    };
    let answer =
        |status: u16, sni: &str, connects: &str| (status, sni.to_owned(), connects.to_owned());
    assert_eq!(ask(), answer(200, "a.example", "1"));
    reload(&configuration("sni str(a.example) weight 10"));
    assert_eq!(ask(), answer(200, "a.example", "1"));
    reload(&named("b.example"));
    assert_eq!(ask(), answer(200, "b.example", "2"));
    // The same line, and another authority in its file.
    let trusted = fs::read(at.join("ca.pem")).expect("it is read");
    let other = Authority::new("a third authority").certificate();
    fs::write(at.join("ca.pem"), other).expect("it is written");
    reload(&named("b.example"));
    assert_eq!(ask(), answer(503, "", "3"));
    // A file without a certificate refuses the change, and nothing is changed.
    fs::write(at.join("ca.pem"), "nothing").expect("it is written");
    let refusal = reload(&named("a.example"));
    assert!(refusal.contains("ca.pem"), "{refusal}");
    assert_eq!(ask(), answer(503, "", "4"));
    fs::write(at.join("ca.pem"), trusted).expect("it is written");
    reload(&named("b.example"));
    assert_eq!(ask(), answer(200, "b.example", "5"));
}

/// A certificate that is shown to servers, and authorities that servers are judged by, are changed by
/// command.
#[test]
fn server_lines_have_what_commands_commit() {
    let origins = Origins::start();
    let at = origins.directory.path().display().to_string();
    let read = |name: &str| fs::read_to_string(format!("{at}/{name}")).expect("a file");
    fs::write(format!("{at}/alone.pem"), read("ca.pem")).expect("it is written");
    let told = Program::both().map(|program| {
        let port = free_port();
        let text = format!(
            "global\n    stats socket unix@ctl.sock level admin\n{DEFAULTS}    http-reuse never\n\
             frontend site\n    bind 127.0.0.1:{port}\n    http-request set-path /tls\n    \
             use_backend %[req.hdr(x-backend)]\n\
             backend shows\n    server s {} ssl\n\
             backend trusts\n    server s {} ssl\n\
             backend only-trusts\n    server s {} ssl\n",
            origins.line("asks", "verify none crt client.pem"),
            origins.line("stranger", "ca-file ca.pem crt client.pem"),
            origins.line("stranger", &format!("ca-file {at}/alone.pem")),
        );
        let proxy = Proxy::start(&program, &text, &[port]);
        let api = RuntimeApi::at(proxy.directory().join("ctl.sock"));
        let seen = |backend: &str| {
            let mut client = Client::connect(port);
            let head = format!("GET / HTTP/1.1\r\nhost: site\r\nx-backend: {backend}\r\n");
            client.send(format!("{head}connection: close\r\n\r\n"));
            let response = client.response();
            let text = response.text();
            let client = text.lines().find(|line| line.contains("client"));
            format!("{backend} {} {client:?}", response.status)
        };
        let both = || [seen("shows"), seen("trusts")];
        let set = |kind: &str, name: &str, payload: &str| {
            let payload = read(payload);
            format!("set ssl {kind} {at}/{name} <<\n{}\n", payload.trim_end())
        };
        let before = both();
        let mut answers = Vec::new();
        for command in [
            set("cert", "client.pem", "other.pem"),
            format!("commit ssl cert {at}/client.pem"),
            set("ca-file", "ca.pem", "stranger-ca.pem"),
            format!("commit ssl ca-file {at}/ca.pem"),
            format!("show ssl cert {at}/client.pem"),
            format!("show ssl ca-file {at}/ca.pem"),
        ] {
            answers.push(api.ask(&command));
        }
        let after = both();
        if program.is_ballast() {
            let edit = api.ask("set backend shows timeout server 9s");
            assert!(!edit.contains("ALERT"), "{edit}");
            assert_eq!(both(), after, "an edit keeps it");
            let said = api.ask("reload");
            assert!(said.starts_with("Success=1"), "{said}");
            assert_eq!(both(), before, "a reload reads the files");
            // HAProxy changes lines with a certificate only.
            assert!(seen("only-trusts").contains("503"));
            let said = api.ask(&set("ca-file", "alone.pem", "stranger-ca.pem"));
            assert!(said.starts_with("transaction created"), "{said}");
            let said = api.ask(&format!("commit ssl ca-file {at}/alone.pem"));
            assert!(said.ends_with(".\nSuccess!"), "{said}");
            assert!(seen("only-trusts").contains("200"));
            // A server that is added goes by what is in memory.
            let line = origins.line("stranger", &format!("ssl ca-file {at}/alone.pem"));
            let said = api.ask(&format!("add server only-trusts/late {line}"));
            assert!(said.contains("New server registered"), "{said}");
            let said = api.ask("disable server only-trusts/s; enable server only-trusts/late");
            assert!(said.trim().is_empty(), "{said}");
            assert!(seen("only-trusts").contains("200"));
        }
        (before, answers, after)
    });
    let [haproxy, ballast] = told;
    assert_eq!(ballast, haproxy);
    assert!(haproxy.0[0].contains("a client") && haproxy.0[1].contains("503"));
    assert!(haproxy.2[0].contains("another client") && haproxy.2[1].contains("200"));
}
