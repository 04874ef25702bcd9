//! Writes into heads how their bodies are framed, whatever rules changed in either.
//!
//! A rule may delete `content-length`, change a status or a method. A peer that is told another
//! length than it gets takes the rest of the body for the next message: that is how requests are
//! smuggled. So heads are made to agree with their bodies last, after all rules.

use ballast_message::{BodyLength, Fields, Method, NoRoom, Request, Response, TransferCoding};
use ballast_message::{Version, content_length, keep_only_trailers, transfer_coding};

use crate::hop::{self, ConnectionEnd};

const LENGTH: &[u8] = b"content-length";
const CODING: &[u8] = b"transfer-encoding";

/// What is known of a response that is about to be sent.
#[derive(Clone, Copy, Debug)]
pub struct Announcement {
    /// The method of its request.
    pub method: Method,
    /// The client's version of HTTP.
    pub version: Version,
    /// How the body to be sent ends.
    pub body: BodyLength,
    /// Whether all of that body is in memory: then it is sent with its length, never in chunks.
    pub is_in_memory: bool,
    /// Whether the client's connection is to be closed after it.
    pub closes: bool,
}

/// What the head of a response announces.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct AnnouncedBody {
    /// The framing of the body.
    pub body: BodyLength,
    /// Whether the connection closes after it: the caller asked for that, the body can end in no
    /// other way, or a rule or an error page of the configuration set `Connection: close`.
    pub closes: bool,
}

/// Writes into a response how its body is framed, whatever rules changed, and whether the
/// connection closes.
///
/// # Errors
/// [`NoRoom`].
pub(crate) fn announce_response(
    response: &mut Response,
    announcement: Announcement,
) -> Result<AnnouncedBody, NoRoom> {
    let Announcement {
        method,
        version,
        body,
        is_in_memory,
        closes,
    } = announcement;
    let chunks = !is_in_memory && version >= Version::Http11;
    if version < Version::Http2 {
        keep_only_trailers(response.fields_mut());
    }
    let body = match ends_with_head(response, body) {
        true if version >= Version::Http2 => body,
        true if chunks => of_response(response, method, chunks, BodyLength::Chunked)?,
        _ => of_response(response, method, chunks, body)?,
    };
    let said = hop::take_connection_end(response.fields_mut())?;
    let closes = said.close || closes || body == BodyLength::UntilClose;
    let end = ConnectionEnd {
        closes,
        version: response.version(),
        peer: version,
        asks_protocol: said.upgrade,
    };
    end.write(response.fields_mut())?;
    Ok(AnnouncedBody { body, closes })
}

/// Whether a response came on a stream that ended with its head, which announces no length: on a stream it is
/// sent so, and HTTP/1.1 gets chunks, of which there are none.
fn ends_with_head(response: &Response, body: BodyLength) -> bool {
    body == BodyLength::None
        && response.version() == Version::Http2
        && !response.fields().contains(LENGTH)
}

/// What the head of a request announces.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct AnnouncedRequest {
    /// The framing of the body.
    pub body: BodyLength,
    /// Whether the key of a WebSocket was made here, so that nobody else checks the answer to it.
    pub has_made_key: bool,
}

/// Writes into a request how its body is framed, whatever rules changed, and what it says of the hop to its
/// server ([`hop::announce_hop`]): `closes` says that the connection closes after the response.
///
/// # Errors
/// [`NoRoom`].
pub fn announce_request(
    request: &mut Request,
    body: BodyLength,
    closes: bool,
) -> Result<AnnouncedRequest, NoRoom> {
    let body = of_request(request, body)?;
    let has_made_key = hop::announce_hop(request, closes)?;
    Ok(AnnouncedRequest { body, has_made_key })
}

/// Writes into a request how its body is framed. Returns the framing to send it in.
///
/// # Errors
/// [`NoRoom`].
fn of_request(request: &mut Request, body: BodyLength) -> Result<BodyLength, NoRoom> {
    let chunks = request.version() >= Version::Http11;
    let fields = request.fields_mut();
    match body {
        BodyLength::Known(bytes) => known(fields, bytes, chunks),
        BodyLength::Chunked => chunked(fields),
        _ => {
            fields.remove(CODING);
            if fields.contains(LENGTH) && content_length(fields) != Ok(Some(0)) {
                fields.remove(LENGTH);
            }
            Ok(body)
        }
    }
}

/// Writes into a response how its body is framed, for a client that may not know `chunks`. Returns
/// the framing to send it in.
///
/// # Errors
/// [`NoRoom`].
fn of_response(
    response: &mut Response,
    method: Method,
    chunks: bool,
    body: BodyLength,
) -> Result<BodyLength, NoRoom> {
    let status = response.status();
    let chunks = chunks && response.version() >= Version::Http11;
    let fields = response.fields_mut();
    if status < 200 || status == 204 {
        fields.remove(LENGTH);
        fields.remove(CODING);
        return Ok(BodyLength::None);
    }
    if status == 304 || method == Method::Head {
        // The fields describe the body that is not sent (RFC 9110, section 8.6).
        return Ok(BodyLength::None);
    }
    match body {
        // A response of the original status or method has no body; a rule changed it to one that
        // has.
        BodyLength::None => {
            fields.remove(CODING);
            fields.set(LENGTH, b"0")?;
            Ok(BodyLength::Known(0))
        }
        BodyLength::Known(bytes) => known(fields, bytes, chunks),
        BodyLength::Chunked if chunks => chunked(fields),
        BodyLength::Chunked | BodyLength::UntilClose => {
            // No chunks follow: the client does not know them (RFC 9112, section 6.1), or a rule
            // announced chunks that there are not.
            if body == BodyLength::Chunked || ends_in_chunks(fields) {
                fields.remove(CODING);
            }
            fields.remove(LENGTH);
            Ok(BodyLength::UntilClose)
        }
        BodyLength::Tunnel => Ok(body),
    }
}

