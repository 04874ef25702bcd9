//! What is received from a peer: bytes, and the body in them.

use std::cell::Cell;
use std::io;
use std::ops::Range;

use ballast_h1::{ChunkDecoder, ChunkEvent, H1Limits};
use ballast_message::{BodyLength, Fields};
use ballast_worker::{Buffer, WorkUnit, take_turns};

use crate::bulk::{Bulk, Spliced};
use crate::channel::Channel;
use crate::{ProtocolViolation, ReadError, WaitLimit};

/// The body that the next bytes belong to.
#[derive(Debug, Default)]
enum BodyState {
    /// None, or its end was reached.
    #[default]
    Done,
    /// This many bytes are still to come.
    Known(u64),
    /// Chunks.
    Chunked(ChunkDecoder),
    /// Everything until the peer closes.
    UntilClose,
}

/// The check of a chunked body that is not consumed yet.
#[derive(Debug)]
struct AheadCheck {
    decoder: ChunkDecoder,
    /// How many bytes it has checked, from the first that is not consumed.
    bytes: usize,
    /// How many of them are data.
    data_bytes: u64,
    is_whole: bool,
}

/// How far a body that is not consumed yet was copied for who looks at it.
#[derive(Debug)]
struct Copied {
    /// Of a chunked body.
    decoder: Option<ChunkDecoder>,
    /// How many bytes, from the first that is not consumed.
    bytes: usize,
    is_whole: bool,
}

/// The next part of a body.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum BodyPart {
    /// Data, at this range of [`Inbound::bytes`]. Call [`Inbound::consume`] with the second value
    /// afterwards.
    Data(Range<usize>, usize),
    /// The body is over.
    End,
    /// More has to be received first.
    More,
}

/// How many bytes may be read behind a body into a large buffer: every buffer has room for them.
const BEHIND_BYTES_MAX: usize = 1024;

/// The receiving half of a connection to a peer.
#[derive(Debug, Default)]
pub(crate) struct Inbound {
    buffer: Option<Buffer>,
    body: BodyState,
    /// How far the unconsumed part of a chunked body was checked.
    ahead: Option<AheadCheck>,
    copied: Option<Copied>,
    /// Whether the part of this message that was received has been acknowledged at once, so that
    /// its sender goes on.
    acknowledged: bool,
    trailers: Option<Box<Fields>>,
    peer_closed: bool,
    /// The error of a socket that broke. The kernel tells it once, and then that the peer has closed.
    socket_error: Option<i32>,
    total_bytes: u64,
    fault_at: Cell<usize>,
    /// The bytes that all checks ahead went through.
    #[cfg(test)]
    pub(crate) looked_at_bytes: usize,
}

impl Inbound {
    /// Bytes received so far.
    pub(crate) fn total_bytes(&self) -> u64 {
        self.total_bytes
    }

    /// What was received and not consumed.
    pub(crate) fn bytes(&self) -> &[u8] {
        match &self.buffer {
            Some(buffer) => buffer.filled(),
            None => &[],
        }
    }

    /// What was received and not consumed of a body without framing.
    pub(crate) fn plain_bytes(&self) -> &[u8] {
        let bytes = self.bytes();
        match &self.body {
            BodyState::UntilClose => bytes,
            BodyState::Known(left) => {
                let left = usize::try_from(*left).unwrap_or(usize::MAX);
                &bytes[..bytes.len().min(left)]
            }
            BodyState::Done | BodyState::Chunked(_) => &[],
        }
    }

