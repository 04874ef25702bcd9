//! Responses that replace a proxy's built-in ones.
//!
//! Source: HAProxy configuration manual, section 4.2, "errorfile", "errorfiles", "errorloc",
//! "http-error".

use ballast_expr::{LogFormat, Usage, bytes_of_text};
use ballast_model::ErrorPage;
use ballast_syntax::{Diagnostic, SectionKind, Span, Word};

use super::rules::error_reply;
use crate::args::{Args, borrowed};
use crate::context::{Context, suggestion};
use crate::draft::{ErrorGroupUse, ProxyDraft};
use crate::keyword::{Row, Sections};

/// A row of this file's table.
type R = Row<ProxyDraft>;

/// The statuses whose response can be replaced, with their reasons (RFC 9110, section 15).
const STATUSES: &[(u16, &str)] = &[
    (200, "OK"),
    (400, "Bad Request"),
    (401, "Unauthorized"),
    (403, "Forbidden"),
    (404, "Not Found"),
    (405, "Method Not Allowed"),
    (407, "Proxy Authentication Required"),
    (408, "Request Time-out"),
    (410, "Gone"),
    (413, "Payload Too Large"),
    (414, "URI Too Long"),
    (421, "Misdirected Request"),
    (422, "Unprocessable Content"),
    (425, "Too Early"),
    (429, "Too Many Requests"),
    (431, "Request Header Fields Too Large"),
    (500, "Internal Server Error"),
    (501, "Not Implemented"),
    (502, "Bad Gateway"),
    (503, "Service Unavailable"),
    (504, "Gateway Time-out"),
];

/// The rows.
pub(super) const ROWS: &[R] = &[
    R::new(
        "errorfile",
        Sections::PROXIES,
        "<status> <file>",
        "a file to send instead of an own answer",
        |draft, args, context| {
            let (status, page) = errorfile(args, context)?;
            args.end()?;
            set(draft, status, page);
            Ok(())
        },
    )
    .examples("errorfile 503 /dev/null", "errorfile 999 /dev/null"),
    R::new(
        "errorfiles",
        Sections::PROXIES,
        "<http-errors section> [ <status> ... ]",
        "the pages of an 'http-errors' section",
        errorfiles,
    )
    .examples("errorfiles site 503", "errorfiles"),
    errorloc("errorloc", "errorloc 503 http://x/", |draft, args, _| {
        location(draft, args, 302)
    }),
    errorloc(
        "errorloc302",
        "errorloc302 503 http://x/",
        |draft, args, _| location(draft, args, 302),
    ),
    errorloc(
        "errorloc303",
        "errorloc303 503 http://x/",
        |draft, args, _| location(draft, args, 303),
    ),
    R::new(
        "http-error",
        Sections::PROXIES,
        "status <status> [ content-type <type> ] \
         [ { default-errorfiles | errorfile <file> | errorfiles <name> | file <file> | \
         lf-file <file> | string <str> | lf-string <fmt> } ] [ hdr <name> <fmt> ]*",
        "an answer to give instead of an own one",
        http_error,
    )
    .examples(
        "http-error status 503 content-type text/plain string closed",
        "http-error status 503 string closed",
    ),
];

const fn errorloc(
    word: &'static str,
    good: &'static str,
    handler: crate::keyword::Handler<ProxyDraft>,
) -> R {
    let help = "a redirect to give instead of an own answer";
    R::new(word, Sections::PROXIES, "<status> <url>", help, handler).examples(good, "")
}

/// Replaces a response; the one from an earlier `errorfiles` line no longer applies.
fn set(draft: &mut ProxyDraft, status: u16, page: ErrorPage) {
    except(draft, status);
    draft.common.error_pages.set(status, page);
}

/// The groups of earlier lines do not count for a status any more.
fn except(draft: &mut ProxyDraft, status: u16) {
    for used in &mut draft.error_groups {
        used.except.push(status);
    }
}

/// `<status> <file>`.
fn errorfile(
    args: &mut Args<'_>,
    context: &mut Context<'_>,
) -> Result<(u16, ErrorPage), Diagnostic> {
    let expects = "<status_code> and <file> as arguments";
    let status = status(args, expects)?;
    let path = args.word(expects)?;
    let (file, span) = (path.text(), path.span());
    let bytes = read_page(file, span, args.keyword(), context)?;
    let file = file.to_owned();
    Ok((status, ErrorPage::Raw { file, bytes }))
}

fn read_page(
    file: &str,
    span: Span,
    keyword: &str,
    context: &mut Context<'_>,
) -> Result<Vec<u8>, Diagnostic> {
    // Empty on every machine: nothing is sent and the connection is closed.
    if file == "/dev/null" {
        return Ok(Vec::new());
    }
    let bytes = context.read(file, keyword, span)?;
    if let Some(why) = not_a_response(&bytes) {
        let message = format!("{keyword} : '{file}': {why}");
        return Err(Diagnostic::alert("bad-file", message).at(span).help(
            "the file must hold a whole HTTP/1 response: status line, headers, blank line, body",
        ));
    }
    Ok(bytes)
}

