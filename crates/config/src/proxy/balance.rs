//! `balance` and the words that refine it.
//!
//! Source: HAProxy configuration manual, section 4.2, "balance", "hash-type",
//! "hash-balance-factor".

use ballast_expr::{Needs, Phase};
use ballast_model::{Balance, HashAffinity, HashFunction, HashType, UriKey};
use ballast_syntax::Diagnostic;

use super::expressions;
use crate::args::Args;
use crate::context::{Context, suggestion};
use crate::draft::ProxyDraft;
use crate::keyword::{Row, Sections};

/// A row of this file's table.
type R = Row<ProxyDraft>;

const ALGORITHMS: &[&str] = &[
    "roundrobin",
    "static-rr",
    "leastconn",
    "first",
    "source",
    "uri",
    "url_param",
    "hdr(name)",
    "random",
    "rdp-cookie",
    "hash",
];

/// The rows.
pub(super) const ROWS: &[R] = &[
    R::new(
        "balance",
        Sections::BACK,
        "<algorithm> [ <arguments> ]",
        "which server takes the next connection",
        balance,
    )
    .examples("balance uri depth 2", "balance roundrobbin"),
    R::new(
        "hash-type",
        Sections::BACK,
        "<method> [<function>] [avalanche]",
        "how hashes are made and mapped to servers",
        hash_type,
    )
    .examples("hash-type consistent wt6", "hash-type avalanche"),
    R::new(
        "hash-balance-factor",
        Sections::BACK,
        "<percent>",
        "how much above the mean a hashed server may be loaded",
        |draft, args, context| {
            let is_negative = args.peek().is_some_and(|text| text.starts_with('-'));
            let factor = expressions::lenient_count(args, context, "an integer argument")?;
            if is_negative || (1..=100).contains(&factor) {
                let message = "'hash-balance-factor' must be 0 or greater than 100";
                return Err(args.wrong(message));
            }
            draft.back.hash_balance_factor = factor;
            args.end()
        },
    )
    .examples("hash-balance-factor 150", "hash-balance-factor 50"),
    R::new(
        "hash-preserve-affinity",
        Sections::BACK,
        "{ always | maxconn | maxqueue }",
        "when a hashed server that is full is kept",
        |draft, args, _| {
            draft.back.hash_affinity = args.choice(&[
                ("always", HashAffinity::Always),
                ("maxconn", HashAffinity::Maxconn),
                ("maxqueue", HashAffinity::Maxqueue),
            ])?;
            args.end()
        },
    )
    .examples(
        "hash-preserve-affinity always",
        "hash-preserve-affinity never",
    ),
];

fn balance(
    draft: &mut ProxyDraft,
    args: &mut Args<'_>,
    context: &mut Context<'_>,
) -> Result<(), Diagnostic> {
    draft.balance_span = Some(args.span());
    draft.section_state.is_balanced = true;
    let Some(word) = args.next() else {
        draft.back.balance = Balance::RoundRobin;
        return Ok(());
    };
    draft.back.balance = match word {
        "roundrobin" => Balance::RoundRobin,
        "static-rr" => Balance::StaticRoundRobin,
        "leastconn" => Balance::LeastConnections,
        "first" => Balance::First,
        "source" => Balance::Source,
        "uri" => Balance::Uri(uri_key(args)?),
        "url_param" => url_param(args, context)?,
        "random" => Balance::Random(2),
        "rdp-cookie" => Balance::RdpCookie("mstshash".to_owned()),
        "hash" => {
            let what = "a sample expression";
            if let Some(other) = args.texts().get(1) {
                let message = format!("balance hash takes no other argument (got '{other}').");
                return Err(args.wrong(message));
            }
            let span = args.peek_word().map_or(args.span(), |word| word.span());
            let expr = expressions::expr(draft, args, context, what, &[Phase::SelectServer])?;
            if expr.fetch.needs.intersects(Needs::RAW_BYTES) {
                draft
                    .section_state
                    .raw_samples
                    .push((expr.fetch.word, span));
            }
            Balance::Hash(expr)
        }
        "log-hash" => {
            args.text("a list of converters")?;
            context.unimplemented("balance log-hash", "mode log", args.span());
            Balance::Sticky
        }
        "sticky" => {
            context.unimplemented("balance sticky", "mode log", args.span());
            Balance::Sticky
        }
        _ => with_parentheses(word, args, context)?,
    };
    expressions::ignore_rest(args, context);
    Ok(())
}

