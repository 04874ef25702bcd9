//! One question to an OCSP responder over HTTP, in time and in size.

use std::fmt;
use std::io::{Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

use ballast_tls::ocsp_request::OcspRequest;
use ballast_tls::ocsp_schedule::UpdateStatus;

/// How long a responder has from the first connect to the end of its answer.
const FETCH_WAIT_MAX: Duration = Duration::from_secs(10);
/// How many of its addresses are tried.
const ADDRESSES_MAX: usize = 3;
/// The longest answer, with its head: responses are a few kilobytes.
const ANSWER_BYTES_MAX: usize = 65_536;

/// Why there is no answer.
#[derive(Debug, Eq, PartialEq)]
pub(super) struct FetchError {
    pub(super) status: UpdateStatus,
    /// The request, where it got no answer of HTTP at all.
    pub(super) unanswered: Option<UnansweredRequest>,
}

impl From<UpdateStatus> for FetchError {
    fn from(status: UpdateStatus) -> Self {
        Self {
            status,
            unanswered: None,
        }
    }
}

/// A request without an answer, as a log line of HTTP tells it.
#[derive(Debug, Eq, PartialEq)]
pub(super) struct UnansweredRequest {
    /// The method, the address and the version.
    request_line: String,
    /// How long the connect took; `None`: there was no connection.
    connect: Option<Duration>,
    /// How long all of it took.
    total: Duration,
    is_late: bool,
}

/// The part of HAProxy's log line behind the date (manual, "ocsp-update").
impl fmt::Display for UnansweredRequest {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (status, state) = match (self.connect, self.is_late) {
            (None, false) => (503, "SC--"),
            (None, true) => (503, "sC--"),
            (Some(_), false) => (502, "SH--"),
            (Some(_), true) => (504, "sH--"),
        };
        let connect = self
            .connect
            .map_or_else(|| "-1".to_owned(), |time| time.as_millis().to_string());
        write!(
            out,
            "<OCSP-UPDATE> -/- 0/0/{connect}/-1/{} {status} 0 - - {state} 0/0/0/0/0 0/0 {{}} \"{}\"",
            self.total.as_millis(),
            self.request_line
        )
    }
}

/// Asks a responder, through a proxy if there is one (`<address>[:port]`). The answer is not judged.
///
/// # Errors
/// [`UpdateStatus::Http`] or [`UpdateStatus::ContentType`].
pub(super) fn fetch(request: &OcspRequest, proxy: Option<&str>) -> Result<Vec<u8>, FetchError> {
    let (uri, method) = match request.get_uri() {
        Some(uri) => (uri, "GET"),
        None => (request.responder.clone(), "POST"),
    };
    let rest = uri.strip_prefix("http://").ok_or(UpdateStatus::Http)?;
    let is_clean = rest.bytes().all(|byte| byte.is_ascii_graphic());
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    if !is_clean || authority.is_empty() || authority.contains('@') {
        return Err(UpdateStatus::Http.into());
    }
    let target = match (proxy, path) {
        (Some(_), _) => uri.as_str(),
        (None, "") => "/",
        (None, path) => path,
    };
    // With version 1.0 an answer ends with its connection, and comes in no pieces.
    let mut message = format!(
        "{method} {target} HTTP/1.0\r\nhost: {authority}\r\naccept: */*\r\nuser-agent: Ballast\r\n"
    )
    .into_bytes();
    if method == "POST" {
        let length = request.der.len();
        let fields =
            format!("content-type: application/ocsp-request\r\ncontent-length: {length}\r\n\r\n");
        message.extend_from_slice(fields.as_bytes());
        message.extend_from_slice(&request.der);
    } else {
        message.extend_from_slice(b"\r\n");
    }
    let began = Instant::now();
    let end = began + FETCH_WAIT_MAX;
    let stream = connect(proxy.unwrap_or(authority), end);
    let connect = stream.as_ref().map(|_| began.elapsed());
    let answer = stream.and_then(|stream| exchange(stream, &message, end));
    let unanswered = || FetchError {
        status: UpdateStatus::Http,
        unanswered: Some(UnansweredRequest {
            request_line: format!("{method} {uri} HTTP/1.0"),
            connect,
            total: began.elapsed(),
            is_late: remaining(end).is_none(),
        }),
    };
    let answer = answer.filter(|answer| !answer.is_empty());
    Ok(body(&answer.ok_or_else(unanswered)?)?)
}

/// Sends a message and reads what comes until its end.
fn exchange(mut stream: TcpStream, message: &[u8], end: Instant) -> Option<Vec<u8>> {
    stream.set_write_timeout(Some(remaining(end)?)).ok()?;
    stream.write_all(message).ok()?;
    let mut answer = Vec::new();
    let mut piece = [0; 4096];
    loop {
        stream.set_read_timeout(Some(remaining(end)?)).ok()?;
        match stream.read(&mut piece).ok()? {
            0 => return Some(answer),
            count => answer.extend_from_slice(&piece[..count]),
        }
        if answer.len() > ANSWER_BYTES_MAX {
            return None;
        }
        if is_whole(&answer) {
            return Some(answer);
        }
    }
}

fn connect(authority: &str, end: Instant) -> Option<TcpStream> {
    let has_port = authority
        .rsplit_once(':')
        .is_some_and(|(_, port)| port.bytes().all(|byte| byte.is_ascii_digit()));
    let port = if has_port { "" } else { ":80" };
    let addresses = format!("{authority}{port}").to_socket_addrs().ok()?;
    addresses
        .take(ADDRESSES_MAX)
        .find_map(|address| TcpStream::connect_timeout(&address, remaining(end)?).ok())
}

