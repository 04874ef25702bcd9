//! Converters that reach outside the sample, manual 7.3.1.

use crate::args::ArgKind::{Acl, Text};
use crate::args::{Arg, ArgValue, text_arg};
use crate::condition_result::ConditionResult;
use crate::conv::{Converter, NO_ARGS, args, row, text_of};
use crate::effects::SideEffects;
use crate::evaluation::Evaluation;
use crate::facts::{Facts, ServerFacts};
use crate::fetch::proxy::backend_or_current;
use crate::value::{Sample, SampleKind, Value};

/// The rows of this family, in alphabetical order.
#[rustfmt::skip] // What belongs together stands on one line.
pub(super) const ROWS: &[Converter] = &[
    row("debug", args(0, &[Text, Text]), SampleKind::Any, SampleKind::Same)
        .effects(SideEffects::EVENTS)
        .examples("debug(name)", "debug(a,b,c)")
        .implemented("hands the sample on, and shows it in `show events buf0`; stdout and stderr take nothing", debug),
    row("fe_exists", NO_ARGS, SampleKind::Str, SampleKind::Bool)
        .implemented(
            "whether there is a frontend of this name",
            |cx, _, input| Some(Sample::Bool(find_named(cx, input, Facts::frontend_named).is_some())),
        ),
    row("nbsrv", NO_ARGS, SampleKind::Str, SampleKind::Int)
        .implemented(
            "usable servers of the backend of this name",
            |cx, _, input| Some(Sample::Int(find_named(cx, input, backend_or_current)?.usable_servers())),
        ),
    row("srv_is_up", NO_ARGS, SampleKind::Str, SampleKind::Bool)
        .implemented(
            "whether the server of this name may be used",
            |cx, _, input| Some(Sample::Bool(find_named(cx, input, server_called)?.is_up())),
        ),
    row("srv_queue", NO_ARGS, SampleKind::Str, SampleKind::Int)
        .implemented(
            "requests in the queue of the server of this name",
            |cx, _, input| Some(Sample::Int(find_named(cx, input, server_called)?.queue())),
        ),
    row("when", args(1, &[Text, Acl, Text]), SampleKind::Any, SampleKind::Any)
        .examples("when(!normal)", "when(broken)")
        .implemented("hands the sample on if a condition holds, else there is no value", when),
];

/// Where `debug` sends what it is given, unless it is told.
const DEBUG_SINK: &str = "buf0";

/// Sends a line about the sample to a sink of events. It is a tool for developers, and allocates.
fn debug<'f>(
    cx: &mut Evaluation<'f, '_>,
    args: &'f [Arg],
    input: Sample<'f>,
) -> Option<Sample<'f>> {
    let prefix = text_arg(args, 0);
    let sink = match text_arg(args, 1) {
        "" => DEBUG_SINK,
        named => named,
    };
    let value = input.value(cx.scratch);
    let mut line = format!("[debug] {prefix}: type={} <", value.kind().text()).into_bytes();
    match value {
        Value::Bool(flag) => line.push(if flag { b'1' } else { b'0' }),
        Value::Int(number) => line.extend_from_slice(number.to_string().as_bytes()),
        Value::Ipv4(address) => line.extend_from_slice(address.to_string().as_bytes()),
        Value::Ipv6(address) => line.extend_from_slice(address.to_string().as_bytes()),
        Value::Str(bytes) | Value::Bin(bytes) | Value::Meth(bytes) => line.extend_from_slice(bytes),
    }
    line.push(b'>');
    cx.facts.process().add_event(sink, &line);
    Some(input)
}

/// What the sample names.
fn find_named<'f, T>(
    cx: &Evaluation<'f, '_>,
    input: Sample<'f>,
    find: impl FnOnce(&'f dyn Facts, &str) -> Option<T>,
) -> Option<T> {
    let name = std::str::from_utf8(cx.scratch.bytes(text_of(input)?)).ok()?;
    find(cx.facts, name)
}

/// The server of that name: `[backend/]server`.
fn server_called<'f>(facts: &'f dyn Facts, name: &str) -> Option<&'f dyn ServerFacts> {
    let (backend, server) = name.split_once('/').unwrap_or(("", name));
    backend_or_current(facts, backend)?.server_named(server)
}

/// A condition of `when`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum WhenCondition {
    Acl,
    Error,
    Forwarded,
    Normal,
    Processed,
    Stopping,
    ToApplet,
}

/// The words of the conditions of `when`, and what they mean.
pub(crate) const WHEN_CONDITIONS: [(&str, WhenCondition); 7] = [
    ("acl", WhenCondition::Acl),
    ("error", WhenCondition::Error),
    ("forwarded", WhenCondition::Forwarded),
    ("normal", WhenCondition::Normal),
    ("processed", WhenCondition::Processed),
    ("stopping", WhenCondition::Stopping),
    ("toapplet", WhenCondition::ToApplet),
];

/// The condition that `word` names, and whether it is turned round.
fn when_condition(word: &str) -> Option<(WhenCondition, bool)> {
    let (name, negated) = match word.strip_prefix('!') {
        Some(name) => (name, true),
        None => (word, false),
    };
    let mut known = WHEN_CONDITIONS.iter();
    let (_, condition) = known.find(|(known, _)| *known == name)?;
    Some((*condition, negated))
}

/// Whether `word` is a condition of `when`, and needs the name of an ACL behind it.
pub(crate) fn when_needs_acl(word: &str) -> Option<bool> {
    when_condition(word).map(|(condition, _)| condition == WhenCondition::Acl)
}

fn when<'f>(cx: &mut Evaluation<'f, '_>, args: &'f [Arg], input: Sample<'f>) -> Option<Sample<'f>> {
    let (condition, negated) = when_condition(text_arg(args, 0))?;
    let exchange = cx.facts.exchange();
    let holds = match condition {
        WhenCondition::Acl => {
            let ArgValue::Acl(slot) = &args.get(1)?.value else {
                return None;
            };
            let held = slot
                .filled()?
                .test(cx.facts, cx.scratch, cx.may_still_arrive);
            held == ConditionResult::Yes
        }
        WhenCondition::Error => exchange.has_failed(),
        WhenCondition::Normal => !exchange.has_failed(),
        WhenCondition::Forwarded => exchange.was_forwarded(),
        WhenCondition::ToApplet => exchange.service_name().is_some(),
        WhenCondition::Processed => exchange.was_forwarded() || exchange.service_name().is_some(),
        WhenCondition::Stopping => cx.facts.process().is_stopping(),
    };
    (holds != negated).then_some(input)
}
