//! Sections that commands write: the files are edited as text, in memory.
//!
//! An edit changes the text in force, and the result is read like a file. So a line means the same in
//! a command and in a file, with its `defaults`, `log global`, lists of users and other sections. An
//! edit leaves the whole text of its section, a [`SectionEdit`]. When the files are read again, it
//! replaces their section, unless they have another one there by now.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use ballast_config::Machine;
use ballast_syntax::{SectionPlace, parse_str};

use crate::request::{
    EditCommand, Refusal, SECTION_EDIT_COUNT_MAX, SectionEdit, SectionName, SectionOperation,
    SectionWord,
};
use crate::section_text::{SectionText, is_one_section, with_lines};
use crate::{ConfigFiles, NO_FILE, quoted_line};

/// Where sections go that no file has.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum InsertPosition {
    /// Into a file of their own, after the others.
    Beside,
    /// To the end of the last file.
    Last,
}

/// Files with sections by command in them.
#[derive(Debug)]
pub struct EditedFiles {
    /// The files.
    pub files: ConfigFiles,
    /// The edits that stay.
    pub kept: Vec<SectionEdit>,
    /// The titles of edits where the files have another section by now: the files win.
    pub overruled: Vec<String>,
    /// The positions of the edits that have a text: title, file and bytes.
    positions: Vec<(String, usize, Range<usize>)>,
}

impl EditedFiles {
    fn of(files: ConfigFiles) -> Self {
        Self {
            files,
            kept: Vec::new(),
            overruled: Vec::new(),
            positions: Vec::new(),
        }
    }

    /// The position of a section by command: the number of its file, and its bytes there.
    pub fn position_of(&self, title: &str) -> Option<(usize, Range<usize>)> {
        let found = self.positions.iter().find(|(known, ..)| known == title);
        found.map(|(_, file, range)| (*file, range.clone()))
    }
}

/// Files, and where the sections of proxies stand in them.
#[derive(Clone, Debug)]
pub struct SectionMap {
    /// The files.
    pub files: Arc<ConfigFiles>,
    positions: Arc<HashMap<String, SectionPlace>>,
}

impl SectionMap {
    /// Files and the sections that were found when they were read.
    pub fn of(files: Arc<ConfigFiles>, sections: Vec<SectionPlace>) -> Self {
        let mut positions = HashMap::with_capacity(sections.len());
        for section in sections {
            positions.entry(section.title.clone()).or_insert(section);
        }
        Self {
            files,
            positions: Arc::new(positions),
        }
    }

    /// Reads files to find their sections.
    pub fn read(files: Arc<ConfigFiles>, machine: &dyn Machine) -> Self {
        let document = ballast_config::parse_document(ConfigFiles::clone(&files), machine);
        Self::of(files, document.sections_of_proxies())
    }

    /// Puts sections by command into the files. Where these have another section than the one that
    /// was edited, they win.
    pub fn with_edits(
        &self,
        section_edits: &[SectionEdit],
        insert_position: InsertPosition,
    ) -> EditedFiles {
        let mut with_edits = EditedFiles::of(ConfigFiles::clone(&self.files));
        let mut edits: Vec<(&SectionPlace, &SectionEdit)> = Vec::new();
        let mut beside: Vec<&SectionEdit> = Vec::new();
        for one in section_edits {
            let section = self.positions.get(&one.title);
            let base = section.map(|section| section.mark);
            if base != one.base {
                // Where the files have the same section now, the edit ends.
                if base != one.text.as_deref().and_then(mark_of_text) {
                    with_edits.overruled.push(one.title.clone());
                }
                continue;
            }
            with_edits.kept.push(one.clone());
            match section {
                Some(section) => edits.push((section, one)),
                None => beside.push(one),
            }
        }
        edits.sort_by_key(|(section, _)| (section.file, section.bytes.start));
        with_edits.replace(&edits);
        with_edits.add(&beside, insert_position);
        with_edits
    }

    /// The mark of the section of this title.
    pub fn mark(&self, title: &str) -> Option<u64> {
        Some(self.positions.get(title)?.mark)
    }

    /// The marks of the sections that have servers, by title.
    pub fn marks_of_backends(&self) -> Vec<(String, u64)> {
        let positions = self.positions.values();
        let own = positions.filter(|section| !section.title.starts_with("frontend "));
        own.map(|section| (section.title.clone(), section.mark))
            .collect()
    }

    /// Whether the files have a section of this title.
    pub fn has(&self, title: &str) -> bool {
        self.positions.contains_key(title)
    }

