//! `tcp-request content` where there is no request to look at: the first bytes of a TCP
//! session.
//!
//! Rules are asked once there is something to decide on: a whole TLS ClientHello, a first
//! line, the end of the data, a full buffer, or the end of `inspect-delay`. HAProxy asks after
//! every byte and waits where a sample may still change; the verdicts are the same, but a set
//! of rules that needs no data decides here with the first data or the delay.

use std::time::{Duration, Instant};

use ballast_mux::{ClientConnection, ReadError, Wait};
use ballast_rules::{Rule, Verdict};

use crate::exchange::Exchange;
use crate::rulebook::{MessagePhase, apply};
use crate::session::Session;

/// Runs the rules over the first bytes of a session.
pub(crate) async fn content(
    session: &Session,
    client: &mut ClientConnection,
    exchange: &mut Exchange,
    rules: &[Rule],
    delay: Option<Duration>,
) -> Verdict {
    if rules.is_empty() {
        return Verdict::Continue;
    }
    let until = delay.map(|delay| session.accepted + session.handshake + delay);
    let mut over = until.is_none();
    if let Some(until) = until {
        over = gather(session, client, until).await;
    }
    let verdict = ask(session, client, exchange, rules, over);
    let waits_for_end = || rules.iter().any(mentions_wait_end);
    if verdict == Verdict::Continue && !over && waits_for_end() {
        if let Some(until) = until {
            ballast_worker::sleep_until(until).await;
        }
        return ask(session, client, exchange, rules, true);
    }
    verdict
}

fn ask(
    session: &Session,
    client: &ClientConnection,
    exchange: &mut Exchange,
    rules: &[Rule],
    over: bool,
) -> Verdict {
    exchange.peeked.clear();
    exchange.peeked.extend_from_slice(client.inbound.bytes());
    exchange.inspecting = !over;
    let verdict = apply(session, exchange, MessagePhase::Request, rules);
    exchange.inspecting = false;
    verdict
}

/// `wait_end`, or the ACL of that name: true only when the delay is over.
fn mentions_wait_end(rule: &Rule) -> bool {
    rule.to_string().to_ascii_lowercase().contains("wait_end")
}

/// Receives until there is enough to decide on; true when the delay was over first.
async fn gather(session: &Session, client: &mut ClientConnection, until: Instant) -> bool {
    let wait = Wait::until(&session.upward, Some(until));
    while !decides(client.inbound.bytes()) && !client.inbound.is_full() {
        match client.inbound.receive(&client.stream, &wait).await {
            Ok(0) | Err(ReadError::Closed | ReadError::Broken(_) | ReadError::Malformed(_)) => {
                return true;
            }
            Ok(_) => {}
            Err(ReadError::TimedOut) => return true,
        }
    }
    false
}

/// Whether the bytes hold a whole TLS record that may be a ClientHello, or a first line.
fn decides(bytes: &[u8]) -> bool {
    /// The content type of TLS handshake records (RFC 8446, section 5.1).
    const HANDSHAKE: u8 = 22;
    const RECORD_HEADER_BYTES: usize = 5;
    match bytes {
        [] => false,
        [HANDSHAKE, _, _, high, low, ..] => {
            let length = usize::from(u16::from_be_bytes([*high, *low]));
            bytes.len() >= RECORD_HEADER_BYTES + length
        }
        [HANDSHAKE, ..] => false,
        _ => bytes.contains(&b'\n') || !bytes[0].is_ascii_graphic(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hello_decides_when_it_is_whole() {
        assert!(!decides(b""));
        assert!(!decides(&[22, 3, 1, 0]));
        assert!(!decides(&[22, 3, 1, 0, 3, 1, 2]));
        assert!(decides(&[22, 3, 1, 0, 3, 1, 2, 3]));
    }

    #[test]
    fn a_line_decides_when_it_ends_and_binary_data_at_once() {
        assert!(!decides(b"GET / HT"));
        assert!(decides(b"GET / HTTP/1.1\r\n"));
        assert!(decides(&[0, 1]));
    }
}
