//! `server`, `default-server` and `server-template` lines and the words on them.
//!
//! Source: HAProxy configuration manual, section 5.2.

mod checks;
pub(crate) mod network;
mod tls;
mod words;

use std::net::{IpAddr, SocketAddr};
use std::sync::LazyLock;

use ballast_model::{Address, PortSpec};
use ballast_rules::NO_REVERSE_HTTP;
use ballast_syntax::Diagnostic;

use crate::address::{self, AddressForm, AddressPort, TransportPrefix};
use crate::args::Args;
use crate::context::{Context, suggestion};
use crate::draft::{ProxyDraft, ServerDraft};
use crate::keyword::{Keyword, Row, Sections};
use crate::section::header::invalid_char;
use crate::table::{Table, perform};

/// A row of this file's table.
type R = Row<ProxyDraft>;

/// The maximum number of servers of one template.
const TEMPLATE_COUNT_MAX: u32 = 10_000;

/// The lines themselves.
pub(crate) const LINES: &[R] = &[
    R::new(
        "server",
        Sections::BACK_ONLY,
        "<name> <address>[:[port]] [param*]",
        "a server of the backend",
        server,
    )
    .examples(
        "server s1 192.0.2.1:80 weight 2 check inter 1s",
        "server s1",
    ),
    R::new(
        "server-template",
        Sections::BACK_ONLY,
        "<prefix> <num | range> <fqdn>[:<port>] [params*]",
        "several servers of one form",
        template,
    )
    .examples(
        "server-template s 1-3 192.0.2.1:80 check",
        "server-template s x 192.0.2.1:80",
    ),
    R::new(
        "default-server",
        Sections::BACK,
        "[param*]",
        "words for every server that follows",
        default_server,
    )
    .examples("default-server inter 1s rise 3", "default-server id 3"),
];

static TABLE: LazyLock<Table<ServerDraft>> =
    LazyLock::new(|| Table::new(&[words::ROWS, checks::ROWS, network::ROWS, tls::ROWS]));

/// The rows of the words, for the keyword table.
pub(crate) fn keywords() -> Vec<Keyword> {
    TABLE.keywords().collect()
}

fn server(
    draft: &mut ProxyDraft,
    args: &mut Args<'_>,
    context: &mut Context<'_>,
) -> Result<(), Diagnostic> {
    let what = "<name> and <addr>[:<port>] as arguments.";
    let name = args.word(what)?.text();
    check_name(args, name)?;
    let mut server_draft = begin(draft, name, args, context);
    let address_result = address(&mut server_draft, args, context, what);
    finish(draft, server_draft, args, context, address_result)
}

fn template(
    draft: &mut ProxyDraft,
    args: &mut Args<'_>,
    context: &mut Context<'_>,
) -> Result<(), Diagnostic> {
    let what = "<prefix> <nb | range> <addr>[:<port>] as arguments.";
    let prefix = args.word(what)?.text();
    check_name(args, prefix)?;
    // A server may have a colon in its name, which a number does not follow.
    if prefix.contains(':') {
        let message =
            format!("character ':' is not permitted in server-template prefix '{prefix}'");
        return Err(args.wrong(message));
    }
    let text = args.word(what)?.text();
    let range = template_range(text).ok_or_else(|| {
        args.wrong(format!(
            "'server-template' : wrong number or range '{text}': a number is at least 1, a range \
             ascends, and there are at most {TEMPLATE_COUNT_MAX} servers"
        ))
    })?;
    let mut server_draft = begin(draft, prefix, args, context);
    server_draft.template = Some(range);
    let address_result = address(&mut server_draft, args, context, what);
    finish(draft, server_draft, args, context, address_result)
}

/// The numbers of the servers of a template: `3` is from 1 to 3, `0-2` from 0 to 2. What follows the digits
/// is not read.
fn template_range(text: &str) -> Option<(u32, u32)> {
    let leading = |text: &str| -> Option<u32> {
        let end = text.find(|c: char| !c.is_ascii_digit());
        text[..end.unwrap_or(text.len())].parse().ok()
    };
    let (first, last) = match text.split_once('-') {
        Some((first, last)) => (leading(first)?, leading(last)?),
        None => (1, leading(text)?),
    };
    (first <= last && last - first < TEMPLATE_COUNT_MAX).then_some((first, last))
}

fn default_server(
    draft: &mut ProxyDraft,
    args: &mut Args<'_>,
    context: &mut Context<'_>,
) -> Result<(), Diagnostic> {
    let mut defaults = draft.default_server.clone();
    words(&mut defaults, args, None, context);
    draft.default_server = defaults;
    Ok(())
}

fn check_name(args: &Args<'_>, name: &str) -> Result<(), Diagnostic> {
    match invalid_char(name) {
        Some(bad) => Err(args.wrong(format!(
            "character '{bad}' is not permitted in server name '{name}'"
        ))),
        None => Ok(()),
    }
}

fn begin(draft: &ProxyDraft, name: &str, args: &Args<'_>, context: &Context<'_>) -> ServerDraft {
    let mut server_draft = draft.default_server.clone();
    name.clone_into(&mut server_draft.server.name);
    server_draft.server.origin = context.origin(args.span());
    server_draft.span = Some(args.span());
    server_draft
}

