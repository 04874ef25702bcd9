//! `cookie` and the other words about persistence and retries.
//!
//! Source: HAProxy configuration manual, section 4.2, "cookie", "persist", "retries", "retry-on",
//! "option redispatch".

use ballast_expr::Phase;
use ballast_model::{
    CookieMode, CookiePersistence, PersistenceAction, PersistenceRule, Redispatch, RetryOn,
};
use ballast_syntax::{Diagnostic, TimeUnit};

use super::expressions;
use crate::args::{Args, Prefix};
use crate::context::{Context, suggestion};
use crate::draft::ProxyDraft;
use crate::keyword::{Row, Sections};

/// A row of this file's table.
type R = Row<ProxyDraft>;

/// The rows.
pub(super) const ROWS: &[R] = &[
    R::new(
        "cookie",
        Sections::BACK,
        "<name> [ rewrite | insert | prefix ] [ indirect ] [ nocache ] [ postonly ] [ preserve ] \
         [ httponly ] [ secure ] [ domain <d> ]* [ maxidle <t> ] [ maxlife <t> ] [ dynamic ] \
         [ attr <value> ]*",
        "a cookie names the server of a client",
        cookie,
    )
    .examples(
        "cookie SRV insert indirect nocache",
        "cookie SRV insert prefix",
    )
    .http(),
    R::new(
        "dynamic-cookie-key",
        Sections::BACK,
        "<key>",
        "secret that dynamic cookies are made with",
        |draft, args, context| {
            let key = args.text("<secret_key> as argument")?;
            draft.back.dynamic_cookie_key = Some(key.to_owned());
            expressions::ignore_rest(args, context);
            Ok(())
        },
    )
    .examples("dynamic-cookie-key secret", "dynamic-cookie-key"),
    R::new(
        "retries",
        Sections::BACK,
        "<value>",
        "attempts after a failed connection",
        |draft, args, context| {
            let what = "an integer argument (dispatch counts for one)";
            draft.back.retry_count_max = expressions::lenient_count(args, context, what)?;
            args.end()
        },
    )
    .examples("retries 3", "retries 3 4"),
    R::new(
        "retry-on",
        Sections::BACK,
        "{ none | conn-failure | empty-response | junk-response | response-timeout | \
         0rtt-rejected | <status> | all-retryable-errors }*",
        "which failures may be tried again; 0rtt-rejected cannot happen: servers are sent no early data",
        retry_on,
    )
    .examples("retry-on conn-failure 503", "retry-on 405"),
    R::new(
        "option redispatch",
        Sections::BACK,
        "[ <interval> ]",
        "retry on another server",
        |draft, args, context| {
            if args.prefix != Prefix::None {
                draft.back.redispatch = None;
                return args.end();
            }
            let interval = match args.next() {
                None => -1,
                Some(text) => match text.parse::<i32>() {
                    Ok(number) => number,
                    Err(_) => {
                        let message =
                            format!("'option redispatch' : '{text}' is no number, -1 is used");
                        let span = args.wrong("").span.unwrap_or(args.span());
                        context.warn("bad-value", message, span);
                        -1
                    }
                },
            };
            draft.back.redispatch = (interval != 0).then_some(Redispatch { interval });
            args.end()
        },
    )
    .examples("option redispatch 1", "option redispatch 1 2")
    .with_no_and_default(),
    R::new(
        "persist",
        Sections::BACK,
        "rdp-cookie[(<name>)]",
        "keep sessions of a remote desktop on their server",
        |draft, args, _| {
            let word = args.text("a persist method")?;
            let name = match word.split_once('(') {
                None if word == "rdp-cookie" => "msts",
                Some(("rdp-cookie", rest)) => match rest.strip_suffix(')') {
                    Some(name) if !name.is_empty() => name,
                    _ => {
                        let message = "persist 'rdp-cookie(name)' requires an rdp cookie name";
                        return Err(args.wrong(message));
                    }
                },
                _ => {
                    let message = format!("unknown persist method '{word}'");
                    return Err(suggestion(args.wrong(message), word, ["rdp-cookie"]));
                }
            };
            args.end()?;
            draft.back.rdp_cookie_name = Some(name.to_owned());
            Ok(())
        },
    )
    .examples("persist rdp-cookie(msts)", "persist nosuch"),
    R::new(
        "force-persist",
        Sections::BACK_ONLY,
        "{ if | unless } <condition>",
        "go to the cookie's server even when it is down",
        |draft, args, context| persistence_rule(draft, args, context, PersistenceAction::Force),
    )
    .examples("force-persist if { src 127.0.0.1 }", "force-persist"),
    R::new(
        "ignore-persist",
        Sections::BACK_ONLY,
        "{ if | unless } <condition>",
        "do not look at the cookie",
        |draft, args, context| persistence_rule(draft, args, context, PersistenceAction::Ignore),
    )
    .examples(
        "ignore-persist if { path_end .css }",
        "ignore-persist { path_end .css }",
    ),
];

