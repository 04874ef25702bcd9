//! Splits a line into words: quotes, escapes and variables.
//!
//! Source: HAProxy configuration manual, sections 2.2 and 2.3; what the manual leaves open follows
//! what HAProxy 2.6 does. `"${VAR-default}"` is the manual's (2.6 refuses it).

use std::ops::Range;

use crate::byte_text::bytes_of_text;
use crate::source::offset;
use crate::word::WordBuilder;
use crate::{
    Diagnostic, Env, FileId, HAPROXY_WORD_COUNT_MAX, RESOLVED_LINE_BYTES_MAX, Span, WORD_COUNT_MAX,
    Word,
};

/// The values of the special variables on this line.
pub(crate) struct LineVariables<'a> {
    pub(crate) env: &'a Env,
    pub(crate) file_name: &'a str,
    pub(crate) line: u32,
    pub(crate) section: &'a str,
}

/// A line split into words.
pub(crate) struct LexedLine {
    pub(crate) words: Vec<Word>,
    pub(crate) comment: Option<Span>,
    /// The rest of the line, when a limit was reached.
    pub(crate) ignored: Option<Span>,
    /// How many bytes the variables added.
    pub(crate) expanded_bytes: usize,
    pub(crate) diagnostics: Vec<Diagnostic>,
}

/// Splits `source`, a line without its end that starts at `base` in `file`, into words.
pub(crate) fn lex(source: &[u8], file: FileId, base: u32, around: &LineVariables<'_>) -> LexedLine {
    let out = LexedLine {
        words: Vec::new(),
        comment: None,
        ignored: None,
        expanded_bytes: 0,
        diagnostics: Vec::new(),
    };
    let mut lexer = Lexer {
        source,
        at: 0,
        file,
        base,
        around,
        token: None,
        resolved_bytes: 0,
        over_bounds: false,
        out,
    };
    lexer.run();
    lexer.out
}

/// What separates words: the spaces of C.
pub(crate) fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c)
}

struct Lexer<'a> {
    source: &'a [u8],
    at: usize,
    file: FileId,
    base: u32,
    around: &'a LineVariables<'a>,
    token: Option<Token>,
    resolved_bytes: usize,
    over_bounds: bool,
    out: LexedLine,
}

/// The text between two spaces; one word, or several when a list is expanded in it.
struct Token {
    start: usize,
    complete: Vec<WordBuilder>,
    word: WordBuilder,
    /// A list was expanded: if the last word is empty, it is dropped.
    is_list: bool,
    /// A space of a list was reached: the next text starts a new word, if this one is not empty.
    is_cut: bool,
}

impl Token {
    fn new(start: usize) -> Self {
        let word = WordBuilder::new();
        Self {
            start,
            complete: Vec::new(),
            word,
            is_list: false,
            is_cut: false,
        }
    }

    /// The word that the next bytes are added to.
    fn open_word(&mut self) -> &mut WordBuilder {
        if std::mem::take(&mut self.is_cut) && self.word.len() > 0 {
            let mut next = WordBuilder::new();
            (next.quoted, next.expanded) = (self.word.quoted, self.word.expanded);
            self.complete.push(std::mem::replace(&mut self.word, next));
        }
        &mut self.word
    }
}

