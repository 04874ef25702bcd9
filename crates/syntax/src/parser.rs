//! Parses files into a [`Document`], line by line.

use std::ops::Range;

use crate::conditional::Blocks;
use crate::lexer::{LexedLine, LineVariables, is_space, lex};
use crate::source::offset;
use crate::{
    ConditionError, DIAGNOSTIC_COUNT_MAX, Diagnostic, Directive, Document, EXPANDED_BYTES_MAX, Env,
    FILE_BYTES_MAX, FileId, FixedFacts, LINE_BYTES_MAX, LINE_COUNT_MAX, LineKind, ProgramFacts,
    SECTIONS, Section, SectionKind, Severity, SourceLine, SourceMap, Span, Word, condition,
};

/// Parses several files, given as name and bytes, in sequence.
pub fn parse<N: Into<String>>(
    files: impl IntoIterator<Item = (N, Vec<u8>)>,
    env: Env,
    facts: &dyn ProgramFacts,
) -> Document {
    let mut parser = Parser::new(env, facts);
    for (name, bytes) in files {
        parser.add_file(name, bytes);
    }
    parser.finish()
}

/// Parses one text in an empty environment where every predicate about the program is false: for
/// tests and for tools that only need the syntax.
#[must_use]
pub fn parse_str(name: &str, text: &str) -> Document {
    parse(
        [(name, text.as_bytes().to_vec())],
        Env::new(),
        &FixedFacts::default(),
    )
}

/// Parses files in sequence; each starts with the environment at the end of the one before.
pub struct Parser<'f> {
    facts: &'f dyn ProgramFacts,
    document: Document,
    blocks: Blocks,
    /// The value of `${.SECTION}`.
    section_name: String,
    expanded_bytes: usize,
    dropped_diagnostics: usize,
}

impl<'f> Parser<'f> {
    /// A parser with an initial environment: usually the process's, and HAProxy's own variables
    /// (`HAPROXY_LOCALPEER` ...).
    #[must_use]
    pub fn new(env: Env, facts: &'f dyn ProgramFacts) -> Self {
        let (sources, sections, diagnostics) = (SourceMap::new(), Vec::new(), Vec::new());
        Self {
            facts,
            document: Document {
                sources,
                sections,
                diagnostics,
                env,
            },
            blocks: Blocks::default(),
            section_name: String::new(),
            expanded_bytes: 0,
            dropped_diagnostics: 0,
        }
    }

    /// Parses one more file. `None`, and an alert, when it is larger than [`FILE_BYTES_MAX`].
    pub fn add_file(&mut self, name: impl Into<String>, bytes: Vec<u8>) -> Option<FileId> {
        let name = name.into();
        let Some(file) = self.document.sources.add(name.clone(), bytes) else {
            let message = format!("file '{name}' is over {FILE_BYTES_MAX} bytes");
            self.report(Diagnostic::alert("file-too-large", message));
            return None;
        };
        self.section_name.clear();
        self.open_section(SectionKind::Preamble, file, None);

        // `sources` owns the bytes that the loop reads while it changes `self`, so it is taken out
        // of `self` until the file is parsed.
        let sources = std::mem::take(&mut self.document.sources);
        let bytes = sources.bytes(file);
        let mut start = 0;
        for number in 1.. {
            if start == bytes.len() {
                break;
            }
            // The line over the limit is the rest of the file.
            let newline =
                memchr::memchr(b'\n', &bytes[start..]).filter(|_| number <= LINE_COUNT_MAX);
            let end = newline.map_or(bytes.len(), |at| start + at + 1);
            self.parse_line(&LineSource {
                file,
                name: &name,
                number,
                bytes,
                range: start..end,
            });
            start = end;
        }
        self.document.sources = sources;
        for diagnostic in std::mem::take(&mut self.blocks).finish() {
            self.report(diagnostic);
        }
        Some(file)
    }

