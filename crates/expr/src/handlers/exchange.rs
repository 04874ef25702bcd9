//! One HTTP exchange: method, versions, status, captures, timers.

use super::{int_arg, text_arg};
use crate::args::Arg;
use crate::eval::Cx;
use crate::facts::{Record, Side};
use crate::scratch::Text;
use crate::value::Sample;

pub(crate) fn method<'f>(cx: &mut Cx<'f, '_>, _: &'f [Arg]) -> Option<Sample<'f>> {
    Some(Sample::Meth(Text::Held(cx.facts.request()?.method_token())))
}

pub(crate) fn req_ver<'f>(cx: &mut Cx<'f, '_>, _: &'f [Arg]) -> Option<Sample<'f>> {
    Some(Sample::held(
        cx.facts.request()?.version().number().as_bytes(),
    ))
}

pub(crate) fn res_ver<'f>(cx: &mut Cx<'f, '_>, _: &'f [Arg]) -> Option<Sample<'f>> {
    Some(Sample::held(
        cx.facts.response()?.version().number().as_bytes(),
    ))
}

pub(crate) fn status<'f>(cx: &mut Cx<'f, '_>, _: &'f [Arg]) -> Option<Sample<'f>> {
    Some(Sample::Int(i64::from(cx.facts.response()?.status())))
}

pub(crate) fn txn_status<'f>(cx: &mut Cx<'f, '_>, _: &'f [Arg]) -> Option<Sample<'f>> {
    let status = cx.facts.record()?.status;
    (status >= 0).then_some(Sample::Int(i64::from(status)))
}

pub(crate) fn proto_http<'f>(cx: &mut Cx<'f, '_>, _: &'f [Arg]) -> Option<Sample<'f>> {
    cx.facts.request().map(|_| Sample::Bool(true))
}

pub(crate) fn first_req<'f>(cx: &mut Cx<'f, '_>, _: &'f [Arg]) -> Option<Sample<'f>> {
    Some(Sample::Bool(cx.facts.exchange().is_first_request()))
}

pub(crate) fn unique_id<'f>(cx: &mut Cx<'f, '_>, _: &'f [Arg]) -> Option<Sample<'f>> {
    cx.facts.exchange().unique_id().map(Sample::held)
}

pub(crate) fn captured_req<'f>(cx: &mut Cx<'f, '_>, args: &'f [Arg]) -> Option<Sample<'f>> {
    let slot = usize::try_from(int_arg(args, 0)?).ok()?;
    cx.facts.captures(Side::Client).slot(slot).map(Sample::held)
}

pub(crate) fn captured_res<'f>(cx: &mut Cx<'f, '_>, args: &'f [Arg]) -> Option<Sample<'f>> {
    let slot = usize::try_from(int_arg(args, 0)?).ok()?;
    cx.facts.captures(Side::Server).slot(slot).map(Sample::held)
}

pub(crate) fn captured_method<'f>(cx: &mut Cx<'f, '_>, _: &'f [Arg]) -> Option<Sample<'f>> {
    if let Some(request) = cx.facts.request() {
        return Some(Sample::held(request.method_token()));
    }
    let line = cx.facts.exchange().request_line()?;
    Some(Sample::held(&line[..memchr::memchr(b' ', line)?]))
}

pub(crate) fn captured_uri<'f>(cx: &mut Cx<'f, '_>, _: &'f [Arg]) -> Option<Sample<'f>> {
    let uri = match cx.facts.request() {
        Some(request) => request.target(),
        None => {
            let line = cx.facts.exchange().request_line()?;
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
    path.starts_with(b"/").then_some(Sample::held(path))
}

pub(crate) fn captured_req_ver<'f>(cx: &mut Cx<'f, '_>, _: &'f [Arg]) -> Option<Sample<'f>> {
    if let Some(request) = cx.facts.request() {
        return Some(Sample::held(request.version().as_str().as_bytes()));
    }
    let line = cx.facts.exchange().request_line()?;
    let space = memchr::memrchr(b' ', line)?;
    Some(Sample::held(&line[space + 1..]))
}

pub(crate) fn captured_res_ver<'f>(cx: &mut Cx<'f, '_>, _: &'f [Arg]) -> Option<Sample<'f>> {
    Some(Sample::held(
        cx.facts.response()?.version().as_str().as_bytes(),
    ))
}

fn record<'f>(cx: &Cx<'f, '_>, figure: fn(&Record) -> i64) -> Option<Sample<'f>> {
    cx.facts.record().map(|record| Sample::Int(figure(record)))
}

fn wide(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

macro_rules! figures {
    ($($name:ident => $figure:expr;)*) => {$(
        pub(crate) fn $name<'f>(cx: &mut Cx<'f, '_>, _: &'f [Arg]) -> Option<Sample<'f>> {
            record(cx, $figure)
        }
    )*};
}

figures! {
    bytes_in => |record| wide(record.bytes_in);
    bytes_out => |record| wide(record.bytes_out);
    conn_retries => |record| i64::from(record.retries);
    timer_connect => |record| record.connect_ms;
    timer_handshake => |record| record.handshake_ms;
    timer_session => |record| record.total_ms;
    timer_req_hdr => |record| record.request_ms;
    timer_req_idle => |record| record.idle_ms;
    timer_req_queue => |record| record.queue_ms;
    timer_req_tq => |record| record.tq_ms();
    timer_res_data => |record| record.data_ms;
    timer_res_hdr => |record| record.response_ms;
    timer_total => |record| record.active_ms;
    timer_user => |record| record.user_ms;
}

pub(crate) fn redispatched<'f>(cx: &mut Cx<'f, '_>, _: &'f [Arg]) -> Option<Sample<'f>> {
    cx.facts
        .record()
        .map(|record| Sample::Bool(record.redispatched))
}

pub(crate) fn term_state<'f>(cx: &mut Cx<'f, '_>, _: &'f [Arg]) -> Option<Sample<'f>> {
    cx.facts
        .record()
        .map(|record| Sample::held(&record.termination[..2]))
}

/// `accept_date` and `request_date`: seconds unless `ms` or `us` is asked.
fn dated<'f>(
    cx: &Cx<'f, '_>,
    args: &[Arg],
    of: fn(&Record) -> crate::facts::Time,
) -> Option<Sample<'f>> {
    let time = of(cx.facts.record()?);
    Some(Sample::Int(super::date::in_unit(time, text_arg(args, 0))))
}

pub(crate) fn accept_date<'f>(cx: &mut Cx<'f, '_>, args: &'f [Arg]) -> Option<Sample<'f>> {
    dated(cx, args, |record| record.accepted)
}

pub(crate) fn request_date<'f>(cx: &mut Cx<'f, '_>, args: &'f [Arg]) -> Option<Sample<'f>> {
    dated(cx, args, |record| record.requested)
}

fn client_error(cx: &Cx<'_, '_>) -> (i64, &'static str) {
    let connection = cx.facts.connection(Side::Client);
    connection.map_or((0, "Success"), |connection| connection.error())
}

pub(crate) fn fc_err<'f>(cx: &mut Cx<'f, '_>, _: &'f [Arg]) -> Option<Sample<'f>> {
    Some(Sample::Int(client_error(cx).0))
}

pub(crate) fn fc_err_str<'f>(cx: &mut Cx<'f, '_>, _: &'f [Arg]) -> Option<Sample<'f>> {
    Some(Sample::held(client_error(cx).1.as_bytes()))
}
