//! Conditions, expressions and formats in proxy lines: parsed, checked against their place, and
//! their references recorded.

use ballast_expr::{Condition, Expr, ExpressionReference, LogFormat, Needs, Phase, Usage};
use ballast_syntax::{Diagnostic, Span};

use crate::args::Args;
use crate::context::Context;
use crate::draft::ProxyDraft;
use crate::keyword::Sections;

/// The phases of a rule that is allowed on both sides: those of the sides that the section has.
pub(super) fn phases_of_sides(draft: &ProxyDraft, front: Phase, back: Phase) -> Vec<Phase> {
    let mut phases = Vec::with_capacity(2);
    let is_defaults = draft.section() == Sections::DEFAULTS;
    if draft.is_front() || is_defaults {
        phases.push(front);
    }
    if draft.is_back() || is_defaults {
        phases.push(back);
    }
    phases
}

/// Takes the condition at the end of a line; `None` when nothing is left.
pub(super) fn condition(
    draft: &mut ProxyDraft,
    args: &mut Args<'_>,
    context: &mut Context<'_>,
    phases: &[Phase],
) -> Result<Option<Condition>, Diagnostic> {
    let Some(first) = args.peek_word() else {
        return Ok(None);
    };
    let word = first.text();
    if !matches!(word, "if" | "unless") {
        let keyword = args.keyword();
        let message = format!(
            "'{keyword}' expects either 'if' or 'unless' followed by a condition but found '{word}'"
        );
        let words = ["if", "unless"];
        let diagnostic = Diagnostic::alert("unexpected-word", message).at(first.span());
        return Err(crate::context::suggestion(diagnostic, word, words));
    }
    let last = args.line().words.last().unwrap_or(first);
    let span = first.span().to(last.span());
    let mut parsed = args.condition(&draft.acls)?;
    if let Some(condition) = &mut parsed {
        condition.set_config_line(&context.config_line(span));
        draft.acls.note_use(condition);
        check_phases(draft, condition, phases, span, context);
        context.check_condition(condition, &draft.acls, span);
        for text in condition.never_matches() {
            context.warn("never-matches", text, span);
        }
        if !RAW_BYTES_UNTOLD.contains(&args.keyword()) {
            record_raw_bytes(draft, condition, span);
        }
        let named = condition.references();
        record_references(draft, named, span);
    }
    Ok(parsed)
}

/// Lines whose conditions may ask for raw bytes in an HTTP proxy without a warning, as in HAProxy.
const RAW_BYTES_UNTOLD: &[&str] = &[
    "force-persist",
    "ignore-persist",
    "monitor fail",
    "stats admin",
    "stats http-request",
    "stick store-response",
];

/// Takes a required condition.
pub(super) fn required_condition(
    draft: &mut ProxyDraft,
    args: &mut Args<'_>,
    context: &mut Context<'_>,
    phases: &[Phase],
) -> Result<Condition, Diagnostic> {
    let keyword = args.keyword();
    let missing = || {
        let message =
            format!("'{keyword}' requires either 'if' or 'unless' followed by a condition");
        Diagnostic::alert("missing-condition", message)
    };
    match args.peek_word() {
        Some(word) if !matches!(word.text(), "if" | "unless") => Err(missing().at(word.span())),
        None => Err(missing().at(args.keyword_span())),
        Some(_) => condition(draft, args, context, phases)?
            .ok_or_else(|| missing().at(args.keyword_span())),
    }
}

/// Warns about ACLs that cannot match in any of the phases.
fn check_phases(
    draft: &ProxyDraft,
    condition: &Condition,
    phases: &[Phase],
    span: Span,
    context: &mut Context<'_>,
) {
    let Some((last, others)) = phases.split_last() else {
        return;
    };
    let elsewhere: Vec<_> = others
        .iter()
        .map(|phase| condition.misplaced(*phase, &draft.acls))
        .collect();
    for bad in condition.misplaced(*last, &draft.acls) {
        let everywhere = elsewhere
            .iter()
            .all(|list| list.iter().any(|other| other.acl == bad.acl));
        if !everywhere {
            continue;
        }
        let location = bad.phase.text();
        let message = if draft.acls.get(&bad.acl).is_none() {
            format!(
                "anonymous acl will never match because it uses keyword '{}' which is \
                 incompatible with '{location}'",
                bad.fetch
            )
        } else if bad.never {
            format!(
                "acl '{}' will never match because it only involves keywords that are \
                 incompatible with '{location}'",
                bad.acl
            )
        } else {
            format!(
                "acl '{}' involves keywords '{}' which is incompatible with '{location}'",
                bad.acl, bad.fetch
            )
        };
        context.warn("never-matches", message, span);
    }
}

/// Takes a sample expression that must be available in one of the phases.
pub(super) fn expr(
    draft: &mut ProxyDraft,
    args: &mut Args<'_>,
    context: &mut Context<'_>,
    what: &str,
    phases: &[Phase],
) -> Result<Expr, Diagnostic> {
    let at = args.position();
    let expr = args.expr(what)?;
    let span = args
        .line()
        .words
        .get(at)
        .map_or(args.span(), |word| word.span());
    let available = phases.iter().map(|phase| expr.available(*phase));
    let refusals: Vec<_> = available.filter_map(Result::err).collect();
    if refusals.len() == phases.len()
        && let Some(error) = refusals.last()
    {
        let what = format!("error in the expression of '{}'", args.keyword());
        return Err(args.expr_error(at, error, &what));
    }
    context.check_expr(&expr, span);
    let named = expr.references();
    draft.acls.check_names(&named).map_err(|error| {
        let what = format!("error in the expression of '{}'", args.keyword());
        args.expr_error(at, &error, &what)
    })?;
    record_references(draft, named, span);
    Ok(expr)
}