    /// The sections of proxies that are in force, by title.
    pub fn sections<'t>(
        &'t self,
        section_edits: &'t [SectionEdit],
    ) -> impl Iterator<Item = (&'t str, &'t str)> {
        let overridden: HashSet<&str> =
            section_edits.iter().map(|one| one.title.as_str()).collect();
        let written = self.positions.values().filter_map(move |section| {
            let is_own = !overridden.contains(section.title.as_str());
            let bytes = self.files.get(section.file)?.1.get(section.bytes.clone())?;
            // A reading of the whole file reports bytes that are no text.
            let text = std::str::from_utf8(bytes).unwrap_or_default();
            is_own.then_some((section.title.as_str(), text))
        });
        let overridden = section_edits.iter();
        let overridden =
            overridden.filter_map(|one| Some((one.title.as_str(), one.text.as_deref()?)));
        written.chain(overridden)
    }

    /// The files, with something else in the place of each section of a proxy.
    pub fn files_with(&self, shown: impl Fn(&str) -> String) -> ConfigFiles {
        let mut positions: Vec<&SectionPlace> = self.positions.values().collect();
        positions.sort_by_key(|section| (section.file, section.bytes.start));
        let mut files = ConfigFiles::with_capacity(self.files.len());
        for (file, (name, bytes)) in self.files.iter().enumerate() {
            let mut text = Vec::new();
            let mut at = 0;
            for section in positions.iter().filter(|section| section.file == file) {
                text.extend_from_slice(&bytes[at..section.bytes.start]);
                text.extend_from_slice(shown(&section.title).as_bytes());
                at = section.bytes.end;
            }
            text.extend_from_slice(&bytes[at..]);
            files.push((name.clone(), text));
        }
        files
    }

    /// The text of a section that is in force.
    ///
    /// # Errors
    /// It is not valid UTF-8.
    fn text<'t>(
        &'t self,
        section_edits: &'t [SectionEdit],
        title: &str,
    ) -> Result<Option<&'t str>, Refusal> {
        if let Some(one) = section_edits.iter().find(|one| one.title == title) {
            return Ok(one.text.as_deref());
        }
        let section = self.positions.get(title);
        let bytes = section.and_then(|section| {
            let (_, bytes) = self.files.get(section.file)?;
            bytes.get(section.bytes.clone())
        });
        let text = bytes.map(std::str::from_utf8).transpose();
        text.map_err(|_| {
            Refusal(format!(
                "{title} is not valid UTF-8 in its file, and cannot be edited by command."
            ))
        })
    }

    fn find(
        &self,
        section_edits: &[SectionEdit],
        section: &SectionName,
        machine: &dyn Machine,
    ) -> Result<SectionText, Refusal> {
        let words: &[&str] = match section.kind {
            SectionWord::Frontend => &["frontend", "listen"],
            SectionWord::Backend => &["backend", "listen"],
            SectionWord::Listen => &["listen"],
        };
        for word in words {
            let title = format!("{word} {}", section.name);
            if let Some(text) = self.text(section_edits, &title)?
                && let Some(found) = SectionText::read(title, text, machine)
            {
                return Ok(found);
            }
        }
        Err(Refusal(format!(
            "The lines of {} '{}' stand in a conditional block and after it: they cannot be edited \
             by command.",
            section.kind.word(),
            section.name
        )))
    }

    /// The lines of a section that are in force, its opening line first.
    ///
    /// # Errors
    /// There is no such section.
    pub fn lines(
        &self,
        section_edits: &[SectionEdit],
        section: &SectionName,
        machine: &dyn Machine,
    ) -> Result<Vec<String>, Refusal> {
        let found = self.find(section_edits, section, machine)?;
        let lines = found.lines.iter();
        Ok(lines.map(|line| line.trim_end().to_owned()).collect())
    }

    /// The sections by command after one more edit, and the title of the edited section.
    ///
    /// # Errors
    /// The section or line does not exist, or cannot be edited like this.
    pub fn edited(
        &self,
        section_edits: &[SectionEdit],
        command: EditCommand<'_>,
        machine: &dyn Machine,
    ) -> Result<(Vec<SectionEdit>, String), Refusal> {
        let section = command.section;
        let (title, text) = if let SectionOperation::Add(head, lines) = command.edit {
            let title = format!("{} {}", section.kind.word(), section.name);
            let name = quoted_line(std::slice::from_ref(&section.name));
            let head = format!("{} {name} {}", section.kind.word(), quoted_line(&head));
            (title, Some(with_lines(head.trim_end(), &lines)))
        } else {
            let mut found = self.find(section_edits, section, machine)?;
            let text = found.edit(command.edit)?;
            (found.title, text)
        };
        if let Some(text) = &text {
            is_one_section(text, machine)?;
        }
        let base = self.mark(&title);
        let mut section_edits = section_edits.to_vec();
        let index = section_edits.iter().position(|one| one.title == title);
        let is_as_written = match &text {
            Some(text) => base.is_some() && mark_of_text(text) == base,
            None => base.is_none(),
        };
        if is_as_written {
            if let Some(index) = index {
                section_edits.remove(index);
            }
            return Ok((section_edits, title));
        }
        let one = SectionEdit {
            title: title.clone(),
            text,
            base,
            at_unix_s: command.at_unix_s,
            command: command.command.to_owned(),
        };
        match index {
            Some(index) => section_edits[index] = one,
            None if section_edits.len() >= SECTION_EDIT_COUNT_MAX => {
                return Err(Refusal(
                    "Too many sections were set by command: 'persist now' writes them to the files."
                        .into(),
                ));
            }
            None => section_edits.push(one),
        }
        Ok((section_edits, title))
    }
}

