//! Commands that change what runs, and those that show what was changed and by whom.
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

use super::target::{ServerAt, answer, control};
use crate::answer::{Answer, Severity};
use crate::change_record::Changes;
use crate::command::{Call, Command};
use crate::control::Control;

pub(crate) static COMMANDS: &[Command] = &[
    admin(
        &["add", "server"],
        "add server <bk>/<srv>",
        "create a new server",
        add_server,
    )
    .changing(Changes::State),
    admin(
        &["del", "server"],
        "del server <bk>/<srv>",
        "remove a server in maintenance mode",
        |call| answer(del_server(call)),
    )
    .changing(Changes::State),
    admin(
        &["apply"],
        "apply [file <name>] [<<]",
        "put a whole configuration in force, from a file or the payload",
        |call| answer(apply(call)),
    )
    .changing(Changes::Configuration),
    admin(
        &["persist"],
        "persist {on|off|now}",
        "write what was set by command back to the files [after each change]",
        |call| answer(persist(call)),
    )
    .changing(Changes::Configuration),
    admin(
        &["reload"],
        "reload [keep]",
        "read the files again and apply them [keep overrides]",
        |call| answer(reload(call)),
    )
    .changing(Changes::Configuration),
    admin(
        &["rollback"],
        "rollback <generation>",
        "put a former configuration in force again",
        |call| answer(rollback(call)),
    )
    .changing(Changes::Configuration),
    // It changes nothing, and reads files of the machine, of which its answer tells.
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
    handler: fn(&mut Call<'_>) -> Answer,
) -> Command {
    Command::new(words, usage, help, handler).for_level(CliLevel::Admin)
}

/// Submits a change request, and answers what `done` makes of its report.
pub(super) fn submit(
    control: &Arc<dyn Control>,
    request: ChangeRequest,
    done: impl FnOnce(ChangeReport) -> Answer + 'static,
) -> Answer {
    let outcome = control.request(request);
    Answer::later(async move {
        match outcome.await {
            Ok(report) => done(report),
            Err(Refusal(why)) => Answer::error(why.trim_end().to_owned()),
        }
    })
}

pub(super) fn info(text: &str) -> Answer {
    Answer::info(text.to_owned())
}

/// The answer of a change: its lines, warnings and notes.
fn answer_of(report: &ChangeReport) -> Answer {
    let mut text = report.notes.clone();
    if report.lines.is_empty() {
        text.push_str("Nothing to change.\n");
    } else {
        let _ = writeln!(text, "Generation {} is in force.", report.generation);
    }
    for line in &report.lines {
        let _ = writeln!(text, "{line}");
    }
    Answer::Report(text)
}

fn add_server(call: &mut Call<'_>) -> Answer {
    answer((|| {
        if call.arg(0) == "help" {
            return Ok(Answer::Report(dynamic_words(&control(call)?)));
        }
        let Some((backend, server)) = call.arg(0).split_once('/') else {
            return Err(Answer::error("Require 'backend/server'."));
        };
        if server.is_empty() {
            return Err(Answer::error("Require 'backend/server'."));
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

/// What `add server help` lists.
fn dynamic_words(control: &Arc<dyn Control>) -> String {
    let mut text = String::from("List of keywords supported for dynamic server:\n");
    for word in control.server_words() {
        text.push_str(word);
        text.push('\n');
    }
    text
}

/// Why a server cannot go now.
pub(super) fn unremovable(
    call_backend: &Backend,
    server: &Server,
    control: &Arc<dyn Control>,
) -> Option<&'static str> {
    let generation = control.generation();
    let tracked = generation.backends.iter().any(|backend| {
        backend.servers.iter().any(|other| {
            other.model.track.as_ref().is_some_and(|(backend, name)| {
                backend == call_backend.name() && name == server.name()
            })
        })
    });
    let ruled =
        call_backend.model.use_servers.iter().any(
            |rule| matches!(&rule.target, UseServerTarget::Static(name) if name == server.name()),
        );
    if tracked || ruled {
        return Some(
            "This server cannot be removed at runtime due to other configuration elements \
             pointing to it.",
        );
    }
    if !server.state.health().admin().is_maint() {
        return Some("Only servers in maintenance mode can be deleted.");
    }
    let state = &server.state;
    let used = state.connections.now().saturating_sub(state.idle.now());
    if state.sessions.now() > 0 || state.queue.now() > 0 || used > 0 {
        return Some("Server still has connections attached to it, cannot remove it.");
    }
    None
}

fn del_server(call: &mut Call<'_>) -> Result<Answer, Answer> {
    let at = ServerAt::of(call)?;
    if let Some(why) = unremovable(&at.backend, &at.server, &at.control) {
        return Err(Answer::error(why));
    }
    let (backend, server) = (at.backend.name().to_owned(), at.server.name().to_owned());
    let request = ChangeRequest::Change {
        command: format!("del server {backend}/{server}"),
        changes: vec![Change::RemoveServer(backend, server)],
    };
    Ok(submit(&at.control, request, |_| {
        Answer::Message(Severity::Info, "Server deleted.".into())
    }))
}

/// A configuration that the caller brings or names.
fn source(call: &Call<'_>) -> Result<Option<ConfigInput>, Answer> {
    match (call.arg(0), call.arg(1), &call.payload) {
        ("file", name, _) if !name.is_empty() => Ok(Some(ConfigInput::File(name.to_owned()))),
        ("", _, Some(text)) => Ok(Some(ConfigInput::Text(text.clone()))),
        ("", _, None) => Ok(None),
        _ => Err(Answer::error(
            "Require 'file <name>', or a payload ('<<' and lines up to an empty one).",
        )),
    }
}

fn apply(call: &mut Call<'_>) -> Result<Answer, Answer> {
    let control = control(call)?;
    let Some(source) = source(call)? else {
        return Err(Answer::error(
            "Require 'file <name>', or a payload ('<<' and lines up to an empty one).",
        ));
    };
    Ok(submit(&control, ChangeRequest::Apply(source), |report| {
        answer_of(&report)
    }))
}

fn reload(call: &mut Call<'_>) -> Result<Answer, Answer> {
    let control = control(call)?;
    let keep = match call.arg(0) {
        "" => false,
        "keep" => true,
        other => return Err(Answer::error(format!("Unknown word '{other}'."))),
    };
    let outcome = control.request(ChangeRequest::Reload { keep });
    Ok(Answer::later(async move {
        // As the master's `reload` answers, so that tools need one pattern only.
        let (success, text) = match outcome.await {
            Ok(report) => match answer_of(&report) {
                Answer::Report(text) => (1, text),
                _ => (1, String::new()),
            },
            Err(Refusal(why)) => (0, why),
        };
        Answer::Report(format!("Success={success}\n--\n{text}"))
    }))
}

fn persist(call: &Call<'_>) -> Result<Answer, Answer> {
    let control = control(call)?;
    let how = match call.arg(0) {
        "on" => Persist::On,
        "off" => Persist::Off,
        "now" => Persist::Now,
        _ => return Err(Answer::error("Require 'on', 'off' or 'now'.")),
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
            Answer::Report(text)
        },
    ))
}

fn rollback(call: &mut Call<'_>) -> Result<Answer, Answer> {
    let control = control(call)?;
    let number = call.arg(0).parse();
    let number = number.map_err(|_| Answer::error("Require the number of a generation."))?;
    Ok(submit(
        &control,
        ChangeRequest::Rollback(number),
        |report| answer_of(&report),
    ))
}

fn plan(call: &mut Call<'_>) -> Result<Answer, Answer> {
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
        Answer::Report(text)
    }))
}

