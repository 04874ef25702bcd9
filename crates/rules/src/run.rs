//! Runs the rules of one place over one transaction.

use std::sync::Arc;
use std::time::Duration;

use ballast_expr::{Condition, Expr, LogFormat, Needs, Truth, Value, eval, eval_with};
use ballast_message::NoRoom;

use crate::rule::Rule;
use crate::transaction::{Transaction, Workspace};

/// The decision of the rules.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Verdict {
    /// The end of the rules was reached: continue.
    Continue,
    /// `allow`, `accept`: the remaining rules of this place are skipped; continue.
    Allow,
    /// The client gets a response made here.
    Answer(Answer),
    /// `reject`: the connection is closed without a response.
    Close,
}

/// A response that a rule gives in place of a server.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Answer {
    /// The reason: decides counters and the termination state of the log line.
    pub cause: Cause,
    /// Its status; that of a raw page is in the page.
    pub status: u16,
    /// Its content.
    pub page: Page,
}

/// Why a rule responds.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Cause {
    /// `deny`: counted as denied, logged `PR` (`PH` in a response).
    Deny,
    /// A rewrite failed under `strict-mode on`: counted as an internal error, logged `I`.
    Fault,
    /// `redirect`: logged `LR`.
    Redirect,
    /// `return`: logged `LR`.
    Return,
}

/// Where the content of a response is.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Page {
    /// In [`Transaction::answer_mut`]: head and body.
    Made,
    /// The page of the proxy for the status: its `errorfile`, or the built-in one.
    Proxy,
    /// A whole response, head included, as read from a file. Empty: nothing is sent and the
    /// connection is closed.
    Raw(Arc<[u8]>),
    /// `use-service`: the service produces it.
    Service(Service),
}

/// What `use-service` names.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Service {
    /// `prometheus-exporter`.
    Metrics,
}

impl Answer {
    pub(crate) fn fault() -> Answer {
        Answer {
            cause: Cause::Fault,
            status: 500,
            page: Page::Proxy,
        }
    }

    pub(crate) fn service(service: Service) -> Answer {
        Answer {
            cause: Cause::Return,
            status: 200,
            page: Page::Service(service),
        }
    }
}

/// How far a run got.
#[derive(Clone, Debug, PartialEq)]
pub enum Progress {
    /// To the end of the rules.
    Done(Verdict),
    /// To a rule that must wait.
    Wait(Pending),
}

/// What a run waits for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pending {
    /// One of these must come, or the end of it.
    pub needs: Needs,
    /// After this time the rule is not kept waiting any longer; `None`: as long as it takes.
    pub at_most: Option<Duration>,
    /// Where to continue.
    pub cursor: Cursor,
}

/// A position in a set of rules: where a run begins, or continues after it waited. Rules before it
/// are not evaluated again.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Cursor {
    rule: usize,
    /// Its condition was true.
    held: bool,
    /// Its action asked to wait, and has waited.
    waited: bool,
    /// `strict-mode off` is in force.
    lenient: bool,
}

/// Runs `rules` in order until one decides. Nothing more will come, so no rule waits.
pub fn run(rules: &[Rule], transaction: &mut dyn Transaction, space: &mut Workspace) -> Verdict {
    match proceed(rules, Cursor::default(), Needs::NONE, transaction, space) {
        Progress::Done(verdict) => verdict,
        // There is nothing to wait for, so this is not reached; refusing is the safe choice.
        Progress::Wait(_) => Verdict::Answer(Answer::fault()),
    }
}

