//! Parsing request heads.

use std::ops::Range;

use ballast_message::{
    BodyLength, ConnectionOptions, LengthError, Method, Request, TargetForm, Version, is_authority,
    is_persistent, is_preface_method, is_target, is_target_lenient, is_token_byte, parse_authority,
};

use crate::error::{H1Error, H1Fault};
use crate::head::{
    FieldFlags, HIGH_BIT_OF_EACH_BYTE, HeadLine, HeadParse, HeadPolicy, HeadScan,
    LOW_BIT_OF_EACH_BYTE, bytes_below, fault, find_byte, parse_version,
};
use crate::limits::H1Limits;
use crate::normalise;

/// What a complete request head says beyond the [`Request`] itself.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct RequestHead {
    /// Bytes of the buffer that the head took, including empty lines before it.
    pub head_bytes: usize,
    /// How the end of the body is found: `None`, `Known` or `Chunked`.
    pub body: BodyLength,
    /// The options of `Connection`.
    pub options: ConnectionOptions,
    /// Whether the client accepts another response on this connection.
    pub persistent: bool,
    /// Whether another protocol is requested (`Connection: upgrade` with `Upgrade`); a 101 accepts
    /// that. CONNECT is visible in the method.
    pub upgrade: bool,
    /// Whether the client waits for `100 Continue` before it sends the body.
    pub expect_continue: bool,
}

/// Parses a request head at the start of `buf`.
///
/// Call it with a new `scan` for each head, and again with the same one while it returns
/// [`HeadParse::Incomplete`]; the buffer may only grow at its end. `request` is cleared first, and
/// filled when the head is complete.
///
/// The head is normalised for the next hop, as HAProxy does: names are in lower case, equal `Host`
/// and `Content-Length` fields become one, an absolute target has a path and no default port, and
/// `Upgrade` is kept only together with the option of `Connection`.
pub fn parse_request(
    buf: &[u8],
    scan: &mut HeadScan,
    limits: &H1Limits,
    request: &mut Request,
) -> HeadParse<RequestHead> {
    if scan.is_fresh() {
        request.clear();
    }
    let parsed = parse(buf, scan, limits, request);
    if let Err(_) | Ok(HeadParse::Http2Preface) = parsed {
        request.clear();
    }
    parsed.unwrap_or_else(HeadParse::Error)
}

fn parse(
    buf: &[u8],
    scan: &mut HeadScan,
    limits: &H1Limits,
    request: &mut Request,
) -> Result<HeadParse<RequestHead>, H1Fault> {
    let lenient = limits.lenient;
    let policy = HeadPolicy {
        bare_lf: lenient,
        fold: lenient,
        any_name: lenient,
    };
    // Bytes beyond the limit cannot belong to an acceptable head.
    let head = &buf[..buf.len().min(limits.head_bytes_max)];
    let too_long = buf.len() >= limits.head_bytes_max;
    let incomplete = |error| {
        if too_long {
            Err(fault(error, limits.head_bytes_max))
        } else {
            Ok(HeadParse::Incomplete)
        }
    };
    if scan.is_fresh()
        && let Some((method, target, next)) = regular_start_line(head)
    {
        scan.started(method, target, next);
    }
    let mut preface = false;
    let started = scan.start_line(head, policy, |scan, line| {
        preface = may_be_preface(&head[line.start..], line.end - line.start);
        if preface {
            Ok(())
        } else {
            start_line(head, scan, line, lenient)
        }
    })?;
    if preface {
        return Ok(HeadParse::Http2Preface);
    }
    if !started {
        check_beginning(head, scan.line_start())?;
        // A line that ends beyond the limit is not itself too long.
        let whole = too_long && memchr::memchr(b'\n', &buf[scan.line_start()..]).is_some();
        return incomplete(if whole {
            H1Error::HeadTooLong
        } else {
            H1Error::TargetTooLong
        });
    }
    let Some(head_bytes) = scan.field_lines(head, request.fields_mut(), policy)? else {
        return incomplete(H1Error::HeadTooLong);
    };
    let (method, target) = (scan.first(), scan.second());
    request.finish_received(
        &head[..head_bytes],
        method,
        target,
        scan.version,
        scan.folded,
    );
    validate(request, scan, limits, head_bytes)
        .map(HeadParse::Complete)
        .map_err(|error| fault(error, head_bytes))
}

