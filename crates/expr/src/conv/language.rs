//! The choice of a language from `Accept-Language`, manual 7.3.1.

use crate::args::ArgKind::Text;
use crate::args::{Arg, bytes_arg};
use crate::conv::{Converter, args, row, text_of};
use crate::evaluation::Evaluation;
use crate::value::{Sample, SampleKind};

/// The rows of this family.
#[rustfmt::skip] // What belongs together stands on one line.
pub(super) const ROWS: &[Converter] = &[
    row("language", args(1, &[Text, Text]), SampleKind::Str, SampleKind::Str)
        .examples("language(en;fr,de)", "language(en,fr,de)")
        .implemented("the language of a list that the client prefers", language),
];

/// The weight of a value without one, in thousandths.
const WEIGHT_MAX: u32 = 1000;

fn language<'f>(
    cx: &mut Evaluation<'f, '_>,
    args: &'f [Arg],
    input: Sample<'f>,
) -> Option<Sample<'f>> {
    let offered = bytes_arg(args, 0);
    let header = cx.scratch.bytes(text_of(input)?);
    let mut best: Option<(u32, &'f [u8])> = None;
    for value in header.split(|byte| *byte == b',') {
        let mut parts = value.splitn(2, |byte| *byte == b';');
        let name = parts.next().unwrap_or_default().trim_ascii();
        let weight = parts.next().map_or(WEIGHT_MAX, weight);
        if name.is_empty() || best.is_some_and(|(other, _)| other >= weight) || weight == 0 {
            continue;
        }
        if let Some(found) = known(name, offered) {
            best = Some((weight, found));
        }
    }
    if let Some((_, found)) = best {
        return Some(Sample::str(found));
    }
    let default = args.get(1).filter(|arg| !arg.is_absent())?;
    Some(Sample::str(default.text.as_bytes()))
}

/// The language offered for `name`: itself, or the one it is a variant of.
fn known<'o>(name: &[u8], offered: &'o [u8]) -> Option<&'o [u8]> {
    let find = |wanted: &[u8]| {
        let mut all = offered.split(|byte| *byte == b';');
        all.find(|one| *one == wanted && !one.is_empty())
    };
    // `de-CH-1996` is looked for as such, as `de-CH`, and as `de`.
    let mut name = name;
    loop {
        if let Some(found) = find(name) {
            return Some(found);
        }
        name = &name[..memchr::memrchr(b'-', name)?];
    }
}

/// The weight that the parameters of a value give it, in thousandths (RFC 9110 section 12.4.2).
fn weight(parameters: &[u8]) -> u32 {
    let Some(rest) = parameters.trim_ascii_start().strip_prefix(b"q") else {
        return WEIGHT_MAX;
    };
    let Some(digits) = rest.trim_ascii_start().strip_prefix(b"=") else {
        return WEIGHT_MAX;
    };
    match digits.trim_ascii_start() {
        [b'0', b'.', rest @ ..] => {
            let mut scale = 100;
            let mut sum = 0;
            for byte in rest.iter().take(3).take_while(|byte| byte.is_ascii_digit()) {
                sum += u32::from(byte - b'0') * scale;
                scale /= 10;
            }
            sum
        }
        [b'0', ..] => 0,
        _ => WEIGHT_MAX,
    }
}
