//! `stats-file`: what proxies and servers counted in another process, taken over at the start.
//!
//! A file is what `dump stats-file` answers. Rows are found by `guid`. Counts are taken over, not the
//! rates and times that stand beside them; columns of what is not counted here are passed over.
//!
//! Source: HAProxy management manual, section 9.5 "Stats-file"; format and warnings as seen of HAProxy 3.2.

use std::collections::HashMap;

use ballast_engine::Generation;
use ballast_engine::counters::Counter;
use ballast_health::HealthCounters;
use ballast_model::Config;

use crate::state_files::ReadContent;

/// The counts that a file holds.
#[derive(Debug, Default)]
pub struct SavedCounts {
    rows: Vec<SavedRow>,
}

#[derive(Debug)]
struct SavedRow {
    is_of_frontend: bool,
    guid: String,
    /// Columns and their numbers.
    counts: Vec<(String, u64)>,
}

/// A file with a head that is none, or with rows before the first. What stands before was read.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct InvalidStatsFile;

/// The counters of columns of frontends.
const OF_FRONTENDS: &[(&str, &str)] = &[
    ("stot", "sessions"),
    ("bin", "bytes_in"),
    ("bout", "bytes_out"),
    ("dreq", "denied_requests"),
    ("dresp", "denied_responses"),
    ("ereq", "failed_requests"),
    ("hrsp_1xx", "responses_1xx"),
    ("hrsp_2xx", "responses_2xx"),
    ("hrsp_3xx", "responses_3xx"),
    ("hrsp_4xx", "responses_4xx"),
    ("hrsp_5xx", "responses_5xx"),
    ("hrsp_other", "responses_other"),
    // Not `req_tot`: of frontends HAProxy 3.2 has the highest number of sessions there.
    ("req_other", "requests"),
    ("h1req", "requests"),
    ("h2req", "requests"),
    ("h3req", "requests"),
    ("conn_tot", "connections"),
    ("intercepted", "intercepted"),
    ("dcon", "denied_connections"),
    ("dses", "denied_sessions"),
    ("wrew", "failed_rewrites"),
    ("eint", "internal_errors"),
];

/// The counters of columns of backends and servers.
const OF_BACKENDS: &[(&str, &str)] = &[
    ("stot", "sessions"),
    ("bin", "bytes_in"),
    ("bout", "bytes_out"),
    ("dreq", "denied_requests"),
    ("dresp", "denied_responses"),
    ("econ", "failed_connections"),
    ("eresp", "failed_responses"),
    ("wretr", "retries"),
    ("wredis", "redispatches"),
    ("lbtot", "chosen"),
    ("hrsp_1xx", "responses_1xx"),
    ("hrsp_2xx", "responses_2xx"),
    ("hrsp_3xx", "responses_3xx"),
    ("hrsp_4xx", "responses_4xx"),
    ("hrsp_5xx", "responses_5xx"),
    ("hrsp_other", "responses_other"),
    ("req_tot", "requests"),
    ("cli_abrt", "client_aborts"),
    ("srv_abrt", "server_aborts"),
    ("wrew", "failed_rewrites"),
    ("connect", "connects"),
    ("reuse", "reuses"),
    ("eint", "internal_errors"),
];

/// The counters of columns about connections of HTTP/2.
const OF_H2: &[(&str, &str)] = &[("h2sess", "connections"), ("h2req", "streams")];

impl SavedCounts {
    /// Those of the file that a configuration names, and what is wrong with it, if anything is.
    pub fn of(config: &Config, content: &ReadContent<'_>) -> (Self, Option<String>) {
        let Some(path) = &config.global.stats_file else {
            return (Self::default(), None);
        };
        let Ok(bytes) = content(path) else {
            let wrong = format!("Can't load stats-file '{path}': cannot open file.");
            return (Self::default(), Some(wrong));
        };
        let (counts, outcome) = Self::read(&String::from_utf8_lossy(&bytes));
        let wrong = |_| format!("Invalid stats-file format in file '{path}'.");
        (counts, outcome.err().map(wrong))
    }

    /// Reads a file, as far as it is valid.
    pub fn read(text: &str) -> (Self, Result<(), InvalidStatsFile>) {
        let mut saved = Self::default();
        let read = saved.read_rows(text);
        (saved, read)
    }

    fn read_rows(&mut self, text: &str) -> Result<(), InvalidStatsFile> {
        let mut head: Option<Head<'_>> = None;
        for line in text.lines().filter(|line| !line.is_empty()) {
            if let Some(rest) = line.strip_prefix('#') {
                head = Some(Head::read(rest)?);
                continue;
            }
            let head = head.as_ref().ok_or(InvalidStatsFile)?;
            let Some(is_of_frontend) = head.is_of_frontend else {
                continue;
            };
            let mut cells = line.split(',');
            let guid = cells.next().unwrap_or_default().to_owned();
            // Of a row that is shorter than its head, or longer, what both have counts.
            let counts = head
                .columns
                .iter()
                .zip(cells)
                .filter_map(|(column, value)| Some(((*column).to_owned(), value.parse().ok()?)));
            self.rows.push(SavedRow {
                is_of_frontend,
                guid,
                counts: counts.collect(),
            });
        }
        Ok(())
    }

