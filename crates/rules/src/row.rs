//! A row of the table of actions.

use ballast_expr::{ExpressionError, Needs};

use crate::args::Args;
use crate::perform::ParsedAction;
use crate::rule_set_kind::RuleSetFlags;

/// How an action's word is written.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum WordForm {
    /// As it stands.
    Plain,
    /// With arguments between parentheses.
    Parens,
    /// With any text after it (`track-sc0`, `lua.name`).
    Prefix,
}

/// The parser of an action's arguments.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ArgsParser {
    /// The action is implemented: returns the parsed action.
    Implemented(for<'w, 'e, 'v, 'a> fn(&'a mut Args<'w, 'e, 'v>) -> ParsedAction),
    /// The action is checked but not implemented: only reads its arguments.
    Unimplemented(for<'w, 'e, 'v, 'a> fn(&'a mut Args<'w, 'e, 'v>) -> Result<(), ExpressionError>),
    /// The action is an error, for this reason.
    Refused(&'static str),
}

/// Everything about one action.
#[derive(Clone, Copy, Debug)]
pub struct ActionRow {
    /// Its word.
    pub word: &'static str,
    pub(crate) form: WordForm,
    /// The rule sets that accept it.
    pub rule_sets: RuleSetFlags,
    /// Its arguments.
    pub args: &'static str,
    /// Whether no rule of its set is reached after it.
    pub is_final: bool,
    /// Whether consecutive rules of it act together ([`RunState::group`](crate::run_state::RunState::group)).
    pub(crate) is_grouped: bool,
    /// What it needs, besides what its arguments need and its rule set provides.
    pub needs: Needs,
    /// Help: what it does, in a few words.
    pub help: &'static str,
    /// Examples that are accepted in the first of the rule sets.
    pub good: &'static [&'static str],
    /// Examples that are refused there.
    pub bad: &'static [&'static str],
    pub(crate) parse: ArgsParser,
}

impl ActionRow {
    /// An action that is implemented.
    pub(crate) const fn new(
        word: &'static str,
        rule_sets: RuleSetFlags,
        args: &'static str,
        help: &'static str,
        parse: for<'w, 'e, 'v, 'a> fn(&'a mut Args<'w, 'e, 'v>) -> ParsedAction,
    ) -> ActionRow {
        ActionRow::with(word, rule_sets, args, help, ArgsParser::Implemented(parse))
    }

    /// An action that is checked but not implemented: a configuration that contains it is not
    /// started.
    pub(crate) const fn unimplemented(
        word: &'static str,
        rule_sets: RuleSetFlags,
        args: &'static str,
        help: &'static str,
        check: for<'w, 'e, 'v, 'a> fn(&'a mut Args<'w, 'e, 'v>) -> Result<(), ExpressionError>,
    ) -> ActionRow {
        ActionRow::with(
            word,
            rule_sets,
            args,
            help,
            ArgsParser::Unimplemented(check),
        )
    }

    /// An action that is refused for good, for this reason.
    pub(crate) const fn refused(
        word: &'static str,
        rule_sets: RuleSetFlags,
        args: &'static str,
        help: &'static str,
        reason: &'static str,
    ) -> ActionRow {
        ActionRow::with(word, rule_sets, args, help, ArgsParser::Refused(reason))
    }

    /// Why it is refused for good, if it is.
    pub const fn refusal(&self) -> Option<&'static str> {
        match self.parse {
            ArgsParser::Refused(reason) => Some(reason),
            ArgsParser::Implemented(_) | ArgsParser::Unimplemented(_) => None,
        }
    }

    const fn with(
        word: &'static str,
        rule_sets: RuleSetFlags,
        args: &'static str,
        help: &'static str,
        parse: ArgsParser,
    ) -> ActionRow {
        ActionRow {
            word,
            form: WordForm::Plain,
            rule_sets,
            args,
            is_final: false,
            is_grouped: false,
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
    ) -> ActionRow {
        ActionRow { good, bad, ..self }
    }

    pub(crate) const fn ends_the_set(self) -> ActionRow {
        ActionRow {
            is_final: true,
            ..self
        }
    }

    pub(crate) const fn performed_as_group(self) -> ActionRow {
        ActionRow {
            is_grouped: true,
            ..self
        }
    }

    pub(crate) const fn needs(self, needs: Needs) -> ActionRow {
        ActionRow { needs, ..self }
    }

    pub(crate) const fn parens(self) -> ActionRow {
        ActionRow {
            form: WordForm::Parens,
            ..self
        }
    }

    pub(crate) const fn prefix(self) -> ActionRow {
        ActionRow {
            form: WordForm::Prefix,
            ..self
        }
    }

    pub(crate) const fn and_redirect(self) -> ActionRow {
        ActionRow {
            rule_sets: self.rule_sets.and_redirect(),
            ..self
        }
    }

    /// The word as HAProxy's lists show it.
    pub(crate) fn shown_word(&self) -> String {
        match self.form {
            WordForm::Plain => format!("'{}'", self.word),
            WordForm::Parens | WordForm::Prefix => format!("'{}(*)'", self.word),
        }
    }
}
