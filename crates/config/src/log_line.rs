//! `log` lines, in the global section and in proxies.
//!
//! Source: HAProxy configuration manual, sections 3.1 and 4.2, "log".

use std::sync::Arc;

use ballast_model::{
    Address, Facility, Level, LogEndpoint, LogFormatName, LogProfile, LogSample, LogTarget,
};
use ballast_syntax::{Diagnostic, SectionKind};

use crate::address::{self, AddressForm, TransportPrefix};
use crate::args::Args;
use crate::context::Context;

/// Names of the facilities, in the order of their numbers (RFC 5424, table 1).
const FACILITIES: [&str; 24] = [
    "kern", "user", "mail", "daemon", "auth", "syslog", "lpr", "news", "uucp", "cron", "auth2",
    "ftp", "ntp", "audit", "alert", "cron2", "local0", "local1", "local2", "local3", "local4",
    "local5", "local6", "local7",
];

const LEVELS: &[(&str, Level)] = &[
    ("emerg", Level::Emerg),
    ("alert", Level::Alert),
    ("crit", Level::Crit),
    ("err", Level::Err),
    ("warning", Level::Warning),
    ("notice", Level::Notice),
    ("info", Level::Info),
    ("debug", Level::Debug),
];

const FORMATS: &[(&str, LogFormatName)] = &[
    ("local", LogFormatName::Local),
    ("rfc3164", LogFormatName::Rfc3164),
    ("rfc5424", LogFormatName::Rfc5424),
    ("priority", LogFormatName::Priority),
    ("short", LogFormatName::Short),
    ("timed", LogFormatName::Timed),
    ("iso", LogFormatName::Iso),
    ("raw", LogFormatName::Raw),
];

/// Port of syslog over UDP (RFC 5426).
const SYSLOG_PORT: u16 = 514;

/// Parses everything after `log`, except for `log global`. A profile has nothing but its name until
/// all sections are read.
///
/// # Errors
/// When a word is wrong.
pub(crate) fn target(
    args: &mut Args<'_>,
    context: &mut Context<'_>,
) -> Result<LogTarget, Diagnostic> {
    let endpoint = endpoint(args, context)?;
    let mut target = LogTarget {
        endpoint,
        line_bytes_max: 1024,
        format: None,
        sample: None,
        profile: None,
        facility: Facility(0),
        level_max: Level::Debug,
        level_min: None,
    };
    // The words stand in this order.
    if args.take("len") {
        let length = args.number("a length between 80 and 65535", 80..=65_535)?;
        target.line_bytes_max = u32::try_from(length).expect("the range was checked");
    }
    if args.take("format") {
        target.format = Some(args.choice(FORMATS)?);
    }
    if args.take("sample") {
        target.sample = Some(sample(args)?);
    }
    if args.take("profile") {
        let word = args.word("the name of a log profile")?;
        let declarations = &mut context.declarations;
        declarations.add_reference(SectionKind::LogProfile, word.text(), "log", word.span());
        target.profile = Some(Arc::new(LogProfile::named(word.text())));
    }
    let facilities: Vec<(&str, u8)> = FACILITIES.iter().copied().zip(0..).collect();
    target.facility = match args.peek() {
        Some(_) => {
            let text = args.peek().unwrap_or_default();
            match args.choice(&facilities) {
                Ok(number) => Facility(number),
                Err(mut error) => {
                    error.message = format!("unknown log facility '{text}'");
                    return Err(error);
                }
            }
        }
        None => {
            return Err(
                args.missing_argument("<address> [len <length>] <facility> [<level> [<minlevel>]]")
            );
        }
    };
    if !args.is_empty() {
        target.level_max = level(args)?;
    }
    if !args.is_empty() {
        target.level_min = Some(level(args)?);
    }
    args.end()?;
    Ok(target)
}

fn level(args: &mut Args<'_>) -> Result<Level, Diagnostic> {
    let text = args.peek().unwrap_or_default();
    args.choice(LEVELS).map_err(|mut error| {
        error.message = format!("unknown optional log level '{text}'");
        error
    })
}

fn endpoint(args: &mut Args<'_>, context: &mut Context<'_>) -> Result<LogEndpoint, Diagnostic> {
    let word = args.word("an address, a facility and optionally a level")?;
    let text = word.text();
    match text {
        "stdout" => return Ok(LogEndpoint::Fd(1)),
        "stderr" => return Ok(LogEndpoint::Fd(2)),
        _ => {}
    }
    if let Some(name) = text.strip_prefix("ring@") {
        context
            .declarations
            .add_reference(SectionKind::Ring, name, "log", word.span());
        context.unimplemented("ring@", "rings", word.span());
        return Ok(LogEndpoint::Ring(name.to_owned()));
    }
    if let Some(name) = text.strip_prefix("backend@") {
        context
            .declarations
            .add_reference(SectionKind::Backend, name, "log", word.span());
        context.unimplemented("backend@", "log backends", word.span());
        return Ok(LogEndpoint::Backend(name.to_owned()));
    }
    let parsed = address::parse(text, AddressForm::default(), &context.environment)
        .map_err(|error| args.wrong(format!("'log' : {error}")))?;
    if parsed.transport == TransportPrefix::Stream {
        context.unimplemented("log tcp@", "rings", word.span());
        return Ok(LogEndpoint::Ring(text.to_owned()));
    }
    Ok(match parsed.address {
        Address::Unix(path) => LogEndpoint::Unix(path),
        Address::Fd(number) => LogEndpoint::Fd(number),
        Address::Inet(_) | Address::Name { .. } => {
            let address = match parsed.address.port() {
                Some(0) | None => parsed.address.with_port(SYSLOG_PORT),
                Some(_) => parsed.address,
            };
            let resolved = context.resolve_address(&address);
            LogEndpoint::Udp(resolved.map_err(|error| args.wrong(format!("'log' : {error}")))?)
        }
        Address::Abstract(_) | Address::AbstractUnpadded(_) | Address::SocketPair(_) => {
            return Err(args.wrong(format!("'log' cannot send to '{text}'")));
        }
    })
}

/// `1,3-5:7`.
fn sample(args: &mut Args<'_>) -> Result<LogSample, Diagnostic> {
    let text = args.text("<ranges>:<size>")?;
    let wrong = |why: &str| args.wrong(format!("'log' : sample '{text}': {why}"));
    let (ranges, size) = text
        .split_once(':')
        .ok_or_else(|| wrong("expects <ranges>:<size>"))?;
    let size: u32 = size.parse().map_err(|_| wrong("the size is no number"))?;
    let mut parsed = Vec::new();
    for range in ranges.split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let number = |text: &str| {
            text.parse::<u32>()
                .map_err(|_| wrong("a range is no number"))
        };
        let (first, last) = (number(first)?, number(last)?);
        if first == 0 || last < first || last > size {
            return Err(wrong("ranges start at 1, ascend and stay within the size"));
        }
        if parsed
            .iter()
            .any(|(low, high)| first <= *high && last >= *low)
        {
            return Err(wrong("ranges must not overlap"));
        }
        parsed.push((first, last));
    }
    Ok(LogSample {
        ranges: parsed,
        size,
    })
}
