//! Frames: their head, the rules of each type, and how each is written (RFC 9113 sections 4 and 6).

use crate::error::{ErrorCode, H2Error};

/// Size of the head of a frame (section 4.1).
pub const FRAME_HEADER_BYTES: usize = 9;
/// The largest stream identifier, increment and window: 31 bits.
pub(crate) const STREAM_ID_MAX: u32 = (1 << 31) - 1;
/// The first bytes of a client (section 3.4).
pub const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// The type of a frame (section 6).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum FrameType {
    Data,
    Headers,
    Priority,
    RstStream,
    Settings,
    PushPromise,
    Ping,
    GoAway,
    WindowUpdate,
    Continuation,
    /// Ignored (section 5.5).
    Unknown,
}

impl FrameType {
    fn from_number(number: u8) -> FrameType {
        match number {
            0 => FrameType::Data,
            1 => FrameType::Headers,
            2 => FrameType::Priority,
            3 => FrameType::RstStream,
            4 => FrameType::Settings,
            5 => FrameType::PushPromise,
            6 => FrameType::Ping,
            7 => FrameType::GoAway,
            8 => FrameType::WindowUpdate,
            9 => FrameType::Continuation,
            _ => FrameType::Unknown,
        }
    }

    fn number(self) -> u8 {
        match self {
            FrameType::Data => 0,
            FrameType::Headers => 1,
            FrameType::Priority => 2,
            FrameType::RstStream => 3,
            FrameType::Settings => 4,
            FrameType::PushPromise => 5,
            FrameType::Ping => 6,
            FrameType::GoAway => 7,
            FrameType::WindowUpdate => 8,
            FrameType::Continuation => 9,
            FrameType::Unknown => 0xff,
        }
    }
}

/// The flags of a frame; each type defines its own (section 4.1).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Flags(pub(crate) u8);

impl Flags {
    pub(crate) const NONE: Flags = Flags(0);
    pub(crate) const ACK: Flags = Flags(0x1);
    pub(crate) const END_STREAM: Flags = Flags(0x1);
    pub(crate) const END_HEADERS: Flags = Flags(0x4);
    pub(crate) const PADDED: Flags = Flags(0x8);
    pub(crate) const PRIORITY: Flags = Flags(0x20);

    pub(crate) fn has(self, flag: Flags) -> bool {
        self.0 & flag.0 != 0
    }

    pub(crate) fn with(self, flag: Flags, is_set: bool) -> Flags {
        if is_set { Flags(self.0 | flag.0) } else { self }
    }
}

/// The head of a frame (section 4.1).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct FrameHeader {
    /// Bytes of the payload.
    pub(crate) length: u32,
    pub(crate) kind: FrameType,
    pub(crate) flags: Flags,
    /// 0 is the connection.
    pub(crate) stream: u32,
}

impl FrameHeader {
    /// Reads a head. The reserved bit of the stream identifier is ignored.
    #[inline]
    pub(crate) fn parse(bytes: &[u8; FRAME_HEADER_BYTES]) -> FrameHeader {
        let [a, b, c, kind, flags, s0, s1, s2, s3] = *bytes;
        FrameHeader {
            length: u32::from_be_bytes([0, a, b, c]),
            kind: FrameType::from_number(kind),
            flags: Flags(flags),
            stream: u32::from_be_bytes([s0, s1, s2, s3]) & STREAM_ID_MAX,
        }
    }

    /// Writes a head. The length must fit 24 bits.
    #[inline]
    pub(crate) fn encode(self) -> [u8; FRAME_HEADER_BYTES] {
        debug_assert!(self.length < 1 << 24, "a frame length has 24 bits");
        let [_, a, b, c] = self.length.to_be_bytes();
        let [s0, s1, s2, s3] = self.stream.to_be_bytes();
        [a, b, c, self.kind.number(), self.flags.0, s0, s1, s2, s3]
    }

