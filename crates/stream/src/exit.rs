//! Every way an exchange can end before a server's response has ended it: one table says what
//! the client gets, what the log says, and what is counted.

use std::ops::ControlFlow;

use ballast_mux::{ReadError, WriteError};
use ballast_tls::openssl_error::OpensslError;
use ballast_upstream::NoSlot;

use crate::context::Context;
use crate::ending::{Ending, EndingCause, EndingPhase};
use crate::exchange::Exchange;
use crate::services::ServiceCall;
use crate::tracking::{self, TrackedEvent};

/// The result of a step of an exchange: go on with the next step, or end the exchange.
pub(crate) type Flow<T = ()> = ControlFlow<Exit, T>;

/// Why an exchange ends: what happened, who caused it, and in which phase.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Exit {
    /// The client's request was not received whole.
    Request(PeerFault, EndingPhase),
    /// The client left before its request's body was whole (`option http-buffer-request`,
    /// `wait-for-body`).
    BodyAbandoned,
    /// The request's head would grow beyond its limit while it is received.
    RequestHeadFull,
    /// The request's head would grow beyond its limit by an option that changes it.
    RequestRewrite,
    /// The request's head would grow beyond its limit by `http-send-name-header`.
    NameHeaderRewrite,
    /// A rule answers the request; the status of its answer.
    Answered(u16, EndingPhase),
    /// A rule refuses; the status of its page, if there is one.
    Denied(Option<u16>, EndingPhase),
    /// The client left the tarpit, and cannot be answered.
    TarpitAbandoned,
    /// `silent-drop`: the client is forgotten.
    SilentlyDropped,
    /// `tcp-request content` refuses a TCP session or a request.
    SessionDenied,
    /// `tcp-request content silent-drop` drops the client of a TCP session.
    SessionSilentlyDropped,
    /// The client failed while its first bytes were inspected.
    InspectionAborted(PeerFault),
    /// A rule could not do its work.
    RuleFailed(u16, EndingPhase),
    /// A rewrite of a rule had no room, under `strict-mode on`.
    RewriteFailed(EndingPhase),
    /// What a rule or a service answers had no room.
    AnswerFailed(EndingPhase),
    /// `monitor-uri`; the status of the answer.
    Monitor(u16),
    /// Memory is short.
    MemoryShort,
    /// A service answers.
    Service(ServiceCall),
    /// No service is installed.
    NoService,
    /// `option http-restrict-req-hdr-names reject`.
    OddNameDenied,
    /// The statistics page is refused.
    StatisticsDenied,
    /// The statistics page asks for a user and a password.
    StatisticsChallenge,
    /// No rule names a backend, and there is no default one.
    NoRoute,
    /// The exchange has no backend where it must have one.
    NoBackend,
    /// No server has a free slot, and the exchange cannot wait for one.
    NoSlot(NoSlot),
    /// `timeout queue` passed.
    QueueTimeout,
    /// No descriptor, port or memory for a connection to the server.
    ConnectResource,
    /// No TLS connection more is allowed (`maxsslconn`).
    ConnectTooManyTls,
    /// The server refused the connection.
    ConnectRefused,
    /// `timeout connect` passed.
    ConnectTimeout,
    /// The client closed its side while it waited for a server, or for a connection to it.
    ClientLeft(EndingPhase),
    /// The client broke off its request or reset its connection while it waited for a server.
    ClientBroke(EndingPhase),
    /// The client of a TCP session sent nothing within `timeout client` while it waited for a server.
    ClientSilent(EndingPhase),
    /// The client left while it waited for the response (`option abortonclose`).
    ClientGaveUp(EndingPhase),
    /// A reused connection was closed by the server while the request was sent on it. The client
    /// gets no answer and may try again itself (RFC 9112, section 9.3.1).
    StaleConnection,
    /// `redir` of a server line: the client is sent to the server's public address.
    ServerRedirect,
    /// The answer of `redir` is larger than a head may be.
    ServerRedirectFull,
    /// The client failed before the response began.
    Upload(PeerFault, EndingPhase),
    /// The client failed after the response began.
    UploadAfterHead(PeerFault),
    /// The server stopped reading the request and does not answer.
    UploadStuck,
    /// `timeout server` passed before the response's head.
    ResponseTimeout,
    /// The response's body did not come in the time of a `wait-for-body`, or within `timeout server`
    /// while it was waited for.
    ResponseBodyTimeout,
    /// `tcp-response content` refuses the response.
    ResponseRefused,
    /// The backend of a session that `switch-mode http` turned into HTTP is not for HTTP.
    WrongMode,
    /// The server closed before the response's head.
    ResponseMissing,
    /// The response's head was malformed, or cut in its middle.
    ResponseMalformed,
    /// The response's head would grow beyond its limit.
    ResponseRewrite,
    /// `option checkcache` blocks the response.
    CacheableCookie,
    /// The server failed in the middle of the body.
    ResponseCut(PeerFault),
    /// The client stopped reading the response.
    ResponseUntaken {
        /// `timeout client` passed; else the client closed.
        timed_out: bool,
        /// How far the response was.
        phase: EndingPhase,
    },
    /// An operator or a server's health ended it ([`EndingCause::is_cut`]). As in HAProxy, the
    /// connection is closed without an answer, in whatever phase the exchange was.
    Cut(EndingCause),
}

