//! Commands that edit sections: whole ones, their `bind` lines, their rules and settings.
//!
//! The section is edited as text, and the whole section is parsed again like that of a file. `add
//! backend`, `del backend` and `publish backend` are commands of HAProxy 3.4 (management manual,
//! section 9.3); the others are our own.

use std::fmt::Write;

use ballast_edit::{SectionName, SectionOperation, SectionWord};
use ballast_engine::{Generation, RouteTarget};
use ballast_reconcile::kinds::backend as backend_kind;
use ballast_reconcile::{ChangeReport, ChangeRequest};

use super::changes::{admin, info, submit};
use super::target::{answer, backend, control};
use crate::answer::CommandAnswer;
use crate::change_record::ChangeScope;
use crate::command::{Command, CommandCall};

pub(crate) static COMMANDS: &[Command] = &[
    admin(
        &["add", "backend"],
        "add backend <backend> [from <defaults>] [mode <mode>] [<<]",
        "add a new backend, its lines as payload",
        |call| answer(add_section(call, SectionWord::Backend)),
    )
    .changing(ChangeScope::Configuration),
    admin(
        &["add", "frontend"],
        "add frontend <frontend> [from <defaults>] [mode <mode>] [<<]",
        "add a new frontend, its lines as payload",
        |call| answer(add_section(call, SectionWord::Frontend)),
    )
    .changing(ChangeScope::Configuration),
    admin(
        &["add", "listen"],
        "add listen <name> [from <defaults>] [mode <mode>] [<<]",
        "add a frontend and its backend in one, their lines as payload",
        |call| answer(add_section(call, SectionWord::Listen)),
    )
    .changing(ChangeScope::Configuration),
    admin(
        &["set", "backend"],
        "set backend <backend> {<setting> | <<}",
        "give a backend another setting, or other lines",
        |call| answer(set_section(call, SectionWord::Backend)),
    )
    .changing(ChangeScope::Configuration),
    admin(
        &["set", "frontend"],
        "set frontend <frontend> {<setting> | <<}",
        "give a frontend another setting, or other lines",
        |call| answer(set_section(call, SectionWord::Frontend)),
    )
    .changing(ChangeScope::Configuration),
    admin(
        &["set", "listen"],
        "set listen <name> {<setting> | <<}",
        "give a listen section another setting, or other lines",
        |call| answer(set_section(call, SectionWord::Listen)),
    )
    .changing(ChangeScope::Configuration),
    admin(
        &["del", "backend"],
        "del backend <backend>",
        "remove a backend that no frontend leads to",
        |call| answer(del_backend(call)),
    )
    .changing(ChangeScope::Configuration),
    admin(
        &["del", "frontend"],
        "del frontend <frontend>",
        "remove a frontend; its connections may finish",
        |call| answer(del_frontend(call)),
    )
    .changing(ChangeScope::Configuration),
    admin(
        &["del", "listen"],
        "del listen <name>",
        "remove both halves of a listen section; connections may finish",
        |call| answer(del_listen(call)),
    )
    .changing(ChangeScope::Configuration),
    admin(
        &["publish", "backend"],
        "publish backend <backend>",
        "let rules lead to a backend",
        |call| answer(publish(call, true)),
    )
    .changing(ChangeScope::Configuration),
    admin(
        &["unpublish", "backend"],
        "unpublish backend <backend>",
        "have rules pass a backend over",
        |call| answer(publish(call, false)),
    )
    .changing(ChangeScope::Configuration),
    admin(
        &["add", "bind"],
        "add bind <frontend> <address> [<words>]",
        "have a frontend listen on another address",
        |call| answer(add_bind(call)),
    )
    .changing(ChangeScope::Configuration),
    admin(
        &["set", "bind"],
        "set bind <frontend>/<name> <address> [<words>]",
        "write a bind line anew; found by its name, address or number",
        |call| answer(set_bind(call)),
    )
    .changing(ChangeScope::Configuration),
    admin(
        &["del", "bind"],
        "del bind <frontend>/<name>",
        "remove a bind line; found by its name, address or number",
        |call| answer(del_bind(call)),
    )
    .changing(ChangeScope::Configuration),
    admin(
        &["add", "rule"],
        "add rule {frontend|backend|listen} <name> [before <number>] <rule>",
        "add a rule after the last of its kind, or before a line",
        |call| answer(add_rule(call)),
    )
    .changing(ChangeScope::Configuration),
    admin(
        &["set", "rule"],
        "set rule {frontend|backend|listen} <name> <number> <rule>",
        "write the rule on a line anew",
        |call| answer(set_rule(call)),
    )
    .changing(ChangeScope::Configuration),
    admin(
        &["del", "rule"],
        "del rule {frontend|backend|listen} <name> <number>",
        "remove the rule on a line",
        |call| answer(del_rule(call)),
    )
    .changing(ChangeScope::Configuration),
    admin(
        &["show", "section"],
        "show section {frontend|backend|listen} <name>",
        "show the lines of a section, numbered",
        |call| answer(show_section(call)),
    ),
];

