//! `log-profile`: how the lines of a log target are built.
//!
//! Source: HAProxy configuration manual, section 8.3.5.

use ballast_expr::{ExpressionReference, LogFormat, Phase, Usage};
use ballast_model::{LogStep, ProfileStep};
use ballast_syntax::Diagnostic;

use super::PlainSectionDraft;
use crate::args::Args;
use crate::context::{Context, suggestion};
use crate::keyword::{Row, Sections};

/// A row of this file's table.
type R = Row<PlainSectionDraft>;

/// The rows.
pub(super) const ROWS: &[R] = &[
    R::new(
        "log-tag",
        Sections::LOG_PROFILE,
        "<string>",
        "the program's name in the lines",
        |draft, args, context| {
            let tag = args.text("a tag for use in syslog")?;
            draft.log_profile.tag = Some(tag.to_owned());
            if let [first, ..] = args.rest() {
                let message = format!("'log-tag' ignores what follows from '{}' on", first.text());
                context.warn("ignored-words", message, first.span());
            }
            Ok(())
        },
    )
    .examples("log-tag lb", "log-tag"),
    R::new(
        "on",
        Sections::LOG_PROFILE,
        "<step> [drop] [format <fmt>] [sd <sd_fmt>]",
        "the line of a step",
        on,
    )
    .examples("on close format \"%ci\"", "on close colour"),
];

fn on(
    draft: &mut PlainSectionDraft,
    args: &mut Args<'_>,
    context: &mut Context<'_>,
) -> Result<(), Diagnostic> {
    let steps = || {
        let words = LogStep::ALL.into_iter().map(LogStep::word);
        words.chain(["error", "any"])
    };
    let text = args.text("a log step")?;
    let Some(step) = ProfileStep::of_word(text) else {
        let known: Vec<String> = steps().map(|step| format!("'{step}'")).collect();
        let message = format!(
            "'on' expects a log step, not '{text}': {}",
            known.join(", ")
        );
        return Err(suggestion(args.wrong(message), text, steps()));
    };
    if args.is_empty() {
        return Err(args.missing_argument("'drop', 'format' or 'sd'"));
    }
    // Formats of an earlier line for the step stay, where this line has none.
    draft.log_profile.line_mut(step).is_dropped = args.take("drop");
    while let Some(word) = args.next() {
        let is_format = match word {
            "format" => true,
            "sd" => false,
            _ => {
                let message =
                    format!("'on {text}' expects 'drop', 'format' or 'sd' (got '{word}')");
                return Err(suggestion(
                    args.wrong(message),
                    word,
                    ["drop", "format", "sd"],
                ));
            }
        };
        let format = Some(format(args, context)?);
        let line = draft.log_profile.line_mut(step);
        if is_format {
            line.format = format;
        } else {
            line.structured_data = format;
        }
    }
    Ok(())
}

/// A format that belongs to no proxy: its samples may name none.
fn format(args: &mut Args<'_>, context: &mut Context<'_>) -> Result<LogFormat, Diagnostic> {
    let span = args.peek_word().map_or(args.span(), |word| word.span());
    let format = args.format("a format", Usage::Log)?;
    let wrong = |reason: &str| {
        let message = format!("error in the format of '{}' : {reason}", args.keyword());
        Diagnostic::alert("bad-expression", message).at(span)
    };
    if let Err(error) = format.available(Phase::Log) {
        return Err(wrong(&error.message));
    }
    let names_proxy = |reference: &ExpressionReference| {
        !matches!(
            reference,
            ExpressionReference::Acl(_)
                | ExpressionReference::MapFile(_)
                | ExpressionReference::PatternFile(_)
                | ExpressionReference::Variable(_)
        )
    };
    if format.references().iter().any(names_proxy) {
        let reason = "a profile belongs to no proxy: its samples can name no backend, frontend, \
                      server, table or userlist";
        return Err(wrong(reason));
    }
    context.check_format(&format, span);
    Ok(format)
}
