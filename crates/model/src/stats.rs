//! The statistics page (`stats ...` in proxies).

use std::time::Duration;

use ballast_expr::Condition;

/// The URI of the page when `stats uri` is not set.
pub const STATS_URI: &str = "/haproxy?stats";

/// The realm of the page when `stats realm` is not set.
pub const STATS_REALM: &str = "HAProxy Statistics";

/// The statistics page of a proxy (configuration manual, "stats enable" and its siblings). Any of
/// these keywords gives a proxy a page of its own.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StatsPage {
    /// `stats uri`: requests whose target begins with this are for the page; [`STATS_URI`] by
    /// default.
    pub uri: Option<String>,
    /// `stats auth`: who may see it, as `user:password`; everybody when it is empty.
    pub credentials: Vec<String>,
    /// `stats realm`; [`STATS_REALM`].
    pub realm: Option<String>,
    /// `stats refresh`: the reload interval of browsers; never when `None`.
    pub refresh: Option<Duration>,
    /// `stats scope`: the proxies it shows, `.` for the proxy itself; all when it is empty.
    pub scope: Vec<String>,
    /// `stats hide-version`.
    pub hide_version: bool,
    /// `stats show-node`: the machine's name is shown, or this one when it is not empty.
    pub node: Option<String>,
    /// `stats show-desc`: this description is shown, or that of the global section when it is
    /// empty.
    pub description: Option<String>,
    /// `stats show-legends`.
    pub legends: bool,
    /// `stats show-modules`.
    pub modules: bool,
    /// `stats http-request`, in order. Not together with [`Self::credentials`].
    pub rules: Vec<StatsRule>,
    /// `stats admin`: servers may be changed when one of these conditions holds; `None` always
    /// holds.
    pub admin: Vec<Option<Condition>>,
}

impl StatsPage {
    /// The prefix of the page's URI.
    pub fn prefix(&self) -> &str {
        self.uri.as_deref().unwrap_or(STATS_URI)
    }

    /// The realm of the page.
    pub fn realm(&self) -> &str {
        self.realm.as_deref().unwrap_or(STATS_REALM)
    }
}

/// One `stats http-request` line.
#[derive(Clone, Debug, PartialEq)]
pub struct StatsRule {
    /// Its action.
    pub access: StatsAccess,
    /// When; always if `None`.
    pub condition: Option<Condition>,
}

/// The action of a `stats http-request` line.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum StatsAccess {
    /// `allow`: the page is shown.
    Allow,
    /// `auth`: asks for a name and a password, with this realm.
    Auth(Option<String>),
    /// `deny`.
    Deny,
}