/// Reads the rest of the line and keeps the server, so that other lines can refer to it even if the
/// line has errors.
fn finish(
    draft: &mut ProxyDraft,
    mut server_draft: ServerDraft,
    args: &mut Args<'_>,
    context: &mut Context<'_>,
    address_result: Result<(), Diagnostic>,
) -> Result<(), Diagnostic> {
    let is_missing =
        matches!(&address_result, Err(diagnostic) if diagnostic.code == "missing-argument");
    if !is_missing {
        words(&mut server_draft, args, Some(&draft.name), context);
    }
    // What is borrowed for writing is shared with no other server any more.
    let tls_defaults = &context.declarations.tls.server;
    if !tls_defaults.has_no_defaults() {
        server_draft.tls.add_defaults(tls_defaults);
    }
    let header = server_draft.proxy_protocol.header();
    if server_draft.server.send_proxy != header {
        server_draft.server.send_proxy = header;
    }
    if let Some(previous) = draft.servers.last() {
        server_draft.server.share_settings(&previous.server);
    }
    draft.servers.push(server_draft);
    address_result
}

fn address(
    server_draft: &mut ServerDraft,
    args: &mut Args<'_>,
    context: &mut Context<'_>,
    what: &str,
) -> Result<(), Diagnostic> {
    let word = args.word(what)?;
    let wants = AddressForm {
        offset: true,
        ..AddressForm::default()
    };
    server_draft.address_span = Some(word.span());
    let parsed = address::parse(word.text(), wants, &context.environment)
        .map_err(|error| args.wrong(format!("'server' : {error}")))?;
    match parsed.transport {
        TransportPrefix::Quic => context.unimplemented("quic4@", "QUIC", word.span()),
        TransportPrefix::Reverse => {
            let text = word.text();
            let message = format!("'server' : '{text}' {NO_REVERSE_HTTP}");
            return Err(args.wrong(message));
        }
        TransportPrefix::Multipath => context.unimplemented("mptcp@", "multipath TCP", word.span()),
        TransportPrefix::Datagram => context.unimplemented("udp@", "log backends", word.span()),
        TransportPrefix::Stream | TransportPrefix::Usual => {}
    }
    if let Address::Fd(_) = parsed.address {
        let text = word.text();
        return Err(args.wrong(format!(
            "'server' : a file descriptor is not acceptable here in '{text}'"
        )));
    }
    server_draft.has_port = matches!(parsed.port, AddressPort::Fixed(1.., _));
    server_draft.server.port_mapping = match parsed.port {
        AddressPort::Offset(offset) => PortSpec::Offset(offset),
        _ => PortSpec::Fixed,
    };
    server_draft.server.address = parsed.address;
    Ok(())
}

/// What is ignored on a `default-server` line, with a warning.
const NOT_FOR_DEFAULTS: &[&str] = &[
    "guid",
    "id",
    "no-sslv3",
    "no-tlsv10",
    "no-tlsv11",
    "no-tlsv12",
    "no-tlsv13",
];

/// The words after the address. Without a `backend` they are those of `default-server`.
fn words(
    server_draft: &mut ServerDraft,
    args: &mut Args<'_>,
    backend: Option<&str>,
    context: &mut Context<'_>,
) {
    let title = |server_draft: &ServerDraft| match backend {
        Some(backend) => format!("server {backend}/{}", server_draft.server.name),
        None => "default-server".to_owned(),
    };
    while let Some(word) = args.next_word() {
        let text = word.text();
        if text.is_empty() {
            continue;
        }
        // One word has its argument between parentheses.
        let name = text.split_once('(').map_or(text, |(name, _)| name);
        let Some(row) = TABLE.row(name) else {
            let known: Vec<_> = TABLE.keywords().map(|row| row.word).collect();
            let title = title(server_draft);
            let message = format!("'{title}' : unknown keyword '{text}'");
            let diagnostic = Diagnostic::alert("unknown-keyword", message).at(word.span());
            context.report(suggestion(diagnostic, text, known));
            continue;
        };
        if backend.is_none() && NOT_FOR_DEFAULTS.contains(&name) {
            let message = format!("'{name}' option is not accepted in default-server sections");
            context.report(Diagnostic::warning("misplaced-keyword", message).at(word.span()));
            if !row.keyword.args.is_empty() {
                args.next_word();
            }
            continue;
        }
        let mut param_args = args.for_param(row.keyword.word);
        let result = perform(row, server_draft, &mut param_args, context);
        args.seek(param_args.position());
        if let Err(mut diagnostic) = result {
            let title = title(server_draft);
            diagnostic.message = format!("'{title}' : {}", diagnostic.message);
            context.report(diagnostic);
        }
    }
}

/// A server's address after resolving its name; `None` when there is none and the server starts
/// without an address. `last` is the address that a state file has for it.
///
/// # Errors
/// Why the server cannot start.
pub(crate) fn resolve(
    server_draft: &ServerDraft,
    last: Option<IpAddr>,
    context: &mut Context<'_>,
) -> Result<Option<Address>, String> {
    use ballast_model::InitAddr;
    let Address::Name { host, port, .. } = &server_draft.server.address else {
        return Ok(Some(server_draft.server.address.clone()));
    };
    // The name of a service (RFC 2782): resolvers look for its hosts and ports, nobody else does.
    if host.starts_with('_') && server_draft.resolvers.is_some() {
        return Ok(None);
    }
    let methods: &[InitAddr] = match server_draft.server.init_addr.as_slice() {
        [] => &[InitAddr::Last, InitAddr::Libc],
        methods => methods,
    };
    let mut reason = None;
    for method in methods {
        match method {
            InitAddr::Last => {
                if let Some(ip) = last {
                    return Ok(Some(Address::Inet(SocketAddr::new(ip, *port))));
                }
            }
            InitAddr::None => return Ok(None),
            InitAddr::Address(ip) => {
                return Ok(Some(Address::Inet(SocketAddr::new(*ip, *port))));
            }
            InitAddr::Libc => match context.resolve_address(&server_draft.server.address) {
                Ok(address) => return Ok(Some(address)),
                Err(error) => reason = Some(error),
            },
        }
    }
    Err(reason.unwrap_or_else(|| "no method of 'init-addr' gave an address".to_owned()))
}
