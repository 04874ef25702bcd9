//! TLS words of server lines: they are checked, but not implemented.

use ballast_syntax::Diagnostic;

use crate::args::Args;
use crate::context::Context;
use crate::draft::ServerDraft;
use crate::keyword::{Row, Sections};
use crate::tls_words as tls;

type R = Row<ServerDraft>;

const S: Sections = Sections::SERVER;
const FEATURE: &str = "TLS";

/// The rows. Words that turn off TLS or a part of it are honoured.
pub(super) const ROWS: &[R] = &[
    R::new("allow-0rtt", S, "", "sends early data", tls::none).later(FEATURE),
    R::new(
        "alpn",
        S,
        "<protocols>",
        "protocols offered to the server",
        tls::text,
    )
    .examples("alpn h2,http/1.1", "alpn")
    .later(FEATURE),
    R::new(
        "ca-file",
        S,
        "<cafile>",
        "authorities the server's certificate must come from",
        ca,
    )
    .examples("ca-file ca.pem", "ca-file")
    .later(FEATURE),
    R::new(
        "ciphers",
        S,
        "<ciphers>",
        "cipher suites up to TLS 1.2",
        tls::ciphers,
    )
    .examples("ciphers ECDHE-RSA-AES128-GCM-SHA256", "ciphers")
    .later(FEATURE),
    R::new(
        "ciphersuites",
        S,
        "<ciphersuites>",
        "cipher suites of TLS 1.3",
        tls::text,
    )
    .examples("ciphersuites TLS_AES_128_GCM_SHA256", "ciphersuites")
    .later(FEATURE),
    R::new(
        "client-sigalgs",
        S,
        "<sigalgs>",
        "signature algorithms for client certificates",
        tls::text,
    )
    .examples("client-sigalgs RSA+SHA256", "client-sigalgs")
    .later(FEATURE),
    R::new("crl-file", S, "<crlfile>", "revoked certificates", ca)
        .examples("crl-file crl.pem", "crl-file")
        .later(FEATURE),
    R::new("crt", S, "<cert>", "certificate shown to the server", crt)
        .examples("crt client.pem", "crt")
        .later(FEATURE),
    R::new("curves", S, "<curves>", "key exchange groups", tls::text)
        .examples("curves X25519", "curves")
        .later(FEATURE),
    R::new("force-sslv3", S, "", "only SSLv3", tls::none).refused(
        "asks for a protocol that is broken and not built in",
        "ssl-min-ver TLSv1.2",
    ),
    R::new("force-tlsv10", S, "", "only TLS 1.0", tls::none).later(FEATURE),
    R::new("force-tlsv11", S, "", "only TLS 1.1", tls::none).later(FEATURE),
    R::new("force-tlsv12", S, "", "only TLS 1.2", tls::none).later(FEATURE),
    R::new("force-tlsv13", S, "", "only TLS 1.3", tls::none).later(FEATURE),
    R::new(
        "ktls",
        S,
        "on | off",
        "lets the kernel encrypt",
        tls::on_off,
    )
    .examples("ktls on", "ktls maybe")
    .later(FEATURE),
    R::new("no-renegotiate", S, "", "refuses renegotiation", tls::none)
        .noted("renegotiation is not built in"),
    R::new("no-sni-auto", S, "", "undoes sni-auto", tls::none),
    R::new("no-ssl", S, "", "undoes ssl", |one, _, _| {
        one.ssl = false;
        Ok(())
    }),
    R::new("no-ssl-reuse", S, "", "resumes no session", tls::none).later(FEATURE),
    R::new("no-sslv3", S, "", "not SSLv3", tls::none).noted("SSLv3 is not built in"),
    R::new("no-tls-tickets", S, "", "no session tickets", tls::none).later(FEATURE),
    R::new("no-tlsv10", S, "", "not TLS 1.0", tls::none).later(FEATURE),
    R::new("no-tlsv11", S, "", "not TLS 1.1", tls::none).later(FEATURE),
    R::new("no-tlsv12", S, "", "not TLS 1.2", tls::none).later(FEATURE),
    R::new("no-tlsv13", S, "", "not TLS 1.3", tls::none).later(FEATURE),
    R::new(
        "npn",
        S,
        "<protocols>",
        "protocols offered in the way before ALPN",
        tls::text,
    )
    .examples("npn http/1.1", "npn")
    .later(FEATURE),
    R::new("renegotiate", S, "", "allows renegotiation", tls::none).later(FEATURE),
    R::new("sigalgs", S, "<sigalgs>", "signature algorithms", tls::text)
        .examples("sigalgs RSA+SHA256", "sigalgs")
        .later(FEATURE),
    R::new(
        "sni",
        S,
        "<expression>",
        "server name sent to the server",
        |_, args, context| {
            let expr = args.expr("a sample expression")?;
            context.check_expr(&expr, args.keyword_span());
            Ok(())
        },
    )
    .examples("sni req.hdr(host)", "sni nosuch")
    .later(FEATURE),
    R::new(
        "sni-auto",
        S,
        "",
        "sends the Host as server name",
        tls::none,
    )
    .later(FEATURE),
    R::new("ssl", S, "", "speaks TLS", |one, _, _| {
        one.ssl = true;
        Ok(())
    })
    .examples("ssl verify none", "")
    .later(FEATURE),
    R::new(
        "ssl-max-ver",
        S,
        "SSLv3 | TLSv1.0 ... TLSv1.3",
        "newest TLS version",
        tls::version,
    )
    .examples("ssl-max-ver TLSv1.3", "ssl-max-ver 1.3")
    .later(FEATURE),
    R::new(
        "ssl-min-ver",
        S,
        "SSLv3 | TLSv1.0 ... TLSv1.3",
        "oldest TLS version",
        tls::version,
    )
    .examples("ssl-min-ver TLSv1.2", "ssl-min-ver 1.2")
    .later(FEATURE),
    R::new("ssl-reuse", S, "", "undoes no-ssl-reuse", tls::none),
    R::new("tls-tickets", S, "", "undoes no-tls-tickets", tls::none),
    R::new(
        "verify",
        S,
        "none | required",
        "whether the server's certificate is verified",
        |one, args, _| {
            one.verifies |= args.choice(&[("none", true), ("required", false)])?;
            Ok(())
        },
    )
    .examples("verify none", "verify always")
    .later(FEATURE),
    R::new(
        "verifyhost",
        S,
        "<hostname>",
        "the name the server's certificate must have",
        tls::text,
    )
    .examples("verifyhost a.example", "verifyhost")
    .later(FEATURE),
];

fn ca(
    one: &mut ServerDraft,
    args: &mut Args<'_>,
    context: &mut Context<'_>,
) -> Result<(), Diagnostic> {
    one.verifies = true;
    tls::file(args, context, tls::BaseDirectory::Ca)
}

fn crt(
    _: &mut ServerDraft,
    args: &mut Args<'_>,
    context: &mut Context<'_>,
) -> Result<(), Diagnostic> {
    tls::file(args, context, tls::BaseDirectory::Crt)
}
