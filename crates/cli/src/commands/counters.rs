//! `clear counters`.
//!
//! Source: management manual, section 9.3, "clear counters".

use std::sync::atomic::Ordering;

use ballast_engine::{Backend, Frontend, Gauge, Process, Rate, ServerState};
use ballast_model::CliLevel;

use super::target::{TargetServer, answer, control};
use crate::answer::CommandAnswer;
use crate::change_record::ChangeScope;
use crate::command::{Command, CommandCall};

pub(crate) static COMMANDS: &[Command] = &[Command::new(
    &["clear", "counters"],
    "clear counters [all|server <bk>/<srv> [force]]",
    "forget the highest values, everything that was counted, or all of one server",
    |call| answer(clear(call)),
)
.changing(ChangeScope::State)
.for_level(CliLevel::Operator)];

/// What is cleared: the highest values only, or all counters.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum ClearExtent {
    All,
    Highest,
}

fn clear(call: &CommandCall<'_>) -> Result<CommandAnswer, CommandAnswer> {
    let extent = match call.arg(0) {
        "all" if call.session.level < CliLevel::Admin => return Err(CommandAnswer::denied()),
        "all" => ClearExtent::All,
        "server" => return clear_one(call),
        _ => ClearExtent::Highest,
    };
    let control = control(call)?;
    let generation = control.generation();
    clear_process(control.registry().process(), extent);
    control.clear_listeners(extent == ClearExtent::All);
    for frontend in &generation.frontends {
        clear_frontend(frontend, extent);
    }
    for backend in &generation.backends {
        clear_backend(backend, extent);
        for server in &backend.servers {
            clear_server(&server.state, extent);
        }
    }
    Ok(CommandAnswer::Done)
}

/// `clear counters server` (management manual of 3.5). `force` is for counters that several
/// processes share in a file. Here counters belong to one process, and `force` has no effect.
fn clear_one(call: &CommandCall<'_>) -> Result<CommandAnswer, CommandAnswer> {
    if call.session.level < CliLevel::Admin {
        return Err(CommandAnswer::denied());
    }
    if !matches!(call.arg(2), "" | "force") {
        return Err(CommandAnswer::error(
            "Expects '<backend>/<server>' and 'force' at most.",
        ));
    }
    clear_server(
        &TargetServer::of_word(call, 1)?.server.state,
        ClearExtent::All,
    );
    Ok(CommandAnswer::Done)
}

fn clear_highest_values(gauges: &[&Gauge], rates: &[&Rate]) {
    gauges.iter().for_each(|gauge| gauge.clear_highest());
    rates.iter().for_each(|rate| rate.clear_highest());
}

fn clear_process(process: &Process, extent: ClearExtent) {
    clear_highest_values(
        &[&process.connections],
        &[
            &process.connection_rate,
            &process.session_rate,
            &process.tls.session_rate,
            &process.tls.client_key_rate,
            &process.tls.server_key_rate,
        ],
    );
    if extent == ClearExtent::All {
        process.counters.clear();
    }
}

fn clear_frontend(frontend: &Frontend, extent: ClearExtent) {
    let state = &frontend.state;
    clear_highest_values(
        &[&state.sessions],
        &[
            &state.session_rate,
            &state.connection_rate,
            &state.request_rate,
        ],
    );
    if extent == ClearExtent::All {
        state.counters.clear();
        state.h2.counters.clear();
    }
}

fn clear_backend(backend: &Backend, extent: ClearExtent) {
    let state = &backend.state;
    clear_highest_values(
        &[&state.sessions, &state.served, &state.queue],
        &[&state.session_rate],
    );
    state.timings.clear_highest();
    if extent == ClearExtent::All {
        state.timings.clear();
        state.durations.clear();
        state.counters.clear();
        state.h2.counters.clear();
        state.times_down.store(0, Ordering::Relaxed);
    }
}

fn clear_server(state: &ServerState, extent: ClearExtent) {
    clear_highest_values(
        &[&state.sessions, &state.queue, &state.connections],
        &[&state.session_rate],
    );
    state.timings.clear_highest();
    if extent == ClearExtent::All {
        state.timings.clear();
        state.counters.clear();
        state.health().clear_counters();
    }
}