/// Submits an edit. The answer is `done` and the notes about the edit.
fn submit_edit(
    call: &CommandCall<'_>,
    section: SectionName,
    edit: SectionOperation,
    command: String,
    done: &'static str,
) -> Result<CommandAnswer, CommandAnswer> {
    let request = ChangeRequest::Edit {
        section,
        edit,
        command,
    };
    Ok(submit(&control(call)?, request, move |report| {
        answer_of(done, &report)
    }))
}

/// The answer of HAProxy to a change: its warnings, then the message that it is done.
fn answer_of(done: &str, report: &ChangeReport) -> CommandAnswer {
    if report.notes.is_empty() {
        return info(done);
    }
    info(&format!("{}{done}", report.notes))
}

/// A section that is there.
fn known(
    call: &CommandCall<'_>,
    kind: SectionWord,
    name: &str,
) -> Result<SectionName, CommandAnswer> {
    let generation = control(call)?.generation();
    let is_there = match kind {
        SectionWord::Backend => generation.backend(name).is_some(),
        SectionWord::Frontend => generation.frontend(name).is_some(),
        SectionWord::Listen => generation
            .frontend(name)
            .is_some_and(|frontend| frontend.model.common.listen),
    };
    if name.is_empty() || !is_there {
        return Err(CommandAnswer::error(format!("No such {}.", kind.word())));
    }
    Ok(SectionName {
        kind,
        name: name.to_owned(),
    })
}

/// The payload as text.
fn text(call: &CommandCall<'_>) -> Result<String, CommandAnswer> {
    let bytes = call.payload.clone().unwrap_or_default();
    String::from_utf8(bytes).map_err(|_| CommandAnswer::error("The lines are not valid UTF-8."))
}

/// A section whose head is on the command's line and whose lines are the payload.
fn add_section(
    call: &mut CommandCall<'_>,
    kind: SectionWord,
) -> Result<CommandAnswer, CommandAnswer> {
    let word = kind.word();
    let name = call.arg(0).to_owned();
    if name.is_empty() {
        return Err(CommandAnswer::error(format!("Require a {word} name.")));
    }
    let halves = match kind {
        SectionWord::Listen => &[SectionWord::Frontend, SectionWord::Backend][..],
        _ => std::slice::from_ref(&kind),
    };
    if let Some(half) = halves
        .iter()
        .find(|half| known(call, **half, &name).is_ok())
    {
        let word = half.word();
        return Err(CommandAnswer::error(format!(
            "A {word} '{name}' already exists."
        )));
    }
    let mut head = Vec::new();
    let mut lines = String::new();
    let mut words = call.args[1..].iter();
    while let Some(word) = words.next() {
        let value = words.next();
        match (word.as_str(), value) {
            ("from", Some(value)) => head.extend(["from".to_owned(), value.clone()]),
            ("mode" | "guid", Some(value)) => {
                let _ = writeln!(lines, "    {word} {value}");
            }
            _ => return Err(CommandAnswer::error(format!("Unknown word '{word}'."))),
        }
    }
    lines.push_str(&text(call)?);
    let done = match kind {
        SectionWord::Backend => "New backend registered.",
        SectionWord::Frontend => "New frontend registered.",
        SectionWord::Listen => "New listen section registered.",
    };
    let command = format!("add {word} {name}");
    let section = SectionName { kind, name };
    submit_edit(
        call,
        section,
        SectionOperation::Add(head, lines),
        command,
        done,
    )
}

