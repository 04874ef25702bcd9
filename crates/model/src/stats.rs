//! The statistics page (`stats ...` in proxies).

use std::time::Duration;

use ballast_expr::Condition;

/// Where the page is when no `stats uri` says so.
pub const STATS_URI: &str = "/haproxy?stats";

/// What the page calls itself when no `stats realm` says so.
pub const STATS_REALM: &str = "HAProxy Statistics";

/// The statistics page of a proxy (configuration manual, "stats enable" and its siblings). Any
/// of these words gives a proxy a page of its own.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StatsPage {
    /// `stats uri`: every request whose target begins so is for the page; [`STATS_URI`].
    pub uri: Option<String>,
    /// `stats auth`: who may see it, as `user:password`; everybody when it is empty.
    pub credentials: Vec<String>,
    /// `stats realm`; [`STATS_REALM`].
    pub realm: Option<String>,
    /// `stats refresh`: how often browsers load it again; never when `None`.
    pub refresh: Option<Duration>,
    /// `stats scope`: the proxies it shows, `.` for the proxy itself; all when it is empty.
    pub scope: Vec<String>,
    /// `stats hide-version`.
    pub hide_version: bool,
    /// `stats show-node`: the machine's name is shown, this one when it is not empty.
    pub node: Option<String>,
    /// `stats show-desc`: a description is shown, that of the global section when it is empty.
    pub description: Option<String>,
    /// `stats show-legends`.
    pub legends: bool,
    /// `stats show-modules`.
    pub modules: bool,
    /// `stats http-request`, in order. Not together with [`Self::credentials`].
    pub rules: Vec<StatsRule>,
    /// `stats admin`: servers may be changed when one of these holds; `None` always holds.
    pub admin: Vec<Option<Condition>>,
}

impl StatsPage {
    /// What the targets of requests for the page begin with.
    pub fn prefix(&self) -> &str {
        self.uri.as_deref().unwrap_or(STATS_URI)
    }

    /// What a client is asked a name and a password for.
    pub fn realm(&self) -> &str {
        self.realm.as_deref().unwrap_or(STATS_REALM)
    }
}

/// One `stats http-request` line.
#[derive(Clone, Debug, PartialEq)]
pub struct StatsRule {
    /// What it does.
    pub access: StatsAccess,
    /// When; always if `None`.
    pub condition: Option<Condition>,
}

/// What a `stats http-request` line does.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum StatsAccess {
    /// `allow`: the page is shown.
    Allow,
    /// `auth`: a name and a password are asked for, for this realm.
    Auth(Option<String>),
    /// `deny`.
    Deny,
}
