//! Commands of the master process, and passing commands on to its workers.
//!
//! Source: management manual, section 9.4 "Master CLI".

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use ballast_model::CliLevel;
use ballast_worker::{Stream, timeout};

use crate::answer::Answer;
use crate::catalogue::{Call, Command};
use crate::desk::{Desk, House, Master, ProcessKind, ProcessRow, Target};
use crate::line::Given;
use crate::session::Session;

/// Bytes asked of the kernel at once.
const READ_BYTES: usize = 16_384;

/// Bytes of one worker's answer at most.
const ANSWER_BYTES_MAX: usize = 64 << 20;

pub(crate) static COMMANDS: &[Command] = &[
    // Prefixes are recognised before rows are: these are here to be listed.
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
        &["reload"],
        "reload",
        "read the configuration again",
        reload,
    )
    .for_level(CliLevel::Operator),
    Command::new(
        &["show", "proc"],
        "show proc",
        "list the processes",
        processes,
    ),
];

fn unused(_: &mut Call<'_>) -> Answer {
    Answer::Done
}

fn master(desk: &Desk) -> Option<&dyn Master> {
    match &desk.house {
        House::Master(master) => Some(&**master),
        House::Worker(_) => None,
    }
}

fn reload(call: &mut Call<'_>) -> Answer {
    let Some(reloading) = master(call.desk).map(Master::reload) else {
        return Answer::Done;
    };
    Answer::later(async move {
        let (success, log) = match reloading.await {
            Ok(log) => (1, log),
            Err(log) => (0, log),
        };
        Answer::Report(format!("Success={success}\n--\n{log}"))
    })
}

fn processes(call: &mut Call<'_>) -> Answer {
    let rows = master(call.desk).map(Master::processes).unwrap_or_default();
    let mut text = format!(
        "{:<15} {:<15} {:<15} {:<15} {:<15}\n",
        "#<PID>", "<type>", "<reloads>", "<uptime>", "<version>"
    );
    let mut section = |head: &str, kind: ProcessKind| {
        let mut rows = rows.iter().filter(|row| row.kind == kind).peekable();
        if rows.peek().is_some() || kind == ProcessKind::Worker {
            text.push_str(head);
        }
        for row in rows {
            text.push_str(&process_line(row));
        }
    };
    section("", ProcessKind::Master);
    section("# workers\n", ProcessKind::Worker);
    section("# old workers\n", ProcessKind::OldWorker);
    text.push_str("# programs\n");
    Answer::Report(text)
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
        "{:<15} {kind:<15} {reloads:<15} {uptime:<15} {:<15}\n",
        row.process_id, row.version
    )
}

/// Who answers, before the `>` of the prompt.
pub(crate) fn prompt(desk: &Desk, session: &Session) -> String {
    match (master(desk), session.target) {
        (None, _) => String::new(),
        (Some(_), None) => "master".into(),
        (Some(master), Some(target)) => master
            .process_id(target)
            .map_or_else(|| "?".into(), |id| id.to_string()),
    }
}

/// Where a prefix sends a command.
enum Prefix {
    Master,
    Worker(Target),
    Unknown,
}

fn prefix(word: &str) -> Option<Prefix> {
    let target = word.strip_prefix('@')?;
    Some(match target {
        "" | "master" => Prefix::Master,
        _ => match target.strip_prefix('!') {
            Some(id) => id
                .parse()
                .map_or(Prefix::Unknown, |id| Prefix::Worker(Target::Process(id))),
            None => target.parse().map_or(Prefix::Unknown, |number| {
                Prefix::Worker(Target::Relative(number))
            }),
        },
    })
}

/// What became of a command given to the master.
pub(crate) enum Passed {
    /// It is the master's own: these are its words.
    Own(Given),
    /// It chose whom the next ones go to; there is nothing to answer.
    Chosen,
    /// A worker was asked, or there is none.
    Answered(Answer),
}

/// Passes a command on to where its prefix, or an earlier one, says.
pub(crate) fn forward(master: &dyn Master, session: &mut Session, given: Given) -> Passed {
    let Some(first) = given.words.first() else {
        return Passed::Own(given);
    };
    let (target, text) = match prefix(first) {
        None => match session.target {
            None => return Passed::Own(given),
            Some(target) => (target, given.text.as_str()),
        },
        Some(Prefix::Master) if given.words.len() == 1 => {
            session.target = None;
            return Passed::Chosen;
        }
        Some(Prefix::Master) => {
            return Passed::Own(Given {
                words: given.words[1..].to_vec(),
                ..given
            });
        }
        Some(Prefix::Worker(target)) => (target, after_word(&given.text)),
        Some(Prefix::Unknown) => return Passed::Answered(no_target(session, first)),
    };
    if master.process_id(target).is_none() {
        return Passed::Answered(no_target(session, first));
    }
    if text.is_empty() {
        session.target = Some(target);
        return Passed::Chosen;
    }
    let message = message(text, given.payload.as_deref(), session);
    Passed::Answered(match master.connect(target) {
        Err(why) => Answer::error(why),
        Ok(socket) => ask(socket, message, session.idle),
    })
}

/// Asks a worker. It must answer, piece by piece, within the time a session may be silent.
fn ask(socket: OwnedFd, message: Vec<u8>, idle: Duration) -> Answer {
    Answer::later(async move {
        let stream = match Stream::from_fd(socket) {
            Ok(stream) => stream,
            Err(why) => return Answer::error(why.to_string()),
        };
        match exchange(&stream, &message, idle).await {
            Ok(text) => Answer::Report(text),
            Err(why) => Answer::error(format!("The process did not answer: {why}.")),
        }
    })
}

fn no_target(session: &mut Session, word: &str) -> Answer {
    session.target = None;
    let word = word.escape_debug();
    Answer::error(format!(
        "Can't find the target PID matching the prefix '{word}'"
    ))
}

/// What follows the first word.
fn after_word(text: &str) -> &str {
    text.split_once([' ', '\t'])
        .map_or("", |(_, rest)| rest.trim_start_matches([' ', '\t']))
}

/// The line for the worker: what the caller may do comes first, because the worker trusts its
/// master with everything.
fn message(text: &str, payload: Option<&[u8]>, session: &Session) -> Vec<u8> {
    let mode = |on: bool, command: &'static str| if on { command } else { "" };
    let expert = mode(session.is_expert, "expert-mode on; ");
    let experimental = mode(session.is_experimental, "experimental-mode on; ");
    let lower = match session.level {
        CliLevel::User => "user; ",
        CliLevel::Operator => "operator; ",
        CliLevel::Admin => "",
    };
    let mut message = format!("{expert}{experimental}{lower}{text}\n").into_bytes();
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
    // Lowering the level was answered by an empty line of its own, and the last empty line is
    // written again by whoever answers.
    let text = String::from_utf8_lossy(&answer);
    Ok(text.trim_matches('\n').to_owned())
}
