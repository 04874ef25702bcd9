//! Connections: addresses, ports, the bind line, times, manual 7.3.3.

use std::net::{IpAddr, SocketAddr};

use ballast_message::Version;

use crate::args::ArgKind::{Int, ProxyValueType, Text};
use crate::args::{Arg, int_arg};
use crate::evaluation::Evaluation;
use crate::facts::{AddressPair, ConnectionError, ConnectionFacts, Side};
use crate::fetch::{Fetch, NONE, args, number, record_number, row};
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
    row("bc.timer.connect", NONE, SampleKind::Int, SERVER_SIDE)
        .implemented("milliseconds that connecting to the server took", |cx, _| record_number(cx, |record| record.connect_ms)),
    row("bc_be_queue", NONE, SampleKind::Int, SERVER_SIDE),
    row("bc_dst", NONE, SampleKind::Addr, SERVER_SIDE).needs(Needs::SERVER_ADDRESSES)
        .implemented("the server's address", |cx, _| ip(ends(cx, Side::Server).destination)),
    row("bc_dst_port", NONE, SampleKind::Int, SERVER_SIDE).needs(Needs::SERVER_ADDRESSES)
        .implemented("the server's port", |cx, _| port(ends(cx, Side::Server).destination)),
    row("bc_err", NONE, SampleKind::Int, SERVER_SIDE),
    row("bc_err_name", NONE, SampleKind::Str, SERVER_SIDE),
    row("bc_err_str", NONE, SampleKind::Str, SERVER_SIDE),
    row("bc_glitches", NONE, SampleKind::Int, SERVER_SIDE),
    row("bc_http_major", NONE, SampleKind::Int, SERVER_SIDE),
    row("bc_nb_streams", NONE, SampleKind::Int, SERVER_SIDE),
    row("bc_reused", NONE, SampleKind::Bool, SERVER_SIDE)
        .implemented(
            "whether the connection to the server was used before",
            |cx, _| is(cx, Side::Server, |to| to.is_reused()),
        ),
    row("bc_rtt", args(0, &[Text]), SampleKind::Int, CONNECTION),
    row("bc_rttvar", args(0, &[Text]), SampleKind::Int, CONNECTION),
    row("bc_settings_streams_limit", NONE, SampleKind::Int, SERVER_SIDE),
    row("bc_src", NONE, SampleKind::Addr, SERVER_SIDE).needs(Needs::SERVER_ADDRESSES)
        .implemented("our address towards the server", |cx, _| ip(ends(cx, Side::Server).source)),
    row("bc_src_port", NONE, SampleKind::Int, SERVER_SIDE).needs(Needs::SERVER_ADDRESSES)
        .implemented("our port towards the server", |cx, _| port(ends(cx, Side::Server).source)),
    row("bc_srv_queue", NONE, SampleKind::Int, SERVER_SIDE),
    row("bs.aborted", NONE, SampleKind::Int, SERVER_SIDE),
    row("bs.debug_str", args(0, &[Int]), SampleKind::Str, SERVER_SIDE),
    row("bs.id", NONE, SampleKind::Int, SERVER_SIDE),
    row("bs.rst_code", NONE, SampleKind::Int, SERVER_SIDE),
    row("dst", NONE, SampleKind::Addr, CONNECTION)
        .implemented("the address the client connected to, as set-dst left it", |cx, _| ip(cx.facts.address_pair().destination)),
    row("dst_conn", NONE, SampleKind::Int, CLIENT)
        .implemented("connections on the bind line", |cx, _| number(cx.facts.listener()?.connections())),
    row("dst_is_local", NONE, SampleKind::Bool, CONNECTION)
        .implemented("whether dst is an address of this machine", |cx, _| is_local(cx, cx.facts.address_pair().destination)),
    row("dst_port", NONE, SampleKind::Int, CONNECTION)
        .implemented("the port the client connected to, as set-dst-port left it", |cx, _| port(cx.facts.address_pair().destination)),
    row("fc.timer.handshake", NONE, SampleKind::Int, CONNECTION)
        .implemented("milliseconds that handshakes with the client took", |cx, _| record_number(cx, |record| record.handshake_ms)),
    row("fc.timer.total", NONE, SampleKind::Int, CLIENT)
        .implemented("milliseconds since the connection was accepted", |cx, _| record_number(cx, |record| record.total_ms)),
    row("fc_dst", NONE, SampleKind::Addr, CONNECTION)
        .implemented("our address on the client's connection itself", |cx, _| ip(ends(cx, Side::Client).destination)),
    row("fc_dst_is_local", NONE, SampleKind::Bool, CONNECTION)
        .implemented(
            "whether fc_dst is an address of this machine",
            |cx, _| is_local(cx, ends(cx, Side::Client).destination),
        ),
    row("fc_dst_port", NONE, SampleKind::Int, CONNECTION)
        .implemented("our port on the client's connection itself", |cx, _| port(ends(cx, Side::Client).destination)),
    row("fc_err", NONE, SampleKind::Int, CONNECTION)
        .implemented(
            "what went wrong with the client's connection, a number; 0 for nothing",
            |cx, _| number(client_error(cx).number),
        ),
    row("fc_err_name", NONE, SampleKind::Str, CONNECTION)
        .implemented("what went wrong with the client's connection, a word", error_name),
    row("fc_err_str", NONE, SampleKind::Str, CONNECTION)
        .implemented(
            "what went wrong with the client's connection, a text",
            |cx, _| Some(Sample::str(client_error(cx).text.as_bytes())),
        ),
    row("fc_fackets", args(0, &[Text]), SampleKind::Int, CONNECTION),
    row("fc_glitches", NONE, SampleKind::Int, CONNECTION),
    row("fc_http_major", NONE, SampleKind::Int, CONNECTION)
        .implemented("the version of HTTP on the client's connection: 1, 2 or 3", http_major),
    row("fc_lost", args(0, &[Text]), SampleKind::Int, CONNECTION),
    row("fc_nb_streams", NONE, SampleKind::Int, CONNECTION),
    row("fc_pp_authority", NONE, SampleKind::Str, CONNECTION)
        .implemented("the host name in the PROXY header", |cx, _| proxy_value(cx, AUTHORITY)),
    row("fc_pp_tlv", args(1, &[ProxyValueType]), SampleKind::Str, SESSION)
        .examples("fc_pp_tlv(0xE1)", "fc_pp_tlv(256)")
        .implemented(
            "a value of the PROXY header, by its number or its name in the protocol's text",
            |cx, args| proxy_value(cx, u8::try_from(int_arg(args, 0)?).ok()?),
        ),
    row("fc_pp_unique_id", NONE, SampleKind::Str, CONNECTION)
        .implemented("the unique id in the PROXY header", |cx, _| proxy_value(cx, UNIQUE_ID)),
    row("fc_rcvd_proxy", NONE, SampleKind::Bool, CONNECTION)
        .implemented("whether a PROXY header came", |cx, _| is(cx, Side::Client, |from| from.received_proxy_header())),
    row("fc_reordering", args(0, &[Text]), SampleKind::Int, CONNECTION),
    row("fc_retrans", args(0, &[Text]), SampleKind::Int, CONNECTION),
    row("fc_rtt", args(0, &[Text]), SampleKind::Int, CONNECTION),
    row("fc_rttvar", args(0, &[Text]), SampleKind::Int, CONNECTION),
    row("fc_sacked", args(0, &[Text]), SampleKind::Int, CONNECTION),
    row("fc_saved_syn", NONE, SampleKind::Bin, CONNECTION),
    row("fc_settings_streams_limit", NONE, SampleKind::Int, SESSION),
    row("fc_src", NONE, SampleKind::Addr, CONNECTION)
        .implemented("the other end's address on the client's connection itself", |cx, _| ip(ends(cx, Side::Client).source)),
    row("fc_src_is_local", NONE, SampleKind::Bool, CONNECTION)
        .implemented("whether fc_src is an address of this machine", |cx, _| is_local(cx, ends(cx, Side::Client).source)),
    row("fc_src_port", NONE, SampleKind::Int, CONNECTION)
        .implemented("the other end's port on the client's connection itself", |cx, _| port(ends(cx, Side::Client).source)),
    row("fc_unacked", args(0, &[Text]), SampleKind::Int, CONNECTION),
    row("fs.aborted", NONE, SampleKind::Int, SESSION),
    row("fs.debug_str", args(0, &[Int]), SampleKind::Str, SESSION),
    row("fs.id", NONE, SampleKind::Str, SESSION),
    row("fs.rst_code", NONE, SampleKind::Int, SESSION),
    row("so_id", NONE, SampleKind::Int, CLIENT)
        .implemented("the number of the bind line", |cx, _| number(cx.facts.listener()?.id())),
    row("so_name", NONE, SampleKind::Str, CLIENT)
        .implemented("the name of the bind line", |cx, _| Some(Sample::str(cx.facts.listener()?.name()?.as_bytes()))),
    row("src", NONE, SampleKind::Addr, CONNECTION)
        .implemented("the client's address, as set-src left it", |cx, _| ip(cx.facts.address_pair().source)),
    row("src_is_local", NONE, SampleKind::Bool, CONNECTION)
        .implemented("whether src is an address of this machine", |cx, _| is_local(cx, cx.facts.address_pair().source)),
    row("src_port", NONE, SampleKind::Int, CONNECTION)
        .implemented("the client's port, as set-src-port left it", |cx, _| port(cx.facts.address_pair().source)),
];

/// The type of the host name in a PROXY header (its text, section 2.2).
const AUTHORITY: u8 = 0x02;
/// The type of the unique id.
const UNIQUE_ID: u8 = 0x05;

/// A value of the PROXY header: the first of its type, or the next of a walk.
fn proxy_value<'f>(cx: &mut Evaluation<'f, '_>, value_type: u8) -> Option<Sample<'f>> {
    let connection = cx.facts.connection(Side::Client)?;
    let place = if cx.walk.all { cx.walk.given } else { 0 };
    let value = connection.proxy_value(value_type, place)?;
    cx.walk.more = cx.walk.all && connection.proxy_value(value_type, place + 1).is_some();
    Some(Sample::str(value))
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
    number(i64::from(address?.port()))
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
    let name = client_error(cx).name;
    (!name.is_empty()).then_some(Sample::str(name.as_bytes()))
}

fn http_major<'f>(cx: &mut Evaluation<'f, '_>, _: &'f [Arg]) -> Option<Sample<'f>> {
    number(match cx.facts.request()?.version() {
        Version::Http09 | Version::Http10 | Version::Http11 => 1,
        Version::Http2 => 2,
        Version::Http3 => 3,
    })
}
