//! Overrides: what operators set by command over what files say.
//!
//! An override is a key (kind, object, setting) and a value. Its key leads to the rows that carry
//! it out. It is text only where operators read it, as `server app/s1 weight`, and on the wire to
//! the next process.

use std::cmp::Ordering;
use std::fmt;

use ballast_model::Config;

use crate::now_unix_s;
use crate::object::{ObjectKind, ObjectName, Setting};
use crate::override_value::OverrideValue;

/// An override: the value, and where it comes from.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Override {
    /// The value.
    pub value: OverrideValue,
    /// When it was set, in seconds since 1970.
    pub at_unix_s: u64,
    /// The command that set it.
    pub command: String,
}

impl Override {
    /// A value that a command sets now.
    pub fn now(value: OverrideValue, command: String) -> Self {
        Self {
            value,
            at_unix_s: now_unix_s(),
            command,
        }
    }
}

/// The setting of an object that an override is about.
#[derive(Clone, Debug)]
pub struct OverrideKey {
    /// The row of the object's kind.
    pub kind: &'static ObjectKind,
    /// The object.
    pub name: ObjectName,
    /// The row of the setting.
    pub setting: &'static Setting,
}

impl OverrideKey {
    /// A setting of an object.
    pub fn new(kind: &'static ObjectKind, name: ObjectName, setting: &'static Setting) -> Self {
        Self {
            kind,
            name,
            setting,
        }
    }

    /// Reads the text of a key; `None` when no row of `kinds` knows it.
    pub fn parse(kinds: &[&'static ObjectKind], text: &str) -> Option<Self> {
        let (word, rest) = text.split_once(' ')?;
        let kind = kinds.iter().copied().find(|kind| kind.word == word)?;
        let (name, word) = kind.name_form.read(rest)?;
        let mut settings = kind.settings.iter().copied();
        let setting = settings.find(|setting| setting.word == word)?;
        Some(Self::new(kind, name, setting))
    }

    /// Whether the key is about a kind of object.
    pub fn is_of(&self, kind: &ObjectKind) -> bool {
        std::ptr::eq(self.kind, kind)
    }

    /// Whether the key is about a setting.
    pub fn is_about(&self, setting: &Setting) -> bool {
        std::ptr::eq(self.setting, setting)
    }

    /// Whether a file overrules the override: the file says something else of the setting than
    /// before, or the object came or went. An object that only an override knows keeps its
    /// overrides until it goes.
    pub fn is_overruled(&self, before: &Config, after: &Config) -> bool {
        let has = |config| (self.kind.in_config)(config, &self.name);
        match (has(before), has(after)) {
            (true, true) => (self.setting.differs)(before, after, &self.name),
            (false, false) => false,
            _ => true,
        }
    }

    /// The pieces of the text.
    fn pieces(&self) -> [&str; 7] {
        let (first, slash, last) = match &self.name {
            ObjectName::None => ("", "", ""),
            ObjectName::Named(name) => (name.as_str(), "", ""),
            ObjectName::Server(backend, server) => (backend.as_str(), "/", server.as_str()),
        };
        let blank = |text: &str| if text.is_empty() { "" } else { " " };
        let word = self.setting.word;
        [
            self.kind.word,
            blank(first),
            first,
            slash,
            last,
            blank(word),
            word,
        ]
    }
}

impl fmt::Display for OverrideKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.pieces()
            .iter()
            .try_for_each(|piece| out.write_str(piece))
    }
}

impl Ord for OverrideKey {
    fn cmp(&self, other: &Self) -> Ordering {
        let (own, others) = (self.pieces(), other.pieces());
        let own = own.iter().flat_map(|piece| piece.bytes());
        own.cmp(others.iter().flat_map(|piece| piece.bytes()))
    }
}

impl PartialOrd for OverrideKey {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for OverrideKey {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for OverrideKey {}