fn remaining(end: Instant) -> Option<Duration> {
    end.checked_duration_since(Instant::now())
        .filter(|remaining| !remaining.is_zero())
}

/// Head and body of an answer.
fn split(answer: &[u8]) -> Option<(&str, &[u8])> {
    let end = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n")?;
    Some((
        std::str::from_utf8(&answer[..end]).ok()?,
        &answer[end + 4..],
    ))
}

fn field<'h>(head: &'h str, name: &str) -> Option<&'h str> {
    let mut fields = head
        .split("\r\n")
        .skip(1)
        .filter_map(|line| line.split_once(':'));
    let found = fields.find(|(found, _)| found.eq_ignore_ascii_case(name))?;
    Some(found.1.trim())
}

/// Whether nothing more has to come: a responder may leave its connection open.
fn is_whole(answer: &[u8]) -> bool {
    let told = split(answer).and_then(|(head, body)| {
        let length: usize = field(head, "content-length")?.parse().ok()?;
        Some(body.len() >= length)
    });
    told.unwrap_or(false)
}

/// The response in an answer.
fn body(answer: &[u8]) -> Result<Vec<u8>, UpdateStatus> {
    let (head, body) = split(answer).ok_or(UpdateStatus::Http)?;
    let status = head.strip_prefix("HTTP/1.").and_then(|rest| rest.get(1..5));
    if status != Some(" 200") || field(head, "transfer-encoding").is_some() {
        return Err(UpdateStatus::Http);
    }
    let content_type = field(head, "content-type").unwrap_or_default();
    let media_type = content_type.split(';').next().unwrap_or_default().trim();
    if !media_type.eq_ignore_ascii_case("application/ocsp-response") {
        return Err(UpdateStatus::ContentType);
    }
    match field(head, "content-length").map(str::parse) {
        None => Ok(body.to_vec()),
        Some(Ok(length)) => body
            .get(..length)
            .map(<[u8]>::to_vec)
            .ok_or(UpdateStatus::Http),
        Some(Err(_)) => Err(UpdateStatus::Http),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_a_successful_one_of_its_type() {
        let told = |head: &str, content: &str| {
            body(format!("{head}\r\n\r\n{content}").as_bytes())
                .map(|body| String::from_utf8(body).unwrap())
        };
        let typed = "HTTP/1.1 200 OK\r\nContent-Type: application/ocsp-response";
        assert_eq!(told(typed, "abc"), Ok("abc".to_owned()));
        let whole = format!("{typed}\r\nContent-Length: 2");
        assert_eq!(told(&whole, "abc"), Ok("ab".to_owned()));
        assert_eq!(told(&whole, "a"), Err(UpdateStatus::Http));
        assert!(is_whole(format!("{whole}\r\n\r\nab").as_bytes()));
        assert!(!is_whole(format!("{whole}\r\n\r\na").as_bytes()));
        let chunked = format!("{typed}\r\nTransfer-Encoding: chunked");
        assert_eq!(told(&chunked, "abc"), Err(UpdateStatus::Http));
        assert_eq!(
            told("HTTP/1.1 200 OK", "abc"),
            Err(UpdateStatus::ContentType)
        );
        let failed = typed.replace("200", "500");
        assert_eq!(told(&failed, "abc"), Err(UpdateStatus::Http));
        assert_eq!(told("HTTP/1.1", "abc"), Err(UpdateStatus::Http));
        assert_eq!(body(b"garbage"), Err(UpdateStatus::Http));
    }

    /// A request that got no answer, and what the log says of it, without its times.
    fn unanswered(port: u16) -> String {
        let request = OcspRequest {
            certificate_id: Vec::new(),
            der: vec![1],
            responder: format!("http://127.0.0.1:{port}/x"),
        };
        let error = fetch(&request, None).unwrap_err();
        assert_eq!(error.status, UpdateStatus::Http);
        let mut told = error.unanswered.unwrap();
        told.connect = told.connect.map(|_| Duration::from_millis(3));
        told.total = Duration::from_millis(7);
        told.to_string()
    }

    #[test]
    fn a_request_without_an_answer_is_told_as_requests_are() {
        let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let closing = std::thread::spawn(move || drop(listener.accept()));
        let head = "<OCSP-UPDATE> -/- 0/0";
        let tail = format!(
            "- - SH-- 0/0/0/0/0 0/0 {{}} \"GET http://127.0.0.1:{port}/x/AQ%3D%3D HTTP/1.0\""
        );
        assert_eq!(unanswered(port), format!("{head}/3/-1/7 502 0 {tail}"));
        closing.join().unwrap();
        let tail = tail.replace("SH--", "SC--");
        assert_eq!(unanswered(port), format!("{head}/-1/-1/7 503 0 {tail}"));
    }

    #[test]
    fn odd_addresses_are_refused() {
        for responder in [
            "https://a.test",
            "http://",
            "http://a b/",
            "http://u@h/",
            "x",
        ] {
            let request = OcspRequest {
                certificate_id: Vec::new(),
                der: vec![1],
                responder: responder.to_owned(),
            };
            assert_eq!(fetch(&request, None), Err(UpdateStatus::Http.into()));
        }
    }
}
