//! The size of a message as HAProxy's logs count it.
//!
//! `%B` and `%U` count neither the bytes on the wire nor those of the body alone, but those of
//! HAProxy's own form of a message: a start line of 20 bytes and its words, names and values, one
//! byte for the head's end, and the body without its framing. A message counts as it was received,
//! before rules change it. Measured on HAProxy 3.2, so that tools that add up logs get the same
//! numbers.

use ballast_message::{BodyLength, Fields, Request, Response, Version};

/// What a start line counts besides method, target or status and reason.
const START_LINE_BYTES: usize = 20;
/// What the end of a head counts.
const HEAD_END_BYTES: usize = 1;
/// What the end of a body in chunks counts.
const BODY_END_BYTES: usize = 1;
/// `HTTP/1.1`.
const VERSION_BYTES: usize = 8;
/// Three digits.
const STATUS_BYTES: usize = 3;

/// The bytes that a request's head counts.
pub(crate) fn of_request(request: &Request) -> u64 {
    let words = request.method_token().len() + request.target().len();
    total(words, request.fields())
}

/// The bytes that a response's head counts.
pub(crate) fn of_response(response: &Response) -> u64 {
    let reason = match response.version() {
        // There it has none.
        Version::Http2 => 0,
        _ => response.reason().len(),
    };
    total(STATUS_BYTES + reason, response.fields())
}

/// The bytes that the end of a body counts: a body without a length has an end of its own, with the
/// trailers. That of a stream has none without trailers.
pub(crate) fn of_end(body: BodyLength, trailers: Option<&Fields>, is_stream: bool) -> u64 {
    match (body, trailers) {
        (BodyLength::Chunked, Some(trailers)) => (BODY_END_BYTES + trailers.pair_bytes()) as u64,
        (BodyLength::Chunked, None) if !is_stream => BODY_END_BYTES as u64,
        _ => 0,
    }
}

fn total(words: usize, fields: &Fields) -> u64 {
    (START_LINE_BYTES + VERSION_BYTES + words + fields.pair_bytes() + HEAD_END_BYTES) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use ballast_message::HeadLimits;

    #[test]
    fn a_page_of_our_own_counts_as_haproxys() {
        let mut response = Response::new(HeadLimits::default());
        response
            .set_status_and_reason(503, b"Service Unavailable")
            .unwrap();
        for (name, value) in [
            ("content-length", "107"),
            ("cache-control", "no-cache"),
            ("content-type", "text/html"),
        ] {
            response
                .fields_mut()
                .add(name.as_bytes(), value.as_bytes())
                .unwrap();
        }
        assert_eq!(of_response(&response) + 107, 217);
    }
}
