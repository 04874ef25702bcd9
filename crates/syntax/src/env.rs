//! The environment that the configuration reads and changes.
//!
//! Source: HAProxy configuration manual, sections 2.3 and 3.1 (`setenv`, `presetenv`, `unsetenv`,
//! `resetenv`).

use std::collections::BTreeMap;
use std::fmt;

/// Variables by name, in the order in which they were set first. A copy of the process's environment:
/// `setenv` in the configuration changes this copy, never the process.
#[derive(Clone, Debug, Default)]
pub struct Env {
    /// Values with their places in the order.
    variables: BTreeMap<String, (u64, String)>,
    /// How many variables were set first, whatever became of them.
    added: u64,
}

impl PartialEq for Env {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for Env {}

/// A name that is invalid for the system: empty, or with `=` or NUL.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct EnvNameError;

impl fmt::Display for EnvNameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a variable's name must not be empty nor hold '='")
    }
}

impl std::error::Error for EnvNameError {}

impl Env {
    /// An empty environment.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The value of a variable.
    #[must_use]
    pub fn value(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(|(_, value)| value.as_str())
    }

    /// Whether a variable exists, even an empty one.
    #[must_use]
    pub fn is_defined(&self, name: &str) -> bool {
        self.variables.contains_key(name)
    }

    /// `setenv`: sets a variable.
    ///
    /// # Errors
    ///
    /// When the name is invalid.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), EnvNameError> {
        check_name(name)?;
        if let Some((_, known)) = self.variables.get_mut(name) {
            value.clone_into(known);
        } else {
            self.add(name.to_owned(), value.to_owned());
        }
        Ok(())
    }

    /// `presetenv`: sets a variable unless it exists.
    ///
    /// # Errors
    ///
    /// When the name is invalid.
    pub fn preset(&mut self, name: &str, value: &str) -> Result<(), EnvNameError> {
        check_name(name)?;
        if !self.is_defined(name) {
            self.add(name.to_owned(), value.to_owned());
        }
        Ok(())
    }

    /// `unsetenv`: removes a variable; one that does not exist is no error.
    ///
    /// # Errors
    ///
    /// When the name is invalid.
    pub fn unset(&mut self, name: &str) -> Result<(), EnvNameError> {
        check_name(name)?;
        self.variables.remove(name);
        Ok(())
    }

    /// `resetenv`: removes all variables except the named ones.
    pub fn reset_except(&mut self, kept: &[&str]) {
        self.variables
            .retain(|name, _| kept.contains(&name.as_str()));
    }

    /// The variables, in their order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        let mut all: Vec<_> = self.variables.iter().collect();
        all.sort_unstable_by_key(|(_, (place, _))| *place);
        all.into_iter()
            .map(|(name, (_, value))| (name.as_str(), value.as_str()))
    }

    fn add(&mut self, name: String, value: String) {
        self.variables.insert(name, (self.added, value));
        self.added += 1;
    }
}

impl<K: Into<String>, V: Into<String>> FromIterator<(K, V)> for Env {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(pairs: I) -> Self {
        let mut env = Self::new();
        for (name, value) in pairs {
            let (name, value) = (name.into(), value.into());
            match env.variables.get_mut(&name) {
                Some((_, known)) => *known = value,
                None => env.add(name, value),
            }
        }
        env
    }
}

fn check_name(name: &str) -> Result<(), EnvNameError> {
    if name.is_empty() || name.contains(['=', '\0']) {
        return Err(EnvNameError);
    }
    Ok(())
}
