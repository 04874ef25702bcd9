//! Which server a request belongs to: by its cookie, by a rule, or by a hash.

use std::net::SocketAddr;

use ballast_balance::{HashType, domain_only, post_param, uri_key, url_param};
use ballast_engine::{Backend, Server, UseServerTarget, hash_type};
use ballast_expr::{Value, rdp_cookie};
use ballast_message::Method;
use ballast_model::{Address, Balance, CookiePersistence, PersistenceAction};

use crate::context::Context;
use crate::exchange::Exchange;
use crate::local::EvaluationMemory;
use crate::persistence::{self, ClientCookie, ReceivedCookie};
use crate::view::View;

/// What rules and the client's cookie ask for, before the balancing chooses.
#[derive(Default)]
pub(crate) struct AskedServer {
    /// What a `force-persist` or `ignore-persist` rule says.
    pub(super) persistence: Option<PersistenceAction>,
    /// The index of the server that a `use-server` rule names.
    by_rule: Option<usize>,
    /// The index of the server that the cookie names.
    by_cookie: Option<usize>,
}

impl AskedServer {
    /// Evaluates the rules and reads the cookie: once for a request, for conditions may count.
    pub(crate) fn find(context: &Context<'_>, exchange: &mut Exchange) -> Self {
        let Some(backend) = context.backend_of(exchange) else {
            return Self::default();
        };
        let persistence = persistence(context, backend, exchange);
        let forced = persistence == Some(PersistenceAction::Force);
        let by_rule = by_rule(context, backend, exchange, forced);
        let by_cookie = match persistence {
            Some(PersistenceAction::Ignore) => {
                ignore_cookie(backend, exchange);
                None
            }
            _ => by_cookie(backend, exchange, forced),
        };
        if by_rule.is_some() && exchange.client_cookie != ClientCookie::None {
            exchange.client_cookie = ClientCookie::Unused;
        }
        Self {
            persistence,
            by_rule,
            by_cookie,
        }
    }

    /// The index of the server that is asked for.
    pub(super) fn index(&self) -> Option<usize> {
        self.by_rule.or(self.by_cookie)
    }

    /// Whether it is to be used although it is down.
    pub(super) fn is_forced(&self) -> bool {
        self.persistence == Some(PersistenceAction::Force)
    }
}

/// The server that the persistence cookie names: the first one of several that names a server
/// that may be used.
#[inline]
pub(super) fn by_cookie(backend: &Backend, exchange: &mut Exchange, forced: bool) -> Option<usize> {
    let rules = backend.model.cookie.as_ref()?;
    by_cookie_of(rules, backend, exchange, forced)
}

fn by_cookie_of(
    rules: &CookiePersistence,
    backend: &Backend,
    exchange: &mut Exchange,
    forced: bool,
) -> Option<usize> {
    let now = wall_clock_seconds();
    for received in persistence::received_cookies(rules, exchange.request.fields()) {
        let found = server_of_cookie(rules, backend, &received, now);
        if let Ok(server_index) | Err((_, Some(server_index))) = found {
            let is_usable = found.is_ok();
            if is_usable || forced || backend.model.options.persist {
                exchange.cookie_first_given = received.first_given();
                exchange.cookie_needs_refresh = received.needs_refresh(rules);
                exchange.client_cookie = match is_usable {
                    true => ClientCookie::Valid,
                    false => ClientCookie::Down,
                };
                return Some(server_index);
            }
        }
        if let Err((cookie, _)) = found
            && exchange.client_cookie != ClientCookie::Down
        {
            exchange.client_cookie = cookie;
        }
    }
    None
}

