//! Row after row, in the order of the file.

use std::sync::Arc;

use ballast_engine::Generation;
use ballast_model::ProxyCommon;

use crate::filter::Filter;
use crate::host::StatsHost;
use crate::row::{BackendRow, FrontendRow, ListenerRow, ReadingTime, Row, ServerRow};

/// Rows of one generation, made one at a time. It holds the generation, so an answer that takes
/// long is about one configuration from its first line to its last.
pub struct StatisticsRows {
    host: Arc<dyn StatsHost>,
    generation: Arc<Generation>,
    filter: Filter,
    moment: ReadingTime,
    frontends: usize,
    backends: usize,
    next_row: NextRow,
}

/// What comes next of the proxy in hand.
#[derive(Clone, Copy, Debug)]
enum NextRow {
    /// The next proxy.
    Next,
    /// A frontend's bind.
    Bind(usize),
    /// A backend's server; past the last one, the backend itself.
    Server(usize),
}

impl StatisticsRows {
    /// The rows that a filter lets through, as they are from now on.
    pub fn new(host: Arc<dyn StatsHost>, filter: Filter) -> Self {
        let generation = host.generation();
        let moment = ReadingTime::of(host.registry().process());
        Self {
            host,
            generation,
            filter,
            moment,
            frontends: 0,
            backends: 0,
            next_row: NextRow::Next,
        }
    }

    /// Chooses the next proxy: the file's order is that of two lists put together.
    fn next_proxy(&mut self) -> Option<Option<Row>> {
        let frontend = self.generation.frontends.get(self.frontends);
        let backend = self.generation.backends.get(self.backends);
        let frontend_first = match (frontend, backend) {
            (None, None) => return None,
            (Some(_), None) => true,
            (None, Some(_)) => false,
            (Some(frontend), Some(backend)) => {
                is_before(&frontend.model.common, &backend.model.common)
            }
        };
        if !frontend_first {
            self.next_row = NextRow::Server(0);
            return Some(None);
        }
        let frontend = Arc::clone(&self.generation.frontends[self.frontends]);
        let common = &frontend.model.common;
        if common.disabled || !self.filter.wants_proxy(common.id, &common.name) {
            self.frontends += 1;
            return Some(None);
        }
        self.next_row = NextRow::Bind(0);
        let wanted = self.filter.wants_type(1);
        Some(wanted.then(|| Row::Frontend(FrontendRow::new(frontend, self.moment))))
    }

    fn next_bind(&mut self, index: usize) -> Option<Row> {
        let frontend = &self.generation.frontends[self.frontends];
        let shown = frontend.model.options.socket_stats && self.filter.wants_type(8);
        let Some(bind) = frontend.model.binds.get(index).filter(|_| shown) else {
            self.frontends += 1;
            self.next_row = NextRow::Next;
            return None;
        };
        self.next_row = NextRow::Bind(index + 1);
        if !self.filter.wants_id(bind.id) {
            return None;
        }
        let numbers = self.host.listener(frontend, bind);
        Some(Row::Listener(ListenerRow::new(
            Arc::clone(frontend),
            index,
            numbers,
            self.moment,
        )))
    }

    fn next_server(&mut self, index: usize) -> Option<Row> {
        let backend = &self.generation.backends[self.backends];
        let common = &backend.model.common;
        let shown = !common.disabled && self.filter.wants_proxy(common.id, &common.name);
        let servers = shown && self.filter.wants_type(4);
        if let Some(server) = backend.servers.get(index).filter(|_| servers) {
            self.next_row = NextRow::Server(index + 1);
            if !self.filter.wants_id(server.model.id) {
                return None;
            }
            let row = ServerRow::new(
                &self.generation,
                Arc::clone(backend),
                Arc::clone(server),
                self.moment,
            );
            let hidden = (self.filter.up && row.health.is_down)
                || (self.filter.no_maint && row.health.is_maint);
            return (!hidden).then_some(Row::Server(row));
        }
        let row = (shown && self.filter.wants_type(2)).then(|| {
            let row = BackendRow::new(&self.generation, Arc::clone(backend), self.moment);
            let leaves_out = self.filter.up || self.filter.no_maint;
            Row::Backend(if leaves_out {
                row.telling_of_servers()
            } else {
                row
            })
        });
        self.backends += 1;
        self.next_row = NextRow::Next;
        row
    }
}

impl Iterator for StatisticsRows {
    type Item = Row;

    fn next(&mut self) -> Option<Row> {
        loop {
            let row = match self.next_row {
                NextRow::Next => self.next_proxy()?,
                NextRow::Bind(index) => self.next_bind(index),
                NextRow::Server(index) => self.next_server(index),
            };
            if row.is_some() {
                return row;
            }
        }
    }
}

/// Whether a frontend's section stands before a backend's. Both halves of a `listen` share
/// their place, and the front half comes first.
fn is_before(frontend: &ProxyCommon, backend: &ProxyCommon) -> bool {
    if frontend.is_other_half_of(backend) {
        return true;
    }
    if frontend.origin.file == backend.origin.file && frontend.origin.line != backend.origin.line {
        return frontend.origin.line < backend.origin.line;
    }
    frontend.id <= backend.id
}
