//! Checks against real sockets; texts are HAProxy's.

mod life;
mod tls;
mod verdicts;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use ballast_engine::{Backend, Generation, Process, Registry, Server};
use ballast_health::{CheckOutcome, LineSeverity};
use ballast_model::{
    Address, Backend as BackendModel, CheckMethod, CheckRule, Config, Server as ServerModel,
};
use ballast_worker::sync::mpsc;
use ballast_worker::timeout;

use super::program::CompiledProbe;
use super::{HealthController, ServerEvent, ServerEvents};

/// Longer than anything here should take.
const PATIENCE: Duration = Duration::from_secs(10);
const BEAT: Duration = Duration::from_millis(20);

struct Lines(mpsc::UnboundedSender<(LineSeverity, String)>);

impl ServerEvents for Lines {
    fn event(&self, event: &ServerEvent<'_>) {
        let _ = self.0.send((event.level, event.line.to_owned()));
    }
}

/// A generation with its controller, and the lines that it logs.
struct Fixture {
    controller: Arc<HealthController>,
    generation: Arc<Generation>,
    lines: mpsc::UnboundedReceiver<(LineSeverity, String)>,
}

impl Fixture {
    fn new(backends: Vec<BackendModel>) -> Self {
        Self::with(Config {
            backends: backends.into_iter().map(Arc::new).collect(),
            ..Config::default()
        })
    }

    fn with(config: Config) -> Self {
        let process = Arc::new(Process::new(1, 100));
        let registry = Registry::new(1, Arc::clone(&process));
        let generation = Arc::new(Generation::compile(1, Arc::new(config), &registry));
        let (sender, lines) = mpsc::unbounded_channel();
        let events = Box::new(Lines(sender));
        let controller =
            HealthController::new(Arc::clone(&generation), process, events, "box", Vec::new());
        Self {
            controller,
            generation,
            lines,
        }
    }

    fn backend(&self, index: usize) -> &Arc<Backend> {
        &self.generation.backends[index]
    }

    fn server(&self, backend: usize, server: usize) -> &Arc<Server> {
        &self.backend(backend).servers[server]
    }

    /// The next line, with its duration replaced by 1.
    async fn line(&mut self) -> (LineSeverity, String) {
        let (level, line) = timeout(PATIENCE, self.lines.recv()).await.unwrap().unwrap();
        let Some((before, after)) = line.split_once("check duration: ") else {
            return (level, line);
        };
        let after = after.trim_start_matches(|byte: char| byte.is_ascii_digit());
        (level, format!("{before}check duration: N{after}"))
    }

    async fn run(&self) -> CheckOutcome {
        let program = CompiledProbe::of(&self.backend(0).model.check);
        let server = self.server(0, 0);
        timeout(
            PATIENCE,
            program.run(&self.controller, self.backend(0), server),
        )
        .await
        .unwrap()
    }
}

fn backend(name: &str, servers: Vec<ServerModel>) -> BackendModel {
    let mut backend = BackendModel::default();
    backend.common.name = name.to_owned();
    backend.servers = servers.into_iter().map(Arc::new).collect();
    backend
}

fn server(name: &str, address: SocketAddr) -> ServerModel {
    let mut server = ServerModel::new(name.to_owned(), Address::Inet(address));
    server.id = 1;
    server.checks.enabled = true;
    server.checks.interval = BEAT;
    server.checks.rise = 1;
    server.checks.fall = 1;
    server
}

/// A port that nobody listens on.
fn closed() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap()
}

/// Serves each connection with the next of `actions`; the last one serves all that follow.
fn origin(actions: Vec<fn(&mut TcpStream)>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for (count, stream) in listener.incoming().enumerate() {
            let action = actions[count.min(actions.len() - 1)];
            action(&mut stream.unwrap());
        }
    });
    address
}

fn request(stream: &mut TcpStream) -> Vec<u8> {
    let mut asked = vec![0; 4096];
    let count = stream.read(&mut asked).unwrap_or(0);
    asked.truncate(count);
    asked
}

fn ok(stream: &mut TcpStream) {
    request(stream);
    let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\nx-a: b, c\r\n\r\nhello");
}

fn broken(stream: &mut TcpStream) {
    request(stream);
    let _ = stream.write_all(b"HTTP/1.1 500 Bad thing\r\ncontent-length: 0\r\n\r\n");
}

fn missing(stream: &mut TcpStream) {
    request(stream);
    let _ = stream.write_all(b"HTTP/1.1 404 Gone away\r\ncontent-length: 0\r\n\r\n");
}

fn silence(stream: &mut TcpStream) {
    // Until the other side gives up.
    while stream.read(&mut [0; 512]).is_ok_and(|count| count > 0) {}
}

fn http(rules: Vec<CheckRule>) -> CheckMethod {
    CheckMethod::Http {
        rules,
        disable_on_404: false,
        send_state: false,
    }
}
