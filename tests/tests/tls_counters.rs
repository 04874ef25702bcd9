//! What `show info` and `show stat` tell of TLS, and its limits, on HAProxy and on Ballast.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::process::Command;
use std::time::Duration;

use ballast_tests::{
    Authority, Client, Launch, Profile, Program, Proxy, RuntimeApi, eventually, free_port, program,
};

/// A frontend with TLS that answers itself, and a clear one in front of a server with TLS.
const SITE: &str = "\
global
    stats socket unix@ctl.sock level admin
    LIMITS
defaults
    mode http
    timeout connect 5s
    timeout client 5s
    timeout server 5s
    retries 0
frontend sealed
    option socket-stats
    bind 127.0.0.1:SEALED name bind ssl crt a.pem alpn http/1.1
    http-request return status 200 content-type text/plain string hello
frontend clear
    bind 127.0.0.1:CLEAR
    default_backend servers
backend servers
    server one 127.0.0.1:ORIGIN ssl verify none
frontend origin
    bind 127.0.0.1:ORIGIN ssl crt a.pem alpn http/1.1
    http-request return status 200 content-type text/plain string hello
";

/// Fields of `show info` that are not rates.
const TOTALS: [&str; 3] = ["MaxSslConns", "CurrSslConns", "CumSslConns"];
/// The highest rates: whether there were any.
const HIGHEST: [&str; 3] = [
    "MaxSslRate",
    "SslFrontendMaxKeyRate",
    "SslBackendMaxKeyRate",
];
const ROWS: [&str; 5] = [
    "sealed/FRONTEND",
    "sealed/bind",
    "clear/FRONTEND",
    "servers/one",
    "servers/BACKEND",
];
const COLUMNS: [&str; 4] = [
    "ssl_sess",
    "ssl_reused_sess",
    "ssl_failed_handshake",
    "ereq",
];

struct Site {
    proxy: Proxy,
    api: RuntimeApi,
    sealed: u16,
    clear: u16,
}

impl Site {
    fn start(program: &Program, limits: &str) -> Self {
        let authority = Authority::new("the authority of the test");
        let certificate = authority.issue(&Profile::server(&["a.test", "127.0.0.1"]));
        let ports = ["SEALED", "CLEAR", "ORIGIN"].map(|name| (name, free_port()));
        let mut text = SITE.replace("LIMITS", limits);
        for (name, port) in ports {
            text = text.replace(&format!(":{name}"), &format!(":{port}"));
        }
        let launch = Launch {
            files: &[
                ("a.pem", &certificate.bundle()),
                ("ca.pem", &authority.certificate()),
            ],
            ports: &[ports[1].1],
            ..Launch::default()
        };
        let proxy = Proxy::launch(program, &text, &launch);
        Self {
            api: RuntimeApi::at(proxy.directory().join("ctl.sock")),
            proxy,
            sealed: ports[0].1,
            clear: ports[1].1,
        }
    }

    fn info(&self, name: &str) -> u64 {
        let info = self.api.ask("show info");
        let value = info.lines().find_map(|line| line.strip_prefix(name));
        let value = value.and_then(|value| value.strip_prefix(": ")?.parse().ok());
        value.expect("a number of that name")
    }

    /// All numbers that do not depend on the moment.
    fn numbers(&self) -> String {
        let mut text = String::new();
        for name in TOTALS {
            text.push_str(&format!("{name} {}\n", self.info(name)));
        }
        for name in HIGHEST {
            text.push_str(&format!("{name} any: {}\n", self.info(name) > 0));
        }
        for row in ROWS {
            let cells = COLUMNS.map(|column| self.api.stat_of(row, column));
            text.push_str(&format!("{row} {}\n", cells.join(" ")));
        }
        text
    }

    fn load(&self, line: &str) {
        let output = Command::new(program("LOAD", "target/debug/ballast-load"))
            .args(line.split(' '))
            .args(["--cacert", "ca.pem"])
            .arg(format!("https://127.0.0.1:{}/", self.sealed))
            .current_dir(self.proxy.directory())
            .output()
            .expect("the load generator starts");
        assert!(output.status.success(), "{line}: {output:?}");
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(("127.0.0.1", self.sealed)).expect("it accepts");
        let time_limit = Some(Duration::from_secs(1));
        stream.set_read_timeout(time_limit).expect("a timeout");
        stream
    }

