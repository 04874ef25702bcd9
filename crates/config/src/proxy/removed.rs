//! Words that HAProxy had once and has no more: each with what to write instead.
//!
//! Source: what HAProxy is observed to say of them.

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
        "appsession",
        "is not supported any more since HAProxy 1.6",
        "stick store-response, stick match",
    ),
    gone(
        "bind-process",
        "is not supported any more since HAProxy 2.7: there is one process",
        "bind ... thread <threads>",
    ),
    gone("block", SINCE_21, "http-request deny if <condition>"),
    gone("clitimeout", SINCE_21, "timeout client <time>"),
    gone("contimeout", SINCE_21, "timeout connect <time>"),
    gone("srvtimeout", SINCE_21, "timeout server <time>"),
    gone("redispatch", SINCE_21, "option redispatch"),
    gone(
        "dispatch",
        "is not supported any more since HAProxy 3.3",
        "server <name> <address>:<port>",
    ),
    gone(
        "transparent",
        "is not supported any more since HAProxy 3.3",
        "option transparent, or: server <name> 0.0.0.0",
    ),
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
