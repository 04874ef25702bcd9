//! Evaluating: expressions to values, conditions to truth.

use crate::acl::{Acl, Condition, Criterion, Polarity, Term, TermTarget};
use crate::condition_result::ConditionResult;
use crate::effects::SideEffects;
use crate::evaluation::Evaluation;
use crate::expr::Expr;
use crate::facts::Facts;
use crate::links::LinkedAcl;
use crate::needs::Needs;
use crate::pattern::{Handle, MatchMethod};
use crate::scratch::{SampleText, Scratch};
use crate::search_limit::SearchLimit;
use crate::shared_sample::{LastSample, SampleSharing};
use crate::value::{Sample, SampleKind, Value};

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

/// The same while something may still arrive.
///
/// # Errors
/// There is no value yet: what must come for it.
pub fn eval_with<'a>(
    expr: &'a Expr,
    facts: &'a dyn Facts,
    scratch: &'a mut Scratch,
    may_still_arrive: Needs,
) -> Result<Option<Value<'a>>, Needs> {
    scratch.clear();
    let mut cx = Evaluation::new(facts, scratch, may_still_arrive);
    match expr.sample_walking::<true>(&mut cx) {
        Some(sample) => Ok(Some(sample.value(scratch))),
        None if cx.missing.is_none() => Ok(None),
        None => Err(cx.missing),
    }
}

/// The value of `expr` cast to `kind`, while something may still arrive; `None` when there is none, or
/// it cannot be cast.
///
/// # Errors
/// There is no value yet: what must come for it.
pub fn eval_as<'a>(
    expr: &'a Expr,
    kind: SampleKind,
    facts: &'a dyn Facts,
    scratch: &'a mut Scratch,
    may_still_arrive: Needs,
) -> Result<Option<Value<'a>>, Needs> {
    scratch.clear();
    let mut cx = Evaluation::new(facts, scratch, may_still_arrive);
    let sample = expr.sample_walking::<true>(&mut cx);
    if sample.is_none() && !cx.missing.is_none() {
        return Err(cx.missing);
    }
    let sample = sample.and_then(|sample| sample.cast(kind, scratch));
    Ok(sample.map(|sample| sample.value(scratch)))
}

impl Expr {
    /// The value in the middle of an evaluation; the scratch keeps what it holds.
    pub(crate) fn sample<'f>(
        &'f self,
        facts: &'f dyn Facts,
        scratch: &mut Scratch,
    ) -> Option<Sample<'f>> {
        self.sample_walking::<false>(&mut Evaluation::new(facts, scratch, Needs::NONE))
    }

    #[inline]
    pub(crate) fn sample_walking<'f, const WAITS: bool>(
        &'f self,
        cx: &mut Evaluation<'f, '_>,
    ) -> Option<Sample<'f>> {
        // The handler writes the sample where the caller wants it: a copy costs as much as many a fetch.
        if !WAITS && self.converters.is_empty() {
            return (self.fetch.handler?)(cx, &self.args);
        }
        self.converted_sample::<WAITS>(cx)
    }

    #[inline(never)]
    fn converted_sample<'f, const WAITS: bool>(
        &'f self,
        cx: &mut Evaluation<'f, '_>,
    ) -> Option<Sample<'f>> {
        let mut sample = (self.fetch.handler?)(cx, &self.args);
        if WAITS && sample.is_none() {
            cx.note_missing(self.fetch.needs);
        }
        for step in &self.converters {
            let input = sample.as_ref()?.cast(step.converter.takes, cx.scratch)?;
            sample = (step.converter.handler?)(cx, &step.args, input);
        }
        sample
    }
}

// What is asked while nothing more comes is asked for every request: `WAITS` is false then, and
// the compiler leaves nothing of what waits.

impl Criterion {
    /// Whether the criterion holds. The scratch keeps what it held before.
    pub fn holds(&self, facts: &dyn Facts, scratch: &mut Scratch) -> bool {
        self.test::<false>(facts, scratch, Needs::NONE) == ConditionResult::Yes
    }