fn persistence_rule(
    draft: &mut ProxyDraft,
    args: &mut Args<'_>,
    context: &mut Context<'_>,
    action: PersistenceAction,
) -> Result<(), Diagnostic> {
    // What HAProxy checks, although the rules run when the server is chosen.
    let phases = [Phase::BackendContent];
    let condition = expressions::required_condition(draft, args, context, &phases)?;
    let rule = PersistenceRule { action, condition };
    draft.back.persistence_rules.push(rule);
    Ok(())
}

const COOKIE_WORDS: &[&str] = &[
    "rewrite", "insert", "prefix", "indirect", "nocache", "postonly", "preserve", "httponly",
    "secure", "domain", "maxidle", "maxlife", "dynamic", "attr",
];

fn cookie(
    draft: &mut ProxyDraft,
    args: &mut Args<'_>,
    context: &mut Context<'_>,
) -> Result<(), Diagnostic> {
    let name = args.text("<cookie_name> as argument")?;
    let mut cookie = CookiePersistence {
        name: name.to_owned(),
        mode: CookieMode::Passive,
        indirect: false,
        nocache: false,
        postonly: false,
        preserve: false,
        httponly: false,
        secure: false,
        domains: Vec::new(),
        idle_max: None,
        life_max: None,
        dynamic: false,
        attributes: Vec::new(),
    };
    while let Some(word) = args.next() {
        match word {
            "rewrite" => cookie_mode(&mut cookie, CookieMode::Rewrite, args)?,
            "insert" => cookie_mode(&mut cookie, CookieMode::Insert, args)?,
            "prefix" => cookie_mode(&mut cookie, CookieMode::Prefix, args)?,
            "indirect" => cookie.indirect = true,
            "nocache" => cookie.nocache = true,
            "postonly" => cookie.postonly = true,
            "preserve" => cookie.preserve = true,
            "httponly" => cookie.httponly = true,
            "secure" => cookie.secure = true,
            "dynamic" => cookie.dynamic = true,
            "domain" => domain(&mut cookie, args, context)?,
            "maxidle" => cookie.idle_max = cookie_time(args, "maxidle", "idletime")?,
            "maxlife" => cookie.life_max = cookie_time(args, "maxlife", "lifetime")?,
            "attr" => attribute(&mut cookie, args)?,
            other => {
                let words: Vec<_> = COOKIE_WORDS
                    .iter()
                    .map(|word| format!("'{word}'"))
                    .collect();
                let message = format!(
                    "'cookie' supports {} options (got '{other}')",
                    words.join(", ")
                );
                let known = COOKIE_WORDS.iter().copied();
                return Err(suggestion(args.wrong(message), other, known));
            }
        }
    }
    if cookie.mode == CookieMode::Rewrite && cookie.indirect {
        let message = "cookie 'rewrite' and 'indirect' modes are incompatible";
        return Err(args.wrong(message));
    }
    if cookie.preserve && cookie.mode != CookieMode::Insert && !cookie.indirect {
        let message = "cookie 'preserve' requires at least 'insert' or 'indirect'";
        return Err(args.wrong(message));
    }
    draft.back.cookie = Some(cookie);
    Ok(())
}

fn cookie_mode(
    cookie: &mut CookiePersistence,
    mode: CookieMode,
    args: &Args<'_>,
) -> Result<(), Diagnostic> {
    if cookie.mode != CookieMode::Passive && cookie.mode != mode {
        let message = "cookie 'rewrite', 'insert' and 'prefix' modes are incompatible";
        return Err(args.wrong(message));
    }
    cookie.mode = mode;
    Ok(())
}

