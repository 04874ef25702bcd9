//! TLS as a carrier, through rustls.
//!
//! rustls's unbuffered interface owns no buffers: what is received is decrypted where it lies, in
//! memory that the connections of a thread share, and what is sent is encrypted there. A
//! connection at rest holds its keys, and bytes only while a record is cut or the socket is full.

mod early;
#[cfg(test)]
mod early_tests;
mod handshake;
mod hellos;
#[cfg(test)]
mod hostile_tests;
#[cfg(test)]
mod key_tests;
mod role;
mod scratch;
mod secrets;
#[cfg(test)]
mod tests;

use std::cell::RefCell;
use std::fmt;
use std::io::{self, ErrorKind, IoSlice};
use std::task::{Context, Poll, ready};

use ballast_worker::Stream;

use crate::Carrier;
use role::{Role, Step};
use scratch::{KEPT_BYTES_MAX, PLAINTEXT_BYTES_MAX, Scratch};

pub use handshake::{Handshake, HandshakeFailure, HelloFilter, TlsFacts};
pub use hellos::HelloRandoms;
pub use secrets::{SecretKeeper, SessionSecrets};

/// The most ciphertext that may wait for the socket before plaintext is refused, bytes. A call
/// may add one batch of records to it.
const UNSENT_BYTES_MAX: usize = 16 * 1024;

/// How many reads may bring nothing but tickets before an idle connection counts as busy: a peer
/// that never stops sending them must not hold the worker.
const QUIET_READS_MAX: u32 = 16;

/// What comes behind the bytes of a write.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Follows {
    /// Nothing that is known of.
    Nothing,
    /// More plaintext, at once.
    More,
    /// The end of our side.
    Close,
}

/// A connection after its handshake.
struct TlsCarrier<R: Role> {
    socket: Stream,
    state: RefCell<State<R>>,
}

/// What a connection holds.
struct State<R> {
    role: R,
    /// Received and not decrypted: the beginning of a record. Behind a handshake it may be whole.
    ciphertext: Vec<u8>,
    /// `ciphertext` may hold whole records.
    has_records: bool,
    /// Decrypted and not read, from `plaintext_begin`.
    plaintext: Vec<u8>,
    plaintext_begin: usize,
    /// Encrypted and not sent.
    unsent: Vec<u8>,
    /// The peer sends nothing more.
    has_ended: bool,
    /// We send nothing more.
    is_closed: bool,
    /// The close will be a reset: nothing is said before it.
    resets: bool,
    /// The connection cannot go on. Its text is HAProxy's log's.
    failure: Option<rustls::Error>,
}

impl<R: Role> TlsCarrier<R> {
    /// After a handshake: `ciphertext` was received behind it, `plaintext` with it (early data), and
    /// `unsent` is its last flight, which goes with the first bytes that are sent, or once the other
    /// side is waited for.
    fn new(
        socket: Stream,
        role: R,
        ciphertext: Vec<u8>,
        plaintext: Vec<u8>,
        unsent: Vec<u8>,
    ) -> Self {
        let has_records = !ciphertext.is_empty();
        Self {
            socket,
            state: RefCell::new(State {
                role,
                ciphertext,
                has_records,
                plaintext,
                plaintext_begin: 0,
                unsent,
                has_ended: false,
                is_closed: false,
                resets: false,
                failure: None,
            }),
        }
    }