impl EditedFiles {
    /// Puts texts in the place of sections; these are in the order of files and bytes.
    fn replace(&mut self, edits: &[(&SectionPlace, &SectionEdit)]) {
        for (file, (_, bytes)) in self.files.iter_mut().enumerate() {
            let mut own = edits
                .iter()
                .filter(|(section, _)| section.file == file)
                .peekable();
            if own.peek().is_none() {
                continue;
            }
            let mut text = Vec::with_capacity(bytes.len() + 256);
            let mut at = 0;
            for (section, one) in own {
                let extent = &section.bytes;
                text.extend_from_slice(&bytes[at..extent.start]);
                let start = text.len();
                at = extent.end;
                if let Some(new) = &one.text {
                    text.extend_from_slice(new.as_bytes());
                    self.positions
                        .push((one.title.clone(), file, start..text.len()));
                } else if text.ends_with(b"\n\n") && matches!(bytes.get(at), None | Some(b'\n')) {
                    // The blank line before a section goes with it, unless it divides others.
                    text.pop();
                }
            }
            text.extend_from_slice(&bytes[at..]);
            *bytes = text;
        }
    }

    /// Puts sections after all others.
    fn add(&mut self, new: &[&SectionEdit], insert_position: InsertPosition) {
        if new.iter().all(|one| one.text.is_none()) {
            return;
        }
        if insert_position == InsertPosition::Beside || self.files.is_empty() {
            self.files.push((NO_FILE.to_owned(), Vec::new()));
        }
        let file = self.files.len() - 1;
        let Some((_, bytes)) = self.files.last_mut() else {
            return;
        };
        if !bytes.is_empty() {
            let end: &[u8] = if bytes.ends_with(b"\n") {
                b"\n"
            } else {
                b"\n\n"
            };
            bytes.extend_from_slice(end);
        }
        for one in new {
            let Some(text) = &one.text else { continue };
            let start = bytes.len();
            bytes.extend_from_slice(text.as_bytes());
            self.positions
                .push((one.title.clone(), file, start..bytes.len()));
        }
    }
}

fn mark_of_text(text: &str) -> Option<u64> {
    let document = parse_str("", text);
    Some(document.sections_of_proxies().first()?.mark)
}

#[cfg(test)]
mod tests {
    use ballast_config::EmptyMachine;

    use super::*;

    const FILE: &str = "\
# first
frontend www # in
  bind :80
  acl a path /a
  timeout client 5s

listen both
  bind :81
";

    /// A file, and what commands made of it.
    struct ConfigSource {
        files: ConfigFiles,
        section_edits: Vec<SectionEdit>,
    }

    fn with_edits(files: &ConfigFiles, section_edits: &[SectionEdit]) -> EditedFiles {
        SectionMap::read(Arc::new(files.clone()), &EmptyMachine)
            .with_edits(section_edits, InsertPosition::Beside)
    }

    fn written(text: &str) -> ConfigSource {
        ConfigSource {
            files: vec![("f".to_owned(), text.as_bytes().to_vec())],
            section_edits: Vec::new(),
        }
    }

    fn at(kind: SectionWord, name: &str) -> SectionName {
        SectionName {
            kind,
            name: name.to_owned(),
        }
    }

