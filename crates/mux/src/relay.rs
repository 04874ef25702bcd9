//! Carrying a body from one peer to the other.

use ballast_worker::Stream;

use crate::{Inbound, Outbound, Piece, ReadError, Wait, WriteError};

/// Which side ended a relay, and how.
#[derive(Debug)]
pub enum RelayError {
    /// The side that sends failed.
    From(ReadError),
    /// The side that receives failed.
    To(WriteError),
}

/// Carries the body that `from` was told of to `to`, in the framing `to` was told of, and
/// flushes; the end of it at the end of the worker's turn ([`Outbound::finish`]) where `awaits`
/// says that whoever calls waits for `to` to speak next. `progress` is told of the bytes of each
/// piece.
///
/// # Errors
/// [`RelayError`] names the side that failed; neither side is of further use then.
pub async fn relay(
    (from, from_stream, from_wait): (&mut Inbound, &Stream, &Wait<'_>),
    (to, to_stream, to_wait): (&mut Outbound, &Stream, &Wait<'_>),
    awaits: bool,
    mut progress: impl FnMut(usize),
) -> Result<(), RelayError> {
    loop {
        match from.piece().map_err(RelayError::From)? {
            Piece::Data(range, consumed) => {
                progress(range.len());
                let sent = to.body(to_stream, to_wait, &from.bytes()[range]).await;
                from.consume(consumed);
                sent.map_err(RelayError::To)?;
            }
            Piece::End => {
                to.end_body(from.trailers());
                let sent = if awaits {
                    to.finish(to_stream, to_wait).await
                } else {
                    to.flush(to_stream, to_wait).await
                };
                sent.map_err(RelayError::To)?;
                // What waits now waits without memory; the next to move takes what is warm.
                to.rest();
                from.rest();
                return Ok(());
            }
            Piece::More => {
                to.flush(to_stream, to_wait).await.map_err(RelayError::To)?;
                from.receive(from_stream, from_wait)
                    .await
                    .map_err(RelayError::From)?;
            }
        }
    }
}
