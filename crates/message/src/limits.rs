//! The bounds of a head.

/// How large one head (or one trailer section) may grow.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct HeadLimits {
    /// HAProxy's `tune.http.maxhdr`, 101 by default. One place of it is kept for the end mark,
    /// so that 100 fields are received and 101 are refused. Only reception is bounded by it:
    /// what rules add is bounded by `head_bytes_max`.
    pub field_count_max: u32,
    /// Bytes the head may take once written (HAProxy `tune.bufsize`, 16384 by default).
    /// The arena itself may hold up to twice as much, with replaced values in it.
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