fn look(
    call: &Call<'_>,
    mut write: impl FnMut(&ConfigHistory, &mut String),
) -> Result<Answer, Answer> {
    let mut text = String::new();
    control(call)?.config_history(&mut |config_history| write(config_history, &mut text));
    Ok(Answer::Report(text))
}

fn generations(call: &mut Call<'_>) -> Result<Answer, Answer> {
    look(call, |config_history, text| {
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

fn overrides(call: &mut Call<'_>) -> Result<Answer, Answer> {
    let now = control(call)?.generation();
    look(call, |config_history, text| {
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

/// What can be waited for.
enum Condition {
    Time,
    ServerRemovable(String, String),
}

fn how_to_wait() -> Answer {
    Answer::Report(
            "Usage: wait {-h|<duration>} [condition [args...]]\n  - '-h' displays this help\n  - \
             <duration> is the maximum wait time, optionally suffixed by the unit among\n    'us', \
             'ms', 's', 'm', 'h', and 'd'. ; the default unit is milliseconds.\n  - <condition> \
             indicates what to wait for, no longer than the specified\n    duration. Supported \
             conditions are:\n    - <none> : by default, just sleep for the specified duration.\n    \
             - srv-removable <px>/<sv> : wait for this server to become removable.\n"
                .to_owned(),
        )
}

fn wait(call: &mut Call<'_>) -> Result<Answer, Answer> {
    match call.arg(0) {
        "-h" => return Ok(how_to_wait()),
        "" => return Err(Answer::error("Expects a duration in milliseconds.")),
        _ => {}
    }
    let delay = duration(call.arg(0)).filter(|delay| !delay.is_zero());
    let delay = delay.ok_or_else(|| Answer::error("Invalid duration."))?;
    let condition = match call.arg(1) {
        "" => Condition::Time,
        "srv-removable" if call.arg(2).is_empty() => {
            return Err(Answer::error("Missing server name (<backend>/<server>)."));
        }
        "srv-removable" => {
            let at = ServerAt::of_word(call, 2)?;
            Condition::ServerRemovable(at.backend.name().to_owned(), at.server.name().to_owned())
        }
        _ => return Ok(how_to_wait()),
    };
    let control = control(call)?;
    Ok(Answer::later(async move {
        let until = Instant::now() + delay;
        loop {
            let why = match &condition {
                Condition::Time => Some("Wait delay expired."),
                Condition::ServerRemovable(backend, server) => {
                    let generation = control.generation();
                    let found = generation.backend(backend).and_then(|backend| {
                        let place = backend.server_named(server)?;
                        Some((Arc::clone(backend), Arc::clone(&backend.servers[place])))
                    });
                    match found {
                        Some((backend, server)) => unremovable(&backend, &server, &control),
                        None => Some("No such server."),
                    }
                }
            };
            let hopeless = why.is_some_and(|why| why.starts_with("Only") || why.starts_with("No "));
            match why {
                None => return info("Done."),
                Some(why) if hopeless => return Answer::error(format!("Failed. {why}")),
                Some(_) if Instant::now() >= until => {
                    return match condition {
                        Condition::Time => info("Done."),
                        Condition::ServerRemovable(..) => Answer::error("Wait delay expired."),
                    };
                }
                Some(_) => {
                    let left = until.saturating_duration_since(Instant::now());
                    let step = match condition {
                        Condition::Time => left,
                        Condition::ServerRemovable(..) => left.min(LOOK_PERIOD),
                    };
                    sleep(step).await;
                }
            }
        }
    }))
}

/// Between two looks at whether a server can go.
const LOOK_PERIOD: Duration = Duration::from_millis(5);

/// A time with a unit, milliseconds without; at most a day.
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
