//! Frontends, backends and servers: names, numbers and figures, manual 7.3.2.

use crate::args::ArgKind::{Backend, Frontend, Server};
use crate::args::{Arg, ArgValue, text_arg};
use crate::evaluation::Evaluation;
use crate::facts::{BackendFacts, Facts, FrontendFacts, ServerFacts};
use crate::fetch::tls::LATER_THAN_3_2;
use crate::fetch::{Fetch, NO_ARGS, args, in_exchange, int_sample, row};
use crate::phase::Phases;
use crate::value::{Sample, SampleKind};

const BACKEND: Phases = Phases::BACKEND;
const CLIENT: Phases = Phases::CLIENT;
const RUNNING: Phases = Phases::RUNNING;
const SERVER: Phases = Phases::SERVER;

/// The rows of this family, in alphabetical order.
#[rustfmt::skip] // What belongs together stands on one line.
pub(super) const ROWS: &[Fetch] = &[
    row("avg_queue", args(1, &[Backend]), SampleKind::Int, RUNNING)
        .examples("avg_queue(be)", "avg_queue(be,x)")
        .implemented(
            "average queue length per usable server of a backend",
            |cx, args| int_sample(backend(cx, args)?.average_queue()),
        ),
    row("be_conn", args(1, &[Backend]), SampleKind::Int, RUNNING)
        .examples("be_conn(be)", "be_conn(be,x)")
        .implemented("current connections of a backend", |cx, args| int_sample(backend(cx, args)?.connections())),
    row("be_conn_free", args(1, &[Backend]), SampleKind::Int, RUNNING)
        .examples("be_conn_free(be)", "be_conn_free(be,x)")
        .implemented(
            "connections that the usable servers of a backend can still take, -1 for no bound",
            |cx, args| int_sample(backend(cx, args)?.connections_free()),
        ),
    row("be_connect_timeout", NO_ARGS, SampleKind::Int, BACKEND).refused(LATER_THAN_3_2),
    row("be_id", NO_ARGS, SampleKind::Int, BACKEND)
        .implemented("the number of the backend", backend_id),
    row("be_max_retries", NO_ARGS, SampleKind::Int, BACKEND).refused(LATER_THAN_3_2),
    row("be_name", NO_ARGS, SampleKind::Str, BACKEND)
        .implemented("the name of the backend", backend_name),
    row("be_queue_timeout", NO_ARGS, SampleKind::Int, BACKEND).refused(LATER_THAN_3_2),
    row("be_server_timeout", NO_ARGS, SampleKind::Int, BACKEND)
        .implemented("the server timeout of the backend, in milliseconds", |cx, _| int_sample(cx.facts.backend()?.server_timeout_ms())),
    row("be_sess_rate", args(1, &[Backend]), SampleKind::Int, RUNNING)
        .examples("be_sess_rate(be)", "be_sess_rate(be,x)")
        .implemented(
            "sessions of a backend in the last second",
            |cx, args| int_sample(backend(cx, args)?.session_rate(rate_clock(cx)?)),
        ),
    row("be_tarpit_timeout", NO_ARGS, SampleKind::Int, BACKEND).refused(LATER_THAN_3_2),
    row("be_tunnel_timeout", NO_ARGS, SampleKind::Int, BACKEND)
        .implemented("the tunnel timeout of the backend, in milliseconds", |cx, _| int_sample(cx.facts.backend()?.tunnel_timeout_ms())),
    row("connslots", args(1, &[Backend]), SampleKind::Int, RUNNING)
        .examples("connslots(be)", "connslots(be,x)")
        .implemented(
            "connections that the servers of a backend and their queues can still take, -1 for no bound",
            |cx, args| int_sample(backend(cx, args)?.slots_free()),
        ),
    row("fe_client_timeout", NO_ARGS, SampleKind::Int, CLIENT)
        .implemented("the client timeout of the frontend, in milliseconds", |cx, _| int_sample(cx.facts.frontend()?.client_timeout_ms())),
    row("fe_conn", args(1, &[Frontend]), SampleKind::Int, RUNNING)
        .examples("fe_conn(fe)", "fe_conn(fe,x)")
        .implemented("current connections of a frontend", |cx, args| int_sample(frontend(cx, args)?.connections())),
    row("fe_defbe", NO_ARGS, SampleKind::Str, CLIENT)
        .implemented(
            "the name of the frontend's default backend",
            |cx, _| name(cx.facts.frontend()?.default_backend_name()?),
        ),
    row("fe_id", NO_ARGS, SampleKind::Int, CLIENT)
        .implemented("the number of the frontend", |cx, _| int_sample(cx.facts.frontend()?.id())),
    row("fe_name", NO_ARGS, SampleKind::Str, CLIENT)
        .implemented("the name of the frontend", |cx, _| name(cx.facts.frontend()?.name())),
    row("fe_req_rate", args(1, &[Frontend]), SampleKind::Int, RUNNING)
        .examples("fe_req_rate(fe)", "fe_req_rate(fe,x)")
        .implemented(
            "requests of a frontend in the last second",
            |cx, args| int_sample(frontend(cx, args)?.request_rate(rate_clock(cx)?)),
        ),
    row("fe_sess_rate", args(1, &[Frontend]), SampleKind::Int, RUNNING)
        .examples("fe_sess_rate(fe)", "fe_sess_rate(fe,x)")
        .implemented(
            "sessions of a frontend in the last second",
            |cx, args| int_sample(frontend(cx, args)?.session_rate(rate_clock(cx)?)),
        ),
    row("fe_tarpit_timeout", NO_ARGS, SampleKind::Int, CLIENT).refused(LATER_THAN_3_2),
    row("nbsrv", args(1, &[Backend]), SampleKind::Int, RUNNING)
        .examples("nbsrv(be)", "nbsrv(be,x)")
        .implemented("usable servers of a backend", |cx, args| int_sample(backend(cx, args)?.usable_servers())),
    row("queue", args(1, &[Backend]), SampleKind::Int, RUNNING)
        .examples("queue(be)", "queue(be,x)")
        .implemented("requests in the queues of a backend and its servers", |cx, args| int_sample(backend(cx, args)?.queue())),
    row("srv_conn", args(1, &[Server]), SampleKind::Int, RUNNING)
        .examples("srv_conn(be/s)", "srv_conn")
        .implemented("current connections of a server", |cx, args| int_sample(server(cx, args)?.connections())),
    row("srv_conn_free", args(1, &[Server]), SampleKind::Int, RUNNING)
        .examples("srv_conn_free(be/s)", "srv_conn_free")
        .implemented(
            "connections that a server can still take, -1 for no bound",
            |cx, args| int_sample(server(cx, args)?.connections_free()),
        ),
    row("srv_id", NO_ARGS, SampleKind::Int, SERVER)
        .implemented("the number of the server", |cx, _| int_sample(cx.facts.server()?.id())),
    row("srv_is_up", args(1, &[Server]), SampleKind::Bool, RUNNING)
        .examples("srv_is_up(be/s)", "srv_is_up")
        .implemented("whether a server may be used", |cx, args| Some(Sample::Bool(server(cx, args)?.is_up()))),
    row("srv_iweight", args(1, &[Server]), SampleKind::Int, RUNNING)
        .examples("srv_iweight(be/s)", "srv_iweight")
        .implemented("the weight of a server in the configuration", |cx, args| int_sample(server(cx, args)?.initial_weight())),
    row("srv_name", NO_ARGS, SampleKind::Str, SERVER)
        .implemented("the name of the server", |cx, _| name(cx.facts.server()?.name())),
    row("srv_queue", args(1, &[Server]), SampleKind::Int, RUNNING)
        .examples("srv_queue(be/s)", "srv_queue")
        .implemented("requests in the queue of a server", |cx, args| int_sample(server(cx, args)?.queue())),
    row("srv_sess_rate", args(1, &[Server]), SampleKind::Int, RUNNING)
        .examples("srv_sess_rate(be/s)", "srv_sess_rate")
        .implemented(
            "sessions of a server in the last second",
            |cx, args| int_sample(server(cx, args)?.session_rate(rate_clock(cx)?)),
        ),
    row("srv_uweight", args(1, &[Server]), SampleKind::Int, RUNNING)
        .examples("srv_uweight(be/s)", "srv_uweight")
        .implemented("the weight of a server as operators set it", |cx, args| int_sample(server(cx, args)?.weight())),
    row("srv_weight", args(1, &[Server]), SampleKind::Int, RUNNING)
        .examples("srv_weight(be/s)", "srv_weight")
        .implemented(
            "the weight of a server that balancing uses: a slow start lowers it",
            |cx, args| {
                let (backend, name) = server_arg(cx, args)?;
                int_sample(backend.effective_weight(name)?)
            },
        ),
];

