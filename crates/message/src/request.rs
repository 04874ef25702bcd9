//! Request heads.

use std::ops::Range;

use crate::check::HeadText;
use crate::fields::{Fields, NoRoom, Segment};
use crate::limits::HeadLimits;
use crate::method::Method;
use crate::target::{ReceivedTarget, SCHEME_END, TargetForm, TargetShape};
use crate::version::Version;

/// The indexes of the parts of the start line.
const METHOD: usize = 0;
const TARGET: usize = 1;

/// A request's head. Create one per connection, and [`Request::clear`] it for each request.
#[derive(Clone, Debug, Default)]
pub struct Request {
    fields: Fields,
    method: Method,
    shape: TargetShape,
    version: Version,
    /// See [`Request::wire_target`].
    is_composed: bool,
}

impl Request {
    /// An empty head with these limits; nothing is allocated yet.
    pub fn new(limits: HeadLimits) -> Request {
        Request {
            fields: Fields::new(limits),
            ..Request::default()
        }
    }

    /// Removes everything and keeps the memory.
    pub fn clear(&mut self) {
        self.fields.clear();
        self.method = Method::default();
        self.shape = TargetShape::default();
        self.version = Version::default();
        self.is_composed = false;
    }

    /// Removes everything and frees the memory, for a connection that becomes idle.
    pub fn release(&mut self) {
        *self = Request::new(self.fields.limits());
    }

    /// Makes this equal to `other`, in its present memory.
    pub fn copy_from(&mut self, other: &Request) {
        self.fields.copy_from(&other.fields);
        self.method = other.method;
        self.shape = other.shape;
        self.version = other.version;
        self.is_composed = other.is_composed;
    }

    // === reading ===

    /// The method, classified.
    pub fn method(&self) -> Method {
        self.method
    }

    /// The method as received: sample `method`.
    pub fn method_token(&self) -> &[u8] {
        self.fields.line_piece(METHOD)
    }

    /// The version of the request as received.
    pub fn version(&self) -> Version {
        self.version
    }

    /// The target as received or rewritten: sample `url`.
    pub fn target(&self) -> &[u8] {
        self.fields.line_piece(TARGET)
    }

    /// The target as it goes out over HTTP/1. One that was composed of HTTP/2's pseudo-fields is
    /// absolute for rules and logs, and is sent as a path, as in HAProxy.
    pub fn wire_target(&self) -> &[u8] {
        if self.is_composed && self.shape.form == TargetForm::Absolute {
            return match self.path_and_query() {
                b"" if self.method == Method::Options => b"*",
                b"" => b"/",
                path => path,
            };
        }
        self.target()
    }

    /// The form of the target.
    pub fn form(&self) -> TargetForm {
        self.shape.form
    }

    /// The scheme of an absolute target.
    pub fn scheme(&self) -> Option<&[u8]> {
        self.shape.scheme().map(|at| &self.target()[at])
    }

    /// The authority within the target, with user information and port as received.
    pub fn target_authority(&self) -> Option<&[u8]> {
        self.shape.authority().map(|at| &self.target()[at])
    }

    /// The host the request is for: the target's authority, else the first `Host` field.
    pub fn authority(&self) -> Option<&[u8]> {
        self.target_authority().or_else(|| self.host())
    }

    /// The first `Host` field: usually the sample `hdr(host)`.
    pub fn host(&self) -> Option<&[u8]> {
        self.fields.first(b"host")
    }

    /// The path without the query: sample `path`. Empty when the target has none (`*`, `host:port`,
    /// `http://host`); then the sample has no value.
    pub fn path(&self) -> &[u8] {
        &self.target()[self.shape.path()]
    }

    /// The text after the first `?`: sample `query`. `None` when there is no `?`.
    pub fn query(&self) -> Option<&[u8]> {
        self.shape.query().map(|at| &self.target()[at])
    }

    /// Path and query with its `?`: sample `pathq`.
    pub fn path_and_query(&self) -> &[u8] {
        &self.target()[self.shape.path_and_query()]
    }