/// How a peer failed in the middle of a message.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum PeerFault {
    /// It was silent for too long.
    TimedOut,
    /// It closed, or reset its connection.
    Closed,
    /// It sent malformed HTTP; the status that answers it.
    Malformed(u16),
}

impl From<&ReadError> for PeerFault {
    fn from(error: &ReadError) -> Self {
        match error {
            ReadError::TimedOut => Self::TimedOut,
            ReadError::Closed | ReadError::Broken(_) => Self::Closed,
            ReadError::Malformed(rule) => Self::Malformed(rule.status()),
        }
    }
}

impl From<&WriteError> for PeerFault {
    fn from(error: &WriteError) -> Self {
        match error {
            WriteError::TimedOut => Self::TimedOut,
            WriteError::Broken(_) => Self::Closed,
        }
    }
}

impl PeerFault {
    /// The status for a client that failed so; `late` for one that took too long.
    fn status(self, late: u16) -> u16 {
        match self {
            Self::TimedOut => late,
            Self::Closed => 400,
            Self::Malformed(status) => status,
        }
    }

    /// The cause to log when the client failed.
    pub(crate) fn of_client(self) -> EndingCause {
        match self {
            Self::TimedOut => EndingCause::ClientTimeout,
            Self::Closed => EndingCause::Client,
            Self::Malformed(_) => EndingCause::Proxy,
        }
    }

    /// The counters of a client that failed in the middle of its request.
    pub(crate) fn counts_of_client(self) -> &'static [Count] {
        match self {
            Self::TimedOut | Self::Closed => &[Count::ClientAborts],
            Self::Malformed(_) => &[Count::FailedRequests],
        }
    }

    /// The counters of a server that failed in the middle of its response.
    pub(crate) fn counts_of_server(self) -> &'static [Count] {
        match self {
            Self::TimedOut => &[Count::ServerAborts],
            Self::Closed => &[Count::FailedResponses, Count::ServerAborts],
            Self::Malformed(_) => &[Count::FailedResponses],
        }
    }

    /// The cause to log when the server failed.
    fn of_server(self) -> EndingCause {
        match self {
            Self::TimedOut => EndingCause::ServerTimeout,
            Self::Closed => EndingCause::Server,
            Self::Malformed(_) => EndingCause::Proxy,
        }
    }
}

/// What follows from an exit.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct ExitOutcome {
    /// The page to answer with; `None` answers nothing and closes.
    pub(crate) status: Option<u16>,
    /// The termination state.
    pub(crate) ending: Ending,
    /// What is counted.
    pub(crate) counts: &'static [Count],
}

/// A counter that an exit increments, and whose.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Count {
    /// Of the backend and the server.
    ClientAborts,
    /// Of the frontend and the backend.
    DeniedRequests,
    /// Of the frontend, the backend and the server.
    DeniedResponses,
    /// Of the frontend, as a denied request.
    DeniedSessions,
    /// Of the backend and the server.
    FailedConnections,
    /// Of the frontend.
    FailedRequests,
    /// Of the backend and the server.
    FailedResponses,
    /// Of the backend and the server.
    FailedRewrites,
    /// Of the frontend.
    Intercepted,
    /// Of the frontend, the backend and the server.
    InternalErrors,
    /// Of the backend and the server.
    ServerAborts,
}

