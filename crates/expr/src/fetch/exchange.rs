//! An exchange: method, versions, status, captures, times, manual 7.3.2 and 7.3.6.

use crate::args::ArgKind::Int;
use crate::args::{Arg, int_arg};
use crate::config_line::ConfigLine;
use crate::evaluation::Evaluation;
use crate::facts::{ExchangeFacts, ExchangeNumbers, Side};
use crate::fetch::tls::LATER_THAN_3_2;
use crate::fetch::{Fetch, NO_ARGS, args, in_exchange, int_sample, record_number, row};
use crate::number_text::push_int;
use crate::phase::Phases;
use crate::value::{Sample, SampleKind};

const ALWAYS: Phases = Phases::ALWAYS;
const BACKEND: Phases = Phases::BACKEND;
const CLIENT: Phases = Phases::CLIENT;
const CONNECTION: Phases = Phases::CONNECTION;
const REQUEST: Phases = Phases::REQUEST;
const RESPONSE: Phases = Phases::RESPONSE;
const ROUTED: Phases = Phases::ROUTED;
const RUNNING: Phases = Phases::RUNNING;
const SERVER: Phases = Phases::SERVER;
const SERVER_SIDE: Phases = Phases::SERVER_SIDE;
const TRANSACTION: Phases = Phases::TRANSACTION;

