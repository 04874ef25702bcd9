//! The answer to `dump stats-file`: what is counted of proxies and servers that have a `guid`, in the
//! format that `stats-file` reads.
//!
//! Source: HAProxy management manual, section 9.5 "Stats-file"; columns and format as HAProxy 3.2 has them.

use std::fmt::Write as _;
use std::sync::Arc;

use crate::columns::columns;
use crate::filter::Filter;
use crate::host::StatsHost;
use crate::row::Row;
use crate::rows::StatisticsRows;
use crate::value::MetricValue;

/// The columns of frontends, behind their names.
const OF_FRONTENDS: &[&str] = &[
    "stot",
    "bin",
    "bout",
    "dreq",
    "dresp",
    "ereq",
    "rate",
    "hrsp_1xx",
    "hrsp_2xx",
    "hrsp_3xx",
    "hrsp_4xx",
    "hrsp_5xx",
    "hrsp_other",
    "req_rate",
    "req_tot",
    "comp_in",
    "comp_out",
    "comp_byp",
    "comp_rsp",
    "conn_rate",
    "conn_tot",
    "intercepted",
    "dcon",
    "dses",
    "wrew",
    "cache_lookups",
    "cache_hits",
    "eint",
    "h1sess",
    "h2sess",
    "h3sess",
    "req_other",
    "h1req",
    "h2req",
    "h3req",
];

/// The columns of backends and servers.
const OF_BACKENDS: &[&str] = &[
    "stot",
    "bin",
    "bout",
    "dreq",
    "dresp",
    "econ",
    "eresp",
    "wretr",
    "wredis",
    "chkfail",
    "chkdown",
    "lastchg",
    "lbtot",
    "rate",
    "hrsp_1xx",
    "hrsp_2xx",
    "hrsp_3xx",
    "hrsp_4xx",
    "hrsp_5xx",
    "hrsp_other",
    "hanafail",
    "req_tot",
    "cli_abrt",
    "srv_abrt",
    "comp_in",
    "comp_out",
    "comp_byp",
    "comp_rsp",
    "lastsess",
    "wrew",
    "connect",
    "reuse",
    "cache_lookups",
    "cache_hits",
    "eint",
];

/// The whole file.
pub fn stats_file(host: &Arc<dyn StatsHost>) -> String {
    let mut file = String::new();
    for (kind, names) in [("fe", OF_FRONTENDS), ("be", OF_BACKENDS)] {
        let _ = writeln!(file, "#{kind} guid,{},", names.join(","));
        for row in StatisticsRows::new(Arc::clone(host), Filter::default()) {
            let guid = match &row {
                Row::Frontend(row) if kind == "fe" => row.frontend.model.common.guid.as_ref(),
                Row::Server(row) if kind == "be" => row.server.model.guid.as_ref(),
                Row::Backend(row) if kind == "be" => row.backend.model.common.guid.as_ref(),
                _ => None,
            };
            if let Some(guid) = guid {
                write_row(guid, names, &row, &mut file);
            }
        }
        file.push('\n');
    }
    file
}

fn write_row(guid: &str, names: &[&str], row: &Row, file: &mut String) {
    file.push_str(guid);
    for name in names {
        let column = columns().find(|column| column.name == *name);
        let value = column.map_or(MetricValue::Empty, |column| column.read(row));
        let number = match value {
            MetricValue::U32(number) => u64::from(number),
            MetricValue::U64(number) => number,
            // There was no session yet.
            MetricValue::S32(number) => u64::try_from(number).unwrap_or(0),
            MetricValue::Empty | MetricValue::Float(_) | MetricValue::Str(_) => 0,
        };
        let _ = write!(file, ",{number}");
    }
    file.push_str(",\n");
}
