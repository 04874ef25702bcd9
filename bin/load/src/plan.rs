//! The plan of a run, made from the command line.
//!
//! Requests are composed once, here; the hot loop only sends them.

use std::io;
use std::net::ToSocketAddrs as _;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use rustls_pki_types::ServerName;

use crate::pace::Rate;
use crate::socket::Address;
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

/// A server, and the requests for it.
#[derive(Clone, Debug)]
pub(crate) struct Origin {
    pub(crate) address: Address,
    /// Over TLS: the name to ask for when no other is given.
    pub(crate) tls: Option<ServerName<'static>>,
    /// The value of `Host`.
    pub(crate) host: String,
    /// At least one.
    pub(crate) paths: Vec<String>,
    /// One per path, ready to send.
    pub(crate) requests: Vec<Vec<u8>>,
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
    pub(crate) body_bytes: usize,
    pub(crate) expect: Expect,
    /// How connections over TLS are made, when a target has them.
    pub(crate) tls: Option<TlsClient>,
    /// The interval of messages on one WebSocket.
    pub(crate) every: Duration,
    pub(crate) timeline: Option<Duration>,
    pub(crate) is_json: bool,
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

    /// Composes the requests of all origins.
    pub(crate) fn compose_requests(&mut self) {
        for number in 0..self.origins.len() {
            let origin = &self.origins[number];
            let requests = origin.paths.iter().map(|path| self.request(origin, path));
            self.origins[number].requests = requests.collect();
        }
    }

    fn request(&self, origin: &Origin, path: &str) -> Vec<u8> {
        let mut head = self.head(origin, path);
        let has_body = self.body_bytes > 0
            || (self.mode == Mode::Http
                && matches!(self.method.as_str(), "PATCH" | "POST" | "PUT"));
        if has_body && !self.has_field("content-length") && !self.has_field("transfer-encoding") {
            head.push_str(&format!("Content-Length: {}\r\n", self.body_bytes));
        }
        if self.is_closing && !self.has_field("connection") {
            head.push_str("Connection: close\r\n");
        }
        head.push_str("\r\n");
        let mut bytes = head.into_bytes();
        bytes.resize(bytes.len() + self.body_bytes, b'x');
        bytes
    }

    /// The start of a request: the common lines, and the fields of the command line.
    pub(crate) fn head(&self, origin: &Origin, path: &str) -> String {
        let mut head = format!("{} {path} HTTP/1.1\r\n", self.method);
        if !self.has_field("host") {
            head.push_str(&format!("Host: {}\r\n", origin.host));
        }
        for field in &self.fields {
            head.push_str(field);
            head.push_str("\r\n");
        }
        head
    }

    fn has_field(&self, name: &str) -> bool {
        self.fields.iter().any(|field| {
            field
                .split_once(':')
                .is_some_and(|(given, _)| given.trim().eq_ignore_ascii_case(name))
        })
    }
}

impl Origin {
    /// Parses `[http[s]://]HOST[:PORT][/PATH]` or `unix@PATH`, and resolves the name. Without a
    /// scheme `is_tls` tells whether it is over TLS.
    ///
    /// # Errors
    ///
    /// When the name has no address.
    pub(crate) fn read(target: &str, is_tls: bool) -> io::Result<Self> {
        let (rest, is_tls) = if let Some(rest) = target.strip_prefix("https://") {
            (rest, true)
        } else if let Some(rest) = target.strip_prefix("http://") {
            (rest, false)
        } else {
            (target, is_tls)
        };
        let (address, host, path) = if let Some(path) = rest.strip_prefix("unix@") {
            (Address::Unix(PathBuf::from(path)), "localhost", None)
        } else {
            let (host, path) = rest.find('/').map_or((rest, None), |at| {
                (&rest[..at], Some(rest[at..].to_owned()))
            });
            let port = if is_tls { 443 } else { 80 };
            let mut found = match host.to_socket_addrs() {
                Ok(found) => found,
                // Perhaps only the port is missing.
                Err(_) => (host.trim_matches(['[', ']']), port).to_socket_addrs()?,
            };
            let first = found
                .next()
                .ok_or_else(|| io::Error::other("the name has no address"))?;
            (Address::Tcp(first), host, path)
        };
        Ok(Self {
            address,
            tls: is_tls.then(|| server_name(host)).transpose()?,
            host: host.to_owned(),
            paths: path.into_iter().collect(),
            requests: Vec::new(),
        })
    }
}

/// The name of `HOST[:PORT]` that TLS asks for. It asks for none when the host is an address.
fn server_name(host: &str) -> io::Result<ServerName<'static>> {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    let name = name.trim_matches(['[', ']']).to_owned();
    ServerName::try_from(name).map_err(|error| io::Error::other(error.to_string()))
}
