//! How the bytes of one direction are moved: a buffer at a time, and while they come fast in larger
//! buffers, or through a pipe in the kernel.

use std::io;

use ballast_worker::{PooledPipe, WorkUnit};

use crate::channel::Channel;

/// When bytes are moved through a pipe in the kernel (splicing).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum SpliceMode {
    /// They are always copied.
    #[default]
    Never,
    /// Where they come fast enough (`option splice-auto`).
    Auto,
    /// Wherever it is possible (`option splice-request` and `splice-response`).
    Always,
}

/// No fewer bytes are spliced: a copy of them costs less than a pipe.
const SPLICED_BYTES_MIN: u64 = 16 * 1024;

/// The end of a body of known length is not spliced, but read into a buffer that it does not fill:
/// that shows that nothing is behind it, so that the connection may be used again.
const LAST_BYTES: u64 = 4096;

/// No more is spliced at once, so that others have their turn.
const SPLICED_BYTES_MAX: u64 = 1 << 20;

/// How many of the latest receives brought much, at least and at most, for larger buffers and pipes.
const PACE_LARGE: u8 = 1;
const PACE_SPLICE: u8 = 2;
const PACE_MAX: u8 = 4;

/// A body that announces so many bytes is expected to come fast, until it does not.
const LONG_BODY_BYTES: u64 = 128 * 1024;

/// Fewer bytes at once are not much.
const SLOW_BYTES: usize = 8 * 1024;

/// How the bytes of one direction of an exchange are moved.
#[derive(Debug, Default)]
pub struct Bulk {
    mode: SpliceMode,
    /// One more for each receive that brought much, one less for each that brought little.
    pace: u8,
    /// The pipe, from a receive until the bytes are sent.
    pipe: Option<PooledPipe>,
    /// Whether something was received.
    has_begun: bool,
    /// Whether one of the two sockets is of a kind that cannot be spliced.
    is_refused: bool,
}

/// What a pipe took from a socket.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Spliced {
    /// So many bytes; 0 is the end.
    Bytes(usize),
    /// Nothing: they have to be received into a buffer.
    NotPossible,
}

impl Bulk {
    fn new(mode: SpliceMode) -> Self {
        Self {
            mode,
            ..Self::default()
        }
    }

    /// As `mode` says, but where the bytes cannot go from a pipe to this channel they are copied.
    #[must_use]
    pub(crate) fn towards(mode: SpliceMode, channel: Channel<'_>) -> Self {
        Self::new(match channel.as_clear() {
            Some(_) => mode,
            None => SpliceMode::Never,
        })
    }

    /// How many bytes were received into the pipe and are to be sent next.
    pub fn held_bytes(&self) -> usize {
        self.pipe.as_ref().map_or(0, |pipe| pipe.held_bytes())
    }

    /// The pipe that holds bytes.
    pub(crate) fn pipe(&mut self) -> Option<&mut PooledPipe> {
        self.pipe.as_mut()
    }

    /// Returns an empty pipe. One that holds bytes is closed.
    pub(crate) fn release(&mut self) {
        self.pipe = None;
    }

    /// From now on bytes are copied: a socket has refused to be spliced.
    pub(crate) fn refuse(&mut self) {
        self.is_refused = true;
    }

    /// Moves bytes from a socket into a pipe, if that pays. So many bytes of the socket are known to
    /// be those of a body; `is_all` if that is the rest of it.
    ///
    /// # Errors
    /// Those of a receive.
    pub(crate) fn try_splice(
        &mut self,
        channel: Channel<'_>,
        body_bytes: u64,
        is_all: bool,
    ) -> io::Result<Spliced> {
        if !std::mem::replace(&mut self.has_begun, true) && is_all && body_bytes >= LONG_BODY_BYTES
        {
            self.pace = PACE_SPLICE;
        }
        let wanted = match self.mode {
            SpliceMode::Never => false,
            SpliceMode::Auto => self.pace >= PACE_SPLICE,
            SpliceMode::Always => true,
        };
        let last_bytes = if is_all { LAST_BYTES } else { 0 };
        let Some(stream) = channel.as_clear() else {
            return Ok(Spliced::NotPossible);
        };
        if !wanted || self.is_refused || body_bytes < SPLICED_BYTES_MIN + last_bytes {
            self.release();
            return Ok(Spliced::NotPossible);
        }
        if self.pipe.is_none() {
            self.pipe = PooledPipe::take();
        }
        let Some(pipe) = &mut self.pipe else {
            return Ok(Spliced::NotPossible);
        };
        let bytes_max = (body_bytes - last_bytes).min(SPLICED_BYTES_MAX);
        match stream.try_splice_into(pipe, usize::try_from(bytes_max).unwrap_or(usize::MAX)) {
            Ok(count) => {
                self.note(count, count >= SLOW_BYTES);
                Ok(Spliced::Bytes(count))
            }
            Err(error) if is_refusal(&error) => {
                self.release();
                self.refuse();
                Ok(Spliced::NotPossible)
            }
            Err(error) => Err(error),
        }
    }

    /// Whether the next receive is likely to fill a large buffer.
    pub(crate) fn wants_large(&self, channel: Channel<'_>, body_bytes: u64) -> bool {
        channel.as_clear().is_some() && self.pace >= PACE_LARGE && body_bytes >= SPLICED_BYTES_MIN
    }

    /// Notes how many bytes a receive brought, and whether that was as much as there was room for.
    pub(crate) fn note(&mut self, count: usize, is_much: bool) {
        if is_much {
            self.pace = (self.pace + 1).min(PACE_MAX);
        } else if count < SLOW_BYTES {
            self.pace = self.pace.saturating_sub(1);
        }
    }

    /// What a next receive costs others.
    pub(crate) fn work_unit(&self) -> WorkUnit {
        if self.pace >= PACE_LARGE {
            WorkUnit::Bulk
        } else {
            WorkUnit::Receive
        }
    }
}

/// Whether the error says that the kernel cannot splice a socket of this kind, or not here.
pub(crate) fn is_refusal(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported
    )
}