    /// Decrypts what was received, and reads from the socket once if that brings nothing.
    fn fill(&self, state: &mut State<R>, bytes: &mut [u8]) -> io::Result<usize> {
        state.open_kept()?;
        if !state.plaintext.is_empty() || state.has_ended {
            return Ok(state.take_plaintext(bytes).unwrap_or(0));
        }
        let begin = state.ciphertext.len();
        if begin > KEPT_BYTES_MAX {
            let error = rustls::InvalidMessage::HandshakePayloadTooLarge.into();
            return Err(state.fail(error));
        }
        scratch::with(|scratch| {
            let Scratch { received, .. } = scratch;
            let end = begin + scratch::room_for(bytes.len());
            received[..begin].copy_from_slice(&state.ciphertext);
            let count = self.socket.try_read(&mut received[begin..end])?;
            if count == 0 {
                // HAProxy takes a close without notice for an end, too: whether the message is
                // whole is judged above.
                state.has_ended = true;
                return Ok(0);
            }
            state.ciphertext.clear();
            state.open(&mut received[..begin + count], bytes)
        })
    }

    /// Sends what is unsent, without waiting.
    fn send_unsent(&self, state: &mut State<R>) -> io::Result<()> {
        while !state.unsent.is_empty() {
            let count = self.socket.try_write(&state.unsent)?;
            state.unsent.drain(..count);
        }
        state.unsent = Vec::new();
        self.socket.try_send_unsent()
    }

    /// Encrypts a batch behind what is unsent, and sends what the socket takes.
    fn write(&self, parts: &[IoSlice<'_>], follows: Follows) -> io::Result<usize> {
        let state = &mut *self.state.borrow_mut();
        state.open_kept()?;
        if state.unsent.len() > UNSENT_BYTES_MAX || self.socket.has_unsent() {
            self.send_unsent(state)?;
        }
        scratch::with(|scratch| {
            let Scratch {
                gathered, sealed, ..
            } = scratch;
            let plaintext = joined_parts(parts, gathered);
            let mut length = state.encrypt(plaintext, sealed)?;
            let whole: usize = parts.iter().map(|part| part.len()).sum();
            if follows == Follows::Close && plaintext.len() == whole {
                state.close();
                let notice = std::mem::take(&mut state.unsent);
                sealed[length..length + notice.len()].copy_from_slice(&notice);
                length += notice.len();
            }
            let send = match follows {
                Follows::Nothing => Stream::try_write,
                Follows::More | Follows::Close => Stream::try_write_more,
            };
            let mut sent = 0;
            while sent < length {
                match send(&self.socket, &sealed[sent..length]) {
                    Ok(count) => sent += count,
                    // They are sealed: the caller must not give them again.
                    Err(error)
                        if matches!(
                            error.kind(),
                            ErrorKind::WouldBlock | ErrorKind::Interrupted
                        ) =>
                    {
                        break;
                    }
                    Err(error) => return Err(error),
                }
            }
            state.unsent.extend_from_slice(&sealed[sent..length]);
            Ok(plaintext.len())
        })
    }

    /// Reads until there is plaintext, the end, or nothing more.
    fn read(&self, state: &mut State<R>, bytes: &mut [u8]) -> io::Result<usize> {
        loop {
            if let Some(count) = state.take_plaintext(bytes) {
                return Ok(count);
            }
            if state.has_ended {
                return Ok(0);
            }
            if let Some(error) = &state.failure {
                return Err(io::Error::new(ErrorKind::InvalidData, error.clone()));
            }
            let unsent = state.unsent.len();
            let read = self.fill(state, bytes);
            // An alert, or the answer to a key update. Whether it leaves is not the reader's
            // concern.
            if state.unsent.len() > unsent {
                let _ = self.send_unsent(state);
            }
            match read {
                Ok(0) => {}
                other => return other,
            }
        }
    }
}

impl<R: Role> State<R> {
    fn take_plaintext(&mut self, bytes: &mut [u8]) -> Option<usize> {
        let rest = &self.plaintext[self.plaintext_begin..];
        if rest.is_empty() {
            return None;
        }
        let count = rest.len().min(bytes.len());
        bytes[..count].copy_from_slice(&rest[..count]);
        self.plaintext_begin += count;
        if self.plaintext_begin == self.plaintext.len() {
            self.plaintext = Vec::new();
            self.plaintext_begin = 0;
        }
        Some(count)
    }

