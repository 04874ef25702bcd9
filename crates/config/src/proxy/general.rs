//! General options of a proxy: identity, limits, connections to servers.
//!
//! Source: HAProxy configuration manual, section 4.2.

use std::net::SocketAddr;

use ballast_model::{Address, HttpReuse, Mode, ServerStates, SourceAddress};
use ballast_syntax::Diagnostic;

use super::expressions;
use crate::address::{self, AddressForm};
use crate::args::Args;
use crate::context::{Context, suggestion};
use crate::draft::ProxyDraft;
use crate::keyword::{Row, Sections};
use crate::server::network;

/// A row of this file's table.
type R = Row<ProxyDraft>;

/// The rows.
pub(super) const ROWS: &[R] = &[
    R::new(
        "mode",
        Sections::PROXIES,
        "{ tcp | http | log | spop }",
        "what the proxy understands of the bytes it carries",
        mode,
    )
    .examples("mode http", "mode htttp"),
    R::new(
        "description",
        Sections::NAMED,
        "<text>",
        "what people should know of the proxy",
        |draft, args, _| {
            if args.is_empty() {
                return Err(args.missing_argument("a string argument"));
            }
            let words: Vec<_> = args.rest().iter().map(|word| word.text()).collect();
            draft.common.description = Some(words.join(" "));
            Ok(())
        },
    )
    .examples("description shop, new", "description"),
    R::new(
        "id",
        Sections::NAMED,
        "<number>",
        "the number statistics know the proxy by",
        |draft, args, _| {
            let text = args.text("an integer argument")?;
            match text.parse::<u32>() {
                Ok(id) if id > 0 && i32::try_from(id).is_ok() => {
                    let span = args.wrong("").span.unwrap_or(args.span());
                    draft.id = Some((id, span));
                    args.end()
                }
                _ => Err(args.wrong(format!("custom id has to be > 0 (got '{text}')"))),
            }
        },
    )
    .examples("id 1000", "id 0"),
    R::new(
        "guid",
        Sections::NAMED,
        "<string>",
        "the identifier that stays when the section is renamed",
        |draft, args, _| {
            let text = args.text("a string argument")?;
            if text.len() > GUID_BYTES_MAX {
                return Err(args.wrong(format!("'guid' is longer than {GUID_BYTES_MAX} bytes")));
            }
            if let Some(bad) = text
                .chars()
                .find(|c| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ':')))
            {
                return Err(args.wrong(format!("character '{bad}' is not permitted in a guid")));
            }
            draft.common.guid = Some(text.to_owned());
            args.end()
        },
    )
    .examples("guid shop-front", "guid a,b"),
    R::new(
        "disabled",
        Sections::PROXIES,
        "",
        "the section is checked and does nothing",
        |draft, args, _| {
            args.end()?;
            draft.common.disabled = true;
            Ok(())
        },
    )
    .examples("disabled", "disabled extra"),
    R::new(
        "enabled",
        Sections::PROXIES,
        "",
        "undoes 'disabled' of the defaults",
        |draft, args, _| {
            args.end()?;
            draft.common.disabled = false;
            Ok(())
        },
    )
    .examples("enabled", "enabled extra"),
    R::new(
        "maxconn",
        Sections::FRONT,
        "<conns>",
        "connections the frontend takes at a time",
        |draft, args, context| {
            let count = expressions::lenient_count(args, context, "an integer argument")?;
            draft.front.connection_count_max = (count > 0).then_some(count);
            args.end()
        },
    )
    .examples("maxconn 2000", "maxconn 1 2"),
    R::new(
        "fullconn",
        Sections::BACK,
        "<conns>",
        "connections at which servers get their full 'maxconn'",
        |draft, args, context| {
            let count = expressions::lenient_count(args, context, "an integer argument")?;
            draft.back.full_connections = (count > 0).then_some(count);
            args.end()
        },
    )
    .examples("fullconn 1000", "fullconn 1 2"),
    R::new(
        "backlog",
        Sections::FRONT,
        "<conns>",
        "connections the system may keep waiting",
        |draft, args, context| {
            let count = expressions::lenient_count(args, context, "an integer argument")?;
            draft.front.backlog = (count > 0).then_some(count);
            args.end()
        },
    )
    .examples("backlog 1000", "backlog"),
    R::new(
        "rate-limit sessions",
        Sections::FRONT,
        "<rate>",
        "sessions accepted in a second",
        |draft, args, _| {
            let rate = args.count("an integer value (in sessions/second)")?;
            draft.front.session_rate_max = (rate > 0).then_some(rate);
            args.end()
        },
    )
    .examples("rate-limit sessions 100", "rate-limit sessions x"),
    R::new(
        "http-reuse",
        Sections::BACK,
        "{ never | safe | aggressive | always }",
        "which idle connections to servers are used again",
        |draft, args, _| {
            draft.back.http_reuse = args.choice(&[
                ("never", HttpReuse::Never),
                ("safe", HttpReuse::Safe),
                ("aggressive", HttpReuse::Aggressive),
                ("always", HttpReuse::Always),
            ])?;
            args.end()
        },
    )
    .examples("http-reuse always", "http-reuse sometimes"),
    R::new(
        "max-keep-alive-queue",
        Sections::BACK,
        "<value>",
        "queue length at which a kept connection's server is no longer preferred",
        |draft, args, _| {
            let what = "an integer value (or -1 to disable)";
            let number = args.number(what, -1..=i64::from(u32::MAX))?;
            draft.back.keep_alive_queue_max = u32::try_from(number).ok();
            args.end()
        },
    )
    .examples("max-keep-alive-queue 10", "max-keep-alive-queue x"),
    R::new(
        "max-session-srv-conns",
        Sections::FRONT,
        "<count>",
        "idle server connections that stay with one client connection (http-reuse never, NTLM)",
        |draft, args, context| {
            let count = expressions::lenient_count(args, context, "a number")?;
            draft.front.kept_connection_count_max = Some(count);
            args.end()
        },
    )
    .examples("max-session-srv-conns 5", "max-session-srv-conns"),
    R::new(
        "source",
        Sections::BACK,
        "<addr>[:<port>] [ usesrc { <addr> | client | clientip | hdr_ip(<hdr>[,<occ>]) } ] \
         [ interface <name> ]",
        "the address connections to servers leave from",
        |draft, args, context| {
            draft.back.source = Some(source(args, context)?);
            Ok(())
        },
    )
    .examples("source 192.0.2.9 interface eth0", "source 192.0.2.9 nosuch"),
    R::new(
        "load-server-state-from-file",
        Sections::BACK,
        "{ global | local | none }",
        "where the state of servers is read from at start",
        |draft, args, _| {
            // The file of `local` is determined when the whole section is read.
            let choices = [
                ("global", Some(true)),
                ("local", Some(false)),
                ("none", None),
            ];
            draft.back.server_states = args.choice(&choices)?.map(|is_global| {
                if is_global {
                    ServerStates::Global
                } else {
                    ServerStates::Local(String::new())
                }
            });
            args.end()
        },
    )
    .examples(
        "load-server-state-from-file none",
        "load-server-state-from-file nosuch",
    ),
    R::new(
        "server-state-file-name",
        Sections::BACK,
        "[ { use-backend-name | <file> } ]",
        "the file 'load-server-state-from-file local' reads",
        |draft, args, _| {
            draft.section_state.state_file = match args.next() {
                None | Some("use-backend-name") => None,
                Some(file) => Some(file.to_owned()),
            };
            args.end()
        },
    )
    .examples(
        "server-state-file-name states",
        "server-state-file-name a b",
    ),
];

