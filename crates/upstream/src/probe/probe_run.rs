//! One run of a probe: its time limits, its connections, its failures.

use std::cell::Cell;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ballast_engine::{Backend, Server, TlsConnectionCount};
use ballast_health::{CheckOutcome, CheckStatus};
use ballast_model::{Address, CheckConnect, CheckPort, HttpProtocol, PortSpec};
use ballast_net as net;
use ballast_transport::{HandshakeFailure, Transport};
use ballast_wire::proxy_encode::{V2Facts, V2Options, encode_v1, encode_v2};
use ballast_worker::{Deadline, DeadlinePassed, Stream, now};

use super::controller::HealthController;
use super::facts::{ProbeFacts, ProbeParts};
use super::variables::ProbeVariables;
use crate::connect::{net_address, options};
use crate::key::ConnectSource;
use crate::socks4::{self, Socks4Failure};
use crate::tls::{ServerHandshake, failure_text};

/// How a connection of a probe ends.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum ProbeEnd {
    /// With a reset, which leaves no TIME_WAIT.
    Reset,
    /// In order: for servers that take a reset for an error, as mail servers and databases do. `linger` of a
    /// rule asks for it, too.
    Order,
    /// With a reset before the last segment of the connect: the server's program sees no connection. For
    /// probes that only connect.
    Unseen,
}

/// One run of a probe.
pub(super) struct ProbeRun<'a> {
    pub(super) controller: &'a HealthController,
    /// The name of this machine among load balancers.
    pub(super) node: String,
    pub(super) backend: &'a Arc<Backend>,
    pub(super) server: &'a Arc<Server>,
    pub(super) deadline: Deadline,
    pub(super) variables: ProbeVariables<'a>,
    begun: Instant,
    until: Cell<Instant>,
    /// Counts the TLS of the present connection.
    tls: Cell<Option<TlsConnectionCount>>,
    /// Whether the handshake of the present connection agreed on HTTP/2.
    agreed_on_http2: Cell<bool>,
}

/// Why a probe cannot continue.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct ProbeFailure {
    pub(super) status: CheckStatus,
    /// The system's error text; empty for a timeout.
    pub(super) text: String,
}

impl ProbeFailure {
    pub(super) fn timeout(status: CheckStatus) -> Self {
        Self {
            status,
            text: String::new(),
        }
    }

    /// Describes a connection that failed.
    pub(super) fn broken(error: &io::Error) -> Self {
        let text = match error.kind() {
            io::ErrorKind::ConnectionReset => {
                "ECONNRESET returned by OS (Connection reset by peer)".to_owned()
            }
            io::ErrorKind::BrokenPipe => "EPIPE returned by OS (Broken pipe)".to_owned(),
            _ => words(error),
        };
        Self {
            status: CheckStatus::SocketError,
            text,
        }
    }

    /// Describes a server that closed before its answer was whole, or sent something else.
    pub(super) fn no_answer() -> Self {
        Self {
            status: CheckStatus::SocketError,
            text: String::new(),
        }
    }

    /// Describes a handshake that failed, `is_named` where a name was sent.
    fn of_failed_handshake(failure: &HandshakeFailure, is_named: bool) -> Self {
        Self {
            status: CheckStatus::L6Response,
            text: failure_text(failure, is_named).to_owned(),
        }
    }

    fn unreachable(error: &net::SystemCallError) -> Self {
        Self {
            status: if error.kind().is_local_resource() {
                CheckStatus::SocketError
            } else {
                CheckStatus::L4Connection
            },
            text: words(error.io()),
        }
    }
}

/// The system's text for an error, without its number.
fn words(error: &io::Error) -> String {
    if error
        .get_ref()
        .is_some_and(|inner| inner.is::<ballast_tls::rustls::Error>())
    {
        return "SSL fatal error".to_owned();
    }
    let text = error.to_string();
    match text.split_once(" (os error") {
        Some((words, _)) => words.to_owned(),
        None => text,
    }
}

