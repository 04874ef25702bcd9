//! Messages about a change, in the form of HAProxy's messages at a start.

use ballast_edit::Refusal;
use ballast_syntax::Severity;

use crate::request::ChangeReport;

/// A line in the form of the console.
pub fn console_line(severity: Severity, text: &str) -> String {
    let level = format!("[{}]", severity.word());
    format!("{level:<11}({}) : {text}\n", std::process::id())
}

/// The notice about a reload that succeeded, whether or not something changed.
pub const LOADED: &str = "Loading success.";

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
