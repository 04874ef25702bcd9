//! What can be asked to go wrong over HTTP/2: a row each.

use std::cell::RefCell;
use std::collections::HashMap;

use crate::h2::raw::{self, END_HEADERS, END_STREAM};

/// INTERNAL_ERROR, the code when none is asked for.
pub(super) const INTERNAL_ERROR: u32 = 2;
const REFUSED_STREAM: u32 = 7;
/// How many targets are counted; faults of others are shown every time.
const TARGET_COUNT_MAX: usize = 10_000;
/// How many frames a flood has.
const FLOOD_COUNT: usize = 10_000;
/// The length of the field of a large head.
const LARGE_HEAD_BYTES: usize = 1 << 20;
/// The largest frame that a peer takes unless it says otherwise.
const FRAME_BYTES_MAX: usize = 16 << 10;
/// How much more than a window a fault sends.
const BEYOND_WINDOW_BYTES: usize = 16 << 20;

/// What goes wrong.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Fault {
    /// The connection ends.
    Abort,
    BadBlock,
    Close,
    ConnectionField,
    DataAfterEnd,
    DataFirst,
    Goaway,
    GoawayAbrupt,
    GoawayBelow,
    InterimEnd,
    LargeHead,
    LongBody,
    LongFrame,
    NoStatus,
    PingFlood,
    Push,
    Refuse,
    ResetAfterHead,
    ResetBeforeHead,
    ResetInBody,
    SettingsFlood,
    ShortBody,
    StallBody,
    StallHead,
    StallWindow,
    TwoHeads,
    UpperCase,
    WindowOverrun,
    WindowOverflow,
    ZeroIncrement,
}

/// The word of each, and what it does.
const ROWS: &[(&str, Fault, &str)] = &[
    (
        "refuse",
        Fault::Refuse,
        "reset with REFUSED_STREAM, before the body is read",
    ),
    (
        "reset-before-head",
        Fault::ResetBeforeHead,
        "reset instead of an answer",
    ),
    (
        "reset-after-head",
        Fault::ResetAfterHead,
        "reset behind the head",
    ),
    (
        "reset-in-body",
        Fault::ResetInBody,
        "reset after half of the body",
    ),
    (
        "goaway",
        Fault::Goaway,
        "GOAWAY, then the answer; the connection ends after it",
    ),
    (
        "goaway-below",
        Fault::GoawayBelow,
        "GOAWAY whose last stream is below ours, and no answer",
    ),
    (
        "goaway-abrupt",
        Fault::GoawayAbrupt,
        "GOAWAY with the code, and the connection ends",
    ),
    ("close", Fault::Close, "the connection ends without a word"),
    ("abort", Fault::Abort, "the connection is reset"),
    (
        "stall-window",
        Fault::StallWindow,
        "the body is not read, and there is no answer",
    ),
    ("stall-head", Fault::StallHead, "there is no answer"),
    (
        "stall-body",
        Fault::StallBody,
        "nothing after half of the body",
    ),
    (
        "short-body",
        Fault::ShortBody,
        "less than Content-Length says",
    ),
    (
        "long-body",
        Fault::LongBody,
        "more than Content-Length says",
    ),
    ("large-head", Fault::LargeHead, "a head of 1 MiB"),
    ("no-status", Fault::NoStatus, "a head without :status"),
    (
        "upper-case",
        Fault::UpperCase,
        "a field with a capital letter",
    ),
    (
        "connection-field",
        Fault::ConnectionField,
        "the field `connection`",
    ),
    (
        "two-heads",
        Fault::TwoHeads,
        "a second head that is neither interim nor trailers",
    ),
    ("interim-end", Fault::InterimEnd, "103 that ends the stream"),
    ("data-first", Fault::DataFirst, "a body without a head"),
    (
        "data-after-end",
        Fault::DataAfterEnd,
        "a body behind the end of the stream",
    ),
    (
        "bad-block",
        Fault::BadBlock,
        "a head that cannot be decoded",
    ),
    (
        "long-frame",
        Fault::LongFrame,
        "a frame larger than allowed",
    ),
    (
        "window-overrun",
        Fault::WindowOverrun,
        "more than the window allows",
    ),
    (
        "window-overflow",
        Fault::WindowOverflow,
        "a window beyond 2^31 - 1",
    ),
    (
        "zero-increment",
        Fault::ZeroIncrement,
        "a window update of nothing",
    ),
    (
        "push",
        Fault::Push,
        "PUSH_PROMISE, which no client of ours allows",
    ),
    ("ping-flood", Fault::PingFlood, "10,000 PINGs"),
    ("settings-flood", Fault::SettingsFlood, "10,000 SETTINGS"),
];

/// The rows, for `--help`.
pub(crate) fn faults_help() -> String {
    let row = |(word, _, help): &(&str, Fault, &str)| format!("    {word:18}{help}\n");
    ROWS.iter().map(row).collect()
}

impl Fault {
    /// The fault that a request names.
    pub(crate) fn named(word: &str) -> Option<Self> {
        let row = ROWS.iter().find(|(known, ..)| *known == word);
        row.map(|(_, fault, _)| *fault)
    }

    /// True when it comes before the request's body is read.
    pub(super) fn is_before_body(self) -> bool {
        matches!(
            self,
            Self::Abort
                | Self::Close
                | Self::GoawayAbrupt
                | Self::GoawayBelow
                | Self::Refuse
                | Self::StallWindow
        )
    }

    /// The code to use when the request names none.
    pub(super) fn code(self) -> u32 {
        match self {
            Self::Refuse => REFUSED_STREAM,
            Self::GoawayBelow => 0,
            _ => INTERNAL_ERROR,
        }
    }