fn domain(
    cookie: &mut CookiePersistence,
    args: &mut Args<'_>,
    context: &mut Context<'_>,
) -> Result<(), Diagnostic> {
    let Some(word) = args.next_word().filter(|word| !word.text().is_empty()) else {
        return Err(args.wrong("'domain' expects <domain> as argument"));
    };
    let text = word.text();
    let is_dotted = text.get(1..).is_some_and(|rest| rest.contains('.')) && text.len() > 2;
    if !is_dotted {
        let message = format!(
            "domain '{text}' contains no embedded dot, this configuration may not work properly \
             (see RFC6265#5.2.3)"
        );
        context.warn("odd-domain", message, word.span());
    }
    if let Some(bad) = text
        .chars()
        .find(|c| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '.')))
    {
        let message = format!("character '{bad}' is not permitted in domain name '{text}'");
        return Err(args.wrong(message));
    }
    cookie.domains.push(text.to_owned());
    Ok(())
}

fn cookie_time(
    args: &mut Args<'_>,
    word: &str,
    what: &str,
) -> Result<Option<std::time::Duration>, Diagnostic> {
    if args.is_empty() {
        let message = format!("'{word}' expects <{what}> in seconds as argument");
        return Err(args.wrong(message));
    }
    let time = args.time_in("a time", TimeUnit::Second)?;
    Ok((!time.is_zero()).then_some(time))
}

fn attribute(cookie: &mut CookiePersistence, args: &mut Args<'_>) -> Result<(), Diagnostic> {
    let Some(text) = args.next().filter(|text| !text.is_empty()) else {
        return Err(args.wrong("'attr' expects <value> as argument"));
    };
    if let Some(bad) = text.chars().find(|c| c.is_control() || *c == ';') {
        let message = format!(
            "character '%x{:02X}' is not permitted in attribute value",
            u32::from(bad)
        );
        return Err(args.wrong(message));
    }
    cookie.attributes.push(text.to_owned());
    Ok(())
}

const RETRYABLE: &[u16] = &[401, 403, 404, 408, 421, 425, 429, 500, 501, 502, 503, 504];

fn retry_on(
    draft: &mut ProxyDraft,
    args: &mut Args<'_>,
    _: &mut Context<'_>,
) -> Result<(), Diagnostic> {
    let mut retry = RetryOn {
        conn_failure: false,
        ..RetryOn::default()
    };
    if args.is_empty() {
        return Err(args.missing_argument("at least one keyword to specify when to retry"));
    }
    let is_alone = args.texts().len() == 1;
    while let Some(word) = args.next() {
        match word {
            "none" if !is_alone => {
                return Err(args.wrong("'retry-on' 'none' is only usable alone"));
            }
            "none" => {}
            "conn-failure" => retry.conn_failure = true,
            "empty-response" => retry.empty_response = true,
            "junk-response" => retry.junk_response = true,
            "response-timeout" => retry.response_timeout = true,
            // Without TLS there is no early data, and nothing to reject.
            "0rtt-rejected" => {}
            "all-retryable-errors" => {
                retry.conn_failure = true;
                retry.empty_response = true;
                retry.junk_response = true;
                retry.response_timeout = true;
                for status in [500, 502, 503, 504] {
                    add_status(&mut retry, status);
                }
            }
            other => match other.parse::<u16>() {
                Ok(status) if RETRYABLE.contains(&status) => add_status(&mut retry, status),
                _ => {
                    let message = format!("'retry-on': unknown keyword '{other}'");
                    let known = [
                        "none",
                        "conn-failure",
                        "empty-response",
                        "junk-response",
                        "response-timeout",
                        "0rtt-rejected",
                        "all-retryable-errors",
                    ];
                    return Err(suggestion(args.wrong(message), other, known)
                        .note("statuses: 401 403 404 408 421 425 429 500 501 502 503 504"));
                }
            },
        }
    }
    draft.back.retry_on = retry;
    Ok(())
}

fn add_status(retry: &mut RetryOn, status: u16) {
    if !retry.statuses.contains(&status) {
        retry.statuses.push(status);
    }
}
