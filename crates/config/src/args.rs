//! The words of a line after its keyword, taken one by one.
//!
//! Every method that takes a word returns a diagnostic at the wrong word if it fails, so that
//! handlers are a sequence of `?`.

use std::borrow::Cow;
use std::ops::{Range, RangeInclusive};
use std::time::Duration;

use ballast_expr::{AclSet, Condition, Expr, LogFormat, Usage, text_of_bytes};
use ballast_syntax::{
    Diagnostic, Severity, SourceLine, Span, TimeUnit, ValueError, ValueErrorKind, Word, parse_size,
    parse_time, trailing_after_time,
};

use crate::context::suggestion;
use crate::spare_words;

/// The prefix of a keyword.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) enum Prefix {
    /// `default`: returns to the value without the line.
    Default,
    /// `no`.
    No,
    /// Nothing.
    #[default]
    None,
}

/// The words after a keyword.
#[derive(Clone, Debug)]
pub(crate) struct Args<'a> {
    line: &'a SourceLine,
    keyword: &'a str,
    keyword_span: Span,
    at: usize,
    /// The prefix of the keyword.
    pub prefix: Prefix,
    /// What is to be told of values that were taken.
    warnings: Vec<Diagnostic>,
}

impl<'a> Args<'a> {
    /// The words of `line` from index `at` on; `keyword` is the name of the line in messages, and
    /// `first` the index of its first word.
    #[must_use]
    pub(crate) fn new(
        line: &'a SourceLine,
        keyword: &'a str,
        first: usize,
        at: usize,
        prefix: Prefix,
    ) -> Self {
        let keyword_span = match (line.words.get(first), line.words.get(at.max(1) - 1)) {
            (Some(first), Some(last)) => first.span().to(last.span()),
            _ => line.words_span(),
        };
        Self {
            line,
            keyword,
            keyword_span,
            at,
            prefix,
            warnings: Vec::new(),
        }
    }

    /// What is to be told of values that were taken.
    pub(crate) fn take_warnings(&mut self) -> Vec<Diagnostic> {
        std::mem::take(&mut self.warnings)
    }

    /// Reads a time, the word taken last or a part of it; what stands behind its unit is told of.
    ///
    /// # Errors
    /// When it is invalid.
    pub(crate) fn read_time(&mut self, text: &str, unit: TimeUnit) -> Result<u32, ValueError> {
        let time = parse_time(text, unit)?;
        if let Some(found) = time.trailing {
            let warning = self.wrong(trailing_after_time(text, found));
            self.warnings.push(Diagnostic {
                severity: Severity::Warning,
                ..warning
            });
        }
        Ok(time.count)
    }

    /// The same cursor for a word of the line that has its own arguments (`inter` of a server): the
    /// word before the cursor becomes the keyword.
    #[must_use]
    pub(crate) fn for_param(&self, keyword: &'a str) -> Args<'a> {
        let mut param_args = Args::new(
            self.line,
            keyword,
            self.at.max(1) - 1,
            self.at,
            Prefix::None,
        );
        param_args.prefix = self.prefix;
        param_args
    }

    /// The whole line.
    #[must_use]
    pub(crate) fn line(&self) -> &'a SourceLine {
        self.line
    }

