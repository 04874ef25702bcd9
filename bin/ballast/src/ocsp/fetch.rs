//! One question to an OCSP responder over HTTP, in time and in size.

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

/// Asks a responder, through a proxy if there is one (`<address>[:port]`). The answer is not judged.
///
/// # Errors
/// [`UpdateStatus::Http`] or [`UpdateStatus::ContentType`].
pub(super) fn fetch(request: &OcspRequest, proxy: Option<&str>) -> Result<Vec<u8>, UpdateStatus> {
    let (uri, method) = match request.get_uri() {
        Some(uri) => (uri, "GET"),
        None => (request.responder.clone(), "POST"),
    };
    let rest = uri.strip_prefix("http://").ok_or(UpdateStatus::Http)?;
    let is_clean = rest.bytes().all(|byte| byte.is_ascii_graphic());
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    if !is_clean || authority.is_empty() || authority.contains('@') {
        return Err(UpdateStatus::Http);
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
    let end = Instant::now() + FETCH_WAIT_MAX;
    let answer = exchange(proxy.unwrap_or(authority), &message, end).ok_or(UpdateStatus::Http)?;
    body(&answer)
}

/// Sends a message and reads what comes until its end.
fn exchange(authority: &str, message: &[u8], end: Instant) -> Option<Vec<u8>> {
    let mut stream = connect(authority, end)?;
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
            assert_eq!(fetch(&request, None), Err(UpdateStatus::Http));
        }
    }
}
