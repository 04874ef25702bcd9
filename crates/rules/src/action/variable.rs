//! `set-var`, `set-var-fmt`, `unset-var`.

use ballast_expr::{Expr, ExpressionError, Linker, LogFormat, SetCondition, Usage, Value, VarName};

use crate::args::Args;
use crate::perform::{ParsedAction, Perform, boxed};
use crate::row::ActionRow;
use crate::rule_set_kind::{RuleSetFlags, RuleSetKind};
use crate::run_state::{ActionOutcome, RunState, StoredValue};

pub(crate) const ROWS: &[ActionRow] = &[
    ActionRow::new(
        "set-var",
        RuleSetFlags::of(&[
            RuleSetKind::TcpConnection,
            RuleSetKind::TcpSession,
            RuleSetKind::TcpContent,
            RuleSetKind::TcpResponse,
            RuleSetKind::HttpRequest,
            RuleSetKind::HttpResponse,
            RuleSetKind::HttpAfterResponse,
        ]),
        "(<var-name>[,<cond>...]) <expr>",
        "set a variable to a sample",
        |args| {
            let (name, conditions) = target(args)?;
            let value = VariableValue::Expr(args.expr()?);
            done(name, conditions, value)
        },
    )
    .parens()
    .examples(
        &[
            "set-var(txn.a) src",
            "set-var(txn.a,ifnotexists) str(x),upper if TRUE",
        ],
        &[
            "set-var",
            "set-var(txn.a)",
            "set-var(a) src",
            "set-var(txn.a,never) src",
            "set-var(txn.a src",
        ],
    ),
    ActionRow::new(
        "set-var-fmt",
        RuleSetFlags::of(&[
            RuleSetKind::TcpConnection,
            RuleSetKind::TcpSession,
            RuleSetKind::TcpContent,
            RuleSetKind::TcpResponse,
            RuleSetKind::HttpRequest,
            RuleSetKind::HttpResponse,
            RuleSetKind::HttpAfterResponse,
        ]),
        "(<var-name>[,<cond>...]) <fmt>",
        "set a variable to a format",
        |args| {
            let (name, conditions) = target(args)?;
            // HAProxy reads a missing format as an empty one.
            let value = match args.next() {
                Some(text) => args.format_of(text, Usage::Text)?,
                None => LogFormat::parse("", Usage::Text)?,
            };
            done(name, conditions, VariableValue::Format(value))
        },
    )
    .parens()
    .examples(
        &["set-var-fmt(txn.a) %[src]:%[src_port]"],
        &["set-var-fmt(a) b", "set-var-fmt(txn.a) a b"],
    ),
    ActionRow::new(
        "unset-var",
        RuleSetFlags::of(&[
            RuleSetKind::TcpConnection,
            RuleSetKind::TcpSession,
            RuleSetKind::TcpContent,
            RuleSetKind::TcpResponse,
            RuleSetKind::HttpRequest,
            RuleSetKind::HttpResponse,
            RuleSetKind::HttpAfterResponse,
        ]),
        "(<var-name>)",
        "forget a variable",
        |args| {
            let (name, at) = args.parens(EXPECTS)?;
            let name = args.variable(name, at)?;
            done(name, Vec::new(), VariableValue::Nothing)
        },
    )
    .parens()
    .examples(
        &["unset-var(txn.a)"],
        &["unset-var(a)", "unset-var(txn.a) src", "unset-var"],
    ),
];

const EXPECTS: &str = "set-var(<var-name>)', 'set-var-fmt(<var-name>)' or 'unset-var(<var-name>)";

/// A variable to set or to remove.
#[derive(Clone, Debug, PartialEq)]
struct Variable {
    name: VarName,
    /// All of these must hold for the variable to be set.
    conditions: Vec<SetCondition>,
    value: VariableValue,
}

/// Where the value comes from.
#[derive(Clone, Debug, PartialEq)]
enum VariableValue {
    Expr(Expr),
    Format(LogFormat),
    /// The variable is removed.
    Nothing,
}

/// What must hold for a variable to be set (manual, converter `set-var`).
fn done(name: VarName, conditions: Vec<SetCondition>, value: VariableValue) -> ParsedAction {
    boxed(Ok(Variable {
        name,
        conditions,
        value,
    }))
}

fn target(args: &mut Args<'_, '_, '_>) -> Result<(VarName, Vec<SetCondition>), ExpressionError> {
    let all = args.paren_args(EXPECTS)?;
    let (name, at) = all.first().copied().unwrap_or_default();
    let name = args.variable(name, at)?;
    let mut conditions = Vec::new();
    for (word, at) in all[1..].iter().filter(|(word, _)| !word.is_empty()) {
        match SetCondition::parse(word) {
            Some(when) => conditions.push(when),
            None => {
                let known = SetCondition::WORDS.iter().map(|(known, _)| *known);
                return Err(ExpressionError::unknown(
                    "condition",
                    word,
                    *at..at + word.len(),
                    known,
                ));
            }
        }
    }
    Ok((name, conditions))
}

impl Perform for Variable {
    fn link(&mut self, linker: &mut Linker<'_>) -> Result<(), ExpressionError> {
        match &mut self.value {
            VariableValue::Expr(expr) => expr.link(linker),
            VariableValue::Format(format) => format.link(linker),
            VariableValue::Nothing => Ok(()),
        }
    }

    fn perform(&self, run_state: &mut RunState<'_>) -> ActionOutcome {
        let held = match &self.value {
            VariableValue::Expr(expr) => match run_state.evaluate(expr) {
                Some(held) => held,
                // An expression without a value changes nothing.
                None => return ActionOutcome::Next,
            },
            VariableValue::Format(format) => {
                run_state.render(format);
                StoredValue::Str
            }
            VariableValue::Nothing => {
                run_state.transaction.set_var(&self.name, None);
                return ActionOutcome::Next;
            }
        };
        let value = held.value(run_state.workspace);
        if self.may_set(&*run_state.transaction, value) {
            run_state.transaction.set_var(&self.name, Some(value));
        }
        ActionOutcome::Next
    }
}

impl Variable {
    fn may_set(&self, transaction: &dyn crate::transaction::Transaction, value: Value<'_>) -> bool {
        if self.conditions.is_empty() {
            return true;
        }
        let mut may = true;
        transaction.with_facts(&mut |facts| {
            let now = facts.var(&self.name);
            may = self
                .conditions
                .iter()
                .all(|when| when.holds(&self.name, now, value));
        });
        may
    }
}
