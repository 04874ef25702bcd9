//! Switching servers, their checks, agents and cookies on and off; their limits; their sessions.
//!
//! Source: management manual, section 9.3.

use ballast_health::Effect;
use ballast_model::CliLevel;
use ballast_reconcile::OverrideValue;
use ballast_reconcile::kinds::{backend as backend_kind, server};

use super::target::{TargetServer, answer, backend, command_text, control, leading_number};
use crate::answer::CommandAnswer;
use crate::change_record::ChangeScope;
use crate::command::{Command, CommandCall};

pub(crate) static COMMANDS: &[Command] = &[
    Command::new(
        &["disable", "agent"],
        "disable agent",
        "ask the agent of a server no more",
        |call| switch_agent(call, false),
    )
    .changing(ChangeScope::State)
    .for_level(CliLevel::Admin),
    Command::new(
        &["disable", "dynamic-cookie", "backend"],
        "disable dynamic-cookie backend <bk>",
        "compute no cookies for the servers of a backend",
        |call| switch_cookies(call, false),
    )
    .changing(ChangeScope::State)
    .for_level(CliLevel::Admin),
    Command::new(
        &["disable", "health"],
        "disable health",
        "check a server no more",
        |call| switch_check(call, false),
    )
    .changing(ChangeScope::State)
    .for_level(CliLevel::Admin),
    Command::new(
        &["disable", "server"],
        "disable server (DEPRECATED)",
        "put a server into maintenance ('set server' does it, too)",
        |call| switch_server(call, false),
    )
    .changing(ChangeScope::State)
    .for_level(CliLevel::Admin),
    Command::new(
        &["enable", "agent"],
        "enable agent",
        "ask the agent of a server again",
        |call| switch_agent(call, true),
    )
    .changing(ChangeScope::State)
    .for_level(CliLevel::Admin),
    Command::new(
        &["enable", "dynamic-cookie", "backend"],
        "enable dynamic-cookie backend <bk>",
        "compute cookies for the servers of a backend",
        |call| switch_cookies(call, true),
    )
    .changing(ChangeScope::State)
    .for_level(CliLevel::Admin),
    Command::new(
        &["enable", "health"],
        "enable health",
        "check a server again",
        |call| switch_check(call, true),
    )
    .changing(ChangeScope::State)
    .for_level(CliLevel::Admin),
    Command::new(
        &["enable", "server"],
        "enable server  (DEPRECATED)",
        "take a server out of maintenance ('set server' does it, too)",
        |call| switch_server(call, true),
    )
    .changing(ChangeScope::State)
    .for_level(CliLevel::Admin),
    Command::new(
        &["set", "dynamic-cookie-key", "backend"],
        "set dynamic-cookie-key backend <bk> <k>",
        "change the key that dynamic cookies are computed of",
        |call| answer(cookie_key(call)),
    )
    .changing(ChangeScope::State)
    .for_level(CliLevel::Admin),
    Command::new(
        &["set", "maxconn", "server"],
        "set maxconn server <bk>/<srv>",
        "change how many exchanges a server may carry",
        |call| answer(maxconn(call)),
    )
    .changing(ChangeScope::State)
    .for_level(CliLevel::Admin),
    Command::new(
        &["shutdown", "sessions", "server"],
        "shutdown sessions server <bk>/<srv>",
        "end the exchanges that a server has now",
        |call| {
            answer(TargetServer::of(call).map(|at| {
                at.control.shutdown_sessions(&at.server.state);
                CommandAnswer::Done
            }))
        },
    )
    .changing(ChangeScope::State)
    .for_level(CliLevel::Admin),
];

fn verb(on: bool) -> &'static str {
    if on { "enable" } else { "disable" }
}

fn switch_server(call: &mut CommandCall<'_>, on: bool) -> CommandAnswer {
    let command = command_text(&format!("{} server", verb(on)), call);
    answer(TargetServer::of(call).map(|at| {
        if on {
            at.change_health(|health, now_ms| health.set_ready(now_ms));
        } else {
            at.change_health(|health, now_ms| health.set_maint(now_ms));
        }
        let value = if on { server::READY } else { server::MAINT };
        at.note_override(&server::STATE, value, command)
    }))
}

fn switch_check(call: &mut CommandCall<'_>, on: bool) -> CommandAnswer {
    let command = command_text(&format!("{} health", verb(on)), call);
    answer(TargetServer::of(call).and_then(|at| {
        if on && at.server.state.health().settings().check.is_none() {
            return Err(CommandAnswer::error(
                "Health check was not configured on this server, cannot enable.",
            ));
        }
        at.change_health(|health, _| {
            health.enable_check(on);
            Vec::new()
        });
        Ok(at.note_override(&server::HEALTH, OverrideValue::switch(on), command))
    }))
}

fn switch_agent(call: &mut CommandCall<'_>, on: bool) -> CommandAnswer {
    let command = command_text(&format!("{} agent", verb(on)), call);
    answer(TargetServer::of(call).and_then(|at| {
        if on && at.server.state.health().settings().agent.is_none() {
            return Err(CommandAnswer::error(
                "Agent was not configured on this server, cannot enable.",
            ));
        }
        at.change_health(|health, _| {
            health.enable_agent(on);
            Vec::new()
        });
        Ok(at.note_override(&server::AGENT, OverrideValue::switch(on), command))
    }))
}

fn switch_cookies(call: &mut CommandCall<'_>, on: bool) -> CommandAnswer {
    let command = command_text(&format!("{} dynamic-cookie backend", verb(on)), call);
    answer(backend(call).and_then(|backend| {
        backend.change_dynamic_cookies(|cookies| cookies.on = Some(on));
        let key = backend_kind::override_key(backend.name(), &backend_kind::DYNAMIC_COOKIE);
        control(call)?.note_override(key, OverrideValue::switch(on), command);
        Ok(CommandAnswer::Done)
    }))
}

fn cookie_key(call: &CommandCall<'_>) -> Result<CommandAnswer, CommandAnswer> {
    let backend = backend(call)?;
    let key = call.arg(1);
    if key.is_empty() {
        return Err(CommandAnswer::error("String value expected."));
    }
    backend.change_dynamic_cookies(|cookies| cookies.key = Some(key.to_owned()));
    let command = command_text("set dynamic-cookie-key backend", call);
    let value = OverrideValue::of_text(key);
    let key = backend_kind::override_key(backend.name(), &backend_kind::DYNAMIC_COOKIE_KEY);
    control(call)?.note_override(key, value, command);
    Ok(CommandAnswer::Done)
}

fn maxconn(call: &CommandCall<'_>) -> Result<CommandAnswer, CommandAnswer> {
    let at = TargetServer::of(call)?;
    let text = call.arg(1);
    if text.is_empty() {
        return Err(CommandAnswer::error("Require <maxconn>."));
    }
    let count_max = match leading_number(text) {
        None => {
            return Err(CommandAnswer::error(
                "maxconn string empty or preceded by garbage",
            ));
        }
        // HAProxy takes a negative number for a very large one.
        Some((count, "")) => u32::try_from(count.max(0)).unwrap_or(u32::MAX - 1),
        Some(_) => return Err(CommandAnswer::error("Trailing garbage in maxconn string")),
    };
    at.change_health(|_, _| vec![Effect::Maxconn(count_max)]);
    let command = command_text("set maxconn server", call);
    let value = OverrideValue::Number(count_max);
    Ok(at.note_override(&server::MAXCONN, value, command))
}
