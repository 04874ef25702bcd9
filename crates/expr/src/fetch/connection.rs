//! Connections: addresses, ports, the bind line, times, manual 7.3.3.

use std::net::{IpAddr, SocketAddr};

use ballast_message::Version;

use crate::args::ArgKind::{Int, ProxyValueType, Text};
use crate::args::{Arg, int_arg, text_arg};
use crate::evaluation::Evaluation;
use crate::facts::{AddressPair, ConnectionError, ConnectionFacts, Side, StreamFacts, TcpFacts};
use crate::fetch::tls::LATER_THAN_3_2;
use crate::fetch::{Fetch, NO_ARGS, args, in_exchange, int_sample, record_number, row};
use crate::needs::Needs;
use crate::phase::Phases;
use crate::value::{Sample, SampleKind};

const CLIENT: Phases = Phases::CLIENT;
const CONNECTION: Phases = Phases::CONNECTION;
const SERVER_SIDE: Phases = Phases::SERVER_SIDE;
const SESSION: Phases = Phases::SESSION;

/// The rows of this family, in alphabetical order.
#[rustfmt::skip] // What belongs together stands on one line.
pub(super) const ROWS: &[Fetch] = &[
    row("bc.timer.connect", NO_ARGS, SampleKind::Int, SERVER_SIDE)
        .implemented("milliseconds that connecting to the server took", |cx, _| record_number(cx, |record| record.connect_ms)),
    row("bc_be_queue", NO_ARGS, SampleKind::Int, SERVER_SIDE)
        .implemented("requests before this one in the queue of the backend", |cx, _| record_number(cx, |record| wide(record.backend_queue))),
    row("bc_dst", NO_ARGS, SampleKind::Addr, SERVER_SIDE).needs(Needs::SERVER_ADDRESSES)
        .implemented("the server's address", |cx, _| ip(ends(cx, Side::Server).destination)),
    row("bc_dst_port", NO_ARGS, SampleKind::Int, SERVER_SIDE).needs(Needs::SERVER_ADDRESSES)
        .implemented("the server's port", |cx, _| port(ends(cx, Side::Server).destination)),
    row("bc_err", NO_ARGS, SampleKind::Int, SERVER_SIDE)
        .implemented("what went wrong with the connection to the server, a number; 0 for nothing", |cx, _| int_sample(server_error(cx)?.number)),
    row("bc_err_name", NO_ARGS, SampleKind::Str, SERVER_SIDE)
        .implemented("what went wrong with the connection to the server, a word", |cx, _| error_word(server_error(cx)?)),
    row("bc_err_str", NO_ARGS, SampleKind::Str, SERVER_SIDE)
        .implemented("what went wrong with the connection to the server, a text", |cx, _| Some(Sample::str(server_error(cx)?.text.as_bytes()))),
    row("bc_glitches", NO_ARGS, SampleKind::Int, SERVER_SIDE)
        .implemented("small violations of the protocol on the connection", |cx, _| int_sample(stream(cx, Side::Server)?.glitches?)),
    row("bc_http_major", NO_ARGS, SampleKind::Int, SERVER_SIDE)
        .implemented("the version of HTTP on the connection to the server: 1, 2 or 3", |cx, _| int_sample(i64::from(stream(cx, Side::Server)?.http_major?))),
    row("bc_nb_streams", NO_ARGS, SampleKind::Int, SERVER_SIDE)
        .implemented("exchanges side by side on the connection", |cx, _| int_sample(stream(cx, Side::Server)?.count)),
    row("bc_reused", NO_ARGS, SampleKind::Bool, SERVER_SIDE)
        .implemented(
            "whether the connection to the server was used before",
            |cx, _| in_exchange(cx).and_then(|()| is(cx, Side::Server, |to| to.is_reused())),
        ),
    row("bc_rtt", args(0, &[Text]), SampleKind::Int, CONNECTION)
        .examples("bc_rtt(us)", "bc_rtt(us,x)")
        .implemented("the round trip time to the server, in ms or us", |cx, args| duration(args, tcp(cx, Side::Server)?.rtt_us)),
    row("bc_rttvar", args(0, &[Text]), SampleKind::Int, CONNECTION)
        .examples("bc_rttvar(us)", "bc_rttvar(us,x)")
        .implemented("the variance of the round trip time to the server, in ms or us", |cx, args| duration(args, tcp(cx, Side::Server)?.rtt_variance_us)),
    row("bc_settings_streams_limit", NO_ARGS, SampleKind::Int, SERVER_SIDE)
        .implemented("most exchanges side by side on the connection", |cx, _| int_sample(stream(cx, Side::Server)?.count_max)),
    row("bc_src", NO_ARGS, SampleKind::Addr, SERVER_SIDE).needs(Needs::SERVER_ADDRESSES)
        .implemented("our address towards the server", |cx, _| ip(ends(cx, Side::Server).source)),
    row("bc_src_port", NO_ARGS, SampleKind::Int, SERVER_SIDE).needs(Needs::SERVER_ADDRESSES)
        .implemented("our port towards the server", |cx, _| port(ends(cx, Side::Server).source)),
    row("bc_srv_queue", NO_ARGS, SampleKind::Int, SERVER_SIDE)
        .implemented("requests before this one in the queue of the server", |cx, _| record_number(cx, |record| wide(record.server_queue))),
    row("bs.aborted", NO_ARGS, SampleKind::Int, SERVER_SIDE)
        .implemented("whether the server has aborted the exchange alone, not its connection", server_aborted),
    row("bs.debug_str", args(0, &[Int]), SampleKind::Str, SERVER_SIDE).refused(NO_DEBUG),
    row("bs.id", NO_ARGS, SampleKind::Int, SERVER_SIDE)
        .implemented("the number of the exchange on the connection to the server", |cx, _| int_sample(stream(cx, Side::Server)?.id)),
    row("bs.rst_code", NO_ARGS, SampleKind::Int, SERVER_SIDE)
        .implemented("the code with which the server aborted it", |cx, _| int_sample(stream(cx, Side::Server)?.reset_code?)),
    row("dst", NO_ARGS, SampleKind::Addr, CONNECTION)
        .implemented("the address the client connected to, as set-dst left it", |cx, _| ip(cx.facts.address_pair().destination)),
    row("dst_conn", NO_ARGS, SampleKind::Int, CLIENT)
        .implemented("connections on the bind line", |cx, _| int_sample(cx.facts.listener()?.connections())),
    row("dst_is_local", NO_ARGS, SampleKind::Bool, CONNECTION)
        .implemented("whether dst is an address of this machine", |cx, _| is_local(cx, cx.facts.address_pair().destination)),
    row("dst_port", NO_ARGS, SampleKind::Int, CONNECTION)
        .implemented("the port the client connected to, as set-dst-port left it", |cx, _| known_port(cx.facts.address_pair().destination)),
    row("fc.timer.handshake", NO_ARGS, SampleKind::Int, CONNECTION)
        .implemented("milliseconds that handshakes with the client took", |cx, _| record_number(cx, |record| record.handshake_ms)),
    row("fc.timer.total", NO_ARGS, SampleKind::Int, CLIENT)
        .implemented("milliseconds since the connection was accepted", |cx, _| record_number(cx, |record| record.total_ms)),
    row("fc_dst", NO_ARGS, SampleKind::Addr, CONNECTION)
        .implemented("our address on the client's connection itself", |cx, _| ip(ends(cx, Side::Client).destination)),
    row("fc_dst_is_local", NO_ARGS, SampleKind::Bool, CONNECTION)
        .implemented(
            "whether fc_dst is an address of this machine",
            |cx, _| is_local(cx, ends(cx, Side::Client).destination),
        ),
    row("fc_dst_port", NO_ARGS, SampleKind::Int, CONNECTION)
        .implemented("our port on the client's connection itself", |cx, _| port(ends(cx, Side::Client).destination)),
    row("fc_err", NO_ARGS, SampleKind::Int, CONNECTION)
        .implemented(
            "what went wrong with the client's connection, a number; 0 for nothing",
            |cx, _| int_sample(client_error(cx).number),
        ),
    row("fc_err_name", NO_ARGS, SampleKind::Str, CONNECTION)
        .implemented("what went wrong with the client's connection, a word", error_name),
    row("fc_err_str", NO_ARGS, SampleKind::Str, CONNECTION)
        .implemented(
            "what went wrong with the client's connection, a text",
            |cx, _| Some(Sample::str(client_error(cx).text.as_bytes())),
        ),
    row("fc_fackets", args(0, &[Text]), SampleKind::Int, CONNECTION)
        .examples("fc_fackets", "fc_fackets(us,x)")
        .implemented("packets acknowledged ahead of others, as old kernels count", |cx, _| int_sample(i64::from(tcp(cx, Side::Client)?.fackets))),
    row("fc_glitches", NO_ARGS, SampleKind::Int, CONNECTION)
        .implemented("small violations of the protocol on the connection", |cx, _| int_sample(stream(cx, Side::Client)?.glitches?)),
    row("fc_http_major", NO_ARGS, SampleKind::Int, CONNECTION)
        .implemented("the version of HTTP on the client's connection: 1, 2 or 3", http_major),
    row("fc_lost", args(0, &[Text]), SampleKind::Int, CONNECTION)
        .examples("fc_lost", "fc_lost(us,x)")
        .implemented("packets that the system takes for lost", |cx, _| int_sample(i64::from(tcp(cx, Side::Client)?.lost))),
    row("fc_nb_streams", NO_ARGS, SampleKind::Int, CONNECTION)
        .implemented("exchanges side by side on the connection", |cx, _| int_sample(stream(cx, Side::Client)?.count)),
    row("fc_pp_authority", NO_ARGS, SampleKind::Str, CONNECTION)
        .implemented("the host name in the PROXY header", |cx, _| proxy_value(cx, AUTHORITY)),
    row("fc_pp_tlv", args(1, &[ProxyValueType]), SampleKind::Str, SESSION)
        .examples("fc_pp_tlv(0xE1)", "fc_pp_tlv(256)")
        .implemented(
            "a value of the PROXY header, by its number or its name in the protocol's text",
            |cx, args| proxy_value(cx, u8::try_from(int_arg(args, 0)?).ok()?),
        ),
    row("fc_pp_unique_id", NO_ARGS, SampleKind::Str, CONNECTION)
        .implemented("the unique id in the PROXY header", |cx, _| proxy_value(cx, UNIQUE_ID)),
    row("fc_rcvd_proxy", NO_ARGS, SampleKind::Bool, CONNECTION)
        .implemented("whether a PROXY header came", |cx, _| is(cx, Side::Client, |from| from.received_proxy_header())),
    row("fc_reordering", args(0, &[Text]), SampleKind::Int, CONNECTION)
        .examples("fc_reordering", "fc_reordering(us,x)")
        .implemented("how far packets were seen out of order", |cx, _| int_sample(i64::from(tcp(cx, Side::Client)?.reordering))),
    row("fc_retrans", args(0, &[Text]), SampleKind::Int, CONNECTION)
        .examples("fc_retrans", "fc_retrans(us,x)")
        .implemented("packets that are being sent again", |cx, _| int_sample(i64::from(tcp(cx, Side::Client)?.retransmits))),
    row("fc_rtt", args(0, &[Text]), SampleKind::Int, CONNECTION)
        .examples("fc_rtt(us)", "fc_rtt(us,x)")
        .implemented("the round trip time to the client, in ms or us", |cx, args| duration(args, tcp(cx, Side::Client)?.rtt_us)),
    row("fc_rttvar", args(0, &[Text]), SampleKind::Int, CONNECTION)
        .examples("fc_rttvar(us)", "fc_rttvar(us,x)")
        .implemented("the variance of the round trip time to the client, in ms or us", |cx, args| duration(args, tcp(cx, Side::Client)?.rtt_variance_us)),
    row("fc_sacked", args(0, &[Text]), SampleKind::Int, CONNECTION)
        .examples("fc_sacked", "fc_sacked(us,x)")
        .implemented("packets acknowledged ahead of others", |cx, _| int_sample(i64::from(tcp(cx, Side::Client)?.sacked))),
    row("fc_saved_syn", NO_ARGS, SampleKind::Bin, CONNECTION).refused(LATER_THAN_3_2),
    row("fc_settings_streams_limit", NO_ARGS, SampleKind::Int, SESSION)
        .implemented("most exchanges side by side on the connection", |cx, _| int_sample(stream(cx, Side::Client)?.count_max)),
    row("fc_src", NO_ARGS, SampleKind::Addr, CONNECTION)
        .implemented("the other end's address on the client's connection itself", |cx, _| ip(ends(cx, Side::Client).source)),
    row("fc_src_is_local", NO_ARGS, SampleKind::Bool, CONNECTION)
        .implemented("whether fc_src is an address of this machine", |cx, _| is_local(cx, ends(cx, Side::Client).source)),
    row("fc_src_port", NO_ARGS, SampleKind::Int, CONNECTION)
        .implemented("the other end's port on the client's connection itself", |cx, _| port(ends(cx, Side::Client).source)),
    row("fc_unacked", args(0, &[Text]), SampleKind::Int, CONNECTION)
        .examples("fc_unacked", "fc_unacked(us,x)")
        .implemented("packets that are not acknowledged yet", |cx, _| int_sample(i64::from(tcp(cx, Side::Client)?.unacked))),
    row("fs.aborted", NO_ARGS, SampleKind::Int, SESSION)
        .implemented("whether the client has aborted the exchange alone, not its connection", |cx, _| int_sample(i64::from(begun_stream(cx)?.aborted))),
    row("fs.debug_str", args(0, &[Int]), SampleKind::Str, SESSION).refused(NO_DEBUG),
    row("fs.id", NO_ARGS, SampleKind::Str, SESSION)
        .implemented("the number of the exchange on the client's connection", |cx, _| Sample::Int(begun_stream(cx)?.id).cast(SampleKind::Str, cx.scratch)),
    row("fs.rst_code", NO_ARGS, SampleKind::Int, SESSION)
        .implemented("the code with which the client aborted it", |cx, _| int_sample(stream(cx, Side::Client)?.reset_code?)),
    row("so_id", NO_ARGS, SampleKind::Int, CLIENT)
        .implemented("the number of the bind line", |cx, _| int_sample(cx.facts.listener()?.id())),
    row("so_name", NO_ARGS, SampleKind::Str, CLIENT)
        .implemented("the name of the bind line", |cx, _| Some(Sample::str(cx.facts.listener()?.name()?.as_bytes()))),
    row("src", NO_ARGS, SampleKind::Addr, CONNECTION)
        .implemented("the client's address, as set-src left it", |cx, _| ip(cx.facts.address_pair().source)),
    row("src_is_local", NO_ARGS, SampleKind::Bool, CONNECTION)
        .implemented("whether src is an address of this machine", |cx, _| is_local(cx, cx.facts.address_pair().source)),
    row("src_port", NO_ARGS, SampleKind::Int, CONNECTION)
        .implemented("the client's port, as set-src-port left it", |cx, _| known_port(cx.facts.address_pair().source)),
];

