//! Rules: `tcp-request`, `tcp-response`, `http-request`, `http-response`, `http-after-response`
//! and `redirect`. The actions themselves are rows of `ballast_rules`.
//!
//! Source: HAProxy configuration manual, section 4.3.

use ballast_expr::Needs;
use ballast_model::CaptureSlot;
use ballast_rules::{Capability, ParseEnv, Rule, RuleReference, RuleSetKind, parse_rule};
use ballast_syntax::{Diagnostic, SectionKind};

use super::expressions;
use super::words::{TableUse, TableUser};
use crate::args::{Args, borrowed};
use crate::context::Context;
use crate::draft::ProxyDraft;
use crate::feature::feature_of;
use crate::keyword::{Row, Sections};

/// A row of this file's table.
type R = Row<ProxyDraft>;

/// The rows.
pub(super) const ROWS: &[R] = &[
    R::new(
        "http-request",
        Sections::PROXIES,
        "<action> [ { if | unless } <condition> ]",
        "what is done with requests",
        |draft, args, context| rule(draft, args, context, RuleSetKind::HttpRequest),
    )
    .examples("http-request deny if { path /a }", "http-request nosuch")
    .http(),
    R::new(
        "http-response",
        Sections::PROXIES,
        "<action> [ { if | unless } <condition> ]",
        "what is done with responses",
        |draft, args, context| rule(draft, args, context, RuleSetKind::HttpResponse),
    )
    .examples("http-response set-header X y", "http-response nosuch")
    .http(),
    R::new(
        "http-after-response",
        Sections::PROXIES,
        "<action> [ { if | unless } <condition> ]",
        "what is done with all responses, own ones too",
        |draft, args, context| rule(draft, args, context, RuleSetKind::HttpAfterResponse),
    )
    .examples(
        "http-after-response set-header X y",
        "http-after-response deny",
    )
    .http(),
    R::new(
        "tcp-request connection",
        Sections::FRONT,
        "<action> [ { if | unless } <condition> ]",
        "what is done with new connections, before anything is read",
        |draft, args, context| rule(draft, args, context, RuleSetKind::TcpConnection),
    )
    .examples(
        "tcp-request connection reject if { src 192.0.2.0/24 }",
        "tcp-request connection nosuch",
    ),
    R::new(
        "tcp-request session",
        Sections::FRONT,
        "<action> [ { if | unless } <condition> ]",
        "what is done with new sessions, after PROXY header and TLS handshake",
        |draft, args, context| rule(draft, args, context, RuleSetKind::TcpSession),
    )
    .examples("tcp-request session accept", "tcp-request session nosuch"),
    R::new(
        "tcp-request content",
        Sections::PROXIES,
        "<action> [ { if | unless } <condition> ]",
        "what is done once there is something to look at",
        |draft, args, context| rule(draft, args, context, RuleSetKind::TcpContent),
    )
    .examples("tcp-request content accept", "tcp-request content nosuch"),
    R::new(
        "tcp-request inspect-delay",
        Sections::PROXIES,
        "<time>",
        "longest wait for what 'tcp-request content' rules look at",
        |draft, args, context| {
            named_defaults(draft, args)?;
            let delay = args.time("a positive delay in milliseconds")?;
            args.end()?;
            if draft.common.rules.request_inspect_delay.is_some() {
                let message = format!(
                    "ignoring tcp-request inspect-delay (was already defined) in {}",
                    draft.title()
                );
                context.warn("said-twice", message, args.keyword_span());
                return Ok(());
            }
            draft.common.rules.request_inspect_delay = Some(delay);
            Ok(())
        },
    )
    .examples(
        "tcp-request inspect-delay 5s",
        "tcp-request inspect-delay x",
    ),
    R::new(
        "tcp-response content",
        Sections::BACK,
        "<action> [ { if | unless } <condition> ]",
        "what is done with what servers send",
        |draft, args, context| rule(draft, args, context, RuleSetKind::TcpResponse),
    )
    .examples("tcp-response content accept", "tcp-response content nosuch"),
    R::new(
        "tcp-response inspect-delay",
        Sections::BACK,
        "<time>",
        "longest wait for what 'tcp-response content' rules look at",
        |draft, args, context| {
            named_defaults(draft, args)?;
            let delay = args.time("a positive delay in milliseconds")?;
            args.end()?;
            if draft.common.rules.response_inspect_delay.is_some() {
                let message = format!(
                    "ignoring tcp-response inspect-delay (was already defined) in {}",
                    draft.title()
                );
                context.warn("said-twice", message, args.keyword_span());
                return Ok(());
            }
            draft.common.rules.response_inspect_delay = Some(delay);
            Ok(())
        },
    )
    .examples(
        "tcp-response inspect-delay 5s",
        "tcp-response inspect-delay",
    ),
    R::new(
        "quic-initial",
        Sections::FRONT,
        "<action> [ { if | unless } <condition> ]",
        "what is done with the first packet of a QUIC connection",
        |draft, args, context| rule(draft, args, context, RuleSetKind::QuicInitial),
    )
    .examples("quic-initial accept", "quic-initial nosuch"),
    R::new(
        "redirect",
        Sections::NAMED,
        "{ location | prefix | scheme } <to> [ code <code> ] [ <option> ]* \
         [ { if | unless } <condition> ]",
        "send clients elsewhere, after 'http-request' rules",
        |draft, args, context| rule(draft, args, context, RuleSetKind::Redirect),
    )
    .examples(
        "redirect scheme https code 301 if { path /a }",
        "redirect location /x code 999",
    )
    .http(),
];

