//! PINGs on a connection that carries no streams (`idle-ping`).

use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use ballast_h2::ErrorCode;
use ballast_worker::{Deadline, now};

use super::connection::SharedConnection;
use super::stream_state::StreamFailure;

/// What the PINGs of an idle connection carry, as HAProxy's do.
const CONTENT: [u8; 8] = [0, 1, 2, 3, 4, 5, 6, 7];

/// Asks an idle peer whether it is still there. It is sent a PING when nothing came from it for the
/// delay; if no answer came when the next one would be sent, the connection ends with GOAWAY.
#[derive(Debug)]
pub(super) struct IdlePing {
    schedule: Schedule,
    deadline: Deadline,
}

/// What is to be done for an idle connection.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Due {
    /// Nothing before this time.
    Nothing(Instant),
    /// A PING is to be sent.
    Ping,
    /// The peer is gone.
    Dead,
}

/// When an idle peer is sent PINGs.
#[derive(Debug)]
struct Schedule {
    delay: Duration,
    /// Since when no stream is open; `None` while some are.
    idle_from: Option<Instant>,
    /// When a PING was sent that has no answer yet.
    asked: Option<Instant>,
}

impl Schedule {
    /// What is due now for a connection without streams, whose last bytes came at `received_at`.
    fn due(&mut self, received_at: Instant, now: Instant) -> Due {
        let idle_from = *self.idle_from.get_or_insert(now);
        let last = idle_from
            .max(received_at)
            .max(self.asked.unwrap_or(idle_from));
        let at = last + self.delay;
        if now < at {
            return Due::Nothing(at);
        }
        match self.asked.replace(now) {
            Some(_) => Due::Dead,
            None => Due::Ping,
        }
    }
}

impl IdlePing {
    pub(super) fn new(delay: Duration) -> Self {
        Self {
            schedule: Schedule {
                delay,
                idle_from: None,
                asked: None,
            },
            deadline: Deadline::new(),
        }
    }

    /// The peer has answered a PING. As in HAProxy, any content will do.
    pub(super) fn answered(&mut self) {
        self.schedule.asked = None;
    }

    /// Ready when the peer did not answer: the connection has ended. To be asked in each turn of the
    /// connection's task. While streams are open this costs a look at them.
    pub(super) fn poll_dead(
        &mut self,
        shared: &SharedConnection,
        cx: &mut Context<'_>,
    ) -> Poll<()> {
        loop {
            let received_at = {
                let state = shared.state.borrow();
                // Who goes away waits for the peer under other limits.
                if !state.streams.is_empty() || state.codec.is_going_away() {
                    self.schedule.idle_from = None;
                    return Poll::Pending;
                }
                state.received_at
            };
            match self.schedule.due(received_at, now()) {
                Due::Nothing(at) => {
                    self.deadline.set(at);
                    ready!(self.deadline.poll_expired(cx));
                }
                Due::Ping => shared.ping(CONTENT, cx),
                Due::Dead => {
                    shared.give_up(cx);
                    return Poll::Ready(());
                }
            }
        }
    }
}

impl SharedConnection {
    /// Sends a PING.
    fn ping(&self, content: [u8; 8], cx: &mut Context<'_>) {
        let state = &mut *self.state.borrow_mut();
        let (codec, out) = state.out();
        codec.ping(content, out);
        // What does not go out now does when the socket takes more; a failure is seen in the next turn.
        let _ = self.poll_write(state, cx);
    }

    /// Ends a connection whose peer does not answer. It is told so, if the socket takes it at once.
    fn give_up(&self, cx: &mut Context<'_>) {
        let state = &mut *self.state.borrow_mut();
        state.codec.go_away(ErrorCode::NO_ERROR);
        let _ = self.poll_write(state, cx);
        state.fail(StreamFailure::Closed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DELAY: Duration = Duration::from_secs(10);

    /// A connection that carries no streams from second 0 on, and whose last bytes came then.
    fn idle() -> (IdlePing, impl Fn(u64) -> Instant) {
        let began = now();
        let at = move |seconds| began + Duration::from_secs(seconds);
        let mut idle_ping = IdlePing::new(DELAY);
        let due = idle_ping.schedule.due(at(0), at(0));
        assert_eq!(due, Due::Nothing(at(10)));
        (idle_ping, at)
    }

    #[test]
    fn a_peer_that_answers_is_asked_again() {
        let (mut idle_ping, at) = idle();
        assert_eq!(idle_ping.schedule.due(at(0), at(9)), Due::Nothing(at(10)));
        assert_eq!(idle_ping.schedule.due(at(0), at(10)), Due::Ping);
        assert_eq!(idle_ping.schedule.due(at(0), at(10)), Due::Nothing(at(20)));
        idle_ping.answered();
        assert_eq!(idle_ping.schedule.due(at(12), at(12)), Due::Nothing(at(22)));
        assert_eq!(idle_ping.schedule.due(at(12), at(22)), Due::Ping);
    }

    #[test]
    fn a_peer_that_does_not_answer_is_dead() {
        let (mut idle_ping, at) = idle();
        assert_eq!(idle_ping.schedule.due(at(0), at(10)), Due::Ping);
        // Other bytes are no answer: they gain it time only.
        assert_eq!(idle_ping.schedule.due(at(15), at(20)), Due::Nothing(at(25)));
        assert_eq!(idle_ping.schedule.due(at(15), at(25)), Due::Dead);
    }

    #[test]
    fn what_comes_and_streams_put_it_off() {
        let (mut idle_ping, at) = idle();
        assert_eq!(idle_ping.schedule.due(at(7), at(10)), Due::Nothing(at(17)));
        // A stream is open from second 12 to second 30.
        idle_ping.schedule.idle_from = None;
        assert_eq!(idle_ping.schedule.due(at(13), at(30)), Due::Nothing(at(40)));
        assert_eq!(idle_ping.schedule.due(at(13), at(40)), Due::Ping);
    }
}
