//! Commands of the master process, and the forwarding of commands to its workers.
//!
//! Source: management manual, section 9.4 "Master CLI".

use std::fmt::Write as _;
use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use ballast_model::{CliLevel, SeverityOutput};
use ballast_worker::{Stream, timeout};

use crate::answer::CommandAnswer;
use crate::command::{Command, CommandCall};
use crate::commands::session::{NO_SEVERITY, severity_of};
use crate::line::CommandInput;
use crate::session::{CliSession, SessionMode};
use crate::shared::{CliShared, Master, ProcessKind, ProcessRole, ProcessRow, TargetWorker};

/// The size of one read.
const READ_BYTES: usize = 16_384;

/// The maximum size of one worker's answer.
const ANSWER_BYTES_MAX: usize = 64 << 20;

pub(crate) static COMMANDS: &[Command] = &[
    // Prefixes are recognised before rows: these rows are only for the help.
    Command::new(
        &["@!<pid>"],
        "@!<pid>",
        "give a command to the process of that id",
        unused,
    ),
    Command::new(
        &["@<relative pid>"],
        "@<relative pid>",
        "give a command to the process of that number",
        unused,
    ),
    Command::new(
        &["@master"],
        "@master",
        "give a command to the master process",
        unused,
    ),
    Command::new(
        &["hard-reload"],
        "hard-reload",
        "read the configuration again in a new worker, and end the old one with its connections",
        |call| reload(call, true),
    )
    .for_level(CliLevel::Operator),
    Command::new(
        &["reload"],
        "reload",
        "read the configuration again",
        |call| reload(call, false),
    )
    .for_level(CliLevel::Operator),
    Command::new(
        &["show", "proc"],
        "show proc",
        "list the processes",
        processes,
    )
    .for_level(CliLevel::Operator),
    Command::new(
        &["show", "startup-logs"],
        "show startup-logs",
        "repeat what was said at the start, or by the last reload",
        |call| CommandAnswer::Report(call.shared.startup_log()),
    )
    .for_level(CliLevel::Operator),
];

fn unused(_: &mut CommandCall<'_>) -> CommandAnswer {
    CommandAnswer::Done
}

fn master(shared: &CliShared) -> Option<&dyn Master> {
    match &shared.role {
        ProcessRole::Master(master) => Some(&**master),
        ProcessRole::Worker(_) => None,
    }
}

fn reload(call: &mut CommandCall<'_>, hard: bool) -> CommandAnswer {
    let Some(reloading) = master(call.shared).map(|master| master.reload(hard)) else {
        return CommandAnswer::Done;
    };
    // HAProxy's master restarts itself then and loses its callers.
    call.session.leaves = true;
    CommandAnswer::pending(async move {
        let (success, log) = match reloading.await {
            Ok(log) => (1, log),
            Err(log) => (0, log),
        };
        CommandAnswer::Report(format!("Success={success}\n--\n{log}"))
    })
}

fn processes(call: &mut CommandCall<'_>) -> CommandAnswer {
    let with_pipes = match call.arg(0) {
        "" => false,
        "debug" => true,
        _ => return CommandAnswer::error("'show proc' only supports 'debug' as argument"),
    };
    let rows = master(call.shared)
        .map(Master::processes)
        .unwrap_or_default();
    let head = format!(
        "{:<15} {:<15} {:<15} {:<15} {:<15}",
        "#<PID>", "<type>", "<reloads>", "<uptime>", "<version>"
    );
    let mut text = match with_pipes {
        true => format!("{head}\t\t {:<15} {:<15}\n", "<ipc_fd[0]>", "<ipc_fd[1]>"),
        false => format!("{head}\n"),
    };
    let mut section = |head: &str, kind: ProcessKind| {
        let mut rows = rows.iter().filter(|row| row.kind == kind).peekable();
        if rows.peek().is_some() || kind == ProcessKind::Worker {
            text.push_str(head);
        }
        for row in rows {
            text.push_str(&process_line(row));
            if with_pipes {
                // HAProxy's pair of sockets to a worker: there is none here.
                let _ = write!(text, "\t\t {:<15} {:<15}", -1, -1);
            }
            text.push('\n');
        }
    };
    section("", ProcessKind::Master);
    section("# workers\n", ProcessKind::Worker);
    section("# old workers\n", ProcessKind::OldWorker);
    CommandAnswer::Report(text)
}

fn process_line(row: &ProcessRow) -> String {
    let reloads = match row.kind {
        ProcessKind::Master => {
            format!("{} [failed: {}]", row.reload_count, row.failed_reload_count)
        }
        _ => row.reload_count.to_string(),
    };
    let kind = match row.kind {
        ProcessKind::Master => "master",
        ProcessKind::Worker | ProcessKind::OldWorker => "worker",
    };
    let s = row.uptime_s;
    let (days, hours, minutes, seconds) = (s / 86_400, s / 3600 % 24, s / 60 % 60, s % 60);
    let uptime = format!("{days}d{hours:02}h{minutes:02}m{seconds:02}s");
    format!(
        "{:<15} {kind:<15} {reloads:<15} {uptime:<15} {:<15}",
        row.process_id, row.version
    )
}

