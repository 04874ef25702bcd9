//! `option spop-check`: the HELLO of the Stream Processing Offload Protocol, which says that it is a check.
//! The agent replies with its own, or with a DISCONNECT, which is read as a HELLO that lacks everything.

use super::{CheckStep, Expectation, ReplyVerdict, invalid};

/// The steps of `option spop-check`; `frame_bytes_max` limits the frames that an agent may offer.
pub fn spop(frame_bytes_max: u32) -> Vec<CheckStep> {
    vec![
        CheckStep::Send(hello()),
        CheckStep::Expect(Expectation::SpopHello { frame_bytes_max }),
    ]
}

/// Types of frames.
const HAPROXY_HELLO: u8 = 1;
const AGENT_HELLO: u8 = 101;
const AGENT_DISCONNECT: u8 = 102;

/// Types of values.
const BOOLEAN_TRUE: u8 = 0x11;
const UINT32: u8 = 3;
const STRING: u8 = 8;

/// The flags of a frame that is whole and ends nothing.
const FIN: [u8; 4] = [0, 0, 0, 1];

/// Length, type, flags, and the numbers of the stream and of the frame, which are 0.
const HEAD_BYTES: usize = 11;
/// The length is not part of what it counts.
const LENGTH_BYTES: usize = 4;
/// The smallest frame that an agent may offer to take.
const FRAME_BYTES_MIN: u64 = 256;
/// What is offered, whatever the size of buffers is.
const FRAME_BYTES_OFFERED: u64 = 16380;

/// The text for what is no such frame.
const INVALID_FRAME: &[u8] = b"invalid frame received";

fn hello() -> Vec<u8> {
    let mut frame = vec![HAPROXY_HELLO];
    frame.extend_from_slice(&FIN);
    frame.extend_from_slice(&[0, 0]);
    put_text(&mut frame, b"supported-versions");
    frame.push(STRING);
    put_text(&mut frame, b"2.0");
    put_text(&mut frame, b"max-frame-size");
    frame.push(UINT32);
    put_number(&mut frame, FRAME_BYTES_OFFERED);
    put_text(&mut frame, b"capabilities");
    frame.push(STRING);
    put_text(&mut frame, b"");
    put_text(&mut frame, b"healthcheck");
    frame.push(BOOLEAN_TRUE);
    let length = u32::try_from(frame.len()).unwrap_or(u32::MAX);
    [&length.to_be_bytes(), frame.as_slice()].concat()
}

fn put_text(out: &mut Vec<u8>, text: &[u8]) {
    put_number(out, text.len() as u64);
    out.extend_from_slice(text);
}

/// Appends a number: four bits in the first byte when that is 240 or more, seven in each later one.
fn put_number(out: &mut Vec<u8>, number: u64) {
    let byte = |bits: u64| u8::try_from(bits & 0xff).unwrap_or_default();
    if number < 240 {
        out.push(byte(number));
        return;
    }
    out.push(byte(number) | 0xf0);
    let mut rest = (number - 240) >> 4;
    while rest >= 128 {
        out.push(byte(rest) | 0x80);
        rest = (rest - 128) >> 7;
    }
    out.push(byte(rest));
}

/// What is left of a frame.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn number(&mut self) -> Option<u64> {
        let first = u64::from(self.byte()?);
        if first < 240 {
            return Some(first);
        }
        let (mut number, mut shift) = (first, 4);
        loop {
            let byte = u64::from(self.byte()?);
            number = number.wrapping_add(byte.checked_shl(shift)?);
            if byte < 128 {
                return Some(number);
            }
            shift += 7;
        }
    }

    fn text(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(self.number()?).ok()?;
        self.bytes(length)
    }

    /// Passes over a value of an entry that says nothing here.
    fn skip_value(&mut self) -> Option<()> {
        match self.byte()? & 0x0f {
            2..=5 => self.number().map(drop),
            6 => self.bytes(4).map(drop),
            7 => self.bytes(16).map(drop),
            8 | 9 => self.text().map(drop),
            // Nothing follows null and booleans, nor a type that is unknown.
            _ => Some(()),
        }
    }

    fn string_value(&mut self) -> Option<&'a [u8]> {
        (self.byte()? & 0x0f == STRING).then(|| self.text())?
    }

    fn integer_value(&mut self) -> Option<u64> {
        matches!(self.byte()? & 0x0f, 2..=5).then(|| self.number())?
    }
}

pub(super) fn parse_reply(received: &[u8], frame_bytes_max: u32) -> ReplyVerdict<'_> {
    let Some((head, rest)) = received.split_first_chunk::<HEAD_BYTES>() else {
        return ReplyVerdict::Undecided;
    };
    let [a, b, c, d, kind, flags @ .., stream, number] = *head;
    let is_known = matches!(kind, AGENT_HELLO | AGENT_DISCONNECT);
    if !is_known || flags != FIN || (stream, number) != (0, 0) {
        return invalid(INVALID_FRAME);
    }
    let length = u32::from_be_bytes([a, b, c, d]);
    let length = usize::try_from(length).unwrap_or(usize::MAX);
    let Some(length) = length.checked_sub(HEAD_BYTES - LENGTH_BYTES) else {
        return invalid(INVALID_FRAME);
    };
    if rest.len() < length {
        return ReplyVerdict::Undecided;
    }
    if rest.len() > length {
        return invalid(INVALID_FRAME);
    }
    match judge(Reader(rest), frame_bytes_max) {
        None => invalid(INVALID_FRAME),
        Some(Err(text)) => invalid(text),
        Some(Ok(())) => ReplyVerdict::Pass {
            bytes: received.len(),
            code: Some(0),
            text: b"",
        },
    }
}

/// Judges a reply that ended before it was whole.
pub(super) fn judge_part(received: &[u8]) -> ReplyVerdict<'_> {
    match received {
        [] => invalid(b""),
        _ => invalid(INVALID_FRAME),
    }
}

/// Judges the entries of a HELLO; `None` when they are broken.
fn judge(mut entries: Reader<'_>, frame_bytes_max: u32) -> Option<Result<(), &'static [u8]>> {
    let (mut has_version, mut has_size, mut has_capabilities) = (false, false, false);
    while !entries.0.is_empty() {
        match entries.text()? {
            b"" => return None,
            b"version" => {
                has_version = true;
                if version(entries.string_value()?)? != (2, 0) {
                    return Some(Err(b"unsupported version"));
                }
            }
            b"max-frame-size" => {
                has_size = true;
                let size = entries.integer_value()?;
                if !(FRAME_BYTES_MIN..=u64::from(frame_bytes_max)).contains(&size) {
                    return Some(Err(b"max-frame-size too big or too small"));
                }
            }
            b"capabilities" => {
                has_capabilities = true;
                entries.string_value()?;
            }
            _ => entries.skip_value()?,
        }
    }
    Some(match (has_version, has_size, has_capabilities) {
        (false, _, _) => Err(b"version value not found"),
        (true, false, _) => Err(b"max-frame-size value not found"),
        (true, true, false) => Err(b"capabilities value not found"),
        (true, true, true) => Ok(()),
    })
}

/// Major and minor number of a version; blanks around it do not matter.
fn version(text: &[u8]) -> Option<(u32, u32)> {
    let text = std::str::from_utf8(text).ok()?.trim_ascii();
    let (major, minor) = text.split_once('.')?;
    let number = |digits: &str| {
        let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| digits.parse().ok())?
    };
    let minor = number(minor).filter(|minor| *minor < 1000)?;
    Some((number(major)?, minor))
}
