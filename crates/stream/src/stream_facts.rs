//! What samples ask of an exchange as one of several on its connection (manual 7.3.3, "fs.id", "fc_nb_streams").

use ballast_expr::{Side, StreamFacts};
use ballast_mux::StreamReference;

use crate::context::Context;
use crate::exchange::Exchange;

/// What is known of an exchange on its connection to this side; `None` while it has none.
pub(crate) fn of(context: &Context<'_>, exchange: &Exchange, to: Side) -> Option<StreamFacts> {
    let stream = match to {
        Side::Client => context.stream.as_ref(),
        Side::Server => exchange.server_stream.as_ref(),
    };
    if let Some(stream) = stream {
        return Some(of_stream(stream));
    }
    let before = match to {
        Side::Client => exchange.tally.number_at_client,
        Side::Server => {
            // With a slot at a server a connection is opened, or taken from those kept. A service of ours
            // takes the time of a slot, and no server.
            exchange.server.as_ref().and(exchange.times.slot_taken)?;
            exchange.tally.number_at_server
        }
    };
    let speaks_http = exchange.has_request || (to == Side::Client && context.frontend.is_http());
    Some(StreamFacts::alone(
        i64::from(before),
        speaks_http.then_some(1),
    ))
}

/// What is known of a stream of a connection that carries several.
fn of_stream(stream: &StreamReference) -> StreamFacts {
    let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
    StreamFacts {
        id: i64::from(stream.number()),
        aborted: stream.reset_code().is_some(),
        reset_code: stream.reset_code().map(i64::from),
        count: number(stream.stream_count()),
        count_max: number(stream.stream_count_max()),
        glitches: Some(i64::from(stream.glitch_count())),
        http_major: Some(2),
    }
}