    /// The finished tree.
    #[must_use]
    pub fn finish(mut self) -> Document {
        if self.dropped_diagnostics > 0 {
            let message = format!("{} more messages are not shown", self.dropped_diagnostics);
            self.document
                .diagnostics
                .push(Diagnostic::alert("too-many-messages", message));
        }
        self.document
    }

    /// Parses one line: splits it into words, reports what is wrong with it, adds it to the tree.
    fn parse_line(&mut self, source: &LineSource<'_>) {
        let layout = source.layout();
        let mut found = layout.diagnostics;
        let is_active = self.blocks.is_active();
        let lexed = self.lex(source, layout.content.clone());
        found.extend(lexed.diagnostics);
        if self.expanded_bytes > EXPANDED_BYTES_MAX {
            let message = format!("variables come to over {EXPANDED_BYTES_MAX} bytes");
            found.push(
                Diagnostic::alert("expansion-too-long", message).at(source.span(layout.content)),
            );
        }
        let ignored = match (lexed.ignored, layout.ignored) {
            (Some(first), Some(last)) => Some(first.to(last)),
            (first, last) => first.or(last),
        };
        let has_error = found.iter().any(|found| found.severity == Severity::Alert);
        for diagnostic in found {
            // HAProxy splits a line into words before it skips it: what cannot be split (quotes,
            // variables, escapes) is an error in a skipped line too. Warnings are not.
            if is_active || diagnostic.severity == Severity::Alert {
                self.report(diagnostic);
            }
        }
        self.add_line(SourceLine {
            kind: LineKind::Blank,
            number: source.number,
            span: source.span(source.range.clone()),
            words: lexed.words,
            comment: lexed.comment,
            ignored,
            end: layout.end,
            skipped: !is_active,
            has_error,
        });
    }

    fn lex(&mut self, source: &LineSource<'_>, content: Range<usize>) -> LexedLine {
        let variables = LineVariables {
            env: &self.document.env,
            file_name: source.name,
            line: source.number,
            section: &self.section_name,
        };
        let lexed = lex(
            &source.bytes[content.clone()],
            source.file,
            offset(content.start),
            &variables,
        );
        self.expanded_bytes = self.expanded_bytes.saturating_add(lexed.expanded_bytes);
        if self.expanded_bytes <= EXPANDED_BYTES_MAX || lexed.expanded_bytes == 0 {
            return lexed;
        }
        // The words are dropped here: kept in the tree, they would take the memory that the limit
        // protects.
        let ignored = Some(source.span(content));
        LexedLine {
            words: Vec::new(),
            comment: None,
            ignored,
            ..lexed
        }
    }

    /// Classifies a line, applies it to the state of the parser, and adds it to the tree.
    fn add_line(&mut self, mut line: SourceLine) {
        let Some(first) = line.words.first() else {
            return self.push(line);
        };
        if let Some(directive) = Directive::of(first.text()) {
            line.kind = LineKind::Directive(directive);
            if !line.has_error {
                self.handle_directive(directive, &line);
            } else if directive == Directive::If {
                // The block is opened all the same, or its `.endif` would be reported too.
                let _ = self.blocks.open(first.span(), || Ok(false));
            } else if directive == Directive::Endif {
                let _ = self.blocks.close(first.span());
            }
            return self.push(line);
        }
        let section = SectionKind::of(first.text());
        match section {
            Some(kind) if !line.skipped => {
                line.kind = LineKind::Header;
                let name = line.words.get(1).unwrap_or(first).text();
                self.section_name = name.to_owned();
                self.open_section(kind, line.span.file, Some(line));
            }
            Some(_) => {
                line.kind = LineKind::Header;
                self.push(line);
            }
            None => {
                line.kind = LineKind::Statement;
                if line.is_statement() {
                    self.handle_statement(&line);
                }
                self.push(line);
            }
        }
    }