/// Whether the defaults may have rules: only named ones may.
pub(super) fn named_defaults(draft: &ProxyDraft, args: &Args<'_>) -> Result<(), Diagnostic> {
    if draft.section() != Sections::DEFAULTS || !draft.name.is_empty() {
        return Ok(());
    }
    let message = format!(
        "'{}' not allowed in anonymous 'defaults' section",
        args.keyword()
    );
    Err(Diagnostic::alert("misplaced-keyword", message)
        .at(args.keyword_span())
        .help("give the section a name: defaults <name>"))
}

/// Lowers one rule.
fn rule(
    draft: &mut ProxyDraft,
    args: &mut Args<'_>,
    context: &mut Context<'_>,
    rule_set: RuleSetKind,
) -> Result<(), Diagnostic> {
    named_defaults(draft, args)?;
    let base = args.position();
    let texts = args.exact_texts();
    let texts = borrowed(&texts);
    let rule = parsed_rule(draft, args, context, (rule_set, &texts, base), false)?;
    args.rest();
    let span = args.span();
    // Nobody is told of a redirection that asks for raw bytes.
    if let Some(condition) = &rule.condition
        && rule_set != RuleSetKind::Redirect
    {
        expressions::record_raw_bytes(draft, condition, span);
    }
    warn_unreachable(draft, args, context, rule_set, &rule);
    expressions::warn_of_rule_order(draft, args, context, rule_set.words());
    draft.common.rules.of_mut(rule_set).push(rule);
    Ok(())
}

/// The `return` that makes the page of an `http-error` line. `texts` are the words of the line, of which
/// the first stands at `base`. Gives the rule's number among those of its kind.
pub(super) fn error_reply(
    draft: &mut ProxyDraft,
    args: &mut Args<'_>,
    context: &mut Context<'_>,
    (texts, base): (&[&str], usize),
) -> Result<usize, Diagnostic> {
    let mut words = vec!["return"];
    words.extend_from_slice(texts);
    let base = base.saturating_sub(1);
    let rule = parsed_rule(
        draft,
        args,
        context,
        (RuleSetKind::HttpRequest, &words, base),
        true,
    )?;
    let inherited = draft.inherited_rules.error_replies.len();
    let own = &mut draft.common.rules.error_replies;
    own.push(rule);
    Ok(inherited + own.len() - 1)
}

