//! What a connection reports.

use std::ops::Range;

use ballast_message::{Fields, HeadLimits, Request, Response};

use crate::error::{ErrorCode, H2Error};
use crate::head::{RequestHead, ResponseHead};
use crate::stream::StreamId;

/// Where heads are put when they arrive. Take what an event names before the next call; what is left
/// in its place keeps its memory.
#[derive(Debug, Default)]
pub struct IncomingHeads {
    /// For [`Event::Request`].
    pub request: Request,
    /// For [`Event::Response`].
    pub response: Response,
    /// For [`Event::Trailers`].
    pub trailers: Fields,
}

impl IncomingHeads {
    /// Empty heads with these limits.
    pub fn new(limits: HeadLimits) -> IncomingHeads {
        IncomingHeads {
            request: Request::new(limits),
            response: Response::new(limits),
            trailers: Fields::new(limits),
        }
    }
}

/// Result of one step of [`H2Connection::receive`](crate::H2Connection::receive).
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Step {
    /// Bytes of the input that were consumed; the next input starts after them.
    pub consumed: usize,
    /// What they contained.
    pub event: Event,
}

/// What a peer sent.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Event {
    /// More bytes are needed after those that were not consumed, 8 at most.
    Incomplete,
    /// The peer makes us answer and does not read: write what is owed before any more is received.
    OutputFull,
    /// As many frames came as are received in one turn: let other connections have theirs, then go on
    /// after [`H2Connection::begin_turn`](crate::H2Connection::begin_turn).
    TurnOver,
    /// A client opened a stream; its head is [`IncomingHeads::request`].
    Request {
        /// The new stream.
        stream: StreamId,
        /// What the head says.
        head: RequestHead,
        /// Whether nothing follows it.
        ends_stream: bool,
    },
    /// The head of a response, interim or final, is [`IncomingHeads::response`].
    Response {
        /// Its stream.
        stream: StreamId,
        /// What the head says.
        head: ResponseHead,
        /// Whether nothing follows it.
        ends_stream: bool,
    },
    /// A part of a body. Its bytes count against the windows until they are given back with
    /// [`H2Connection::give_back`](crate::H2Connection::give_back).
    Data {
        /// Its stream.
        stream: StreamId,
        /// Where it is in the input. It may be empty at the end of a stream.
        range: Range<usize>,
        /// Whether nothing follows it.
        ends_stream: bool,
    },
    /// [`IncomingHeads::trailers`] end a stream.
    Trailers {
        /// Its stream.
        stream: StreamId,
    },
    /// The peer reset a stream.
    Reset {
        /// The stream.
        stream: StreamId,
        /// Why.
        code: ErrorCode,
    },
    /// The peer broke a rule on a stream: it is reset, with what is owed. A stream that was refused at
    /// its head was never reported before.
    StreamError {
        /// The stream.
        stream: StreamId,
        /// The rule.
        error: H2Error,
    },
    /// Streams that waited may send: ask [`H2Connection::next_turn`](crate::H2Connection::next_turn).
    WindowOpened,
    /// The peer's settings are in force: it may allow more streams, or other protocols.
    Settings,
    /// The peer will take no new streams, and has not processed ours above `last_stream`: these are
    /// closed, and their requests may be repeated elsewhere (RFC 9113 section 6.8).
    GoAway {
        /// The last stream that the peer has or might have processed.
        last_stream: u32,
        /// Why.
        code: ErrorCode,
    },
    /// The answer to our PING.
    PingReply {
        /// As it was sent.
        payload: [u8; 8],
    },
    /// The peer broke a rule that ends the connection. GOAWAY is owed: write it, then close.
    Error(H2Error),
}
