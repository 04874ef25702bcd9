//! OpenSSL's words for ciphers, groups and signature algorithms, translated to what exists here
//! (manual, 5.1, `ciphers`, `ciphersuites`, `curves`, `ecdhe`, `sigalgs`; openssl-ciphers(1),
//! SSL_CTX_set1_groups_list(3), SSL_CTX_set1_sigalgs(3)).
//!
//! Of the suites of TLS 1.2 only those with ECDHE and an AEAD cipher exist here. A word for another
//! one is reported and left out, as OpenSSL leaves out what it was built without.

use std::fmt;

use rustls::crypto::SupportedKxGroup;
use rustls::crypto::aws_lc_rs::{cipher_suite as suite, kx_group};
use rustls::{SignatureScheme, SupportedCipherSuite};

/// What a list of words means.
#[derive(Clone, Debug)]
pub struct Translation<T> {
    /// What exists here, in the order of preference.
    pub found: Vec<T>,
    /// The words that OpenSSL may know, and that mean nothing here.
    pub missing: Vec<String>,
}

/// Why a list cannot be used. The operator is at fault.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum CipherError {
    /// Nothing of it exists here.
    Empty {
        /// The list as written.
        list: String,
    },
    /// A word that OpenSSL does not know either.
    UnknownWord {
        /// The word.
        word: String,
    },
}

impl fmt::Display for CipherError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty { list } => write!(
                f,
                "nothing of '{list}' exists here (TLS 1.2 has ECDHE with AES-GCM or \
                 ChaCha20-Poly1305, TLS 1.3 has AES-GCM and ChaCha20-Poly1305)"
            ),
            Self::UnknownWord { word } => write!(f, "'{word}' is not known"),
        }
    }
}

/// Bits of a set of suites of TLS 1.2: bit N is number N of [`TLS12_SUITES`].
type SuiteSet = u8;

/// The suites of TLS 1.2 that exist here, in OpenSSL's order of preference.
const TLS12_SUITES: [(&str, &str, SupportedCipherSuite); 6] = [
    (
        "ECDHE-ECDSA-AES256-GCM-SHA384",
        "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
        suite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
    ),
    (
        "ECDHE-RSA-AES256-GCM-SHA384",
        "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
        suite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
    ),
    (
        "ECDHE-ECDSA-CHACHA20-POLY1305",
        "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
        suite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
    ),
    (
        "ECDHE-RSA-CHACHA20-POLY1305",
        "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
        suite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
    ),
    (
        "ECDHE-ECDSA-AES128-GCM-SHA256",
        "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
        suite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
    ),
    (
        "ECDHE-RSA-AES128-GCM-SHA256",
        "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
        suite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
    ),
];
const ALL: SuiteSet = 0b11_1111;
const AES_256: SuiteSet = 0b00_0011;
const CHACHA20: SuiteSet = 0b00_1100;
const AES_128: SuiteSet = 0b11_0000;
const ECDSA: SuiteSet = 0b01_0101;
const RSA: SuiteSet = 0b10_1010;

/// Words of openssl-ciphers(1) that mean some of these suites.
const SUITE_WORDS: [(&str, SuiteSet); 16] = [
    ("ALL", ALL),
    ("AES", AES_256 | AES_128),
    ("AES128", AES_128),
    ("AES256", AES_256),
    ("AESGCM", AES_256 | AES_128),
    ("CHACHA20", CHACHA20),
    ("ECDH", ALL),
    ("ECDHE", ALL),
    ("ECDSA", ECDSA),
    ("EECDH", ALL),
    ("FIPS", AES_256 | AES_128),
    ("HIGH", ALL),
    ("TLSv1.2", ALL),
    ("aECDSA", ECDSA),
    ("aRSA", RSA),
    ("kEECDH", ALL),
];

/// The suites of TLS 1.3 that exist here, in OpenSSL's order of preference.
const TLS13_SUITES: [(&str, SupportedCipherSuite); 3] = [
    ("TLS_AES_256_GCM_SHA384", suite::TLS13_AES_256_GCM_SHA384),
    (
        "TLS_CHACHA20_POLY1305_SHA256",
        suite::TLS13_CHACHA20_POLY1305_SHA256,
    ),
    ("TLS_AES_128_GCM_SHA256", suite::TLS13_AES_128_GCM_SHA256),
];

