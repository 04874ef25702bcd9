//! `normalize-uri`: the target in a canonical form (RFC 3986, section 6.2.2).

use ballast_expr::ExpressionError;

use crate::args::Args;
use crate::perform::{Perform, boxed};
use crate::row::ActionRow;
use crate::rule_set_kind::{RuleSetFlags, RuleSetKind};
use crate::run_state::{ActionOutcome, RunState};
use crate::transaction::Workspace;
use crate::verdict::{LocalResponse, ResponseCause, ResponseContent, Verdict};

pub(crate) const ROWS: &[ActionRow] = &[ActionRow::new(
    "normalize-uri",
    RuleSetFlags::of(&[RuleSetKind::HttpRequest]),
    "<normalizer> [ full | strict ]",
    "rewrite the target into a canonical form",
    |args| boxed(parse(args)),
)
.examples(
    &["normalize-uri path-merge-slashes"],
    &["normalize-uri", "normalize-uri path-merge"],
)];

/// A normalizer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Normalizer {
    FragmentEncode,
    FragmentStrip,
    PathMergeSlashes,
    PathStripDot,
    /// `full` removes those at the beginning, too.
    PathStripDotdot {
        full: bool,
    },
    PercentDecodeUnreserved {
        strict: bool,
    },
    PercentToUppercase {
        strict: bool,
    },
    QuerySortByName,
}

fn parse(args: &mut Args<'_, '_, '_>) -> Result<Normalizer, ExpressionError> {
    if !args.env.experimental {
        return Err(ExpressionError::new(
            "'normalize-uri' action is experimental, must be allowed via a global \
             'expose-experimental-directives'",
            0..args.head().len(),
        ));
    }
    let word = args.text("missing argument <normalizer>")?;
    Ok(match word {
        "fragment-encode" => Normalizer::FragmentEncode,
        "fragment-strip" => Normalizer::FragmentStrip,
        "path-merge-slashes" => Normalizer::PathMergeSlashes,
        "path-strip-dot" => Normalizer::PathStripDot,
        "path-strip-dotdot" => Normalizer::PathStripDotdot {
            full: args.take("full"),
        },
        "percent-decode-unreserved" => Normalizer::PercentDecodeUnreserved {
            strict: args.take("strict"),
        },
        "percent-to-uppercase" => Normalizer::PercentToUppercase {
            strict: args.take("strict"),
        },
        "query-sort-by-name" => Normalizer::QuerySortByName,
        _ => {
            const KNOWN: [&str; 8] = [
                "fragment-encode",
                "fragment-strip",
                "path-merge-slashes",
                "path-strip-dot",
                "path-strip-dotdot",
                "percent-decode-unreserved",
                "percent-to-uppercase",
                "query-sort-by-name",
            ];
            return Err(args.unknown("normalizer", KNOWN));
        }
    })
}

/// An escape that is none, under `strict`.
#[derive(Debug, PartialEq)]
struct InvalidEscape;

impl Perform for Normalizer {
    fn perform(&self, run_state: &mut RunState<'_>) -> ActionOutcome {
        let Workspace { out, .. } = &mut *run_state.workspace;
        let Some(request) = run_state.transaction.request_mut() else {
            return ActionOutcome::Next;
        };
        let target = request.path_and_query();
        // `*`, and the authority of a CONNECT.
        if !target.starts_with(b"/") {
            return ActionOutcome::Next;
        }
        out.clear();
        match self.normalize(target, out) {
            Err(InvalidEscape) => ActionOutcome::Stop(Verdict::Respond(LocalResponse {
                cause: ResponseCause::Malformed,
                status: 400,
                page: ResponseContent::Proxy,
            })),
            Ok(()) if out == target => ActionOutcome::Next,
            Ok(()) => request.set_path_and_query(out).into(),
        }
    }
}

impl Normalizer {
    /// Appends the normal form of a path with its query to `out`.
    fn normalize(self, target: &[u8], out: &mut Vec<u8>) -> Result<(), InvalidEscape> {
        let query_at = target.iter().position(|byte| *byte == b'?');
        let (path, query) = target.split_at(query_at.unwrap_or(target.len()));
        match self {
            Self::FragmentEncode => {
                for byte in target {
                    match byte {
                        b'#' => out.extend_from_slice(b"%23"),
                        byte => out.push(*byte),
                    }
                }
            }
            Self::FragmentStrip => {
                let end = target.iter().position(|byte| *byte == b'#');
                out.extend_from_slice(&target[..end.unwrap_or(target.len())]);
            }
            Self::PathMergeSlashes => {
                for byte in path {
                    if *byte != b'/' || out.last() != Some(&b'/') {
                        out.push(*byte);
                    }
                }
                out.extend_from_slice(query);
            }
            Self::PathStripDot => {
                strip_dot(path, out);
                out.extend_from_slice(query);
            }
            Self::PathStripDotdot { full } => {
                strip_dotdot(path, full, out);
                out.extend_from_slice(query);
            }
            Self::PercentDecodeUnreserved { strict } => {
                escapes(target, strict, out, |byte, digits, out| {
                    if is_unreserved(byte) {
                        out.push(byte);
                    } else {
                        out.push(b'%');
                        out.extend_from_slice(&digits);
                    }
                })?;
            }
            Self::PercentToUppercase { strict } => {
                escapes(target, strict, out, |_, digits, out| {
                    out.push(b'%');
                    out.extend_from_slice(&digits.map(|digit| digit.to_ascii_uppercase()));
                })?;
            }
            Self::QuerySortByName => {
                out.extend_from_slice(path);
                sort(query, out);
            }
        }
        Ok(())
    }
}

/// The segments of a path behind its first slash.
fn segments(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    path[1..].split(|byte| *byte == b'/')
}

