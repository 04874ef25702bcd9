//! Which backend: `use_backend` rules in order, then `default_backend`.

use ballast_engine::RouteTarget;

use crate::context::Context;
use crate::exchange::Exchange;
use crate::exit::{Exit, Flow};
use crate::view::View;

/// Chooses the backend of the exchange.
pub(crate) fn choose(context: &Context<'_>, exchange: &mut Exchange) -> Flow {
    let chosen = context
        .upgraded_for
        .get()
        .or_else(|| backend(context, exchange));
    let Some(place) = chosen else {
        // As in HAProxy's logs, a request without a backend has no times.
        exchange.times.received = None;
        return Flow::Break(Exit::NoRoute);
    };
    exchange.set_backend(place, &context.running.generation.backends[place]);
    Flow::Continue(())
}

/// The backend that the rules choose for an exchange, as its place in the generation.
pub(crate) fn backend(context: &Context<'_>, exchange: &Exchange) -> Option<usize> {
    let frontend = &context.frontend;
    let generation = &context.running.generation;
    // A backend that was added by command takes no requests before it is published.
    let is_published = |place: &usize| generation.backends[*place].state.is_published();
    let default = frontend.default_backend.filter(is_published);
    if frontend.routes.is_empty() {
        return default;
    }
    let view = View::new(context, exchange);
    for route in &frontend.routes {
        let found = context.local.with_memory(|memory| {
            let holds = route
                .condition
                .as_ref()
                .is_none_or(|condition| condition.holds(&view, &mut memory.scratch));
            if !holds {
                return RouteMatch::Next;
            }
            match &route.target {
                RouteTarget::Backend(place) if !is_published(place) => RouteMatch::Next,
                RouteTarget::Backend(place) => RouteMatch::Backend(Some(*place)),
                RouteTarget::Dynamic(format) => {
                    format.render(&view, &mut memory.scratch, &mut memory.text);
                    let name = std::str::from_utf8(&memory.text).unwrap_or_default();
                    RouteMatch::Backend(generation.backend_named(name).filter(is_published))
                }
            }
        });
        match found {
            RouteMatch::Next => {}
            RouteMatch::Backend(Some(place)) => return Some(place),
            // No backend has the computed name: the default backend is used, not the next rule.
            RouteMatch::Backend(None) => break,
        }
    }
    default
}

enum RouteMatch {
    Next,
    Backend(Option<usize>),
}
