//! Carrying a body from one peer to the other.

use ballast_worker::{Work, take_turns};

use crate::inbound::Piece;
use crate::{ReadError, Sink, Source, Wait, WriteError};

/// Which side ended a relay, and how.
#[derive(Debug)]
pub enum RelayError {
    /// The side that sends failed.
    From(ReadError),
    /// The side that receives failed.
    To(WriteError),
}

/// What the caller of [`relay()`] does next with the side that the body went to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Afterwards {
    /// Waits for its peer to speak: the end of the body may be sent at the end of the worker's turn.
    Listens,
    /// Closes it, or our half of it, without waiting for anything before: the end of the body is
    /// sent together with that.
    Closes,
    /// Something else: the body is sent now.
    Goes,
}

/// Forwards the body that `source` expects to `sink`, in the framing that its head announced, and as
/// fast as both sides are. `then` says when its end is sent. `progress` is called with the bytes of
/// each piece.
///
/// # Errors
/// [`RelayError`] names the side that failed; neither side is of further use then.
pub async fn relay(
    (source, from_wait): (&mut Source<'_>, &Wait<'_>),
    (sink, to_wait): (&mut Sink<'_>, &Wait<'_>),
    then: Afterwards,
    mut progress: impl FnMut(usize),
) -> Result<(), RelayError> {
    let (from, from_transport) = (&mut *source.inbound, source.transport);
    let (to, to_transport) = (&mut *sink.outbound, sink.transport);
    from.consume_given();
    loop {
        match from.piece().map_err(RelayError::From)? {
            Piece::Data(range, consumed) => {
                progress(range.len());
                // Read on at once: what follows may share its segments.
                let more = !from.body_is_done() && from_transport.is_readable();
                let piece = &from.bytes()[range];
                let sent = to.body_and_more(to_transport, to_wait, piece, more).await;
                from.consume(consumed);
                sent.map_err(RelayError::To)?;
                take_turns(Work::Piece).await;
            }
            Piece::End => {
                to.end_body(from.trailers());
                let sent = match then {
                    Afterwards::Listens => to.finish(to_transport, to_wait).await,
                    Afterwards::Closes => to.part(to_transport, to_wait).await,
                    Afterwards::Goes => to.flush(to_transport, to_wait).await,
                };
                sent.map_err(RelayError::To)?;
                if then != Afterwards::Closes {
                    to.push(to_transport);
                }
                // While idle neither side holds a buffer.
                to.rest();
                from.rest();
                return Ok(());
            }
            Piece::More => {
                to.flush(to_transport, to_wait)
                    .await
                    .map_err(RelayError::To)?;
                from.receive_rest(from_transport, from_wait, || to.push(to_transport))
                    .await
                    .map_err(RelayError::From)?;
            }
        }
    }
}
