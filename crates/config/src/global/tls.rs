//! Global keywords about TLS: defaults of bind and server lines, directories, limits, `tune.ssl.*`.
//!
//! Source: HAProxy configuration manual, sections 3.1 and 3.2; the wording of errors is HAProxy's.

use std::time::Duration;

use ballast_model::{ExtraFiles, Global, TlsFile};
use ballast_syntax::{Diagnostic, TimeUnit};

use crate::address::{self, AddressForm};
use crate::args::Args;
use crate::check;
use crate::context::{Context, suggestion};
use crate::keyword::{Row, Sections};
use crate::tls::{Protocol, Versions};
use crate::tls_words as tls;

/// A row of this file's table.
type R = Row<Global>;

/// Why the largest size of records changes nothing.
const RECORDS: &str =
    "records are as large as what there is to send; tune.ssl.hard-maxrecord holds for all of them";

/// The rows whose words do something.
pub(super) const ROWS: &[R] = &[
    R::new("ca-base", Sections::GLOBAL, "<dir>", "where relative names of authorities start", |_, args, context| {
        context.declarations.tls.bases.ca_base = Some(directory(args)?);
        args.end()
    })
    .examples("ca-base /etc/ssl", "ca-base"),
    R::new("crt-base", Sections::GLOBAL, "<dir>", "where relative names of certificates start", |_, args, context| {
        context.declarations.tls.bases.crt_base = Some(directory(args)?);
        args.end()
    })
    .examples("crt-base /etc/ssl", "crt-base"),
    R::new("key-base", Sections::GLOBAL, "<dir>", "where relative names of keys of 'load' lines start", |_, args, context| {
        context.declarations.tls.bases.key_base = Some(directory(args)?);
        args.end()
    })
    .examples("key-base /etc/ssl", "key-base"),
    R::new("issuers-chain-path", Sections::GLOBAL, "<dir>", "issuers of certificates without a chain", |global, args, context| {
        let name = directory(args)?;
        let span = args.keyword_span();
        context.exists_at(&name, || {
            let message = "global statement 'issuers-chain-path' expects a directory path as an argument.";
            Diagnostic::alert("missing-file", message).at(span)
        })?;
        global.tls.issuers_chain_path = Some(TlsFile { path: name, origin: context.origin(span) });
        args.end()
    })
    .examples("issuers-chain-path /etc/ssl", "issuers-chain-path"),
    R::new("maxsslconn", Sections::GLOBAL, "<number>", "concurrent TLS connections", |global, args, _| {
        global.tls.connection_count_max = Some(args.count("a number")?).filter(|count| *count > 0);
        args.end()
    })
    .examples("maxsslconn 100", "maxsslconn x"),
    R::new("maxsslrate", Sections::GLOBAL, "<number>", "TLS handshakes per second", |global, args, _| {
        global.tls.session_rate_max = Some(args.count("a number")?).filter(|count| *count > 0);
        args.end()
    })
    .examples("maxsslrate 100", "maxsslrate x"),
    R::new("ocsp-update.disable", Sections::GLOBAL, "on | off", "keeps no OCSP answer fresh", |global, args, context| {
        switch(&mut global.tls.ocsp_updates.disabled, args, context)
    })
    .examples("ocsp-update.disable on", "ocsp-update.disable x"),
    R::new("ocsp-update.httpproxy", Sections::GLOBAL, "<address>[:port]", "proxy for OCSP requests", |global, args, context| {
        let text = args.text("an address")?;
        let parsed = address::parse(text, AddressForm::default(), &context.environment);
        let found = parsed.and_then(|parsed| context.resolve_address(&parsed.address));
        found.map_err(|error| args.wrong(format!("'ocsp-update.httpproxy' : {error}")))?;
        global.tls.ocsp_updates.proxy = Some(text.to_owned());
        args.end()
    })
    .examples("ocsp-update.httpproxy 192.0.2.1:80", "ocsp-update.httpproxy"),
    R::new("ocsp-update.maxdelay", Sections::GLOBAL, "<number>", "longest time between updates", delay_max)
        .examples("ocsp-update.maxdelay 3600", "ocsp-update.maxdelay x"),
    R::new("ocsp-update.mindelay", Sections::GLOBAL, "<number>", "shortest time between updates", delay_min)
        .examples("ocsp-update.mindelay 300", "ocsp-update.mindelay x"),
    R::new("ocsp-update.mode", Sections::GLOBAL, "on | off", "keeps OCSP answers fresh", |global, args, context| {
        switch(&mut global.tls.ocsp_updates.is_default, args, context)
    })
    .examples("ocsp-update.mode on", "ocsp-update.mode x"),
    R::new("ssl-default-bind-ciphers", Sections::GLOBAL, "<ciphers>", "cipher suites of binds up to TLS 1.2", |_, args, context| {
        let text = ciphers(args, context)?;
        context.declarations.tls.bind.options.given.ciphers = Some(text);
        args.end()
    })
    .examples("ssl-default-bind-ciphers ECDHE", "ssl-default-bind-ciphers"),
    R::new("ssl-default-bind-ciphersuites", Sections::GLOBAL, "<ciphersuites>", "cipher suites of binds for TLS 1.3", |_, args, context| {
        let text = list(args, "a cipher suite")?;
        context.declarations.tls.bind.options.given.ciphersuites = Some(text);
        args.end()
    })
    .examples("ssl-default-bind-ciphersuites TLS_AES_128_GCM_SHA256", "ssl-default-bind-ciphersuites"),
    R::new("ssl-default-bind-client-sigalgs", Sections::GLOBAL, "<sigalgs>", "signature algorithms for clients", |_, args, context| {
        let text = list(args, "signature algorithms")?;
        context.declarations.tls.bind.options.given.client_signature_algorithms = Some(text);
        args.end()
    })
    .examples("ssl-default-bind-client-sigalgs RSA+SHA256", "ssl-default-bind-client-sigalgs"),
    R::new("ssl-default-bind-curves", Sections::GLOBAL, "<curves>", "key exchange groups of binds", |_, args, context| {
        let text = list(args, "a curves suite")?;
        context.declarations.tls.bind.options.given.curves = Some(text);
        args.end()
    })
    .examples("ssl-default-bind-curves X25519", "ssl-default-bind-curves"),
    R::new("ssl-default-bind-options", Sections::GLOBAL, "[<option>]...", "TLS words of every bind", bind_options)
        .examples("ssl-default-bind-options ssl-min-ver TLSv1.2 no-tls-tickets", "ssl-default-bind-options"),
    R::new("ssl-default-bind-sigalgs", Sections::GLOBAL, "<sigalgs>", "signature algorithms of binds", |_, args, context| {
        let text = list(args, "signature algorithms")?;
        context.declarations.tls.bind.options.given.signature_algorithms = Some(text);
        args.end()
    })
    .examples("ssl-default-bind-sigalgs RSA+SHA256", "ssl-default-bind-sigalgs"),
    R::new("ssl-default-server-ciphers", Sections::GLOBAL, "<ciphers>", "cipher suites towards servers up to TLS 1.2", |_, args, context| {
        let text = ciphers(args, context)?;
        context.declarations.tls.server.ciphers = Some(text);
        args.end()
    })
    .examples("ssl-default-server-ciphers ECDHE", "ssl-default-server-ciphers"),
    R::new("ssl-default-server-ciphersuites", Sections::GLOBAL, "<ciphersuites>", "cipher suites towards servers for TLS 1.3", |_, args, context| {
        let text = list(args, "a cipher suite")?;
        context.declarations.tls.server.ciphersuites = Some(text);
        args.end()
    })
    .examples("ssl-default-server-ciphersuites TLS_AES_128_GCM_SHA256", "ssl-default-server-ciphersuites"),
    R::new("ssl-default-server-client-sigalgs", Sections::GLOBAL, "<sigalgs>", "signature algorithms of our certificate", |_, args, context| {
        let text = list(args, "signature algorithms")?;
        context.declarations.tls.server.client_signature_algorithms = Some(text);
        args.end()
    })
    .examples("ssl-default-server-client-sigalgs RSA+SHA256", "ssl-default-server-client-sigalgs"),
    R::new("ssl-default-server-curves", Sections::GLOBAL, "<curves>", "key exchange groups towards servers", |_, args, context| {
        let text = list(args, "a curves suite")?;
        context.declarations.tls.server.curves = Some(text);
        args.end()
    })
    .examples("ssl-default-server-curves X25519", "ssl-default-server-curves"),
    R::new("ssl-default-server-options", Sections::GLOBAL, "[<option>]...", "TLS words of every server", server_options)
        .examples("ssl-default-server-options ssl-min-ver TLSv1.2", "ssl-default-server-options"),
    R::new("ssl-default-server-sigalgs", Sections::GLOBAL, "<sigalgs>", "signature algorithms towards servers", |_, args, context| {
        let text = list(args, "signature algorithms")?;
        context.declarations.tls.server.signature_algorithms = Some(text);
        args.end()
    })
    .examples("ssl-default-server-sigalgs RSA+SHA256", "ssl-default-server-sigalgs"),
    R::new("ssl-load-extra-del-ext", Sections::GLOBAL, "", "certificate names without extension", |global, args, _| {
        global.tls.extra_files.replaces_extension = true;
        args.end()
    }),
    R::new("ssl-load-extra-files", Sections::GLOBAL, "<type>*", "files beside certificates", extra_files)
        .examples("ssl-load-extra-files none", "ssl-load-extra-files none key"),
    R::new("ssl-server-verify", Sections::GLOBAL, "none | required", "whether servers' certificates are verified", |_, args, context| {
        context.declarations.tls.verify_none = match args.text("an integer argument.")? {
            "none" => true,
            "required" => false,
            _ => return Err(args.wrong("'ssl-server-verify' expects 'none' or 'required' as argument.")),
        };
        args.end()
    })
    .examples("ssl-server-verify required", "ssl-server-verify x"),
    R::new("ssl-skip-self-issued-ca", Sections::GLOBAL, "", "leaves self-signed authorities out of chains", |global, args, _| {
        global.tls.skip_self_issued = true;
        args.end()
    }),
    R::new("tune.ssl.cachesize", Sections::GLOBAL, "<number>", "remembered sessions", |global, args, _| {
        global.tls.session_cache_blocks = count(args)?;
        args.end()
    })
    .examples("tune.ssl.cachesize 20000", "tune.ssl.cachesize -1"),
    R::new("tune.ssl.capture-buffer-size", Sections::GLOBAL, "<number>", "bytes of the client hello that are kept", |global, args, _| {
        global.tls.capture_bytes = count(args)?;
        args.end()
    })
    .examples("tune.ssl.capture-buffer-size 100", "tune.ssl.capture-buffer-size -1"),
    R::new("tune.ssl.capture-cipherlist-size", Sections::GLOBAL, "<number>", "the same in its old name", |global, args, context| {
        global.tls.capture_bytes = count(args)?;
        let message = "'tune.ssl.capture-cipherlist-size' is deprecated: please use 'tune.ssl.capture-buffer-size'";
        context.warn("deprecated", message.to_owned(), args.keyword_span());
        args.end()
    })
    .examples("tune.ssl.capture-cipherlist-size 100", "tune.ssl.capture-cipherlist-size -1"),
    R::new("tune.ssl.hard-maxrecord", Sections::GLOBAL, "<number>", "largest record ever", |global, args, _| {
        global.tls.record_bytes_max = count(args)?;
        args.end()
    })
    .examples("tune.ssl.hard-maxrecord 1400", "tune.ssl.hard-maxrecord -1"),
    R::new("tune.ssl.key-queue", Sections::GLOBAL, "<number>", "Ballast's own: signatures that may wait for a thread", |global, args, _| {
        global.tls.key_threads.queue_max = count(args)?.max(1);
        args.end()
    })
    .examples("tune.ssl.key-queue 1024", "tune.ssl.key-queue -1"),
    R::new("tune.ssl.key-threads", Sections::GLOBAL, "<number> [algo <RSA|EC>[,...]]", "Ballast's own: threads on which private keys sign", key_threads)
        .examples("tune.ssl.key-threads 2 algo RSA,EC", "tune.ssl.key-threads 2 algo DSA"),
    R::new("tune.ssl.keylog", Sections::GLOBAL, "on | off", "keeps the secrets of sessions", |global, args, _| {
        global.tls.keylog = match args.text("either 'on' or 'off'")? {
            "on" => true,
            "off" => false,
            text => {
                let message = format!("'tune.ssl.keylog' expects either 'on' or 'off' but got '{text}'.");
                return Err(args.wrong(message));
            }
        };
        args.end()
    })
    .examples("tune.ssl.keylog off", "tune.ssl.keylog x"),
    R::new("tune.ssl.lifetime", Sections::GLOBAL, "<timeout>", "age of a remembered session", |global, args, _| {
        global.tls.session_lifetime = args.time_in("ssl sessions <lifetime> in seconds", TimeUnit::Second)?;
        args.end()
    })
    .examples("tune.ssl.lifetime 300", "tune.ssl.lifetime x"),
    R::new("tune.ssl.maxrecord", Sections::GLOBAL, "<number>", "largest record at the beginning", |global, args, _| {
        global.tls.record_bytes_first = count(args)?;
        args.end()
    })
    .examples("tune.ssl.maxrecord 1400", "tune.ssl.maxrecord -1").ignored(RECORDS),
    R::new("tune.ssl.ocsp-update.maxdelay", Sections::GLOBAL, "<number>", "longest time between updates", delay_max)
        .examples("tune.ssl.ocsp-update.maxdelay 3600", "tune.ssl.ocsp-update.maxdelay x"),
    R::new("tune.ssl.ocsp-update.mindelay", Sections::GLOBAL, "<number>", "shortest time between updates", delay_min)
        .examples("tune.ssl.ocsp-update.mindelay 300", "tune.ssl.ocsp-update.mindelay x"),
];

