//! From lists of fields to the heads of messages, and back (RFC 9113 section 8).
//!
//! What is judged here is judged for HTTP/2 only; a head that passes is one that HTTP/1 can carry.
//! Where the RFC leaves a choice we do what HAProxy 3.2 does.

mod cookie;
mod request;
mod response;
mod rules;
mod trailers;
mod write;

use ballast_message::BodyLength;

pub(crate) use request::RequestBuilder;
pub(crate) use response::{ResponseBuilder, ResponseContext};
pub(crate) use trailers::TrailerBuilder;
pub use write::ExtendedConnect;
pub(crate) use write::{write_request, write_response, write_trailers};

/// What a request's head says beyond the request itself.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct RequestHead {
    /// How the end of the body is found: `None`, `Known`, `Chunked` (its length is not known), or
    /// `Tunnel` for CONNECT, plain or extended.
    pub body: BodyLength,
    /// Whether another protocol is requested by extended CONNECT (RFC 8441): the request is a GET
    /// with `Upgrade` and `Connection`, as over HTTP/1.
    pub upgrade: bool,
    /// Whether the client waits for `100 Continue` before it sends the body.
    pub expect_continue: bool,
    /// Whether the request must be answered with 400: its method or target has a byte that neither
    /// may have. HAProxy answers these; other faults reset the stream.
    pub is_bad: bool,
}

/// What a response's head says beyond the response itself.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ResponseHead {
    /// How the end of the body is found: `None`, `Known`, `Chunked` (its length is not known), or
    /// `Tunnel`.
    pub body: BodyLength,
    /// Whether the final response is still to come.
    pub interim: bool,
}

/// Memory for what is gathered while a head is decoded.
#[derive(Debug, Default)]
pub(crate) struct HeadScratch {
    /// The values of pseudo-fields, one after the other.
    pub(crate) pseudo: Vec<u8>,
    /// The cookies, joined (RFC 9113 section 8.2.3).
    pub(crate) cookies: Vec<u8>,
}