impl Count {
    pub(crate) fn increment(self, context: &Context<'_>, exchange: &Exchange) {
        let worker = context.local.worker;
        match self {
            Self::ClientAborts => exchange.count(worker, |of| of.client_aborts.increment()),
            Self::DeniedRequests => {
                context.count(|of| of.denied_requests.increment());
                if let Some(of) = exchange.backend_counters(worker) {
                    of.denied_requests.increment();
                }
            }
            Self::DeniedResponses => {
                context.count(|of| of.denied_responses.increment());
                exchange.count(worker, |of| of.denied_responses.increment());
            }
            Self::DeniedSessions => context.count(|of| of.denied_requests.increment()),
            Self::FailedConnections => {
                exchange.count(worker, |of| of.failed_connections.increment());
            }
            Self::FailedRequests => context.count(|of| of.failed_requests.increment()),
            Self::FailedResponses => exchange.count(worker, |of| of.failed_responses.increment()),
            Self::FailedRewrites => exchange.count(worker, |of| of.failed_rewrites.increment()),
            // As in HAProxy, what a backend answers is not intercepted by the frontend.
            Self::Intercepted if exchange.backend.is_some() => {}
            Self::Intercepted => context.count(|of| of.intercepted.increment()),
            Self::InternalErrors => {
                context.count(|of| of.internal_errors.increment());
                exchange.count(worker, |of| of.internal_errors.increment());
            }
            Self::ServerAborts => exchange.count(worker, |of| of.server_aborts.increment()),
        }
    }
}

const fn outcome(
    status: Option<u16>,
    cause: EndingCause,
    phase: EndingPhase,
    counts: &'static [Count],
) -> ExitOutcome {
    ExitOutcome {
        status,
        ending: Ending { cause, phase },
        counts,
    }
}

const fn page(
    status: u16,
    cause: EndingCause,
    phase: EndingPhase,
    counts: &'static [Count],
) -> ExitOutcome {
    outcome(Some(status), cause, phase, counts)
}

const fn silent(cause: EndingCause, phase: EndingPhase, counts: &'static [Count]) -> ExitOutcome {
    outcome(None, cause, phase, counts)
}

impl Exit {
    /// Whether a body that rules waited for did not come in time.
    pub(crate) fn is_body_timeout(&self) -> bool {
        matches!(
            self,
            Self::Request(PeerFault::TimedOut, _) | Self::ResponseBodyTimeout
        )
    }