    /// Applies what a statement changes for the lines that follow, and reports one before the first
    /// section.
    fn handle_statement(&mut self, line: &SourceLine) {
        match self.document.sections.last().map(|section| section.kind) {
            // Searching for a similar word is not worth the time for a message that is dropped.
            Some(SectionKind::Preamble) if self.dropped_diagnostics > 0 => {
                self.dropped_diagnostics += 1;
            }
            Some(SectionKind::Preamble) => self.report(out_of_section(&line.words[0])),
            Some(SectionKind::Global) => self.apply_environment_statement(line),
            _ => {}
        }
    }

    // === directives ===

    /// Applies a directive to the blocks, or reports its message.
    fn handle_directive(&mut self, directive: Directive, line: &SourceLine) {
        let at = line.words[0].span();
        let word = line.words[0].text();
        let (env, facts) = (&self.document.env, self.facts);
        let result = match directive {
            Directive::If => self
                .blocks
                .open(at, || evaluate_condition(line, env, facts)),
            Directive::Elif => {
                self.blocks
                    .switch(word, at, Some(|| evaluate_condition(line, env, facts)))
            }
            Directive::Else => {
                let none: Option<fn() -> Result<bool, Diagnostic>> = None;
                self.blocks
                    .switch(word, at, none)
                    .and(reject_extra_words(line, 1))
            }
            Directive::Endif => self.blocks.close(at).and(reject_extra_words(line, 1)),
            _ if line.skipped => Ok(()),
            Directive::Unknown => Err(unknown_directive(&line.words[0])),
            Directive::Alert | Directive::Diag | Directive::Notice | Directive::Warning => {
                reject_extra_words(line, 2)
                    .and_then(|()| Err(diagnostic_of_message(directive, line)))
            }
        };
        if let Err(diagnostic) = result {
            self.report(diagnostic);
        }
    }

    // === the environment ===

    /// `setenv` and related keywords, which affect the lines that follow.
    ///
    /// Source: HAProxy configuration manual, section 3.1. `localpeer` sets `HAPROXY_LOCALPEER`.
    fn apply_environment_statement(&mut self, line: &SourceLine) {
        let env = &mut self.document.env;
        let (name, value) = (line.text(1), line.text(2));
        let rest = || {
            line.words[1..]
                .iter()
                .take_while(|word| !word.text().is_empty())
        };
        let mut failed = None;
        match line.text(0) {
            "localpeer" if !name.is_empty() => {
                env.set("HAPROXY_LOCALPEER", name)
                    .expect("the name is a variable's");
            }
            word @ ("presetenv" | "setenv") => {
                let extra = line.text(3);
                if !extra.is_empty() {
                    let message = format!("unexpected word '{extra}' after '{word}'");
                    failed = Some((message, line.words[3].span()));
                } else if value.is_empty() {
                    failed = Some((
                        format!("'{word}' wants a name and a value"),
                        line.words_span(),
                    ));
                } else {
                    let set = if word == "setenv" {
                        Env::set
                    } else {
                        Env::preset
                    };
                    if let Err(error) = set(env, name, value) {
                        failed = Some((error.to_string(), line.words[1].span()));
                    }
                }
            }
            "resetenv" => env.reset_except(&rest().map(Word::text).collect::<Vec<_>>()),
            "unsetenv" => {
                if rest().next().is_none() {
                    failed = Some(("'unsetenv' wants a name".to_owned(), line.words_span()));
                }
                for word in rest() {
                    if let Err(error) = env.unset(word.text()) {
                        failed = Some((error.to_string(), word.span()));
                    }
                }
            }
            _ => {}
        }
        if let Some((message, span)) = failed {
            self.report(Diagnostic::alert("bad-environment", message).at(span));
        }
    }

    // === the tree ===

    fn open_section(&mut self, kind: SectionKind, file: FileId, header: Option<SourceLine>) {
        self.document.sections.push(Section {
            kind,
            file,
            header,
            lines: Vec::new(),
        });
    }

    fn push(&mut self, line: SourceLine) {
        let section = self.document.sections.last_mut();
        section
            .expect("each file starts with a preamble")
            .lines
            .push(line);
    }

