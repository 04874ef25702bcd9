//! Handshakes that go on while early data are served (RFC 8446, 2.3; RFC 8470).

use std::fmt::Debug;
use std::future::poll_fn;
use std::io::{self, ErrorKind};
use std::rc::Weak;
use std::task::{Context, Poll};

/// A handshake that goes on while early data are served. Nobody knows yet whether the client sent
/// them, or somebody who repeats what it once sent.
#[derive(Clone, Debug)]
pub struct PendingHandshake(Weak<dyn HandshakingCarrier>);

impl PendingHandshake {
    pub(crate) fn of(carrier: Weak<dyn HandshakingCarrier>) -> Self {
        Self(carrier)
    }

    /// Whether it was made: the client is there, and has sent what it says now.
    pub fn is_over(&self) -> bool {
        self.0.upgrade().is_some_and(|carrier| carrier.is_over())
    }

    /// Waits until it is made. What else comes meanwhile is kept for who reads: no more than the
    /// early data that the configuration allows. Put a deadline around it.
    ///
    /// # Errors
    /// Why it will not be made: the connection ended, or one side refused it.
    pub async fn finished(&self) -> io::Result<()> {
        poll_fn(|cx| match self.0.upgrade() {
            Some(carrier) => carrier.poll_over(cx),
            None => Poll::Ready(Err(ErrorKind::NotConnected.into())),
        })
        .await
    }
}

/// A carrier whose handshake may go on.
pub(crate) trait HandshakingCarrier: Debug {
    /// Whether its handshake was made.
    fn is_over(&self) -> bool;

    /// Ready when it was made, or will not be.
    fn poll_over(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>>;
}
