//! Conditions: `if` and `unless` over ACLs (manual 7.2).

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use super::{Acl, AclSet, Criterion, Linker, PREDEFINED, predefined};
use crate::config_line::ConfigLine;
use crate::effects::SideEffects;
use crate::error::{ExpressionError, nearest};
use crate::expr::ExpressionReference;
use crate::needs::Needs;
use crate::phase::{Phase, Phases};
use crate::slot::LinkSlot;

/// Whether a condition must hold or must not.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Polarity {
    /// The rule applies when the condition holds.
    If,
    /// The rule applies when it does not.
    Unless,
}

/// A condition: one of several rows of terms that must all hold.
#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    /// `if` or `unless`.
    pub polarity: Polarity,
    /// Rows of which one must hold; within a row all terms must.
    pub rows: Vec<Vec<Term>>,
}

/// One term of a condition.
#[derive(Clone, Debug, PartialEq)]
pub struct Term {
    /// Preceded by an odd number of `!`.
    pub negated: bool,
    /// The ACL.
    pub target: TermTarget,
}

/// What a term tests. ACLs of the same name are the same where they ask the same; what their
/// lists hold is no part of it.
#[derive(Clone, Debug)]
pub enum TermTarget {
    /// An ACL by name, found when linking.
    Named(String, LinkSlot<Arc<Acl>>),
    /// An anonymous ACL between braces.
    Inline(Box<Criterion>),
}

impl PartialEq for TermTarget {
    fn eq(&self, other: &TermTarget) -> bool {
        match (self, other) {
            (TermTarget::Named(name, slot), TermTarget::Named(other_name, other_slot)) => {
                let same = match (slot.filled(), other_slot.filled()) {
                    (Some(acl), Some(other)) => Arc::ptr_eq(acl, other) || acl == other,
                    // One that is not linked yet is only a name.
                    _ => true,
                };
                name == other_name && same
            }
            (TermTarget::Inline(criterion), TermTarget::Inline(other)) => criterion == other,
            _ => false,
        }
    }
}

/// An ACL in a condition that can never match where the condition stands.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct MisplacedAcl {
    /// The ACL's name, or the words between the braces.
    pub acl: String,
    /// The fetch that is not available.
    pub fetch: &'static str,
    /// The phase.
    pub phase: Phase,
    /// Whether no criterion of the ACL can match there (HAProxy warns: "will never match").
    pub never: bool,
}

impl Condition {
    /// Parses what follows a rule: `if ...` or `unless ...`. Names must be declared in `acls` or
    /// predefined.
    ///
    /// # Errors
    /// With the word and the byte range at fault.
    pub fn parse(words: &[&str], acls: &AclSet) -> Result<Condition, ExpressionError> {
        let polarity = match words.first() {
            Some(&"if") => Polarity::If,
            Some(&"unless") => Polarity::Unless,
            Some(other) => {
                return Err(ExpressionError::new(
                    format!("expects 'if' or 'unless' but found '{other}'"),
                    0..other.len(),
                ));
            }
            None => return Err(ExpressionError::new("expects 'if' or 'unless'", 0..0)),
        };
        let rows = parse_rows(&words[1..], acls).map_err(|error| {
            ExpressionError {
                word: error.word + 1,
                ..error
            }
            .within(words)
        })?;
        Ok(Condition { polarity, rows })
    }

    /// Says on which line it stands, for those who look at the patterns of its anonymous ACLs.
    pub fn set_config_line(&mut self, config_line: &ConfigLine) {
        for term in self.rows.iter_mut().flatten() {
            if let TermTarget::Inline(criterion) = &mut term.target {
                criterion.set_config_line(config_line);
            }
        }
    }

    /// Every ACL that the condition names, predefined ones left out.
    pub fn acl_names(&self) -> impl Iterator<Item = &str> {
        self.terms().filter_map(|term| match &term.target {
            TermTarget::Named(name, _) => Some(name.as_str()),
            TermTarget::Inline(_) => None,
        })
    }

    fn terms(&self) -> impl Iterator<Item = &Term> {
        self.rows.iter().flatten()
    }

    /// What its ACLs need. Names that are not linked yet are looked up in `acls`.
    pub fn needs(&self, acls: &AclSet) -> Needs {
        self.terms()
            .fold(Needs::NONE, |sum, term| match &term.target {
                TermTarget::Inline(criterion) => sum | criterion.expr.needs(),
                TermTarget::Named(name, slot) => {
                    let acl = slot.filled().or_else(|| find_acl(name, acls));
                    sum | acl.map_or(Needs::NONE, |acl| acl.needs())
                }
            })
    }

