//! `agent-check`: asks an agent program how its server is.

use std::sync::Arc;

use ballast_engine::{Backend, Server};
use ballast_expr::bytes_of_text;
use ballast_health::{AGENT_REPLY_BYTES_MAX, CheckOutcome, CheckStatus, parse_agent};

use super::controller::HealthController;
use super::probe_run::{ProbeEnd, ProbeFailure, ProbeRun};
use crate::connect::net_address;

/// Asks the agent once and tells the controller. An agent that cannot be reached, or does not end
/// its line, is shown in the statistics and changes nothing.
pub(super) async fn ask(
    controller: &HealthController,
    backend: &Arc<Backend>,
    server: &Arc<Server>,
) {
    let probe = ProbeRun::new(controller, backend, server);
    match answer(&probe, server).await {
        Ok(answer) => {
            let mut said = parse_agent(&answer);
            if backend.has_static_weights() {
                said = said.with_static_weight(u32::from(server.model.weight));
            }
            let duration_ms = probe
                .verdict(CheckStatus::Checked)
                .duration_ms
                .unwrap_or_default();
            controller.update_health(backend.name(), server.name(), |health, now_ms| {
                health.agent_done(now_ms, &said, duration_ms)
            });
        }
        Err(failure) => {
            let verdict: CheckOutcome = probe.verdict(failure.status).with_info(failure.text);
            controller.update_health(backend.name(), server.name(), |health, _| {
                health.agent_unreachable(verdict)
            });
        }
    }
}

async fn answer(probe: &ProbeRun<'_>, server: &Server) -> Result<Vec<u8>, ProbeFailure> {
    let checks = server.checks();
    probe.limit(checks.agent_interval.unwrap_or(checks.interval));
    let target = {
        let current = server.state.current_address();
        let address = checks.agent_address.as_ref().or(current.address.as_ref());
        let port = |address: &ballast_model::Address| checks.agent_port.or(address.port());
        address.and_then(|address| net_address(address, port(address)))
    };
    let target = target.ok_or_else(|| ProbeFailure {
        status: CheckStatus::SocketError,
        text: "No port or address to check".to_owned(),
    })?;
    let transport = probe.connect_to(&target, ProbeEnd::Order).await?;
    if let Some(time) = probe.backend.model.timeouts.check {
        probe.limit(time);
    }
    if let Some(question) = &checks.agent_send {
        probe.send(&transport, &bytes_of_text(question)).await?;
    }
    let mut answer = Vec::new();
    loop {
        if answer.iter().any(|byte| matches!(byte, b'\r' | b'\n')) {
            return Ok(answer);
        }
        let more = probe.receive(&transport, &mut answer, AGENT_REPLY_BYTES_MAX);
        match more.await {
            Ok(true) => {}
            Ok(false) => return Err(incomplete(&answer, CheckStatus::L7Timeout)),
            Err(failure) if failure.status == CheckStatus::SocketError && !answer.is_empty() => {
                return Err(incomplete(&answer, failure.status));
            }
            Err(failure) => return Err(failure),
        }
    }
}

/// Why an answer without the end of its line says nothing; `status` is for one that began.
fn incomplete(answer: &[u8], status: CheckStatus) -> ProbeFailure {
    let (status, text) = match answer.is_empty() {
        true => (
            CheckStatus::L7Response,
            "TCPCHK got an empty response at step 2",
        ),
        false => (status, "Ignoring incomplete line from agent"),
    };
    ProbeFailure {
        status,
        text: text.to_owned(),
    }
}
