//! A connection over TLS.
//!
//! The library reads 4 KB at a time from whatever it is given. Here it is given memory: one system
//! call brings as much as has arrived.

use std::future::poll_fn;
use std::io::{self, Read as _, Write as _};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Instant;

use rustls::ClientConnection;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::failure::{Failure, FailureClass};
use crate::socket::Socket;
use crate::tls::{ClientHello, Handshake, TlsError};

/// The size of the buffer of received records: two of the largest.
const RECORDS_BYTES: usize = 32 << 10;
/// What was going on, in the reasons of failures.
const HANDSHAKE: &str = "within the TLS handshake";

/// An open connection over TLS, or one whose handshake is going on.
pub(crate) struct TlsStream {
    socket: Socket,
    session: ClientConnection,
    records: Vec<u8>,
    /// The part of `records` that was received and not yet decrypted.
    pending: std::ops::Range<usize>,
    has_received: bool,
    has_data: bool,
    /// The peer closed the connection without saying so (`close_notify`) first.
    is_unclean: bool,
}

impl TlsStream {
    /// Makes the handshake on an open connection.
    pub(crate) async fn open(
        socket: Socket,
        hello: ClientHello,
    ) -> Result<(Self, Handshake), Failure> {
        let began = Instant::now();
        let mut stream = Self {
            socket,
            session: hello.connection,
            records: vec![0; RECORDS_BYTES],
            pending: 0..0,
            has_received: false,
            has_data: false,
            is_unclean: false,
        };
        match poll_fn(|cx| stream.poll_handshake(cx)).await {
            Ok(()) => {
                let handshake = Handshake::of(&stream.session, hello.has_session, began.elapsed());
                Ok((stream, handshake))
            }
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                let class = match stream.has_received {
                    false => FailureClass::Closed,
                    true => FailureClass::Truncated,
                };
                Err(Failure::new(class, format!("the peer closed {HANDSHAKE}")))
            }
            Err(error) => {
                // The alert that says what is wrong.
                stream.try_flush();
                Err(Failure::of_connection(&error, HANDSHAKE))
            }
        }
    }

    /// The protocol that was chosen by ALPN.
    pub(crate) fn protocol(&self) -> Option<&[u8]> {
        self.session.alpn_protocol()
    }

    /// True when the peer closed without `close_notify`.
    pub(crate) fn is_unclean(&self) -> bool {
        self.is_unclean
    }

    /// Says that nothing more will be sent (`close_notify`), as far as it can be said at once.
    pub(crate) fn say_close(&mut self) {
        self.session.send_close_notify();
        self.try_flush();
    }

    /// Reads what comes, and drops it, until the peer has closed the connection. Tickets count.
    pub(crate) fn poll_closed(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut scratch = [0; 1024];
        loop {
            let mut free = ReadBuf::new(&mut scratch);
            ready!(self.poll_plaintext(cx, &mut free))?;
            if free.filled().is_empty() {
                break;
            }
        }
        // After `close_notify` the end of the connection is still to come.
        while !self.is_unclean {
            let mut free = ReadBuf::new(&mut self.records);
            ready!(Pin::new(&mut self.socket).poll_read(cx, &mut free))?;
            if free.filled().is_empty() {
                break;
            }
        }
        Poll::Ready(Ok(()))
    }

    fn poll_handshake(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            ready!(self.poll_send(cx))?;
            if !self.session.is_handshaking() {
                return Poll::Ready(Ok(()));
            }
            if ready!(self.poll_receive(cx))? == 0 {
                return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into()));
            }
        }
    }

    /// Sends all records that are ready.
    fn poll_send(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.session.wants_write() {
            let mut socket = PolledWriter {
                socket: &mut self.socket,
                cx,
            };
            match self.session.write_tls(&mut socket) {
                Ok(0) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Poll::Pending,
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
        Poll::Ready(Ok(()))
    }

    fn try_flush(&mut self) {
        let mut cx = Context::from_waker(std::task::Waker::noop());
        // It is a courtesy: who does not take it will notice the close.
        let _ = self.poll_send(&mut cx);
    }

    /// Decrypts what was received, or receives more first; zero is the end of the connection.
    fn poll_receive(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        if self.pending.is_empty() {
            let mut free = ReadBuf::new(&mut self.records);
            ready!(Pin::new(&mut self.socket).poll_read(cx, &mut free))?;
            self.pending = 0..free.filled().len();
            self.has_received |= !self.pending.is_empty();
        }
        let mut pending = &self.records[self.pending.clone()];
        let length = self.session.read_tls(&mut pending)?;
        self.pending.start += length;
        if let Err(error) = self.session.process_new_packets() {
            return Poll::Ready(Err(TlsError::wrap(error, !self.has_data)));
        }
        Poll::Ready(Ok(length))
    }

    /// Reads plaintext; nothing is the end.
    fn poll_plaintext(
        &mut self,
        cx: &mut Context<'_>,
        to: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            match self.session.reader().read(to.initialize_unfilled()) {
                Ok(length) => {
                    to.advance(length);
                    self.has_data |= length > 0;
                    return Poll::Ready(Ok(()));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                    self.is_unclean = true;
                    return Poll::Ready(Ok(()));
                }
                Err(error) => return Poll::Ready(Err(error)),
            }
            ready!(self.poll_receive(cx))?;
            if self.session.wants_write() {
                // An answer to a key update; who waits for more does not wait for this.
                let _ = self.poll_send(cx)?;
            }
        }
    }
}

impl AsyncRead for TlsStream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.get_mut().poll_plaintext(cx, buffer)
    }
}

impl AsyncWrite for TlsStream {
    /// Encrypts as much as fits into the library's buffer. What was taken and not yet sent is sent
    /// by the next write or flush.
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let stream = self.get_mut();
        loop {
            let length = stream.session.writer().write(bytes)?;
            let sent = stream.poll_send(cx)?;
            if length > 0 || bytes.is_empty() {
                return Poll::Ready(Ok(length));
            }
            ready!(sent);
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_mut().poll_send(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let stream = self.get_mut();
        stream.session.send_close_notify();
        ready!(stream.poll_send(cx))?;
        Pin::new(&mut stream.socket).poll_shutdown(cx)
    }
}

/// Lets the library write to the socket.
struct PolledWriter<'a, 'b> {
    socket: &'a mut Socket,
    cx: &'a mut Context<'b>,
}

impl PolledWriter<'_, '_> {
    fn or_block<T>(polled: Poll<io::Result<T>>) -> io::Result<T> {
        match polled {
            Poll::Ready(outcome) => outcome,
            Poll::Pending => Err(io::ErrorKind::WouldBlock.into()),
        }
    }
}

impl io::Write for PolledWriter<'_, '_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Self::or_block(Pin::new(&mut *self.socket).poll_write(self.cx, bytes))
    }

    fn write_vectored(&mut self, slices: &[io::IoSlice<'_>]) -> io::Result<usize> {
        Self::or_block(Pin::new(&mut *self.socket).poll_write_vectored(self.cx, slices))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
