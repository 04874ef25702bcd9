//! Health checks: `option httpchk` and its siblings, `http-check`, `tcp-check`, `external-check`.
//!
//! A section collects its lines in [`CheckWords`]; [`finish`] builds the model's [`CheckMethod`] from
//! them, because the option that selects the kind may come after the rules.
//!
//! Source: HAProxy configuration manual, section 4.2.

mod connect;
mod expect;
mod http;
mod option;
mod tcp;
mod variable;
mod words;

use ballast_expr::{Expr, LogFormat};
use ballast_model::{
    CheckExpect, CheckMethod, CheckPayload, CheckPort, CheckRule, CheckVariableValue,
    ExpectSubject, HeaderPatternText, HttpCheckSend,
};
use ballast_syntax::{Diagnostic, SectionKind};

use crate::context::Context;
use crate::draft::ProxyDraft;
use crate::keyword::Row;

pub(crate) use words::CheckWords;
use words::{CheckKind, CheckRules};

pub(super) const HTTP: &[Row<ProxyDraft>] = http::ROWS;
pub(super) const OPTIONS: &[Row<ProxyDraft>] = option::ROWS;
pub(super) const TCP: &[Row<ProxyDraft>] = tcp::ROWS;

/// Builds the check, and warns about lines without effect.
pub(super) fn finish(draft: &mut ProxyDraft, context: &mut Context<'_>) {
    if !draft.is_back() && draft.kind != SectionKind::Healthcheck {
        return;
    }
    let title = draft.title();
    let words = &draft.section_state.check;
    let is_http = words.is_http();
    for (rules, is_used, family, option) in [
        (&words.http, is_http, "http-check", "option httpchk"),
        (
            &words.tcp,
            words.kind == CheckKind::Tcp,
            "tcp-check",
            "option tcp-check",
        ),
    ] {
        if let (false, Some(span)) = (is_used, rules.first) {
            let message =
                format!("{title} uses {family} rules without '{option}', so the rules are ignored");
            context.report(
                Diagnostic::warning("ignored-check", message)
                    .at(span)
                    .help(format!("add: {option}")),
            );
        }
    }
    for (is_given, word) in [
        (words.disable_on_404, "disable-on-404"),
        (words.send_state, "send-state"),
    ] {
        if is_given && words.ignores_states() {
            let message =
                format!("'{word}' will be ignored for {title} (requires 'option httpchk')");
            context
                .report(Diagnostic::warning("ignored-check", message).help("add: option httpchk"));
        }
    }
    let is_external = words.kind == CheckKind::External;
    for (given, word) in [(&words.command, "command"), (&words.path, "path")] {
        if let (false, Some((_, Some(span)))) = (is_external, given) {
            let message = format!(
                "'external-check {word}' will be ignored for {title} (requires 'option \
                 external-check')"
            );
            context.warn("ignored-check", message, *span);
        }
    }
    if let (Some((command, span)), None) = (&words.command, &words.path)
        && !command.starts_with('/')
    {
        let message = format!(
            "{title} : 'external-check command' does not begin with '/', and there is no 'external-check path'"
        );
        let alert = Diagnostic::alert("relative-command", message);
        context.report(match *span {
            Some(span) => alert.at(span),
            None => alert,
        });
    }
    if is_external && words.command.is_none() {
        let message = format!(
            "{title} : 'option external-check' unable to find required 'external-check command'"
        );
        let alert = Diagnostic::alert("missing-argument", message);
        context.report(match words.kind_span.or(draft.span) {
            Some(span) => alert.at(span),
            None => alert,
        });
    }
    draft.back.check = check(words);
}

fn check(words: &CheckWords) -> CheckMethod {
    match &words.kind {
        CheckKind::Connect => CheckMethod::Connect,
        CheckKind::Tcp => CheckMethod::Tcp {
            rules: words.tcp.steps.clone(),
            word: "tcp-check",
        },
        CheckKind::Protocol(check) => CheckMethod::Protocol(check.clone()),
        CheckKind::External => CheckMethod::External {
            command: words
                .command
                .clone()
                .map(|(text, _)| text)
                .unwrap_or_default(),
            path: words.path.clone().map(|(text, _)| text),
        },
        CheckKind::Http(send) => CheckMethod::Http {
            rules: http_rules(send, words.http.steps.clone()),
            disable_on_404: words.disable_on_404,
            send_state: words.send_state,
        },
    }
}