/// The usable server that a cookie names; else how the cookie is judged, and the server that it
/// names although it is not usable.
fn server_of_cookie(
    rules: &CookiePersistence,
    backend: &Backend,
    received: &ReceivedCookie<'_>,
    now: u64,
) -> Result<usize, (ClientCookie, Option<usize>)> {
    received
        .check_age(rules, now)
        .map_err(|aged| (aged, None))?;
    let named = Some(received.server).filter(|server| !server.is_empty());
    let server_index = named.and_then(|server| backend.server_of_cookie(server));
    let server_index = server_index.ok_or((ClientCookie::Invalid, None))?;
    match backend.servers[server_index].state.is_usable() {
        true => Ok(server_index),
        false => Err((ClientCookie::Down, Some(server_index))),
    }
}

/// The action of the first `force-persist` or `ignore-persist` rule whose condition holds.
#[inline]
pub(super) fn persistence(
    context: &Context<'_>,
    backend: &Backend,
    exchange: &Exchange,
) -> Option<PersistenceAction> {
    match backend.model.persistence_rules.is_empty() {
        true => None,
        false => persistence_by_rule(context, backend, exchange),
    }
}

fn persistence_by_rule(
    context: &Context<'_>,
    backend: &Backend,
    exchange: &Exchange,
) -> Option<PersistenceAction> {
    let rules = &backend.model.persistence_rules;
    let view = View::new(context, exchange);
    context.local.with_memory(|memory| {
        rules
            .iter()
            .find(|rule| rule.condition.holds(&view, &mut memory.scratch))
            .map(|rule| rule.action)
    })
}

/// `ignore-persist`: notes that there was a cookie, or that it was too old, and does not use it.
pub(super) fn ignore_cookie(backend: &Backend, exchange: &mut Exchange) {
    let Some(rules) = &backend.model.cookie else {
        return;
    };
    let now = wall_clock_seconds();
    for received in persistence::received_cookies(rules, exchange.request.fields()) {
        let aged = received.check_age(rules, now).err();
        exchange.client_cookie = aged.unwrap_or(ClientCookie::Unused);
    }
}

fn wall_clock_seconds() -> u64 {
    let now = crate::local::time_of(std::time::SystemTime::now());
    now.secs.unsigned_abs()
}

/// The server that a `use-server` rule names; one that is down only where persistence is forced.
#[inline]
fn by_rule(
    context: &Context<'_>,
    backend: &Backend,
    exchange: &Exchange,
    forced: bool,
) -> Option<usize> {
    match backend.use_servers.is_empty() {
        true => None,
        false => by_one_of_the_rules(context, backend, exchange, forced),
    }
}

fn by_one_of_the_rules(
    context: &Context<'_>,
    backend: &Backend,
    exchange: &Exchange,
    forced: bool,
) -> Option<usize> {
    let view = View::new(context, exchange);
    let (rules, index) = (&backend.use_servers, backend.use_server_index());
    let may_be = |server_index: &usize| forced || backend.servers[*server_index].state.is_usable();
    context.local.with_memory(|memory| {
        let EvaluationMemory {
            scratch,
            text,
            candidates,
            ..
        } = memory;
        candidates.begin(index, 0);
        while let Some(at) =
            candidates.next(index, rules.len(), scratch, |question| question(&view))
        {
            let rule = &rules[at];
            scratch.clear();
            let condition = rule.condition.as_ref();
            if !condition.is_none_or(|condition| condition.holds(&view, scratch)) {
                continue;
            }
            let server_index = match &rule.target {
                UseServerTarget::Server(server_index) => Some(*server_index),
                UseServerTarget::Dynamic(format) => {
                    text.clear();
                    format.render(&view, scratch, text);
                    let name = std::str::from_utf8(text).ok();
                    name.and_then(|name| backend.server_named(name))
                }
            };
            if let Some(server_index) = server_index.filter(may_be) {
                return Some(server_index);
            }
        }
        None
    })
}

