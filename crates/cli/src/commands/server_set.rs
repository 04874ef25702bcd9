//! `set server` and older commands: weight, state, health, agent and address of a server.
//!
//! Source: management manual, section 9.3, "set server", "set weight".

use std::net::{IpAddr, SocketAddr};

use ballast_engine::CheckOverrides;
use ballast_health::ForcedState;
use ballast_model::{Address, CliLevel, PortSpec};
use ballast_reconcile::kinds::server;
use ballast_reconcile::{ChangeRequest, OverrideValue};

use super::changes::{removal_obstacle, submit};
use super::target::{TargetServer, answer, command_text, leading_number};
use crate::answer::{AnswerSeverity, CommandAnswer};
use crate::change_record::ChangeScope;
use crate::command::{Command, CommandCall};

pub(crate) static COMMANDS: &[Command] = &[
    Command::new(
        &["set", "server"],
        "set server <bk>/<srv> [opts]",
        "change state, weight, address or checks of a server",
        |call| answer(TargetServer::of(call).and_then(|target| set(call, &target))),
    )
    .changing(ChangeScope::State)
    .for_level(CliLevel::Admin),
    Command::new(
        &["set", "weight"],
        "set weight <bk>/<srv>  (DEPRECATED)",
        "change the weight of a server ('set server' does it, too)",
        |call| {
            let command = command_text("set weight", call);
            answer(
                TargetServer::of(call).and_then(|target| set_weight(&target, call.arg(1), command)),
            )
        },
    )
    .changing(ChangeScope::State)
    .for_level(CliLevel::Admin),
];

const USAGE: &str = "usage: set server <backend>/<server> addr | agent | agent-addr | agent-port | \
                     agent-send | check-addr | check-port | fqdn | health | name | ssl | state | weight";

fn set(call: &CommandCall<'_>, target: &TargetServer) -> Result<CommandAnswer, CommandAnswer> {
    let command = command_text("set server", call);
    let what = call.arg(1);
    match what {
        "weight" => set_weight(target, call.arg(2), command),
        "state" => set_state(target, call.arg(2), command),
        "health" => set_health(target, call.arg(2)),
        "agent" => set_agent(target, call.arg(2)),
        "addr" => set_address(target, call, command),
        "agent-addr" | "check-addr" => set_probe_address(target, call, command),
        "agent-port" | "check-port" => {
            if call.arg(2).is_empty() {
                let text = format!("set server <b>/<s> {what} requires a port.");
                return Err(CommandAnswer::error(text));
            }
            require_probe(target, what)?;
            let port = port(call.arg(2))?;
            target.server.state.change_checks(|checks| {
                *port_of(checks, what) = Some(port);
            });
            let setting = match what {
                "agent-port" => &server::AGENT_PORT,
                _ => &server::CHECK_PORT,
            };
            Ok(target.note_override(setting, OverrideValue::of_text(call.arg(2)), command))
        }
        "agent-send" => {
            if !has_agent(target) {
                return Err(CommandAnswer::error(
                    "agent checks are not enabled on this server.",
                ));
            }
            let text = call.arg(2).to_owned();
            target
                .server
                .state
                .change_checks(|checks| checks.agent_send = Some(text));
            let value = OverrideValue::of_text(call.arg(2));
            Ok(target.note_override(&server::AGENT_SEND, value, command))
        }
        "name" => rename(target, call.arg(2)),
        "fqdn" if call.arg(2).is_empty() => Err(CommandAnswer::error(
            "set server <b>/<s> fqdn requires a FQDN.",
        )),
        // Names are resolved at the start only.
        "fqdn" => Err(CommandAnswer::error(
            "set server <b>/<s> fqdn failed because no resolution is configured.",
        )),
        "ssl" => ssl(target, call.arg(2), command),
        _ => Err(CommandAnswer::error(USAGE)),
    }
}

/// Renames a server. The conditions are those of `del server`: it is in maintenance without
/// connections, and nothing in the configuration names it.
fn rename(target: &TargetServer, name: &str) -> Result<CommandAnswer, CommandAnswer> {
    let is_fit = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.:".contains(&byte);
    if name.is_empty() || !name.bytes().all(is_fit) {
        return Err(CommandAnswer::error(
            "set server <b>/<s> name requires a name of letters, digits, '_', '-', '.' and ':'.",
        ));
    }
    if target.backend.server_named(name).is_some() {
        return Err(CommandAnswer::error(
            "Already exists a server with the same name in backend.",
        ));
    }
    if let Some(obstacle) = removal_obstacle(&target.backend, &target.server, &target.control) {
        let why = obstacle
            .text()
            .replace("can be deleted", "can be renamed")
            .replace("removed", "renamed")
            .replace("cannot remove it", "cannot rename it");
        return Err(CommandAnswer::error(why));
    }
    let request = ChangeRequest::RenameServer {
        backend: target.backend.name().to_owned(),
        server: target.server.name().to_owned(),
        name: name.to_owned(),
    };
    Ok(submit(&target.control, request, |_| CommandAnswer::Done))
}

/// The largest weight.
const WEIGHT_MAX: i64 = 256;

