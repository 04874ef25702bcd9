//! `crt-store` and `acme`: where certificates come from.
//!
//! Source: HAProxy 3.2 configuration manual, sections 3.11 and 3.13.

use ballast_syntax::Diagnostic;

use super::OtherDraft;
use crate::args::Args;
use crate::check;
use crate::context::{Context, suggestion};
use crate::keyword::{Keyword, Row, Sections};

type R = Row<OtherDraft>;

const S: Sections = Sections::CRT_STORE;
const L: Sections = Sections::CRT_LOAD;
const A: Sections = Sections::ACME;
const STORE: &str = "acts where a bind or server names the certificate";
const PROVIDER: &str = "acts where a crt-store line names the section";

/// `crt-store`.
pub(super) const CRT_STORE: &[R] = &[
    R::new(
        "crt-base",
        S,
        "<dir>",
        "where relative names of certificates start",
        check::one,
    )
    .examples("crt-base /etc/ssl", "crt-base")
    .noted(STORE),
    R::new(
        "key-base",
        S,
        "<dir>",
        "where relative names of keys start",
        check::one,
    )
    .examples("key-base /etc/ssl", "key-base")
    .noted(STORE),
    R::new(
        "load",
        S,
        "crt <filename> [param*]",
        "a certificate and its parts",
        load,
    )
    .examples("load crt a.pem alias a", "load crt a.pem colour red")
    .noted(STORE),
];

macro_rules! load_rows {
    ($($word:literal, $args:literal, $help:literal, $good:literal;)*) => {
        &[$(R::new($word, L, $args, $help, check::word)
            .examples(concat!($word, " ", $good), "")
            .noted(STORE)),*]
    };
}

/// Words of `load` lines.
const LOAD: &[R] = load_rows! {
    "acme", "<string>", "section that renews it", "le";
    "alias", "<string>", "another name", "a";
    "bits", "<number>", "size of a generated RSA key", "2048";
    "crt", "<filename>", "the certificate", "a.pem";
    "curves", "<string>", "curve of a generated key", "P-384";
    "domains", "<string>", "names of a generated certificate", "a.example";
    "generate-dummy", "on | off", "makes a certificate until the real one is there", "on";
    "ips", "<string>", "addresses of a generated certificate", "192.0.2.1";
    "issuer", "<filename>", "certificate of the issuer", "i.pem";
    "jwt", "on | off", "may verify tokens", "off";
    "key", "<filename>", "the key", "a.key";
    "keytype", "<string>", "kind of a generated key", "ECDSA";
    "ocsp", "<filename>", "an OCSP answer", "a.ocsp";
    "ocsp-update", "off | on", "keeps the OCSP answer fresh", "on";
    "sctl", "<filename>", "certificate transparency data", "a.sctl";
};

/// The rows of `load` words, for the keyword table.
pub(super) fn load_keywords() -> impl Iterator<Item = Keyword> {
    LOAD.iter().map(|row| row.keyword)
}

fn load(
    _: &mut OtherDraft,
    args: &mut Args<'_>,
    context: &mut Context<'_>,
) -> Result<(), Diagnostic> {
    if args.is_empty() {
        return Err(args.missing("'crt <filename>'"));
    }
    while let Some(word) = args.next_word() {
        let text = word.text();
        if !LOAD.iter().any(|row| row.keyword.word == text) {
            let message = format!("'load' : unknown keyword '{text}'");
            let diagnostic = Diagnostic::alert("unknown-keyword", message).at(word.span());
            let known = LOAD.iter().map(|row| row.keyword.word);
            return Err(suggestion(diagnostic, text, known));
        }
        let value = args.word("a value")?;
        if matches!(text, "crt" | "key" | "ocsp" | "issuer" | "sctl")
            && value.text().starts_with('/')
        {
            context.exists(value.text(), "load", value.span())?;
        }
    }
    Ok(())
}

macro_rules! acme_rows {
    ($($word:literal, $args:literal, $help:literal, $check:ident, $good:literal;)*) => {
        &[$(R::new($word, A, $args, $help, check::$check)
            .examples(concat!($word, " ", $good), $word)
            .noted(PROVIDER)),*]
    };
}

/// `acme`.
pub(super) const ACME: &[R] = acme_rows! {
    "account-key", "<filename>", "key of the account", one, "a.key";
    "acme-vars", "<string>", "values for who answers challenges", one, "a=b";
    "bits", "<number>", "size of RSA keys", number, "2048";
    "challenge", "<string>", "how ownership is proven", one, "HTTP-01";
    "challenge-ready", "<value>[,<value>]*", "when a challenge may be tried", one, "cli";
    "contact", "<string>", "address of the account", one, "a@example.com";
    "curves", "<string>", "curve of ECDSA keys", one, "P-384";
    "directory", "<string>", "address of the provider", one, "https://acme.example/directory";
    "dns-delay", "<time>", "pause before a name is looked up", time, "10s";
    "dns-timeout", "<time>", "longest wait for a name", time, "10s";
    "eab-key-id", "<string>", "name of the key of an outer account", one, "a";
    "eab-mac-alg", "<string>", "algorithm of that key", one, "HS256";
    "eab-mac-key", "<string>", "that key", one, "a";
    "keytype", "<string>", "kind of keys", one, "ECDSA";
    "map", "<map>", "map that answers HTTP challenges", one, "virt@acme";
    "profile", "<string>", "profile of certificates", one, "classic";
    "provider-name", "<string>", "name of the provider", one, "a";
    "reuse-key", "on | off", "renews with the same key", on_off, "on";
};
