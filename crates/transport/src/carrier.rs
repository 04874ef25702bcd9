//! What a transport that is not clear implements.

use std::fmt::Debug;
use std::io::{self, IoSlice};
use std::task::{Context, Poll};

use ballast_worker::Stream;

use crate::pending::PendingHandshake;

/// Plaintext on one side, records on a socket on the other.
///
/// The two directions of a connection share it and are polled by the same task, so it takes
/// `&self` and keeps its buffers in cells. Records of its own (an alert, an answer to a key
/// update) it sends from [`Carrier::poll_readable`] and [`Carrier::try_read`].
///
/// When it is dropped, it closes in order, as far as that needs no wait: TLS sends `close_notify`
/// and the socket closes after it. After [`Carrier::reset_on_close`] it sends nothing.
pub trait Carrier: Debug {
    /// The socket below: for what does not concern records, such as addresses, errors, options and
    /// the close of the peer's side.
    fn socket(&self) -> &Stream;

    /// The handshake, where early data are served while it goes on.
    fn pending_handshake(&self) -> Option<PendingHandshake> {
        None
    }

    /// Whether a read may succeed: plaintext is buffered, or the socket is readable. After
    /// [`Carrier::try_read`] answered `WouldBlock` it is false until more comes. No system call.
    fn is_readable(&self) -> bool;

    /// Ready when [`Carrier::is_readable`] is true, or reading has become pointless. While it
    /// waits, it also sends what is unsent.
    ///
    /// # Errors
    /// Why nothing can be read or sent any more.
    fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>>;

    /// Reads plaintext into `bytes`, which is not empty; 0 is the end. The carrier decides whether
    /// a socket that closes without notice of the peer is an end or an error.
    ///
    /// # Errors
    /// `WouldBlock` when there is no plaintext yet, even if records came; else why there is no
    /// more.
    fn try_read(&self, bytes: &mut [u8]) -> io::Result<usize>;

    /// Takes as much plaintext as there is room for, and sends what it can. What it took counts as
    /// written; the part that is not sent yet stays here. `more` says that more plaintext follows at
    /// once.
    ///
    /// # Errors
    /// `WouldBlock` when there is no room: wait for [`Stream::poll_writable`] of the socket.
    fn try_write(&self, parts: &[IoSlice<'_>], more: bool) -> io::Result<usize>;

    /// Takes plaintext as [`Carrier::try_write`] does, for a caller that closes our side right
    /// afterwards: with the last of `bytes` a carrier may say so at once. TLS sends its
    /// `close_notify` in the same call.
    ///
    /// # Errors
    /// As [`Carrier::try_write`].
    fn try_write_last(&self, bytes: &[u8]) -> io::Result<usize> {
        self.try_write(&[IoSlice::new(bytes)], true)
    }

    /// Whether something that was taken is not sent yet.
    fn has_unsent(&self) -> bool;

    /// Sends what is unsent.
    ///
    /// # Errors
    /// As [`Carrier::try_write`].
    fn try_send_unsent(&self) -> io::Result<()>;

    /// Takes plaintext to be sent at the end of the worker's turn, as [`Stream::queue_for_turn_end`] does. A
    /// carrier that cannot do that returns false, and is then written to at once.
    fn queue_for_turn_end(&self, bytes: &mut Vec<u8>, cx: &Context<'_>) -> bool {
        let _ = (bytes, cx);
        false
    }

    /// Whether nothing happened on an idle connection that concerns its user: no plaintext, no end
    /// and no error. Records that concern only the carrier, such as session tickets, are read and
    /// do not count. It makes a system call only when something was received.
    fn is_quiet(&self) -> bool;

    /// Closes our side, after what is unsent was sent: TLS sends `close_notify`.
    ///
    /// # Errors
    /// The error of the system call.
    fn shutdown_write(&self) -> io::Result<()>;

    /// Makes the close a reset: nothing is sent before it.
    ///
    /// # Errors
    /// The error of the system call.
    fn reset_on_close(&self) -> io::Result<()> {
        self.socket().reset_on_close()
    }
}
