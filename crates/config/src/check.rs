//! Handlers that only check the form of a line: for rows that are noted or not implemented.

use std::net::IpAddr;

use ballast_syntax::{Diagnostic, SectionKind};

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

/// The allowed form of a word, in short: alternatives (`[on off]`), a range of numbers (`(0 ..
/// 100)`, `(0 ..)`), or the name of a check of this module.
macro_rules! form {
    ([$($word:literal)*]) => {
        |_, args, _| {
            args.choice(&[$(($word, ())),*])?;
            args.end()
        }
    };
    (($min:literal ..)) => {
        |_, args, _| crate::check::within(args, $min, i64::MAX)
    };
    (($min:literal .. $max:literal)) => {
        |_, args, _| crate::check::within(args, $min, $max)
    };
    ($check:ident) => {
        crate::check::$check
    };
}
pub(crate) use form;

/// A number within a range, alone on its line; sizes (`64k`), too.
///
/// # Errors
/// When it is not a number, or out of range.
pub(crate) fn within(args: &mut Args<'_>, min: i64, max: i64) -> Result<(), Diagnostic> {
    let text = args.text("a number")?;
    let digits = text.strip_prefix('-').unwrap_or(text);
    let Ok(size) = ballast_syntax::parse_size(digits, u64::MAX) else {
        return Err(args.wrong(format!(
            "'{}' expects a number (got '{text}')",
            args.keyword()
        )));
    };
    let size = i64::try_from(size).unwrap_or(i64::MAX);
    let number = if digits.len() < text.len() {
        -size
    } else {
        size
    };
    if number < min || number > max {
        let wanted = match (min, max) {
            (0, i64::MAX) => "a positive numeric value".to_owned(),
            (_, i64::MAX) => format!("a number of at least {min}"),
            _ => format!("a number between {min} and {max}"),
        };
        return Err(args.wrong(format!(
            "'{}' expects {wanted} (got '{text}')",
            args.keyword()
        )));
    }
    args.end()
}

checks! {
    /// No argument.
    none(args) { args.end() }
    /// Any words.
    any(args) { args.rest(); Ok(()) }
    /// At least one word.
    some(args) { args.text("at least one argument")?; args.rest(); Ok(()) }
    /// One word.
    one(args) { args.text("an argument")?; args.end() }
    /// One word among others on the line.
    word(args) { args.text("an argument").map(|_| ()) }
    /// No argument of its own.
    nothing(_args) { Ok(()) }
    /// A number among others on the line.
    count(args) { args.count("a number").map(|_| ()) }
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
    /// The events of the kernel that can be masked.
    events(args) {
        let text = args.text("a list of events")?;
        match text.split(',').find(|event| !matches!(*event, "err" | "hup" | "rdhup")) {
            Some(bad) => Err(args.wrong(format!(
                "'{}' expects a comma-delimited list of 'err', 'hup' and 'rdhup' (got '{bad}')",
                args.keyword()
            ))),
            None => args.end(),
        }
    }
    /// A path, and its type for Lua.
    lua_path(args) {
        args.text("a path")?;
        if !args.is_empty() {
            args.choice(&[("path", ()), ("cpath", ())])?;
        }
        args.end()
    }
    /// Networks.
    networks(args) {
        let text = args.text("a list of networks")?;
        let is_network = |text: &str| {
            let (ip, bits) = text.split_once('/').map_or((text, None), |(ip, bits)| (ip, Some(bits)));
            let bits_max = match ip.parse::<IpAddr>() {
                Ok(IpAddr::V4(_)) => 32,
                Ok(IpAddr::V6(_)) => 128,
                Err(_) => return false,
            };
            bits.is_none_or(|bits| bits.parse::<u8>().is_ok_and(|bits| bits <= bits_max))
        };
        match text.split(',').find(|text| !is_network(text)) {
            Some(bad) => Err(args.wrong(format!("'{}' invalid network '{bad}'.", args.keyword()))),
            None => Ok(()),
        }
    }
    /// The characters of a `guid`.
    guid(args) {
        let text = args.text("a string argument")?;
        let mut letters = text.chars();
        match letters.find(|c| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ':'))) {
            Some(bad) => {
                Err(args.wrong(format!("'{}': invalid character '{bad}'.", args.keyword())))
            }
            None => Ok(()),
        }
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
    /// When tasks are profiled.
    profiling(args) { args.choice(&[("auto", ()), ("on", ()), ("off", ())])?; args.end() }
    /// `on` or `off`.
    on_off(args) { args.choice(&[("on", ()), ("off", ())])?; args.end() }
}

/// An existing file or directory, alone on its line.
///
/// # Errors
/// When it does not exist.
pub(crate) fn existing<C>(
    _: &mut C,
    args: &mut Args<'_>,
    context: &mut Context<'_>,
) -> Result<(), Diagnostic> {
    let word = args.word("a path")?;
    context.exists(word.text(), args.keyword(), word.span())?;
    args.end()
}

/// The name of a `resolvers` section, alone on its line.
///
/// # Errors
/// When it is missing; when there is no such section, at the end of loading.
pub(crate) fn resolvers<C>(
    _: &mut C,
    args: &mut Args<'_>,
    context: &mut Context<'_>,
) -> Result<(), Diagnostic> {
    let word = args.word("the name of a 'resolvers' section")?;
    let (keyword, span) = (args.keyword().to_owned(), word.span());
    let declarations = &mut context.declarations;
    declarations.add_reference(SectionKind::Resolvers, word.text(), &keyword, span);
    args.end()
}

/// The name of a network namespace of this machine.
///
/// # Errors
/// When there is none with this name.
pub(crate) fn namespace(
    args: &mut Args<'_>,
    context: &mut Context<'_>,
) -> Result<String, Diagnostic> {
    let word = args.word("a namespace")?;
    let name = word.text();
    if !context.machine.exists(&format!("/var/run/netns/{name}")) {
        context.stand_in_or(&format!("namespace '{name}'"), || {
            let message = format!("Cannot open namespace '{name}'.");
            Diagnostic::alert("missing-namespace", message).at(word.span())
        })?;
    }
    Ok(name.to_owned())
}
