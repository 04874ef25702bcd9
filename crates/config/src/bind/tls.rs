//! TLS words of bind lines.
//!
//! Source: HAProxy configuration manual, section 5.1; the wording of errors is HAProxy's.

use ballast_model::{CertificateList, CertificateSource, TlsFile, VerifyErrors};
use ballast_syntax::Diagnostic;

use crate::args::Args;
use crate::context::Context;
use crate::draft::BindDraft;
use crate::keyword::{Row, Sections};
use crate::tls::{Protocol, certificate_list, verify_errors};
use crate::tls_words as tls;

/// A row of this file's table.
type R = Row<BindDraft>;

/// Where a word may be written: on bind lines.
/// On bind lines and on the lines of a crt-list.
const BIND_AND_CRT_LIST: Sections = Sections(Sections::BIND.0 | Sections::CRT_LIST.0);
/// Why certificates are not generated.
const GENERATED: &str = "would make certificates while clients wait, which is not built in";

/// The rows.
pub(super) const ROWS: &[R] = &[
    R::new(
        "allow-0rtt",
        BIND_AND_CRT_LIST,
        "",
        "accepts early data",
        shared_with_crt_list,
    ),
    R::new(
        "alpn",
        BIND_AND_CRT_LIST,
        "<protocols>",
        "protocols offered to clients",
        shared_with_crt_list,
    )
    .examples("alpn http/1.1", "alpn"),
    R::new(
        "ca-file",
        BIND_AND_CRT_LIST,
        "<cafile>",
        "authorities that clients' certificates must come from",
        shared_with_crt_list,
    )
    .examples("ca-file ca.pem", "ca-file"),
    R::new(
        "ca-ignore-err",
        Sections::BIND,
        "[all | <errorID>,...]",
        "errors in the chain that are passed over",
        |draft, args, _| {
            draft.tls.ca_ignored_errors = errors(args)?;
            Ok(())
        },
    )
    .examples("ca-ignore-err all", "ca-ignore-err foo"),
    R::new(
        "ca-sign-file",
        Sections::BIND,
        "<cafile>",
        "authority that generated certificates are signed with",
        tls::any_argument,
    )
    .examples("ca-sign-file ca.pem", "ca-sign-file")
    .ignored("acts with 'generate-certificates' only, which is refused"),
    R::new(
        "ca-sign-pass",
        Sections::BIND,
        "<passphrase>",
        "passphrase of that authority's key",
        tls::any_argument,
    )
    .examples("ca-sign-pass x", "ca-sign-pass")
    .ignored("acts with 'generate-certificates' only, which is refused"),
    R::new(
        "ca-verify-file",
        BIND_AND_CRT_LIST,
        "<cafile>",
        "authorities used to verify and not announced",
        shared_with_crt_list,
    )
    .examples("ca-verify-file ca.pem", "ca-verify-file"),
    R::new(
        "ciphers",
        BIND_AND_CRT_LIST,
        "<ciphers>",
        "cipher suites up to TLS 1.2",
        shared_with_crt_list,
    )
    .examples("ciphers ECDHE-RSA-AES128-GCM-SHA256", "ciphers"),
    R::new(
        "ciphersuites",
        BIND_AND_CRT_LIST,
        "<ciphersuites>",
        "cipher suites of TLS 1.3",
        shared_with_crt_list,
    )
    .examples("ciphersuites TLS_AES_128_GCM_SHA256", "ciphersuites"),
    R::new(
        "client-sigalgs",
        BIND_AND_CRT_LIST,
        "<sigalgs>",
        "signature algorithms for client certificates",
        shared_with_crt_list,
    )
    .examples("client-sigalgs RSA+SHA256", "client-sigalgs"),
    R::new(
        "crl-file",
        BIND_AND_CRT_LIST,
        "<crlfile>",
        "revoked certificates",
        shared_with_crt_list,
    )
    .examples("crl-file crl.pem", "crl-file"),
    R::new(
        "crt",
        Sections::BIND,
        "<cert>",
        "a certificate file or a directory of them",
        |draft, args, context| {
            let file = certificate(draft, args, context)?;
            draft.tls.certificates.push(CertificateSource::Crt(file));
            Ok(())
        },
    )
    .examples("crt web.pem", "crt"),
    R::new(
        "crt-ignore-err",
        Sections::BIND,
        "<errors>",
        "errors of the certificate that are passed over",
        |draft, args, _| {
            draft.tls.crt_ignored_errors = errors(args)?;
            Ok(())
        },
    )
    .examples("crt-ignore-err all", "crt-ignore-err"),
    R::new(
        "crt-list",
        Sections::BIND,
        "<file>",
        "a list of certificates with options and names",
        crt_list,
    )
    .examples("crt-list list.txt", "crt-list"),
    R::new(
        "curves",
        BIND_AND_CRT_LIST,
        "<curves>",
        "key exchange groups",
        shared_with_crt_list,
    )
    .examples("curves X25519:P-256", "curves"),
    R::new(
        "default-crt",
        Sections::BIND,
        "<cert>",
        "certificate for names that no other has",
        |draft, args, context| {
            let file = certificate(draft, args, context)?;
            draft
                .tls
                .certificates
                .push(CertificateSource::DefaultCrt(file));
            Ok(())
        },
    )
    .examples("default-crt web.pem", "default-crt"),
    R::new(
        "ecdhe",
        BIND_AND_CRT_LIST,
        "<named curve>",
        "key exchange group without 'curves'",
        shared_with_crt_list,
    )
    .examples("ecdhe prime256v1", "ecdhe"),
    R::new(
        "ech",
        Sections::BIND,
        "<dir>",
        "keys of encrypted client hellos",
        tls::any_argument,
    )
    .refused(
        "would read encrypted client hellos, which is not built in",
        "",
    ),
    R::new(
        "force-sslv3",
        Sections::BIND,
        "",
        "only SSLv3",
        tls::no_argument,
    )
    .refused(
        "asks for a protocol that is broken and not built in",
        "ssl-min-ver TLSv1.2",
    ),
    R::new(
        "force-tlsv10",
        Sections::BIND,
        "",
        "only TLS 1.0: refused, it is not built in",
        |draft, _, _| {
            draft.tls.options.versions.force(Protocol::Tls10);
            Ok(())
        },
    ),
    R::new(
        "force-tlsv11",
        Sections::BIND,
        "",
        "only TLS 1.1: refused, it is not built in",
        |draft, _, _| {
            draft.tls.options.versions.force(Protocol::Tls11);
            Ok(())
        },
    ),
    R::new(
        "force-tlsv12",
        Sections::BIND,
        "",
        "only TLS 1.2",
        |draft, _, _| {
            draft.tls.options.versions.force(Protocol::Tls12);
            Ok(())
        },
    ),
    R::new(
        "force-tlsv13",
        Sections::BIND,
        "",
        "only TLS 1.3",
        |draft, _, _| {
            draft.tls.options.versions.force(Protocol::Tls13);
            Ok(())
        },
    ),
    R::new(
        "generate-certificates",
        Sections::BIND,
        "",
        "makes certificates for unknown names",
        tls::no_argument,
    )
    .refused(GENERATED, ""),
    R::new(
        "ktls",
        BIND_AND_CRT_LIST,
        "on | off",
        "lets the kernel encrypt",
        tls::on_off,
    )
    .examples("ktls on", "ktls maybe")
    .ignored("records are encrypted in the process"),
    R::new(
        "no-alpn",
        BIND_AND_CRT_LIST,
        "",
        "offers no protocol",
        shared_with_crt_list,
    ),
    R::new(
        "no-ca-names",
        BIND_AND_CRT_LIST,
        "",
        "does not announce the authorities",
        shared_with_crt_list,
    ),
    R::new(
        "no-sslv3",
        Sections::BIND,
        "",
        "not SSLv3",
        tls::no_argument,
    )
    .ignored("SSLv3 is not built in"),
    R::new(
        "no-strict-sni",
        Sections::BIND,
        "",
        "unknown names get the default certificate",
        |draft, _, _| {
            draft.tls.strict_sni = Some(false);
            Ok(())
        },
    ),
    R::new(
        "no-tls-tickets",
        Sections::BIND,
        "",
        "no session tickets",
        |draft, _, _| {
            draft.tls.tickets = Some(false);
            Ok(())
        },
    ),
    R::new(
        "no-tlsv10",
        Sections::BIND,
        "",
        "not TLS 1.0",
        |draft, _, _| {
            draft.tls.options.versions.disable(Protocol::Tls10);
            Ok(())
        },
    ),
    R::new(
        "no-tlsv11",
        Sections::BIND,
        "",
        "not TLS 1.1",
        |draft, _, _| {
            draft.tls.options.versions.disable(Protocol::Tls11);
            Ok(())
        },
    ),
    R::new(
        "no-tlsv12",
        Sections::BIND,
        "",
        "not TLS 1.2",
        |draft, _, _| {
            draft.tls.options.versions.disable(Protocol::Tls12);
            Ok(())
        },
    ),
    R::new(
        "no-tlsv13",
        Sections::BIND,
        "",
        "not TLS 1.3",
        |draft, _, _| {
            draft.tls.options.versions.disable(Protocol::Tls13);
            Ok(())
        },
    ),
    R::new(
        "npn",
        BIND_AND_CRT_LIST,
        "<protocols>",
        "protocols offered in the way before ALPN",
        shared_with_crt_list,
    )
    .examples("npn http/1.1", "npn")
    .ignored("clients that know NPN and not ALPN are gone, and it is not built in"),
    R::new(
        "ocsp-update",
        Sections::CRT_LIST,
        "off | on",
        "keeps the certificate's OCSP answer fresh",
        tls::on_off,
    )
    .examples("ocsp-update on", "ocsp-update maybe"),
    R::new(
        "prefer-client-ciphers",
        Sections::BIND,
        "",
        "the client's order of cipher suites wins",
        |draft, _, _| {
            draft.tls.prefer_client_ciphers = true;
            Ok(())
        },
    ),
    R::new(
        "sigalgs",
        BIND_AND_CRT_LIST,
        "<sigalgs>",
        "signature algorithms",
        shared_with_crt_list,
    )
    .examples("sigalgs RSA+SHA256", "sigalgs"),
    R::new("ssl", Sections::BIND, "", "speaks TLS", |draft, _, _| {
        draft.tls.ssl = true;
        Ok(())
    })
    .examples("ssl crt a.pem alpn http/1.1", ""),
    R::new(
        "ssl-max-ver",
        BIND_AND_CRT_LIST,
        "SSLv3 | TLSv1.0 ... TLSv1.3",
        "newest TLS version",
        shared_with_crt_list,
    )
    .examples("ssl-max-ver TLSv1.3", "ssl-max-ver 1.3"),
    R::new(
        "ssl-min-ver",
        BIND_AND_CRT_LIST,
        "SSLv3 | TLSv1.0 ... TLSv1.3",
        "oldest TLS version",
        shared_with_crt_list,
    )
    .examples("ssl-min-ver TLSv1.2", "ssl-min-ver 1.2"),
    R::new(
        "strict-sni",
        Sections::BIND,
        "",
        "unknown names are refused",
        |draft, _, _| {
            draft.tls.strict_sni = Some(true);
            Ok(())
        },
    ),
    R::new(
        "tls-ticket-keys",
        Sections::BIND,
        "<keyfile>",
        "keys of session tickets",
        ticket_keys,
    )
    .examples("tls-ticket-keys keys", "tls-ticket-keys"),
    R::new(
        "tls-tickets",
        Sections::BIND,
        "",
        "session tickets, after no-tls-tickets",
        |draft, _, _| {
            draft.tls.tickets = Some(true);
            Ok(())
        },
    ),
    R::new(
        "verify",
        BIND_AND_CRT_LIST,
        "none | optional | required",
        "whether clients must have a certificate",
        shared_with_crt_list,
    )
    .examples("verify optional", "verify always"),
];

