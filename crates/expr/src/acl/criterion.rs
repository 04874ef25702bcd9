//! One test: a sample, how it is compared, and what with.

use std::fmt;
use std::sync::Arc;

use super::words::{ACL_WORDS, AclWord};
use crate::cast_help::missing_cast;
use crate::config_line::ConfigLine;
use crate::conv::converter;
use crate::error::ExpressionError;
use crate::expr::{Expr, ExpressionReference, fetch_name_end, name_end};
use crate::fetch::{fetch, fetches};
use crate::links::Links;
use crate::pattern::{self, Handle, MatchMethod, Words};
use crate::shared_sample::SampleSharing;
use crate::slot::LinkSlot;
use crate::value::SampleKind;

/// A criterion: `criterion [flags] [operator] patterns...`.
#[derive(Clone, Debug, PartialEq)]
pub struct Criterion {
    /// The sample.
    pub expr: Expr,
    /// How it is compared.
    pub method: MatchMethod,
    /// What it is compared with, in order.
    pub sources: Vec<PatternSource>,
    /// The files have two columns (`-M`).
    pub as_map: bool,
    /// The number on the Runtime API (`-u`).
    pub unique_id: Option<u32>,
    /// The words as written.
    pub words: Vec<String>,
    pub(crate) matchers: LinkSlot<Vec<Arc<Handle>>>,
    config_line: LinkSlot<ConfigLine>,
    pub(crate) sharing: SampleSharing,
}

/// The sample whose patterns are groups of users.
const GROUPS: &str = "http_auth_group";

/// Patterns of a criterion.
#[derive(Clone, Debug, PartialEq)]
pub enum PatternSource {
    /// The lines of a file (`-f`).
    File {
        /// Its name.
        name: String,
        /// Ignore the case (`-i` came before).
        fold: bool,
    },
    /// Words of the line; operators have become ranges.
    Words {
        /// The patterns.
        patterns: Vec<String>,
        /// Ignore the case (`-i` came before).
        fold: bool,
    },
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Operator {
    Eq,
    Ge,
    Gt,
    Le,
    Lt,
}

impl Operator {
    fn parse(text: &str) -> Option<Operator> {
        Some(match text {
            "eq" => Operator::Eq,
            "ge" => Operator::Ge,
            "gt" => Operator::Gt,
            "le" => Operator::Le,
            "lt" => Operator::Lt,
            _ => return None,
        })
    }

    /// The pattern `text` under the operator, as a range.
    fn apply(self, text: &str) -> Result<String, ExpressionError> {
        // An operator says nothing of a range.
        if self == Operator::Eq || pattern::is_range(text) {
            return Ok(text.to_owned());
        }
        let number = match text.split_once('.') {
            None => text.parse::<i64>().ok(),
            Some((major, minor)) => match (major.parse::<u16>(), minor.parse::<u16>()) {
                (Ok(major), Ok(minor)) => Some((i64::from(major) << 16) + i64::from(minor)),
                _ => None,
            },
        };
        let Some(number) = number else {
            return Err(ExpressionError::new(
                format!("'{text}' is not a number"),
                0..text.len(),
            ));
        };
        Ok(match self {
            Operator::Eq => text.to_owned(),
            Operator::Ge => format!("{number}:"),
            Operator::Gt => format!("{}:", number.saturating_add(1)),
            Operator::Le => format!(":{number}"),
            Operator::Lt => format!(":{}", number.saturating_sub(1)),
        })
    }
}

/// What the flags of a criterion said.
#[derive(Default)]
struct Flags {
    fold: bool,
    as_map: bool,
    method: Option<MatchMethod>,
    unique_id: Option<u32>,
}

impl Criterion {
    /// Parses the words of a criterion.
    ///
    /// # Errors
    /// With the word and the byte range at fault.
    pub fn parse(words: &[&str]) -> Result<Criterion, ExpressionError> {
        let first = words
            .first()
            .ok_or_else(|| ExpressionError::new("missing criterion", 0..0))?;
        let (expr, default_method) = parse_sample(first)?;
        let mut flags = Flags::default();
        let mut sources = Vec::new();
        let mut at = parse_flags(words, &mut flags, &mut sources)?;
        let default_method = default_method.or_else(|| method_of_next(first, words.get(1)));
        let method = match flags.method.or(default_method) {
            Some(method) => method,
            None => {
                return Err(ExpressionError::new(
                    format!(
                        "'{first}' gives {} and has no default matching method: say one with '-m' \
                         ({})",
                        expr.kind,
                        fitting_methods(expr.kind)
                    ),
                    0..first.len(),
                ));
            }
        };
        check_method(&expr, method, first)?;
        let mut patterns = Vec::new();
        let mut operator = Operator::Eq;
        let counts = matches!(method, MatchMethod::Int | MatchMethod::Len);
        while let Some(word) = words.get(at) {
            match Operator::parse(word).filter(|_| counts) {
                Some(said) => operator = said,
                None => {
                    let pattern = if counts {
                        operator.apply(word)
                    } else {
                        Ok((*word).to_owned())
                    }
                    .map_err(|error| error.in_word(at))?;
                    if method.takes_patterns() {
                        let fold = flags.fold && method.can_fold();
                        pattern::check(&pattern, method, fold).map_err(|error| {
                            ExpressionError {
                                word: at,
                                range: 0..word.len(),
                                ..error
                            }
                        })?;
                    }
                    patterns.push(pattern);
                }
            }
            at += 1;
        }
        if !patterns.is_empty() {
            sources.push(PatternSource::Words {
                patterns,
                fold: flags.fold,
            });
        }
        Ok(Criterion {
            sharing: SampleSharing::of(&expr),
            expr,
            method,
            sources,
            as_map: flags.as_map,
            unique_id: flags.unique_id,
            words: words.iter().map(|word| (*word).to_owned()).collect(),
            matchers: LinkSlot::empty(),
            config_line: LinkSlot::empty(),
        })
    }

