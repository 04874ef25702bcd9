//! Reads the words of a rule: a cursor that knows the rule set and what is allowed there, and
//! collects what the arguments need and name.

use ballast_expr::{Expr, ExpressionError, LogFormat, Needs, Phases, Regex, Usage, VarName};

use crate::parse_env::ParseEnv;
use crate::perform::{AnyAction, UnimplementedAction};
use crate::reference::RuleReference;
use crate::rule_set_kind::RuleSetKind;

/// What others must know about the arguments of an action; collected by [`Args`] while they are
/// read.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ActionRequirements {
    /// What must be available for it to be performed.
    pub(crate) needs: Needs,
    /// The words in it that are checked but not implemented: the action's own, samples and
    /// converters.
    pub(crate) unimplemented: Vec<&'static str>,
    /// The names in it that refer to other parts of the configuration.
    pub(crate) references: Vec<RuleReference>,
}

/// The words of one rule, being read.
pub(crate) struct Args<'w, 'e, 'v> {
    words: &'w [&'w str],
    at: usize,
    /// The rule set.
    pub(crate) rule_set: RuleSetKind,
    /// Where its expressions are evaluated.
    pub(crate) phases: Phases,
    /// The parser's environment.
    pub(crate) env: &'v mut ParseEnv<'e>,
    /// The word that messages name when the action is not implemented.
    word: &'static str,
    requirements: ActionRequirements,
    /// The expressions of an action that is not implemented.
    unimplemented: Option<UnimplementedAction>,
}