    /// What evaluating it does, once it is linked.
    pub(crate) fn effects(&self) -> SideEffects {
        self.terms()
            .fold(SideEffects::NONE, |sum, term| match &term.target {
                TermTarget::Inline(criterion) => sum | criterion.expr.effects(),
                TermTarget::Named(_, slot) => {
                    sum | slot.filled().map_or(SideEffects::NONE, |acl| acl.effects())
                }
            })
    }

    /// What there is to say of anonymous ACLs that can never match.
    pub fn never_matches(&self) -> impl Iterator<Item = String> {
        self.terms().filter_map(|term| match &term.target {
            TermTarget::Inline(criterion) => criterion.never_matches(),
            TermTarget::Named(..) => None,
        })
    }

    /// What the condition names elsewhere: ACLs by name, and what anonymous ones name.
    pub fn references(&self) -> Vec<ExpressionReference> {
        let mut all = Vec::new();
        for term in self.terms() {
            match &term.target {
                TermTarget::Named(name, _) => all.push(ExpressionReference::Acl(name.clone())),
                TermTarget::Inline(criterion) => all.extend(criterion.references()),
            }
        }
        all
    }

    /// Words parsed but not evaluated yet, in the ACLs of the condition.
    pub fn unimplemented(&self, acls: &AclSet) -> Vec<&'static str> {
        let mut all = Vec::new();
        for term in self.terms() {
            match &term.target {
                TermTarget::Named(name, _) => {
                    all.extend(
                        find_acl(name, acls)
                            .map(|acl| acl.unimplemented())
                            .unwrap_or_default(),
                    );
                }
                TermTarget::Inline(criterion) => all.extend(criterion.expr.unimplemented()),
            }
        }
        all
    }

    /// The ACLs that involve samples not available at `phase`.
    pub fn misplaced(&self, phase: Phase, acls: &AclSet) -> Vec<MisplacedAcl> {
        let mut all = Vec::new();
        for term in self.terms() {
            match &term.target {
                TermTarget::Inline(criterion) => {
                    if !criterion.expr.phases().has(phase) {
                        all.push(MisplacedAcl {
                            acl: criterion.to_string(),
                            fetch: criterion.expr.fetch.word,
                            phase,
                            never: true,
                        });
                    }
                }
                TermTarget::Named(name, _) => {
                    let Some(acl) = find_acl(name, acls) else {
                        continue;
                    };
                    let bad = acl
                        .criteria
                        .iter()
                        .find(|one| !one.expr.phases().has(phase));
                    if let Some(criterion) = bad {
                        all.push(MisplacedAcl {
                            acl: name.clone(),
                            fetch: criterion.expr.fetch.word,
                            phase,
                            never: !acl.phases().has(phase),
                        });
                    }
                }
            }
        }
        all
    }

    /// Where every ACL of the condition may be evaluated.
    pub fn phases(&self, acls: &AclSet) -> Phases {
        self.terms()
            .fold(Phases::ALWAYS, |sum, term| match &term.target {
                TermTarget::Named(name, _) => match find_acl(name, acls) {
                    Some(acl) => sum & acl.phases(),
                    None => sum,
                },
                TermTarget::Inline(criterion) => sum & criterion.expr.phases(),
            })
    }

    /// Joins the condition to its ACLs, which must be linked already, and to the files its
    /// anonymous ones name.
    ///
    /// # Errors
    /// When an ACL does not exist or a file cannot be used.
    pub fn link(&mut self, linker: &mut Linker<'_>) -> Result<(), ExpressionError> {
        for term in self.rows.iter_mut().flatten() {
            match &mut term.target {
                TermTarget::Named(name, slot) => {
                    let acl = find_acl(name, linker.acls).ok_or_else(|| {
                        ExpressionError::new(format!("no such ACL : '{name}'"), 0..0)
                    })?;
                    slot.fill(Arc::clone(acl));
                }
                TermTarget::Inline(criterion) => criterion.link("", linker)?,
            }
        }
        Ok(())
    }
}

/// A declared ACL, or the predefined one of that name.
pub(super) fn find_acl<'a>(name: &str, acls: &'a AclSet) -> Option<&'a Arc<Acl>> {
    match acls.get(name) {
        Some(acl) => Some(acl),
        None => predefined(name),
    }
}

