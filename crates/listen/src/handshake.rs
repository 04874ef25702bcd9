//! The handshakes of a connection before its first exchange.
//!
//! The handshakes of a bind are a list of [`HandshakeStep`]s in their order on the wire: the PROXY
//! header, then TLS. Each step gets the connection as
//! the one before left it, including bytes that were read too far, and has its own deadline. The
//! caller of [`Handshakes::run`] evaluates `tcp-request connection` rules before the first step,
//! and `tcp-request session` rules after the last (configuration manual, "tcp-request connection").

mod count;
mod proxy;
mod refusal;
mod tls;
mod tls_session;

use std::cell::Cell;
use std::time::Duration;

use ballast_model::{Bind, FrontendTimeouts};
use ballast_tls::context::BindContext;
use ballast_transport::Transport;
use ballast_worker::timeout;

use crate::key_threads::KeyThreads;
use crate::limits::HANDSHAKE_WAIT_MAX;

pub(crate) use count::HandshakeCounters;
pub use proxy::{ClientProxyHeader, ProxyHeaderValues};
pub use refusal::{HandshakeError, RefusedConnection};
pub use tls_session::ClientTls;

/// One handshake of a bind.
#[derive(Clone, Debug)]
pub(crate) struct Handshake {
    step: HandshakeStep,
    /// How long it may take.
    wait: Duration,
}

/// A kind of handshake.
#[derive(Clone, Debug)]
enum HandshakeStep {
    /// Read a PROXY header (`accept-proxy`).
    ProxyHeader,
    /// TLS (`ssl`), with one of these certificates.
    Tls(BindContext),
}

/// The handshakes that a bind requires.
pub(crate) fn of_bind(bind: &Bind, timeouts: &FrontendTimeouts) -> Box<[Handshake]> {
    let wait = timeouts.client.unwrap_or(HANDSHAKE_WAIT_MAX);
    let proxy = bind.accept_proxy.then_some(Handshake {
        step: HandshakeStep::ProxyHeader,
        wait,
    });
    let tls = bind.tls.as_ref().map(|tls| Handshake {
        step: HandshakeStep::Tls(tls.context.clone()),
        wait: timeouts.client_handshake.unwrap_or(wait),
    });
    proxy.into_iter().chain(tls).collect()
}

/// The handshakes of a connection.
#[derive(Clone, Copy, Debug)]
pub struct Handshakes<'a> {
    steps: &'a [Handshake],
    limits: HandshakeLimits,
    /// Where those of TLS are counted.
    counters: Option<HandshakeCounters<'a>>,
    /// Where slow keys sign.
    key_threads: Option<&'a KeyThreads>,
    /// A PROXY header that a rule expects, and how long it may take.
    expected_header: Option<Duration>,
}

/// What the configuration of the process says about handshakes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct HandshakeLimits {
    /// `tune.bufsize`: the longest PROXY header, bytes.
    pub(crate) header_bytes_max: usize,
    /// `tune.ssl.capture-buffer-size`: bytes of a ClientHello that are kept; 0: none.
    pub(crate) capture_bytes: usize,
    /// `tune.ssl.keylog`: the secrets of sessions are kept.
    pub(crate) keeps_secrets: bool,
}

/// A handshake that failed.
#[derive(Debug)]
pub struct HandshakeRefusal {
    /// Why.
    pub error: HandshakeError,
    /// What is known of the TLS session by then.
    pub tls: Option<Box<ClientTls>>,
    /// The PROXY header that came before.
    pub proxied: Option<ClientProxyHeader>,
}

impl From<HandshakeError> for HandshakeRefusal {
    fn from(error: HandshakeError) -> Self {
        let tls = error.is_tls().then(Box::default);
        Self {
            error,
            tls,
            proxied: None,
        }
    }
}

/// A connection after its handshakes.
#[derive(Debug)]
pub struct Established {
    /// Its transport from now on.
    pub transport: Transport,
    /// Bytes received after the last handshake: the first of what follows.
    pub read_ahead: Vec<u8>,
    /// The PROXY header, if there was one.
    pub proxied: Option<ClientProxyHeader>,
    /// The TLS session, if there is one.
    pub tls: Option<Box<ClientTls>>,
}

