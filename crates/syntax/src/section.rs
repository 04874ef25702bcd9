//! The sections of a configuration, one row each.

use std::ops::Range;

use xxhash_rust::xxh64::Xxh64;

use crate::{Directive, FileId, LineKind, SourceLine, SourceMap, Word};

/// A kind of section.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[expect(missing_docs, reason = "each is described by its row in SECTIONS")]
pub enum SectionKind {
    Acme,
    Backend,
    Cache,
    CrtStore,
    Defaults,
    FcgiApp,
    Frontend,
    Global,
    Healthcheck,
    HttpErrors,
    Listen,
    LogForward,
    LogProfile,
    Mailers,
    NamespaceList,
    Peers,
    /// The lines of a file before its first section.
    Preamble,
    Program,
    Resolvers,
    Ring,
    Traces,
    Userlist,
}

/// Whether a section's keyword is followed by a name.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum SectionNaming {
    /// Never.
    None,
    /// Optionally.
    Optional,
    /// Always.
    Required,
}

/// A row about a kind of section.
#[derive(Clone, Copy, Debug)]
pub struct SectionRow {
    /// The kind.
    pub kind: SectionKind,
    /// The word that opens it.
    pub word: &'static str,
    /// Whether it has a name.
    pub naming: SectionNaming,
    /// Whether `from <defaults>` may follow the name.
    pub inherits: bool,
    /// Its purpose.
    pub help: &'static str,
}

const fn row(
    kind: SectionKind,
    word: &'static str,
    naming: SectionNaming,
    inherits: bool,
    help: &'static str,
) -> SectionRow {
    SectionRow {
        kind,
        word,
        naming,
        inherits,
        help,
    }
}

/// All sections, sorted by word. The preamble is not one of them: no word opens it.
pub const SECTIONS: &[SectionRow] = &[
    row(
        SectionKind::Acme,
        "acme",
        SectionNaming::Required,
        false,
        "an ACME provider and how to prove ownership to it",
    ),
    row(
        SectionKind::Backend,
        "backend",
        SectionNaming::Required,
        true,
        "servers that requests are sent to",
    ),
    row(
        SectionKind::Cache,
        "cache",
        SectionNaming::Required,
        false,
        "a cache of responses",
    ),
    row(
        SectionKind::CrtStore,
        "crt-store",
        SectionNaming::Optional,
        false,
        "certificates and where their parts are",
    ),
    row(
        SectionKind::Defaults,
        "defaults",
        SectionNaming::Optional,
        true,
        "settings for the proxies that follow or name it",
    ),
    row(
        SectionKind::FcgiApp,
        "fcgi-app",
        SectionNaming::Required,
        false,
        "a FastCGI application",
    ),
    row(
        SectionKind::Frontend,
        "frontend",
        SectionNaming::Required,
        true,
        "listening sockets and what to do with requests",
    ),
    row(
        SectionKind::Global,
        "global",
        SectionNaming::None,
        false,
        "settings of the process",
    ),
    row(
        SectionKind::Healthcheck,
        "healthcheck",
        SectionNaming::Required,
        false,
        "a health check that servers may share",
    ),
    row(
        SectionKind::HttpErrors,
        "http-errors",
        SectionNaming::Required,
        false,
        "a group of error pages",
    ),
    row(
        SectionKind::Listen,
        "listen",
        SectionNaming::Required,
        true,
        "a frontend and its backend in one",
    ),
    row(
        SectionKind::LogForward,
        "log-forward",
        SectionNaming::Required,
        false,
        "a relay of syslog messages",
    ),
    row(
        SectionKind::LogProfile,
        "log-profile",
        SectionNaming::Required,
        false,
        "log formats for each step of a stream",
    ),
    row(
        SectionKind::Mailers,
        "mailers",
        SectionNaming::Required,
        false,
        "SMTP servers for mail alerts",
    ),
    row(
        SectionKind::NamespaceList,
        "namespace_list",
        SectionNaming::None,
        false,
        "network namespaces to open at start",
    ),
    row(
        SectionKind::Peers,
        "peers",
        SectionNaming::Required,
        false,
        "processes that stick tables are shared with",
    ),
    row(
        SectionKind::Program,
        "program",
        SectionNaming::Required,
        false,
        "a program run beside the workers (gone in 3.3)",
    ),
    row(
        SectionKind::Resolvers,
        "resolvers",
        SectionNaming::Required,
        false,
        "DNS servers and how to ask them",
    ),
    row(
        SectionKind::Ring,
        "ring",
        SectionNaming::Required,
        false,
        "a ring buffer for logs and events",
    ),
    row(
        SectionKind::Traces,
        "traces",
        SectionNaming::None,
        false,
        "what to trace and where to",
    ),
    row(
        SectionKind::Userlist,
        "userlist",
        SectionNaming::Required,
        false,
        "users, groups and passwords",
    ),
];

