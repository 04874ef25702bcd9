//! How an exchange ended: the first two letters of the termination state
//! (configuration manual, section 8.5).

use ballast_engine::CancellationReason;

/// Who or what ended the exchange first: the first letter.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum EndingCause {
    /// `-`: nobody; it completed.
    #[default]
    Normal,
    /// `C`: the client closed or reset its connection.
    Client,
    /// `S`: the server closed, reset or refused its connection.
    Server,
    /// `P`: Ballast refused, for a rule, a limit or a broken message.
    Proxy,
    /// `L`: Ballast answered by itself, as it is configured to.
    Local,
    /// `R`: a resource was exhausted.
    Resource,
    /// `I`: an error of our own.
    Internal,
    /// `D`: the server went down and `on-marked-down shutdown-sessions` holds.
    Down,
    /// `U`: a better server came up and `on-marked-up shutdown-backup-sessions` holds.
    Up,
    /// `K`: an operator killed it.
    Killed,
    /// `c`: the client was silent too long.
    ClientTimeout,
    /// `s`: the server was silent too long, or the queue too slow.
    ServerTimeout,
}

/// What the exchange was waiting for when it ended: the second letter.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum EndingPhase {
    /// `-`: nothing more.
    #[default]
    Done,
    /// `R`: a whole request.
    Request,
    /// `Q`: a free slot at a server.
    Queue,
    /// `C`: the connection to the server.
    Connect,
    /// `H`: the response's head.
    Headers,
    /// `D`: data.
    Data,
    /// `L`: the last bytes to leave towards the client, the server having finished.
    Last,
    /// `T`: the tarpit's end.
    Tarpit,
}

impl EndingCause {
    /// The cause to log for a cancellation.
    pub(crate) fn of_cancellation(why: CancellationReason) -> Self {
        match why {
            CancellationReason::MarkedDown => Self::Down,
            CancellationReason::ActiveServerBack => Self::Up,
            CancellationReason::ByOperator => Self::Killed,
        }
    }

    /// The letter in the log.
    pub fn letter(self) -> u8 {
        match self {
            Self::Normal => b'-',
            Self::Client => b'C',
            Self::Server => b'S',
            Self::Proxy => b'P',
            Self::Local => b'L',
            Self::Resource => b'R',
            Self::Internal => b'I',
            Self::Down => b'D',
            Self::Up => b'U',
            Self::Killed => b'K',
            Self::ClientTimeout => b'c',
            Self::ServerTimeout => b's',
        }
    }

    /// Whether neither peer ended it, but an operator or the health of a server. Such an exchange is
    /// logged with the status 500 and the phase `C`, however far it came, as HAProxy does.
    pub fn is_cut(self) -> bool {
        matches!(self, Self::Down | Self::Up | Self::Killed)
    }
}

impl EndingPhase {
    /// The letter in the log.
    pub fn letter(self) -> u8 {
        match self {
            Self::Done => b'-',
            Self::Request => b'R',
            Self::Queue => b'Q',
            Self::Connect => b'C',
            Self::Headers => b'H',
            Self::Data => b'D',
            Self::Last => b'L',
            Self::Tarpit => b'T',
        }
    }
}

/// EndingCause and phase together. The first one noted is kept: later ones are its consequences.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Ending {
    /// Who ended it.
    pub cause: EndingCause,
    /// While waiting for what.
    pub phase: EndingPhase,
}

impl Ending {
    /// Notes how it ended, unless that is known already.
    pub fn note(&mut self, cause: EndingCause, phase: EndingPhase) {
        if self.cause == EndingCause::Normal {
            *self = Self { cause, phase };
        }
    }

    /// Whether it completed undisturbed, answered by a server or by the proxy itself.
    pub fn is_normal(&self) -> bool {
        matches!(self.cause, EndingCause::Normal | EndingCause::Local)
    }

    /// Whether a side was silent for too long.
    pub fn is_timeout(&self) -> bool {
        matches!(
            self.cause,
            EndingCause::ClientTimeout | EndingCause::ServerTimeout
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_cause_stays() {
        let mut ending = Ending::default();
        assert!(ending.is_normal());
        ending.note(EndingCause::ServerTimeout, EndingPhase::Headers);
        ending.note(EndingCause::Client, EndingPhase::Data);
        assert_eq!((ending.cause.letter(), ending.phase.letter()), (b's', b'H'));
    }
}
