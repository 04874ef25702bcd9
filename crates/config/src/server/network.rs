//! Words of server lines about the connection to the server.

use std::net::SocketAddr;
use std::time::Duration;

use ballast_expr::{Expr, LogFormat, Usage};
use ballast_model::{Address, SourceAddress, TransparentSource, WebsocketProtocol};
use ballast_syntax::{Diagnostic, SectionKind};

use crate::address::{self, AddressForm, AddressPort};
use crate::args::Args;
use crate::check;
use crate::context::Context;
use crate::draft::ServerDraft;
use crate::keyword::{Row, Sections};
use crate::mux_protocol::{MuxProtocol, protocol};

/// A row of this file's table.
type R = Row<ServerDraft>;

/// The rows.
pub(super) const ROWS: &[R] = &[
    R::new(
        "cc",
        Sections::SERVER,
        "<algorithm>",
        "TCP congestion control algorithm",
        |server_draft, args, _| {
            server_draft.server.congestion_algorithm =
                Some(args.text("a congestion control algorithm")?.to_owned());
            Ok(())
        },
    )
    .examples("cc bbr", "cc"),
    R::new(
        "idle-ping",
        Sections::SERVER,
        "<delay>",
        "pings idle HTTP/2 connections",
        |server_draft, args, _| {
            let delay = args.time("a delay")?;
            server_draft.server.idle_ping = Some(delay).filter(|delay| *delay > Duration::ZERO);
            Ok(())
        },
    )
    .examples("idle-ping 10s", "idle-ping soon"),
    R::new(
        "log-bufsize",
        Sections::SERVER,
        "<bufsize>",
        "size of the ring before a log server",
        check::bytes,
    )
    .examples("log-bufsize 16k", "log-bufsize x")
    .unimplemented("log backends"),
    R::new(
        "log-proto",
        Sections::SERVER,
        "legacy | octet-count",
        "framing of log messages over TCP",
        |_, args, _| args.choice(&[("legacy", ()), ("octet-count", ())]),
    )
    .examples("log-proto octet-count", "log-proto x")
    .ignored("acts on servers of rings and of log backends only"),
    R::new(
        "namespace",
        Sections::SERVER,
        "<name>",
        "network namespace of the connection; * is the client's",
        |server_draft, args, context| {
            server_draft.server.namespace = Some(if args.take("*") {
                "*".to_owned()
            } else {
                check::namespace(args, context)?
            });
            Ok(())
        },
    )
    .examples("namespace blue", "namespace"),
    R::new(
        "no-send-proxy",
        Sections::SERVER,
        "",
        "undoes send-proxy",
        |server_draft, _, _| {
            server_draft.proxy_protocol.v1 = false;
            Ok(())
        },
    ),
    R::new(
        "no-send-proxy-v2",
        Sections::SERVER,
        "",
        "undoes send-proxy-v2",
        |server_draft, _, _| {
            server_draft.proxy_protocol.v2 = false;
            Ok(())
        },
    ),
    R::new(
        "no-send-proxy-v2-ssl",
        Sections::SERVER,
        "",
        "undoes send-proxy-v2-ssl",
        |server_draft, _, _| {
            (
                server_draft.proxy_protocol.v2,
                server_draft.proxy_protocol.options.ssl,
            ) = (false, false);
            Ok(())
        },
    ),
    R::new(
        "no-send-proxy-v2-ssl-cn",
        Sections::SERVER,
        "",
        "undoes send-proxy-v2-ssl-cn",
        |server_draft, _, _| {
            let words = &mut server_draft.proxy_protocol;
            (words.v2, words.options.ssl, words.options.cert_cn) = (false, false, false);
            Ok(())
        },
    ),
    R::new(
        "no-tfo",
        Sections::SERVER,
        "",
        "undoes tfo",
        |server_draft, _, _| {
            server_draft.server.tcp_fast_open = false;
            Ok(())
        },
    ),
    R::new(
        "proto",
        Sections::SERVER,
        "<name>",
        "forces the protocol spoken",
        |server_draft, args, context| {
            let protocol = protocol(args)?;
            server_draft.server.protocol = protocol.http();
            server_draft.protocol = Some(protocol);
            let (word, feature) = match protocol {
                MuxProtocol::Fcgi => ("proto fcgi", "FastCGI"),
                MuxProtocol::Spop => ("proto spop", "filters"),
                MuxProtocol::H1 | MuxProtocol::H2 | MuxProtocol::None | MuxProtocol::Quic => {
                    return Ok(());
                }
            };
            context.unimplemented(word, feature, args.keyword_span());
            Ok(())
        },
    )
    .examples("proto h1", "proto h9"),
    R::new(
        "proxy-v2-options",
        Sections::SERVER,
        "<option>[,<option>]*",
        "what the PROXY protocol header holds besides",
        proxy_options,
    )
    .examples("proxy-v2-options crc32c,unique-id", "proxy-v2-options x"),
    R::new(
        "quic-cc-algo",
        Sections::SERVER,
        "<algorithm>",
        "QUIC congestion control",
        check::word,
    )
    .examples("quic-cc-algo cubic", "quic-cc-algo")
    .unimplemented("QUIC"),
    R::new(
        "resolve-net",
        Sections::SERVER,
        "<network>[,<network>]*",
        "networks preferred among resolved addresses",
        check::networks,
    )
    .examples("resolve-net 10.0.0.0/8", "resolve-net")
    .ignored("it acts with resolvers only"),
    R::new(
        "resolve-opts",
        Sections::SERVER,
        "<option>,<option>,...",
        "how resolved addresses are shared",
        |_, args, _| {
            let text = args.text("a list of options")?;
            let known = ["allow-dup-ip", "ignore-weight", "prevent-dup-ip"];
            match text.split(',').find(|option| !known.contains(option)) {
                Some(option) => {
                    Err(args.wrong(format!("'resolve-opts' : unknown option '{option}'")))
                }
                None => Ok(()),
            }
        },
    )
    .examples("resolve-opts allow-dup-ip", "resolve-opts x")
    .ignored("it acts with resolvers only"),
    R::new(
        "resolve-prefer",
        Sections::SERVER,
        "ipv4 | ipv6",
        "family preferred among resolved addresses",
        |_, args, _| args.choice(&[("ipv4", ()), ("ipv6", ())]),
    )
    .examples("resolve-prefer ipv4", "resolve-prefer x")
    .ignored("it acts with resolvers only"),
    R::new(
        "resolvers",
        Sections::SERVER,
        "<id>",
        "section that keeps the address up to date",
        |server_draft, args, context| {
            let word = args.word("the name of a resolvers section")?;
            let declarations = &mut context.declarations;
            declarations.add_reference(
                SectionKind::Resolvers,
                word.text(),
                "resolvers",
                word.span(),
            );
            server_draft.resolvers = Some(word.text().to_owned());
            Ok(())
        },
    )
    .examples("resolvers dns", "resolvers")
    .unimplemented("DNS resolvers"),
    R::new(
        "send-proxy",
        Sections::SERVER,
        "",
        "begins with a PROXY protocol header, version 1",
        |server_draft, _, _| {
            server_draft.proxy_protocol.v1 = true;
            Ok(())
        },
    ),
    R::new(
        "send-proxy-v2",
        Sections::SERVER,
        "",
        "begins with a PROXY protocol header, version 2",
        |server_draft, _, _| {
            server_draft.proxy_protocol.v2 = true;
            Ok(())
        },
    ),
    R::new(
        "send-proxy-v2-ssl",
        Sections::SERVER,
        "",
        "the same with what is known of the client's TLS",
        |server_draft, _, _| {
            (
                server_draft.proxy_protocol.v2,
                server_draft.proxy_protocol.options.ssl,
            ) = (true, true);
            Ok(())
        },
    ),
    R::new(
        "send-proxy-v2-ssl-cn",
        Sections::SERVER,
        "",
        "the same with the common name of the client's certificate",
        |server_draft, _, _| {
            let words = &mut server_draft.proxy_protocol;
            (words.v2, words.options.ssl, words.options.cert_cn) = (true, true, true);
            Ok(())
        },
    ),
    R::new(
        "set-proxy-v2-tlv-fmt",
        Sections::SERVER,
        "(<id>) <fmt>",
        "adds a value to the PROXY protocol header",
        tlv,
    )
    .examples("set-proxy-v2-tlv-fmt(0x20) abc", "set-proxy-v2-tlv-fmt abc"),
    R::new(
        "socks4",
        Sections::SERVER,
        "<addr>:<port>",
        "goes through a SOCKS4 proxy",
        |server_draft, args, context| {
            let text = args.text("<addr>:<port>")?;
            let wants = AddressForm {
                port: true,
                ..AddressForm::default()
            };
            let wrong = |error: String| args.wrong(format!("'socks4' : {error}"));
            let parsed = address::parse(text, wants, &context.environment).map_err(wrong)?;
            let address = context.resolve_address(&parsed.address).map_err(wrong)?;
            server_draft.server.socks4 = match (address, parsed.port) {
                (Address::Inet(known), AddressPort::Fixed(port, _)) => {
                    Some(SocketAddr::new(known.ip(), port))
                }
                _ => return Err(wrong(format!("'{text}' is no address of a SOCKS4 proxy"))),
            };
            Ok(())
        },
    )
    .examples("socks4 192.0.2.1:1080", "socks4 192.0.2.1"),
    R::new(
        "source",
        Sections::SERVER,
        "<addr>[:<pl>[-<ph>]] [usesrc ...] [interface <name>]",
        "address the connection leaves from",
        |server_draft, args, context| {
            server_draft.server.source = Some(source(args, context)?);
            Ok(())
        },
    )
    .examples("source 192.0.2.1 interface lo", "source"),
    R::new(
        "tcp-md5sig",
        Sections::SERVER,
        "<password>",
        "signs TCP segments",
        check::word,
    )
    .examples("tcp-md5sig secret", "tcp-md5sig")
    .unimplemented("TCP signatures"),
    R::new(
        "tcp-ut",
        Sections::SERVER,
        "<delay>",
        "how long data may stay unacknowledged",
        |server_draft, args, _| {
            server_draft.server.tcp_user_timeout =
                Some(args.time("a delay")?).filter(|time| !time.is_zero());
            Ok(())
        },
    )
    .examples("tcp-ut 30s", "tcp-ut soon"),
    R::new(
        "tfo",
        Sections::SERVER,
        "",
        "TCP fast open",
        |server_draft, _, _| {
            server_draft.server.tcp_fast_open = true;
            Ok(())
        },
    ),
    R::new(
        "usesrc",
        Sections::SERVER,
        "<addr> | client | clientip | hdr_ip(...)",
        "stands behind source only",
        |_, args, _| Err(args.wrong("'usesrc' only allowed after a 'source' statement.")),
    )
    .examples("source 192.0.2.1 usesrc clientip", "usesrc client"),
    R::new(
        "ws",
        Sections::SERVER,
        "auto | h1 | h2",
        "protocol that carries WebSocket",
        |server_draft, args, _| {
            let choices = [
                ("auto", WebsocketProtocol::Auto),
                ("h1", WebsocketProtocol::Http1),
                ("h2", WebsocketProtocol::Http2),
            ];
            let refusal = |_: &str| "'ws' has to be 'auto', 'h1' or 'h2'".to_owned();
            server_draft.server.websocket_protocol = args.choice_or(&choices, refusal)?;
            Ok(())
        },
    )
    .examples("ws h1", "ws h9"),
];