fn name(name: &str) -> Option<Sample<'_>> {
    Some(Sample::str(name.as_bytes()))
}

/// The time, in milliseconds, at which session and request rates are read; `None` outside of a process.
fn rate_clock(cx: &Evaluation<'_, '_>) -> Option<u32> {
    cx.facts.process().rate_clock_ms()
}

/// The frontend that an argument names; an empty name means the current one.
fn frontend<'f>(cx: &Evaluation<'f, '_>, args: &[Arg]) -> Option<&'f dyn FrontendFacts> {
    match text_arg(args, 0) {
        "" => cx.facts.frontend(),
        name => cx.facts.frontend_named(name),
    }
}

fn backend<'f>(cx: &Evaluation<'f, '_>, args: &[Arg]) -> Option<&'f dyn BackendFacts> {
    backend_or_current(cx.facts, text_arg(args, 0))
}

/// The backend of that name; an empty one means the current one.
pub(crate) fn backend_or_current<'f>(
    facts: &'f dyn Facts,
    name: &str,
) -> Option<&'f dyn BackendFacts> {
    match name {
        "" => facts.backend(),
        name => facts.backend_named(name),
    }
}

fn server<'f>(cx: &Evaluation<'f, '_>, args: &[Arg]) -> Option<&'f dyn ServerFacts> {
    let (backend, name) = server_arg(cx, args)?;
    backend.server_named(name)
}

/// The backend and the server's name that an argument `[<backend>/]<server>` names.
fn server_arg<'f, 'a>(
    cx: &Evaluation<'f, '_>,
    args: &'a [Arg],
) -> Option<(&'f dyn BackendFacts, &'a str)> {
    let ArgValue::Server { backend, server } = &args.first()?.value else {
        return None;
    };
    let backend = backend_or_current(cx.facts, backend.as_deref().unwrap_or_default())?;
    Some((backend, server))
}

/// Of an exchange that has no backend yet, or none at all, it is that of its frontend.
fn backend_id<'f>(cx: &mut Evaluation<'f, '_>, _: &'f [Arg]) -> Option<Sample<'f>> {
    if let Some(backend) = cx.facts.backend() {
        return int_sample(backend.id());
    }
    in_exchange(cx)?;
    int_sample(cx.facts.frontend()?.id())
}

/// As [`backend_id`].
fn backend_name<'f>(cx: &mut Evaluation<'f, '_>, _: &'f [Arg]) -> Option<Sample<'f>> {
    if let Some(backend) = cx.facts.backend() {
        return name(backend.name());
    }
    in_exchange(cx)?;
    name(cx.facts.frontend()?.name())
}