/// A word that lines of a crt-list have too.
fn shared_with_crt_list(
    draft: &mut BindDraft,
    args: &mut Args<'_>,
    context: &mut Context<'_>,
) -> Result<(), Diagnostic> {
    tls::option(&mut draft.tls.options, args, context)
}

fn errors(args: &mut Args<'_>) -> Result<VerifyErrors, Diagnostic> {
    let text = tls::value(args, "error IDs list")?;
    let word = args.keyword();
    verify_errors(text).map_err(|message| args.wrong(format!("'{word}' : {message}")))
}

fn certificate(
    draft: &mut BindDraft,
    args: &mut Args<'_>,
    context: &mut Context<'_>,
) -> Result<TlsFile, Diagnostic> {
    draft.tls.names_certificate = true;
    let file = tls::certificate(args, context, "certificate location")?;
    tls::certificate_exists(&file, args.keyword_span(), context)?;
    Ok(file)
}

/// The file is read by whoever listens: it changes without the line.
fn ticket_keys(
    draft: &mut BindDraft,
    args: &mut Args<'_>,
    context: &mut Context<'_>,
) -> Result<(), Diagnostic> {
    let name = tls::value(args, "TLS ticket keys file path")?;
    let span = args.keyword_span();
    let file = TlsFile {
        path: name.to_owned(),
        origin: context.origin(span),
    };
    context.exists_at(&file.path, || {
        let message = format!("'{name}' : unable to load ssl tickets keys file");
        Diagnostic::alert("missing-file", message).at(span)
    })?;
    draft.tls.ticket_keys = Some(file);
    Ok(())
}

