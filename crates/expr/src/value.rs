//! Samples: their types, their values and HAProxy's implicit casts between them.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::number_text::{push_int, push_v4};
use crate::scratch::{SampleText, Scratch};

/// The type of a sample (manual 7.1, and `smp` types of `haproxy -dKsmp`).
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum SampleKind {
    /// Known only when evaluated.
    Any,
    /// A converter that gives back the type it took.
    Same,
    /// Boolean.
    Bool,
    /// Signed 64-bit integer.
    Int,
    /// IPv4 or IPv6.
    Addr,
    /// IPv4.
    Ipv4,
    /// IPv6.
    Ipv6,
    /// Text.
    Str,
    /// Bytes.
    Bin,
    /// HTTP method.
    Meth,
}

impl SampleKind {
    /// The name HAProxy gives the type.
    pub const fn text(self) -> &'static str {
        match self {
            SampleKind::Any => "any",
            SampleKind::Same => "same",
            SampleKind::Bool => "bool",
            SampleKind::Int => "sint",
            SampleKind::Addr => "addr",
            SampleKind::Ipv4 => "ipv4",
            SampleKind::Ipv6 => "ipv6",
            SampleKind::Str => "str",
            SampleKind::Bin => "bin",
            SampleKind::Meth => "meth",
        }
    }

    /// Whether a sample of this type can be turned into `to` (manual 7.3.1 of 3.x, cast matrix).
    pub const fn casts_to(self, to: SampleKind) -> bool {
        use SampleKind::{Addr, Any, Bin, Bool, Int, Ipv4, Ipv6, Meth, Same, Str};
        match (self, to) {
            (Any | Same, _) | (_, Any | Same) => true,
            (Bool, Bool | Int | Str | Bin) => true,
            (Int, Meth) => false,
            (Int, _) => true,
            (Ipv4, Int) => true,
            (Addr | Ipv4, Addr | Ipv4 | Ipv6 | Str | Bin) => true,
            (Ipv6, Addr | Ipv4 | Ipv6 | Str | Bin) => true,
            (Str, _) => true,
            (Bin, Str | Bin | Meth) => true,
            (Meth, Str | Bin | Meth) => true,
            (Bool | Addr | Ipv4 | Ipv6 | Bin | Meth, _) => false,
        }
    }
}

impl fmt::Display for SampleKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

/// A sample as seen by the caller of `eval`: bytes borrow the request or the scratch.
///
/// `repr(C, u8)` puts every content at one aligned place, so that a copy moves whole words: beside
/// addresses, which may stand anywhere, it would be cut where no store ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(C, u8)]
pub enum Value<'a> {
    /// Boolean.
    Bool(bool),
    /// Signed integer.
    Int(i64),
    /// IPv4 address.
    Ipv4(Ipv4Addr),
    /// IPv6 address.
    Ipv6(Ipv6Addr),
    /// Text, in whatever encoding the peer used.
    Str(&'a [u8]),
    /// Bytes.
    Bin(&'a [u8]),
    /// HTTP method.
    Meth(&'a [u8]),
}

impl Value<'_> {
    /// The type of the value.
    pub const fn kind(&self) -> SampleKind {
        match self {
            Value::Bool(_) => SampleKind::Bool,
            Value::Int(_) => SampleKind::Int,
            Value::Ipv4(_) => SampleKind::Ipv4,
            Value::Ipv6(_) => SampleKind::Ipv6,
            Value::Str(_) => SampleKind::Str,
            Value::Bin(_) => SampleKind::Bin,
            Value::Meth(_) => SampleKind::Meth,
        }
    }

    /// Appends the value as text, as HAProxy casts it to a string (binary is appended raw).
    pub fn append_to(&self, out: &mut Vec<u8>) {
        match self {
            Value::Bool(flag) => out.push(b'0' + u8::from(*flag)),
            Value::Int(number) => push_int(out, *number),
            Value::Ipv4(address) => push_v4(out, *address),
            Value::Ipv6(address) => push_v6(out, address),
            Value::Str(bytes) | Value::Bin(bytes) | Value::Meth(bytes) => {
                out.extend_from_slice(bytes);
            }
        }
    }

    /// The value as an integer, when it casts to one.
    pub fn to_int(&self) -> Option<i64> {
        match self {
            Value::Bool(flag) => Some(i64::from(*flag)),
            Value::Int(number) => Some(*number),
            Value::Ipv4(address) => Some(i64::from(u32::from(*address))),
            Value::Str(bytes) => parse_int(bytes),
            Value::Ipv6(_) | Value::Bin(_) | Value::Meth(_) => None,
        }
    }
}

impl Value<'_> {
    /// The value as an address, when it casts to one.
    pub fn to_ip(&self) -> Option<IpAddr> {
        match self {
            Value::Ipv4(address) => Some((*address).into()),
            Value::Ipv6(address) => Some((*address).into()),
            Value::Int(number) => Some(Ipv4Addr::from(*number as u32).into()),
            Value::Str(bytes) => parse_addr(bytes),
            Value::Bool(_) | Value::Bin(_) | Value::Meth(_) => None,
        }
    }
}