fn proxy_options(
    server_draft: &mut ServerDraft,
    args: &mut Args<'_>,
    _: &mut Context<'_>,
) -> Result<(), Diagnostic> {
    let header = &mut server_draft.proxy_protocol.options;
    for option in args.text("a list of options")?.split(',') {
        match option {
            "authority" => header.authority = true,
            "cert-cn" => (header.ssl, header.cert_cn) = (true, true),
            "cert-key" => (header.ssl, header.cert_key) = (true, true),
            "cert-sig" => (header.ssl, header.cert_sig) = (true, true),
            "crc32c" => header.crc32c = true,
            "ssl" => header.ssl = true,
            "ssl-cipher" => (header.ssl, header.ssl_cipher) = (true, true),
            "unique-id" => header.unique_id = true,
            _ => {
                return Err(args.wrong(format!("'proxy-v2-options' : unknown option '{option}'")));
            }
        }
    }
    Ok(())
}

/// `set-proxy-v2-tlv-fmt(<id>) <format>`; the cursor is after the word with its parentheses.
fn tlv(
    server_draft: &mut ServerDraft,
    args: &mut Args<'_>,
    context: &mut Context<'_>,
) -> Result<(), Diagnostic> {
    let word = args.line().text(args.position().max(1) - 1);
    let id = word
        .split_once('(')
        .and_then(|(_, rest)| rest.strip_suffix(')'))
        .and_then(|text| match text.strip_prefix("0x") {
            Some(digits) => u8::from_str_radix(digits, 16).ok(),
            None => text.parse().ok(),
        })
        .ok_or_else(|| args.wrong("'set-proxy-v2-tlv-fmt' expects (<id>) from 0 to 255"))?;
    // Without a format the value is empty.
    let format = match args.peek_word() {
        Some(word) if !word.bytes().is_empty() => args.format("a format", Usage::Text)?,
        _ => {
            args.next();
            LogFormat::literal("", Usage::Text)
        }
    };
    context.check_format(&format, args.keyword_span());
    server_draft.proxy_protocol.options.tlvs.push((id, format));
    Ok(())
}

