//! Short texts, eight bytes at a time: a loop over words is faster there than what is made for long
//! ones, such as [`memchr`].

/// Up to this length a loop over words is faster.
pub(crate) const SHORT_TEXT_BYTES: usize = 48;

const LOW_BIT_OF_EACH_BYTE: u64 = u64::MAX / 255;
const HIGH_BIT_OF_EACH_BYTE: u64 = LOW_BIT_OF_EACH_BYTE << 7;

/// Whether one of the `wanted` bytes is in a short text.
#[inline]
pub(crate) fn contains_any<const N: usize>(bytes: &[u8], wanted: [u8; N]) -> bool {
    let Some(last) = bytes.last_chunk::<8>() else {
        return bytes.iter().any(|byte| wanted.contains(byte));
    };
    let (words, _) = bytes.as_chunks::<8>();
    // The last word has bytes of the one before it: better twice than one by one.
    let mut words = words.iter().chain(std::iter::once(last));
    words.any(|word| word_contains_any(u64::from_ne_bytes(*word), wanted))
}

/// Whether a byte of a text is a space, a control character, or one of the `wanted`: what ends a word of
/// a head.
#[inline]
pub(crate) fn contains_blank_or<const N: usize>(bytes: &[u8], wanted: [u8; N]) -> bool {
    let is_blank = |byte: u8| byte <= b' ' || byte == 0x7f;
    let Some(last) = bytes.last_chunk::<8>() else {
        return bytes
            .iter()
            .any(|byte| is_blank(*byte) || wanted.contains(byte));
    };
    // The high bit of a byte is set when the byte is below the one after the space. It may be of one
    // after such a byte, too: the answer is the same.
    let below = |word: u64| word.wrapping_sub(LOW_BIT_OF_EACH_BYTE * 0x21) & !word;
    let is_found = |word: &[u8; 8]| {
        let word = u64::from_ne_bytes(*word);
        below(word) & HIGH_BIT_OF_EACH_BYTE != 0
            || word_contains_any(word, [0x7f])
            || word_contains_any(word, wanted)
    };
    let (words, _) = bytes.as_chunks::<8>();
    words.iter().any(is_found) || is_found(last)
}

/// The position of the first such byte.
#[inline]
pub(crate) fn position_of(bytes: &[u8], byte: u8) -> Option<usize> {
    if bytes.len() > SHORT_TEXT_BYTES {
        return memchr::memchr(byte, bytes);
    }
    bytes.iter().position(|other| *other == byte)
}

#[inline]
fn word_contains_any<const N: usize>(word: u64, wanted: [u8; N]) -> bool {
    // Of a byte that is zero the high bit is set. It may be of one before such a byte, too: the
    // answer is the same.
    let zeros = |word: u64| word.wrapping_sub(LOW_BIT_OF_EACH_BYTE) & !word;
    let found = wanted.map(|byte| zeros(word ^ (LOW_BIT_OF_EACH_BYTE * u64::from(byte))));
    found.iter().fold(0, |any, one| any | one) & HIGH_BIT_OF_EACH_BYTE != 0
}

/// Whether two texts are equal. Names are short: they are compared without a call.
#[inline]
pub(crate) fn is_equal(one: &[u8], other: &[u8]) -> bool {
    // Two words, which overlap where both have less than twice as many bytes.
    fn ends_are_equal<const N: usize>(one: &[u8], other: &[u8]) -> bool {
        one.first_chunk::<N>() == other.first_chunk::<N>()
            && one.last_chunk::<N>() == other.last_chunk::<N>()
    }
    one.len() == other.len()
        && match one.len() {
            8..=16 => ends_are_equal::<8>(one, other),
            4..8 => ends_are_equal::<4>(one, other),
            _ => one == other,
        }
}

/// Converts ASCII letters to lower case, a word at a time: names are too short for wider registers
/// to pay off.
#[inline]
pub(crate) fn make_lower(bytes: &mut [u8]) {
    let len = bytes.len();
    let mut at = 0;
    while let Some(word) = bytes.get_mut(at..).and_then(<[u8]>::first_chunk_mut::<8>) {
        *word = lower_word(*word);
        at += 8;
    }
    if at < len {
        // The last word again, from its end: letters that are lower case already stay so.
        match bytes.last_chunk_mut::<8>() {
            Some(word) => *word = lower_word(*word),
            None => bytes.make_ascii_lowercase(),
        }
    }
}

#[inline]
fn lower_word(word: [u8; 8]) -> [u8; 8] {
    let word = u64::from_ne_bytes(word);
    let low = word & !HIGH_BIT_OF_EACH_BYTE;
    // The top bit of each byte means "at least `A`", and "past `Z`".
    let from_a = low + LOW_BIT_OF_EACH_BYTE * (0x80 - b'A' as u64);
    let past_z = low + LOW_BIT_OF_EACH_BYTE * (0x7f - b'Z' as u64);
    let upper = from_a & !past_z & !word & HIGH_BIT_OF_EACH_BYTE;
    (word | (upper >> 2)).to_ne_bytes()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn texts_are_equal_where_all_their_bytes_are(
            one in proptest::collection::vec(any::<u8>(), 0..24),
            at in any::<prop::sample::Index>(),
            shorter in 1_usize..24,
        ) {
            prop_assert!(is_equal(&one, &one.clone()));
            if !one.is_empty() {
                let mut other = one.clone();
                other[at.index(one.len())] ^= 1;
                prop_assert!(!is_equal(&one, &other));
                let shorter = one.len().saturating_sub(shorter);
                prop_assert!(!is_equal(&one, &one[..shorter]));
            }
        }

        #[test]
        fn it_finds_what_a_loop_finds(
            mut bytes in proptest::collection::vec(0_u8..255, 0..40),
            near in proptest::collection::vec((any::<prop::sample::Index>(), 9_u8..15), 0..3),
        ) {
            for (at, byte) in near {
                if !bytes.is_empty() {
                    let at = at.index(bytes.len());
                    bytes[at] = byte;
                }
            }
            let wanted = [0, b'\r', b'\n'];
            let expected = bytes.iter().any(|byte| wanted.contains(byte));
            prop_assert_eq!(contains_any(&bytes, wanted), expected);
        }

        #[test]
        fn it_finds_blanks(
            mut bytes in proptest::collection::vec(prop_oneof![0x21_u8..0x7f, 0x80_u8..=255], 0..40),
            odd in proptest::option::of((
                any::<prop::sample::Index>(),
                prop_oneof![Just(0x7f), Just(b':'), 0_u8..0x24, any::<u8>()],
            )),
        ) {
            if let Some((at, byte)) = odd && !bytes.is_empty() {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
            let is_blank = |byte: &u8| *byte <= b' ' || *byte == 0x7f;
            prop_assert_eq!(contains_blank_or(&bytes, []), bytes.iter().any(is_blank));
            let is_found = |byte: &u8| is_blank(byte) || *byte == b':';
            prop_assert_eq!(contains_blank_or(&bytes, [b':']), bytes.iter().any(is_found));
        }

        #[test]
        fn it_finds_the_first(
            bytes in proptest::collection::vec(b'a'..b'f', 0..80),
        ) {
            let expected = bytes.iter().position(|byte| *byte == b'c');
            prop_assert_eq!(position_of(&bytes, b'c'), expected);
        }
    }
}
