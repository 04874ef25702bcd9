//! Runs the rules of one rule set over one transaction.

use std::time::Duration;

use ballast_expr::{ConditionResult, Facts, Needs};

use crate::rule::Rule;
use crate::rule_list::IndexedRules;
use crate::run_state::{ActionOutcome, RunState};
use crate::transaction::{Transaction, Workspace};
use crate::verdict::{LocalResponse, ResponseCause, Verdict};

/// How far a run got.
#[derive(Clone, Debug, PartialEq)]
pub enum RunProgress {
    /// To the end of the rules.
    Done(Verdict),
    /// To a rule that must wait.
    Wait(RunWait),
}

/// What a run waits for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RunWait {
    /// One of these must come, or the end of it.
    pub needs: Needs,
    /// After this time the rule is not kept waiting any longer; `None`: as long as it takes.
    pub at_most: Option<Duration>,
    /// Of a body ([`Needs::AWAITED_BODY`]), so many bytes are waited for; all of it if 0.
    pub body_bytes_min: u64,
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
    action_has_waited: bool,
    /// `strict-mode off` is in force.
    lenient: bool,
}

impl Cursor {
    /// Where to continue once something has arrived that any rule may look at: at the action that
    /// waits, or else, as its condition is open, at the first rule (manual, "tcp-request
    /// inspect-delay": "HAProxy will evaluate the whole rules for every new chunk which gets in").
    #[must_use]
    pub fn after_arrival(self) -> Cursor {
        if self.held { self } else { Cursor::default() }
    }
}

/// Runs `rules` in order until one decides. Nothing more will come, so no rule waits.
pub fn run<'r>(
    rules: impl Into<IndexedRules<'r>>,
    transaction: &mut dyn Transaction,
    workspace: &mut Workspace,
) -> Verdict {
    match run_from(
        rules,
        Cursor::default(),
        Needs::NONE,
        transaction,
        workspace,
    ) {
        RunProgress::Done(verdict) => verdict,
        // There is nothing to wait for, so this is not reached; refusing is the safe choice.
        RunProgress::Wait(_) => Verdict::Respond(LocalResponse::fault()),
    }
}

/// Runs `rules` in order from a position on, until one decides, or must wait for something that may
/// still arrive. A rule is reached only when all rules before it are decided.
pub fn run_from<'r>(
    rules: impl Into<IndexedRules<'r>>,
    from: Cursor,
    may_still_arrive: Needs,
    transaction: &mut dyn Transaction,
    workspace: &mut Workspace,
) -> RunProgress {
    let mut rules: IndexedRules<'_> = rules.into();
    let mut run_state = RunState {
        transaction,
        workspace,
        strict: !from.lenient,
        may_still_arrive,
        may_arrive_for_samples: may_still_arrive.without(Needs::OF_ACTIONS),
        action_has_waited: from.action_has_waited,
        group: 0,
    };
    // The index knows no answer but yes and no.
    rules.index = rules
        .index
        .filter(|index| !index.needs().intersects(run_state.may_arrive_for_samples));
    let mut held = from.held;
    if held {
        run_state.transaction.rule_waits(None);
    }
    // A rule that waited is gone on with, whatever its condition would be now.
    let mut waited_for = held.then_some(from.rule);
    let from_rule = from.rule + usize::from(held);
    run_state.workspace.candidates.begin(rules.index, from_rule);
    while let Some(at) = waited_for
        .take()
        .or_else(|| next_rule(&mut run_state, rules))
    {
        let Some(rule) = rules.rules.get(at) else {
            break;
        };
        if !std::mem::take(&mut held) {
            match run_state.applies(rule.condition.as_ref()) {
                ConditionResult::Yes => {}
                ConditionResult::No => continue,
                ConditionResult::NotYet(needs) => {
                    return pending(&run_state, needs, None, (at, false, false));
                }
            }
        }
        if rule.action.row().is_grouped {
            run_state.group = group(rules.rules, at);
        }
        loop {
            match rule.action.perform(&mut run_state) {
                ActionOutcome::Next => break,
                ActionOutcome::NotYet(needs) => {
                    run_state.transaction.rule_waits(rule.config_line.filled());
                    return pending(&run_state, needs, None, (at, true, false));
                }
                ActionOutcome::Stop(verdict) => return ended(&mut run_state, rule, verdict),
                ActionOutcome::Failed => {
                    run_state.transaction.rewrite_failed();
                    if run_state.strict {
                        let failure = LocalResponse::failure(ResponseCause::FailedRewrite);
                        let verdict = Verdict::Respond(failure);
                        return ended(&mut run_state, rule, verdict);
                    }
                    break;
                }
                ActionOutcome::Wait(needs, at_most)
                    if needs.intersects(run_state.may_still_arrive) =>
                {
                    run_state.transaction.rule_waits(rule.config_line.filled());
                    return pending(&run_state, needs, at_most, (at, true, true));
                }
                ActionOutcome::WaitForBody(bytes_min, at_most)
                    if Needs::AWAITED_BODY.intersects(run_state.may_still_arrive) =>
                {
                    run_state.transaction.rule_waits(rule.config_line.filled());
                    let wait = pending(&run_state, Needs::AWAITED_BODY, at_most, (at, true, true));
                    return for_bytes(wait, bytes_min);
                }
                ActionOutcome::Wait(..) | ActionOutcome::WaitForBody(..)
                    if run_state.action_has_waited =>
                {
                    break;
                }
                ActionOutcome::Wait(..) | ActionOutcome::WaitForBody(..) => {
                    run_state.action_has_waited = true
                }
            }
        }
        run_state.action_has_waited = false;
        // The action may have changed what was looked up.
        run_state.workspace.candidates.forget(rules.index, at + 1);
    }
    RunProgress::Done(Verdict::Continue)
}