/// A crt-list. It is read here: its lines are part of the model.
fn crt_list(
    draft: &mut BindDraft,
    args: &mut Args<'_>,
    context: &mut Context<'_>,
) -> Result<(), Diagnostic> {
    draft.tls.names_certificate = true;
    let name = tls::value(args, "certificate location")?;
    let span = args.keyword_span();
    let path = name.to_owned();
    let bytes = match context.machine.read(&context.path(name)) {
        Ok(bytes) => bytes,
        Err(error) => {
            context.stand_in_or(&format!("file '{path}'"), || {
                let message = format!("'crt-list' : cannot open file '{path}' : {error}");
                Diagnostic::alert("missing-file", message).at(span)
            })?;
            Vec::new()
        }
    };
    let text = String::from_utf8_lossy(&bytes);
    let read = certificate_list(&path, &text, &context.bases())
        .map_err(|message| args.wrong(format!("'crt-list' : {message}")))?;
    for message in read.warnings {
        context.warn("odd-crt-list", format!("'crt-list' : {message}"), span);
    }
    for line in &read.lines {
        tls::line_files_exist(line, span, context).map_err(|mut diagnostic| {
            diagnostic.message = format!("'crt-list' : {}", diagnostic.message);
            diagnostic
        })?;
    }
    draft
        .tls
        .certificates
        .push(CertificateSource::List(CertificateList {
            path,
            origin: context.origin(span),
            lines: read.lines,
        }));
    Ok(())
}
