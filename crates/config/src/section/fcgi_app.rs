//! `fcgi-app`: FastCGI applications.
//!
//! Source: HAProxy configuration manual, section 10.1.

use ballast_expr::{Regex, Usage};

use super::PlainSectionDraft;
use crate::check;
use crate::keyword::{Row, Sections};

/// A row of this file's table.
type R = Row<PlainSectionDraft>;

const USED_BY_BACKENDS: &str = "acts where a backend names the section";

/// The rows.
pub(super) const ROWS: &[R] = &[
    R::new(
        "acl",
        Sections::FCGI_APP,
        "<aclname> <criterion> [flags] [operator] <value> ...",
        "an ACL of the section",
        |draft, args, _| {
            let base = args.position();
            let texts = args.texts();
            draft.acls.declare(&texts).map_err(|error| {
                args.expr_error(base, &error, "error detected while parsing an ACL")
            })?;
            args.rest();
            Ok(())
        },
    )
    .examples("acl a src 192.0.2.1", "acl a nosuch")
    .ignored(USED_BY_BACKENDS),
    R::new(
        "docroot",
        Sections::FCGI_APP,
        "<path>",
        "directory of the application's documents",
        |draft, args, _| {
            args.text("a directory")?;
            draft.seen_keywords.push("docroot");
            args.end()
        },
    )
    .examples("docroot /var/www", "docroot")
    .ignored(USED_BY_BACKENDS),
    R::new(
        "index",
        Sections::FCGI_APP,
        "<script-name>",
        "script of paths that end in a slash",
        check::one,
    )
    .examples("index index.php", "index")
    .ignored(USED_BY_BACKENDS),
    R::new(
        "log-stderr",
        Sections::FCGI_APP,
        "global | <target> <facility>",
        "where the application's errors are logged",
        |_, args, context| {
            if args.take("global") {
                return args.end();
            }
            crate::log_line::target(args, context).map(|_| ())
        },
    )
    .examples("log-stderr global", "log-stderr 127.0.0.1")
    .ignored(USED_BY_BACKENDS),
    R::new(
        "option get-values",
        Sections::FCGI_APP,
        "",
        "asks the application what it can",
        check::none,
    )
    .with_no_and_default()
    .ignored(USED_BY_BACKENDS),
    R::new(
        "option keep-conn",
        Sections::FCGI_APP,
        "",
        "keeps the connection",
        check::none,
    )
    .with_no_and_default()
    .ignored(USED_BY_BACKENDS),
    R::new(
        "option max-reqs",
        Sections::FCGI_APP,
        "<reqs>",
        "concurrent requests",
        check::number,
    )
    .with_no_and_default()
    .examples("option max-reqs 10", "option max-reqs x")
    .ignored(USED_BY_BACKENDS),
    R::new(
        "option mpxs-conns",
        Sections::FCGI_APP,
        "",
        "several requests on one connection",
        check::none,
    )
    .with_no_and_default()
    .ignored(USED_BY_BACKENDS),
    R::new(
        "pass-header",
        Sections::FCGI_APP,
        "<name> [if|unless <condition>]",
        "a header that the application gets",
        |draft, args, _| {
            args.text("a header name")?;
            args.condition(&draft.acls).map(|_| ())
        },
    )
    .examples("pass-header Authorization", "pass-header")
    .ignored(USED_BY_BACKENDS),
    R::new(
        "path-info",
        Sections::FCGI_APP,
        "<regex>",
        "cuts the script's name off the path",
        |_, args, _| {
            let text = args.text("a regular expression")?;
            Regex::new(text, false)
                .map_err(|error| args.wrong(format!("'path-info' : {}", error.message)))?;
            args.end()
        },
    )
    .examples("path-info ^(/.+\\.php)(/.*)?$", "path-info (")
    .ignored(USED_BY_BACKENDS),
    R::new(
        "set-param",
        Sections::FCGI_APP,
        "<name> <fmt> [if|unless <condition>]",
        "a parameter for the application",
        |draft, args, context| {
            args.text("a name and a format")?;
            let format = args.format("a name and a format", Usage::Http)?;
            context.check_format(&format, args.span());
            args.condition(&draft.acls).map(|_| ())
        },
    )
    .examples("set-param A b", "set-param A")
    .ignored(USED_BY_BACKENDS),
];
