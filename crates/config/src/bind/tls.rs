//! TLS words of bind lines: they are checked, but not implemented.

use ballast_syntax::Diagnostic;

use crate::args::Args;
use crate::context::Context;
use crate::draft::BindDraft;
use crate::keyword::{Row, Sections};
use crate::tls_words as tls;

type R = Row<BindDraft>;

const B: Sections = Sections::BIND;
/// Bind lines and the lines of a crt-list.
const C: Sections = Sections(Sections::BIND.0 | Sections::CRT_LIST.0);
const FEATURE: &str = "TLS";

/// The rows.
pub(super) const ROWS: &[R] = &[
    R::new("allow-0rtt", C, "", "accepts early data", tls::none).later(FEATURE),
    R::new(
        "alpn",
        C,
        "<protocols>",
        "protocols offered to clients",
        tls::text,
    )
    .examples("alpn h2,http/1.1", "alpn")
    .later(FEATURE),
    R::new(
        "ca-file",
        C,
        "<cafile>",
        "authorities that clients' certificates must come from",
        ca,
    )
    .examples("ca-file ca.pem", "ca-file")
    .later(FEATURE),
    R::new(
        "ca-ignore-err",
        B,
        "[all | <errorID>,...]",
        "errors in the chain that are passed over",
        tls::text,
    )
    .examples("ca-ignore-err all", "ca-ignore-err")
    .later(FEATURE),
    R::new(
        "ca-sign-file",
        B,
        "<cafile>",
        "authority that generated certificates are signed with",
        ca,
    )
    .examples("ca-sign-file ca.pem", "ca-sign-file")
    .later(FEATURE),
    R::new(
        "ca-sign-pass",
        B,
        "<passphrase>",
        "passphrase of that authority's key",
        tls::text,
    )
    .examples("ca-sign-pass x", "ca-sign-pass")
    .later(FEATURE),
    R::new(
        "ca-verify-file",
        C,
        "<cafile>",
        "authorities used to verify and not announced",
        ca,
    )
    .examples("ca-verify-file ca.pem", "ca-verify-file")
    .later(FEATURE),
    R::new(
        "ciphers",
        C,
        "<ciphers>",
        "cipher suites up to TLS 1.2",
        tls::ciphers,
    )
    .examples("ciphers ECDHE-RSA-AES128-GCM-SHA256", "ciphers")
    .later(FEATURE),
    R::new(
        "ciphersuites",
        C,
        "<ciphersuites>",
        "cipher suites of TLS 1.3",
        tls::text,
    )
    .examples("ciphersuites TLS_AES_128_GCM_SHA256", "ciphersuites")
    .later(FEATURE),
    R::new(
        "client-sigalgs",
        C,
        "<sigalgs>",
        "signature algorithms for client certificates",
        tls::text,
    )
    .examples("client-sigalgs RSA+SHA256", "client-sigalgs")
    .later(FEATURE),
    R::new("crl-file", C, "<crlfile>", "revoked certificates", ca)
        .examples("crl-file crl.pem", "crl-file")
        .later(FEATURE),
    R::new(
        "crt",
        B,
        "<cert>",
        "a certificate file or a directory of them",
        crt,
    )
    .examples("crt web.pem", "crt")
    .later(FEATURE),
    R::new(
        "crt-ignore-err",
        B,
        "<errors>",
        "errors of the certificate that are passed over",
        tls::text,
    )
    .examples("crt-ignore-err all", "crt-ignore-err")
    .later(FEATURE),
    R::new(
        "crt-list",
        B,
        "<file>",
        "a list of certificates with options and names",
        crt_list,
    )
    .examples("crt-list list.txt", "crt-list")
    .later(FEATURE),
    R::new("curves", C, "<curves>", "key exchange groups", tls::text)
        .examples("curves X25519:P-256", "curves")
        .later(FEATURE),
    R::new(
        "default-crt",
        B,
        "<cert>",
        "certificate for names that no other has",
        crt,
    )
    .examples("default-crt web.pem", "default-crt")
    .later(FEATURE),
    R::new(
        "ecdhe",
        C,
        "<named curve>",
        "key exchange group up to TLS 1.2",
        tls::text,
    )
    .examples("ecdhe prime256v1", "ecdhe")
    .later(FEATURE),
    R::new(
        "ech",
        B,
        "<dir>",
        "keys of encrypted client hellos",
        tls::text,
    )
    .examples("ech keys", "ech")
    .later(FEATURE),
    R::new("force-sslv3", B, "", "only SSLv3", tls::none).refused(
        "asks for a protocol that is broken and not built in",
        "ssl-min-ver TLSv1.2",
    ),
    R::new("force-tlsv10", B, "", "only TLS 1.0", tls::none).later(FEATURE),
    R::new("force-tlsv11", B, "", "only TLS 1.1", tls::none).later(FEATURE),
    R::new("force-tlsv12", B, "", "only TLS 1.2", tls::none).later(FEATURE),
    R::new("force-tlsv13", B, "", "only TLS 1.3", tls::none).later(FEATURE),
    R::new(
        "generate-certificates",
        B,
        "",
        "makes certificates for unknown names",
        |draft, _, _| {
            draft.certificate = true;
            Ok(())
        },
    )
    .later(FEATURE),
    R::new(
        "ktls",
        C,
        "on | off",
        "lets the kernel encrypt",
        tls::on_off,
    )
    .examples("ktls on", "ktls maybe")
    .later(FEATURE),
    R::new("no-alpn", C, "", "offers no protocol", tls::none).later(FEATURE),
    R::new(
        "no-ca-names",
        C,
        "",
        "does not announce the authorities",
        tls::none,
    )
    .later(FEATURE),
    R::new("no-sslv3", B, "", "not SSLv3", tls::none).noted("SSLv3 is not built in"),
    R::new(
        "no-strict-sni",
        B,
        "",
        "unknown names get the default certificate",
        tls::none,
    )
    .later(FEATURE),
    R::new("no-tls-tickets", B, "", "no session tickets", tls::none).later(FEATURE),
    R::new("no-tlsv10", B, "", "not TLS 1.0", tls::none).later(FEATURE),
    R::new("no-tlsv11", B, "", "not TLS 1.1", tls::none).later(FEATURE),
    R::new("no-tlsv12", B, "", "not TLS 1.2", tls::none).later(FEATURE),
    R::new("no-tlsv13", B, "", "not TLS 1.3", tls::none).later(FEATURE),
    R::new(
        "npn",
        C,
        "<protocols>",
        "protocols offered in the way before ALPN",
        tls::text,
    )
    .examples("npn http/1.1", "npn")
    .later(FEATURE),
    R::new(
        "ocsp-update",
        Sections::CRT_LIST,
        "off | on",
        "keeps the certificate's OCSP answer fresh",
        tls::on_off,
    )
    .examples("ocsp-update on", "ocsp-update maybe")
    .later(FEATURE),
    R::new(
        "prefer-client-ciphers",
        B,
        "",
        "the client's order of cipher suites wins",
        tls::none,
    )
    .later(FEATURE),
    R::new("sigalgs", C, "<sigalgs>", "signature algorithms", tls::text)
        .examples("sigalgs RSA+SHA256", "sigalgs")
        .later(FEATURE),
    R::new("ssl", B, "", "speaks TLS", |draft, _, _| {
        draft.ssl = true;
        Ok(())
    })
    .examples("ssl crt a.pem", "")
    .later(FEATURE),
    R::new(
        "ssl-max-ver",
        C,
        "SSLv3 | TLSv1.0 ... TLSv1.3",
        "newest TLS version",
        tls::version,
    )
    .examples("ssl-max-ver TLSv1.3", "ssl-max-ver 1.3")
    .later(FEATURE),
    R::new(
        "ssl-min-ver",
        C,
        "SSLv3 | TLSv1.0 ... TLSv1.3",
        "oldest TLS version",
        tls::version,
    )
    .examples("ssl-min-ver TLSv1.2", "ssl-min-ver 1.2")
    .later(FEATURE),
    R::new("strict-sni", B, "", "unknown names are refused", tls::none).later(FEATURE),
    R::new(
        "tls-ticket-keys",
        B,
        "<keyfile>",
        "keys of session tickets",
        ca,
    )
    .examples("tls-ticket-keys keys", "tls-ticket-keys")
    .later(FEATURE),
    R::new(
        "tls-tickets",
        B,
        "",
        "session tickets, after no-tls-tickets",
        tls::none,
    )
    .later(FEATURE),
    R::new(
        "verify",
        C,
        "none | optional | required",
        "whether clients must have a certificate",
        |_, args, _| args.choice(&[("none", ()), ("optional", ()), ("required", ())]),
    )
    .examples("verify optional", "verify always")
    .later(FEATURE),
];

