//! The request target and its parts (RFC 9112 section 3.2).

use std::ops::Range;

use crate::words::position_of;

/// The four forms of a request target.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum TargetForm {
    /// `http://host/path`: sent to proxies, and the equivalent of HTTP/2's pseudo-fields.
    Absolute,
    /// `*`, of OPTIONS.
    Asterisk,
    /// `host:port`, of CONNECT.
    Authority,
    /// `/path?query`.
    #[default]
    Origin,
}

/// What stands between a scheme and an authority.
pub(crate) const SCHEME_END: &[u8] = b"://";

/// A target as HTTP/2 has it: see [`Request::set_received_line`](crate::Request::set_received_line).
#[derive(Clone, Copy, Debug)]
pub enum ReceivedTarget<'a> {
    /// In one piece.
    Whole(&'a [u8]),
    /// An absolute target.
    Absolute {
        /// RFC 3986 section 3.1: a letter first.
        scheme: &'a [u8],
        /// A host and a port as in [`is_host`](crate::is_host): no user.
        authority: &'a [u8],
        /// Path and query, which begin with a slash, or nothing.
        path: &'a [u8],
    },
}

/// The positions of the parts of a target, relative to its first byte.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct TargetShape {
    pub(crate) form: TargetForm,
    /// Length of the scheme; 0 when there is none.
    scheme_len: u32,
    authority_start: u32,
    authority_end: u32,
    path_start: u32,
    /// Position of the `?`; the end of the target when there is none.
    query_mark: u32,
    end: u32,
}

impl TargetShape {
    /// Splits a target. Never fails: a target with no scheme and no leading slash is treated as an
    /// authority, and the checks reject it if necessary.
    pub(crate) fn of(target: &[u8]) -> TargetShape {
        let end = target.len();
        let (form, scheme_len, authority) = match target.first() {
            Some(b'/') | None => (TargetForm::Origin, 0, 0..0),
            Some(b'*') if end == 1 => (TargetForm::Asterisk, 0, 0..0),
            Some(_) => match scheme_len(target) {
                Some(scheme) => {
                    let start = scheme + 3;
                    let stop = memchr::memchr3(b'/', b'?', b'#', &target[start..])
                        .map_or(end, |at| start + at);
                    (TargetForm::Absolute, scheme, start..stop)
                }
                None => (TargetForm::Authority, 0, 0..end),
            },
        };
        let path_start = match form {
            TargetForm::Asterisk => end,
            TargetForm::Absolute | TargetForm::Authority | TargetForm::Origin => authority.end,
        };
        let query_mark = position_of(&target[path_start..], b'?').map_or(end, |at| path_start + at);
        let small = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        TargetShape {
            form,
            scheme_len: small(scheme_len),
            authority_start: small(authority.start),
            authority_end: small(authority.end),
            path_start: small(path_start),
            query_mark: small(query_mark),
            end: small(end),
        }
    }

    /// The shape of an absolute target that was composed of these parts: a scheme, an authority that has
    /// no byte of [`is_host`](crate::is_host)'s exceptions, and a path with its query, or none.
    pub(crate) fn composed(scheme: &[u8], authority: &[u8], path: &[u8]) -> TargetShape {
        let small = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        let authority_start = scheme.len() + SCHEME_END.len();
        let path_start = authority_start + authority.len();
        let end = path_start + path.len();
        TargetShape {
            form: TargetForm::Absolute,
            scheme_len: small(scheme.len()),
            authority_start: small(authority_start),
            authority_end: small(path_start),
            path_start: small(path_start),
            query_mark: small(position_of(path, b'?').map_or(end, |at| path_start + at)),
            end: small(end),
        }
    }

    pub(crate) fn scheme(&self) -> Option<Range<usize>> {
        (self.scheme_len > 0).then_some(0..self.scheme_len as usize)
    }

    pub(crate) fn authority(&self) -> Option<Range<usize>> {
        matches!(self.form, TargetForm::Absolute | TargetForm::Authority)
            .then_some(self.authority_start as usize..self.authority_end as usize)
    }

    pub(crate) fn path(&self) -> Range<usize> {
        self.path_start as usize..self.query_mark as usize
    }

    pub(crate) fn path_and_query(&self) -> Range<usize> {
        self.path_start as usize..self.end as usize
    }

    pub(crate) fn query(&self) -> Option<Range<usize>> {
        (self.query_mark < self.end).then_some(self.query_mark as usize + 1..self.end as usize)
    }
}

/// The host and port of a URL that a field holds (`Origin`, `Referer`), without a user. Words without a
/// scheme begin with their host, as in HAProxy. `None` for a path, `*` and nothing.
pub fn url_host(url: &[u8]) -> Option<&[u8]> {
    if matches!(url.first(), None | Some(b'*' | b'/')) {
        return None;
    }
    let rest = match scheme_len(url) {
        Some(len) => &url[len + SCHEME_END.len()..],
        None => url,
    };
    let end = memchr::memchr3(b'/', b'?', b'#', rest).unwrap_or(rest.len());
    let authority = &rest[..end];
    let user_end = memchr::memrchr(b'@', authority).map_or(0, |at| at + 1);
    Some(&authority[user_end..])
}

/// Length of the scheme of an absolute target: RFC 3986 section 3.1, followed by `://`.
fn scheme_len(target: &[u8]) -> Option<usize> {
    let len = target
        .iter()
        .position(|b| !(b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.')))?;
    (target[0].is_ascii_alphabetic() && target[len..].starts_with(SCHEME_END)).then_some(len)
}

#[cfg(test)]
mod tests {
    use super::url_host;

    #[test]
    fn a_url_names_its_host() {
        for (url, host) in [
            ("http://h", Some("h")),
            ("https://h:8080/p?q", Some("h:8080")),
            ("a.b+c-1://h#x", Some("h")),
            ("http://[::1]:80/", Some("[::1]:80")),
            ("http://h?x@y", Some("h")),
            ("http://h/x@y", Some("h")),
            ("http://y?@h/", Some("y")),
            ("http://h@y/", Some("y")),
            ("http://a@b@h", Some("h")),
            ("h:80", Some("h:80")),
            ("u@h/p", Some("h")),
            ("null", Some("null")),
            ("http://h http://y", Some("h http:")),
            ("http:///h", Some("")),
            ("http:/h", Some("http:")),
            ("1://h", Some("1:")),
            ("", None),
            ("/h", None),
            ("//h", None),
            ("*", None),
        ] {
            assert_eq!(url_host(url.as_bytes()), host.map(str::as_bytes), "{url}");
        }
    }
}
