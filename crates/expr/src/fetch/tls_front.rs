//! Samples of the TLS session with the client, manual 7.3.4.

use xxhash_rust::xxh64::xxh64;

use crate::args::Arg;
use crate::args::ArgKind::{DnFormat, Int, Text};
use crate::evaluation::Evaluation;
use crate::facts::{CertificateOwner, Side, TlsSessionFacts};
use crate::fetch::connection::is;
use crate::fetch::{Fetch, NO_ARGS, args, int_sample, row, tls};
use crate::phase::Phases;
use crate::value::{Sample, SampleKind};

const SESSION: Phases = Phases::SESSION;

/// The rows of this family, in alphabetical order.
#[rustfmt::skip] // What belongs together stands on one line.
pub(super) const ROWS: &[Fetch] = &[
    row("ssl_c_ca_err", NO_ARGS, SampleKind::Int, SESSION)
        .implemented(
            "the first error above the client's certificate, OpenSSL's number; 0 for none",
            |cx, _| tls::session_value(cx, Side::Client, |it| int_sample(it.verification().authority_error)),
        ),
    row("ssl_c_ca_err_depth", NO_ARGS, SampleKind::Int, SESSION)
        .implemented(
            "how far above the client's certificate the first error was",
            |cx, _| tls::session_value(cx, Side::Client, |it| int_sample(it.verification().authority_depth)),
        ),
    row("ssl_c_chain_der", NO_ARGS, SampleKind::Bin, SESSION)
        .implemented(
            "the certificates that the client sent behind its own, DER; none in a session that is resumed",
            |cx, _| tls::chain(cx, Side::Client, 1),
        ),
    row("ssl_c_der", NO_ARGS, SampleKind::Bin, SESSION)
        .implemented("the client's certificate, DER", |cx, _| tls::der(cx, tls::CLIENT)),
    row("ssl_c_err", NO_ARGS, SampleKind::Int, SESSION)
        .implemented(
            "the first error of the client's certificate, OpenSSL's number; 0 for none",
            |cx, _| tls::session_value(cx, Side::Client, |it| int_sample(it.verification().leaf_error)),
        ),
    row("ssl_c_i_dn", args(0, &[Text, Int, DnFormat]), SampleKind::Str, SESSION)
        .examples("ssl_c_i_dn(CN,1,rfc2253)", "ssl_c_i_dn(CN,1,x)")
        .implemented(
            "the issuer of the client's certificate, or an entry of it: its name, which, format",
            |cx, args| tls::issuer(cx, tls::CLIENT, args),
        ),
    row("ssl_c_key_alg", NO_ARGS, SampleKind::Str, SESSION)
        .implemented(
            "the algorithm of the key of the client's certificate",
            |cx, _| tls::certificate_text(cx, tls::CLIENT, |it| it.key_algorithm()),
        ),
    row("ssl_c_notafter", NO_ARGS, SampleKind::Str, SESSION)
        .implemented(
            "when the time of the client's certificate ends: YYMMDDhhmmssZ",
            |cx, _| tls::certificate_text(cx, tls::CLIENT, |it| it.not_after()),
        ),
    row("ssl_c_notbefore", NO_ARGS, SampleKind::Str, SESSION)
        .implemented(
            "when the time of the client's certificate begins: YYMMDDhhmmssZ",
            |cx, _| tls::certificate_text(cx, tls::CLIENT, |it| it.not_before()),
        ),
    row("ssl_c_policies", args(0, &[Text]), SampleKind::Str, SESSION)
        .refused(tls::LATER_THAN_3_2),
    row("ssl_c_r_dn", args(0, &[Text, Int, DnFormat]), SampleKind::Str, SESSION)
        .examples("ssl_c_r_dn(CN,1,rfc2253)", "ssl_c_r_dn(CN,1,x)")
        .implemented(
            "the subject of the root of the client's certificate, or an entry of it: its name, which, format",
            |cx, args| tls::subject(cx, tls::CLIENT_ROOT, args),
        ),
    row("ssl_c_s_dn", args(0, &[Text, Int, DnFormat]), SampleKind::Str, SESSION)
        .examples("ssl_c_s_dn(CN,1,rfc2253)", "ssl_c_s_dn(CN,1,x)")
        .implemented(
            "the subject of the client's certificate, or an entry of it: its name, which, format",
            |cx, args| tls::subject(cx, tls::CLIENT, args),
        ),
    row("ssl_c_san", NO_ARGS, SampleKind::Str, SESSION)
        .implemented(
            "the alternative names of the client's certificate, separated by commas",
            |cx, _| tls::text(tls::certificate(cx, tls::CLIENT)?.alternative_names()),
        ),
    row("ssl_c_serial", NO_ARGS, SampleKind::Bin, SESSION)
        .implemented("the serial number of the client's certificate", |cx, _| tls::serial(cx, tls::CLIENT)),
    row("ssl_c_sha1", NO_ARGS, SampleKind::Bin, SESSION)
        .implemented("the SHA-1 of the client's certificate", |cx, _| tls::certificate_sha1(cx, tls::CLIENT)),
    row("ssl_c_sig_alg", NO_ARGS, SampleKind::Str, SESSION)
        .implemented(
            "the algorithm of the signature of the client's certificate",
            |cx, _| tls::certificate_text(cx, tls::CLIENT, |it| it.signature_algorithm()),
        ),
    row("ssl_c_used", NO_ARGS, SampleKind::Bool, SESSION)
        .implemented(
            "whether the session has a certificate of the client",
            |cx, _| tls::session_value(cx, Side::Client, |it| has_certificate(it, true)),
        ),
    row("ssl_c_verify", NO_ARGS, SampleKind::Int, SESSION)
        .implemented(
            "the result of the check of the client's certificate, OpenSSL's number; 0 for success",
            |cx, _| tls::session_value(cx, Side::Client, |it| int_sample(it.verification().result?)),
        ),
    row("ssl_c_version", NO_ARGS, SampleKind::Int, SESSION)
        .implemented("the version of the client's certificate", |cx, _| tls::certificate_version(cx, tls::CLIENT)),
    row("ssl_f_der", NO_ARGS, SampleKind::Bin, SESSION)
        .implemented("our certificate, DER", |cx, _| tls::der(cx, tls::FRONTEND)),
    row("ssl_f_i_dn", args(0, &[Text, Int, DnFormat]), SampleKind::Str, SESSION)
        .examples("ssl_f_i_dn(CN,1,rfc2253)", "ssl_f_i_dn(CN,1,x)")
        .implemented(
            "the issuer of our certificate, or an entry of it: its name, which, format",
            |cx, args| tls::issuer(cx, tls::FRONTEND, args),
        ),
    row("ssl_f_key_alg", NO_ARGS, SampleKind::Str, SESSION)
        .implemented(
            "the algorithm of the key of our certificate",
            |cx, _| tls::certificate_text(cx, tls::FRONTEND, |it| it.key_algorithm()),
        ),
    row("ssl_f_notafter", NO_ARGS, SampleKind::Str, SESSION)
        .implemented(
            "when the time of our certificate ends: YYMMDDhhmmssZ",
            |cx, _| tls::certificate_text(cx, tls::FRONTEND, |it| it.not_after()),
        ),
    row("ssl_f_notbefore", NO_ARGS, SampleKind::Str, SESSION)
        .implemented(
            "when the time of our certificate begins: YYMMDDhhmmssZ",
            |cx, _| tls::certificate_text(cx, tls::FRONTEND, |it| it.not_before()),
        ),
    row("ssl_f_s_dn", args(0, &[Text, Int, DnFormat]), SampleKind::Str, SESSION)
        .examples("ssl_f_s_dn(CN,1,rfc2253)", "ssl_f_s_dn(CN,1,x)")
        .implemented(
            "the subject of our certificate, or an entry of it: its name, which, format",
            |cx, args| tls::subject(cx, tls::FRONTEND, args),
        ),
    row("ssl_f_serial", NO_ARGS, SampleKind::Bin, SESSION)
        .implemented("the serial number of our certificate", |cx, _| tls::serial(cx, tls::FRONTEND)),
    row("ssl_f_sha1", NO_ARGS, SampleKind::Bin, SESSION)
        .implemented("the SHA-1 of our certificate", |cx, _| tls::certificate_sha1(cx, tls::FRONTEND)),
    row("ssl_f_sig_alg", NO_ARGS, SampleKind::Str, SESSION)
        .implemented(
            "the algorithm of the signature of our certificate",
            |cx, _| tls::certificate_text(cx, tls::FRONTEND, |it| it.signature_algorithm()),
        ),
    row("ssl_f_version", NO_ARGS, SampleKind::Int, SESSION)
        .implemented("the version of our certificate", |cx, _| tls::certificate_version(cx, tls::FRONTEND)),
    row("ssl_fc", NO_ARGS, SampleKind::Bool, SESSION)
        .implemented("whether the client came over TLS", |cx, _| is(cx, Side::Client, |from| from.is_tls())),
    row("ssl_fc_alg_keysize", NO_ARGS, SampleKind::Int, SESSION)
        .implemented("bits of the key of the cipher towards the client", |cx, _| tls::session_value(cx, Side::Client, tls::key_bits)),
    row("ssl_fc_alpn", NO_ARGS, SampleKind::Str, SESSION)
        .implemented(
            "the protocol agreed on with the client by ALPN",
            |cx, _| tls::session_value(cx, Side::Client, |it| tls::text(it.protocol())),
        ),
    row("ssl_fc_cipher", NO_ARGS, SampleKind::Str, SESSION)
        .implemented("OpenSSL's name of the cipher towards the client", |cx, _| tls::session_value(cx, Side::Client, tls::cipher)),
    row("ssl_fc_cipherlist_bin", args(0, &[Int]), SampleKind::Str, SESSION)
        .examples("ssl_fc_cipherlist_bin(1)", "ssl_fc_cipherlist_bin(x)")
        .implemented(
            "the cipher suites that the client offered; 1: without GREASE",
            |cx, args| tls::offered(cx, args, |hello| hello.ciphers),
        ),
    row("ssl_fc_cipherlist_hex", args(0, &[Int]), SampleKind::Bin, SESSION)
        .examples("ssl_fc_cipherlist_hex(1)", "ssl_fc_cipherlist_hex(x)")
        .implemented("the cipher suites that the client offered, in hexadecimal digits; 1: without GREASE", tls::ciphers_hex),
    row("ssl_fc_cipherlist_str", args(0, &[Int]), SampleKind::Str, SESSION)
        .examples("ssl_fc_cipherlist_str(1)", "ssl_fc_cipherlist_str(x)")
        .implemented("the cipher suites that the client offered, by their names; 1: without GREASE", tls::cipher_names),
    row("ssl_fc_cipherlist_xxh", NO_ARGS, SampleKind::Int, SESSION)
        .implemented("the hash XXH64 of the cipher suites that the client offered", ciphers_hash),
    row("ssl_fc_client_early_traffic_secret", NO_ARGS, SampleKind::Str, SESSION)
        .implemented(
            "a secret of the session with the client, with tune.ssl.keylog on: CLIENT_EARLY_TRAFFIC_SECRET",
            |cx, _| tls::secret(cx, Side::Client, "CLIENT_EARLY_TRAFFIC_SECRET"),
        ),
    row("ssl_fc_client_handshake_traffic_secret", NO_ARGS, SampleKind::Str, SESSION)
        .implemented(
            "a secret of the session with the client, with tune.ssl.keylog on: CLIENT_HANDSHAKE_TRAFFIC_SECRET",
            |cx, _| tls::secret(cx, Side::Client, "CLIENT_HANDSHAKE_TRAFFIC_SECRET"),
        ),
    row("ssl_fc_client_random", NO_ARGS, SampleKind::Bin, SESSION)
        .implemented(
            "the random of the client's hello in the session with the client",
            |cx, _| tls::session_value(cx, Side::Client, |it| tls::bytes(it.random(Side::Client))),
        ),
    row("ssl_fc_client_traffic_secret_0", NO_ARGS, SampleKind::Str, SESSION)
        .implemented(
            "a secret of the session with the client, with tune.ssl.keylog on: CLIENT_TRAFFIC_SECRET_0",
            |cx, _| tls::secret(cx, Side::Client, "CLIENT_TRAFFIC_SECRET_0"),
        ),
    row("ssl_fc_crtname", NO_ARGS, SampleKind::Str, SESSION)
        .refused(tls::LATER_THAN_3_2),
    row("ssl_fc_curve", NO_ARGS, SampleKind::Str, SESSION)
        .implemented(
            "the group of the key exchange with the client; none in a TLS 1.2 session that is resumed",
            |cx, _| tls::session_value(cx, Side::Client, tls::curve),
        ),
    row("ssl_fc_early_exporter_secret", NO_ARGS, SampleKind::Str, SESSION)
        .refused(tls::NO_EARLY_EXPORTER),
    row("ssl_fc_early_rcvd", NO_ARGS, SampleKind::Bool, SESSION)
        .implemented(
            "whether the client sent early data",
            |cx, _| tls::session_value(cx, Side::Client, |it| Some(Sample::Bool(it.received_early_data()))),
        ),
    row("ssl_fc_ecformats_bin", NO_ARGS, SampleKind::Str, SESSION)
        .implemented(
            "the formats of points that the client offered",
            |cx, _| tls::bytes(Some(tls::hello(cx)?.point_formats)),
        ),
    row("ssl_fc_eclist_bin", args(0, &[Int]), SampleKind::Str, SESSION)
        .examples("ssl_fc_eclist_bin(1)", "ssl_fc_eclist_bin(x)")
        .implemented(
            "the groups that the client offered; 1: without GREASE",
            |cx, args| tls::offered(cx, args, |hello| hello.groups),
        ),
    row("ssl_fc_err", NO_ARGS, SampleKind::Int, SESSION)
        .implemented(
            "OpenSSL's number of what went wrong with TLS towards the client; 0 for nothing",
            |cx, _| tls::session_value(cx, Side::Client, tls::error),
        ),
    row("ssl_fc_err_str", NO_ARGS, SampleKind::Str, SESSION)
        .implemented(
            "what went wrong with TLS towards the client, in OpenSSL's words",
            |cx, _| tls::error_text(cx, Side::Client),
        ),
    row("ssl_fc_exporter_secret", NO_ARGS, SampleKind::Str, SESSION)
        .implemented(
            "a secret of the session with the client, with tune.ssl.keylog on: EXPORTER_SECRET",
            |cx, _| tls::secret(cx, Side::Client, "EXPORTER_SECRET"),
        ),
    row("ssl_fc_extlist_bin", args(0, &[Int]), SampleKind::Str, SESSION)
        .examples("ssl_fc_extlist_bin(1)", "ssl_fc_extlist_bin(x)")
        .implemented(
            "the numbers of the extensions that the client offered; 1: without GREASE",
            |cx, args| tls::offered(cx, args, |hello| hello.extensions),
        ),
    row("ssl_fc_has_crt", NO_ARGS, SampleKind::Bool, SESSION)
        .implemented(
            "whether the client showed a certificate in this handshake",
            |cx, _| tls::session_value(cx, Side::Client, |it| has_certificate(it, !it.is_resumed())),
        ),
    row("ssl_fc_has_early", NO_ARGS, SampleKind::Bool, SESSION)
        .implemented(
            "whether there are early data and the handshake is not over",
            |cx, _| tls::session_value(cx, Side::Client, |it| Some(Sample::Bool(it.has_early_data()))),
        ),
    row("ssl_fc_has_sni", NO_ARGS, SampleKind::Bool, SESSION)
        .implemented(
            "whether the client sent a host name",
            |cx, _| tls::is(cx, Side::Client, |it| it.server_name().is_some()),
        ),
    row("ssl_fc_is_resumed", NO_ARGS, SampleKind::Bool, SESSION)
        .implemented(
            "whether the session with the client is a former one",
            |cx, _| tls::is(cx, Side::Client, |it| it.is_resumed()),
        ),
    row("ssl_fc_npn", NO_ARGS, SampleKind::Str, SESSION)
        .implemented("the protocol agreed on with the client by NPN: never any, as ALPN has replaced it", |_, _| None),
    row("ssl_fc_protocol", NO_ARGS, SampleKind::Str, SESSION)
        .implemented("the version of TLS towards the client", |cx, _| tls::session_value(cx, Side::Client, tls::protocol)),
    row("ssl_fc_protocol_hello_id", NO_ARGS, SampleKind::Int, SESSION)
        .implemented("the version in the head of the client's hello", |cx, _| int_sample(i64::from(tls::hello(cx)?.version))),
    row("ssl_fc_server_handshake_traffic_secret", NO_ARGS, SampleKind::Str, SESSION)
        .implemented(
            "a secret of the session with the client, with tune.ssl.keylog on: SERVER_HANDSHAKE_TRAFFIC_SECRET",
            |cx, _| tls::secret(cx, Side::Client, "SERVER_HANDSHAKE_TRAFFIC_SECRET"),
        ),
    row("ssl_fc_server_random", NO_ARGS, SampleKind::Bin, SESSION)
        .implemented(
            "the random of the server's hello in the session with the client",
            |cx, _| tls::session_value(cx, Side::Client, |it| tls::bytes(it.random(Side::Server))),
        ),
    row("ssl_fc_server_traffic_secret_0", NO_ARGS, SampleKind::Str, SESSION)
        .implemented(
            "a secret of the session with the client, with tune.ssl.keylog on: SERVER_TRAFFIC_SECRET_0",
            |cx, _| tls::secret(cx, Side::Client, "SERVER_TRAFFIC_SECRET_0"),
        ),
    row("ssl_fc_session_id", NO_ARGS, SampleKind::Bin, SESSION)
        .implemented(
            "the id of the session with the client; in TLS 1.3, which has none, the server random",
            |cx, _| tls::session_value(cx, Side::Client, |it| tls::bytes(it.session_id())),
        ),
    row("ssl_fc_session_key", NO_ARGS, SampleKind::Bin, SESSION)
        .refused(tls::NO_SESSION_KEY),
    row("ssl_fc_sigalgs_bin", args(0, &[Int]), SampleKind::Bin, SESSION)
        .examples("ssl_fc_sigalgs_bin(1)", "ssl_fc_sigalgs_bin(x)")
        .implemented(
            "the signature schemes that the client offered; 1: without GREASE",
            |cx, args| tls::offered(cx, args, |hello| hello.signature_schemes),
        ),
    row("ssl_fc_sni", NO_ARGS, SampleKind::Str, SESSION)
        .implemented(
            "the host name that the client sent",
            |cx, _| tls::session_value(cx, Side::Client, |it| tls::text(it.server_name())),
        ),
    row("ssl_fc_supported_versions_bin", args(0, &[Int]), SampleKind::Bin, SESSION)
        .examples("ssl_fc_supported_versions_bin(1)", "ssl_fc_supported_versions_bin(x)")
        .implemented(
            "the versions that the client offered; 1: without GREASE",
            |cx, args| tls::offered(cx, args, |hello| hello.versions),
        ),
    row("ssl_fc_unique_id", NO_ARGS, SampleKind::Bin, SESSION)
        .refused(tls::NO_UNIQUE_ID),
    row("ssl_fc_use_keysize", NO_ARGS, SampleKind::Int, SESSION)
        .implemented(
            "bits that are used of the key of the cipher towards the client",
            |cx, _| tls::session_value(cx, Side::Client, tls::key_bits),
        ),
];

/// Whether there is a certificate of the client, where it counts.
fn has_certificate(tls: &dyn TlsSessionFacts, counts: bool) -> Option<Sample<'static>> {
    let has_one = counts && tls.certificate(CertificateOwner::Peer).is_some();
    Some(Sample::Bool(has_one))
}

fn ciphers_hash<'f>(cx: &mut Evaluation<'f, '_>, _: &'f [Arg]) -> Option<Sample<'f>> {
    let hash = xxh64(tls::hello(cx)?.all_ciphers, 0);
    Some(Sample::Int(hash.cast_signed()))
}