/// The rows of this family, in alphabetical order.
#[rustfmt::skip] // What belongs together stands on one line.
pub(super) const ROWS: &[Fetch] = &[
    row("bytes_in", NO_ARGS, SampleKind::Int, TRANSACTION)
        .implemented("bytes from the client", bytes_in),
    row("bytes_out", NO_ARGS, SampleKind::Int, ROUTED)
        .implemented("bytes from the server", bytes_out),
    row("capture.req.hdr", args(1, &[Int]), SampleKind::Str, TRANSACTION)
        .examples("capture.req.hdr(0)", "capture.req.hdr")
        .implemented("what a request capture holds", |cx, args| capture(cx, args, Side::Client)),
    row("capture.req.method", NO_ARGS, SampleKind::Str, TRANSACTION)
        .implemented("the method of the request", captured_method),
    row("capture.req.uri", NO_ARGS, SampleKind::Str, TRANSACTION)
        .implemented("the path and query of the request", captured_uri),
    row("capture.req.ver", NO_ARGS, SampleKind::Str, TRANSACTION)
        .implemented("the version of the request: HTTP/1.1", captured_version),
    row("capture.res.hdr", args(1, &[Int]), SampleKind::Str, SERVER_SIDE)
        .examples("capture.res.hdr(0)", "capture.res.hdr")
        .implemented("what a response capture holds", |cx, args| capture(cx, args, Side::Server)),
    row("capture.res.ver", NO_ARGS, SampleKind::Str, TRANSACTION)
        .implemented(
            "the version of the response: HTTP/1.1",
            |cx, _| Some(version_text(cx.facts.response()?.version().as_str().as_bytes())),
        ),
    row("cur_client_timeout", NO_ARGS, SampleKind::Int, CLIENT)
        .implemented("the client timeout in force, in milliseconds", |cx, _| timeout(cx, |exchange| exchange.client_timeout_ms())),
    row("cur_connect_timeout", NO_ARGS, SampleKind::Int, BACKEND).refused(LATER_THAN_3_2),
    row("cur_max_retries", NO_ARGS, SampleKind::Int, BACKEND).refused(LATER_THAN_3_2),
    row("cur_queue_timeout", NO_ARGS, SampleKind::Int, BACKEND).refused(LATER_THAN_3_2),
    row("cur_server_timeout", NO_ARGS, SampleKind::Int, BACKEND)
        .implemented("the server timeout in force, in milliseconds", |cx, _| timeout(cx, |exchange| exchange.server_timeout_ms())),
    row("cur_tarpit_timeout", NO_ARGS, SampleKind::Int, CONNECTION).refused(LATER_THAN_3_2),
    row("cur_tunnel_timeout", NO_ARGS, SampleKind::Int, BACKEND)
        .implemented("the tunnel timeout in force, in milliseconds", |cx, _| timeout(cx, |exchange| exchange.tunnel_timeout_ms())),
    row("fcgi.docroot", NO_ARGS, SampleKind::Str, REQUEST),
    row("fcgi.index", NO_ARGS, SampleKind::Str, REQUEST),
    row("http_first_req", NO_ARGS, SampleKind::Bool, TRANSACTION)
        .implemented(
            "whether the request is the first of its connection",
            |cx, _| in_exchange(cx).map(|()| Sample::Bool(cx.facts.exchange().is_first_request())),
        ),
    row("last_entity", NO_ARGS, SampleKind::Str, RUNNING)
        .implemented("file and line of the rule that ended its rule set last", |cx, _| line_of(cx, cx.facts.exchange().last_rule()?)),
    row("last_rule_file", NO_ARGS, SampleKind::Str, RUNNING)
        .implemented("the file of the rule that ended its rule set last", |cx, _| Some(Sample::str(cx.facts.exchange().last_rule()?.file.as_bytes()))),
    row("last_rule_line", NO_ARGS, SampleKind::Int, RUNNING)
        .implemented("the line of the rule that ended its rule set last", |cx, _| int_sample(i64::from(cx.facts.exchange().last_rule()?.line))),
    row("method", NO_ARGS, SampleKind::Meth, TRANSACTION)
        .implemented("the method of the request; a known one as it was received, whatever `set-method` did", |cx, _| {
            let request = cx.facts.kept_request()?;
            Some(Sample::meth(cx.facts.exchange().received_method().unwrap_or_else(|| request.method_token())))
        }),
    row("prio_class", NO_ARGS, SampleKind::Int, RUNNING)
        .implemented("the class in the queue", |cx, _| in_exchange(cx).and_then(|()| int_sample(cx.facts.exchange().priority_class()))),
    row("prio_offset", NO_ARGS, SampleKind::Int, RUNNING)
        .implemented("the time by which the place in the queue was moved, in milliseconds", |cx, _| in_exchange(cx).and_then(|()| int_sample(cx.facts.exchange().priority_offset_ms()))),
    row("req.bytes_in", NO_ARGS, SampleKind::Int, TRANSACTION)
        .implemented("bytes from the client", bytes_in),
    row("req.bytes_out", NO_ARGS, SampleKind::Int, TRANSACTION).refused(LATER_THAN_3_2),
    row("req.proto_http", NO_ARGS, SampleKind::Bool, TRANSACTION)
        .implemented("whether a request of HTTP was read", is_http),
    row("req.timer.hdr", NO_ARGS, SampleKind::Int, REQUEST)
        .implemented("milliseconds that receiving the head took", |cx, _| record_number(cx, |record| record.request_ms)),
    row("req.timer.idle", NO_ARGS, SampleKind::Int, REQUEST)
        .implemented("milliseconds before the request", |cx, _| record_number(cx, |record| record.idle_ms)),
    row("req.timer.queue", NO_ARGS, SampleKind::Int, SERVER_SIDE)
        .implemented("milliseconds in queues", |cx, _| record_number(cx, |record| record.queue_ms)),
    row("req.timer.tq", NO_ARGS, SampleKind::Int, REQUEST)
        .implemented("milliseconds of handshakes, idling and receiving the head", |cx, _| record_number(cx, ExchangeNumbers::tq_ms)),
    row("req.ver", NO_ARGS, SampleKind::Str, REQUEST)
        .implemented("the version of the request: 1.1", request_version),
    row("req_proto_http", NO_ARGS, SampleKind::Bool, TRANSACTION)
        .implemented("whether a request of HTTP was read", is_http),
    row("req_ver", NO_ARGS, SampleKind::Str, REQUEST)
        .implemented("the version of the request: 1.1", request_version),
    row("res.bytes_in", NO_ARGS, SampleKind::Int, ROUTED)
        .implemented("bytes from the server", bytes_out),
    row("res.bytes_out", NO_ARGS, SampleKind::Int, ROUTED).refused(LATER_THAN_3_2),
    row("res.cache_hit", NO_ARGS, SampleKind::Bool, SERVER),
    row("res.cache_name", NO_ARGS, SampleKind::Str, SERVER),
    row("res.comp", NO_ARGS, SampleKind::Bool, SERVER_SIDE),
    row("res.comp_algo", NO_ARGS, SampleKind::Str, SERVER_SIDE),
    row("res.timer.data", NO_ARGS, SampleKind::Int, ROUTED)
        .implemented("milliseconds that transferring the data took", |cx, _| record_number(cx, |record| record.data_ms)),
    row("res.timer.hdr", NO_ARGS, SampleKind::Int, RESPONSE)
        .implemented("milliseconds until the head of the response came", |cx, _| record_number(cx, |record| record.response_ms)),
    row("res.ver", NO_ARGS, SampleKind::Str, RESPONSE)
        .implemented("the version of the response: 1.1", response_version),
    row("resp_ver", NO_ARGS, SampleKind::Str, RESPONSE)
        .implemented("the version of the response: 1.1", response_version),
    row("server_status", NO_ARGS, SampleKind::Int, SERVER_SIDE)
        .implemented("the status of the server's response, as it came", server_status),
    row("spoe.engine-id", NO_ARGS, SampleKind::Str, RUNNING),
    row("status", NO_ARGS, SampleKind::Int, SERVER_SIDE)
        .implemented("the status of the response", |cx, _| int_sample(i64::from(cx.facts.response()?.status()))),
    row("term_events", NO_ARGS, SampleKind::Str, RUNNING).refused(NO_EVENTS),
    row("txn.conn_retries", NO_ARGS, SampleKind::Int, SERVER_SIDE)
        .implemented("how often connecting was tried again", |cx, _| record_number(cx, |record| i64::from(record.retries))),
    row("txn.id32", NO_ARGS, SampleKind::Int, RUNNING)
        .implemented("the number of the request in the process", |cx, _| record_number(cx, |record| wide(record.request_counter))),
    row("txn.redispatched", NO_ARGS, SampleKind::Bool, SERVER_SIDE)
        .implemented("whether another server was tried", |cx, _| Some(Sample::Bool(cx.facts.numbers()?.redispatched))),
    row("txn.sess_term_state", NO_ARGS, SampleKind::Str, RUNNING)
        .implemented("the termination state", |cx, _| Some(Sample::str(&cx.facts.numbers()?.termination[..2]))),
    row("txn.status", NO_ARGS, SampleKind::Int, SERVER_SIDE)
        .implemented("the status given to the client", status_given),
    row("txn.timer.total", NO_ARGS, SampleKind::Int, TRANSACTION)
        .implemented("milliseconds since the first byte of the request", |cx, _| record_number(cx, |record| record.active_ms)),
    row("txn.timer.user", NO_ARGS, SampleKind::Int, TRANSACTION)
        .implemented("milliseconds that the client waited", |cx, _| record_number(cx, |record| record.user_ms)),
    row("unique-id", NO_ARGS, SampleKind::Str, ALWAYS)
        .implemented("the unique id, made when it is first asked for", |cx, _| cx.facts.exchange().unique_id().map(Sample::str)),
    row("waiting_entity", NO_ARGS, SampleKind::Str, RUNNING)
        .implemented("file and line of the rule that waits, or waited when the exchange ended", |cx, _| line_of(cx, cx.facts.exchange().waiting_rule()?)),
];