/// The answer of a run that a rule ended.
fn ended(run_state: &mut RunState<'_>, rule: &Rule, verdict: Verdict) -> RunProgress {
    if let Some(line) = rule.config_line.filled() {
        run_state.transaction.rule_ended(line);
    }
    RunProgress::Done(verdict)
}

/// The index of the first rule of the group that the one at `at` belongs to: consecutive rules of one
/// action. A condition begins a group.
fn group(rules: &[Rule], at: usize) -> usize {
    let word = rules[at].action.row().word;
    let is_first = |at: usize| {
        rules[at].condition.is_some() || at == 0 || rules[at - 1].action.row().word != word
    };
    (0..=at).rev().find(|at| is_first(*at)).unwrap_or(at)
}

/// The next rule that has to be looked at.
fn next_rule(run_state: &mut RunState<'_>, rules: IndexedRules<'_>) -> Option<usize> {
    let Workspace {
        scratch,
        candidates,
        ..
    } = &mut *run_state.workspace;
    let ask = |question: &mut dyn FnMut(&dyn Facts)| run_state.transaction.with_facts(question);
    candidates.next(rules.index, rules.rules.len(), scratch, ask)
}

/// The answer of a run that waits.
fn pending(
    run_state: &RunState<'_>,
    needs: Needs,
    at_most: Option<Duration>,
    (rule, held, action_has_waited): (usize, bool, bool),
) -> RunProgress {
    RunProgress::Wait(RunWait {
        needs,
        at_most,
        body_bytes_min: 0,
        cursor: Cursor {
            rule,
            held,
            action_has_waited,
            lenient: !run_state.strict,
        },
    })
}