macro_rules! noted {
    ($($word:literal, $args:literal, $help:literal, $check:tt, $good:literal, $reason:literal;)*) => {
        &[$(R::new($word, Sections::GLOBAL, $args, $help, check::form!($check))
            .examples(concat!($word, " ", $good), "")
            .ignored($reason)),*]
    };
}

/// The rows whose words change nothing, each with its reason.
pub(super) const IGNORED_ROWS: &[R] = noted! {
    "jwt.decrypt_alg_list", "<list>", "algorithms of encrypted tokens", one, "dir", "acts on encrypted tokens, which are not read";
    "jwt.decrypt_enc_list", "<list>", "encodings of encrypted tokens", one, "A128GCM", "acts on encrypted tokens, which are not read";
    "noktls", "", "no TLS in the kernel", none, "", "records are always encrypted in the process";
    "ssl-dh-param-file", "<file>", "Diffie-Hellman parameters", existing, "dh.pem", "key exchange over finite fields is not built in: clients get ECDHE";
    "ssl-engine", "<name> [algo ...]", "an engine of OpenSSL", some, "rdrand", "there is no OpenSSL that could load it; slow keys sign on 'tune.ssl.key-threads', where a device would be asked too";
    "ssl-mode-async", "", "asynchronous engines of OpenSSL", none, "", "there is no OpenSSL whose engines it could wait for; with 'tune.ssl.key-threads' handshakes wait for signatures and nothing else does";
    "ssl-passphrase-cmd", "<command>", "program that says passphrases", some, "/bin/true", "keys with a passphrase are refused when they are loaded";
    "ssl-propquery", "<query>", "choice among OpenSSL's providers", one, "fips=no", "there is no OpenSSL with providers";
    "ssl-provider", "<name>", "a provider of OpenSSL", one, "default", "there is no OpenSSL with providers";
    "ssl-provider-path", "<path>", "where OpenSSL's providers are", one, "/usr/lib", "there is no OpenSSL with providers";
    "ssl-security-level", "<number>", "OpenSSL's security level", security_level, "2", "what lower levels would allow is not built in";
    "tune.ssl.certificate-compression", "auto | off", "compresses certificates", ["auto" "off"], "auto", "certificates are not compressed";
    "tune.ssl.default-dh-param", "<number>", "size of Diffie-Hellman parameters", dh_bits, "2048", "key exchange over finite fields is not built in: clients get ECDHE";
    "tune.ssl.force-private-cache", "", "each process remembers its own sessions", none, "", "there is one process";
    "tune.ssl.keyupdate-rate-limit", "<number>", "key updates per second", (0 ..), "10", "belongs to versions after 3.2";
    "tune.ssl.ssl-ctx-cache-size", "<number>", "remembered generated certificates", (0 ..), "1000", "acts with 'generate-certificates' only, which is refused";
};

