//! Objects that change at run time, and their settings that commands override.
//!
//! A kind of object is a row ([`ObjectKind`]), and so is each setting ([`Setting`]). Code that
//! serves all kinds walks the rows. Code about one kind names it: servers in `commit.rs`,
//! `write_back.rs`, `reading.rs`, `file_state.rs` and `operator_changes.rs`, backends in `commit.rs` and
//! `section_change.rs`, lists in `write_back.rs`, the process in `work.rs` and `write_back.rs`.

use std::sync::atomic::AtomicBool;

use ballast_engine::Generation;
use ballast_model::{Config, Server};

use crate::file_editor::{FileEditor, ServerWords, WriteResult};
use crate::handover::HandoverTable;
use crate::host::ReconcilerHost;
use crate::override_value::{OverrideValue, ValueType};

/// A kind of object that changes at run time.
#[derive(Debug)]
pub struct ObjectKind {
    /// The first word of the keys of its overrides.
    pub word: &'static str,
    /// The form of its names.
    pub name_form: NameForm,
    /// Whether a configuration has the object; always, for objects that no configuration names.
    pub in_config: fn(&Config, &ObjectName) -> bool,
    /// Whether a generation has the object. When it has not, the overrides of the object are
    /// dropped.
    pub in_force: fn(&Generation, &ObjectName) -> bool,
    /// How many connections the object has. They may finish when it is removed.
    pub connections: fn(&Generation, &ObjectName) -> u32,
    /// The settings that commands override.
    pub settings: &'static [&'static Setting],
    /// The tables in which the state of its objects goes to the next process. Overrides go by
    /// themselves.
    pub handover: &'static [HandoverTable],
}

impl ObjectKind {
    /// The values of most fields: the configuration does not name the object.
    pub const BASE: Self = Self {
        word: "",
        name_form: NameForm::Rest,
        in_config: |_, _| true,
        in_force: |_, _| true,
        connections: |_, _| 0,
        settings: &[],
        handover: &[],
    };
}

/// The form of an object's name in the text of a key.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum NameForm {
    /// None: there is one object of the kind.
    None,
    /// A name without blanks, before the word of the setting.
    Word,
    /// `backend/server`, before the word of the setting.
    Server,
    /// The rest of the text: the kind has one setting, which has no word.
    Rest,
}

impl NameForm {
    /// Reads a name from the text after the word of the kind; returns it and the word of the
    /// setting.
    pub(crate) fn read(self, text: &str) -> Option<(ObjectName, &str)> {
        Some(match self {
            Self::None => (ObjectName::None, text),
            Self::Rest => (ObjectName::of(text), ""),
            Self::Word => {
                let (name, setting) = text.split_once(' ')?;
                (ObjectName::of(name), setting)
            }
            Self::Server => {
                let (name, setting) = text.split_once(' ')?;
                let (backend, server) = name.split_once('/')?;
                (ObjectName::of_server(backend, server), setting)
            }
        })
    }
}

/// The name of an object.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum ObjectName {
    /// The only object of its kind.
    None,
    /// A name.
    Named(String),
    /// A server: the names of its backend and its own.
    Server(String, String),
}

impl ObjectName {
    /// A name.
    pub fn of(name: &str) -> Self {
        Self::Named(name.to_owned())
    }

    /// The name of a server.
    pub fn of_server(backend: &str, server: &str) -> Self {
        Self::Server(backend.to_owned(), server.to_owned())
    }

    /// The name; of a server its own.
    pub fn text(&self) -> &str {
        match self {
            Self::None => "",
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
    /// The type of its values.
    pub value: ValueType,
    /// The override says that the object exists: it is kept as long as the object.
    pub is_object: bool,
    /// A reload does not drop the override.
    pub outlives_reload: bool,
    /// A plan has a line when the override is dropped; else the line of the object tells.
    pub has_plan_line: bool,
    /// Whether two configurations that both have the object differ in the setting. The file wins
    /// then.
    pub differs: fn(&Config, &Config, &ObjectName) -> bool,
    /// Puts a value in force.
    pub apply: Option<fn(&SettingScope<'_>, &ObjectName, &OverrideValue)>,
    /// The state of the object carries the value to the next process. The value is applied again
    /// only where a change of the object's line has reset it.
    pub is_in_state: bool,
    /// Puts the value of the file in force.
    pub release: fn(&SettingScope<'_>, &ObjectName),
    /// How the value is written to a file.
    pub write_back: WriteBack,
}

impl Setting {
    /// The values of most fields: a text that no file has.
    pub const BASE: Self = Self {
        word: "",
        value: ValueType::Text,
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

/// How the value of a setting is written to a file.
#[derive(Debug)]
pub enum WriteBack {
    /// No file can have it: the value stays with the process.
    Never,
    /// By words of the server's line. The words are changed, and the server that they describe.
    ServerLine(fn(&mut ServerWords<'_>, &mut Server, &OverrideValue) -> WriteResult),
    /// By another line of the object's section.
    Section(fn(&mut FileEditor, &ObjectName, &OverrideValue) -> WriteResult),
}

/// Where a setting is applied.
pub struct SettingScope<'s> {
    /// The process.
    pub host: &'s dyn ReconcilerHost,
    /// The generation in force.
    pub generation: &'s Generation,
    /// Whether each override is written to the files (`persist on`).
    pub persists: &'s AtomicBool,
}