/// Takes a log-format string that must be available in one of the phases.
pub(super) fn format(
    draft: &mut ProxyDraft,
    args: &mut Args<'_>,
    context: &mut Context<'_>,
    what: &str,
    usage: Usage,
    phases: &[Phase],
) -> Result<LogFormat, Diagnostic> {
    let at = args.position();
    let format = args.format(what, usage)?;
    let span = args
        .line()
        .words
        .get(at)
        .map_or(args.span(), |word| word.span());
    let available = phases.iter().map(|phase| format.available(*phase));
    let refusals: Vec<_> = available.filter_map(Result::err).collect();
    if refusals.len() == phases.len()
        && let Some(error) = refusals.last()
    {
        let message = format!(
            "error in the format of '{}' : {}",
            args.keyword(),
            error.message
        );
        return Err(Diagnostic::alert("bad-expression", message).at(span));
    }
    context.check_format(&format, span);
    let named = format.references();
    let is_of_file = |one: &ExpressionReference| {
        use ExpressionReference::{MapFile, PatternFile};
        matches!(one, MapFile(_) | PatternFile(_))
    };
    if named.iter().any(is_of_file) {
        let place = (format.source.clone(), context.config_line(span));
        draft.section_state.format_lines.push(place);
    }
    record_references(draft, named, span);
    Ok(format)
}

/// Records where a condition needs the raw bytes, which an HTTP proxy does not keep.
pub(super) fn record_raw_bytes(draft: &mut ProxyDraft, condition: &Condition, span: Span) {
    if condition.needs(&draft.acls).intersects(Needs::RAW_BYTES) {
        draft.section_state.raw_bytes.push(span);
    }
}

/// Records references, to be checked when all sections are read.
pub(super) fn record_references(
    draft: &mut ProxyDraft,
    named: Vec<ExpressionReference>,
    span: Span,
) {
    let named = named.into_iter().map(|reference| (reference, span));
    draft.section_state.references.extend(named);
}

/// Warns about words that HAProxy does not read.
pub(super) fn ignore_rest(args: &mut Args<'_>, context: &mut Context<'_>) {
    let keyword = args.keyword();
    if let [first, ..] = args.rest() {
        let message = format!(
            "'{keyword}' ignores what follows from '{}' on",
            first.text()
        );
        context.warn("ignored-words", message, first.span());
    }
}

/// Takes a number in the way of HAProxy's older keywords: text after the digits is ignored, with a
/// warning; without a digit it is refused.
pub(super) fn lenient_count(
    args: &mut Args<'_>,
    context: &mut Context<'_>,
    what: &str,
) -> Result<u32, Diagnostic> {
    let word = args.word(what)?;
    let text = word.text();
    let (sign, digits) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    let end = digits
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(digits.len());
    let Ok(number) = digits[..end].parse::<i64>() else {
        return Err(args.wrong(format!(
            "'{}' expects {what} (got '{text}')",
            args.keyword()
        )));
    };
    if sign < 0 && number > 0 {
        let message = format!(
            "'{}' : negative value '{text}' is read as 0",
            args.keyword()
        );
        context.warn("bad-value", message, word.span());
        return Ok(0);
    }
    let Ok(count) = u32::try_from(number) else {
        return Err(args.wrong(format!("'{}' : '{text}' is too large", args.keyword())));
    };
    if end < digits.len() {
        let message = format!("'{}' : '{text}' is read as {count}", args.keyword());
        context.warn("bad-value", message, word.span());
    }
    Ok(count)
}

/// The order in which HAProxy runs rules, independent of the order of their lines.
const RULE_ORDER: &[&str] = &[
    "tcp-request connection",
    "tcp-request session",
    "tcp-request content",
    "monitor fail",
    "http-request",
    "redirect",
    "use_backend",
    "use-server",
];

/// Warns about a rule that comes after one of a kind that runs later.
pub(super) fn warn_of_rule_order(
    draft: &mut ProxyDraft,
    args: &Args<'_>,
    context: &mut Context<'_>,
    word: &'static str,
) {
    let rank = |word: &str| RULE_ORDER.iter().position(|known| *known == word);
    let Some(own) = rank(word) else {
        return;
    };
    let behind = draft.section_state.ordered.iter().copied();
    let next = behind
        .filter(|other| rank(other) > Some(own))
        .min_by_key(|other| rank(other));
    if let Some(next) = next {
        let article = if next == "http-request" { "an" } else { "a" };
        let message = format!(
            "a '{word}' rule placed after {article} '{next}' rule will still be processed before"
        );
        context.warn("misplaced-rule", message, args.span());
    }
    if !draft.section_state.ordered.contains(&word) {
        draft.section_state.ordered.push(word);
    }
}
