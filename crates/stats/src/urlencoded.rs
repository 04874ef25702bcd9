//! Texts in queries and forms (`application/x-www-form-urlencoded`).

/// A form's value (`application/x-www-form-urlencoded`); what is no UTF-8 is replaced.
pub(crate) fn decoded(value: &[u8]) -> String {
    let mut bytes = Vec::with_capacity(value.len());
    let mut rest = value;
    while let Some((&first, after)) = rest.split_first() {
        rest = after;
        let digit = |index: usize| {
            let letter = after.get(index).copied().map(char::from);
            letter.and_then(|letter| letter.to_digit(16))
        };
        match (first, digit(0), digit(1)) {
            (b'+', _, _) => bytes.push(b' '),
            (b'%', Some(high), Some(low)) => {
                bytes.push(u8::try_from(high * 16 + low).unwrap_or(b'?'));
                rest = &after[2..];
            }
            _ => bytes.push(first),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// A text as part of a query.
pub(crate) fn url_encoded(text: &str) -> String {
    let mut coded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                coded.push(char::from(byte));
            }
            _ => coded.push_str(&format!("%{byte:02X}")),
        }
    }
    coded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_forms_are_decoded() {
        assert_eq!(decoded(b"%23a+b%2"), "#a b%2");
        assert_eq!(decoded(&[0xff]), "\u{fffd}");
        assert_eq!(url_encoded("a b<"), "a%20b%3C");
    }
}