/// The name of the process that answers, for the prompt.
pub(crate) fn prompt(shared: &CliShared, session: &CliSession) -> String {
    match (master(shared), session.target) {
        (None, _) => String::new(),
        (Some(_), None) => "master".into(),
        (Some(master), Some(target)) => master
            .process_id(target)
            .map_or_else(|| "?".into(), |id| id.to_string()),
    }
}

/// The process that a prefix selects.
enum PrefixTarget {
    Master,
    Worker(TargetWorker),
    /// `@@`: the whole session, until the worker closes it.
    Session(TargetWorker),
    Unknown,
}

fn prefix(word: &str) -> Option<PrefixTarget> {
    let word = word.strip_prefix('@')?;
    let (target, whole) = match word.strip_prefix('@') {
        Some(target) => (target, true),
        None => (word, false),
    };
    let worker = |target| match whole {
        true => PrefixTarget::Session(target),
        false => PrefixTarget::Worker(target),
    };
    Some(match target {
        "" | "0" | "master" => PrefixTarget::Master,
        _ => match target.strip_prefix('!') {
            Some(id) => id.parse().map_or(PrefixTarget::Unknown, |id| {
                worker(TargetWorker::Process(id))
            }),
            None => target.parse().map_or(PrefixTarget::Unknown, |number| {
                worker(TargetWorker::Relative(number))
            }),
        },
    })
}

/// What the master does with a command.
pub(crate) enum ForwardOutcome {
    /// The master performs it itself.
    Own(CommandInput),
    /// The prefix changed the session; there is no answer.
    SessionSet,
    /// A prefix that would have changed the session is refused with one line, without an empty line
    /// after it.
    Refusal(String),
    /// The answer of a worker, or the message that there is no such worker.
    Answer(CommandAnswer),
    /// The rest of the session goes to a worker: its socket, the first text to send, and how many
    /// empty lines come before its answer to the caller.
    Relay(OwnedFd, Vec<u8>, usize),
}

/// Forwards a command to the process that its prefix, or an earlier prefix, selects. `says_more`: the caller has
/// sent more than this line.
pub(crate) fn forward(
    master: &dyn Master,
    session: &mut CliSession,
    given: CommandInput,
    says_more: bool,
) -> ForwardOutcome {
    let Some(first) = given.words.first() else {
        return ForwardOutcome::Answer(CommandAnswer::Done);
    };
    let (target, text) = match prefix(first) {
        None if is_of_session(&given.words) => return set_session(session, &given.words),
        None if is_of_master(first) => return ForwardOutcome::Own(given),
        None => match session.target {
            None => return ForwardOutcome::Own(given),
            Some(target) => (target, given.text.as_str()),
        },
        Some(PrefixTarget::Master) if given.words.len() == 1 => {
            session.target = None;
            return ForwardOutcome::SessionSet;
        }
        Some(PrefixTarget::Master) => {
            return ForwardOutcome::Own(CommandInput {
                words: given.words[1..].to_vec(),
                ..given
            });
        }
        Some(PrefixTarget::Worker(target)) => (target, after_word(&given.text)),
        Some(PrefixTarget::Session(target)) => {
            return join(master, session, (&given, says_more), target);
        }
        Some(PrefixTarget::Unknown) => return no_target(session, first),
    };
    let is_master = matches!(target, TargetWorker::Process(id) if id == std::process::id());
    if is_master || master.process_id(target).is_none() {
        return no_target(session, first);
    }
    if text.is_empty() {
        session.target = Some(target);
        return ForwardOutcome::SessionSet;
    }
    let message = message(text, given.payload.as_deref(), session);
    ForwardOutcome::Answer(match master.connect(target) {
        Err(why) => CommandAnswer::error(why),
        Ok(socket) => ask(socket, message, session.idle),
    })
}

/// Whether a command without a prefix is the master's own, whatever process was chosen.
fn is_of_master(first: &str) -> bool {
    matches!(first, "prompt" | "quit")
}

/// Whether a command is about the session with the master: it is never forwarded.
fn is_of_session(words: &[String]) -> bool {
    match words[0].as_str() {
        "expert-mode" | "experimental-mode" | "mcli-debug-mode" | "operator" | "user" => true,
        "set" => words.get(1).is_some_and(|word| word == "severity-output"),
        _ => false,
    }
}

/// Performs such a command. It has no answer unless it is refused.
fn set_session(session: &mut CliSession, words: &[String]) -> ForwardOutcome {
    let level = match words[0].as_str() {
        "set" | "user" => CliLevel::User,
        "operator" => CliLevel::Operator,
        _ => CliLevel::Admin,
    };
    if session.level < level {
        return ForwardOutcome::Refusal("Permission denied!".to_owned());
    }
    let on = match words.get(1).map(String::as_str) {
        Some("on") => Some(true),
        Some("off") => Some(false),
        _ => None,
    };
    match (words[0].as_str(), on) {
        ("user" | "operator", _) => session.level = level,
        ("expert-mode", Some(on)) => session.is_expert = on,
        ("experimental-mode", Some(on)) => session.is_experimental = on,
        ("set", _) => match severity_of(words.get(2)) {
            Some(severity) => session.severity = severity,
            None => return ForwardOutcome::Refusal(NO_SEVERITY.to_owned()),
        },
        _ => {}
    }
    ForwardOutcome::SessionSet
}

