//! Commands that change the running configuration, and those that show its changes.
//!
//! Source: management manual, section 9.3, for `add server`, `del server` and `wait`; the others
//! are ours.

use std::fmt::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ballast_edit::Refusal;
use ballast_engine::{Backend, Server};
use ballast_model::{Change, CliLevel, UseServerTarget};
use ballast_reconcile::{ChangeReport, ChangeRequest, ConfigHistory, ConfigInput, Persist};
use ballast_worker::sleep;

use super::target::{TargetServer, answer, control};
use crate::answer::{AnswerSeverity, CommandAnswer};
use crate::change_record::ChangeScope;
use crate::command::{Command, CommandCall};
use crate::control::Control;

pub(crate) static COMMANDS: &[Command] = &[
    admin(
        &["add", "server"],
        "add server <bk>/<srv>",
        "create a new server",
        add_server,
    )
    .changing(ChangeScope::State),
    admin(
        &["del", "server"],
        "del server <bk>/<srv>",
        "remove a server in maintenance mode",
        |call| answer(del_server(call)),
    )
    .changing(ChangeScope::State),
    admin(
        &["apply"],
        "apply [file <name>] [<<]",
        "put a whole configuration in force, from a file or the payload",
        |call| answer(apply(call)),
    )
    .changing(ChangeScope::Configuration),
    admin(
        &["persist"],
        "persist {on|off|now}",
        "write what was set by command back to the files [after each change]",
        |call| answer(persist(call)),
    )
    .changing(ChangeScope::Configuration),
    admin(
        &["reload"],
        "reload [keep]",
        "read the files again and apply them [keep overrides]",
        |call| answer(reload(call)),
    )
    .changing(ChangeScope::Configuration),
    admin(
        &["rollback"],
        "rollback <generation>",
        "put a former configuration in force again",
        |call| answer(rollback(call)),
    )
    .changing(ChangeScope::Configuration),
    // The command changes nothing. It needs the level because it reads files of the machine, and
    // the answer shows their content.
    admin(
        &["show", "plan"],
        "show plan [file <name>] [<<]",
        "show what a reload, or this configuration, would change",
        |call| answer(plan(call)),
    ),
    Command::new(
        &["show", "generations"],
        "show generations",
        "list what was put in force, when and why",
        |call| answer(generations(call)),
    ),
    Command::new(
        &["show", "overrides"],
        "show overrides",
        "list what operators set while the process ran",
        |call| answer(overrides(call)),
    ),
    Command::new(
        &["wait"],
        "wait {-h|<delay_ms>} cond [args...]",
        "wait the specified delay or condition (-h to see list)",
        |call| answer(wait(call)),
    )
    .for_level(CliLevel::Admin),
];

pub(super) const fn admin(
    words: &'static [&'static str],
    usage: &'static str,
    help: &'static str,
    handler: fn(&mut CommandCall<'_>) -> CommandAnswer,
) -> Command {
    Command::new(words, usage, help, handler).for_level(CliLevel::Admin)
}

/// Submits a change request. The answer is what `done` makes of the report.
pub(super) fn submit(
    control: &Arc<dyn Control>,
    request: ChangeRequest,
    done: impl FnOnce(ChangeReport) -> CommandAnswer + 'static,
) -> CommandAnswer {
    let outcome = control.request(request);
    CommandAnswer::pending(async move {
        match outcome.await {
            Ok(report) => done(report),
            Err(Refusal(why)) => CommandAnswer::error(why.trim_end().to_owned()),
        }
    })
}

pub(super) fn info(text: &str) -> CommandAnswer {
    CommandAnswer::info(text.to_owned())
}

/// The answer of a change: its lines, warnings and notes.
fn answer_of(report: &ChangeReport) -> CommandAnswer {
    let mut text = report.notes.clone();
    if report.lines.is_empty() {
        text.push_str("Nothing to change.\n");
    } else {
        let _ = writeln!(text, "Generation {} is in force.", report.generation);
    }
    for line in &report.lines {
        let _ = writeln!(text, "{line}");
    }
    CommandAnswer::Report(text)
}

