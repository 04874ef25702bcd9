//! What a command asks of the text of a configuration, and what it leaves there.

/// A section of a configuration.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SectionAt {
    /// What it is.
    pub kind: SectionOf,
    /// Its name.
    pub name: String,
}

/// What a section is that commands edit. The lines of a `listen` section are found as those of
/// either half.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum SectionOf {
    /// `frontend`.
    Frontend,
    /// `backend`.
    Backend,
    /// `listen`.
    Listen,
}

impl SectionOf {
    /// The word that opens one.
    pub fn word(self) -> &'static str {
        match self {
            Self::Frontend => "frontend",
            Self::Backend => "backend",
            Self::Listen => "listen",
        }
    }
}

/// What becomes of a section. Lines are given as words; numbers are those that
/// `show section` shows.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Edit {
    /// A new section: the words after its name, and its lines.
    Add(Vec<String>, String),
    /// Other lines.
    Write(String),
    /// It goes.
    Remove,
    /// A setting that a section has once: the line that has it, or a new one.
    Set(Vec<String>),
    /// A `bind` line, after the others.
    AddBind(Vec<String>),
    /// Another `bind` line in place of the one with this name, address or number.
    SetBind(String, Vec<String>),
    /// The `bind` line goes that has this name, address or number.
    RemoveBind(String),
    /// The server of this name has another one.
    RenameServer(String, String),
    /// A line of which a section may have several and whose order counts: before the line of this
    /// number, else after the last of its kind.
    AddRule(Option<u32>, Vec<String>),
    /// Another one in place of the one with this number.
    SetRule(u32, Vec<String>),
    /// The one with this number goes.
    RemoveRule(u32),
}

/// An edit, and what is remembered of the command that asked for it.
#[derive(Clone, Debug)]
pub struct EditCommand<'c> {
    /// The section.
    pub section: &'c SectionAt,
    /// What becomes of it.
    pub edit: Edit,
    /// The command, as it was given.
    pub command: &'c str,
    /// When, in seconds since 1970.
    pub at_unix_s: u64,
}

/// Why nothing was changed, in lines.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Refusal(pub String);

/// How many sections commands may have written and taken away.
pub const SECTION_EDIT_COUNT_MAX: usize = 10_000;

/// Bytes of sections that commands may have written.
pub const SECTION_EDIT_BYTES_MAX: usize = 16 << 20;

/// A section that a command wrote, or took away, while the process ran.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SectionEdit {
    /// Its first two words: what it is, and its name.
    pub title: String,
    /// All of it, from its first word on; `None` when it is gone.
    pub text: Option<String>,
    /// The mark of what the files had in its place; `None` when they had nothing.
    pub base: Option<u64>,
    /// When, in seconds since 1970.
    pub at_unix_s: u64,
    /// The command.
    pub command: String,
}
