//! Rules.

use std::fmt;

use ballast_expr::{AclSet, Condition, ConfigLine, ExpressionError, LinkSlot, Linker, Needs};

use crate::action::Action;
use crate::reference::RuleReference;

/// An action and its condition.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// The action.
    pub action: Action,
    /// When; always if `None`.
    pub condition: Option<Condition>,
    /// The words as written, action first.
    pub words: Vec<String>,
    pub(crate) config_line: LinkSlot<ConfigLine>,
}

impl Rule {
    /// What is checked but not implemented: the action's word, samples, converters.
    pub fn unimplemented(&self, acls: &AclSet) -> Vec<&'static str> {
        let mut all = self.action.unimplemented().to_vec();
        if let Some(condition) = &self.condition {
            all.extend(condition.unimplemented(acls));
        }
        all
    }

    /// What its action and its condition need. `acls` holds the ACLs of the proxy; after linking it
    /// may be empty.
    pub fn needs(&self, acls: &AclSet) -> Needs {
        let condition = self.condition.as_ref();
        self.action.needs() | condition.map_or(Needs::NONE, |condition| condition.needs(acls))
    }

    /// The references of the rule to other parts of the configuration.
    pub fn references(&self) -> Vec<RuleReference> {
        let mut all = self.action.references().to_vec();
        if let Some(condition) = &self.condition {
            all.extend(
                condition
                    .references()
                    .into_iter()
                    .map(RuleReference::FromExpression),
            );
        }
        all
    }

    /// Sets the line of the rule, which is shown for the lists it uses.
    pub fn set_config_line(&mut self, line: &ConfigLine) {
        self.config_line.fill(*line);
        if let Some(condition) = &mut self.condition {
            condition.set_config_line(line);
        }
    }

    /// Links the rule to the ACLs, lists and maps it names.
    ///
    /// # Errors
    /// When an ACL does not exist or a file cannot be used.
    pub fn link(&mut self, linker: &mut Linker<'_>) -> Result<(), ExpressionError> {
        if let Some(line) = self.config_line.filled() {
            linker.store.set_config_line(line);
        }
        self.action.link(linker)?;
        match &mut self.condition {
            Some(condition) => condition.link(linker),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Rule {
    /// The words as written, quoted where a configuration needs it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, word) in self.words.iter().enumerate() {
            if at > 0 {
                f.write_str(" ")?;
            }
            if !word.is_empty()
                && !word.contains([' ', '\t', '\n', '\r', '"', '\'', '\\', '#', '$'])
            {
                f.write_str(word)?;
            } else {
                // Between single quotes only the quote itself is special.
                write!(f, "'{}'", word.replace('\'', "'\\''"))?;
            }
        }
        Ok(())
    }
}
