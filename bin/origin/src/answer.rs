//! Parses the wishes in a request, and prepares the response.

use std::fmt::Write as _;
use std::time::Duration;

use bytes::Bytes;

use crate::h2::Fault;
use crate::{Server, page};

/// The maximum length of a body.
const SIZE_BYTES_MAX: u64 = 1 << 30;
/// The maximum delay of a response.
const DELAY_MS_MAX: u64 = 600_000;
/// What bodies of a given size consist of.
pub(crate) const LETTER: u8 = b'x';
/// Bodies are written in parts of at most this length.
const PIECE: &[u8; 16 << 10] = &[LETTER; 16 << 10];
/// The maximum number of interim responses.
const INTERIM_COUNT_MAX: u64 = 100;

/// What follows the body where trailers are asked for.
pub(crate) const TRAILER: (&str, &str) = ("x-trailer", "the end");
/// An interim response: its status, and its field.
pub(crate) const INTERIM: (u16, &str, &str) = (103, "link", "</style.css>; rel=preload");

/// The behaviour that a path selects.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Behaviour {
    Down,
    Echo,
    Health,
    Page,
    Say,
    Tls,
    Tunnel,
    Up,
}

/// The parts of a request that shape the response.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Request {
    pub(crate) behaviour: Behaviour,
    pub(crate) delay: Duration,
    /// The wait before each part of the body but the first.
    pub(crate) pause: Duration,
    /// How many interim responses (103) come before the answer.
    pub(crate) interim: u64,
    pub(crate) has_trailers: bool,
    pub(crate) is_closing: bool,
    /// Over HTTP/2: what is to go wrong.
    pub(crate) fault: Option<Fault>,
    /// The code of a reset or of a GOAWAY; none is the fault's own.
    pub(crate) code: Option<u32>,
    /// How many requests for this target get the fault; all of them when it is not given.
    pub(crate) fault_count: Option<u64>,
    is_chunked: bool,
    is_head: bool,
    piece: usize,
    size: Option<u64>,
    status: Option<u16>,
}

impl Request {
    /// How long the body is to be; zero when the answer has a text of its own.
    pub(crate) fn size(&self) -> u64 {
        self.size.unwrap_or(0)
    }

    /// Parses target and query. Invalid parts of the query are ignored.
    pub(crate) fn read(method: &str, target: &str, is_closing: bool, is_upgrade: bool) -> Self {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let mut asked = Self {
            behaviour: match path {
                "/" if query.is_empty() => Behaviour::Page,
                "/down" => Behaviour::Down,
                "/echo" => Behaviour::Echo,
                "/health" => Behaviour::Health,
                "/tls" => Behaviour::Tls,
                "/up" => Behaviour::Up,
                "/ws" if is_upgrade => Behaviour::Tunnel,
                _ => Behaviour::Say,
            },
            delay: Duration::ZERO,
            pause: Duration::ZERO,
            interim: 0,
            has_trailers: false,
            is_closing,
            fault: None,
            code: None,
            fault_count: None,
            is_chunked: false,
            is_head: method == "HEAD",
            piece: PIECE.len(),
            size: None,
            status: None,
        };
        for (name, value) in query.split('&').filter_map(|pair| pair.split_once('=')) {
            let number = value.parse::<u64>().ok();
            match (name, number) {
                ("size", Some(bytes)) => asked.size = Some(bytes.min(SIZE_BYTES_MAX)),
                ("delay", Some(ms)) => asked.delay = Duration::from_millis(ms.min(DELAY_MS_MAX)),
                ("pause", Some(ms)) => asked.pause = Duration::from_millis(ms.min(DELAY_MS_MAX)),
                ("piece", Some(bytes @ 1..)) => {
                    let bytes = usize::try_from(bytes).unwrap_or(PIECE.len());
                    asked.piece = bytes.min(PIECE.len());
                }
                ("interim", Some(count)) => asked.interim = count.min(INTERIM_COUNT_MAX),
                ("trailers", Some(yes)) => asked.has_trailers = yes != 0,
                ("fault", _) => asked.fault = Fault::named(value),
                ("code", Some(code)) => asked.code = u32::try_from(code).ok(),
                ("times", Some(count)) => asked.fault_count = Some(count),
                ("status", Some(status @ 200..=599)) => asked.status = u16::try_from(status).ok(),
                ("chunked", Some(yes)) => asked.is_chunked = yes != 0,
                ("close", Some(yes)) => asked.is_closing |= yes != 0,
                _ => {}
            }
        }
        asked
    }
}

