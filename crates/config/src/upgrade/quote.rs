//! Words written so that a configuration reads them as they are.

/// A word between quotes where it needs them.
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

/// A text that a log format gives back as it is.
pub(super) fn format(text: &str) -> String {
    word(&text.replace('%', "%%"))
}