/// A sample while it is worked on: its bytes are held elsewhere or kept in the scratch. For its `repr`
/// see [`Value`].
#[derive(Clone, Copy, Debug)]
#[repr(C, u8)]
pub(crate) enum Sample<'f> {
    Bool(bool),
    Int(i64),
    Ipv4(Ipv4Addr),
    Ipv6(Ipv6Addr),
    Str(SampleText<'f>),
    Bin(SampleText<'f>),
    Meth(SampleText<'f>),
}

impl<'f> Sample<'f> {
    pub(crate) const fn str(bytes: &'f [u8]) -> Sample<'f> {
        Sample::Str(SampleText::Held(bytes))
    }

    pub(crate) const fn bin(bytes: &'f [u8]) -> Sample<'f> {
        Sample::Bin(SampleText::Held(bytes))
    }

    pub(crate) const fn meth(token: &'f [u8]) -> Sample<'f> {
        Sample::Meth(SampleText::Held(token))
    }

    pub(crate) fn ip(address: IpAddr) -> Sample<'f> {
        match address {
            IpAddr::V4(v4) => Sample::Ipv4(v4),
            IpAddr::V6(v6) => Sample::Ipv6(v6),
        }
    }

    pub(crate) fn from_value(value: Value<'f>) -> Sample<'f> {
        match value {
            Value::Bool(flag) => Sample::Bool(flag),
            Value::Int(number) => Sample::Int(number),
            Value::Ipv4(address) => Sample::Ipv4(address),
            Value::Ipv6(address) => Sample::Ipv6(address),
            Value::Str(bytes) => Sample::Str(SampleText::Held(bytes)),
            Value::Bin(bytes) => Sample::Bin(SampleText::Held(bytes)),
            Value::Meth(bytes) => Sample::Meth(SampleText::Held(bytes)),
        }
    }

    pub(crate) fn value<'a>(&self, scratch: &'a Scratch) -> Value<'a>
    where
        'f: 'a,
    {
        match self {
            Sample::Bool(flag) => Value::Bool(*flag),
            Sample::Int(number) => Value::Int(*number),
            Sample::Ipv4(address) => Value::Ipv4(*address),
            Sample::Ipv6(address) => Value::Ipv6(*address),
            Sample::Str(text) => Value::Str(scratch.bytes(*text)),
            Sample::Bin(text) => Value::Bin(scratch.bytes(*text)),
            Sample::Meth(text) => Value::Meth(scratch.bytes(*text)),
        }
    }

    /// Whether the sample has the type `kind`, or any will do, so that a cast changes nothing.
    #[inline]
    pub(crate) fn is_kind(&self, kind: SampleKind) -> bool {
        match kind {
            SampleKind::Any | SampleKind::Same => true,
            SampleKind::Bool => matches!(self, Sample::Bool(_)),
            SampleKind::Int => matches!(self, Sample::Int(_)),
            SampleKind::Addr => matches!(self, Sample::Ipv4(_) | Sample::Ipv6(_)),
            SampleKind::Ipv4 => matches!(self, Sample::Ipv4(_)),
            SampleKind::Ipv6 => matches!(self, Sample::Ipv6(_)),
            SampleKind::Str => matches!(self, Sample::Str(_)),
            SampleKind::Bin => matches!(self, Sample::Bin(_)),
            SampleKind::Meth => matches!(self, Sample::Meth(_)),
        }
    }

    /// HAProxy's implicit cast to `to`; `None` when the contents do not allow it.
    #[inline]
    pub(crate) fn cast(&self, to: SampleKind, scratch: &mut Scratch) -> Option<Sample<'f>> {
        if self.is_kind(to) {
            return Some(*self);
        }
        self.cast_to_another(to, scratch)
    }

    fn cast_to_another(&self, to: SampleKind, scratch: &mut Scratch) -> Option<Sample<'f>> {
        let done = match (*self, to) {
            (Sample::Bool(flag), SampleKind::Int) => Sample::Int(i64::from(flag)),
            (Sample::Bool(flag), SampleKind::Bin) => {
                Sample::Bin(scratch.keep(&i64::from(flag).to_be_bytes()))
            }
            (Sample::Int(number), SampleKind::Bool) => Sample::Bool(number != 0),
            (Sample::Int(number), SampleKind::Ipv4 | SampleKind::Addr) => {
                Sample::Ipv4(Ipv4Addr::from(number as u32))
            }
            (Sample::Int(number), SampleKind::Ipv6) => {
                Sample::Ipv6(Ipv4Addr::from(number as u32).to_ipv6_mapped())
            }
            (Sample::Int(number), SampleKind::Bin) => {
                Sample::Bin(scratch.keep(&number.to_be_bytes()))
            }
            (Sample::Ipv4(address), SampleKind::Int) => Sample::Int(i64::from(u32::from(address))),
            (Sample::Ipv4(address), SampleKind::Ipv6) => Sample::Ipv6(address.to_ipv6_mapped()),
            (Sample::Ipv4(address), SampleKind::Bin) => {
                Sample::Bin(scratch.keep(&address.octets()))
            }
            (Sample::Ipv6(address), SampleKind::Bin) => {
                Sample::Bin(scratch.keep(&address.octets()))
            }
            (Sample::Ipv6(address), SampleKind::Ipv4) => Sample::Ipv4(v6_to_v4(&address)?),
            (
                Sample::Bool(_) | Sample::Int(_) | Sample::Ipv4(_) | Sample::Ipv6(_),
                SampleKind::Str,
            ) => {
                let mut out = scratch.open();
                self.value(scratch).append_to(&mut out);
                Sample::Str(scratch.close(out))
            }
            (Sample::Str(text), _) => cast_text(text, to, scratch)?,
            // A text ends at a NUL.
            (Sample::Bin(text), SampleKind::Str) => match memchr::memchr(0, scratch.bytes(text)) {
                Some(end) => Sample::Str(scratch.part(text, 0, end)),
                None => Sample::Str(text),
            },
            (Sample::Meth(text), SampleKind::Str) => Sample::Str(text),
            (Sample::Bin(text), SampleKind::Meth) => Sample::Meth(text),
            (Sample::Meth(text), SampleKind::Bin) => Sample::Bin(text),
            _ => return None,
        };
        Some(done)
    }
}

fn cast_text<'f>(text: SampleText<'f>, to: SampleKind, scratch: &Scratch) -> Option<Sample<'f>> {
    let bytes = scratch.bytes(text);
    Some(match to {
        SampleKind::Int => Sample::Int(parse_int(bytes)?),
        SampleKind::Bool => Sample::Bool(parse_int(bytes)? != 0),
        SampleKind::Addr => match leading_v4(bytes) {
            Some(v4) => Sample::Ipv4(v4),
            None => Sample::ip(parse_addr(bytes)?),
        },
        SampleKind::Ipv4 => Sample::Ipv4(leading_v4(bytes)?),
        SampleKind::Ipv6 => match parse_addr(bytes)? {
            IpAddr::V4(_) => return None,
            IpAddr::V6(v6) => Sample::Ipv6(v6),
        },
        SampleKind::Bin => Sample::Bin(text),
        SampleKind::Meth => Sample::Meth(text),
        SampleKind::Str | SampleKind::Any | SampleKind::Same => Sample::Str(text),
    })
}