/// A body of `bytes` bytes. As in HAProxy, if a rule removed the length, the body is sent in
/// chunks where the peer knows them.
fn known(fields: &mut Fields, bytes: u64, chunks: bool) -> Result<BodyLength, NoRoom> {
    fields.remove(CODING);
    match content_length(fields) {
        Ok(Some(said)) if said == bytes => return Ok(BodyLength::Known(bytes)),
        Ok(None) if chunks && bytes > 0 => return chunked(fields),
        _ => {}
    }
    fields.set(LENGTH, itoa::Buffer::new().format(bytes).as_bytes())?;
    Ok(BodyLength::Known(bytes))
}

fn chunked(fields: &mut Fields) -> Result<BodyLength, NoRoom> {
    fields.remove(LENGTH);
    if !ends_in_chunks(fields) {
        fields.set(CODING, b"chunked")?;
    }
    Ok(BodyLength::Chunked)
}

fn ends_in_chunks(fields: &Fields) -> bool {
    matches!(
        transfer_coding(fields),
        Ok(TransferCoding::Chunked | TransferCoding::CodedThenChunked)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use ballast_message::HeadLimits;

    fn response(status: u16, fields: &[(&str, &str)]) -> Response {
        let mut response = Response::new(HeadLimits::default());
        response.set_version(Version::Http11);
        response.set_status(status).unwrap();
        for (name, value) in fields {
            let fields = response.fields_mut();
            fields.add(name.as_bytes(), value.as_bytes()).unwrap();
        }
        response
    }

    /// `content-length` and `transfer-encoding`.
    type FramingFields<'f> = (Option<&'f [u8]>, Option<&'f [u8]>);
    /// Status, fields, method, length of the body; expected framing and fields.
    type Row<'r> = (
        u16,
        &'r [(&'r str, &'r str)],
        Method,
        BodyLength,
        BodyLength,
        FramingFields<'r>,
    );

    fn said(fields: &Fields) -> FramingFields<'_> {
        (fields.first(LENGTH), fields.first(CODING))
    }

    #[test]
    fn a_response_says_what_follows() {
        let (get, head) = (Method::Get, Method::Head);
        let (zero, two, chunks) = (&b"0"[..], &b"2"[..], &b"chunked"[..]);
        let length = ("content-length", "2");
        let other = ("content-length", "9");
        let coding = ("transfer-encoding", "chunked");
        let known = BodyLength::Known(2);
        let rows: [Row<'_>; 10] = [
            (200, &[length], get, known, known, (Some(two), None)),
            (200, &[other], get, known, known, (Some(two), None)),
            (200, &[length, coding], get, known, known, (Some(two), None)),
            (
                200,
                &[],
                get,
                known,
                BodyLength::Chunked,
                (None, Some(chunks)),
            ),
            (204, &[length], get, known, BodyLength::None, (None, None)),
            (
                304,
                &[length],
                get,
                known,
                BodyLength::None,
                (Some(two), None),
            ),
            (
                200,
                &[length],
                head,
                known,
                BodyLength::None,
                (Some(two), None),
            ),
            (
                200,
                &[length],
                get,
                BodyLength::None,
                BodyLength::Known(0),
                (Some(zero), None),
            ),
            (
                200,
                &[length],
                get,
                BodyLength::Chunked,
                BodyLength::Chunked,
                (None, Some(chunks)),
            ),
            (
                200,
                &[length],
                get,
                BodyLength::UntilClose,
                BodyLength::UntilClose,
                (None, None),
            ),
        ];
        for (at, (status, fields, method, body, framing, want)) in rows.into_iter().enumerate() {
            let mut response = response(status, fields);
            let got = of_response(&mut response, method, true, body);
            assert_eq!(got, Ok(framing), "row {at}");
            assert_eq!(said(response.fields()), want, "row {at}");
        }
    }

    #[test]
    fn an_old_client_gets_no_chunks() {
        let mut chunks = response(200, &[("transfer-encoding", "chunked")]);
        let got = of_response(&mut chunks, Method::Get, false, BodyLength::Chunked);
        assert_eq!(got, Ok(BodyLength::UntilClose));
        assert_eq!(said(chunks.fields()), (None, None));
        let mut robbed = response(200, &[]);
        let got = of_response(&mut robbed, Method::Get, false, BodyLength::Known(2));
        assert_eq!(got, Ok(BodyLength::Known(2)));
        assert_eq!(said(robbed.fields()), (Some(&b"2"[..]), None));
    }

    #[test]
    fn a_request_without_a_body_announces_none() {
        let mut request = Request::new(HeadLimits::default());
        request.fields_mut().add(LENGTH, b"5").unwrap();
        request.fields_mut().add(CODING, b"chunked").unwrap();
        assert_eq!(
            of_request(&mut request, BodyLength::None),
            Ok(BodyLength::None)
        );
        assert_eq!(said(request.fields()), (None, None));
    }
}
