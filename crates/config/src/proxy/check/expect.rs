//! `http-check expect` and `tcp-check expect`.

use ballast_expr::{LogFormat, Phase, Regex, Usage};
use ballast_model::{CheckExpect, ExpectOutcome, ExpectSubject, HeaderPattern, HeaderPatternText};
use ballast_syntax::Diagnostic;

use super::connect::argument;
use super::expectation;
use crate::args::Args;
use crate::context::{Context, suggestion};
use crate::draft::ProxyDraft;
use crate::proxy::expressions;

const OK: &[&str] = &["L4OK", "L6OK", "L7OK", "L7OKC"];
const ERROR: &[&str] = &["L4CON", "L6RSP", "L7RSP", "L7STS"];
const TIMEOUT: &[&str] = &["L4TOUT", "L6TOUT", "L7TOUT"];

const HTTP_SUBJECTS: &[&str] = &[
    "status",
    "rstatus",
    "hdr",
    "fhdr",
    "string",
    "rstring",
    "string-lf",
];
const TCP_SUBJECTS: &[&str] = &[
    "string",
    "rstring",
    "string-lf",
    "binary",
    "rbinary",
    "binary-lf",
];
const FLAGS: &[&str] = &[
    "comment",
    "min-recv",
    "ok-status",
    "error-status",
    "tout-status",
    "on-success",
    "on-error",
    "status-code",
];

/// Reads what follows `expect`.
pub(super) fn expect(
    draft: &mut ProxyDraft,
    args: &mut Args<'_>,
    context: &mut Context<'_>,
    is_http: bool,
) -> Result<CheckExpect, Diagnostic> {
    let keyword = args.keyword();
    let mut rule = expectation(ExpectSubject::Text(Vec::new()));
    let mut has_subject = false;
    while let Some(word) = args.next() {
        if flag(word, &mut rule, draft, args, context)? {
            continue;
        }
        if has_subject {
            return Err(args.wrong(format!("'{keyword}' : only one pattern expected")));
        }
        let name = word.trim_start_matches('!');
        rule.negated ^= (word.len() - name.len()) % 2 == 1;
        if name.is_empty() {
            continue;
        }
        let subjects = if is_http { HTTP_SUBJECTS } else { TCP_SUBJECTS };
        if !subjects.contains(&name) {
            let known: Vec<_> = subjects.iter().map(|name| format!("[!]{name}")).collect();
            let message = format!(
                "'{keyword}' : only supports {} and {} but got '{word}' as argument",
                FLAGS.join(", "),
                known.join(", ")
            );
            let words = subjects.iter().chain(FLAGS).copied();
            return Err(suggestion(args.wrong(message), name, words));
        }
        rule.subject = subject(name, draft, args, context)?;
        has_subject = true;
    }
    if !has_subject {
        let message = format!("'{keyword}' : expects at least a matching pattern as arguments");
        return Err(Diagnostic::alert("missing-argument", message).at(args.span()));
    }
    Ok(rule)
}

/// An option before or after the pattern; false when it is not one.
fn flag(
    word: &str,
    rule: &mut CheckExpect,
    draft: &mut ProxyDraft,
    args: &mut Args<'_>,
    context: &mut Context<'_>,
) -> Result<bool, Diagnostic> {
    match word {
        "comment" => rule.comment = Some(argument(args, word, "a string")?.to_owned()),
        "min-recv" => {
            let text = argument(args, word, "an integer")?;
            let number: Result<i64, _> = text.parse();
            match number {
                Ok(number) if (-1..=i64::from(i32::MAX)).contains(&number) => {
                    rule.receive_bytes_min = number;
                }
                _ => {
                    let message = format!(
                        "'{}' : 'min-recv' expects -1 or a positive integer (got '{text}')",
                        args.keyword()
                    );
                    return Err(args.wrong(message));
                }
            }
        }
        "ok-status" => rule.ok = Some(outcome(word, OK, args)?),
        "error-status" => rule.error = Some(outcome(word, ERROR, args)?),
        "tout-status" => rule.timeout = Some(outcome(word, TIMEOUT, args)?),
        "on-success" => rule.on_success = Some(message(word, draft, args, context)?),
        "on-error" => rule.on_error = Some(message(word, draft, args, context)?),
        "status-code" => {
            argument(args, word, "an expression")?;
            args.seek(args.position() - 1);
            let phases = [Phase::Check];
            let expr = expressions::expr(draft, args, context, "an expression", &phases)?;
            rule.status_code = Some(expr);
        }
        _ => return Ok(false),
    }
    Ok(true)
}

