//! `show servers conn`.
//!
//! Source: management manual, section 9.3, "show servers conn".

use std::sync::Arc;

use ballast_engine::{Backend, Server};
use ballast_model::Address;

use super::anonymous::NameMasking;
use super::servers::port_shown;
use super::target::{answer, backend_index, control};
use crate::answer::CommandAnswer;
use crate::command::{Command, CommandCall};
use crate::control::{IdleCount, IdleCounts};

pub(crate) static COMMANDS: &[Command] = &[Command::new(
    &["show", "servers", "conn"],
    "show servers conn [<backend>]",
    "show the connections to servers, in use and idle",
    |call| answer(connections(call)),
)];

fn connections(call: &CommandCall<'_>) -> Result<CommandAnswer, CommandAnswer> {
    let control = control(call)?;
    let generation = control.generation();
    let mut backends = 0..generation.backends.len();
    if !call.arg(0).is_empty() {
        let Some(backend_index) = backend_index(&generation, call.arg(0)) else {
            return Err(CommandAnswer::error("Can't find backend."));
        };
        backends = backend_index..backend_index + 1;
    }
    let names = NameMasking::of(call.session);
    let counting = control.idle_connections();
    Ok(CommandAnswer::pending(async move {
        let idle = counting.await;
        let mut head = Some(head(idle.len()));
        let mut servers_left = backends.flat_map({
            let generation = Arc::clone(&generation);
            move |backend| {
                let servers = generation.backends[backend].servers.len();
                (0..servers).map(move |server| (backend, server))
            }
        });
        CommandAnswer::Pieces(Box::new(move |into| {
            if let Some(head) = head.take() {
                into.push_str(&head);
                return true;
            }
            let Some((backend, server)) = servers_left.next() else {
                return false;
            };
            let backend = &generation.backends[backend];
            line(backend, &backend.servers[server], &idle, names, into);
            true
        }))
    }))
}

fn head(worker_count: usize) -> String {
    format!(
        "# bkname/svname bkid/svid addr port - purge_delay used_cur used_max need_est unsafe_nb \
         safe_nb idle_lim idle_cur idle_per_thr[{worker_count}]\n"
    )
}

/// Whether an idle connection is safe to reuse is only known when it is reused. As in `show stat`,
/// all of them count as not known to be safe.
fn line(
    backend: &Backend,
    server: &Server,
    idle: &[IdleCounts],
    names: NameMasking,
    into: &mut String,
) {
    let state = &server.state;
    let (address, port) = match &state.current_address().address {
        Some(Address::Inet(known)) => {
            let ip = known.ip().to_string();
            (
                names.name(&ip).into_owned(),
                port_shown(server, known.port()),
            )
        }
        other => {
            let known = other.as_ref().unwrap_or(&server.model.address);
            (
                "-".to_owned(),
                port_shown(server, known.port().unwrap_or(0)),
            )
        }
    };
    let key = Arc::as_ptr(state).addr();
    let mine: Vec<IdleCount> = idle
        .iter()
        .map(|worker| worker.get(&key).copied().unwrap_or_default())
        .collect();
    let idle_now: u32 = mine.iter().map(|count| count.idle_now).sum();
    let needed = mine.iter().map(|count| count.needed).max().unwrap_or(0);
    let open = state.connections.current();
    let limit = server
        .model
        .idle_count_max
        .map_or("-1".to_owned(), |limit| limit.to_string());
    into.push_str(&format!(
        "{}/{} {}/{} {address} {port} - {} {} {} {needed} {idle_now} 0 {limit} {idle_now}",
        names.name(backend.name()),
        names.name(server.name()),
        backend.model.common.id,
        server.model.id,
        server.model.idle_purge_delay.as_millis(),
        open.saturating_sub(idle_now),
        // The other idle connections were not in use.
        state.connections.highest().min(state.sessions.highest()),
    ));
    for count in &mine {
        into.push_str(&format!(" {}", count.idle_now));
    }
    into.push('\n');
}
