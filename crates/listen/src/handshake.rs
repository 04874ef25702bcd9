//! The handshakes of a connection before its first exchange.
//!
//! The handshakes of a bind are a list of [`HandshakeStep`]s in their order on the wire: the header
//! of a NetScaler, the PROXY header, then TLS. Each step gets the connection as the one before left
//! it, including bytes that were read too far, and has its own deadline. The
//! caller of [`Handshakes::run`] evaluates `tcp-request connection` rules before the first step,
//! and `tcp-request session` rules after the last (configuration manual, "tcp-request connection").

mod count;
mod netscaler;
mod proxy;
mod refusal;
mod tls;
mod tls_session;

use std::cell::Cell;
use std::net::SocketAddr;
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
    /// Read a header of the NetScaler Client IP insertion protocol with this magic number
    /// (`accept-netscaler-cip`).
    NetscalerCip(u32),
    /// Read a PROXY header (`accept-proxy`).
    ProxyHeader,
    /// TLS (`ssl`), with one of these certificates.
    Tls(BindContext),
}

/// The handshakes that a bind requires.
pub(crate) fn of_bind(bind: &Bind, timeouts: &FrontendTimeouts) -> Box<[Handshake]> {
    let wait = timeouts.client.unwrap_or(HANDSHAKE_WAIT_MAX);
    let netscaler = bind.netscaler_cip_magic.map(|magic| Handshake {
        step: HandshakeStep::NetscalerCip(magic.get()),
        wait,
    });
    let proxy = bind.accept_proxy.then_some(Handshake {
        step: HandshakeStep::ProxyHeader,
        wait,
    });
    let tls = bind.tls.as_ref().map(|tls| Handshake {
        step: HandshakeStep::Tls(tls.context.clone()),
        wait: timeouts.client_handshake.unwrap_or(wait),
    });
    netscaler.into_iter().chain(proxy).chain(tls).collect()
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
    /// What rules expect beside that, and how long each header may take.
    expected: ExpectedHeaders,
    expected_wait: Duration,
}

/// The headers that rules expect at the beginning of a connection.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct ExpectedHeaders {
    /// `expect-netscaler-cip`.
    pub netscaler_cip: bool,
    /// `expect-proxy`.
    pub proxy: bool,
}

impl ExpectedHeaders {
    fn is_empty(self) -> bool {
        self == Self::default()
    }
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
    /// The addresses that a NetScaler told before: source and destination.
    pub inserted: Option<(SocketAddr, SocketAddr)>,
}

impl From<HandshakeError> for HandshakeRefusal {
    fn from(error: HandshakeError) -> Self {
        let tls = error.is_tls().then(Box::default);
        Self {
            error,
            tls,
            proxied: None,
            inserted: None,
        }
    }
}