    /// Checks the length of the frame, and on which stream it is, by the rules of its type.
    ///
    /// # Errors
    /// [`H2Error`]: the connection ends (sections 4.2 and 6.1 to 6.10). So it does for PRIORITY, where
    /// section 6.3 asks for less: the frame says nothing that anybody needs, and HAProxy does the same.
    pub(crate) fn check(&self, frame_bytes_max: u32) -> Result<(), H2Error> {
        if self.length > frame_bytes_max {
            return Err(H2Error::FrameTooLong);
        }
        let on_stream = match self.kind {
            FrameType::Data
            | FrameType::Headers
            | FrameType::Priority
            | FrameType::RstStream
            | FrameType::PushPromise
            | FrameType::Continuation => self.stream != 0,
            FrameType::Settings | FrameType::Ping | FrameType::GoAway => self.stream == 0,
            FrameType::WindowUpdate | FrameType::Unknown => true,
        };
        if !on_stream {
            return Err(H2Error::StreamZero);
        }
        let fits = match self.kind {
            FrameType::Priority => self.length == 5,
            FrameType::RstStream | FrameType::WindowUpdate => self.length == 4,
            FrameType::Ping => self.length == 8,
            FrameType::GoAway => self.length >= 8,
            FrameType::Settings if self.flags.has(Flags::ACK) => self.length == 0,
            FrameType::Settings => self.length.is_multiple_of(6),
            FrameType::Headers => self.length >= self.prefix_bytes(),
            FrameType::Data => self.length >= self.prefix_bytes(),
            FrameType::PushPromise | FrameType::Continuation | FrameType::Unknown => true,
        };
        if fits {
            Ok(())
        } else {
            Err(H2Error::FrameLengthInvalid)
        }
    }

    /// Bytes before the data of a DATA or HEADERS frame: the length of the padding, and the priority
    /// (sections 6.1 and 6.2).
    pub(crate) fn prefix_bytes(&self) -> u32 {
        let padded = u32::from(self.flags.has(Flags::PADDED));
        let priority = self.kind == FrameType::Headers && self.flags.has(Flags::PRIORITY);
        padded + if priority { 5 } else { 0 }
    }

    pub(crate) fn ends_stream(&self) -> bool {
        self.flags.has(Flags::END_STREAM)
    }

    pub(crate) fn ends_headers(&self) -> bool {
        self.flags.has(Flags::END_HEADERS)
    }
}

/// What precedes the data of a DATA or HEADERS frame.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct FramePrefix {
    /// Bytes of padding at the end.
    pub(crate) padding: u32,
}

impl FramePrefix {
    /// Reads the prefix; `bytes` are the first [`FrameHeader::prefix_bytes`] of the payload.
    ///
    /// # Errors
    /// Padding that does not fit (section 6.1), or a stream that depends on itself.
    pub(crate) fn parse(header: &FrameHeader, bytes: &[u8]) -> Result<FramePrefix, H2Error> {
        let padded = header.flags.has(Flags::PADDED);
        let padding = match bytes.first() {
            Some(length) if padded => u32::from(*length),
            _ => 0,
        };
        if header.prefix_bytes() + padding > header.length {
            return Err(H2Error::PaddingTooLong);
        }
        if let Some(priority) = bytes.get(usize::from(padded)..)
            && header.prefix_bytes() > 1
            && dependency(priority) == Some(header.stream)
        {
            return Err(H2Error::SelfDependency);
        }
        Ok(FramePrefix { padding })
    }
}

/// The stream that a PRIORITY payload names. Priorities are ignored otherwise (section 5.3.2).
pub(crate) fn dependency(payload: &[u8]) -> Option<u32> {
    Some(u32_at(payload)? & STREAM_ID_MAX)
}

/// A number of 32 bits at the start of a payload: an error code, an increment, a stream.
pub(crate) fn u32_at(payload: &[u8]) -> Option<u32> {
    payload
        .first_chunk()
        .map(|bytes| u32::from_be_bytes(*bytes))
}

