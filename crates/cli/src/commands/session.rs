//! Commands about the session itself.

use std::time::Duration;

use ballast_model::{CliLevel, SeverityOutput};

use crate::answer::CommandAnswer;
use crate::command::{Command, CommandCall};
use crate::help;
use crate::session::SessionMode;

pub(crate) static COMMANDS: &[Command] = &[
    Command::new(&["echo"], "echo <text>", "answer with the text", echo),
    Command::new(
        &["operator"],
        "operator",
        "go on with the rights of level operator",
        |call| lower(call, CliLevel::Operator),
    )
    .for_level(CliLevel::Operator),
    Command::new(
        &["show", "cli", "level"],
        "show cli level",
        "tell the level of this session",
        |call| CommandAnswer::info(level_word(call.session.level)),
    ),
    Command::new(
        &["show", "cli", "sockets"],
        "show cli sockets",
        "list the sockets of this interface",
        sockets,
    ),
    Command::new(
        &["user"],
        "user",
        "go on with the rights of level user",
        |call| lower(call, CliLevel::User),
    ),
    Command::new(
        &["help"],
        "help [<command>]",
        "list the commands, or those that match",
        |call| CommandAnswer::info(help::help(call.commands, call.session, call.args)),
    )
    .always_shown(),
    Command::new(
        &["prompt"],
        "prompt [help | n | i | p | timed ]*",
        "turn the interactive mode with a prompt on and off",
        prompt,
    )
    .always_shown(),
    Command::new(&["quit"], "quit", "close the connection", |call| {
        call.session.quits = true;
        CommandAnswer::Done
    })
    .always_shown(),
];

pub(crate) static WORKER_COMMANDS: &[Command] = &[
    Command::new(
        &["experimental-mode"],
        "experimental-mode [on|off]",
        "allow commands that are experimental, or tell whether they are",
        |call| {
            let turned = toggle("experimental-mode", call, call.session.is_experimental);
            turned.map_or_else(
                |told| told,
                |on| {
                    call.session.is_experimental = on;
                    CommandAnswer::Done
                },
            )
        },
    )
    .for_level(CliLevel::Admin),
    Command::new(
        &["expert-mode"],
        "expert-mode [on|off]",
        "allow commands for developers, or tell whether they are",
        |call| {
            let turned = toggle("expert-mode", call, call.session.is_expert);
            turned.map_or_else(
                |told| told,
                |on| {
                    call.session.is_expert = on;
                    CommandAnswer::Done
                },
            )
        },
    )
    .for_level(CliLevel::Admin),
    Command::new(
        &["set", "output"],
        "set output [json|text]",
        "choose the form of answers: text, or an object a line with its status",
        output,
    ),
    Command::new(
        &["set", "severity-output"],
        "set severity-output [none|number|string]",
        "choose how messages show their severity",
        severity,
    ),
    Command::new(
        &["set", "timeout"],
        "set timeout [cli] <delay>",
        "change how long this session may be silent",
        set_timeout,
    ),
];

fn echo(call: &mut CommandCall<'_>) -> CommandAnswer {
    CommandAnswer::info(call.args.join(" "))
}

/// The new value of a mode; or the answer, when the mode stays as it is.
fn toggle(mode: &str, call: &CommandCall<'_>, now: bool) -> Result<bool, CommandAnswer> {
    match call.arg(0) {
        "" => {
            let state = if now { "ON" } else { "OFF" };
            Err(CommandAnswer::info(format!("{mode} is {state}")))
        }
        // As in HAProxy: any other word turns it off.
        word => Ok(word == "on"),
    }
}

fn output(call: &mut CommandCall<'_>) -> CommandAnswer {
    call.session.is_json = match call.arg(0) {
        "json" => true,
        "text" => false,
        _ => return CommandAnswer::error("one of 'json', 'text' is a required argument"),
    };
    CommandAnswer::Done
}

fn lower(call: &mut CommandCall<'_>, level: CliLevel) -> CommandAnswer {
    call.session.level = level;
    // As in HAProxy: who gives up rights gives up the modes, too.
    call.session.is_experimental = false;
    call.session.is_expert = false;
    CommandAnswer::Done
}