impl Lexer<'_> {
    fn run(&mut self) {
        while let Some(&byte) = self.source.get(self.at) {
            if self.over_bounds {
                self.out.ignored = Some(self.span(self.at..self.source.len()));
                break;
            }
            match byte {
                b'#' if self.token.is_some() => self.finish_token(),
                b'#' => {
                    self.out.comment = Some(self.span(self.at..self.source.len()));
                    break;
                }
                b'"' => self.weak_quotes(),
                b'\'' => self.strong_quotes(),
                b'\\' => self.escape(false),
                _ if is_space(byte) => {
                    self.finish_token();
                    self.at += 1;
                }
                _ => self.plain(),
            }
        }
        self.finish_token();
        if self.over_bounds && self.out.ignored.is_none() && self.at < self.source.len() {
            self.out.ignored = Some(self.span(self.at..self.source.len()));
        }
        self.drop_empty_variables();
        self.end_at_empty_word();
    }

    // === quotes and escapes ===

    fn strong_quotes(&mut self) {
        let start = self.at;
        self.token().word.quoted = true;
        self.at += 1;
        let inside = &self.source[self.at..];
        let Some(len) = memchr::memchr(b'\'', inside) else {
            self.verbatim(inside.len());
            return self.unmatched_quote(start);
        };
        self.verbatim(len);
        self.at += 1;
    }

    fn weak_quotes(&mut self) {
        let start = self.at;
        self.token().word.quoted = true;
        self.at += 1;
        while let Some(&byte) = self.source.get(self.at) {
            match byte {
                b'"' => {
                    self.at += 1;
                    return;
                }
                b'\\' => self.escape(true),
                b'$' => self.variable(),
                _ => self.verbatim(self.run_length(|byte| matches!(byte, b'"' | b'\\' | b'$'))),
            }
            if self.over_bounds {
                return;
            }
        }
        self.unmatched_quote(start);
    }

    fn unmatched_quote(&mut self, start: usize) {
        let quote = char::from(self.source[start]);
        let diagnostic =
            Diagnostic::alert("unmatched-quote", format!("quote {quote} is never closed"));
        let span = self.span(start..start + 1);
        let help =
            format!("close it on the same line, or write \\{quote} for the character itself");
        self.out.diagnostics.push(diagnostic.at(span).help(help));
    }

    /// A backslash and what follows. An unknown escape is literal.
    fn escape(&mut self, is_weak: bool) {
        let means = match self.source.get(self.at + 1) {
            Some(b'n') => b'\n',
            Some(b'r') => b'\r',
            Some(b't') => b'\t',
            Some(&byte @ (b' ' | b'"' | b'#' | b'\'' | b'\\')) => byte,
            Some(b'$') if is_weak => b'$',
            Some(b'x') => return self.hex_escape(),
            _ => return self.verbatim(1),
        };
        self.substitute(&[means], 2);
    }

    fn hex_escape(&mut self) {
        let digit = |at: usize| char::from(*self.source.get(at)?).to_digit(16);
        if let (Some(high), Some(low)) = (digit(self.at + 2), digit(self.at + 3)) {
            let byte = u8::try_from(high * 16 + low).expect("two hexadecimal digits are a byte");
            return self.substitute(&[byte], 4);
        }
        let span = self.span(self.at..(self.at + 4).min(self.source.len()));
        let message = "\\x must be followed by two hexadecimal digits";
        self.out.diagnostics.push(
            Diagnostic::alert("bad-hex-escape", message)
                .at(span)
                .help("write \\\\x for a backslash and an x"),
        );
        self.verbatim(2);
    }

    // === variables ===

    fn variable(&mut self) {
        let start = self.at;
        match self.read_variable() {
            Ok(Variable {
                name,
                default,
                is_list,
                end,
            }) => {
                let value = self.value_of(&name, default, start..end);
                self.expand(&value, is_list, start..end);
            }
            Err(diagnostic) => {
                self.out.diagnostics.push(diagnostic);
                self.verbatim(1);
            }
        }
    }

    fn read_variable(&self) -> Result<Variable, Diagnostic> {
        let byte = |at: usize| self.source.get(at).copied();
        let is_braced = byte(self.at + 1) == Some(b'{');
        let name_start = self.at + 1 + usize::from(is_braced);
        let dotted = usize::from(byte(name_start) == Some(b'.'));
        let mut at = name_start + dotted;
        while byte(at).is_some_and(|b| b.is_ascii_alphanumeric() || b == b'_') {
            at += 1;
        }
        let name = String::from_utf8_lossy(&self.source[name_start..at]).into_owned();
        self.check_name(&name, name_start)?;
        if !is_braced {
            return Ok(Variable {
                name,
                default: None,
                is_list: false,
                end: at,
            });
        }

        let mut is_list = false;
        if byte(at) == Some(b'[') {
            if !self.source[at..].starts_with(b"[*]") {
                let span = self.span(at..(at + 3).min(self.source.len()));
                let message = format!("expected [*] after variable '{name}'");
                return Err(Diagnostic::alert("bad-word-expansion", message).at(span));
            }
            is_list = true;
            at += 3;
        }
        let mut default = None;
        if byte(at) == Some(b'-') {
            let len = memchr::memchr(b'}', &self.source[at..]);
            let mut value = at + 1..at + len.unwrap_or(1);
            at = value.end;
            if self.source[value.clone()].ends_with(b"[*]") {
                is_list = true;
                value.end -= 3;
            }
            default = Some(value);
        }
        if byte(at) != Some(b'}') {
            let message = format!("expected }} after variable '{name}'");
            let span = self.span(self.at..at);
            return Err(Diagnostic::alert("unmatched-brace", message).at(span));
        }
        Ok(Variable {
            name,
            default,
            is_list,
            end: at + 1,
        })
    }

    fn check_name(&self, name: &str, at: usize) -> Result<(), Diagnostic> {
        let is_pseudo = [".FILE", ".LINE", ".SECTION"].contains(&name);
        let is_plain = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        if is_pseudo || is_plain {
            return Ok(());
        }
        let message = if name.is_empty() {
            "expected a variable's name after $".to_owned()
        } else {
            format!("'{name}' is no variable's name")
        };
        let end = (at + name.len().max(1)).min(self.source.len());
        Err(Diagnostic::alert("bad-variable-name", message)
            .at(self.span(at..end))
            .help("write \\$ for a dollar sign between double quotes"))
    }

    fn value_of(&mut self, name: &str, default: Option<Range<usize>>, at: Range<usize>) -> Vec<u8> {
        match name {
            ".FILE" => self.around.file_name.into(),
            ".LINE" => self.around.line.to_string().into(),
            ".SECTION" => self.around.section.into(),
            _ => match (self.around.env.value(name), default) {
                (Some(value), _) => bytes_of_text(value).into_owned(),
                (None, Some(default)) => self.source[default].into(),
                (None, None) => {
                    let message = format!("variable '{name}' is not set");
                    let span = self.span(at);
                    self.out
                        .diagnostics
                        .push(Diagnostic::diag("unset-variable", message).at(span));
                    Vec::new()
                }
            },
        }
    }

    fn expand(&mut self, value: &[u8], is_list: bool, from: Range<usize>) {
        let end = from.end;
        self.out.expanded_bytes += value.len();
        self.token().word.expanded = true;
        let origin = self.offset(from.start)..self.offset(end);
        if !is_list {
            self.substitute(value, end - from.start);
            return;
        }
        self.token().is_list = true;
        for (index, part) in value.split(|&byte| is_space(byte)).enumerate() {
            self.resolved_bytes += part.len();
            let token = self.token();
            token.is_cut |= index > 0;
            if !part.is_empty() {
                token.open_word().push_substituted(part, origin.clone());
            }
        }
        self.at = end;
        self.check_bounds();
    }

    // === words ===

    fn token(&mut self) -> &mut Token {
        let at = self.at;
        self.token.get_or_insert_with(|| Token::new(at))
    }

    /// The bytes up to the next one that means something outside of quotes. Most words are nothing
    /// else: such a word is made at once.
    fn plain(&mut self) {
        let means_something = |byte| matches!(byte, b'#' | b'"' | b'\'' | b'\\') || is_space(byte);
        let len = self.run_length(means_something);
        let end = self.at + len;
        let next = self.source.get(end).copied();
        let bytes = &self.source[self.at..end];
        if self.token.is_none()
            && next.is_none_or(|next| next == b'#' || is_space(next))
            && self.resolved_bytes + len <= RESOLVED_LINE_BYTES_MAX
            && let Ok(text) = std::str::from_utf8(bytes)
            && memchr::memchr(0, bytes).is_none()
        {
            let word = Word::verbatim(text, self.span(self.at..end));
            self.at = end;
            self.resolved_bytes += len;
            self.push_word(word);
            return;
        }
        self.verbatim(len);
    }

    /// How many bytes from here on, at least one, mean themselves. The byte that takes the line over
    /// its limit is the last one.
    fn run_length(&self, means_something: impl Fn(u8) -> bool) -> usize {
        let within = RESOLVED_LINE_BYTES_MAX.saturating_sub(self.resolved_bytes) + 1;
        let rest = self.source[self.at..].iter().take(within).skip(1);
        1 + rest.take_while(|byte| !means_something(**byte)).count()
    }

    /// Adds `len` bytes literally.
    fn verbatim(&mut self, len: usize) {
        let (bytes, source) = (&self.source[self.at..self.at + len], self.offset(self.at));
        let token = self.token.get_or_insert_with(|| Token::new(self.at));
        token.open_word().push_verbatim(bytes, source);
        self.at += len;
        self.resolved_bytes += len;
        self.check_bounds();
    }

    /// Adds `len` bytes that mean `bytes`.
    fn substitute(&mut self, bytes: &[u8], len: usize) {
        let origin = self.offset(self.at)..self.offset(self.at + len);
        if !bytes.is_empty() {
            self.token().open_word().push_substituted(bytes, origin);
        }
        self.at += len;
        self.resolved_bytes += bytes.len();
        self.check_bounds();
    }

    fn finish_token(&mut self) {
        let Some(token) = self.token.take() else {
            return;
        };
        let span = self.span(token.start..self.at);
        let is_dropped = token.is_list && token.word.len() == 0;
        let last = (!is_dropped).then_some(token.word);
        for mut word in token.complete.into_iter().chain(last) {
            if word.cut_at_nul() {
                let message = "the word ends at its NUL character, as it does in HAProxy";
                self.out
                    .diagnostics
                    .push(Diagnostic::warning("nul-in-word", message).at(span));
            }
            self.push_word(word.finish(span));
        }
    }

    fn push_word(&mut self, word: Word) {
        let count = self.out.words.len();
        if count == WORD_COUNT_MAX {
            if !self.over_bounds {
                let message = format!("more than {WORD_COUNT_MAX} words in one line");
                let diagnostic = Diagnostic::alert("too-many-words", message).at(word.span());
                self.out.diagnostics.push(diagnostic);
            }
            self.over_bounds = true;
            // The word is dropped, so its bytes belong to the ignored part, unless they gave
            // another word.
            let kept_end = self
                .out
                .words
                .last()
                .map_or(self.base, |last| last.span().end);
            self.at = (word.span().start.max(kept_end) - self.base) as usize;
            return;
        }
        if count == HAPROXY_WORD_COUNT_MAX {
            let message =
                format!("more than {HAPROXY_WORD_COUNT_MAX} words: HAProxy refuses the line");
            self.out
                .diagnostics
                .push(Diagnostic::warning("many-words", message).at(word.span()));
        }
        if !word.is_utf8() {
            let message = "the word is not UTF-8";
            self.out
                .diagnostics
                .push(Diagnostic::warning("not-utf8", message).at(word.span()));
        }
        self.out.words.push(word);
    }

    fn check_bounds(&mut self) {
        if self.resolved_bytes <= RESOLVED_LINE_BYTES_MAX || self.over_bounds {
            return;
        }
        self.over_bounds = true;
        let message = format!("the line is over {RESOLVED_LINE_BYTES_MAX} bytes once expanded");
        let span = self.span(0..self.at);
        self.out
            .diagnostics
            .push(Diagnostic::alert("line-too-long", message).at(span));
    }

    /// A word of variables without values is dropped when another follows; as the last word it is
    /// an empty argument.
    fn drop_empty_variables(&mut self) {
        let mut left = self.out.words.len();
        self.out.words.retain(|word| {
            left -= 1;
            left == 0 || !word.is_expanded() || !word.text().is_empty()
        });
    }

    /// An empty word ends the line: HAProxy reads none of the words behind it, and warns. Directives take it for what it is.
    fn end_at_empty_word(&mut self) {
        let words = &self.out.words;
        let Some(at) = words.iter().position(|word| word.text().is_empty()) else {
            return;
        };
        if words[0].text().starts_with('.') {
            return;
        }
        let message =
            format!("argument number {at} is empty and ends the line; what follows it is ignored");
        let mut diagnostic = Diagnostic::warning("empty-word", message).at(words[at].span());
        if words[at].is_expanded() {
            diagnostic = diagnostic.help("\"${NAME[*]}\" gives no word when the variable is empty");
        }
        self.out.diagnostics.push(diagnostic);
        self.out.words.truncate(at);
    }

    fn offset(&self, at: usize) -> u32 {
        self.base + offset(at)
    }

    fn span(&self, range: Range<usize>) -> Span {
        Span::new(self.file, self.offset(range.start), self.offset(range.end))
    }
}

/// A variable as written.
struct Variable {
    name: String,
    /// The range of its default value.
    default: Option<Range<usize>>,
    is_list: bool,
    /// The offset after it.
    end: usize,
}
