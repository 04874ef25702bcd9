//! A proxy with a command socket, which a test changes while it serves.

use std::fs;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, PoisonError};

use crate::origin::answer;
use crate::{Client, Origin, Program, Proxy, Request, RuntimeApi, WAIT_MAX, eventually, free_port};

/// A proxy with a command socket, before servers of the test.
#[derive(Debug)]
pub struct Fixture {
    /// The program.
    pub proxy: Proxy,
    /// Its command socket.
    pub api: RuntimeApi,
    /// Where it listens.
    pub port: u16,
}

/// What every configuration here begins with. Timeouts are far longer than any test.
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
    /// `lines` follow the defaults; `PORT` in them is a free port, listened on.
    ///
    /// # Panics
    ///
    /// When nothing comes in time, or a file cannot be written.
    #[must_use]
    pub fn start(lines: &str) -> Self {
        let port = free_port();
        let proxy = Proxy::start(&Program::ballast(), &configuration(lines, port), &[port]);
        let api = RuntimeApi::at(proxy.directory().join("ctl.sock"));
        Self { proxy, api, port }
    }

    /// Puts another text in the place of the file.
    ///
    /// # Panics
    ///
    /// When nothing comes in time, or a file cannot be written.
    pub fn write(&self, lines: &str) {
        let file = self.proxy.directory().join("haproxy.cfg");
        fs::write(file, configuration(lines, self.port)).expect("the file is written");
    }

    /// Puts another configuration in force.
    ///
    /// # Panics
    ///
    /// When nothing comes in time, or a file cannot be written.
    #[must_use]
    pub fn apply(&self, lines: &str) -> String {
        self.api.apply(&configuration(lines, self.port))
    }

    /// As [`Self::apply`], where it must succeed.
    ///
    /// # Panics
    ///
    /// When nothing comes in time, or a file cannot be written.
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
    /// When nothing comes in time, or a file cannot be written.
    #[must_use]
    pub fn generation(&self) -> u64 {
        let shown = self.api.ask("show generations");
        let last = shown.lines().last().expect("there is always one");
        let number = last.split(' ').next().map(str::parse);
        number.expect("a word").expect("it begins with a number")
    }
}

/// The whole text of lines that follow the defaults.
#[must_use]
pub fn configuration(lines: &str, port: u16) -> String {
    format!("{HEAD}{}", lines.replace("PORT", &port.to_string()))
}

/// A frontend with these lines before a backend with those.
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

/// An origin whose `/slow` waits for a word, and then answers as all else: with its name.
///
/// # Panics
///
/// When nothing comes in time, or a file cannot be written.
#[must_use]
pub fn patient(name: &'static str) -> (Origin, Sender<()>) {
    let (sender, receiver) = channel();
    let receiver = Mutex::new(receiver);
    let origin = Origin::start(move |request: &Request| {
        if request.target() == "/slow" {
            // A test that ends without the word lets it go too.
            let _ = receiver
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .recv();
        }
        answer(200, name)
    });
    (origin, sender)
}

/// Waits until the origin has got that many requests.
///
/// # Panics
///
/// When nothing comes in time, or a file cannot be written.
pub fn until_requested(origin: &Origin, count: usize) {
    let began = std::time::Instant::now();
    while origin.requests().len() < count {
        assert!(began.elapsed() < WAIT_MAX, "the request comes");
        std::thread::yield_now();
    }
}

/// Two requests for `app`, whose only server takes one at a time: the first takes its time there
/// ([`patient`]), the second waits for it in the queue.
///
/// # Panics
///
/// When they are not there in time.
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

/// Begins a request whose answer takes its time.
///
/// # Panics
///
/// When nothing comes in time, or a file cannot be written.
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
