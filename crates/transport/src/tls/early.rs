//! Connections that serve early data while their handshake goes on (RFC 8446, 2.3; RFC 8470).

use std::io::{self, ErrorKind, IoSlice};
use std::rc::{Rc, Weak};
use std::task::{Context, Poll, ready};

use ballast_worker::Stream;

use super::TlsCarrier;
use super::role::Role;
use crate::Carrier;
use crate::pending::{HandshakingCarrier, PendingHandshake};

impl<R: Role> HandshakingCarrier for TlsCarrier<R> {
    fn is_over(&self) -> bool {
        !self.state.borrow().role.common().is_handshaking()
    }

    fn poll_over(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            {
                let state = &mut *self.state.borrow_mut();
                if !state.role.common().is_handshaking() {
                    return Poll::Ready(Ok(()));
                }
                if state.has_ended || state.failure.is_some() {
                    return Poll::Ready(Err(ErrorKind::ConnectionAborted.into()));
                }
                // What is there is not read: more comes behind it.
                let mut kept = std::mem::take(&mut state.plaintext);
                kept.drain(..std::mem::take(&mut state.plaintext_begin));
                let filled = self.fill(state, &mut []);
                kept.append(&mut state.plaintext);
                state.plaintext = kept;
                match filled {
                    Ok(_) => continue,
                    Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                    Err(error) => {
                        // An alert; a peer that does not read gets none.
                        let _ = self.send_unsent(state);
                        return Poll::Ready(Err(error));
                    }
                }
            }
            ready!(self.socket.poll_readable(cx))?;
        }
    }
}

/// The carrier of such a connection: who waits for its handshake has it, too.
impl<R: Role> Carrier for Rc<TlsCarrier<R>> {
    fn socket(&self) -> &Stream {
        (**self).socket()
    }

    fn pending_handshake(&self) -> Option<PendingHandshake> {
        let carrier: Weak<TlsCarrier<R>> = Rc::downgrade(self);
        Some(PendingHandshake::of(carrier))
    }

    fn is_readable(&self) -> bool {
        (**self).is_readable()
    }

    fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        (**self).poll_readable(cx)
    }

    fn try_read(&self, bytes: &mut [u8]) -> io::Result<usize> {
        (**self).try_read(bytes)
    }

    fn try_write(&self, parts: &[IoSlice<'_>], more: bool) -> io::Result<usize> {
        (**self).try_write(parts, more)
    }

    fn try_write_last(&self, bytes: &[u8]) -> io::Result<usize> {
        (**self).try_write_last(bytes)
    }

    fn has_unsent(&self) -> bool {
        (**self).has_unsent()
    }

    fn try_send_unsent(&self) -> io::Result<()> {
        (**self).try_send_unsent()
    }

    fn queue_for_turn_end(&self, bytes: &mut Vec<u8>, cx: &Context<'_>) -> bool {
        (**self).queue_for_turn_end(bytes, cx)
    }

    fn is_quiet(&self) -> bool {
        (**self).is_quiet()
    }

    fn shutdown_write(&self) -> io::Result<()> {
        (**self).shutdown_write()
    }

    fn reset_on_close(&self) -> io::Result<()> {
        (**self).reset_on_close()
    }
}