    /// Why the criterion can never match, where it stands alone: nothing to compare with. Any flag
    /// or pattern behind it says that somebody thought of it.
    pub fn never_matches(&self) -> Option<String> {
        (self.method.takes_patterns() && self.words.len() == 1).then(|| {
            format!(
                "parsing acl keyword '{}' : no pattern to match against was given, so this ACL \
                 will never match (add '--' if this is meant, '-m found' to match existence, '-m \
                 bool' to match an integer as a boolean)",
                self.first_word()
            )
        })
    }

    /// The groups of users that it names. They are names only where the sample is compared in its own way, with
    /// words of the line.
    pub fn groups(&self) -> Option<ExpressionReference> {
        let expr = &self.expr;
        let list = (expr.fetch.word == GROUPS).then(|| expr.args.first())??;
        let flags = ["-m", "-f"];
        let is_other = !expr.converters.is_empty()
            || self.words.iter().any(|word| flags.contains(&word.as_str()));
        let words = self.sources.iter().filter_map(|source| match source {
            PatternSource::Words { patterns, .. } if !is_other => Some(patterns),
            _ => None,
        });
        Some(ExpressionReference::Groups {
            list: list.text.clone(),
            groups: words.flatten().cloned().collect(),
        })
    }

    /// What the criterion names elsewhere.
    pub fn references(&self) -> Vec<ExpressionReference> {
        let mut all = self.expr.references();
        all.extend(self.groups());
        all.extend(self.sources.iter().filter_map(|source| match source {
            PatternSource::File { name, .. } => {
                Some(ExpressionReference::PatternFile(name.clone()))
            }
            PatternSource::Words { .. } => None,
        }));
        all
    }

    /// Says on which line it stands, for those who look at its patterns.
    pub fn set_config_line(&mut self, config_line: &ConfigLine) {
        self.config_line.fill(*config_line);
    }

    /// Joins it to its patterns; `acl` is the name it stands under, empty between braces.
    pub(crate) fn link(&mut self, acl: &str, links: &mut dyn Links) -> Result<(), ExpressionError> {
        if let Some(config_line) = self.config_line.filled() {
            links.lists().0.set_config_line(config_line);
        }
        self.expr.link(links)?;
        let (store, files) = links.lists();
        let mut matchers = Vec::new();
        let mut words = Words {
            acl,
            criterion: &format!("{} {}", self.first_word(), self.method.text()),
            shown: self.shown_word(),
            patterns: &[],
            method: self.method,
            fold: false,
        };
        for source in &self.sources {
            match source {
                PatternSource::File { name, fold } if self.method.takes_patterns() => {
                    let list = store.list(name, self.as_map, self.method, *fold, files);
                    matchers.push(list.map_err(|error| store.on_noted_line(error))?);
                }
                PatternSource::File { .. } => {}
                PatternSource::Words { patterns, fold } => {
                    words.patterns = patterns;
                    words.fold = *fold;
                }
            }
        }
        // A line without words has a list too, to which the Runtime API may add.
        matchers.extend(store.words(&words, self.unique_id)?);
        self.matchers.fill(matchers);
        Ok(())
    }

    fn first_word(&self) -> &str {
        self.words.first().map_or("", String::as_str)
    }

    /// The word it is shown by where its patterns are listed.
    fn shown_word(&self) -> &'static str {
        let first = self.first_word();
        let word = &first[..fetch_name_end(first, 0)];
        let row = ACL_WORDS.iter().find(|row| row.word == word);
        match row {
            Some(row) if self.expr.converters.is_empty() => row.word,
            _ => self.expr.fetch.word,
        }
    }
}

/// The method of a converter that stands behind a comma in a word of its own (`req.payload(0,2), lower x`).
/// HAProxy judges the method by it, and reads the word as a pattern all the same.
fn method_of_next(first: &str, next: Option<&&str>) -> Option<MatchMethod> {
    let next = next.filter(|_| first.ends_with(','))?;
    let row = converter(&next[..name_end(next, 0)])?;
    MatchMethod::of_kind(row.out)
}

