//! The HTTP/1.x codec: bytes in, heads and body ranges out, no sockets.
//!
//! Request smuggling is prevented here, so every rule has a name. Heads are parsed line by line as
//! they arrive: an invalid line is refused as soon as it is complete, no byte is examined twice
//! however slowly it comes, and the head is copied once, when it is complete. `httparse` is used in
//! tests only: it parses a head as a whole, starts again when bytes are missing, and does not say
//! which rule was broken.
//!
//! What is accepted was compared with HAProxy 3.2; where we are stricter, the rule and the table of
//! the tests say so.

mod chunk;
mod encode;
mod error;
mod head;
mod limits;
mod normalise;
mod request;
mod response;
#[cfg(test)]
mod tests;

pub use chunk::{ChunkDecoder, ChunkEvent, ChunkStep, RelayEvent, RelayStep};
pub use encode::{
    CHUNK_END, ChunkBytes, chunk_header, write_fields, write_fields_with, write_last_chunk,
    write_last_chunk_with, write_request_head, write_request_head_with, write_response_head,
    write_response_head_with,
};
pub use error::{H1Error, H1Fault};
pub use head::{HeadParse, HeadScan, leading_line_ends};
pub use limits::H1Limits;
pub use request::{RequestHead, parse_request};
pub use response::{ResponseHead, parse_response};
