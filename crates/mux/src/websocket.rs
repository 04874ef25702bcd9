//! The handshake of WebSockets where the two sides speak different versions of HTTP.
//!
//! Over HTTP/1 a client sends a key, and the server answers with a digest of it (RFC 6455, section 4). HTTP/2
//! needs neither (RFC 8441, section 5): who stands between gives the HTTP/1 side what it expects. As in
//! HAProxy, a key and an answer that are there are passed on, whatever the version of the other side.

use std::hash::{BuildHasher, Hasher, RandomState};

use ballast_message::{Fields, NoRoom, Request, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha1::{Digest as _, Sha1};

const KEY: &[u8] = b"sec-websocket-key";
const ACCEPT: &[u8] = b"sec-websocket-accept";
/// What the digest is made of, beside the key (RFC 6455, section 1.3).
const GUID: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// A client asks for another protocol.
#[derive(Clone, Copy, Debug)]
pub struct AskedProtocol {
    /// Whether the key of a WebSocket was made here: only HTTP/1 needs one.
    pub has_made_key: bool,
}

/// Whether the fields ask for a WebSocket, or grant one.
fn is_websocket(fields: &Fields) -> bool {
    let mut protocols = fields.values(b"upgrade");
    protocols.any(|protocol| protocol.eq_ignore_ascii_case(b"websocket"))
}

/// Gives a request for a WebSocket a key, if it came without one. Returns whether it did.
///
/// # Errors
/// [`NoRoom`].
pub(crate) fn add_key(request: &mut Request) -> Result<bool, NoRoom> {
    if request.fields().contains(KEY) || !is_websocket(request.fields()) {
        return Ok(false);
    }
    let mut nonce = [0; 16];
    for half in nonce.chunks_mut(8) {
        // Seeded by the system: the key need not be secret, only new.
        half.copy_from_slice(&RandomState::new().build_hasher().finish().to_ne_bytes());
    }
    let key = STANDARD.encode(nonce);
    request.fields_mut().add(KEY, key.as_bytes())?;
    Ok(true)
}

/// Whether a response has the answer to the key of its request (RFC 6455, section 4.1). Who made the
/// key must ask: the client does not know it.
pub fn is_websocket_granted(request: &Request, response: &Response) -> bool {
    let expected = expected_accept(request);
    let said = response.fields().first(ACCEPT);
    expected.is_some_and(|expected| said == Some(expected.as_bytes()))
}

/// What a server answers to the key of this request; `None` if it has none.
pub(crate) fn expected_accept(request: &Request) -> Option<Box<str>> {
    let key = request.fields().first(KEY)?;
    let digest = Sha1::new_with_prefix(key).chain_update(GUID).finalize();
    Some(STANDARD.encode(digest).into_boxed_str())
}

/// Gives the response that grants a WebSocket the answer to the client's key, if the server gave none: it
/// was passed the key, and its own answer is the client's to check.
///
/// # Errors
/// [`NoRoom`].
pub(crate) fn add_accept(response: &mut Response, accept: &str) -> Result<(), NoRoom> {
    let grants = response.status() == 101 && is_websocket(response.fields());
    if grants && !response.fields().contains(ACCEPT) {
        response.fields_mut().add(ACCEPT, accept.as_bytes())?;
    }
    Ok(())
}

/// Gives the response that grants a WebSocket the answer to the key of its request, if the server gave none: one
/// that may leave it to us (`option accept-unsafe-violations-in-http-response`).
///
/// # Errors
/// [`NoRoom`].
pub fn grant_websocket(request: &Request, response: &mut Response) -> Result<(), NoRoom> {
    match expected_accept(request) {
        Some(accept) => add_accept(response, &accept),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use ballast_message::HeadLimits;

    use super::*;

    #[test]
    fn the_answer_is_that_of_the_rfc() {
        let mut request = Request::new(HeadLimits::default());
        assert_eq!(add_key(&mut request), Ok(false));
        assert_eq!(expected_accept(&request), None, "it asks for none");
        request.fields_mut().add(b"upgrade", b"WebSocket").unwrap();
        assert_eq!(add_key(&mut request), Ok(true));
        let made = request.fields().first(KEY).unwrap().to_vec();
        assert_eq!(made.len(), 24);
        assert_eq!(add_key(&mut request), Ok(false));
        assert_eq!(request.fields().count(KEY), 1);
        let sample = b"dGhlIHNhbXBsZSBub25jZQ==";
        request.fields_mut().set(KEY, sample).unwrap();
        let accept = expected_accept(&request);
        assert_eq!(accept.as_deref(), Some("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="));
        let mut response = Response::new(HeadLimits::default());
        assert!(!is_websocket_granted(&request, &response));
        for (accept, is_granted) in [("another", false), ("s3pPLMBiTxaQ9kYGzzhZRbK+xOo=", true)] {
            let fields = response.fields_mut();
            fields.set(ACCEPT, accept.as_bytes()).unwrap();
            assert_eq!(is_websocket_granted(&request, &response), is_granted);
        }
    }
}