/// The suites of TLS 1.2 where a line names none: all, in OpenSSL's order.
#[must_use]
pub fn default_ciphers() -> Vec<SupportedCipherSuite> {
    TLS12_SUITES.iter().map(|(_, _, suite)| *suite).collect()
}

/// The suites of TLS 1.3 where a line names none: all, in OpenSSL's order.
#[must_use]
pub fn default_ciphersuites() -> Vec<SupportedCipherSuite> {
    TLS13_SUITES.iter().map(|(_, suite)| *suite).collect()
}

/// The groups where a line names none: OpenSSL's that exist here, the post-quantum hybrid first.
#[must_use]
pub fn default_groups() -> Vec<&'static dyn SupportedKxGroup> {
    vec![
        kx_group::X25519MLKEM768,
        kx_group::X25519,
        kx_group::SECP256R1,
        kx_group::SECP384R1,
    ]
}

/// The set that a word means: names of suites (OpenSSL's or IANA's), words, and words joined by `+`.
fn suites_of(word: &str) -> SuiteSet {
    word.split('+').fold(ALL, |set, part| {
        let named = TLS12_SUITES
            .iter()
            .position(|(name, standard, _)| part == *name || part == *standard)
            .map(|index| 1 << index);
        let listed = SUITE_WORDS
            .iter()
            .find(|(name, _)| part == *name || (*name == "kEECDH" && part == "kECDHE"));
        set & named.or(listed.map(|(_, set)| *set)).unwrap_or(0)
    })
}

/// The rules of a list of ciphers. `@` and `!` begin one wherever they stand.
fn cipher_rules(list: &str) -> Vec<&str> {
    let mut rules = Vec::new();
    for word in list.split([':', ',', ';', ' ']) {
        let mut start = 0;
        for (at, _) in word.match_indices(['@', '!']).filter(|(at, _)| *at > 0) {
            rules.push(&word[start..at]);
            start = at;
        }
        rules.push(&word[start..]);
    }
    rules.retain(|rule| !rule.is_empty());
    rules
}

/// Translates `ciphers`: the suites of TLS 1.2.
///
/// # Errors
///
/// [`CipherError::Empty`].
pub fn translate_ciphers(list: &str) -> Result<Translation<SupportedCipherSuite>, CipherError> {
    // The order in which suites are looked at, and which of them are chosen: OpenSSL's rules.
    // `DEFAULT` means something at the beginning only, and a rule may follow it without a separator.
    let rules = list.strip_prefix("DEFAULT");
    let mut order: Vec<(usize, bool)> = (0..TLS12_SUITES.len())
        .map(|index| (index, rules.is_some()))
        .collect();
    let mut missing = Vec::new();
    for word in cipher_rules(rules.unwrap_or(list)) {
        let (sign, name) = match word.as_bytes()[0] {
            sign @ (b'+' | b'-' | b'!') => (sign, &word[1..]),
            b'@' => {
                match &word[1..] {
                    "STRENGTH" => order.sort_by_key(|(index, _)| AES_128 & (1 << index) != 0),
                    "SECLEVEL=0" | "SECLEVEL=1" | "SECLEVEL=2" => {}
                    _ => missing.push(word.to_owned()),
                }
                continue;
            }
            _ => (0, word),
        };
        let set = suites_of(name);
        if set == 0 && sign == 0 {
            missing.push(name.to_owned());
        }
        let is_meant = |index: usize| set & (1 << index) != 0;
        match sign {
            b'!' => order.retain(|(index, _)| !is_meant(*index)),
            b'-' => {
                let is_taken = |(index, is_chosen): &(usize, bool)| *is_chosen && is_meant(*index);
                let (taken, rest): (Vec<_>, Vec<_>) = order.into_iter().partition(is_taken);
                let taken = taken.into_iter().map(|(index, _)| (index, false));
                order = taken.chain(rest).collect();
            }
            b'+' => order.sort_by_key(|(index, is_chosen)| *is_chosen && is_meant(*index)),
            _ => {
                let is_added = |(index, is_chosen): &(usize, bool)| !is_chosen && is_meant(*index);
                let (added, rest): (Vec<_>, Vec<_>) = order.into_iter().partition(is_added);
                let added = added.into_iter().map(|(index, _)| (index, true));
                order = rest.into_iter().chain(added).collect();
            }
        }
    }
    let found = order
        .into_iter()
        .filter(|(_, is_chosen)| *is_chosen)
        .map(|(index, _)| TLS12_SUITES[index].2)
        .collect();
    whole(list, found, missing)
}