fn add_server(call: &mut CommandCall<'_>) -> CommandAnswer {
    answer((|| {
        if call.arg(0) == "help" {
            return Ok(CommandAnswer::Report(dynamic_words(&control(call)?)));
        }
        let Some((backend, server)) = call.arg(0).split_once('/') else {
            return Err(CommandAnswer::error("Require 'backend/server'."));
        };
        if backend.is_empty() || server.is_empty() {
            return Err(CommandAnswer::error("Require 'backend/server'."));
        }
        let words: Vec<String> = call.args[1..].to_vec();
        let control = control(call)?;
        let request = ChangeRequest::AddServer {
            backend: backend.to_owned(),
            server: server.to_owned(),
            words,
        };
        Ok(submit(&control, request, |_| {
            info("New server registered.")
        }))
    })())
}

/// The answer to `add server help`.
fn dynamic_words(control: &Arc<dyn Control>) -> String {
    let mut text = String::from("List of keywords supported for dynamic server:\n");
    for word in control.server_words() {
        text.push_str(word);
        text.push('\n');
    }
    text
}

/// What keeps a server from being removed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum RemovalObstacle {
    /// Connections, which end with time.
    Connections,
    /// What lasts until somebody changes it, in the words for it.
    Lasting(&'static str),
}

impl RemovalObstacle {
    pub(super) const fn text(self) -> &'static str {
        match self {
            Self::Connections => "Server still has connections attached to it, cannot remove it.",
            Self::Lasting(text) => text,
        }
    }
}

/// What keeps a server from being removed now; `None` if nothing does.
pub(super) fn removal_obstacle(
    call_backend: &Backend,
    server: &Server,
    control: &Arc<dyn Control>,
) -> Option<RemovalObstacle> {
    let generation = control.generation();
    let tracked = generation.backends.iter().any(|backend| {
        backend.servers.iter().any(|other| {
            other.model.track.as_ref().is_some_and(|(backend, name)| {
                backend == call_backend.name() && name == server.name()
            })
        })
    });
    let used_by_rule =
        call_backend.model.use_servers.iter().any(
            |rule| matches!(&rule.target, UseServerTarget::Static(name) if name == server.name()),
        );
    let fronts = generation.frontends.iter().map(|one| &one.model.common);
    let backs = generation.backends.iter().map(|one| &one.model.common);
    let asked = fronts.chain(backs).any(|common| {
        let mut asked = common.asked_servers.iter();
        asked.any(|(backend, name)| backend == call_backend.name() && name == server.name())
    });
    if tracked || used_by_rule || asked {
        return Some(RemovalObstacle::Lasting(
            "This server cannot be removed at runtime due to other configuration elements \
             pointing to it.",
        ));
    }
    if !server.state.health().admin().is_maint() {
        return Some(RemovalObstacle::Lasting(
            "Only servers in maintenance mode can be deleted.",
        ));
    }
    let state = &server.state;
    let used = state
        .connections
        .current()
        .saturating_sub(state.idle.current());
    if state.sessions.current() > 0 || state.queue.current() > 0 || used > 0 {
        return Some(RemovalObstacle::Connections);
    }
    None
}

fn del_server(call: &mut CommandCall<'_>) -> Result<CommandAnswer, CommandAnswer> {
    let at = TargetServer::of(call)?;
    if let Some(obstacle) = removal_obstacle(&at.backend, &at.server, &at.control) {
        return Err(CommandAnswer::error(obstacle.text()));
    }
    let (backend, server) = (at.backend.name().to_owned(), at.server.name().to_owned());
    let request = ChangeRequest::Change {
        command: format!("del server {backend}/{server}"),
        changes: vec![Change::RemoveServer(backend, server)],
    };
    Ok(submit(&at.control, request, |_| {
        CommandAnswer::Message(AnswerSeverity::Info, "Server deleted.".into())
    }))
}

/// A configuration that the caller brings or names.
fn source(call: &CommandCall<'_>) -> Result<Option<ConfigInput>, CommandAnswer> {
    match (call.arg(0), call.arg(1), &call.payload) {
        ("file", name, _) if !name.is_empty() => Ok(Some(ConfigInput::File(name.to_owned()))),
        ("", _, Some(text)) => Ok(Some(ConfigInput::Text(text.clone()))),
        ("", _, None) => Ok(None),
        _ => Err(CommandAnswer::error(
            "Require 'file <name>', or a payload ('<<' and lines up to an empty one).",
        )),
    }
}

