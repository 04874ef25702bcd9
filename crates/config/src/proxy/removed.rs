//! Words that HAProxy has removed, with their replacements.
//!
//! Source: HAProxy's observed messages about them.

use crate::draft::ProxyDraft;
use crate::keyword::{Row, Sections};

/// A row of this file's table.
type R = Row<ProxyDraft>;

const fn removed(word: &'static str, reason: &'static str, instead: &'static str) -> R {
    R::new(word, Sections::PROXIES, "", "removed", crate::check::any).refused(reason, instead)
}

const SINCE_21: &str = "is not supported any more since HAProxy 2.1";

/// The rows.
pub(super) const ROWS: &[R] = &[
    removed(
        "bind-process",
        "is not supported any more since HAProxy 2.7",
        "",
    ),
    removed(
        "appsession",
        "is not supported any more since HAProxy 1.6",
        "stick store-response, stick match",
    ),
    removed("block", SINCE_21, "http-request deny if <condition>"),
    removed("clitimeout", SINCE_21, "timeout client <time>"),
    removed("contimeout", SINCE_21, "timeout connect <time>"),
    removed("srvtimeout", SINCE_21, "timeout server <time>"),
    removed("redispatch", SINCE_21, "option redispatch"),
    removed(
        "grace",
        "is not supported any more since HAProxy 2.5",
        "grace <time>, in the global section",
    ),
    removed(
        "monitor-net",
        "is not supported any more since HAProxy 2.1",
        "http-request return status 200 if { src <network> }",
    ),
    removed(
        "usesrc",
        "only stands after 'source'",
        "source <address> usesrc <address>",
    ),
    removed("reqadd", SINCE_21, "http-request add-header <name> <value>"),
    removed("reqallow", SINCE_21, "http-request allow if <condition>"),
    removed("reqiallow", SINCE_21, "http-request allow if <condition>"),
    removed("reqdel", SINCE_21, "http-request del-header <name>"),
    removed("reqidel", SINCE_21, "http-request del-header <name>"),
    removed("reqdeny", SINCE_21, "http-request deny if <condition>"),
    removed("reqideny", SINCE_21, "http-request deny if <condition>"),
    removed("reqpass", SINCE_21, ""),
    removed("reqipass", SINCE_21, ""),
    removed(
        "reqrep",
        SINCE_21,
        "http-request replace-path, replace-uri or replace-header",
    ),
    removed(
        "reqirep",
        SINCE_21,
        "http-request replace-path, replace-uri or replace-header",
    ),
    removed("reqtarpit", SINCE_21, "http-request tarpit if <condition>"),
    removed("reqitarpit", SINCE_21, "http-request tarpit if <condition>"),
    removed("reqsetbe", SINCE_21, "use_backend <backend> if <condition>"),
    removed(
        "reqisetbe",
        SINCE_21,
        "use_backend <backend> if <condition>",
    ),
    removed(
        "rspadd",
        SINCE_21,
        "http-response add-header <name> <value>",
    ),
    removed("rspdel", SINCE_21, "http-response del-header <name>"),
    removed("rspidel", SINCE_21, "http-response del-header <name>"),
    removed("rspdeny", SINCE_21, "http-response deny if <condition>"),
    removed("rspideny", SINCE_21, "http-response deny if <condition>"),
    removed(
        "rsprep",
        SINCE_21,
        "http-response replace-header <name> <pattern> <value>",
    ),
    removed(
        "rspirep",
        SINCE_21,
        "http-response replace-header <name> <pattern> <value>",
    ),
];
