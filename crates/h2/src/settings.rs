//! Settings: ours, and the peer's (RFC 9113 section 6.5, RFC 8441 section 3).

use crate::error::H2Error;
use crate::frame::STREAM_ID_MAX;

/// `SETTINGS_HEADER_TABLE_SIZE`.
pub(crate) const HEADER_TABLE_SIZE: u16 = 1;
/// `SETTINGS_ENABLE_PUSH`.
pub(crate) const ENABLE_PUSH: u16 = 2;
/// `SETTINGS_MAX_CONCURRENT_STREAMS`.
pub(crate) const MAX_CONCURRENT_STREAMS: u16 = 3;
/// `SETTINGS_INITIAL_WINDOW_SIZE`.
pub(crate) const INITIAL_WINDOW_SIZE: u16 = 4;
/// `SETTINGS_MAX_FRAME_SIZE`.
pub(crate) const MAX_FRAME_SIZE: u16 = 5;
/// `SETTINGS_ENABLE_CONNECT_PROTOCOL`.
pub(crate) const ENABLE_CONNECT_PROTOCOL: u16 = 8;

/// Every window before settings change it (section 6.9.2).
pub(crate) const WINDOW_BYTES_AT_FIRST: u32 = 65_535;
/// The smallest limit of frames (section 6.5.2).
pub(crate) const FRAME_BYTES_MIN: u32 = 16_384;
/// The largest limit of frames (section 6.5.2).
const FRAME_BYTES_MAX: u32 = (1 << 24) - 1;

/// What we announce to a peer, and what we allow it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct H2Settings {
    /// The size of the dynamic table: `tune.h2.header-table-size`, 4096 by default. Both directions
    /// use it.
    pub header_table_bytes_max: u32,
    /// What a peer may send on a stream at first: `tune.h2.fe.initial-window-size` or `be`.
    pub initial_window_bytes: u32,
    /// Streams at once: `tune.h2.fe.max-concurrent-streams` or `be`; 0 means no limit.
    pub stream_count_max: u32,
    /// Streams of one connection in all: `tune.h2.fe.max-total-streams`; 0 means no limit.
    pub stream_total_max: u32,
    /// The largest frame that we take: `tune.h2.max-frame-size`.
    pub frame_bytes_max: u32,
    /// What all streams together may have sent that nobody has taken yet: `tune.h2.fe.rxbuf` or
    /// `be`.
    pub receive_bytes_max: u32,
    /// What each stream is granted of that in any case: `tune.bufsize`.
    pub buffer_bytes: u32,
    /// A head, written as over HTTP/1: `tune.bufsize` less `tune.maxrewrite`. Trailers too.
    pub head_bytes_max: u32,
    /// A header block as it is sent, all frames together: `tune.bufsize`.
    pub header_block_bytes_max: u32,
    /// Frames that are received in one turn: `tune.h2.fe.max-frames-at-once` or `be`; 0 means no
    /// limit.
    pub frame_count_max: u32,
    /// RST_STREAM frames that are received in one turn: `tune.h2.fe.max-rst-at-once`; 0 means no
    /// limit.
    pub reset_count_max: u32,
    /// Whether clients may ask for other protocols by extended CONNECT: without
    /// `h2-workaround-bogus-websocket-clients`.
    pub offers_connect_protocol: bool,
}

impl Default for H2Settings {
    fn default() -> Self {
        H2Settings {
            header_table_bytes_max: 4096,
            initial_window_bytes: 16_384,
            stream_count_max: 100,
            stream_total_max: 0,
            frame_bytes_max: FRAME_BYTES_MIN,
            receive_bytes_max: 100 * 16_384,
            buffer_bytes: 16_384,
            head_bytes_max: 16_384 - 1_024,
            header_block_bytes_max: 16_384,
            frame_count_max: 0,
            reset_count_max: 0,
            offers_connect_protocol: true,
        }
    }
}

impl H2Settings {
    /// The settings that differ from the protocol's defaults, in HAProxy's order.
    pub(crate) fn announced(&self, is_server: bool) -> impl Iterator<Item = (u16, u32)> + Clone {
        let count = match self.stream_count_max {
            0 => None,
            count => Some(count),
        };
        let table = self.header_table_bytes_max;
        let frame = self.frame_bytes_max();
        let window = self.initial_window_bytes.min(STREAM_ID_MAX);
        [
            (ENABLE_PUSH, (!is_server).then_some(0)),
            (
                ENABLE_CONNECT_PROTOCOL,
                self.offers_connect_protocol.then_some(1),
            ),
            (HEADER_TABLE_SIZE, (table != 4096).then_some(table)),
            (
                INITIAL_WINDOW_SIZE,
                (window != WINDOW_BYTES_AT_FIRST).then_some(window),
            ),
            (MAX_CONCURRENT_STREAMS, count),
            (MAX_FRAME_SIZE, (frame != FRAME_BYTES_MIN).then_some(frame)),
        ]
        .into_iter()
        .filter_map(|(name, value)| Some((name, value?)))
    }