/// `tune.ssl.key-threads <number> [algo <list>]`: RSA without a list, as only its signatures are long.
fn key_threads(
    global: &mut Global,
    args: &mut Args<'_>,
    _: &mut Context<'_>,
) -> Result<(), Diagnostic> {
    let threads = &mut global.tls.key_threads;
    threads.count = count(args)?;
    if threads.count > KEY_THREADS_MAX {
        return Err(args.wrong(format!(
            "'tune.ssl.key-threads' expects at most {KEY_THREADS_MAX} threads."
        )));
    }
    let is_used = threads.count > 0;
    (threads.rsa, threads.ecdsa) = (is_used, false);
    match args.next() {
        None => return Ok(()),
        Some("algo") => threads.rsa = false,
        Some(word) => {
            let message = format!("'tune.ssl.key-threads' expects 'algo' but got '{word}'.");
            return Err(args.wrong(message));
        }
    }
    for name in args.text("a list of algorithms (RSA, EC)")?.split(',') {
        match name {
            "RSA" => threads.rsa = is_used,
            "EC" => threads.ecdsa = is_used,
            _ => {
                let message = format!(
                    "'tune.ssl.key-threads' knows the algorithms RSA and EC, and not '{name}'."
                );
                return Err(args.wrong(message));
            }
        }
    }
    args.end()
}

