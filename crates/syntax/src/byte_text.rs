//! Bytes as text, without a loss.
//!
//! Words and entries of lists are held as text, and what a client sends, or a file holds, may be any bytes. A byte
//! that is not part of UTF-8 stands as a character of its own, at the end of the last private plane:
//! U+10FF80 for 0x80 up to U+10FFFF for 0xff. These characters themselves, which nobody uses, are
//! taken for such bytes, so that no two byte strings have one text.

use std::borrow::Cow;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::PathBuf;

/// The character of a byte is this and the byte.
const BASE: u32 = 0x0010_FF00;
/// The first byte of the UTF-8 of these characters.
const LEAD: u8 = 0xf4;

fn char_of(byte: u8) -> char {
    char::from_u32(BASE | u32::from(byte)).expect("below the last character")
}

/// The byte that a character stands for, if it is one of these.
#[must_use]
pub fn stood_for(letter: char) -> Option<u8> {
    let code = u32::from(letter);
    (code & !0x7f == BASE | 0x80).then_some((code & 0xff) as u8)
}

/// The text of any bytes; valid UTF-8 is itself.
#[must_use]
pub fn text_of_bytes(bytes: &[u8]) -> Cow<'_, str> {
    if let Ok(text) = std::str::from_utf8(bytes)
        && is_text(text)
    {
        return Cow::Borrowed(text);
    }
    let mut text = String::with_capacity(bytes.len() + 16);
    for chunk in bytes.utf8_chunks() {
        for letter in chunk.valid().chars() {
            match stood_for(letter) {
                Some(_) => {
                    let mut utf8 = [0; 4];
                    let utf8 = letter.encode_utf8(&mut utf8).bytes();
                    text.extend(utf8.map(char_of));
                }
                None => text.push(letter),
            }
        }
        text.extend(chunk.invalid().iter().copied().map(char_of));
    }
    Cow::Owned(text)
}

/// Whether no byte stands in it that is not UTF-8.
#[must_use]
pub fn is_text(text: &str) -> bool {
    memchr::memchr(LEAD, text.as_bytes()).is_none()
        || !text.contains(|letter| stood_for(letter).is_some())
}

/// The bytes of which [`text_of_bytes`] made a text.
#[must_use]
pub fn bytes_of_text(text: &str) -> Cow<'_, [u8]> {
    if memchr::memchr(LEAD, text.as_bytes()).is_none() {
        return Cow::Borrowed(text.as_bytes());
    }
    let mut bytes = Vec::with_capacity(text.len());
    for letter in text.chars() {
        match stood_for(letter) {
            Some(byte) => bytes.push(byte),
            None => bytes.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    Cow::Owned(bytes)
}

/// The path that a text stands for.
#[must_use]
pub fn path_of_text(text: &str) -> PathBuf {
    OsString::from_vec(bytes_of_text(text).into_owned()).into()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn text_is_itself_and_other_bytes_stand_apart() {
        assert!(matches!(
            text_of_bytes("/é\u{10ffff}".as_bytes()),
            Cow::Owned(_)
        ));
        assert!(matches!(
            text_of_bytes("/é".as_bytes()),
            Cow::Borrowed("/é")
        ));
        assert_eq!(text_of_bytes(b"/alt\xe9"), "/alt\u{10ffe9}");
        assert_ne!(text_of_bytes(b"\xff"), text_of_bytes(b"\xfe"));
    }

    proptest! {
        #[test]
        fn bytes_come_back(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            let text = text_of_bytes(&bytes);
            prop_assert_eq!(&*bytes_of_text(&text), &bytes[..]);
        }

        #[test]
        fn so_do_characters(text in "[a\u{7ff}\u{10ff7f}-\u{10ffff}]{0,8}") {
            let again = text_of_bytes(text.as_bytes());
            prop_assert_eq!(&*bytes_of_text(&again), text.as_bytes());
        }
    }
}
