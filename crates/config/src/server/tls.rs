//! TLS words of server lines.
//!
//! Source: HAProxy configuration manual, section 5.2; the wording of errors is HAProxy's.

use ballast_expr::{Expr, Phase};
use ballast_model::TlsFile;
use ballast_syntax::Diagnostic;

use crate::args::Args;
use crate::context::Context;
use crate::draft::ServerDraft;
use crate::keyword::{Row, Sections};
use crate::tls::{Protocol, authorities, protocols};
use crate::tls_words as tls;

type R = Row<ServerDraft>;

const S: Sections = Sections::SERVER;

/// The rows. Words that turn off TLS or a part of it are honoured.
pub(super) const ROWS: &[R] = &[
    R::new("allow-0rtt", S, "", "sends early data", |one, _, _| {
        one.tls.allow_early_data = true;
        Ok(())
    })
    .ignored("requests wait for the handshake: early data are not sent"),
    R::new("alpn", S, "<protocols>", "protocols offered to the server", |one, args, _| {
        one.tls.alpn = protocols(tls::value(args, ALPN)?);
        Ok(())
    })
    .examples("alpn http/1.1", "alpn"),
    R::new("ca-file", S, "<cafile>", "authorities the server's certificate must come from", |one, args, context| {
        let name = tls::value(args, "CAfile path")?;
        let span = args.keyword_span();
        let found = authorities(name, &context.bases(), &context.origin(span));
        tls::authorities_exist(Some(&found), "ca-file", span, context)?;
        one.tls.ca_file = Some(found);
        Ok(())
    })
    .examples("ca-file ca.pem", "ca-file"),
    R::new("check-alpn", S, "<protocols>", "protocols that probes offer", |one, args, _| {
        one.tls.check_alpn = Some(protocols(tls::value(args, ALPN)?));
        Ok(())
    })
    .examples("check-alpn http/1.1", "check-alpn"),
    R::new("check-sni", S, "<sni>", "server name that probes send", |one, args, _| {
        one.tls.check_sni = Some(tls::value(args, "SNI")?.to_owned());
        Ok(())
    })
    .examples("check-sni a.example", "check-sni"),
    R::new("check-sni-auto", S, "", "probes send the Host as server name", tls::no_argument).unimplemented(NEWER),
    R::new("check-ssl", S, "", "probes speak TLS", |one, _, _| {
        one.tls.check_ssl = Some(true);
        Ok(())
    })
    .examples("check-ssl verify none", ""),
    R::new("ciphers", S, "<ciphers>", "cipher suites up to TLS 1.2", |one, args, context| {
        let text = tls::value(args, "cipher suite")?;
        tls::check_ciphers("ciphers", text, args.keyword_span(), context);
        one.tls.ciphers = Some(text.to_owned());
        Ok(())
    })
    .examples("ciphers ECDHE-RSA-AES128-GCM-SHA256", "ciphers"),
    R::new("ciphersuites", S, "<ciphersuites>", "cipher suites of TLS 1.3", |one, args, _| {
        one.tls.ciphersuites = Some(tls::value(args, "cipher suite")?.to_owned());
        Ok(())
    })
    .examples("ciphersuites TLS_AES_128_GCM_SHA256", "ciphersuites"),
    R::new("client-sigalgs", S, "<sigalgs>", "signature algorithms for client certificates", |one, args, _| {
        let text = tls::value(args, "signature algorithm list")?;
        one.tls.client_signature_algorithms = Some(text.to_owned());
        Ok(())
    })
    .examples("client-sigalgs RSA+SHA256", "client-sigalgs"),
    R::new("crl-file", S, "<crlfile>", "revoked certificates", |one, args, context| {
        let name = tls::value(args, "CRLfile path")?;
        let span = args.keyword_span();
        let file = TlsFile { path: context.bases().authority(name), origin: context.origin(span) };
        tls::file_exists(Some(&file), "crl-file", span, context)?;
        one.tls.crl_file = Some(file);
        Ok(())
    })
    .examples("crl-file crl.pem", "crl-file"),
    R::new("crt", S, "<cert>", "certificate shown to the server", |one, args, context| {
        let file = tls::certificate(args, context, "certificate file path")?;
        one.crt_span = Some(args.keyword_span());
        one.tls.certificate = Some(file);
        Ok(())
    })
    .examples("crt client.pem", "crt"),
    R::new("curves", S, "<curves>", "key exchange groups", |one, args, _| {
        one.tls.curves = Some(tls::value(args, "curves list")?.to_owned());
        Ok(())
    })
    .examples("curves X25519", "curves"),
    R::new("force-sslv3", S, "", "only SSLv3", tls::no_argument).refused(
        "asks for a protocol that is broken and not built in",
        "ssl-min-ver TLSv1.2",
    ),
    R::new("force-tlsv10", S, "", "only TLS 1.0: refused, it is not built in", |one, _, _| {
        one.tls.versions.force(Protocol::Tls10);
        Ok(())
    }),
    R::new("force-tlsv11", S, "", "only TLS 1.1: refused, it is not built in", |one, _, _| {
        one.tls.versions.force(Protocol::Tls11);
        Ok(())
    }),
    R::new("force-tlsv12", S, "", "only TLS 1.2", |one, _, _| {
        one.tls.versions.force(Protocol::Tls12);
        Ok(())
    }),
    R::new("force-tlsv13", S, "", "only TLS 1.3", |one, _, _| {
        one.tls.versions.force(Protocol::Tls13);
        Ok(())
    }),
    R::new("ktls", S, "on | off", "lets the kernel encrypt", tls::on_off)
        .examples("ktls on", "ktls maybe")
        .ignored("records are encrypted in the process"),
    R::new("no-check-sni-auto", S, "", "undoes check-sni-auto", tls::no_argument),
    R::new("no-check-ssl", S, "", "undoes check-ssl", |one, _, _| {
        one.tls.check_ssl = Some(false);
        Ok(())
    }),
    R::new("no-renegotiate", S, "", "refuses renegotiation", tls::no_argument)
        .ignored("renegotiation is not built in"),
    R::new("no-sni-auto", S, "", "undoes sni-auto", tls::no_argument),
    R::new("no-ssl", S, "", "undoes ssl", |one, _, _| {
        // After `ssl` the settings stay.
        one.tls.ssl = one.tls.ssl.map(|_| false);
        Ok(())
    }),
    R::new("no-ssl-reuse", S, "", "resumes no session", |one, _, _| {
        one.tls.reuse = Some(false);
        Ok(())
    }),
    R::new("no-sslv3", S, "", "not SSLv3", tls::no_argument).ignored("SSLv3 is not built in"),
    R::new("no-tls-tickets", S, "", "no session tickets", |one, _, _| {
        one.tls.tickets = Some(false);
        Ok(())
    }),
    R::new("no-tlsv10", S, "", "not TLS 1.0", |one, _, _| {
        one.tls.versions.disable(Protocol::Tls10);
        Ok(())
    }),
    R::new("no-tlsv11", S, "", "not TLS 1.1", |one, _, _| {
        one.tls.versions.disable(Protocol::Tls11);
        Ok(())
    }),
    R::new("no-tlsv12", S, "", "not TLS 1.2", |one, _, _| {
        one.tls.versions.disable(Protocol::Tls12);
        Ok(())
    }),
    R::new("no-tlsv13", S, "", "not TLS 1.3", |one, _, _| {
        one.tls.versions.disable(Protocol::Tls13);
        Ok(())
    }),
    R::new("npn", S, "<protocols>", "protocols offered in the way before ALPN", tls::any_argument)
        .examples("npn http/1.1", "npn")
        .ignored("servers that know NPN and not ALPN are gone, and it is not built in"),
    R::new("pool-conn-name", S, "<sample>", "names kept connections so that only like requests take them", |one, args, context| {
        let name = expression(args, context)?;
        one.server.pool_connection_name = Some(name);
        Ok(())
    })
    .examples("pool-conn-name req.hdr(host)", "pool-conn-name nosuch"),
    R::new("renegotiate", S, "", "allows renegotiation", tls::no_argument)
        .refused("asks for renegotiation, which is not built in", ""),
    R::new("sigalgs", S, "<sigalgs>", "signature algorithms", |one, args, _| {
        let text = tls::value(args, "signature algorithm list")?;
        one.tls.signature_algorithms = Some(text.to_owned());
        Ok(())
    })
    .examples("sigalgs RSA+SHA256", "sigalgs"),
    R::new("sni", S, "<expression>", "server name sent to the server", |one, args, context| {
        one.tls.sni = Some(expression(args, context)?);
        Ok(())
    })
    .examples("sni req.hdr(host)", "sni res.hdr(host)"),
    R::new("sni-auto", S, "", "sends the Host as server name", tls::no_argument).unimplemented(NEWER),
    R::new("ssl", S, "", "speaks TLS", |one, _, _| {
        one.tls.ssl = Some(true);
        Ok(())
    })
    .examples("ssl verify none", ""),
    R::new("ssl-max-ver", S, "SSLv3 | TLSv1.0 ... TLSv1.3", "newest TLS version", |one, args, _| {
        one.tls.versions.max = Some(version(args)?);
        Ok(())
    })
    .examples("ssl-max-ver TLSv1.3", "ssl-max-ver 1.3"),
    R::new("ssl-min-ver", S, "SSLv3 | TLSv1.0 ... TLSv1.3", "oldest TLS version", |one, args, context| {
        one.tls.versions.min = Some(version(args)?);
        tls::report_old_version(one.tls.versions.min, args.keyword_span(), context);
        Ok(())
    })
    .examples("ssl-min-ver TLSv1.2", "ssl-min-ver 1.2"),
    R::new("ssl-reuse", S, "", "undoes no-ssl-reuse", |one, _, _| {
        one.tls.reuse = Some(true);
        Ok(())
    }),
    R::new("tls-tickets", S, "", "undoes no-tls-tickets", |one, _, _| {
        one.tls.tickets = Some(true);
        Ok(())
    }),
    R::new("verify", S, "none | required", "whether the server's certificate is verified", |one, args, _| {
        let text = tls::value(args, "verify method")?;
        one.tls.verify = Some(match text {
            "none" => false,
            "required" => true,
            _ => {
                return Err(args.wrong(format!(
                    "'verify' : unknown verify method '{text}', only 'none' and 'required' are supported"
                )));
            }
        });
        Ok(())
    })
    .examples("verify none", "verify always"),
    R::new("verifyhost", S, "<hostname>", "the name the server's certificate must have", |one, args, _| {
        let name = tls::value(args, "hostname to verify against")?;
        one.tls.verify_host = Some(name.to_owned());
        Ok(())
    })
    .examples("verifyhost a.example", "verifyhost"),
];

const ALPN: &str = "the comma-delimited ALPN protocol suite";
const NEWER: &str = "the words of versions after 3.2";

/// An expression that is evaluated when a connection to the server is chosen.
fn expression(args: &mut Args<'_>, context: &mut Context<'_>) -> Result<Expr, Diagnostic> {
    const WHAT: &str = "error detected while parsing sni or pool-conn-name expressions";
    if args.is_empty() {
        let message = format!("'{}' : missing sni expression", args.keyword());
        return Err(Diagnostic::alert("missing-argument", message).at(args.keyword_span()));
    }
    let at = args.position();
    let span = args.keyword_span();
    let expr = args.expr("a sample expression")?;
    expr.available(Phase::ServerConnect)
        .map_err(|error| args.expr_error(at, &error, WHAT))?;
    context.check_expr(&expr, span);
    Ok(expr)
}

fn version(args: &mut Args<'_>) -> Result<Protocol, Diagnostic> {
    let text = tls::value(args, "the ssl/tls version")?;
    Protocol::parse(text).map_err(|message| args.wrong(message))
}