/// The same, for so many bytes of a body.
fn for_bytes(progress: RunProgress, bytes_min: u64) -> RunProgress {
    match progress {
        RunProgress::Wait(wait) => RunProgress::Wait(RunWait {
            body_bytes_min: bytes_min,
            ..wait
        }),
        done @ RunProgress::Done(_) => done,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::action::Action;
    use crate::args::ActionRequirements;
    use crate::perform::{Perform, boxed};
    use crate::row::ActionRow;
    use crate::rule_set_kind::{RuleSetFlags, RuleSetKind};
    use crate::transaction::LogLevel;
    use ballast_expr::{Facts, LinkSlot, Value, VarName};
    use ballast_message::Response;

    /// Waits for time to pass, once.
    #[derive(Clone, Debug, PartialEq)]
    struct WaitOnce;

    static WAIT_ONCE: ActionRow = ActionRow::new(
        "wait",
        RuleSetFlags::of(&RuleSetKind::ALL),
        "",
        "wait a little",
        |_| boxed(Ok(WaitOnce)),
    );

    impl Perform for WaitOnce {
        fn perform(&self, run_state: &mut RunState<'_>) -> ActionOutcome {
            if run_state.action_has_waited {
                return ActionOutcome::Next;
            }
            run_state.transaction.set_log_level(LogLevel::Silent);
            ActionOutcome::Wait(Needs::TIME, Some(Duration::from_millis(5)))
        }
    }

    #[derive(Default)]
    struct Counted {
        waits: usize,
        answer: (Response, Vec<u8>),
    }

    impl Transaction for Counted {
        fn with_facts(&self, _: &mut dyn FnMut(&dyn Facts)) {}
        fn answer_mut(&mut self) -> (&mut Response, &mut Vec<u8>) {
            (&mut self.answer.0, &mut self.answer.1)
        }
        fn set_var(&mut self, _: &VarName, _: Option<Value<'_>>) {}
        fn capture_request(&mut self, _: usize, _: &[u8]) {}
        fn capture_response(&mut self, _: usize, _: &[u8]) {}
        fn set_log_level(&mut self, _: LogLevel) {
            self.waits += 1;
        }
        fn rewrite_failed(&mut self) {}
    }

    fn waits() -> Vec<Rule> {
        let wait = Rule {
            action: Action::new(
                &WAIT_ONCE,
                Box::new(WaitOnce),
                ActionRequirements::default(),
            ),
            condition: None,
            words: Vec::new(),
            config_line: LinkSlot::empty(),
        };
        vec![wait.clone(), wait]
    }

    #[test]
    fn an_action_waits_once_and_the_next_one_for_itself() {
        let (rules, mut workspace) = (waits(), Workspace::new());
        let mut counted = Counted::default();
        let mut cursor = Cursor::default();
        for count in 1..=2 {
            let progress = run_from(&rules, cursor, Needs::TIME, &mut counted, &mut workspace);
            let RunProgress::Wait(pending) = progress else {
                unreachable!("the action waits");
            };
            assert_eq!(pending.needs, Needs::TIME);
            assert_eq!(pending.at_most, Some(Duration::from_millis(5)));
            assert_eq!(counted.waits, count);
            cursor = pending.cursor;
        }
        let done = run_from(&rules, cursor, Needs::TIME, &mut counted, &mut workspace);
        assert_eq!(done, RunProgress::Done(Verdict::Continue));
    }

    /// Waits for some of a body.
    #[derive(Clone, Debug, PartialEq)]
    struct WaitForSome;

    impl Perform for WaitForSome {
        fn perform(&self, run_state: &mut RunState<'_>) -> ActionOutcome {
            match run_state.action_has_waited {
                true => ActionOutcome::Next,
                false => ActionOutcome::WaitForBody(5, None),
            }
        }
    }

    #[test]
    fn a_wait_for_a_body_says_how_much_of_it() {
        let mut rules = waits();
        let requirements = ActionRequirements::default();
        rules.truncate(1);
        rules[0].action = Action::new(&WAIT_ONCE, Box::new(WaitForSome), requirements);
        let (mut workspace, mut counted) = (Workspace::new(), Counted::default());
        let mut go_on = |cursor, may_still_arrive| {
            run_from(
                &rules,
                cursor,
                may_still_arrive,
                &mut counted,
                &mut workspace,
            )
        };
        let progress = go_on(Cursor::default(), Needs::AWAITED_BODY);
        let RunProgress::Wait(wait) = progress else {
            unreachable!("the action waits");
        };
        assert_eq!((wait.needs, wait.at_most), (Needs::AWAITED_BODY, None));
        assert_eq!(wait.body_bytes_min, 5);
        let done = RunProgress::Done(Verdict::Continue);
        assert_eq!(go_on(wait.cursor, Needs::AWAITED_BODY), done);
        assert_eq!(go_on(Cursor::default(), Needs::TIME), done);
    }

    #[test]
    fn nobody_waits_where_nothing_comes() {
        let mut counted = Counted::default();
        let verdict = run(&waits(), &mut counted, &mut Workspace::new());
        assert_eq!((verdict, counted.waits), (Verdict::Continue, 2));
    }
}
