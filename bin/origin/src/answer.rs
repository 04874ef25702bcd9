//! Parses the wishes in a request, and prepares the response.

use std::fmt::Write as _;
use std::time::Duration;

use crate::{Server, page};

/// The maximum length of a body.
const SIZE_BYTES_MAX: u64 = 1 << 30;
/// The maximum delay of a response.
const DELAY_MS_MAX: u64 = 600_000;
/// Bodies are written in parts of this length.
const PIECE: &[u8; 16 << 10] = &[b'x'; 16 << 10];

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
    pub(crate) is_closing: bool,
    is_chunked: bool,
    is_head: bool,
    size: Option<u64>,
    status: Option<u16>,
}

impl Request {
    /// Parses target and query. Invalid parts of the query are ignored.
    pub(crate) fn read(
        request: &httparse::Request<'_, '_>,
        is_closing: bool,
        is_upgrade: bool,
    ) -> Self {
        let target = request.path.unwrap_or("/");
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
            is_closing,
            is_chunked: false,
            is_head: request.method == Some("HEAD"),
            size: None,
            status: None,
        };
        for (name, value) in query.split('&').filter_map(|pair| pair.split_once('=')) {
            let number = value.parse::<u64>().ok();
            match (name, number) {
                ("size", Some(bytes)) => asked.size = Some(bytes.min(SIZE_BYTES_MAX)),
                ("delay", Some(ms)) => asked.delay = Duration::from_millis(ms.min(DELAY_MS_MAX)),
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
    Bytes(Vec<u8>),
    /// One letter, repeated.
    Filler(u64),
}

/// A response that is ready to be sent.
pub(crate) struct Response<'a> {
    asked: &'a Request,
    body: Body,
    server: &'a Server,
    status: u16,
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
        let body = asked.size.map_or(Body::Bytes(text), Body::Filler);
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
        if self.asked.is_head || matches!(self.status, 204 | 304) {
            0
        } else {
            self.length()
        }
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

    /// Appends the next part of the body, of which `left` bytes are left; returns its length.
    pub(crate) fn write_piece(&self, left: u64, to: &mut Vec<u8>) -> u64 {
        let piece = match &self.body {
            Body::Bytes(bytes) => bytes.as_slice(),
            Body::Filler(_) => {
                &PIECE[..usize::try_from(left).map_or(PIECE.len(), |left| left.min(PIECE.len()))]
            }
        };
        if self.asked.is_chunked {
            to.extend_from_slice(format!("{:x}\r\n", piece.len()).as_bytes());
            to.extend_from_slice(piece);
            to.extend_from_slice(b"\r\n");
        } else {
            to.extend_from_slice(piece);
        }
        piece.len() as u64
    }

    /// Appends the end of a chunked body.
    pub(crate) fn write_end(&self, to: &mut Vec<u8>) {
        let has_body = !(self.asked.is_head || matches!(self.status, 204 | 304));
        if self.asked.is_chunked && has_body {
            to.extend_from_slice(b"0\r\n\r\n");
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

    fn asked(method: &'static str, target: &'static str) -> Request {
        let mut request = httparse::Request::new(&mut []);
        request.method = Some(method);
        request.path = Some(target);
        Request::read(&request, false, false)
    }

    fn whole(asked: &Request, is_up: bool) -> String {
        let server = Server {
            name: "blue".to_owned(),
            is_up: Cell::new(is_up),
            requests: Cell::new(1),
            connections: Cell::new(1),
            tls: None,
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