/// The rules of an HTTP check: the first `send` is completed by the option's request, or that
/// request is sent; without `expect` a status of 2xx or 3xx passes.
fn http_rules(option: &HttpCheckSend, written: Vec<CheckRule>) -> Vec<CheckRule> {
    let mut rules = written;
    let first_send = rules.iter_mut().find_map(|rule| match rule {
        CheckRule::HttpSend(send) => Some(send),
        _ => None,
    });
    match first_send {
        Some(send) => complete(send, option),
        None => {
            // After the connection, which may stand behind comments and variables; else before all.
            let is_acting = |rule: &&CheckRule| {
                use CheckRule::{Comment, SetVar, UnsetVar};
                !matches!(rule, Comment(_) | SetVar(_) | UnsetVar(_))
            };
            let connects = match rules.iter().position(|rule| is_acting(&rule)) {
                Some(first) if matches!(rules[first], CheckRule::Connect(_)) => first + 1,
                _ => 0,
            };
            let send = HttpCheckSend {
                implied: true,
                ..option.clone()
            };
            rules.insert(connects, CheckRule::HttpSend(send));
        }
    }
    let expects = rules
        .iter()
        .any(|rule| matches!(rule, CheckRule::Expect(_)));
    if !expects {
        rules.push(CheckRule::Expect(Box::new(expectation(
            ExpectSubject::Status(vec![(200, 399)]),
        ))));
    }
    rules
}

fn complete(send: &mut HttpCheckSend, option: &HttpCheckSend) {
    if send.method.is_none() {
        send.method.clone_from(&option.method);
    }
    if send.uri.is_none() && send.uri_format.is_none() {
        send.uri.clone_from(&option.uri);
    }
    if send.version.is_none() {
        send.version.clone_from(&option.version);
    }
    if send.headers.is_empty() {
        send.headers.clone_from(&option.headers);
    }
    if send.body.is_none() && send.body_format.is_none() {
        send.body.clone_from(&option.body);
    }
}

/// Every format of a check, and every expression.
pub(super) fn formats_and_expressions(
    check: &mut CheckMethod,
) -> (Vec<&mut LogFormat>, Vec<&mut Expr>) {
    let rules = match check {
        CheckMethod::Http { rules, .. } | CheckMethod::Tcp { rules, .. } => rules,
        CheckMethod::Connect | CheckMethod::External { .. } | CheckMethod::Protocol(_) => {
            return Default::default();
        }
    };
    let (mut formats, mut expressions) = (Vec::new(), Vec::new());
    for rule in rules {
        match rule {
            CheckRule::Comment(_) | CheckRule::UnsetVar(_) => {}
            CheckRule::Connect(connect) => {
                if let Some(CheckPort::Expr(expr)) = &mut connect.port {
                    expressions.push(expr);
                }
            }
            CheckRule::Send(send) => match &mut send.payload {
                CheckPayload::Bytes(_) => {}
                CheckPayload::Format(format) | CheckPayload::HexFormat(format) => {
                    formats.push(format);
                }
            },
            CheckRule::HttpSend(send) => {
                formats.extend(send.uri_format.as_mut());
                formats.extend(send.body_format.as_mut());
                formats.extend(send.headers.iter_mut().map(|(_, format)| format));
            }
            CheckRule::SetVar(set) => match &mut set.value {
                CheckVariableValue::Expr(expr) => expressions.push(expr),
                CheckVariableValue::Format(format) => formats.push(format),
            },
            CheckRule::Expect(expect) => {
                formats.extend(expect.on_success.as_mut());
                formats.extend(expect.on_error.as_mut());
                expressions.extend(expect.status_code.as_mut());
                formats.extend(subject_formats(&mut expect.subject));
            }
        }
    }
    (formats, expressions)
}

/// The formats of a subject.
fn subject_formats(subject: &mut ExpectSubject) -> Vec<&mut LogFormat> {
    match subject {
        ExpectSubject::TextFormat(format) | ExpectSubject::BinaryFormat(format) => vec![format],
        ExpectSubject::Header { name, value, .. } => {
            let patterns = std::iter::once(name).chain(value.as_mut());
            let texts = patterns.map(|pattern| &mut pattern.text);
            texts
                .filter_map(|text| match text {
                    HeaderPatternText::Literal(_) => None,
                    HeaderPatternText::Format(format) => Some(format),
                })
                .collect()
        }
        _ => Vec::new(),
    }
}

/// An `expect` with only its subject.
pub(super) fn expectation(subject: ExpectSubject) -> CheckExpect {
    CheckExpect {
        negated: false,
        subject,
        receive_bytes_min: -1,
        ok: None,
        error: None,
        timeout: None,
        on_success: None,
        on_error: None,
        status_code: None,
        comment: None,
    }
}
