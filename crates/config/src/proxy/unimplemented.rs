//! Keywords that are checked but not implemented: stick tables, compression, filters, caches, mail
//! alerts, FastCGI.
//!
//! Source: HAProxy configuration manual, section 4.2.

use ballast_expr::Phase;
use ballast_syntax::{Diagnostic, SectionKind};

use super::expressions;
use crate::args::Args;
use crate::check;
use crate::context::{Context, suggestion};
use crate::draft::ProxyDraft;
use crate::feature::NEWER;
use crate::keyword::{Row, Sections};

/// A row of this file's table.
type R = Row<ProxyDraft>;

/// The rows.
pub(super) const ROWS: &[R] = &[
    R::new(
        "compression algo",
        Sections::PROXIES,
        "<algorithm> ...",
        "how responses are compressed",
        |_, args, _| algorithms(args),
    )
    .examples("compression algo gzip", "compression algo nosuch")
    .unimplemented("compression"),
    R::new(
        "compression algo-res",
        Sections::PROXIES,
        "<algorithm> ...",
        "how responses are compressed",
        |_, args, _| algorithms(args),
    )
    .examples("compression algo-res gzip", "compression algo-res nosuch")
    .unimplemented("compression"),
    R::new(
        "compression algo-req",
        Sections::PROXIES,
        "<algorithm>",
        "how requests are compressed",
        |_, args, _| algorithms(args),
    )
    .examples("compression algo-req gzip", "compression algo-req nosuch")
    .unimplemented("compression"),
    compression("compression type", "compression type text/html"),
    compression("compression type-res", "compression type-res text/html"),
    compression("compression type-req", "compression type-req text/html"),
    R::new(
        "compression minsize-req",
        Sections::PROXIES,
        "<size>",
        "smallest request body that is compressed",
        check::size,
    )
    .examples("compression minsize-req 1k", "compression minsize-req x")
    .unimplemented("compression"),
    R::new(
        "compression minsize-res",
        Sections::PROXIES,
        "<size>",
        "smallest response body that is compressed",
        check::size,
    )
    .examples("compression minsize-res 1k", "compression minsize-res x")
    .unimplemented("compression"),
    R::new(
        "compression offload",
        Sections::PROXIES,
        "",
        "do not let servers compress",
        |draft, args, context| {
            if draft.section() == Sections::DEFAULTS {
                let message = "'compression' : 'offload' ignored in 'defaults' section";
                context.warn("misplaced-keyword", message, args.span());
            }
            args.end()
        },
    )
    .examples("compression offload", "compression offload extra")
    .unimplemented("compression"),
    R::new(
        "compression direction",
        Sections::PROXIES,
        "{ request | response | both }",
        "which bodies are compressed",
        |_, args, _| {
            args.choice(&[("request", ()), ("response", ()), ("both", ())])?;
            args.end()
        },
    )
    .examples("compression direction both", "compression direction nosuch")
    .unimplemented("compression"),
    R::new(
        "filter",
        Sections::NAMED,
        "<name> [ <arguments> ]",
        "something bytes pass through",
        filter,
    )
    .examples("filter compression", "filter nosuch")
    .unimplemented("filters"),
    R::new(
        "filter-sequence",
        Sections::NAMED,
        "{ request | response } <filter>,...",
        "the order bytes pass through filters",
        check::two,
    )
    .examples(
        "filter-sequence request compression",
        "filter-sequence request",
    )
    .unimplemented("filters"),
    R::new(
        "email-alert from",
        Sections::PROXIES,
        "<address>",
        "who mail alerts come from",
        check::one,
    )
    .examples("email-alert from a@example.net", "email-alert from")
    .unimplemented("mail alerts"),
    R::new(
        "email-alert to",
        Sections::PROXIES,
        "<address>",
        "who gets mail alerts",
        check::one,
    )
    .examples("email-alert to a@example.net", "email-alert to")
    .unimplemented("mail alerts"),
    R::new(
        "email-alert level",
        Sections::PROXIES,
        "<level>",
        "how bad it must be for a mail",
        |_, args, _| {
            args.choice(&[
                ("emerg", ()),
                ("alert", ()),
                ("crit", ()),
                ("err", ()),
                ("warning", ()),
                ("notice", ()),
                ("info", ()),
                ("debug", ()),
            ])?;
            args.end()
        },
    )
    .examples("email-alert level info", "email-alert level nosuch")
    .unimplemented("mail alerts"),
    R::new(
        "email-alert mailers",
        Sections::PROXIES,
        "<section>",
        "which mail servers are used",
        |_, args, context| {
            let name = args.word("a mailers section")?;
            let (kind, keyword) = (SectionKind::Mailers, "email-alert mailers");
            context
                .declarations
                .add_reference(kind, name.text(), keyword, name.span());
            args.end()
        },
    )
    .examples("email-alert mailers m", "email-alert mailers")
    .unimplemented("mail alerts"),
    R::new(
        "email-alert myhostname",
        Sections::PROXIES,
        "<name>",
        "how the machine greets mail servers",
        check::one,
    )
    .examples("email-alert myhostname lb", "email-alert myhostname")
    .unimplemented("mail alerts"),
    R::new(
        "use-fcgi-app",
        Sections::BACK_ONLY,
        "<name>",
        "the FastCGI application servers run",
        |_, args, context| {
            let name = args.word("<name> as argument")?;
            let kind = SectionKind::FcgiApp;
            context
                .declarations
                .add_reference(kind, name.text(), "use-fcgi-app", name.span());
            args.end()
        },
    )
    .examples("use-fcgi-app app", "use-fcgi-app")
    .unimplemented("FastCGI"),
    R::new(
        "be-unpublished",
        Sections::BACK_ONLY,
        "",
        "the backend takes nothing until it is published",
        check::none,
    )
    .examples("be-unpublished", "be-unpublished x")
    .unimplemented("unpublished backends"),
    R::new(
        "force-be-switch",
        Sections::FRONT_ONLY,
        "{ if | unless } <condition>",
        "go to backends that are not published too",
        |draft, args, context| {
            expressions::required_condition(draft, args, context, &[Phase::UseBackend]).map(drop)
        },
    )
    .examples("force-be-switch if { src 192.0.2.1 }", "force-be-switch")
    .unimplemented("unpublished backends"),
    R::new(
        "crt",
        Sections::FRONT_ONLY,
        "<file> ...",
        "a certificate of the frontend",
        check::some,
    )
    .examples("crt a.pem", "crt")
    .unimplemented(NEWER),
];