/// The most threads of `tune.ssl.key-threads`.
const KEY_THREADS_MAX: u32 = 1024;

fn directory(args: &mut Args<'_>) -> Result<String, Diagnostic> {
    list(args, "a directory path")
}

/// The one argument of a global statement.
fn list(args: &mut Args<'_>, what: &str) -> Result<String, Diagnostic> {
    match args.next() {
        Some(text) if !text.is_empty() => Ok(text.to_owned()),
        _ => Err(args.wrong(format!(
            "global statement '{}' expects {what} as an argument.",
            args.keyword()
        ))),
    }
}

fn ciphers(args: &mut Args<'_>, context: &mut Context<'_>) -> Result<String, Diagnostic> {
    let text = list(args, "a cipher suite")?;
    tls::check_ciphers(args.keyword(), &text, args.keyword_span(), context);
    Ok(text)
}

fn count(args: &mut Args<'_>) -> Result<u32, Diagnostic> {
    let text = args.text("a positive numeric value.")?;
    let number = text
        .parse()
        .ok()
        .filter(|number| i32::try_from(*number).is_ok());
    number.ok_or_else(|| {
        args.wrong(format!(
            "'{}' expects a positive numeric value.",
            args.keyword()
        ))
    })
}

/// `on` or `off`; anything else changes nothing, as in HAProxy.
fn switch(
    value: &mut bool,
    args: &mut Args<'_>,
    context: &mut Context<'_>,
) -> Result<(), Diagnostic> {
    match args.next() {
        Some("on") => *value = true,
        Some("off") => *value = false,
        _ => {
            let message = format!("'{}' : expecting <on|off>", args.keyword());
            context.warn("bad-value", message, args.keyword_span());
        }
    }
    args.end()
}