    /// The same, with the sample of the last criterion, if that is the same one.
    #[inline]
    fn holds_sharing<'f>(
        &'f self,
        facts: &'f dyn Facts,
        scratch: &mut Scratch,
        last: &mut LastSample<'f>,
    ) -> bool {
        match self.sharing {
            SampleSharing::Apart => self.holds(facts, scratch),
            SampleSharing::Forgets => {
                last.forget();
                self.holds(facts, scratch)
            }
            SampleSharing::Shared => self.shared_holds(facts, scratch, last),
        }
    }

    fn shared_holds<'f>(
        &'f self,
        facts: &'f dyn Facts,
        scratch: &mut Scratch,
        last: &mut LastSample<'f>,
    ) -> bool {
        let mark = scratch.mark();
        let known = match last.of(&self.expr) {
            Some(known) => known,
            None => {
                let mut cx = Evaluation::new(facts, scratch, Needs::NONE);
                cx.iteration.wants_all = true;
                let sample = self.expr.sample_walking::<false>(&mut cx);
                if cx.iteration.has_more || sample.as_ref().is_some_and(is_kept) {
                    // One of several values, or one that the next evaluation overwrites.
                    last.forget();
                    scratch.rewind(mark);
                    return self.holds(facts, scratch);
                }
                last.keep(&self.expr, sample);
                last.of(&self.expr).flatten()
            }
        };
        let holds = known.is_some_and(|sample| self.matches(sample, scratch));
        scratch.rewind(mark);
        holds
    }

    /// The same while something may still arrive: a value that matches is a yes, even if it may
    /// change; one that does not is a no only if it cannot change.
    fn test<const WAITS: bool>(
        &self,
        facts: &dyn Facts,
        scratch: &mut Scratch,
        may_still_arrive: Needs,
    ) -> ConditionResult {
        let mark = scratch.mark();
        let mut cx = Evaluation::new(facts, scratch, may_still_arrive);
        cx.iteration.wants_all = true;
        cx.iteration.first_decides = self.method == MatchMethod::Found;
        // The client says how many values there are.
        let mut shared_steps = None;
        let held = loop {
            cx.iteration.has_more = false;
            // A value that a converter refuses ends the walk, one that matches nothing does not.
            let sample = self.expr.sample_walking::<WAITS>(&mut cx);
            let Some(sample) = &sample else {
                break false;
            };
            let matched = self.matches(sample, cx.scratch);
            if matched || !cx.iteration.has_more {
                break matched;
            }
            shared_steps.get_or_insert_with(SearchLimit::share);
            cx.scratch.rewind(mark);
        };
        cx.scratch.rewind(mark);
        if held {
            ConditionResult::Yes
        } else if WAITS {
            ConditionResult::no_unless(cx.missing)
        } else {
            ConditionResult::No
        }
    }

    #[inline]
    fn matches(&self, sample: &Sample<'_>, scratch: &mut Scratch) -> bool {
        if self.method == MatchMethod::Found {
            return true;
        }
        // Most conditions compare a text with a few words.
        if let (Some([handle]), Sample::Str(text)) =
            (self.matchers.filled().map(Vec::as_slice), sample)
            && self.method.takes() == SampleKind::Str
            && let Some(found) = handle.is_among_few(scratch.bytes(*text))
        {
            return found;
        }
        self.matches_any(sample, scratch)
    }

    #[inline(never)]
    fn matches_any(&self, sample: &Sample<'_>, scratch: &mut Scratch) -> bool {
        if !self.ignores_case() {
            return self.matches_value(sample, scratch, &mut Vec::new());
        }
        let mut spare = scratch.open();
        let found = self.matches_value(sample, scratch, &mut spare);
        scratch.discard(spare);
        found
    }

    fn ignores_case(&self) -> bool {
        let matchers = self.matchers.filled();
        matchers.is_some_and(|all| all.iter().any(|handle| handle.ignores_case()))
    }

    fn matches_value(
        &self,
        sample: &Sample<'_>,
        scratch: &mut Scratch,
        spare: &mut Vec<u8>,
    ) -> bool {
        let takes = self.method.takes();
        let cast;
        let value = match sample {
            // A method is compared as text, which it is.
            Sample::Meth(text) if takes == SampleKind::Str => Value::Str(scratch.bytes(*text)),
            _ if sample.is_kind(takes) => sample.value(scratch),
            _ => {
                cast = sample.cast(takes, scratch);
                let Some(sample) = &cast else {
                    return false;
                };
                sample.value(scratch)
            }
        };
        if self.method == MatchMethod::Bool {
            return matches!(value, Value::Int(number) if number != 0);
        }
        let Some(matchers) = self.matchers.filled() else {
            return false;
        };
        matchers
            .iter()
            .any(|handle| matches_one(handle, &value, spare))
    }
}

/// Whether a sample is in the scratch.
fn is_kept(sample: &Sample<'_>) -> bool {
    let (Sample::Str(text) | Sample::Bin(text) | Sample::Meth(text)) = sample else {
        return false;
    };
    matches!(text, SampleText::Kept { .. })
}

fn matches_one(handle: &Handle, value: &Value<'_>, spare: &mut Vec<u8>) -> bool {
    handle.look_up(|index| match value {
        Value::Int(number) => index.find_int(*number).is_some(),
        Value::Ipv4(address) => index.find_ip((*address).into()).is_some(),
        Value::Ipv6(address) => index.find_ip((*address).into()).is_some(),
        Value::Str(bytes) | Value::Bin(bytes) | Value::Meth(bytes) => {
            index.find_bytes(bytes, spare).is_some()
        }
        Value::Bool(flag) => index.find_int(i64::from(*flag)).is_some(),
    })
}

impl Acl {
    /// Whether one of the criteria holds.
    pub fn holds(&self, facts: &dyn Facts, scratch: &mut Scratch) -> bool {
        self.holds_sharing(facts, scratch, &mut LastSample::default())
    }

