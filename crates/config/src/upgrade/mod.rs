//! `ballast upgrade`: rewrites removed directives into their replacements.
//!
//! Every change replaces whole lines and has a reason; everything else stays byte for byte,
//! comments and indentation included. Lines that cannot be rewritten safely are left unchanged and
//! listed, with the reason.

mod diff;
mod headers;
mod lines;
mod quote;

use std::collections::BTreeMap;

use ballast_syntax::{Document, LineKind, Section, SectionKind, SourceLine, parse_str};

use diff::unified;

/// A rewritten file.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct UpgradeOutcome {
    /// The new content; the old one when nothing was changed.
    pub text: Vec<u8>,
    /// The lines that were changed, in order.
    pub changes: Vec<LineRewrite>,
    /// The lines that were found but left unchanged, in order.
    pub left: Vec<LineRewrite>,
    /// The changes as a unified diff; empty when there are none.
    pub diff: String,
}

/// One line that was changed, or left unchanged.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct LineRewrite {
    /// The line in the old file, from 1.
    pub line: u32,
    /// The old line, without line end.
    pub from: String,
    /// The new lines, separated by newlines; empty when the line was removed or left unchanged.
    pub to: String,
    /// The reason.
    pub reason: String,
}

/// The result for a line.
pub(crate) enum Rewrite {
    /// These lines replace it, the first one with its comment; if there are none, it is removed.
    Lines(Vec<String>, String),
    /// It cannot be rewritten, for this reason.
    Left(String),
}

/// The rewritten file; of what is left only what a rewrite knows of.
pub(crate) fn rewritten(name: &str, bytes: &[u8]) -> UpgradeOutcome {
    let source = String::from_utf8_lossy(bytes);
    let mut result = UpgradeOutcome {
        text: bytes.to_vec(),
        changes: Vec::new(),
        left: Vec::new(),
        diff: String::new(),
    };
    if matches!(source, std::borrow::Cow::Owned(_)) {
        return result; // Not UTF-8: a rewritten line could change what its bytes mean.
    }
    let document = parse_str(name, &source);
    let mut new_lines: BTreeMap<u32, Vec<String>> = BTreeMap::new();
    for section in &document.sections {
        let facts = FileFacts::of(&document, section);
        for line in section.all_lines() {
            let is_candidate = matches!(line.kind, LineKind::Statement | LineKind::Header);
            if !is_candidate || line.has_error {
                continue;
            }
            match lines::rewrite(&document, section, line, &facts) {
                None => {}
                Some(Rewrite::Left(reason)) => result.left.push(LineRewrite {
                    line: line.number,
                    from: text_of(&document, line),
                    to: String::new(),
                    reason,
                }),
                Some(Rewrite::Lines(lines, reason)) => {
                    let lines = keep_indentation(&document, line, lines);
                    result.changes.push(LineRewrite {
                        line: line.number,
                        from: text_of(&document, line),
                        to: lines.join("\n"),
                        reason,
                    });
                    new_lines.insert(line.number, lines);
                }
            }
        }
    }
    let ends = source.ends_with('\n') || source.is_empty();
    if !ends {
        let count = u32::try_from(source.lines().count()).unwrap_or(u32::MAX);
        let last = source.lines().next_back().unwrap_or_default();
        if !result.changes.iter().any(|change| change.line == count) {
            result.changes.push(LineRewrite {
                line: count,
                from: last.to_owned(),
                to: last.to_owned(),
                reason: "HAProxy refuses a file whose last line does not end in a newline"
                    .to_owned(),
            });
        }
    }
    result.diff = unified(name, &source, &new_lines);
    result.text = assemble(&source, &new_lines).into_bytes();
    result
}

/// The replacement of a line, for the diagnostic about it.
pub(crate) fn suggestion(
    document: &Document,
    section: &Section,
    line: &SourceLine,
) -> Option<(Vec<String>, String)> {
    let facts = FileFacts::of(document, section);
    match lines::rewrite(document, section, line, &facts)? {
        Rewrite::Lines(lines, reason) => Some((lines, reason)),
        Rewrite::Left(_) => None,
    }
}

/// Facts about the rest of the file that rewriting a line may need.
pub(crate) struct FileFacts {
    /// The global section says `nbthread`.
    pub(crate) has_threads: bool,
    /// The section has a `stick-table`.
    pub(crate) has_table: bool,
    /// The kind of section.
    pub(crate) kind: SectionKind,
}

impl FileFacts {
    fn of(document: &Document, section: &Section) -> Self {
        let says = |section: &Section, word: &str| {
            section
                .lines
                .iter()
                .any(|line| line.kind == LineKind::Statement && line.text(0) == word)
        };
        let globals = document.sections.iter();
        let mut globals = globals.filter(|one| one.kind == SectionKind::Global);
        Self {
            has_threads: globals.any(|one| says(one, "nbthread")),
            has_table: says(section, "stick-table"),
            kind: section.kind,
        }
    }
}

/// The line without its line end.
fn text_of(document: &Document, line: &SourceLine) -> String {
    let text = document.sources.text(line.span);
    text.trim_end_matches(['\n', '\r']).to_owned()
}

/// Gives new lines the indentation of the old one, and the first its comment.
fn keep_indentation(document: &Document, line: &SourceLine, lines: Vec<String>) -> Vec<String> {
    let old = text_of(document, line);
    let indent_end = old.len() - old.trim_start().len();
    let indent = &old[..indent_end];
    let comment = line
        .comment
        .map(|span| document.sources.text(span).into_owned());
    if lines.is_empty() {
        return comment
            .map(|comment| vec![format!("{indent}{}", comment.trim_end())])
            .unwrap_or_default();
    }
    let is_header = line.kind == LineKind::Header;
    let mut dressed: Vec<String> = Vec::with_capacity(lines.len());
    for (at, text) in lines.into_iter().enumerate() {
        // What follows a section's opening line is indented as in the section.
        let inner = if is_header && at > 0 { "    " } else { "" };
        dressed.push(format!("{indent}{inner}{text}"));
    }
    if let (Some(comment), Some(first)) = (comment, dressed.first_mut()) {
        first.push(' ');
        first.push_str(comment.trim_end());
    }
    dressed
}

/// The file with the replaced lines, each with the line end of the old one.
fn assemble(source: &str, new_lines: &BTreeMap<u32, Vec<String>>) -> String {
    let mut out = String::with_capacity(source.len());
    for (number, line) in (1..).zip(source.split_inclusive('\n')) {
        let content = line.trim_end_matches(['\n', '\r']);
        let end = match &line[content.len()..] {
            "" => "\n",
            end => end,
        };
        match new_lines.get(&number) {
            Some(lines) => {
                for new in lines {
                    out.push_str(new);
                    out.push_str(end);
                }
            }
            None => {
                out.push_str(content);
                out.push_str(end);
            }
        }
    }
    out
}

#[cfg(test)]
mod tests;