/// The body of a response.
enum Body {
    /// Literal bytes.
    Bytes(Bytes),
    /// One letter, repeated.
    Filler(u64),
}

/// A response that is ready to be sent.
pub(crate) struct Response<'a> {
    asked: &'a Request,
    body: Body,
    server: &'a Server,
    pub(crate) status: u16,
    kind: &'static str,
}

impl<'a> Response<'a> {
    /// Performs the request's wish and prepares the response. `text` is the request for `/echo`, and
    /// what was negotiated for `/tls`.
    pub(crate) fn to(asked: &'a Request, server: &'a Server, text: Vec<u8>) -> Self {
        let mut status = asked.status.unwrap_or(200);
        let mut kind = "text/plain; charset=utf-8";
        let text = match asked.behaviour {
            Behaviour::Echo | Behaviour::Tls => text,
            Behaviour::Page => {
                kind = "text/html; charset=utf-8";
                page::page(server).into_bytes()
            }
            Behaviour::Down | Behaviour::Up => {
                server.is_up.set(asked.behaviour == Behaviour::Up);
                fact_text(
                    server,
                    if server.is_up.get() {
                        "is up"
                    } else {
                        "is down"
                    },
                )
            }
            Behaviour::Health if !server.is_up.get() => {
                status = asked.status.unwrap_or(503);
                fact_text(server, "is down")
            }
            Behaviour::Health => fact_text(server, "is up"),
            Behaviour::Say | Behaviour::Tunnel if asked.size.is_none() => {
                fact_text(server, "answers")
            }
            Behaviour::Say | Behaviour::Tunnel => Vec::new(),
        };
        let body = asked.size.map_or(Body::Bytes(text.into()), Body::Filler);
        Self {
            asked,
            body,
            server,
            status,
            kind,
        }
    }

    /// How many bytes of body follow the head; none where HTTP forbids a body.
    pub(crate) fn body_bytes(&self) -> u64 {
        if self.has_body() { self.length() } else { 0 }
    }

    /// False where HTTP forbids a body.
    pub(crate) fn has_body(&self) -> bool {
        !(self.asked.is_head || matches!(self.status, 204 | 304))
    }

    /// Whether the body is one letter, with nothing between its parts.
    pub(crate) fn is_plain_filler(&self) -> bool {
        let is_whole = self.asked.piece == PIECE.len() && self.asked.pause.is_zero();
        matches!(self.body, Body::Filler(_)) && is_whole && !self.asked.is_chunked
    }

    /// The length that the head announces, when it announces one.
    pub(crate) fn announced(&self) -> Option<u64> {
        let is_announced = !self.asked.is_chunked && self.status != 204;
        is_announced.then(|| self.length())
    }

    /// The fields that do not depend on how the body is framed.
    pub(crate) fn fields(&self) -> [(&'static str, &'a str); 2] {
        [("content-type", self.kind), ("x-origin", &self.server.name)]
    }

    fn length(&self) -> u64 {
        match &self.body {
            Body::Bytes(bytes) => bytes.len() as u64,
            Body::Filler(length) => *length,
        }
    }

    /// Appends the head.
    pub(crate) fn write_head(&self, to: &mut Vec<u8>) {
        let mut head = self.server.scratch.borrow_mut();
        head.clear();
        // Writing to a String cannot fail.
        let _ = write!(
            head,
            "HTTP/1.1 {} {}\r\nContent-Type: {}\r\nX-Origin: {}\r\n",
            self.status,
            reason(self.status),
            self.kind,
            self.server.name
        );
        let _ = match (self.status, self.asked.is_chunked) {
            (204, _) => Ok(()),
            (_, true) => write!(head, "Transfer-Encoding: chunked\r\n"),
            (_, false) => write!(head, "Content-Length: {}\r\n", self.length()),
        };
        if self.asked.is_closing {
            head.push_str("Connection: close\r\n");
        }
        head.push_str("\r\n");
        to.extend_from_slice(head.as_bytes());
    }

    /// The next part of the body, of which `left` bytes are left.
    pub(crate) fn piece(&self, left: u64) -> Bytes {
        let length = |max: usize| usize::try_from(left).map_or(max, |left| left.min(max));
        match &self.body {
            Body::Bytes(bytes) => {
                let start = bytes.len() - length(bytes.len());
                bytes.slice(start..bytes.len().min(start + self.asked.piece))
            }
            Body::Filler(_) => Bytes::from_static(&PIECE[..length(self.asked.piece)]),
        }
    }