/// `word(argument)`.
fn with_parentheses(
    word: &str,
    args: &mut Args<'_>,
    context: &mut Context<'_>,
) -> Result<Balance, Diagnostic> {
    let Some((name, rest)) = word.split_once('(') else {
        return Err(unknown(word, args));
    };
    let argument = rest.split_once(')').map(|(argument, _)| argument);
    let given = argument.filter(|argument| !argument.is_empty());
    match name {
        "hdr" => {
            let Some(header) = given else {
                return Err(args.wrong("balance hdr requires an http header field name"));
            };
            let domain_only = match args.next() {
                None => false,
                Some("use_domain_only") => true,
                Some(other) => {
                    let message = format!(
                        "balance hdr({header}) only accepts 'use_domain_only' modifier (got \
                         '{other}')"
                    );
                    let known = ["use_domain_only"];
                    return Err(suggestion(args.wrong(message), other, known));
                }
            };
            Ok(Balance::Header {
                name: header.to_owned(),
                domain_only,
            })
        }
        "random" => {
            let draws = argument.unwrap_or(rest);
            match draws.parse::<u32>() {
                Ok(0) => Err(args.wrong("balance random : number of draws must be at least 1")),
                Ok(draws) => Ok(Balance::Random(draws)),
                Err(_) => Err(args.wrong(format!(
                    "balance random : the number of draws is no number (got '{draws}')"
                ))),
            }
        }
        "rdp-cookie" => match given {
            Some(cookie) => Ok(Balance::RdpCookie(cookie.to_owned())),
            None => Err(args.wrong("balance rdp-cookie : missing or empty cookie name")),
        },
        "log-hash" => {
            context.unimplemented("balance log-hash", "mode log", args.span());
            Ok(Balance::RoundRobin)
        }
        _ => Err(unknown(word, args)),
    }
}

fn unknown(word: &str, args: &Args<'_>) -> Diagnostic {
    let quoted: Vec<_> = ALGORITHMS.iter().map(|name| format!("'{name}'")).collect();
    let message = format!("balance only supports {} (got '{word}')", quoted.join(", "));
    suggestion(args.wrong(message), word, ALGORITHMS.iter().copied())
}

fn uri_key(args: &mut Args<'_>) -> Result<UriKey, Diagnostic> {
    let mut key = UriKey::default();
    while let Some(word) = args.next() {
        match word {
            "whole" => key.whole = true,
            "path-only" => key.path_only = true,
            "len" | "depth" => {
                let text = args.next().unwrap_or_default();
                let number = match text.parse::<u32>() {
                    Ok(number) if number > 0 => number,
                    _ => {
                        return Err(args.wrong(format!(
                            "balance uri : '{word}' expects a positive integer (got '{text}')"
                        )));
                    }
                };
                if word == "len" {
                    key.length_max = Some(number);
                } else {
                    key.depth_max = Some(number);
                }
            }
            other => {
                let message = format!(
                    "balance uri only accepts parameters 'len', 'depth', 'path-only', and \
                     'whole' (got '{other}')"
                );
                let known = ["len", "depth", "path-only", "whole"];
                return Err(suggestion(args.wrong(message), other, known));
            }
        }
    }
    Ok(key)
}

fn url_param(args: &mut Args<'_>, context: &mut Context<'_>) -> Result<Balance, Diagnostic> {
    let Some(name) = args.next().filter(|name| !name.is_empty()) else {
        return Err(args.wrong("balance url_param requires an URL parameter name"));
    };
    match args.next() {
        None => {}
        Some("check_post") => {
            // In HAProxy 3.2 the word has no effect: the body of each POST is looked at. A number of bytes
            // to wait for was accepted here once.
            expressions::ignore_rest(args, context);
        }
        Some(other) => {
            let message =
                format!("balance url_param only accepts 'check_post' modifier (got '{other}')");
            return Err(suggestion(args.wrong(message), other, ["check_post"]));
        }
    }
    Ok(Balance::UrlParam(name.to_owned()))
}

fn hash_type(
    draft: &mut ProxyDraft,
    args: &mut Args<'_>,
    _: &mut Context<'_>,
) -> Result<(), Diagnostic> {
    let word = args.next().unwrap_or_default();
    let consistent = match word {
        "consistent" => true,
        "map-based" => false,
        "avalanche" => {
            let message = "experimental feature 'hash-type avalanche' is not supported anymore, \
                           please use 'hash-type map-based sdbm avalanche' instead";
            let span = args.span();
            return Err(args
                .wrong(message)
                .replace(span, "hash-type map-based sdbm avalanche"));
        }
        other => {
            let message =
                format!("'hash-type' only supports 'consistent' and 'map-based' (got '{other}')");
            let known = ["consistent", "map-based"];
            return Err(suggestion(args.wrong(message), other, known));
        }
    };
    let mut hash = HashType {
        consistent,
        ..HashType::default()
    };
    if let Some(word) = args.next() {
        hash.function = match word {
            "sdbm" => HashFunction::Sdbm,
            "djb2" => HashFunction::Djb2,
            "wt6" => HashFunction::Wt6,
            "crc32" => HashFunction::Crc32,
            "none" => HashFunction::None,
            other => {
                let message = format!(
                    "'hash-type' only supports 'sdbm', 'djb2', 'crc32', 'none' or 'wt6' hash \
                     functions (got '{other}')"
                );
                let known = ["sdbm", "djb2", "crc32", "none", "wt6"];
                return Err(suggestion(args.wrong(message), other, known));
            }
        };
        match args.next() {
            None => {}
            Some("avalanche") => hash.avalanche = true,
            Some(other) => {
                let message = format!(
                    "'hash-type' only supports 'avalanche' as a modifier for hash functions \
                     (got '{other}')"
                );
                return Err(suggestion(args.wrong(message), other, ["avalanche"]));
            }
        }
    } else {
        // Alone, `consistent` means `consistent sdbm avalanche` (manual, "hash-type").
        hash.avalanche = consistent;
    }
    args.end()?;
    draft.back.hash_type = hash;
    Ok(())
}
