//! Commands about frontends and the limits of the process.
//!
//! Source: management manual, section 9.3.

use ballast_engine::{Frontend, GateState};
use ballast_model::CliLevel;
use ballast_reconcile::OverrideValue;
use ballast_reconcile::kinds::{frontend as frontend_kind, process};

use super::target::{answer, command_text, control, frontend, leading_number};
use crate::answer::{AnswerSeverity, CommandAnswer};
use crate::change_record::ChangeScope;
use crate::command::{Command, CommandCall};

pub(crate) static COMMANDS: &[Command] = &[
    Command::new(
        &["disable", "frontend"],
        "disable frontend <frontend>",
        "have a frontend refuse clients for a while",
        |call| answer(disable(call)),
    )
    .changing(ChangeScope::State)
    .for_level(CliLevel::Admin),
    Command::new(
        &["enable", "frontend"],
        "enable frontend <frontend>",
        "have a frontend listen again",
        |call| answer(enable(call)),
    )
    .changing(ChangeScope::State)
    .for_level(CliLevel::Admin),
    Command::new(
        &["set", "maxconn", "frontend"],
        "set maxconn frontend <frontend> <value>",
        "change how many connections a frontend may carry",
        |call| answer(maxconn(call)),
    )
    .changing(ChangeScope::State)
    .for_level(CliLevel::Admin),
    Command::new(
        &["set", "maxconn", "global"],
        "set maxconn global <value>",
        "change how many connections the process may carry",
        |call| answer(maxconn_global(call)),
    )
    .changing(ChangeScope::State)
    .for_level(CliLevel::Admin),
    Command::new(
        &["set", "rate-limit"],
        "set rate-limit <setting> <value>",
        "change a limit per second of the process",
        |call| answer(rate_limit(call)),
    )
    .changing(ChangeScope::State)
    .for_level(CliLevel::Admin),
    Command::new(
        &["shutdown", "frontend"],
        "shutdown frontend <frontend>",
        "close the sockets of a frontend, until a reload",
        |call| answer(shutdown(call)),
    )
    .changing(ChangeScope::State)
    .for_level(CliLevel::Admin),
];

fn notice(text: &str) -> CommandAnswer {
    CommandAnswer::Message(AnswerSeverity::Notice, text.to_owned())
}

/// A frontend that its section disables counts as shut down: it has no sockets.
fn gate_state(frontend: &Frontend) -> GateState {
    if frontend.model.common.disabled {
        GateState::Shut
    } else {
        frontend.state.gate.state()
    }
}

fn disable(call: &CommandCall<'_>) -> Result<CommandAnswer, CommandAnswer> {
    let frontend = frontend(call)?;
    match gate_state(&frontend) {
        GateState::Shut => {
            return Err(notice("Frontend was previously shut down, cannot disable."));
        }
        GateState::Paused => return Err(notice("All sockets are already disabled.")),
        GateState::Open => {}
    }
    let control = control(call)?;
    control.pause_frontend(frontend.name()).map_err(|_| {
        CommandAnswer::error("Failed to pause frontend, check logs for precise cause.")
    })?;
    let command = command_text("disable frontend", call);
    let key = frontend_kind::override_key(frontend.name(), &frontend_kind::STATE);
    control.note_override(key, frontend_kind::DISABLED, command);
    Ok(CommandAnswer::Done)
}

fn enable(call: &CommandCall<'_>) -> Result<CommandAnswer, CommandAnswer> {
    let frontend = frontend(call)?;
    match gate_state(&frontend) {
        GateState::Shut => {
            return Err(CommandAnswer::error(
                "Frontend was previously shut down, cannot enable.",
            ));
        }
        GateState::Open => return Err(notice("All sockets are already enabled.")),
        GateState::Paused => {}
    }
    let control = control(call)?;
    control.resume_frontend(frontend.name()).map_err(|_| {
        CommandAnswer::error(
            "Failed to resume frontend, check logs for precise cause (port conflict?).",
        )
    })?;
    let command = command_text("enable frontend", call);
    let key = frontend_kind::override_key(frontend.name(), &frontend_kind::STATE);
    control.note_override(key, frontend_kind::ENABLED, command);
    Ok(CommandAnswer::Done)
}

