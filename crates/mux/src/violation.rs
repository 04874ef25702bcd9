//! Messages that break the protocol.

/// The bytes of a peer that broke the protocol, as far as they are still in the buffer.
#[derive(Clone, Copy, Debug)]
pub struct ProtocolViolation<'a> {
    /// The bytes as they were received.
    pub bytes: &'a [u8],
    /// Where in them the fault was found.
    pub at_byte: usize,
}