    fn report(&mut self, diagnostic: Diagnostic) {
        if self.document.diagnostics.len() < DIAGNOSTIC_COUNT_MAX {
            self.document.diagnostics.push(diagnostic);
        } else {
            self.dropped_diagnostics += 1;
        }
    }
}

/// One line of a file.
struct LineSource<'a> {
    file: FileId,
    name: &'a str,
    number: u32,
    /// The whole file.
    bytes: &'a [u8],
    /// The line with its end.
    range: Range<usize>,
}

/// A line before it is split into words.
struct LineLayout {
    /// The part that is split into words.
    content: Range<usize>,
    /// The part after `content`, up to the line end, which is not parsed.
    ignored: Option<Span>,
    end: Span,
    diagnostics: Vec<Diagnostic>,
}

impl LineSource<'_> {
    fn span(&self, range: Range<usize>) -> Span {
        Span::new(self.file, offset(range.start), offset(range.end))
    }

    /// Finds the line end and the part that is not parsed.
    fn layout(&self) -> LineLayout {
        let Range { mut start, end } = self.range;
        let mut diagnostics = Vec::new();
        let line = &self.bytes[start..end];
        if start == 0 && line.starts_with(b"\xef\xbb\xbf") {
            start += 3;
            let message = "the file starts with a byte order mark, which HAProxy refuses";
            let span = self.span(0..3);
            let diagnostic = Diagnostic::warning("byte-order-mark", message).at(span);
            diagnostics.push(diagnostic.replace(span, ""));
        }
        let text_end = match self.bytes[start..end].split_last() {
            Some((b'\n', text)) => {
                start
                    + text
                        .iter()
                        .rposition(|&b| b != b'\r')
                        .map_or(0, |at| at + 1)
            }
            _ => end,
        };
        if end == self.bytes.len() && !self.bytes.ends_with(b"\n") {
            let message =
                "missing line feed at the end of the last line: the file may have been cut off";
            let span = self.span(end..end);
            let diagnostic = Diagnostic::alert("missing-final-newline", message).at(span);
            diagnostics.push(diagnostic.replace(span, "\n"));
        }

        let content_end = self.content_end(start..text_end, &mut diagnostics);
        let ignored = (content_end < text_end).then(|| self.span(content_end..text_end));
        LineLayout {
            content: start..content_end,
            ignored,
            end: self.span(text_end..end),
            diagnostics,
        }
    }

    /// The end of the part of the line that is parsed: the first NUL or carriage return, else the
    /// end of the text. Nothing is parsed of a line over the limits.
    fn content_end(&self, text: Range<usize>, diagnostics: &mut Vec<Diagnostic>) -> usize {
        if self.number > LINE_COUNT_MAX {
            let message = format!("the file is over {LINE_COUNT_MAX} lines: the rest is not read");
            diagnostics
                .push(Diagnostic::alert("too-many-lines", message).at(self.span(text.clone())));
            return text.start;
        }
        if text.len() > LINE_BYTES_MAX {
            let message = format!("the line is over {LINE_BYTES_MAX} bytes");
            diagnostics
                .push(Diagnostic::alert("line-too-long", message).at(self.span(text.clone())));
            return text.start;
        }
        let bytes = &self.bytes[text.clone()];
        let Some(at) = memchr::memchr2(b'\r', 0, bytes) else {
            return text.end;
        };
        let span = self.span(text.start + at..text.start + at + 1);
        if memchr::memchr(0, &bytes[at..]).is_some() {
            let message = "a NUL character in the line: what follows is not read";
            diagnostics.push(Diagnostic::alert("nul-character", message).at(span));
        } else if bytes[at..].iter().any(|&byte| !is_space(byte)) {
            let message = "a carriage return in the line: what follows is ignored, as in HAProxy";
            diagnostics.push(Diagnostic::warning("carriage-return", message).at(span));
        }
        text.start + at
    }
}