/// Why the events are not given.
const NO_EVENTS: &str = "it names events of HAProxy's own layers, which are others here; %tsc tells how an exchange ended";

/// `file:line`.
fn line_of<'f>(cx: &mut Evaluation<'f, '_>, rule: &ConfigLine) -> Option<Sample<'f>> {
    let mut out = cx.scratch.open();
    out.extend_from_slice(rule.file.as_bytes());
    out.push(b':');
    push_int(&mut out, i64::from(rule.line));
    Some(Sample::Str(cx.scratch.close(out)))
}

/// 0 while the server has not answered, as in HAProxy.
fn server_status<'f>(cx: &mut Evaluation<'f, '_>, _: &'f [Arg]) -> Option<Sample<'f>> {
    cx.facts.kept_request()?;
    int_sample(i64::from(cx.facts.exchange().server_status()))
}

fn wide(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A timeout that is in force for the exchange.
fn timeout<'f>(cx: &Evaluation<'f, '_>, of: fn(&dyn ExchangeFacts) -> i64) -> Option<Sample<'f>> {
    in_exchange(cx)?;
    int_sample(of(cx.facts.exchange()))
}

fn bytes_in<'f>(cx: &mut Evaluation<'f, '_>, _: &'f [Arg]) -> Option<Sample<'f>> {
    record_number(cx, |record| wide(record.bytes_in))
}