fn set_section(
    call: &mut CommandCall<'_>,
    kind: SectionWord,
) -> Result<CommandAnswer, CommandAnswer> {
    let section = known(call, kind, call.arg(0))?;
    let words = &call.args[1..];
    let mut command = format!("set {} {}", kind.word(), section.name);
    let edit = match (words.is_empty(), &call.payload) {
        (true, Some(_)) => SectionOperation::Write(text(call)?),
        (false, None) => {
            let _ = write!(command, " {}", words.join(" "));
            SectionOperation::Set(words.to_vec())
        }
        _ => {
            return Err(CommandAnswer::error(
                "Require a setting and its value, or all lines as payload ('<<' and lines up to \
                 an empty one).",
            ));
        }
    };
    submit_edit(call, section, edit, command, "Section changed.")
}

fn publish(call: &CommandCall<'_>, published: bool) -> Result<CommandAnswer, CommandAnswer> {
    let backend = backend(call)?;
    backend.state.publish(published);
    let verb = if published { "publish" } else { "unpublish" };
    let key = backend_kind::override_key(backend.name(), &backend_kind::PUBLISHED);
    let command = format!("{verb} backend {}", backend.name());
    control(call)?.note_override(key, backend_kind::published(published), command);
    Ok(info(if published {
        "Backend published."
    } else {
        "Backend unpublished."
    }))
}

fn del_backend(call: &mut CommandCall<'_>) -> Result<CommandAnswer, CommandAnswer> {
    let section = own(call, SectionWord::Backend)?;
    let generation = control(call)?.generation();
    let backend_index = generation.backend_named(&section.name);
    refuse_if_routed_to(&generation, &section.name)?;
    let used = backend_index.is_some_and(|backend_index| {
        generation.backends[backend_index].state.sessions.current() > 0
    });
    if used {
        return Err(CommandAnswer::error(
            "Backend still has sessions attached to it, cannot remove it.",
        ));
    }
    let command = format!("del backend {}", section.name);
    submit_edit(
        call,
        section,
        SectionOperation::Remove,
        command,
        "Backend deleted.",
    )
}

fn del_frontend(call: &mut CommandCall<'_>) -> Result<CommandAnswer, CommandAnswer> {
    let section = own(call, SectionWord::Frontend)?;
    let command = format!("del frontend {}", section.name);
    submit_edit(
        call,
        section,
        SectionOperation::Remove,
        command,
        "Frontend deleted.",
    )
}

fn del_listen(call: &mut CommandCall<'_>) -> Result<CommandAnswer, CommandAnswer> {
    let section = known(call, SectionWord::Listen, call.arg(0))?;
    refuse_if_routed_to(&control(call)?.generation(), &section.name)?;
    let command = format!("del listen {}", section.name);
    submit_edit(
        call,
        section,
        SectionOperation::Remove,
        command,
        "Listen section deleted.",
    )
}

/// A section that is not half of another.
fn own(call: &CommandCall<'_>, kind: SectionWord) -> Result<SectionName, CommandAnswer> {
    let section = known(call, kind, call.arg(0))?;
    if known(call, SectionWord::Listen, &section.name).is_ok() {
        return Err(CommandAnswer::error(format!(
            "'{0}' is a listen section: 'del listen {0}' removes both halves.",
            section.name
        )));
    }
    Ok(section)
}

/// Refuses to remove a backend that another frontend routes to.
fn refuse_if_routed_to(generation: &Generation, name: &str) -> Result<(), CommandAnswer> {
    let backend_index = generation.backend_named(name);
    let mut others = generation
        .frontends
        .iter()
        .filter(|frontend| !(frontend.model.common.listen && frontend.name() == name));
    let led_to = others.any(|frontend| {
        frontend.default_backend == backend_index
            || frontend
                .routes
                .iter()
                .any(|route| matches!(route.target, RouteTarget::Backend(to) if Some(to) == backend_index))
    });
    if led_to {
        return Err(CommandAnswer::error(
            "This backend cannot be removed: a frontend leads to it.",
        ));
    }
    Ok(())
}

fn add_bind(call: &mut CommandCall<'_>) -> Result<CommandAnswer, CommandAnswer> {
    let section = known(call, SectionWord::Frontend, call.arg(0))?;
    let words = call.args[1..].to_vec();
    if words.is_empty() {
        return Err(CommandAnswer::error("Require an address to listen on."));
    }
    let command = format!("add bind {}", call.args.join(" "));
    submit_edit(
        call,
        section,
        SectionOperation::AddBind(words),
        command,
        "Bind added.",
    )
}

