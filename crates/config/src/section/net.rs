//! Small sections: `resolvers`, `mailers`, `cache`, `namespace_list`.
//!
//! Source: HAProxy configuration manual, sections 3.6, 5.3.2 and 6.2.

use ballast_syntax::Diagnostic;

use super::PlainSectionDraft;
use crate::address::{self, AddressForm};
use crate::args::Args;
use crate::check;
use crate::context::Context;
use crate::keyword::{Row, Sections};
use crate::section::header::invalid_char;

/// A row of this file's table.
type R = Row<PlainSectionDraft>;

const RESOLVER: &str = "acts where a server names the section";
const MAILER: &str = "acts where an e-mail alert names the section";
const CACHED: &str = "acts where a filter names the section";

/// `resolvers`.
pub(super) const RESOLVERS: &[R] = &[
    R::new(
        "accepted_payload_size",
        Sections::RESOLVERS,
        "<nb>",
        "largest answer that is announced",
        |_, args, _| {
            args.number("a size", 12..=65535)?;
            args.end()
        },
    )
    .examples("accepted_payload_size 8192", "accepted_payload_size 10")
    .ignored(RESOLVER),
    R::new(
        "hold",
        Sections::RESOLVERS,
        "<status> <period>",
        "how long an answer holds",
        |_, args, context| {
            args.choice(&[
                ("nx", ()),
                ("refused", ()),
                ("timeout", ()),
                ("valid", ()),
                ("obsolete", ()),
                ("other", ()),
            ])?;
            args.time("a period")?;
            args.warn_of_missing_unit("resolvers", context);
            args.end()
        },
    )
    .examples("hold valid 10s", "hold good 10s")
    .ignored(RESOLVER),
    R::new(
        "nameserver",
        Sections::RESOLVERS,
        "<name> <address>[:port] [param*]",
        "a server that is asked",
        |draft, args, context| {
            let name = args.text("a name and an address")?;
            if let Some(bad) = invalid_char(name) {
                let message = format!("character '{bad}' is not permitted in server name '{name}'");
                return Err(args.wrong(message));
            }
            if draft.members.iter().any(|known| known == name) {
                return Err(args.wrong(format!("nameserver '{name}' is declared twice")));
            }
            draft.members.push(name.to_owned());
            address(args, context)?;
            args.rest();
            Ok(())
        },
    )
    .examples(
        "nameserver dns1 192.0.2.53:53",
        "nameserver dns1 192.0.2.53:x",
    )
    .ignored(RESOLVER),
    R::new(
        "parse-resolv-conf",
        Sections::RESOLVERS,
        "",
        "asks the servers of /etc/resolv.conf",
        |draft, args, _| {
            draft.seen_keywords.push("parse-resolv-conf");
            args.end()
        },
    )
    .ignored(RESOLVER),
    R::new(
        "resolve_retries",
        Sections::RESOLVERS,
        "<nb>",
        "questions until a name is given up",
        check::number,
    )
    .examples("resolve_retries 3", "resolve_retries x")
    .ignored(RESOLVER),
    R::new(
        "timeout",
        Sections::RESOLVERS,
        "resolve | retry <time>",
        "time between questions",
        |_, args, context| {
            args.choice(&[("resolve", ()), ("retry", ())])?;
            args.time("a time")?;
            args.warn_of_missing_unit("resolvers", context);
            args.end()
        },
    )
    .examples("timeout retry 1s", "timeout client 1s")
    .ignored(RESOLVER),
];

/// `mailers`.
pub(super) const MAILERS: &[R] = &[
    R::new(
        "mailer",
        Sections::MAILERS,
        "<mailername> <ip>:<port>",
        "a mail server",
        |_, args, context| {
            args.text("a name and an address")?;
            address(args, context)?;
            args.end()
        },
    )
    .examples("mailer a 192.0.2.1:25", "mailer a")
    .ignored(MAILER),
    R::new(
        "timeout",
        Sections::MAILERS,
        "mail <time>",
        "longest time a mail may take",
        |_, args, _| {
            args.choice(&[("mail", ())])?;
            args.time("a time")?;
            args.end()
        },
    )
    .examples("timeout mail 10s", "timeout mail x")
    .ignored(MAILER),
];

/// `cache`.
pub(super) const CACHE: &[R] = &[
    R::new(
        "max-age",
        Sections::CACHE,
        "<seconds>",
        "longest time a response is kept",
        check::number,
    )
    .examples("max-age 60", "max-age x")
    .ignored(CACHED),
    R::new(
        "max-object-size",
        Sections::CACHE,
        "<bytes>",
        "largest response that is kept",
        check::number,
    )
    .examples("max-object-size 10000", "max-object-size x")
    .ignored(CACHED),
    R::new(
        "max-secondary-entries",
        Sections::CACHE,
        "<number>",
        "variants kept of one response",
        check::number,
    )
    .examples("max-secondary-entries 10", "max-secondary-entries x")
    .ignored(CACHED),
    R::new(
        "process-vary",
        Sections::CACHE,
        "on | off",
        "keeps variants of a response",
        |_, args, context| {
            let word = args.word("'on' or 'off'")?;
            if !matches!(word.text(), "on" | "off") {
                let message = "'process-vary' expects \"on\" or \"off\"";
                context.warn("bad-value", message, word.span());
            }
            args.end()
        },
    )
    .examples("process-vary on", "process-vary x")
    .ignored(CACHED),
    R::new(
        "total-max-size",
        Sections::CACHE,
        "<megabytes>",
        "size of the cache",
        |draft, args, context| {
            let word = args.word("a size in megabytes")?;
            draft.seen_keywords.push("total-max-size");
            if !matches!(word.text().parse::<u32>(), Ok(1..=4095)) {
                let text = word.text();
                let message = format!("total-max-size wrong value '{text}': it is from 1 to 4095");
                context.warn("bad-value", message, word.span());
            }
            args.end()
        },
    )
    .examples("total-max-size 4", "total-max-size 5000")
    .ignored(CACHED),
];

/// `namespace_list`.
pub(super) const NAMESPACE_LIST: &[R] = &[R::new(
    "namespace",
    Sections::NAMESPACE_LIST,
    "<name>",
    "a network namespace",
    check::one,
)
.examples("namespace blue", "namespace")
.ignored("namespaces are opened where binds and servers name them")];

/// An address whose port, if none is given, is that of DNS.
/// An address with a port.
fn address(args: &mut Args<'_>, context: &Context<'_>) -> Result<(), Diagnostic> {
    let text = args.text("an address")?;
    let wants = AddressForm {
        port: true,
        ..AddressForm::default()
    };
    address::parse(text, wants, &context.environment)
        .map(|_| ())
        .map_err(|error| args.wrong(format!("'{}' : {error}", args.keyword())))
}