/// Runs `rules` in order from a position on, until one decides, or must wait for something that may
/// still come according to `more`. A rule is reached only when all rules before it are decided.
pub fn proceed(
    rules: &[Rule],
    from: Cursor,
    more: Needs,
    transaction: &mut dyn Transaction,
    space: &mut Workspace,
) -> Progress {
    let mut stage = Stage {
        transaction,
        space,
        strict: !from.lenient,
        more,
        more_for_samples: more.without(Needs::OF_ACTIONS),
        missing: Needs::NONE,
        waited: from.waited,
    };
    let mut held = from.held;
    for (at, rule) in rules.iter().enumerate().skip(from.rule) {
        if !std::mem::take(&mut held) {
            match stage.applies(rule.condition.as_ref()) {
                Truth::Yes => {}
                Truth::No => continue,
                Truth::NotYet(needs) => return stage.pending(needs, None, (at, false, false)),
            }
        }
        loop {
            match rule.action.perform(&mut stage) {
                ActionOutcome::Next if stage.missing.is_none() => break,
                ActionOutcome::Next => {
                    return stage.pending(stage.missing, None, (at, true, false));
                }
                ActionOutcome::Stop(verdict) => return Progress::Done(verdict),
                ActionOutcome::Failed => {
                    stage.transaction.rewrite_failed();
                    if stage.strict {
                        return Progress::Done(Verdict::Answer(Answer::fault()));
                    }
                    break;
                }
                ActionOutcome::Wait(needs, at_most) if needs.meets(stage.more) => {
                    return stage.pending(needs, at_most, (at, true, true));
                }
                ActionOutcome::Wait(..) if stage.waited => break,
                ActionOutcome::Wait(..) => stage.waited = true,
            }
        }
        (stage.waited, stage.missing) = (false, Needs::NONE);
    }
    Progress::Done(Verdict::Continue)
}

/// The result of an action.
pub(crate) enum ActionOutcome {
    /// Continue with the next rule.
    Next,
    /// End the run.
    Stop(Verdict),
    /// The message could not be rewritten and is unchanged.
    Failed,
    /// Perform the action again, with [`Stage::waited`] set, when one of the needs has come or, at
    /// the latest, when the time has passed. At once if none of them can come any more.
    #[allow(
        dead_code,
        reason = "the first action that asks for it changes nothing here"
    )]
    Wait(Needs, Option<Duration>),
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
pub(crate) struct Stage<'t> {
    pub(crate) transaction: &'t mut dyn Transaction,
    pub(crate) space: &'t mut Workspace,
    /// `strict-mode`: a failed rewrite ends the exchange.
    pub(crate) strict: bool,
    /// What may still come.
    more: Needs,
    /// The part of it that samples need: often nothing, and then they cost no more than without it.
    more_for_samples: Needs,
    /// The part of it without which the current action had no value.
    missing: Needs,
    /// The current action has waited: it must not ask for the same again.
    pub(crate) waited: bool,
}

impl Stage<'_> {
    fn applies(&mut self, condition: Option<&Condition>) -> Truth {
        let Some(condition) = condition else {
            return Truth::Yes;
        };
        let (scratch, more) = (&mut self.space.scratch, self.more_for_samples);
        let mut truth = Truth::No;
        self.transaction
            .ask(&mut |facts| truth = condition.test(facts, scratch, more));
        truth
    }

    fn pending(
        &self,
        needs: Needs,
        at_most: Option<Duration>,
        (rule, held, waited): (usize, bool, bool),
    ) -> Progress {
        Progress::Wait(Pending {
            needs,
            at_most,
            cursor: Cursor {
                rule,
                held,
                waited,
                lenient: !self.strict,
            },
        })
    }

    /// Renders `format` into `space.text`.
    pub(crate) fn render(&mut self, format: &LogFormat) {
        self.space.text.clear();
        self.render_more(format);
    }

    /// Appends the rendered `format` to `space.text`.
    pub(crate) fn render_more(&mut self, format: &LogFormat) {
        if let Some(text) = format.as_literal() {
            self.space.text.extend_from_slice(text.as_bytes());
            return;
        }
        let Workspace { scratch, text, .. } = &mut *self.space;
        self.transaction
            .ask(&mut |facts| format.render(facts, scratch, text));
    }

    /// Evaluates `expr`; bytes are in `space.text`. `None` when there is no value; if the value may
    /// still come, the action is performed again.
    pub(crate) fn evaluate(&mut self, expr: &Expr) -> Option<StoredValue> {
        let Workspace { scratch, text, .. } = &mut *self.space;
        text.clear();
        let (mut held, more, missing) = (None, self.more_for_samples, &mut self.missing);
        self.transaction.ask(&mut |facts| {
            if more.is_none() {
                held = eval(expr, facts, scratch).map(|value| StoredValue::keep(value, text));
                return;
            }
            match eval_with(expr, facts, scratch, more) {
                Ok(value) => held = value.map(|value| StoredValue::keep(value, text)),
                Err(needs) => *missing = needs,
            }
        });
        held
    }
}