    fn command(section: &SectionName, edit: SectionOperation) -> EditCommand<'_> {
        EditCommand {
            section,
            edit,
            command: "x",
            at_unix_s: 0,
        }
    }

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    /// What is in force after one edit of `www`, as one text.
    fn after(
        before: &mut ConfigSource,
        kind: SectionWord,
        name: &str,
        edit: SectionOperation,
    ) -> String {
        let texts = SectionMap::read(Arc::new(before.files.clone()), &EmptyMachine);
        let (section_edits, title) = texts
            .edited(
                &before.section_edits,
                command(&at(kind, name), edit),
                &EmptyMachine,
            )
            .unwrap();
        let now = texts.with_edits(&section_edits, InsertPosition::Last);
        assert_eq!(now.kept, section_edits);
        let own = section_edits.iter().find(|one| one.title == title);
        let own = own.and_then(|one| one.text.as_deref());
        let position = now.position_of(&title);
        let stands = position.map(|(file, range)| &now.files[file].1[range]);
        assert_eq!(stands, own.map(str::as_bytes));
        before.section_edits = section_edits;
        String::from_utf8(now.files[0].1.clone()).unwrap()
    }

    #[test]
    fn an_edit_changes_its_line_and_nothing_else() {
        let mut written = written(FILE);
        let mut www = |edit| after(&mut written, SectionWord::Frontend, "www", edit);
        assert_eq!(
            www(SectionOperation::AddBind(vec![
                "/a b".into(),
                "name".into(),
                "x".into()
            ])),
            FILE.replace("  bind :80\n", "  bind :80\n  bind '/a b' name x\n")
        );
        let _ = www(SectionOperation::RemoveBind("x".into()));
        assert_eq!(
            www(SectionOperation::Set(words("timeout client 9s"))),
            FILE.replace("5s", "9s")
        );
        assert_eq!(
            www(SectionOperation::SetRule(2, words("acl a path /b"))),
            FILE.replace("5s", "9s").replace("path /a", "path /b")
        );
        let _ = www(SectionOperation::SetRule(2, words("acl a path /a")));
        // As the file has it, however it came to that: no override is left.
        assert_eq!(www(SectionOperation::Set(words("timeout client 5s"))), FILE);
        assert!(written.section_edits.is_empty());
    }

    #[test]
    fn a_listen_section_is_found_as_either_half() {
        let mut written = written(FILE);
        let rule = SectionOperation::AddRule(None, words("http-request deny"));
        let text = after(&mut written, SectionWord::Backend, "both", rule);
        assert_eq!(text, format!("{FILE}  http-request deny\n"));
        let texts = SectionMap::read(Arc::new(written.files.clone()), &EmptyMachine);
        let www = at(SectionWord::Backend, "www");
        assert!(
            texts
                .edited(&[], command(&www, SectionOperation::Remove), &EmptyMachine)
                .is_err()
        );
        let text = after(
            &mut written,
            SectionWord::Listen,
            "both",
            SectionOperation::Remove,
        );
        assert_eq!(text, FILE.split("\nlisten").next().unwrap());
    }

    #[test]
    fn a_section_goes_with_the_blank_line_before_it() {
        let both = SectionOperation::Remove;
        let text = after(&mut written(FILE), SectionWord::Listen, "both", both);
        let (rest, _) = FILE.split_once("\nlisten").unwrap();
        assert_eq!(text, rest);
        let three = "frontend www\n\nlisten both\n  bind :81\n\nbackend c\n";
        let both = SectionOperation::Remove;
        let text = after(&mut written(three), SectionWord::Listen, "both", both);
        assert_eq!(text, "frontend www\n\nbackend c\n");
    }

    #[test]
    fn new_sections_stand_at_the_end_until_the_file_has_them() {
        let mut before = written("global");
        let add = SectionOperation::Add(words("from d"), " bind :1\n".into());
        let text = after(&mut before, SectionWord::Frontend, "new", add);
        assert_eq!(text, "global\n\nfrontend new from d\n bind :1\n");
        // The file has it, with a comment: it is the file's.
        let files = written("global\n# mine\nfrontend new from d # here\n  bind  :1\n").files;
        let now = with_edits(&files, &before.section_edits);
        assert_eq!((now.kept.len(), now.overruled.len()), (0, 0));
        assert_eq!(now.files, files);
        // It has another.
        let files = written("frontend new\n").files;
        let now = with_edits(&files, &before.section_edits);
        assert_eq!(now.overruled, ["frontend new"]);
        // A section that a command removed and that the files no longer have leaves no edit.
        let mut before = written(FILE);
        let _ = after(
            &mut before,
            SectionWord::Frontend,
            "www",
            SectionOperation::Remove,
        );
        let files = written("global\n").files;
        let now = with_edits(&files, &before.section_edits);
        assert_eq!((now.kept.len(), now.overruled.len()), (0, 0));
    }
}