    fn until(&self, name: &str, number: u64) {
        eventually(&format!("{name} is {number}"), || self.info(name) == number);
    }
}

/// What a site does, step by step: the numbers after each step.
fn tell(program: &Program) -> Vec<String> {
    let site = Site::start(program, "");
    let mut told = vec![site.numbers()];
    let silent = site.connect();
    site.until("CurrSslConns", 1);
    told.push(site.numbers());
    drop(silent);
    site.until("CurrSslConns", 0);
    told.push(site.numbers());

    let mut clear = Client::connect(site.sealed);
    clear.send("GET / HTTP/1.0\r\n\r\n");
    clear.finish();
    site.until("CurrSslConns", 0);
    told.push(site.numbers());

    let mut half = site.connect();
    half.write_all(b"\x16\x03\x01").expect("it is open");
    half.shutdown(Shutdown::Write).expect("it is open");
    // Not before it was accepted.
    site.until("CumSslConns", 3);
    site.until("CurrSslConns", 0);
    told.push(site.numbers());

    site.load("handshakes --requests 10 --connections 2");
    site.until("CurrSslConns", 0);
    told.push(site.numbers());
    site.load("handshakes --requests 10 --connections 2 --resume always");
    site.until("CurrSslConns", 0);
    told.push(site.numbers());

    // Twice on one connection: with the server's side, that is two.
    let mut client = Client::connect(site.clear);
    assert_eq!(client.get("/").status, 200);
    assert_eq!(client.get("/").status, 200);
    told.push(site.numbers());
    let _ = site.api.ask("clear counters all");
    told.push(site.numbers());
    told
}

#[test]
fn numbers_of_tls_are_those_of_haproxy() {
    let [theirs, ours] = Program::both().map(|program| tell(&program));
    assert!(theirs.len() > 8);
    for (step, (theirs, ours)) in theirs.iter().zip(&ours).enumerate() {
        eprintln!("step {step}:\n{theirs}");
        assert_eq!(theirs, ours, "step {step}");
    }
}

/// HAProxy leaves a client above the limit waiting for ever. Ballast closes its connection.
#[test]
fn no_more_connections_than_maxsslconn_have_tls() {
    let told = Program::both().map(|program| {
        let site = Site::start(&program, "maxsslconn 2");
        let first = [site.connect(), site.connect()];
        site.until("CurrSslConns", 2);
        let mut third = site.connect();
        let read = third.read(&mut [0; 16]);
        if program.is_ballast() {
            assert_eq!(read.expect("the end"), 0);
        } else {
            assert_eq!(read.expect_err("no end").kind(), ErrorKind::WouldBlock);
        }
        let over = Client::get_once(site.clear, "/").status;
        let mut told = vec![format!("{over}"), site.numbers()];
        for column in ["conn_tot", "scur"] {
            told.push(site.api.stat_of("sealed/FRONTEND", column));
        }
        told.push(site.api.stat_of("servers/one", "econ"));
        drop((first, third));
        site.until("CurrSslConns", 0);
        let later = Client::get_once(site.clear, "/").status;
        told.push(format!("{later}"));
        told
    });
    assert_eq!(told[0][0], "500");
    assert_eq!(told[0], told[1]);
}

#[test]
fn maxsslrate_delays_clients_of_tls_and_no_others() {
    for program in Program::both() {
        let site = Site::start(&program, "maxsslrate 4");
        assert_eq!(site.info("SslRateLimit"), 4);
        site.load("handshakes --requests 10 --connections 2");
        let highest = site.info("MaxSslRate");
        // Workers may accept at the same moment.
        assert!((1..=6).contains(&highest), "{}: {highest}", program.name());
        let _ = site.api.ask("set rate-limit ssl-sessions global 1000");
        assert_eq!(site.info("SslRateLimit"), 1000);
        site.load("handshakes --requests 20 --connections 2");
        let highest = site.info("MaxSslRate");
        assert!(highest > 6, "{}: {highest}", program.name());
    }
}