/// Removes the segments `.`.
fn strip_dot(path: &[u8], out: &mut Vec<u8>) {
    let mut ends_in_dot = false;
    for segment in segments(path) {
        ends_in_dot = segment == b".";
        if !ends_in_dot {
            out.push(b'/');
            out.extend_from_slice(segment);
        }
    }
    if ends_in_dot {
        out.push(b'/');
    }
}

/// Removes each segment `..` with the one before it.
fn strip_dotdot(path: &[u8], full: bool, out: &mut Vec<u8>) {
    // Where the segments begin that a `..` can remove.
    let mut floor = out.len();
    let mut ends_in_dots = false;
    for segment in segments(path) {
        ends_in_dots = segment == b"..";
        if !ends_in_dots {
            out.push(b'/');
            out.extend_from_slice(segment);
        } else if out.len() > floor {
            let slash = out.iter().rposition(|byte| *byte == b'/');
            out.truncate(slash.unwrap_or(floor).max(floor));
        } else if !full {
            out.extend_from_slice(b"/..");
            floor = out.len();
        }
    }
    if ends_in_dots {
        out.push(b'/');
    }
}

/// Copies `text`, and lets `escape` write each escape: it gets the byte, its digits and `out`.
fn escapes(
    text: &[u8],
    strict: bool,
    out: &mut Vec<u8>,
    escape: impl Fn(u8, [u8; 2], &mut Vec<u8>),
) -> Result<(), InvalidEscape> {
    let mut rest = text;
    while let Some((byte, after)) = rest.split_first() {
        rest = after;
        if *byte != b'%' {
            out.push(*byte);
            continue;
        }
        let digits = after.first_chunk::<2>().copied();
        let value = digits.and_then(|[high, low]| Some((hex(high)? << 4) | hex(low)?));
        match (value, digits) {
            (Some(value), Some(digits)) => {
                escape(value, digits, out);
                rest = &after[2..];
            }
            _ if strict => return Err(InvalidEscape),
            _ => out.push(b'%'),
        }
    }
    Ok(())
}

fn hex(digit: u8) -> Option<u8> {
    let value = char::from(digit).to_digit(16)?;
    u8::try_from(value).ok()
}

/// RFC 3986, section 2.3.
fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}

/// Appends a query, with its question mark, and its parameters in the order of their names. Those of
/// one name stay in their order; a separator at the end goes.
fn sort(query: &[u8], out: &mut Vec<u8>) {
    let Some((mark, parameters)) = query.split_first() else {
        return;
    };
    out.push(*mark);
    let parameters = parameters.strip_suffix(b"&").unwrap_or(parameters);
    let mut sorted: Vec<&[u8]> = parameters.split(|byte| *byte == b'&').collect();
    sorted.sort_by_key(|parameter| {
        let name = parameter.split(|byte| *byte == b'=').next();
        name.unwrap_or_default()
    });
    for (at, parameter) in sorted.iter().enumerate() {
        if at > 0 {
            out.push(b'&');
        }
        out.extend_from_slice(parameter);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn normal(normalizer: Normalizer, target: &str) -> String {
        let mut out = Vec::new();
        match normalizer.normalize(target.as_bytes(), &mut out) {
            Ok(()) => String::from_utf8(out).unwrap(),
            Err(InvalidEscape) => "400".into(),
        }
    }

    #[test]
    fn the_examples_of_the_manual_hold() {
        use Normalizer as N;
        let (some, full) = (
            N::PathStripDotdot { full: false },
            N::PathStripDotdot { full: true },
        );
        let decode = |strict| N::PercentDecodeUnreserved { strict };
        let upper = |strict| N::PercentToUppercase { strict };
        let rows = [
            (N::FragmentEncode, "/#foo", "/%23foo"),
            (N::FragmentStrip, "/#foo", "/"),
            (N::PathStripDot, "/.", "/"),
            (N::PathStripDot, "/./bar/", "/bar/"),
            (N::PathStripDot, "/a/./a?./", "/a/a?./"),
            (N::PathStripDot, "/.well-known/", "/.well-known/"),
            (some, "/foo/../", "/"),
            (some, "/foo/../bar/", "/bar/"),
            (some, "/foo/bar/../", "/foo/"),
            (some, "/../bar/", "/../bar/"),
            (some, "/bar/../../", "/../"),
            (some, "/..", "/../"),
            (some, "/foo//../", "/foo/"),
            (some, "/foo/%2E%2E/", "/foo/%2E%2E/"),
            (full, "/../bar/", "/bar/"),
            (full, "/bar/../../", "/"),
            (N::PathMergeSlashes, "//", "/"),
            (N::PathMergeSlashes, "/foo//bar?//", "/foo/bar?//"),
            (decode(false), "/%61dmin", "/admin"),
            (decode(false), "/foo%3Fbar=baz", "/foo%3Fbar=baz"),
            (decode(false), "/%%36%36", "/%66"),
            (decode(false), "/%ZZ", "/%ZZ"),
            (decode(true), "/%%36%36", "400"),
            (decode(true), "/%Z", "400"),
            (upper(false), "/%6f", "/%6F"),
            (upper(false), "/%zz", "/%zz"),
            (upper(true), "/%zz", "400"),
            (N::QuerySortByName, "/?c=3&a=1&b=2", "/?a=1&b=2&c=3"),
            (N::QuerySortByName, "/?aaa=3&a=1&aa=2", "/?a=1&aa=2&aaa=3"),
            (
                N::QuerySortByName,
                "/?a=3&b=4&a=1&b=5&a=2",
                "/?a=3&a=1&a=2&b=4&b=5",
            ),
        ];
        for (normalizer, target, expected) in rows {
            assert_eq!(normal(normalizer, target), expected, "{normalizer:?}");
        }
    }
}
