//! The plan of a run, made from the command line.
//!
//! Requests are composed once, here; the hot loop only sends them.

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;

use crate::origin::{Origin, Url};
use crate::pace::Rate;
use crate::tls::TlsClient;

/// What is measured.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Mode {
    /// Requests and answers.
    Http,
    /// Handshakes of TLS, and nothing behind them.
    Handshakes,
    /// Long-lived connections that send a message now and then.
    WebSockets,
}

/// What a WebSocket sends to see that it is alive.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Hold {
    /// A text message of at least this many bytes, which the server sends back.
    Echo(usize),
    /// A ping; messages of the server are ignored.
    Ping,
}

/// The expected response.
#[derive(Clone, Debug, Default)]
pub(crate) struct Expect {
    pub(crate) statuses: Vec<RangeInclusive<u16>>,
    pub(crate) body_bytes: Option<u64>,
    /// What the body must begin with.
    pub(crate) body_prefix: Vec<u8>,
}

/// The input of a run.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) mode: Mode,
    /// At least one.
    pub(crate) origins: Vec<Origin>,
    /// The origin of each connection.
    pub(crate) shares: Vec<usize>,
    pub(crate) connections: usize,
    /// At most the number of connections.
    pub(crate) threads: usize,
    /// Over HTTP/2: streams at the same time on a connection; none is HTTP/1.
    pub(crate) streams: Option<usize>,
    /// A connection per request.
    pub(crate) is_closing: bool,
    /// `None`: as fast as responses arrive.
    pub(crate) rate: Option<Rate>,
    pub(crate) requests: Option<u64>,
    pub(crate) duration: Option<Duration>,
    /// The time limit of a request, connecting included.
    pub(crate) timeout: Duration,
    /// A request may be sent again when its kept connection was closed.
    pub(crate) may_retry: bool,
    pub(crate) method: String,
    /// `Name: value`, without line ends.
    pub(crate) fields: Vec<String>,
    /// The body of every request.
    pub(crate) body: Bytes,
    pub(crate) expect: Expect,
    /// How connections over TLS are made, when a target has them.
    pub(crate) tls: Option<TlsClient>,
    /// The interval of messages on one WebSocket.
    pub(crate) every: Duration,
    /// What a WebSocket sends.
    pub(crate) hold: Hold,
    pub(crate) timeline: Option<Duration>,
    pub(crate) is_json: bool,
    /// No line is printed while it runs.
    pub(crate) is_quiet: bool,
    /// Where to read what happened meanwhile.
    pub(crate) marks: Option<PathBuf>,
    /// Where to write the report as a page.
    pub(crate) html: Option<PathBuf>,
    /// The name of the run in reports.
    pub(crate) title: Option<String>,
    /// The command line, without secrets, for reports.
    pub(crate) command: String,
}

impl Plan {
    /// Whether the response has no body (HEAD).
    pub(crate) fn is_bodyless(&self) -> bool {
        self.method == "HEAD"
    }

    /// Whether a request with this method may be sent again when it is unknown whether the server
    /// saw it (RFC 9110 section 9.2.2).
    pub(crate) fn is_idempotent(&self) -> bool {
        matches!(
            self.method.as_str(),
            "DELETE" | "GET" | "HEAD" | "OPTIONS" | "PUT" | "TRACE"
        )
    }

    /// Composes the requests of all URLs.
    pub(crate) fn compose_requests(&mut self) {
        let mut origins = std::mem::take(&mut self.origins);
        for url in origins.iter_mut().flat_map(|origin| &mut origin.urls) {
            url.head = self.request(url);
        }
        self.origins = origins;
    }

    /// The number of URLs.
    pub(crate) fn url_count(&self) -> usize {
        self.origins.iter().map(|origin| origin.urls.len()).sum()
    }

    fn request(&self, url: &Url) -> Vec<u8> {
        let mut head = self.head(url);
        let has_body = !self.body.is_empty()
            || (self.mode == Mode::Http
                && matches!(self.method.as_str(), "PATCH" | "POST" | "PUT"));
        if has_body && !self.has_field("content-length") && !self.has_field("transfer-encoding") {
            head.push_str(&format!("Content-Length: {}\r\n", self.body.len()));
        }
        if self.is_closing && !self.has_field("connection") {
            head.push_str("Connection: close\r\n");
        }
        head.push_str("\r\n");
        head.into_bytes()
    }

    /// The start of a request: the common lines, and the fields of the command line.
    pub(crate) fn head(&self, url: &Url) -> String {
        let mut head = format!("{} {} HTTP/1.1\r\n", self.method, url.path);
        if !self.has_field("host") {
            head.push_str(&format!("Host: {}\r\n", url.host));
        }
        for field in &self.fields {
            head.push_str(field);
            head.push_str("\r\n");
        }
        head
    }

    pub(crate) fn has_field(&self, name: &str) -> bool {
        self.fields.iter().any(|field| {
            field
                .split_once(':')
                .is_some_and(|(given, _)| given.trim().eq_ignore_ascii_case(name))
        })
    }
}
