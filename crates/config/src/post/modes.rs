//! Options that a proxy's mode does not support.

use ballast_expr::{CLF_HTTP_LOG_FORMAT, CLF_TCP_LOG_FORMAT, LogFormat, TCP_LOG_FORMAT, Usage};
use ballast_model::{Balance, Mode};
use ballast_syntax::{Diagnostic, Severity, Span};

use crate::context::Context;
use crate::draft::ProxyDraft;

/// Checks a proxy and removes options that its mode does not support.
pub(super) fn check(draft: &mut ProxyDraft, context: &mut Context<'_>) {
    match draft.common.mode {
        Mode::Http => {
            raw_bytes(draft, context);
            return;
        }
        Mode::Tcp => forget_unimplemented(draft, context),
        Mode::Log | Mode::Spop => {
            if let Some(span) = draft.span {
                let word = format!("mode {}", draft.common.mode.word());
                context.unimplemented(&word, "log backends and SPOE", span);
            }
        }
    }
    log_format(draft, context);
    balance(draft, context);
    cookies(draft, context);
    let title = draft.title();
    let mut reported: Vec<&str> = Vec::new();
    for (word, span) in &draft.http_words {
        // The format of logs, cookies and hashes have messages of their own.
        let has_own_message = word.starts_with("option http") && word.ends_with("log");
        if has_own_message || *word == "cookie" || reported.contains(word) {
            continue;
        }
        reported.push(word);
        let message = match *word {
            "http-request" | "http-response" | "http-after-response" => {
                format!("'{word}' rules ignored for {title} as they require HTTP mode.")
            }
            _ => format!("'{word}' ignored for {title} as it requires HTTP mode."),
        };
        let diagnostic = Diagnostic::warning("needs-http", message)
            .at(*span)
            .help("set 'mode http' in the section or in its defaults");
        context.report(diagnostic);
    }
}

/// In an HTTP proxy, a request that was parsed is not available as raw bytes any more.
fn raw_bytes(draft: &ProxyDraft, context: &mut Context<'_>) {
    for span in &draft.section_state.raw_bytes {
        let message = format!(
            "Proxy '{}': L6 sample fetches ignored on HTTP proxies (declared at {}).",
            draft.name,
            context.file_and_line(*span)
        );
        context.warn("needs-tcp", message, *span);
    }
    for (word, span) in &draft.section_state.raw_samples {
        let message = format!("L6 sample fetch <{word}> ignored in HTTP mode.");
        context.warn("needs-tcp", message, *span);
    }
}

/// What is ignored outside HTTP need not be implemented.
fn forget_unimplemented(draft: &ProxyDraft, context: &mut Context<'_>) {
    let ignored = |span: Option<Span>| {
        let mut words = draft.http_words.iter();
        span.is_some_and(|span| {
            words.any(|(_, word)| {
                word.file == span.file && span.start <= word.start && word.start < span.end
            })
        })
    };
    context.unimplemented.retain(|word| !ignored(word.span));
}

fn log_format(draft: &mut ProxyDraft, context: &mut Context<'_>) {
    let Some((word, span)) = draft.log_word else {
        return;
    };
    if !draft.is_front() || !matches!(word, "option httplog" | "option httpslog") {
        return;
    }
    let parsed = |text| LogFormat::parse(text, Usage::Log).ok();
    let is_clf = draft.front.log.format == parsed(CLF_HTTP_LOG_FORMAT);
    let (clf, fallback) = match is_clf {
        true => (" clf", CLF_TCP_LOG_FORMAT),
        false => ("", TCP_LOG_FORMAT),
    };
    draft.front.log.format = parsed(fallback);
    let message = format!(
        "'{word}{clf}' not usable with {} (needs 'mode http'). Falling back to 'option tcplog{clf}'.",
        draft.title()
    );
    let mut diagnostic = Diagnostic::warning("needs-http", message)
        .help(format!("write 'option tcplog{clf}', or set 'mode http'"));
    diagnostic.span = span.or(draft.span);
    context.report(diagnostic);
}

fn balance(draft: &mut ProxyDraft, context: &mut Context<'_>) {
    if !draft.is_back() {
        return;
    }
    let word = match draft.back.balance {
        Balance::Uri(_) | Balance::UrlParam { .. } | Balance::Header { .. } => {
            draft.back.balance.word()
        }
        _ => return,
    };
    draft.back.balance = Balance::RoundRobin;
    let message = format!(
        "'balance {word}' : Layer 7 hash not possible for {} (needs 'mode http'). Falling back to \
         round robin.",
        draft.title()
    );
    let span = draft.balance_span.or(draft.span);
    super::report(context, Severity::Warning, "needs-http", message, span);
}

fn cookies(draft: &mut ProxyDraft, context: &mut Context<'_>) {
    if !draft.is_back() {
        return;
    }
    let title = draft.title();
    if draft.back.cookie.take().is_some() {
        let message = format!("cookie will be ignored for {title} (needs 'mode http').");
        let own = draft.http_words.iter().find(|(word, _)| *word == "cookie");
        let span = own.map(|(_, span)| *span).or(draft.span);
        super::report(context, Severity::Warning, "needs-http", message, span);
    }
    for one in &mut draft.servers {
        if one.server.cookie.take().is_some() {
            let message = format!(
                "{title} : ignoring cookie for server '{}' as HTTP mode is disabled.",
                one.server.name
            );
            super::report(context, Severity::Warning, "needs-http", message, one.span);
        }
    }
}
