//! Samples of the TLS session with the server, manual 7.3.4.

use crate::args::ArgKind::{Int, Text};
use crate::facts::Side;
use crate::fetch::connection::is;
use crate::fetch::{Fetch, NONE, args, row};
use crate::phase::Phases;
use crate::value::SampleKind;

const SERVER_SIDE: Phases = Phases::SERVER_SIDE;
const SESSION: Phases = Phases::SESSION;

/// The rows of this family, in alphabetical order.
#[rustfmt::skip] // What belongs together stands on one line.
pub(super) const ROWS: &[Fetch] = &[
    row("ssl_bc", NONE, SampleKind::Bool, SERVER_SIDE)
        .gives("whether the server is reached over TLS", |cx, _| is(cx, Side::Server, |to| to.is_tls())),
    row("ssl_bc_alg_keysize", NONE, SampleKind::Int, SERVER_SIDE),
    row("ssl_bc_alpn", NONE, SampleKind::Str, SERVER_SIDE),
    row("ssl_bc_cipher", NONE, SampleKind::Str, SERVER_SIDE),
    row("ssl_bc_client_early_traffic_secret", NONE, SampleKind::Str, SESSION),
    row("ssl_bc_client_handshake_traffic_secret", NONE, SampleKind::Str, SESSION),
    row("ssl_bc_client_random", NONE, SampleKind::Bin, SERVER_SIDE),
    row("ssl_bc_client_traffic_secret_0", NONE, SampleKind::Str, SESSION),
    row("ssl_bc_curve", NONE, SampleKind::Str, SERVER_SIDE),
    row("ssl_bc_early_exporter_secret", NONE, SampleKind::Str, SESSION),
    row("ssl_bc_err", NONE, SampleKind::Int, SERVER_SIDE),
    row("ssl_bc_err_str", NONE, SampleKind::Str, SERVER_SIDE),
    row("ssl_bc_exporter_secret", NONE, SampleKind::Str, SESSION),
    row("ssl_bc_is_resumed", NONE, SampleKind::Bool, SERVER_SIDE),
    row("ssl_bc_npn", NONE, SampleKind::Str, SERVER_SIDE),
    row("ssl_bc_protocol", NONE, SampleKind::Str, SERVER_SIDE),
    row("ssl_bc_server_handshake_traffic_secret", NONE, SampleKind::Str, SESSION),
    row("ssl_bc_server_random", NONE, SampleKind::Bin, SERVER_SIDE),
    row("ssl_bc_server_traffic_secret_0", NONE, SampleKind::Str, SESSION),
    row("ssl_bc_session_id", NONE, SampleKind::Bin, SERVER_SIDE),
    row("ssl_bc_session_key", NONE, SampleKind::Bin, SERVER_SIDE),
    row("ssl_bc_sni", NONE, SampleKind::Str, SERVER_SIDE),
    row("ssl_bc_unique_id", NONE, SampleKind::Bin, SERVER_SIDE),
    row("ssl_bc_use_keysize", NONE, SampleKind::Int, SERVER_SIDE),
    row("ssl_s_chain_der", NONE, SampleKind::Bin, SESSION),
    row("ssl_s_der", NONE, SampleKind::Bin, SESSION),
    row("ssl_s_i_dn", args(0, &[Text, Int, Text]), SampleKind::Str, SESSION),
    row("ssl_s_key_alg", NONE, SampleKind::Str, SESSION),
    row("ssl_s_notafter", NONE, SampleKind::Str, SESSION),
    row("ssl_s_notbefore", NONE, SampleKind::Str, SESSION),
    row("ssl_s_s_dn", args(0, &[Text, Int, Text]), SampleKind::Str, SESSION),
    row("ssl_s_serial", NONE, SampleKind::Bin, SESSION),
    row("ssl_s_sha1", NONE, SampleKind::Bin, SESSION),
    row("ssl_s_sig_alg", NONE, SampleKind::Str, SESSION),
    row("ssl_s_version", NONE, SampleKind::Int, SESSION),
];
