//! Switching servers, their checks, agents and cookies on and off; their limits; their sessions.
//!
//! Source: management manual, section 9.3.

use ballast_health::Effect;
use ballast_model::CliLevel;

use super::target::{ServerAt, answer, backend, control, given, leading_number};
use crate::answer::Answer;
use crate::catalogue::{Call, Changes, Command};

pub(crate) static COMMANDS: &[Command] = &[
    Command::new(
        &["disable", "agent"],
        "disable agent",
        "ask the agent of a server no more",
        |call| switch_agent(call, false),
    )
    .changing(Changes::State)
    .for_level(CliLevel::Admin),
    Command::new(
        &["disable", "dynamic-cookie", "backend"],
        "disable dynamic-cookie backend <bk>",
        "compute no cookies for the servers of a backend",
        |call| switch_cookies(call, false),
    )
    .changing(Changes::State)
    .for_level(CliLevel::Admin),
    Command::new(
        &["disable", "health"],
        "disable health",
        "check a server no more",
        |call| switch_check(call, false),
    )
    .changing(Changes::State)
    .for_level(CliLevel::Admin),
    Command::new(
        &["disable", "server"],
        "disable server (DEPRECATED)",
        "put a server into maintenance ('set server' does it, too)",
        |call| switch_server(call, false),
    )
    .changing(Changes::State)
    .for_level(CliLevel::Admin),
    Command::new(
        &["enable", "agent"],
        "enable agent",
        "ask the agent of a server again",
        |call| switch_agent(call, true),
    )
    .changing(Changes::State)
    .for_level(CliLevel::Admin),
    Command::new(
        &["enable", "dynamic-cookie", "backend"],
        "enable dynamic-cookie backend <bk>",
        "compute cookies for the servers of a backend",
        |call| switch_cookies(call, true),
    )
    .changing(Changes::State)
    .for_level(CliLevel::Admin),
    Command::new(
        &["enable", "health"],
        "enable health",
        "check a server again",
        |call| switch_check(call, true),
    )
    .changing(Changes::State)
    .for_level(CliLevel::Admin),
    Command::new(
        &["enable", "server"],
        "enable server  (DEPRECATED)",
        "take a server out of maintenance ('set server' does it, too)",
        |call| switch_server(call, true),
    )
    .changing(Changes::State)
    .for_level(CliLevel::Admin),
    Command::new(
        &["set", "dynamic-cookie-key", "backend"],
        "set dynamic-cookie-key backend <bk> <k>",
        "change the key that dynamic cookies are computed of",
        |call| answer(cookie_key(call)),
    )
    .changing(Changes::State)
    .for_level(CliLevel::Admin),
    Command::new(
        &["set", "maxconn", "server"],
        "set maxconn server <bk>/<srv>",
        "change how many exchanges a server may carry",
        |call| answer(maxconn(call)),
    )
    .changing(Changes::State)
    .for_level(CliLevel::Admin),
    Command::new(
        &["shutdown", "sessions", "server"],
        "shutdown sessions server <bk>/<srv>",
        "end the exchanges that a server has now",
        |call| {
            answer(ServerAt::of(call).map(|at| {
                at.control.shutdown_sessions(&at.server.state);
                Answer::Done
            }))
        },
    )
    .changing(Changes::State)
    .for_level(CliLevel::Admin),
];

fn verb(on: bool) -> &'static str {
    if on { "enable" } else { "disable" }
}

fn switch_server(call: &mut Call<'_>, on: bool) -> Answer {
    let command = given(&format!("{} server", verb(on)), call);
    answer(ServerAt::of(call).map(|at| {
        if on {
            at.tell(|health, now_ms| health.set_ready(now_ms));
        } else {
            at.tell(|health, now_ms| health.set_maint(now_ms));
        }
        at.note("state", if on { "ready" } else { "maint" }, command)
    }))
}

fn switch_check(call: &mut Call<'_>, on: bool) -> Answer {
    let command = given(&format!("{} health", verb(on)), call);
    answer(ServerAt::of(call).and_then(|at| {
        if on && at.server.state.health().settings().check.is_none() {
            return Err(Answer::error(
                "Health check was not configured on this server, cannot enable.",
            ));
        }
        at.tell(|health, _| {
            health.enable_check(on);
            Vec::new()
        });
        Ok(at.note("health", verb(on), command))
    }))
}

fn switch_agent(call: &mut Call<'_>, on: bool) -> Answer {
    let command = given(&format!("{} agent", verb(on)), call);
    answer(ServerAt::of(call).and_then(|at| {
        if on && at.server.state.health().settings().agent.is_none() {
            return Err(Answer::error(
                "Agent was not configured on this server, cannot enable.",
            ));
        }
        at.tell(|health, _| {
            health.enable_agent(on);
            Vec::new()
        });
        Ok(at.note("agent", verb(on), command))
    }))
}

fn switch_cookies(call: &mut Call<'_>, on: bool) -> Answer {
    let command = given(&format!("{} dynamic-cookie backend", verb(on)), call);
    answer(backend(call).and_then(|backend| {
        backend.change_dynamic_cookies(|cookies| cookies.on = Some(on));
        let key = format!("backend {} dynamic-cookie", backend.name());
        control(call)?.note_override(&key, verb(on), &command);
        Ok(Answer::Done)
    }))
}

fn cookie_key(call: &Call<'_>) -> Result<Answer, Answer> {
    let backend = backend(call)?;
    let key = call.arg(1);
    if key.is_empty() {
        return Err(Answer::error("String value expected."));
    }
    backend.change_dynamic_cookies(|cookies| cookies.key = Some(key.to_owned()));
    let command = given("set dynamic-cookie-key backend", call);
    let name = format!("backend {} dynamic-cookie-key", backend.name());
    control(call)?.note_override(&name, key, &command);
    Ok(Answer::Done)
}

fn maxconn(call: &Call<'_>) -> Result<Answer, Answer> {
    let at = ServerAt::of(call)?;
    let text = call.arg(1);
    if text.is_empty() {
        return Err(Answer::error("Require <maxconn>."));
    }
    let count_max = match leading_number(text) {
        None => {
            return Err(Answer::error("maxconn string empty or preceded by garbage"));
        }
        // HAProxy takes a negative number for a very large one.
        Some((count, "")) => u32::try_from(count.max(0)).unwrap_or(u32::MAX - 1),
        Some(_) => return Err(Answer::error("Trailing garbage in maxconn string")),
    };
    at.tell(|_, _| vec![Effect::Maxconn(count_max)]);
    let command = given("set maxconn server", call);
    Ok(at.note("maxconn", &count_max.to_string(), command))
}
