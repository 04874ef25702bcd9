//! What a peer broke the protocol with.

/// What a peer sent that broke the protocol, as far as it is still there.
#[derive(Clone, Copy, Debug)]
pub struct Offence<'a> {
    /// The bytes as they came.
    pub bytes: &'a [u8],
    /// Where in them the fault was found.
    pub at_byte: usize,
}
