//! The HTTP/1.x codec: bytes in, heads and body ranges out, no socket anywhere.
//!
//! This is where request smuggling is stopped, so every rule stands here by name. Heads are
//! judged line by line as they arrive: what is wrong is refused as soon as its line is there,
//! nothing is looked at twice however slowly it comes, and the head is copied once, when it is
//! whole. `httparse` was weighed and is now the judge of our tests only: it takes a head whole,
//! starts over when bytes are missing, and does not say which rule was broken.
//!
//! What is accepted was measured against HAProxy 3.2; where we are stricter it is said beside
//! the rule and in the table of the tests.

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
pub use head::{HeadScan, Parse, leading_line_ends};
pub use limits::H1Limits;
pub use request::{RequestHead, parse_request};
pub use response::{ResponseHead, parse_response};
