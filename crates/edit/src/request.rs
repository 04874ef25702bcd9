//! Edits of the text of a configuration by command.

/// A section of a configuration.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SectionName {
    /// Its word.
    pub kind: SectionWord,
    /// Its name.
    pub name: String,
}

/// The word of a section that commands edit. A `listen` section is found as a frontend and as a
/// backend too.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum SectionWord {
    /// `frontend`.
    Frontend,
    /// `backend`.
    Backend,
    /// `listen`.
    Listen,
}

impl SectionWord {
    /// The word that opens one.
    pub fn word(self) -> &'static str {
        match self {
            Self::Frontend => "frontend",
            Self::Backend => "backend",
            Self::Listen => "listen",
        }
    }
}

/// The edit of a section. Lines are given as words; numbers of lines are those of `show section`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum SectionOperation {
    /// A new section: the words after its name, and its lines.
    Add(Vec<String>, String),
    /// All lines are replaced.
    Write(String),
    /// The section is removed.
    Remove,
    /// A setting that a section has once: its line is replaced or added.
    Set(Vec<String>),
    /// A `bind` line is added after the others.
    AddBind(Vec<String>),
    /// The `bind` line with this name, address or number is replaced.
    SetBind(String, Vec<String>),
    /// The `bind` line with this name, address or number is removed.
    RemoveBind(String),
    /// The server of this name gets another name.
    RenameServer(String, String),
    /// A line is added of which a section may have several and whose order counts: before the line of
    /// this number, else after the last of its kind.
    AddRule(Option<u32>, Vec<String>),
    /// The line with this number is replaced.
    SetRule(u32, Vec<String>),
    /// The line with this number is removed.
    RemoveRule(u32),
}

/// An edit, and the command that asked for it.
#[derive(Clone, Debug)]
pub struct EditCommand<'c> {
    /// The section.
    pub section: &'c SectionName,
    /// The edit.
    pub edit: SectionOperation,
    /// The command, as it was given.
    pub command: &'c str,
    /// When, in seconds since 1970.
    pub at_unix_s: u64,
}

/// The reason why nothing was changed, in lines.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Refusal(pub String);

/// How many sections commands may have written and removed.
pub const SECTION_EDIT_COUNT_MAX: usize = 10_000;

/// Bytes of sections that commands may have written.
pub const SECTION_EDIT_BYTES_MAX: usize = 16 << 20;

/// A section that a command wrote or removed.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SectionEdit {
    /// The first two words of the section: its word and its name.
    pub title: String,
    /// The text of the section; `None` when it was removed.
    pub text: Option<String>,
    /// The mark of the section of the files; `None` when they had none.
    pub base: Option<u64>,
    /// When, in seconds since 1970.
    pub at_unix_s: u64,
    /// The command.
    pub command: String,
}
