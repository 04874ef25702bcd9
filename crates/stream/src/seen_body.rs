//! What samples see of a body.

use ballast_expr::BodyFacts;
use ballast_message::BodyLength;
use ballast_mux::Source;

/// What was received of a body, decoded: a copy, made where a rule asks for it, of at most what a
/// buffer holds.
#[derive(Debug, Default)]
pub(crate) struct SeenBody {
    bytes: Vec<u8>,
    announced_bytes: Option<u64>,
    is_final: bool,
}

impl SeenBody {
    /// Takes over what has arrived of a body since the last look.
    pub(crate) fn update(&mut self, source: &mut Source<'_>, length: BodyLength) {
        self.is_final = source.copy_ahead(&mut self.bytes);
        self.announced_bytes = match length {
            BodyLength::Known(bytes) => Some(bytes),
            _ => None,
        };
    }

    /// Notes that nothing more of it will be looked at.
    pub(crate) fn end(&mut self) {
        self.is_final = true;
    }

    /// Whether more of it may still be seen.
    pub(crate) fn may_grow(&self) -> bool {
        !self.is_final
    }

    /// Forgets it, for the next body. The memory is kept.
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.announced_bytes = None;
        self.is_final = false;
    }

    /// The memory it holds.
    pub(crate) fn footprint(&self) -> usize {
        self.bytes.capacity()
    }

    /// What samples see of it.
    pub(crate) fn facts(&self) -> BodyFacts<'_> {
        BodyFacts {
            bytes: &self.bytes,
            announced_bytes: self.announced_bytes,
            is_final: self.is_final,
        }
    }
}