    /// The limit of frames within what the protocol allows.
    pub(crate) fn frame_bytes_max(&self) -> u32 {
        self.frame_bytes_max.clamp(FRAME_BYTES_MIN, FRAME_BYTES_MAX)
    }

    /// What a stream may have sent that nobody has taken yet, when `receiving` streams share the
    /// memory: a buffer of its own, and its part of 7/8 of those that are not used, as HAProxy does.
    pub(crate) fn window_bytes(&self, receiving: u32) -> u32 {
        let buffer = self.buffer_bytes.max(1);
        let receiving = receiving.max(1);
        let unused = (self.receive_bytes_max / buffer).saturating_sub(receiving);
        let share = unused / 8 * 7 / receiving + unused % 8 * 7 / 8 / receiving;
        buffer.saturating_mul(share.saturating_add(1)).clamp(
            self.initial_window_bytes.clamp(1, STREAM_ID_MAX),
            STREAM_ID_MAX,
        )
    }
}

/// What the peer allows us (section 6.5.2).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct PeerSettings {
    pub(crate) header_table_bytes_max: u32,
    pub(crate) stream_count_max: u32,
    pub(crate) initial_window_bytes: u32,
    pub(crate) frame_bytes_max: u32,
    pub(crate) takes_connect_protocol: bool,
}

impl Default for PeerSettings {
    fn default() -> Self {
        PeerSettings {
            header_table_bytes_max: 4096,
            stream_count_max: u32::MAX,
            initial_window_bytes: WINDOW_BYTES_AT_FIRST,
            frame_bytes_max: FRAME_BYTES_MIN,
            takes_connect_protocol: false,
        }
    }
}

impl PeerSettings {
    /// Takes one parameter; unknown ones are ignored. `from_server` says who sent it.
    ///
    /// # Errors
    /// [`H2Error::SettingInvalid`], [`H2Error::WindowOverflow`]: the connection ends.
    pub(crate) fn apply(
        &mut self,
        name: u16,
        value: u32,
        from_server: bool,
    ) -> Result<(), H2Error> {
        match name {
            HEADER_TABLE_SIZE => self.header_table_bytes_max = value,
            // A server never pushes to us, and may not ask us to push (section 6.5.2).
            ENABLE_PUSH if value > 1 || (from_server && value != 0) => {
                return Err(H2Error::SettingInvalid);
            }
            MAX_CONCURRENT_STREAMS => self.stream_count_max = value,
            INITIAL_WINDOW_SIZE if value > STREAM_ID_MAX => return Err(H2Error::WindowOverflow),
            INITIAL_WINDOW_SIZE => self.initial_window_bytes = value,
            MAX_FRAME_SIZE if !(FRAME_BYTES_MIN..=FRAME_BYTES_MAX).contains(&value) => {
                return Err(H2Error::SettingInvalid);
            }
            MAX_FRAME_SIZE => self.frame_bytes_max = value,
            ENABLE_CONNECT_PROTOCOL if value > 1 => return Err(H2Error::SettingInvalid),
            // It may not be taken back (RFC 8441 section 3): once offered it stays.
            ENABLE_CONNECT_PROTOCOL => self.takes_connect_protocol |= value == 1,
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_announced_by_default_is_what_haproxy_announces() {
        let settings = H2Settings::default();
        let server: Vec<_> = settings.announced(true).collect();
        assert_eq!(server, [(8, 1), (4, 16_384), (3, 100)]);
        let client: Vec<_> = settings.announced(false).collect();
        assert_eq!(client, [(2, 0), (8, 1), (4, 16_384), (3, 100)]);
    }

    #[test]
    fn unused_memory_is_shared_by_those_who_send() {
        let settings = H2Settings::default();
        assert_eq!(settings.window_bytes(1), 87 * 16_384);
        assert_eq!(settings.window_bytes(100), 16_384);
        assert_eq!(settings.window_bytes(10_000), 16_384);
        for receiving in 1..=100 {
            let all = u64::from(settings.window_bytes(receiving)) * u64::from(receiving);
            assert!(all <= u64::from(settings.receive_bytes_max), "{receiving}");
        }
    }

    #[test]
    fn values_that_are_not_allowed_are_refused() {
        let mut peer = PeerSettings::default();
        for (name, value, from_server, expected) in [
            (2, 2, false, Err(H2Error::SettingInvalid)),
            (2, 1, false, Ok(())),
            (2, 1, true, Err(H2Error::SettingInvalid)),
            (4, 1 << 31, false, Err(H2Error::WindowOverflow)),
            (4, (1 << 31) - 1, false, Ok(())),
            (5, 16_383, false, Err(H2Error::SettingInvalid)),
            (5, 1 << 24, false, Err(H2Error::SettingInvalid)),
            (5, (1 << 24) - 1, false, Ok(())),
            (8, 2, false, Err(H2Error::SettingInvalid)),
            (99, 7, false, Ok(())),
        ] {
            assert_eq!(
                peer.apply(name, value, from_server),
                expected,
                "{name}={value}"
            );
        }
    }
}
