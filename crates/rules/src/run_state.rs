//! The state of a run, and what actions do with it.

use std::net::IpAddr;
use std::time::Duration;

use ballast_expr::{
    Condition, ConditionResult, Expr, LogFormat, Needs, SampleKind, Value, eval, eval_as, eval_with,
};
use ballast_message::NoRoom;

use crate::transaction::{Transaction, Workspace};
use crate::verdict::Verdict;

/// The result of an action.
pub(crate) enum ActionOutcome {
    /// Continue with the next rule.
    Next,
    /// End the run.
    Stop(Verdict),
    /// The action has no value without one of these: perform it again when something arrived. An
    /// action returns needs that may still arrive only.
    NotYet(Needs),
    /// The message could not be rewritten and is unchanged.
    Failed,
    /// Perform the action again, with [`RunState::action_has_waited`] set, when one of the needs has arrived or, at
    /// the latest, when the time has passed; at once if none of them can arrive. An action returns it
    /// only while [`RunState::action_has_waited`] is false.
    Wait(Needs, Option<Duration>),
    /// As [`Self::Wait`], for the body of the message: so many bytes of it, or all of it if the number
    /// is 0.
    WaitForBody(u64, Option<Duration>),
}

impl From<Result<(), NoRoom>> for ActionOutcome {
    fn from(result: Result<(), NoRoom>) -> ActionOutcome {
        match result {
            Ok(()) => ActionOutcome::Next,
            Err(NoRoom) => ActionOutcome::Failed,
        }
    }
}

/// The state of a run.
pub(crate) struct RunState<'t> {
    pub(crate) transaction: &'t mut dyn Transaction,
    pub(crate) workspace: &'t mut Workspace,
    /// `strict-mode`: a failed rewrite ends the exchange.
    pub(crate) strict: bool,
    /// What may still arrive.
    pub(crate) may_still_arrive: Needs,
    /// The part of it that samples need: often nothing, and then they cost no more than without it.
    pub(crate) may_arrive_for_samples: Needs,
    /// The current action has waited: it must not ask for the same again.
    pub(crate) action_has_waited: bool,
    /// The index of the first of the consecutive rules of the current action.
    pub(crate) group: usize,
}