/// The rule that `texts` say, of which the first stands at `base`, with what it refers to recorded.
fn parsed_rule(
    draft: &mut ProxyDraft,
    args: &mut Args<'_>,
    context: &mut Context<'_>,
    (rule_set, texts, base): (RuleSetKind, &[&str], usize),
    is_error_page: bool,
) -> Result<Rule, Diagnostic> {
    let span = args.span();
    let is_defaults = draft.section() == Sections::DEFAULTS;
    let capability = Capability {
        frontend: draft.is_front() || is_defaults,
        backend: draft.is_back() || is_defaults,
    };
    let title = draft.title();
    let machine = context.machine;
    let mut stand_ins = Vec::new();
    let mut files = |path: &str| match machine.read(path) {
        Ok(bytes) => Ok(bytes),
        Err(error) => match machine.stand_in(&format!("file '{path}'")) {
            Some(text) => {
                stand_ins.push(text);
                Ok(Vec::new())
            }
            None => Err(error),
        },
    };
    let mut env = ParseEnv::new(&draft.acls, &mut files, capability, &title);
    env.experimental = context.declarations.experimental;
    env.request_captures = draft.front.request_captures.len();
    env.stick_counters = context.stick_counters;
    env.is_error_page = is_error_page;
    let parsed = parse_rule(rule_set, texts, &mut env);
    let (warnings, captures, raw) = (env.warnings, env.new_captures, env.raw_samples);
    for text in stand_ins {
        context.used_stand_in(text);
    }
    let mut rule = parsed.map_err(|error| diagnostic(args, base, &error))?;
    rule.set_config_line(&context.config_line(span));
    for warning in warnings {
        let mut diagnostic = diagnostic(args, base, &warning);
        diagnostic.severity = ballast_syntax::Severity::Warning;
        context.report(diagnostic);
    }
    let slots = captures.into_iter().map(|length| CaptureSlot {
        header: None,
        value_bytes_max: length,
    });
    draft.front.request_captures.extend(slots);
    for (word, at) in raw {
        let at = args.line().words.get(base + at);
        let at = at.map_or(span, |word| word.span());
        draft.section_state.raw_samples.push((word, at));
    }
    for word in rule.unimplemented(&draft.acls) {
        context.unimplemented(word, feature_of(word), span);
    }
    if !rule_set.is_implemented() {
        context.unimplemented(rule_set.words(), feature_of(rule_set.words()), span);
    }
    if let Some(condition) = &rule.condition {
        draft.acls.note_use(condition);
    }
    refer(draft, context, rule.references(), span);
    Ok(rule)
}

/// The diagnostic for an error in a rule; its text names the rule already.
fn diagnostic(args: &Args<'_>, base: usize, error: &ballast_expr::ExpressionError) -> Diagnostic {
    let mut diagnostic = args.expr_error(base, error, "");
    if let Some(message) = diagnostic.message.strip_prefix(" : ") {
        diagnostic.message = message.to_owned();
    }
    diagnostic.code = "bad-rule";
    diagnostic
}

/// Records the references of a rule.
fn refer(
    draft: &mut ProxyDraft,
    context: &mut Context<'_>,
    references: Vec<RuleReference>,
    span: ballast_syntax::Span,
) {
    let declarations = &mut context.declarations;
    for reference in references {
        match reference {
            RuleReference::FromExpression(asked) => {
                draft.section_state.references.push((asked, span))
            }
            RuleReference::Cache(name) => {
                declarations.add_reference(SectionKind::Cache, &name, "cache", span)
            }
            RuleReference::ErrorFiles(name) => {
                declarations.add_reference(SectionKind::HttpErrors, &name, "errorfiles", span);
            }
            RuleReference::LogProfile(name) => {
                declarations.add_reference(SectionKind::LogProfile, &name, "profile", span);
            }
            RuleReference::Resolvers(name) => {
                declarations.add_reference(SectionKind::Resolvers, &name, "do-resolve", span);
            }
            RuleReference::Table { name, rule, key } => {
                draft.section_state.table_uses.push(TableUse {
                    table: name.unwrap_or_else(|| draft.name.clone()),
                    span,
                    key,
                    user: TableUser::Track(rule),
                })
            }
            RuleReference::RequestCapture(slot) => {
                draft.section_state.captures.push((true, slot, span))
            }
            RuleReference::ResponseCapture(slot) => {
                draft.section_state.captures.push((false, slot, span))
            }
            RuleReference::BandwidthLimit(_) | RuleReference::SpoeGroup { .. } => {}
        }
    }
}

/// Warns once about rules after one that always ends its set.
fn warn_unreachable(
    draft: &mut ProxyDraft,
    args: &Args<'_>,
    context: &mut Context<'_>,
    rule_set: RuleSetKind,
    rule: &Rule,
) {
    if !rule_set.is_http() || rule_set == RuleSetKind::Redirect {
        return;
    }
    let word = rule_set.words();
    let known = draft
        .section_state
        .final_rules
        .iter_mut()
        .find(|(of, _)| *of == word);
    match known {
        Some((_, true)) => {}
        Some((_, is_reported)) => {
            *is_reported = true;
            let message = format!(
                "previous '{word}' action is final and has no condition attached, further \
                 entries are NOOP"
            );
            context.warn("unreachable-rule", message, args.span());
        }
        None => {
            if rule.condition.is_none() && rule.action.row().is_final {
                draft.section_state.final_rules.push((word, false));
            }
        }
    }
}

