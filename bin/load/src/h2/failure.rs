//! Why a stream brought no answer.

use h2::{Error, Reason};

use crate::failure::{Failure, FailureClass};

/// Why there was no response.
#[derive(Debug)]
pub(super) enum NoAnswer {
    /// The server did not process it, and says so (RFC 9113 section 6.8): it may be sent again.
    ToldByGoaway,
    /// The connection took no more streams: it was not sent.
    Unsent,
    /// The server did not process it, and says so for this stream alone (section 8.7).
    Refused,
    /// A failure.
    Failed {
        failure: Failure,
        /// The code, if the server reset the stream.
        code: Option<String>,
        /// The connection was lost before the head of the response.
        is_lost_before_answer: bool,
    },
}

impl NoAnswer {
    pub(super) fn failed(failure: Failure) -> Self {
        Self::Failed {
            failure,
            code: None,
            is_lost_before_answer: false,
        }
    }

    /// An error of the library while `doing`. `has_head` when the head of the response had come.
    pub(super) fn of(error: &Error, doing: &str, has_head: bool) -> Self {
        let reason = format!("{doing}: {error}");
        // The library gives this to streams behind the last one of a GOAWAY, and to no others.
        if error.is_go_away() && error.is_remote() && !has_head {
            return Self::ToldByGoaway;
        }
        if error.is_reset() && error.is_remote() {
            let code = error.reason().unwrap_or(Reason::NO_ERROR);
            if code == Reason::REFUSED_STREAM && !has_head {
                return Self::Refused;
            }
            return Self::Failed {
                failure: Failure::new(FailureClass::StreamReset, reason),
                code: Some(format!("{code:?}")),
                is_lost_before_answer: false,
            };
        }
        if let Some(io) = error.get_io() {
            // The library says so of every end of the connection.
            let is_end = io.kind() == std::io::ErrorKind::BrokenPipe && io.raw_os_error().is_none();
            let failure = match (is_end, has_head) {
                (true, true) => Failure::new(FailureClass::Truncated, reason),
                (true, false) => Failure::new(FailureClass::Closed, reason),
                (false, _) => Failure::of_connection(io, doing),
            };
            return Self::Failed {
                failure,
                code: None,
                is_lost_before_answer: !has_head,
            };
        }
        Self::failed(Failure::new(FailureClass::Malformed, reason))
    }
}
