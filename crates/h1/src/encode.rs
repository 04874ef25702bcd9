//! Writing heads and chunks.

use std::ops::Deref;

use ballast_message::{Fields, Request, Response, Version};

/// The end of a chunk's data.
pub const CHUNK_END: &[u8; 2] = b"\r\n";

/// The few bytes between chunks, on the stack.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ChunkBytes {
    bytes: [u8; ChunkBytes::BYTES_MAX],
    len: u8,
}

impl ChunkBytes {
    /// 16 digits and a line end.
    const BYTES_MAX: usize = 18;

    pub(crate) const END: ChunkBytes = {
        let mut bytes = [0; ChunkBytes::BYTES_MAX];
        bytes[0] = b'\r';
        bytes[1] = b'\n';
        ChunkBytes { bytes, len: 2 }
    };
}

impl Deref for ChunkBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[..self.len as usize]
    }
}

/// The size line of a chunk of `size` bytes: upper-case digits, as HAProxy writes them.
/// A size of 0 would end the body: use [`write_last_chunk`] for that.
pub fn chunk_header(size: u64) -> ChunkBytes {
    debug_assert!(size > 0, "a chunk of 0 bytes ends the body");
    let digits = (64 - size.leading_zeros()).div_ceil(4).max(1) as usize;
    let mut bytes = [0; ChunkBytes::BYTES_MAX];
    for (at, byte) in bytes[..digits].iter_mut().enumerate() {
        let nibble = (size >> (4 * (digits - 1 - at))) & 0xf;
        *byte = b"0123456789ABCDEF"[nibble as usize];
    }
    bytes[digits..digits + 2].copy_from_slice(CHUNK_END);
    #[expect(clippy::cast_possible_truncation, reason = "18 at most")]
    let len = (digits + 2) as u8;
    ChunkBytes { bytes, len }
}

/// Writes the last chunk of a body, its trailers, and the empty line.
pub fn write_last_chunk(trailers: &Fields, out: &mut Vec<u8>) {
    write_last_chunk_with(trailers, out, |_| None);
}

/// As [`write_last_chunk`], with `name_case` as in [`write_request_head_with`].
pub fn write_last_chunk_with<'n>(
    trailers: &Fields,
    out: &mut Vec<u8>,
    name_case: impl Fn(&[u8]) -> Option<&'n [u8]>,
) {
    out.extend_from_slice(b"0\r\n");
    write_fields_with(trailers, out, name_case);
    out.extend_from_slice(CHUNK_END);
}

/// Writes a request head with its empty line. The version is 1.0 for a 1.0 request, else 1.1; the
/// target is [`Request::wire_target`].
pub fn write_request_head(request: &Request, out: &mut Vec<u8>) {
    write_request_line(request, out);
    write_fields(request.fields(), out);
    out.extend_from_slice(CHUNK_END);
}

/// As [`write_request_head`], with the case that `name_case` gives each field name
/// (`h1-case-adjust`); names for which it returns `None` are in lower case.
pub fn write_request_head_with<'n>(
    request: &Request,
    out: &mut Vec<u8>,
    name_case: impl Fn(&[u8]) -> Option<&'n [u8]>,
) {
    write_request_line(request, out);
    write_fields_with(request.fields(), out, name_case);
    out.extend_from_slice(CHUNK_END);
}

/// Writes the line, and reserves room for the fields.
fn write_request_line(request: &Request, out: &mut Vec<u8>) {
    out.reserve(request.fields().wire_bytes() + 16);
    out.extend_from_slice(request.method_token());
    out.push(b' ');
    out.extend_from_slice(request.wire_target());
    out.extend_from_slice(if request.version() < Version::Http11 {
        b" HTTP/1.0\r\n"
    } else {
        b" HTTP/1.1\r\n"
    });
}

/// Writes a response head with its empty line. The version is 1.0 for a 1.0 response, else 1.1;
/// with an empty reason the space before it is kept, as in HAProxy.
pub fn write_response_head(response: &Response, out: &mut Vec<u8>) {
    write_status_line(response, out);
    write_fields(response.fields(), out);
    out.extend_from_slice(CHUNK_END);
}

/// As [`write_response_head`], with `name_case` as in [`write_request_head_with`].
pub fn write_response_head_with<'n>(
    response: &Response,
    out: &mut Vec<u8>,
    name_case: impl Fn(&[u8]) -> Option<&'n [u8]>,
) {
    write_status_line(response, out);
    write_fields_with(response.fields(), out, name_case);
    out.extend_from_slice(CHUNK_END);
}

/// Writes the line, and reserves room for the fields.
fn write_status_line(response: &Response, out: &mut Vec<u8>) {
    out.reserve(response.fields().wire_bytes() + 20);
    out.extend_from_slice(if response.version() < Version::Http11 {
        b"HTTP/1.0 "
    } else {
        b"HTTP/1.1 "
    });
    // Three digits: the codec accepts nothing else, and rules set 100 to 999 only.
    let status = response.status() % 1000;
    let digit = |value: u16| b'0' + u8::try_from(value % 10).unwrap_or(0);
    out.extend_from_slice(&[digit(status / 100), digit(status / 10), digit(status), b' ']);
    out.extend_from_slice(response.reason());
    out.extend_from_slice(CHUNK_END);
}

/// Writes field lines without the empty line after them: fields that are unchanged since reception
/// are copied in one go.
pub fn write_fields(fields: &Fields, out: &mut Vec<u8>) {
    let mut at = 0;
    loop {
        while let Some((run, next)) = fields.wire_run(at) {
            out.extend_from_slice(run);
            at = next;
        }
        let Some(field) = fields.field(at) else {
            return;
        };
        write_field(field.name, field.value, out);
        at += 1;
    }
}

fn write_field(name: &[u8], value: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(name);
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.extend_from_slice(CHUNK_END);
}

/// As [`write_fields`], with `name_case` as in [`write_request_head_with`].
pub fn write_fields_with<'n>(
    fields: &Fields,
    out: &mut Vec<u8>,
    name_case: impl Fn(&[u8]) -> Option<&'n [u8]>,
) {
    for field in fields {
        let name = name_case(field.name).unwrap_or(field.name);
        write_field(name, field.value, out);
    }
}
