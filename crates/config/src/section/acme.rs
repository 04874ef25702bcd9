//! `acme`: where certificates come from.
//!
//! Source: HAProxy 3.2 configuration manual, section 12.8.

use super::PlainSectionDraft;
use crate::check;
use crate::keyword::{Row, Sections};

/// A row of this file's table.
type R = Row<PlainSectionDraft>;

const PROVIDER: &str = "certificates are not ordered from here: no ACME client is built in";

macro_rules! acme_rows {
    ($($word:literal, $args:literal, $help:literal, $check:ident, $good:literal;)*) => {
        &[$(R::new($word, Sections::ACME, $args, $help, check::$check)
            .examples(concat!($word, " ", $good), $word)
            .ignored(PROVIDER)),*]
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
