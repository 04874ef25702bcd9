//! Headers that tell servers about the client.
//!
//! Source: HAProxy configuration manual, section 4.2, "option forwardfor", "option originalto",
//! "option forwarded", "http-send-name-header".

use ballast_expr::Phase;
use ballast_model::{ForwardFor, ForwardedHeader, ForwardedNode, Network, OddNames};
use ballast_syntax::Diagnostic;

use super::expressions;
use crate::args::Args;
use crate::context::Context;
use crate::draft::ProxyDraft;
use crate::keyword::{Row, Sections};

/// A row of this file's table.
type R = Row<ProxyDraft>;

/// The rows.
pub(super) const ROWS: &[R] = &[
    R::new(
        "option forwardfor",
        Sections::PROXIES,
        "[ except <network> ] [ header <name> ] [ if-none ]",
        "add the client's address to requests",
        |draft, args, _| {
            draft.common.forward_for = Some(forward_for(args, "X-Forwarded-For", true)?);
            Ok(())
        },
    )
    .examples(
        "option forwardfor except 127.0.0.0/8 header X-Client if-none",
        "option forwardfor except nowhere",
    )
    .http(),
    R::new(
        "option originalto",
        Sections::PROXIES,
        "[ except <network> ] [ header <name> ]",
        "add the original destination to requests",
        |draft, args, _| {
            draft.common.original_to = Some(forward_for(args, "X-Original-To", false)?);
            Ok(())
        },
    )
    .examples(
        "option originalto except 10.0.0.0/8",
        "option originalto if-none",
    )
    .http(),
    R::new(
        "option forwarded",
        Sections::BACK,
        "[ proto ] [ host | host-expr <e> ] [ by | by-expr <e> ] [ by_port | by_port-expr <e> ] \
         [ for | for-expr <e> ] [ for_port | for_port-expr <e> ]",
        "add a Forwarded header (RFC 7239) to requests",
        forwarded,
    )
    .examples(
        "option forwarded proto host by for",
        "option forwarded nosuch",
    )
    .with_no()
    .http(),
    R::new(
        "option http-restrict-req-hdr-names",
        Sections::PROXIES,
        "{ preserve | delete | reject }",
        "what becomes of request headers with odd names",
        |draft, args, _| {
            draft.common.odd_request_names = args.choice(&[
                ("preserve", OddNames::Preserve),
                ("delete", OddNames::Delete),
                ("reject", OddNames::Reject),
            ])?;
            args.end()
        },
    )
    .examples(
        "option http-restrict-req-hdr-names preserve",
        "option http-restrict-req-hdr-names nosuch",
    ),
    R::new(
        "http-send-name-header",
        Sections::BACK,
        "[<header>]",
        "tell the server its own name in a header",
        |draft, args, _| {
            let name = args.text("a header string")?;
            let is_reserved = ["host", "content-length", "transfer-encoding", "connection"]
                .iter()
                .any(|reserved| name.eq_ignore_ascii_case(reserved));
            if is_reserved && !name.eq_ignore_ascii_case("host") {
                let message = format!("'http-send-name-header' cannot be '{name}'");
                return Err(args
                    .wrong(message)
                    .help("choose a header of your own, such as X-Server"));
            }
            draft.back.name_header = Some(name.to_ascii_lowercase());
            args.end()
        },
    )
    .examples("http-send-name-header X-Server", "http-send-name-header")
    .http(),
];

