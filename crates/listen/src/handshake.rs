//! The handshakes of a connection before its first exchange.
//!
//! The handshakes of a bind are a list of [`HandshakeStep`]s in their order on the wire: today the PROXY
//! header; TLS comes after it, and protocol negotiation after TLS. Each step gets the connection as
//! the one before left it, including bytes that were read too far, and has its own deadline. The
//! caller of [`Handshakes::run`] evaluates `tcp-request connection` rules before the first step,
//! and `tcp-request session` rules after the last (configuration manual, "tcp-request connection").

mod proxy;
mod refusal;

use std::cell::Cell;
use std::time::Duration;

use ballast_model::{Bind, FrontendTimeouts};
use ballast_transport::Transport;
use ballast_worker::timeout;

use crate::limits::HANDSHAKE_WAIT_MAX;

pub use proxy::ProxyAddresses;
pub use refusal::{HandshakeError, RefusedConnection};

/// One handshake of a bind.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Handshake {
    step: HandshakeStep,
    /// How long it may take.
    wait: Duration,
}

/// A kind of handshake.
#[derive(Clone, Copy, Debug)]
enum HandshakeStep {
    /// Read a PROXY header (`accept-proxy`).
    ProxyHeader,
}

/// The handshakes that a bind requires.
pub(crate) fn of_bind(bind: &Bind, timeouts: &FrontendTimeouts) -> Box<[Handshake]> {
    let proxy = bind.accept_proxy.then_some(Handshake {
        step: HandshakeStep::ProxyHeader,
        wait: timeouts.client.unwrap_or(HANDSHAKE_WAIT_MAX),
    });
    proxy.into_iter().collect()
}

/// The handshakes of a connection.
#[derive(Clone, Copy, Debug)]
pub struct Handshakes<'a> {
    steps: &'a [Handshake],
    /// The longest PROXY header.
    header_bytes_max: usize,
}

/// A connection after its handshakes.
#[derive(Debug)]
pub struct Established {
    /// Its transport from now on.
    pub transport: Transport,
    /// Bytes received after the last handshake: the first of what follows.
    pub read_ahead: Vec<u8>,
    /// The content of the PROXY header, if there was one.
    pub proxied: Option<ProxyAddresses>,
}

impl<'a> Handshakes<'a> {
    pub(crate) fn new(steps: &'a [Handshake], header_bytes_max: usize) -> Self {
        Self {
            steps,
            header_bytes_max,
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// Performs them one after the other. A connection that is refused is closed.
    ///
    /// # Errors
    /// Why the connection was refused.
    pub async fn run(self, transport: Transport) -> Result<Established, HandshakeError> {
        let mut connection = Established {
            transport,
            read_ahead: Vec::new(),
            proxied: None,
        };
        for handshake in self.steps {
            let begun = Cell::new(false);
            let done = self.run_step(handshake.step, connection, &begun);
            connection = match timeout(handshake.wait, done).await {
                Ok(done) => done?,
                Err(_) => return Err(handshake.step.is_late(begun.get())),
            };
        }
        Ok(connection)
    }

    /// `begun` is set when the first byte of the handshake was received.
    async fn run_step(
        self,
        step: HandshakeStep,
        connection: Established,
        begun: &Cell<bool>,
    ) -> Result<Established, HandshakeError> {
        match step {
            HandshakeStep::ProxyHeader => {
                proxy::read_header(connection, self.header_bytes_max, begun).await
            }
        }
    }
}

impl HandshakeStep {
    /// The reason for refusing a connection that timed out; `begun` says whether anything was
    /// received.
    fn is_late(self, begun: bool) -> HandshakeError {
        match self {
            Self::ProxyHeader => HandshakeError::TimedOut(begun),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::fd::OwnedFd;
    use std::os::unix::net::UnixStream;

    use ballast_worker::{Stream, block_on};

    use super::*;

    fn pair() -> (Transport, UnixStream) {
        let (ours, theirs) = UnixStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        let stream = Stream::from_fd(OwnedFd::from(ours)).unwrap();
        (stream.into(), theirs)
    }

    fn header(wait_ms: u64) -> Handshake {
        Handshake {
            step: HandshakeStep::ProxyHeader,
            wait: Duration::from_millis(wait_ms),
        }
    }

    #[test]
    fn a_step_begins_with_what_the_one_before_read_too_far() {
        block_on(async {
            let (transport, mut peer) = pair();
            peer.write_all(
                b"PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\n\
                  PROXY TCP4 192.0.2.3 192.0.2.4 3 4\r\nGET /",
            )
            .unwrap();
            let steps = [header(5000), header(5000)];
            let established = Handshakes::new(&steps, 1024).run(transport).await.unwrap();
            assert_eq!(established.read_ahead, b"GET /");
            let (source, _) = established.proxied.unwrap().endpoints.unwrap();
            assert_eq!(source, "192.0.2.3:3".parse().unwrap());
        })
        .unwrap();
    }

    #[test]
    fn each_step_has_its_own_deadline() {
        block_on(async {
            let (transport, mut peer) = pair();
            peer.write_all(b"PROXY UNKNOWN\r\nPROXY").unwrap();
            let steps = [header(60_000), header(10)];
            let refused = Handshakes::new(&steps, 1024).run(transport).await;
            assert_eq!(refused.unwrap_err(), HandshakeError::TimedOut(true));
            let (transport, _peer) = pair();
            let refused = Handshakes::new(&steps[1..], 1024).run(transport).await;
            assert_eq!(refused.unwrap_err(), HandshakeError::TimedOut(false));
        })
        .unwrap();
    }
}
