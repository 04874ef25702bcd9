//! Which backend: `use_backend` rules in order, then `default_backend`.

use ballast_engine::RouteTarget;

use crate::exchange::Exchange;
use crate::exit::{Exit, Flow};
use crate::session::Session;
use crate::view::View;

/// Chooses the backend of the exchange.
pub(crate) fn choose(session: &Session, exchange: &mut Exchange) -> Flow {
    let chosen = session
        .upgraded_for
        .get()
        .or_else(|| backend(session, exchange));
    let Some(place) = chosen else {
        // A request that goes nowhere has no times, as in HAProxy's logs.
        exchange.times.received = None;
        return Flow::Break(Exit::NoRoute);
    };
    exchange.goes_to(place, &session.running.generation.backends[place]);
    Flow::Continue(())
}

/// The backend that an exchange goes to, as its place in the generation.
pub(crate) fn backend(session: &Session, exchange: &Exchange) -> Option<usize> {
    let frontend = &session.frontend;
    let generation = &session.running.generation;
    // One that was added by command takes nothing before it is published.
    let is_published = |place: &usize| generation.backends[*place].state.is_published();
    let default = frontend.default_backend.filter(is_published);
    if frontend.routes.is_empty() {
        return default;
    }
    let view = View::new(session, exchange);
    for route in &frontend.routes {
        let found = session.local.with_memory(|memory| {
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
            // A computed name that is nobody's: the default backend, not the next rule.
            RouteMatch::Backend(None) => break,
        }
    }
    default
}

enum RouteMatch {
    Next,
    Backend(Option<usize>),
}
