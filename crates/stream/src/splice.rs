//! Which direction of an exchange may be spliced, and what is counted of it.

use std::sync::Arc;

use ballast_engine::Backend;
use ballast_engine::counters::{BackendCounters, Counter};
use ballast_model::Splicing;
use ballast_mux::{Piece, SpliceMode};

use crate::context::Context;
use crate::exchange::Exchange;

/// How what goes to the server is moved.
pub(crate) fn of_request(context: &Context<'_>, exchange: &Exchange) -> SpliceMode {
    mode(context, exchange, |splicing| splicing.request)
}

/// How what goes to the client is moved.
pub(crate) fn of_response(context: &Context<'_>, exchange: &Exchange) -> SpliceMode {
    mode(context, exchange, |splicing| splicing.response)
}

fn mode(
    context: &Context<'_>,
    exchange: &Exchange,
    is_forced: impl Fn(&Splicing) -> bool,
) -> SpliceMode {
    let front = &context.frontend.model.common.splicing;
    let backend = exchange.backend.as_ref();
    let back = backend.map_or(front, |backend| &backend.model.common.splicing);
    mode_of(front, back, is_forced)
}

/// It is enough that one of the two proxies has an option. Without any of them, of whichever
/// direction, what comes fast is spliced, unless one of the proxies says `no option splice-auto`.
fn mode_of(front: &Splicing, back: &Splicing, is_forced: impl Fn(&Splicing) -> bool) -> SpliceMode {
    let is_said = |splicing: &Splicing| splicing.auto.is_some() || splicing.is_wanted();
    let is_auto = |splicing: &Splicing| splicing.auto == Some(true);
    if is_forced(front) || is_forced(back) {
        SpliceMode::Always
    } else if is_auto(front) || is_auto(back) || !(is_said(front) || is_said(back)) {
        SpliceMode::Auto
    } else {
        SpliceMode::Never
    }
}

/// Counts a piece of what goes to the server.
pub(crate) fn count_up(context: &Context<'_>, backend: Option<&Arc<Backend>>, piece: Piece) {
    if piece.is_spliced {
        let bytes = piece.bytes as u64;
        context.count(|counters| counters.spliced_bytes_in.add(bytes));
        count(context, backend, bytes, |counters| {
            &counters.spliced_bytes_in
        });
    }
}

/// Counts a piece of what goes to the client.
pub(crate) fn count_down(context: &Context<'_>, backend: Option<&Arc<Backend>>, piece: Piece) {
    if piece.is_spliced {
        let bytes = piece.bytes as u64;
        context.count(|counters| counters.spliced_bytes_out.add(bytes));
        count(context, backend, bytes, |counters| {
            &counters.spliced_bytes_out
        });
    }
}

fn count(
    context: &Context<'_>,
    backend: Option<&Arc<Backend>>,
    bytes: u64,
    counter: impl Fn(&BackendCounters) -> &Counter,
) {
    let worker = context.local.worker;
    if let Some(backend) = backend {
        counter(backend.state.counters.of(worker)).add(bytes);
    }
    context
        .local
        .process
        .counters
        .of(worker)
        .spliced_bytes
        .add(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_proxy_is_enough_and_no_is_heard() {
        let auto = |auto| Splicing {
            auto,
            ..Splicing::default()
        };
        let forced = Splicing {
            response: true,
            ..auto(Some(false))
        };
        let (unsaid, yes, no) = (auto(None), auto(Some(true)), auto(Some(false)));
        let response = |front, back| mode_of(front, back, |splicing| splicing.response);
        let request = |front, back| mode_of(front, back, |splicing| splicing.request);
        assert_eq!(response(&unsaid, &forced), SpliceMode::Always);
        assert_eq!(response(&forced, &no), SpliceMode::Always);
        assert_eq!(request(&forced, &no), SpliceMode::Never);
        let only_forced = Splicing {
            auto: None,
            ..forced
        };
        assert_eq!(request(&only_forced, &unsaid), SpliceMode::Never);
        assert_eq!(request(&forced, &yes), SpliceMode::Auto);
        assert_eq!(response(&unsaid, &unsaid), SpliceMode::Auto);
        assert_eq!(response(&no, &unsaid), SpliceMode::Never);
        assert_eq!(response(&unsaid, &no), SpliceMode::Never);
        assert_eq!(response(&no, &yes), SpliceMode::Auto);
    }
}