/// HAProxy's limit for the length of a guid.
const GUID_BYTES_MAX: usize = 127;

fn mode(
    draft: &mut ProxyDraft,
    args: &mut Args<'_>,
    _: &mut Context<'_>,
) -> Result<(), Diagnostic> {
    let word = args.next().unwrap_or_default();
    draft.common.mode = match word {
        "tcp" => Mode::Tcp,
        "http" => Mode::Http,
        "log" => Mode::Log,
        "spop" => Mode::Spop,
        "health" => {
            let message = "'mode health' doesn't exist anymore. Please use 'http-request return \
                           status 200' instead";
            return Err(args.wrong(message));
        }
        other => {
            let message = format!("unknown proxy mode '{other}'");
            let known = ["tcp", "http", "log", "spop"];
            return Err(suggestion(args.wrong(message), other, known));
        }
    };
    args.end()?;
    let is_back_only = matches!(draft.common.mode, Mode::Log | Mode::Spop);
    if is_back_only && draft.section() == Sections::FRONTEND {
        let message = format!("mode {word} is not applicable to {}", draft.title());
        return Err(Diagnostic::alert("bad-value", message).at(args.span()));
    }
    Ok(())
}

fn source(args: &mut Args<'_>, context: &mut Context<'_>) -> Result<SourceAddress, Diagnostic> {
    let expects = "<addr>[:<port>], and optionally 'usesrc' <addr>, and 'interface' <name>";
    let text = args.text(expects)?;
    let mut source = SourceAddress {
        address: socket_address(text, args, context, "source")?,
        port_last: None,
        transparent: None,
        interface: None,
    };
    while let Some(word) = args.next() {
        match word {
            "usesrc" => match args.next() {
                None | Some("") => {
                    let message =
                        "'usesrc' expects <addr>[:<port>], 'client', or 'clientip' as argument";
                    return Err(args.wrong(message));
                }
                Some(text) => {
                    source.transparent = Some(network::usesrc(text, args, context)?);
                }
            },
            "interface" => match args.next() {
                Some(name) if !name.is_empty() => source.interface = Some(name.to_owned()),
                _ => return Err(args.wrong("'source' : missing interface name")),
            },
            other => {
                let message = format!(
                    "'source' only supports optional keywords 'interface' and 'usesrc' (got \
                     '{other}')"
                );
                return Err(suggestion(
                    args.wrong(message),
                    other,
                    ["interface", "usesrc"],
                ));
            }
        }
    }
    Ok(source)
}

/// The socket address of a word; a host name is resolved.
fn socket_address(
    text: &str,
    args: &Args<'_>,
    context: &mut Context<'_>,
    keyword: &str,
) -> Result<SocketAddr, Diagnostic> {
    let environment = context.machine.environment();
    let parsed = address::parse(text, AddressForm::default(), &environment)
        .map_err(|error| args.wrong(format!("'{keyword} {text}' : {error}")))?;
    match parsed.address {
        Address::Inet(address) => Ok(address),
        Address::Name { host, port, .. } => {
            let found = context.resolve(&host);
            match found.ok().and_then(|all| all.first().copied()) {
                Some(ip) => Ok(SocketAddr::new(ip, port)),
                None => Err(args.wrong(format!(
                    "'{keyword} {text}' : invalid address: '{host}' in '{text}'"
                ))),
            }
        }
        _ => Err(args.wrong(format!(
            "'{keyword} {text}' : only an IP address can be left from"
        ))),
    }
}