/// A value; its bytes, if any, are in the workspace's text.
#[derive(Clone, Copy, Debug)]
pub(crate) enum StoredValue {
    Plain(Value<'static>),
    Str,
    Bin,
    Meth,
}

impl StoredValue {
    pub(crate) fn keep(value: Value<'_>, text: &mut Vec<u8>) -> StoredValue {
        let (held, bytes) = match value {
            Value::Bool(flag) => return StoredValue::Plain(Value::Bool(flag)),
            Value::Int(number) => return StoredValue::Plain(Value::Int(number)),
            Value::Ipv4(address) => return StoredValue::Plain(Value::Ipv4(address)),
            Value::Ipv6(address) => return StoredValue::Plain(Value::Ipv6(address)),
            Value::Str(bytes) => (StoredValue::Str, bytes),
            Value::Bin(bytes) => (StoredValue::Bin, bytes),
            Value::Meth(bytes) => (StoredValue::Meth, bytes),
        };
        text.extend_from_slice(bytes);
        held
    }

    pub(crate) fn value(self, text: &[u8]) -> Value<'_> {
        match self {
            StoredValue::Plain(value) => value,
            StoredValue::Str => Value::Str(text),
            StoredValue::Bin => Value::Bin(text),
            StoredValue::Meth => Value::Meth(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::action::{Action, ActionRequirements, Perform, does};
    use crate::row::Row;
    use crate::transaction::LogLevel;
    use ballast_expr::{Facts, Slot, VarName};
    use ballast_message::Response;

    /// Waits for time to pass, once.
    #[derive(Clone, Debug, PartialEq)]
    struct Nap;

    static NAP: Row = Row::new("nap", "XXXXXXXX", "", "wait a little", |_| does(Ok(Nap)));

    impl Perform for Nap {
        fn perform(&self, stage: &mut Stage<'_>) -> ActionOutcome {
            if stage.waited {
                return ActionOutcome::Next;
            }
            stage.transaction.set_log_level(LogLevel::Silent);
            ActionOutcome::Wait(Needs::TIME, Some(Duration::from_millis(5)))
        }
    }

    #[derive(Default)]
    struct Counted {
        naps: usize,
        answer: (Response, Vec<u8>),
    }

    impl Transaction for Counted {
        fn ask(&self, _: &mut dyn FnMut(&dyn Facts)) {}
        fn answer_mut(&mut self) -> (&mut Response, &mut Vec<u8>) {
            (&mut self.answer.0, &mut self.answer.1)
        }
        fn set_var(&mut self, _: &VarName, _: Option<Value<'_>>) {}
        fn capture_request(&mut self, _: usize, _: &[u8]) {}
        fn capture_response(&mut self, _: usize, _: &[u8]) {}
        fn set_log_level(&mut self, _: LogLevel) {
            self.naps += 1;
        }
        fn rewrite_failed(&mut self) {}
    }

    fn naps() -> Vec<Rule> {
        let nap = Rule {
            action: Action::new(&NAP, Box::new(Nap), ActionRequirements::default()),
            condition: None,
            words: Vec::new(),
            place: Slot::empty(),
        };
        vec![nap.clone(), nap]
    }

    #[test]
    fn an_action_waits_once_and_the_next_one_for_itself() {
        let (rules, mut space) = (naps(), Workspace::new());
        let mut counted = Counted::default();
        let mut cursor = Cursor::default();
        for nap in 1..=2 {
            let progress = proceed(&rules, cursor, Needs::TIME, &mut counted, &mut space);
            let Progress::Wait(pending) = progress else {
                unreachable!("the action waits");
            };
            assert_eq!(pending.needs, Needs::TIME);
            assert_eq!(pending.at_most, Some(Duration::from_millis(5)));
            assert_eq!(counted.naps, nap);
            cursor = pending.cursor;
        }
        let done = proceed(&rules, cursor, Needs::TIME, &mut counted, &mut space);
        assert_eq!(done, Progress::Done(Verdict::Continue));
    }

    #[test]
    fn nobody_waits_where_nothing_comes() {
        let mut counted = Counted::default();
        let verdict = run(&naps(), &mut counted, &mut Workspace::new());
        assert_eq!((verdict, counted.naps), (Verdict::Continue, 2));
    }
}