    /// After [`ReadError::Malformed`]: the bytes that broke the protocol.
    pub(crate) fn violation(&self) -> ProtocolViolation<'_> {
        let bytes = self.bytes();
        ProtocolViolation {
            bytes,
            at_byte: self.fault_at.get().min(bytes.len()),
        }
    }

    /// Consumes the bytes up to `end`, and returns those of them at `range`: the data of a piece.
    pub(crate) fn take(&mut self, range: Range<usize>, end: usize) -> &[u8] {
        (self.ahead, self.copied) = (None, None);
        match &mut self.buffer {
            Some(buffer) => &buffer.take_front(end)[range],
            None => &[],
        }
    }

    pub(crate) fn note_fault(&self, at: usize) {
        self.fault_at.set(at);
    }

    /// Whether the buffer has no room for more.
    pub(crate) fn is_full(&self) -> bool {
        self.buffer
            .as_ref()
            .is_some_and(|buffer| buffer.len() == buffer.capacity())
    }

    /// Whether the peer has closed its side.
    pub(crate) fn peer_closed(&self) -> bool {
        self.peer_closed
    }

    /// Takes `count` bytes off the front. An empty buffer is kept, because more is likely to come
    /// at once; [`Self::release`] releases it.
    pub(crate) fn consume(&mut self, count: usize) {
        (self.ahead, self.copied) = (None, None);
        if let Some(buffer) = &mut self.buffer {
            buffer.consume(count);
        }
    }

    /// Releases the buffer if it is empty. A few bytes in a large one are moved to one of the usual
    /// size.
    pub(crate) fn release(&mut self) {
        let Some(buffer) = &self.buffer else { return };
        if buffer.is_empty() {
            self.buffer = None;
        } else if buffer.len() <= BEHIND_BYTES_MAX && buffer.is_large() {
            let mut smaller = Buffer::take();
            smaller.append(buffer.filled());
            self.buffer = Some(smaller);
        }
    }

    /// Puts bytes in front of everything: those that the handshakes read ahead. At most as many as
    /// a buffer holds are taken.
    pub(crate) fn prepend(&mut self, bytes: &[u8]) {
        debug_assert!(
            self.bytes().is_empty(),
            "only an empty buffer is given a beginning"
        );
        if bytes.is_empty() {
            return;
        }
        let mut buffer = Buffer::take();
        self.total_bytes += buffer.append(bytes) as u64;
        self.buffer = Some(buffer);
    }

    /// Waits for bytes and receives them; 0 when the peer has closed. The buffer must not be
    /// full.
    ///
    /// # Errors
    /// [`ReadError::TimedOut`] and [`ReadError::Broken`].
    pub(crate) async fn receive(
        &mut self,
        channel: Channel<'_>,
        wait: &WaitLimit<'_>,
    ) -> Result<usize, ReadError> {
        self.receive_or(channel, wait, (None, || {})).await
    }

    /// As [`Self::receive`], of a tunnel: where bytes come fast, into a large buffer or into the
    /// pipe of `bulk`.
    ///
    /// # Errors
    /// As [`Self::receive`].
    pub(crate) async fn receive_bulk(
        &mut self,
        channel: Channel<'_>,
        wait: &WaitLimit<'_>,
        bulk: &mut Bulk,
    ) -> Result<usize, ReadError> {
        self.receive_or(channel, wait, (Some(bulk), || {})).await
    }

    async fn receive_or(
        &mut self,
        channel: Channel<'_>,
        wait: &WaitLimit<'_>,
        (mut bulk, mut waits): (Option<&mut Bulk>, impl FnMut()),
    ) -> Result<usize, ReadError> {
        if self.peer_closed {
            return Ok(0);
        }
        if let Some(code) = self.socket_error {
            return Err(io::Error::from_raw_os_error(code).into());
        }
        loop {
            if channel.is_readable() {
                take_turns(
                    bulk.as_ref()
                        .map_or(WorkUnit::Receive, |bulk| bulk.work_unit()),
                )
                .await;
            } else {
                waits();
                wait.until_readable(channel).await?;
            }
            let received = match &mut bulk {
                Some(bulk) => self.try_receive_bulk(channel, bulk),
                None => self.try_receive(channel, usize::MAX),
            };
            match received {
                Ok(0) => {
                    self.note_end_of_stream(channel);
                    self.peer_closed = true;
                    self.release();
                    return Ok(0);
                }
                Ok(count) => {
                    self.total_bytes += count as u64;
                    self.note_end_of_stream(channel);
                    return Ok(count);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.release();
                    if let Some(bulk) = &mut bulk {
                        bulk.release();
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if has_no_buffer(&error) => {
                    self.buffer = Some(wait.until_buffer().await?);
                }
                Err(error)
                    if error.kind() == io::ErrorKind::UnexpectedEof
                        && matches!(channel, Channel::Stream(_)) =>
                {
                    return Err(ReadError::Closed);
                }
                Err(error) => {
                    self.socket_error = error.raw_os_error();
                    return Err(error.into());
                }
            }
        }
    }

    /// Receives what has come of a body, as far as there is room. Why the peer's connection or stream broke is left for
    /// the next call that waits.
    pub(crate) fn receive_delivered(&mut self, channel: Channel<'_>) {
        while !self.body_is_done() && !self.peer_closed && channel.is_readable() {
            let Ok(count) = self.try_receive(channel, usize::MAX) else {
                return;
            };
            self.total_bytes += count as u64;
            self.note_end_of_stream(channel);
            self.peer_closed |= count == 0;
        }
    }

    /// Receives what is there, as far as there is room, without a wait.
    pub(crate) fn take_arrived(&mut self, channel: Channel<'_>) {
        if !self.peer_closed && channel.is_readable() {
            let _ = self.try_receive(channel, usize::MAX);
        }
    }

    /// Receives up to `bytes_max` bytes into the buffer.
    fn try_receive(&mut self, channel: Channel<'_>, bytes_max: usize) -> io::Result<usize> {
        let buffer = match &mut self.buffer {
            Some(buffer) => buffer,
            None => match Buffer::try_take() {
                Some(buffer) => self.buffer.insert(buffer),
                None => return Err(io::ErrorKind::ResourceBusy.into()),
            },
        };
        if buffer.spare_len() == 0 {
            buffer.compact();
            if buffer.spare_len() == 0 {
                // A read into no room returns 0, which looks like the end.
                return Err(io::ErrorKind::StorageFull.into());
            }
        }
        channel.try_receive(buffer, bytes_max)
    }

    /// Receives in the way that is the cheapest for so many bytes as come.
    fn try_receive_bulk(&mut self, channel: Channel<'_>, bulk: &mut Bulk) -> io::Result<usize> {
        let (data_bytes, is_all) = match &self.body {
            BodyState::Done => (0, true),
            BodyState::Known(left) => (*left, true),
            BodyState::Chunked(decoder) => (decoder.data_left(), false),
            BodyState::UntilClose => (u64::MAX, false),
        };
        if self.bytes().is_empty() {
            match bulk.try_splice(channel, data_bytes, is_all)? {
                Spliced::Bytes(count) => {
                    self.buffer = None;
                    self.note_spliced(count as u64);
                    return Ok(count);
                }
                Spliced::NotPossible => {}
            }
            let wants_large = bulk.wants_large(channel, data_bytes);
            if self.buffer.as_ref().is_some_and(Buffer::is_large) != wants_large {
                self.buffer = None;
                if wants_large {
                    self.buffer = Buffer::try_take_large();
                }
            }
        }
        let is_large = self.buffer.as_ref().is_some_and(Buffer::is_large);
        let data_bytes = usize::try_from(data_bytes).unwrap_or(usize::MAX);
        // What is behind the body has to fit into a buffer of the usual size.
        let bytes_max = match is_large {
            true => data_bytes.saturating_add(BEHIND_BYTES_MAX),
            false => usize::MAX,
        };
        let count = self.try_receive(channel, bytes_max)?;
        bulk.note(count, self.is_full());
        Ok(count)
    }

    /// Bytes of the body went to a pipe.
    fn note_spliced(&mut self, count: u64) {
        (self.ahead, self.copied) = (None, None);
        match &mut self.body {
            BodyState::Known(left) => *left = left.saturating_sub(count),
            BodyState::Chunked(decoder) => decoder.skip_data(count),
            BodyState::Done | BodyState::UntilClose => {}
        }
    }

    /// As [`Self::receive`], for the rest of a message that has begun: its sender may wait for an
    /// acknowledgement of what it sent, so that is sent at once. `waits` is called before a wait.
    /// Where the bytes come fast, they come as in [`Self::receive_bulk`].
    ///
    /// # Errors
    /// As [`Self::receive`].
    pub(crate) async fn receive_rest(
        &mut self,
        channel: Channel<'_>,
        wait: &WaitLimit<'_>,
        (bulk, mut waits): (Option<&mut Bulk>, impl FnMut()),
    ) -> Result<usize, ReadError> {
        let mut acknowledged = self.acknowledged;
        let until_waiting = || {
            waits();
            if !std::mem::replace(&mut acknowledged, true) {
                channel.acknowledge();
            }
        };
        let received = self.receive_or(channel, wait, (bulk, until_waiting)).await;
        self.acknowledged = acknowledged;
        received
    }

    /// Sets which body follows.
    pub(crate) fn begin_body(&mut self, length: BodyLength, limits: &H1Limits, of_request: bool) {
        self.trailers = None;
        (self.ahead, self.copied) = (None, None);
        self.acknowledged = false;
        self.body = match length {
            BodyLength::None | BodyLength::Known(0) => BodyState::Done,
            BodyLength::Known(count) => BodyState::Known(count),
            BodyLength::Chunked if of_request => {
                BodyState::Chunked(ChunkDecoder::for_request(limits))
            }
            BodyLength::Chunked => BodyState::Chunked(ChunkDecoder::for_response(limits)),
            BodyLength::UntilClose | BodyLength::Tunnel => BodyState::UntilClose,
        };
    }

    /// A head came on a stream, which would have been so many bytes over HTTP/1.
    pub(crate) fn begin_stream_head(&mut self, bytes: usize) {
        self.total_bytes += bytes as u64;
    }

    /// A stream's body follows, up to the end of the stream, or none does.
    pub(crate) fn begin_stream_body(&mut self, follows: bool) {
        self.trailers = None;
        (self.ahead, self.copied) = (None, None);
        self.peer_closed = false;
        self.socket_error = None;
        self.body = match follows {
            true => BodyState::UntilClose,
            false => BodyState::Done,
        };
    }

    /// Notes that all of a stream was received, with the trailers behind it.
    fn note_end_of_stream(&mut self, channel: Channel<'_>) {
        if let Channel::Stream(stream) = channel
            && stream.is_at_end()
        {
            self.peer_closed = true;
            self.trailers = stream.take_trailers();
        }
    }

    /// Whether the body was read to its end.
    pub(crate) fn body_is_done(&self) -> bool {
        matches!(self.body, BodyState::Done)
    }

    /// Checks what was received of the body, without consuming it. Returns whether its end is
    /// there. Called again after more was received, it continues where it stopped.
    ///
    /// # Errors
    /// [`ReadError::Malformed`], which reading the body would meet too.
    pub(crate) fn check_ahead(&mut self) -> Result<bool, ReadError> {
        let decoder = match &self.body {
            BodyState::Chunked(decoder) => decoder,
            BodyState::Known(left) => return Ok(self.bytes().len() as u64 >= *left),
            BodyState::Done | BodyState::UntilClose => return Ok(self.body_is_done()),
        };
        let ahead = self.ahead.get_or_insert_with(|| AheadCheck {
            decoder: decoder.clone(),
            bytes: 0,
            data_bytes: 0,
            is_whole: false,
        });
        let received = self.buffer.as_ref().map_or(&[][..], Buffer::filled);
        let mut trailers = Fields::default();
        while !ahead.is_whole {
            #[cfg(test)]
            {
                self.looked_at_bytes += received.len() - ahead.bytes;
            }
            let step = ahead
                .decoder
                .decode(&received[ahead.bytes..], &mut trailers)
                .map_err(|error| {
                    self.fault_at.set(ahead.bytes);
                    ReadError::Malformed(error)
                })?;
            ahead.bytes += step.consumed;
            match step.event {
                ChunkEvent::Finished => ahead.is_whole = true,
                ChunkEvent::Incomplete => return Ok(false),
                ChunkEvent::Data(range) => ahead.data_bytes += range.len() as u64,
            }
        }
        Ok(true)
    }

    /// Receives the body, without consuming it, until it is whole, `bytes_min` bytes of it are there
    /// (all of it, if `bytes_min` is 0), or there is no room for more.
    ///
    /// # Errors
    /// [`ReadError`]; [`ReadError::Closed`] when its sender ended before it was whole.
    pub(crate) async fn receive_body(
        &mut self,
        channel: Channel<'_>,
        wait: &WaitLimit<'_>,
        bytes_min: u64,
    ) -> Result<(), ReadError> {
        loop {
            let is_enough = bytes_min > 0 && self.data_bytes_ahead() >= bytes_min;
            if self.check_ahead()? || is_enough || self.is_full() {
                return Ok(());
            }
            let is_ended_by_close = matches!(self.body, BodyState::UntilClose);
            if self.receive(channel, wait).await? == 0 {
                return match is_ended_by_close {
                    true => Ok(()),
                    false => Err(ReadError::Closed),
                };
            }
        }
    }

    /// How many bytes of the body's data are there and not consumed, as far as they were checked.
    pub(crate) fn data_bytes_ahead(&self) -> u64 {
        match (&self.body, &self.ahead) {
            (BodyState::Chunked(_), Some(ahead)) => ahead.data_bytes,
            (BodyState::Chunked(_), None) => 0,
            _ => self.plain_bytes().len() as u64,
        }
    }

    /// Appends to `body` what was received of the body's data since the last call, without consuming
    /// it; the first call clears `body`. Returns whether nothing more will be appended: the body is
    /// whole or malformed, or there is no room for more.
    pub(crate) fn copy_ahead(&mut self, body: &mut Vec<u8>) -> bool {
        if self.copied.is_none() {
            body.clear();
            let decoder = match &self.body {
                BodyState::Chunked(decoder) => Some(decoder.clone()),
                _ => None,
            };
            self.copied = Some(Copied {
                decoder,
                bytes: 0,
                is_whole: false,
            });
        }
        let received = self.buffer.as_ref().map_or(&[][..], Buffer::filled);
        let plain_bytes = self.plain_bytes().len();
        let Some(copied) = &mut self.copied else {
            return true;
        };
        let Some(decoder) = &mut copied.decoder else {
            body.extend_from_slice(&received[copied.bytes..plain_bytes]);
            copied.bytes = plain_bytes;
            let is_whole = match &self.body {
                BodyState::Known(left) => plain_bytes as u64 == *left,
                BodyState::UntilClose => self.peer_closed,
                BodyState::Done | BodyState::Chunked(_) => true,
            };
            return is_whole || self.is_full();
        };
        let mut trailers = Fields::default();
        while !copied.is_whole {
            // What is malformed is refused where it is forwarded.
            let Ok(step) = decoder.decode(&received[copied.bytes..], &mut trailers) else {
                copied.is_whole = true;
                break;
            };
            if let ChunkEvent::Data(range) = &step.event {
                let start = copied.bytes;
                body.extend_from_slice(&received[start + range.start..start + range.end]);
            }
            copied.bytes += step.consumed;
            match step.event {
                ChunkEvent::Finished => copied.is_whole = true,
                ChunkEvent::Incomplete => break,
                ChunkEvent::Data(_) => {}
            }
        }
        copied.is_whole || self.is_full()
    }

    /// Nothing more is received: what is there is all of the message, as if the peer had closed.
    pub(crate) fn end(&mut self) {
        self.peer_closed = true;
    }

    /// A copy of the body, if the rest of it was received already and is valid.
    pub(crate) fn whole_body(&self) -> Option<Vec<u8>> {
        match &self.body {
            BodyState::Done => Some(Vec::new()),
            BodyState::Known(left) => {
                let length = usize::try_from(*left).ok()?;
                self.bytes().get(..length).map(<[u8]>::to_vec)
            }
            BodyState::Chunked(decoder) => whole_chunks(decoder.clone(), self.bytes()),
            BodyState::UntilClose if self.peer_closed => Some(self.bytes().to_vec()),
            BodyState::UntilClose => None,
        }
    }

    /// Trailers that were received after the body.
    pub(crate) fn trailers(&self) -> Option<&Fields> {
        self.trailers.as_deref()
    }

    /// The next piece of the body in what was received.
    ///
    /// # Errors
    /// [`ReadError::Malformed`] and, when the peer closed too early, [`ReadError::Closed`].
    pub(crate) fn piece(&mut self) -> Result<BodyPart, ReadError> {
        let available = self.bytes().len();
        match &mut self.body {
            BodyState::Done => {
                self.acknowledged = false;
                Ok(BodyPart::End)
            }
            BodyState::Known(_) | BodyState::UntilClose if available == 0 && !self.peer_closed => {
                Ok(BodyPart::More)
            }
            BodyState::Known(_) if available == 0 => Err(ReadError::Closed),
            BodyState::UntilClose if available == 0 => {
                self.body = BodyState::Done;
                self.piece()
            }
            BodyState::Known(left) => {
                let count = usize::try_from(*left).unwrap_or(usize::MAX).min(available);
                *left -= count as u64;
                if *left == 0 {
                    self.body = BodyState::Done;
                }
                Ok(BodyPart::Data(0..count, count))
            }
            BodyState::UntilClose => Ok(BodyPart::Data(0..available, available)),
            BodyState::Chunked(_) => self.chunk(),
        }
    }

    fn chunk(&mut self) -> Result<BodyPart, ReadError> {
        let BodyState::Chunked(decoder) = &mut self.body else {
            return Ok(BodyPart::End);
        };
        let input = match &self.buffer {
            Some(buffer) => buffer.filled(),
            None => &[],
        };
        let trailers = self.trailers.get_or_insert_default();
        let step = decoder.decode(input, trailers).map_err(|error| {
            self.fault_at.set(0);
            ReadError::Malformed(error)
        })?;
        match step.event {
            ChunkEvent::Data(range) => Ok(BodyPart::Data(range, step.consumed)),
            ChunkEvent::Finished => {
                self.consume(step.consumed);
                self.body = BodyState::Done;
                self.piece()
            }
            ChunkEvent::Incomplete => {
                self.consume(step.consumed);
                if self.peer_closed {
                    return Err(ReadError::Closed);
                }
                Ok(BodyPart::More)
            }
        }
    }
}

/// The data of a chunked body that was received whole.
fn whole_chunks(mut decoder: ChunkDecoder, mut received: &[u8]) -> Option<Vec<u8>> {
    let (mut body, mut trailers) = (Vec::new(), Fields::default());
    loop {
        let step = decoder.decode(received, &mut trailers).ok()?;
        match step.event {
            ChunkEvent::Finished => return Some(body),
            ChunkEvent::Incomplete => return None,
            ChunkEvent::Data(range) => body.extend_from_slice(&received[range]),
        }
        received = &received[step.consumed..];
    }
}

/// Whether there was no buffer to receive into ([`Inbound::try_receive`]). No error of the system, which has a
/// number, and of no stream.
fn has_no_buffer(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::ResourceBusy && error.raw_os_error().is_none()
}
