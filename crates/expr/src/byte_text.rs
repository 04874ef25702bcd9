//! Regular expressions of bytes that are held as text.

use std::borrow::Cow;

use ballast_syntax::byte_text::stood_for;
pub use ballast_syntax::byte_text::{bytes_of_text, is_text, path_of_text, text_of_bytes};

/// A regular expression for what `text` stands for: its bytes beyond UTF-8 are written as `\xHH`.
pub(crate) fn expression_of_text(text: &str) -> Cow<'_, str> {
    if is_text(text) {
        return Cow::Borrowed(text);
    }
    let mut expression = String::with_capacity(text.len() + 16);
    let mut is_escaped = false;
    for letter in text.chars() {
        match stood_for(letter) {
            // A byte that follows a backslash stands for itself: that backslash begins `\xHH`.
            Some(byte) => {
                let backslash = if is_escaped { "" } else { "\\" };
                expression.push_str(&format!("{backslash}x{byte:02x}"));
            }
            None => expression.push(letter),
        }
        is_escaped = letter == '\\' && !is_escaped;
    }
    Cow::Owned(expression)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_numbers_in_an_expression() {
        assert_eq!(
            expression_of_text(&text_of_bytes(b"^/alt\xe9$")),
            "^/alt\\xe9$"
        );
        let escaped = text_of_bytes(b"a\\\xe9\\\\\xe9");
        assert_eq!(expression_of_text(&escaped), "a\\xe9\\\\\\xe9");
    }
}
