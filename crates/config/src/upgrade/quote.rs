//! Quotes words so that a configuration reads them literally.

/// A word, quoted if necessary.
pub(super) fn word(text: &str) -> String {
    let is_plain = |c: char| !(c.is_whitespace() || matches!(c, '"' | '\'' | '\\' | '#' | '$'));
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.to_owned();
    }
    if text.contains('\'') {
        let mut out = String::from("\"");
        for c in text.chars() {
            if matches!(c, '"' | '\\' | '$') {
                out.push('\\');
            }
            out.push(c);
        }
        out.push('"');
        return out;
    }
    format!("'{text}'")
}

/// Escapes a text so that a log format reproduces it.
pub(super) fn format(text: &str) -> String {
    word(&text.replace('%', "%%"))
}
