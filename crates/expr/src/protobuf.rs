//! Protocol Buffers on the wire: fields by number, as far as looking one up needs it.

/// How the bytes of a field are read as a number.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ProtobufNumber {
    /// `double`, without its fraction.
    Double,
    /// `fixed32`.
    Fixed32,
    /// `fixed64` and `sfixed64`.
    Fixed64,
    /// `float`, without its fraction.
    Float,
    /// `sfixed32`.
    SignedFixed32,
    /// `int32`, `int64`, `uint32`, `uint64`, `bool` and `enum`.
    Varint,
    /// `sint32` and `sint64`.
    Zigzag,
}

impl ProtobufNumber {
    /// The names of the types.
    pub(crate) const WORDS: [&str; 14] = [
        "bool", "double", "enum", "fixed32", "fixed64", "float", "int32", "int64", "sfixed32",
        "sfixed64", "sint32", "sint64", "uint32", "uint64",
    ];

    /// The reading of a type's name.
    pub(crate) fn parse(name: &str) -> Option<ProtobufNumber> {
        Some(match name {
            "bool" | "enum" | "int32" | "int64" | "uint32" | "uint64" => ProtobufNumber::Varint,
            "sint32" | "sint64" => ProtobufNumber::Zigzag,
            "fixed64" | "sfixed64" => ProtobufNumber::Fixed64,
            "double" => ProtobufNumber::Double,
            "fixed32" => ProtobufNumber::Fixed32,
            "sfixed32" => ProtobufNumber::SignedFixed32,
            "float" => ProtobufNumber::Float,
            _ => return None,
        })
    }

    /// The number in a field; `None` for a field of another wire type.
    pub(crate) fn read(self, field: &Field, message: &[u8]) -> Option<i64> {
        let bytes = message.get(field.from..field.to)?;
        let wide = || <[u8; 8]>::try_from(bytes).ok();
        let narrow = || <[u8; 4]>::try_from(bytes).ok();
        match (self, field.wire) {
            (ProtobufNumber::Varint, WireType::Varint) => Some(varint(bytes)?.0 as i64),
            (ProtobufNumber::Zigzag, WireType::Varint) => {
                let number = varint(bytes)?.0;
                Some((number >> 1) as i64 ^ -((number & 1) as i64))
            }
            (ProtobufNumber::Fixed64, WireType::Fixed64) => Some(i64::from_le_bytes(wide()?)),
            (ProtobufNumber::Double, WireType::Fixed64) => {
                Some(truncated(f64::from_le_bytes(wide()?)))
            }
            (ProtobufNumber::Fixed32, WireType::Fixed32) => {
                Some(i64::from(u32::from_le_bytes(narrow()?)))
            }
            (ProtobufNumber::SignedFixed32, WireType::Fixed32) => {
                Some(i64::from(i32::from_le_bytes(narrow()?)))
            }
            (ProtobufNumber::Float, WireType::Fixed32) => {
                let number = truncated(f64::from(f32::from_le_bytes(narrow()?)));
                // HAProxy keeps the low 32 bits.
                Some(i64::from(number as u32))
            }
            _ => None,
        }
    }
}

/// The integer part, as a processor that knows signed integers only gives it of an unsigned one: what
/// has 64 bits is wrapped, and what is no number or below them is the lowest integer.
fn truncated(number: f64) -> i64 {
    /// 2 to the power of 63.
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    let signed = |number: f64| {
        if (-LIMIT..LIMIT).contains(&number) {
            number as i64
        } else {
            i64::MIN
        }
    };
    if number >= LIMIT {
        signed(number - LIMIT) ^ i64::MIN
    } else {
        signed(number)
    }
}

/// The numbers of a dotted path. An empty one is 0, which no field has.
pub(crate) fn parse_path(text: &str) -> Option<Box<[u64]>> {
    if text.is_empty() || text.ends_with('.') {
        return None;
    }
    let number = |part: &str| {
        part.bytes().try_fold(0_u64, |sum, byte| {
            let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
            Some(sum.saturating_mul(10).saturating_add(digit))
        })
    };
    text.split('.').map(number).collect()
}

/// How a field is written.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum WireType {
    Varint,
    Fixed64,
    Delimited,
    Fixed32,
}

/// Where the content of a field stands.
pub(crate) struct Field {
    wire: WireType,
    pub(crate) from: usize,
    pub(crate) to: usize,
}

/// A number of seven bits a byte, and how many bytes it takes. One that is not there is 0.
fn varint(bytes: &[u8]) -> Option<(u64, usize)> {
    /// Bytes that 64 bits take.
    const BYTES_MAX: usize = 10;
    if bytes.is_empty() {
        return Some((0, 0));
    }
    let mut number = 0;
    for (position, byte) in bytes.iter().take(BYTES_MAX).enumerate() {
        number |= u64::from(byte & 0x7f) << (7 * position);
        if byte & 0x80 == 0 {
            return Some((number, position + 1));
        }
    }
    None
}

/// The field that `path` leads to in `message[from..to]`: at each step the first with the number.
pub(crate) fn look_up(message: &[u8], from: usize, to: usize, path: &[u64]) -> Option<Field> {
    let (mut at, mut end) = (from, to);
    let mut path = path.iter().peekable();
    let mut wanted = path.next()?;
    while at < end {
        let (key, length) = varint(&message[at..end])?;
        at += length;
        let (wire, content, next) = content(message, at, end, key & 7)?;
        if key >> 3 != *wanted {
            at = next;
            continue;
        }
        let (from, to) = content;
        match path.next() {
            None => return Some(Field { wire, from, to }),
            Some(_) if wire != WireType::Delimited => return None,
            Some(inner) => (wanted, at, end) = (inner, from, to),
        }
    }
    None
}

/// The wire type of what begins at `at`, its content, and where the next field begins.
fn content(
    message: &[u8],
    at: usize,
    end: usize,
    wire: u64,
) -> Option<(WireType, (usize, usize), usize)> {
    let fixed = |wire, length: usize| {
        let to = at.checked_add(length).filter(|to| *to <= end)?;
        Some((wire, (at, to), to))
    };
    match wire {
        0 => fixed(WireType::Varint, varint(&message[at..end])?.1),
        1 => fixed(WireType::Fixed64, 8),
        2 => {
            let (length, taken) = varint(&message[at..end])?;
            let from = at + taken;
            let to = from.checked_add(usize::try_from(length).ok()?)?;
            (to <= end).then_some((WireType::Delimited, (from, to), to))
        }
        5 => fixed(WireType::Fixed32, 4),
        _ => None,
    }
}
