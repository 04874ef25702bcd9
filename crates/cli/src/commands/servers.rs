//! Commands about backends and their servers.

use std::sync::Arc;

use ballast_engine::{Backend, Generation, Server};
use ballast_model::Address;
use ballast_stats::Belief;

use super::target::{ServerAt, generation};
use crate::answer::Answer;
use crate::catalogue::{Call, Command};
use crate::desk::House;

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
                return Answer::Done;
            };
            let enabled = generation
                .backends
                .iter()
                .filter(|backend| !backend.model.common.disabled);
            let mut text = String::from("# name\n");
            for backend in enabled {
                text.push_str(backend.name());
                text.push('\n');
            }
            Answer::Report(text)
        },
    ),
    Command::new(
        &["show", "servers", "state"],
        "show servers state [<backend>]",
        "show what is believed of the servers, for a state file",
        state,
    ),
];

fn weight(call: &mut Call<'_>) -> Answer {
    match ServerAt::of(call) {
        Ok(at) => {
            let (now, initial) = (at.server.state.weight(), at.server.model.weight);
            Answer::Report(format!("{now} (initial {initial})"))
        }
        Err(answer) => answer,
    }
}

const STATE_HEAD: &str = "1\n# be_id be_name srv_id srv_name srv_addr srv_op_state srv_admin_state \
    srv_uweight srv_iweight srv_time_since_last_change srv_check_status srv_check_result \
    srv_check_health srv_check_state srv_agent_state bk_f_forced_id srv_f_forced_id srv_fqdn \
    srv_port srvrecord srv_use_ssl srv_check_port srv_check_addr srv_agent_addr srv_agent_port\n";

fn state(call: &mut Call<'_>) -> Answer {
    let Ok(generation) = generation(call) else {
        return Answer::Done;
    };
    let mut backends = 0..generation.backends.len();
    if !call.arg(0).is_empty() {
        let Some(place) = generation.backend_named(call.arg(0)) else {
            return Answer::error("Can't find backend.");
        };
        backends = place..place + 1;
    }
    let mut places = backends.flat_map({
        let generation = Arc::clone(&generation);
        move |backend| {
            let servers = generation.backends[backend].servers.len();
            (0..servers).map(move |server| (backend, server))
        }
    });
    let now_ms = match &call.desk.house {
        House::Worker(surroundings) => surroundings.registry().process().age_ms(),
        House::Master(_) => 0,
    };
    let mut head = Some(STATE_HEAD);
    Answer::Pieces(Box::new(move |into| {
        if let Some(head) = head.take() {
            into.push_str(head);
            return true;
        }
        let Some((backend, server)) = places.next() else {
            return false;
        };
        let backend = &generation.backends[backend];
        state_line(&generation, backend, &backend.servers[server], now_ms, into);
        true
    }))
}

fn state_line(
    generation: &Generation,
    backend: &Backend,
    server: &Server,
    now_ms: u64,
    into: &mut String,
) {
    let belief = Belief::of(server, generation, now_ms);
    let (address, port) = match &server.state.reach().address {
        Some(Address::Inet(known)) => (known.ip().to_string(), known.port()),
        other => {
            let port = other.as_ref().or(Some(&server.model.address));
            ("-".to_owned(), port.and_then(Address::port).unwrap_or(0))
        }
    };
    let name = match (&server.model.host_name, &server.model.address) {
        (Some(host), _) | (None, Address::Name { host, .. }) => host.as_str(),
        _ => "-",
    };
    let checks = server.checks();
    let ip = |address: &Option<Address>| match address {
        Some(Address::Inet(known)) => known.ip().to_string(),
        _ => "-".to_owned(),
    };
    into.push_str(&format!(
        "{} {} {} {} {address} {} {} {} {} {} {} {} {} {} {} 0 0 {name} {port} - 0 {} {} {} {}\n",
        backend.model.common.id,
        backend.name(),
        server.model.id,
        server.name(),
        belief.operational,
        belief.admin,
        belief.weight_user,
        belief.weight_initial,
        belief.since_change_s,
        belief.check_status,
        belief.check_result,
        belief.check_health,
        belief.check_state,
        belief.agent_state,
        checks.port.unwrap_or(0),
        ip(&checks.address),
        ip(&checks.agent_address),
        checks.agent_port.unwrap_or(0),
    ));
}