fn delay_max(
    global: &mut Global,
    args: &mut Args<'_>,
    _: &mut Context<'_>,
) -> Result<(), Diagnostic> {
    let updates = &mut global.tls.ocsp_updates;
    updates.delay_max = Duration::from_secs(u64::from(args.count("a number of seconds")?));
    if updates.delay_max < updates.delay_min {
        return Err(args.wrong(format!(
            "'{}' can not be lower than tune.ssl.ocsp-update.mindelay.",
            args.keyword()
        )));
    }
    args.end()
}

fn delay_min(
    global: &mut Global,
    args: &mut Args<'_>,
    _: &mut Context<'_>,
) -> Result<(), Diagnostic> {
    let updates = &mut global.tls.ocsp_updates;
    updates.delay_min = Duration::from_secs(u64::from(args.count("a number of seconds")?));
    if updates.delay_max < updates.delay_min {
        return Err(args.wrong(format!(
            "'{}' can not be higher than tune.ssl.ocsp-update.maxdelay.",
            args.keyword()
        )));
    }
    args.end()
}

fn extra_files(
    global: &mut Global,
    args: &mut Args<'_>,
    context: &mut Context<'_>,
) -> Result<(), Diagnostic> {
    let mut files = ExtraFiles {
        bundle: false,
        sctl: false,
        ocsp: false,
        issuer: false,
        key: false,
        ..global.tls.extra_files
    };
    let words = args.texts();
    let wrong = "'ssl-load-extra-files' expects one or multiple arguments (none, all, bundle, \
                 sctl, ocsp, issuer).";
    if words.is_empty() {
        return Err(args.wrong(wrong));
    }
    while let Some(word) = args.next() {
        match word {
            "none" | "all" if words.len() > 1 => {
                let message = "'ssl-load-extra-files' 'none' and 'all' can be only used alone";
                return Err(args.wrong(message));
            }
            "none" => {}
            "all" => {
                let replaces_extension = files.replaces_extension;
                files = ExtraFiles {
                    replaces_extension,
                    ..ExtraFiles::default()
                };
            }
            "bundle" => files.bundle = true,
            "sctl" => files.sctl = true,
            "ocsp" => files.ocsp = true,
            "issuer" => files.issuer = true,
            "key" => files.key = true,
            _ => return Err(args.wrong(wrong)),
        }
    }
    global.tls.extra_files = files;
    context.declarations.tls.bundles = files.bundle;
    Ok(())
}