fn ca(_: &mut BindDraft, args: &mut Args<'_>, context: &mut Context<'_>) -> Result<(), Diagnostic> {
    tls::file(args, context, tls::BaseDirectory::Ca)
}

fn crt(
    draft: &mut BindDraft,
    args: &mut Args<'_>,
    context: &mut Context<'_>,
) -> Result<(), Diagnostic> {
    draft.certificate = true;
    tls::file(args, context, tls::BaseDirectory::Crt)
}

/// A crt-list: its lines are `<certificate> [<words>] <names>...`.
fn crt_list(
    draft: &mut BindDraft,
    args: &mut Args<'_>,
    context: &mut Context<'_>,
) -> Result<(), Diagnostic> {
    draft.certificate = true;
    let word = args.word("a file name")?;
    let bytes = context.read(word.text(), "crt-list", word.span())?;
    for (number, line) in (1..).zip(String::from_utf8_lossy(&bytes).lines()) {
        let line = line.split('#').next().unwrap_or_default().trim();
        let Some(options) = line
            .split_once('[')
            .and_then(|(_, rest)| rest.split_once(']'))
        else {
            continue;
        };
        let known = super::crt_list_words();
        let mut words = options.0.split_whitespace();
        while let Some(text) = words.next() {
            let Some(row) = known.iter().find(|row| row.word == text) else {
                let message = format!(
                    "'crt-list' : unknown keyword '{text}' in line {number} of '{}'",
                    word.text()
                );
                return Err(Diagnostic::alert("unknown-keyword", message).at(word.span()));
            };
            if !row.args.is_empty() && words.next().is_none() {
                let message = format!(
                    "'crt-list' : '{text}' expects an argument in line {number} of '{}'",
                    word.text()
                );
                return Err(Diagnostic::alert("missing-argument", message).at(word.span()));
            }
        }
    }
    Ok(())
}
