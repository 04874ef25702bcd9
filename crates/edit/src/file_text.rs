//! A file whose words and lines are changed where they stand, so that comments and layout stay.

use std::collections::HashMap;

use ballast_syntax::{Env, FixedFacts, LineKind, SourceLine, parse};

/// A file as it is, and what is to become of its lines. Lines are named by their numbers, from
/// 1. An edit returns whether the line exists.
#[derive(Debug)]
pub struct FileText {
    bytes: Vec<u8>,
    /// Its lines, from 1.
    lines: HashMap<u32, SourceLine>,
    /// Places and what comes there instead.
    edits: Vec<(std::ops::Range<usize>, String)>,
}

impl FileText {
    /// A file without edits; its name is for diagnostics.
    pub fn of(name: &str, bytes: &[u8]) -> Self {
        let files = [(name, bytes.to_vec())];
        let document = parse(files, Env::new(), &FixedFacts::default());
        let lines = document.lines().map(|line| (line.number, line.clone()));
        Self {
            lines: lines.collect(),
            bytes: bytes.to_vec(),
            edits: Vec::new(),
        }
    }

    /// Sets the value that follows a word of a line, searched from the word at `first` on. A line
    /// without the word gets the word and the value at its end.
    pub fn set(&mut self, number: u32, first: usize, word: &str, value: &str) -> bool {
        let Some(line) = self.lines.get(&number) else {
            return false;
        };
        let found = (first..line.words.len()).find(|&at| line.text(at) == word);
        match found.and_then(|at| line.words.get(at + 1)) {
            Some(old) => self.edits.push((old.span().range(), value.to_owned())),
            None => {
                let end = line.words_span().range().end;
                self.edits.push((end..end, format!(" {word} {value}")));
            }
        }
        true
    }

    /// Adds a word without a value to a line (`on`), or removes it with the blank before it.
    pub fn switch(&mut self, number: u32, first: usize, word: &str, on: bool) -> bool {
        let Some(line) = self.lines.get(&number) else {
            return false;
        };
        let found = (first..line.words.len()).find(|&at| line.text(at) == word);
        match (found, on) {
            (Some(at), false) => {
                let from = line.words[at - 1].span().range().end;
                let to = line.words[at].span().range().end;
                self.edits.push((from..to, String::new()));
            }
            (None, true) => {
                let end = line.words_span().range().end;
                self.edits.push((end..end, format!(" {word}")));
            }
            _ => {}
        }
        true
    }

    /// Sets the value of a word that has a line of its own in the section that opens at `opening`.
    pub fn set_line(&mut self, opening: u32, word: &str, value: &str) -> bool {
        let mut lines: Vec<&SourceLine> = self.lines.values().collect();
        lines.sort_by_key(|line| line.number);
        let own = lines.iter().skip_while(|line| line.number <= opening);
        let mut own = own.take_while(|line| line.kind != LineKind::Header);
        let found = own.find(|line| line.is_statement() && line.text(0) == word);
        match found.map(|line| line.number) {
            Some(number) => self.set(number, 0, word, value),
            None => self.add_after(opening, &format!("{word} {value}")),
        }
    }

    /// Replaces the word at a place of a line.
    pub fn replace_word(&mut self, number: u32, at: usize, value: &str) -> bool {
        let word = self.lines.get(&number).and_then(|line| line.words.get(at));
        let Some(word) = word else { return false };
        self.edits.push((word.span().range(), value.to_owned()));
        true
    }

    /// Removes a line.
    pub fn remove(&mut self, number: u32) -> bool {
        let Some(line) = self.lines.get(&number) else {
            return false;
        };
        self.edits.push((line.span.range(), String::new()));
        true
    }

    /// Adds a line after another, with the same indentation.
    pub fn add_after(&mut self, number: u32, text: &str) -> bool {
        let Some(line) = self.lines.get(&number) else {
            return false;
        };
        let whole = line.span.range();
        let first = line
            .words
            .first()
            .map_or(whole.start, |word| word.span().range().start);
        let indentation = String::from_utf8_lossy(&self.bytes[whole.start..first]).into_owned();
        // A section's own line is not indented; what is in it does not.
        let indentation = if indentation.is_empty() {
            "    ".to_owned()
        } else {
            indentation
        };
        let end = if self.bytes[whole.clone()].ends_with(b"\n") {
            ""
        } else {
            "\n"
        };
        self.edits
            .push((whole.end..whole.end, format!("{end}{indentation}{text}\n")));
        true
    }

    /// Adds words to a line that [`Self::add_after`] added after line `number`.
    pub fn extend_added(&mut self, number: u32, added: &str, words: &str) -> bool {
        let Some(at) = self.lines.get(&number).map(|line| line.span.range().end) else {
            return false;
        };
        let mut edits = self.edits.iter_mut();
        let found = edits.find(|(range, text)| range.start == at && text.trim() == added);
        let Some((_, text)) = found else { return false };
        let end = text.trim_end().len();
        text.insert_str(end, &format!(" {words}"));
        true
    }

    /// The line of this number.
    pub fn line(&self, number: u32) -> Option<&SourceLine> {
        self.lines.get(&number)
    }

    /// The text with all edits made.
    pub fn edited(&self) -> Vec<u8> {
        let mut edits: Vec<_> = self.edits.iter().enumerate().collect();
        // Lines that were added first to a place come first there.
        edits.sort_by_key(|(turn, (range, _))| (range.start, range.end, *turn));
        let mut text = Vec::with_capacity(self.bytes.len() + 64);
        let mut at = 0;
        for (_, (range, new)) in edits {
            if range.start >= at {
                text.extend_from_slice(&self.bytes[at..range.start]);
                at = range.end;
            }
            text.extend_from_slice(new.as_bytes());
        }
        text.extend_from_slice(&self.bytes[at..]);
        text
    }
}
