//! Messages about a configuration: severity, place, cause, and what to write instead.

use crate::Span;

/// The severity, in HAProxy's levels.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Severity {
    /// Shown in diagnostic mode (`-dD`) only.
    Diag,
    /// For information.
    Notice,
    /// The configuration is accepted, but probably does not do what was intended. Fatal with
    /// `zero-warning` (`-dW`).
    Warning,
    /// The configuration is refused.
    Alert,
}

impl Severity {
    /// The word HAProxy prints between brackets.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Alert => "ALERT",
            Self::Diag => "DIAG",
            Self::Notice => "NOTICE",
            Self::Warning => "WARNING",
        }
    }
}

/// An exact edit that fixes the cause of a diagnostic.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct TextEdit {
    /// The text to replace; an empty span inserts.
    pub span: Span,
    /// The new text.
    pub text: String,
}

/// One message about the configuration.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Diagnostic {
    /// Its severity.
    pub severity: Severity,
    /// A short name that stays the same between releases, such as `unmatched-quote`.
    pub code: &'static str,
    /// The message, without place and without final newline.
    pub message: String,
    /// The place.
    pub span: Option<Span>,
    /// More about the cause, one line each.
    pub notes: Vec<String>,
    /// How to fix it.
    pub help: Option<String>,
    /// The edit that fixes it. Boxed so that a diagnostic stays small enough to be an `Err`.
    pub replacement: Option<Box<TextEdit>>,
}

impl Diagnostic {
    /// A diagnostic of any level, without a place.
    #[must_use]
    pub fn new(severity: Severity, code: &'static str, message: impl Into<String>) -> Self {
        let message = message.into();
        Self {
            severity,
            code,
            message,
            span: None,
            notes: Vec::new(),
            help: None,
            replacement: None,
        }
    }

    /// An alert: the configuration is refused.
    #[must_use]
    pub fn alert(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(Severity::Alert, code, message)
    }

    /// A warning.
    #[must_use]
    pub fn warning(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(Severity::Warning, code, message)
    }

    /// A notice.
    #[must_use]
    pub fn notice(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(Severity::Notice, code, message)
    }

    /// A remark for diagnostic mode.
    #[must_use]
    pub fn diag(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(Severity::Diag, code, message)
    }

    /// The same, at `span`.
    #[must_use]
    pub fn at(mut self, span: Span) -> Self {
        self.span = Some(span);
        self
    }

    /// The same with one more note.
    #[must_use]
    pub fn note(mut self, note: impl Into<String>) -> Self {
        self.notes.push(note.into());
        self
    }

    /// The same with advice.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// The same with the edit that fixes it.
    #[must_use]
    pub fn replace(mut self, span: Span, text: impl Into<String>) -> Self {
        let text = text.into();
        self.replacement = Some(Box::new(TextEdit { span, text }));
        self
    }
}
