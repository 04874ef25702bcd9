//! What is sent to a peer: heads, bodies in their framing, raw bytes.
//!
//! Small pieces are gathered and written together, so that a head and a short body are one system
//! call. A large piece is written without a copy, in one vectored write with what was gathered
//! before it.

use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::sync::Arc;
use std::task::Poll;

use ballast_h1 as h1;
use ballast_message::{BodyLength, Fields, NameCases, Request, Response};
use ballast_transport::Transport;
use ballast_worker::{Buffer, send_buffers};

use crate::bulk::{Bulk, is_refusal};
use crate::channel::Channel;
use crate::h2::StreamHandle;
use crate::{WaitLimit, WriteError};

/// How the peer finds the end of the body that is written.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) enum Framing {
    /// The bytes as they are: a known length, the connection's end, or no HTTP at all.
    #[default]
    Plain,
    /// Chunks.
    Chunked,
    /// No body may be written (HEAD, 204, 304): its pieces are dropped.
    Suppressed,
}

/// Pieces up to this many bytes are gathered: below it a copy costs less than another entry of a
/// vectored write.
const GATHERED_BYTES_MAX: usize = 4096;

/// Beyond this many gathered bytes a piece is written rather than gathered.
const PENDING_BYTES_MAX: usize = 16 * 1024;

/// The sending half of a connection to a peer.
#[derive(Debug, Default)]
pub(crate) struct Outbound {
    /// Gathered bytes; those before `sent` are written.
    pending: Vec<u8>,
    sent: usize,
    framing: Framing,
    total_bytes: u64,
    /// Whether the kernel was told that more follows, and may hold back the last segment for it.
    is_held: bool,
    /// On a stream: how many bytes of a body of known length are left. Its last piece ends the
    /// stream.
    left: Option<u64>,
    /// On a stream: whether interim heads were appended. There may be many: the next flush waits until
    /// they have room.
    has_interim: bool,
    /// The case of field names, if the configuration sets it.
    cases: Option<Arc<NameCases>>,
    drops_trailers: bool,
}

impl Outbound {
    /// Bytes written so far, heads included.
    pub(crate) fn total_bytes(&self) -> u64 {
        self.total_bytes
    }

    /// Whether gathered bytes are not written yet.
    pub(crate) fn has_pending(&self) -> bool {
        self.sent < self.pending.len()
    }

    /// Releases the memory if nothing is left to write.
    pub(crate) fn release(&mut self) {
        if !self.has_pending() {
            send_buffers::give_back(std::mem::take(&mut self.pending));
            self.sent = 0;
        }
    }

    /// From now on names of fields are written in these cases (`h1-case-adjust`), and bodies with or
    /// without their trailers (`option http-drop-request-trailers` and its like).
    pub(crate) fn set_format(&mut self, cases: Option<Arc<NameCases>>, drops_trailers: bool) {
        (self.cases, self.drops_trailers) = (cases, drops_trailers);
    }

    /// The gathered bytes, to append a head to.
    pub(crate) fn head(&mut self) -> &mut Vec<u8> {
        if self.pending.capacity() == 0 {
            self.pending = send_buffers::take();
        }
        &mut self.pending
    }

    /// Gathers a response's head; its body follows.
    pub(crate) fn begin_response(
        &mut self,
        channel: Channel<'_>,
        response: &Response,
        body: BodyLength,
    ) {
        match channel {
            Channel::Connection(_) => self.response_head(response),
            Channel::Stream(stream) => {
                let ends_stream = body.is_empty();
                self.total_bytes += stream.send_response(response, ends_stream);
                self.left = match body {
                    BodyLength::Known(bytes) => Some(bytes),
                    _ => None,
                };
            }
        }
        self.begin_body(body);
    }

    /// Gathers an interim response (1xx), or one that ends HTTP on the connection.
    pub(crate) fn bodiless_response(&mut self, channel: Channel<'_>, response: &Response) {
        match channel {
            Channel::Connection(_) => self.response_head(response),
            Channel::Stream(stream) => {
                self.total_bytes += stream.send_response(response, false);
                self.has_interim = true;
            }
        }
        self.framing = Framing::Plain;
    }