fn parse_rows(words: &[&str], acls: &AclSet) -> Result<Vec<Vec<Term>>, ExpressionError> {
    let mut rows = Vec::new();
    let mut row = Vec::new();
    let mut negated = false;
    let mut at = 0;
    while let Some(word) = words.get(at) {
        let name = word.trim_start_matches('!');
        negated ^= (word.len() - name.len()) % 2 == 1;
        match name {
            "" if !word.is_empty() => {
                at += 1;
                continue;
            }
            _ if name.len() == word.len() && is_or(name) => {
                if negated || row.is_empty() {
                    return Err(ExpressionError::new(
                        format!("'{word}' must stand between two conditions"),
                        0..word.len(),
                    )
                    .in_word(at));
                }
                rows.push(std::mem::take(&mut row));
            }
            "{" => {
                let close = words[at + 1..]
                    .iter()
                    .position(|word| *word == "}")
                    .ok_or_else(|| {
                        ExpressionError::new("missing closing '}' in condition", 0..word.len())
                            .in_word(at)
                    })?;
                let inner = &words[at + 1..at + 1 + close];
                let criterion = Criterion::parse(inner).map_err(|error| ExpressionError {
                    word: error.word + at + 1,
                    ..error
                })?;
                acls.check_names(&criterion.expr.references())
                    .map_err(|error| ExpressionError {
                        range: 0..inner.first().map_or(0, |word| word.len()),
                        ..error.in_word(at + 1)
                    })?;
                row.push(Term {
                    negated,
                    target: TermTarget::Inline(Box::new(criterion)),
                });
                negated = false;
                at += close + 1;
            }
            _ => {
                row.push(Term {
                    negated,
                    target: parse_name(word, name, at, acls)?,
                });
                negated = false;
            }
        }
        at += 1;
    }
    let end = words.len().saturating_sub(1);
    if negated || row.is_empty() {
        let what = if rows.is_empty() && !negated {
            "missing condition"
        } else {
            "unfinished condition"
        };
        return Err(
            ExpressionError::new(what, 0..words.last().map_or(0, |word| word.len())).in_word(end),
        );
    }
    rows.push(row);
    Ok(rows)
}

fn is_or(word: &str) -> bool {
    word == "||" || word.eq_ignore_ascii_case("or")
}

/// The error of a name in a condition that no ACL has.
fn no_such_acl(name: &str, range: Range<usize>, acls: &AclSet) -> ExpressionError {
    let message = if crate::fetch::fetch(name).is_some() || name.contains('(') {
        format!("no such ACL : '{name}' (an anonymous ACL stands between braces: {{ {name} }})")
    } else {
        format!("no such ACL : '{name}'{}", declared_before(acls))
    };
    ExpressionError::new(message, range).with_hint(nearest_acl(name, acls))
}

/// The error of a name in `acl()` that no ACL has, in HAProxy's words.
pub(crate) fn acl_not_found(name: &str, acls: &AclSet) -> ExpressionError {
    let message = format!("ACL '{name}' not found{}", declared_before(acls));
    ExpressionError::new(message, 0..name.len()).with_hint(nearest_acl(name, acls))
}

/// The ACL whose name is most like this one.
fn nearest_acl(name: &str, acls: &AclSet) -> Option<String> {
    let own = acls.iter().map(|acl| acl.name.as_str());
    let predefined = PREDEFINED.iter().map(|(name, _)| *name);
    nearest(name, own.chain(predefined))
}

/// The end of an error about an unknown ACL: those that it could have been, unless there are many.
fn declared_before(acls: &AclSet) -> String {
    let own: Vec<&str> = acls.iter().map(|acl| acl.name.as_str()).collect();
    match own.len() {
        0 => ", and none is declared before".to_owned(),
        1..=DECLARED_LISTED_MAX => format!(", declared before: {}", own.join(", ")),
        _ => String::new(),
    }
}

/// So many ACLs are named where another was meant.
const DECLARED_LISTED_MAX: usize = 8;

fn parse_name(
    word: &str,
    name: &str,
    at: usize,
    acls: &AclSet,
) -> Result<TermTarget, ExpressionError> {
    if find_acl(name, acls).is_none() {
        let range = word.len() - name.len()..word.len();
        return Err(no_such_acl(name, range, acls).in_word(at));
    }
    Ok(TermTarget::Named(name.to_owned(), LinkSlot::empty()))
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.polarity {
            Polarity::If => "if",
            Polarity::Unless => "unless",
        })?;
        for (at, row) in self.rows.iter().enumerate() {
            if at > 0 {
                f.write_str(" ||")?;
            }
            for term in row {
                f.write_str(if term.negated { " !" } else { " " })?;
                match &term.target {
                    TermTarget::Named(name, _) => f.write_str(name)?,
                    TermTarget::Inline(criterion) => write!(f, "{{ {criterion} }}")?,
                }
            }
        }
        Ok(())
    }
}
