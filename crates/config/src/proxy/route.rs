//! ACLs, and the rules that select a backend or a server.
//!
//! Source: HAProxy configuration manual, section 4.2, "acl", "use_backend", "default_backend",
//! "use-server", "monitor-uri", "monitor fail".

use ballast_expr::{Phase, Usage};
use ballast_model::{Route, RouteTarget, UseServer, UseServerTarget};
use ballast_syntax::Diagnostic;

use super::expressions;
use crate::args::{Args, borrowed};
use crate::context::{Context, LUA};
use crate::draft::ProxyDraft;
use crate::keyword::{Row, Sections};

/// A row of this file's table.
type R = Row<ProxyDraft>;

/// The rows.
pub(super) const ROWS: &[R] = &[
    R::new(
        "acl",
        Sections::PROXIES,
        "<name> <criterion> [flags] [operator] [<value>] ...",
        "a named test that conditions refer to",
        acl,
    )
    .examples(
        "acl is_static path_beg -i /static /images",
        "acl a/b path /a",
    ),
    R::new(
        "use_backend",
        Sections::FRONT_ONLY,
        "<backend> [ { if | unless } <condition> ]",
        "send what meets the condition to this backend",
        use_backend,
    )
    .examples(
        "use_backend %[req.hdr(host),lower] if { path /a }",
        "use_backend b garbage",
    ),
    R::new(
        "default_backend",
        Sections::FRONT,
        "<backend>",
        "send what no 'use_backend' takes to this backend",
        |draft, args, _| {
            let name = args.word("a backend name")?;
            draft.front.default_backend = Some(name.text().to_owned());
            draft.default_backend_span = Some(name.span());
            args.end()
        },
    )
    .examples("default_backend b", "default_backend"),
    R::new(
        "use-server",
        Sections::BACK_ONLY,
        "<server> { if | unless } <condition>",
        "send what meets the condition to this server",
        use_server,
    )
    .examples("use-server s1 if { src 192.0.2.1 }", "use-server s1"),
    R::new(
        "monitor-uri",
        Sections::FRONT,
        "<uri>",
        "answer requests for exactly this URI here",
        |draft, args, _| {
            let uri = args.text("an URI")?;
            draft.front.monitor.uri = Some(uri.to_owned());
            args.end()
        },
    )
    .examples("monitor-uri /alive", "monitor-uri")
    .http(),
    R::new(
        "monitor fail",
        Sections::FRONT_ONLY,
        "{ if | unless } <condition>",
        "when 'monitor-uri' answers 503",
        |draft, args, context| {
            // HAProxy tells nobody of samples that have no value here.
            let condition = expressions::required_condition(draft, args, context, &[])?;
            draft.front.monitor.fail.push(condition);
            expressions::warn_of_rule_order(draft, args, context, "monitor fail");
            Ok(())
        },
    )
    .examples("monitor fail if { nbsrv(b) lt 1 }", "monitor fail")
    .http(),
];

fn acl(
    draft: &mut ProxyDraft,
    args: &mut Args<'_>,
    context: &mut Context<'_>,
) -> Result<(), Diagnostic> {
    super::rules::named_defaults(draft, args)?;
    let base = args.position();
    let exact = args.exact_texts();
    let texts = borrowed(&exact);
    let Some(name) = texts.first().copied() else {
        return Err(args.missing_argument("a name and a criterion"));
    };
    if matches!(name, "or") {
        args.next();
        let message = "acl name 'or' will never match. 'or' is used to express a logical \
                       disjunction within a condition";
        return Err(args.wrong(message));
    }
    draft.acls.declare(&texts).map_err(|error| {
        let what = format!("error detected while parsing ACL '{name}'");
        args.expr_error(base, &error, &what)
    })?;
    let span = args.span();
    draft.acls.set_config_line(name, &context.config_line(span));
    let last = draft.acls.get(name).and_then(|acl| acl.criteria.last());
    let never = last.and_then(|criterion| criterion.never_matches());
    if let Some(text) = never {
        context.warn("never-matches", text, span);
    }
    // A name that no script provides is unknown, whether or not the ACL is used.
    let unimplemented = last.map(|criterion| criterion.expr.unimplemented());
    if unimplemented.is_some_and(|words| words.contains(&LUA)) {
        context.unimplemented(LUA, "Lua", span);
    }
    let named = last.map(|criterion| {
        let mut named = criterion.expr.references();
        named.extend(criterion.groups());
        named
    });
    let named = named.unwrap_or_default();
    expressions::record_references(draft, named, span);
    Ok(())
}

