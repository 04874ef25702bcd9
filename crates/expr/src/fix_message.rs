//! Messages of FIX, the Financial Information eXchange: `tag=value` with separators.

const BEGIN_STRING: i64 = 8;
const BODY_LENGTH: i64 = 9;
/// The tag that ends a message.
pub(crate) const CHECK_SUM: i64 = 10;
const MSG_TYPE: i64 = 35;

/// What follows a value.
const SEPARATOR: u8 = 0x01;

/// The shortest message: `8=FIX.x.x|9=z|35=y|10=abc|`.
const MESSAGE_BYTES_MIN: usize = 26;

/// Tags that have a name.
pub(crate) const TAG_NAMES: [(&str, i64); 6] = [
    ("BeginString", BEGIN_STRING),
    ("BodyLength", BODY_LENGTH),
    ("CheckSum", CHECK_SUM),
    ("MsgType", MSG_TYPE),
    ("SenderCompID", 49),
    ("TargetCompID", 56),
];

/// The number of a tag, which some have a name for.
pub(crate) fn tag_number(text: &str) -> Option<i64> {
    let named = TAG_NAMES
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case(text));
    match named {
        Some((_, number)) => Some(*number),
        None => number(text.as_bytes()).filter(|number| *number > 0),
    }
}

/// A number of decimal digits alone; too large a one is the largest.
fn number(digits: &[u8]) -> Option<i64> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0_i64, |sum, byte| {
        let digit = byte.is_ascii_digit().then(|| i64::from(byte - b'0'))?;
        Some(sum.saturating_mul(10).saturating_add(digit))
    })
}

/// `tag=value` and its separator.
pub(crate) struct FixField {
    pub(crate) tag: i64,
    pub(crate) from: usize,
    pub(crate) to: usize,
}

/// Why no field begins here.
pub(crate) enum NoField {
    /// What is there is no field.
    Malformed,
    /// The bytes end within it.
    Unfinished,
}

/// The field that begins at `at`.
pub(crate) fn field_at(message: &[u8], at: usize) -> Result<FixField, NoField> {
    let rest = &message[at..];
    let equals = memchr::memchr(b'=', rest).ok_or(NoField::Unfinished)?;
    let tag = number(&rest[..equals]).filter(|tag| *tag > 0);
    let tag = tag.ok_or(NoField::Malformed)?;
    let value = &rest[equals + 1..];
    let length = memchr::memchr(SEPARATOR, value).ok_or(NoField::Unfinished)?;
    let from = at + equals + 1;
    Ok(FixField {
        tag,
        from,
        to: from + length,
    })
}

fn is_version(version: &[u8]) -> bool {
    matches!(
        version,
        b"FIX.4.0" | b"FIX.4.1" | b"FIX.4.2" | b"FIX.4.3" | b"FIX.4.4" | b"FIXT.1.1"
    )
}

/// Whether a message is valid; `None` while it is not whole.
pub(crate) fn validity(message: &[u8]) -> Option<bool> {
    if message.len() < MESSAGE_BYTES_MIN {
        return None;
    }
    let (mut at, mut body) = (0, None);
    for position in 0.. {
        let field = match field_at(message, at) {
            Ok(field) => field,
            Err(NoField::Malformed) => return Some(false),
            Err(NoField::Unfinished) => return None,
        };
        let value = &message[field.from..field.to];
        let good = match position {
            0 => field.tag == BEGIN_STRING && is_version(value),
            1 => {
                let length = number(value).and_then(|length| usize::try_from(length).ok());
                body = length.map(|length| (field.to + 1, length));
                field.tag == BODY_LENGTH && body.is_some()
            }
            2 => field.tag == MSG_TYPE,
            _ => true,
        };
        if !good {
            return Some(false);
        }
        if field.tag == CHECK_SUM {
            let (from, length) = body?;
            let sum = message[..at]
                .iter()
                .fold(0_u8, |sum, byte| sum.wrapping_add(*byte));
            let sums_up = value.len() == 3 && number(value) == Some(i64::from(sum));
            return Some(sums_up && at - from == length);
        }
        at = field.to + 1;
    }
    None
}
