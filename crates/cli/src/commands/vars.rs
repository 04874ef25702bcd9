//! Variables of the process: read and set by operators.
//!
//! Source: management manual, section 9.3, "get var" and "set var"; `show vars` is our own.

use std::fmt::Write as _;

use ballast_engine::SetVariableError;
use ballast_expr::{
    Expr, ExpressionReference, LogFormat, Phase, Usage, Value, VarName, VarScope, text_of_bytes,
};
use ballast_model::{CliLevel, VariableSource};
use ballast_reconcile::kinds::variable::{VALUE, VARIABLE};
use ballast_reconcile::{ObjectName, OverrideKey, OverrideValue};

use super::target::{answer, command_text, control};
use crate::answer::CommandAnswer;
use crate::change_record::ChangeScope;
use crate::command::{Command, CommandCall};
use crate::session::RequiredMode;

pub(crate) static COMMANDS: &[Command] = &[
    Command::new(
        &["get", "var"],
        "get var <name>",
        "tell the value of a variable of the process",
        |call| answer(get(call)),
    )
    .for_level(CliLevel::Operator),
    Command::new(
        &["set", "var"],
        "set var <name> [fmt|expr] {<fmt>|<expr>}",
        "set a variable of the process to the value of an expression or a format",
        |call| answer(set(call)),
    )
    .changing(ChangeScope::State)
    .for_level(CliLevel::Operator)
    .restricted(RequiredMode::Experimental),
    Command::new(
        &["show", "vars"],
        "show vars",
        "list the variables of the process",
        |call| answer(show(call)),
    )
    .for_level(CliLevel::Operator),
];

/// The variable that the first word names.
fn name(
    call: &CommandCall<'_>,
) -> Result<Result<VarName, ballast_expr::ExpressionError>, CommandAnswer> {
    match call.arg(0) {
        "" => Err(CommandAnswer::error(
            "Missing process-wide variable identifier.",
        )),
        word => Ok(VarName::parse(word)),
    }
}

fn get(call: &CommandCall<'_>) -> Result<CommandAnswer, CommandAnswer> {
    let not_found = || CommandAnswer::error("Variable not found.");
    let name = name(call)?.map_err(|_| not_found())?;
    if name.scope != VarScope::Proc {
        return Err(not_found());
    }
    let now = control(call)?.registry().process().variables.now();
    let value = now.value(&name.name).ok_or_else(not_found)?;
    Ok(CommandAnswer::info(line(&name.name, value)))
}

fn show(call: &CommandCall<'_>) -> Result<CommandAnswer, CommandAnswer> {
    let now = control(call)?.registry().process().variables.now();
    let mut text = String::new();
    for (name, value) in now.iter() {
        text.push_str(&line(name, value));
        text.push('\n');
    }
    Ok(CommandAnswer::Report(text))
}

fn line(name: &str, value: Value<'_>) -> String {
    let mut bytes = Vec::new();
    value.append_to(&mut bytes);
    let mut text = format!("proc.{name}: type={} value=<", value.kind());
    // One variable is one line, whatever its value.
    for letter in text_of_bytes(&bytes).chars() {
        if letter.is_control() {
            let _ = write!(text, "{}", letter.escape_default());
        } else {
            text.push(letter);
        }
    }
    text.push('>');
    text
}

fn set(call: &CommandCall<'_>) -> Result<CommandAnswer, CommandAnswer> {
    let name = name(call)?.map_err(|error| CommandAnswer::error(error.to_string()))?;
    if name.scope != VarScope::Proc {
        return Err(CommandAnswer::error(format!(
            "'set var': cannot set variable '{name}', only scope 'proc' is permitted here."
        )));
    }
    let source = match (call.arg(1), call.arg(2)) {
        ("", _) => {
            return Err(CommandAnswer::error(
                "Missing either 'expr', 'fmt' or expression.",
            ));
        }
        (text, "") | ("expr", text) => VariableSource::Expr(expression(text)?),
        ("fmt", text) => VariableSource::Format(format(text)?),
        (other, _) => {
            return Err(CommandAnswer::error(format!(
                "'set var': arg type must be either 'expr' or 'fmt' but got '{}'.",
                other.escape_debug()
            )));
        }
    };
    let control = control(call)?;
    match control.registry().process().set_variable(&name, &source) {
        Ok(()) => {}
        Err(SetVariableError::NoValue) => {
            return Err(CommandAnswer::error(
                "The expression has no value; nothing is set.",
            ));
        }
        Err(SetVariableError::TooLarge) => {
            return Err(CommandAnswer::error(
                "There is no room for it beside the other variables; nothing is set.",
            ));
        }
    }
    let value = OverrideValue::Text(call.args[1..].join(" "));
    let key = OverrideKey::new(&VARIABLE, ObjectName::Named(name.to_string()), &VALUE);
    control.note_override(key, value, command_text("set var", call));
    Ok(CommandAnswer::Done)
}

fn expression(text: &str) -> Result<Expr, CommandAnswer> {
    let expr = Expr::parse(text).map_err(|error| CommandAnswer::error(error.to_string()))?;
    check(
        expr.available(Phase::Cli),
        &expr.unimplemented(),
        &expr.references(),
    )?;
    Ok(expr)
}

fn format(text: &str) -> Result<LogFormat, CommandAnswer> {
    let parsed = LogFormat::parse(text, Usage::Text);
    let format = parsed.map_err(|error| CommandAnswer::error(error.to_string()))?;
    check(
        format.available(Phase::Cli),
        &format.unimplemented(),
        &format.references(),
    )?;
    Ok(format)
}

/// Whether an expression can be evaluated outside of an exchange.
fn check(
    available: Result<(), ballast_expr::ExpressionError>,
    unimplemented: &[&str],
    references: &[ExpressionReference],
) -> Result<(), CommandAnswer> {
    available.map_err(|error| CommandAnswer::error(error.to_string()))?;
    if let Some(word) = unimplemented.first() {
        return Err(CommandAnswer::error(format!(
            "'{word}' is not available yet."
        )));
    }
    let is_file = |one: &ExpressionReference| {
        matches!(
            one,
            ExpressionReference::MapFile(_) | ExpressionReference::PatternFile(_)
        )
    };
    if references.iter().any(is_file) {
        return Err(CommandAnswer::error("Maps are not available here."));
    }
    Ok(())
}