impl<'w, 'e, 'v> Args<'w, 'e, 'v> {
    pub(crate) fn new(
        words: &'w [&'w str],
        rule_set: RuleSetKind,
        env: &'v mut ParseEnv<'e>,
    ) -> Args<'w, 'e, 'v> {
        let mut phases = rule_set.phases(env.capability);
        if env.is_error_page {
            phases = phases | RuleSetKind::HttpResponse.phases(env.capability);
        }
        // The action's own word comes first, except for `redirect`, where it is the word of the
        // line.
        let at = usize::from(rule_set != RuleSetKind::Redirect);
        Args {
            words,
            at,
            rule_set,
            phases,
            env,
            word: "",
            requirements: ActionRequirements::default(),
            unimplemented: None,
        }
    }

    /// Begins to read the arguments of the action `word`, which itself needs `needs`.
    pub(crate) fn begin(&mut self, word: &'static str, needs: Needs) {
        self.word = word;
        self.requirements.needs = needs;
    }

    /// The action is not implemented: its expressions are collected.
    pub(crate) fn begin_unimplemented(&mut self) {
        self.unimplemented = Some(UnimplementedAction::default());
    }

    /// What was collected.
    pub(crate) fn requirements(&mut self) -> ActionRequirements {
        std::mem::take(&mut self.requirements)
    }

    /// Marks the action with these arguments as not implemented.
    pub(crate) fn finish_unimplemented(&mut self) -> Box<dyn AnyAction> {
        self.requirements.unimplemented.insert(0, self.word);
        Box::new(self.unimplemented.take().unwrap_or_default())
    }

    /// Sets the word that messages name when the action is not implemented.
    pub(crate) fn set_word(&mut self, word: &'static str) {
        self.word = word;
    }

    /// Records a reference to another part of the configuration.
    pub(crate) fn refer_to(&mut self, reference: RuleReference) {
        self.requirements.references.push(reference);
    }

    fn record_expr(&mut self, expr: &Expr) {
        self.requirements.needs = self.requirements.needs | expr.needs();
        self.requirements.unimplemented.extend(expr.unimplemented());
        let named = expr
            .references()
            .into_iter()
            .map(RuleReference::FromExpression);
        self.requirements.references.extend(named);
        if let Some(action) = &mut self.unimplemented {
            action.exprs.push(expr.clone());
        }
    }

    /// Records what a format needs and refers to; see [`Args::parse_format`].
    pub(crate) fn record_format(&mut self, format: &LogFormat) {
        self.requirements.needs = self.requirements.needs | format.needs();
        self.requirements
            .unimplemented
            .extend(format.unimplemented());
        let named = format
            .references()
            .into_iter()
            .map(RuleReference::FromExpression);
        self.requirements.references.extend(named);
        if let Some(action) = &mut self.unimplemented {
            action.formats.push(format.clone());
        }
    }

    /// The word of the action.
    pub(crate) fn head(&self) -> &'w str {
        self.words.first().copied().unwrap_or_default()
    }

    /// The position of the cursor.
    pub(crate) const fn at(&self) -> usize {
        self.at
    }

    /// The words not read yet.
    pub(crate) fn rest(&self) -> &'w [&'w str] {
        self.words.get(self.at..).unwrap_or_default()
    }

    /// Whether the arguments end here: a condition or nothing follows.
    pub(crate) fn is_at_end(&self) -> bool {
        matches!(self.peek(), None | Some("if" | "unless"))
    }

    pub(crate) fn peek(&self) -> Option<&'w str> {
        self.words.get(self.at).copied()
    }

    pub(crate) fn next(&mut self) -> Option<&'w str> {
        let word = self.peek()?;
        self.at += 1;
        Some(word)
    }

    /// The word read last.
    pub(crate) fn last(&self) -> &'w str {
        let before = self.at.checked_sub(1).and_then(|at| self.words.get(at));
        before.copied().unwrap_or_default()
    }

    /// Whether the next word is `word`; if so, skips it.
    pub(crate) fn take(&mut self, word: &str) -> bool {
        let taken = self.peek() == Some(word);
        self.at += usize::from(taken);
        taken
    }

    /// The next word; it must exist and not be empty.
    pub(crate) fn text(&mut self, missing: &str) -> Result<&'w str, ExpressionError> {
        match self.peek() {
            Some(word) if !word.is_empty() => {
                self.at += 1;
                Ok(word)
            }
            _ => Err(self.error(missing)),
        }
    }

    /// The next word as a format.
    pub(crate) fn format(
        &mut self,
        usage: Usage,
        missing: &str,
    ) -> Result<LogFormat, ExpressionError> {
        let text = self.text(missing)?;
        self.format_of(text, usage)
    }

    /// Parses `text`, which was read last, as a format whose samples must be available here.
    pub(crate) fn format_of(
        &mut self,
        text: &str,
        usage: Usage,
    ) -> Result<LogFormat, ExpressionError> {
        let format = self.parse_format(text, usage)?;
        self.record_format(&format);
        Ok(format)
    }

    /// The same for a format that the action may discard: nothing is recorded.
    pub(crate) fn parse_format(
        &mut self,
        text: &str,
        usage: Usage,
    ) -> Result<LogFormat, ExpressionError> {
        let at = self.at.saturating_sub(1);
        let format = LogFormat::parse(text, usage).map_err(|error| error.in_word(at))?;
        if usage == Usage::Http {
            let raw = format.raw_samples().map(|word| (word, at));
            self.env.raw_samples.extend(raw);
        }
        self.check_acls(&format.references(), at)?;
        let late = format
            .exprs()
            .find(|expr| !expr.phases().intersects(self.phases));
        match late {
            None => Ok(format),
            Some(expr) => Err(ExpressionError::new(
                format!(
                    "sample fetch <{expr}> may not be reliably used here because it is not \
                     available in '{}'; it may be used in: {}",
                    self.phases,
                    expr.phases()
                ),
                0..text.len(),
            )
            .in_word(at)),
        }
    }

    /// The next words as an expression; converters may be separate words.
    pub(crate) fn expr(&mut self) -> Result<Expr, ExpressionError> {
        let at = self.at;
        if self.peek().is_none_or(str::is_empty) {
            return Err(self.error("missing fetch method"));
        }
        let (expr, used) = Expr::parse_words(self.rest()).map_err(|error| ExpressionError {
            word: error.word + at,
            ..error
        })?;
        self.at += used;
        self.check(&expr, at)?;
        self.check_acls(&expr.references(), at)?;
        self.record_expr(&expr);
        Ok(expr)
    }

    /// Parses `text`, which was read last, as an expression.
    pub(crate) fn expr_of(&mut self, text: &str) -> Result<Expr, ExpressionError> {
        let at = self.at.saturating_sub(1);
        let expr = Expr::parse(text).map_err(|error| error.in_word(at))?;
        self.check_acls(&expr.references(), at)?;
        self.record_expr(&expr);
        Ok(expr)
    }

    /// Checks that the ACLs that word `at` names are declared.
    fn check_acls(
        &self,
        references: &[ballast_expr::ExpressionReference],
        at: usize,
    ) -> Result<(), ExpressionError> {
        let declared = self.env.acls.check_names(references);
        declared.map_err(|error| ExpressionError {
            range: 0..self.words.get(at).map_or(0, |word| word.len()),
            ..error.in_word(at)
        })
    }

    /// Checks that `expr`, which begins at word `at`, may be evaluated here.
    fn check(&self, expr: &Expr, at: usize) -> Result<(), ExpressionError> {
        if expr.phases().intersects(self.phases) {
            return Ok(());
        }
        let range = 0..self.words.get(at).map_or(0, |word| word.len());
        Err(ExpressionError::new(
            format!(
                "fetch method '{}' extracts information that is not available here ({}); it may \
                 be used in: {}",
                expr.fetch.word,
                self.phases,
                expr.phases()
            ),
            range,
        )
        .in_word(at))
    }

    /// The next word as a regular expression.
    pub(crate) fn regex(&mut self, missing: &str) -> Result<Regex, ExpressionError> {
        let text = self.text(missing)?;
        let at = self.at - 1;
        Regex::new(text, false).map_err(|error| error.in_word(at))
    }

    /// The text between the parentheses of the action's word, and its offset.
    pub(crate) fn parens(&self, expects: &str) -> Result<(&'w str, usize), ExpressionError> {
        let head = self.head();
        let inside = head
            .find('(')
            .and_then(|open| Some((head[open + 1..].strip_suffix(')')?, open + 1)));
        inside
            .filter(|(inside, _)| !inside.is_empty())
            .ok_or_else(|| {
                ExpressionError::new(
                    format!("invalid or incomplete action '{head}'. Expects '{expects}'"),
                    0..head.len(),
                )
            })
    }

    /// The arguments between the parentheses of the action's word, each with its offset.
    pub(crate) fn paren_args(
        &self,
        expects: &str,
    ) -> Result<Vec<(&'w str, usize)>, ExpressionError> {
        let (inside, mut at) = self.parens(expects)?;
        Ok(inside
            .split(',')
            .map(|one| {
                let start = at;
                at += one.len() + 1;
                (one, start)
            })
            .collect())
    }

    /// A variable whose name begins at byte `at` of the action's word.
    pub(crate) fn variable(&self, name: &str, at: usize) -> Result<VarName, ExpressionError> {
        VarName::parse(name).map_err(|error| error.moved_right(at))
    }

    /// An error at the next word, or at the last one when there is none.
    pub(crate) fn error(&self, message: impl Into<String>) -> ExpressionError {
        self.error_at(self.at, message)
    }

    /// An error at the word read last.
    pub(crate) fn error_before(&self, message: impl Into<String>) -> ExpressionError {
        self.error_at(self.at.saturating_sub(1), message)
    }

    /// An error at the word read last, which is none of `known`; `what` is the kind of word.
    pub(crate) fn unknown<'k>(
        &self,
        what: &str,
        known: impl IntoIterator<Item = &'k str>,
    ) -> ExpressionError {
        let word = self.last();
        ExpressionError::unknown(what, word, 0..word.len(), known)
            .in_word(self.at.saturating_sub(1))
    }

    fn error_at(&self, at: usize, message: impl Into<String>) -> ExpressionError {
        let at = at.min(self.words.len().saturating_sub(1));
        let range = 0..self.words.get(at).map_or(0, |word| word.len());
        ExpressionError::new(message, range).in_word(at)
    }

    /// A warning at the word read last.
    pub(crate) fn warn(&mut self, message: impl Into<String>) {
        let warning = self.error_before(message);
        self.env.warnings.push(warning);
    }
}