    /// The table's row for this exit. Status, cause and phase as HAProxy gives them (configuration
    /// manual, sections 1.3.1 and 8.5); counters as section 9.1 of the management guide names
    /// them.
    pub(crate) fn outcome(self) -> ExitOutcome {
        use Count as N;
        use EndingCause as C;
        use EndingPhase as P;
        match self {
            Self::Request(fault, phase) => page(
                fault.status(408),
                fault.of_client(),
                phase,
                &[N::FailedRequests],
            ),
            Self::BodyAbandoned => page(400, C::Client, P::Request, &[N::ClientAborts]),
            Self::RequestHeadFull => page(500, C::Internal, P::Request, &[N::FailedRequests]),
            Self::RequestRewrite => page(500, C::Proxy, P::Request, &[N::FailedRewrites]),
            Self::NameHeaderRewrite => page(500, C::Internal, P::Connect, &[N::FailedRewrites]),
            // With the response, the request has come to its server.
            Self::Answered(status, P::Headers) => page(status, C::Local, P::Headers, &[]),
            Self::Answered(status, phase) => page(status, C::Local, phase, &[N::Intercepted]),
            Self::Denied(status, phase) => {
                let counts: &'static [Count] = match phase {
                    P::Request | P::Tarpit => &[N::DeniedRequests],
                    _ => &[N::DeniedResponses],
                };
                outcome(status, C::Proxy, phase, counts)
            }
            Self::TarpitAbandoned => silent(C::Proxy, P::Tarpit, &[N::DeniedRequests]),
            Self::SilentlyDropped => silent(C::Proxy, P::Request, &[N::DeniedRequests]),
            Self::SessionDenied | Self::SessionSilentlyDropped => {
                silent(C::Proxy, P::Request, &[N::DeniedSessions])
            }
            Self::InspectionAborted(fault) => {
                let counts = &[N::FailedRequests, N::ClientAborts];
                silent(fault.of_client(), P::Request, counts)
            }
            Self::RuleFailed(status, phase) => {
                page(status, C::Internal, phase, &[N::InternalErrors])
            }
            Self::RewriteFailed(phase) => page(500, C::Proxy, phase, &[N::InternalErrors]),
            Self::AnswerFailed(phase) => page(500, C::Local, phase, &[N::InternalErrors]),
            Self::Monitor(status) => page(status, C::Local, P::Request, &[N::Intercepted]),
            Self::MemoryShort => page(503, C::Resource, P::Request, &[N::InternalErrors]),
            // The service's own status replaces this one, and is counted when it is known.
            Self::Service(_) => page(200, C::Local, P::Request, &[N::Intercepted]),
            Self::NoService => page(503, C::Internal, P::Request, &[]),
            Self::StatisticsDenied | Self::OddNameDenied => {
                page(403, C::Proxy, P::Request, &[N::DeniedRequests])
            }
            Self::StatisticsChallenge => page(401, C::Local, P::Request, &[N::Intercepted]),
            Self::NoRoute => page(503, C::Server, P::Connect, &[]),
            Self::NoBackend | Self::ServerRedirectFull => page(500, C::Internal, P::Connect, &[]),
            Self::NoSlot(refusal) => {
                let phase = match refusal {
                    NoSlot::NoServer => P::Connect,
                    NoSlot::QueueFull => P::Queue,
                };
                page(503, C::Server, phase, &[N::FailedConnections])
            }
            Self::QueueTimeout => page(503, C::ServerTimeout, P::Queue, &[N::FailedConnections]),
            Self::ConnectResource => page(503, C::Resource, P::Connect, &[N::FailedConnections]),
            Self::ConnectRefused => page(503, C::Server, P::Connect, &[N::FailedConnections]),
            Self::ConnectTimeout => {
                page(503, C::ServerTimeout, P::Connect, &[N::FailedConnections])
            }
            Self::ConnectTooManyTls => page(500, C::Internal, P::Connect, &[N::FailedConnections]),
            // A client that only closed its side aborted no transfer: none had begun.
            Self::ClientLeft(phase) => silent(C::Client, phase, &[]),
            Self::ClientBroke(phase) => silent(C::Client, phase, &[N::ClientAborts]),
            Self::ClientSilent(phase) => silent(C::ClientTimeout, phase, &[N::ClientAborts]),
            Self::ClientGaveUp(phase) => page(400, C::Client, phase, &[N::ClientAborts]),
            Self::StaleConnection => {
                silent(C::Server, P::Headers, PeerFault::Closed.counts_of_server())
            }
            Self::ServerRedirect => page(302, C::Local, P::Connect, &[]),
            Self::Upload(fault, phase) => page(
                fault.status(400),
                fault.of_client(),
                phase,
                fault.counts_of_client(),
            ),
            Self::UploadAfterHead(fault) => {
                silent(fault.of_client(), P::Data, fault.counts_of_client())
            }
            Self::UploadStuck | Self::ResponseMissing => {
                page(502, C::Server, P::Headers, &[N::FailedResponses])
            }
            Self::ResponseTimeout => page(504, C::ServerTimeout, P::Headers, &[N::FailedResponses]),
            // As in HAProxy, nothing is counted.
            Self::ResponseBodyTimeout => page(504, C::ServerTimeout, P::Headers, &[]),
            Self::ResponseRefused => silent(C::Proxy, P::Data, &[N::DeniedResponses]),
            Self::WrongMode => silent(C::Internal, P::Request, &[]),
            Self::ResponseMalformed => page(502, C::Proxy, P::Headers, &[N::FailedResponses]),
            Self::ResponseRewrite => page(502, C::Proxy, P::Headers, &[N::FailedRewrites]),
            Self::CacheableCookie => page(502, C::Proxy, P::Headers, &[N::DeniedResponses]),
            Self::ResponseCut(fault) => {
                silent(fault.of_server(), P::Data, fault.counts_of_server())
            }
            Self::ResponseUntaken { timed_out, phase } => {
                let cause = match timed_out {
                    true => C::ClientTimeout,
                    false => C::Client,
                };
                silent(cause, phase, &[N::ClientAborts])
            }
            Self::Cut(cause) => silent(cause, P::Connect, &[]),
        }
    }

    /// Whether another answer takes the place of a server's response, or none does, and the server is not to
    /// blame for it.
    pub(crate) fn replaces_response(self) -> bool {
        matches!(
            self,
            Self::Answered(_, EndingPhase::Headers)
                | Self::Denied(_, EndingPhase::Headers)
                | Self::SilentlyDropped
                | Self::RuleFailed(_, EndingPhase::Headers)
                | Self::RewriteFailed(EndingPhase::Headers)
                | Self::AnswerFailed(EndingPhase::Headers)
                | Self::ResponseRewrite
                | Self::CacheableCookie
        )
    }

    /// Whether the client left before its request was whole: the backend is chosen all the same.
    pub(crate) fn is_abort_before_server(self) -> bool {
        matches!(
            self,
            Self::InspectionAborted(_) | Self::Upload(_, EndingPhase::Request)
        )
    }

    /// What tracked entries count of it: an error of the client, or a failure of the server.
    fn tracked_event(self, exchange: &Exchange) -> Option<TrackedEvent> {
        match self {
            // `http-request auth`: the client has shown no right to what it asked for.
            Self::Answered(_, EndingPhase::Request) if exchange.challenge.is_some() => {
                Some(TrackedEvent::Error)
            }
            Self::Request(PeerFault::Closed | PeerFault::Malformed(_), _)
            | Self::Denied(Some(_), EndingPhase::Request | EndingPhase::Tarpit)
            | Self::TarpitAbandoned
            | Self::OddNameDenied
            | Self::StatisticsDenied
            | Self::StatisticsChallenge => Some(TrackedEvent::Error),
            Self::UploadStuck
            | Self::ResponseMissing
            | Self::ResponseTimeout
            | Self::ResponseMalformed => Some(TrackedEvent::Failure),
            _ => None,
        }
    }

    /// Increments the counters of this exit.
    pub(crate) fn count(self, context: &Context<'_>, exchange: &Exchange) {
        for count in self.outcome().counts {
            count.increment(context, exchange);
        }
        if let Some(event) = self.tracked_event(exchange) {
            tracking::count(context, exchange, event);
        }
    }

    /// As [`count`](Self::count), where the answer had no room, and the page for 500 took its place.
    pub(crate) fn count_failed_answer(self, context: &Context<'_>, exchange: &Exchange) {
        match self {
            Self::Answered(_, phase) => Self::AnswerFailed(phase).count(context, exchange),
            other => other.count(context, exchange),
        }
    }

    /// Increments the counters of this exit, and notes it as the exchange's end.
    pub(crate) fn note(self, context: &Context<'_>, exchange: &mut Exchange) {
        self.count(context, exchange);
        self.note_ending(exchange);
    }

    /// Notes it as the exchange's end unless one was noted already. Returns the status to answer with.
    pub(crate) fn note_ending(self, exchange: &mut Exchange) -> Option<u16> {
        let outcome = self.outcome();
        exchange
            .ending
            .note(outcome.ending.cause, outcome.ending.phase);
        // No log line is written for these: requests for `monitor-uri`, and requests that their
        // client will send again.
        exchange.logged |= matches!(self, Self::Monitor(_) | Self::StaleConnection);
        outcome.status
    }
}