// === writing ===

/// Appends the head of a frame.
pub(crate) fn write_header(
    out: &mut Vec<u8>,
    length: u32,
    kind: FrameType,
    flags: Flags,
    stream: u32,
) {
    let header = FrameHeader {
        length,
        kind,
        flags,
        stream,
    };
    out.extend_from_slice(&header.encode());
}

/// Appends SETTINGS with these parameters (section 6.5).
pub(crate) fn write_settings(
    out: &mut Vec<u8>,
    settings: impl Iterator<Item = (u16, u32)> + Clone,
) {
    let length = u32::try_from(settings.clone().count()).unwrap_or(0) * 6;
    write_header(out, length, FrameType::Settings, Flags::NONE, 0);
    for (name, value) in settings {
        out.extend_from_slice(&name.to_be_bytes());
        out.extend_from_slice(&value.to_be_bytes());
    }
}

/// Appends the acknowledgement of SETTINGS (section 6.5.3).
pub(crate) fn write_settings_ack(out: &mut Vec<u8>) {
    write_header(out, 0, FrameType::Settings, Flags::ACK, 0);
}

/// Appends PING (section 6.7).
pub(crate) fn write_ping(out: &mut Vec<u8>, payload: [u8; 8], is_ack: bool) {
    let flags = Flags::NONE.with(Flags::ACK, is_ack);
    write_header(out, 8, FrameType::Ping, flags, 0);
    out.extend_from_slice(&payload);
}

/// Appends GOAWAY without debug data (section 6.8).
pub(crate) fn write_go_away(out: &mut Vec<u8>, last_stream: u32, code: ErrorCode) {
    write_header(out, 8, FrameType::GoAway, Flags::NONE, 0);
    out.extend_from_slice(&last_stream.to_be_bytes());
    out.extend_from_slice(&code.0.to_be_bytes());
}

/// Appends RST_STREAM (section 6.4).
pub(crate) fn write_rst_stream(out: &mut Vec<u8>, stream: u32, code: ErrorCode) {
    write_header(out, 4, FrameType::RstStream, Flags::NONE, stream);
    out.extend_from_slice(&code.0.to_be_bytes());
}

/// Appends WINDOW_UPDATE (section 6.9).
pub(crate) fn write_window_update(out: &mut Vec<u8>, stream: u32, increment: u32) {
    debug_assert!(
        (1..=STREAM_ID_MAX).contains(&increment),
        "an increment has 31 bits and is not zero"
    );
    write_header(out, 4, FrameType::WindowUpdate, Flags::NONE, stream);
    out.extend_from_slice(&increment.to_be_bytes());
}