/// An IPv6 address that stands for an IPv4 one: `::ffff:a.b.c.d`, `::a.b.c.d`, `2002:ab:cd::`.
pub(crate) fn v6_to_v4(address: &Ipv6Addr) -> Option<Ipv4Addr> {
    let o = address.octets();
    let zeros = |range: std::ops::Range<usize>| o[range].iter().all(|byte| *byte == 0);
    if o[0] == 0x20 && o[1] == 0x02 {
        return Some(Ipv4Addr::new(o[2], o[3], o[4], o[5]));
    }
    if zeros(0..10) && ((o[10] == 0xff && o[11] == 0xff) || (o[10] == 0 && o[11] == 0)) {
        return Some(Ipv4Addr::new(o[12], o[13], o[14], o[15]));
    }
    None
}

/// The leading decimal integer of `bytes` as the samples of numbers in fields, cookies and
/// parameters have it (`hdr_val`): 0 where there is none, with a `+` before it, or beyond 64 bits.
pub(crate) fn parse_val(bytes: &[u8]) -> i64 {
    let unsigned = bytes.strip_prefix(b"-");
    let negative = unsigned.is_some();
    let digits = unsigned.unwrap_or(bytes).iter();
    let mut digits = digits.take_while(|byte| byte.is_ascii_digit());
    let number = digits.try_fold(0_i64, |number, byte| {
        let digit = i64::from(byte - b'0');
        let tens = number.checked_mul(10)?;
        match negative {
            true => tens.checked_sub(digit),
            false => tens.checked_add(digit),
        }
    });
    number.unwrap_or(0)
}

