//! The values that operators set, and how a text is read as one.

use std::fmt;

/// The type of the values of a setting.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ValueType {
    /// Whole numbers.
    Number,
    /// One of these words.
    Word(&'static [&'static str]),
    /// Any text.
    Text,
}

impl ValueType {
    /// On or off.
    pub const SWITCH: Self = Self::Word(&["enable", "disable"]);

    /// Reads the value that another process wrote. A text that is no value of this type stays a
    /// text.
    pub fn read(self, text: &str) -> OverrideValue {
        match self {
            Self::Number => text.parse().ok().map(OverrideValue::Number),
            Self::Word(words) => {
                let word = words.iter().find(|word| **word == text);
                word.map(|word| OverrideValue::Word(word))
            }
            Self::Text => None,
        }
        .unwrap_or_else(|| OverrideValue::Text(text.to_owned()))
    }

    /// Whether a command may set this value.
    pub fn has(self, value: &OverrideValue) -> bool {
        match (self, value) {
            (Self::Number, OverrideValue::Number(_)) | (Self::Text, OverrideValue::Text(_)) => true,
            (Self::Word(words), OverrideValue::Word(word)) => words.contains(word),
            _ => false,
        }
    }
}

/// The value that an operator set.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum OverrideValue {
    /// A number.
    Number(u32),
    /// One of the words of the setting.
    Word(&'static str),
    /// A text.
    Text(String),
}

impl OverrideValue {
    /// On or off, for a setting of [`ValueType::SWITCH`].
    pub fn switch(is_on: bool) -> Self {
        Self::Word(if is_on { "enable" } else { "disable" })
    }

    /// Whether a setting of [`ValueType::SWITCH`] is on.
    pub fn is_on(&self) -> bool {
        self.text() == "enable"
    }

    /// A text.
    pub fn of_text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// The number; `None` of a word or text.
    pub fn number(&self) -> Option<u32> {
        match self {
            Self::Number(number) => Some(*number),
            _ => None,
        }
    }

    /// The word or text; empty for a number.
    pub fn text(&self) -> &str {
        match self {
            Self::Number(_) => "",
            Self::Word(word) => word,
            Self::Text(text) => text,
        }
    }
}

impl fmt::Display for OverrideValue {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(out, "{number}"),
            Self::Word(word) => out.write_str(word),
            Self::Text(text) => out.write_str(text),
        }
    }
}
