//! `bind` lines and the words on them. `stats socket` lines hold the same words.
//!
//! Source: HAProxy configuration manual, section 5.1.

mod tls;
pub(crate) mod words;

use std::sync::LazyLock;

use ballast_model::{Address, Bind, StatsSocket};
use ballast_rules::NO_REVERSE_HTTP;
use ballast_syntax::Diagnostic;
use ballast_topology::ThreadSet;

use crate::address::{self, AddressForm, AddressPort, TransportPrefix};
use crate::args::Args;
use crate::context::{Context, suggestion};
use crate::draft::{BindDraft, ProxyDraft, ShardWord};
use crate::keyword::{Keyword, Row, Sections};
use crate::table::{Table, perform};
use crate::tls::words::BindWords;

/// A row of this file's table.
type R = Row<ProxyDraft>;

/// The line itself.
pub(crate) const LINES: &[R] = &[R::new(
    "bind",
    Sections::FRONT_ONLY,
    "[<address>]:<port_range> [, ...] [param*]",
    "listens on addresses",
    line,
)
.examples("bind :8080,[::1]:8081 name web", "bind 127.0.0.1")];

static TABLE: LazyLock<Table<BindDraft>> = LazyLock::new(|| Table::new(&[words::ROWS, tls::ROWS]));

/// The rows of the words, for the keyword table.
pub(crate) fn keywords() -> Vec<Keyword> {
    TABLE.keywords().collect()
}

fn line(
    draft: &mut ProxyDraft,
    args: &mut Args<'_>,
    context: &mut Context<'_>,
) -> Result<(), Diagnostic> {
    // `unix-bind` applies to binds only, not to command sockets.
    let is_command = draft.kind == ballast_syntax::SectionKind::Global;
    let prefix = (!is_command)
        .then(|| context.declarations.unix_bind.prefix.clone())
        .flatten();
    let argument = args.peek().unwrap_or_default().to_owned();
    let binds = addresses(args, context, prefix.as_deref())?;
    let mut one = BindDraft {
        bind: Bind::new(Address::Fd(0)),
        span: args.span(),
        id: None,
        threads: ThreadSet::default(),
        shards: ShardWord::Count(1),
        tls: BindWords {
            argument,
            ..BindWords::default()
        },
        protocol: None,
        socket: StatsSocket {
            bind: Bind::new(Address::Fd(0)),
            level: ballast_model::CliLevel::default(),
            severity: ballast_model::SeverityOutput::default(),
            expose_listeners: false,
        },
    };
    if !is_command {
        one.bind.unix_owner = context.declarations.unix_bind.owner.clone();
    }
    let place = match is_command {
        // As HAProxy writes it.
        true => format!("'{}' ", args.keyword()),
        false => format!(
            "'bind {}' in section '{}'",
            one.tls.argument,
            draft.kind.word()
        ),
    };
    words(&mut one, args, context, &place)?;
    if one.tls.ssl {
        one.tls.add_defaults(&context.declarations.tls.bind);
    }
    if one.tls.ssl && is_command {
        let span = args.span();
        context.unimplemented("ssl", "TLS on command sockets", span);
    }
    one.bind.origin = context.origin(args.span());
    let mut id = one.id;
    for address in binds {
        let mut bind = one.clone();
        bind.bind.address = address;
        bind.id = id;
        // HAProxy numbers the ports of a range from the given id on.
        id = id.map(|id| id.saturating_add(1));
        draft.binds.push(bind);
    }
    Ok(())
}

/// A command socket: `stats socket <address> [words]`.
///
/// # Errors
/// When a word is wrong.
pub(crate) fn stats_socket(
    args: &mut Args<'_>,
    context: &mut Context<'_>,
) -> Result<Vec<StatsSocket>, Diagnostic> {
    let mut proxy = ProxyDraft::base(ballast_syntax::SectionKind::Global);
    line(&mut proxy, args, context)?;
    let sockets = proxy.binds.into_iter().map(|draft| {
        let mut socket = draft.socket;
        socket.bind = draft.bind;
        socket
    });
    Ok(sockets.collect())
}