/// The leading decimal integer of `bytes` the way HAProxy casts a string: a sign, then digits,
/// stopping at the first other byte; hexadecimal after `0x`.
pub(crate) fn parse_int(bytes: &[u8]) -> Option<i64> {
    let (negative, digits) = match bytes.first()? {
        b'-' => (true, &bytes[1..]),
        b'+' => (false, &bytes[1..]),
        _ => (false, bytes),
    };
    let mut magnitude: i64 = 0;
    for byte in digits {
        if !byte.is_ascii_digit() {
            break;
        }
        let digit = i64::from(byte - b'0');
        let sum = magnitude.checked_mul(10).and_then(|m| {
            if negative {
                m.checked_sub(digit)
            } else {
                m.checked_add(digit)
            }
        });
        match sum {
            Some(sum) => magnitude = sum,
            None => return Some(if negative { i64::MIN } else { i64::MAX }),
        }
    }
    Some(magnitude)
}

/// The IPv4 address that `bytes` begin with; what follows its fourth number, but for a dot, is no
/// part of it.
fn leading_v4(bytes: &[u8]) -> Option<Ipv4Addr> {
    let mut octets = [0; 4];
    let mut rest = bytes;
    for (position, octet) in octets.iter_mut().enumerate() {
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let number = std::str::from_utf8(&rest[..digits]).ok()?;
        *octet = number.parse().ok()?;
        rest = match (position, &rest[digits..]) {
            (3, [b'.', ..]) => return None,
            (3, rest) => rest,
            (_, [b'.', rest @ ..]) => rest,
            _ => return None,
        };
    }
    Some(Ipv4Addr::from(octets))
}

/// An address written in full. As in HAProxy, numbers of an IPv4 address may begin with zeros, and
/// are decimal all the same: a rule about `127.0.0.1` cannot be passed by `127.0.0.01`.
pub(crate) fn parse_addr(bytes: &[u8]) -> Option<IpAddr> {
    let is_v4 = |byte: &u8| byte.is_ascii_digit() || *byte == b'.';
    if bytes.iter().all(is_v4) {
        return leading_v4(bytes).map(IpAddr::V4);
    }
    std::str::from_utf8(bytes).ok()?.parse().ok()
}

/// Writes an address as `inet_ntop(3)` does, which shows IPv4 ones within zeros as such.
pub(crate) fn push_v6(out: &mut Vec<u8>, address: &Ipv6Addr) {
    let octets = address.octets();
    let within_zeros = octets[..12].iter().all(|byte| *byte == 0);
    if within_zeros && (octets[12] != 0 || octets[13] != 0) {
        out.extend_from_slice(b"::");
        push_v4(
            out,
            Ipv4Addr::new(octets[12], octets[13], octets[14], octets[15]),
        );
    } else {
        push_display(out, address);
    }
}

pub(crate) fn push_display(out: &mut Vec<u8>, shown: &impl fmt::Display) {
    use std::io::Write as _;
    // Writing to a Vec cannot fail.
    let _ = write!(out, "{shown}");
}
