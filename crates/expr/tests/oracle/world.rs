//! One HAProxy process, and the facts of a request as it sees them.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::installed;

use ballast_expr::{
    AddressPair, BackendFacts, CaptureFacts, ConnectionFacts, ExchangeFacts, ExchangeNumbers,
    Facts, FrontendFacts, ListenerFacts, ProcessFacts, ServerFacts, Side, StreamFacts, Time, Value,
    VarName, VarScope,
};
use ballast_message::{HeadLimits, Request, Version};

/// A word of a configuration line, quoted so that it arrives as it is.
pub(crate) fn quoted(word: &str) -> String {
    if word.contains('\'') {
        let escaped = word
            .replace('\\', "\\\\")
            .replace('"', "\\\"")
            .replace('$', "\\$");
        return format!("\"{escaped}\"");
    }
    format!("'{word}'")
}

/// A request: method, target, fields.
#[derive(Clone, Debug)]
pub(crate) struct Ask {
    pub(crate) method: &'static str,
    pub(crate) target: String,
    pub(crate) fields: Vec<(String, String)>,
}

/// What the request looks like from within.
pub(crate) struct World {
    request: Request,
    line: Vec<u8>,
    source: SocketAddr,
    destination: SocketAddr,
    record: ExchangeNumbers,
    captures: Vec<Vec<u8>>,
}

impl World {
    fn new(ask: &Ask, case: usize, source: SocketAddr, destination: SocketAddr) -> World {
        let mut request = Request::new(HeadLimits::default());
        request.set_method(ask.method.as_bytes()).unwrap();
        request.set_target(ask.target.as_bytes()).unwrap();
        request.set_version(Version::Http11);
        for (name, value) in &ask.fields {
            request
                .fields_mut()
                .add(name.as_bytes(), value.trim().as_bytes())
                .unwrap();
        }
        request
            .fields_mut()
            .add(b"x-case", case.to_string().as_bytes())
            .unwrap();
        let line = format!("{} {} HTTP/1.1", ask.method, ask.target).into_bytes();
        let captured = |name: &[u8]| request.fields().last(name).unwrap_or_default().to_vec();
        let captures = vec![captured(b"x-a"), captured(b"x-b")];
        let record = ExchangeNumbers {
            status: 200,
            request_ms: 0,
            termination: *b"LR--",
            frontend_connections: 1,
            process_connections: 1,
            ..ExchangeNumbers::default()
        };
        World {
            request,
            line,
            source,
            destination,
            record,
            captures,
        }
    }
}

impl Facts for World {
    fn now(&self) -> Time {
        Time {
            secs: 1_700_000_000,
            micros: 5,
        }
    }
    fn random(&self) -> u64 {
        4
    }
    fn request(&self) -> Option<&Request> {
        Some(&self.request)
    }
    fn process(&self) -> &dyn ProcessFacts {
        self
    }
    fn data(&self, sent_by: Side) -> Option<&[u8]> {
        (sent_by == Side::Client).then_some(b"")
    }
    fn address_pair(&self) -> AddressPair<'_> {
        AddressPair {
            source: Some(&self.source),
            destination: Some(&self.destination),
        }
    }
    fn connection(&self, to: Side) -> Option<&dyn ConnectionFacts> {
        (to == Side::Client).then_some(self)
    }
    fn stream(&self, _: Side) -> Option<StreamFacts> {
        Some(StreamFacts::alone(0, Some(1)))
    }
    fn listener(&self) -> Option<&dyn ListenerFacts> {
        Some(self)
    }
    fn frontend(&self) -> Option<&dyn FrontendFacts> {
        Some(self)
    }
    fn frontend_named(&self, _: &str) -> Option<&dyn FrontendFacts> {
        Some(self)
    }
    fn backend(&self) -> Option<&dyn BackendFacts> {
        Some(&Named("fe"))
    }
    fn backend_named(&self, name: &str) -> Option<&dyn BackendFacts> {
        (name == "be").then_some(&Named("be"))
    }
    fn exchange(&self) -> &dyn ExchangeFacts {
        self
    }
    fn captures(&self, sent_by: Side) -> CaptureFacts<'_> {
        match sent_by {
            Side::Client => CaptureFacts {
                slot_count: 2,
                slots: &self.captures,
                cookie: b"",
            },
            Side::Server => CaptureFacts::default(),
        }
    }
    fn var(&self, name: &VarName) -> Option<Value<'_>> {
        match (name.scope, &*name.name) {
            (VarScope::Txn, "text") => Some(Value::Str(b"hello")),
            (VarScope::Txn, "c") => self.request.fields().last(b"x-c").map(Value::Str),
            (VarScope::Txn, "number") => Some(Value::Int(12)),
            (VarScope::Txn, "ip") => Some(Value::Ipv4(Ipv4Addr::new(10, 1, 2, 3))),
            _ => None,
        }
    }
    fn numbers(&self) -> Option<&ExchangeNumbers> {
        Some(&self.record)
    }
}