/// The words that both lists of options have.
const VERSIONS: &[&str] = &[
    "force-sslv3",
    "force-tlsv10",
    "force-tlsv11",
    "force-tlsv12",
    "force-tlsv13",
    "no-sslv3",
    "no-tls-tickets",
    "no-tlsv10",
    "no-tlsv11",
    "no-tlsv12",
    "no-tlsv13",
    "ssl-max-ver",
    "ssl-min-ver",
];

/// The words that only the list for binds has.
const BIND_WORDS: &[&str] = &[
    "no-strict-sni",
    "prefer-client-ciphers",
    "strict-sni",
    "tls-tickets",
];

fn bind_options(
    _: &mut Global,
    args: &mut Args<'_>,
    context: &mut Context<'_>,
) -> Result<(), Diagnostic> {
    let mut words = std::mem::take(&mut context.declarations.tls.bind);
    let result = options(args, BIND_WORDS, |word, args| match word {
        "strict-sni" => {
            words.strict_sni = Some(true);
            Ok(())
        }
        "no-strict-sni" => {
            words.strict_sni = Some(false);
            Ok(())
        }
        "tls-tickets" => {
            words.tickets = Some(true);
            Ok(())
        }
        "no-tls-tickets" => {
            words.tickets = Some(false);
            Ok(())
        }
        "prefer-client-ciphers" => {
            words.prefer_client_ciphers = true;
            Ok(())
        }
        _ => version(&mut words.options.versions, word, args),
    });
    context.declarations.tls.bind = words;
    result?;
    let floor = context.declarations.tls.bind.options.versions.min;
    tls::report_old_version(floor, args.span(), context);
    Ok(())
}

fn server_options(
    _: &mut Global,
    args: &mut Args<'_>,
    context: &mut Context<'_>,
) -> Result<(), Diagnostic> {
    let mut words = std::mem::take(&mut context.declarations.tls.server);
    let result = options(args, &[], |word, args| match word {
        "no-tls-tickets" => {
            words.tickets = Some(false);
            Ok(())
        }
        _ => version(&mut words.versions, word, args),
    });
    context.declarations.tls.server = words;
    result?;
    let floor = context.declarations.tls.server.versions.min;
    tls::report_old_version(floor, args.span(), context);
    Ok(())
}

/// Takes the words of a list of options one by one.
fn options(
    args: &mut Args<'_>,
    more: &[&str],
    mut set: impl FnMut(&str, &mut Args<'_>) -> Result<(), Diagnostic>,
) -> Result<(), Diagnostic> {
    let statement = args.keyword();
    if args.is_empty() {
        return Err(args.wrong(format!(
            "global statement '{statement}' expects an option as an argument."
        )));
    }
    while let Some(text) = args.next() {
        if !VERSIONS.contains(&text) && !more.contains(&text) {
            let message = format!("unknown option '{text}' on global statement '{statement}'.");
            let known = VERSIONS.iter().chain(more).copied();
            return Err(suggestion(args.wrong(message), text, known));
        }
        set(text, args)?;
    }
    Ok(())
}

/// A word about versions.
fn version(versions: &mut Versions, word: &str, args: &mut Args<'_>) -> Result<(), Diagnostic> {
    let numbered = |text: &str| match text {
        "sslv3" => Protocol::Ssl3,
        "tlsv10" => Protocol::Tls10,
        "tlsv11" => Protocol::Tls11,
        "tlsv12" => Protocol::Tls12,
        _ => Protocol::Tls13,
    };
    if let Some(text) = word.strip_prefix("force-") {
        versions.force(numbered(text));
        return Ok(());
    }
    if let Some(text) = word.strip_prefix("no-") {
        versions.disable(numbered(text));
        return Ok(());
    }
    let on = format!("on global statement '{}'.", args.keyword());
    let text = args.next().filter(|text| !text.is_empty());
    let text =
        text.ok_or_else(|| args.wrong(format!("'{word}' : missing the ssl/tls version {on}")))?;
    let version = Protocol::parse(text).map_err(|error| args.wrong(format!("{error} {on}")))?;
    match word {
        "ssl-min-ver" => versions.min = Some(version),
        _ => versions.max = Some(version),
    }
    Ok(())
}