    /// Appends the first `Host` value and the path: sample `base`.
    pub fn append_base(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.host().unwrap_or_default());
        out.extend_from_slice(self.path());
    }

    /// The fields in order.
    pub fn fields(&self) -> &Fields {
        &self.fields
    }

    // === changing ===

    /// The fields, mutable.
    pub fn fields_mut(&mut self) -> &mut Fields {
        &mut self.fields
    }

    /// Sets the version.
    pub fn set_version(&mut self, version: Version) {
        self.version = version;
    }

    /// Sets the method: `set-method`.
    pub fn set_method(&mut self, token: &[u8]) -> Result<(), NoRoom> {
        self.fields
            .set_line(METHOD, &[Segment::new(HeadText::Token, token)])?;
        self.method = Method::from_token(token);
        Ok(())
    }

    /// Sets the whole target: `set-uri`.
    pub fn set_target(&mut self, target: &[u8]) -> Result<(), NoRoom> {
        self.is_composed = false;
        self.reshape(&[Segment::new(HeadText::Token, target)])
    }

    /// Sets the authority of an absolute target, and keeps the rest.
    pub fn set_target_authority(&mut self, authority: &[u8]) -> Result<(), NoRoom> {
        let Some(old) = self.shape.authority() else {
            return Ok(());
        };
        let end = self.target().len();
        self.reshape(&[
            Segment::Kept(0..old.start),
            Segment::new(HeadText::Token, authority),
            Segment::Kept(old.end..end),
        ])
    }

    /// Sets the path and keeps scheme, authority and query: `set-path`. Behind an authority it begins
    /// with its first slash or question mark: what stands before would become part of the authority.
    /// A target that has neither path nor query (`*`, `host:port`, `http://host`) is replaced.
    pub fn set_path(&mut self, path: &[u8]) -> Result<(), NoRoom> {
        if self.path_and_query().is_empty() {
            return self.replace_target(path);
        }
        let path = self.behind_authority(path);
        let old = self.shape.path();
        let end = self.target().len();
        self.reshape(&[
            Segment::Kept(0..old.start),
            Segment::new(HeadText::Token, path),
            Segment::Kept(old.end..end),
        ])
    }

    /// Sets path and query and keeps scheme and authority: `set-pathq`. As [`Request::set_path`]
    /// when there is neither.
    pub fn set_path_and_query(&mut self, path_and_query: &[u8]) -> Result<(), NoRoom> {
        if self.path_and_query().is_empty() {
            return self.replace_target(path_and_query);
        }
        let path_and_query = self.behind_authority(path_and_query);
        let start = self.shape.path_and_query().start;
        self.reshape(&[
            Segment::Kept(0..start),
            Segment::new(HeadText::Token, path_and_query),
        ])
    }

    /// Sets a target in place of one that has neither path nor query. One of HTTP/2 is not replaced by
    /// nothing: as in HAProxy it goes out as it came.
    fn replace_target(&mut self, target: &[u8]) -> Result<(), NoRoom> {
        match self.is_composed && target.is_empty() {
            true => Ok(()),
            false => self.set_target(target),
        }
    }

    /// Sets the text after the `?` (given without it): `set-query`. An empty query removes the `?`.
    pub fn set_query(&mut self, query: &[u8]) -> Result<(), NoRoom> {
        let path_end = self.shape.path().end;
        let mark: &[u8] = if query.is_empty() { b"" } else { b"?" };
        self.reshape(&[
            Segment::Kept(0..path_end),
            Segment::new(HeadText::Token, mark),
            Segment::new(HeadText::Token, query),
        ])
    }

    /// The part of a path that may stand directly behind the authority, if the target has one.
    fn behind_authority<'p>(&self, path: &'p [u8]) -> &'p [u8] {
        if self.shape.form != TargetForm::Absolute {
            return path;
        }
        let begins = |byte: &u8| matches!(byte, b'/' | b'?');
        let start = path.iter().position(begins).unwrap_or(path.len());
        &path[start..]
    }

    fn reshape(&mut self, parts: &[Segment<'_>]) -> Result<(), NoRoom> {
        self.fields.set_line(TARGET, parts)?;
        self.shape = TargetShape::of(self.fields.line_piece(TARGET));
        Ok(())
    }

    // === for codecs ===

    /// Sets the line of a request that came without one, as pseudo-fields of HTTP/2. `is_composed` says
    /// that an absolute target is sent as a path over HTTP/1: see [`Request::wire_target`]. Call it
    /// before the fields are appended.
    ///
    /// # Errors
    /// [`NoRoom`].
    pub fn set_received_line(
        &mut self,
        method: &[u8],
        target: ReceivedTarget<'_>,
        is_composed: bool,
    ) -> Result<(), NoRoom> {
        let parts: [&[u8]; 4] = match target {
            ReceivedTarget::Whole(whole) => [whole, b"", b"", b""],
            ReceivedTarget::Absolute {
                scheme,
                authority,
                path,
            } => [scheme, SCHEME_END, authority, path],
        };
        if self.fields.set_clean_line(method, parts)? {
            self.method = Method::from_token(method);
            self.shape = match target {
                ReceivedTarget::Whole(whole) => TargetShape::of(whole),
                ReceivedTarget::Absolute {
                    scheme,
                    authority,
                    path,
                } => TargetShape::composed(scheme, authority, path),
            };
            debug_assert_eq!(self.shape, TargetShape::of(self.target()), "parts as said");
        } else {
            self.set_method(method)?;
            self.reshape(&parts.map(|part| Segment::new(HeadText::Token, part)))?;
        }
        self.is_composed = is_composed;
        Ok(())
    }

    /// Ends the reception of a head: copies its bytes; `method` and `target` are their ranges. The
    /// fields were pushed before with [`Fields::push_received`].
    pub fn finish_received(
        &mut self,
        head: &[u8],
        method: Range<usize>,
        target: Range<usize>,
        version: Version,
        folded: bool,
    ) {
        self.fields.finish_received(head, folded);
        self.fields.set_line_received(METHOD, method);
        self.fields.set_line_received(TARGET, target);
        self.method = Method::from_token(self.fields.line_piece(METHOD));
        self.shape = TargetShape::of(self.fields.line_piece(TARGET));
        self.version = version;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_target(target: &[u8]) -> Request {
        let mut request = Request::default();
        request.set_target(target).unwrap();
        request
    }

    #[test]
    fn nothing_of_a_path_becomes_part_of_the_authority_before_it() {
        for (path, target) in [
            (&b""[..], &b"http://h?f"[..]),
            (b"abc", b"http://h?f"),
            (b"abc/d", b"http://h/d?f"),
            (b"http://o/q", b"http://h//o/q?f"),
            (b"@evil?", b"http://h??f"),
        ] {
            let mut changed = of_target(b"http://h/z?f");
            changed.set_path(path).unwrap();
            assert_eq!(changed.target(), target);
            assert_eq!(changed.target_authority(), Some(&b"h"[..]));
        }
        let mut changed = of_target(b"http://h/z?f");
        changed.set_path_and_query(b"o@i").unwrap();
        assert_eq!(changed.target(), b"http://h");
        // Without an authority there is nothing to protect.
        let mut changed = of_target(b"/z?f");
        changed.set_path(b"").unwrap();
        assert_eq!(changed.target(), b"?f");
    }

    #[test]
    fn a_composed_target_without_path_and_query_is_a_slash_or_an_asterisk() {
        let mut request = Request::default();
        let target = ReceivedTarget::Absolute {
            scheme: b"https",
            authority: b"a.b",
            path: b"/p?q",
        };
        request.set_received_line(b"GET", target, true).unwrap();
        request.set_path(b"").unwrap();
        assert_eq!(request.wire_target(), b"?q");
        request.set_path_and_query(b"").unwrap();
        assert_eq!(request.wire_target(), b"/");
        request.set_method(b"OPTIONS").unwrap();
        assert_eq!(request.wire_target(), b"*");
    }
}
