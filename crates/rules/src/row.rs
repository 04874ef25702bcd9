//! A row of the table of actions: the word with all its sides.

use ballast_expr::{Error, Needs};

use crate::action::{FAMILIES, Parsed};
use crate::args::Args;
use crate::ruleset::{Places, RuleSet};

/// How an action's word is written.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Form {
    /// As it stands.
    Plain,
    /// With arguments between parentheses.
    Parens,
    /// With anything behind it (`track-sc0`, `lua.name`).
    Prefix,
}

/// How the arguments of an action are read.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Parse {
    /// The action is carried out: gives what does it.
    Served(for<'w, 'e, 'v, 'a> fn(&'a mut Args<'w, 'e, 'v>) -> Parsed),
    /// The action is checked and not carried out yet: takes its arguments.
    Later(for<'w, 'e, 'v, 'a> fn(&'a mut Args<'w, 'e, 'v>) -> Result<(), Error>),
}

/// One action with all its sides.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Its word.
    pub word: &'static str,
    pub(crate) form: Form,
    /// The places that accept it.
    pub places: Places,
    /// What follows the word.
    pub args: &'static str,
    /// Whether no rule of its set is reached behind it.
    pub is_final: bool,
    /// What it needs beside what its arguments ask and its place brings.
    pub needs: Needs,
    /// What it does, in a few words.
    pub help: &'static str,
    /// Words of rules that are accepted in the first of the places.
    pub good: &'static [&'static str],
    /// Words of rules that are refused there.
    pub bad: &'static [&'static str],
    pub(crate) parse: Parse,
}

impl Row {
    /// An action that is carried out.
    pub(crate) const fn new(
        word: &'static str,
        columns: &'static str,
        args: &'static str,
        help: &'static str,
        parse: for<'w, 'e, 'v, 'a> fn(&'a mut Args<'w, 'e, 'v>) -> Parsed,
    ) -> Row {
        Row::with(word, columns, args, help, Parse::Served(parse))
    }

    /// An action that is checked and not carried out yet: a configuration that holds it is not
    /// started.
    pub(crate) const fn later(
        word: &'static str,
        columns: &'static str,
        args: &'static str,
        help: &'static str,
        check: for<'w, 'e, 'v, 'a> fn(&'a mut Args<'w, 'e, 'v>) -> Result<(), Error>,
    ) -> Row {
        Row::with(word, columns, args, help, Parse::Later(check))
    }

    const fn with(
        word: &'static str,
        columns: &'static str,
        args: &'static str,
        help: &'static str,
        parse: Parse,
    ) -> Row {
        Row {
            word,
            form: Form::Plain,
            places: Places::of(columns),
            args,
            is_final: false,
            needs: Needs::NONE,
            help,
            good: &[],
            bad: &[],
            parse,
        }
    }

    pub(crate) const fn examples(
        self,
        good: &'static [&'static str],
        bad: &'static [&'static str],
    ) -> Row {
        Row { good, bad, ..self }
    }

    pub(crate) const fn ends_the_set(self) -> Row {
        Row {
            is_final: true,
            ..self
        }
    }

    pub(crate) const fn needs(self, needs: Needs) -> Row {
        Row { needs, ..self }
    }

    pub(crate) const fn parens(self) -> Row {
        Row {
            form: Form::Parens,
            ..self
        }
    }

    pub(crate) const fn prefix(self) -> Row {
        Row {
            form: Form::Prefix,
            ..self
        }
    }

    pub(crate) const fn and_redirect(self) -> Row {
        Row {
            places: self.places.and_redirect(),
            ..self
        }
    }

    /// The word as HAProxy's lists show it.
    pub(crate) fn shown(&self) -> String {
        match self.form {
            Form::Plain => format!("'{}'", self.word),
            Form::Parens | Form::Prefix => format!("'{}(*)'", self.word),
        }
    }
}

/// Every action, family by family.
pub fn rows() -> impl Iterator<Item = &'static Row> {
    FAMILIES.iter().copied().flatten()
}

/// The action that `word`, the first of a rule, names; arguments in parentheses may follow.
pub fn row(word: &str) -> Option<&'static Row> {
    let name = word.split('(').next().unwrap_or_default();
    rows()
        .find(|row| row.word == name)
        .or_else(|| rows().find(|row| row.form == Form::Prefix && name.starts_with(row.word)))
}

/// The actions of one place.
pub(crate) fn rows_of(place: RuleSet) -> impl Iterator<Item = &'static Row> {
    rows().filter(move |row| row.places.has(place))
}
