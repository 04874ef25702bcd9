//! `fcgi-app`: FastCGI applications.
//!
//! Source: HAProxy configuration manual, section 10.1.

use ballast_expr::{Regex, Usage};

use super::OtherDraft;
use crate::check;
use crate::keyword::{Row, Sections};

type R = Row<OtherDraft>;

const F: Sections = Sections::FCGI_APP;
const NAMED: &str = "acts where a backend names the section";

/// The rows.
pub(super) const ROWS: &[R] = &[
    R::new(
        "acl",
        F,
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
    .ignored(NAMED),
    R::new(
        "docroot",
        F,
        "<path>",
        "directory of the application's documents",
        |draft, args, _| {
            args.text("a directory")?;
            draft.given.push("docroot");
            args.end()
        },
    )
    .examples("docroot /var/www", "docroot")
    .ignored(NAMED),
    R::new(
        "index",
        F,
        "<script-name>",
        "script of paths that end in a slash",
        check::one,
    )
    .examples("index index.php", "index")
    .ignored(NAMED),
    R::new(
        "log-stderr",
        F,
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
    .ignored(NAMED),
    R::new(
        "option get-values",
        F,
        "",
        "asks the application what it can",
        check::none,
    )
    .with_no_default()
    .ignored(NAMED),
    R::new(
        "option keep-conn",
        F,
        "",
        "keeps the connection",
        check::none,
    )
    .with_no_default()
    .ignored(NAMED),
    R::new(
        "option max-reqs",
        F,
        "<reqs>",
        "concurrent requests",
        check::number,
    )
    .with_no_default()
    .examples("option max-reqs 10", "option max-reqs x")
    .ignored(NAMED),
    R::new(
        "option mpxs-conns",
        F,
        "",
        "several requests on one connection",
        check::none,
    )
    .with_no_default()
    .ignored(NAMED),
    R::new(
        "pass-header",
        F,
        "<name> [if|unless <condition>]",
        "a header that the application gets",
        |draft, args, _| {
            args.text("a header name")?;
            args.condition(&draft.acls).map(|_| ())
        },
    )
    .examples("pass-header Authorization", "pass-header")
    .ignored(NAMED),
    R::new(
        "path-info",
        F,
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
    .ignored(NAMED),
    R::new(
        "set-param",
        F,
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
    .ignored(NAMED),
];
