//! The requests of HTTP checks (configuration manual, "http-check send" and "send-state").

use ballast_expr::bytes_of_text;
use ballast_health::Operational;
use ballast_message::{NoRoom, Request, Version};
use ballast_model::HttpCheckSend;
use ballast_mux::{announce_hop, take_connection_end};

use super::controller::farm_weight;
use super::facts::ProbeFacts;
use super::probe_run::ProbeRun;

/// The request of a `send` rule.
pub(super) fn request(
    send: &HttpCheckSend,
    body: Option<&[u8]>,
    state: Option<&str>,
    seen: ProbeFacts<'_>,
) -> Result<Request, NoRoom> {
    let mut request = Request::default();
    request.set_method(&bytes_of_text(send.method.as_deref().unwrap_or("OPTIONS")))?;
    match &send.uri_format {
        Some(format) => request.set_target(&seen.bytes(format))?,
        None => request.set_target(&bytes_of_text(send.uri.as_deref().unwrap_or("/")))?,
    }
    let version = match send.version.as_deref() {
        None | Some("HTTP/1.0") => Version::Http10,
        Some(_) => Version::Http11,
    };
    request.set_version(version);
    for (name, format) in &send.headers {
        let value = seen.bytes(format);
        let is = |known: &str| name.eq_ignore_ascii_case(known);
        // The length of the body is computed here, and a field without a value is not sent.
        if is("content-length") || is("transfer-encoding") || value.is_empty() {
            continue;
        }
        request.fields_mut().add(&bytes_of_text(name), &value)?;
    }
    if let Some(state) = state {
        let name = b"x-haproxy-server-state";
        request.fields_mut().add(name, state.as_bytes())?;
    }
    if let Some(body) = body {
        let length = body.len().to_string();
        request
            .fields_mut()
            .add(b"content-length", length.as_bytes())?;
    }
    let says_connection = request.fields().contains(b"connection");
    let said = take_connection_end(request.fields_mut())?;
    announce_hop(&mut request, said.close || !says_connection)?;
    Ok(request)
}

/// The header that `http-check send-state` adds.
pub(super) fn state_of(probe: &ProbeRun<'_>) -> String {
    let (backend, server) = (probe.backend, probe.server);
    let word = {
        let health = server.state.health();
        let text = health.status_text(&health, None);
        match (text.split(' ').next(), health.operational()) {
            (Some("UP" | "DOWN" | "NOLB"), _) => text,
            (_, Operational::Stopped) => "DOWN".to_owned(),
            (_, Operational::Stopping) => "NOLB".to_owned(),
            (_, Operational::Running | Operational::Starting) => "UP".to_owned(),
        }
    };
    let current = server.state.current_address();
    let (address, port) = match &current.address {
        Some(ballast_model::Address::Inet(known)) => {
            (known.ip().to_string(), known.port().to_string())
        }
        Some(known) => (
            known
                .port()
                .map_or("unix".to_owned(), |_| known.to_string()),
            known
                .port()
                .map_or("unix".to_owned(), |port| port.to_string()),
        ),
        None => (String::new(), "0".to_owned()),
    };
    format!(
        "{word}; address={address}; port={port}; name={}/{}; node={}; weight={}/{}; scur={}/{}; \
         qcur={}",
        backend.name(),
        server.name(),
        &probe.node,
        server.state.weight(),
        farm_weight(backend),
        server.state.sessions.current(),
        backend.state.sessions.current(),
        server.state.queue.current(),
    )
}