fn forward_for(
    args: &mut Args<'_>,
    header: &str,
    has_if_none: bool,
) -> Result<ForwardFor, Diagnostic> {
    let keyword = args.keyword();
    let mut forward = ForwardFor {
        header: header.to_owned(),
        except: None,
        if_none: false,
    };
    while let Some(word) = args.next() {
        match word {
            "except" => {
                let expects = || format!("'{keyword} except' expects <address>[/mask] as argument");
                let Some(text) = args.next() else {
                    return Err(args.wrong(expects()));
                };
                forward.except = Some(network(text).ok_or_else(|| args.wrong(expects()))?);
            }
            "header" => match args.next() {
                Some(name) if !name.is_empty() => name.clone_into(&mut forward.header),
                _ => {
                    let expects = format!("'{keyword} header' expects <header_name> as argument");
                    return Err(args.wrong(expects));
                }
            },
            "if-none" if has_if_none => forward.if_none = true,
            other => {
                let words: &[_] = if has_if_none {
                    &["except", "header", "if-none"]
                } else {
                    &["except", "header"]
                };
                let quoted: Vec<_> = words.iter().map(|word| format!("'{word}'")).collect();
                let message = format!(
                    "'{keyword}' only supports optional values: {} (got '{other}')",
                    quoted.join(", ")
                );
                let diagnostic = args.wrong(message);
                return Err(crate::context::suggestion(
                    diagnostic,
                    other,
                    words.iter().copied(),
                ));
            }
        }
    }
    Ok(forward)
}

/// An address with an optional mask, as bits or, for IPv4, as an address.
pub(super) fn network(text: &str) -> Option<Network> {
    let (address, mask) = match text.split_once('/') {
        Some((address, mask)) => (address, Some(mask)),
        None => (text, None),
    };
    let address: std::net::IpAddr = address.parse().ok()?;
    let bits_max = if address.is_ipv4() { 32 } else { 128 };
    let prefix_bits = match mask {
        None => bits_max,
        Some(mask) => match mask.parse::<u8>() {
            Ok(bits) => bits,
            Err(_) => {
                let mask: std::net::Ipv4Addr = mask.parse().ok()?;
                let bits = u32::from(mask);
                let ones = bits.leading_ones();
                if !address.is_ipv4() || bits.count_ones() != ones {
                    return None;
                }
                u8::try_from(ones).ok()?
            }
        },
    };
    (prefix_bits <= bits_max).then_some(Network {
        address,
        prefix_bits,
    })
}

fn forwarded(
    draft: &mut ProxyDraft,
    args: &mut Args<'_>,
    context: &mut Context<'_>,
) -> Result<(), Diagnostic> {
    if args.prefix != crate::args::Prefix::None {
        args.end()?;
        draft.back.forwarded = None;
        return Ok(());
    }
    let mut header = ForwardedHeader::default();
    if args.is_empty() {
        // Without arguments: the most common parameters of RFC 7239.
        header.proto = true;
        header.for_ = Some(ForwardedNode::Connection);
    }
    while let Some(word) = args.next() {
        if word == "proto" {
            header.proto = true;
            continue;
        }
        let (name, is_expr) = match word.strip_suffix("-expr") {
            Some(name) => (name, true),
            None => (word, false),
        };
        if !matches!(name, "host" | "by" | "by_port" | "for" | "for_port") {
            let known = ["proto", "host", "by", "by_port", "for", "for_port"];
            let message = format!("'option forwarded' : unknown argument '{word}'");
            let diagnostic = args.wrong(message);
            return Err(crate::context::suggestion(diagnostic, word, known));
        }
        let node = if is_expr {
            let what = "a sample expression";
            let expr = expressions::expr(draft, args, context, what, &[Phase::BackendRequest])?;
            ForwardedNode::Expression(expr)
        } else {
            ForwardedNode::Connection
        };
        match name {
            "host" => header.host = Some(node),
            "by" => header.by = Some(node),
            "by_port" => header.by_port = Some(node),
            "for" => header.for_ = Some(node),
            _ => header.for_port = Some(node),
        }
    }
    let lacks = |port: bool, node: bool| port && !node;
    if lacks(header.by_port.is_some(), header.by.is_some())
        || lacks(header.for_port.is_some(), header.for_.is_some())
    {
        let message = "'option forwarded' : a port needs the address it belongs to";
        return Err(args.wrong(message));
    }
    draft.back.forwarded = Some(header);
    Ok(())
}