    fn response_head(&mut self, response: &Response) {
        match self.cases.clone() {
            None => h1::write_response_head(response, self.head()),
            Some(cases) => {
                h1::write_response_head_with(response, self.head(), |name| cases.of(name));
            }
        }
    }

    /// A request's head went to a stream; its body follows.
    pub(crate) fn begin_stream_request(&mut self, head_bytes: u64, body: BodyLength) {
        // Without a body the stream has ended, or a tunnel follows the head.
        let body = match body {
            BodyLength::Known(0) => BodyLength::None,
            body => body,
        };
        self.total_bytes += head_bytes;
        self.left = match body {
            BodyLength::Known(bytes) => Some(bytes),
            _ => None,
        };
        self.begin_body(body);
    }

    /// Gathers a request's head; its body follows.
    pub(crate) fn begin_request(&mut self, request: &Request, body: BodyLength) {
        match self.cases.clone() {
            None => h1::write_request_head(request, self.head()),
            Some(cases) => {
                h1::write_request_head_with(request, self.head(), |name| cases.of(name));
            }
        }
        self.begin_body(body);
    }

    /// Whether the body's pieces are written.
    pub(crate) fn writes_body(&self) -> bool {
        self.framing != Framing::Suppressed
    }

    /// Says how the body that follows is framed.
    pub(crate) fn begin_body(&mut self, length: BodyLength) {
        self.framing = match length {
            BodyLength::Chunked => Framing::Chunked,
            BodyLength::None => Framing::Suppressed,
            BodyLength::Known(_) | BodyLength::UntilClose | BodyLength::Tunnel => Framing::Plain,
        };
    }

    /// Takes a piece of the body. It is sent now or by a later [`Self::flush`].
    ///
    /// # Errors
    /// [`WriteError`]; the connection is of no further use.
    pub(crate) fn body(
        &mut self,
        channel: Channel<'_>,
        wait: &WaitLimit<'_>,
        piece: &[u8],
    ) -> impl Future<Output = Result<(), WriteError>> {
        self.body_and_more(channel, wait, piece, false)
    }

    /// As [`Self::body`]; `more` says that the next piece can be read at once, so that a segment
    /// may be held back until it is full. A caller that has to wait for that piece after all calls
    /// [`Self::push`].
    ///
    /// # Errors
    /// As [`Self::body`].
    pub(crate) async fn body_and_more(
        &mut self,
        channel: Channel<'_>,
        wait: &WaitLimit<'_>,
        piece: &[u8],
        more: bool,
    ) -> Result<(), WriteError> {
        if piece.is_empty() || self.framing == Framing::Suppressed {
            return Ok(());
        }
        let transport = match channel {
            Channel::Connection(transport) => transport,
            Channel::Stream(stream) => return self.stream_body(stream, wait, piece).await,
        };
        let chunked = self.framing == Framing::Chunked;
        if chunked {
            self.head()
                .extend_from_slice(&h1::chunk_header(piece.len() as u64));
        }
        let room = PENDING_BYTES_MAX.saturating_sub(self.pending.len());
        if piece.len() <= GATHERED_BYTES_MAX.min(room) {
            self.head().extend_from_slice(piece);
        } else {
            self.write_through(transport, wait, piece, more).await?;
        }
        if chunked {
            self.head().extend_from_slice(h1::CHUNK_END);
        }
        Ok(())
    }

    /// Writes bytes as they are and without a copy, after what was gathered before them.
    ///
    /// # Errors
    /// As [`Self::body`].
    pub(crate) async fn raw(
        &mut self,
        channel: Channel<'_>,
        wait: &WaitLimit<'_>,
        bytes: &[u8],
    ) -> Result<(), WriteError> {
        let transport = match channel {
            Channel::Connection(transport) => transport,
            Channel::Stream(stream) => return self.stream_body(stream, wait, bytes).await,
        };
        self.write_through(transport, wait, bytes, false).await?;
        send_unsent(transport, wait).await
    }