// === arguments of directives ===

/// The condition of an `.if` or `.elif`: all words after the first, separated by spaces.
fn evaluate_condition(
    line: &SourceLine,
    env: &Env,
    facts: &dyn ProgramFacts,
) -> Result<bool, Diagnostic> {
    let words = &line.words[1..];
    let texts: Vec<&str> = words.iter().map(Word::text).collect();
    condition::evaluate(&texts.join(" "), env, facts).map_err(|error| {
        let span = condition_span(words, &error).unwrap_or_else(|| line.words_span());
        condition::diagnostic(&error).at(span)
    })
}

/// Where in the words an error of a condition is.
fn condition_span(words: &[Word], error: &ConditionError) -> Option<Span> {
    let mut start = 0;
    for word in words {
        let end = start + word.text().len();
        if error.at.start <= end {
            return Some(word.span_of(
                error.at.start - start..error.at.end.min(end).max(error.at.start) - start,
            ));
        }
        start = end + 1;
    }
    words
        .last()
        .map(|word| word.span_of(word.text().len()..word.text().len()))
}

fn reject_extra_words(line: &SourceLine, count: usize) -> Result<(), Diagnostic> {
    let Some(word) = line.words.get(count).filter(|word| !word.text().is_empty()) else {
        return Ok(());
    };
    let message = format!("unexpected word '{}' after '{}'", word.text(), line.text(0));
    let mut diagnostic = Diagnostic::alert("unexpected-word", message).at(word.span());
    if count > 1 {
        diagnostic = diagnostic.help("put the message between quotes");
    }
    Err(diagnostic)
}

/// The message of `.notice` and related directives, in quotes and with a full stop as HAProxy
/// prints it.
fn diagnostic_of_message(directive: Directive, line: &SourceLine) -> Diagnostic {
    let (severity, code) = match directive {
        Directive::Alert => (Severity::Alert, "alert-directive"),
        Directive::Warning => (Severity::Warning, "warning-directive"),
        Directive::Notice => (Severity::Notice, "notice-directive"),
        _ => (Severity::Diag, "diag-directive"),
    };
    Diagnostic::new(severity, code, format!("'{}'.", line.text(1))).at(line.words_span())
}

fn unknown_directive(word: &Word) -> Diagnostic {
    const WORDS: [&str; 8] = [
        ".alert", ".diag", ".elif", ".else", ".endif", ".if", ".notice", ".warning",
    ];
    let diagnostic = Diagnostic::alert(
        "unknown-directive",
        format!("unknown directive '{}'", word.text()),
    );
    suggest(diagnostic.at(word.span()), word, WORDS)
}

fn out_of_section(word: &Word) -> Diagnostic {
    let message = format!("'{}' before the first section", word.text());
    let diagnostic = Diagnostic::alert("out-of-section", message).at(word.span());
    let suggested = suggest(diagnostic, word, SECTIONS.iter().map(|row| row.word));
    match suggested.help {
        Some(_) => suggested,
        None => suggested.help("a file starts with a section such as 'global' or 'defaults'"),
    }
}

/// Adds the most similar of `words` to a diagnostic about `word`, if one is similar enough.
fn suggest(
    diagnostic: Diagnostic,
    word: &Word,
    words: impl IntoIterator<Item = &'static str>,
) -> Diagnostic {
    if word.text().len() > 40 {
        return diagnostic;
    }
    let written = word.text().to_lowercase();
    let distance = |known: &str| strsim::damerau_levenshtein(known, &written);
    let near = words
        .into_iter()
        .map(|known| (distance(known), known))
        .min();
    match near {
        Some((distance, known)) if distance <= 2 && distance < known.len() / 2 => diagnostic
            .help(format!("did you mean '{known}'?"))
            .replace(word.span(), known),
        _ => diagnostic,
    }
}

#[cfg(test)]
#[path = "parser_tests.rs"]
mod tests;
