//! `option redis-check`: PING, with the reply PONG (Redis serialization protocol).

use super::{CheckStep, Expectation, ReplyVerdict, first_line, wrong_status};

/// The steps of `option redis-check`.
pub fn redis() -> Vec<CheckStep> {
    vec![
        CheckStep::Send(b"*1\r\n$4\r\nPING\r\n".to_vec()),
        CheckStep::Expect(Expectation::RedisPong),
    ]
}

const PONG: &[u8] = b"+PONG\r\n";

pub(super) fn parse_reply(received: &[u8]) -> ReplyVerdict<'_> {
    if received.starts_with(PONG) {
        return ReplyVerdict::Pass {
            bytes: PONG.len(),
            code: Some(0),
            text: b"Redis server is ok",
        };
    }
    if PONG.starts_with(received) || !received.contains(&b'\n') {
        return ReplyVerdict::Undecided;
    }
    wrong_status(first_line(received))
}
