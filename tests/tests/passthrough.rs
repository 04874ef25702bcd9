//! TLS passed through by the name in the ClientHello, and the pattern of two stages that OpenShift's
//! router writes: what clients and servers see is the same on HAProxy and on Ballast.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use ballast_tests::ports::is_listening;
use ballast_tests::{
    Authority, Client, Launch, Profile, Program, Proxy, WAIT_MAX, free_port, program, repository,
};
use tempfile::TempDir;

/// The dummy origin, as several servers. Dropping it kills it.
struct Servers {
    child: Child,
    ports: Vec<u16>,
}

impl Servers {
    /// A server for each of these: its name, and a certificate if it is over TLS. Those without one
    /// come first.
    fn start(servers: &[(&str, Option<&Path>)]) -> Self {
        let ports: Vec<u16> = servers.iter().map(|_| free_port()).collect();
        let mut command = Command::new(program("ORIGIN", "target/debug/ballast-origin"));
        for ((name, certificate), port) in servers.iter().zip(&ports) {
            command.args(["--name", name]);
            if let Some(path) = certificate {
                command.arg("--tls-cert").arg(path);
            }
            command.args(["--listen", &format!("127.0.0.1:{port}")]);
        }
        let child = command.stdin(Stdio::null()).spawn().expect("it starts");
        let servers = Self { child, ports };
        let began = Instant::now();
        while !servers.ports.iter().all(|port| is_listening(*port)) {
            assert!(began.elapsed() < WAIT_MAX, "the servers listen");
            std::thread::yield_now();
        }
        servers
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What curl gets: its exit code, and the response without its date.
fn curl(words: &[&str]) -> String {
    let output = Command::new("curl")
        .args(["-s", "-i", "--http1.1", "--max-time", "60"])
        .args(words)
        .stdin(Stdio::null())
        .output()
        .expect("curl is installed");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let lines = text
        .lines()
        .filter(|line| !line.to_ascii_lowercase().starts_with("date:"));
    let lines: Vec<&str> = lines.collect();
    let code = output.status.code().unwrap_or(-1);
    format!("curl {words:?}: {code}\n{}\n", lines.join("\n"))
}

/// The same for a URL whose host has this address, from a client with a source of its own.
fn ask(authority: &Path, source: &str, port: u16, url: &str) -> String {
    let to = format!("::127.0.0.1:{port}");
    let authority = authority.to_string_lossy();
    let words = ["--cacert", &authority, "--interface", source];
    curl(&[&words[..], &["--connect-to", &to, url]].concat())
}

fn certificate(authority: &Authority, at: &Path, name: &str) -> PathBuf {
    let issued = authority.issue(&Profile::server(&[name]));
    issued.write(at, &format!("{name}.pem"))
}

#[test]
fn the_example_passes_some_names_through_and_ends_the_others() {
    let authority = Authority::new("the authority of the test");
    let directory = TempDir::new().expect("a temporary directory");
    let at = directory.path();
    let ca = authority.write(at, "ca.pem");
    let mail = certificate(&authority, at, "mail.example.com");
    let shop = certificate(&authority, at, "a.shop.example.com");
    let servers = Servers::start(&[("app", None), ("mail", Some(&mail)), ("shop", Some(&shop))]);
    let certificates = at.join("certs");
    fs::create_dir(&certificates).expect("a directory");
    certificate(&authority, &certificates, "www.example.com");
    let example = fs::read_to_string(repository().join("examples/passthrough.cfg"));
    let port = free_port();
    let replaced = [
        ("maxconn 20000", "maxconn 100".to_owned()),
        ("127.0.0.1:8443", format!("127.0.0.1:{port}")),
        ("127.0.0.1:9443", format!("127.0.0.1:{}", servers.ports[1])),
        ("127.0.0.1:9444", format!("127.0.0.1:{}", servers.ports[2])),
        ("127.0.0.1:9001", format!("127.0.0.1:{}", servers.ports[0])),
        ("/run/ballast", at.display().to_string()),
        ("/etc/haproxy/certs", certificates.display().to_string()),
    ];
    let text = replaced
        .iter()
        .fold(example.expect("it is read"), |text, (from, to)| {
            assert!(text.contains(from), "the example has {from}");
            text.replace(from, to)
        });
    for program in Program::both() {
        let _proxy = Proxy::start(&program, &text, &[port]);
        let get = |url: &str| ask(&ca, "127.0.0.9", port, url);
        for (url, said) in [
            ("https://mail.example.com/tls", "sni: mail.example.com"),
            ("https://a.shop.example.com/tls", "sni: a.shop.example.com"),
            ("https://www.example.com/echo", "x-forwarded-for: 127.0.0.9"),
        ] {
            let got = get(url);
            let found = got.to_ascii_lowercase().replace('=', ": ");
            assert!(found.contains(said), "{}: {got}", program.name());
        }
        let mut client = Client::connect(port);
        client.send("GET / HTTP/1.1\r\nHost: mail.example.com\r\n\r\n");
        assert!(client.is_closed(), "{}: no TLS", program.name());
    }
}

/// The files of OpenShift's router, beside the checkout.
fn router_files() -> Option<PathBuf> {
    let root = repository();
    let mut places = root.ancestors().map(|at| at.join("shared/corpus/okd"));
    let found = places.find(|at| at.join("haproxy.config").is_file());
    if found.is_none() {
        eprintln!("SKIPPED: no files of OpenShift's router beside the checkout");
    }
    found
}

/// Lines of the router's file that Ballast does not carry out yet: those of name servers. They are
/// left out, on both programs.
const NOT_SERVED: &[&str] = &[
    "resolvers ingress_dns",
    "parse-resolv-conf",
    "resolve_retries 1",
    "timeout retry 5s",
    "timeout resolve 10s",
];

/// The router's configuration in a directory of its own.
struct Router {
    directory: TempDir,
    authority: PathBuf,
    /// Of the frontends for http, for https, and for the statistics.
    ports: [u16; 3],
    text: String,
    _servers: Servers,
}

impl Router {
    fn new(files: &Path) -> Self {
        let authority = Authority::new("the authority of the test");
        let directory = TempDir::new().expect("a temporary directory");
        let at = directory.path();
        let (conf, certs) = (at.join("conf"), at.join("router/certs"));
        for path in [&conf, &certs, &at.join("run")] {
            fs::create_dir_all(path).expect("a directory");
        }
        for entry in fs::read_dir(files).expect("it is read").flatten() {
            fs::copy(entry.path(), conf.join(entry.file_name())).expect("it is copied");
        }
        for status in ["404 Not Found", "503 Service Unavailable"] {
            let page = format!("HTTP/1.1 {status}\r\nContent-Length: 9\r\n\r\nno route\n");
            let name = format!("error-page-{}.http", &status[..3]);
            fs::write(conf.join(name), page).expect("it is written");
        }
        let ca = authority.write(at, "ca.pem");
        let issued = |name| certificate(&authority, &certs, name);
        let default = authority.issue(&Profile::server(&["*.default.example"]));
        default.write(&certs, "default.pem");
        // Edge and re-encrypt routes with certificates of their own, as the router lists them.
        let list = ["edge.example.com", "re.example.com"].map(|name| {
            let path = issued(name);
            format!("{} [ssl-min-ver TLSv1.2] {name}\n", path.display())
        });
        fs::write(conf.join("cert_config.map"), list.concat()).expect("it is written");
        let (pod, through) = (issued("svc10.default.svc"), issued("pt.example.com"));
        let servers = Servers::start(&[("pod", None), ("re", Some(&pod)), ("pt", Some(&through))]);
        let ports = [free_port(), free_port(), free_port()];
        let text = fs::read_to_string(files.join("haproxy.config")).expect("it is read");
        let text = rewritten(&text, at, ports, &servers.ports, &ca);
        Self {
            directory,
            authority: ca,
            ports,
            text,
            _servers: servers,
        }
    }

    /// Everything that clients get, the requests that servers saw among it.
    fn answers(&self) -> Vec<String> {
        let [http, https, statistics] = self.ports;
        let get = |source, port, url: &str| ask(&self.authority, source, port, url);
        let mut all = vec![
            get("127.0.0.1", statistics, "http://stats.example.com/healthz"),
            // Routes without TLS; `cook` lets in 127.0.0.1 only.
            get("127.0.0.9", http, "http://plain.example.com/echo"),
            get("127.0.0.9", http, "http://Plain.Example.com:8080/echo"),
            get("127.0.0.9", http, "http://plain.example.com/foo/x?size=3"),
            get("127.0.0.1", http, "http://cook.example.com/echo"),
            get("127.0.0.9", http, "http://cook.example.com/echo"),
            get("127.0.0.9", http, "http://rnd.example.com/echo"),
            get("127.0.0.9", http, "http://src.example.com/echo"),
            get("127.0.0.9", http, "http://rate.example.com/echo"),
            get("127.0.0.9", http, "http://edge.example.com/echo"),
            get("127.0.0.9", http, "http://no.example.com/"),
            // Edge, re-encrypt, passthrough; names that no route has.
            get("127.0.0.9", https, "https://edge.example.com/echo"),
            get("127.0.0.9", https, "https://re.example.com/echo"),
            get("127.0.0.9", https, "https://pt.example.com/echo"),
            get("127.0.0.9", https, "https://pt.example.com/tls"),
            get("127.0.0.9", https, "https://x.default.example/echo"),
            get("127.0.0.9", https, "https://plain.example.com/echo"),
            get("127.0.0.9", https, "http://edge.example.com/echo"),
        ];
        let no_name = format!("https://127.0.0.1:{https}/echo");
        for host in ["Host: edge.example.com", "Host: pt.example.com"] {
            all.push(curl(&["-k", "-H", host, &no_name]));
        }
        all
    }
}

/// The router's file with the paths, ports and servers of the test.
fn rewritten(text: &str, at: &Path, ports: [u16; 3], servers: &[u16], ca: &Path) -> String {
    let [http, https, statistics] = ports;
    let mut left_out = 0;
    let mut lines = Vec::new();
    for line in text.lines() {
        if NOT_SERVED.contains(&line.trim()) {
            left_out += 1;
            continue;
        }
        let line = line
            .replace("/var/lib/haproxy", &at.to_string_lossy())
            .replace("/etc/ssl/certs/ca-certificates.crt", &ca.to_string_lossy())
            .replace(" resolvers ingress_dns", "")
            .replace("bind :80", &format!("bind 127.0.0.1:{http}"))
            .replace("bind :443", &format!("bind 127.0.0.1:{https}"))
            .replace("bind :1936", &format!("bind 127.0.0.1:{statistics}"));
        let server = usize::from(line.contains("verifyhost"));
        let to = format!("127.0.0.1:{}", servers[server]);
        lines.push(
            line.replace("127.0.0.1:22901", &to)
                .replace("127.0.0.1:22902", &to),
        );
        // The route for passthrough has no pod in the file.
        if line == "backend be_tcp:default:pt" {
            lines.push(format!("  server ept:pt 127.0.0.1:{} weight 1", servers[2]));
        }
    }
    assert_eq!(left_out, NOT_SERVED.len(), "each of these lines is there");
    lines.join("\n") + "\n"
}

#[test]
fn the_routes_of_openshift_are_those_of_haproxy() {
    let Some(files) = router_files() else {
        return;
    };
    let router = Router::new(&files);
    let [haproxy, ballast] = Program::both().map(|program| {
        let proxy = Proxy::start(&program, &router.text, &router.ports);
        let answers = router.answers();
        drop(proxy);
        for entry in fs::read_dir(router.directory.path().join("run")).expect("it is read") {
            let _ = fs::remove_file(entry.expect("a socket").path());
        }
        answers
    });
    for (ours, theirs) in ballast.iter().zip(&haproxy) {
        assert_eq!(ours, theirs);
    }
    // Each kind of route was really reached, with the client's address where it can be told.
    let all = haproxy.concat().to_lowercase();
    for said in [
        "x-forwarded-proto: https",
        "x-forwarded-for: 127.0.0.9",
        "x-origin: re",
        "x-origin: pt",
        "location: https://edge.example.com/echo",
        "no route",
    ] {
        assert!(all.contains(said), "{said} is not in {all}");
    }
}

#[test]
fn who_speaks_no_tls_gets_no_alert() {
    let authority = Authority::new("the authority of the test");
    let bundle = authority.issue(&Profile::server(&["a.example"])).bundle();
    for program in Program::both() {
        let port = free_port();
        let text = format!(
            "defaults\n mode http\n timeout client 9s\n timeout connect 9s\n timeout server 9s\n\
             frontend fe\n bind 127.0.0.1:{port} ssl crt a.pem\n"
        );
        let launch = Launch {
            files: &[("a.pem", &bundle)],
            ports: &[port],
            ..Launch::default()
        };
        let _proxy = Proxy::launch(&program, &text, &launch);
        for (sent, alert) in [
            (&b"GET / HTTP/1.1\r\n\r\n"[..], &b""[..]),
            (b"SSH-2.0-test\r\n", b""),
            (b"\x16\x02\x00\x00\x05hello", b""),
            // A record, but not the one that begins a session.
            (b"\x17\x03\x03\x00\x05hello", &[21, 3, 3, 0, 2, 2, 10]),
        ] {
            let mut client = Client::connect(port);
            client.send(sent);
            assert_eq!(client.rest(), alert, "{}: {sent:?}", program.name());
        }
    }
}
