//! Evaluating: expressions to values, conditions to truth.

use std::sync::Arc;

use crate::acl::{Acl, Condition, Criterion, Polarity, Target};
use crate::expr::Expr;
use crate::facts::Facts;
use crate::pattern::{Handle, Method};
use crate::scratch::Scratch;
use crate::value::{Sample, Value};

/// One evaluation under way.
pub(crate) struct Cx<'f, 's> {
    pub(crate) facts: &'f dyn Facts,
    pub(crate) scratch: &'s mut Scratch,
    pub(crate) walk: Walk,
}

/// Where a fetch with several values stands. An ACL looks at one value after the other; an
/// expression elsewhere takes the one that HAProxy calls its value.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Walk {
    /// All values are wanted, one after the other.
    pub(crate) all: bool,
    /// How many values were given before.
    pub(crate) given: usize,
    /// The fetch may have another value.
    pub(crate) more: bool,
}

/// The value of `expr`, or `None` when there is none.
///
/// What the result borrows lives in the facts, the expression or the scratch, whose earlier
/// contents are forgotten.
pub fn eval<'a>(
    expr: &'a Expr,
    facts: &'a dyn Facts,
    scratch: &'a mut Scratch,
) -> Option<Value<'a>> {
    scratch.clear();
    let sample = expr.sample(facts, scratch)?;
    Some(sample.value(scratch))
}

impl Expr {
    /// The value in the middle of an evaluation; the scratch keeps what it holds.
    pub(crate) fn sample<'f>(
        &'f self,
        facts: &'f dyn Facts,
        scratch: &mut Scratch,
    ) -> Option<Sample<'f>> {
        self.sample_walking(&mut Cx {
            facts,
            scratch,
            walk: Walk::default(),
        })
    }

    fn sample_walking<'f>(&'f self, cx: &mut Cx<'f, '_>) -> Option<Sample<'f>> {
        let mut sample = (self.fetch.handler?)(cx, &self.args)?;
        for step in &self.convs {
            let input = sample.cast(step.conv.takes, cx.scratch)?;
            sample = (step.conv.handler?)(cx, &step.args, input)?;
        }
        Some(sample)
    }
}

impl Criterion {
    /// Whether the criterion holds. The scratch keeps what it held before.
    pub fn holds(&self, facts: &dyn Facts, scratch: &mut Scratch) -> bool {
        let mark = scratch.mark();
        let walk = Walk {
            all: true,
            ..Walk::default()
        };
        let mut cx = Cx {
            facts,
            scratch,
            walk,
        };
        let held = loop {
            cx.walk.more = false;
            // A value that a converter refuses ends the walk, one that matches nothing does not.
            let Some(sample) = self.expr.sample_walking(&mut cx) else {
                break false;
            };
            let matched = self.matches(sample, cx.scratch);
            if matched || !cx.walk.more {
                break matched;
            }
            cx.scratch.rewind(mark);
            cx.walk.given += 1;
        };
        cx.scratch.rewind(mark);
        held
    }

    fn matches(&self, sample: Sample<'_>, scratch: &mut Scratch) -> bool {
        if self.method == Method::Found {
            return true;
        }
        let Some(sample) = sample.cast(self.method.takes(), scratch) else {
            return false;
        };
        if self.method == Method::Bool {
            return matches!(sample, Sample::Int(number) if number != 0);
        }
        let Some(matchers) = self.matchers.filled() else {
            return false;
        };
        let mut spare = scratch.open();
        let found = matchers
            .iter()
            .any(|handle| matches_one(handle, sample.value(scratch), &mut spare));
        scratch.discard(spare);
        found
    }
}

fn matches_one(handle: &Handle, value: Value<'_>, spare: &mut Vec<u8>) -> bool {
    let index = handle.load();
    match value {
        Value::Int(number) => index.find_int(number).is_some(),
        Value::Ipv4(address) => index.find_ip(address.into()).is_some(),
        Value::Ipv6(address) => index.find_ip(address.into()).is_some(),
        Value::Str(bytes) | Value::Bin(bytes) | Value::Meth(bytes) => {
            index.find_bytes(bytes, spare).is_some()
        }
        Value::Bool(flag) => index.find_int(i64::from(flag)).is_some(),
    }
}

impl Acl {
    /// Whether one of the criteria holds.
    pub fn holds(&self, facts: &dyn Facts, scratch: &mut Scratch) -> bool {
        self.criteria
            .iter()
            .any(|criterion| criterion.holds(facts, scratch))
    }
}

impl Condition {
    /// Whether the rule that carries the condition applies: the rows are tried in order until
    /// one holds, and `unless` turns the answer round. An ACL that was not linked does not hold.
    pub fn holds(&self, facts: &dyn Facts, scratch: &mut Scratch) -> bool {
        let held = self.rows.iter().any(|row| {
            row.iter().all(|term| {
                let held = match &term.target {
                    Target::Named(_, slot) => slot
                        .filled()
                        .is_some_and(|acl: &Arc<Acl>| acl.holds(facts, scratch)),
                    Target::Inline(criterion) => criterion.holds(facts, scratch),
                };
                held != term.negated
            })
        });
        held == (self.polarity == Polarity::If)
    }
}
