//! Answers as objects (`set output json`), our own: a program need not guess from its words
//! whether a command was done.

use std::fmt::Write as _;

use ballast_stats::escape_json;

use crate::answer::AnswerSeverity;

/// An answer up to its text: what follows is escaped, then [`END`].
pub(crate) fn begin(is_done: bool, severity: AnswerSeverity, command: &str, field: &str) -> String {
    let status = if is_done { "ok" } else { "error" };
    let mut text = format!(
        "{{\"status\":\"{status}\",\"severity\":\"{}\",\"command\":\"",
        severity.word()
    );
    escape_json(command, &mut text);
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
        let mut text = begin(false, AnswerSeverity::Error, "a \"b\"", "message");
        escape_json("x\"\\\n\u{1}é", &mut text);
        text.push_str(END);
        assert_eq!(
            text,
            "{\"status\":\"error\",\"severity\":\"err\",\"command\":\"a \\\"b\\\"\",\
             \"message\":\"x\\\"\\\\\\n\\u0001é\"}\n\n"
        );
    }
}