/// A failed connect.
#[derive(Debug)]
pub(crate) struct ConnectFailure {
    /// How the exchange ends when it is not tried again.
    pub(crate) exit: Exit,
    /// Whether it may be.
    pub(crate) may_retry: bool,
    /// Whether no other try is made, as all are used up. As in HAProxy, a certificate for another name than
    /// the one that `sni` gave is such a failure, whichever servers are left.
    pub(crate) is_final: bool,
    /// Whether the server had no room for a connection (`strict-maxconn`). As in HAProxy that is no session
    /// of the server, and another try comes without a pause.
    pub(crate) had_no_place: bool,
    /// What TLS said, where it failed.
    pub(crate) tls: Option<OpensslError>,
}

impl ConnectFailure {
    /// A failure that TLS is not to blame for.
    pub(crate) fn new(exit: Exit, may_retry: bool) -> Self {
        Self {
            exit,
            may_retry,
            is_final: false,
            had_no_place: false,
            tls: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(exit: Exit) -> (Option<u16>, String) {
        let outcome = exit.outcome();
        let letters = [outcome.ending.cause.letter(), outcome.ending.phase.letter()];
        (
            outcome.status,
            String::from_utf8_lossy(&letters).into_owned(),
        )
    }

    #[test]
    fn the_client_is_told_whose_fault_it_was() {
        for (exit, status, letters) in [
            (
                Exit::Request(PeerFault::TimedOut, EndingPhase::Request),
                Some(408),
                "cR",
            ),
            (
                Exit::Request(PeerFault::Closed, EndingPhase::Request),
                Some(400),
                "CR",
            ),
            (
                Exit::Request(PeerFault::Malformed(431), EndingPhase::Request),
                Some(431),
                "PR",
            ),
            (
                Exit::Denied(Some(403), EndingPhase::Request),
                Some(403),
                "PR",
            ),
            (Exit::Denied(None, EndingPhase::Headers), None, "PH"),
            (Exit::NoSlot(NoSlot::QueueFull), Some(503), "SQ"),
            (Exit::QueueTimeout, Some(503), "sQ"),
            (Exit::ConnectTimeout, Some(503), "sC"),
            (Exit::ResponseTimeout, Some(504), "sH"),
            (Exit::ResponseMalformed, Some(502), "PH"),
            (Exit::ResponseCut(PeerFault::Closed), None, "SD"),
            (Exit::Cut(EndingCause::Killed), None, "KC"),
        ] {
            assert_eq!(state(exit), (status, letters.to_owned()), "{exit:?}");
        }
    }
}
