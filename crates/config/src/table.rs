//! Looks up keywords and applies them.

use std::collections::HashMap;

use ballast_syntax::{Diagnostic, Severity, SourceLine, Span, Word};

use crate::args::{Args, Prefix};
use crate::context::{Context, REMOVED, suggestion};
use crate::keyword::{Keyword, KeywordState, Prefixes, Row, Sections};

/// The rows for one kind of line, by word.
#[derive(Debug)]
pub(crate) struct Table<C: 'static> {
    rows: Vec<&'static Row<C>>,
    by_word: HashMap<&'static str, &'static Row<C>>,
}

/// A row found for a line.
#[derive(Debug)]
pub(crate) struct RowMatch<C: 'static> {
    /// The row.
    pub row: &'static Row<C>,
    /// The prefix.
    pub prefix: Prefix,
    /// Index of the keyword's first word.
    pub first: usize,
    /// Index of the first argument.
    pub args: usize,
}

impl<C: 'static> Table<C> {
    /// A table of several families.
    #[must_use]
    pub(crate) fn new(families: &[&'static [Row<C>]]) -> Self {
        let rows: Vec<_> = families.iter().flat_map(|rows| rows.iter()).collect();
        let by_word = rows.iter().map(|row| (row.keyword.word, *row)).collect();
        Self { rows, by_word }
    }

    /// All rows in order.
    pub(crate) fn keywords(&self) -> impl Iterator<Item = Keyword> + '_ {
        self.rows.iter().map(|row| row.keyword)
    }

    /// The row of a word.
    #[must_use]
    pub(crate) fn row(&self, word: &str) -> Option<&'static Row<C>> {
        self.by_word.get(word).copied()
    }

    /// The row whose word begins at `words[at]`, the longest first, and how many words it has.
    #[must_use]
    pub(crate) fn longest(&self, words: &[Word], at: usize) -> Option<(&'static Row<C>, usize)> {
        let words = words.get(at..)?;
        (1..=words.len().min(3)).rev().find_map(|count| {
            let texts: Vec<_> = words[..count].iter().map(Word::text).collect();
            let joined = texts.join(" ");
            let row = self.row(&joined).or_else(|| {
                // Some words include text between parentheses: `set-var(txn.a)`.
                let (head, _) = joined.split_once('(')?;
                let row = self
                    .row(head)
                    .filter(|_| head.split(' ').count() == count)?;
                row.keyword.args.starts_with('(').then_some(row)
            });
            row.map(|row| (row, count))
        })
    }

    /// The row for a line, or an error.
    ///
    /// # Errors
    /// With the alert about an unknown keyword, or a prefix that does not fit.
    pub(crate) fn find(
        &self,
        line: &SourceLine,
        section: Sections,
    ) -> Result<RowMatch<C>, Diagnostic> {
        let (prefix, first) = match (line.text(0), line.words.len()) {
            ("no", 2..) => (Prefix::No, 1),
            ("default", 2..) => (Prefix::Default, 1),
            _ => (Prefix::None, 0),
        };
        // A keyword may itself begin with the word `default`; a prefix is never alone.
        let found = self
            .longest(&line.words, first)
            .map(|(row, count)| (row, first, first + count, prefix))
            .or_else(|| {
                let (row, count) = self.longest(&line.words, 0)?;
                Some((row, 0, count, Prefix::None))
            });
        let Some((row, first, args, prefix)) = found else {
            return Err(self.unknown(line, first, section));
        };
        let allowed = match prefix {
            Prefix::None => true,
            Prefix::No => row.keyword.prefixes != Prefixes::None,
            Prefix::Default => row.keyword.prefixes == Prefixes::NoDefault,
        };
        if !allowed {
            let word = line.text(0);
            let message = format!("'{word}' cannot stand before '{}'", row.keyword.word);
            return Err(Diagnostic::alert("bad-prefix", message)
                .at(line.words[0].span())
                .note("negation is known to options, log and a few switches only"));
        }
        Ok(RowMatch {
            row,
            prefix,
            first,
            args,
        })
    }

    /// The alert about an unknown word.
    fn unknown(&self, line: &SourceLine, first: usize, section: Sections) -> Diagnostic {
        let head = line.text(first);
        let here = |row: &&&'static Row<C>| row.keyword.sections.has(section);
        let family: Vec<_> = self
            .rows
            .iter()
            .filter(here)
            .filter_map(|row| row.keyword.word.strip_prefix(head)?.strip_prefix(' '))
            .map(|rest| rest.split(' ').next().unwrap_or(rest))
            .collect();
        let (Some(word), Some(section_word)) = (line.words.get(first), section.words().next())
        else {
            return Diagnostic::alert("unknown-keyword", "empty line").at(line.words_span());
        };
        if family.is_empty() {
            let message = format!("unknown keyword '{head}' in '{section_word}' section");
            let words = self
                .rows
                .iter()
                .filter(here)
                .map(|row| row.keyword.word.split(' ').next().unwrap_or_default());
            let diagnostic = Diagnostic::alert("unknown-keyword", message).at(word.span());
            return suggestion(diagnostic, head, words);
        }
        let mut names: Vec<_> = family.iter().map(|name| format!("'{name}'")).collect();
        names.dedup();
        let names = names.join(", ");
        match line.words.get(first + 1) {
            Some(second) => {
                let text = second.text();
                let message = if head == "option" {
                    format!("unknown option '{text}'")
                } else {
                    format!("'{head}' supports {names} (got '{text}')")
                };
                let diagnostic = Diagnostic::alert("unknown-keyword", message).at(second.span());
                suggestion(diagnostic, text, family.iter().copied())
            }
            None => {
                let message = format!("'{head}' supports {names}, and nothing follows it");
                Diagnostic::alert("missing-argument", message).at(word.span())
            }
        }
    }

    /// Applies a whole line: finds the row, checks its state, runs its handler.
    ///
    /// # Errors
    /// With the diagnostic to report.
    pub(crate) fn line(
        &self,
        target: &mut C,
        line: &SourceLine,
        section: Sections,
        context: &mut Context<'_>,
    ) -> Result<(), Diagnostic> {
        let found = self.find(line, section)?;
        if !found.row.keyword.sections.has(section) {
            let word = found.row.keyword.word;
            let section = section.words().next().unwrap_or_default();
            let message = format!("'{word}' is not allowed in '{section}' section");
            let span = line.words[found.first].span();
            return Err(Diagnostic::alert("misplaced-keyword", message)
                .at(span)
                .help(format!("it belongs to: {}", found.row.keyword.sections)));
        }
        found.perform(target, line, context)
    }
}