/// Translates `ciphersuites`: the suites of TLS 1.3.
///
/// # Errors
///
/// [`CipherError::Empty`].
pub fn translate_ciphersuites(
    list: &str,
) -> Result<Translation<SupportedCipherSuite>, CipherError> {
    let (mut found, mut missing) = (Vec::new(), Vec::new());
    for word in words(list) {
        match TLS13_SUITES.iter().find(|(name, _)| *name == word) {
            Some((_, suite)) if !found.contains(suite) => found.push(*suite),
            Some(_) => {}
            None => missing.push(word.to_owned()),
        }
    }
    whole(list, found, missing)
}

/// Groups that OpenSSL knows and that do not exist here.
const OTHER_GROUPS: [&str; 19] = [
    "X448",
    "P-521",
    "secp521r1",
    "P-224",
    "secp224r1",
    "P-192",
    "prime192v1",
    "secp256k1",
    "brainpoolP256r1",
    "brainpoolP384r1",
    "brainpoolP512r1",
    "ffdhe2048",
    "ffdhe3072",
    "ffdhe4096",
    "ffdhe6144",
    "ffdhe8192",
    "MLKEM512",
    "SecP384r1MLKEM1024",
    "curveSM2",
];

fn group_of(word: &str) -> Option<&'static dyn SupportedKxGroup> {
    let is = |names: &[&str]| names.iter().any(|name| name.eq_ignore_ascii_case(word));
    let groups: [(&[&str], &'static dyn SupportedKxGroup); 7] = [
        (&["X25519", "ecdh_x25519"], kx_group::X25519),
        (&["P-256", "prime256v1", "secp256r1"], kx_group::SECP256R1),
        (&["P-384", "secp384r1"], kx_group::SECP384R1),
        (&["X25519MLKEM768"], kx_group::X25519MLKEM768),
        (&["SecP256r1MLKEM768"], kx_group::SECP256R1MLKEM768),
        (&["MLKEM768"], kx_group::MLKEM768),
        (&["MLKEM1024"], kx_group::MLKEM1024),
    ];
    groups
        .into_iter()
        .find(|(names, _)| is(names))
        .map(|(_, group)| group)
}

/// Translates `curves` and `ecdhe`: key exchange groups, with OpenSSL's marks (`?` unknown ones are
/// left out, `*` a key share is sent, `-` taken out again, `/` and `:` between tuples and groups,
/// `DEFAULT`).
///
/// # Errors
///
/// [`CipherError`].
pub fn translate_groups(
    list: &str,
) -> Result<Translation<&'static dyn SupportedKxGroup>, CipherError> {
    let mut found: Vec<&'static dyn SupportedKxGroup> = Vec::new();
    let mut missing = Vec::new();
    for word in list.split([':', '/']).filter(|word| !word.is_empty()) {
        let name = word.trim_start_matches(['?', '*', '-']);
        let marks = &word[..word.len() - name.len()];
        if name.eq_ignore_ascii_case("DEFAULT") {
            found.extend(default_groups());
            continue;
        }
        match group_of(name) {
            Some(group) if marks.contains('-') => found.retain(|old| old.name() != group.name()),
            Some(group) => found.push(group),
            None if marks.contains(['?', '-']) => {}
            None if OTHER_GROUPS
                .iter()
                .any(|other| other.eq_ignore_ascii_case(name)) =>
            {
                missing.push(name.to_owned());
            }
            None => {
                return Err(CipherError::UnknownWord {
                    word: name.to_owned(),
                });
            }
        }
    }
    let mut names = Vec::new();
    found.retain(|group| {
        let is_new = !names.contains(&group.name());
        names.push(group.name());
        is_new
    });
    whole(list, found, missing)
}

