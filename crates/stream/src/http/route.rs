//! Which backend: `use_backend` rules in order, then `default_backend`.

use ballast_engine::RouteTarget;
use ballast_expr::{LastSample, Needs};
use ballast_mux::Duplex;

use crate::context::Context;
use crate::exchange::Exchange;
use crate::exit::{Exit, Flow};
use crate::local::EvaluationMemory;
use crate::passwords;
use crate::view::View;

/// Chooses the backend of the exchange.
pub(crate) fn choose(context: &Context<'_>, exchange: &mut Exchange) -> Flow {
    let chosen = context
        .upgraded_for
        .take()
        .or_else(|| backend(context, exchange));
    let Some(backend_index) = chosen else {
        // As in HAProxy's logs, a request without a backend has no times.
        exchange.times.received = None;
        return Flow::Break(Exit::NoRoute);
    };
    let backend = &context.running.generation.backends[backend_index];
    exchange.set_backend(backend_index, backend, context.frontend.name());
    Flow::Continue(())
}

/// Computes beforehand the hashes of passwords that the rules of the frontend ask for.
pub(crate) async fn precompute_passwords(
    context: &Context<'_>,
    client: &Duplex<'_>,
    exchange: &Exchange,
) -> Flow {
    let frontend = &context.frontend;
    let needs = context.running.needs_of_frontend(frontend.index);
    if frontend.routes.is_empty() || !needs.intersects(Needs::PASSWORD) {
        return Flow::Continue(());
    }
    let ask = |exchange: &Exchange| {
        backend(context, exchange);
    };
    // Boxed: most routes ask for no password, and should not reserve memory for it.
    Box::pin(passwords::precompute(context, client.peer, exchange, ask)).await
}

/// Ends an exchange whose backend is not for HTTP: that of a session that `switch-mode http` turned
/// into HTTP may not be.
pub(crate) fn check_mode(context: &Context<'_>, exchange: &mut Exchange) -> Flow {
    if context
        .backend_of(exchange)
        .is_none_or(|backend| backend.is_http())
    {
        return Flow::Continue(());
    }
    exchange.times.received = None;
    exchange.tally.status = 500;
    Flow::Break(Exit::WrongMode)
}

/// The backend that the rules choose for an exchange, as its index in the generation.
pub(crate) fn backend(context: &Context<'_>, exchange: &Exchange) -> Option<usize> {
    let frontend = &context.frontend;
    let generation = &context.running.generation;
    // A backend that was added by command takes no requests before it is published.
    let is_published =
        |backend_index: &usize| generation.backends[*backend_index].state.is_published();
    let default = frontend.default_backend.filter(is_published);
    if frontend.routes.is_empty() {
        return default;
    }
    let view = View::new(context, exchange);
    let (routes, index) = (&frontend.routes, frontend.route_index());
    let chosen = context.local.with_memory(|memory| {
        let EvaluationMemory {
            scratch,
            text,
            candidates,
            ..
        } = memory;
        candidates.begin(index, 0);
        // Nothing is done between two conditions but evaluating them.
        let mut last = LastSample::default();
        while let Some(at) =
            candidates.next(index, routes.len(), scratch, |question| question(&view))
        {
            let route = &routes[at];
            scratch.clear();
            let condition = route.condition.as_ref();
            if let Some(condition) = condition
                && !condition.holds_sharing(&view, scratch, &mut last)
            {
                continue;
            }
            match &route.target {
                RouteTarget::Backend(backend_index) if !is_published(backend_index) => {}
                RouteTarget::Backend(backend_index) => return Some(*backend_index),
                // Where no backend has the computed name the default backend is used, not the next
                // rule.
                RouteTarget::Dynamic(format) => {
                    format.render(&view, scratch, text);
                    let name = std::str::from_utf8(text).unwrap_or_default();
                    return generation.backend_named(name).filter(is_published);
                }
            }
        }
        None
    });
    chosen.or(default)
}
