//! Messages about a change, in the form of HAProxy's messages at a start.

use ballast_edit::Refusal;

use crate::request::ChangeReport;

/// The severity of a line.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Severity {
    /// The start or the change fails.
    Alert,
    /// An operator should look at it.
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

/// A line in the form of the console.
pub fn console_line(severity: Severity, text: &str) -> String {
    format!("{:<11}({}) : {text}\n", severity.word(), std::process::id())
}

/// The message about a reload that no command waits for.
pub fn reload_message(outcome: &Result<ChangeReport, Refusal>) -> (Severity, String) {
    match outcome {
        Ok(report) if report.lines.is_empty() => (
            Severity::Notice,
            "Configuration read again: nothing changed.".to_owned(),
        ),
        Ok(report) => {
            let lines = report.lines.join("\n  ");
            let notes = report.notes.trim_end();
            let text = format!(
                "Configuration applied (generation {}):\n  {lines}\n{notes}",
                report.generation
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
