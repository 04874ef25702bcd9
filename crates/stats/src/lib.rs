//! Statistics: what is counted, read once and written in every form.
//!
//! A metric is one row of a table: its name, what it means, what kind of number it is, and how
//! it is read from a frontend, a listener, a server or a backend. CSV, typed output and JSON are
//! loops over that table, so a metric added there appears everywhere.
//!
//! Reading takes no lock that a request could wait for and stops no worker: counters are added
//! up from every worker's copy as they stand. Rows are made one at a time, so that a hundred
//! thousand servers cost no more memory than one.

mod columns;
mod columns_of_protocols;
mod filter;
mod format;
mod host;
mod html;
mod html_rows;
mod info;
mod info_table;
mod info_view;
mod markup;
mod metric;
mod metrics;
mod metrics_table;
mod page_query;
mod page_view;
mod row;
mod rows;
mod schema;
mod server_health;
mod stats_file;
mod urlencoded;
mod value;
mod web;

pub use columns::columns;
pub use filter::Filter;
pub use format::{Stat, StatForm, csv_header, escape_json};
pub use host::{ListenerNumbers, PipeNumbers, ProcessInfo, ServerAction, StatsHost};
pub use info::{InfoForm, info};
pub use info_table::info_metrics;
pub use info_view::ProcessLoad;
pub use metric::{InfoMetric, Metric};
pub use metrics::metrics;
pub use row::{BackendRow, FrontendRow, ListenerRow, Row, ServerRow};
pub use rows::StatisticsRows;
pub use schema::SCHEMA;
pub use server_health::{ProbeResult, ServerHealth};
pub use stats_file::stats_file;
pub use value::{MetricValue, Nature, Origin, Scope, Tags};
pub use web::{BodyPieces, PageRequest, WebAnswer, page};

#[cfg(test)]
mod sample;
#[cfg(test)]
mod tests;
