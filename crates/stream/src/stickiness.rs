//! `stick` rules: the server that a table remembers for a key of the request, and what it is to
//! remember of this one (configuration manual, section 4.2, "stick match" and its siblings).

use ballast_engine::{Backend, Server};
use ballast_expr::{Needs, eval_as, key_of, kind_of_keys};
use ballast_model::{StickAction, StickRule};
use ballast_stick::{DataType, Entry, Key, ServerKeyKind, Table};

use crate::context::Context;
use crate::exchange::Exchange;
use crate::tracking::now_ms;
use crate::view::View;

/// Applies the rules about the request: notes what is to be remembered, and returns the index of the
/// server that the first key with an entry sticks to. A server that is not usable counts where
/// `forced` (`force-persist`), or by `option persist`.
pub(crate) fn match_request(
    context: &Context<'_>,
    backend: &Backend,
    exchange: &mut Exchange,
    forced: bool,
) -> Option<usize> {
    if backend.model.stick_rules.is_empty() {
        return None;
    }
    let mut keys = std::mem::take(&mut exchange.stick_keys);
    let mut server = None;
    let keeps_unusable = forced || backend.model.options.persist;
    for (rule_index, rule) in backend.model.stick_rules.iter().enumerate() {
        // Only the first key is stored in a table.
        let stores = rule.action.stores_request();
        if rule.action == StickAction::StoreResponse || (stores && keys.has_one_for(backend, rule))
        {
            continue;
        }
        with_key(context, exchange, rule, |table, key| {
            if rule.action.matches() {
                let found = sticks_to(context, backend, table, key);
                let usable = |server_index: &usize| {
                    keeps_unusable || backend.servers[*server_index].state.is_usable()
                };
                server = server.or(found.filter(usable));
            }
            if stores {
                keys.add(rule_index, key);
            }
        });
    }
    exchange.stick_keys = keys;
    server
}

/// Remembers the server of an exchange, which has answered, under the keys of its request and its
/// response. Nothing is remembered of a server that is `non-stick`.
pub(crate) fn store(context: &Context<'_>, exchange: &mut Exchange) {
    let backend = context.backend_of(exchange);
    let Some(backend) = backend.filter(|backend| !backend.model.stick_rules.is_empty()) else {
        return;
    };
    let mut keys = std::mem::take(&mut exchange.stick_keys);
    for (rule_index, rule) in backend.model.stick_rules.iter().enumerate() {
        if rule.action == StickAction::StoreResponse && !keys.has_one_for(backend, rule) {
            with_key(context, exchange, rule, |_, key| keys.add(rule_index, key));
        }
    }
    let server = exchange.server.as_ref();
    if let Some(server) = server.filter(|server| !server.model.non_stick) {
        for stick in &keys.keys {
            let rule = backend.model.stick_rules.get(stick.rule);
            if let Some(table) = rule.and_then(|rule| context.table(&rule.table)) {
                remember(context, table, keys.key(stick.key), server);
            }
        }
    }
    keys.clear();
    exchange.stick_keys = keys;
}

/// Remembers a server under a key.
fn remember(context: &Context<'_>, table: &Table, key: Key<'_>, server: &Server) {
    let now_ms = now_ms(context);
    let Some(entry) = table.track(key, now_ms) else {
        return;
    };
    entry.update(now_ms, |entry| {
        entry.set(DataType::ServerId, 0, u64::from(server.model.id));
        match table.server_key() {
            ServerKeyKind::Name => entry.set_server_key(server.name()),
            ServerKeyKind::Address => entry.set_server_key(server.state.current_address().text()),
        }
    });
    entry.release(now_ms);
}

/// Works with the key of a rule whose condition holds.
fn with_key(
    context: &Context<'_>,
    exchange: &Exchange,
    rule: &StickRule,
    work: impl FnOnce(&Table, Key<'_>),
) {
    let Some(table) = context.table(&rule.table) else {
        return;
    };
    let kind = kind_of_keys(table.key_type());
    let view = View::new(context, exchange);
    let view = match rule.action {
        StickAction::StoreResponse => view.of_response(),
        _ => view,
    };
    context.local.with_memory(|memory| {
        let scratch = &mut memory.scratch;
        let condition = rule.condition.as_ref();
        if condition.is_none_or(|condition| condition.holds(&view, scratch))
            && let Ok(Some(key)) = eval_as(&rule.key, kind, &view, scratch, Needs::NONE)
        {
            work(table, key_of(key));
        }
    });
}

/// The index of the server that the entry of a key sticks to. The entry is used by that: its expiry
/// begins anew.
fn sticks_to(
    context: &Context<'_>,
    backend: &Backend,
    table: &Table,
    key: Key<'_>,
) -> Option<usize> {
    let now_ms = now_ms(context);
    let entry = table.track_existing(key, now_ms)?;
    entry.touch(now_ms);
    let kind = table.server_key();
    let found = entry.read(now_ms, |entry| server_of(backend, &entry, kind));
    entry.release(now_ms);
    found.flatten()
}

/// The server that an entry names: by its key, or else by its number.
fn server_of(backend: &Backend, entry: &Entry<'_>, kind: ServerKeyKind) -> Option<usize> {
    let by_key = entry.server_key().and_then(|text| match kind {
        ServerKeyKind::Name => backend.server_named(&text),
        ServerKeyKind::Address => backend.server_with_address(&text),
    });
    by_key.or_else(|| {
        let id = entry.get(DataType::ServerId, 0).filter(|id| *id > 0)?;
        backend.server_with_id(u32::try_from(id).ok()?)
    })
}