const fn compression(word: &'static str, good: &'static str) -> R {
    R::new(
        word,
        Sections::PROXIES,
        "<type> ...",
        "which content types are compressed",
        check::some,
    )
    .examples(good, "")
    .unimplemented("compression")
}

fn algorithms(args: &mut Args<'_>) -> Result<(), Diagnostic> {
    args.text("<algorithm>")?;
    args.seek(args.position() - 1);
    while let Some(word) = args.next() {
        let known = ["identity", "gzip", "deflate", "raw-deflate"];
        if !known.contains(&word) {
            let message = format!("'compression' : '{word}' is not a supported algorithm");
            return Err(suggestion(args.wrong(message), word, known));
        }
    }
    Ok(())
}

/// The filters of HAProxy 3.5.
const FILTERS: &[&str] = &[
    "bwlim-in",
    "bwlim-out",
    "cache",
    "comp-req",
    "comp-res",
    "compression",
    "fcgi-app",
    "opentracing",
    "spoe",
    "trace",
];

fn filter(
    _: &mut ProxyDraft,
    args: &mut Args<'_>,
    context: &mut Context<'_>,
) -> Result<(), Diagnostic> {
    let word = args.text("the name of a filter")?;
    if !FILTERS.contains(&word) {
        let message = format!("'filter' : unknown keyword '{word}'");
        return Err(suggestion(
            args.wrong(message),
            word,
            FILTERS.iter().copied(),
        ));
    }
    match word {
        "cache" => {
            let name = args.word("the name of a cache")?;
            context.declarations.add_reference(
                SectionKind::Cache,
                name.text(),
                "filter cache",
                name.span(),
            );
        }
        "fcgi-app" => {
            let name = args.word("the name of an application")?;
            let kind = SectionKind::FcgiApp;
            context
                .declarations
                .add_reference(kind, name.text(), "filter fcgi-app", name.span());
        }
        "compression" | "comp-req" | "comp-res" => return args.end(),
        "spoe" => return spoe(args, context),
        "bwlim-in" | "bwlim-out" => {
            args.text("a name as first argument")?;
        }
        _ => {}
    }
    args.rest();
    Ok(())
}

/// `filter spoe [engine <name>] config <file>`, in any order. The file is not read yet.
fn spoe(args: &mut Args<'_>, context: &mut Context<'_>) -> Result<(), Diagnostic> {
    let keyword_span = args.span();
    let mut file = None;
    while let Some(word) = args.next() {
        let value = |args: &mut Args<'_>| {
            let text = args.next().map(str::to_owned);
            text.ok_or_else(|| {
                args.wrong(format!("'filter' : 'spoe' : '{word}' option without value"))
            })
        };
        match word {
            "engine" => {
                value(args)?;
            }
            "config" => file = Some(value(args)?),
            _ => {
                let message = format!("'filter' : 'spoe' : unknown keyword '{word}'");
                return Err(suggestion(args.wrong(message), word, ["engine", "config"]));
            }
        }
    }
    match file {
        Some(file) => context.exists(&file, "filter spoe", keyword_span),
        None => Err(Diagnostic::alert(
            "missing-argument",
            "'filter' : 'spoe' : missing config file",
        )
        .at(keyword_span)),
    }
}
