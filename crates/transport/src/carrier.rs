//! What a transport that is not clear has to answer.

use std::fmt::Debug;
use std::io::{self, IoSlice};
use std::task::{Context, Poll};

use ballast_worker::Stream;

/// Plaintext on one side, records on a socket on the other.
///
/// It is shared by the two directions of a connection, which are polled by the same task, and so
/// takes `&self`: what it buffers is in cells. What it owes the peer of its own accord (an alert,
/// an answer to a key update) it sends from [`Carrier::poll_readable`] and [`Carrier::try_read`].
///
/// Dropped, it closes in order, as far as that needs no wait: TLS sends `close_notify` and the
/// socket closes after it. After [`Carrier::reset_on_close`] it says nothing.
pub trait Carrier: Debug {
    /// The socket below. It is asked for what has nothing to do with records: addresses, errors,
    /// options, the end of the peer's side.
    fn socket(&self) -> &Stream;

    /// Whether a try to read is worth while: plaintext is buffered, or the socket is readable.
    /// After [`Carrier::try_read`] answered `WouldBlock` it is false until more comes. No system
    /// call.
    fn is_readable(&self) -> bool;

    /// Ready when [`Carrier::is_readable`] is true, or reading has become pointless. Who waits for
    /// the peer to speak sees to it that what is owed to the peer is sent meanwhile.
    ///
    /// # Errors
    /// Why nothing can be read or sent any more.
    fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>>;

    /// Takes plaintext into `bytes`, which is not empty; 0 is the end. Whether a socket that ends
    /// before the peer has said so is an end or an error, the carrier decides.
    ///
    /// # Errors
    /// `WouldBlock` when there is none yet, whatever else came; else why there is no more.
    fn try_read(&self, bytes: &mut [u8]) -> io::Result<usize>;

    /// Takes plaintext to be sent, as much as there is room for, and sends what it can. What was
    /// taken counts as written; what of it is not sent yet is owed. `more` says that more plaintext
    /// follows at once.
    ///
    /// # Errors
    /// `WouldBlock` when there is no room: wait for [`Stream::poll_writable`] of the socket.
    fn try_write(&self, parts: &[IoSlice<'_>], more: bool) -> io::Result<usize>;

    /// Whether something that was taken is not sent.
    fn owes(&self) -> bool;

    /// Sends what is owed.
    ///
    /// # Errors
    /// As [`Carrier::try_write`].
    fn try_settle(&self) -> io::Result<()>;

    /// Puts plaintext down to be sent with what other tasks say, as [`Stream::put_down`] does.
    /// One that does not know how answers false, and is written to at once.
    fn put_down(&self, bytes: &mut Vec<u8>, cx: &Context<'_>) -> bool {
        let _ = (bytes, cx);
        false
    }

    /// Whether an idle connection is as it was left. It takes in records that concern the carrier
    /// alone, such as session tickets; plaintext, the end and an error break the quiet. A system
    /// call only when something has come.
    fn is_quiet(&self) -> bool;

    /// Ends our side, after what is owed was settled: TLS sends `close_notify`.
    ///
    /// # Errors
    /// What the system says.
    fn shutdown_write(&self) -> io::Result<()>;

    /// Makes the close a reset: nothing is said before it.
    ///
    /// # Errors
    /// What the system says.
    fn reset_on_close(&self) -> io::Result<()> {
        self.socket().reset_on_close()
    }
}