/// The frontend and bind that a command names.
fn bind_at(call: &CommandCall<'_>) -> Result<(SectionName, String), CommandAnswer> {
    // The name may be an address with a path.
    let Some((frontend, which)) = call.arg(0).split_once('/') else {
        return Err(CommandAnswer::error("Require 'frontend/bind'."));
    };
    if which.is_empty() {
        return Err(CommandAnswer::error("Require 'frontend/bind'."));
    }
    let section = known(call, SectionWord::Frontend, frontend)?;
    Ok((section, which.to_owned()))
}

fn set_bind(call: &mut CommandCall<'_>) -> Result<CommandAnswer, CommandAnswer> {
    let (section, which) = bind_at(call)?;
    let words = call.args[1..].to_vec();
    if words.is_empty() {
        return Err(CommandAnswer::error("Require an address to listen on."));
    }
    let command = format!("set bind {}", call.args.join(" "));
    let edit = SectionOperation::SetBind(which, words);
    submit_edit(call, section, edit, command, "Bind changed.")
}

fn del_bind(call: &mut CommandCall<'_>) -> Result<CommandAnswer, CommandAnswer> {
    let (section, which) = bind_at(call)?;
    let command = format!("del bind {}", call.arg(0));
    let edit = SectionOperation::RemoveBind(which);
    submit_edit(call, section, edit, command, "Bind deleted.")
}

/// The section that the first two words name.
fn section_at(call: &CommandCall<'_>) -> Result<SectionName, CommandAnswer> {
    let kinds = [
        SectionWord::Frontend,
        SectionWord::Backend,
        SectionWord::Listen,
    ];
    let kind = kinds.into_iter().find(|kind| kind.word() == call.arg(0));
    let Some(kind) = kind else {
        return Err(CommandAnswer::error(
            "Require 'frontend', 'backend' or 'listen' and a name.",
        ));
    };
    known(call, kind, call.arg(1))
}

fn number(text: &str) -> Result<u32, CommandAnswer> {
    let number = text.parse().ok().filter(|&number| number > 0);
    number.ok_or_else(|| CommandAnswer::error("Require the number of a line: see 'show section'."))
}

fn rule(words: &[String]) -> Result<Vec<String>, CommandAnswer> {
    if words.is_empty() {
        return Err(CommandAnswer::error("Require a rule."));
    }
    Ok(words.to_vec())
}

fn add_rule(call: &mut CommandCall<'_>) -> Result<CommandAnswer, CommandAnswer> {
    let section = section_at(call)?;
    let (before, words) = match call.arg(2) {
        "before" => (Some(number(call.arg(3))?), call.args.get(4..)),
        _ => (None, call.args.get(2..)),
    };
    let words = rule(words.unwrap_or_default())?;
    let command = format!("add rule {}", call.args.join(" "));
    let edit = SectionOperation::AddRule(before, words);
    submit_edit(call, section, edit, command, "Rule added.")
}

fn set_rule(call: &mut CommandCall<'_>) -> Result<CommandAnswer, CommandAnswer> {
    let section = section_at(call)?;
    let at = number(call.arg(2))?;
    let words = rule(call.args.get(3..).unwrap_or_default())?;
    let command = format!("set rule {}", call.args.join(" "));
    submit_edit(
        call,
        section,
        SectionOperation::SetRule(at, words),
        command,
        "Rule changed.",
    )
}

fn del_rule(call: &mut CommandCall<'_>) -> Result<CommandAnswer, CommandAnswer> {
    let section = section_at(call)?;
    let at = number(call.arg(2))?;
    let command = format!("del rule {}", call.args.join(" "));
    submit_edit(
        call,
        section,
        SectionOperation::RemoveRule(at),
        command,
        "Rule deleted.",
    )
}

fn show_section(call: &mut CommandCall<'_>) -> Result<CommandAnswer, CommandAnswer> {
    let section = section_at(call)?;
    let request = ChangeRequest::Section(section);
    Ok(submit(&control(call)?, request, |report| {
        let mut text = String::new();
        for (number, line) in report.lines.iter().enumerate() {
            match number {
                0 => drop(writeln!(text, "     {line}")),
                _ => drop(writeln!(text, "{number:4} {line}")),
            }
        }
        CommandAnswer::Report(text)
    }))
}
