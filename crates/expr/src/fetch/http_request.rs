//! Samples that need an HTTP request, manual 7.3.6.

use crate::args::ArgKind::{Int, Text, Userlist};
use crate::fetch::{Fetch, NONE, args, row};
use crate::handlers::{auth, cookie, exchange, header, uri};
use crate::needs::Needs;
use crate::phase::Phases;
use crate::value::Kind;

const REQUEST: Phases = Phases::REQUEST;

const BODY: Needs = Needs::REQUEST_BODY;

/// The rows of this family, in alphabetical order.
#[rustfmt::skip] // One row, one line.
pub(super) const ROWS: &[Fetch] = &[
    row("base", NONE, Kind::Str, REQUEST, Some(uri::base)),
    row("base32", NONE, Kind::Int, REQUEST, Some(uri::base32)),
    row("base32+src", NONE, Kind::Bin, REQUEST, Some(uri::base32_src)),
    row("baseq", NONE, Kind::Str, REQUEST, Some(uri::baseq)),
    row("cook", args(0, &[Text]), Kind::Str, REQUEST, Some(cookie::req_cook)),
    row("cook_cnt", args(0, &[Text]), Kind::Int, REQUEST, Some(cookie::req_cook_cnt)),
    row("cook_val", args(0, &[Text]), Kind::Int, REQUEST, Some(cookie::req_cook_val)),
    row("fcgi.docroot", NONE, Kind::Str, REQUEST, None),
    row("fcgi.index", NONE, Kind::Str, REQUEST, None),
    row("hdr_cnt", args(0, &[Text]), Kind::Int, REQUEST, Some(header::req_hdr_cnt)),
    row("hdr_ip", args(0, &[Text, Int]), Kind::Addr, REQUEST, Some(header::req_hdr_ip)),
    row("hdr_val", args(0, &[Text, Int]), Kind::Int, REQUEST, Some(header::req_hdr_val)),
    row("http_auth", args(1, &[Userlist]), Kind::Bool, REQUEST, None),
    row("http_auth_bearer", args(0, &[Text]), Kind::Str, REQUEST, Some(auth::bearer)),
    row("http_auth_group", args(1, &[Userlist]), Kind::Str, REQUEST, None),
    row("http_auth_pass", NONE, Kind::Str, REQUEST, Some(auth::password)),
    row("http_auth_type", NONE, Kind::Str, REQUEST, Some(auth::scheme)),
    row("http_auth_user", NONE, Kind::Str, REQUEST, Some(auth::user)),
    row("path", NONE, Kind::Str, REQUEST, Some(uri::path)),
    row("pathq", NONE, Kind::Str, REQUEST, Some(uri::pathq)),
    row("query", args(0, &[Text]), Kind::Str, REQUEST, Some(uri::query)),
    row("req.body", NONE, Kind::Bin, REQUEST, None).needs(BODY),
    row("req.body_len", NONE, Kind::Int, REQUEST, None).needs(BODY),
    row("req.body_param", args(0, &[Text, Text]), Kind::Bin, REQUEST, None).needs(BODY),
    row("req.body_size", NONE, Kind::Int, REQUEST, None).needs(BODY),
    row("req.cook", args(0, &[Text]), Kind::Str, REQUEST, Some(cookie::req_cook)),
    row("req.cook_cnt", args(0, &[Text]), Kind::Int, REQUEST, Some(cookie::req_cook_cnt)),
    row("req.cook_names", args(0, &[Text]), Kind::Str, REQUEST, Some(cookie::req_cook_names)),
    row("req.cook_val", args(0, &[Text]), Kind::Int, REQUEST, Some(cookie::req_cook_val)),
    row("req.fhdr", args(0, &[Text, Int]), Kind::Str, REQUEST, Some(header::req_fhdr)),
    row("req.fhdr_cnt", args(0, &[Text]), Kind::Int, REQUEST, Some(header::req_fhdr_cnt)),
    row("req.hdr", args(0, &[Text, Int]), Kind::Str, REQUEST, Some(header::req_hdr)),
    row("req.hdr_cnt", args(0, &[Text]), Kind::Int, REQUEST, Some(header::req_hdr_cnt)),
    row("req.hdr_ip", args(0, &[Text, Int]), Kind::Addr, REQUEST, Some(header::req_hdr_ip)),
    row("req.hdr_names", args(0, &[Text]), Kind::Str, REQUEST, Some(header::req_hdr_names)),
    row("req.hdr_val", args(0, &[Text, Int]), Kind::Int, REQUEST, Some(header::req_hdr_val)),
    row("req.hdrs", NONE, Kind::Bin, REQUEST, Some(header::req_hdrs)),
    row("req.hdrs_bin", NONE, Kind::Bin, REQUEST, None),
    row("req.timer.hdr", NONE, Kind::Int, REQUEST, Some(exchange::timer_req_hdr)),
    row("req.timer.idle", NONE, Kind::Int, REQUEST, Some(exchange::timer_req_idle)),
    row("req.timer.tq", NONE, Kind::Int, REQUEST, Some(exchange::timer_req_tq)),
    row("url", NONE, Kind::Str, REQUEST, Some(uri::url)),
    row("url32", NONE, Kind::Int, REQUEST, Some(uri::url32)),
    row("url32+src", NONE, Kind::Bin, REQUEST, Some(uri::url32_src)),
    row("url_ip", NONE, Kind::Ipv4, REQUEST, Some(uri::url_ip)),
    row("url_param", args(0, &[Text, Text, Text]), Kind::Str, REQUEST, Some(uri::url_param)),
    row("url_port", NONE, Kind::Int, REQUEST, Some(uri::url_port)),
    row("urlp", args(0, &[Text, Text, Text]), Kind::Str, REQUEST, Some(uri::url_param)),
    row("urlp_val", args(0, &[Text, Text, Text]), Kind::Int, REQUEST, Some(uri::urlp_val)),
];
