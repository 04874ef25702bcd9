//! The answer of a command.

use std::fmt;
use std::future::Future;
use std::pin::Pin;

use ballast_model::SeverityOutput;

/// The answer of a command.
#[derive(Default)]
pub enum CommandAnswer {
    /// The command is done, without a text.
    #[default]
    Done,
    /// A message, marked with its severity where the session wants it (`set severity-output`).
    Message(AnswerSeverity, String),
    /// A report, never marked.
    Report(String),
    /// A report of any length, written piece by piece as the caller reads it.
    Pieces(ReportPieces),
    /// The same, where the parts come from other workers.
    Batches(Box<dyn ReportBatches>),
    /// An answer that is not known yet; the session waits for it.
    Pending(Pin<Box<dyn Future<Output = CommandAnswer>>>),
}

/// Appends the next piece of a report; false when there is none left.
pub type ReportPieces = Box<dyn FnMut(&mut String) -> bool>;

/// A report whose parts come from other workers.
pub trait ReportBatches {
    /// The next part; `None` when there is none left.
    fn next(&mut self) -> Pin<Box<dyn Future<Output = Option<String>> + '_>>;
}

impl fmt::Debug for CommandAnswer {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Done => out.write_str("Done"),
            Self::Message(severity, text) => write!(out, "Message({severity:?}, {text:?})"),
            Self::Report(text) => write!(out, "Report({text:?})"),
            Self::Pieces(_) => out.write_str("Pieces"),
            Self::Batches(_) => out.write_str("Batches"),
            Self::Pending(_) => out.write_str("Pending"),
        }
    }
}

impl CommandAnswer {
    /// An error: nothing was done.
    pub fn error(text: impl Into<String>) -> Self {
        Self::Message(AnswerSeverity::Error, text.into())
    }

    /// A message that is no error.
    pub fn info(text: impl Into<String>) -> Self {
        Self::Message(AnswerSeverity::Info, text.into())
    }

    /// Waits for an answer.
    pub fn pending(future: impl Future<Output = Self> + 'static) -> Self {
        Self::Pending(Box::pin(future))
    }

    /// The answer of a command that is done, with a warning behind it.
    #[must_use]
    pub(crate) fn with_warning(self, why: &str) -> Self {
        match self {
            Self::Done => Self::Message(AnswerSeverity::Warning, why.to_owned()),
            Self::Message(_, text) => {
                let text = format!("{}\n{why}", text.trim_end());
                Self::Message(AnswerSeverity::Warning, text)
            }
            Self::Report(text) => Self::Report(format!("{text}{why}\n")),
            other => other,
        }
    }

    /// The level of the caller does not allow the command.
    pub fn denied() -> Self {
        Self::error("Permission denied")
    }
}

/// The severity of a message, with the numbers of syslog.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum AnswerSeverity {
    /// The command failed.
    Error,
    /// The command is done, with a warning.
    Warning,
    /// The command is done, with a notice.
    Notice,
    /// The command is done.
    Info,
}

impl AnswerSeverity {
    /// The mark in front of a message (`severity-output`).
    pub fn mark(self, output: SeverityOutput) -> String {
        match output {
            SeverityOutput::None => String::new(),
            SeverityOutput::Number => format!("[{}]: ", self.number()),
            SeverityOutput::String => format!("[{}]: ", self.word()),
        }
    }

    fn number(self) -> u8 {
        match self {
            Self::Error => 3,
            Self::Warning => 4,
            Self::Notice => 5,
            Self::Info => 6,
        }
    }

    /// The name of the severity in answers.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Error => "err",
            Self::Warning => "warning",
            Self::Notice => "notice",
            Self::Info => "info",
        }
    }
}