impl<'a> Handshakes<'a> {
    pub(crate) fn new(steps: &'a [Handshake], limits: HandshakeLimits) -> Self {
        Self {
            steps,
            limits,
            counters: None,
            key_threads: None,
            expected_header: None,
        }
    }

    /// Reads a PROXY header first, unless the bind does so anyway (`tcp-request connection
    /// expect-proxy layer4`).
    #[must_use]
    pub fn expect_proxy_header(mut self, timeouts: &FrontendTimeouts) -> Self {
        let has_one = |step: &Handshake| matches!(step.step, HandshakeStep::ProxyHeader);
        if !self.steps.iter().any(has_one) {
            self.expected_header = Some(timeouts.client.unwrap_or(HANDSHAKE_WAIT_MAX));
        }
        self
    }

    pub(crate) fn count_in(mut self, counters: HandshakeCounters<'a>) -> Self {
        self.counters = Some(counters);
        self
    }

    pub(crate) fn sign_on(mut self, threads: &'a KeyThreads) -> Self {
        self.key_threads = Some(threads);
        self
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty() && self.expected_header.is_none()
    }

    fn is_sealed(&self) -> bool {
        let mut steps = self.steps.iter();
        steps.any(|one| matches!(one.step, HandshakeStep::Tls(_)))
    }

    /// Performs them one after the other. A connection that is refused is closed.
    ///
    /// # Errors
    /// Why the connection was refused.
    pub async fn run(self, transport: Transport) -> Result<Established, HandshakeRefusal> {
        let mut connection = Established {
            transport,
            read_ahead: Vec::new(),
            proxied: None,
            tls: None,
        };
        let expected = self.expected_header.map(|wait| Handshake {
            step: HandshakeStep::ProxyHeader,
            wait,
        });
        for handshake in expected.iter().chain(self.steps) {
            let begun = Cell::new(false);
            let proxied = connection.proxied.clone();
            let done = self.run_step(&handshake.step, connection, &begun);
            let done = match timeout(handshake.wait, done).await {
                Ok(done) => done,
                Err(_) => Err(handshake.step.timeout_error(begun.get()).into()),
            };
            connection = done.map_err(|refusal| HandshakeRefusal {
                proxied,
                // As in HAProxy, the session is there before its handshake begins.
                tls: refusal.tls.or_else(|| self.is_sealed().then(Box::default)),
                ..refusal
            })?;
        }
        Ok(connection)
    }

    /// `begun` is set when the first byte of the handshake was received.
    async fn run_step(
        self,
        step: &HandshakeStep,
        connection: Established,
        begun: &Cell<bool>,
    ) -> Result<Established, HandshakeRefusal> {
        match step {
            HandshakeStep::ProxyHeader => {
                Ok(proxy::read_header(connection, self.limits.header_bytes_max, begun).await?)
            }
            HandshakeStep::Tls(context) => {
                let done = tls::accept(connection, context, self).await;
                if let (Err(_), Some(counters)) = (&done, self.counters) {
                    counters.count_failed_handshake();
                }
                done
            }
        }
    }
}

impl HandshakeStep {
    /// The reason for refusing a connection that timed out; `begun` says whether anything was
    /// received.
    fn timeout_error(&self, begun: bool) -> HandshakeError {
        match self {
            Self::ProxyHeader => HandshakeError::TimedOut(begun),
            Self::Tls(_) => HandshakeError::TlsTimedOut,
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

    const LIMITS: HandshakeLimits = HandshakeLimits {
        header_bytes_max: 1024,
        capture_bytes: 0,
        keeps_secrets: false,
    };

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
            let established = Handshakes::new(&steps, LIMITS)
                .run(transport)
                .await
                .unwrap();
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
            let refused = Handshakes::new(&steps, LIMITS).run(transport).await;
            assert_eq!(refused.unwrap_err().error, HandshakeError::TimedOut(true));
            let (transport, _peer) = pair();
            let refused = Handshakes::new(&steps[1..], LIMITS).run(transport).await;
            assert_eq!(refused.unwrap_err().error, HandshakeError::TimedOut(false));
        })
        .unwrap();
    }
}
