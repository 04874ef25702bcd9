//! DER, as far as signatures, private keys, and OCSP requests and responses need it: elements inside of
//! elements (X.690, 8.1).

const SEQUENCE: u8 = 0x30;
const BIT_STRING: u8 = 0x03;
const GENERALIZED_TIME: u8 = 0x18;

/// One element.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Element<'a> {
    pub(crate) tag: u8,
    pub(crate) content: &'a [u8],
    /// With tag and length.
    pub(crate) whole: &'a [u8],
    /// What follows it.
    pub(crate) rest: &'a [u8],
}

/// The first element; lengths of up to three bytes.
pub(crate) fn element(der: &[u8]) -> Option<Element<'_>> {
    let [tag, first, ..] = der else {
        return None;
    };
    let (header, length) = match first {
        0..=0x7f => (2, usize::from(*first)),
        0x81..=0x83 => {
            let count = usize::from(first & 0x7f);
            let bytes = der.get(2..2 + count)?;
            let length = bytes
                .iter()
                .fold(0, |length, byte| length << 8 | usize::from(*byte));
            (2 + count, length)
        }
        _ => return None,
    };
    let (whole, rest) = der.split_at_checked(header + length)?;
    Some(Element {
        tag: *tag,
        content: &whole[header..],
        whole,
        rest,
    })
}

/// The first element, if it has this tag.
pub(crate) fn element_with_tag(der: &[u8], tag: u8) -> Option<Element<'_>> {
    element(der).filter(|found| found.tag == tag)
}

/// The first element, if it is a sequence.
pub(crate) fn sequence(der: &[u8]) -> Option<Element<'_>> {
    element_with_tag(der, SEQUENCE)
}

/// The bits of a bit string of whole bytes.
pub(crate) fn bits(der: &[u8]) -> Option<&[u8]> {
    match element_with_tag(der, BIT_STRING)?.content {
        [0, bits @ ..] => Some(bits),
        _ => None,
    }
}

/// A time in seconds since 1970: `20261122143000Z` (RFC 5280, 4.1.2.5.2).
pub(crate) fn generalized_time(der: &[u8]) -> Option<i64> {
    let text = std::str::from_utf8(element_with_tag(der, GENERALIZED_TIME)?.content).ok()?;
    let digits = text.strip_suffix('Z')?;
    if digits.len() != 14 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let number = |from: usize, to: usize| digits[from..to].parse::<i64>().ok();
    let (year, month, day) = (number(0, 4)?, number(4, 6)?, number(6, 8)?);
    if !(1..=12).contains(&month) {
        return None;
    }
    // Years begin in March, so that the leap day ends one.
    let (year, month) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    let days = year * 365 + year / 4 - year / 100 + year / 400 + (month * 153 + 2) / 5 + day - 1;
    let seconds = number(8, 10)? * 3_600 + number(10, 12)? * 60 + number(12, 14)?;
    Some((days - 719_468) * 86_400 + seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_taken_apart() {
        let der = [0x30, 0x81, 0x03, 0x03, 0x01, 0x00, 0xff];
        let found = sequence(&der).expect("a sequence");
        assert_eq!((found.content, found.rest), (&[3, 1, 0][..], &[0xff][..]));
        assert_eq!(bits(found.content), Some(&[][..]));
        assert!(element(&[0x30, 0x80]).is_none() && element(&[0x30, 2, 0]).is_none());
    }

    #[test]
    fn times_are_seconds() {
        let time = |text: &str| {
            let length = u8::try_from(text.len()).expect("short");
            generalized_time(&[&[GENERALIZED_TIME, length], text.as_bytes()].concat())
        };
        assert_eq!(time("19700101000000Z"), Some(0));
        assert_eq!(time("20000229120000Z"), Some(951_825_600));
        assert_eq!(time("20261122143000Z"), Some(1_795_357_800));
        assert_eq!(time("20261322143000Z"), None);
        assert_eq!(time("202611221430Z"), None);
    }
}
