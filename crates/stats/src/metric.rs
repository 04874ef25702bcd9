//! One metric: a row of a table with all its sides.

use crate::info_view::InfoView;
use crate::row::{BackendRow, FrontendRow, ListenerRow, Row, ServerRow};
use crate::value::{MetricValue, Tags};

/// A metric of proxies, listeners and servers: one column of `show stat`.
#[derive(Clone, Copy, Debug)]
pub struct Metric {
    /// Name of the column.
    pub name: &'static str,
    /// What it means.
    pub help: &'static str,
    /// What kind of number it is.
    pub tags: Tags,
    /// The same, on BACKEND rows.
    pub backend_tags: Tags,
    frontend: Option<fn(&FrontendRow) -> MetricValue<'_>>,
    listener: Option<fn(&ListenerRow) -> MetricValue<'_>>,
    server: Option<fn(&ServerRow) -> MetricValue<'_>>,
    backend: Option<fn(&BackendRow) -> MetricValue<'_>>,
}

impl Metric {
    /// A metric that no kind of row has yet.
    pub(crate) const fn new(name: &'static str, help: &'static str, tags: Tags) -> Self {
        Self {
            name,
            help,
            tags,
            backend_tags: tags,
            frontend: None,
            listener: None,
            server: None,
            backend: None,
        }
    }

    /// On BACKEND rows it is of another kind.
    pub(crate) const fn on_backends(mut self, tags: Tags) -> Self {
        self.backend_tags = tags;
        self
    }

    /// How a FRONTEND row reads it.
    pub(crate) const fn frontend(mut self, read: fn(&FrontendRow) -> MetricValue<'_>) -> Self {
        self.frontend = Some(read);
        self
    }

    /// How a listener's row reads it.
    pub(crate) const fn listener(mut self, read: fn(&ListenerRow) -> MetricValue<'_>) -> Self {
        self.listener = Some(read);
        self
    }

    /// How a server's row reads it.
    pub(crate) const fn server(mut self, read: fn(&ServerRow) -> MetricValue<'_>) -> Self {
        self.server = Some(read);
        self
    }

    /// How a BACKEND row reads it.
    pub(crate) const fn backend(mut self, read: fn(&BackendRow) -> MetricValue<'_>) -> Self {
        self.backend = Some(read);
        self
    }

    /// Its value on a row.
    pub fn read<'r>(&self, row: &'r Row) -> MetricValue<'r> {
        fn with<'r, R>(read: Option<fn(&R) -> MetricValue<'_>>, row: &'r R) -> MetricValue<'r> {
            read.map_or(MetricValue::Empty, |read| read(row))
        }
        match row {
            Row::Frontend(row) => with(self.frontend, row),
            Row::Listener(row) => with(self.listener, row),
            Row::Server(row) => with(self.server, row),
            Row::Backend(row) => with(self.backend, row),
        }
    }

    /// Whether rows of a type have it: the bit of [`Filter::types`](crate::Filter::types).
    pub(crate) const fn is_of_type(&self, bit: u32) -> bool {
        match bit {
            1 => self.frontend.is_some(),
            2 => self.backend.is_some(),
            4 => self.server.is_some(),
            _ => self.listener.is_some(),
        }
    }

    /// What kind of number it is on a row.
    pub fn tags_on(&self, row: &Row) -> Tags {
        match row {
            Row::Backend(_) => self.backend_tags,
            _ => self.tags,
        }
    }
}

/// A metric of the process: one line of `show info`.
#[derive(Clone, Copy, Debug)]
pub struct InfoMetric {
    /// Name of the line.
    pub name: &'static str,
    /// What it means.
    pub help: &'static str,
    /// What kind of value it is.
    pub tags: Tags,
    pub(crate) read: fn(&InfoView) -> MetricValue<'_>,
}
