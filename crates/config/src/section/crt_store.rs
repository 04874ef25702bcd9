//! `crt-store`: certificates and their parts, under names that other lines use.
//!
//! Source: HAProxy 3.2 configuration manual, section 12.7; the wording of errors is HAProxy's.

use ballast_model::{CertificateLoad, TlsFile};
use ballast_syntax::Diagnostic;

use super::PlainSectionDraft;
use crate::args::Args;
use crate::check;
use crate::context::{Context, suggestion};
use crate::keyword::{Keyword, Row, Sections};
use crate::tls::crt_list::set_part;
use crate::tls::protocols;
use crate::tls_words as tls;

/// A row of this file's table.
type R = Row<PlainSectionDraft>;

/// Why `sctl` changes nothing.
const NO_TIMESTAMPS: &str = "read and shown, and not sent to clients: the TLS library cannot";
const GENERATED: &str = "certificates are not ordered from here: no ACME client is built in";

/// `crt-store`.
pub(super) const CRT_STORE: &[R] = &[
    R::new(
        "crt-base",
        Sections::CRT_STORE,
        "<dir>",
        "where relative names of certificates start",
        |draft, args, _| {
            draft.bases.crt_base = Some(directory(draft, args)?);
            args.end()
        },
    )
    .examples("crt-base /etc/ssl", "crt-base"),
    R::new(
        "key-base",
        Sections::CRT_STORE,
        "<dir>",
        "where relative names of keys start",
        |draft, args, _| {
            draft.bases.key_base = Some(directory(draft, args)?);
            args.end()
        },
    )
    .examples("key-base /etc/ssl", "key-base"),
    R::new(
        "load",
        Sections::CRT_STORE,
        "crt <filename> [param*]",
        "a certificate and its parts",
        load,
    )
    .examples("load crt a.pem alias a", "load crt a.pem colour red"),
];

macro_rules! load_rows {
    ($($word:literal, $args:literal, $help:literal, $good:literal $(, $reason:expr)?;)*) => {
        &[$(R::new($word, Sections::CRT_LOAD, $args, $help, check::word)
            .examples(concat!($word, " ", $good), "")
            $(.ignored($reason))?),*]
    };
}

/// Words of `load` lines.
const LOAD: &[R] = load_rows! {
    "acme", "<string>", "section that renews it", "le", GENERATED;
    "alias", "<string>", "another name", "a";
    "bits", "<number>", "size of a generated RSA key", "2048", GENERATED;
    "crt", "<filename>", "the certificate", "a.pem";
    "curves", "<string>", "curve of a generated key", "P-384", GENERATED;
    "domains", "<string>", "names of a generated certificate", "a.example", GENERATED;
    "generate-dummy", "on | off", "makes a certificate until the real one is there", "on", GENERATED;
    "ips", "<string>", "addresses of a generated certificate", "192.0.2.1", GENERATED;
    "issuer", "<filename>", "certificate of the issuer", "i.pem";
    "jwt", "on | off", "may verify tokens", "off", "belongs to versions after 3.2: there any certificate may";
    "key", "<filename>", "the key", "a.key";
    "keytype", "<string>", "kind of a generated key", "ECDSA", GENERATED;
    "ocsp", "<filename>", "an OCSP answer", "a.ocsp";
    "ocsp-update", "off | on", "keeps the OCSP answer fresh", "on";
    "sctl", "<filename>", "certificate transparency data", "a.sctl", NO_TIMESTAMPS;
};

/// The rows of `load` words, for the keyword table.
pub(super) fn load_keywords() -> impl Iterator<Item = Keyword> {
    LOAD.iter().map(|row| row.keyword)
}

fn directory(draft: &PlainSectionDraft, args: &mut Args<'_>) -> Result<String, Diagnostic> {
    let word = args.keyword();
    if !draft.loads.is_empty() {
        let message = format!(
            "'{word}' can't be used after a load line, use it at the beginning of the section."
        );
        return Err(args.wrong(message));
    }
    match args.next() {
        Some(text) if !text.is_empty() => Ok(text.to_owned()),
        _ => Err(args.wrong(format!("'{word}' requires a <path> argument."))),
    }
}

fn load(
    draft: &mut PlainSectionDraft,
    args: &mut Args<'_>,
    context: &mut Context<'_>,
) -> Result<(), Diagnostic> {
    let span = args.span();
    let origin = context.origin(span);
    let mut bases = context.bases();
    bases.crt_base = draft.bases.crt_base.clone().or(bases.crt_base);
    bases.key_base = draft.bases.key_base.clone().or(bases.key_base);
    let mut load = CertificateLoad::default();
    let (mut crt, mut alias) = (None, None);
    while let Some(word) = args.next_word() {
        let text = word.text();
        if !LOAD.iter().any(|row| row.keyword.word == text) {
            let message =
                format!("'load {text}' in section 'crt-store': unknown keyword '{text}'.");
            let diagnostic = Diagnostic::alert("unknown-keyword", message).at(word.span());
            let known = LOAD.iter().map(|row| row.keyword.word);
            return Err(suggestion(diagnostic, text, known));
        }
        let value = args.text("a value")?;
        match text {
            "crt" => crt = Some(value),
            "alias" if value.starts_with('/') => {
                let message = format!("an alias cannot begin with '/' (got '{value}')");
                return Err(args.wrong(message));
            }
            "alias" => alias = Some(value),
            "domains" => load.domains = protocols(value),
            _ => {
                let path = match text {
                    "key" => bases.key(value),
                    _ => value.to_owned(),
                };
                let file = TlsFile {
                    path,
                    origin: origin.clone(),
                };
                let set = set_part(&mut load.parts, text, value, file);
                set.map_err(|message| args.wrong(message))?;
            }
        }
    }
    let Some(crt) = crt else {
        let message = "'load' in section 'crt-store': mandatory 'crt' parameter not found.";
        return Err(Diagnostic::alert("missing-argument", message).at(span));
    };
    load.certificate = TlsFile {
        path: bases.certificate(crt),
        origin,
    };
    load.name = match alias {
        Some(alias) => format!("@{}/{alias}", draft.name),
        None if draft.name.is_empty() => load.certificate.path.clone(),
        None => format!("@{}/{crt}", draft.name),
    };
    if !context.declarations.tls.loads.insert(load.name.clone()) {
        let name = &load.name;
        let message = format!("'load' in section 'crt-store': store '{name}' was already defined.");
        return Err(Diagnostic::alert("duplicate-name", message).at(span));
    }
    let path = &load.certificate.path;
    context.exists_at(path, || {
        let message = format!("cannot open the file '{path}'.");
        Diagnostic::alert("missing-file", message).at(span)
    })?;
    let parts = &load.parts;
    for file in [&parts.key, &parts.ocsp, &parts.issuer, &parts.sctl] {
        tls::part_exists(file.as_ref(), span, context)?;
    }
    draft.loads.push(load);
    Ok(())
}
