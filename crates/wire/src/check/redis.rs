//! `option redis-check`: PING, with the reply PONG (Redis serialization protocol).

use super::{CheckStep, Expectation, ReplyVerdict};

/// The steps of `option redis-check`.
pub fn redis() -> Vec<CheckStep> {
    vec![
        CheckStep::Send(b"*1\r\n$4\r\nPING\r\n".to_vec()),
        CheckStep::Expect(Expectation::RedisPong),
    ]
}

const PONG: &[u8] = b"+PONG\r\n";

pub(super) fn parse_reply(received: &[u8]) -> ReplyVerdict<'_> {
    let mut parts = received.windows(PONG.len());
    match parts.position(|part| part == PONG) {
        Some(at) => ReplyVerdict::Pass {
            bytes: at + PONG.len(),
            code: Some(0),
            text: b"Redis server is ok",
        },
        // It may follow what else the server says.
        None => ReplyVerdict::Undecided,
    }
}
