//! `http-check` rules.

use ballast_expr::{Phase, Usage, bytes_of_text};
use ballast_model::{CheckRule, HttpCheckSend};
use ballast_syntax::Diagnostic;

use super::connect::argument;
use super::{CheckRules, connect, expect, variable};
use crate::args::Args;
use crate::context::{Context, suggestion};
use crate::draft::ProxyDraft;
use crate::keyword::{Row, Sections};
use crate::proxy::expressions;

/// A row of this file's table.
type R = Row<ProxyDraft>;

/// The rows.
pub(super) const ROWS: &[R] = &[
    R::new(
        "http-check send",
        Sections::CHECKS,
        "[ meth <m> ] [ { uri <u> | uri-lf <fmt> } ] [ ver <v> ] [ hdr <name> <fmt> ]* \
         [ { body <b> | body-lf <fmt> } ] [ comment <text> ]",
        "the request of a check",
        |draft, args, context| {
            let send = send(draft, args, context)?;
            draft.section_state.check.forget_inherited_request();
            push(draft, args, CheckRule::HttpSend(send))
        },
    )
    .examples(
        "http-check send meth GET uri /health",
        "http-check send meth",
    ),
    R::new(
        "http-check expect",
        Sections::CHECKS,
        "[ <options> ] [!] <match> <pattern>",
        "what the answer to a check must hold",
        |draft, args, context| {
            let rule = expect::expect(draft, args, context, true)?;
            push(draft, args, CheckRule::Expect(Box::new(rule)))
        },
    )
    .examples(
        "http-check expect status 200-299",
        "http-check expect nosuch",
    ),
    R::new(
        "http-check connect",
        Sections::CHECKS,
        "[ default ] [ port <p> ] [ addr <a> ] [ send-proxy ] [ via-socks4 ] [ ssl ] \
         [ sni <s> ] [ alpn <a> ] [ linger ] [ proto <name> ] [ comment <text> ]",
        "a connection of a check",
        |draft, args, context| {
            let rule = connect::connect(draft, args, context)?;
            may_connect(&draft.section_state.check.http, args)?;
            push(draft, args, CheckRule::Connect(rule))
        },
    )
    .examples("http-check connect port 8080", "http-check connect nosuch"),
    R::new(
        "http-check comment",
        Sections::CHECKS,
        "<text>",
        "what the next rule is reported as",
        |draft, args, _| {
            let text = args.text("a string")?.to_owned();
            // Without quotes the first word is the comment; HAProxy ignores the others.
            args.rest();
            push(draft, args, CheckRule::Comment(text))
        },
    )
    .examples("http-check comment 'the login page'", "http-check comment"),
    R::new(
        "http-check disable-on-404",
        Sections::CHECKS,
        "",
        "a server that answers 404 takes no new clients",
        |draft, args, _| {
            args.end()?;
            draft.section_state.check.disable_on_404 = true;
            Ok(())
        },
    )
    .examples("http-check disable-on-404", "http-check disable-on-404 x"),
    R::new(
        "http-check send-state",
        Sections::CHECKS,
        "",
        "tell the server its state in a header",
        |draft, args, _| {
            args.end()?;
            draft.section_state.check.send_state = true;
            Ok(())
        },
    )
    .examples("http-check send-state", "http-check send-state x"),
    R::new(
        "http-check set-var",
        Sections::CHECKS,
        "(<var>) <expression>",
        "set a variable of the check",
        |draft, args, context| {
            let rule = variable::set_var(draft, args, context, false)?;
            push(draft, args, rule)
        },
    )
    .examples(
        "http-check set-var(check.x) int(1)",
        "http-check set-var(x) int(1)",
    ),
    R::new(
        "http-check set-var-fmt",
        Sections::CHECKS,
        "(<var>) <format>",
        "set a variable of the check to a text",
        |draft, args, context| {
            let rule = variable::set_var(draft, args, context, true)?;
            push(draft, args, rule)
        },
    )
    .examples(
        "http-check set-var-fmt(check.x) a",
        "http-check set-var-fmt(x) a",
    ),
    R::new(
        "http-check unset-var",
        Sections::CHECKS,
        "(<var>)",
        "forget a variable of the check",
        |draft, args, _| {
            let rule = variable::unset_var(args)?;
            push(draft, args, rule)
        },
    )
    .examples("http-check unset-var(check.x)", "http-check unset-var(x)"),
];

