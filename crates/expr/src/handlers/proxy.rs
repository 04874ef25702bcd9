//! Names and figures of frontends, backends and servers.

use super::{text_arg, text_of};
use crate::args::{Arg, ArgValue};
use crate::eval::Cx;
use crate::facts::{BackendCount, FrontendCount, ServerCount};
use crate::value::Sample;

macro_rules! backends {
    ($($name:ident => $what:ident;)*) => {$(
        pub(crate) fn $name<'f>(cx: &mut Cx<'f, '_>, args: &'f [Arg]) -> Option<Sample<'f>> {
            cx.facts.backend_count(text_arg(args, 0), BackendCount::$what).map(Sample::Int)
        }
    )*};
}

backends! {
    avg_queue => AverageQueue;
    be_conn => Connections;
    be_conn_free => ConnectionsFree;
    connslots => Slots;
    queue => Queue;
    be_sess_rate => SessionRate;
    nbsrv => UsableServers;
}

macro_rules! frontends {
    ($($name:ident => $what:ident;)*) => {$(
        pub(crate) fn $name<'f>(cx: &mut Cx<'f, '_>, args: &'f [Arg]) -> Option<Sample<'f>> {
            cx.facts.frontend_count(text_arg(args, 0), FrontendCount::$what).map(Sample::Int)
        }
    )*};
}

frontends! {
    fe_conn => Connections;
    fe_req_rate => RequestRate;
    fe_sess_rate => SessionRate;
}

fn server(cx: &Cx<'_, '_>, args: &[Arg], what: ServerCount) -> Option<i64> {
    match &args.first()?.value {
        ArgValue::Server { backend, server } => {
            cx.facts
                .server_count(backend.as_deref().unwrap_or_default(), server, what)
        }
        _ => None,
    }
}

macro_rules! servers {
    ($($name:ident => $what:ident;)*) => {$(
        pub(crate) fn $name<'f>(cx: &mut Cx<'f, '_>, args: &'f [Arg]) -> Option<Sample<'f>> {
            server(cx, args, ServerCount::$what).map(Sample::Int)
        }
    )*};
}

servers! {
    srv_conn => Connections;
    srv_conn_free => ConnectionsFree;
    srv_iweight => InitialWeight;
    srv_queue => Queue;
    srv_sess_rate => SessionRate;
    srv_uweight => UserWeight;
    srv_weight => Weight;
}

pub(crate) fn srv_is_up<'f>(cx: &mut Cx<'f, '_>, args: &'f [Arg]) -> Option<Sample<'f>> {
    server(cx, args, ServerCount::IsUp).map(|up| Sample::Bool(up != 0))
}

macro_rules! names {
    ($($name:ident => $fact:ident;)*) => {$(
        pub(crate) fn $name<'f>(cx: &mut Cx<'f, '_>, _: &'f [Arg]) -> Option<Sample<'f>> {
            cx.facts.$fact().map(|name| Sample::held(name.as_bytes()))
        }
    )*};
}

names! {
    be_name => backend_name;
    fe_name => frontend_name;
    fe_defbe => default_backend_name;
    srv_name => server_name;
}

macro_rules! ids {
    ($($name:ident => $fact:ident;)*) => {$(
        pub(crate) fn $name<'f>(cx: &mut Cx<'f, '_>, _: &'f [Arg]) -> Option<Sample<'f>> {
            cx.facts.$fact().map(Sample::Int)
        }
    )*};
}

ids! {
    be_id => backend_id;
    fe_id => frontend_id;
    srv_id => server_id;
}

// === converters: the name comes from the sample ===

fn named<'f, T>(
    cx: &Cx<'f, '_>,
    input: Sample<'f>,
    ask: impl FnOnce(&'f dyn crate::facts::Facts, &str) -> Option<T>,
) -> Option<T> {
    let name = std::str::from_utf8(cx.scratch.bytes(text_of(input)?)).ok()?;
    ask(cx.facts, name)
}

pub(crate) fn conv_nbsrv<'f>(
    cx: &mut Cx<'f, '_>,
    _: &'f [Arg],
    input: Sample<'f>,
) -> Option<Sample<'f>> {
    named(cx, input, |facts, name| {
        facts.backend_count(name, BackendCount::UsableServers)
    })
    .map(Sample::Int)
}

pub(crate) fn conv_srv_queue<'f>(
    cx: &mut Cx<'f, '_>,
    _: &'f [Arg],
    input: Sample<'f>,
) -> Option<Sample<'f>> {
    named(cx, input, |facts, name| {
        let (backend, server) = name.split_once('/').unwrap_or(("", name));
        facts.server_count(backend, server, ServerCount::Queue)
    })
    .map(Sample::Int)
}

pub(crate) fn conv_srv_is_up<'f>(
    cx: &mut Cx<'f, '_>,
    _: &'f [Arg],
    input: Sample<'f>,
) -> Option<Sample<'f>> {
    named(cx, input, |facts, name| {
        let (backend, server) = name.split_once('/').unwrap_or(("", name));
        facts.server_count(backend, server, ServerCount::IsUp)
    })
    .map(|up| Sample::Bool(up != 0))
}

pub(crate) fn conv_fe_exists<'f>(
    cx: &mut Cx<'f, '_>,
    _: &'f [Arg],
    input: Sample<'f>,
) -> Option<Sample<'f>> {
    let found = named(cx, input, |facts, name| {
        Some(
            !name.is_empty()
                && facts
                    .frontend_count(name, FrontendCount::Connections)
                    .is_some(),
        )
    });
    Some(Sample::Bool(found.unwrap_or(false)))
}
