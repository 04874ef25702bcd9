//! What was received of the body of a message.

/// What was received of a body, decoded and not forwarded yet.
#[derive(Clone, Copy, Debug, Default)]
pub struct BodyFacts<'f> {
    /// Its first bytes: at most as many as fit a buffer.
    pub bytes: &'f [u8],
    /// The length that its head announces.
    pub announced_bytes: Option<u64>,
    /// Nothing more will be added to [`Self::bytes`]: the body is whole, its sender has ended, or
    /// nothing more fits.
    pub is_final: bool,
}
