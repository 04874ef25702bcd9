//! Addresses and ports of the connections on both sides.

use std::net::{IpAddr, SocketAddr};

use crate::args::Arg;
use crate::eval::Cx;
use crate::facts::{ConnectionFacts, Ends, Facts, Side};
use crate::value::Sample;

fn ip<'f>(_: &Cx<'f, '_>, address: &SocketAddr) -> Sample<'f> {
    Sample::ip(unmapped(address))
}

/// A dual-stack listener sees IPv4 clients as mapped IPv6 ones.
fn unmapped(address: &SocketAddr) -> IpAddr {
    address.ip().to_canonical()
}

fn port<'f>(_: &Cx<'f, '_>, address: &SocketAddr) -> Sample<'f> {
    Sample::Int(i64::from(address.port()))
}

fn is_local<'f>(cx: &Cx<'f, '_>, address: &SocketAddr) -> Sample<'f> {
    Sample::Bool(cx.facts.process().is_local(unmapped(address)))
}

/// As rules left them.
fn path<'f>(facts: &'f dyn Facts) -> Option<Ends<'f>> {
    Some(facts.ends())
}

fn client<'f>(facts: &'f dyn Facts) -> Option<Ends<'f>> {
    Some(facts.connection(Side::Client)?.ends())
}

fn server<'f>(facts: &'f dyn Facts) -> Option<Ends<'f>> {
    Some(facts.connection(Side::Server)?.ends())
}

macro_rules! addresses {
    ($($name:ident => $sample:ident, $ends:ident, $end:ident;)*) => {$(
        pub(crate) fn $name<'f>(cx: &mut Cx<'f, '_>, _: &'f [Arg]) -> Option<Sample<'f>> {
            Some($sample(cx, $ends(cx.facts)?.$end?))
        }
    )*};
}

addresses! {
    src => ip, path, source;
    src_port => port, path, source;
    src_is_local => is_local, path, source;
    dst => ip, path, destination;
    dst_port => port, path, destination;
    dst_is_local => is_local, path, destination;
    fc_src => ip, client, source;
    fc_src_port => port, client, source;
    fc_src_is_local => is_local, client, source;
    fc_dst => ip, client, destination;
    fc_dst_port => port, client, destination;
    fc_dst_is_local => is_local, client, destination;
    bc_src => ip, server, source;
    bc_src_port => port, server, source;
    bc_dst => ip, server, destination;
    bc_dst_port => port, server, destination;
}

/// What is told of a connection; no where there is none.
fn is<'f>(
    connection: Option<&'f dyn ConnectionFacts>,
    told: impl FnOnce(&'f dyn ConnectionFacts) -> bool,
) -> Sample<'f> {
    Sample::Bool(connection.is_some_and(told))
}

pub(crate) fn ssl_fc<'f>(cx: &mut Cx<'f, '_>, _: &'f [Arg]) -> Option<Sample<'f>> {
    Some(is(cx.facts.connection(Side::Client), |from| from.is_tls()))
}

pub(crate) fn ssl_bc<'f>(cx: &mut Cx<'f, '_>, _: &'f [Arg]) -> Option<Sample<'f>> {
    Some(is(cx.facts.connection(Side::Server), |to| to.is_tls()))
}

pub(crate) fn bc_reused<'f>(cx: &mut Cx<'f, '_>, _: &'f [Arg]) -> Option<Sample<'f>> {
    Some(is(cx.facts.connection(Side::Server), |to| to.is_reused()))
}

pub(crate) fn rcvd_proxy<'f>(cx: &mut Cx<'f, '_>, _: &'f [Arg]) -> Option<Sample<'f>> {
    Some(is(cx.facts.connection(Side::Client), |from| {
        from.received_proxy_header()
    }))
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
    Some(Sample::Int(cx.facts.listener()?.id()))
}

pub(crate) fn so_name<'f>(cx: &mut Cx<'f, '_>, _: &'f [Arg]) -> Option<Sample<'f>> {
    Some(Sample::held(cx.facts.listener()?.name()?.as_bytes()))
}

pub(crate) fn dst_conn<'f>(cx: &mut Cx<'f, '_>, _: &'f [Arg]) -> Option<Sample<'f>> {
    Some(Sample::Int(cx.facts.listener()?.connections()))
}
