//! `agent-check`: asks a program beside the server how the server is.

use std::sync::Arc;

use ballast_engine::{Backend, Server};
use ballast_health::{CheckStatus, Verdict, parse_agent};
use ballast_wire::agent::REPLY_BYTES_MAX;

use super::errand::{Errand, Failure};
use super::keeper::Keeper;
use crate::connect::net_address;

/// Asks once and tells the keeper. An agent that cannot be asked, or does not end its line, is
/// shown and has no say.
pub(super) async fn ask(keeper: &Keeper, backend: &Arc<Backend>, server: &Arc<Server>) {
    let errand = Errand::new(keeper, backend, server);
    match answer(&errand, server).await {
        Ok(answer) => {
            let said = parse_agent(&answer);
            let duration_ms = errand
                .verdict(CheckStatus::Checked)
                .duration_ms
                .unwrap_or_default();
            keeper.tell(backend.name(), server.name(), |health, now_ms| {
                health.agent_done(now_ms, &said, duration_ms)
            });
        }
        Err(failure) => {
            let verdict: Verdict = errand.verdict(failure.status).with_info(failure.text);
            keeper.tell(backend.name(), server.name(), |health, _| {
                health.agent_unheard(verdict)
            });
        }
    }
}

async fn answer(errand: &Errand<'_>, server: &Server) -> Result<Vec<u8>, Failure> {
    let checks = server.checks();
    errand.limit(checks.agent_interval.unwrap_or(checks.interval));
    let target = {
        let reach = server.state.reach();
        let address = checks.agent_address.as_ref().or(reach.address.as_ref());
        let port = |address: &ballast_model::Address| checks.agent_port.or(address.port());
        address.and_then(|address| net_address(address, port(address)))
    };
    let target = target.ok_or_else(|| Failure {
        status: CheckStatus::SocketError,
        text: "No port or address to check".to_owned(),
    })?;
    let stream = errand.reach(&target).await?;
    if let Some(time) = errand.backend.model.timeouts.check {
        errand.limit(time);
    }
    if let Some(question) = &checks.agent_send {
        errand.send(&stream, question.as_bytes()).await?;
    }
    let mut answer = Vec::new();
    loop {
        if answer.iter().any(|byte| matches!(byte, b'\r' | b'\n')) {
            return Ok(answer);
        }
        let more = errand
            .receive(&stream, &mut answer, REPLY_BYTES_MAX)
            .await?;
        if !more {
            return Err(Failure {
                status: CheckStatus::L7Timeout,
                text: "Ignoring incomplete line from agent".to_owned(),
            });
        }
    }
}