/// Signature algorithms by both of OpenSSL's names; without a scheme where it does not exist here.
const SIGNATURES: [(&str, &str, Option<SignatureScheme>); 18] = [
    (
        "ecdsa_secp256r1_sha256",
        "ECDSA+SHA256",
        Some(SignatureScheme::ECDSA_NISTP256_SHA256),
    ),
    (
        "ecdsa_secp384r1_sha384",
        "ECDSA+SHA384",
        Some(SignatureScheme::ECDSA_NISTP384_SHA384),
    ),
    (
        "ecdsa_secp521r1_sha512",
        "ECDSA+SHA512",
        Some(SignatureScheme::ECDSA_NISTP521_SHA512),
    ),
    ("ed25519", "ed25519", Some(SignatureScheme::ED25519)),
    (
        "rsa_pss_rsae_sha256",
        "RSA-PSS+SHA256",
        Some(SignatureScheme::RSA_PSS_SHA256),
    ),
    (
        "rsa_pss_rsae_sha384",
        "RSA-PSS+SHA384",
        Some(SignatureScheme::RSA_PSS_SHA384),
    ),
    (
        "rsa_pss_rsae_sha512",
        "RSA-PSS+SHA512",
        Some(SignatureScheme::RSA_PSS_SHA512),
    ),
    (
        "rsa_pkcs1_sha256",
        "RSA+SHA256",
        Some(SignatureScheme::RSA_PKCS1_SHA256),
    ),
    (
        "rsa_pkcs1_sha384",
        "RSA+SHA384",
        Some(SignatureScheme::RSA_PKCS1_SHA384),
    ),
    (
        "rsa_pkcs1_sha512",
        "RSA+SHA512",
        Some(SignatureScheme::RSA_PKCS1_SHA512),
    ),
    ("ed448", "ed448", None),
    ("rsa_pss_pss_sha256", "rsa_pss_pss_sha256", None),
    ("rsa_pss_pss_sha384", "rsa_pss_pss_sha384", None),
    ("rsa_pss_pss_sha512", "rsa_pss_pss_sha512", None),
    ("rsa_pkcs1_sha224", "RSA+SHA224", None),
    ("ecdsa_sha224", "ECDSA+SHA224", None),
    ("rsa_pkcs1_sha1", "RSA+SHA1", None),
    ("ecdsa_sha1", "ECDSA+SHA1", None),
];

/// Translates `sigalgs` and `client-sigalgs`.
///
/// # Errors
///
/// [`CipherError`].
pub fn translate_signatures(list: &str) -> Result<Translation<SignatureScheme>, CipherError> {
    let (mut found, mut missing) = (Vec::new(), Vec::new());
    for word in words(list) {
        let name = word.trim_start_matches('?');
        // "PSS" is short for "RSA-PSS".
        let long = name
            .strip_prefix("PSS+")
            .map(|digest| format!("RSA-PSS+{digest}"));
        let asked = long.as_deref().unwrap_or(name);
        let known = SIGNATURES.iter().find(|(scheme, pair, _)| {
            scheme.eq_ignore_ascii_case(asked) || pair.eq_ignore_ascii_case(asked)
        });
        match known {
            Some((_, _, Some(scheme))) if found.contains(scheme) => {}
            Some((_, _, Some(scheme))) => found.push(*scheme),
            Some((_, _, None)) => missing.push(name.to_owned()),
            None if word.starts_with('?') || name.to_ascii_uppercase().starts_with("DSA") => {
                missing.push(name.to_owned());
            }
            None => {
                return Err(CipherError::UnknownWord {
                    word: name.to_owned(),
                });
            }
        }
    }
    whole(list, found, missing)
}

fn words(list: &str) -> impl Iterator<Item = &str> {
    list.split(':').filter(|word| !word.is_empty())
}

fn whole<T>(
    list: &str,
    found: Vec<T>,
    missing: Vec<String>,
) -> Result<Translation<T>, CipherError> {
    if found.is_empty() {
        let list = list.to_owned();
        return Err(CipherError::Empty { list });
    }
    Ok(Translation { found, missing })
}

/// OpenSSL's name of a suite, for `ssl_fc_cipher`, logs and `show`; IANA's for TLS 1.3.
#[must_use]
pub fn openssl_name(suite: rustls::CipherSuite) -> Option<&'static str> {
    let tls12 = TLS12_SUITES.iter().map(|(name, _, suite)| (*name, suite));
    let tls13 = TLS13_SUITES.iter().map(|(name, suite)| (*name, suite));
    tls12
        .chain(tls13)
        .find(|(_, known)| known.suite() == suite)
        .map(|(name, _)| name)
}

#[cfg(test)]
mod tests;