/// The sample of a criterion; an ACL word without converters brings its own method.
fn parse_sample(text: &str) -> Result<(Expr, Option<MatchMethod>), ExpressionError> {
    // HAProxy drops a comma that nothing follows: the next word is a flag or a pattern.
    let text = text.trim_end_matches(',');
    let end = fetch_name_end(text, 0);
    let word = &text[..end];
    let acl_word = ACL_WORDS.iter().find(|row| row.word == word);
    let row = match acl_word {
        Some(AclWord {
            fetch: fetch_word, ..
        }) => fetch(fetch_word),
        None => fetch(word),
    };
    let Some(row) = row else {
        let known = ACL_WORDS
            .iter()
            .map(|row| row.word)
            .chain(fetches().map(|row| row.word));
        return Err(ExpressionError::unknown(
            "fetch method",
            word,
            0..end,
            known,
        ));
    };
    let (expr, end) = Expr::parse_from(row, text, 0, end)?;
    if end < text.len() {
        return Err(ExpressionError::new(
            format!(
                "missing comma or unexpected '{}' in ACL criterion",
                &text[end..]
            ),
            end..text.len(),
        ));
    }
    let method = match acl_word {
        Some(row) if expr.converters.is_empty() => Some(row.method),
        _ => MatchMethod::of_kind(expr.kind),
    };
    Ok((expr, method))
}

/// Reads the flags that follow the criterion; gives the index of the first word after them.
fn parse_flags(
    words: &[&str],
    flags: &mut Flags,
    sources: &mut Vec<PatternSource>,
) -> Result<usize, ExpressionError> {
    let mut at = 1;
    while let Some(word) = words.get(at).filter(|word| word.starts_with('-')) {
        let whole = 0..word.len();
        let value = |what: &str| {
            words.get(at + 1).copied().ok_or_else(|| {
                ExpressionError::new(format!("missing {what} after '{word}'"), whole.clone())
                    .in_word(at)
            })
        };
        match *word {
            "-i" => flags.fold = true,
            // Names are never resolved here, so there is nothing to forbid.
            "-n" => {}
            "-M" => flags.as_map = true,
            "-f" => {
                let name = value("file name")?.to_owned();
                sources.push(PatternSource::File {
                    name,
                    fold: flags.fold,
                });
                at += 1;
            }
            "-m" => {
                let name = value("matching method")?;
                if !sources.is_empty() {
                    return Err(
                        ExpressionError::new("'-m' must come before '-f'", whole).in_word(at)
                    );
                }
                flags.method = Some(MatchMethod::parse(name).ok_or_else(|| {
                    let known = MatchMethod::ALL.iter().map(|method| method.text());
                    ExpressionError::unknown("matching method", name, 0..name.len(), known)
                        .in_word(at + 1)
                })?);
                at += 1;
            }
            "-u" => {
                let id = value("unique id")?;
                flags.unique_id = Some(id.parse().map_err(|_| {
                    ExpressionError::new(format!("'{id}' is not a unique id"), 0..id.len())
                        .in_word(at + 1)
                })?);
                at += 1;
            }
            "--" => return Ok(at + 1),
            _ => {
                let error = ExpressionError::unknown("flag", word, whole, FLAGS);
                let message = format!("{} (put '--' before a pattern like it)", error.message);
                return Err(ExpressionError { message, ..error }.in_word(at));
            }
        }
        at += 1;
    }
    Ok(at)
}

/// The flags of a criterion.
const FLAGS: [&str; 7] = ["-i", "-f", "-m", "-n", "-M", "-u", "--"];

/// The matching methods that a sample of this type can be compared by, as they are written.
fn fitting_methods(kind: SampleKind) -> String {
    let fits = |method: &&MatchMethod| kind == SampleKind::Any || kind.casts_to(method.takes());
    let fitting = MatchMethod::ALL.iter().filter(fits);
    let words: Vec<&str> = fitting.map(|method| method.text()).collect();
    words.join(", ")
}

/// Whether the sample can be compared that way: the matrix of manual 7.1.
fn check_method(expr: &Expr, method: MatchMethod, word: &str) -> Result<(), ExpressionError> {
    if expr.kind == SampleKind::Any || expr.kind.casts_to(method.takes()) {
        return Ok(());
    }
    Err(ExpressionError::new(
        format!(
            "matching method '{}' cannot be used with '{word}': it compares {} and the sample is \
             {}{} (it can be compared by {})",
            method.text(),
            method.takes(),
            expr.kind,
            missing_cast(expr.kind, method.takes()),
            fitting_methods(expr.kind)
        ),
        0..word.len(),
    ))
}

impl fmt::Display for Criterion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.words.join(" "))
    }
}