impl<'a> ProbeRun<'a> {
    /// What expressions ask for.
    pub(super) fn parts(&self) -> ProbeParts<'_> {
        ProbeParts {
            controller: self.controller,
            node: &self.node,
            backend: self.backend,
            server: self.server,
            variables: &self.variables,
        }
    }

    pub(super) fn new(
        controller: &'a HealthController,
        backend: &'a Arc<Backend>,
        server: &'a Arc<Server>,
    ) -> Self {
        let begun = now();
        Self {
            controller,
            node: controller.node(),
            backend,
            server,
            deadline: Deadline::new(),
            variables: ProbeVariables::new(controller),
            begun,
            until: Cell::new(begun + server.model.checks.interval),
            tls: Cell::default(),
            agreed_on_http2: Cell::default(),
        }
    }

    /// A verdict at the present moment.
    pub(super) fn verdict(&self, status: CheckStatus) -> CheckOutcome {
        let elapsed = now().saturating_duration_since(self.begun);
        CheckOutcome::new(
            status,
            u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX),
        )
    }

    /// When the present operation times out.
    pub(super) fn until(&self) -> Instant {
        self.until.get()
    }

    /// Gives the whole run another time limit, from now.
    pub(super) fn limit(&self, time: Duration) {
        self.until.set(now() + time);
    }

    /// Waits for `work` within the time limit.
    pub(super) async fn within<F: Future>(&self, work: F) -> Result<F::Output, DeadlinePassed> {
        self.deadline.set(self.until.get());
        self.deadline.guard(work).await
    }

    /// Opens a connection, as a `connect` rule or the server's line says, sends the PROXY header if
    /// one is wanted, and makes the TLS handshake if one is.
    ///
    /// With `timeout check`, connecting may take `timeout connect` or `inter`, whichever is
    /// shorter, handshake included, and each response `timeout check` after it; without, everything
    /// together may take `inter`.
    pub(super) async fn open(
        &self,
        rule: Option<&CheckConnect>,
        end: ProbeEnd,
    ) -> Result<Transport, ProbeFailure> {
        let timeouts = &self.backend.model.timeouts;
        let interval = self.server.model.checks.interval;
        if timeouts.check.is_some() {
            let connect = timeouts.connect.unwrap_or(interval).min(interval);
            self.until.set(now() + connect);
        }
        let target = self.target(rule).ok_or_else(|| ProbeFailure {
            status: CheckStatus::SocketError,
            text: "No port or address to check".to_owned(),
        })?;
        let seals = ProbeTls::of(self.server, rule).is_some();
        let mut transport = match self.socks4(rule) {
            None => self.connect_to(&target, end).await?,
            Some(proxy) => self.connect_through(proxy, &target, end, seals).await?,
        };
        self.agreed_on_http2.set(false);
        let mut greeting = self.greeting(rule);
        if let Some(tls) = ProbeTls::of(self.server, rule) {
            transport = self
                .handshake(transport, std::mem::take(&mut greeting), tls)
                .await?;
        }
        let is_in_order = end == ProbeEnd::Order || rule.is_some_and(|rule| rule.linger);
        if !is_in_order {
            // The connections of a probe must not leave TIME_WAIT, here or at the server.
            let _ = transport.reset_on_close();
        }
        if let Some(time) = timeouts.check {
            self.limit(time);
        }
        if !greeting.is_empty() {
            self.send(&transport, &greeting).await?;
        }
        Ok(transport)
    }

    /// The version of HTTP on the connection that was opened with `rule`: what the rule says, else
    /// `check-proto` and `proto` of the line where that applies, else what TLS agreed on.
    pub(super) fn protocol(&self, rule: Option<&CheckConnect>) -> HttpProtocol {
        let line = &self.server.model;
        let by_line = || line.checks.protocol.or(line.protocol);
        let is_by_line = rule.is_none_or(|rule| rule.default);
        rule.and_then(|rule| rule.protocol)
            .or_else(|| is_by_line.then(by_line).flatten())
            .unwrap_or(match self.agreed_on_http2.get() {
                true => HttpProtocol::Http2,
                false => HttpProtocol::Http1,
            })
    }

    /// Sends the PROXY header, and makes the handshake.
    async fn handshake(
        &self,
        transport: Transport,
        greeting: Vec<u8>,
        tls: ProbeTls<'_>,
    ) -> Result<Transport, ProbeFailure> {
        let is_named = tls.sni.is_some();
        let Ok(socket) = transport.into_clear() else {
            return Err(ProbeFailure::timeout(CheckStatus::SocketError));
        };
        let Some(count) = self.server.tls_counters.enter() else {
            return Err(ProbeFailure::timeout(CheckStatus::SocketError));
        };
        self.tls.set(Some(count));
        let sealing = async {
            let handshake = ServerHandshake::new(self.server, tls.sni.map(str::as_bytes))?;
            let sent = socket.write_all(&greeting).await;
            sent.map_err(|_| HandshakeFailure::Closed { had_bytes: false })?;
            let (transport, facts) = handshake.offer(tls.protocols).run(socket).await?;
            self.agreed_on_http2
                .set(facts.protocol.as_deref() == Some(b"h2"));
            // A probe may have nothing to send: the server gets our last flight all the same.
            let sent = transport.write_all(&[]).await;
            sent.map_err(|_| HandshakeFailure::Closed { had_bytes: true })?;
            Ok(transport)
        };
        match self.within(Box::pin(sealing)).await {
            Ok(Ok(transport)) => Ok(transport),
            Ok(Err(failure)) => Err(ProbeFailure::of_failed_handshake(&failure, is_named)),
            Err(DeadlinePassed) => Err(ProbeFailure::timeout(CheckStatus::L6Timeout)),
        }
    }

    /// Connects to `target` with the options of the server's line.
    pub(super) async fn connect_to(
        &self,
        target: &net::Address,
        end: ProbeEnd,
    ) -> Result<Transport, ProbeFailure> {
        let mut options = options(
            &self.backend.connecting,
            &self.server.model,
            ConnectSource::Configured,
            net::PacketOptions::default(),
        );
        options.smart_connect |= end == ProbeEnd::Unseen;
        match self.within(Stream::connect(target, &options)).await {
            Ok(Ok(stream)) => Ok(stream.into()),
            Ok(Err(error)) => Err(ProbeFailure::unreachable(&error)),
            Err(DeadlinePassed) => Err(ProbeFailure::timeout(CheckStatus::L4Timeout)),
        }
    }

    /// The SOCKS4 proxy that a connection goes through, if any.
    fn socks4(&self, rule: Option<&CheckConnect>) -> Option<SocketAddr> {
        let by_line = self.server.model.checks.via_socks4;
        let is_wanted = match rule {
            None => by_line,
            Some(rule) => rule.via_socks4 || (rule.default && by_line),
        };
        self.server.model.socks4.filter(|_| is_wanted)
    }

    /// Connects to `target` through a proxy; `seals` says that TLS is next.
    async fn connect_through(
        &self,
        proxy: SocketAddr,
        target: &net::Address,
        end: ProbeEnd,
        seals: bool,
    ) -> Result<Transport, ProbeFailure> {
        let failed = |failure: Socks4Failure| ProbeFailure {
            status: match (failure, seals) {
                (Socks4Failure::Unsupported, _) => CheckStatus::L4Connection,
                (_, true) => CheckStatus::L6Response,
                (_, false) => CheckStatus::SocketError,
            },
            text: failure.to_string(),
        };
        let destination = socks4::destination(target).map_err(failed)?;
        let transport = self.connect_to(&net::Address::Ip(proxy), end).await?;
        let Ok(stream) = transport.into_clear() else {
            return Err(ProbeFailure::timeout(CheckStatus::SocketError));
        };
        match self
            .within(Box::pin(socks4::pass(&stream, destination)))
            .await
        {
            Ok(Ok(())) => Ok(stream.into()),
            Ok(Err(failure)) => Err(failed(failure)),
            Err(DeadlinePassed) => Err(ProbeFailure::timeout(match seals {
                true => CheckStatus::L6Timeout,
                false => CheckStatus::L7Timeout,
            })),
        }
    }

    /// Sends bytes.
    pub(super) async fn send(
        &self,
        transport: &Transport,
        bytes: &[u8],
    ) -> Result<(), ProbeFailure> {
        match self.within(transport.write_all(bytes)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(ProbeFailure::broken(&error)),
            Err(DeadlinePassed) => Err(ProbeFailure::timeout(CheckStatus::L7Timeout)),
        }
    }

    /// Receives more bytes at the end of `received`, up to `bytes_max` in all; false at the end of
    /// the connection.
    pub(super) async fn receive(
        &self,
        transport: &Transport,
        received: &mut Vec<u8>,
        bytes_max: usize,
    ) -> Result<bool, ProbeFailure> {
        let held = received.len();
        let room = bytes_max.saturating_sub(held).min(CHUNK_BYTES);
        if room == 0 {
            return Ok(false);
        }
        received.resize(held + room, 0);
        let outcome = self.within(transport.read(&mut received[held..])).await;
        let count = match &outcome {
            Ok(Ok(count)) => *count,
            _ => 0,
        };
        received.truncate(held + count);
        match outcome {
            Ok(Ok(count)) => Ok(count > 0),
            Ok(Err(error)) => Err(ProbeFailure::broken(&error)),
            Err(DeadlinePassed) => Err(ProbeFailure::timeout(CheckStatus::L7Timeout)),
        }
    }

    /// As [`Self::receive`], but what a clear connection brought before it was reset is judged as if
    /// the server had closed it.
    pub(super) async fn receive_to_end(
        &self,
        transport: &Transport,
        received: &mut Vec<u8>,
        bytes_max: usize,
    ) -> Result<bool, ProbeFailure> {
        let outcome = self.receive(transport, received, bytes_max).await;
        let is_judged = !received.is_empty() && transport.as_clear().is_some();
        match outcome {
            Err(failure) if failure.status == CheckStatus::SocketError && is_judged => Ok(false),
            outcome => outcome,
        }
    }

    fn target(&self, rule: Option<&CheckConnect>) -> Option<net::Address> {
        let checks = self.server.checks();
        let current = self.server.state.current_address();
        let own = current.address.as_ref();
        let address = rule
            .and_then(|rule| rule.address.as_ref())
            .or(checks.address.as_ref())
            .or(own)?;
        let written = |address: &Address| address.port().filter(|port| *port != 0);
        let own_port = match self.server.port() {
            PortSpec::Fixed => own.and_then(written),
            PortSpec::Offset(_) => None,
        };
        let port = rule
            .and_then(|rule| self.port(rule.port.as_ref()?))
            .or(checks.port)
            .or_else(|| written(address))
            .or(own_port);
        net_address(address, port)
    }

    /// The port of a `connect` rule, if it gives one.
    fn port(&self, said: &CheckPort) -> Option<u16> {
        match said {
            CheckPort::Fixed(port) => Some(*port),
            CheckPort::Expr(expr) => {
                let seen = ProbeFacts {
                    probe: self.parts(),
                    response: None,
                    data: &[],
                    is_whole: false,
                };
                seen.number(expr).filter(|port| *port != 0)
            }
        }
    }

    /// The PROXY header to send first, if any (configuration manual, "check-send-proxy").
    fn greeting(&self, rule: Option<&CheckConnect>) -> Vec<u8> {
        let model = &self.server.model;
        let checks = &model.checks;
        let by_line = checks.sends_proxy_header
            || (model.send_proxy.is_some() && checks.port.is_none() && checks.address.is_none());
        let wanted = match rule {
            None => by_line,
            Some(rule) if rule.default => by_line || rule.send_proxy,
            Some(rule) => rule.send_proxy,
        };
        let mut greeting = Vec::new();
        if !wanted {
            return greeting;
        }
        match &model.send_proxy {
            Some(proxy) if proxy.version == 2 => {
                let options = V2Options {
                    crc32c: proxy.crc32c,
                    ..V2Options::default()
                };
                // Without addresses it is the LOCAL command, which is never too long.
                let _ = encode_v2(&mut greeting, None, options, &V2Facts::default());
            }
            _ => encode_v1(&mut greeting, None),
        }
        greeting
    }
}

