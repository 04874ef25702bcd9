//! `tcp-request content` in TCP mode: rules over the first bytes of a session.
//!
//! Rules are evaluated at once. A rule that is reached and needs bytes that are not there yet, or
//! the end of the inspection, holds the session: the run goes on at that rule after each read,
//! until the rule can be decided. `inspect-delay`, the end of the data and a full buffer end the
//! inspection: a sample whose bytes are not there by then has no value.

use std::time::{Duration, Instant};

use ballast_expr::Needs;
use ballast_mux::{Duplex, WaitLimit};
use ballast_rules::{Cursor, Rule, RunProgress, Verdict};

use crate::context::Context;
use crate::exchange::Exchange;
use crate::rulebook::{MessagePhase, resume};

/// Runs the rules over the first bytes of a session.
pub(crate) async fn content(
    context: &Context<'_>,
    client: &mut Duplex<'_>,
    exchange: &mut Exchange,
    rules: &[Rule],
    delay: Option<Duration>,
) -> Verdict {
    if rules.is_empty() {
        return Verdict::Continue;
    }
    let until = delay.map(|delay| context.session.established() + delay);
    let mut is_over = until.is_none();
    let mut cursor = Cursor::default();
    loop {
        exchange.peeked.clear();
        exchange.peeked.extend_from_slice(client.source.bytes());
        let may_still_arrive = if is_over {
            Needs::TIME
        } else {
            Needs::TIME | still_to_come(client.source.bytes())
        };
        let wait = match resume(
            context,
            exchange,
            MessagePhase::Request,
            rules,
            cursor,
            may_still_arrive,
        ) {
            RunProgress::Done(verdict) => return verdict,
            RunProgress::Wait(wait) => wait,
        };
        cursor = wait.cursor;
        match wait.at_most {
            Some(time) => ballast_worker::sleep(time).await,
            None => is_over = !receive(context, client, until).await,
        }
    }
}

/// Receives more; false when the inspection ends instead.
async fn receive(context: &Context<'_>, client: &mut Duplex<'_>, until: Option<Instant>) -> bool {
    if client.source.is_full() {
        return false;
    }
    let wait = WaitLimit::until(&context.upward, until);
    let received = client.source.receive(&wait).await;
    received.is_ok_and(|bytes| bytes > 0)
}

/// The needs that may still be met by what the client sends next.
fn still_to_come(bytes: &[u8]) -> Needs {
    let more = Needs::REQUEST_BYTES | Needs::INSPECTION_END;
    if may_become_hello(bytes) {
        more | Needs::TLS_HELLO
    } else {
        more
    }
}

/// Whether the bytes may be the beginning of a TLS ClientHello, and not all of it.
fn may_become_hello(bytes: &[u8]) -> bool {
    /// The content type of TLS handshake records (RFC 8446, section 5.1).
    const HANDSHAKE: u8 = 22;
    const RECORD_HEADER_BYTES: usize = 5;
    match bytes {
        [HANDSHAKE, _, _, high, low, ..] => {
            let length = usize::from(u16::from_be_bytes([*high, *low]));
            bytes.len() < RECORD_HEADER_BYTES + length
        }
        [] | [HANDSHAKE, ..] => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hello_is_awaited_until_it_is_whole() {
        assert!(may_become_hello(b""));
        assert!(may_become_hello(&[22, 3, 1, 0]));
        assert!(may_become_hello(&[22, 3, 1, 0, 3, 1, 2]));
        assert!(!may_become_hello(&[22, 3, 1, 0, 3, 1, 2, 3]));
    }

    #[test]
    fn other_bytes_are_no_hello() {
        assert!(!may_become_hello(b"GET / HT"));
        assert!(!may_become_hello(&[0, 1]));
    }
}
