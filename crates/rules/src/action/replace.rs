//! `replace-header`, `replace-value`, `replace-path`, `replace-pathq`, `replace-uri`: regular
//! expressions over parts of a message.

use ballast_expr::{ExpressionError, Linker, LogFormat, Regex, SearchLimit, Usage};
use ballast_message::{Fields, comma_values, is_target_lenient};

use super::{MessageSide, header_value};
use crate::args::Args;
use crate::perform::{Perform, boxed};
use crate::row::ActionRow;
use crate::rule_set_kind::{RuleSetFlags, RuleSetKind};
use crate::run_state::{ActionOutcome, RunState};
use crate::transaction::Workspace;

pub(crate) const ROWS: &[ActionRow] = &[
    ActionRow::new(
        "replace-header",
        RuleSetFlags::of(&[
            RuleSetKind::HttpRequest,
            RuleSetKind::HttpResponse,
            RuleSetKind::HttpAfterResponse,
        ]),
        "<name> <match-regex> <replace-fmt>",
        "replace the values of a header that match, line by line",
        |args| boxed(header(args, true)),
    )
    .examples(
        &["replace-header cookie foo=([^;]*);(.*) foo=\\1;\\2"],
        &[
            "replace-header a b",
            "replace-header a ( c",
            "replace-header a b c d",
        ],
    ),
    ActionRow::new(
        "replace-value",
        RuleSetFlags::of(&[
            RuleSetKind::HttpRequest,
            RuleSetKind::HttpResponse,
            RuleSetKind::HttpAfterResponse,
        ]),
        "<name> <match-regex> <replace-fmt>",
        "replace the members of a header's list that match",
        |args| boxed(header(args, false)),
    )
    .examples(
        &["replace-value x-forwarded-for ^192\\.168\\.(.*)$ 172.16.\\1"],
        &["replace-value a b", "replace-value a [ c"],
    ),
    ActionRow::new(
        "replace-path",
        RuleSetFlags::of(&[RuleSetKind::HttpRequest]),
        REGEX_AND_FORMAT,
        "replace the path if it matches",
        |args| boxed(uri(args, ReplacedPart::Path)),
    )
    .examples(
        &["replace-path /foo/(.*) /\\1"],
        &["replace-path a", "replace-path a b c"],
    ),
    ActionRow::new(
        "replace-pathq",
        RuleSetFlags::of(&[RuleSetKind::HttpRequest]),
        REGEX_AND_FORMAT,
        "replace path and query if they match",
        |args| boxed(uri(args, ReplacedPart::PathAndQuery)),
    )
    .examples(
        &["replace-pathq ([^?]*)(\\?(.*))? \\1/foo\\2"],
        &["replace-pathq"],
    ),
    ActionRow::new(
        "replace-uri",
        RuleSetFlags::of(&[RuleSetKind::HttpRequest]),
        REGEX_AND_FORMAT,
        "replace the whole target if it matches",
        |args| boxed(uri(args, ReplacedPart::Target)),
    )
    .examples(
        &["replace-uri ^http://(.*) https://\\1"],
        &["replace-uri ( b"],
    ),
];

const REGEX_AND_FORMAT: &str = "<match-regex> <replace-fmt>";
const EXPECTS_THREE: &str = "expects exactly 3 arguments";
const EXPECTS_TWO: &str = "expects exactly 2 arguments <match-regex> and <replace-format>";

/// A replacement.
#[derive(Clone, Debug, PartialEq)]
struct Replace {
    part: ReplacedPart,
    side: MessageSide,
    /// The header's name in lower case.
    name: Vec<u8>,
    regex: Regex,
    /// The replacement; `\1` to `\9` refer to groups after it was rendered.
    template: LogFormat,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum ReplacedPart {
    /// Whole header lines.
    Lines,
    /// Members of a header's list.
    Members,
    Path,
    PathAndQuery,
    Target,
}

fn header(args: &mut Args<'_, '_, '_>, lines: bool) -> Result<Replace, ExpressionError> {
    Ok(Replace {
        part: if lines {
            ReplacedPart::Lines
        } else {
            ReplacedPart::Members
        },
        side: MessageSide::of(args),
        name: args.text(EXPECTS_THREE)?.to_ascii_lowercase().into_bytes(),
        regex: args.regex(EXPECTS_THREE)?,
        template: args.format(Usage::Http, EXPECTS_THREE)?,
    })
}

fn uri(args: &mut Args<'_, '_, '_>, part: ReplacedPart) -> Result<Replace, ExpressionError> {
    let replace = Replace {
        part,
        side: MessageSide::Request,
        name: Vec::new(),
        regex: args.regex(EXPECTS_TWO)?,
        template: args.format(Usage::Http, EXPECTS_TWO)?,
    };
    if args.is_at_end() {
        Ok(replace)
    } else {
        Err(args.error(EXPECTS_TWO))
    }
}

impl Perform for Replace {
    fn perform(&self, run_state: &mut RunState<'_>) -> ActionOutcome {
        run_state.render(&self.template);
        let Workspace { text, out, .. } = &mut *run_state.workspace;
        match self.part {
            ReplacedPart::Lines | ReplacedPart::Members => {
                let fields = match self.side {
                    MessageSide::Request => run_state
                        .transaction
                        .request_mut()
                        .map(|one| one.fields_mut()),
                    MessageSide::Response => run_state
                        .transaction
                        .response_mut()
                        .map(|one| one.fields_mut()),
                };
                let step = match fields {
                    Some(fields) => self.in_fields(fields, text, out),
                    None => ActionOutcome::Next,
                };
                if self.name == b"host" && self.side == MessageSide::Request {
                    return super::header::after_host_change(run_state, step);
                }
                step
            }
            ReplacedPart::Path | ReplacedPart::PathAndQuery | ReplacedPart::Target => {
                let Some(request) = run_state.transaction.request_mut() else {
                    return ActionOutcome::Next;
                };
                let subject = match self.part {
                    ReplacedPart::Path => request.path(),
                    ReplacedPart::PathAndQuery => request.path_and_query(),
                    _ => request.target(),
                };
                if subject.is_empty() {
                    return ActionOutcome::Next;
                }
                out.clear();
                match self.replace(subject, text, out) {
                    None => return ActionOutcome::Next,
                    Some(Err(BadTemplate)) => return ActionOutcome::Failed,
                    Some(Ok(())) if !out.is_empty() && !is_target_lenient(out) => {
                        return ActionOutcome::Failed;
                    }
                    Some(Ok(())) => {}
                }
                match self.part {
                    ReplacedPart::Path => request.set_path(out),
                    ReplacedPart::PathAndQuery => request.set_path_and_query(out),
                    _ => request
                        .set_target(out)
                        .and_then(|()| super::uri::host_after_target(request, text)),
                }
                .into()
            }
        }
    }

