//! A server that answers some requests well, and fails the others.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use ballast_tests::frame_client::{END_HEADERS, END_STREAM, kind};
use ballast_tests::free_port;

/// What a server says in place of a good response, in its version of HTTP.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Says {
    /// A server of HTTP/1 sends these bytes.
    Http1(&'static str),
    /// A server of HTTP/2 sends these frames: type, flags, payload.
    Http2(&'static [(u8, u8, &'static [u8])]),
}

/// What a server does after what it says.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum After {
    /// It closes the connection.
    Close,
    /// It does not even listen.
    Refuse,
    /// It serves the next request.
    Serve,
    /// It waits for the proxy to close.
    Wait,
}

/// A running server.
pub(crate) struct Failing {
    /// Where it listens, on 127.0.0.1.
    pub(crate) port: u16,
    /// So many requests have a good response before the first fails.
    pub(crate) good_left: Arc<AtomicU32>,
    /// So many requests have come.
    pub(crate) requests: Arc<AtomicU32>,
}

/// The type of the last frame of a connection (RFC 9113 section 6.8): it belongs to no stream.
pub(crate) const GOAWAY: u8 = 7;

const GOOD_RESPONSE: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
/// `:status 200` and `content-length: 0`.
const GOOD_FRAMES: &[(u8, u8, &[u8])] = &[(
    kind::HEADERS,
    END_STREAM | END_HEADERS,
    b"\x88\x0f\x0d\x010",
)];
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const ACK: u8 = 1;

impl Failing {
    /// Starts it.
    pub(crate) fn start(says: Says, after: After) -> Self {
        // The kernel chooses the port of who listens: one that is free a moment before may be another's by now.
        let listener = match after {
            After::Refuse => None,
            _ => Some(TcpListener::bind(("127.0.0.1", 0)).expect("a free port")),
        };
        let this = Self {
            port: listener.as_ref().map_or_else(free_port, |listener| {
                listener.local_addr().expect("it is bound").port()
            }),
            good_left: Arc::default(),
            requests: Arc::default(),
        };
        let Some(listener) = listener else {
            return this;
        };
        let (good_left, requests) = (Arc::clone(&this.good_left), Arc::clone(&this.requests));
        thread::spawn(move || {
            for socket in listener.incoming().flatten() {
                let connection = Connection {
                    input: BufReader::new(socket),
                    good_left: Arc::clone(&good_left),
                    requests: Arc::clone(&requests),
                };
                thread::spawn(move || match says {
                    Says::Http1(bytes) => connection.serve_http1(bytes.as_bytes(), after),
                    Says::Http2(frames) => {
                        connection.serve_http2(frames, after).unwrap_or_default()
                    }
                });
            }
        });
        this
    }
}

struct Connection {
    input: BufReader<TcpStream>,
    good_left: Arc<AtomicU32>,
    requests: Arc<AtomicU32>,
}

impl Connection {
    fn serve_http1(mut self, says: &[u8], after: After) {
        while read_request(&mut self.input) {
            let is_good = self.count();
            let answer = if is_good { GOOD_RESPONSE } else { says };
            if self.input.get_mut().write_all(answer).is_err() || !self.goes_on(is_good, after) {
                return;
            }
        }
    }

    /// None when the proxy has closed.
    fn serve_http2(mut self, says: &[(u8, u8, &[u8])], after: After) -> Option<()> {
        self.input.read_exact(&mut [0; PREFACE.len()]).ok()?;
        send(self.input.get_mut(), 0, &[(kind::SETTINGS, 0, b"")])?;
        let (mut has_settings, mut asked) = (false, None);
        loop {
            let (of, flags, stream) = read_frame(&mut self.input)?;
            match of {
                kind::SETTINGS if flags & ACK != 0 => has_settings = true,
                kind::SETTINGS => send(self.input.get_mut(), 0, &[(kind::SETTINGS, ACK, b"")])?,
                kind::HEADERS | kind::DATA if flags & END_STREAM != 0 => asked = Some(stream),
                _ => {}
            }
            // A connection that is closed with something unread is reset, which is another failure.
            let Some(stream) = asked.take_if(|_| has_settings) else {
                continue;
            };
            let is_good = self.count();
            let frames = if is_good { GOOD_FRAMES } else { says };
            send(self.input.get_mut(), stream, frames)?;
            // What is waited for is this stream; others are served.
            if !is_good && after == After::Close {
                return None;
            }
        }
    }

    /// Counts a request, and says whether it has a good response.
    fn count(&self) -> bool {
        self.requests.fetch_add(1, Ordering::SeqCst);
        self.good_left
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| {
                left.checked_sub(1)
            })
            .is_ok()
    }

    /// Whether another request is served.
    fn goes_on(&mut self, was_good: bool, after: After) -> bool {
        if !was_good && after == After::Wait {
            let _ = std::io::copy(&mut self.input, &mut std::io::sink());
        }
        was_good || after == After::Serve
    }
}

/// Reads a request with its body; false at the end.
fn read_request(input: &mut BufReader<TcpStream>) -> bool {
    let mut body_length = 0;
    loop {
        let mut line = String::new();
        if !matches!(input.read_line(&mut line), Ok(1..)) {
            return false;
        }
        let line = line.trim_end().to_ascii_lowercase();
        if let Some(length) = line.strip_prefix("content-length: ") {
            body_length = length.parse().expect("a number");
        }
        if line.is_empty() {
            return input.read_exact(&mut vec![0; body_length]).is_ok();
        }
    }
}

/// The type, flags and stream of the next frame.
fn read_frame(input: &mut BufReader<TcpStream>) -> Option<(u8, u8, u32)> {
    let mut head = [0; 9];
    input.read_exact(&mut head).ok()?;
    let [high, middle, low, kind, flags, stream @ ..] = head;
    let length = u32::from_be_bytes([0, high, middle, low]);
    let mut payload = vec![0; usize::try_from(length).expect("24 bits")];
    input.read_exact(&mut payload).ok()?;
    Some((kind, flags, u32::from_be_bytes(stream)))
}

/// Sends frames of a stream in one write.
fn send(socket: &mut TcpStream, stream: u32, frames: &[(u8, u8, &[u8])]) -> Option<()> {
    let mut bytes = Vec::new();
    for (kind, flags, payload) in frames {
        let length = u32::try_from(payload.len()).expect("a frame of less than 4 GB");
        bytes.extend(&length.to_be_bytes()[1..]);
        bytes.extend([*kind, *flags]);
        bytes.extend(if *kind == GOAWAY { 0 } else { stream }.to_be_bytes());
        bytes.extend(*payload);
    }
    socket.write_all(&bytes).ok()
}
