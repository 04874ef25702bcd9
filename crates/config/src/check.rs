//! Deeds that only check the form of a line: for rows that are noted or served later.

use ballast_syntax::Diagnostic;

use crate::args::Args;
use crate::context::Context;

macro_rules! checks {
    ($($(#[$doc:meta])* $name:ident($args:ident) $body:block)*) => {
        $($(#[$doc])*
        ///
        /// # Errors
        /// When the words have another form.
        pub(crate) fn $name<C>(
            _: &mut C,
            $args: &mut Args<'_>,
            _: &mut Context<'_>,
        ) -> Result<(), Diagnostic> $body)*
    };
}

checks! {
    /// No argument.
    none(args) { args.end() }
    /// Whatever follows.
    any(args) { args.rest(); Ok(()) }
    /// At least one word.
    some(args) { args.text("at least one argument")?; args.rest(); Ok(()) }
    /// One word.
    one(args) { args.text("an argument")?; args.end() }
    /// One word or none.
    maybe_one(args) { args.next(); args.end() }
    /// One word among others on the line.
    word(args) { args.text("an argument").map(|_| ()) }
    /// Nothing of its own.
    nothing(_args) { Ok(()) }
    /// A number among others on the line.
    count(args) { args.count("a number").map(|_| ()) }
    /// A time among others on the line.
    delay(args) { args.time("a time").map(|_| ()) }
    /// A size among others on the line.
    bytes(args) { args.size("a size", u64::from(u32::MAX)).map(|_| ()) }
    /// A number, negative ones and sizes too.
    amount(args) {
        let text = args.text("a number")?;
        let digits = text.strip_prefix('-').unwrap_or(text);
        if ballast_syntax::parse_size(digits, u64::MAX).is_err() {
            return Err(args.wrong(format!("'{}' expects a number (got '{text}')", args.keyword())));
        }
        args.end()
    }
    /// Two words.
    two(args) { args.text("two arguments")?; args.text("two arguments")?; args.end() }
    /// A number that is not negative.
    number(args) { args.count("a number")?; args.end() }
    /// A time.
    time(args) { args.time("a time")?; args.end() }
    /// A size.
    size(args) { args.size("a size", u64::from(u32::MAX))?; args.end() }
    /// A percentage.
    percent(args) { args.number("a number", 0..=100)?; args.end() }
    /// OpenSSL's security levels.
    security_level(args) { args.number("a value between 0 and 5", 0..=5)?; args.end() }
    /// Bits of Diffie-Hellman parameters.
    dh_bits(args) { args.number("a value >= 1024", 1024..=i64::from(u32::MAX))?; args.end() }
    /// What is looked for beside a certificate.
    extra_files(args) {
        const KINDS: &[(&str, ())] =
            &[("none", ()), ("all", ()), ("bundle", ()), ("sctl", ()), ("ocsp", ()), ("issuer", ())];
        args.choice(KINDS)?;
        while !args.is_empty() {
            args.choice(KINDS)?;
        }
        Ok(())
    }
    /// A time of at most a second.
    second(args) {
        let time = args.time("a time")?;
        if time.is_zero() || time > std::time::Duration::from_secs(1) {
            return Err(args.wrong(format!("'{}' expects 1 to 1000 ms", args.keyword())));
        }
        args.end()
    }
    /// Families of addresses.
    families(args) {
        let text = args.text("a list of families")?;
        let is_known = |word: &str| matches!(word, "ipv4" | "ipv6" | "auto");
        if !text.split(',').all(is_known) {
            let message =
                format!("'{}' expects a comma-delimited list of 'ipv4' and 'ipv6' (got '{text}')", args.keyword());
            return Err(args.wrong(message));
        }
        args.end()
    }
    /// Where threads go.
    cpu_policy(args) {
        args.choice(&[
            ("none", ()), ("first-usable-node", ()), ("group-by-ccx", ()), ("group-by-2-ccx", ()),
            ("group-by-3-ccx", ()), ("group-by-4-ccx", ()), ("group-by-cluster", ()),
            ("group-by-2-clusters", ()), ("group-by-3-clusters", ()), ("group-by-4-clusters", ()),
            ("performance", ()), ("efficiency", ()), ("resource", ()),
        ])?;
        args.rest();
        Ok(())
    }
    /// Processors that are left out or kept.
    cpu_set(args) {
        args.choice(&[
            ("reset", ()), ("only-cpu", ()), ("drop-cpu", ()), ("only-node", ()), ("drop-node", ()),
            ("only-cluster", ()), ("drop-cluster", ()), ("only-core", ()), ("drop-core", ()),
            ("only-thread", ()), ("drop-thread", ()),
        ])?;
        args.rest();
        Ok(())
    }
    /// When tasks are measured.
    profiling(args) { args.choice(&[("auto", ()), ("on", ()), ("off", ())])?; args.end() }
    /// `on` or `off`.
    on_off(args) { args.choice(&[("on", ()), ("off", ())])?; args.end() }
}

/// A list of cipher suites, alone on its line.
///
/// # Errors
/// When it is missing, or more follows.
pub(crate) fn ciphers<C>(
    target: &mut C,
    args: &mut Args<'_>,
    context: &mut Context<'_>,
) -> Result<(), Diagnostic> {
    crate::tls_words::ciphers(target, args, context)?;
    args.end()
}

/// TLS words of every bind or server.
///
/// # Errors
/// When a word is none of them.
pub(crate) fn tls_options<C>(
    _: &mut C,
    args: &mut Args<'_>,
    _: &mut Context<'_>,
) -> Result<(), Diagnostic> {
    const WORDS: &[&str] = &[
        "allow-0rtt",
        "force-sslv3",
        "force-tlsv10",
        "force-tlsv11",
        "force-tlsv12",
        "force-tlsv13",
        "no-alpn",
        "no-renegotiate",
        "no-sslv3",
        "no-strict-sni",
        "no-tls-tickets",
        "no-tlsv10",
        "no-tlsv11",
        "no-tlsv12",
        "no-tlsv13",
        "prefer-client-ciphers",
        "renegotiate",
        "strict-sni",
        "tls-tickets",
        "tlsv10",
        "tlsv11",
        "tlsv12",
    ];
    while let Some(text) = args.next() {
        match text {
            "ssl-min-ver" | "ssl-max-ver" => {
                args.choice(&[
                    ("SSLv3", ()),
                    ("TLSv1.0", ()),
                    ("TLSv1.1", ()),
                    ("TLSv1.2", ()),
                    ("TLSv1.3", ()),
                ])?;
            }
            "curves" | "ciphers" | "verify" => {
                args.text("an argument")?;
            }
            _ if WORDS.contains(&text) => {}
            _ => {
                let message = format!(
                    "unknown option '{text}' on global statement '{}'.",
                    args.keyword()
                );
                let words = WORDS.iter().copied();
                return Err(crate::context::suggestion(args.wrong(message), text, words));
            }
        }
    }
    Ok(())
}