/// The type of the host name in a PROXY header (its text, section 2.2).
const AUTHORITY: u8 = 0x02;
/// The type of the unique id.
const UNIQUE_ID: u8 = 0x05;

/// A value of the PROXY header: the first of its type, or the next of a walk.
fn proxy_value<'f>(cx: &mut Evaluation<'f, '_>, value_type: u8) -> Option<Sample<'f>> {
    let connection = cx.facts.connection(Side::Client)?;
    let (value, end) = connection.next_proxy_value(value_type, cx.iteration.cursor.index)?;
    if cx.iteration.wants_all {
        cx.iteration.cursor.index = end;
        cx.iteration.has_more =
            !cx.iteration.first_decides && connection.next_proxy_value(value_type, end).is_some();
    }
    Some(Sample::str(value))
}

/// Why the state is not shown.
const NO_DEBUG: &str = "it shows the state of HAProxy's own layers, which are others here";

/// What the system measured of the connection to a side.
fn tcp(cx: &Evaluation<'_, '_>, to: Side) -> Option<TcpFacts> {
    // As in HAProxy, it is told of within an exchange.
    in_exchange(cx)?;
    cx.facts.connection(to)?.tcp()
}

/// A time in milliseconds, or in microseconds where it is asked so.
fn duration<'f>(args: &[Arg], time_us: u32) -> Option<Sample<'f>> {
    let time_us = i64::from(time_us);
    int_sample(match text_arg(args, 0) {
        "us" => time_us,
        _ => time_us / 1000,
    })
}

