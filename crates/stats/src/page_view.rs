//! What the statistics page says besides its rows.

use std::time::Duration;

use ballast_model::StatsPage;

use crate::host::{PipeNumbers, ProcessInfo, StatsHost};
use crate::markup::escaped;
use crate::page_query::PageQuery;
use crate::urlencoded::url_encoded;

/// What the page says besides the rows.
#[derive(Debug)]
pub(crate) struct PageView {
    pub(crate) page: StatsPage,
    pub(crate) query: PageQuery,
    /// Servers can be chosen and changed.
    pub(crate) may_admin: bool,
    pub(crate) process_info: ProcessInfo,
    pub(crate) pipes: PipeNumbers,
    pub(crate) uptime: Duration,
    pub(crate) connections: u32,
    pub(crate) connection_count_max: u32,
    pub(crate) connection_rate: u32,
    pub(crate) idle_percent: u32,
}

impl PageView {
    /// The page of a process as it is now.
    pub(crate) fn new(
        host: &dyn StatsHost,
        page: &StatsPage,
        query: PageQuery,
        may_admin: bool,
    ) -> Self {
        let process = host.registry().process();
        Self {
            page: page.clone(),
            query,
            may_admin,
            process_info: host.process_info().clone(),
            pipes: host.pipes(),
            uptime: process.started.elapsed(),
            connections: process.connections.current(),
            connection_count_max: process.connection_count_max(),
            connection_rate: process.connection_rate.per_second(process.now_ms()),
            idle_percent: host.idle_percent().min(100),
        }
    }

    /// A link to the page itself, with these words.
    pub(crate) fn link(&self, words: &str, up: bool, no_refresh: bool) -> String {
        let mut link = format!("{}{words}", self.page.prefix());
        if up {
            link.push_str(";up");
        }
        if no_refresh {
            link.push_str(";norefresh");
        }
        if !self.query.scope.is_empty() {
            link.push_str("?scope=");
            link.push_str(&url_encoded(&self.query.scope));
        }
        escaped(&link)
    }
}