fn level_word(level: CliLevel) -> &'static str {
    match level {
        CliLevel::User => "user",
        CliLevel::Operator => "operator",
        CliLevel::Admin => "admin",
    }
}

fn sockets(call: &mut CommandCall<'_>) -> CommandAnswer {
    let mut text = String::from("# socket lvl processes\n");
    for (label, level) in &call.shared.binds {
        text.push_str(&format!("{label} {} all\n", level_word(*level)));
    }
    CommandAnswer::Report(text)
}

/// Without an argument, toggles between the prompt and no prompt (on the master, which never leaves
/// the interactive mode, between the prompt and that mode).
fn prompt(call: &mut CommandCall<'_>) -> CommandAnswer {
    let is_master = call.shared.is_master();
    let (off, usage) = match is_master {
        true => (SessionMode::Interactive, PROMPT_HELP_OF_MASTER),
        false => (SessionMode::OneShot, PROMPT_HELP),
    };
    if call.args.is_empty() {
        call.session.mode = match call.session.mode {
            SessionMode::Prompt => off,
            _ => SessionMode::Prompt,
        };
        return CommandAnswer::Done;
    }
    let (mut mode, mut timed) = (None, call.session.timed);
    for word in call.args {
        match word.as_str() {
            "n" if !is_master => mode = Some(off),
            "i" => mode = Some(SessionMode::Interactive),
            "p" => mode = Some(SessionMode::Prompt),
            // Said twice, it is said once; a mode that is named, before or behind it, holds.
            "timed" => timed = !call.session.timed,
            "help" => return CommandAnswer::info(usage),
            _ => return CommandAnswer::error(usage),
        }
    }
    call.session.mode = mode.unwrap_or(SessionMode::Prompt);
    call.session.timed = timed;
    CommandAnswer::Done
}

const PROMPT_HELP: &str = "Usage: prompt [help | n | i | p | timed]*\n\
     n      one line: answer it, then close\n\
     i      interactive: stay open\n\
     p      interactive, with a prompt\n\
     timed  show the age of the process in the prompt, or no longer\n";

const PROMPT_HELP_OF_MASTER: &str = "Usage: prompt [help | i | p | timed]*\n\
     i      no prompt\n\
     p      with a prompt\n\
     timed  show the age of the process in the prompt, or no longer";

fn severity(call: &mut CommandCall<'_>) -> CommandAnswer {
    let Some(severity) = severity_of(call.args.first()) else {
        return CommandAnswer::error(NO_SEVERITY);
    };
    call.session.severity = severity;
    CommandAnswer::Done
}

/// The answer to `set severity-output` with another word.
pub(crate) const NO_SEVERITY: &str = "one of 'none', 'number', 'string' is a required argument";

/// The word of `set severity-output`.
pub(crate) fn severity_of(word: Option<&String>) -> Option<SeverityOutput> {
    match word?.as_str() {
        "none" => Some(SeverityOutput::None),
        "number" => Some(SeverityOutput::Number),
        "string" => Some(SeverityOutput::String),
        _ => None,
    }
}

fn set_timeout(call: &mut CommandCall<'_>) -> CommandAnswer {
    if call.arg(0) != "cli" {
        return CommandAnswer::error("'set timeout' only supports 'cli'.");
    }
    if call.arg(1).is_empty() {
        return CommandAnswer::error("Expects an integer value.");
    }
    match delay(call.arg(1)) {
        Some(delay) if !delay.is_zero() => {
            call.session.idle = delay;
            CommandAnswer::Done
        }
        _ => CommandAnswer::error("Invalid timeout value."),
    }
}

/// Parses a time, in seconds unless it has a unit; at most 24 days, as all timers.
pub(crate) fn delay(text: &str) -> Option<Duration> {
    let end = text
        .find(|letter: char| !letter.is_ascii_digit())
        .unwrap_or(text.len());
    let number: u64 = text[..end].parse().ok()?;
    let us = match &text[end..] {
        "us" => 1,
        "ms" => 1_000,
        "" | "s" => 1_000_000,
        "m" => 60_000_000,
        "h" => 3_600_000_000,
        "d" => 86_400_000_000,
        _ => return None,
    };
    let delay = Duration::from_micros(number.checked_mul(us)?);
    (delay.as_millis() <= i32::MAX as u128).then_some(delay)
}
