//! The common name of a certificate's subject: the one field of X.509 that an answer shows.

/// A part of a certificate in DER: its type and its content.
struct Element<'a> {
    tag: u8,
    content: &'a [u8],
}

const OID: u8 = 0x06;
const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
/// The version, which may be missing.
const CONTEXT_0: u8 = 0xa0;
/// 2.5.4.3.
const COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];

/// The common name of the subject (RFC 5280 section 4.1), if it has one.
pub(crate) fn common_name(certificate: &[u8]) -> Option<String> {
    let (certificate, _) = element(certificate, SEQUENCE)?;
    let (fields, _) = element(certificate.content, SEQUENCE)?;
    let mut rest = fields.content;
    if let Some((_, after)) = element(rest, CONTEXT_0) {
        rest = after;
    }
    // Serial number, algorithm, issuer, validity.
    for _ in 0..4 {
        rest = any(rest)?.1;
    }
    let (subject, _) = element(rest, SEQUENCE)?;
    let mut parts = subject.content;
    while let Some((part, after)) = element(parts, SET) {
        let (pair, _) = element(part.content, SEQUENCE)?;
        let (oid, value) = element(pair.content, OID)?;
        if oid.content == COMMON_NAME {
            let (value, _) = any(value)?;
            return Some(String::from_utf8_lossy(value.content).into_owned());
        }
        parts = after;
    }
    None
}

/// The first element, when it is of this type, and what follows it.
fn element(bytes: &[u8], tag: u8) -> Option<(Element<'_>, &[u8])> {
    any(bytes).filter(|(element, _)| element.tag == tag)
}

/// The first element, and what follows it.
fn any(bytes: &[u8]) -> Option<(Element<'_>, &[u8])> {
    let (&tag, rest) = bytes.split_first()?;
    let (&first, rest) = rest.split_first()?;
    let (length, rest) = if first < 0x80 {
        (usize::from(first), rest)
    } else {
        let (digits, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
        let length = digits.iter().try_fold(0usize, |sum, digit| {
            Some(sum.checked_mul(256)? + usize::from(*digit))
        })?;
        (length, rest)
    };
    let (content, rest) = rest.split_at_checked(length)?;
    Some((Element { tag, content }, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_certificate_has_no_name() {
        let short = [SEQUENCE, 4, SEQUENCE, 2, 2, 0];
        for bytes in [
            &b""[..],
            b"x",
            &short,
            &[SEQUENCE, 0x84, 255, 255, 255, 255],
        ] {
            assert_eq!(common_name(bytes), None);
        }
    }

    #[test]
    fn lengths_have_two_forms() {
        let long = [&[OID, 0x81, 200][..], &[7; 201]].concat();
        let (element, rest) = element(&long, OID).unwrap();
        assert_eq!((element.content.len(), rest), (200, &[7][..]));
    }
}
