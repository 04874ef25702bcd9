//! Files that `persist` edits: their text, and the configuration that the text is to say.

use std::collections::BTreeMap;
use std::sync::Arc;

use ballast_edit::{ConfigFiles, FileText};
use ballast_model::{Config, Origin, Server};

use crate::explicit_words;

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

/// The line of a server that is added.
#[derive(Debug)]
struct NewLine {
    backend: String,
    server: String,
    /// The line before it.
    origin: Origin,
    text: String,
}

/// Files that are edited.
#[derive(Debug)]
pub struct FileEditor {
    texts: BTreeMap<String, FileText>,
    new_lines: Vec<NewLine>,
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
            new_lines: Vec::new(),
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
    /// Returns whether there are any.
    pub(crate) fn keep_numbers(&mut self, counted: &Config) -> bool {
        let mut wrong = Vec::new();
        for backend in &self.target.backends {
            let Some(now) = counted.backend(&backend.common.name) else {
                continue;
            };
            let pairs = backend.servers.iter().zip(&now.servers);
            let moved = pairs.filter(|(was, is)| was.name == is.name && was.id != is.id);
            wrong.extend(moved.map(|(was, _)| Arc::clone(was)));
        }
        for server in &wrong {
            let number = server.id.to_string();
            if let Some(text) = self.text(&server.origin) {
                text.set(server.origin.line, SERVER_WORDS, "id", &number);
            }
        }
        !wrong.is_empty()
    }

    /// Adds the line of a server of a backend after another line; `server` is what it is to say.
    pub(crate) fn add_server(
        &mut self,
        backend: &str,
        server: Server,
        (origin, text): (&Origin, String),
    ) -> bool {
        let file = self.text(origin);
        if !file.is_some_and(|file| file.add_after(origin.line, &text)) {
            return false;
        }
        self.new_lines.push(NewLine {
            backend: backend.to_owned(),
            server: server.name.clone(),
            origin: origin.clone(),
            text,
        });
        if let Some(servers) = self.servers(backend) {
            servers.push(Arc::new(server));
        }
        true
    }

    /// The servers whose lines are added: backend and name.
    pub(crate) fn new_servers(&self) -> impl Iterator<Item = (&str, &str)> {
        let lines = self.new_lines.iter();
        lines.map(|line| (line.backend.as_str(), line.server.as_str()))
    }

    /// Writes words that new lines need: `read` is what the text says without them, because of
    /// `default-server`. Returns whether a line got words.
    pub(crate) fn add_differing_words(&mut self, read: &Config) -> bool {
        let lines = std::mem::take(&mut self.new_lines);
        let mut has_new = false;
        for line in &lines {
            let Some((mut server, read)) = self.new_server(line, read) else {
                continue;
            };
            let words = explicit_words::differing(&mut server, read);
            if words.is_empty() {
                continue;
            }
            has_new = true;
            if let Some(file) = self.text(&line.origin) {
                file.extend_added(line.origin.line, &line.text, &words);
            }
            self.set_server(&line.backend, server);
        }
        self.new_lines = lines;
        has_new
    }

    /// Takes settings of new servers that act on nothing, and that no word takes back.
    pub(crate) fn take_unused_settings(&mut self, read: &Config) {
        let lines = std::mem::take(&mut self.new_lines);
        for line in &lines {
            if let Some((mut server, read)) = self.new_server(line, read) {
                explicit_words::take_unused(&mut server, read);
                self.set_server(&line.backend, server);
            }
        }
        self.new_lines = lines;
    }

    /// A new server as it is to be, and as it was read.
    fn new_server<'r>(&self, line: &NewLine, read: &'r Config) -> Option<(Server, &'r Server)> {
        let wanted = find_server(&self.target, &line.backend, &line.server)?;
        let read = find_server(read, &line.backend, &line.server)?;
        (**wanted != **read).then(|| (Server::clone(wanted), &**read))
    }

    fn set_server(&mut self, backend: &str, server: Server) {
        let servers = self.servers(backend).into_iter().flatten();
        for own in servers.filter(|own| own.name == server.name) {
            *own = Arc::new(server.clone());
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

/// A server of a configuration.
pub(crate) fn find_server<'c>(
    config: &'c Config,
    backend: &str,
    name: &str,
) -> Option<&'c Arc<Server>> {
    let mut servers = config.backend(backend)?.servers.iter();
    servers.find(|one| one.name == name)
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
}

fn written_if(is_there: bool) -> WriteResult {
    if is_there {
        Ok(WriteEffect::InFile)
    } else {
        Err("its line was not found")
    }
}