/// The addresses of a line, port ranges expanded. `prefix` goes before paths.
fn addresses(
    args: &mut Args<'_>,
    context: &mut Context<'_>,
    prefix: Option<&str>,
) -> Result<Vec<Address>, Diagnostic> {
    let keyword = args.keyword();
    let what = "[addr1]:port1[-end1]{,[addr]:port[-end]}... as arguments";
    let word = args.word(what)?;
    let wants = AddressForm {
        port: true,
        range: true,
        ..AddressForm::default()
    };
    let mut found = Vec::new();
    let mut at = 0;
    for text in word.text().split(',') {
        let range = at..at + text.len();
        at = range.end + 1;
        if text.is_empty() {
            continue;
        }
        let parsed = address::parse(text, wants, &context.environment).map_err(|error| {
            let diagnostic = args.wrong_at(range.clone(), format!("'{keyword}' : {error}"));
            if error.starts_with("missing port") {
                diagnostic.help(match text.trim_end_matches(':') {
                    port if port.bytes().all(|byte| byte.is_ascii_digit()) => {
                        format!("a port stands behind a colon: :{port}")
                    }
                    host => format!("a port follows the address: {host}:80"),
                })
            } else {
                diagnostic
            }
        })?;
        match parsed.transport {
            TransportPrefix::Quic => {
                context.unimplemented("quic4@", "QUIC", word.span_of(range.clone()))
            }
            TransportPrefix::Reverse => {
                let message = format!("'{keyword}' : '{text}' {NO_REVERSE_HTTP}");
                return Err(args.wrong_at(range, message));
            }
            TransportPrefix::Multipath => {
                context.unimplemented("mptcp@", "multipath TCP", word.span_of(range.clone()));
            }
            TransportPrefix::Datagram => {
                let message = format!("'{keyword}' : '{text}' is no stream address");
                return Err(args.wrong_at(range, message));
            }
            TransportPrefix::Stream | TransportPrefix::Usual => {}
        }
        let address = context
            .resolve_address(&parsed.address)
            .map_err(|error| args.wrong_at(range.clone(), format!("'{keyword}' : {error}")))?;
        let address = match (address, prefix) {
            (Address::Unix(path), Some(prefix)) => Address::Unix(format!("{prefix}{path}")),
            (address, _) => address,
        };
        match parsed.port {
            AddressPort::Fixed(first, last) => {
                found.extend((first..=last).map(|port| address.with_port(port)));
            }
            AddressPort::Absent | AddressPort::Offset(_) => found.push(address),
        }
    }
    if found.is_empty() {
        return Err(args.missing_argument(what));
    }
    Ok(found)
}

/// The words after the addresses. Messages begin with `place`.
fn words(
    draft: &mut BindDraft,
    args: &mut Args<'_>,
    context: &mut Context<'_>,
    place: &str,
) -> Result<(), Diagnostic> {
    while let Some(word) = args.next_word() {
        let text = word.text();
        if text.is_empty() {
            continue;
        }
        let Some(row) = TABLE.row(text) else {
            let known = TABLE.keywords().map(|row| row.word).collect::<Vec<_>>();
            let message = format!("{place}: unknown keyword '{text}'");
            let diagnostic = Diagnostic::alert("unknown-keyword", message).at(word.span());
            let mut diagnostic = suggestion(diagnostic, text, known);
            if diagnostic.message.ends_with('\'') {
                diagnostic.message.push('.');
            }
            context.report(diagnostic);
            continue;
        };
        let mut param_args = args.for_param(row.keyword.word);
        let result = perform(row, draft, &mut param_args, context);
        args.seek(param_args.position());
        if let Err(mut diagnostic) = result {
            diagnostic.message = format!("{} : {}", place.trim_end(), diagnostic.message);
            context.report(diagnostic);
        }
    }
    Ok(())
}