    /// Sends a piece of the body that is in the pipe of `bulk`, after what was gathered before it.
    ///
    /// # Errors
    /// As [`Self::body`].
    pub(crate) async fn spliced(
        &mut self,
        channel: Channel<'_>,
        wait: &WaitLimit<'_>,
        bulk: &mut Bulk,
    ) -> Result<(), WriteError> {
        let transport = channel.transport();
        let chunked = self.framing == Framing::Chunked;
        if chunked {
            let header = h1::chunk_header(bulk.held_bytes() as u64);
            self.head().extend_from_slice(&header);
        }
        if self.has_pending() {
            self.write_through(transport, wait, &[], true).await?;
        }
        while let Some(pipe) = bulk.pipe().filter(|pipe| pipe.held_bytes() > 0) {
            let result = match transport.as_clear() {
                // The end of a chunk follows at once.
                Some(stream) => stream.try_splice_from(pipe, chunked),
                None => Err(io::ErrorKind::Unsupported.into()),
            };
            match result {
                Ok(count) => self.total_bytes += count as u64,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    wait.writable(transport).await?;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if is_refusal(&error) => self.copied(transport, wait, bulk).await?,
                Err(error) => return Err(error.into()),
            }
        }
        self.is_held = chunked;
        if chunked {
            self.head().extend_from_slice(h1::CHUNK_END);
        }
        Ok(())
    }

