//! ACLs: samples compared with patterns under a name (manual 7.1).

mod condition;
mod criterion;
mod linker;
mod predefined;
#[cfg(test)]
mod tests;
mod words;

pub use condition::{Condition, MisplacedAcl, Polarity, Term, TermTarget};
pub use criterion::{Criterion, PatternSource};
pub use linker::Linker;
pub use predefined::{PREDEFINED, predefined};
pub use words::{ACL_WORDS, AclWord};

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use crate::config_line::ConfigLine;
use crate::effects::SideEffects;
use crate::error::ExpressionError;
use crate::expr::ExpressionReference;
use crate::files::PatternFileReader;
use crate::links::{LinkedAcl, Links};
use crate::needs::Needs;
use crate::pattern::Store;

/// A named ACL: true when one of its criteria is.
#[derive(Clone, Debug, PartialEq)]
pub struct Acl {
    /// Its name.
    pub name: String,
    /// One criterion for each `acl` line of that name.
    pub criteria: Vec<Criterion>,
}

impl Acl {
    /// Where at least one of the criteria may be evaluated.
    pub fn phases(&self) -> crate::phase::Phases {
        let all = self
            .criteria
            .iter()
            .map(|criterion| criterion.expr.phases());
        all.fold(crate::phase::Phases::NONE, |sum, phases| sum | phases)
    }

    /// What its criteria need.
    pub fn needs(&self) -> Needs {
        let criteria = self.criteria.iter();
        criteria.fold(Needs::NONE, |sum, criterion| sum | criterion.expr.needs())
    }

    /// What evaluating its criteria does.
    pub fn effects(&self) -> SideEffects {
        let criteria = self.criteria.iter();
        criteria.fold(SideEffects::NONE, |sum, criterion| {
            sum | criterion.expr.effects()
        })
    }

    /// Words parsed but not evaluated yet.
    pub fn unimplemented(&self) -> Vec<&'static str> {
        self.criteria
            .iter()
            .flat_map(|criterion| criterion.expr.unimplemented())
            .collect()
    }

    /// What the criteria name elsewhere.
    pub fn references(&self) -> Vec<ExpressionReference> {
        self.criteria
            .iter()
            .flat_map(Criterion::references)
            .collect()
    }

    pub(crate) fn link(&mut self, links: &mut dyn Links) -> Result<(), ExpressionError> {
        let name = &self.name;
        self.criteria
            .iter_mut()
            .try_for_each(|criterion| criterion.link(name, links))
    }
}

impl Links for Linker<'_> {
    fn acl(&self, name: &str) -> Option<Arc<dyn LinkedAcl>> {
        let acl = condition::find_acl(name, self.acls)?;
        Some(Arc::clone(acl) as _)
    }

    fn lists(&mut self) -> (&Store, &mut dyn PatternFileReader) {
        (self.store, self.files)
    }
}

/// The ACLs declared in one proxy, in order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AclSet {
    acls: Vec<Arc<Acl>>,
    by_name: HashMap<String, usize>,
    /// Predefined ACLs that a condition has named before an ACL of that name was declared.
    predefined_in_use: BTreeSet<&'static str>,
}

impl AclSet {
    /// No ACLs.
    pub fn new() -> AclSet {
        AclSet::default()
    }

    /// Parses the words after `acl`: a name, a criterion, flags and patterns. A name already
    /// known gets one more criterion.
    ///
    /// # Errors
    /// With the word and the byte range at fault.
    pub fn declare(&mut self, words: &[&str]) -> Result<(), ExpressionError> {
        let name = words
            .first()
            .ok_or_else(|| ExpressionError::new("missing ACL name", 0..0))?;
        check_name(name)?;
        let criterion = Criterion::parse(&words[1..]).map_err(|error| {
            ExpressionError {
                word: error.word + 1,
                ..error
            }
            .within(words)
        })?;
        self.check_names(&criterion.expr.references())
            .map_err(|error| ExpressionError {
                range: 0..words.get(1).map_or(0, |word| word.len()),
                ..error.in_word(1)
            })?;
        self.add(name, criterion);
        Ok(())
    }