fn push(draft: &mut ProxyDraft, args: &Args<'_>, rule: CheckRule) -> Result<(), Diagnostic> {
    let span = args.span();
    let rules = &mut draft.section_state.check.http;
    if let Some(missing) = missing_before(&rule, rules.last_acting()) {
        let keyword = args.keyword();
        let message = format!(
            "'{keyword}' : unable to add {keyword} rule at step {} (missing {missing} rule).",
            next_step(rules)
        );
        return Err(Diagnostic::alert("misplaced-rule", message).at(span));
    }
    rules.push(rule, span);
    Ok(())
}

/// The rule that must stand before `rule`, when `last` does instead: a connection carries one request,
/// whose answer may be expected in several ways.
fn missing_before(rule: &CheckRule, last: Option<&CheckRule>) -> Option<&'static str> {
    use CheckRule::{Connect, Expect, HttpSend};
    match (last?, rule) {
        (Connect(_) | HttpSend(_), Connect(_)) => Some("expect"),
        (Connect(_), Expect(_)) => Some("send"),
        (HttpSend(_) | Expect(_), HttpSend(_)) => Some("connect"),
        _ => None,
    }
}

/// The number of the next rule. HAProxy counts from the first request.
fn next_step(rules: &CheckRules) -> usize {
    let is_send = |rule: &CheckRule| matches!(rule, CheckRule::HttpSend(_));
    let first = rules.steps.iter().position(is_send).unwrap_or_default();
    rules.steps.len() - first + 1
}

/// A check with connect rules must begin with one.
pub(super) fn may_connect(rules: &CheckRules, args: &Args<'_>) -> Result<(), Diagnostic> {
    if rules.may_connect() {
        return Ok(());
    }
    let family = args.keyword().split(' ').next().unwrap_or_default();
    let message = format!(
        "'{family} connect' : first step MUST also be a 'connect', optionally preceded by a \
         'set-var', an 'unset-var' or a 'comment', when there is a 'connect' step in the \
         {family} ruleset"
    );
    Err(Diagnostic::alert("misplaced-rule", message).at(args.span()))
}

const SEND_WORDS: &[&str] = &[
    "comment", "meth", "uri", "uri-lf", "ver", "hdr", "body", "body-lf",
];

fn send(
    draft: &mut ProxyDraft,
    args: &mut Args<'_>,
    context: &mut Context<'_>,
) -> Result<HttpCheckSend, Diagnostic> {
    let mut send = HttpCheckSend::default();
    let keyword = args.keyword();
    while let Some(word) = args.next() {
        match word {
            "comment" => send.comment = Some(argument(args, word, "a string")?.to_owned()),
            "meth" => send.method = Some(argument(args, word, "a string")?.to_owned()),
            "uri" => {
                send.uri = Some(argument(args, word, "a string")?.to_owned());
                send.uri_format = None;
            }
            "uri-lf" => {
                let phases = [Phase::Check];
                let what = "a log-format string after 'uri-lf'";
                let format = expressions::format(draft, args, context, what, Usage::Http, &phases)?;
                send.uri_format = Some(format);
                send.uri = None;
            }
            "ver" => send.version = Some(argument(args, word, "a string")?.to_owned()),
            "hdr" => {
                let name = args.next().filter(|name| !name.is_empty());
                let (Some(name), false) = (name, args.is_empty()) else {
                    let message =
                        format!("'{keyword}' : 'hdr' expects <name> and <value> as arguments");
                    return Err(args.wrong(message));
                };
                let phases = [Phase::Check];
                let value =
                    expressions::format(draft, args, context, "a value", Usage::Http, &phases)?;
                let is_framing = ["content-length", "transfer-encoding"]
                    .iter()
                    .any(|framing| name.eq_ignore_ascii_case(framing));
                if is_framing {
                    let message =
                        format!("'{keyword}' : header '{name}' is set by the check itself");
                    context.warn("ignored-words", message, args.span());
                } else {
                    send.headers.push((name.to_owned(), value));
                }
            }
            "body" => {
                send.body = Some(bytes_of_text(argument(args, word, "a string")?).into_owned());
                send.body_format = None;
            }
            "body-lf" => {
                let phases = [Phase::Check];
                let what = "a log-format string after 'body-lf'";
                let format = expressions::format(draft, args, context, what, Usage::Http, &phases)?;
                send.body_format = Some(format);
                send.body = None;
            }
            other => {
                let words: Vec<_> = SEND_WORDS.iter().map(|word| format!("'{word}'")).collect();
                let message = format!(
                    "'{keyword}' : expects {} but got '{other}' as argument",
                    words.join(", ")
                );
                let known = SEND_WORDS.iter().copied();
                return Err(suggestion(args.wrong(message), other, known));
            }
        }
    }
    Ok(send)
}
