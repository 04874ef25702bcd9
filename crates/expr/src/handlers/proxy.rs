//! Names and figures of frontends, backends and servers.

use super::{text_arg, text_of};
use crate::args::{Arg, ArgValue};
use crate::eval::Cx;
use crate::facts::{BackendFacts, Facts, FrontendFacts, ServerFacts};
use crate::value::Sample;

/// The frontend of that name; an empty one means the current one.
fn frontend<'f>(facts: &'f dyn Facts, name: &str) -> Option<&'f dyn FrontendFacts> {
    if name.is_empty() {
        return facts.frontend();
    }
    facts.frontend_named(name)
}

/// The backend of that name; an empty one means the current one.
fn backend<'f>(facts: &'f dyn Facts, name: &str) -> Option<&'f dyn BackendFacts> {
    if name.is_empty() {
        return facts.backend();
    }
    facts.backend_named(name)
}

fn server<'f>(facts: &'f dyn Facts, args: &[Arg]) -> Option<&'f dyn ServerFacts> {
    match &args.first()?.value {
        ArgValue::Server {
            backend: name,
            server,
        } => backend(facts, name.as_deref().unwrap_or_default())?.server_named(server),
        _ => None,
    }
}

macro_rules! backends {
    ($($name:ident => $figure:ident;)*) => {$(
        pub(crate) fn $name<'f>(cx: &mut Cx<'f, '_>, args: &'f [Arg]) -> Option<Sample<'f>> {
            Some(Sample::Int(backend(cx.facts, text_arg(args, 0))?.$figure()))
        }
    )*};
}

backends! {
    avg_queue => average_queue;
    be_conn => connections;
    be_conn_free => connections_free;
    connslots => slots_free;
    queue => queue;
    nbsrv => usable_servers;
}

pub(crate) fn be_sess_rate<'f>(cx: &mut Cx<'f, '_>, args: &'f [Arg]) -> Option<Sample<'f>> {
    let now_ms = cx.facts.process().rate_clock_ms()?;
    let backend = backend(cx.facts, text_arg(args, 0))?;
    Some(Sample::Int(backend.session_rate(now_ms)))
}

pub(crate) fn fe_conn<'f>(cx: &mut Cx<'f, '_>, args: &'f [Arg]) -> Option<Sample<'f>> {
    let frontend = frontend(cx.facts, text_arg(args, 0))?;
    Some(Sample::Int(frontend.connections()))
}

pub(crate) fn fe_req_rate<'f>(cx: &mut Cx<'f, '_>, args: &'f [Arg]) -> Option<Sample<'f>> {
    let now_ms = cx.facts.process().rate_clock_ms()?;
    let frontend = frontend(cx.facts, text_arg(args, 0))?;
    Some(Sample::Int(frontend.request_rate(now_ms)))
}

pub(crate) fn fe_sess_rate<'f>(cx: &mut Cx<'f, '_>, args: &'f [Arg]) -> Option<Sample<'f>> {
    let now_ms = cx.facts.process().rate_clock_ms()?;
    let frontend = frontend(cx.facts, text_arg(args, 0))?;
    Some(Sample::Int(frontend.session_rate(now_ms)))
}

macro_rules! servers {
    ($($name:ident => $figure:ident;)*) => {$(
        pub(crate) fn $name<'f>(cx: &mut Cx<'f, '_>, args: &'f [Arg]) -> Option<Sample<'f>> {
            Some(Sample::Int(server(cx.facts, args)?.$figure()))
        }
    )*};
}

servers! {
    srv_conn => connections;
    srv_conn_free => connections_free;
    srv_iweight => initial_weight;
    srv_queue => queue;
    srv_uweight => weight;
    srv_weight => weight;
}

pub(crate) fn srv_sess_rate<'f>(cx: &mut Cx<'f, '_>, args: &'f [Arg]) -> Option<Sample<'f>> {
    let now_ms = cx.facts.process().rate_clock_ms()?;
    Some(Sample::Int(server(cx.facts, args)?.session_rate(now_ms)))
}

pub(crate) fn srv_is_up<'f>(cx: &mut Cx<'f, '_>, args: &'f [Arg]) -> Option<Sample<'f>> {
    Some(Sample::Bool(server(cx.facts, args)?.is_up()))
}

macro_rules! current {
    ($($object:ident: $name:ident, $id:ident;)*) => {$(
        pub(crate) fn $name<'f>(cx: &mut Cx<'f, '_>, _: &'f [Arg]) -> Option<Sample<'f>> {
            Some(Sample::held(cx.facts.$object()?.name().as_bytes()))
        }

        pub(crate) fn $id<'f>(cx: &mut Cx<'f, '_>, _: &'f [Arg]) -> Option<Sample<'f>> {
            Some(Sample::Int(cx.facts.$object()?.id()))
        }
    )*};
}

current! {
    backend: be_name, be_id;
    frontend: fe_name, fe_id;
    server: srv_name, srv_id;
}

pub(crate) fn fe_defbe<'f>(cx: &mut Cx<'f, '_>, _: &'f [Arg]) -> Option<Sample<'f>> {
    let name = cx.facts.frontend()?.default_backend_name()?;
    Some(Sample::held(name.as_bytes()))
}

// === converters: the name comes from the sample ===

fn named<'f, T>(
    cx: &Cx<'f, '_>,
    input: Sample<'f>,
    ask: impl FnOnce(&'f dyn Facts, &str) -> Option<T>,
) -> Option<T> {
    let name = std::str::from_utf8(cx.scratch.bytes(text_of(input)?)).ok()?;
    ask(cx.facts, name)
}

/// `[backend/]server`.
fn server_at<'f>(facts: &'f dyn Facts, place: &str) -> Option<&'f dyn ServerFacts> {
    let (name, server) = place.split_once('/').unwrap_or(("", place));
    backend(facts, name)?.server_named(server)
}

pub(crate) fn conv_nbsrv<'f>(
    cx: &mut Cx<'f, '_>,
    _: &'f [Arg],
    input: Sample<'f>,
) -> Option<Sample<'f>> {
    let backend = named(cx, input, backend)?;
    Some(Sample::Int(backend.usable_servers()))
}

pub(crate) fn conv_srv_queue<'f>(
    cx: &mut Cx<'f, '_>,
    _: &'f [Arg],
    input: Sample<'f>,
) -> Option<Sample<'f>> {
    Some(Sample::Int(named(cx, input, server_at)?.queue()))
}

pub(crate) fn conv_srv_is_up<'f>(
    cx: &mut Cx<'f, '_>,
    _: &'f [Arg],
    input: Sample<'f>,
) -> Option<Sample<'f>> {
    Some(Sample::Bool(named(cx, input, server_at)?.is_up()))
}

pub(crate) fn conv_fe_exists<'f>(
    cx: &mut Cx<'f, '_>,
    _: &'f [Arg],
    input: Sample<'f>,
) -> Option<Sample<'f>> {
    let found = named(cx, input, Facts::frontend_named);
    Some(Sample::Bool(found.is_some()))
}