/// The exchange on the connection to a side.
fn stream(cx: &Evaluation<'_, '_>, to: Side) -> Option<StreamFacts> {
    cx.facts.stream(to)
}

/// The client's stream, once there is an exchange.
fn begun_stream(cx: &Evaluation<'_, '_>) -> Option<StreamFacts> {
    stream(cx, Side::Client).filter(|_| cx.facts.exchange().has_begun())
}

/// An exchange that never came to a server was not aborted by one.
fn server_aborted<'f>(cx: &mut Evaluation<'f, '_>, _: &'f [Arg]) -> Option<Sample<'f>> {
    let aborted = match stream(cx, Side::Server) {
        Some(stream) => stream.aborted,
        None => begun_stream(cx).map(|_| false)?,
    };
    int_sample(i64::from(aborted))
}

fn wide(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn server_error(cx: &Evaluation<'_, '_>) -> Option<ConnectionError> {
    let connection = cx.facts.connection(Side::Server)?;
    connection.is_established().then(|| connection.error())
}

/// The ends of the connection itself.
fn ends<'f>(cx: &Evaluation<'f, '_>, to: Side) -> AddressPair<'f> {
    let connection = cx.facts.connection(to);
    connection.map_or_else(AddressPair::default, |connection| connection.address_pair())
}

fn ip<'f>(address: Option<&SocketAddr>) -> Option<Sample<'f>> {
    Some(Sample::ip(unmapped(address?)))
}

/// A dual-stack listener sees IPv4 clients as mapped IPv6 ones.
fn unmapped(address: &SocketAddr) -> IpAddr {
    address.ip().to_canonical()
}

fn port<'f>(address: Option<&SocketAddr>) -> Option<Sample<'f>> {
    int_sample(i64::from(address?.port()))
}

/// A port; 0 is none, as after `set-src-port` of what is no number.
fn known_port<'f>(end: Option<&SocketAddr>) -> Option<Sample<'f>> {
    port(end.filter(|end| end.port() != 0))
}

fn is_local<'f>(cx: &Evaluation<'f, '_>, address: Option<&SocketAddr>) -> Option<Sample<'f>> {
    let is_local = cx.facts.process().is_local(unmapped(address?));
    Some(Sample::Bool(is_local))
}

/// What is told of the connection to a side; no where there is none.
pub(super) fn is<'f>(
    cx: &Evaluation<'f, '_>,
    to: Side,
    told: fn(&dyn ConnectionFacts) -> bool,
) -> Option<Sample<'f>> {
    Some(Sample::Bool(cx.facts.connection(to).is_some_and(told)))
}

fn client_error(cx: &Evaluation<'_, '_>) -> ConnectionError {
    let connection = cx.facts.connection(Side::Client);
    connection.map_or_else(ConnectionError::default, |connection| connection.error())
}

fn error_name<'f>(cx: &mut Evaluation<'f, '_>, _: &'f [Arg]) -> Option<Sample<'f>> {
    error_word(client_error(cx))
}

fn error_word<'f>(error: ConnectionError) -> Option<Sample<'f>> {
    Some(Sample::str(error.name.as_bytes()))
}

fn http_major<'f>(cx: &mut Evaluation<'f, '_>, _: &'f [Arg]) -> Option<Sample<'f>> {
    if let Some(major) = stream(cx, Side::Client).and_then(|stream| stream.http_major) {
        return int_sample(i64::from(major));
    }
    int_sample(match cx.facts.kept_request()?.version() {
        Version::Http09 | Version::Http10 | Version::Http11 => 1,
        Version::Http2 => 2,
        Version::Http3 => 3,
    })
}