/// Connects the rest of a session to a worker. Of the settings of the session only the level goes
/// along, as in HAProxy 3.2.
fn join(
    master: &dyn Master,
    session: &mut CliSession,
    (given, says_more): (&CommandInput, bool),
    target: TargetWorker,
) -> ForwardOutcome {
    if master.process_id(target).is_none() {
        return no_target(session, &given.words[0]);
    }
    let rights = rights(session);
    let mut text = rights.as_bytes().to_vec();
    match after_word(&given.text) {
        // The level is sent with the first line of the caller.
        "" if says_more => {}
        // A session goes on with the worker as it was with the master.
        "" => text.extend_from_slice(mode_for_worker(session).as_bytes()),
        rest => text.extend_from_slice(&message_of(rest, given.payload.as_deref())),
    }
    match master.connect(target) {
        Err(why) => ForwardOutcome::Answer(CommandAnswer::error(why)),
        Ok(socket) => ForwardOutcome::Relay(socket, text, usize::from(!rights.is_empty())),
    }
}

/// The command that turns a new session with a worker to the mode of the caller's.
fn mode_for_worker(session: &CliSession) -> &'static str {
    match (session.mode, session.timed) {
        (SessionMode::Prompt, true) => "prompt p timed\n",
        (SessionMode::Prompt, false) => "prompt p\n",
        _ => "prompt i\n",
    }
}

/// Sends a command to a worker. Each part of the answer must come within the idle timeout of a
/// session.
fn ask(socket: OwnedFd, message: Vec<u8>, idle: Duration) -> CommandAnswer {
    CommandAnswer::pending(async move {
        let stream = match Stream::from_fd(socket) {
            Ok(stream) => stream,
            Err(why) => return CommandAnswer::error(why.to_string()),
        };
        match exchange(&stream, &message, idle).await {
            Ok(text) => CommandAnswer::Report(text),
            Err(why) => CommandAnswer::error(format!("The process did not answer: {why}.")),
        }
    })
}

fn no_target(session: &mut CliSession, word: &str) -> ForwardOutcome {
    session.target = None;
    let word = word.escape_debug();
    ForwardOutcome::Refusal(format!(
        "Can't find the target PID matching the prefix '{word}'"
    ))
}

/// The text after the first word.
fn after_word(text: &str) -> &str {
    text.split_once([' ', '\t'])
        .map_or("", |(_, rest)| rest.trim_start_matches([' ', '\t']))
}

/// The commands that lower the level at the worker to that of the caller. They are sent first,
/// because the worker gives its master all rights.
fn rights(session: &CliSession) -> &'static str {
    match session.level {
        CliLevel::User => "user; ",
        CliLevel::Operator => "operator; ",
        CliLevel::Admin => "",
    }
}

/// The line for the worker.
fn message(text: &str, payload: Option<&[u8]>, session: &CliSession) -> Vec<u8> {
    let mode = |on: bool, command: &'static str| if on { command } else { "" };
    let severity = match session.severity {
        SeverityOutput::None => "",
        SeverityOutput::Number => "set severity-output number; ",
        SeverityOutput::String => "set severity-output string; ",
    };
    let before = [
        mode(session.is_expert, "expert-mode on; "),
        mode(session.is_experimental, "experimental-mode on; "),
        severity,
        rights(session),
    ];
    let mut message = before.concat().into_bytes();
    message.extend_from_slice(&message_of(text, payload));
    message
}

/// The text of a command for the worker.
fn message_of(text: &str, payload: Option<&[u8]>) -> Vec<u8> {
    let mut message = format!("{text}\n").into_bytes();
    if let Some(payload) = payload {
        message.extend_from_slice(payload);
        let mark = text.rsplit("<<").next().unwrap_or_default();
        message.extend_from_slice(mark.as_bytes());
        message.push(b'\n');
    }
    message
}

/// Sends a line and reads the answer to its end.
async fn exchange(stream: &Stream, message: &[u8], idle: Duration) -> io::Result<String> {
    let late = |_| io::Error::from(io::ErrorKind::TimedOut);
    timeout(idle, stream.write_all(message))
        .await
        .map_err(late)??;
    stream.shutdown_write()?;
    let mut answer = Vec::new();
    let mut bytes = vec![0; READ_BYTES];
    loop {
        let count = timeout(idle, stream.read(&mut bytes))
            .await
            .map_err(late)??;
        if count == 0 {
            break;
        }
        if answer.len() + count > ANSWER_BYTES_MAX {
            return Err(io::Error::other("the answer is too long"));
        }
        answer.extend_from_slice(&bytes[..count]);
    }
    // The command that lowers the level is answered by an empty line, and the last empty line is
    // written again with the answer.
    let text = String::from_utf8_lossy(&answer);
    Ok(text.trim_matches('\n').to_owned())
}
