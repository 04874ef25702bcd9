//! A line: its words, its comment, and the parts that give its bytes back.

use crate::{Span, Word};

/// The kind of a line.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum LineKind {
    /// It has no word: empty, spaces, or only a comment.
    Blank,
    /// A directive of the configuration language (`.if`, `.notice` ...).
    Directive(Directive),
    /// It opens a section.
    Header,
    /// A statement within a section.
    Statement,
}

/// The directives, as in section 2.4 of the manual.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[expect(missing_docs, reason = "each is the word it names")]
pub enum Directive {
    Alert,
    Diag,
    Elif,
    Else,
    Endif,
    If,
    Notice,
    /// An unknown word with a leading dot.
    Unknown,
    Warning,
}

impl Directive {
    /// The directive that a first word is; `None` without a leading dot.
    #[must_use]
    pub fn of(word: &str) -> Option<Self> {
        Some(match word.strip_prefix('.')? {
            "alert" => Self::Alert,
            "diag" => Self::Diag,
            "elif" => Self::Elif,
            "else" => Self::Else,
            "endif" => Self::Endif,
            "if" => Self::If,
            "notice" => Self::Notice,
            "warning" => Self::Warning,
            _ => Self::Unknown,
        })
    }
}

/// One line of a file.
#[derive(Clone, Debug)]
pub struct SourceLine {
    /// Its kind.
    pub kind: LineKind,
    /// The line number in its file, from 1.
    pub number: u32,
    /// The whole line with its line end.
    pub span: Span,
    /// The words, in order.
    pub words: Vec<Word>,
    /// The comment from its `#` on, without line end.
    pub comment: Option<Span>,
    /// The part that is not parsed: what follows a carriage return or NUL within the line, or a
    /// line over the limits.
    pub ignored: Option<Span>,
    /// The line end: `\n`, `\r\n`, or empty at the end of a file without final newline.
    pub end: Span,
    /// Whether a conditional block excludes it; for `.elif`, `.else` and `.endif`, whether the
    /// branch they end was excluded.
    pub skipped: bool,
    /// Whether an alert was reported about its form: only some of the words may be there then.
    pub has_error: bool,
}

impl SourceLine {
    /// Whether it is an active statement: not blank, not a directive or header, not skipped,
    /// without error.
    #[must_use]
    pub fn is_statement(&self) -> bool {
        self.kind == LineKind::Statement && !self.skipped && !self.has_error
    }

    /// The text of word `index`, empty when there is none, as HAProxy's parsers see it.
    #[must_use]
    pub fn text(&self, index: usize) -> &str {
        self.words.get(index).map_or("", Word::text)
    }

    /// From the first word to the last as written; the end of the line when there are none.
    #[must_use]
    pub fn words_span(&self) -> Span {
        match (self.words.first(), self.words.last()) {
            (Some(first), Some(last)) => first.span().to(last.span()),
            _ => Span::new(self.span.file, self.end.start, self.end.start),
        }
    }

    /// The parts of the line, in order and without gaps: together they are the bytes of the line.
    #[must_use]
    pub fn pieces(&self) -> Vec<LinePart> {
        let words = self
            .words
            .iter()
            .map(|word| (LinePartKind::Word, word.span()));
        let comment = self.comment.map(|span| (LinePartKind::Comment, span));
        let ignored = self.ignored.map(|span| (LinePartKind::Ignored, span));
        let end = std::iter::once((LinePartKind::LineEnd, self.end));

        let mut at = self.span.start;
        let mut pieces = Vec::new();
        for (kind, span) in words.chain(comment).chain(ignored).chain(end) {
            if span.start < at {
                continue; // Words of one `"${A[*]}"` share a span.
            }
            if span.start > at {
                let space = Span::new(span.file, at, span.start);
                pieces.push(LinePart {
                    kind: LinePartKind::Space,
                    span: space,
                });
            }
            if !span.is_empty() {
                pieces.push(LinePart { kind, span });
            }
            at = span.end;
        }
        pieces
    }
}

/// The kind of a part of a line.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum LinePartKind {
    /// From `#` to the end of the line.
    Comment,
    /// Bytes that were not parsed.
    Ignored,
    /// `\n`, `\r\n`.
    LineEnd,
    /// Spaces and tabs; at the start of a file, a byte order mark too.
    Space,
    /// A word with its quotes.
    Word,
}

/// A part of a line.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct LinePart {
    /// Its kind.
    pub kind: LinePartKind,
    /// Its place.
    pub span: Span,
}