impl<C: 'static> RowMatch<C> {
    /// Applies the row's state and handler.
    ///
    /// # Errors
    /// With the diagnostic to report.
    pub(crate) fn perform(
        &self,
        target: &mut C,
        line: &SourceLine,
        context: &mut Context<'_>,
    ) -> Result<(), Diagnostic> {
        let mut args = Args::new(
            line,
            self.row.keyword.word,
            self.first,
            self.args,
            self.prefix,
        );
        perform(self.row, target, &mut args, context)
    }
}

/// Runs a row's handler, and checks the row's conditions.
///
/// # Errors
/// With the diagnostic to report.
pub(crate) fn perform<C: 'static>(
    row: &'static Row<C>,
    target: &mut C,
    args: &mut Args<'_>,
    context: &mut Context<'_>,
) -> Result<(), Diagnostic> {
    let span = args.keyword_span();
    if let KeywordState::Refused { reason, instead } = row.keyword.state {
        let mut diagnostic = refusal(row.keyword.word, reason, instead, span);
        if is_dialect(reason) {
            diagnostic.severity = Severity::Warning;
            context.unimplemented(row.keyword.word, REMOVED, span);
        }
        return Err(diagnostic);
    }
    if row.keyword.experimental && !context.declarations.experimental {
        let word = row.keyword.word;
        return Err(unexposed(&format!("'{word}' directive")).at(span));
    }
    let done = (row.handler)(target, args, context);
    for warning in args.take_warnings() {
        context.report(warning);
    }
    done?;
    match row.keyword.state {
        KeywordState::Unimplemented(feature) if args.prefix == Prefix::None => {
            context.unimplemented(row.keyword.word, feature, span);
        }
        KeywordState::Ignored(reason) => {
            let message = format!("'{}' changes nothing here: {reason}", row.keyword.word);
            context.report(Diagnostic::diag("noted", message).at(span));
        }
        _ => {}
    }
    Ok(())
}

/// Whether a word was removed after HAProxy 3.2: older files may contain it, so there is a warning
/// instead of an error, and only the start is refused.
fn is_dialect(reason: &str) -> bool {
    reason.contains("since HAProxy 3.")
}

/// The alert about an experimental keyword that is not enabled.
#[must_use]
pub(crate) fn unexposed(what: &str) -> Diagnostic {
    let message = format!(
        "{what} is experimental, must be allowed via a global 'expose-experimental-directives'"
    );
    Diagnostic::alert("experimental", message)
}

/// The code of messages about words that are refused.
pub(crate) const REFUSED: &str = "refused-keyword";

/// The alert about a keyword that is refused.
#[must_use]
pub(crate) fn refusal(word: &str, reason: &str, instead: &str, span: Span) -> Diagnostic {
    let diagnostic = Diagnostic::alert(REFUSED, format!("'{word}' {reason}")).at(span);
    if instead.is_empty() {
        diagnostic
    } else {
        diagnostic.help(format!("write: {instead}"))
    }
}