/// Whether a request line is the first of HTTP/2's preface, and what came behind it belongs to that, too
/// (RFC 9113 section 3.4).
fn may_be_preface(begun: &[u8], line_bytes: usize) -> bool {
    const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    const LINE_BYTES: usize = 14;
    line_bytes == LINE_BYTES && begun.iter().zip(PREFACE).all(|(got, want)| got == want)
}

/// `method SP target SP version`. HAProxy accepts several spaces or tabs in place of one, and so do
/// we (RFC 9112 section 3 allows it): the next hop gets one.
fn start_line(
    buf: &[u8],
    scan: &mut HeadScan,
    line: HeadLine,
    lenient: bool,
) -> Result<(), H1Fault> {
    let method = word(buf, line.start, line.end);
    let target = word(buf, skip_space(buf, method.end, line.end), line.end);
    let version = skip_space(buf, target.end, line.end)..line.end;
    if method.is_empty() {
        return Err(fault(H1Error::MethodInvalid, line.start));
    }
    if let Some(at) = buf[method.clone()]
        .iter()
        .position(|byte| !is_token_byte(*byte))
    {
        return Err(fault(H1Error::MethodInvalid, method.start + at));
    }
    if target.is_empty() || version.is_empty() {
        return Err(fault(H1Error::Http09, line.end));
    }
    let bytes = &buf[target.clone()];
    let valid = if lenient {
        is_target_lenient(bytes)
    } else {
        is_target(bytes)
    };
    if !valid {
        let bad = bytes
            .iter()
            .position(|byte| !is_target(&[*byte]))
            .unwrap_or(0);
        return Err(fault(H1Error::TargetInvalid, target.start + bad));
    }
    scan.version =
        parse_version(&buf[version.clone()]).map_err(|error| fault(error, version.start))?;
    scan.set_start(method, target);
    Ok(())
}