fn shutdown(call: &CommandCall<'_>) -> Result<CommandAnswer, CommandAnswer> {
    let frontend = frontend(call)?;
    if gate_state(&frontend) == GateState::Shut {
        return Err(notice("Frontend was already shut down."));
    }
    let control = control(call)?;
    control.shut_frontend(frontend.name());
    let command = command_text("shutdown frontend", call);
    let key = frontend_kind::override_key(frontend.name(), &frontend_kind::STATE);
    control.note_override(key, frontend_kind::SHUT_DOWN, command);
    Ok(CommandAnswer::Done)
}

/// Parses a number as HAProxy does here: a word that is not a number is 0.
fn number(text: &str) -> i64 {
    leading_number(text).map_or(0, |(number, _)| number)
}

fn maxconn(call: &CommandCall<'_>) -> Result<CommandAnswer, CommandAnswer> {
    let frontend = frontend(call)?;
    if call.arg(1).is_empty() {
        return Err(CommandAnswer::error("Integer value expected."));
    }
    let count_max = u32::try_from(number(call.arg(1)))
        .map_err(|_| CommandAnswer::error("Value out of range."))?;
    frontend.state.override_connection_limit(Some(count_max));
    let control = control(call)?;
    control.limits_changed();
    let key = frontend_kind::override_key(frontend.name(), &frontend_kind::MAXCONN);
    let command = command_text("set maxconn frontend", call);
    control.note_override(key, OverrideValue::Number(count_max), command);
    Ok(CommandAnswer::Done)
}

/// The limit can be raised up to that of the start, for which there are descriptors and memory. 0
/// sets the limit of the start.
fn maxconn_global(call: &CommandCall<'_>) -> Result<CommandAnswer, CommandAnswer> {
    if call.arg(0).is_empty() {
        return Err(CommandAnswer::error("Expects an integer value."));
    }
    let control = control(call)?;
    let hard_max = control.process_info().connection_count_hard_max;
    let count_max = match number(call.arg(0)) {
        count if count > i64::from(hard_max) => {
            return Err(CommandAnswer::error("Value out of range."));
        }
        count if count <= 0 => hard_max,
        count => u32::try_from(count).unwrap_or(hard_max),
    };
    control
        .registry()
        .process()
        .override_connection_limit(Some(count_max));
    control.limits_changed();
    let command = command_text("set maxconn global", call);
    let key = process::override_key(&process::MAXCONN);
    control.note_override(key, OverrideValue::Number(count_max), command);
    Ok(CommandAnswer::Done)
}

const RATE_USAGE: &str = "'set rate-limit' only supports :\n   \
    - 'connections global' to set the per-process maximum connection rate\n   \
    - 'sessions global' to set the per-process maximum session rate\n   \
    - 'ssl-sessions global' to set the per-process maximum SSL session rate\n   \
    - 'http-compression global' to set the per-process maximum compression speed in kB/s";

fn rate_limit(call: &CommandCall<'_>) -> Result<CommandAnswer, CommandAnswer> {
    let control = control(call)?;
    let rates = &control.registry().process().rates;
    let (limit, unit, setting) = match (call.arg(0), call.arg(1)) {
        ("connections", "global") => (&rates.connections, 1, &process::RATE_CONNECTIONS),
        ("sessions", "global") => (&rates.sessions, 1, &process::RATE_SESSIONS),
        ("ssl-sessions", "global") => (&rates.ssl_sessions, 1, &process::RATE_SSL_SESSIONS),
        ("http-compression", "global") => {
            (&rates.compression_bytes, 1024, &process::RATE_COMPRESSION)
        }
        _ => return Err(CommandAnswer::error(RATE_USAGE)),
    };
    if call.arg(2).is_empty() {
        return Err(CommandAnswer::error("Expects an integer value."));
    }
    let value = u32::try_from(number(call.arg(2)))
        .ok()
        .and_then(|value| value.checked_mul(unit))
        .ok_or_else(|| CommandAnswer::error("Value out of range."))?;
    limit.set(Some(value));
    control.limits_changed();
    let command = command_text("set rate-limit", call);
    control.note_override(
        process::override_key(setting),
        OverrideValue::Number(value),
        command,
    );
    Ok(CommandAnswer::Done)
}
