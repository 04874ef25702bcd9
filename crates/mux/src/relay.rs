//! Forwards a body from one peer to the other.

use ballast_worker::{WorkUnit, take_turns};

use crate::bulk::{Bulk, SpliceMode};
use crate::inbound::BodyPart;
use crate::{ReadError, Sink, Source, WaitLimit, WriteError};

/// Which side ended a relay, and how.
#[derive(Debug)]
pub enum RelayError {
    /// The source failed.
    From(ReadError),
    /// The sink failed.
    To(WriteError),
}

/// What the caller of [`relay()`] does with the sink's connection after the body.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum AfterBody {
    /// It waits for the peer to send: the end of the body may be sent at the end of the worker's
    /// turn.
    AwaitsPeer,
    /// It closes the connection, or our side of it, at once: the end of the body is sent together
    /// with the close.
    Closes,
    /// Anything else: the end of the body is sent now.
    Other,
}

/// A piece of so many bytes is many segments: that its last one is short costs less than to have the
/// kernel hold it back.
const MANY_SEGMENTS_BYTES: usize = 32 * 1024;

/// A piece of a body that was received.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Piece {
    /// How many bytes.
    pub bytes: usize,
    /// Whether the kernel moves them: they were not copied.
    pub is_spliced: bool,
}

/// Forwards the body of `source` to `sink`, in the framing that the head announced, and as fast as
/// both sides allow, through the kernel where `splice` says so and it is possible. `then` decides when
/// its end is sent. `progress` is called with each piece.
///
/// # Errors
/// [`RelayError`] names the side that failed; neither side is of further use then.
pub async fn relay(
    (source, from_wait): (&mut Source<'_>, &WaitLimit<'_>),
    (sink, to_wait): (&mut Sink<'_>, &WaitLimit<'_>),
    (splice, then): (SpliceMode, AfterBody),
    mut progress: impl FnMut(Piece),
) -> Result<(), RelayError> {
    let (from, from_channel) = (&mut *source.inbound, source.channel);
    let (to, to_channel) = (&mut *sink.outbound, sink.channel);
    let mut bulk = match to.writes_body() {
        true => Bulk::towards(splice, to_channel),
        false => Bulk::default(),
    };
    let error = loop {
        // Not in the `match`, where the whole result would live across its waits.
        let next = match from.piece() {
            Ok(next) => next,
            Err(ReadError::Closed) => break ReadError::Closed,
            Err(error) => return Err(RelayError::From(error)),
        };
        match next {
            BodyPart::Data(range, consumed) => {
                progress(Piece {
                    bytes: range.len(),
                    is_spliced: false,
                });
                // More can be read at once: it may share the segments of this piece, where a short
                // one matters.
                let more = range.len() < MANY_SEGMENTS_BYTES
                    && !from.body_is_done()
                    && from_channel.is_readable();
                let piece = &from.bytes()[range];
                let sent = to.body_and_more(to_channel, to_wait, piece, more).await;
                from.consume(consumed);
                sent.map_err(RelayError::To)?;
                take_turns(WorkUnit::Piece).await;
            }
            BodyPart::End => {
                to.end_body(to_channel, from.trailers());
                let sent = match then {
                    AfterBody::AwaitsPeer => to.flush_at_turn_end(to_channel, to_wait).await,
                    AfterBody::Closes => to.flush_before_close(to_channel, to_wait).await,
                    AfterBody::Other => to.flush(to_channel, to_wait).await,
                };
                sent.map_err(RelayError::To)?;
                if then != AfterBody::Closes {
                    to.push(to_channel);
                }
                // While idle neither side holds a buffer.
                to.release();
                from.release();
                return Ok(());
            }
            BodyPart::More => {
                // What was received for a stream already shares a write with what was gathered.
                if !from_channel.has_received() {
                    to.flush(to_channel, to_wait)
                        .await
                        .map_err(RelayError::To)?;
                }
                let waits = || to.push(to_channel);
                let received = from.receive_rest(from_channel, from_wait, (Some(&mut bulk), waits));
                if let Err(error) = received.await {
                    break error;
                }
                let bytes = bulk.held_bytes();
                if bytes > 0 {
                    let is_spliced = true;
                    progress(Piece { bytes, is_spliced });
                    to.spliced(to_channel, to_wait, &mut bulk)
                        .await
                        .map_err(RelayError::To)?;
                }
            }
        }
    };
    // What came before the source ended too early is good. On a stream it may have come together with the
    // end.
    let sent = to.flush(to_channel, to_wait).await;
    sent.map_err(RelayError::To)?;
    Err(RelayError::From(error))
}
