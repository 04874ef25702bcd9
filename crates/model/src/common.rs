//! What frontends and backends have in common.

use std::sync::Arc;
use std::time::Duration;

use ballast_expr::LogFormat;
use ballast_rules::RuleSets;

use crate::{LogTarget, Network, StatsPage};

/// The place in the configuration where something was written. All origins compare equal: a line
/// that only moved is unchanged.
#[derive(Clone, Debug, Default)]
pub struct Origin {
    /// File name as given on the command line.
    pub file: Arc<str>,
    /// Line number, from 1.
    pub line: u32,
}

impl PartialEq for Origin {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Origin {}

/// Whether a default was written explicitly. All values compare equal: it is only informative.
#[derive(Clone, Copy, Debug, Default)]
pub struct IsExplicit(pub bool);

impl PartialEq for IsExplicit {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for IsExplicit {}

/// Name, mode and options of every proxy.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProxyCommon {
    /// `id`, or the number the configuration order gave it; unique among proxies
    /// (a `listen` shares one between its halves).
    pub id: u32,
    /// Whether `id` gave the number; a counted number may change for the same section.
    pub id_is_explicit: IsExplicit,
    /// `guid`: a name that stays when the section is renamed.
    pub guid: Option<String>,
    /// Section name.
    pub name: String,
    /// The servers that its expressions name, each behind its backend: they cannot be removed while it runs.
    pub asked_servers: Vec<(String, String)>,
    /// Whether this is one half of a `listen` section.
    pub listen: bool,
    /// `mode`.
    pub mode: Mode,
    /// `description`.
    pub description: Option<String>,
    /// `disabled`: the section is checked but not used.
    pub disabled: bool,
    /// Where the section begins.
    pub origin: Origin,
    /// `log` lines; `log global` is already replaced by the targets of the global section.
    pub log_targets: Vec<LogTarget>,
    /// `log-tag`, else the global one.
    pub log_tag: Option<String>,
    /// `errorfile`, `errorloc*`, `errorfiles` and `http-error`, by status.
    pub error_pages: ErrorPages,
    /// The effect of `option httpclose`, `http-server-close` and `http-keep-alive`.
    pub connection_mode: ConnectionMode,
    /// `option forwardfor`.
    pub forward_for: Option<ForwardFor>,
    /// `option originalto`: the header that carries the destination address.
    pub original_to: Option<ForwardFor>,
    /// `option http-buffer-request`: rules and balancing wait for the body.
    pub buffer_request: bool,
    /// `option abortonclose`: the request of a client that closes while queued is dropped. A frontend
    /// has it from its defaults only, and it holds there until a backend is chosen.
    pub abort_on_close: bool,
    /// `option independent-streams`: a peer that takes bytes of one message may still be too silent in the
    /// other.
    pub independent_streams: bool,
    /// `option nolinger`: connections of TCP mode are reset instead of closed.
    pub no_linger: bool,
    /// `option splice-auto`, `splice-request`, `splice-response`.
    pub splicing: Splicing,
    /// `option accept-unsafe-violations-in-http-request`: odd requests are taken.
    pub accept_invalid_requests: bool,
    /// `option http-restrict-req-hdr-names`.
    pub odd_request_names: OddNames,
    /// `option accept-unsafe-violations-in-http-response`: odd responses are taken.
    pub accept_invalid_responses: bool,
    /// All rule sets of the section: tcp-request, tcp-response, http-request, ...
    pub rules: RuleSets,
    /// `unique-id-format`, on the frontend half.
    pub unique_id_format: Option<LogFormat>,
    /// `unique-id-header`.
    pub unique_id_header: Option<String>,
    /// `stats ...`: the statistics page of the proxy.
    pub stats: Option<Box<StatsPage>>,
}

impl ProxyCommon {
    /// Whether this and `other` are the halves of one `listen` section.
    pub fn is_other_half_of(&self, other: &Self) -> bool {
        self.listen && other.listen && self.name == other.name
    }
}

/// What becomes of header fields whose names have other characters than letters, digits and `-`.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum OddNames {
    /// `preserve`: they stay.
    #[default]
    Preserve,
    /// `delete`: they are removed.
    Delete,
    /// `reject`: the request is answered with 403.
    Reject,
}

impl OddNames {
    /// Whether a name has such a character.
    pub fn is_odd(name: &[u8]) -> bool {
        name.iter()
            .any(|byte| !byte.is_ascii_alphanumeric() && *byte != b'-')
    }
}

/// Which bodies the kernel moves from one connection to the other without a copy to the program.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Splicing {
    /// `option splice-auto`: both directions, while bytes come fast. `None` where it is not written:
    /// without any of the options it is so too, but no pipes are reserved for it.
    pub auto: Option<bool>,
    /// `option splice-request`: to the server, wherever it is possible.
    pub request: bool,
    /// `option splice-response`: to the client.
    pub response: bool,
}

