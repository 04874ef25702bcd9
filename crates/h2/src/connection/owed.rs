//! Frames that are owed to the peer and not written yet.
//!
//! What a peer makes us say is bounded: equal frames are counted, others have a few places. When
//! there is no place left, nothing more is received until the peer reads.

use crate::error::ErrorCode;
use crate::frame;

/// Frames of each kind that may be owed.
const OWED_COUNT_MAX: usize = 32;

/// Frames that are owed, without window updates, which the windows themselves know.
#[derive(Debug, Default)]
pub(crate) struct OwedFrames {
    settings_acks: usize,
    pings: Vec<[u8; 8]>,
    resets: Vec<(u32, ErrorCode)>,
    go_away: Option<(u32, ErrorCode)>,
}

impl OwedFrames {
    /// Whether the peer must read before it may say more.
    pub(crate) fn is_full(&self) -> bool {
        self.settings_acks >= OWED_COUNT_MAX
            || self.pings.len() >= OWED_COUNT_MAX
            || self.resets.len() >= OWED_COUNT_MAX
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.settings_acks == 0
            && self.pings.is_empty()
            && self.resets.is_empty()
            && self.go_away.is_none()
    }

    pub(crate) fn settings_ack(&mut self) {
        self.settings_acks += 1;
    }

    pub(crate) fn ping(&mut self, payload: [u8; 8]) {
        self.pings.push(payload);
    }

    /// A reset of a stream. The number of those that we reset ourselves is bounded by the streams.
    pub(crate) fn reset(&mut self, stream: u32, code: ErrorCode) {
        self.resets.push((stream, code));
    }

    /// The last GOAWAY counts.
    pub(crate) fn go_away(&mut self, last_stream: u32, code: ErrorCode) {
        self.go_away = Some((last_stream, code));
    }

    /// Appends all frames. GOAWAY is the last one.
    pub(crate) fn write(&mut self, out: &mut Vec<u8>) {
        for _ in 0..std::mem::take(&mut self.settings_acks) {
            frame::write_settings_ack(out);
        }
        for payload in self.pings.drain(..) {
            frame::write_ping(out, payload, true);
        }
        for (stream, code) in self.resets.drain(..) {
            frame::write_rst_stream(out, stream, code);
        }
        if let Some((last_stream, code)) = self.go_away.take() {
            frame::write_go_away(out, last_stream, code);
        }
    }

    /// Frees memory.
    pub(crate) fn release(&mut self) {
        if self.is_empty() {
            *self = OwedFrames::default();
        }
    }
}
