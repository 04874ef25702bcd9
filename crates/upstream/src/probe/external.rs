//! `option external-check`: a program decides (configuration manual, "external-check command").

use std::io;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use ballast_health::{CheckOutcome, CheckStatus};
use ballast_model::Address;
use ballast_net::is_root;
use ballast_worker::{now, run_blocking, sleep};

use super::probe_run::ProbeRun;

/// A program and its `PATH`.
pub(super) struct ExternalCheck {
    command: String,
    path: Option<String>,
}

/// The argument in place of an address or port that a proxy or server does not have.
const NOT_USED: &str = "NOT_USED";

/// The exit status that is reported for a program that could not be started.
const NOT_STARTED: u16 = 255;

/// How often the program is polled for its end.
const POLL_PERIOD: Duration = Duration::from_millis(5);

impl ExternalCheck {
    pub(super) fn new(command: &str, path: Option<&str>) -> Self {
        Self {
            command: command.to_owned(),
            path: path.map(str::to_owned),
        }
    }

    /// Runs the program once: exit status 0 means healthy. It is killed when it takes longer than
    /// `inter`, or `timeout check`.
    pub(super) async fn run(&self, probe: &ProbeRun<'_>) -> CheckOutcome {
        let failed = |code| probe.verdict(CheckStatus::ProcessError).with_code(code);
        let global = &probe.controller.generation().config.global;
        if !global.external_check {
            return failed(NOT_STARTED).with_info("external-check is not allowed");
        }
        if !global.fork_allowed && !is_root() {
            // HAProxy gives up the right to fork (`insecure-fork-wanted`); the text is the system's
            // error for it.
            return probe
                .verdict(CheckStatus::SocketError)
                .with_info("Resource temporarily unavailable");
        }
        if let Some(time) = probe.backend.model.timeouts.check {
            probe.limit(time);
        }
        let mut command = self.command(probe);
        // Starting a program may block on the disk.
        let started = run_blocking(move || command.spawn()).await;
        let mut child = match started {
            Ok(Ok(child)) => RunningProgram(child),
            Ok(Err(error)) => return failed(NOT_STARTED).with_info(error.kind().to_string()),
            Err(_) => return failed(NOT_STARTED),
        };
        loop {
            match child.0.try_wait() {
                Ok(Some(status)) => {
                    return match status.code() {
                        Some(0) => probe.verdict(CheckStatus::ProcessOk).with_code(0),
                        Some(code) => failed(u16::try_from(code).unwrap_or(NOT_STARTED)),
                        None => failed(NOT_STARTED),
                    };
                }
                Ok(None) if now() >= probe.until() => {
                    return probe.verdict(CheckStatus::ProcessTimeout).with_code(0);
                }
                Ok(None) => sleep(POLL_PERIOD).await,
                Err(error) => return failed(NOT_STARTED).with_info(error.kind().to_string()),
            }
        }
    }

    fn command(&self, probe: &ProbeRun<'_>) -> Command {
        let (backend, server) = (probe.backend, probe.server);
        let config = &probe.controller.generation().config;
        let bind = config
            .frontend(backend.name())
            .and_then(|frontend| frontend.binds.first())
            .map(|bind| &bind.address);
        let proxy = bind.map(ends);
        let current = server.state.current_address();
        let reached = current.address.as_ref().map(ends);
        let or_not_used = |end: &Option<(String, Option<u16>)>| match end {
            Some((address, port)) => (
                address.clone(),
                port.map_or(NOT_USED.to_owned(), |port| port.to_string()),
            ),
            None => (NOT_USED.to_owned(), NOT_USED.to_owned()),
        };
        let (proxy_address, proxy_port) = or_not_used(&proxy);
        let (mut server_address, mut server_port) = or_not_used(&reached);
        let checks = server.checks();
        if let Some(address) = &checks.address {
            server_address = ends(address).0;
        }
        if let Some(port) = checks.port {
            server_port = port.to_string();
        }
        let own = |text: &str| {
            if text == NOT_USED {
                String::new()
            } else {
                text.to_owned()
            }
        };
        let mut command = Command::new(&self.command);
        command
            .args([&proxy_address, &proxy_port, &server_address, &server_port])
            .env_clear()
            .env("HAPROXY_PROXY_ADDR", own(&proxy_address))
            .env("HAPROXY_PROXY_ID", backend.model.common.id.to_string())
            .env("HAPROXY_PROXY_NAME", backend.name())
            .env("HAPROXY_PROXY_PORT", own(&proxy_port))
            .env("HAPROXY_SERVER_ADDR", own(&server_address))
            .env(
                "HAPROXY_SERVER_CURCONN",
                server.state.sessions.current().to_string(),
            )
            .env("HAPROXY_SERVER_ID", server.model.id.to_string())
            .env(
                "HAPROXY_SERVER_MAXCONN",
                server.state.connection_count_max(&server.model).to_string(),
            )
            .env("HAPROXY_SERVER_NAME", server.name())
            .env("HAPROXY_SERVER_PORT", own(&server_port))
            .env(
                "HAPROXY_SERVER_PROTO",
                if backend.is_http() { "http" } else { "tcp" },
            )
            .env(
                "HAPROXY_SERVER_SSL",
                if server.traffic_tls().is_some() {
                    "1"
                } else {
                    "0"
                },
            )
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        if let Some(path) = &self.path {
            command.env("PATH", path);
        }
        command
    }
}

/// Address and port, as programs receive them.
fn ends(address: &Address) -> (String, Option<u16>) {
    match address {
        Address::Inet(known) => (known.ip().to_string(), Some(known.port())),
        Address::Name { host, port, .. } => (host.clone(), Some(*port)),
        Address::Unix(path) => (path.clone(), None),
        other => (other.to_string(), None),
    }
}

/// A running program; dropping this kills it.
struct RunningProgram(Child);

impl Drop for RunningProgram {
    fn drop(&mut self) {
        let ended: io::Result<Option<_>> = self.0.try_wait();
        if matches!(ended, Ok(None)) {
            // It may have ended by itself: then there is nothing to kill.
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }
}