impl ProcessFacts for World {
    fn is_local(&self, _: std::net::IpAddr) -> bool {
        true
    }
    fn env(&self, name: &str) -> Option<std::sync::Arc<[u8]>> {
        (name == "BALLAST_TEST").then(|| (*b"from env").into())
    }
    fn rate_clock_ms(&self) -> Option<u32> {
        Some(0)
    }
}

impl ConnectionFacts for World {
    fn address_pair(&self) -> AddressPair<'_> {
        Facts::address_pair(self)
    }
}

impl ListenerFacts for World {
    fn id(&self) -> i64 {
        1
    }
}

impl FrontendFacts for World {
    fn name(&self) -> &str {
        "fe"
    }
    fn id(&self) -> i64 {
        3
    }
    fn connections(&self) -> i64 {
        1
    }
}

impl ExchangeFacts for World {
    fn request_line(&self) -> Option<&[u8]> {
        Some(&self.line)
    }
}

/// A backend with two servers, or a server.
struct Named(&'static str);

impl BackendFacts for Named {
    fn name(&self) -> &str {
        self.0
    }
    fn server_named(&self, _: &str) -> Option<&dyn ServerFacts> {
        Some(self)
    }
    fn usable_servers(&self) -> i64 {
        2
    }
    fn effective_weight(&self, _: &str) -> Option<i64> {
        Some(7)
    }
}

impl ServerFacts for Named {
    fn name(&self) -> &str {
        self.0
    }
    fn is_up(&self) -> bool {
        true
    }
    fn initial_weight(&self) -> i64 {
        7
    }
    fn weight(&self) -> i64 {
        7
    }
}

/// A running HAProxy, stopped when dropped.
pub(crate) struct Haproxy {
    child: Child,
    port: u16,
    /// Where commands are given.
    socket: PathBuf,
}

impl Drop for Haproxy {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn socket(dir: &Path) -> PathBuf {
    dir.join("commands.sock")
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port()
}

const VARIABLES: &str = "  http-request set-var(txn.text) str(hello)
  http-request set-var(txn.c) req.hdr(x-c)
  http-request set-var(txn.number) int(12)
  http-request set-var(txn.ip) ipv4(10.1.2.3)
";

const BACKEND: &str = "backend be
  id 7
  server a 127.0.0.1:1 weight 7
  server b 127.0.0.1:2 weight 7
";

impl Haproxy {
    /// Starts HAProxy with `rules` in a frontend, less those it refuses, whose indexes are given.
    pub(crate) fn start(dir: &Path, rules: &[String]) -> (Haproxy, Vec<usize>) {
        let port = free_port();
        let head = format!(
            "global\n  log 127.0.0.1:9 local0\n  tune.bufsize 65536\n  nbthread 1\n  stats socket \
             {} level admin\ndefaults\n  mode http\n  timeout client 9s\n  timeout server 9s\n  timeout connect 9s\n\
             {BACKEND}frontend fe\n  id 3\n  bind 127.0.0.1:{port}\n{VARIABLES}",
            socket(dir).display()
        );
        let (rules, refused) = prune(dir, &head, rules);
        (
            Haproxy::run(dir, &format!("{head}{}\n", rules.join("\n")), port),
            refused,
        )
    }

    fn run(dir: &Path, configuration: &str, port: u16) -> Haproxy {
        let path = dir.join("haproxy.cfg");
        std::fs::write(&path, configuration).unwrap();
        let mut child = Command::new(installed::haproxy().expect("it is here"))
            .args(["-db", "-f"])
            .arg(&path)
            .env("BALLAST_TEST", "from env")
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let deadline = Instant::now() + Duration::from_secs(10);
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            if let Some(status) = child.try_wait().unwrap() {
                let mut said = String::new();
                child
                    .stderr
                    .take()
                    .unwrap()
                    .read_to_string(&mut said)
                    .unwrap();
                panic!("haproxy ended with {status}:\n{said}");
            }
            assert!(Instant::now() < deadline, "haproxy does not listen");
            std::thread::sleep(Duration::from_millis(10));
        }
        let socket = socket(dir);
        Haproxy {
            child,
            port,
            socket,
        }
    }

    /// What it answers to a command.
    pub(crate) fn command(&self, line: &str) -> String {
        let mut stream = UnixStream::connect(&self.socket).unwrap();
        stream.write_all(format!("{line}\n").as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    /// Sends a request; gives the body of the answer and the facts of the request.
    pub(crate) fn ask(&self, ask: &Ask, case: usize) -> (String, World) {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        let (source, destination) = (stream.local_addr().unwrap(), stream.peer_addr().unwrap());
        stream
            .set_read_timeout(Some(Duration::from_secs(5)))
            .unwrap();
        let mut head = format!("{} {} HTTP/1.1\r\n", ask.method, ask.target);
        for (name, value) in &ask.fields {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str(&format!("x-case: {case}\r\n\r\n"));
        stream.write_all(head.as_bytes()).unwrap();
        // The answer may be here and the connection gone already.
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        let answer = String::from_utf8_lossy(&answer).into_owned();
        let body = answer
            .split_once("\r\n\r\n")
            .map_or("no answer", |(_, body)| body)
            .to_owned();
        let world = World::new(ask, case, source, destination);
        (body, world)
    }

    /// Sends one request per log format to frontends that use them; gives the lines.
    pub(crate) fn log(dir: &Path, formats: &[&str]) -> Vec<(String, World)> {
        let sink = UdpSocket::bind("127.0.0.1:0").unwrap();
        sink.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        let log_port = sink.local_addr().unwrap().port();
        let ports: Vec<u16> = formats.iter().map(|_| free_port()).collect();
        let mut configuration = format!(
            "global\n  log 127.0.0.1:{log_port} len 8192 format raw local0\n  nbthread 1\n\
             defaults\n  mode http\n  log global\n  timeout client 9s\n  timeout server 9s\n  \
             timeout connect 9s\n  option dontlognull\n"
        );
        for (format, port) in formats.iter().zip(&ports) {
            let name = if *port == ports[0] {
                "fe".to_owned()
            } else {
                format!("fe{port}")
            };
            configuration.push_str(&format!(
                "frontend {name}\n  id {port}\n  bind 127.0.0.1:{port}\n  \
                 capture request header x-a len 200\n  capture request header x-b len 200\n\
                 {VARIABLES}  log-format {}\n  http-request return status 200\n",
                quoted(format)
            ));
        }
        let mut haproxy = Haproxy::run(dir, &configuration, *ports.last().unwrap());
        let ask = Ask {
            method: "GET",
            target: "/a/b\"c?x=1&y={2}|3".to_owned(),
            fields: vec![
                ("Host".to_owned(), "example.com".to_owned()),
                ("X-A".to_owned(), "one\u{1}\"two\"{3}|4#5\\6]7".to_owned()),
                ("X-C".to_owned(), "a\u{2}\"b\"\\]c\tü".to_owned()),
            ],
        };
        let mut lines = Vec::new();
        for port in ports {
            haproxy.port = port;
            let (_, world) = haproxy.ask(&ask, 1);
            let mut line = [0; 9000];
            let size = sink.recv(&mut line).expect("a log line");
            let text = String::from_utf8_lossy(&line[..size])
                .trim_end_matches('\n')
                .to_owned();
            lines.push((text.replace(&format!("fe{port}"), "fe"), world));
        }
        lines
    }

    /// Which of `lines`, put into a frontend, HAProxy refuses.
    pub(crate) fn check(dir: &Path, lines: &[String]) -> Vec<usize> {
        let head = "global\n  nbthread 1\ndefaults\n  mode http\n  timeout client 9s\n  \
                    timeout server 9s\n  timeout connect 9s\nuserlist users\n  user u \
                    insecure-password p\nbackend be\n  stick-table type ip size 1k store gpc0\n  \
                    server s 127.0.0.1:1\nfrontend fe\n  bind 127.0.0.1:12345\n";
        prune(dir, head, lines).1
    }
}

/// Takes out the lines that HAProxy refuses, one after the other, since the first ends its
/// reading; gives what is left and the indexes of those taken out.
fn prune(dir: &Path, head: &str, lines: &[String]) -> (Vec<String>, Vec<usize>) {
    let first = head.lines().count() + 1;
    let path = dir.join("check.cfg");
    let mark = format!("[{}:", path.display());
    let mut lines = lines.to_vec();
    let mut refused = Vec::new();
    loop {
        std::fs::write(&path, format!("{head}{}\n", lines.join("\n"))).unwrap();
        let output = Command::new(installed::haproxy().expect("it is here"))
            .args(["-c", "-f"])
            .arg(&path)
            .current_dir(dir)
            .output()
            .unwrap();
        if output.status.success() {
            return (lines, refused);
        }
        let said = String::from_utf8_lossy(&output.stderr);
        let numbers: Vec<usize> = said
            .lines()
            .filter(|line| !line.contains("[WARNING]"))
            .filter_map(|line| {
                let rest = &line[line.find(&mark)? + mark.len()..];
                let number: usize = rest[..rest.find(']')?].parse().ok()?;
                number.checked_sub(first)
            })
            .collect();
        assert!(!numbers.is_empty(), "haproxy names no line:\n{said}");
        for number in numbers {
            lines[number] = String::new();
            refused.push(number);
        }
    }
}