    /// Adds them to what a generation counts. Nothing may count yet.
    pub fn restore(&self, generation: &Generation) {
        let of = |is_of_frontend| {
            let rows = self.rows.iter();
            let rows = rows.filter(move |row| row.is_of_frontend == is_of_frontend);
            rows.map(|row| (row.guid.as_str(), row)).collect()
        };
        let (fronts, backs): (HashMap<&str, &SavedRow>, HashMap<&str, &SavedRow>) =
            (of(true), of(false));
        for frontend in &generation.frontends {
            if let Some(row) = row_of(&fronts, &frontend.model.common.guid) {
                let counters = frontend.state.counters.of(0);
                row.add(OF_FRONTENDS, |name| counters.find(name));
                let counters = frontend.state.h2.counters.of(0);
                row.add(OF_H2, |name| counters.find(name));
            }
        }
        for backend in &generation.backends {
            if let Some(row) = row_of(&backs, &backend.model.common.guid) {
                let counters = backend.state.counters.of(0);
                row.add(OF_BACKENDS, |name| counters.find(name));
            }
            for server in &backend.servers {
                if let Some(row) = row_of(&backs, &server.model.guid) {
                    let counters = server.state.counters.of(0);
                    row.add(OF_BACKENDS, |name| counters.find(name));
                    server.state.health().add_counts(&HealthCounters {
                        down_transitions: row.count("chkdown"),
                        failed_checks: row.count("chkfail"),
                        failed_observations: row.count("hanafail"),
                        ..HealthCounters::default()
                    });
                }
            }
        }
    }
}

/// The row of a proxy or a server. Where a file has several, the last counts.
fn row_of<'r>(rows: &HashMap<&str, &'r SavedRow>, guid: &Option<String>) -> Option<&'r SavedRow> {
    rows.get(guid.as_deref()?).copied()
}

impl SavedRow {
    /// The number of a column; 0 where there is none.
    fn count(&self, column: &str) -> u64 {
        let found = self.counts.iter().find(|(known, _)| known == column);
        found.map_or(0, |(_, count)| *count)
    }

    fn add<'c>(&self, names: &[(&str, &str)], counter: impl Fn(&str) -> Option<&'c Counter>) {
        for (column, count) in &self.counts {
            let name = names.iter().find(|(known, _)| known == column);
            if let Some(counter) = name.and_then(|(_, name)| counter(name)) {
                counter.add(*count);
            }
        }
    }
}

/// The head of a table.
struct Head<'t> {
    /// Whether it is of frontends, or of backends and servers; `None` for a table that is passed over.
    is_of_frontend: Option<bool>,
    /// The columns behind the first one, which is the guid.
    columns: Vec<&'t str>,
}

impl<'t> Head<'t> {
    /// Reads what follows the `#`. A comma ends each column, the last one too.
    fn read(text: &'t str) -> Result<Self, InvalidStatsFile> {
        let (kind, columns) = text.split_once(' ').ok_or(InvalidStatsFile)?;
        let columns = columns.strip_suffix(',').ok_or(InvalidStatsFile)?;
        let mut columns = columns.split(',');
        if columns.next() != Some("guid") {
            return Err(InvalidStatsFile);
        }
        Ok(Self {
            is_of_frontend: match kind {
                "fe" => Some(true),
                "be" => Some(false),
                _ => None,
            },
            columns: columns.collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_read_until_a_head_is_none() {
        let read = |text| {
            let (saved, outcome) = SavedCounts::read(text);
            let counts = saved
                .rows
                .iter()
                .map(|row| (row.guid.as_str(), row.counts.len()));
            let text: Vec<String> = counts
                .map(|(guid, count)| format!("{guid}{count}"))
                .collect();
            (text.join(" "), outcome)
        };
        let whole =
            "#fe guid,stot,odd,\na,1,2,\nb,1\n\n#be guid,stot,\nc,3\nd,x\ne,1,2\n#xx guid,\nf,1\n";
        assert_eq!(read(whole), ("a2 b1 c1 d0 e1".to_owned(), Ok(())));
        for broken in [
            "a,1\n",
            "#fe guid,stot\na,1,\n",
            "#fe stot,guid,\n1,a,\n",
            "#fe\n",
        ] {
            assert_eq!(
                read(broken),
                (String::new(), Err(InvalidStatsFile)),
                "{broken}"
            );
        }
        let later = "#fe guid,stot,\na,1\n#be guid\nb,1\n";
        assert_eq!(read(later), ("a1".to_owned(), Err(InvalidStatsFile)));
    }
}
