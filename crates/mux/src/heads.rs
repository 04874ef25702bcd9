//! Heads of responses, as they are received.

use ballast_h1::{self as h1, H1Limits, HeadParse, HeadScan};
use ballast_message::{BodyLength, ConnectionOptions, Method, Response};

use crate::channel::Channel;
use crate::h2::{StreamFailure, StreamHandle};
use crate::inbound::Inbound;
use crate::{ReadError, WaitLimit, hop};

/// The limits of heads, and how far the parser got in the current one.
#[derive(Debug)]
pub(crate) struct HeadParser {
    pub(crate) limits: H1Limits,
    pub(crate) scan: HeadScan,
}

impl HeadParser {
    pub(crate) fn new(limits: H1Limits) -> Self {
        Self {
            limits,
            scan: HeadScan::default(),
        }
    }
}

/// What a response's head says beyond the response itself.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ResponseHead {
    /// How the end of the body is found.
    pub body: BodyLength,
    /// The options of `Connection`. Those about the connection's end are removed from the response, as
    /// from a request.
    pub options: ConnectionOptions,
    /// Whether the server takes another request on this connection.
    pub persistent: bool,
    /// Whether the final response is still to come.
    pub interim: bool,
}

/// See [`Source::response`](crate::Source::response).
pub(crate) async fn receive_response(
    channel: Channel<'_>,
    inbound: &mut Inbound,
    heads: &mut HeadParser,
    wait: &WaitLimit<'_>,
    method: Method,
    response: &mut Response,
) -> Result<ResponseHead, ReadError> {
    if let Channel::Stream(stream) = channel {
        return receive_from_stream(stream, inbound, wait, response).await;
    }
    let HeadParser { limits, scan } = heads;
    *scan = HeadScan::default();
    if inbound.bytes().is_empty() && inbound.receive(channel, wait).await? == 0 {
        return Err(ReadError::Closed);
    }
    loop {
        match h1::parse_response(inbound.bytes(), scan, limits, method, response) {
            HeadParse::Complete(head) => {
                inbound.consume(head.head_bytes);
                if hop::take_connection_end(response.fields_mut()).is_err() {
                    return Err(ReadError::Malformed(h1::H1Error::HeadTooLong));
                }
                if !head.interim {
                    inbound.begin_body(head.body, limits, false);
                }
                return Ok(ResponseHead {
                    body: head.body,
                    options: head.options,
                    persistent: head.persistent,
                    interim: head.interim,
                });
            }
            HeadParse::Incomplete => {
                if inbound.receive_rest(channel, wait, (None, || {})).await? == 0 {
                    return Err(ReadError::Closed);
                }
            }
            HeadParse::Http2Preface => {
                inbound.note_fault(0);
                return Err(ReadError::Malformed(h1::H1Error::VersionInvalid));
            }
            HeadParse::Error(fault) => {
                inbound.note_fault(fault.at_byte);
                return Err(ReadError::Malformed(fault.error));
            }
        }
    }
}

/// The next head of a response on a stream.
async fn receive_from_stream(
    stream: &StreamHandle,
    inbound: &mut Inbound,
    wait: &WaitLimit<'_>,
    response: &mut Response,
) -> Result<ResponseHead, ReadError> {
    loop {
        if let Some(head) = stream.take_response(response) {
            inbound.begin_stream_head(response.fields().wire_bytes());
            if !head.interim {
                inbound.begin_stream_body(head.body != BodyLength::None);
            }
            return Ok(ResponseHead {
                body: head.body,
                options: ConnectionOptions {
                    upgrade: response.status() == 101,
                    ..ConnectionOptions::default()
                },
                persistent: true,
                interim: head.interim,
            });
        }
        match stream.failure() {
            Some(StreamFailure::Closed | StreamFailure::Unprocessed) => {
                return Err(ReadError::Closed);
            }
            Some(StreamFailure::Violation) => {
                return Err(ReadError::Malformed(h1::H1Error::VersionInvalid));
            }
            Some(failure) => return Err(ReadError::Broken(failure.into())),
            // Its end has come, and no head before it.
            None if stream.is_readable() => return Err(ReadError::Closed),
            None => wait.until_readable(stream.into()).await?,
        }
    }
}
