//! `set-var`, `set-var-fmt` and `unset-var` of `http-check` and `tcp-check`.

use ballast_expr::{Phase, SetCondition, Usage, VarName};
use ballast_model::{CheckRule, CheckVariable, CheckVariableValue};
use ballast_syntax::Diagnostic;

use crate::args::Args;
use crate::context::{Context, suggestion};
use crate::draft::ProxyDraft;
use crate::proxy::expressions;

/// `set-var(<name>[,<condition>...]) <expression>`, or `set-var-fmt` with a format.
pub(super) fn set_var(
    draft: &mut ProxyDraft,
    args: &mut Args<'_>,
    context: &mut Context<'_>,
    is_format: bool,
) -> Result<CheckRule, Diagnostic> {
    let (name, words) = variable(args)?;
    let conditions = words
        .iter()
        .map(|word| condition(word, args))
        .collect::<Result<Vec<_>, _>>()?;
    let phases = [Phase::Check];
    let value = if is_format {
        let what = "a log-format string";
        let format = expressions::format(draft, args, context, what, Usage::Text, &phases)?;
        CheckVariableValue::Format(format)
    } else {
        let expr = expressions::expr(draft, args, context, "a fetch method", &phases)?;
        CheckVariableValue::Expr(expr)
    };
    args.end()?;
    Ok(CheckRule::SetVar(CheckVariable {
        name,
        conditions,
        value,
    }))
}

/// `unset-var(<name>)`.
pub(super) fn unset_var(args: &mut Args<'_>) -> Result<CheckRule, Diagnostic> {
    let (name, _) = variable(args)?;
    args.end()?;
    Ok(CheckRule::UnsetVar(name))
}

/// The variable between parentheses of the word last taken, and what follows its comma.
fn variable<'a>(args: &Args<'a>) -> Result<(VarName, Vec<&'a str>), Diagnostic> {
    let words = &args.line().words;
    let word = words
        .get(args.position().max(1) - 1)
        .map_or("", |word| word.text());
    let inside = word
        .split_once('(')
        .and_then(|(_, rest)| rest.strip_suffix(')'))
        .unwrap_or_default();
    let mut parts = inside.split(',');
    let name = parts.next().unwrap_or_default();
    let name = VarName::parse(name)
        .map_err(|error| args.wrong(format!("'{word}' : {}", error.message)))?;
    Ok((name, parts.filter(|part| !part.is_empty()).collect()))
}

fn condition(word: &str, args: &Args<'_>) -> Result<SetCondition, Diagnostic> {
    SetCondition::parse(word).ok_or_else(|| {
        let message = format!("'{}' : unknown condition '{word}'", args.keyword());
        let known = SetCondition::WORDS.iter().map(|(known, _)| *known);
        suggestion(args.wrong(message), word, known)
    })
}