/// A connection after its handshakes.
#[derive(Debug)]
pub struct EstablishedConnection {
    /// Its transport from now on.
    pub transport: Transport,
    /// Bytes received after the last handshake: the first of what follows.
    pub read_ahead: Vec<u8>,
    /// The PROXY header, if there was one.
    pub proxied: Option<ClientProxyHeader>,
    /// The addresses that a NetScaler told, if one did: source and destination.
    pub inserted: Option<(SocketAddr, SocketAddr)>,
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
            expected: ExpectedHeaders::default(),
            expected_wait: HANDSHAKE_WAIT_MAX,
        }
    }

    /// Reads the headers that `tcp-request connection` rules expect, unless the bind does so anyway
    /// (`expect-netscaler-cip layer4`, `expect-proxy layer4`).
    #[must_use]
    pub fn expect(mut self, headers: ExpectedHeaders, timeouts: &FrontendTimeouts) -> Self {
        let has = |kind: StepKind| self.steps.iter().any(|own| own.step.kind() == kind);
        self.expected = ExpectedHeaders {
            netscaler_cip: headers.netscaler_cip && !has(StepKind::NetscalerCip),
            proxy: headers.proxy && !has(StepKind::ProxyHeader),
        };
        self.expected_wait = timeouts.client.unwrap_or(HANDSHAKE_WAIT_MAX);
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
        self.steps.is_empty() && self.expected.is_empty()
    }

    fn is_over_tls(&self) -> bool {
        let mut steps = self.steps.iter();
        steps.any(|one| matches!(one.step, HandshakeStep::Tls(_)))
    }

    /// Performs them one after the other. A connection that is refused is closed.
    ///
    /// # Errors
    /// Why the connection was refused.
    pub async fn run(
        self,
        transport: Transport,
    ) -> Result<EstablishedConnection, HandshakeRefusal> {
        let mut connection = EstablishedConnection {
            transport,
            read_ahead: Vec::new(),
            proxied: None,
            inserted: None,
            tls: None,
        };
        let expected = self.expected_steps();
        let all = || expected.iter().flatten().chain(self.steps);
        for kind in StepKind::IN_ORDER {
            for handshake in all().filter(|handshake| handshake.step.kind() == kind) {
                connection = self.run_handshake(handshake, connection).await?;
            }
        }
        Ok(connection)
    }

    /// What rules expect, as steps.
    fn expected_steps(&self) -> [Option<Handshake>; 2] {
        let step = |step: HandshakeStep| Handshake {
            step,
            wait: self.expected_wait,
        };
        let netscaler = self.expected.netscaler_cip;
        [
            // As in HAProxy: where the bind tells no number, it is 0.
            netscaler.then(|| step(HandshakeStep::NetscalerCip(0))),
            self.expected
                .proxy
                .then(|| step(HandshakeStep::ProxyHeader)),
        ]
    }

    /// Performs one within its time.
    async fn run_handshake(
        self,
        handshake: &Handshake,
        connection: EstablishedConnection,
    ) -> Result<EstablishedConnection, HandshakeRefusal> {
        let begun = Cell::new(false);
        let (proxied, inserted) = (connection.proxied.clone(), connection.inserted);
        let done = self.run_step(&handshake.step, connection, &begun);
        let done = match timeout(handshake.wait, done).await {
            Ok(done) => done,
            Err(_) => Err(handshake.step.timeout_error(begun.get()).into()),
        };
        done.map_err(|refusal| HandshakeRefusal {
            proxied,
            inserted,
            // As in HAProxy, the session is there before its handshake begins.
            tls: refusal
                .tls
                .or_else(|| self.is_over_tls().then(Box::default)),
            ..refusal
        })
    }

    /// `begun` is set when the first byte of the handshake was received.
    async fn run_step(
        self,
        step: &HandshakeStep,
        connection: EstablishedConnection,
        begun: &Cell<bool>,
    ) -> Result<EstablishedConnection, HandshakeRefusal> {
        match step {
            HandshakeStep::NetscalerCip(magic) => {
                let bytes_max = self.limits.header_bytes_max;
                Ok(netscaler::read_header(connection, *magic, bytes_max, begun).await?)
            }
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

/// The kinds of handshakes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum StepKind {
    NetscalerCip,
    ProxyHeader,
    Tls,
}

impl StepKind {
    /// As they follow each other on the wire.
    const IN_ORDER: [Self; 3] = [Self::NetscalerCip, Self::ProxyHeader, Self::Tls];
}

impl HandshakeStep {
    fn kind(&self) -> StepKind {
        match self {
            Self::NetscalerCip(_) => StepKind::NetscalerCip,
            Self::ProxyHeader => StepKind::ProxyHeader,
            Self::Tls(_) => StepKind::Tls,
        }
    }

    /// The reason for refusing a connection that timed out; `begun` says whether anything was
    /// received.
    fn timeout_error(&self, begun: bool) -> HandshakeError {
        match self {
            Self::NetscalerCip(_) => HandshakeError::CipTimedOut(begun),
            Self::ProxyHeader => HandshakeError::TimedOut { is_partial: begun },
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

    /// A header of the legacy form for 192.0.2.9:9.
    fn netscaler_header(magic: u32) -> Vec<u8> {
        let ipv4 = [
            0x45, 0, 0, 40, 0, 0, 0, 0, 64, 6, 0, 0, 192, 0, 2, 9, 192, 0, 2, 8,
        ];
        let mut tcp = [0; 20];
        (tcp[1], tcp[3]) = (9, 80);
        [&magic.to_be_bytes()[..], &40_u32.to_be_bytes(), &ipv4, &tcp].concat()
    }

    #[test]
    fn a_netscalers_header_comes_before_that_of_a_proxy() {
        block_on(async {
            for rule_expects in [false, true] {
                let (transport, mut peer) = pair();
                let magic = if rule_expects { 0 } else { 7 };
                peer.write_all(&netscaler_header(magic)).unwrap();
                peer.write_all(b"PROXY UNKNOWN\r\nGET /").unwrap();
                let netscaler = Handshake {
                    step: HandshakeStep::NetscalerCip(7),
                    wait: Duration::from_secs(5),
                };
                let steps = [header(5000), netscaler];
                let steps = if rule_expects {
                    &steps[..1]
                } else {
                    &steps[..]
                };
                let expected = ExpectedHeaders {
                    netscaler_cip: true,
                    proxy: true,
                };
                let established = Handshakes::new(steps, LIMITS)
                    .expect(expected, &FrontendTimeouts::default())
                    .run(transport)
                    .await
                    .unwrap();
                assert_eq!(established.read_ahead, b"GET /");
                assert!(established.proxied.is_some());
                let (source, _) = established.inserted.unwrap();
                assert_eq!(source, "192.0.2.9:9".parse().unwrap());
            }
        })
        .unwrap();
    }

    #[test]
    fn a_netscalers_header_may_be_wrong_late_or_cut() {
        block_on(async {
            let whole = netscaler_header(7);
            for (bytes, closes, error) in [
                (&whole[..30], false, HandshakeError::CipTimedOut(true)),
                (&b""[..], false, HandshakeError::CipTimedOut(false)),
                (&whole[..30], true, HandshakeError::CipTruncated),
                (&b""[..], true, HandshakeError::CipClosed),
                (&[0, 0, 1][..], false, HandshakeError::CipMagic),
                (
                    &[0, 0, 0, 7, 0, 0, 0, 0, 0x20, 0, 0, 0][..],
                    false,
                    HandshakeError::CipProtocol,
                ),
            ] {
                let (transport, mut peer) = pair();
                peer.write_all(bytes).unwrap();
                if closes {
                    drop(peer);
                }
                let netscaler = Handshake {
                    step: HandshakeStep::NetscalerCip(7),
                    wait: Duration::from_millis(10),
                };
                let steps = [netscaler];
                let refused = Handshakes::new(&steps, LIMITS).run(transport).await;
                assert_eq!(refused.unwrap_err().error, error);
            }
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
            assert_eq!(
                refused.unwrap_err().error,
                HandshakeError::TimedOut { is_partial: true }
            );
            let (transport, _peer) = pair();
            let refused = Handshakes::new(&steps[1..], LIMITS).run(transport).await;
            assert_eq!(
                refused.unwrap_err().error,
                HandshakeError::TimedOut { is_partial: false }
            );
        })
        .unwrap();
    }
}
