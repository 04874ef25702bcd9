//! TLS words of server lines.
//!
//! Source: HAProxy configuration manual, section 5.2; the wording of errors is HAProxy's.

use ballast_expr::{Expr, Phase};
use ballast_model::TlsFile;
use ballast_syntax::Diagnostic;

use crate::args::Args;
use crate::context::Context;
use crate::draft::ServerDraft;
use crate::feature::NEWER;
use crate::keyword::{Row, Sections};
use crate::tls::{Protocol, authorities, protocols};
use crate::tls_words as tls;

/// A row of this file's table.
type R = Row<ServerDraft>;

/// The rows. Words that turn off TLS or a part of it are honoured.
pub(super) const ROWS: &[R] = &[
    R::new("allow-0rtt", Sections::SERVER, "", "sends early data", |server_draft, _, _| {
        server_draft.tls.allow_early_data = true;
        Ok(())
    })
    .ignored("requests wait for the handshake: early data are not sent"),
    R::new("alpn", Sections::SERVER, "<protocols>", "protocols offered to the server", |server_draft, args, _| {
        server_draft.tls.alpn = protocols(tls::value(args, ALPN)?);
        Ok(())
    })
    .examples("alpn http/1.1", "alpn"),
    R::new("ca-file", Sections::SERVER, "<cafile>", "authorities the server's certificate must come from", |server_draft, args, context| {
        let name = tls::value(args, "CAfile path")?;
        let span = args.keyword_span();
        let found = authorities(name, &context.bases(), &context.origin(span));
        server_draft.tls.names_ca_file = true;
        tls::authorities_exist(Some(&found), "ca-file", span, context)?;
        server_draft.tls.ca_file = Some(found);
        Ok(())
    })
    .examples("ca-file ca.pem", "ca-file"),
    R::new("check-alpn", Sections::SERVER, "<protocols>", "protocols that probes offer", |server_draft, args, _| {
        server_draft.tls.check_alpn = Some(protocols(tls::value(args, ALPN)?));
        Ok(())
    })
    .examples("check-alpn http/1.1", "check-alpn"),
    R::new("check-sni", Sections::SERVER, "<sni>", "server name that probes send", |server_draft, args, _| {
        server_draft.tls.check_sni = Some(tls::value(args, "SNI")?.to_owned());
        Ok(())
    })
    .examples("check-sni a.example", "check-sni"),
    R::new("check-sni-auto", Sections::SERVER, "", "probes send the Host as server name", tls::no_argument).unimplemented(NEWER),
    R::new("check-ssl", Sections::SERVER, "", "probes speak TLS", |server_draft, _, _| {
        server_draft.tls.check_ssl = Some(true);
        Ok(())
    })
    .examples("check-ssl verify none", ""),
    R::new("ciphers", Sections::SERVER, "<ciphers>", "cipher suites up to TLS 1.2", |server_draft, args, context| {
        let text = tls::value(args, "cipher suite")?;
        tls::check_ciphers("ciphers", text, args.keyword_span(), context);
        server_draft.tls.ciphers = Some(text.to_owned());
        Ok(())
    })
    .examples("ciphers ECDHE-RSA-AES128-GCM-SHA256", "ciphers"),
    R::new("ciphersuites", Sections::SERVER, "<ciphersuites>", "cipher suites of TLS 1.3", |server_draft, args, _| {
        server_draft.tls.ciphersuites = Some(tls::value(args, "cipher suite")?.to_owned());
        Ok(())
    })
    .examples("ciphersuites TLS_AES_128_GCM_SHA256", "ciphersuites"),
    R::new("client-sigalgs", Sections::SERVER, "<sigalgs>", "signature algorithms for client certificates", |server_draft, args, _| {
        let text = tls::value(args, "signature algorithm list")?;
        server_draft.tls.client_signature_algorithms = Some(text.to_owned());
        Ok(())
    })
    .examples("client-sigalgs RSA+SHA256", "client-sigalgs"),
    R::new("crl-file", Sections::SERVER, "<crlfile>", "revoked certificates", |server_draft, args, context| {
        let name = tls::value(args, "CRLfile path")?;
        let span = args.keyword_span();
        let file = TlsFile { path: context.bases().authority(name), origin: context.origin(span) };
        tls::file_exists(Some(&file), "crl-file", span, context)?;
        server_draft.tls.crl_file = Some(file);
        Ok(())
    })
    .examples("crl-file crl.pem", "crl-file"),
    R::new("crt", Sections::SERVER, "<cert>", "certificate shown to the server", |server_draft, args, context| {
        let file = tls::certificate(args, context, "certificate file path")?;
        server_draft.crt_span = Some(args.keyword_span());
        server_draft.tls.certificate = Some(file);
        Ok(())
    })
    .examples("crt client.pem", "crt"),
    R::new("curves", Sections::SERVER, "<curves>", "key exchange groups", |server_draft, args, _| {
        server_draft.tls.curves = Some(tls::value(args, "curves list")?.to_owned());
        Ok(())
    })
    .examples("curves X25519", "curves"),
    R::new("force-sslv3", Sections::SERVER, "", "only SSLv3", tls::no_argument).refused(
        "asks for a protocol that is broken and not built in",
        "ssl-min-ver TLSv1.2",
    ),
    R::new("force-tlsv10", Sections::SERVER, "", "only TLS 1.0: refused, it is not built in", |server_draft, _, _| {
        server_draft.tls.versions.force(Protocol::Tls10);
        Ok(())
    }),
    R::new("force-tlsv11", Sections::SERVER, "", "only TLS 1.1: refused, it is not built in", |server_draft, _, _| {
        server_draft.tls.versions.force(Protocol::Tls11);
        Ok(())
    }),
    R::new("force-tlsv12", Sections::SERVER, "", "only TLS 1.2", |server_draft, _, _| {
        server_draft.tls.versions.force(Protocol::Tls12);
        Ok(())
    }),
    R::new("force-tlsv13", Sections::SERVER, "", "only TLS 1.3", |server_draft, _, _| {
        server_draft.tls.versions.force(Protocol::Tls13);
        Ok(())
    }),
    R::new("ktls", Sections::SERVER, "on | off", "lets the kernel encrypt", tls::on_off)
        .examples("ktls on", "ktls maybe")
        .ignored("records are encrypted in the process"),
    R::new("no-check-sni-auto", Sections::SERVER, "", "undoes check-sni-auto", tls::no_argument),
    R::new("no-check-ssl", Sections::SERVER, "", "undoes check-ssl", |server_draft, _, _| {
        server_draft.tls.check_ssl = Some(false);
        Ok(())
    }),
    R::new("no-renegotiate", Sections::SERVER, "", "refuses renegotiation", tls::no_argument)
        .ignored("renegotiation is not built in"),
    R::new("no-sni-auto", Sections::SERVER, "", "undoes sni-auto", tls::no_argument),
    R::new("no-ssl", Sections::SERVER, "", "undoes ssl", |server_draft, _, _| {
        // After `ssl` the settings stay.
        server_draft.tls.ssl = server_draft.tls.ssl.map(|_| false);
        Ok(())
    }),
    R::new("no-ssl-reuse", Sections::SERVER, "", "resumes no session", |server_draft, _, _| {
        server_draft.tls.reuse = Some(false);
        Ok(())
    }),
    R::new("no-sslv3", Sections::SERVER, "", "not SSLv3", tls::no_argument).ignored("SSLv3 is not built in"),
    R::new("no-tls-tickets", Sections::SERVER, "", "no session tickets", |server_draft, _, _| {
        server_draft.tls.tickets = Some(false);
        Ok(())
    }),
    R::new("no-tlsv10", Sections::SERVER, "", "not TLS 1.0", |server_draft, _, _| {
        server_draft.tls.versions.disable(Protocol::Tls10);
        Ok(())
    }),
    R::new("no-tlsv11", Sections::SERVER, "", "not TLS 1.1", |server_draft, _, _| {
        server_draft.tls.versions.disable(Protocol::Tls11);
        Ok(())
    }),
    R::new("no-tlsv12", Sections::SERVER, "", "not TLS 1.2", |server_draft, _, _| {
        server_draft.tls.versions.disable(Protocol::Tls12);
        Ok(())
    }),
    R::new("no-tlsv13", Sections::SERVER, "", "not TLS 1.3", |server_draft, _, _| {
        server_draft.tls.versions.disable(Protocol::Tls13);
        Ok(())
    }),
    R::new("npn", Sections::SERVER, "<protocols>", "protocols offered in the way before ALPN", tls::any_argument)
        .examples("npn http/1.1", "npn")
        .ignored("servers that know NPN and not ALPN are gone, and it is not built in"),
    R::new("pool-conn-name", Sections::SERVER, "<sample>", "names kept connections so that only like requests take them", |server_draft, args, context| {
        let name = expression(args, context)?;
        server_draft.server.pool_connection_name = Some(name);
        Ok(())
    })
    .examples("pool-conn-name req.hdr(host)", "pool-conn-name nosuch"),
    R::new("renegotiate", Sections::SERVER, "", "allows renegotiation", tls::no_argument)
        .refused("asks for renegotiation, which is not built in", ""),
    R::new("sigalgs", Sections::SERVER, "<sigalgs>", "signature algorithms", |server_draft, args, _| {
        let text = tls::value(args, "signature algorithm list")?;
        server_draft.tls.signature_algorithms = Some(text.to_owned());
        Ok(())
    })
    .examples("sigalgs RSA+SHA256", "sigalgs"),
    R::new("sni", Sections::SERVER, "<expression>", "server name sent to the server", |server_draft, args, context| {
        server_draft.tls.sni = Some(expression(args, context)?);
        Ok(())
    })
    .examples("sni req.hdr(host)", "sni res.hdr(host)"),
    R::new("sni-auto", Sections::SERVER, "", "sends the Host as server name", tls::no_argument).unimplemented(NEWER),
    R::new("ssl", Sections::SERVER, "", "speaks TLS", |server_draft, _, _| {
        server_draft.tls.ssl = Some(true);
        Ok(())
    })
    .examples("ssl verify none", ""),
    R::new("ssl-max-ver", Sections::SERVER, "SSLv3 | TLSv1.0 ... TLSv1.3", "newest TLS version", |server_draft, args, _| {
        server_draft.tls.versions.max = Some(version(args)?);
        Ok(())
    })
    .examples("ssl-max-ver TLSv1.3", "ssl-max-ver 1.3"),
    R::new("ssl-min-ver", Sections::SERVER, "SSLv3 | TLSv1.0 ... TLSv1.3", "oldest TLS version", |server_draft, args, context| {
        server_draft.tls.versions.min = Some(version(args)?);
        tls::report_old_version(server_draft.tls.versions.min, args.keyword_span(), context);
        Ok(())
    })
    .examples("ssl-min-ver TLSv1.2", "ssl-min-ver 1.2"),
    R::new("ssl-reuse", Sections::SERVER, "", "undoes no-ssl-reuse", |server_draft, _, _| {
        server_draft.tls.reuse = Some(true);
        Ok(())
    }),
    R::new("tls-tickets", Sections::SERVER, "", "undoes no-tls-tickets", |server_draft, _, _| {
        server_draft.tls.tickets = Some(true);
        Ok(())
    }),
    R::new("verify", Sections::SERVER, "none | required", "whether the server's certificate is verified", |server_draft, args, _| {
        let text = tls::value(args, "verify method")?;
        server_draft.tls.verify = Some(match text {
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
    R::new("verifyhost", Sections::SERVER, "<hostname>", "the name the server's certificate must have", |server_draft, args, _| {
        let name = tls::value(args, "hostname to verify against")?;
        server_draft.tls.verify_host = Some(name.to_owned());
        Ok(())
    })
    .examples("verifyhost a.example", "verifyhost"),
];

const ALPN: &str = "the comma-delimited ALPN protocol suite";

/// An expression that is evaluated when a connection to the server is chosen.
fn expression(args: &mut Args<'_>, context: &mut Context<'_>) -> Result<Expr, Diagnostic> {
    const SNI_ERROR: &str = "error detected while parsing sni or pool-conn-name expressions";
    if args.is_empty() {
        let message = format!("'{}' : missing sni expression", args.keyword());
        return Err(Diagnostic::alert("missing-argument", message).at(args.keyword_span()));
    }
    let at = args.position();
    let span = args.keyword_span();
    let expr = args.expr("a sample expression")?;
    expr.available(Phase::ServerConnect)
        .map_err(|error| args.expr_error(at, &error, SNI_ERROR))?;
    context.check_expr(&expr, span);
    Ok(expr)
}

fn version(args: &mut Args<'_>) -> Result<Protocol, Diagnostic> {
    let text = tls::value(args, "the ssl/tls version")?;
    Protocol::parse(text).map_err(|message| args.wrong(message))
}
