//! What an exchange requires of its connection to the server.

use std::sync::Arc;
use std::time::Duration;

use ballast_engine::{Backend, Server, ServerTls, Sni};
use ballast_expr::{Expr, Value};
use ballast_message::connection_options;
use ballast_model::TransparentSource;
use ballast_upstream::{ConnectionRequirements, ExchangeValues};

use crate::context::Context;
use crate::exchange::Exchange;
use crate::view::View;

/// What a connection to the server must match to carry the exchange.
pub(super) fn requirements(
    context: &Context<'_>,
    exchange: &Exchange,
    backend: &Backend,
    server: &Server,
) -> ConnectionRequirements {
    let limits = context.running.response_limits(&backend.model.common);
    let facts = exchange_facts(context, exchange, server);
    ConnectionRequirements::of(backend, server, &exchange.settings.addresses, facts, limits)
}

/// Whether the client asks for a WebSocket, and no rule took that back.
fn asks_websocket(exchange: &Exchange) -> bool {
    if !exchange.asks_protocol {
        return false;
    }
    let fields = exchange.request.fields();
    let mut protocols = fields.values(b"upgrade");
    protocols.any(|protocol| protocol.eq_ignore_ascii_case(b"websocket"))
        && connection_options(fields).upgrade
}

/// Notes the name that `sni` has for this exchange, unless it is the same for all.
pub(super) fn evaluate_sni(context: &Context<'_>, exchange: &mut Exchange, server: &Server) {
    let varies = |tls: &&Arc<ServerTls>| *tls.sni() == Sni::PerExchange;
    let Some(_) = server.traffic_tls().filter(varies) else {
        return;
    };
    let expr = server.model.tls.as_ref().and_then(|line| line.sni.as_ref());
    let former = exchange.server_name.as_deref();
    let name = evaluate(context, exchange, expr, former);
    match name {
        EvaluatedName::Same => {}
        EvaluatedName::Other(name) => exchange.server_name = name,
    }
}

/// A name that was evaluated.
enum EvaluatedName {
    /// It is the former one.
    Same,
    Other(Option<Arc<[u8]>>),
}

/// Evaluates an expression as a name. A name that is the former one is not allocated.
fn evaluate(
    context: &Context<'_>,
    exchange: &Exchange,
    expr: Option<&Expr>,
    former: Option<&[u8]>,
) -> EvaluatedName {
    let Some(expr) = expr else {
        return EvaluatedName::Other(None);
    };
    let view = View::new(context, exchange);
    context.local.with_memory(|memory| {
        let mut text = Vec::new();
        let name = match ballast_expr::eval(expr, &view, &mut memory.scratch) {
            None => None,
            Some(Value::Str(name) | Value::Bin(name) | Value::Meth(name)) => Some(name),
            Some(value) => {
                value.append_to(&mut text);
                Some(text.as_slice())
            }
        };
        let name = name.filter(|name| !name.is_empty());
        if name.is_some() && name == former {
            EvaluatedName::Same
        } else {
            EvaluatedName::Other(name.map(Into::into))
        }
    })
}

/// The facts of the exchange that a new connection carries: unique id, source address, TLVs, names.
fn exchange_facts<'e>(
    context: &Context<'_>,
    exchange: &'e Exchange,
    server: &Server,
) -> ExchangeValues<'e> {
    let unique_id = exchange.unique_id.get();
    let mut facts = ExchangeValues {
        unique_id,
        packets: exchange.settings.server_packets,
        session: context.session.number,
        is_websocket: asks_websocket(exchange),
        asks_protocol: exchange.asks_protocol,
        ..ExchangeValues::default()
    };
    let server_tls = server.traffic_tls();
    if server_tls.is_some_and(|tls| *tls.sni() == Sni::PerExchange) {
        facts.sni = exchange.server_name.clone();
    }
    let pool_name = server.model.pool_connection_name.as_ref();
    if let EvaluatedName::Other(name) = evaluate(context, exchange, pool_name, None) {
        facts.pool_name = name;
    }
    // The server's own `source` includes what its section says.
    let source = server.model.source.as_ref();
    if let Some(TransparentSource::Header(expr)) =
        source.and_then(|source| source.transparent.as_ref())
    {
        let view = View::new(context, exchange);
        facts.source = context.local.with_memory(|memory| {
            match ballast_expr::eval(expr, &view, &mut memory.scratch)? {
                Value::Ipv4(address) => Some(address.into()),
                Value::Ipv6(address) => Some(address.into()),
                _ => None,
            }
        });
    }
    if let Some(proxy) = &server.model.send_proxy
        && proxy.version == 2
    {
        facts.client_tls = Some(Box::new(context.session.tls_values(proxy)));
    }
    if let Some(proxy) = &server.model.send_proxy
        && !proxy.tlvs.is_empty()
    {
        let view = View::for_log(context, exchange, None);
        facts.tlvs = proxy
            .tlvs
            .iter()
            .map(|(_, format)| {
                let mut value = Vec::new();
                context.local.with_memory(|memory| {
                    format.render(&view, &mut memory.scratch, &mut value);
                });
                value
            })
            .collect();
    }
    facts
}

/// `timeout connect`, or what a rule set in its place.
pub(super) fn connect_timeout(exchange: &Exchange, backend: &Backend) -> Option<Duration> {
    let set = exchange.settings.backend.connect_timeout;
    set.or(backend.model.timeouts.connect)
}
