//! Files that `persist` edits: their text, and the configuration that the text is to say.

use std::collections::BTreeMap;
use std::sync::Arc;

use ballast_edit::{ConfigFiles, FileText};
use ballast_model::{Config, Origin, Server};

/// The outcome of writing an override to a file, or why no file can have it.
pub type WriteResult = Result<WriteEffect, &'static str>;

/// What writing an override did.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum WriteEffect {
    /// The file has the value: the override ends.
    InFile,
    /// The file need not have it: the override stays.
    NotNeeded,
}

/// Why no file can have a value.
pub(crate) const NO_WORD: &str = "no word of a file says it";

/// Files that are edited.
#[derive(Debug)]
pub struct FileEditor {
    texts: BTreeMap<String, FileText>,
    /// The configuration that the files are to say.
    pub target: Config,
}

impl FileEditor {
    /// Begins with files that say `target`.
    pub(crate) fn new(files: &ConfigFiles, target: Config) -> Self {
        let texts = files
            .iter()
            .map(|(name, bytes)| (name.clone(), FileText::of(name, bytes)));
        Self {
            texts: texts.collect(),
            target,
        }
    }

    /// The files with all edits made.
    pub(crate) fn edited(&self, files: &ConfigFiles) -> ConfigFiles {
        let edited = files.iter().map(|(name, bytes)| {
            let text = self.texts.get(name);
            (
                name.clone(),
                text.map_or_else(|| bytes.clone(), FileText::edited),
            )
        });
        edited.collect()
    }

    /// The file that an object stands in.
    pub fn text(&mut self, origin: &Origin) -> Option<&mut FileText> {
        self.texts.get_mut(&*origin.file)
    }

    /// Writes the numbers of servers that would get other numbers in `counted`.
    pub(crate) fn keep_numbers(&mut self, counted: &Config) {
        let mut wrong = Vec::new();
        for backend in &self.target.backends {
            let Some(now) = counted.backend(&backend.common.name) else {
                continue;
            };
            let pairs = backend.servers.iter().zip(&now.servers);
            let moved = pairs.filter(|(was, is)| was.name == is.name && was.id != is.id);
            wrong.extend(moved.map(|(was, _)| Arc::clone(was)));
        }
        for server in wrong {
            let number = server.id.to_string();
            if let Some(text) = self.text(&server.origin) {
                text.set(server.origin.line, SERVER_WORDS, "id", &number);
            }
        }
    }

    /// The line of a server, if it shares the line with no other.
    pub(crate) fn server_line(&mut self, server: &Server) -> Result<ServerWords<'_>, &'static str> {
        let number = server.origin.line;
        let text = self.text(&server.origin);
        let text = text.ok_or("its line is in none of the files")?;
        let own = text.line(number);
        if own.is_none_or(|line| line.text(0) != "server" || line.text(1) != server.name) {
            return Err("it shares its line with others");
        }
        Ok(ServerWords::Line(text, number))
    }

    /// The servers of a backend, as the files are to have them.
    pub(crate) fn servers(&mut self, backend: &str) -> Option<&mut Vec<Arc<Server>>> {
        let mut backends = self.target.backends.iter_mut();
        let known = backends.find(|one| one.common.name == backend)?;
        Some(&mut Arc::make_mut(known).servers)
    }
}

/// The words of a server's line, from its first: `server`, name and address stand before.
const SERVER_WORDS: usize = 3;

/// The words of a `server` line.
#[derive(Debug)]
pub enum ServerWords<'w> {
    /// Of a line in a file, by its number.
    Line(&'w mut FileText, u32),
    /// Of a new line: address, then words.
    New(&'w mut Vec<String>),
}

impl ServerWords<'_> {
    /// Sets the value of a word.
    pub fn set(&mut self, word: &str, value: &str) -> WriteResult {
        match self {
            Self::Line(text, number) => written_if(text.set(*number, SERVER_WORDS, word, value)),
            Self::New(words) => {
                match words.iter().skip(1).position(|one| one == word) {
                    Some(at) if at + 2 < words.len() => value.clone_into(&mut words[at + 2]),
                    _ => words.extend([word.to_owned(), value.to_owned()]),
                }
                Ok(WriteEffect::InFile)
            }
        }
    }

    /// Adds a word without a value, or removes it. The word `disabled` of a new line is written last,
    /// by the caller.
    pub fn switch(&mut self, word: &str, on: bool) -> WriteResult {
        match self {
            Self::Line(text, number) => written_if(text.switch(*number, SERVER_WORDS, word, on)),
            Self::New(_) => Ok(WriteEffect::InFile),
        }
    }

    /// Sets the address.
    pub fn set_address(&mut self, address: &str) -> WriteResult {
        match self {
            Self::Line(text, number) => {
                written_if(text.replace_word(*number, SERVER_WORDS - 1, address))
            }
            Self::New(words) => {
                let first = words.first_mut().ok_or(NO_WORD)?;
                address.clone_into(first);
                Ok(WriteEffect::InFile)
            }
        }
    }

    /// Whether the line is new and has a word.
    pub fn is_new_with(&self, word: &str) -> bool {
        match self {
            Self::Line(..) => false,
            Self::New(words) => words.iter().any(|one| one == word),
        }
    }
}

fn written_if(is_there: bool) -> WriteResult {
    if is_there {
        Ok(WriteEffect::InFile)
    } else {
        Err("its line was not found")
    }
}
