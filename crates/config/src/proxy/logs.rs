//! Logging and unique ids.
//!
//! Source: HAProxy configuration manual, sections 4.2 and 8.2.

use ballast_expr::{
    CLF_HTTP_LOG_FORMAT, CLF_TCP_LOG_FORMAT, HTTP_LOG_FORMAT, HTTPS_LOG_FORMAT, LogFormat, Phase,
    TCP_LOG_FORMAT, Usage,
};
use ballast_model::{LogStep, LogSteps};
use ballast_syntax::{Diagnostic, SectionKind, Span};

use super::expressions;
use crate::args::{Args, Prefix};
use crate::context::{Context, suggestion};
use crate::draft::{LogLine, ProxyDraft};
use crate::keyword::{Row, Sections};

/// A row of this file's table.
type R = Row<ProxyDraft>;

/// The rows.
pub(super) const ROWS: &[R] = &[
    R::new(
        "log",
        Sections::PROXIES,
        "{ global | <target> [len <bytes>] [format <format>] [sample <ranges>:<size>] \
         [profile <name>] <facility> [<max level> [<min level>]] }",
        "where log lines go",
        log,
    )
    .examples("log 192.0.2.1:514 local0 info", "log 192.0.2.1 nosuch")
    .with_no(),
    R::new(
        "option httplog",
        Sections::FRONT,
        "[ clf ]",
        "log lines that tell of requests",
        |draft, args, context| {
            let text = if clf(args)? {
                CLF_HTTP_LOG_FORMAT
            } else {
                HTTP_LOG_FORMAT
            };
            stands_for(draft, args, context, "option httplog", text);
            Ok(())
        },
    )
    .examples("option httplog clf", "option httplog xyz"),
    R::new(
        "option httpslog",
        Sections::FRONT,
        "",
        "log lines that tell of requests and of TLS",
        |draft, args, context| {
            expressions::ignore_rest(args, context);
            stands_for(draft, args, context, "option httpslog", HTTPS_LOG_FORMAT);
            Ok(())
        },
    )
    .examples("option httpslog", ""),
    R::new(
        "option tcplog",
        Sections::FRONT,
        "[ clf ]",
        "log lines that tell of connections",
        |draft, args, context| {
            let text = if clf(args)? {
                CLF_TCP_LOG_FORMAT
            } else {
                TCP_LOG_FORMAT
            };
            stands_for(draft, args, context, "option tcplog", text);
            Ok(())
        },
    )
    .examples("option tcplog", "option tcplog xyz"),
    R::new(
        "log-format",
        Sections::FRONT,
        "<format>",
        "log lines of an own format",
        |draft, args, context| {
            let (format, span) = format(draft, args, context, Usage::Log, &[Phase::Log])?;
            overrides(draft, "log-format", span, context);
            draft.front.log.format = Some(format);
            draft.log_word = Some(("log-format", Some(span)));
            Ok(())
        },
    )
    .examples("log-format \"%ci:%cp %[src]\"", "log-format %nosuch"),
    R::new(
        "error-log-format",
        Sections::FRONT,
        "<format>",
        "log lines of failed connections in an own format",
        |draft, args, context| {
            let (format, _) = format(draft, args, context, Usage::Log, &[Phase::Log])?;
            draft.front.log.error_format = Some(format);
            Ok(())
        },
    )
    .examples("error-log-format %ci", "error-log-format"),
    R::new(
        "log-format-sd",
        Sections::FRONT,
        "<format>",
        "structured data of RFC 5424 lines",
        |draft, args, context| {
            let (format, _) = format(draft, args, context, Usage::Log, &[Phase::Log])?;
            draft.front.log.structured_data = Some(format);
            Ok(())
        },
    )
    .examples("log-format-sd '[a@1 b=\"%ci\"]'", "log-format-sd"),
    R::new(
        "log-tag",
        Sections::PROXIES,
        "<tag>",
        "the program's name in log lines",
        |draft, args, context| {
            let tag = args.text("a tag for use in syslog")?;
            draft.common.log_tag = Some(tag.to_owned());
            expressions::ignore_rest(args, context);
            Ok(())
        },
    )
    .examples("log-tag shop", "log-tag"),
    R::new(
        "log-steps",
        Sections::FRONT,
        "[ all | <step>,... ]",
        "at which steps of an exchange a line is logged",
        log_steps,
    )
    .examples("log-steps accept,close", "log-steps nosuch"),
    R::new(
        "unique-id-format",
        Sections::PROXIES,
        "<format>",
        "what the unique id of a request is made of",
        |draft, args, context| {
            // It is made when it is first needed: a backend's section may ask what is known there.
            let phases = match draft.kind {
                SectionKind::Backend => &[Phase::FrontendRequest, Phase::BackendRequest][..],
                _ => &[Phase::FrontendRequest],
            };
            let (format, span) = format(draft, args, context, Usage::UniqueId, phases)?;
            let raw = format.raw_samples().map(|word| (word, span));
            draft.section_state.raw_samples.extend(raw);
            draft.common.unique_id_format = Some(format);
            Ok(())
        },
    )
    .examples(
        "unique-id-format %ci:%cp_%fi:%fp_%Ts_%rt:%pid",
        "unique-id-format a b",
    ),
    R::new(
        "unique-id-header",
        Sections::PROXIES,
        "<name>",
        "the header that carries the unique id to servers",
        |draft, args, context| {
            let name = args.text("an argument")?;
            draft.common.unique_id_header = Some(name.to_owned());
            expressions::ignore_rest(args, context);
            Ok(())
        },
    )
    .examples("unique-id-header X-Unique-ID", "unique-id-header"),
];

