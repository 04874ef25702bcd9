//! Bodies of either message, manual 7.3.6.

use crate::args::ArgKind::Text;
use crate::args::{Arg, bytes_arg, text_arg};
use crate::evaluation::Evaluation;
use crate::facts::Side;
use crate::fetch::uri::pick_param;
use crate::fetch::{Fetch, NO_ARGS, args, int_sample, row};
use crate::needs::Needs;
use crate::phase::Phases;
use crate::value::{Sample, SampleKind};

const REQUEST: Phases = Phases::REQUEST;
const RESPONSE: Phases = Phases::RESPONSE;

/// The rows of this family, in alphabetical order.
#[rustfmt::skip] // What belongs together stands on one line.
pub(super) const ROWS: &[Fetch] = &[
    row("req.body", NO_ARGS, SampleKind::Bin, REQUEST).needs(Needs::REQUEST_BODY)
        .implemented("what was received of the request's body", |cx, _| body(cx, Side::Client)),
    row("req.body_len", NO_ARGS, SampleKind::Int, REQUEST).needs(Needs::REQUEST_BODY)
        .implemented("how many bytes of the request's body were received", |cx, _| received_bytes(cx, Side::Client)),
    row("req.body_param", args(0, &[Text, Text]), SampleKind::Bin, REQUEST).needs(Needs::REQUEST_BODY)
        .examples("req.body_param(user,i)", "req.body_param(user,i,x)")
        .implemented("a parameter of the request's body: name, i to ignore the case of it", body_param),
    row("req.body_size", NO_ARGS, SampleKind::Int, REQUEST).needs(Needs::REQUEST_BODY)
        .implemented("how long the request's body is: announced, or received so far", |cx, _| size(cx, Side::Client)),
    row("res.body", NO_ARGS, SampleKind::Bin, RESPONSE).needs(Needs::RESPONSE_BODY)
        .implemented("what was received of the response's body", |cx, _| body(cx, Side::Server)),
    row("res.body_len", NO_ARGS, SampleKind::Int, RESPONSE).needs(Needs::RESPONSE_BODY)
        .implemented("how many bytes of the response's body were received", |cx, _| received_bytes(cx, Side::Server)),
    row("res.body_size", NO_ARGS, SampleKind::Int, RESPONSE).needs(Needs::RESPONSE_BODY)
        .implemented("how long the response's body is: announced, or received so far", |cx, _| size(cx, Side::Server)),
];

/// What more of a body is.
const fn body_of(side: Side) -> Needs {
    match side {
        Side::Client => Needs::REQUEST_BODY,
        Side::Server => Needs::RESPONSE_BODY,
    }
}

/// The only one of these samples for which an inspection waits, as in HAProxy.
fn body<'f>(cx: &mut Evaluation<'f, '_>, sent_by: Side) -> Option<Sample<'f>> {
    let body = cx.facts.body(sent_by)?;
    if !body.is_final {
        cx.note_missing(body_of(sent_by));
    }
    Some(Sample::bin(body.bytes))
}

fn received_bytes<'f>(cx: &mut Evaluation<'f, '_>, sent_by: Side) -> Option<Sample<'f>> {
    cx.stop_expecting(body_of(sent_by));
    let body = cx.facts.body(sent_by)?;
    int_sample(i64::try_from(body.bytes.len()).unwrap_or(i64::MAX))
}

fn size<'f>(cx: &mut Evaluation<'f, '_>, sent_by: Side) -> Option<Sample<'f>> {
    cx.stop_expecting(body_of(sent_by));
    let body = cx.facts.body(sent_by)?;
    let bytes = body.announced_bytes.unwrap_or(body.bytes.len() as u64);
    int_sample(i64::try_from(bytes).unwrap_or(i64::MAX))
}

