//! Services: what answers in place of a server, the statistics page and the metrics exporter.
//!
//! Nothing of what they say is known here: the program installs [`Services`] in each worker's
//! [`Local`](crate::Local).

use std::fmt;

use ballast_message::Method;
use ballast_model::StatsPage;
use ballast_rules::Service;

/// What answers requests that no server is asked for.
pub trait Services: fmt::Debug {
    /// The answer to a request.
    fn answer(&self, asked: &ServiceRequest<'_>) -> Reply;
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
    /// What the client would like to be answered with: its `Accept` field, empty without one.
    pub accept: &'a [u8],
    /// The request's body, as far as it was asked for.
    pub body: &'a [u8],
    /// Whether that is all of it: a body that no buffer holds is cut.
    pub body_is_whole: bool,
}

/// The service that is asked.
#[derive(Clone, Copy, Debug)]
pub enum ServiceKind<'a> {
    /// `http-request use-service prometheus-exporter`.
    Metrics,
    /// The statistics page of a proxy.
    Statistics {
        /// How the proxy wants it.
        page: &'a StatsPage,
        /// The name of the proxy.
        proxy: &'a str,
        /// Whether servers may be changed.
        may_admin: bool,
    },
}

/// What a service answers.
pub struct Reply {
    /// Status.
    pub status: u16,
    /// Fields besides those about the body.
    pub fields: Vec<(&'static str, String)>,
    /// What follows.
    pub body: ReplyBody,
}

/// What follows the head of a reply.
pub enum ReplyBody {
    /// Nothing.
    Empty,
    /// The default page of the status.
    Page,
    /// Pieces.
    Pieces(ReplyPieces),
}

/// Each call appends a piece; false when there was none left.
pub type ReplyPieces = Box<dyn FnMut(&mut Vec<u8>) -> bool>;

/// Which service an exchange is for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Called {
    /// `use-service`.
    Named(Service),
    /// The statistics page of the frontend, or of the backend.
    Statistics {
        /// Whose.
        of_backend: bool,
        /// Whether servers may be changed.
        may_admin: bool,
    },
}

impl Called {
    /// What stands in the place of a server's name in the log.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Named(Service::Metrics) => "<PROMEX>",
            Self::Statistics { .. } => "<STATS>",
        }
    }
}