    fn link(&mut self, linker: &mut Linker<'_>) -> Result<(), ExpressionError> {
        self.template.link(linker)
    }
}

impl Replace {
    /// Appends the replacement of `subject`; `None` when it does not match.
    fn replace(
        &self,
        subject: &[u8],
        template: &[u8],
        out: &mut Vec<u8>,
    ) -> Option<Result<(), BadTemplate>> {
        let groups = self.regex.groups(subject, 0)?;
        Some(expand(template, subject, &groups, out))
    }

    fn in_fields(&self, fields: &mut Fields, template: &[u8], out: &mut Vec<u8>) -> ActionOutcome {
        let _shared = SearchLimit::share();
        for at in 0..fields.len() {
            let Some(field) = fields.field(at).filter(|field| field.name == self.name) else {
                continue;
            };
            out.clear();
            let done = match self.part {
                ReplacedPart::Lines => self.replace(field.value, template, out),
                _ => self.in_list(field.value, template, out),
            };
            let value = match done {
                None => continue,
                Some(Ok(())) => header_value(out),
                Some(Err(BadTemplate)) => None,
            };
            let Some(Ok(())) = value.map(|value| fields.replace_value(at, value)) else {
                return ActionOutcome::Failed;
            };
        }
        ActionOutcome::Next
    }

    /// The same for each member of a list; the separators stay.
    fn in_list(
        &self,
        line: &[u8],
        template: &[u8],
        out: &mut Vec<u8>,
    ) -> Option<Result<(), BadTemplate>> {
        let mut changed = None;
        let mut copied = 0;
        for member in comma_values(line) {
            let start = member.as_ptr().addr() - line.as_ptr().addr();
            let end = start + member.len();
            // A replaced member includes the space around it.
            let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t');
            let lead = line[copied..start]
                .iter()
                .rev()
                .take_while(|byte| is_blank(byte))
                .count();
            let trail = line[end..].iter().take_while(|byte| is_blank(byte)).count();
            let start = start - lead;
            let before = out.len();
            out.extend_from_slice(&line[copied..start]);
            match self.replace(member, template, out) {
                None => out.truncate(before),
                Some(Ok(())) => {
                    copied = end + trail;
                    changed = Some(Ok(()));
                }
                Some(Err(BadTemplate)) => return Some(Err(BadTemplate)),
            }
        }
        out.extend_from_slice(&line[copied..]);
        changed
    }
}

/// The replacement ends within an escape, or has `\\x` without two hexadecimal digits.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct BadTemplate;

/// Appends `template` with `\0` to `\9` replaced by the groups and `\xHH` by a byte; after a
/// backslash any other byte is literal.
fn expand(
    template: &[u8],
    subject: &[u8],
    groups: &[Option<(usize, usize)>],
    out: &mut Vec<u8>,
) -> Result<(), BadTemplate> {
    let mut rest = template;
    while let Some((byte, after)) = rest.split_first() {
        if *byte != b'\\' {
            out.push(*byte);
            rest = after;
            continue;
        }
        let (escaped, after) = after.split_first().ok_or(BadTemplate)?;
        rest = after;
        match escaped {
            b'0'..=b'9' => {
                if let Some((start, end)) =
                    groups.get(usize::from(escaped - b'0')).copied().flatten()
                {
                    out.extend_from_slice(subject.get(start..end).unwrap_or_default());
                }
            }
            b'x' => {
                let digits = rest.get(..2).ok_or(BadTemplate)?;
                let digits = std::str::from_utf8(digits).map_err(|_| BadTemplate)?;
                out.push(u8::from_str_radix(digits, 16).map_err(|_| BadTemplate)?);
                rest = &rest[2..];
            }
            other => out.push(*other),
        }
    }
    Ok(())
}
