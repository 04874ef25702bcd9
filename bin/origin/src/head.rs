//! Heads of requests.

use std::mem::MaybeUninit;

use httparse::Status;

use crate::answer::Request;

/// More fields are refused with 431.
const FIELD_COUNT_MAX: usize = 100;

/// How the fields of a head frame the body.
#[derive(Clone, Copy)]
pub(crate) enum Framing {
    Chunked,
    Length(u64),
}

/// A parsed head that owns nothing: its ranges are used before the buffer changes.
pub(crate) struct Head {
    pub(crate) length: usize,
    pub(crate) framing: Framing,
    pub(crate) asked: Request,
    pub(crate) expects_continue: bool,
    /// The key of a WebSocket handshake.
    pub(crate) key: Option<String>,
}

/// Parses a head, when it is complete.
///
/// # Errors
///
/// When it is none, or has too many fields.
pub(crate) fn parse(bytes: &[u8]) -> Result<Option<Head>, httparse::Error> {
    if bytes.is_empty() {
        return Ok(None);
    }
    let mut fields = [const { MaybeUninit::uninit() }; FIELD_COUNT_MAX];
    let mut request = httparse::Request::new(&mut []);
    let parsed = request.parse_with_uninit_headers(bytes, &mut fields)?;
    let Status::Complete(length) = parsed else {
        return Ok(None);
    };
    let mut framing = Framing::Length(0);
    let mut expects_continue = false;
    let mut is_closing = request.version == Some(0);
    let mut is_upgrade = false;
    let (mut is_websocket, mut key) = (false, None);
    for field in request.headers.iter() {
        let value = field.value;
        if field.name.eq_ignore_ascii_case("content-length") {
            let number = std::str::from_utf8(value)
                .ok()
                .and_then(|text| text.trim().parse().ok());
            framing = Framing::Length(number.ok_or(httparse::Error::HeaderValue)?);
        } else if field.name.eq_ignore_ascii_case("transfer-encoding") {
            framing = Framing::Chunked;
        } else if field.name.eq_ignore_ascii_case("expect") {
            expects_continue = value.eq_ignore_ascii_case(b"100-continue");
        } else if field.name.eq_ignore_ascii_case("connection") {
            if value.eq_ignore_ascii_case(b"close") {
                is_closing = true;
            } else if value.eq_ignore_ascii_case(b"keep-alive") {
                is_closing = false;
            }
        } else if field.name.eq_ignore_ascii_case("upgrade") {
            is_upgrade = true;
            is_websocket = value.eq_ignore_ascii_case(b"websocket");
        } else if field.name.eq_ignore_ascii_case("sec-websocket-key") {
            key = std::str::from_utf8(value).ok().map(str::to_owned);
        }
    }
    let asked = Request::read(
        request.method.unwrap_or("GET"),
        request.path.unwrap_or("/"),
        is_closing,
        is_upgrade,
    );
    Ok(Some(Head {
        length,
        framing,
        asked,
        expects_continue,
        key: key.filter(|_| is_websocket),
    }))
}