fn apply(call: &mut CommandCall<'_>) -> Result<CommandAnswer, CommandAnswer> {
    let control = control(call)?;
    let Some(source) = source(call)? else {
        return Err(CommandAnswer::error(
            "Require 'file <name>', or a payload ('<<' and lines up to an empty one).",
        ));
    };
    Ok(submit(&control, ChangeRequest::Apply(source), |report| {
        answer_of(&report)
    }))
}

fn reload(call: &mut CommandCall<'_>) -> Result<CommandAnswer, CommandAnswer> {
    let control = control(call)?;
    let keep = match call.arg(0) {
        "" => false,
        "keep" => true,
        other => return Err(CommandAnswer::error(format!("Unknown word '{other}'."))),
    };
    let outcome = control.request(ChangeRequest::Reload { keep });
    Ok(CommandAnswer::pending(async move {
        // The format of the master's `reload`, so that tools need one pattern only.
        let (success, text) = match outcome.await {
            Ok(report) => match answer_of(&report) {
                CommandAnswer::Report(text) => (1, text),
                _ => (1, String::new()),
            },
            Err(Refusal(why)) => (0, why),
        };
        CommandAnswer::Report(format!("Success={success}\n--\n{text}"))
    }))
}

fn persist(call: &CommandCall<'_>) -> Result<CommandAnswer, CommandAnswer> {
    let control = control(call)?;
    let how = match call.arg(0) {
        "on" => Persist::On,
        "off" => Persist::Off,
        "now" => Persist::Now,
        _ => return Err(CommandAnswer::error("Require 'on', 'off' or 'now'.")),
    };
    Ok(submit(
        &control,
        ChangeRequest::Persist(how),
        move |report| {
            let mut text = report.notes.clone();
            for file in &report.lines {
                let _ = writeln!(text, "Written: {file}");
            }
            match how {
                Persist::Off => text.push_str("Nothing is written any more.\n"),
                _ if report.lines.is_empty() => text.push_str("Nothing to write.\n"),
                _ => {}
            }
            CommandAnswer::Report(text)
        },
    ))
}

fn rollback(call: &mut CommandCall<'_>) -> Result<CommandAnswer, CommandAnswer> {
    let control = control(call)?;
    let number = call.arg(0).parse();
    let number = number.map_err(|_| CommandAnswer::error("Require the number of a generation."))?;
    Ok(submit(
        &control,
        ChangeRequest::Rollback(number),
        |report| answer_of(&report),
    ))
}

fn plan(call: &mut CommandCall<'_>) -> Result<CommandAnswer, CommandAnswer> {
    let control = control(call)?;
    let source = source(call)?;
    Ok(submit(&control, ChangeRequest::Plan(source), |report| {
        let mut text = report.notes.clone();
        for line in &report.lines {
            let _ = writeln!(text, "{line}");
        }
        let last = match (report.lines.is_empty(), report.drains) {
            (true, _) => "Plan: nothing",
            (false, false) => "Plan: changes",
            (false, true) => "Plan: changes with drains",
        };
        let _ = writeln!(text, "{last}");
        CommandAnswer::Report(text)
    }))
}

fn report_history(
    call: &CommandCall<'_>,
    mut write: impl FnMut(&ConfigHistory, &mut String),
) -> Result<CommandAnswer, CommandAnswer> {
    let mut text = String::new();
    control(call)?.config_history(&mut |config_history| write(config_history, &mut text));
    Ok(CommandAnswer::Report(text))
}

fn generations(call: &mut CommandCall<'_>) -> Result<CommandAnswer, CommandAnswer> {
    report_history(call, |config_history, text| {
        text.push_str("# number unix_time changes cause\n");
        for past in config_history.history() {
            let _ = writeln!(
                text,
                "{} {} {} {}",
                past.number,
                past.at_unix_s,
                past.lines.len(),
                past.cause
            );
        }
    })
}

fn overrides(call: &mut CommandCall<'_>) -> Result<CommandAnswer, CommandAnswer> {
    let now = control(call)?.generation();
    report_history(call, |config_history, text| {
        text.push_str("# unix_time key = value (command)\n");
        for (key, entry) in config_history.overrides() {
            let _ = writeln!(
                text,
                "{} {key} = {} ({})",
                entry.at_unix_s, entry.value, entry.command
            );
        }
        for one in config_history.written().section_edits.iter() {
            let done = match one.text {
                Some(_) => "written",
                None => "removed",
            };
            let _ = writeln!(
                text,
                "{} {} = {done} ({})",
                one.at_unix_s, one.title, one.command
            );
        }
        for line in config_history.overridden(&now.config) {
            let _ = writeln!(text, "- {line}");
        }
    })
}