/// TLS of one connection of a probe.
struct ProbeTls<'a> {
    sni: Option<&'a str>,
    /// The protocols to offer; those of the server's line when `None`.
    protocols: Option<&'a [String]>,
}

impl<'a> ProbeTls<'a> {
    /// What a `connect` rule says; what the server's line says where there is no rule, or one with
    /// `default`. `None` for a clear connection.
    fn of(server: &'a Server, rule: Option<&'a CheckConnect>) -> Option<Self> {
        let line = server.model.tls.as_deref();
        let by_line = rule.is_none_or(|rule| rule.default);
        let by_rule = rule.and_then(|rule| rule.tls.as_ref());
        let line_seals = by_line && line.is_some_and(|line| line.probes);
        if by_rule.is_none() && !line_seals {
            return None;
        }
        let line = line.filter(|_| by_line);
        let sni = by_rule.and_then(|tls| tls.sni.as_deref());
        let protocols = by_rule.and_then(|tls| tls.alpn.as_deref());
        Some(Self {
            sni: sni.or_else(|| line?.check_sni.as_deref()),
            protocols: protocols.or_else(|| line?.check_alpn.as_deref()),
        })
    }
}

/// How much is read at once, in bytes.
const CHUNK_BYTES: usize = 4096;

/// The status of a probe that only connected.
pub(super) fn connected(transport: &Transport) -> CheckStatus {
    match transport.as_clear() {
        Some(_) => CheckStatus::L4Ok,
        None => CheckStatus::L6Ok,
    }
}
