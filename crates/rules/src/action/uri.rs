//! `set-path`, `set-pathq`, `set-query`, `set-uri`, `set-method`: the request line.

use ballast_expr::{ExpressionError, Linker, LogFormat, Usage};
use ballast_message::{NoRoom, Request, is_target_lenient, is_token};

use crate::args::Args;
use crate::perform::{Perform, boxed};
use crate::row::ActionRow;
use crate::rule_set_kind::{RuleSetFlags, RuleSetKind};
use crate::run_state::{ActionOutcome, RunState};
use crate::transaction::Workspace;

pub(crate) const ROWS: &[ActionRow] = &[
    ActionRow::new(
        "set-method",
        RuleSetFlags::of(&[RuleSetKind::HttpRequest]),
        "<fmt>",
        "set the method",
        |args| boxed(parse(args, UriPart::Method)),
    )
    .examples(&["set-method GET"], &["set-method", "set-method GET POST"]),
    ActionRow::new(
        "set-path",
        RuleSetFlags::of(&[RuleSetKind::HttpRequest]),
        "<fmt>",
        "set the path, keep the query",
        |args| boxed(parse(args, UriPart::Path)),
    )
    .examples(
        &["set-path /%[hdr(host)]%[path]"],
        &["set-path", "set-path /a /b"],
    ),
    ActionRow::new(
        "set-pathq",
        RuleSetFlags::of(&[RuleSetKind::HttpRequest]),
        "<fmt>",
        "set path and query",
        |args| boxed(parse(args, UriPart::PathAndQuery)),
    )
    .examples(&["set-pathq /a?b=c"], &["set-pathq"]),
    ActionRow::new(
        "set-query",
        RuleSetFlags::of(&[RuleSetKind::HttpRequest]),
        "<fmt>",
        "set the query, without its question mark",
        |args| boxed(parse(args, UriPart::Query)),
    )
    .examples(&["set-query %[query,regsub(%3D,=,g)]"], &["set-query"]),
    ActionRow::new(
        "set-uri",
        RuleSetFlags::of(&[RuleSetKind::HttpRequest]),
        "<fmt>",
        "set the whole target",
        |args| boxed(parse(args, UriPart::Target)),
    )
    .examples(&["set-uri %[url] if TRUE"], &["set-uri", "set-uri a b"]),
];

const EXPECTS_ONE: &str = "expects exactly 1 argument <format>";

/// A part of the request line to set.
#[derive(Clone, Debug, PartialEq)]
struct Uri {
    what: UriPart,
    value: LogFormat,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum UriPart {
    Method,
    Path,
    PathAndQuery,
    Query,
    Target,
}

fn parse(args: &mut Args<'_, '_, '_>, what: UriPart) -> Result<Uri, ExpressionError> {
    let value = args.format(Usage::Http, EXPECTS_ONE)?;
    if args.is_at_end() {
        Ok(Uri { what, value })
    } else {
        Err(args.error(EXPECTS_ONE))
    }
}

impl Perform for Uri {
    fn link(&mut self, linker: &mut Linker<'_>) -> Result<(), ExpressionError> {
        self.value.link(linker)
    }

    fn perform(&self, run_state: &mut RunState<'_>) -> ActionOutcome {
        run_state.render(&self.value);
        let Workspace { text, out, .. } = &mut *run_state.workspace;
        let Some(request) = run_state.transaction.request_mut() else {
            return ActionOutcome::Next;
        };
        let sound = match self.what {
            UriPart::Method => is_token(text),
            // An empty text removes the part.
            _ => text.is_empty() || is_target_lenient(text),
        };
        if !sound {
            return ActionOutcome::Failed;
        }
        match self.what {
            UriPart::Method => request.set_method(text),
            UriPart::Path => request.set_path(text),
            UriPart::PathAndQuery => request.set_path_and_query(text),
            UriPart::Query => request.set_query(text),
            UriPart::Target => request
                .set_target(text)
                .and_then(|()| host_after_target(request, out)),
        }
        .into()
    }
}

/// Sets every `Host` to the authority of a target that has one, so that a server cannot find two
/// hosts in one request (RFC 9112 section 3.2.2). `buffer` is overwritten.
pub(super) fn host_after_target(request: &mut Request, buffer: &mut Vec<u8>) -> Result<(), NoRoom> {
    // As in HAProxy, a star names no host, whatever stands behind it.
    if request.target().first() == Some(&b'*') {
        return Ok(());
    }
    let Some(authority) = request.target_authority() else {
        return Ok(());
    };
    buffer.clear();
    buffer.extend_from_slice(authority);
    let fields = request.fields_mut();
    for at in 0..fields.len() {
        if fields.field(at).is_some_and(|field| field.name == b"host") {
            fields.replace_value(at, buffer)?;
        }
    }
    Ok(())
}

/// The reverse: sets the host of an absolute target to the one that a rule wrote last.
pub(super) fn target_after_host(request: &mut Request, buffer: &mut Vec<u8>) -> Result<(), NoRoom> {
    let (Some(scheme), Some(host)) = (request.scheme(), request.fields().last(b"host")) else {
        return Ok(());
    };
    if request.target_authority() == Some(host) {
        return Ok(());
    }
    buffer.clear();
    buffer.extend_from_slice(scheme);
    buffer.extend_from_slice(b"://");
    let start = buffer.len();
    buffer.extend_from_slice(host);
    if is_target_lenient(buffer) && !host.contains(&b'/') {
        request.set_target_authority(&buffer[start..])
    } else {
        Err(NoRoom)
    }
}
