//! Samples of the TLS session with the server, manual 7.3.4.

use crate::args::ArgKind::{DnFormat, Int, Text};
use crate::facts::Side;
use crate::fetch::connection::is;
use crate::fetch::{Fetch, NO_ARGS, args, row, tls};
use crate::phase::Phases;
use crate::value::SampleKind;

const SERVER_SIDE: Phases = Phases::SERVER_SIDE;
const SESSION: Phases = Phases::SESSION;

/// The rows of this family, in alphabetical order.
#[rustfmt::skip] // What belongs together stands on one line.
pub(super) const ROWS: &[Fetch] = &[
    row("ssl_bc", NO_ARGS, SampleKind::Bool, SERVER_SIDE)
        .implemented("whether the server is reached over TLS", |cx, _| is(cx, Side::Server, |to| to.is_tls())),
    row("ssl_bc_alg_keysize", NO_ARGS, SampleKind::Int, SERVER_SIDE)
        .implemented("bits of the key of the cipher towards the server", |cx, _| tls::session_value(cx, Side::Server, tls::key_bits)),
    row("ssl_bc_alpn", NO_ARGS, SampleKind::Str, SERVER_SIDE)
        .implemented(
            "the protocol agreed on with the server by ALPN",
            |cx, _| tls::session_value(cx, Side::Server, |it| tls::text(it.protocol())),
        ),
    row("ssl_bc_cipher", NO_ARGS, SampleKind::Str, SERVER_SIDE)
        .implemented("OpenSSL's name of the cipher towards the server", |cx, _| tls::session_value(cx, Side::Server, tls::cipher)),
    row("ssl_bc_client_early_traffic_secret", NO_ARGS, SampleKind::Str, SESSION)
        .implemented(
            "a secret of the session with the server, with tune.ssl.keylog on: CLIENT_EARLY_TRAFFIC_SECRET",
            |cx, _| tls::secret(cx, Side::Server, "CLIENT_EARLY_TRAFFIC_SECRET"),
        ),
    row("ssl_bc_client_handshake_traffic_secret", NO_ARGS, SampleKind::Str, SESSION)
        .implemented(
            "a secret of the session with the server, with tune.ssl.keylog on: CLIENT_HANDSHAKE_TRAFFIC_SECRET",
            |cx, _| tls::secret(cx, Side::Server, "CLIENT_HANDSHAKE_TRAFFIC_SECRET"),
        ),
    row("ssl_bc_client_random", NO_ARGS, SampleKind::Bin, SERVER_SIDE)
        .implemented(
            "the random of the client's hello in the session with the server",
            |cx, _| tls::session_value(cx, Side::Server, |it| tls::bytes(it.random(Side::Client))),
        ),
    row("ssl_bc_client_traffic_secret_0", NO_ARGS, SampleKind::Str, SESSION)
        .implemented(
            "a secret of the session with the server, with tune.ssl.keylog on: CLIENT_TRAFFIC_SECRET_0",
            |cx, _| tls::secret(cx, Side::Server, "CLIENT_TRAFFIC_SECRET_0"),
        ),
    row("ssl_bc_curve", NO_ARGS, SampleKind::Str, SERVER_SIDE)
        .implemented(
            "the group of the key exchange with the server; none in a TLS 1.2 session that is resumed",
            |cx, _| tls::session_value(cx, Side::Server, tls::curve),
        ),
    row("ssl_bc_early_exporter_secret", NO_ARGS, SampleKind::Str, SESSION)
        .refused(tls::NO_EARLY_EXPORTER),
    row("ssl_bc_err", NO_ARGS, SampleKind::Int, SERVER_SIDE)
        .implemented(
            "OpenSSL's number of what went wrong with TLS towards the server; 0 for nothing",
            |cx, _| tls::session_value(cx, Side::Server, tls::error),
        ),
    row("ssl_bc_err_str", NO_ARGS, SampleKind::Str, SERVER_SIDE)
        .implemented(
            "what went wrong with TLS towards the server, in OpenSSL's words",
            |cx, _| tls::error_text(cx, Side::Server),
        ),
    row("ssl_bc_exporter_secret", NO_ARGS, SampleKind::Str, SESSION)
        .implemented(
            "a secret of the session with the server, with tune.ssl.keylog on: EXPORTER_SECRET",
            |cx, _| tls::secret(cx, Side::Server, "EXPORTER_SECRET"),
        ),
    row("ssl_bc_is_resumed", NO_ARGS, SampleKind::Bool, SERVER_SIDE)
        .implemented(
            "whether the session with the server is a former one",
            |cx, _| tls::is(cx, Side::Server, |it| it.is_resumed()),
        ),
    row("ssl_bc_npn", NO_ARGS, SampleKind::Str, SERVER_SIDE)
        .implemented("the protocol agreed on with the server by NPN: never any, as ALPN has replaced it", |_, _| None),
    row("ssl_bc_protocol", NO_ARGS, SampleKind::Str, SERVER_SIDE)
        .implemented("the version of TLS towards the server", |cx, _| tls::session_value(cx, Side::Server, tls::protocol)),
    row("ssl_bc_server_handshake_traffic_secret", NO_ARGS, SampleKind::Str, SESSION)
        .implemented(
            "a secret of the session with the server, with tune.ssl.keylog on: SERVER_HANDSHAKE_TRAFFIC_SECRET",
            |cx, _| tls::secret(cx, Side::Server, "SERVER_HANDSHAKE_TRAFFIC_SECRET"),
        ),
    row("ssl_bc_server_random", NO_ARGS, SampleKind::Bin, SERVER_SIDE)
        .implemented(
            "the random of the server's hello in the session with the server",
            |cx, _| tls::session_value(cx, Side::Server, |it| tls::bytes(it.random(Side::Server))),
        ),
    row("ssl_bc_server_traffic_secret_0", NO_ARGS, SampleKind::Str, SESSION)
        .implemented(
            "a secret of the session with the server, with tune.ssl.keylog on: SERVER_TRAFFIC_SECRET_0",
            |cx, _| tls::secret(cx, Side::Server, "SERVER_TRAFFIC_SECRET_0"),
        ),
    row("ssl_bc_session_id", NO_ARGS, SampleKind::Bin, SERVER_SIDE)
        .implemented(
            "the id of the session with the server; in TLS 1.3, which has none, the server random",
            |cx, _| tls::session_value(cx, Side::Server, |it| tls::bytes(it.session_id())),
        ),
    row("ssl_bc_session_key", NO_ARGS, SampleKind::Bin, SERVER_SIDE)
        .refused(tls::NO_SESSION_KEY),
    row("ssl_bc_sni", NO_ARGS, SampleKind::Str, SERVER_SIDE)
        .implemented(
            "the host name that the server was sent",
            |cx, _| tls::session_value(cx, Side::Server, |it| tls::text(it.server_name())),
        ),
    row("ssl_bc_unique_id", NO_ARGS, SampleKind::Bin, SERVER_SIDE)
        .refused(tls::NO_UNIQUE_ID),
    row("ssl_bc_use_keysize", NO_ARGS, SampleKind::Int, SERVER_SIDE)
        .implemented(
            "bits that are used of the key of the cipher towards the server",
            |cx, _| tls::session_value(cx, Side::Server, tls::key_bits),
        ),
    row("ssl_s_chain_der", NO_ARGS, SampleKind::Bin, SESSION)
        .implemented(
            "the certificates that the server sent, its own first, DER; none in a session that is resumed",
            |cx, _| tls::chain(cx, Side::Server, 0),
        ),
    row("ssl_s_der", NO_ARGS, SampleKind::Bin, SESSION)
        .implemented("the server's certificate, DER", |cx, _| tls::der(cx, tls::SERVER)),
    row("ssl_s_i_dn", args(0, &[Text, Int, DnFormat]), SampleKind::Str, SESSION)
        .examples("ssl_s_i_dn(CN,1,rfc2253)", "ssl_s_i_dn(CN,1,x)")
        .implemented(
            "the issuer of the server's certificate, or an entry of it: its name, which, format",
            |cx, args| tls::issuer(cx, tls::SERVER, args),
        ),
    row("ssl_s_key_alg", NO_ARGS, SampleKind::Str, SESSION)
        .implemented(
            "the algorithm of the key of the server's certificate",
            |cx, _| tls::certificate_text(cx, tls::SERVER, |it| it.key_algorithm()),
        ),
    row("ssl_s_notafter", NO_ARGS, SampleKind::Str, SESSION)
        .implemented(
            "when the time of the server's certificate ends: YYMMDDhhmmssZ",
            |cx, _| tls::certificate_text(cx, tls::SERVER, |it| it.not_after()),
        ),
    row("ssl_s_notbefore", NO_ARGS, SampleKind::Str, SESSION)
        .implemented(
            "when the time of the server's certificate begins: YYMMDDhhmmssZ",
            |cx, _| tls::certificate_text(cx, tls::SERVER, |it| it.not_before()),
        ),
    row("ssl_s_s_dn", args(0, &[Text, Int, DnFormat]), SampleKind::Str, SESSION)
        .examples("ssl_s_s_dn(CN,1,rfc2253)", "ssl_s_s_dn(CN,1,x)")
        .implemented(
            "the subject of the server's certificate, or an entry of it: its name, which, format",
            |cx, args| tls::subject(cx, tls::SERVER, args),
        ),
    row("ssl_s_serial", NO_ARGS, SampleKind::Bin, SESSION)
        .implemented("the serial number of the server's certificate", |cx, _| tls::serial(cx, tls::SERVER)),
    row("ssl_s_sha1", NO_ARGS, SampleKind::Bin, SESSION)
        .implemented("the SHA-1 of the server's certificate", |cx, _| tls::certificate_sha1(cx, tls::SERVER)),
    row("ssl_s_sig_alg", NO_ARGS, SampleKind::Str, SESSION)
        .implemented(
            "the algorithm of the signature of the server's certificate",
            |cx, _| tls::certificate_text(cx, tls::SERVER, |it| it.signature_algorithm()),
        ),
    row("ssl_s_version", NO_ARGS, SampleKind::Int, SESSION)
        .implemented("the version of the server's certificate", |cx, _| tls::certificate_version(cx, tls::SERVER)),
];