    /// Appends the next part of the body, of which `left` bytes are left; returns its length.
    pub(crate) fn write_piece(&self, left: u64, to: &mut Vec<u8>) -> u64 {
        let piece = self.piece(left);
        if self.asked.is_chunked {
            to.extend_from_slice(format!("{:x}\r\n", piece.len()).as_bytes());
            to.extend_from_slice(&piece);
            to.extend_from_slice(b"\r\n");
        } else {
            to.extend_from_slice(&piece);
        }
        piece.len() as u64
    }

    /// Appends the end of a chunked body.
    pub(crate) fn write_end(&self, to: &mut Vec<u8>) {
        if self.asked.is_chunked && self.has_body() {
            to.extend_from_slice(b"0\r\n");
            if self.asked.has_trailers {
                let (name, value) = TRAILER;
                to.extend_from_slice(format!("{name}: {value}\r\n").as_bytes());
            }
            to.extend_from_slice(b"\r\n");
        }
    }
}

fn fact_text(server: &Server, what: &str) -> Vec<u8> {
    format!("{} {what}\n", server.name).into_bytes()
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        204 => "No Content",
        301 | 302 | 303 | 307 | 308 => "Elsewhere",
        304 => "Not Modified",
        404 => "Not Found",
        500 => "Internal Server Error",
        503 => "Service Unavailable",
        _ => "As Asked",
    }
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};

    use super::*;
    use crate::h2::{FaultCounts, H2Options};

    fn asked(method: &str, target: &str) -> Request {
        Request::read(method, target, false, false)
    }

    fn whole(asked: &Request, is_up: bool) -> String {
        let server = Server {
            name: "blue".to_owned(),
            is_up: Cell::new(is_up),
            requests: Cell::new(1),
            connections: Cell::new(1),
            tls: None,
            h2: H2Options::default(),
            faults: FaultCounts::default(),
            filler: None,
            scratch: RefCell::new(String::new()),
        };
        let answer = Response::to(asked, &server, b"GET /echo".to_vec());
        let mut bytes = Vec::new();
        answer.write_head(&mut bytes);
        let mut left = answer.body_bytes();
        while left > 0 {
            left -= answer.write_piece(left, &mut bytes);
        }
        answer.write_end(&mut bytes);
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn the_query_shapes_the_answer() {
        let text = whole(&asked("GET", "/x?size=20000&status=404&close=1"), true);
        assert!(text.starts_with("HTTP/1.1 404 Not Found\r\n"), "{text}");
        assert!(text.contains("Connection: close\r\n"));
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.contains("Content-Length: 20000"));
        assert_eq!(body.len(), 20_000);
    }

    #[test]
    fn chunks_add_up_and_end() {
        let text = whole(&asked("GET", "/x?size=5&chunked=1"), true);
        assert!(text.ends_with("\r\n\r\n5\r\nxxxxx\r\n0\r\n\r\n"), "{text}");
        assert!(!text.contains("Content-Length"));
    }

    #[test]
    fn a_body_comes_in_pieces_and_trailers_follow() {
        let text = whole(
            &asked("GET", "/x?size=5&piece=4&chunked=1&trailers=1"),
            true,
        );
        let expected = "\r\n\r\n4\r\nxxxx\r\n1\r\nx\r\n0\r\nx-trailer: the end\r\n\r\n";
        assert!(text.ends_with(expected), "{text}");
        let text = whole(&asked("GET", "/x?piece=4"), true);
        assert!(text.ends_with("\r\n\r\nblue answers\n"), "{text}");
    }

    #[test]
    fn head_and_204_have_no_body() {
        assert!(whole(&asked("HEAD", "/x?size=5"), true).ends_with("Content-Length: 5\r\n\r\n"));
        assert!(whole(&asked("HEAD", "/x?chunked=1"), true).ends_with("chunked\r\n\r\n"));
        assert!(whole(&asked("GET", "/x?size=5&status=204"), true).ends_with("blue\r\n\r\n"));
    }

    #[test]
    fn health_follows_what_was_said() {
        assert!(whole(&asked("GET", "/health"), true).starts_with("HTTP/1.1 200 "));
        assert!(whole(&asked("GET", "/health"), false).starts_with("HTTP/1.1 503 "));
        assert!(whole(&asked("GET", "/up"), false).ends_with("blue is up\n"));
    }

    #[test]
    fn nonsense_is_ignored() {
        let plain = asked("GET", "/x");
        assert_eq!(asked("GET", "/x?size=-1&status=7&delay=soon&what"), plain);
        assert_eq!(
            asked("GET", "/x?size=99999999999").size,
            Some(SIZE_BYTES_MAX)
        );
    }
}