    /// Decrypts the whole records that were received with the end of the handshake.
    fn open_kept(&mut self) -> io::Result<()> {
        if std::mem::take(&mut self.has_records) {
            let mut received = std::mem::take(&mut self.ciphertext);
            self.open(&mut received, &mut [])?;
        }
        Ok(())
    }

    /// Decrypts the records of `received` into `bytes`, and what exceeds them into `plaintext`. The
    /// beginning of a record is kept.
    fn open(&mut self, received: &mut [u8], bytes: &mut [u8]) -> io::Result<usize> {
        let (mut begin, mut read) = (0, 0);
        let Self {
            role,
            plaintext,
            unsent,
            ..
        } = self;
        let mut deliver = |record: &[u8]| {
            let here = record.len().min(bytes.len() - read);
            bytes[read..read + here].copy_from_slice(&record[..here]);
            read += here;
            plaintext.extend_from_slice(&record[here..]);
        };
        let failure = loop {
            let (discard, step) = role.step(&mut received[begin..], unsent, &mut deliver);
            begin += discard;
            match step {
                Ok(Step::Again) => {}
                Ok(Step::Blocked | Step::Established) => break None,
                Ok(Step::PeerClosed) => {
                    self.has_ended = true;
                    break None;
                }
                Err(error) => break Some(error),
            }
        };
        if let Some(error) = failure {
            role.alert(unsent);
            let error = self.fail(error);
            if read == 0 {
                return Err(error);
            }
        } else if !self.has_ended {
            self.ciphertext.extend_from_slice(&received[begin..]);
        }
        Ok(read)
    }

    /// Ends the connection: nothing is decrypted or encrypted any more. rustls remembers places in
    /// what was received, and must not be asked again once that is gone.
    fn fail(&mut self, error: rustls::Error) -> io::Error {
        self.failure = Some(error.clone());
        io::Error::new(ErrorKind::InvalidData, error)
    }

    /// Appends our `close_notify` to what is unsent, once.
    fn close(&mut self) {
        if self.is_closed || self.resets || self.failure.is_some() {
            return;
        }
        self.is_closed = true;
        self.role.close(&mut self.ciphertext, &mut self.unsent);
    }

    /// Encrypts behind what is unsent, both in `out`; how long they are together. `out` has room for
    /// the largest batch, and at most [`UNSENT_BYTES_MAX`] is unsent.
    fn encrypt(&mut self, plaintext: &[u8], out: &mut [u8]) -> io::Result<usize> {
        if let Some(error) = &self.failure {
            return Err(io::Error::new(ErrorKind::BrokenPipe, error.clone()));
        }
        if self.is_closed {
            return Err(ErrorKind::BrokenPipe.into());
        }
        let length = self.unsent.len();
        out[..length].copy_from_slice(&self.unsent);
        let sealed = self
            .role
            .encrypt(plaintext, &mut self.ciphertext, &mut out[length..]);
        match sealed {
            Ok(count) => {
                self.unsent = Vec::new();
                Ok(length + count)
            }
            Err(error) => Err(io::Error::new(ErrorKind::BrokenPipe, error)),
        }
    }
}

impl<R: Role> Carrier for TlsCarrier<R> {
    fn socket(&self) -> &Stream {
        &self.socket
    }

    fn is_readable(&self) -> bool {
        let state = self.state.borrow();
        !state.plaintext.is_empty()
            || state.has_records
            || state.has_ended
            || state.failure.is_some()
            || self.socket.is_readable()
    }

    fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.is_readable() {
            return Poll::Ready(Ok(()));
        }
        if self.has_unsent() {
            match self.try_send_unsent() {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    if let Poll::Ready(Err(error)) = self.socket.poll_writable(cx) {
                        return Poll::Ready(Err(error));
                    }
                }
                Err(error) => return Poll::Ready(Err(error)),
                Ok(()) => {}
            }
        }
        ready!(self.socket.poll_readable(cx))?;
        Poll::Ready(Ok(()))
    }

    fn try_read(&self, bytes: &mut [u8]) -> io::Result<usize> {
        self.read(&mut self.state.borrow_mut(), bytes)
    }

    fn try_write(&self, parts: &[IoSlice<'_>], more: bool) -> io::Result<usize> {
        let follows = match more {
            true => Follows::More,
            false => Follows::Nothing,
        };
        self.write(parts, follows)
    }

    fn try_write_last(&self, bytes: &[u8]) -> io::Result<usize> {
        self.write(&[IoSlice::new(bytes)], Follows::Close)
    }

    fn has_unsent(&self) -> bool {
        !self.state.borrow().unsent.is_empty() || self.socket.has_unsent()
    }

    fn try_send_unsent(&self) -> io::Result<()> {
        self.send_unsent(&mut self.state.borrow_mut())
    }

    fn queue_for_turn_end(&self, bytes: &mut Vec<u8>, cx: &Context<'_>) -> bool {
        let state = &mut *self.state.borrow_mut();
        if bytes.len() > PLAINTEXT_BYTES_MAX
            || self.socket.has_unsent()
            || self.socket.is_readable()
        {
            return false;
        }
        // The write that follows reports why, or settles first.
        if state.open_kept().is_err() || state.unsent.len() > UNSENT_BYTES_MAX {
            return false;
        }
        scratch::with(|scratch| {
            let Ok(length) = state.encrypt(bytes, &mut scratch.sealed) else {
                return false;
            };
            bytes.clear();
            bytes.extend_from_slice(&scratch.sealed[..length]);
            if !self.socket.queue_for_turn_end(bytes, cx) {
                state.unsent = std::mem::take(bytes);
                let _ = self.send_unsent(state);
            }
            true
        })
    }

    fn is_quiet(&self) -> bool {
        let state = &mut *self.state.borrow_mut();
        if !state.plaintext.is_empty() || state.has_ended || state.failure.is_some() {
            return false;
        }
        let mut reads = 0;
        while state.has_records || self.socket.is_readable() {
            reads += 1;
            if reads > QUIET_READS_MAX {
                return false;
            }
            // What does not fit becomes plaintext that waits.
            match self.fill(state, &mut []) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Ok(_) if state.plaintext.is_empty() && !state.has_ended => {}
                _ => return false,
            }
        }
        true
    }

    fn shutdown_write(&self) -> io::Result<()> {
        let state = &mut *self.state.borrow_mut();
        state.close();
        // What a full socket does not take is lost, as HAProxy's notice is.
        let _ = self.send_unsent(state);
        self.socket.shutdown_write()
    }

    fn reset_on_close(&self) -> io::Result<()> {
        self.state.borrow_mut().resets = true;
        self.socket.reset_on_close()
    }
}

/// The pieces as one, at most a batch: not copied when there is one.
fn joined_parts<'p>(parts: &'p [IoSlice<'_>], gathered: &'p mut [u8]) -> &'p [u8] {
    if let [part] = parts {
        return &part[..part.len().min(PLAINTEXT_BYTES_MAX)];
    }
    let mut length = 0;
    for part in parts {
        let count = part.len().min(gathered.len() - length);
        gathered[length..length + count].copy_from_slice(&part[..count]);
        length += count;
    }
    &gathered[..length]
}

impl<R: Role> Drop for TlsCarrier<R> {
    /// Tells the peer that this is the end, where that needs no wait.
    fn drop(&mut self) {
        let state = self.state.get_mut();
        state.close();
        if !state.resets && state.failure.is_none() && !state.unsent.is_empty() {
            let _ = self.socket.try_write(&state.unsent);
        }
    }
}

impl<R: Role> fmt::Debug for TlsCarrier<R> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        // No keys, and no bytes of users.
        out.debug_struct("TlsCarrier")
            .field("socket", &self.socket)
            .finish_non_exhaustive()
    }
}