    /// The keyword as in its row.
    #[must_use]
    pub(crate) fn keyword(&self) -> &'a str {
        self.keyword
    }

    /// The place of the keyword.
    #[must_use]
    pub(crate) fn keyword_span(&self) -> Span {
        self.keyword_span
    }

    /// From the first word of the line to its last.
    #[must_use]
    pub(crate) fn span(&self) -> Span {
        self.line.words_span()
    }

    /// Index of the next word in the line.
    #[must_use]
    pub(crate) fn position(&self) -> usize {
        self.at
    }

    /// Moves the cursor to word `at` of the line.
    pub(crate) fn seek(&mut self, at: usize) {
        self.at = at.min(self.line.words.len());
    }

    /// The next word, without taking it.
    #[must_use]
    pub(crate) fn peek_word(&self) -> Option<&'a Word> {
        self.line.words.get(self.at)
    }

    /// The text of the next word, without taking it.
    #[must_use]
    pub(crate) fn peek(&self) -> Option<&'a str> {
        self.peek_word().map(Word::text)
    }

    /// Takes the next word.
    pub(crate) fn next_word(&mut self) -> Option<&'a Word> {
        let word = self.peek_word()?;
        self.at += 1;
        Some(word)
    }

    /// Takes the text of the next word.
    pub(crate) fn next(&mut self) -> Option<&'a str> {
        self.next_word().map(Word::text)
    }

    /// Takes the next word if it is this one.
    pub(crate) fn take(&mut self, text: &str) -> bool {
        let is_it = self.peek() == Some(text);
        self.at += usize::from(is_it);
        is_it
    }

    /// Whether no word is left.
    #[must_use]
    pub(crate) fn is_empty(&self) -> bool {
        self.at >= self.line.words.len()
    }

    /// Takes all words left.
    pub(crate) fn rest(&mut self) -> &'a [Word] {
        let rest = self.line.words.get(self.at..).unwrap_or_default();
        self.at = self.line.words.len();
        rest
    }

    /// The texts of all words left, without taking them.
    #[must_use]
    pub(crate) fn texts(&self) -> Vec<&'a str> {
        let rest = self.line.words.get(self.at..).unwrap_or_default();
        rest.iter().map(Word::text).collect()
    }

    /// The same for what compares or writes bytes, as rules and conditions do: bytes that are not UTF-8
    /// are in them as [`text_of_bytes`] says.
    #[must_use]
    pub(crate) fn exact_texts(&self) -> Vec<Cow<'a, str>> {
        let rest = self.line.words.get(self.at..).unwrap_or_default();
        rest.iter().map(exact_text).collect()
    }

    // === diagnostics ===

    /// An alert at the word last taken, or at the keyword when none was.
    #[must_use]
    pub(crate) fn wrong(&self, message: impl Into<String>) -> Diagnostic {
        let word = self.line.words.get(self.at.max(1) - 1);
        let span = word.map_or(self.keyword_span, Word::span);
        Diagnostic::alert("bad-value", message).at(span)
    }

    /// An alert about a missing word.
    #[must_use]
    pub(crate) fn missing_argument(&self, what: &str) -> Diagnostic {
        let message = format!("'{}' expects {what}", self.keyword);
        Diagnostic::alert("missing-argument", message).at(self.keyword_span)
    }

    /// An alert at a part of the word last taken.
    #[must_use]
    pub(crate) fn wrong_at(&self, range: Range<usize>, message: impl Into<String>) -> Diagnostic {
        let word = self.line.words.get(self.at.max(1) - 1);
        let span = word.map_or(self.keyword_span, |word| word.span_of(range));
        Diagnostic::alert("bad-value", message).at(span)
    }

    // === required words ===

    /// Takes a required word; `what` completes "expects".
    ///
    /// # Errors
    /// When there is none, or it is empty.
    pub(crate) fn word(&mut self, what: &str) -> Result<&'a Word, Diagnostic> {
        match self.next_word() {
            Some(word) if !word.bytes().is_empty() => Ok(word),
            _ => Err(self.missing_argument(what)),
        }
    }

    /// The text of a required word.
    ///
    /// # Errors
    /// As [`Args::word`].
    pub(crate) fn text(&mut self, what: &str) -> Result<&'a str, Diagnostic> {
        self.word(what).map(Word::text)
    }

    /// Takes a time in milliseconds, the unit of most keywords.
    ///
    /// # Errors
    /// When there is none, or it is invalid.
    pub(crate) fn time(&mut self, what: &str) -> Result<Duration, Diagnostic> {
        self.time_in(what, TimeUnit::Millisecond)
    }

    /// Warns when the time last taken is below 100 and has no unit: it may be meant in seconds, but
    /// is read as milliseconds. `of` names the setting.
    pub(crate) fn warn_of_missing_unit(&self, of: &str, context: &mut crate::context::Context<'_>) {
        let Some(word) = self.line.words.get(self.at.max(1) - 1) else {
            return;
        };
        let text = word.text();
        if !matches!(text.parse::<u32>(), Ok(1..100)) {
            return;
        }
        let message = format!(
            "'{} {text}' in {of} is suspiciously small for a value in milliseconds. Please use an \
             explicit unit ('{text}ms') if that was the intent.",
            self.keyword
        );
        context.warn("small-time", message, word.span());
    }

    /// Takes a time, counted in `unit` when it has no suffix.
    ///
    /// # Errors
    /// When there is none, or it is invalid.
    pub(crate) fn time_in(&mut self, what: &str, unit: TimeUnit) -> Result<Duration, Diagnostic> {
        let text = self.text(what)?;
        let count = self
            .read_time(text, unit)
            .map_err(|error| self.value_error(text, "time", error))?;
        Ok(Duration::from_micros(
            u64::from(count) * unit.microseconds(),
        ))
    }

    /// Takes a size in bytes of at most `max`.
    ///
    /// # Errors
    /// When there is none, or it is invalid.
    pub(crate) fn size(&mut self, what: &str, max: u64) -> Result<u64, Diagnostic> {
        let text = self.text(what)?;
        parse_size(text, max).map_err(|error| self.value_error(text, "size", error))
    }

    /// As [`Args::size`], where a text that is no size gets the message that `unexpected` makes of the
    /// keyword and what stands behind the digits.
    ///
    /// # Errors
    /// As [`Args::size`].
    pub(crate) fn size_of(
        &mut self,
        what: &str,
        max: u64,
        unexpected: impl FnOnce(&str, &str) -> String,
    ) -> Result<u64, Diagnostic> {
        let text = self.text(what)?;
        parse_size(text, max).map_err(|error| match error.kind {
            ValueErrorKind::Overflow { .. } => self.value_error(text, "size", error),
            _ => {
                let rest = text.get(error.at.start..).unwrap_or(text);
                let message = unexpected(self.keyword, rest);
                self.wrong_at(error.at, message)
            }
        })
    }

    /// Takes a number within `range`.
    ///
    /// # Errors
    /// When there is none, or it is not a number, or out of range.
    pub(crate) fn number(
        &mut self,
        what: &str,
        range: RangeInclusive<i64>,
    ) -> Result<i64, Diagnostic> {
        let text = self.text(what)?;
        match text.parse::<i64>() {
            Ok(number) if range.contains(&number) => Ok(number),
            Ok(_) => Err(self.wrong(format!(
                "'{}' expects a number between {} and {} (got '{text}')",
                self.keyword,
                range.start(),
                range.end()
            ))),
            Err(_) => Err(self.wrong(format!("'{}' expects {what} (got '{text}')", self.keyword))),
        }
    }

    /// Takes a 32-bit number in the way of HAProxy's older keywords: text after its digits is
    /// ignored, with a warning.
    ///
    /// # Errors
    /// When there is no digit.
    pub(crate) fn lenient_number(
        &mut self,
        what: &str,
        range: RangeInclusive<i64>,
        context: &mut crate::context::Context<'_>,
    ) -> Result<i64, Diagnostic> {
        let word = self.word(what)?;
        let text = word.text();
        let end = text
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(text.len());
        if end == 0 || end == text.len() {
            self.at -= 1;
            return self.number(what, range);
        }
        let number = text[..end].parse::<i64>().ok();
        let Some(number) = number.filter(|number| range.contains(number)) else {
            return Err(self.wrong(format!(
                "'{}' expects a number between {} and {} (got '{text}')",
                self.keyword,
                range.start(),
                range.end()
            )));
        };
        let message = format!("'{}' : '{text}' is read as {number}", self.keyword);
        context.warn("bad-value", message, word.span());
        Ok(number)
    }

    /// Takes a number that fits 32 bits.
    ///
    /// # Errors
    /// As [`Args::number`].
    pub(crate) fn count(&mut self, what: &str) -> Result<u32, Diagnostic> {
        let number = self.number(what, 0..=i64::from(u32::MAX))?;
        Ok(u32::try_from(number).expect("the range was checked"))
    }

    /// Takes one of several words and returns its value.
    ///
    /// # Errors
    /// When there is none, or it is another word.
    pub(crate) fn choice<T: Copy>(&mut self, choices: &[(&str, T)]) -> Result<T, Diagnostic> {
        let names = || {
            let quoted: Vec<_> = choices
                .iter()
                .map(|(name, _)| format!("'{name}'"))
                .collect();
            quoted.join(", ")
        };
        let Some(text) = self.next() else {
            return Err(self.missing_argument(&format!("one of {}", names())));
        };
        match choices.iter().find(|(name, _)| *name == text) {
            Some((_, value)) => Ok(*value),
            None => {
                let words = choices.iter().map(|(name, _)| *name);
                let message = format!(
                    "'{}' only supports {} (got '{text}')",
                    self.keyword,
                    names()
                );
                Err(suggestion(self.wrong(message), text, words))
            }
        }
    }

    /// The same, refused in words of its own.
    ///
    /// # Errors
    /// When the word is missing, or none of the choices.
    pub(crate) fn choice_or<T: Copy>(
        &mut self,
        choices: &[(&str, T)],
        refusal: impl FnOnce(&str) -> String,
    ) -> Result<T, Diagnostic> {
        let text = self.peek().map(str::to_owned);
        self.choice(choices).map_err(|mut error| {
            error.message = refusal(text.as_deref().unwrap_or_default());
            error
        })
    }

    /// Checks that no word is left.
    ///
    /// # Errors
    /// When a word is left.
    pub(crate) fn end(&mut self) -> Result<(), Diagnostic> {
        let Some(word) = self.peek_word() else {
            return Ok(());
        };
        if spare_words::are_ignored(self.keyword) {
            let message = format!(
                "'{}' ignores what follows from '{}' on",
                self.keyword,
                word.text()
            );
            let warning = Diagnostic::warning("ignored-words", message).at(word.span());
            self.warnings.push(warning);
            self.at = self.line.words.len();
            return Ok(());
        }
        let message = format!(
            "'{}' cannot handle unexpected argument '{}'.",
            self.keyword,
            word.text()
        );
        Err(Diagnostic::alert("unexpected-word", message).at(word.span()))
    }

    // === expressions ===

    /// Takes all words left as `if ...` or `unless ...`; `None` when nothing is left.
    ///
    /// # Errors
    /// When the words left are not a condition.
    pub(crate) fn condition(&mut self, acls: &AclSet) -> Result<Option<Condition>, Diagnostic> {
        if self.is_empty() {
            return Ok(None);
        }
        let texts = self.exact_texts();
        let base = self.at;
        let parsed = Condition::parse(&borrowed(&texts), acls);
        let condition = parsed.map_err(|error| {
            let what = format!(
                "error detected while parsing the condition of '{}'",
                self.keyword
            );
            self.expr_error(base, &error, &what)
        })?;
        self.at = self.line.words.len();
        Ok(Some(condition))
    }

    /// Takes a log-format string.
    ///
    /// # Errors
    /// When there is none, or it is invalid.
    pub(crate) fn format(&mut self, what: &str, usage: Usage) -> Result<LogFormat, Diagnostic> {
        let text = exact_text(self.word(what)?);
        LogFormat::parse(&text, usage).map_err(|error| {
            let what = format!("error in the format of '{}'", self.keyword);
            self.expr_error(self.at - 1, &error, &what)
        })
    }

    /// Takes a sample expression, whose converters may be separate words.
    ///
    /// # Errors
    /// When there is none, or it is invalid.
    pub(crate) fn expr(&mut self, what: &str) -> Result<Expr, Diagnostic> {
        if self.is_empty() {
            return Err(self.missing_argument(what));
        }
        let base = self.at;
        let texts = self.exact_texts();
        match Expr::parse_words(&borrowed(&texts)) {
            Ok((expr, used)) => {
                self.at += used;
                Ok(expr)
            }
            Err(error) => {
                let what = format!("error in the expression of '{}'", self.keyword);
                Err(self.expr_error(base, &error, &what))
            }
        }
    }

    /// The diagnostic for an error in an expression; `base` is the index in the line of the first
    /// word that was parsed, `what` the sentence before the colon.
    #[must_use]
    pub(crate) fn expr_error(
        &self,
        base: usize,
        error: &ballast_expr::ExpressionError,
        what: &str,
    ) -> Diagnostic {
        let word = self.line.words.get(base + error.word);
        let span = word.map_or(self.span(), |word| {
            let span = word.span_of(error.range.clone());
            if span.is_empty() { word.span() } else { span }
        });
        let message = match &error.hint {
            Some(hint) => format!("{what} : {}; did you mean '{hint}' maybe ?", error.message),
            None => format!("{what} : {}", error.message),
        };
        let diagnostic = Diagnostic::alert("bad-expression", message).at(span);
        match &error.hint {
            Some(hint) => diagnostic.replace(span, hint.clone()),
            None => diagnostic,
        }
    }

    fn value_error(&self, text: &str, kind: &str, error: ValueError) -> Diagnostic {
        let message = format!("'{}' : invalid {kind} '{text}': {error}", self.keyword);
        let at = if error.at.is_empty() {
            0..text.len()
        } else {
            error.at
        };
        self.wrong_at(at, message)
    }
}

/// A word's text with all its bytes.
fn exact_text(word: &Word) -> Cow<'_, str> {
    text_of_bytes(word.bytes())
}

/// The words as parsers of rules and expressions take them.
pub(crate) fn borrowed<'t>(texts: &'t [Cow<'_, str>]) -> Vec<&'t str> {
    texts.iter().map(|text| &**text).collect()
}