/// `req.body_param([name[,i]])`. As in HAProxy, the type of the body is not looked at.
fn body_param<'f>(cx: &mut Evaluation<'f, '_>, args: &'f [Arg]) -> Option<Sample<'f>> {
    cx.stop_expecting(Needs::REQUEST_BODY);
    let ignore_case = text_arg(args, 1).contains('i');
    let body = |cx: &Evaluation<'f, '_>| Some(cx.facts.body(Side::Client)?.bytes);
    pick_param(cx, bytes_arg(args, 0), ignore_case, b'&', body).map(Sample::bin)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::{BodyFacts, Facts, Time};
    use crate::{
        AclSet, Condition, ConditionResult, Expr, Linker, Scratch, Store, Value, eval_with,
    };

    /// A request with a body.
    struct Posted(BodyFacts<'static>);

    impl Facts for Posted {
        fn now(&self) -> Time {
            Time::default()
        }
        fn random(&self) -> u64 {
            0
        }
        fn body(&self, sent_by: Side) -> Option<BodyFacts<'_>> {
            (sent_by == Side::Client).then_some(self.0)
        }
    }

    fn posted(bytes: &'static [u8], announced_bytes: Option<u64>, is_final: bool) -> Posted {
        Posted(BodyFacts {
            bytes,
            announced_bytes,
            is_final,
        })
    }

    fn ask(facts: &Posted, text: &str) -> Result<Option<String>, Needs> {
        let expr = Expr::parse(text).unwrap();
        let mut scratch = Scratch::new();
        let value = eval_with(&expr, facts, &mut scratch, Needs::BODIES)?;
        Ok(value.map(|value| match value {
            Value::Int(number) => number.to_string(),
            Value::Bin(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            other => format!("{other:?}"),
        }))
    }

    fn contains(facts: &Posted, text: &str) -> ConditionResult {
        let words = ["if", "{", "req.body", "-m", "sub", text, "}"];
        let (store, acls) = (Store::new(), AclSet::new());
        let mut condition = Condition::parse(&words, &acls).unwrap();
        let mut linker = Linker {
            store: &store,
            files: &mut |_: &str| Ok(Vec::new()),
            acls: &acls,
        };
        condition.link(&mut linker).unwrap();
        condition.test(facts, &mut Scratch::new(), Needs::BODIES)
    }

    #[test]
    fn what_has_arrived_is_seen_and_the_rest_is_waited_for() {
        let part = posted(b"a=1", Some(7), false);
        assert_eq!(ask(&part, "req.body"), Ok(Some("a=1".to_owned())));
        assert_eq!(
            contains(&part, "b=2"),
            ConditionResult::NotYet(Needs::REQUEST_BODY)
        );
        assert_eq!(contains(&part, "a=1"), ConditionResult::Yes);
        assert_eq!(ask(&part, "req.body_len"), Ok(Some("3".to_owned())));
        assert_eq!(ask(&part, "req.body_size"), Ok(Some("7".to_owned())));
        assert_eq!(ask(&part, "req.body_param(b)"), Ok(None));
        let whole = posted(b"a=1&b=2", None, true);
        assert_eq!(contains(&whole, "b=3"), ConditionResult::No);
        assert_eq!(ask(&whole, "req.body"), Ok(Some("a=1&b=2".to_owned())));
        assert_eq!(ask(&whole, "req.body_size"), Ok(Some("7".to_owned())));
        assert_eq!(ask(&whole, "req.body_param(b)"), Ok(Some("2".to_owned())));
        assert_eq!(ask(&whole, "res.body"), Err(Needs::RESPONSE_BODY));
    }

    #[test]
    fn a_parameter_is_the_first_of_its_name() {
        // Values of HAProxy 3.2.
        let form = posted(b"b=1&B=2&c&a=%41+b&d=;x=y", None, true);
        for (text, value) in [
            ("req.body_param(a)", Some("%41+b")),
            ("req.body_param(B,i)", Some("1")),
            ("req.body_param(B)", Some("2")),
            ("req.body_param(c)", None),
            ("req.body_param", Some("1")),
        ] {
            assert_eq!(ask(&form, text), Ok(value.map(str::to_owned)), "{text}");
        }
    }
}