    /// Copies what is in the pipe: the transport cannot take it from there.
    async fn copied(
        &mut self,
        transport: &Transport,
        wait: &WaitLimit<'_>,
        bulk: &mut Bulk,
    ) -> Result<(), WriteError> {
        bulk.refuse();
        let mut buffer = Buffer::take();
        while let Some(pipe) = bulk.pipe().filter(|pipe| pipe.held_bytes() > 0) {
            let count = match pipe.read(buffer.spare_mut()) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                read => read?,
            };
            let bytes = &buffer.spare_mut()[..count];
            self.write_through(transport, wait, bytes, false).await?;
        }
        Ok(())
    }

    /// Appends a piece of a body to a stream, as its windows and its connection have room.
    async fn stream_body(
        &mut self,
        stream: &StreamHandle,
        wait: &WaitLimit<'_>,
        mut piece: &[u8],
    ) -> Result<(), WriteError> {
        while !piece.is_empty() {
            let count = wait.capacity(stream, piece.len()).await?;
            let (part, rest) = piece.split_at(count.min(piece.len()));
            let left = self.left.map(|left| left.saturating_sub(part.len() as u64));
            self.total_bytes += stream.send_data(part, left == Some(0))?;
            (self.left, piece) = (left, rest);
        }
        Ok(())
    }

    /// Sends what the kernel holds back for a next piece, which has to be waited for after all.
    pub(crate) fn push(&mut self, channel: Channel<'_>) {
        if std::mem::take(&mut self.is_held) {
            channel.push();
        }
    }

    /// Ends the body: the last chunk and its trailers, where the framing has them.
    pub(crate) fn end_body(&mut self, channel: Channel<'_>, trailers: Option<&Fields>) {
        if let Channel::Stream(stream) = channel {
            // A head without a body has ended its stream, or a tunnel follows it.
            if self.framing != Framing::Suppressed {
                let trailers =
                    trailers.filter(|trailers| !self.drops_trailers && !trailers.is_empty());
                self.total_bytes += stream.end(trailers);
            }
        } else if self.framing == Framing::Chunked {
            let cases = self.cases.clone();
            match trailers.filter(|_| !self.drops_trailers) {
                Some(trailers) => h1::write_last_chunk_with(trailers, self.head(), |name| {
                    cases.as_ref().and_then(|cases| cases.of(name))
                }),
                None => self.head().extend_from_slice(b"0\r\n\r\n"),
            }
        }
        self.framing = Framing::Plain;
    }

    /// Writes everything gathered.
    ///
    /// # Errors
    /// [`WriteError`]; the connection is of no further use.
    pub(crate) fn flush(
        &mut self,
        channel: Channel<'_>,
        wait: &WaitLimit<'_>,
    ) -> impl Future<Output = Result<(), WriteError>> {
        self.write_gathered(channel, wait, Transport::try_write)
    }

    /// As [`Self::flush`], for a caller that closes the connection, or our side of it, right
    /// afterwards: the last segment carries the close. Without that close it is sent late.
    ///
    /// # Errors
    /// [`WriteError`]; the connection is of no further use.
    pub(crate) fn flush_before_close(
        &mut self,
        channel: Channel<'_>,
        wait: &WaitLimit<'_>,
    ) -> impl Future<Output = Result<(), WriteError>> {
        self.write_gathered(channel, wait, Transport::try_write_last)
    }

    async fn write_gathered(
        &mut self,
        channel: Channel<'_>,
        wait: &WaitLimit<'_>,
        write: impl Fn(&Transport, &[u8]) -> io::Result<usize>,
    ) -> Result<(), WriteError> {
        let transport = match channel {
            Channel::Connection(transport) => transport,
            // The connection's task writes what streams append.
            Channel::Stream(stream) => {
                stream.end_turn();
                if std::mem::take(&mut self.has_interim) {
                    return wait.room(stream).await;
                }
                return match stream.failure() {
                    Some(failure) => Err(WriteError::Broken(failure.into())),
                    None => Ok(()),
                };
            }
        };
        if self.sent < self.pending.len() {
            self.is_held = false;
        }
        while self.sent < self.pending.len() {
            match write(transport, &self.pending[self.sent..]) {
                Ok(count) => self.count_written(count),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    wait.writable(transport).await?;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        self.pending.clear();
        self.sent = 0;
        send_unsent(transport, wait).await
    }

    /// Writes everything gathered, at the end of the worker's turn if possible. This is for the
    /// last piece of a message, after which the peer is waited for.
    ///
    /// # Errors
    /// [`WriteError`]; the connection is of no further use. A failure at the end of the turn is
    /// reported by the next wait for the peer.
    pub(crate) async fn flush_at_turn_end(
        &mut self,
        channel: Channel<'_>,
        wait: &WaitLimit<'_>,
    ) -> Result<(), WriteError> {
        let Channel::Connection(transport) = channel else {
            return self.flush(channel, wait).await;
        };
        let (unsent, count) = (self.sent == 0, self.pending.len());
        let is_queued = unsent
            && (1..=PENDING_BYTES_MAX).contains(&count)
            && poll_fn(|cx| Poll::Ready(transport.queue_for_turn_end(&mut self.pending, cx))).await;
        if is_queued {
            self.total_bytes += count as u64;
            self.is_held = false;
            return Ok(());
        }
        self.flush(channel, wait).await
    }

    /// Writes what was gathered and then the piece, without a copy.
    async fn write_through(
        &mut self,
        transport: &Transport,
        wait: &WaitLimit<'_>,
        piece: &[u8],
        more: bool,
    ) -> Result<(), WriteError> {
        self.is_held = more;
        let mut written = 0;
        while written < piece.len() || self.has_pending() {
            let gathered = self.pending.len() - self.sent;
            let result = if gathered == 0 {
                match more {
                    true => transport.try_write_more(&piece[written..]),
                    false => transport.try_write(&piece[written..]),
                }
            } else {
                let slices = [
                    IoSlice::new(&self.pending[self.sent..]),
                    IoSlice::new(&piece[written..]),
                ];
                match more {
                    true => transport.try_write_vectored_more(&slices),
                    false => transport.try_write_vectored(&slices),
                }
            };
            match result {
                Ok(count) => {
                    self.count_written(count.min(gathered));
                    let direct = count.saturating_sub(gathered);
                    written += direct;
                    self.total_bytes += direct as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    wait.writable(transport).await?;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        self.pending.clear();
        self.sent = 0;
        Ok(())
    }

    fn count_written(&mut self, count: usize) {
        self.sent += count;
        self.total_bytes += count as u64;
    }
}

/// Sends what the transport took and did not send yet.
async fn send_unsent(transport: &Transport, wait: &WaitLimit<'_>) -> Result<(), WriteError> {
    while transport.has_unsent() {
        match transport.try_send_unsent() {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                wait.writable(transport).await?;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

impl Drop for Outbound {
    fn drop(&mut self) {
        send_buffers::give_back(std::mem::take(&mut self.pending));
    }
}