fn set_weight(
    target: &TargetServer,
    text: &str,
    command: String,
) -> Result<CommandAnswer, CommandAnswer> {
    if text.is_empty() {
        return Err(CommandAnswer::error("Require <weight> or <weight%>."));
    }
    let initial = i64::from(target.server.model.weight);
    let weight = match leading_number(text) {
        None => {
            return Err(CommandAnswer::error(
                "Empty weight string empty or preceded by garbage",
            ));
        }
        Some((percent, "%")) if percent < 0 => {
            return Err(CommandAnswer::error("Relative weight must be positive."));
        }
        Some((percent, "%")) => (initial.saturating_mul(percent) / 100).min(WEIGHT_MAX),
        Some((weight, "")) if (0..=WEIGHT_MAX).contains(&weight) => weight,
        Some((_, "")) => {
            return Err(CommandAnswer::error(
                "Absolute weight can only be between 0 and 256 inclusive.",
            ));
        }
        Some(_) => return Err(CommandAnswer::error("Trailing garbage in weight string")),
    };
    if weight != 0 && weight != initial && target.backend.has_static_weights() {
        return Err(CommandAnswer::error(
            "Backend is using a static LB algorithm and only accepts weights '0%' and '100%'.",
        ));
    }
    let weight = u32::try_from(weight).unwrap_or(0);
    target.change_health(|health, now_ms| health.set_weight(now_ms, weight));
    Ok(target.note_override(&server::WEIGHT, OverrideValue::Number(weight), command))
}

fn set_state(
    target: &TargetServer,
    word: &str,
    command: String,
) -> Result<CommandAnswer, CommandAnswer> {
    let value = match word {
        "ready" => {
            target.change_health(|health, now_ms| health.set_ready(now_ms));
            server::READY
        }
        "drain" => {
            target.change_health(|health, now_ms| health.set_drain(now_ms));
            server::DRAIN
        }
        "maint" => {
            target.change_health(|health, now_ms| health.set_maint(now_ms));
            server::MAINT
        }
        _ => {
            return Err(CommandAnswer::error(
                "'set server <srv> state' expects 'ready', 'drain' and 'maint'.",
            ));
        }
    };
    Ok(target.note_override(&server::STATE, value, command))
}

fn ssl(target: &TargetServer, word: &str, command: String) -> Result<CommandAnswer, CommandAnswer> {
    if target.server.tls.is_none() {
        return Err(CommandAnswer::error(
            "'set server <srv> ssl' cannot be set.  default-server should define ssl settings",
        ));
    }
    let value = match word {
        "on" => OverrideValue::Word("on"),
        "off" => OverrideValue::Word("off"),
        _ => {
            return Err(CommandAnswer::error(
                "'set server <srv> ssl' expects 'on' or 'off'.",
            ));
        }
    };
    target.server.state.use_tls(Some(word == "on"));
    let _ = target.note_override(&server::SSL, value, command);
    let text = "server ssl setting updated.".to_owned();
    Ok(CommandAnswer::Message(AnswerSeverity::Notice, text))
}

/// No override is noted: the next check may change the health again.
fn set_health(target: &TargetServer, word: &str) -> Result<CommandAnswer, CommandAnswer> {
    if target.server.model.track.is_some() {
        return Err(CommandAnswer::error(
            "cannot change health on a tracking server.",
        ));
    }
    let forced = match word {
        "up" => ForcedState::Up,
        "stopping" => ForcedState::Stopping,
        "down" => ForcedState::Down,
        _ => {
            return Err(CommandAnswer::error(
                "'set server <srv> health' expects 'up', 'stopping', or 'down'.",
            ));
        }
    };
    target.change_health(|health, now_ms| health.force_health(now_ms, forced));
    Ok(CommandAnswer::Done)
}

fn set_agent(target: &TargetServer, word: &str) -> Result<CommandAnswer, CommandAnswer> {
    if !has_agent(target) {
        return Err(CommandAnswer::error(
            "agent checks are not enabled on this server.",
        ));
    }
    match word {
        "up" | "down" => {
            target.change_health(|health, now_ms| health.force_agent(now_ms, word == "up"))
        }
        _ => {
            return Err(CommandAnswer::error(
                "'set server <srv> agent' expects 'up' or 'down'.",
            ));
        }
    }
    Ok(CommandAnswer::Done)
}

fn has_agent(target: &TargetServer) -> bool {
    let health = target.server.state.health();
    health.settings().agent.is_some() && health.agent().enabled
}

fn has_check(target: &TargetServer) -> bool {
    let health = target.server.state.health();
    health.settings().check.is_some() && health.check().enabled
}

fn warning(text: impl Into<String>) -> CommandAnswer {
    CommandAnswer::Message(AnswerSeverity::Warning, text.into())
}

/// Refuses to set the address or port of a probe that the server does not have.
fn require_probe(target: &TargetServer, what: &str) -> Result<(), CommandAnswer> {
    let (probed, kind) = if what.starts_with("agent") {
        (has_agent(target), "agent")
    } else {
        (has_check(target), "health")
    };
    if probed {
        return Ok(());
    }
    Err(warning(format!(
        "{kind} checks are not enabled on this server"
    )))
}