impl SectionKind {
    /// The kind of section that a word opens.
    #[must_use]
    pub fn of(word: &str) -> Option<Self> {
        SECTIONS
            .binary_search_by(|row| row.word.cmp(word))
            .ok()
            .map(|at| SECTIONS[at].kind)
    }

    /// The row of the table; `None` for the preamble.
    #[must_use]
    pub fn row(self) -> Option<&'static SectionRow> {
        SECTIONS.iter().find(|row| row.kind == self)
    }

    /// The word that opens the section; empty for the preamble.
    #[must_use]
    pub fn word(self) -> &'static str {
        self.row().map_or("", |row| row.word)
    }
}

/// A section: its opening line and the lines up to the next section or the end of the file.
#[derive(Clone, Debug)]
pub struct Section {
    /// The kind.
    pub kind: SectionKind,
    /// The file it is in.
    pub file: FileId,
    /// The line that opens it; `None` for the preamble only.
    pub header: Option<SourceLine>,
    /// All its lines, also the blank, the skipped and those with an error.
    pub lines: Vec<SourceLine>,
}

impl Section {
    /// The name: the second word of the header, when it is there and not empty.
    #[must_use]
    pub fn name(&self) -> Option<&Word> {
        let name = self.header.as_ref()?.words.get(1)?;
        let is_named = self
            .kind
            .row()
            .is_some_and(|row| row.naming != SectionNaming::None);
        let is_from =
            name.text() == "from" && !name.is_quoted() && self.kind == SectionKind::Defaults;
        (is_named && !is_from && !name.text().is_empty()).then_some(name)
    }

    /// The `defaults` section named after `from`.
    #[must_use]
    pub fn from(&self) -> Option<&Word> {
        let words = &self.header.as_ref()?.words;
        if !self.kind.row()?.inherits {
            return None;
        }
        let after_name = if self.name().is_some() { 2 } else { 1 };
        let is_from = words.get(after_name)?.text() == "from";
        words.get(after_name + 1).filter(|_| is_from)
    }

    /// The active statements: no blank or skipped lines, no lines with an error, no directives.
    pub fn statements(&self) -> impl Iterator<Item = &SourceLine> {
        self.lines.iter().filter(|line| line.is_statement())
    }

    /// The byte range of the section in its file: from its opening line to the last line that is a
    /// statement.
    ///
    /// What follows belongs to no section: comments, empty lines, and a conditional block in which
    /// another section begins. `None` for the preamble, and for a section that begins in a
    /// conditional block and continues after it: no range of text is that section alone.
    #[must_use]
    pub fn extent(&self) -> Option<Range<usize>> {
        let header = self.header.as_ref()?;
        let mut extent = header.span.range();
        let mut depth = 0_usize;
        let mut lines = self.lines.iter();
        for line in lines.by_ref() {
            let end = line.span.range().end;
            match line.kind {
                // Of an inactive branch.
                LineKind::Header => break,
                LineKind::Blank => {}
                LineKind::Directive(Directive::If) => depth += 1,
                // Of a block that contains the section itself.
                LineKind::Directive(Directive::Elif | Directive::Else | Directive::Endif)
                    if depth == 0 =>
                {
                    break;
                }
                LineKind::Directive(Directive::Endif) => {
                    depth -= 1;
                    if depth == 0 {
                        extent.end = end;
                    }
                }
                _ if depth == 0 => extent.end = end,
                _ => {}
            }
        }
        let goes_on = lines.any(SourceLine::is_statement);
        (!goes_on).then_some(extent)
    }