fn outcome(
    word: &str,
    known: &[&'static str],
    args: &mut Args<'_>,
) -> Result<ExpectOutcome, Diagnostic> {
    let text = argument(args, word, "a status")?;
    if known.contains(&text) {
        return Ok(ExpectOutcome(text.to_owned()));
    }
    let quoted: Vec<_> = known.iter().map(|name| format!("'{name}'")).collect();
    let message = format!(
        "'{}' : '{word}' only supports {} status (got '{text}')",
        args.keyword(),
        quoted.join(", ")
    );
    Err(suggestion(args.wrong(message), text, known.iter().copied()))
}

fn message(
    word: &str,
    draft: &mut ProxyDraft,
    args: &mut Args<'_>,
    context: &mut Context<'_>,
) -> Result<LogFormat, Diagnostic> {
    let what = format!("a log-format string after '{word}'");
    expressions::format(draft, args, context, &what, Usage::Text, &[Phase::Check])
}

fn subject(
    name: &str,
    draft: &mut ProxyDraft,
    args: &mut Args<'_>,
    context: &mut Context<'_>,
) -> Result<ExpectSubject, Diagnostic> {
    if matches!(name, "hdr" | "fhdr") {
        return header(name == "fhdr", draft, args, context);
    }
    let keyword = args.keyword();
    let Some(word) = args.next_word().filter(|word| !word.bytes().is_empty()) else {
        return Err(args.wrong(format!(
            "'{keyword}' : '{name}' expects a <pattern> as argument"
        )));
    };
    let text = word.text();
    let regex = || {
        Regex::new(text, false)
            .map_err(|error| args.wrong(format!("'{keyword}' : {}", error.message)))
    };
    if matches!(name, "string-lf" | "binary-lf") {
        args.seek(args.position() - 1);
        let what = "a log-format string";
        let phases = [Phase::Check];
        let format = expressions::format(draft, args, context, what, Usage::Text, &phases)?;
        return Ok(match name {
            "string-lf" => ExpectSubject::TextFormat(format),
            _ => ExpectSubject::BinaryFormat(format),
        });
    }
    Ok(match name {
        "status" => ExpectSubject::Status(statuses(text, args)?),
        "rstatus" => {
            regex()?;
            ExpectSubject::StatusRegex(text.to_owned())
        }
        "string" => ExpectSubject::Text(word.bytes().to_vec()),
        "rstring" => {
            regex()?;
            ExpectSubject::Regex(text.to_owned())
        }
        "rbinary" => {
            regex()?;
            ExpectSubject::BinaryRegex(text.to_owned())
        }
        _ => ExpectSubject::Binary(binary(text, args)?),
    })
}

/// `200-299,302`.
fn statuses(text: &str, args: &Args<'_>) -> Result<Vec<(u16, u16)>, Diagnostic> {
    let keyword = args.keyword();
    let number = |digits: &str| {
        digits.parse::<u16>().map_err(|_| {
            let bad = digits.chars().find(|c| !c.is_ascii_digit());
            let message = match bad {
                Some(bad) => {
                    format!("'{keyword}' : invalid character '{bad}' in the list of status codes")
                }
                None => format!("'{keyword}' : '{digits}' is no status code"),
            };
            args.wrong(message)
        })
    };
    let mut ranges = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (number(first)?, number(last)?);
        if last < first {
            let message = format!("'{keyword}' : the range '{part}' ends before it begins");
            return Err(args.wrong(message));
        }
        ranges.push((first, last));
    }
    Ok(ranges)
}

