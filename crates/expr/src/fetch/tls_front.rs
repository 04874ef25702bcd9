//! Samples of the TLS session with the client, manual 7.3.4.

use crate::args::ArgKind::{Int, Text};
use crate::facts::Side;
use crate::fetch::connection::is;
use crate::fetch::{Fetch, NONE, args, row};
use crate::phase::Phases;
use crate::value::SampleKind;

const SESSION: Phases = Phases::SESSION;

/// The rows of this family, in alphabetical order.
#[rustfmt::skip] // What belongs together stands on one line.
pub(super) const ROWS: &[Fetch] = &[
    row("ssl_c_ca_err", NONE, SampleKind::Int, SESSION),
    row("ssl_c_ca_err_depth", NONE, SampleKind::Int, SESSION),
    row("ssl_c_chain_der", NONE, SampleKind::Bin, SESSION),
    row("ssl_c_der", NONE, SampleKind::Bin, SESSION),
    row("ssl_c_err", NONE, SampleKind::Int, SESSION),
    row("ssl_c_i_dn", args(0, &[Text, Int, Text]), SampleKind::Str, SESSION),
    row("ssl_c_key_alg", NONE, SampleKind::Str, SESSION),
    row("ssl_c_notafter", NONE, SampleKind::Str, SESSION),
    row("ssl_c_notbefore", NONE, SampleKind::Str, SESSION),
    row("ssl_c_policies", args(0, &[Text]), SampleKind::Str, SESSION),
    row("ssl_c_r_dn", args(0, &[Text, Int, Text]), SampleKind::Str, SESSION),
    row("ssl_c_s_dn", args(0, &[Text, Int, Text]), SampleKind::Str, SESSION),
    row("ssl_c_san", NONE, SampleKind::Str, SESSION),
    row("ssl_c_serial", NONE, SampleKind::Bin, SESSION),
    row("ssl_c_sha1", NONE, SampleKind::Bin, SESSION),
    row("ssl_c_sig_alg", NONE, SampleKind::Str, SESSION),
    row("ssl_c_used", NONE, SampleKind::Bool, SESSION),
    row("ssl_c_verify", NONE, SampleKind::Int, SESSION),
    row("ssl_c_version", NONE, SampleKind::Int, SESSION),
    row("ssl_f_der", NONE, SampleKind::Bin, SESSION),
    row("ssl_f_i_dn", args(0, &[Text, Int, Text]), SampleKind::Str, SESSION),
    row("ssl_f_key_alg", NONE, SampleKind::Str, SESSION),
    row("ssl_f_notafter", NONE, SampleKind::Str, SESSION),
    row("ssl_f_notbefore", NONE, SampleKind::Str, SESSION),
    row("ssl_f_s_dn", args(0, &[Text, Int, Text]), SampleKind::Str, SESSION),
    row("ssl_f_serial", NONE, SampleKind::Bin, SESSION),
    row("ssl_f_sha1", NONE, SampleKind::Bin, SESSION),
    row("ssl_f_sig_alg", NONE, SampleKind::Str, SESSION),
    row("ssl_f_version", NONE, SampleKind::Int, SESSION),
    row("ssl_fc", NONE, SampleKind::Bool, SESSION)
        .gives("whether the client came over TLS", |cx, _| is(cx, Side::Client, |to| to.is_tls())),
    row("ssl_fc_alg_keysize", NONE, SampleKind::Int, SESSION),
    row("ssl_fc_alpn", NONE, SampleKind::Str, SESSION),
    row("ssl_fc_cipher", NONE, SampleKind::Str, SESSION),
    row("ssl_fc_cipherlist_bin", args(0, &[Int]), SampleKind::Str, SESSION),
    row("ssl_fc_cipherlist_hex", args(0, &[Int]), SampleKind::Bin, SESSION),
    row("ssl_fc_cipherlist_str", args(0, &[Int]), SampleKind::Str, SESSION),
    row("ssl_fc_cipherlist_xxh", NONE, SampleKind::Int, SESSION),
    row("ssl_fc_client_early_traffic_secret", NONE, SampleKind::Str, SESSION),
    row("ssl_fc_client_handshake_traffic_secret", NONE, SampleKind::Str, SESSION),
    row("ssl_fc_client_random", NONE, SampleKind::Bin, SESSION),
    row("ssl_fc_client_traffic_secret_0", NONE, SampleKind::Str, SESSION),
    row("ssl_fc_crtname", NONE, SampleKind::Str, SESSION),
    row("ssl_fc_curve", NONE, SampleKind::Str, SESSION),
    row("ssl_fc_early_exporter_secret", NONE, SampleKind::Str, SESSION),
    row("ssl_fc_early_rcvd", NONE, SampleKind::Bool, SESSION),
    row("ssl_fc_ecformats_bin", NONE, SampleKind::Str, SESSION),
    row("ssl_fc_eclist_bin", args(0, &[Int]), SampleKind::Str, SESSION),
    row("ssl_fc_err", NONE, SampleKind::Int, SESSION),
    row("ssl_fc_err_str", NONE, SampleKind::Str, SESSION),
    row("ssl_fc_exporter_secret", NONE, SampleKind::Str, SESSION),
    row("ssl_fc_extlist_bin", args(0, &[Int]), SampleKind::Str, SESSION),
    row("ssl_fc_has_crt", NONE, SampleKind::Bool, SESSION),
    row("ssl_fc_has_early", NONE, SampleKind::Bool, SESSION),
    row("ssl_fc_has_sni", NONE, SampleKind::Bool, SESSION),
    row("ssl_fc_is_resumed", NONE, SampleKind::Bool, SESSION),
    row("ssl_fc_npn", NONE, SampleKind::Str, SESSION),
    row("ssl_fc_protocol", NONE, SampleKind::Str, SESSION),
    row("ssl_fc_protocol_hello_id", NONE, SampleKind::Int, SESSION),
    row("ssl_fc_server_handshake_traffic_secret", NONE, SampleKind::Str, SESSION),
    row("ssl_fc_server_random", NONE, SampleKind::Bin, SESSION),
    row("ssl_fc_server_traffic_secret_0", NONE, SampleKind::Str, SESSION),
    row("ssl_fc_session_id", NONE, SampleKind::Bin, SESSION),
    row("ssl_fc_session_key", NONE, SampleKind::Bin, SESSION),
    row("ssl_fc_sigalgs_bin", args(0, &[Int]), SampleKind::Bin, SESSION),
    row("ssl_fc_sni", NONE, SampleKind::Str, SESSION),
    row("ssl_fc_supported_versions_bin", args(0, &[Int]), SampleKind::Bin, SESSION),
    row("ssl_fc_unique_id", NONE, SampleKind::Bin, SESSION),
    row("ssl_fc_use_keysize", NONE, SampleKind::Int, SESSION),
];
