//! Limits and options of the parser.

/// Limits and options for one side of a connection. The number of fields is limited by the
/// [`ballast_message::HeadLimits`] of the head that is filled.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct H1Limits {
    /// A whole head, including empty lines before it: HAProxy's `tune.bufsize` less
    /// `tune.maxrewrite`, 15360 by default.
    pub head_bytes_max: usize,
    /// A chunk-size line with its extensions.
    pub chunk_line_bytes_max: usize,
    /// All chunk extensions of one body together.
    pub chunk_extension_bytes_max: usize,
    /// A whole trailer section.
    pub trailer_bytes_max: usize,
    /// `option accept-invalid-http-request` or `-response` (in 3.x
    /// `accept-unsafe-violations-in-http-*`): names, targets and hosts are checked loosely, LF
    /// alone ends a line, folded lines are unfolded. The body length is always checked strictly.
    pub lenient: bool,
    /// `h1-accept-payload-with-any-method`: lets GET, HEAD and DELETE of HTTP/1.0 have a body.
    pub payload_with_any_method: bool,
}

impl Default for H1Limits {
    fn default() -> Self {
        H1Limits {
            head_bytes_max: 16_384 - 1_024,
            chunk_line_bytes_max: 4_096,
            chunk_extension_bytes_max: 16_384,
            trailer_bytes_max: 8_192,
            lenient: false,
            payload_with_any_method: false,
        }
    }
}