fn port(text: &str) -> Result<u16, CommandAnswer> {
    match leading_number(text) {
        Some((number, "")) => {
            u16::try_from(number).map_err(|_| warning("provided port is invalid"))
        }
        _ => Err(warning("provided port is not an integer")),
    }
}

fn port_of<'c>(checks: &'c mut CheckOverrides, what: &str) -> &'c mut Option<u16> {
    if what.starts_with("agent") {
        &mut checks.agent_port
    } else {
        &mut checks.check_port
    }
}

fn set_probe_address(
    target: &TargetServer,
    call: &CommandCall<'_>,
    command: String,
) -> Result<CommandAnswer, CommandAnswer> {
    let (what, text) = (call.arg(1), call.arg(2));
    if text.is_empty() {
        return Err(CommandAnswer::error(format!(
            "set server <b>/<s> {what} requires an address and optionally a port."
        )));
    }
    require_probe(target, what)?;
    let bare = text
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'));
    let address: IpAddr = bare
        .unwrap_or(text)
        .parse()
        .map_err(|_| warning(format!("invalid addr '{}'", text.escape_debug())))?;
    let port = match call.arg(3) {
        "port" => Some(port(call.arg(4))?),
        _ => None,
    };
    target.server.state.change_checks(|checks| {
        if let Some(port) = port {
            *port_of(checks, what) = Some(port);
        }
        if what.starts_with("agent") {
            checks.agent_address = Some(address);
        } else {
            checks.check_address = Some(address);
        }
    });
    let setting = if what.starts_with("agent") {
        &server::AGENT_ADDRESS
    } else {
        &server::CHECK_ADDRESS
    };
    let value = OverrideValue::Text(call.args[2..].join(" "));
    Ok(target.note_override(setting, value, command))
}

/// Where a server's port comes from, for the answer of `set server addr`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct PortSource {
    spec: PortSpec,
    number: u16,
}

impl PortSource {
    fn parse(text: &str) -> Option<Self> {
        let (number, rest) = leading_number(text)?;
        if !rest.is_empty() {
            return None;
        }
        if text.starts_with(['+', '-']) {
            let offset = i32::try_from(number).ok()?;
            return (offset.unsigned_abs() <= u32::from(u16::MAX)).then_some(Self {
                spec: PortSpec::Offset(offset),
                number: 0,
            });
        }
        Some(Self {
            spec: PortSpec::Fixed,
            number: u16::try_from(number).ok()?,
        })
    }

    fn text(self) -> String {
        match self.spec {
            PortSpec::Offset(offset) => format!("{offset:+}"),
            PortSpec::Fixed => self.number.to_string(),
        }
    }

    fn is_mapped(self) -> bool {
        matches!(self.spec, PortSpec::Offset(_))
    }
}

fn set_address(
    target: &TargetServer,
    call: &CommandCall<'_>,
    command: String,
) -> Result<CommandAnswer, CommandAnswer> {
    let text = call.arg(2);
    if text.is_empty() {
        return Err(CommandAnswer::error(
            "set server <b>/<s> addr requires an address and optionally a port.",
        ));
    }
    let Ok(ip) = text.parse::<IpAddr>() else {
        return Err(warning(format!("Invalid addr '{}'", text.escape_debug())));
    };
    let current = match target.server.state.current_address().address {
        Some(Address::Inet(current)) => current,
        _ => {
            return Err(warning(
                "Update for the current server address family is only supported through \
                 configuration file.",
            ));
        }
    };
    let current_port = PortSource {
        spec: target.server.port(),
        number: current.port(),
    };
    let mut port = match call.arg(3) {
        "port" => PortSource::parse(call.arg(4)).ok_or_else(|| {
            let text = call.arg(4).escape_debug();
            warning(format!("problem converting port '{text}' to an int"))
        })?,
        _ => current_port,
    };
    let mut changed = Vec::new();
    if ip != current.ip() {
        changed.push(format!("IP changed from '{}' to '{ip}'", current.ip()));
    }
    let is_checked = target.server.state.health().settings().check.is_some();
    if port.is_mapped()
        && port != current_port
        && is_checked
        && target.server.checks().port.is_none()
    {
        port = current_port;
        changed.push(
            "can't change <port> to port map because it is incompatible with current health check \
             port configuration (use 'port' statement from the 'server' directive)."
                .to_owned(),
        );
    } else if port != current_port {
        let (from, to) = (current_port.text(), port.text());
        changed.push(format!("port changed from '{from}' to '{to}'"));
    }
    if changed.is_empty() {
        return Ok(warning("nothing changed"));
    }
    if ip != current.ip() || port != current_port {
        let to = Address::Inet(SocketAddr::new(ip, port.number));
        target
            .control
            .move_server(&target.backend, target.server_index, (to, Some(port.spec)));
        let value = format!("{ip}:{}", port.text());
        target.note_override(&server::ADDRESS, OverrideValue::Text(value), command);
    }
    Ok(warning(format!(
        "{} by 'stats socket command'",
        changed.join(", ")
    )))
}
