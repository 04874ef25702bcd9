//! Servers for the tests, and runs of the load generator.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Command, Output};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use base64::Engine as _;
use serde_json::Value;
use sha1::Digest as _;

pub(crate) const HELLO: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";

/// A server that calls `action` for each request, with the socket, the number of the request on its
/// connection, and the number of the connection. It closes when the action returns false.
pub(crate) fn serve<D>(action: D) -> String
where
    D: Fn(&mut TcpStream, usize, usize) -> bool + Send + Sync + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let action = Arc::new(action);
    thread::spawn(move || {
        for (connection, socket) in listener.incoming().enumerate() {
            let (mut socket, action) = (socket.unwrap(), Arc::clone(&action));
            thread::spawn(move || {
                let mut reader = BufReader::new(socket.try_clone().unwrap());
                for number in 0.. {
                    if !read_head(&mut reader) || !action(&mut socket, number, connection) {
                        return;
                    }
                }
            });
        }
    });
    address
}

/// True when a complete head was received.
pub(crate) fn read_head(reader: &mut impl std::io::BufRead) -> bool {
    loop {
        let mut line = String::new();
        match reader.read_line(&mut line) {
            Ok(0) | Err(_) => return false,
            Ok(_) if line == "\r\n" => return true,
            Ok(_) => {}
        }
    }
}

pub(crate) fn load(line: &str, address: &str) -> (i32, Value) {
    let words = line.split(' ').filter(|word| !word.is_empty());
    let output = run(words.chain(["--json", address]));
    let text = String::from_utf8(output.stdout).unwrap();
    let json = serde_json::from_str(&text).unwrap_or_else(|error| {
        panic!(
            "{error}: {text} {}",
            String::from_utf8_lossy(&output.stderr)
        )
    });
    (output.status.code().unwrap(), json)
}

pub(crate) fn run<'a>(words: impl Iterator<Item = &'a str>) -> Output {
    Command::new(env!("CARGO_BIN_EXE_ballast-load"))
        .args(words)
        .output()
        .unwrap()
}

/// Checks that all of `requests` ended, `failed` of them as `class`, and the exit code.
#[track_caller]
pub(crate) fn assert_failed(outcome: &(i32, Value), class: &str, failed: u64, ok: u64) {
    let (code, json) = outcome;
    assert_eq!(json["ok"], ok, "{json}");
    assert_eq!(json["failed"], failed, "{json}");
    for (name, count) in json["failures"].as_object().unwrap() {
        let expected = if name == class { failed } else { 0 };
        assert_eq!(*count, expected, "{name}: {json}");
    }
    assert_eq!(*code, i32::from(failed > 0), "{json}");
    let first = json["first_failures"].as_array().unwrap();
    assert_eq!(first.len() as u64, failed.min(20), "{json}");
    for failure in first {
        assert_eq!(failure["class"], class, "{json}");
        assert_ne!(failure["reason"], "", "{json}");
    }
}

/// A reply that is a close frame with the code 1001.
pub(crate) const GOING_AWAY: &[u8] = &[3, 233];

/// What the WebSocket server does with message `number` of connection `connection`.
pub(crate) type Reply = fn(number: usize, connection: usize, text: &[u8]) -> Option<Vec<u8>>;

pub(crate) fn serve_websockets(reply: Reply) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    thread::spawn(move || {
        for (connection, socket) in listener.incoming().enumerate() {
            let socket = socket.unwrap();
            thread::spawn(move || speak_websocket(socket, connection, reply));
        }
    });
    address
}

fn speak_websocket(mut socket: TcpStream, connection: usize, reply: Reply) -> Option<()> {
    let mut reader = BufReader::new(socket.try_clone().unwrap());
    let mut proof = None;
    loop {
        let mut line = String::new();
        reader
            .read_line(&mut line)
            .ok()
            .filter(|length| *length > 0)?;
        if let Some(key) = line.trim().strip_prefix("Sec-WebSocket-Key: ") {
            let text = format!("{key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11");
            let hash = sha1::Sha1::digest(text.as_bytes());
            proof = Some(base64::engine::general_purpose::STANDARD.encode(hash));
        }
        if line == "\r\n" {
            break;
        }
    }
    let proof = proof?;
    let head = format!(
        "HTTP/1.1 101 Yes\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Accept: {proof}\r\n\r\n"
    );
    socket.write_all(head.as_bytes()).ok()?;
    for number in 0.. {
        let mut head = [0; 6];
        reader.read_exact(&mut head).ok()?;
        let mut payload = vec![0; usize::from(head[1] & 0x7f)];
        reader.read_exact(&mut payload).ok()?;
        assert!(head[1] & 0x80 != 0, "a client masks");
        for (byte, mask) in payload.iter_mut().zip(head[2..].iter().cycle()) {
            *byte ^= mask;
        }
        let is_close = head[0] == 0x88;
        let reply = if is_close {
            payload
        } else {
            reply(number, connection, &payload)?
        };
        let is_leaving = reply == GOING_AWAY;
        let opcode = match head[0] {
            _ if is_leaving => 0x88,
            // A ping gets a pong.
            0x89 => 0x8a,
            same => same,
        };
        let short = u8::try_from(reply.len()).unwrap();
        let frame = [&[opcode, short], reply.as_slice()].concat();
        socket.write_all(&frame).ok()?;
        if is_close || is_leaving {
            return None;
        }
    }
    None
}

/// A path for a file of a test, which is removed with it.
pub(crate) struct TestFile(pub(crate) PathBuf);

impl TestFile {
    pub(crate) fn new(name: &str) -> Self {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("ballast-load-{}-{number}-{name}", std::process::id());
        Self(std::env::temp_dir().join(name))
    }

    pub(crate) fn with(name: &str, content: impl AsRef<[u8]>) -> Self {
        let file = Self::new(name);
        std::fs::write(&file.0, content).unwrap();
        file
    }

    pub(crate) fn text(&self) -> String {
        std::fs::read_to_string(&self.0).unwrap()
    }

    pub(crate) fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }
}

impl Drop for TestFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}