/// How to make a target from a name, and from a format.
type TargetMaker<T> = (fn(String) -> T, fn(ballast_expr::LogFormat) -> T);

/// A name, or a format if any part of it varies.
fn target<T>(
    draft: &mut ProxyDraft,
    args: &mut Args<'_>,
    context: &mut Context<'_>,
    what: &str,
    phase: Phase,
    make: TargetMaker<T>,
) -> Result<T, Diagnostic> {
    let is_dynamic = args.peek().is_some_and(|text| text.contains('%'));
    if !is_dynamic {
        return Ok(make.0(args.text(what)?.to_owned()));
    }
    let format = expressions::format(draft, args, context, what, Usage::Text, &[phase])?;
    Ok(match format.as_literal() {
        Some(name) => make.0(name.to_owned()),
        None => make.1(format),
    })
}

fn use_backend(
    draft: &mut ProxyDraft,
    args: &mut Args<'_>,
    context: &mut Context<'_>,
) -> Result<(), Diagnostic> {
    let span = args
        .peek_word()
        .map_or(args.keyword_span(), |word| word.span());
    let make: TargetMaker<RouteTarget> = (RouteTarget::Static, RouteTarget::Dynamic);
    let what = "a backend name";
    let target = target(draft, args, context, what, Phase::UseBackend, make)?;
    if let Some(word) = args.peek_word()
        && !matches!(word.text(), "if" | "unless")
    {
        let message = format!(
            "unexpected keyword '{}' after switching rule, only 'if' and 'unless' are allowed",
            word.text()
        );
        return Err(Diagnostic::alert("unexpected-word", message).at(word.span()));
    }
    let condition = expressions::condition(draft, args, context, &[Phase::UseBackend])?;
    draft.front.routes.push(Route { target, condition });
    draft.route_spans.push(span);
    expressions::warn_of_rule_order(draft, args, context, "use_backend");
    Ok(())
}

fn use_server(
    draft: &mut ProxyDraft,
    args: &mut Args<'_>,
    context: &mut Context<'_>,
) -> Result<(), Diagnostic> {
    let span = args
        .peek_word()
        .map_or(args.keyword_span(), |word| word.span());
    let make: TargetMaker<UseServerTarget> = (UseServerTarget::Static, UseServerTarget::Dynamic);
    // The name may be made of what `use_backend` may be made of.
    let phase = Phase::UseBackend;
    let target = target(draft, args, context, "a server name", phase, make)?;
    let phases = [Phase::SelectServer];
    let condition = expressions::required_condition(draft, args, context, &phases)?;
    draft.back.use_servers.push(UseServer {
        target,
        condition: Some(condition),
    });
    draft.use_server_spans.push(span);
    expressions::warn_of_rule_order(draft, args, context, "use-server");
    Ok(())
}

/// Reports a proxy that routes to itself.
pub(super) fn finish(draft: &ProxyDraft, context: &mut Context<'_>) {
    if !(draft.is_front() && draft.is_back()) {
        return;
    }
    let name = draft.name.as_str();
    let mut report = |word: &str, span: Option<ballast_syntax::Span>| {
        let message = format!("Proxy '{name}': loop detected for {word}: '{name}'");
        let alert = Diagnostic::alert("loop", message);
        context.report(match span.or(draft.span) {
            Some(span) => alert.at(span),
            None => alert,
        });
    };
    if draft.front.default_backend.as_deref() == Some(name) {
        report("default_backend", draft.default_backend_span);
    }
    for (at, route) in draft.front.routes.iter().enumerate() {
        if route.target == RouteTarget::Static(name.to_owned()) {
            report("use_backend", draft.route_spans.get(at).copied());
        }
    }
}