    fn holds_sharing<'f>(
        &'f self,
        facts: &'f dyn Facts,
        scratch: &mut Scratch,
        last: &mut LastSample<'f>,
    ) -> bool {
        let mut criteria = self.criteria.iter();
        criteria.any(|criterion| criterion.holds_sharing(facts, scratch, last))
    }
}

impl LinkedAcl for Acl {
    fn test(
        &self,
        facts: &dyn Facts,
        scratch: &mut Scratch,
        may_still_arrive: Needs,
    ) -> ConditionResult {
        let criteria = self.criteria.iter();
        ConditionResult::any(
            criteria.map(|criterion| criterion.test::<true>(facts, scratch, may_still_arrive)),
        )
    }

    fn needs(&self) -> Needs {
        Acl::needs(self)
    }

    fn effects(&self) -> SideEffects {
        Acl::effects(self)
    }

    fn unimplemented(&self) -> Vec<&'static str> {
        Acl::unimplemented(self)
    }
}

// An ACL that was not linked does not hold.
impl Term {
    fn holds_sharing<'f>(
        &'f self,
        facts: &'f dyn Facts,
        scratch: &mut Scratch,
        last: &mut LastSample<'f>,
    ) -> bool {
        let holds = match &self.target {
            TermTarget::Named(_, slot) => slot
                .filled()
                .is_some_and(|acl| acl.holds_sharing(facts, scratch, last)),
            TermTarget::Inline(criterion) => criterion.holds_sharing(facts, scratch, last),
        };
        holds != self.negated
    }

    /// Its criterion, if it is one.
    #[inline]
    fn only_criterion(&self) -> Option<&Criterion> {
        match &self.target {
            TermTarget::Inline(criterion) => Some(criterion),
            TermTarget::Named(_, slot) => match slot.filled()?.criteria.as_slice() {
                [criterion] => Some(criterion),
                _ => None,
            },
        }
    }

    fn test(
        &self,
        facts: &dyn Facts,
        scratch: &mut Scratch,
        may_still_arrive: Needs,
    ) -> ConditionResult {
        let truth = match &self.target {
            TermTarget::Named(_, slot) => match slot.filled() {
                Some(acl) => acl.test(facts, scratch, may_still_arrive),
                None => ConditionResult::No,
            },
            TermTarget::Inline(criterion) => {
                criterion.test::<true>(facts, scratch, may_still_arrive)
            }
        };
        truth.negated_if(self.negated)
    }
}

impl Condition {
    /// Whether the rule that carries the condition applies: the rows are tried in order until
    /// one holds, and `unless` turns the answer round.
    pub fn holds(&self, facts: &dyn Facts, scratch: &mut Scratch) -> bool {
        match self.only_criterion() {
            Some((criterion, negated)) => criterion.holds(facts, scratch) != negated,
            None => self.holds_of_several(facts, scratch, &mut LastSample::default()),
        }
    }

    /// The same for one of several conditions that are evaluated over the same facts, none of which
    /// change in between: it uses the sample of the last one if it asks the same.
    pub fn holds_sharing<'f>(
        &'f self,
        facts: &'f dyn Facts,
        scratch: &mut Scratch,
        last: &mut LastSample<'f>,
    ) -> bool {
        match self.only_criterion() {
            Some((criterion, negated)) => criterion.holds_sharing(facts, scratch, last) != negated,
            None => self.holds_of_several(facts, scratch, last),
        }
    }

    /// Most conditions are one criterion: that, and whether it must not hold.
    #[inline]
    fn only_criterion(&self) -> Option<(&Criterion, bool)> {
        let [row] = self.rows.as_slice() else {
            return None;
        };
        let [term] = row.as_slice() else {
            return None;
        };
        let negated = term.negated != (self.polarity == Polarity::Unless);
        Some((term.only_criterion()?, negated))
    }

    #[inline(never)]
    fn holds_of_several<'f>(
        &'f self,
        facts: &'f dyn Facts,
        scratch: &mut Scratch,
        last: &mut LastSample<'f>,
    ) -> bool {
        let mut rows = self.rows.iter();
        let held = rows.any(|row| {
            row.iter()
                .all(|term| term.holds_sharing(facts, scratch, last))
        });
        held != (self.polarity == Polarity::Unless)
    }

    /// The same while something may still arrive.
    pub fn test(
        &self,
        facts: &dyn Facts,
        scratch: &mut Scratch,
        may_still_arrive: Needs,
    ) -> ConditionResult {
        if may_still_arrive.is_none() {
            return match self.holds(facts, scratch) {
                true => ConditionResult::Yes,
                false => ConditionResult::No,
            };
        }
        let rows = self.rows.iter();
        let held = ConditionResult::any(rows.map(|row| {
            let terms = row.iter();
            ConditionResult::all(terms.map(|term| term.test(facts, scratch, may_still_arrive)))
        }));
        held.negated_if(self.polarity == Polarity::Unless)
    }
}
