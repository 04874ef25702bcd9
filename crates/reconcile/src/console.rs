//! What is said of a change, in the form in which HAProxy says it at a start.

use ballast_edit::Refusal;

use crate::request::Applied;

/// How grave a line is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Severity {
    /// It ends the start, or the change.
    Alert,
    /// It should be looked at.
    Warning,
    /// For information.
    Notice,
}

impl Severity {
    fn word(self) -> &'static str {
        match self {
            Self::Alert => "[ALERT]",
            Self::Warning => "[WARNING]",
            Self::Notice => "[NOTICE]",
        }
    }
}

/// A line as it would be said on the console.
pub fn console_line(grade: Severity, text: &str) -> String {
    format!("{:<11}({}) : {text}\n", grade.word(), std::process::id())
}

/// What is said of a reload that nobody waits at a command socket for.
pub fn told(outcome: &Result<Applied, Refusal>) -> (Severity, String) {
    match outcome {
        Ok(applied) if applied.lines.is_empty() => (
            Severity::Notice,
            "Configuration read again: nothing changed.".to_owned(),
        ),
        Ok(applied) => {
            let lines = applied.lines.join("\n  ");
            let notes = applied.notes.trim_end();
            let text = format!(
                "Configuration applied (generation {}):\n  {lines}\n{notes}",
                applied.generation
            );
            (Severity::Notice, text.trim_end().to_owned())
        }
        Err(Refusal(why)) => (
            Severity::Alert,
            format!(
                "Configuration refused, nothing was changed:\n{}",
                why.trim_end()
            ),
        ),
    }
}
