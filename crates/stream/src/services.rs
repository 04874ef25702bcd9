//! Services answer requests in place of a server: the statistics page and the metrics exporter.
//!
//! What they answer is not known here: the program installs [`Services`] in each worker's
//! [`WorkerLocal`](crate::WorkerLocal).

use std::fmt;

use ballast_message::Method;
use ballast_model::StatsPage;
use ballast_rules::Service;

/// Answers requests in place of a server.
pub trait Services: fmt::Debug {
    /// The answer to a request.
    fn answer(&self, request: &ServiceRequest<'_>) -> ServiceReply;
}

/// A request for a service.
#[derive(Clone, Copy, Debug)]
pub struct ServiceRequest<'a> {
    /// Which service.
    pub of: ServiceKind<'a>,
    /// The request's method.
    pub method: Method,
    /// Path and query as received, with nothing before the path.
    pub target: &'a [u8],
    /// The client's `Accept` field; empty without one.
    pub accept: &'a [u8],
    /// The request's body, or the beginning of it.
    pub body: &'a [u8],
    /// Whether `body` is all of it: a body that is larger than a buffer is cut.
    pub body_is_whole: bool,
}

/// The service that is called.
#[derive(Clone, Copy, Debug)]
pub enum ServiceKind<'a> {
    /// `http-request use-service prometheus-exporter`.
    Metrics,
    /// The statistics page of a proxy.
    Statistics {
        /// The `stats` settings of the proxy.
        page: &'a StatsPage,
        /// The name of the proxy.
        proxy: &'a str,
        /// Whether servers may be changed.
        may_admin: bool,
    },
}

/// What a service answers.
pub struct ServiceReply {
    /// Status.
    pub status: u16,
    /// Fields besides those about the body.
    pub fields: Vec<(&'static str, String)>,
    /// The body.
    pub body: ServiceReplyBody,
}

/// The body of what a service answers.
pub enum ServiceReplyBody {
    /// Nothing.
    Empty,
    /// The default page of the status.
    Page,
    /// Pieces.
    Pieces(ServiceReplyPieces),
}

/// Each call appends a piece; false when none is left.
pub type ServiceReplyPieces = Box<dyn FnMut(&mut Vec<u8>) -> bool>;

/// The service that answers an exchange.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum ServiceCall {
    /// `use-service`.
    Named(Service),
    /// The statistics page of the frontend, or of the backend.
    Statistics {
        /// Whether the page is the backend's.
        of_backend: bool,
        /// Whether servers may be changed.
        may_admin: bool,
    },
}

impl ServiceCall {
    /// The name that is logged in place of a server's name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Named(Service::Metrics) => "<PROMEX>",
            Self::Statistics { .. } => "<STATS>",
        }
    }
}