/// Pairs of hexadecimal digits.
pub(super) fn binary(text: &str, args: &Args<'_>) -> Result<Vec<u8>, Diagnostic> {
    let keyword = args.keyword();
    let invalid = |why: &str| {
        args.wrong(format!(
            "'{keyword}' : '{text}' invalid binary string ({why})"
        ))
    };
    if let Some(bad) = text.chars().find(|c| !c.is_ascii_hexdigit()) {
        return Err(invalid(&format!(
            "an hex digit is expected (found '{bad}')"
        )));
    }
    if !text.len().is_multiple_of(2) {
        return Err(invalid("an even number of hex digit is expected"));
    }
    let pairs = text.as_bytes().chunks(2);
    let digit = |byte: u8| char::from(byte).to_digit(16).unwrap_or_default();
    Ok(pairs
        .map(|pair| u8::try_from(digit(pair[0]) * 16 + digit(pair[1])).unwrap_or_default())
        .collect())
}

/// `name [-m <method>] <pattern> [ value [-m <method>] <pattern> ]`, `-lf` for formats.
fn header(
    full: bool,
    draft: &mut ProxyDraft,
    args: &mut Args<'_>,
    context: &mut Context<'_>,
) -> Result<ExpectSubject, Diagnostic> {
    let keyword = args.keyword();
    let word = if full { "fhdr" } else { "hdr" };
    let is_format = match args.next() {
        Some("name") => false,
        Some("name-lf") => true,
        _ => {
            return Err(args.wrong(format!(
                "'{keyword}' : '{word}' expects at the name keyword as first argument followed \
                 by a pattern"
            )));
        }
    };
    let name = pattern(word, is_format, draft, args, context)?;
    let is_format = match args.peek() {
        Some("value") => false,
        Some("value-lf") => true,
        _ => {
            let value = None;
            return Ok(ExpectSubject::Header { full, name, value });
        }
    };
    args.next();
    let value = Some(pattern(word, is_format, draft, args, context)?);
    Ok(ExpectSubject::Header { full, name, value })
}

fn pattern(
    word: &str,
    is_format: bool,
    draft: &mut ProxyDraft,
    args: &mut Args<'_>,
    context: &mut Context<'_>,
) -> Result<HeaderPattern, Diagnostic> {
    let mut method = "str";
    if args.take("-m") {
        let methods = ["str", "beg", "end", "sub", "reg"];
        let text = argument(args, "-m", "a matching method")?;
        match methods.iter().find(|known| **known == text) {
            Some(known) => method = known,
            None => {
                let message = format!(
                    "'{}' : '-m' only supports 'str', 'beg', 'end', 'sub' and 'reg' (got \
                     '{text}')",
                    args.keyword()
                );
                return Err(suggestion(args.wrong(message), text, methods));
            }
        }
    }
    let text = argument(args, "hdr", "a <pattern>")?;
    if is_format {
        if method == "reg" {
            return Err(args.wrong(format!(
                "'{}' : '{word}': log-format string is not supported with a regex matching \
                 method.",
                args.keyword()
            )));
        }
        args.seek(args.position() - 1);
        let what = "a <pattern>";
        let phases = [Phase::Check];
        let format = expressions::format(draft, args, context, what, Usage::Http, &phases)?;
        let text = HeaderPatternText::Format(format);
        return Ok(HeaderPattern { method, text });
    }
    if method == "reg" {
        Regex::new(text, false)
            .map_err(|error| args.wrong(format!("'{}' : {}", args.keyword(), error.message)))?;
    }
    let text = HeaderPatternText::Literal(text.to_owned());
    Ok(HeaderPattern { method, text })
}
