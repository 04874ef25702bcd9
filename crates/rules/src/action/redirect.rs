//! `redirect`: a response that sends the client to another location.

use ballast_expr::{ExpressionError, Linker, LogFormat, Usage};
use ballast_message::{NoRoom, Request};

use super::{header_value, reply};
use crate::args::Args;
use crate::perform::{Perform, boxed};
use crate::row::ActionRow;
use crate::rule_set_kind::{RuleSetFlags, RuleSetKind};
use crate::run_state::{ActionOutcome, RunState};
use crate::transaction::Workspace;
use crate::verdict::{LocalResponse, ResponseCause, ResponseContent, Verdict};

pub(crate) const ROWS: &[ActionRow] = &[ActionRow::new(
    "redirect",
    RuleSetFlags::of(&[RuleSetKind::HttpRequest, RuleSetKind::HttpResponse]),
    "{ location | prefix | scheme } <to> [ code <code> ] [ drop-query ] [ keep-query ] \
     [ append-slash ] [ ignore-empty ] [ set-cookie <name[=value]> ] \
     [ set-cookie-fmt <format> ] [ clear-cookie <name[=]> ]",
    "send the client elsewhere",
    |args| boxed(parse(args)),
)
.ends_the_set()
.and_redirect()
.examples(
    &[
        "redirect scheme https code 301 if { ssl_fc 0 }",
        "redirect prefix https://www.example.com drop-query append-slash",
        "redirect location / clear-cookie USERID= if TRUE",
        "redirect code 301 location %[path,lower] ignore-empty",
        "redirect location / set-cookie-fmt from=%[src]",
    ],
    &[
        "redirect",
        "redirect location",
        "redirect code 301",
        "redirect location / code 304",
        "redirect location / now",
        "redirect location %[nothing]",
        "redirect location / set-cookie-fmt",
        "redirect location / set-cookie-fmt from=%[nothing]",
    ],
)];

/// A redirection.
#[derive(Clone, Debug, PartialEq)]
struct Redirect {
    kind: RedirectKind,
    /// The location, the prefix or the scheme.
    target: LogFormat,
    code: u16,
    drop_query: bool,
    keep_query: bool,
    append_slash: bool,
    ignore_empty: bool,
    /// The whole value of `Set-Cookie`.
    cookie: Option<LogFormat>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum RedirectKind {
    Location,
    Prefix,
    Scheme,
}

fn parse(args: &mut Args<'_, '_, '_>) -> Result<Redirect, ExpressionError> {
    let mut to = None;
    let mut redirect = Redirect {
        kind: RedirectKind::Location,
        target: LogFormat::literal("", Usage::Http),
        code: 302,
        drop_query: false,
        keep_query: false,
        append_slash: false,
        ignore_empty: false,
        cookie: None,
    };
    while !args.is_at_end() {
        let word = args.next().unwrap_or_default();
        let missing = format!("missing argument for '{word}'");
        match word {
            "location" => to = Some((RedirectKind::Location, target(args, &missing)?)),
            "prefix" => to = Some((RedirectKind::Prefix, target(args, &missing)?)),
            "scheme" => to = Some((RedirectKind::Scheme, target(args, &missing)?)),
            "set-cookie" => {
                let cookie = format!("{}; path=/;", args.text(&missing)?);
                redirect.cookie = Some(literal_cookie(args, &cookie)?);
            }
            "set-cookie-fmt" => {
                let cookie = format!("{}; path=/;", args.text(&missing)?);
                redirect.cookie = Some(args.format_of(&cookie, Usage::Http)?);
            }
            "clear-cookie" => {
                let cookie = format!("{}; path=/; Max-Age=0;", args.text(&missing)?);
                redirect.cookie = Some(literal_cookie(args, &cookie)?);
            }
            "code" => redirect.code = code(args, &missing)?,
            "drop-query" => redirect.drop_query = true,
            "keep-query" => redirect.keep_query = true,
            "append-slash" => redirect.append_slash = true,
            "ignore-empty" => redirect.ignore_empty = true,
            _ => {
                let known = [
                    "code",
                    "prefix",
                    "location",
                    "scheme",
                    "set-cookie",
                    "set-cookie-fmt",
                    "clear-cookie",
                    "drop-query",
                    "keep-query",
                    "ignore-empty",
                    "append-slash",
                ];
                return Err(args.unknown("word of a redirection", known));
            }
        }
    }
    let Some((kind, target)) = to else {
        return Err(
            args.error_before("redirection type expected ('prefix', 'location', or 'scheme')")
        );
    };
    if args.rule_set.is_response() && kind != RedirectKind::Location {
        return Err(args.error_before("response only supports redirect type 'location'"));
    }
    (redirect.kind, redirect.target) = (kind, target);
    Ok(redirect)
}

fn literal_cookie(args: &mut Args<'_, '_, '_>, cookie: &str) -> Result<LogFormat, ExpressionError> {
    if header_value(cookie.as_bytes()).is_none() {
        return Err(args.error_before("a cookie cannot hold line ends"));
    }
    Ok(LogFormat::literal(cookie, Usage::Http))
}

/// A format, or in a `redirect` line a literal text.
fn target(args: &mut Args<'_, '_, '_>, missing: &str) -> Result<LogFormat, ExpressionError> {
    if args.rule_set == RuleSetKind::Redirect {
        return Ok(LogFormat::literal(args.text(missing)?, Usage::Http));
    }
    args.format(Usage::Http, missing)
}

fn code(args: &mut Args<'_, '_, '_>, missing: &str) -> Result<u16, ExpressionError> {
    let text = args.text(missing)?;
    match text.parse() {
        Ok(code @ (301 | 302 | 303 | 307 | 308)) => Ok(code),
        _ => Err(args.error_before(format!(
            "'code': unsupported HTTP code '{text}' (must be one of 301, 302, 303, 307 or 308)"
        ))),
    }
}

impl Perform for Redirect {
    fn perform(&self, run_state: &mut RunState<'_>) -> ActionOutcome {
        run_state.render(&self.target);
        if self.ignore_empty
            && self.kind == RedirectKind::Location
            && run_state.workspace.text.is_empty()
        {
            return ActionOutcome::Next;
        }
        let cookie = self.cookie.as_ref().map(|cookie| {
            let target = std::mem::take(&mut run_state.workspace.text);
            run_state.render(cookie);
            std::mem::replace(&mut run_state.workspace.text, target)
        });
        match self.write(run_state, cookie.as_deref()) {
            Ok(()) => ActionOutcome::Stop(Verdict::Respond(LocalResponse {
                cause: ResponseCause::Redirect,
                status: self.code,
                page: ResponseContent::Made,
            })),
            Err(NoRoom) => ActionOutcome::Stop(Verdict::Respond(LocalResponse::fault())),
        }
    }