    /// The frames of a fault that no library would send, in place of an answer.
    pub(super) fn frames(self, stream: u32) -> Option<Vec<u8>> {
        let frame = raw::frame;
        let ok = (":status", "200");
        let head = |fields: &[(&str, &str)], flags| {
            frame(
                raw::HEADERS,
                flags | END_HEADERS,
                stream,
                &raw::fields(fields),
            )
        };
        let plain = head(&[ok], 0);
        let end = |text: &[u8]| frame(raw::DATA, END_STREAM, stream, text);
        let update = |stream, by: u32| frame(raw::WINDOW_UPDATE, 0, stream, &by.to_be_bytes());
        Some(match self {
            Self::LongBody => {
                let head = head(&[ok, ("content-length", "2")], 0);
                [head, end(b"three")].concat()
            }
            Self::ShortBody => {
                let head = head(&[ok, ("content-length", "20")], 0);
                [head, end(b"three")].concat()
            }
            Self::LargeHead => large_head(stream),
            Self::NoStatus => head(&[("server", "origin")], END_STREAM),
            Self::UpperCase => head(&[ok, ("X-Upper", "1")], END_STREAM),
            Self::ConnectionField => head(&[ok, ("connection", "close")], END_STREAM),
            Self::TwoHeads => [plain.clone(), plain, end(b"x")].concat(),
            Self::InterimEnd => head(&[(":status", "103")], END_STREAM),
            Self::DataFirst => end(b"x"),
            Self::DataAfterEnd => [head(&[ok], END_STREAM), end(b"x")].concat(),
            Self::BadBlock => {
                // An index behind the end of both tables.
                frame(
                    raw::HEADERS,
                    END_HEADERS | END_STREAM,
                    stream,
                    &[0xff, 0xff, 0x7f],
                )
            }
            Self::LongFrame => [plain, end(&[b'x'; FRAME_BYTES_MAX + 1])].concat(),
            Self::WindowOverrun => {
                let piece = frame(raw::DATA, 0, stream, &[b'x'; FRAME_BYTES_MAX]);
                [plain, piece.repeat(BEYOND_WINDOW_BYTES / FRAME_BYTES_MAX)].concat()
            }
            Self::WindowOverflow => {
                let most = i32::MAX.unsigned_abs();
                [update(0, most), update(stream, most)].concat()
            }
            Self::ZeroIncrement => update(stream, 0),
            Self::Push => {
                let fields = [
                    (":method", "GET"),
                    (":scheme", "http"),
                    (":path", "/pushed"),
                ];
                let mut payload = 2u32.to_be_bytes().to_vec();
                payload.extend(raw::fields(&fields));
                frame(raw::PUSH_PROMISE, END_HEADERS, stream, &payload)
            }
            Self::PingFlood => frame(raw::PING, 0, 0, b"flooding").repeat(FLOOD_COUNT),
            Self::SettingsFlood => frame(raw::SETTINGS, 0, 0, &[]).repeat(FLOOD_COUNT),
            _ => return None,
        })
    }
}

/// A head in as many frames as it takes.
fn large_head(stream: u32) -> Vec<u8> {
    let value = "x".repeat(LARGE_HEAD_BYTES);
    let block = raw::fields(&[(":status", "200"), ("x-large", &value)]);
    let mut pieces = block.chunks(FRAME_BYTES_MAX).peekable();
    let mut bytes = Vec::new();
    let mut kind_and_flags = (raw::HEADERS, END_STREAM);
    while let Some(piece) = pieces.next() {
        let (kind, mut flags) = kind_and_flags;
        if pieces.peek().is_none() {
            flags |= END_HEADERS;
        }
        bytes.extend(raw::frame(kind, flags, stream, piece));
        kind_and_flags = (raw::CONTINUATION, 0);
    }
    bytes
}

/// How often a fault was shown for each target that asked for it so many times.
#[derive(Debug, Default)]
pub(crate) struct FaultCounts(RefCell<HashMap<String, u64>>);

impl FaultCounts {
    /// Whether this request gets the fault.
    pub(super) fn is_due(&self, target: &str, times: Option<u64>) -> bool {
        let Some(times) = times else {
            return true;
        };
        let mut counts = self.0.borrow_mut();
        if counts.len() >= TARGET_COUNT_MAX && !counts.contains_key(target) {
            return true;
        }
        let count = counts.entry(target.to_owned()).or_default();
        *count += 1;
        *count <= times
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_word_is_of_one_fault() {
        for (number, (word, fault, _)) in ROWS.iter().enumerate() {
            assert_eq!(Fault::named(word), Some(*fault));
            assert!(ROWS[..number].iter().all(|(_, other, _)| other != fault));
        }
        assert_eq!(Fault::named("what"), None);
    }

    #[test]
    fn a_fault_is_shown_so_often() {
        let counts = FaultCounts::default();
        let due: Vec<bool> = (0..3).map(|_| counts.is_due("/a", Some(2))).collect();
        assert_eq!(due, [true, true, false]);
        assert!(counts.is_due("/a", None) && counts.is_due("/b", Some(1)));
    }

    #[test]
    fn a_large_head_ends_once() {
        let bytes = large_head(1);
        let (mut rest, mut ends) = (bytes.as_slice(), 0);
        while let Some((head, after)) = rest.split_at_checked(raw::HEAD_BYTES) {
            let length = usize::from(head[1]) << 8 | usize::from(head[2]);
            ends += usize::from(head[4] & END_HEADERS != 0);
            rest = &after[length..];
        }
        assert!(rest.is_empty() && ends == 1);
    }
}