/// Checks of the section's rules after the whole section is read.
pub(super) fn finish(draft: &mut ProxyDraft, context: &mut Context<'_>) {
    check_inherited_rules(draft, context);
    captures(draft, context);
    warn_of_hasty_captures(draft, context);
}

/// Warns of captures from the first bytes of sessions that nothing waits for.
fn warn_of_hasty_captures(draft: &ProxyDraft, context: &mut Context<'_>) {
    let sets = [&draft.inherited_rules, &draft.common.rules];
    let waits = sets.iter().any(|set| set.request_inspect_delay.is_some());
    let mut rules = sets.iter().flat_map(|set| &set.tcp_content);
    let is_hasty = rules.any(|rule| {
        rule.action.row().word == "capture" && rule.action.needs().intersects(Needs::FIRST_BYTES)
    });
    if let (Some(span), true) = (draft.span, is_hasty && !waits) {
        let message = format!(
            "{} : a 'tcp-request capture' rule explicitly depending on request contents without \
             any 'tcp-request inspect-delay' setting. This means that this rule will randomly find \
             its contents. This can be fixed by setting the tcp-request inspect-delay.",
            draft.title()
        );
        context.warn("capture-without-delay", message, span);
    }
}

/// Captures that rules write to must be declared in their frontend.
fn captures(draft: &ProxyDraft, context: &mut Context<'_>) {
    if !draft.is_front() {
        return;
    }
    let front = &draft.front;
    for (is_request, slot, span) in &draft.section_state.captures {
        let (slots, word) = if *is_request {
            (&front.request_captures, "http-request")
        } else {
            (&front.response_captures, "http-response")
        };
        if *slot >= slots.len() {
            let message = format!(
                "Proxy '{}': unable to find capture id '{slot}' referenced by {word} capture rule.",
                draft.name
            );
            context.report(
                Diagnostic::alert("unknown-capture", message)
                    .at(*span)
                    .help("declare it: declare capture request len <length>"),
            );
        }
    }
}

/// Rules of defaults must be used on one side: by frontends or by backends, and not by a `listen`.
fn check_inherited_rules(draft: &ProxyDraft, context: &mut Context<'_>) {
    let (Some(defaults), Some(span)) = (draft.section_state.defaults, draft.span) else {
        return;
    };
    if draft.inherited_rules.is_empty() || draft.section() == Sections::DEFAULTS {
        return;
    }
    if draft.kind == SectionKind::Listen {
        let message =
            "a listen section cannot inherit from a defaults section defining TCP/HTTP rules";
        context.report(Diagnostic::alert("rules-of-defaults", message).at(span));
        return;
    }
    let rules = &draft.inherited_rules;
    let stray = match draft.kind {
        SectionKind::Backend if !rules.tcp_connection.is_empty() => Some("tcp-request connection"),
        SectionKind::Backend if !rules.tcp_session.is_empty() => Some("tcp-request session"),
        SectionKind::Frontend if !rules.tcp_response.is_empty() => Some("tcp-response content"),
        _ => None,
    };
    if let Some(word) = stray {
        let message = format!(
            "{} cannot inherit from a defaults section that defines '{word}' rules",
            draft.title()
        );
        context.report(
            Diagnostic::alert("rules-of-defaults", message)
                .at(span)
                .note(format!(
                    "they are defined at {}",
                    context.file_and_line(defaults)
                )),
        );
        return;
    }
    let heirs = &mut context.declarations.rule_users;
    heirs.push((defaults, draft.kind));
    let is_mixed = heirs
        .iter()
        .any(|(other, kind)| *other == defaults && *kind != draft.kind);
    if is_mixed {
        let message = format!(
            "frontends and backends cannot inherit from the same defaults section if it defines \
             TCP/HTTP rules (defaults section at {})",
            context.file_and_line(defaults)
        );
        context.report(Diagnostic::alert("rules-of-defaults", message).at(span));
    }
}
