//! Commands about backends and their servers.

use std::sync::Arc;

use ballast_engine::{Backend, Generation, Server};
use ballast_health::{Admin, Snapshot};
use ballast_model::{Address, PortSpec};
use ballast_stats::ServerHealth;

use super::anonymous::NameMasking;
use super::target::{TargetServer, backend_index, generation};
use crate::answer::CommandAnswer;
use crate::command::{Command, CommandCall};
use crate::shared::ProcessRole;

pub(crate) static COMMANDS: &[Command] = &[
    Command::new(
        &["get", "weight"],
        "get weight <bk>/<srv>",
        "tell the weight of a server",
        weight,
    ),
    Command::new(
        &["show", "backend"],
        "show backend",
        "list the backends",
        |call| {
            let Ok(generation) = generation(call) else {
                return CommandAnswer::Done;
            };
            let mut text = String::from("# name\n");
            for backend in &generation.backends {
                text.push_str(backend.name());
                text.push('\n');
            }
            CommandAnswer::Report(text)
        },
    ),
    Command::new(
        &["show", "servers", "state"],
        "show servers state [<backend>]",
        "show what is believed of the servers, for a state file",
        state,
    ),
];

fn weight(call: &mut CommandCall<'_>) -> CommandAnswer {
    match TargetServer::of(call) {
        Ok(at) => {
            let (now, initial) = (at.server.state.weight(), at.server.model.weight);
            CommandAnswer::Report(format!("{now} (initial {initial})"))
        }
        Err(answer) => answer,
    }
}

const STATE_HEAD: &str = "1\n# be_id be_name srv_id srv_name srv_addr srv_op_state srv_admin_state \
    srv_uweight srv_iweight srv_time_since_last_change srv_check_status srv_check_result \
    srv_check_health srv_check_state srv_agent_state bk_f_forced_id srv_f_forced_id srv_fqdn \
    srv_port srvrecord srv_use_ssl srv_check_port srv_check_addr srv_agent_addr srv_agent_port\n";

fn state(call: &mut CommandCall<'_>) -> CommandAnswer {
    let Ok(generation) = generation(call) else {
        return CommandAnswer::Done;
    };
    let mut backends = 0..generation.backends.len();
    if !call.arg(0).is_empty() {
        let Some(backend_index) = backend_index(&generation, call.arg(0)) else {
            return CommandAnswer::error("Can't find backend.");
        };
        backends = backend_index..backend_index + 1;
    }
    let mut servers_left = backends.flat_map({
        let generation = Arc::clone(&generation);
        move |backend| {
            let servers = generation.backends[backend].servers.len();
            (0..servers).map(move |server| (backend, server))
        }
    });
    let now_ms = match &call.shared.role {
        ProcessRole::Worker(machine) => machine.registry().process().age_ms(),
        ProcessRole::Master(_) => 0,
    };
    let names = NameMasking::of(call.session);
    let mut head = Some(STATE_HEAD);
    CommandAnswer::Pieces(Box::new(move |into| {
        if let Some(head) = head.take() {
            into.push_str(head);
            return true;
        }
        let Some((backend, server)) = servers_left.next() else {
            return false;
        };
        let backend = &generation.backends[backend];
        let at = (backend.as_ref(), backend.servers[server].as_ref());
        state_line(&generation, at, now_ms, names, into);
        true
    }))
}

fn state_line(
    generation: &Generation,
    (backend, server): (&Backend, &Server),
    now_ms: u64,
    names: NameMasking,
    into: &mut String,
) {
    let health = ServerHealth::of(server, generation, now_ms);
    let hidden = |ip: std::net::IpAddr| names.name(&ip.to_string()).into_owned();
    let (address, port) = match &server.state.current_address().address {
        Some(Address::Inet(known)) => (hidden(known.ip()), port_shown(server, known.port())),
        other => {
            let port = other.as_ref().or(Some(&server.model.address));
            let port = port.and_then(Address::port).unwrap_or(0);
            ("-".to_owned(), port_shown(server, port))
        }
    };
    let name = match (&server.model.host_name, &server.model.address) {
        (Some(host), _) | (None, Address::Name { host, .. }) => names.name(host),
        _ => "-".into(),
    };
    let checks = server.checks();
    let (backend_id, server_id) = (
        u8::from(backend.model.common.id_is_explicit.0),
        u8::from(server.model.id_is_explicit.0),
    );
    // The bit is shown as long as the configuration has `disabled`. A server that a command added
    // begins in maintenance without it.
    let is_added = server.model.origin.file.is_empty();
    let is_written = server.model.says_disabled.0 && (is_added || server.model.disabled);
    let configured = bit(is_written, Admin::CONFIGURED_MAINT.bits());
    let admin = health.admin & !Admin::CONFIGURED_MAINT.bits() | configured;
    // A server without checks counts as paused, as in HAProxy.
    let paused = bit(is_written && !server.model.checks.enabled, Snapshot::PAUSED);
    // A check that was never enabled is not paused.
    let is_enabled = health.check_state & Snapshot::ENABLED != 0;
    let check_state = match is_added && !is_enabled {
        true => health.check_state & !Snapshot::PAUSED | bit(is_written, Snapshot::PAUSED),
        false => health.check_state,
    };
    let ip = |address: &Option<Address>| match address {
        Some(Address::Inet(known)) => hidden(known.ip()),
        _ => "-".to_owned(),
    };
    into.push_str(&format!(
        "{} {} {} {} {address} {} {} {} {} {} {} {} {} {} {} {backend_id} {server_id} {name} {port} - {} {} {} {} {}\n",
        backend.model.common.id,
        names.name(backend.name()),
        server.model.id,
        names.name(server.name()),
        health.operational,
        admin,
        health.weight_user,
        health.weight_initial,
        health.since_change_s,
        health.check_status,
        health.check_result,
        health.check_health,
        check_state | paused,
        health.agent_state,
        u8::from(server.traffic_tls().is_some()),
        checks.port.unwrap_or(0),
        ip(&checks.address),
        ip(&checks.agent_address),
        checks.agent_port.unwrap_or(0),
    ));
}

/// The port in HAProxy's output. Of a port that depends on the client's it is the offset, negative
/// ones as unsigned numbers.
pub(super) fn port_shown(server: &Server, port: u16) -> u32 {
    match server.port() {
        PortSpec::Fixed => u32::from(port),
        PortSpec::Offset(offset) => offset.cast_unsigned(),
    }
}

fn bit(set: bool, bit: u8) -> u8 {
    if set { bit } else { 0 }
}