/// Turns a header block, written from `start` on after room for one head, into HEADERS and as many
/// CONTINUATION frames as the peer's frame size asks for (sections 6.2 and 6.10).
pub(crate) fn finish_header_block(
    out: &mut Vec<u8>,
    start: usize,
    stream: u32,
    ends_stream: bool,
    frame_bytes_max: u32,
) {
    let max = frame_bytes_max as usize;
    let block = start + FRAME_HEADER_BYTES;
    let length = out.len() - block;
    let pieces = length.div_ceil(max).max(1);
    let header = |piece: usize| {
        let is_first = piece == 0;
        let bytes = (length - piece * max).min(max);
        FrameHeader {
            length: u32::try_from(bytes).unwrap_or(0),
            kind: if is_first {
                FrameType::Headers
            } else {
                FrameType::Continuation
            },
            flags: Flags::NONE
                .with(Flags::END_STREAM, is_first && ends_stream)
                .with(Flags::END_HEADERS, piece + 1 == pieces),
            stream,
        }
        .encode()
    };
    out[start..block].copy_from_slice(&header(0));
    if pieces == 1 {
        return;
    }
    // Rare: the later pieces move back, each by the heads before it, the last one first.
    out.resize(out.len() + (pieces - 1) * FRAME_HEADER_BYTES, 0);
    for piece in (1..pieces).rev() {
        let from = block + piece * max;
        let bytes = (length - piece * max).min(max);
        let to = from + piece * FRAME_HEADER_BYTES;
        out.copy_within(from..from + bytes, to);
        out[to - FRAME_HEADER_BYTES..to].copy_from_slice(&header(piece));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_are_read_as_written() {
        for kind in 0..=10_u8 {
            let header = FrameHeader {
                length: 0x0012_3456,
                kind: FrameType::from_number(kind),
                flags: Flags(0x25),
                stream: 0x7fff_fff1,
            };
            assert_eq!(FrameHeader::parse(&header.encode()), header);
        }
        let mut bytes = [0xff; 9];
        bytes[3] = 0;
        let header = FrameHeader::parse(&bytes);
        assert_eq!((header.length, header.stream), (0xff_ffff, STREAM_ID_MAX));
    }

    #[test]
    fn prefixes_of_all_kinds() {
        let header = |kind, flags, length| FrameHeader {
            length,
            kind,
            flags: Flags(flags),
            stream: 5,
        };
        let (data, headers) = (FrameType::Data, FrameType::Headers);
        for (kind, flags, length, bytes, expected) in [
            (data, 0, 9, &[][..], Ok(0)),
            (data, 8, 9, &[8], Ok(8)),
            (data, 8, 9, &[9], Err(H2Error::PaddingTooLong)),
            // PRIORITY means nothing to DATA.
            (data, 0x28, 3, &[2], Ok(2)),
            (headers, 0x20, 9, &[0, 0, 0, 3, 0], Ok(0)),
            (
                headers,
                0x20,
                9,
                &[0, 0, 0, 5, 0],
                Err(H2Error::SelfDependency),
            ),
            (
                headers,
                0x20,
                9,
                &[0x80, 0, 0, 5, 0],
                Err(H2Error::SelfDependency),
            ),
            (headers, 0x28, 9, &[3, 0, 0, 0, 3, 0], Ok(3)),
            (
                headers,
                0x28,
                9,
                &[4, 0, 0, 0, 3, 0],
                Err(H2Error::PaddingTooLong),
            ),
            (
                headers,
                0x28,
                9,
                &[1, 0, 0, 0, 5, 0],
                Err(H2Error::SelfDependency),
            ),
        ] {
            let header = header(kind, flags, length);
            assert_eq!(header.prefix_bytes() as usize, bytes.len());
            let padding = FramePrefix::parse(&header, bytes).map(|prefix| prefix.padding);
            assert_eq!(padding, expected, "{header:?}");
        }
    }

    #[test]
    fn a_block_of_any_size_is_cut_at_the_limit() {
        for (length, max) in [(0, 7), (1, 7), (7, 7), (8, 7), (14, 7), (100, 7), (50, 49)] {
            let block: Vec<u8> = (0..length).collect();
            let mut out = b"before".to_vec();
            let start = out.len();
            out.extend_from_slice(&[0; FRAME_HEADER_BYTES]);
            out.extend_from_slice(&block);
            finish_header_block(&mut out, start, 3, true, max);
            let mut rest = out.strip_prefix(b"before").unwrap();
            let (mut whole, mut heads) = (Vec::new(), Vec::new());
            while let Some((head, after)) = rest.split_first_chunk() {
                let header = FrameHeader::parse(head);
                let (piece, after) = after.split_at(header.length as usize);
                whole.extend_from_slice(piece);
                heads.push(header);
                rest = after;
            }
            assert_eq!(whole, block);
            let last = heads.len() - 1;
            for (at, header) in heads.iter().enumerate() {
                assert_eq!(header.stream, 3);
                assert_eq!(header.kind == FrameType::Headers, at == 0);
                assert_eq!(header.ends_headers(), at == last);
                assert_eq!(header.ends_stream(), at == 0);
                assert!(header.length <= max && (at == last || header.length == max));
            }
        }
    }
}
