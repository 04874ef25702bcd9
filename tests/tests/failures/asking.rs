//! The client's side of an exchange, in both versions of HTTP.

use std::io::ErrorKind;

use ballast_tests::frame_client::{END_HEADERS, END_STREAM, kind};
use ballast_tests::{Client, FrameClient};

/// A client's connection.
pub(crate) enum Asking {
    /// One of HTTP/1.
    Http1(Client),
    /// One of HTTP/2, and the number of its next stream.
    Http2(FrameClient, u32),
}

impl Asking {
    /// Connects.
    pub(crate) fn connect(port: u16, is_h2: bool) -> Self {
        match is_h2 {
            false => Self::Http1(Client::connect(port)),
            true => Self::Http2(FrameClient::connect(port, &[]), 1),
        }
    }

    /// Sends a request, head and body together, and says how it ended: a status and what came of the
    /// body, `nothing`, `closed`, or a reset with its code.
    pub(crate) fn ask(&mut self, method: &str) -> String {
        let body = if method == "GET" { "" } else { "body" };
        match self {
            Self::Http1(client) => ask_http1(client, method, body),
            Self::Http2(client, stream) => {
                *stream += 2;
                ask_http2(client, *stream - 2, method, body)
            }
        }
    }
}

fn ask_http1(client: &mut Client, method: &str, body: &str) -> String {
    let length = body.len();
    client.send(format!(
        "{method} / HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n{body}"
    ));
    // Without its body: of a body that is cut off the head is wanted, too.
    match client.try_response(true) {
        Ok(response) => {
            let length = response.header("content-length");
            let body = match length.map(|length| length.parse().expect("a number")) {
                Some(length) => client.exactly(length),
                // Chunks that no last one follows.
                None => Ok(client.rest()),
            };
            match body {
                Ok(body) => format!("{} {} bytes", response.status, body.len()),
                Err(_) => format!("{} cut", response.status),
            }
        }
        Err(error) if error.kind() == ErrorKind::WouldBlock => "nothing".into(),
        Err(_) => "closed".into(),
    }
}

fn ask_http2(client: &mut FrameClient, stream: u32, method: &str, body: &str) -> String {
    /// The type of a frame that resets a stream (RFC 9113 section 6.4).
    const RST_STREAM: u8 = 3;
    let [length, body_length] = [method, body].map(|text| u8::try_from(text.len()).expect("short"));
    // :scheme, :path, :authority, and content-length, without which a server of HTTP/1 gets chunks.
    let fields = [b"\x86\x84\x01\x01a\x0f\x0d\x01", &[b'0' + body_length][..]].concat();
    let head = [&[0x02, length][..], method.as_bytes(), &fields].concat();
    match body.is_empty() {
        true => client.send(kind::HEADERS, END_STREAM | END_HEADERS, stream, &head),
        false => client.send_all(&[
            (kind::HEADERS, END_HEADERS, stream, &head),
            (kind::DATA, END_STREAM, stream, body.as_bytes()),
        ]),
    }
    let (mut status, mut bytes) = (None, 0);
    loop {
        let frame = client.receive();
        if frame.stream != stream {
            continue;
        }
        match (frame.kind, &status) {
            (RST_STREAM, None) => {
                return format!("reset {}", frame.payload.last().expect("a code"));
            }
            (RST_STREAM, Some(status)) => return format!("{status} {bytes} bytes, reset"),
            (kind::DATA, _) => bytes += frame.payload.len(),
            (kind::HEADERS, _) => status = Some(status_of(&frame.payload)),
            _ => {}
        }
        if frame.flags & END_STREAM != 0 {
            return format!("{} {bytes} bytes", status.expect("a head comes first"));
        }
    }
}

/// The status of a head, which is its first field.
fn status_of(block: &[u8]) -> String {
    match block {
        // The static table (RFC 7541 appendix A).
        [0x88, ..] => "200".into(),
        [0x8e, ..] => "500".into(),
        [_, 3, digits @ ..] => String::from_utf8_lossy(&digits[..3]).into_owned(),
        // Coded by Huffman: 502, 503 and 504 begin alike.
        block => format!("{:02x?}", &block[..block.len().min(4)]),
    }
}
