//! Objects that change at run time, and what operators set of them.
//!
//! A kind of object is a row ([`ObjectKind`]), and so is each of its settings that a command
//! overrides ([`Setting`]). An override is typed: its key leads to the row that carries it out.
//! As text it is what the operator reads: `server app/s1 weight`.

use std::cmp::Ordering;
use std::fmt;
use std::sync::atomic::AtomicBool;

use ballast_engine::Generation;
use ballast_model::{Config, Server};

use crate::host::Host;
use crate::pen::{Pen, ServerWords, Written};

/// A kind of object that changes at run time.
#[derive(Debug)]
pub struct ObjectKind {
    /// The first word of the keys of its overrides.
    pub word: &'static str,
    /// How one of it is called.
    pub name: NameOf,
    /// Whether a configuration has it; always, for what no configuration names.
    pub in_config: fn(&Config, &ObjectName) -> bool,
    /// Whether a generation has it: overrides on what is gone are forgotten.
    pub in_force: fn(&Generation, &ObjectName) -> bool,
    /// The connections it has, which may finish when it is removed.
    pub connections: fn(&Generation, &str) -> u32,
    /// What commands override.
    pub settings: &'static [Setting],
}

/// How an object is called.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum NameOf {
    /// There is one: the key is the kind and the setting.
    One,
    /// By a name without blanks, which the setting follows.
    Word,
    /// By backend and server.
    Server,
    /// By all that follows: the object has one setting, without a word.
    Rest,
}

/// The name of an object.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum ObjectName {
    /// The only one of its kind.
    One,
    /// Its name.
    Named(String),
    /// A server: the names of its backend and its own.
    Server(String, String),
}

impl ObjectName {
    /// The name; of a server its own.
    pub fn text(&self) -> &str {
        match self {
            Self::One => "",
            Self::Named(name) | Self::Server(_, name) => name,
        }
    }

    /// Backend and server.
    pub fn server(&self) -> Option<(&str, &str)> {
        match self {
            Self::Server(backend, server) => Some((backend, server)),
            _ => None,
        }
    }
}

/// A setting that a command overrides.
#[derive(Debug)]
pub struct Setting {
    /// The last words of its keys.
    pub word: &'static str,
    /// What values it has.
    pub value: ValueOf,
    /// It says that the object exists: it is kept as long as the object.
    pub is_object: bool,
    /// A reload leaves it.
    pub outlives_reload: bool,
    /// A plan has a line for it when it is dropped; else the object's own line tells.
    pub has_plan_line: bool,
    /// Whether two configurations that both have the object differ in it: the file wins then.
    pub differs: fn(&Config, &Config, &ObjectName) -> bool,
    /// Has the value hold.
    pub apply: Option<fn(&Scope<'_>, &ObjectName, &OverrideValue)>,
    /// The state of its object carries the value from one process to the next: it is applied
    /// again only where a change of the object's line has reset it.
    pub is_in_state: bool,
    /// Has what the file says hold again.
    pub release: fn(&Scope<'_>, &ObjectName),
    /// How a file says it.
    pub write_back: WriteBack,
}

impl Setting {
    /// A setting that nothing is known of: each row says what it knows.
    pub const UNKNOWN: Self = Self {
        word: "",
        value: ValueOf::Text,
        is_object: false,
        outlives_reload: false,
        has_plan_line: true,
        differs: |_, _, _| false,
        apply: None,
        is_in_state: false,
        release: |_, _| {},
        write_back: WriteBack::Never,
    };
}

/// How a file says what was set.
#[derive(Debug)]
pub enum WriteBack {
    /// It does not: the value stays with the process.
    Never,
    /// By words of the server's line: they are changed, and so is the server.
    ServerLine(fn(&mut ServerWords<'_>, &mut Server, &OverrideValue) -> Written),
    /// By another line of the object's section.
    Section(fn(&mut Pen, &ObjectName, &OverrideValue) -> Written),
}

/// Where a setting is applied.
pub struct Scope<'s> {
    /// The process.
    pub host: &'s dyn Host,
    /// What is in force.
    pub generation: &'s Generation,
    /// Whether overrides are written to files as they come.
    pub persists: &'s AtomicBool,
}

/// What values a setting has.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ValueOf {
    /// Whole numbers.
    Number,
    /// One of these words.
    Word(&'static [&'static str]),
    /// Any text.
    Text,
}

impl ValueOf {
    /// The value that a command or a former process gave as text. A text that is none of these
    /// values stays what it is.
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
}

/// What an operator set something to.
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
    /// The number.
    pub fn number(&self) -> Option<u32> {
        match self {
            Self::Number(number) => Some(*number),
            _ => None,
        }
    }

    /// The word or text; of a number none.
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

/// Something that an operator set while the process ran.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Override {
    /// The value.
    pub value: OverrideValue,
    /// When, in seconds since 1970.
    pub at_unix_s: u64,
    /// The command.
    pub command: String,
}

/// What was set: a setting of an object.
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
    /// The key of a text, by the rows of `kinds`; `None` when no row knows it.
    pub fn parse(kinds: &[&'static ObjectKind], text: &str) -> Option<Self> {
        let (kind, rest) = text.split_once(' ')?;
        let kind = kinds.iter().copied().find(|one| one.word == kind)?;
        let (name, word) = match kind.name {
            NameOf::One => (ObjectName::One, rest),
            NameOf::Rest => (ObjectName::Named(rest.to_owned()), ""),
            NameOf::Word => {
                let (name, word) = rest.split_once(' ')?;
                (ObjectName::Named(name.to_owned()), word)
            }
            NameOf::Server => {
                let (at, word) = rest.split_once(' ')?;
                let (backend, server) = at.split_once('/')?;
                let name = ObjectName::Server(backend.to_owned(), server.to_owned());
                (name, word)
            }
        };
        let setting = kind.settings.iter().find(|one| one.word == word)?;
        Some(Self {
            kind,
            name,
            setting,
        })
    }

    /// The same setting of another object of the kind.
    pub fn of(&self, name: ObjectName) -> Self {
        Self {
            name,
            ..self.clone()
        }
    }

    /// Whether it is this setting.
    pub fn is(&self, kind: &ObjectKind, setting: &Setting) -> bool {
        self.kind.word == kind.word && self.setting.word == setting.word
    }

    /// Whether a file says something else than before of what was set, or the object came or went.
    /// What only an override knows has its overrides until it goes.
    pub fn is_overruled(&self, was: &Config, is: &Config) -> bool {
        let has = |config| (self.kind.in_config)(config, &self.name);
        match (has(was), has(is)) {
            (true, true) => (self.setting.differs)(was, is, &self.name),
            (false, false) => false,
            _ => true,
        }
    }

    /// The pieces of the text.
    fn pieces(&self) -> [&str; 7] {
        let (first, slash, last) = match &self.name {
            ObjectName::One => ("", "", ""),
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
