//! Forwards a body from one peer to the other.

use ballast_worker::{WorkUnit, take_turns};

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

/// Forwards the body of `source` to `sink`, in the framing that the head announced, and as fast as
/// both sides allow. `then` decides when its end is sent. `progress` is called with the number of
/// bytes of each piece.
///
/// # Errors
/// [`RelayError`] names the side that failed; neither side is of further use then.
pub async fn relay(
    (source, from_wait): (&mut Source<'_>, &WaitLimit<'_>),
    (sink, to_wait): (&mut Sink<'_>, &WaitLimit<'_>),
    then: AfterBody,
    mut progress: impl FnMut(usize),
) -> Result<(), RelayError> {
    let (from, from_channel) = (&mut *source.inbound, source.channel);
    let (to, to_channel) = (&mut *sink.outbound, sink.channel);
    loop {
        // Not in the `match`, where the whole result would live across its waits.
        let next = match from.piece() {
            Ok(next) => next,
            Err(error) => {
                if matches!(error, ReadError::Closed) {
                    // What came before the source ended too early is good.
                    let sent = to.flush(to_channel, to_wait).await;
                    sent.map_err(RelayError::To)?;
                }
                return Err(RelayError::From(error));
            }
        };
        match next {
            BodyPart::Data(range, consumed) => {
                progress(range.len());
                // More can be read at once: it may share the segments of this piece.
                let more = !from.body_is_done() && from_channel.is_readable();
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
                from.receive_rest(from_channel, from_wait, || to.push(to_channel))
                    .await
                    .map_err(RelayError::From)?;
            }
        }
    }
}