/// The server that the cookie of an RDP client names, as its terminal server wrote it: address and
/// port, each as a number whose lowest byte comes first (`persist rdp-cookie`). `data` is what was
/// received of the client.
pub(super) fn by_rdp_cookie(backend: &Backend, data: &[u8]) -> Option<usize> {
    let name = backend.model.rdp_cookie_name.as_ref()?;
    // In HTTP mode there is no such message.
    if backend.is_http() {
        return None;
    }
    let cookie = std::str::from_utf8(rdp_cookie(data, name)?).ok()?;
    let mut parts = cookie.split('.');
    let address: u32 = parts.next()?.parse().ok()?;
    let port: u16 = parts.next()?.parse().ok()?;
    parts.next()?;
    let named = SocketAddr::from((address.to_le_bytes(), port.swap_bytes()));
    let is_named = |server: &Server| {
        let current = server.state.current_address();
        current.address == Some(Address::Inet(named))
    };
    // Of servers of one address, one that is down is passed over unless persistence is forced.
    let may_be = |server: &Server| server.state.is_usable() || backend.model.options.persist;
    let mut servers = backend.servers.iter();
    servers.position(|server| is_named(server) && may_be(server))
}

/// Whether the server is chosen by what the request's body says, and no cookie or rule chooses it:
/// `balance url_param` and a POST. As in HAProxy the body is waited for, also where the query has the
/// parameter.
pub(super) fn asks_body(context: &Context<'_>, exchange: &Exchange, asked: &AskedServer) -> bool {
    exchange.method == Method::Post
        && asked.index().is_none()
        && context
            .backend_of(exchange)
            .is_some_and(|backend| matches!(backend.model.balance, Balance::UrlParam(_)))
}

/// The hash for the balancing; `None` when the request has no such key. `body` is what was received
/// of the body or, in TCP mode, of the client.
pub(super) fn key(
    context: &Context<'_>,
    backend: &Backend,
    exchange: &Exchange,
    body: &[u8],
) -> Option<u32> {
    let hashing: HashType = hash_type(&backend.model);
    let request = &exchange.request;
    match &backend.model.balance {
        Balance::Source => Some(hashing.of_source(exchange.settings.addresses.source_ip()?)),
        Balance::Uri(key) => {
            let options = ballast_balance::UriKey {
                depth_max: key.depth_max.unwrap_or(0),
                len_bytes_max: key.length_max.unwrap_or(0) as usize,
                path_only: key.path_only,
                whole: key.whole,
            };
            Some(hashing.of_bytes(uri_key(request.target(), options)))
        }
        Balance::UrlParam(name) => {
            let found = url_param(request.target(), name.as_bytes()).or_else(|| {
                let posted = exchange.seen_request.facts().bytes;
                let is_post = exchange.method == Method::Post;
                is_post
                    .then(|| post_param(posted, name.as_bytes()))
                    .flatten()
            });
            found.map(|value| hashing.of_bytes(value))
        }
        Balance::Header {
            name,
            domain_only: domain,
        } => {
            let name = name.to_ascii_lowercase();
            let value = request.fields().values(name.as_bytes()).next()?;
            let value = if *domain { domain_only(value) } else { value };
            Some(hashing.of_bytes(value))
        }
        Balance::RdpCookie(name) if !backend.is_http() => {
            rdp_cookie(body, name).map(|value| hashing.of_bytes(value))
        }
        Balance::Hash(expr) => {
            let view = View::new(context, exchange);
            context.local.with_memory(|memory| {
                Some(
                    match ballast_expr::eval(expr, &view, &mut memory.scratch)? {
                        Value::Int(number) => hashing.of_number(number),
                        // Addresses are hashed as the bytes they are, not as text.
                        Value::Ipv4(address) => hashing.of_bytes(&address.octets()),
                        Value::Ipv6(address) => hashing.of_bytes(&address.octets()),
                        value => {
                            value.append_to(&mut memory.text);
                            hashing.of_bytes(&memory.text)
                        }
                    },
                )
            })
        }
        _ => None,
    }
}

/// Whether there is more than one server to choose from.
pub(super) fn has_others(backend: &Backend) -> bool {
    backend.usable_servers().0 > 1
}