    fn link(&mut self, linker: &mut Linker<'_>) -> Result<(), ExpressionError> {
        if let Some(cookie) = &mut self.cookie {
            cookie.link(linker)?;
        }
        self.target.link(linker)
    }
}

impl Redirect {
    fn write(&self, run_state: &mut RunState<'_>, cookie: Option<&[u8]>) -> Result<(), NoRoom> {
        let Workspace { text, out, .. } = &mut *run_state.workspace;
        out.clear();
        if let Some(request) = run_state.transaction.request_mut() {
            self.locate(request, text, out);
        } else {
            out.extend_from_slice(text);
        }
        let location = header_value(out).ok_or(NoRoom)?;
        let (response, body) = run_state.transaction.answer_mut();
        body.clear();
        reply::begin(response, self.code)?;
        reply::add_length(response, 0, text)?;
        let fields = response.fields_mut();
        fields.add(b"location", location)?;
        if matches!(self.code, 302 | 303 | 307) {
            fields.add(b"cache-control", b"no-cache")?;
        }
        if let Some(cookie) = cookie {
            fields.add(b"set-cookie", header_value(cookie).ok_or(NoRoom)?)?;
        }
        Ok(())
    }

    /// Appends the location to `out`; `text` is the text of the rule.
    fn locate(&self, request: &Request, text: &[u8], out: &mut Vec<u8>) {
        match self.kind {
            RedirectKind::Location => {
                out.extend_from_slice(text);
                let query = request.query().filter(|query| !query.is_empty());
                if let (true, Some(query)) = (self.keep_query, query) {
                    out.push(if text.contains(&b'?') { b'&' } else { b'?' });
                    out.extend_from_slice(query);
                }
                return;
            }
            // A prefix of a single slash means none.
            RedirectKind::Prefix if text == b"/" => {}
            RedirectKind::Prefix => out.extend_from_slice(text),
            RedirectKind::Scheme => {
                out.extend_from_slice(text);
                out.extend_from_slice(b"://");
                out.extend_from_slice(request.host().unwrap_or_default());
            }
        }
        let path = if self.drop_query {
            request.path()
        } else {
            request.path_and_query()
        };
        match path {
            b"" | b"*" => out.push(b'/'),
            path => {
                out.extend_from_slice(path);
                if self.append_slash && !path.ends_with(b"/") {
                    out.push(b'/');
                }
            }
        }
    }
}
