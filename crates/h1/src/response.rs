//! Parsing response heads.

use std::ops::Range;

use ballast_message::{
    BodyLength, ConnectionOptions, Method, Response, Version, is_persistent, response_body_length,
};

use crate::error::{H1Error, H1Fault};
use crate::head::{
    FieldFlags, HeadLine, HeadParse, HeadPolicy, HeadScan, check_text, fault, parse_version,
    text_len,
};
use crate::limits::H1Limits;
use crate::normalise;

/// What a complete response head says beyond the [`Response`] itself.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ResponseHead {
    /// Bytes of the buffer that the head took, including empty lines before it.
    pub head_bytes: usize,
    /// How the end of the body is found.
    pub body: BodyLength,
    /// The options of `Connection`.
    pub options: ConnectionOptions,
    /// Whether the server accepts another request on this connection.
    pub persistent: bool,
    /// An interim response (1xx but 101): the final one follows.
    pub interim: bool,
}

/// Parses a response head at the start of `buf`; `method` is that of the request it answers. To be
/// called as [`crate::parse_request`] is.
///
/// Servers are parsed more leniently than clients, as in HAProxy: LF alone ends a line, and folded
/// lines are unfolded, because nothing can be smuggled past the last reader. Lengths are checked
/// just as strictly. A `Content-Length` beside `Transfer-Encoding` is removed and the connection
/// not reused; 1xx and 204 lose both.
pub fn parse_response(
    buf: &[u8],
    scan: &mut HeadScan,
    limits: &H1Limits,
    method: Method,
    response: &mut Response,
) -> HeadParse<ResponseHead> {
    if scan.is_fresh() {
        response.clear();
    }
    let parsed = parse(buf, scan, limits, method, response);
    if parsed.is_err() {
        response.clear();
    }
    parsed.unwrap_or_else(HeadParse::Error)
}

fn parse(
    buf: &[u8],
    scan: &mut HeadScan,
    limits: &H1Limits,
    method: Method,
    response: &mut Response,
) -> Result<HeadParse<ResponseHead>, H1Fault> {
    let policy = HeadPolicy {
        bare_lf: true,
        fold: true,
        any_name: limits.lenient,
    };
    let head = &buf[..buf.len().min(limits.head_bytes_max)];
    let too_long = buf.len() >= limits.head_bytes_max;
    let incomplete = || {
        if too_long {
            Err(fault(H1Error::HeadTooLong, limits.head_bytes_max))
        } else {
            Ok(HeadParse::Incomplete)
        }
    };
    if scan.is_fresh()
        && let Some((status, reason)) = regular_status_line(head)
    {
        scan.status = status;
        scan.started(0..VERSION.len(), reason.clone(), reason.end + 2);
    }
    if !scan.start_line(head, policy, |scan, line| status_line(head, scan, line))? {
        check_beginning(head, scan.line_start())?;
        return incomplete();
    }
    let Some(head_bytes) = scan.field_lines(head, response.fields_mut(), policy)? else {
        return incomplete();
    };
    let reason = scan.second();
    response.finish_received(
        &head[..head_bytes],
        scan.status,
        reason,
        scan.version,
        scan.folded,
    );
    validate(response, scan, method, head_bytes)
        .map(HeadParse::Complete)
        .map_err(|error| fault(error, head_bytes))
}

const VERSION: &[u8] = b"HTTP/1.1";

/// The status and the range of the reason, if the line is complete, perfectly regular and of
/// HTTP/1.1; any other is left to [`status_line`], which gives the same result for regular ones.
#[inline]
fn regular_status_line(buf: &[u8]) -> Option<(u16, Range<usize>)> {
    const REASON_START: usize = VERSION.len() + 5;
    let rest = buf.strip_prefix(VERSION)?;
    let [
        b' ',
        a @ b'1'..=b'9',
        b @ b'0'..=b'9',
        c @ b'0'..=b'9',
        b' ',
        reason @ ..,
    ] = rest
    else {
        return None;
    };
    let status = [a, b, c]
        .into_iter()
        .fold(0, |status, digit| status * 10 + u16::from(digit - b'0'));
    let end = REASON_START + text_len(reason)?;
    (buf.get(end..end + 2)? == b"\r\n").then_some((status, REASON_START..end))
}

/// `version SP status [SP [reason]]`.
fn status_line(buf: &[u8], scan: &mut HeadScan, line: HeadLine) -> Result<(), H1Fault> {
    let bytes = &buf[line.start..line.end];
    let version_len = bytes.iter().position(|b| *b == b' ').unwrap_or(bytes.len());
    scan.version =
        parse_version(&bytes[..version_len]).map_err(|error| fault(error, line.start))?;
    let spaces = bytes[version_len..]
        .iter()
        .take_while(|byte| **byte == b' ')
        .count();
    let status_at = version_len + spaces;
    let invalid = || fault(H1Error::StatusInvalid, line.start + status_at);
    let digits: [u8; 3] = bytes
        .get(status_at..status_at + 3)
        .and_then(|d| d.try_into().ok())
        .ok_or_else(invalid)?;
    if !digits.iter().all(u8::is_ascii_digit) || digits[0] == b'0' {
        return Err(invalid());
    }
    scan.status = digits
        .iter()
        .fold(0, |status, digit| status * 10 + u16::from(digit - b'0'));
    let after = line.start + status_at + 3;
    let reason_start = match bytes.get(status_at + 3) {
        None => after,
        Some(b' ') => after + 1,
        Some(_) => return Err(invalid()),
    };
    check_text(buf, reason_start, line.end)?;
    scan.set_start(line.start..line.start + version_len, reason_start..line.end);
    Ok(())
}

/// A line that does not begin as a status line is refused before its end arrives.
fn check_beginning(buf: &[u8], start: usize) -> Result<(), H1Fault> {
    const BEGINNING: &[u8] = b"HTTP/";
    let line = &buf[start..];
    if line.iter().zip(BEGINNING).all(|(got, want)| got == want) || line == b"\r" {
        Ok(())
    } else {
        Err(fault(H1Error::VersionInvalid, start))
    }
}

fn validate(
    response: &mut Response,
    scan: &HeadScan,
    method: Method,
    head_bytes: usize,
) -> Result<ResponseHead, H1Error> {
    let seen = scan.seen;
    let body = response_body_length(response, method)?;
    let mut sure = true;
    if seen.has(FieldFlags::CONTENT_LENGTH | FieldFlags::TRANSFER_ENCODING) {
        let status = response.status();
        let fields = response.fields_mut();
        normalise::length_fields(fields, seen);
        if seen.has(FieldFlags::TRANSFER_ENCODING) {
            let both = fields.remove(b"content-length") > 0;
            sure = !both && scan.version >= Version::Http11;
        }
        if status == 204 || (100..200).contains(&status) || body == BodyLength::Tunnel {
            fields.remove(b"content-length");
            fields.remove(b"transfer-encoding");
        }
    }
    if seen.has(FieldFlags::UPGRADE) {
        ballast_message::remove_http2_upgrades(response.fields_mut());
    }
    let options = if seen.has(FieldFlags::CONNECTION) {
        ballast_message::connection_options(response.fields())
    } else {
        ConnectionOptions::default()
    };
    let ends = !matches!(body, BodyLength::UntilClose | BodyLength::Tunnel);
    Ok(ResponseHead {
        head_bytes,
        body,
        options,
        persistent: sure && ends && is_persistent(response.version(), options),
        interim: response.is_interim(),
    })
}