/// Why bytes are not an HTTP/1 response; an empty file means that nothing is sent.
fn not_a_response(bytes: &[u8]) -> Option<&'static str> {
    if bytes.is_empty() {
        return None;
    }
    let mut lines = bytes.split(|byte| *byte == b'\n').map(|line| {
        let end = line.len() - usize::from(line.last() == Some(&b'\r'));
        &line[..end]
    });
    let first = lines.next().unwrap_or_default();
    let is_status_line = first.starts_with(b"HTTP/")
        && first
            .split(|byte| *byte == b' ')
            .nth(1)
            .is_some_and(|code| code.len() == 3 && code.iter().all(u8::is_ascii_digit));
    if !is_status_line {
        return Some("unable to parse headers (no status line)");
    }
    for line in lines {
        if line.is_empty() {
            return None;
        }
        if line
            .iter()
            .position(|byte| *byte == b':')
            .is_none_or(|at| at == 0)
        {
            return Some("unable to parse headers (a header without name or colon)");
        }
    }
    Some("unable to parse headers (the blank line is missing)")
}

fn status(args: &mut Args<'_>, expects: &str) -> Result<u16, Diagnostic> {
    let text = args.text(expects)?;
    known_status(text).ok_or_else(|| {
        let known: Vec<_> = STATUSES.iter().map(|(code, _)| code.to_string()).collect();
        let message = format!("{} : status code '{text}' not handled", args.keyword());
        args.wrong(message)
            .help(format!("use one of: {}", known.join(", ")))
    })
}

fn known_status(text: &str) -> Option<u16> {
    let code = text.parse::<u16>().ok()?;
    STATUSES
        .iter()
        .any(|(known, _)| *known == code)
        .then_some(code)
}

fn errorfiles(
    draft: &mut ProxyDraft,
    args: &mut Args<'_>,
    context: &mut Context<'_>,
) -> Result<(), Diagnostic> {
    let name = args.word("<name> as argument")?;
    let keyword = args.keyword();
    let mut statuses = Vec::new();
    while !args.is_empty() {
        statuses.push(status(args, "a status code")?);
    }
    let group = name.text();
    let kind = SectionKind::HttpErrors;
    context
        .declarations
        .add_reference(kind, group, keyword, name.span());
    draft.error_groups.push(ErrorGroupUse {
        group: group.to_owned(),
        statuses,
        except: Vec::new(),
        span: name.span(),
    });
    Ok(())
}

fn location(draft: &mut ProxyDraft, args: &mut Args<'_>, redirect: u16) -> Result<(), Diagnostic> {
    let expects = "<status_code> and <url> as arguments";
    let code = status(args, expects)?;
    let location = args.text(expects)?.to_owned();
    args.end()?;
    let status = redirect;
    set(draft, code, ErrorPage::Location { status, location });
    Ok(())
}

