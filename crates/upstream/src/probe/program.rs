//! A compiled probe, used for all its runs.

use std::sync::Arc;

use ballast_engine::{Backend, Server};
use ballast_health::CheckOutcome;
use ballast_model::{CheckMethod, ProtocolCheck};

use super::controller::HealthController;
use super::external::ExternalCheck;
use super::probe_run::{ProbeEnd, ProbeRun, connected};
use super::{http, protocol, tcp};

/// A probe of one kind.
pub(super) enum CompiledProbe {
    /// A connection that opens is enough.
    Connect(&'static str),
    /// Requests and what is expected of the responses.
    Http(Box<http::HttpCheckScript>),
    /// Bytes and what is expected in return.
    Tcp(tcp::TcpCheckScript),
    /// A little of a protocol.
    Protocol(ProtocolCheck),
    /// An external program decides.
    External(ExternalCheck),
}

impl CompiledProbe {
    pub(super) fn of(check: &CheckMethod) -> Self {
        match check {
            CheckMethod::Connect => Self::Connect(""),
            CheckMethod::Http {
                rules,
                disable_on_404,
                send_state,
            } => Self::Http(Box::new(http::HttpCheckScript::new(
                rules,
                *disable_on_404,
                *send_state,
            ))),
            CheckMethod::Tcp { rules, .. } if rules.is_empty() => Self::Connect(tcp::INITIAL_STEP),
            CheckMethod::Tcp { rules, .. } => Self::Tcp(tcp::TcpCheckScript::new(rules)),
            CheckMethod::Protocol(protocol) => Self::Protocol(protocol.clone()),
            CheckMethod::External { command, path } => {
                Self::External(ExternalCheck::new(command, path.as_deref()))
            }
        }
    }

    /// Whether it can run for a server whose address is not known.
    pub(super) fn needs_no_address(&self) -> bool {
        matches!(self, Self::External(_))
    }

    /// Runs it once.
    pub(super) async fn run(
        &self,
        controller: &HealthController,
        backend: &Arc<Backend>,
        server: &Arc<Server>,
    ) -> CheckOutcome {
        let mut probe = ProbeRun::new(controller, backend, server);
        match self {
            Self::Connect(step) => match probe.open(None, ProbeEnd::Unseen).await {
                Ok(transport) => probe.verdict(connected(&transport)),
                Err(failure) => {
                    let text = format!("{}{step}", failure.text);
                    probe.verdict(failure.status).with_info(text)
                }
            },
            Self::Http(script) => Box::pin(http::run(script, &mut probe)).await,
            Self::Tcp(script) => Box::pin(tcp::run(script, &mut probe)).await,
            Self::Protocol(protocol) => Box::pin(protocol::run(protocol, &probe)).await,
            Self::External(external) => Box::pin(external.run(&probe)).await,
        }
    }
}
