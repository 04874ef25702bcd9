//! Keeps the last message of each proxy that broke the protocol, for `show errors`.
//!
//! This costs nothing until a message is refused. What was consumed by then, such as the head
//! before a broken chunk, is not kept.

use std::time::SystemTime;

use ballast_engine::InvalidMessage;
use ballast_mux::{Malformed, ProtocolViolation};

use crate::context::Context;
use crate::exchange::Exchange;

/// Keeps a request that was refused.
pub(super) fn request(context: &Context<'_>, violation: ProtocolViolation<'_>, reason: &Malformed) {
    let number = context.local.process.count_invalid_message();
    let state = &context.frontend.state;
    state
        .invalid_request
        .keep(|| captured(context, violation, reason, number));
}

/// Keeps a response that was refused.
pub(super) fn response(
    context: &Context<'_>,
    exchange: &Exchange,
    violation: ProtocolViolation<'_>,
    reason: &Malformed,
) {
    let number = context.local.process.count_invalid_message();
    let Some(backend) = &exchange.backend else {
        return;
    };
    backend.state.invalid_response.keep(|| InvalidMessage {
        backend: Some((backend.name().to_owned(), backend.model.common.id)),
        server: exchange
            .server
            .as_ref()
            .map(|server| (server.name().to_owned(), server.model.id)),
        ..captured(context, violation, reason, number)
    });
}

fn captured(
    context: &Context<'_>,
    violation: ProtocolViolation<'_>,
    reason: &Malformed,
    number: u64,
) -> InvalidMessage {
    let common = &context.frontend.model.common;
    let bytes = violation.bytes.to_vec();
    InvalidMessage {
        number,
        at: SystemTime::now(),
        frontend: (common.name.clone(), common.id),
        backend: None,
        server: None,
        source: context.session.addresses.source,
        buffer_bytes: (context.running.tune().buffer_bytes as usize).max(bytes.len()),
        position: violation.at_byte,
        bytes,
        rule: reason.to_string(),
    }
}