/// The content of an `http-error` line.
#[derive(Default)]
struct HttpErrorLine {
    status: Option<(u16, &'static str)>,
    content_type: Option<String>,
    headers: Vec<(String, LogFormat)>,
    payload: Payload,
}

#[derive(Default)]
enum Payload {
    /// The status alone.
    #[default]
    Nothing,
    /// `default-errorfiles`.
    Default,
    Page(String, Vec<u8>),
    Group(String, Span),
    Body(String, Vec<u8>),
    /// `lf-string`, `lf-file`.
    Format,
}

const HTTP_ERROR_WORDS: &[&str] = &[
    "status",
    "content-type",
    "default-errorfiles",
    "errorfile",
    "errorfiles",
    "file",
    "lf-file",
    "string",
    "lf-string",
    "hdr",
];

fn http_error(
    draft: &mut ProxyDraft,
    args: &mut Args<'_>,
    context: &mut Context<'_>,
) -> Result<(), Diagnostic> {
    let (exact, base) = (args.exact_texts(), args.position());
    let texts = borrowed(&exact);
    let mut answer = HttpErrorLine::default();
    while let Some(word) = args.next() {
        http_error_word(word, &mut answer, args, context)?;
    }
    let Some((status, reason)) = answer.status else {
        let message = "http-error : expects at least a <status> as arguments";
        return Err(Diagnostic::alert("missing-argument", message).at(args.keyword_span()));
    };
    let has_body = match &answer.payload {
        Payload::Body(_, bytes) => !bytes.is_empty(),
        Payload::Format => true,
        _ => false,
    };
    if has_body && answer.content_type.is_none() {
        let message =
            "http-error : a content type must be defined when non-empty payload is configured";
        return Err(Diagnostic::alert("missing-argument", message).at(args.span()));
    }
    let is_fixed = answer
        .headers
        .iter()
        .all(|(_, format)| format.as_literal().is_some());
    match answer.payload {
        Payload::Default => {
            draft.common.error_pages.remove(status);
            except(draft, status);
        }
        Payload::Page(file, bytes) => set(draft, status, ErrorPage::Raw { file, bytes }),
        Payload::Group(group, span) => {
            context
                .declarations
                .add_reference(SectionKind::HttpErrors, &group, "http-error", span);
            draft.error_groups.push(ErrorGroupUse {
                group,
                statuses: vec![status],
                except: Vec::new(),
                span,
            });
        }
        // A status alone, or with fields: a page without a body.
        Payload::Nothing if is_fixed => {
            let file = context.file_and_line(args.keyword_span());
            let bytes = response(status, reason, None, &answer.headers, b"");
            set(draft, status, ErrorPage::Raw { file, bytes });
        }
        Payload::Body(file, body) if is_fixed => {
            let content_type = answer.content_type.as_deref();
            let bytes = response(status, reason, content_type, &answer.headers, &body);
            set(draft, status, ErrorPage::Raw { file, bytes });
        }
        Payload::Nothing | Payload::Body(..) | Payload::Format => {
            let number = error_reply(draft, args, context, (&texts, base))?;
            set(draft, status, ErrorPage::Reply(number));
        }
    }
    Ok(())
}

fn http_error_word(
    word: &str,
    answer: &mut HttpErrorLine,
    args: &mut Args<'_>,
    context: &mut Context<'_>,
) -> Result<(), Diagnostic> {
    match word {
        "status" => {
            let text = args.text("<status_code> as argument")?;
            let row = text
                .parse::<u16>()
                .ok()
                .and_then(|code| STATUSES.iter().find(|(known, _)| *known == code));
            let unexpected = || args.wrong(format!("http-error : Unexpected status code '{text}'"));
            answer.status = Some(*row.ok_or_else(unexpected)?);
        }
        "content-type" => {
            let what = "<ctype> after 'content-type'";
            answer.content_type = Some(args.text(what)?.to_owned());
        }
        "default-errorfiles" => answer.payload = Payload::Default,
        "errorfile" => {
            let path = args.word("<file> after 'errorfile'")?;
            let bytes = read_page(path.text(), path.span(), "http-error", context)?;
            answer.payload = Payload::Page(path.text().to_owned(), bytes);
        }
        "errorfiles" => {
            let name = args.word("<name> after 'errorfiles'")?;
            answer.payload = Payload::Group(name.text().to_owned(), name.span());
        }
        "file" => {
            let path = args.word("<file> after 'file'")?;
            let bytes = context.read(path.text(), "http-error", path.span())?;
            answer.payload = Payload::Body(path.text().to_owned(), bytes);
        }
        "lf-file" => {
            let path = args.word("<file> after 'lf-file'")?;
            context.read(path.text(), "http-error", path.span())?;
            answer.payload = Payload::Format;
        }
        "string" => {
            let text = args.next_word().map_or(&b""[..], Word::bytes);
            let location = context.file_and_line(args.span());
            answer.payload = Payload::Body(location, text.to_vec());
        }
        "lf-string" => {
            args.format("<fmt> after 'lf-string'", Usage::Text)?;
            answer.payload = Payload::Format;
        }
        "hdr" => {
            let name = args.text("<name> and <value> after 'hdr'")?.to_owned();
            let value = args.format("<name> and <value> after 'hdr'", Usage::Http)?;
            match name.bytes().all(is_name_byte) {
                true => answer.headers.push((name, value)),
                // A page with it could not be sent at all.
                false => {
                    let text = format!("'{name}' is not a header name: it is not sent");
                    context.warn("bad-value", text, args.span());
                }
            }
        }
        other => {
            let words: Vec<_> = HTTP_ERROR_WORDS
                .iter()
                .map(|word| format!("'{word}'"))
                .collect();
            let message = format!("http-error : expects {} (got '{other}')", words.join(", "));
            let known = HTTP_ERROR_WORDS.iter().copied();
            return Err(suggestion(args.wrong(message), other, known));
        }
    }
    Ok(())
}

/// Whether a header's name may have this byte (RFC 9110, section 5.6.2).
fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// A whole response.
fn response(
    status: u16,
    reason: &str,
    content_type: Option<&str>,
    headers: &[(String, LogFormat)],
    body: &[u8],
) -> Vec<u8> {
    let mut head = format!(
        "HTTP/1.1 {status} {reason}\r\ncontent-length: {}\r\n",
        body.len()
    );
    if let Some(content_type) = content_type {
        head.push_str(&format!("content-type: {content_type}\r\n"));
    }
    let mut bytes = bytes_of_text(&head).into_owned();
    for (name, value) in headers {
        let value = value.as_literal_bytes().unwrap_or_default();
        bytes.extend_from_slice(&[name.as_bytes(), b": ", value, b"\r\n"].concat());
    }
    bytes.extend_from_slice(b"\r\n");
    bytes.extend_from_slice(body);
    bytes
}
