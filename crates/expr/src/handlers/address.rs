//! Addresses and ports of the connections on both sides.

use std::net::SocketAddr;

use crate::args::Arg;
use crate::eval::Cx;
use crate::facts::Facts;
use crate::value::Sample;

type Side = for<'f> fn(&'f dyn Facts) -> Option<SocketAddr>;

fn ip<'f>(cx: &Cx<'f, '_>, side: Side) -> Option<Sample<'f>> {
    side(cx.facts).map(|address| Sample::ip(unmapped(address)))
}

/// A dual-stack listener sees IPv4 clients as mapped IPv6 ones.
fn unmapped(address: SocketAddr) -> std::net::IpAddr {
    address.ip().to_canonical()
}

fn port<'f>(cx: &Cx<'f, '_>, side: Side) -> Option<Sample<'f>> {
    side(cx.facts).map(|address| Sample::Int(i64::from(address.port())))
}

fn is_local<'f>(cx: &Cx<'f, '_>, side: Side) -> Option<Sample<'f>> {
    side(cx.facts).map(|address| Sample::Bool(cx.facts.is_local(unmapped(address))))
}

macro_rules! sides {
    ($($name:ident => $handler:ident, $side:ident;)*) => {$(
        pub(crate) fn $name<'f>(cx: &mut Cx<'f, '_>, _: &'f [Arg]) -> Option<Sample<'f>> {
            $handler(cx, |facts| facts.$side())
        }
    )*};
}

sides! {
    src => ip, source;
    src_port => port, source;
    src_is_local => is_local, source;
    dst => ip, destination;
    dst_port => port, destination;
    dst_is_local => is_local, destination;
    fc_src => ip, connection_source;
    fc_src_port => port, connection_source;
    fc_src_is_local => is_local, connection_source;
    fc_dst => ip, connection_destination;
    fc_dst_port => port, connection_destination;
    fc_dst_is_local => is_local, connection_destination;
    bc_src => ip, server_source;
    bc_src_port => port, server_source;
    bc_dst => ip, server_destination;
    bc_dst_port => port, server_destination;
}

pub(crate) fn ssl_fc<'f>(cx: &mut Cx<'f, '_>, _: &'f [Arg]) -> Option<Sample<'f>> {
    Some(Sample::Bool(cx.facts.is_client_tls()))
}

pub(crate) fn ssl_bc<'f>(cx: &mut Cx<'f, '_>, _: &'f [Arg]) -> Option<Sample<'f>> {
    Some(Sample::Bool(cx.facts.is_server_tls()))
}

pub(crate) fn bc_reused<'f>(cx: &mut Cx<'f, '_>, _: &'f [Arg]) -> Option<Sample<'f>> {
    Some(Sample::Bool(cx.facts.is_server_connection_reused()))
}

pub(crate) fn rcvd_proxy<'f>(cx: &mut Cx<'f, '_>, _: &'f [Arg]) -> Option<Sample<'f>> {
    Some(Sample::Bool(cx.facts.received_proxy_header()))
}

pub(crate) fn http_major<'f>(cx: &mut Cx<'f, '_>, _: &'f [Arg]) -> Option<Sample<'f>> {
    use ballast_message::Version;
    Some(Sample::Int(match cx.facts.request()?.version() {
        Version::Http09 | Version::Http10 | Version::Http11 => 1,
        Version::Http2 => 2,
        Version::Http3 => 3,
    }))
}

pub(crate) fn so_id<'f>(cx: &mut Cx<'f, '_>, _: &'f [Arg]) -> Option<Sample<'f>> {
    cx.facts.listener_id().map(Sample::Int)
}

pub(crate) fn so_name<'f>(cx: &mut Cx<'f, '_>, _: &'f [Arg]) -> Option<Sample<'f>> {
    cx.facts
        .listener_name()
        .map(|name| Sample::held(name.as_bytes()))
}

pub(crate) fn dst_conn<'f>(cx: &mut Cx<'f, '_>, _: &'f [Arg]) -> Option<Sample<'f>> {
    cx.facts.listener_connections().map(Sample::Int)
}