    /// Its first two words: the keyword and the name. `None` when it has no name.
    #[must_use]
    pub fn title(&self) -> Option<String> {
        Some(format!("{} {}", self.kind.word(), self.name()?.text()))
    }

    /// A hash of the text of the section; comments and blanks do not affect it.
    #[must_use]
    pub fn mark(&self, sources: &SourceMap) -> u64 {
        let mut said = Xxh64::new(0);
        for line in self.all_lines().filter(|line| !line.words.is_empty()) {
            let mut end = line.span.start;
            for span in line.words.iter().map(Word::span) {
                // Words of one `"${A[*]}"` share a span.
                if span.start >= end && !span.is_empty() {
                    said.update(sources.slice(span));
                    said.update(b"\0");
                }
                end = end.max(span.end);
            }
            said.update(b"\n");
        }
        said.digest()
    }

    /// The header and all lines.
    pub fn all_lines(&self) -> impl Iterator<Item = &SourceLine> {
        self.header.iter().chain(&self.lines)
    }
}

/// The place of a proxy's section in the files, and a hash of its text.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SectionPlace {
    /// Its first two words.
    pub title: String,
    /// The index of its file.
    pub file: usize,
    /// Its bytes there: see [`Section::extent`].
    pub bytes: Range<usize>,
    /// See [`Section::mark`].
    pub mark: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted_and_complete() {
        assert!(SECTIONS.is_sorted_by_key(|row| row.word));
        for row in SECTIONS {
            assert_eq!(SectionKind::of(row.word), Some(row.kind));
            assert_eq!(row.kind.word(), row.word);
        }
        assert_eq!(SectionKind::of("Global"), None);
        assert_eq!(SectionKind::Preamble.row().map(|row| row.word), None);
    }

    /// The text of each section of a file.
    fn extents(text: &str) -> Vec<&str> {
        let document = crate::parse_str("f", text);
        let extents = document.sections.iter().filter_map(Section::extent);
        extents.map(|extent| &text[extent]).collect()
    }

    #[test]
    fn a_section_ends_with_the_last_line_that_says_something() {
        let text = "# of a\nfrontend a\n  # why\n  bind :1\n\n# of b\nbackend b # b\n  mode tcp";
        assert_eq!(
            extents(text),
            [
                "frontend a\n  # why\n  bind :1\n",
                "backend b # b\n  mode tcp"
            ]
        );
    }

    #[test]
    fn a_block_is_in_a_section_or_around_it() {
        let inside = "frontend a\n .if 0\n  bind :1\n .endif\n\nbackend b\n";
        assert_eq!(
            extents(inside),
            ["frontend a\n .if 0\n  bind :1\n .endif\n", "backend b\n"]
        );
        let around = ".if 1\nfrontend a\n bind :1\n.else\nfrontend a\n bind :2\n.endif\n";
        assert_eq!(extents(around), ["frontend a\n bind :1\n"]);
        let beyond = ".if 1\nfrontend a\n bind :1\n.endif\n mode tcp\nbackend b\n";
        assert_eq!(extents(beyond), ["backend b\n"]);
        let after = "frontend a\n bind :1\n.if 0\nbackend b\n mode tcp\n.endif\n";
        assert_eq!(extents(after), ["frontend a\n bind :1\n"]);
    }
}
