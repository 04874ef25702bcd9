//! What a client is told when `hard-stop-after` has passed in the middle of its exchange.

use ballast_mux::ClientConnection;

use super::{Stop, answer};
use crate::ending::{Cause, Phase};
use crate::exchange::Exchange;
use crate::session::Session;

/// Ends an exchange that nobody carries any more. A client that waits for its response gets a
/// page; one that has a part of it, or is not through with its request, gets nothing.
pub(crate) async fn cut_off(
    session: &Session,
    client: &mut ClientConnection,
    exchange: &mut Exchange,
) {
    if !exchange.has_request || exchange.times.ended.is_some() {
        return;
    }
    exchange.keep_client = false;
    let stop = stop(exchange, client.inbound.body_is_done());
    answer::stopped(session, client, exchange, stop).await;
    // Nothing more can be done for it when this fails.
    let _ = client.stream.shutdown_write();
}

fn stop(exchange: &Exchange, request_is_whole: bool) -> Stop {
    let (times, killed) = (&exchange.times, Cause::Killed);
    if exchange.has_response || exchange.tally.status >= 0 {
        Stop::silent(killed, Phase::Data)
    } else if !request_is_whole {
        Stop::silent(killed, Phase::Done)
    } else if times.connected.is_some() {
        Stop::page(502, killed, Phase::Headers)
    } else if times.seated.is_some() {
        Stop::page(503, killed, Phase::Connect)
    } else {
        Stop::page(503, killed, Phase::Queue)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ballast_message::HeadLimits;

    #[test]
    fn how_far_the_exchange_came_says_what_the_client_gets() {
        let mut exchange = Exchange::new(HeadLimits::default());
        let now = Some(exchange.times.idle_from);
        let told = |exchange: &Exchange, whole| {
            let stop = stop(exchange, whole);
            (stop.status, stop.ending.phase)
        };
        assert_eq!(told(&exchange, true), (Some(503), Phase::Queue));
        exchange.times.seated = now;
        assert_eq!(told(&exchange, true), (Some(503), Phase::Connect));
        exchange.times.connected = now;
        assert_eq!(told(&exchange, false), (None, Phase::Done));
        assert_eq!(told(&exchange, true), (Some(502), Phase::Headers));
        exchange.has_response = true;
        assert_eq!(told(&exchange, true), (None, Phase::Data));
    }
}
