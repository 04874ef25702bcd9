//! Words that HAProxy has removed, with their replacements.
//!
//! Source: HAProxy's observed messages about them.

use ballast_syntax::Diagnostic;

use crate::address::{self, AddressForm};
use crate::args::Args;
use crate::context::Context;
use crate::draft::ProxyDraft;
use crate::keyword::{Row, Sections};

type R = Row<ProxyDraft>;

const fn gone(word: &'static str, reason: &'static str, instead: &'static str) -> R {
    R::new(word, Sections::PROXIES, "", "removed", crate::check::any).refused(reason, instead)
}

const SINCE_21: &str = "is not supported any more since HAProxy 2.1";

/// The rows.
pub(super) const ROWS: &[R] = &[
    gone(
        "bind-process",
        "is not supported any more since HAProxy 2.7",
        "",
    ),
    R::new(
        "dispatch",
        Sections::BACK_ONLY,
        "<address>:<port>",
        "the address everything is sent to when there are no servers",
        |_, args, context| {
            let text = args.text("<address>:<port>")?;
            let wants = AddressForm {
                port: true,
                ..AddressForm::default()
            };
            let environment = context.surroundings.environment();
            address::parse(text, wants, &environment)
                .map_err(|error| args.wrong(format!("'dispatch' : {error}")))?;
            args.end()?;
            deprecated(args, context, &format!("server dispatch {text}"));
            Ok(())
        },
    )
    .examples("dispatch 192.0.2.1:80", "dispatch 192.0.2.1")
    .later(""),
    R::new(
        "transparent",
        Sections::BACK_ONLY,
        "",
        "the former form of 'option transparent'",
        |_, args, context| {
            args.end()?;
            deprecated(args, context, "server transparent 0.0.0.0");
            Ok(())
        },
    )
    .later(""),
    gone(
        "appsession",
        "is not supported any more since HAProxy 1.6",
        "stick store-response, stick match",
    ),
    gone("block", SINCE_21, "http-request deny if <condition>"),
    gone("clitimeout", SINCE_21, "timeout client <time>"),
    gone("contimeout", SINCE_21, "timeout connect <time>"),
    gone("srvtimeout", SINCE_21, "timeout server <time>"),
    gone("redispatch", SINCE_21, "option redispatch"),
    gone(
        "grace",
        "is not supported any more since HAProxy 2.5",
        "grace <time>, in the global section",
    ),
    gone(
        "monitor-net",
        "is not supported any more since HAProxy 2.1",
        "http-request return status 200 if { src <network> }",
    ),
    gone(
        "usesrc",
        "only stands after 'source'",
        "source <address> usesrc <address>",
    ),
    gone("reqadd", SINCE_21, "http-request add-header <name> <value>"),
    gone("reqallow", SINCE_21, "http-request allow if <condition>"),
    gone("reqiallow", SINCE_21, "http-request allow if <condition>"),
    gone("reqdel", SINCE_21, "http-request del-header <name>"),
    gone("reqidel", SINCE_21, "http-request del-header <name>"),
    gone("reqdeny", SINCE_21, "http-request deny if <condition>"),
    gone("reqideny", SINCE_21, "http-request deny if <condition>"),
    gone("reqpass", SINCE_21, ""),
    gone("reqipass", SINCE_21, ""),
    gone(
        "reqrep",
        SINCE_21,
        "http-request replace-path, replace-uri or replace-header",
    ),
    gone(
        "reqirep",
        SINCE_21,
        "http-request replace-path, replace-uri or replace-header",
    ),
    gone("reqtarpit", SINCE_21, "http-request tarpit if <condition>"),
    gone("reqitarpit", SINCE_21, "http-request tarpit if <condition>"),
    gone("reqsetbe", SINCE_21, "use_backend <backend> if <condition>"),
    gone(
        "reqisetbe",
        SINCE_21,
        "use_backend <backend> if <condition>",
    ),
    gone(
        "rspadd",
        SINCE_21,
        "http-response add-header <name> <value>",
    ),
    gone("rspdel", SINCE_21, "http-response del-header <name>"),
    gone("rspidel", SINCE_21, "http-response del-header <name>"),
    gone("rspdeny", SINCE_21, "http-response deny if <condition>"),
    gone("rspideny", SINCE_21, "http-response deny if <condition>"),
    gone(
        "rsprep",
        SINCE_21,
        "http-response replace-header <name> <pattern> <value>",
    ),
    gone(
        "rspirep",
        SINCE_21,
        "http-response replace-header <name> <pattern> <value>",
    ),
];

fn deprecated(args: &Args<'_>, context: &mut Context<'_>, instead: &str) {
    let message = format!("'{}' was removed in HAProxy 3.3", args.keyword());
    let diagnostic = Diagnostic::notice("deprecated", message)
        .at(args.span())
        .help(format!("write: {instead}"))
        .replace(args.span(), instead.to_owned());
    context.report(diagnostic);
}