/// The request line, if it is complete, perfectly regular and of HTTP/1.1; any other is left to
/// [`start_line`], which gives the same result for regular ones.
#[inline]
fn regular_start_line(buf: &[u8]) -> Option<(Range<usize>, Range<usize>, usize)> {
    const VERSION: &[u8] = b" HTTP/1.1\r\n";
    let method = buf.iter().position(|byte| !is_token_byte(*byte))?;
    if method == 0 || buf[method] != b' ' {
        return None;
    }
    let start = method + 1;
    let target = find_byte(
        &buf[start..],
        |word| {
            // Bytes above 0x7e: the top bit is set, or becomes so by adding one. A `#` becomes 0.
            let high = (((word & !HIGH_BIT_OF_EACH_BYTE) + LOW_BIT_OF_EACH_BYTE) | word)
                & HIGH_BIT_OF_EACH_BYTE;
            let hash = bytes_below(word ^ (LOW_BIT_OF_EACH_BYTE * u64::from(b'#')), 1);
            bytes_below(word, 0x21) | high | hash
        },
        |byte| byte <= 0x20 || byte >= 0x7f || byte == b'#',
    )?;
    let end = start + target;
    (target > 0 && buf[end..].starts_with(VERSION)).then_some((
        0..method,
        start..end,
        end + VERSION.len(),
    ))
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

/// The bytes from `start` up to the next space.
fn word(buf: &[u8], start: usize, end: usize) -> Range<usize> {
    let len = memchr::memchr2(b' ', b'\t', &buf[start..end]);
    start..len.map_or(end, |len| start + len)
}

fn skip_space(buf: &[u8], start: usize, end: usize) -> usize {
    let len = buf[start..end].iter().position(|byte| !is_space(*byte));
    len.map_or(end, |len| start + len)
}

/// An incomplete line that cannot become a request line is refused at once: a TLS client on a clear
/// port gets its 400 without waiting for a timeout, as in HAProxy.
fn check_beginning(buf: &[u8], start: usize) -> Result<(), H1Fault> {
    const LOOK_BYTES: usize = 32;
    let line = &buf[start..buf.len().min(start + LOOK_BYTES)];
    for (at, byte) in line.iter().enumerate() {
        match byte {
            b' ' | b'\t' if at > 0 => return Ok(()),
            b'\r' => return Ok(()),
            byte if is_token_byte(*byte) => {}
            _ => return Err(fault(H1Error::MethodInvalid, start + at)),
        }
    }
    Ok(())
}

/// Checks the head as a whole and normalises it.
fn validate(
    request: &mut Request,
    scan: &HeadScan,
    limits: &H1Limits,
    head_bytes: usize,
) -> Result<RequestHead, H1Error> {
    let seen = scan.seen;
    if request.method() == Method::Other && is_preface_method(request.method_token()) {
        return Err(H1Error::MethodInvalid);
    }
    check_target_form(request, limits.lenient)?;
    if seen.has(FieldFlags::HOST) {
        normalise::host(request, seen.has(FieldFlags::HOST_AGAIN), limits.lenient)?;
    }
    if request.form() != TargetForm::Origin {
        normalise::authority(request);
    }
    let mut body = BodyLength::None;
    if seen.has(FieldFlags::CONTENT_LENGTH | FieldFlags::TRANSFER_ENCODING) {
        let length = ballast_message::request_body_length(request);
        body = check_body_allowed(request, length, limits)?;
        normalise::length_fields(request.fields_mut(), seen);
    }
    let has_body = !body.is_empty();
    let options = if seen.has(FieldFlags::CONNECTION) {
        ballast_message::connection_options(request.fields())
    } else {
        ConnectionOptions::default()
    };
    let upgrade = (options.upgrade || seen.has(FieldFlags::UPGRADE))
        && normalise::upgrade(request.fields_mut(), options.upgrade);
    if upgrade {
        check_websocket(request, has_body)?;
    }
    let expect_continue = seen.has(FieldFlags::EXPECT)
        && has_body
        && request.version() >= Version::Http11
        && request
            .fields()
            .values(b"expect")
            .any(|v| v.eq_ignore_ascii_case(b"100-continue"));
    Ok(RequestHead {
        head_bytes,
        body,
        options,
        persistent: is_persistent(request.version(), options),
        upgrade,
        expect_continue,
    })
}

/// RFC 9112 section 3.2: the form `host:port` is allowed for CONNECT only, and CONNECT allows no
/// other; `*` is for OPTIONS only. As in HAProxy, a method that it does not treat specially may have it.
fn check_target_form(request: &Request, lenient: bool) -> Result<(), H1Error> {
    let connect = request.method() == Method::Connect;
    let valid = match request.form() {
        TargetForm::Asterisk => matches!(
            request.method(),
            Method::Options | Method::Other | Method::Patch
        ),
        TargetForm::Origin => !connect,
        TargetForm::Absolute => {
            !connect && (lenient || request.target_authority().is_some_and(is_authority))
        }
        TargetForm::Authority if lenient => connect,
        TargetForm::Authority => {
            let authority = request.target_authority().and_then(parse_authority);
            let full = authority.is_some_and(|(host, port)| {
                let is_number =
                    |port: &[u8]| !port.is_empty() && port.iter().all(u8::is_ascii_digit);
                !host.is_empty() && port.is_some_and(is_number)
            });
            connect && full
        }
    };
    if valid {
        Ok(())
    } else {
        Err(H1Error::TargetInvalid)
    }
}

fn check_body_allowed(
    request: &mut Request,
    length: Result<BodyLength, LengthError>,
    limits: &H1Limits,
) -> Result<BodyLength, H1Error> {
    let bare = request.version() < Version::Http11
        && !limits.payload_with_any_method
        && matches!(
            request.method(),
            Method::Get | Method::Head | Method::Delete
        );
    let body = match length {
        // Whatever else is wrong with the chunks, the error is that there must be none.
        Err(
            LengthError::TransferEncodingBeforeHttp11
            | LengthError::CodingBeforeChunked
            | LengthError::ContentLengthAndTransferEncoding,
        ) if bare => return Err(H1Error::PayloadUnexpected),
        length => length?,
    };
    if request.method() == Method::Connect {
        if body != BodyLength::Known(0) {
            return Err(H1Error::ConnectWithBody);
        }
        request.fields_mut().remove(b"content-length");
        return Ok(BodyLength::None);
    }
    if bare && body != BodyLength::Known(0) {
        return Err(H1Error::PayloadUnexpected);
    }
    Ok(body)
}

/// The length of a `Sec-WebSocket-Key`.
const WEBSOCKET_KEY_BYTES: usize = 24;

fn check_websocket(request: &Request, has_body: bool) -> Result<(), H1Error> {
    let fields = request.fields();
    let websocket = fields
        .values(b"upgrade")
        .any(|p| p.eq_ignore_ascii_case(b"websocket"));
    if websocket && has_body {
        return Err(H1Error::WebSocketWithBody);
    }
    // 16 bytes in base 64 (RFC 6455, section 4.1).
    if websocket
        && fields
            .first(b"sec-websocket-key")
            .is_none_or(|key| key.len() != WEBSOCKET_KEY_BYTES)
    {
        return Err(H1Error::WebSocketKeyMissing);
    }
    Ok(())
}
