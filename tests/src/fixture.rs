//! A proxy with a command socket, for tests that change it while it serves.

use std::fs;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, PoisonError};

use crate::origin::answer;
use crate::{Client, Origin, Program, Proxy, Request, RuntimeApi, WAIT_MAX, eventually, free_port};

/// A proxy with a command socket, in front of servers of the test.
#[derive(Debug)]
pub struct Fixture {
    /// The program.
    pub proxy: Proxy,
    /// Its command socket.
    pub api: RuntimeApi,
    /// The port it listens on.
    pub port: u16,
}

/// The start of every configuration here. Timeouts are much longer than any test.
pub const HEAD: &str = "\
global
    stats socket unix@ctl.sock level admin
defaults web
    mode http
    timeout connect 5s
    timeout client 20s
    timeout server 20s
";

impl Fixture {
    /// `lines` follow the defaults; `PORT` in them is a free port, and the proxy listens on it.
    ///
    /// # Panics
    ///
    /// When something does not happen in time, or a file cannot be written.
    #[must_use]
    pub fn start(lines: &str) -> Self {
        let port = free_port();
        let proxy = Proxy::start(&Program::ballast(), &configuration(lines, port), &[port]);
        let api = RuntimeApi::at(proxy.directory().join("ctl.sock"));
        Self { proxy, api, port }
    }

    /// Replaces the text of the file.
    ///
    /// # Panics
    ///
    /// When something does not happen in time, or a file cannot be written.
    pub fn write(&self, lines: &str) {
        let file = self.proxy.directory().join("haproxy.cfg");
        fs::write(file, configuration(lines, self.port)).expect("the file is written");
    }

    /// Applies another configuration.
    ///
    /// # Panics
    ///
    /// When something does not happen in time, or a file cannot be written.
    #[must_use]
    pub fn apply(&self, lines: &str) -> String {
        self.api.apply(&configuration(lines, self.port))
    }

    /// As [`Self::apply`], which must succeed.
    ///
    /// # Panics
    ///
    /// When something does not happen in time, or a file cannot be written.
    pub fn apply_well(&self, lines: &str) {
        let said = self.apply(lines);
        assert!(said.contains("is in force."), "{said}");
    }

    /// A connection to it.
    ///
    /// # Panics
    ///
    /// When the connection is refused.
    #[must_use]
    pub fn client(&self) -> Client {
        Client::connect(self.port)
    }

    /// The generation in force.
    ///
    /// # Panics
    ///
    /// When something does not happen in time, or a file cannot be written.
    #[must_use]
    pub fn generation(&self) -> u64 {
        let shown = self.api.ask("show generations");
        let last = shown.lines().last().expect("there is always one");
        let number = last.split(' ').next().map(str::parse);
        number.expect("a word").expect("it begins with a number")
    }
}

/// The whole text with these lines after the defaults.
#[must_use]
pub fn configuration(lines: &str, port: u16) -> String {
    format!("{HEAD}{}", lines.replace("PORT", &port.to_string()))
}

/// A frontend with the first lines, and a backend with the second.
#[must_use]
pub fn site(front: &str, back: &str) -> String {
    format!(
        "frontend www\n bind 127.0.0.1:PORT\n default_backend app\n{front}\nbackend app\n{back}\n"
    )
}

/// Server lines, one for each origin.
#[must_use]
pub fn servers(origins: &[&Origin]) -> String {
    origins
        .iter()
        .zip(1..)
        .map(|(origin, n)| format!(" server s{n} 127.0.0.1:{}\n", origin.port()))
        .collect()
}

/// An origin whose `/slow` waits for a signal of the test; it answers every request with its name.
///
/// # Panics
///
/// When something does not happen in time, or a file cannot be written.
#[must_use]
pub fn patient(name: &'static str) -> (Origin, Sender<()>) {
    let (sender, receiver) = channel();
    let receiver = Mutex::new(receiver);
    let origin = Origin::start(move |request: &Request| {
        if request.target() == "/slow" {
            // A test that ends without the signal releases it too.
            let _ = receiver
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .recv();
        }
        answer(200, name)
    });
    (origin, sender)
}

/// Waits until the origin has received that many requests.
///
/// # Panics
///
/// When something does not happen in time, or a file cannot be written.
pub fn until_requested(origin: &Origin, count: usize) {
    let began = std::time::Instant::now();
    while origin.requests().len() < count {
        assert!(began.elapsed() < WAIT_MAX, "the request comes");
        std::thread::yield_now();
    }
}

/// Two requests for `app`, whose only server takes one at a time: the first is slow ([`patient`]),
/// the second waits in the queue.
///
/// # Panics
///
/// When they do not arrive in time.
#[must_use]
pub fn one_waits(fixture: &Fixture, origin: &Origin) -> (Client, Client) {
    let first = ask_slowly(fixture, origin);
    let mut second = fixture.client();
    second.send("GET /second HTTP/1.1\r\nHost: test\r\n\r\n");
    eventually("it is queued", || {
        fixture.api.stat_of("app/BACKEND", "qcur") == "1"
    });
    (first, second)
}

/// Starts a request with a slow response.
///
/// # Panics
///
/// When something does not happen in time, or a file cannot be written.
#[must_use]
pub fn ask_slowly(fixture: &Fixture, origin: &Origin) -> Client {
    let before = fixture.api.stat_of("app/BACKEND", "scur");
    let mut client = fixture.client();
    client.send("GET /slow HTTP/1.1\r\nHost: test\r\n\r\n");
    let began = std::time::Instant::now();
    let connections = origin.connections();
    while fixture.api.stat_of("app/BACKEND", "scur") == before
        || (connections == 0 && origin.connections() == 0)
    {
        assert!(began.elapsed() < WAIT_MAX, "it is under way");
    }
    client
}