impl RunState<'_> {
    /// Whether `condition` holds.
    pub(crate) fn applies(&mut self, condition: Option<&Condition>) -> ConditionResult {
        let Some(condition) = condition else {
            return ConditionResult::Yes;
        };
        let (scratch, more) = (&mut self.workspace.scratch, self.may_arrive_for_samples);
        let mut truth = ConditionResult::No;
        self.transaction
            .with_facts(&mut |facts| truth = condition.test(facts, scratch, more));
        truth
    }

    /// Renders `format` into `workspace.text`.
    pub(crate) fn render(&mut self, format: &LogFormat) {
        self.workspace.text.clear();
        self.render_more(format);
    }

    /// Appends the rendered `format` to `workspace.text`.
    pub(crate) fn render_more(&mut self, format: &LogFormat) {
        if let Some(bytes) = format.as_literal_bytes() {
            self.workspace.text.extend_from_slice(bytes);
            return;
        }
        let Workspace { scratch, text, .. } = &mut *self.workspace;
        self.transaction
            .with_facts(&mut |facts| format.render(facts, scratch, text));
    }

    /// Evaluates `expr` with what is there; the value is in the workspace. `None` when there is no
    /// value.
    pub(crate) fn evaluate(&mut self, expr: &Expr) -> Option<StoredValue> {
        let Workspace {
            scratch,
            plain,
            text,
            ..
        } = &mut *self.workspace;
        text.clear();
        let mut held = None;
        self.transaction.with_facts(&mut |facts| {
            held = eval(expr, facts, scratch).map(|value| StoredValue::keep(value, plain, text));
        });
        held
    }

    /// Evaluates `expr` as an integer.
    pub(crate) fn integer(&mut self, expr: &Expr) -> Option<i64> {
        let value = self.evaluate(expr)?;
        value.value(self.workspace).to_int()
    }

    /// Evaluates `expr` as an address. An IPv6 address that stands for an IPv4 one stays as it is.
    pub(crate) fn address(&mut self, expr: &Expr) -> Option<IpAddr> {
        let value = self.evaluate(expr)?;
        value.value(self.workspace).to_ip()
    }

    /// Evaluates `expr` as a value of type `kind`; the value is in the workspace. `None` when there is no
    /// value, or it cannot be cast.
    pub(crate) fn evaluate_as(&mut self, expr: &Expr, kind: SampleKind) -> Option<StoredValue> {
        self.evaluate_as_with(expr, kind, Needs::NONE)
            .unwrap_or_default()
    }

    /// The same, for an action that waits for its value.
    ///
    /// # Errors
    /// There is no value yet: what must come for it.
    pub(crate) fn evaluate_as_or_wait(
        &mut self,
        expr: &Expr,
        kind: SampleKind,
    ) -> Result<Option<StoredValue>, Needs> {
        self.evaluate_as_with(expr, kind, self.may_arrive_for_samples)
    }

    fn evaluate_as_with(
        &mut self,
        expr: &Expr,
        kind: SampleKind,
        may_still_arrive: Needs,
    ) -> Result<Option<StoredValue>, Needs> {
        let Workspace {
            scratch,
            plain,
            text,
            ..
        } = &mut *self.workspace;
        text.clear();
        let mut held = Ok(None);
        self.transaction.with_facts(&mut |facts| {
            held = eval_as(expr, kind, facts, scratch, may_still_arrive)
                .map(|value| value.map(|value| StoredValue::keep(value, plain, text)));
        });
        held
    }

    /// As [`RunState::evaluate`], for an action that waits for its value.
    ///
    /// # Errors
    /// There is no value yet: what must come for it.
    pub(crate) fn evaluate_or_wait(&mut self, expr: &Expr) -> Result<Option<StoredValue>, Needs> {
        let more = self.may_arrive_for_samples;
        if more.is_none() {
            return Ok(self.evaluate(expr));
        }
        let Workspace {
            scratch,
            plain,
            text,
            ..
        } = &mut *self.workspace;
        text.clear();
        let mut held = Ok(None);
        self.transaction.with_facts(&mut |facts| {
            held = eval_with(expr, facts, scratch, more)
                .map(|value| value.map(|value| StoredValue::keep(value, plain, text)));
        });
        held
    }
}

/// The type of the value that was evaluated last; the value is in the workspace.
///
/// It is one byte, which is returned in a register: a value that is copied from frame to frame was
/// a sixth of what it costs to set a variable.
#[derive(Clone, Copy, Debug)]
pub(crate) enum StoredValue {
    /// In `workspace.plain`.
    Plain,
    /// A text, in `workspace.text`, as the next ones.
    Str,
    Bin,
    Meth,
}

impl StoredValue {
    fn keep(value: Value<'_>, plain: &mut Value<'static>, text: &mut Vec<u8>) -> StoredValue {
        let (stored, bytes) = match value {
            Value::Str(bytes) => (StoredValue::Str, bytes),
            Value::Bin(bytes) => (StoredValue::Bin, bytes),
            Value::Meth(bytes) => (StoredValue::Meth, bytes),
            Value::Bool(flag) => return StoredValue::keep_plain(Value::Bool(flag), plain),
            Value::Int(number) => return StoredValue::keep_plain(Value::Int(number), plain),
            Value::Ipv4(address) => return StoredValue::keep_plain(Value::Ipv4(address), plain),
            Value::Ipv6(address) => return StoredValue::keep_plain(Value::Ipv6(address), plain),
        };
        text.extend_from_slice(bytes);
        stored
    }

    fn keep_plain(value: Value<'static>, plain: &mut Value<'static>) -> StoredValue {
        *plain = value;
        StoredValue::Plain
    }

    /// The value, until another one is evaluated.
    pub(crate) fn value(self, workspace: &Workspace) -> Value<'_> {
        match self {
            StoredValue::Plain => workspace.plain,
            StoredValue::Str => Value::Str(&workspace.text),
            StoredValue::Bin => Value::Bin(&workspace.text),
            StoredValue::Meth => Value::Meth(&workspace.text),
        }
    }
}
