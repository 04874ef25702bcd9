//! Limits of a head.

/// The maximum size of one head (or one trailer section).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct HeadLimits {
    /// HAProxy's `tune.http.maxhdr`, 101 by default. One entry is reserved for the end mark, so
    /// that 100 fields are accepted and 101 are refused. It applies to reception only: what rules
    /// add is limited by `head_bytes_max`.
    pub field_count_max: u32,
    /// Size of the head when written (HAProxy `tune.bufsize`, 16384 by default). The arena itself
    /// may hold up to twice as much, with replaced values in it.
    pub head_bytes_max: u32,
}

impl Default for HeadLimits {
    fn default() -> Self {
        HeadLimits {
            field_count_max: 101,
            head_bytes_max: 16_384,
        }
    }
}
