//! The methods that affect framing and retries.

/// A request method; those that this program does not treat specially are all `Other`. RFC 9110
/// section 9.3; names are case-sensitive.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum Method {
    /// CONNECT: asks for a tunnel.
    Connect,
    /// DELETE.
    Delete,
    /// GET.
    #[default]
    Get,
    /// HEAD: the response has no body.
    Head,
    /// OPTIONS.
    Options,
    /// PATCH.
    Patch,
    /// POST.
    Post,
    /// PUT.
    Put,
    /// TRACE.
    Trace,
    /// Any other token.
    Other,
}

impl Method {
    /// Classifies the token of a request line.
    pub fn from_token(token: &[u8]) -> Method {
        match token {
            b"GET" => Method::Get,
            b"POST" => Method::Post,
            b"HEAD" => Method::Head,
            b"PUT" => Method::Put,
            b"DELETE" => Method::Delete,
            b"OPTIONS" => Method::Options,
            b"CONNECT" => Method::Connect,
            b"PATCH" => Method::Patch,
            b"TRACE" => Method::Trace,
            _ => Method::Other,
        }
    }

    /// Its token; `None` for [`Method::Other`].
    pub fn token(self) -> Option<&'static [u8]> {
        Some(match self {
            Method::Connect => b"CONNECT",
            Method::Delete => b"DELETE",
            Method::Get => b"GET",
            Method::Head => b"HEAD",
            Method::Options => b"OPTIONS",
            Method::Patch => b"PATCH",
            Method::Post => b"POST",
            Method::Put => b"PUT",
            Method::Trace => b"TRACE",
            Method::Other => return None,
        })
    }

    /// Whether repeating the request does no harm (RFC 9110 section 9.2.2). An unknown method is
    /// not considered idempotent.
    pub fn is_idempotent(self) -> bool {
        self.is_safe() || matches!(self, Method::Put | Method::Delete)
    }

    /// Whether the request is meant to change nothing (RFC 9110 section 9.2.1).
    pub fn is_safe(self) -> bool {
        matches!(
            self,
            Method::Get | Method::Head | Method::Options | Method::Trace
        )
    }
}

/// Whether a method is `PRI`, in any case: only the preface of HTTP/2 has it (RFC 9113 section 3.4). A
/// server that is sent such a request may go on in HTTP/2.
pub fn is_preface_method(token: &[u8]) -> bool {
    token.eq_ignore_ascii_case(b"PRI")
}
