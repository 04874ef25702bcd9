//! What rules decide.

use std::sync::Arc;

use crate::http_protocol::HttpProtocol;

/// The decision of the rules.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Verdict {
    /// The end of the rules was reached: continue.
    Continue,
    /// `allow`, `accept`: the remaining rules of this rule set are skipped; continue.
    Allow,
    /// The client gets a response made here.
    Respond(LocalResponse),
    /// `reject`: the connection is closed without a response.
    Close,
    /// `silent-drop`: the connection is dropped without telling the client. With a number, a reset
    /// is sent with that many hops to live.
    SilentDrop(Option<u8>),
    /// `close`: the connection to the server is closed, and the client gets what came from it.
    CloseServer,
    /// `switch-mode http`: what the client of a TCP session sends are requests, of the protocol that
    /// `proto` names.
    SwitchToHttp(Option<HttpProtocol>),
}

/// A response that a rule gives in place of a server.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct LocalResponse {
    /// The reason: decides counters and the termination state of the log line.
    pub cause: ResponseCause,
    /// Its status; that of a raw page is in the page.
    pub status: u16,
    /// Its content.
    pub page: ResponseContent,
}

/// Why a rule responds.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ResponseCause {
    /// `deny`: counted as denied, logged `PR` (`PH` in a response).
    Deny,
    /// An action could not do its work: counted as an internal error, logged `I`.
    Fault,
    /// A rewrite had no room, under `strict-mode on`: counted as an internal error, logged `P`.
    FailedRewrite,
    /// What `return` was to send had no room: counted as an internal error, logged `L`.
    FailedReturn,
    /// The request is malformed: logged `PR`.
    Malformed,
    /// `redirect`: logged `LR`.
    Redirect,
    /// `return`: logged `LR`.
    Return,
    /// `tarpit`: the response comes after `timeout tarpit`; counted as denied, logged `PT`.
    Tarpit,
}

/// Where the content of a response is.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum ResponseContent {
    /// In [`Transaction::answer_mut`](crate::Transaction::answer_mut): head and body.
    Made,
    /// The page of the proxy for the status: its `errorfile`, or the built-in one.
    Proxy,
    /// The page of the proxy, with a challenge for this realm (`auth`); by default the proxy's name.
    Challenge(Option<Arc<str>>),
    /// A whole response, head included, as read from a file. Empty: nothing is sent and the
    /// connection is closed.
    Raw(Arc<[u8]>),
    /// `use-service`: the service produces it.
    Service(Service),
}

/// What `use-service` names.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Service {
    /// `prometheus-exporter`.
    Metrics,
}

impl LocalResponse {
    pub(crate) fn fault() -> LocalResponse {
        Self::failure(ResponseCause::Fault)
    }

    /// The proxy's page for 500.
    pub(crate) fn failure(cause: ResponseCause) -> LocalResponse {
        LocalResponse {
            cause,
            status: 500,
            page: ResponseContent::Proxy,
        }
    }

    pub(crate) fn service(service: Service) -> LocalResponse {
        LocalResponse {
            cause: ResponseCause::Return,
            status: 200,
            page: ResponseContent::Service(service),
        }
    }
}