fn log(
    draft: &mut ProxyDraft,
    args: &mut Args<'_>,
    context: &mut Context<'_>,
) -> Result<(), Diagnostic> {
    let span = args.span();
    if args.prefix == Prefix::No {
        if let Some(word) = args.next() {
            let message = format!("log : 'no log' does not expect arguments (got '{word}')");
            return Err(args.wrong(message));
        }
        draft.logs.clear();
        return Ok(());
    }
    if args.peek() == Some("global") && args.texts().len() == 1 {
        args.next();
        let is_known = draft
            .logs
            .iter()
            .any(|line| matches!(line, LogLine::Global(_)));
        if !is_known {
            draft.logs.push(LogLine::Global(span));
        }
        return Ok(());
    }
    let target = crate::log_line::target(args, context)?;
    draft.logs.push(LogLine::Target(target));
    Ok(())
}

/// No argument, or `clf`.
fn clf(args: &mut Args<'_>) -> Result<bool, Diagnostic> {
    let Some(word) = args.next() else {
        return Ok(false);
    };
    if word != "clf" {
        let message = format!("keyword '{}' only supports option 'clf'", args.keyword());
        return Err(suggestion(args.wrong(message), word, ["clf"]));
    }
    args.end()?;
    Ok(true)
}

/// An option that selects a format.
fn stands_for(
    draft: &mut ProxyDraft,
    args: &Args<'_>,
    context: &mut Context<'_>,
    word: &'static str,
    text: &str,
) {
    let span = args.keyword_span();
    overrides(draft, word, span, context);
    let format = LogFormat::parse(text, Usage::Log).ok();
    if let Some(format) = &format
        && draft.section() != Sections::DEFAULTS
    {
        context.check_format(format, span);
    }
    draft.front.log.format = format;
    draft.log_word = Some((word, Some(span)));
}

/// In defaults, a second format that replaces the first is probably a mistake.
fn overrides(draft: &ProxyDraft, word: &str, span: Span, context: &mut Context<'_>) {
    if draft.section() != Sections::DEFAULTS {
        return;
    }
    if let Some((before, Some(_))) = draft.log_word
        && before != word
    {
        let message = format!("'{word}' overrides previous '{before}' in 'defaults' section");
        context.warn("overridden", message, span);
    }
}

/// One format, and its place.
fn format(
    draft: &mut ProxyDraft,
    args: &mut Args<'_>,
    context: &mut Context<'_>,
    usage: Usage,
    phases: &[Phase],
) -> Result<(LogFormat, Span), Diagnostic> {
    let keyword = args.keyword();
    let span = args.peek_word().map_or(args.span(), |word| word.span());
    let format = expressions::format(draft, args, context, "an argument", usage, phases)?;
    if let Some(word) = args.peek_word() {
        let message =
            format!("{keyword} expects only one argument, don't forget to escape spaces!");
        return Err(Diagnostic::alert("unexpected-word", message).at(word.span()));
    }
    Ok((format, span))
}

/// The steps at which a line is written: all of them where none is named. The lines of a section
/// and of its defaults add up.
fn log_steps(
    draft: &mut ProxyDraft,
    args: &mut Args<'_>,
    context: &mut Context<'_>,
) -> Result<(), Diagnostic> {
    draft.front.log.steps = match args.next() {
        None | Some("all") => Some(LogSteps::ALL),
        Some(text) => {
            let mut steps = draft.front.log.steps.unwrap_or_default();
            for word in text.strip_suffix(',').unwrap_or(text).split(',') {
                let Some(step) = LogStep::of_word(word) else {
                    let known = || LogStep::ALL.into_iter().map(LogStep::word);
                    let message = format!(
                        "invalid log step name ({word}). Expected values are: {}",
                        known().collect::<Vec<_>>().join(", ")
                    );
                    return Err(suggestion(
                        args.wrong(message),
                        word,
                        known().chain(["all"]),
                    ));
                };
                steps.insert(step);
            }
            Some(steps)
        }
    };
    expressions::ignore_rest(args, context);
    Ok(())
}

/// Checks of the section's log lines after the whole section is read.
pub(super) fn finish(draft: &ProxyDraft, context: &mut Context<'_>) {
    if !draft.is_front() {
        return;
    }
    let log = &draft.front.log;
    if (log.format.is_some() || log.structured_data.is_some()) && draft.logs.is_empty() {
        let message = format!(
            "log format ignored for {} since it has no log address",
            draft.title()
        );
        let span = draft.log_word.and_then(|(_, span)| span).or(draft.span);
        let warning = Diagnostic::warning("no-log-target", message).help("add: log global");
        context.report(match span {
            Some(span) => warning.at(span),
            None => warning,
        });
    }
}