/// The word after `usesrc`.
///
/// # Errors
/// When it is neither an address nor one of the words.
pub(crate) fn usesrc(
    text: &str,
    args: &Args<'_>,
    context: &mut Context<'_>,
) -> Result<TransparentSource, Diagnostic> {
    match text {
        "client" => Ok(TransparentSource::Client),
        "clientip" => Ok(TransparentSource::ClientIp),
        _ if text.starts_with("hdr_ip(") => {
            let expr = Expr::parse(&format!("req.{text}"))
                .map_err(|error| args.wrong(format!("'usesrc {text}' : {}", error.message)))?;
            context.check_expr(&expr, args.span());
            Ok(TransparentSource::Header(expr))
        }
        _ => {
            let wrong = |error: String| args.wrong(format!("'usesrc {text}' : {error}"));
            let parsed = address::parse(text, AddressForm::default(), &context.environment)
                .map_err(wrong)?;
            match context.resolve_address(&parsed.address).map_err(wrong)? {
                Address::Inet(address) => Ok(TransparentSource::Address(address)),
                _ => Err(args.wrong("'usesrc' expects an IP address")),
            }
        }
    }
}

/// What follows `source` on a server line.
///
/// # Errors
/// When a word is wrong.
pub(crate) fn source(
    args: &mut Args<'_>,
    context: &mut Context<'_>,
) -> Result<SourceAddress, Diagnostic> {
    let text = args
        .text("<addr>[:<port>[-<port>]], and optionally 'usesrc' <addr>, and 'interface' <name>")?;
    let wants = AddressForm {
        range: true,
        ..AddressForm::default()
    };
    let wrong = |error: String| args.wrong(format!("'source' : {error}"));
    let parsed = address::parse(text, wants, &context.environment).map_err(wrong)?;
    let resolved = context.resolve_address(&parsed.address).map_err(wrong)?;
    let Address::Inet(address) = resolved else {
        return Err(args.wrong("'source' expects an IP address"));
    };
    let port_last = match parsed.port {
        AddressPort::Fixed(first, last) if last > first => Some(last),
        _ => None,
    };
    let mut source = SourceAddress {
        address: SocketAddr::new(address.ip(), address.port()),
        port_last,
        transparent: None,
        interface: None,
    };
    loop {
        if args.take("usesrc") {
            let text = args.text("an address, 'client', 'clientip' or 'hdr_ip(name,#)'")?;
            source.transparent = Some(usesrc(text, args, context)?);
        } else if args.take("interface") {
            source.interface = Some(args.text("an interface name")?.to_owned());
        } else {
            return Ok(source);
        }
    }
}
