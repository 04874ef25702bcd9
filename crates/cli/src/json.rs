//! Answers as objects (`set output json`), our own: a program need not guess from its words
//! whether a command was done.

use std::fmt::Write as _;

use crate::answer::Severity;

/// Appends a text as a JSON string, without its quotes.
pub(crate) fn escape(text: &str, into: &mut String) {
    for letter in text.chars() {
        match letter {
            '"' => into.push_str("\\\""),
            '\\' => into.push_str("\\\\"),
            '\n' => into.push_str("\\n"),
            '\r' => into.push_str("\\r"),
            '\t' => into.push_str("\\t"),
            control if control < ' ' => {
                let _ = write!(into, "\\u{:04x}", u32::from(control));
            }
            other => into.push(other),
        }
    }
}

/// An answer up to its text: what follows is escaped, then [`END`].
pub(crate) fn begin(is_done: bool, severity: Severity, command: &str, field: &str) -> String {
    let status = if is_done { "ok" } else { "error" };
    let mut text = format!(
        "{{\"status\":\"{status}\",\"severity\":\"{}\",\"command\":\"",
        severity.word()
    );
    escape(command, &mut text);
    let _ = write!(text, "\",\"{field}\":\"");
    text
}

/// What follows the text of an answer.
pub(crate) const END: &str = "\"}\n\n";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_cannot_end_their_string() {
        let mut text = begin(false, Severity::Error, "a \"b\"", "message");
        escape("x\"\\\n\u{1}é", &mut text);
        text.push_str(END);
        assert_eq!(
            text,
            "{\"status\":\"error\",\"severity\":\"err\",\"command\":\"a \\\"b\\\"\",\
             \"message\":\"x\\\"\\\\\\n\\u0001é\"}\n\n"
        );
    }
}
