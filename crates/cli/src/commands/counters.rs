//! `clear counters`.
//!
//! Source: management manual, section 9.3, "clear counters".

use std::sync::atomic::Ordering;

use ballast_engine::{Backend, Frontend, Gauge, Process, Rate, ServerState};
use ballast_model::CliLevel;

use super::target::{ServerAt, answer, control};
use crate::answer::Answer;
use crate::change_record::Changes;
use crate::command::{Call, Command};

pub(crate) static COMMANDS: &[Command] = &[Command::new(
    &["clear", "counters"],
    "clear counters [all|server <bk>/<srv> [force]]",
    "forget the highest values, everything that was counted, or all of one server",
    |call| answer(clear(call)),
)
.changing(Changes::State)
.for_level(CliLevel::Operator)];

/// What is forgotten: the highest values, or with them everything counted.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Extent {
    All,
    Highest,
}

fn clear(call: &Call<'_>) -> Result<Answer, Answer> {
    let extent = match call.arg(0) {
        "all" if call.session.level < CliLevel::Admin => return Err(Answer::denied()),
        "all" => Extent::All,
        "server" => return clear_one(call),
        _ => Extent::Highest,
    };
    let control = control(call)?;
    let generation = control.generation();
    clear_process(control.registry().process(), extent);
    control.clear_listeners(extent == Extent::All);
    for frontend in &generation.frontends {
        clear_frontend(frontend, extent);
    }
    for backend in &generation.backends {
        clear_backend(backend, extent);
        for server in &backend.servers {
            clear_server(&server.state, extent);
        }
    }
    Ok(Answer::Done)
}

/// `clear counters server` (management manual of 3.5). `force` is for counters that several
/// processes share in a file; ours are the process's own, and there is nothing to force.
fn clear_one(call: &Call<'_>) -> Result<Answer, Answer> {
    if call.session.level < CliLevel::Admin {
        return Err(Answer::denied());
    }
    if !matches!(call.arg(2), "" | "force") {
        return Err(Answer::error(
            "Expects '<backend>/<server>' and 'force' at most.",
        ));
    }
    clear_server(&ServerAt::of_word(call, 1)?.server.state, Extent::All);
    Ok(Answer::Done)
}

fn forget(gauges: &[&Gauge], rates: &[&Rate]) {
    gauges.iter().for_each(|gauge| gauge.clear_highest());
    rates.iter().for_each(|rate| rate.clear_highest());
}

fn clear_process(process: &Process, extent: Extent) {
    forget(
        &[&process.connections],
        &[&process.connection_rate, &process.session_rate],
    );
    if extent == Extent::All {
        process.counters.clear();
    }
}

fn clear_frontend(frontend: &Frontend, extent: Extent) {
    let state = &frontend.state;
    forget(
        &[&state.sessions],
        &[
            &state.session_rate,
            &state.connection_rate,
            &state.request_rate,
        ],
    );
    if extent == Extent::All {
        state.counters.clear();
    }
}

fn clear_backend(backend: &Backend, extent: Extent) {
    let state = &backend.state;
    forget(
        &[&state.sessions, &state.served, &state.queue],
        &[&state.session_rate],
    );
    state.timings.clear_highest();
    if extent == Extent::All {
        state.timings.clear();
        state.durations.clear();
        state.counters.clear();
        state.times_down.store(0, Ordering::Relaxed);
    }
}

fn clear_server(state: &ServerState, extent: Extent) {
    forget(
        &[&state.sessions, &state.queue, &state.connections],
        &[&state.session_rate],
    );
    state.timings.clear_highest();
    if extent == Extent::All {
        state.timings.clear();
        state.counters.clear();
        state.health().clear_counters();
    }
}