    /// Notes the predefined ACLs that a condition names. As in HAProxy, an ACL that is declared under
    /// such a name afterwards adds to it, and replaces it only where no condition came before.
    pub fn note_use(&mut self, condition: &Condition) {
        for name in condition.acl_names() {
            let known = PREDEFINED.iter().find(|(known, _)| *known == name);
            if let Some((known, _)) = known {
                self.predefined_in_use.insert(known);
            }
        }
    }

    /// Adds a criterion to the ACL of that name, which may be new.
    pub fn add(&mut self, name: &str, criterion: Criterion) {
        match self.by_name.get(name) {
            Some(at) => Arc::make_mut(&mut self.acls[*at]).criteria.push(criterion),
            None => {
                let mut criteria = Vec::new();
                if self.predefined_in_use.contains(name)
                    && let Some(before) = predefined(name)
                {
                    criteria.clone_from(&before.criteria);
                }
                criteria.push(criterion);
                self.by_name.insert(name.to_owned(), self.acls.len());
                self.acls.push(Arc::new(Acl {
                    name: name.to_owned(),
                    criteria,
                }));
            }
        }
    }

    /// Says on which line the last criterion of that name stands.
    pub fn set_config_line(&mut self, name: &str, config_line: &ConfigLine) {
        if let Some(at) = self.by_name.get(name)
            && let Some(last) = Arc::make_mut(&mut self.acls[*at]).criteria.last_mut()
        {
            last.set_config_line(config_line);
        }
    }

    /// The ACL of that name.
    pub fn get(&self, name: &str) -> Option<&Arc<Acl>> {
        self.by_name.get(name).map(|at| &self.acls[*at])
    }

    /// All ACLs in the order of their first line.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Acl>> {
        self.acls.iter()
    }

    /// Checks that there is an ACL of that name, predefined ones included.
    ///
    /// # Errors
    /// When there is none, with the name that is most like it.
    pub fn check_name(&self, name: &str) -> Result<(), ExpressionError> {
        match condition::find_acl(name, self) {
            Some(_) => Ok(()),
            None => Err(condition::acl_not_found(name, self)),
        }
    }

    /// Checks the ACLs among what an expression names. Where the expression is a word of a rule they
    /// must be declared before it.
    ///
    /// # Errors
    /// For the first that is not declared, with the whole of the first word as its index.
    pub fn check_names(&self, references: &[ExpressionReference]) -> Result<(), ExpressionError> {
        references.iter().try_for_each(|reference| match reference {
            ExpressionReference::Acl(name) => self.check_name(name),
            _ => Ok(()),
        })
    }

    /// How many ACLs there are.
    pub fn len(&self) -> usize {
        self.acls.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.acls.is_empty()
    }

    /// Joins all ACLs to their pattern files, and each to those before it that it names. Conditions
    /// are linked afterwards.
    ///
    /// # Errors
    /// One for each ACL that could not be joined.
    pub fn link(
        &mut self,
        store: &Store,
        files: &mut dyn PatternFileReader,
    ) -> Result<(), Vec<ExpressionError>> {
        let mut errors = Vec::new();
        let mut linked = AclSet::new();
        for mut acl in std::mem::take(self).acls {
            let mut linker = Linker {
                acls: &linked,
                store,
                files: &mut *files,
            };
            if let Err(error) = Arc::make_mut(&mut acl).link(&mut linker) {
                let message = format!("acl '{}': {}", acl.name, error.message);
                errors.push(ExpressionError { message, ..error });
            }
            linked.by_name.insert(acl.name.clone(), linked.acls.len());
            linked.acls.push(acl);
        }
        *self = linked;
        if errors.is_empty() {
            Ok(())
        } else {
            Err(errors)
        }
    }
}

/// Words that would be operators were they names.
fn check_name(name: &str) -> Result<(), ExpressionError> {
    let whole = 0..name.len();
    if name.eq_ignore_ascii_case("or") || matches!(name, "||" | "!" | "{" | "}") {
        return Err(ExpressionError::new(
            format!("'{name}' cannot be the name of an ACL: it is a word of conditions"),
            whole,
        ));
    }
    match name
        .char_indices()
        .find(|(_, c)| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | ':')))
    {
        Some((at, c)) => Err(ExpressionError::new(
            format!("character '{c}' is not permitted in acl name '{name}'"),
            at..at + c.len_utf8(),
        )),
        None if name.is_empty() => Err(ExpressionError::new("missing ACL name", whole)),
        None => Ok(()),
    }
}