fn bytes_out<'f>(cx: &mut Evaluation<'f, '_>, _: &'f [Arg]) -> Option<Sample<'f>> {
    record_number(cx, |record| wide(record.bytes_out))
}

fn request_version<'f>(cx: &mut Evaluation<'f, '_>, _: &'f [Arg]) -> Option<Sample<'f>> {
    let version = cx.facts.request()?.version();
    Some(Sample::str(version.number().as_bytes()))
}

fn response_version<'f>(cx: &mut Evaluation<'f, '_>, _: &'f [Arg]) -> Option<Sample<'f>> {
    let version = cx.facts.response()?.version();
    Some(Sample::str(version.number().as_bytes()))
}

fn status_given<'f>(cx: &mut Evaluation<'f, '_>, _: &'f [Arg]) -> Option<Sample<'f>> {
    let status = cx.facts.numbers()?.status;
    (status >= 0).then_some(Sample::Int(i64::from(status)))
}

fn is_http<'f>(cx: &mut Evaluation<'f, '_>, _: &'f [Arg]) -> Option<Sample<'f>> {
    cx.facts.request().map(|_| Sample::Bool(true))
}

fn capture<'f>(cx: &mut Evaluation<'f, '_>, args: &'f [Arg], sent_by: Side) -> Option<Sample<'f>> {
    let slot = usize::try_from(int_arg(args, 0)?).ok()?;
    cx.facts.captures(sent_by).slot(slot).map(Sample::str)
}

/// The method, from the request line as it was received: rules may have changed the request since.
fn captured_method<'f>(cx: &mut Evaluation<'f, '_>, _: &'f [Arg]) -> Option<Sample<'f>> {
    if let Some(line) = cx.facts.exchange().request_line() {
        let end = memchr::memchr(b' ', line).unwrap_or(line.len());
        return Some(Sample::str(&line[..end]));
    }
    let request = cx.facts.request()?;
    Some(Sample::str(request.method_token()))
}

fn captured_uri<'f>(cx: &mut Evaluation<'f, '_>, _: &'f [Arg]) -> Option<Sample<'f>> {
    let uri = match cx.facts.exchange().request_line() {
        None => cx.facts.request()?.target(),
        Some(line) => {
            let rest = &line[memchr::memchr(b' ', line)? + 1..];
            &rest[..memchr::memchr(b' ', rest).unwrap_or(rest.len())]
        }
    };
    // Scheme and host are not part of it.
    let path_at = match memchr::memmem::find(uri, b"://") {
        Some(scheme) if !uri.starts_with(b"/") => {
            scheme + 3 + memchr::memchr(b'/', &uri[scheme + 3..])?
        }
        _ => 0,
    };
    let path = &uri[path_at..];
    path.starts_with(b"/").then_some(Sample::str(path))
}

/// The version of the request, also where its line was cut before it for the log.
fn captured_version<'f>(cx: &mut Evaluation<'f, '_>, _: &'f [Arg]) -> Option<Sample<'f>> {
    let request = cx.facts.kept_request()?;
    Some(version_text(request.version().as_str().as_bytes()))
}

/// As HAProxy 3.2 says it: what is not HTTP/1.0 is HTTP/1.1, HTTP/2 too.
fn version_text(version: &[u8]) -> Sample<'_> {
    Sample::str(match version {
        b"HTTP/2.0" | b"HTTP/3.0" => b"HTTP/1.1",
        other => other,
    })
}