impl Splicing {
    /// Whether an option asks for pipes.
    pub fn is_wanted(&self) -> bool {
        self.auto == Some(true) || self.request || self.response
    }
}

/// `mode`: how a proxy interprets the bytes it carries.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Mode {
    /// Bytes, both ways.
    #[default]
    Tcp,
    /// Requests and responses.
    Http,
    /// Syslog messages (`mode log` backends).
    Log,
    /// SPOP agents (`mode spop` backends).
    Spop,
}

impl Mode {
    /// The word that selects the mode.
    pub fn word(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Http => "http",
            Self::Log => "log",
            Self::Spop => "spop",
        }
    }
}

/// What happens to the two connections when an exchange ends
/// (configuration manual, section 4, "option http-keep-alive" and its siblings).
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub enum ConnectionMode {
    /// `option http-keep-alive`: both sides stay open. The default.
    #[default]
    KeepAlive,
    /// `option http-server-close`: the server's side closes after each exchange.
    ServerClose,
    /// `option httpclose`: the side of the section that says it closes after each exchange, both
    /// sides for a `listen`.
    Close,
}

/// `option forwardfor` and `option originalto`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ForwardFor {
    /// The header that is added, `X-Forwarded-For` or `X-Original-To` by default.
    pub header: String,
    /// `except`: no header is added for clients (or destinations) in this network.
    pub except: Option<Network>,
    /// `if-none`: a request that already has the header keeps it unchanged.
    pub if_none: bool,
}

/// `option forwarded` (RFC 7239).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ForwardedHeader {
    /// `proto`: the `proto=` parameter is sent.
    pub proto: bool,
    /// `host` and `host-expr`.
    pub host: Option<ForwardedNode>,
    /// `by` and `by-expr`.
    pub by: Option<ForwardedNode>,
    /// `by_port` and `by_port-expr`.
    pub by_port: Option<ForwardedNode>,
    /// `for` and `for-expr`.
    pub for_: Option<ForwardedNode>,
    /// `for_port` and `for_port-expr`.
    pub for_port: Option<ForwardedNode>,
}

/// The source of a parameter of `Forwarded:`.
#[derive(Clone, Debug, PartialEq)]
pub enum ForwardedNode {
    /// The connection's own value.
    Connection,
    /// What an expression yields.
    Expression(ballast_expr::Expr),
}

/// Error pages and other responses that the configuration replaced.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ErrorPages {
    pages: Vec<(u16, ErrorPage)>,
}

impl ErrorPages {
    /// Sets the page of a status; the last one set wins.
    pub fn set(&mut self, status: u16, page: ErrorPage) {
        match self.pages.iter_mut().find(|(known, _)| *known == status) {
            Some((_, old)) => *old = page,
            None => self.pages.push((status, page)),
        }
    }

    /// Removes the page of a status.
    pub fn remove(&mut self, status: u16) {
        self.pages.retain(|(known, _)| *known != status);
    }

    /// The page of a status, when the configuration set one.
    pub fn page(&self, status: u16) -> Option<&ErrorPage> {
        self.pages
            .iter()
            .find(|(known, _)| *known == status)
            .map(|(_, page)| page)
    }

    /// All pages that were set, in the order in which they were first set.
    pub fn iter(&self) -> impl Iterator<Item = (u16, &ErrorPage)> {
        self.pages.iter().map(|(status, page)| (*status, page))
    }
}

/// One replaced response.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum ErrorPage {
    /// `errorfile`: the file's bytes, sent unchanged; if the file is empty (like `/dev/null`),
    /// nothing is sent and the connection is closed.
    Raw {
        /// Where the bytes came from.
        file: String,
        /// Head and body.
        bytes: Vec<u8>,
    },
    /// `errorloc`, `errorloc302`, `errorloc303`: a redirect.
    Location {
        /// 302 or 303.
        status: u16,
        /// The `Location:` value.
        location: String,
    },
    /// `http-error` with a log format: the page is made by the rule of this number among
    /// [`RuleSets::error_replies`] of the proxy.
    Reply(usize),
}

/// TCP keep-alive of one side (`option tcpka`, `clitcpka`, `srvtcpka` and their parameters).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Keepalive {
    /// Whether probes are sent at all.
    pub enabled: bool,
    /// `*tcpka-idle`: idle time before the first probe; the system's default when `None`.
    pub idle: Option<Duration>,
    /// `*tcpka-intvl`: time between probes; the system's default when `None`.
    pub interval: Option<Duration>,
    /// `*tcpka-cnt`: lost probes before the connection is closed.
    pub probe_count: Option<u32>,
}