/// The condition of a `wait`.
enum WaitCondition {
    Time,
    ServerRemovable(String, String),
}

fn wait_usage() -> CommandAnswer {
    CommandAnswer::Report(
            "Usage: wait {-h|<duration>} [condition [args...]]\n  - '-h' displays this help\n  - \
             <duration> is the maximum wait time, optionally suffixed by the unit among\n    'us', \
             'ms', 's', 'm', 'h', and 'd'. ; the default unit is milliseconds.\n  - <condition> \
             indicates what to wait for, no longer than the specified\n    duration. Supported \
             conditions are:\n    - <none> : by default, just sleep for the specified duration.\n    \
             - srv-removable <px>/<sv> : wait for this server to become removable.\n"
                .to_owned(),
        )
}

fn wait(call: &mut CommandCall<'_>) -> Result<CommandAnswer, CommandAnswer> {
    match call.arg(0) {
        "-h" => return Ok(wait_usage()),
        "" => return Err(CommandAnswer::error("Expects a duration in milliseconds.")),
        _ => {}
    }
    let delay = duration(call.arg(0)).filter(|delay| !delay.is_zero());
    let delay = delay.ok_or_else(|| CommandAnswer::error("Invalid duration."))?;
    let condition = match call.arg(1) {
        "" => WaitCondition::Time,
        "srv-removable" if call.arg(2).is_empty() => {
            return Err(CommandAnswer::error(
                "Missing server name (<backend>/<server>).",
            ));
        }
        "srv-removable" => {
            let is_named = (call.arg(2).split_once('/')).is_some_and(|(_, name)| !name.is_empty());
            let at = TargetServer::of_word(call, 2).map_err(|why| match is_named {
                true => CommandAnswer::error("Failed."),
                false => why,
            })?;
            WaitCondition::ServerRemovable(
                at.backend.name().to_owned(),
                at.server.name().to_owned(),
            )
        }
        _ => return Ok(wait_usage()),
    };
    let control = control(call)?;
    Ok(CommandAnswer::pending(async move {
        let until = Instant::now() + delay;
        loop {
            if let WaitCondition::ServerRemovable(backend, server) = &condition {
                match removal_obstacle_by_name(&control, backend, server) {
                    None => return info("Done."),
                    Some(RemovalObstacle::Connections) => {}
                    Some(RemovalObstacle::Lasting(why)) => {
                        return CommandAnswer::error(format!("Failed. {why}"));
                    }
                }
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return match condition {
                    WaitCondition::Time => info("Done."),
                    WaitCondition::ServerRemovable(..) => {
                        CommandAnswer::error("Wait delay expired.")
                    }
                };
            }
            let step = match condition {
                WaitCondition::Time => left,
                WaitCondition::ServerRemovable(..) => left.min(POLL_PERIOD),
            };
            sleep(step).await;
        }
    }))
}

/// The time between two checks whether a server can be removed.
const POLL_PERIOD: Duration = Duration::from_millis(5);

/// Parses a time, in milliseconds unless it has a unit; at most a day.
fn duration(text: &str) -> Option<Duration> {
    let digits = text
        .find(|byte: char| !byte.is_ascii_digit())
        .unwrap_or(text.len());
    let number: u64 = text[..digits].parse().ok()?;
    let micros = match &text[digits..] {
        "us" => 1,
        "" | "ms" => 1_000,
        "s" => 1_000_000,
        "m" => 60_000_000,
        "h" => 3_600_000_000,
        "d" => 86_400_000_000,
        _ => return None,
    };
    let time = Duration::from_micros(number.checked_mul(micros)?);
    Some(time.min(Duration::from_secs(86_400)))
}

/// As [`removal_obstacle`], in the present configuration.
fn removal_obstacle_by_name(
    control: &Arc<dyn Control>,
    backend: &str,
    server: &str,
) -> Option<RemovalObstacle> {
    let generation = control.generation();
    let found = generation.backend(backend).and_then(|backend| {
        let server_index = backend.server_named(server)?;
        Some((backend, &backend.servers[server_index]))
    });
    match found {
        Some((backend, server)) => removal_obstacle(backend, server, control),
        None => Some(RemovalObstacle::Lasting("No such server.")),
    }
}
