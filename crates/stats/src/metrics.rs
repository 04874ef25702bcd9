//! The metrics exporter: Prometheus' text format or its protocol buffers, made piece by piece.
//!
//! Both formats have all lines of one metric together, and memory stays bounded however many servers
//! there are: so the rows are made and walked once for each metric. A scrape pays for that; an
//! exchange pays only for the histogram of durations ([`ballast_engine::timings`]).

mod protobuf;
mod query;
mod tables;
mod writer;

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use ballast_model::{Mode, ProxyCommon};

use crate::columns::{columns, columns_fixed, counted};
use crate::filter::Filter;
use crate::host::StatsHost;
use crate::info_table::info_metrics;
use crate::info_view::{InfoView, ProcessLoad};
use crate::metric::Metric;
use crate::metrics_table::{MetricColumn, PROCESS, ValueFormat};
use crate::row::Row;
use crate::rows::StatisticsRows;
use crate::server_health::{ProbeResult, ServerHealth};
use crate::value::MetricValue;
use crate::web::WebAnswer;

use query::{MetricsQuery, Scope};
use writer::{Amount, FamilyKind, Label, Writer};

static BY_NAME: LazyLock<HashMap<&'static str, &'static Metric>> =
    LazyLock::new(|| counted().map(|metric| (metric.name, metric)).collect());

/// Classes of responses, with their columns.
const RESPONSES: [(&str, &str); 6] = [
    ("1xx", "hrsp_1xx"),
    ("2xx", "hrsp_2xx"),
    ("3xx", "hrsp_3xx"),
    ("4xx", "hrsp_4xx"),
    ("5xx", "hrsp_5xx"),
    ("other", "hrsp_other"),
];

/// States of a server; a frontend and a backend have the first two.
const STATES: [&str; 5] = ["DOWN", "UP", "MAINT", "DRAIN", "NOLB"];

/// Outcomes of a check.
const OUTCOMES: [&str; 16] = [
    "HANA", "SOCKERR", "L4OK", "L4TOUT", "L4CON", "L6OK", "L6TOUT", "L6RSP", "L7TOUT", "L7RSP",
    "L7OK", "L7OKC", "L7STS", "PROCERR", "PROCTOUT", "PROCOK",
];

/// Answers a scraper: what its target asks for, in the form its `Accept` field prefers.
pub fn metrics(host: Arc<dyn StatsHost>, target: &[u8], accept: &[u8]) -> WebAnswer {
    let Some(query) = MetricsQuery::read(target) else {
        return WebAnswer {
            status: 400,
            fields: Vec::new(),
            pieces: None,
        };
    };
    let form = query::form(accept);
    let mut export = Export {
        steps: steps(&query).into_iter(),
        host,
        query,
        under_way: None,
        writer: Writer::new(form),
    };
    WebAnswer {
        status: 200,
        fields: vec![
            ("cache-control", "no-cache".to_owned()),
            ("content-type", form.content_type().to_owned()),
        ],
        pieces: Some(Box::new(move |into| export.write_next(into))),
    }
}

/// One thing after the other.
#[derive(Clone, Copy, Debug)]
enum Step {
    Process,
    /// A metric of a scope; for responses, those of one class.
    Metric(Scope, &'static MetricColumn, usize),
    /// A column of a protocol, in a scope.
    Extra(Scope, &'static Metric),
    Durations,
    Tables,
}

fn steps(query: &MetricsQuery) -> Vec<Step> {
    let mut steps = Vec::new();
    for scope in Scope::ALL {
        if !query.scopes.contains(&scope) {
            continue;
        }
        if scope == Scope::Process {
            steps.push(Step::Process);
        }
        if scope == Scope::StickTable {
            steps.push(Step::Tables);
        }
        for metric in scope.table() {
            let turns = if metric.format == ValueFormat::Responses {
                RESPONSES.len()
            } else {
                1
            };
            steps.extend((0..turns).map(|turn| Step::Metric(scope, metric, turn)));
        }
        if query.extra && scope.prefix().1 != 0 {
            let (_, bit) = scope.prefix();
            let of_protocols = columns().skip(columns_fixed());
            let those = of_protocols.filter(|column| column.is_of_type(bit));
            steps.extend(those.map(|column| Step::Extra(scope, column)));
        }
        if scope == Scope::Backend {
            steps.push(Step::Durations);
        }
    }
    steps
}

/// An export under way.
struct Export {
    steps: std::vec::IntoIter<Step>,
    host: Arc<dyn StatsHost>,
    query: MetricsQuery,
    under_way: Option<(Step, StatisticsRows)>,
    writer: Writer,
}

impl Export {
    fn write_next(&mut self, into: &mut Vec<u8>) -> bool {
        if let Some((step, rows)) = &mut self.under_way {
            match rows.next() {
                Some(row) => {
                    write_samples(*step, &row, self.query.describes, &mut self.writer, into)
                }
                None => self.under_way = None,
            }
            return true;
        }
        let Some(step) = self.steps.next() else {
            self.writer.end(into);
            return false;
        };
        let Some(bit) = self.begin(step, into) else {
            return true;
        };
        let filter = Filter {
            types: Some(bit),
            no_maint: self.query.no_maint,
            ..Filter::default()
        };
        let rows = StatisticsRows::new(Arc::clone(&self.host), filter);
        self.under_way = Some((step, rows));
        true
    }

    /// Begins a step: the kind of rows it shows, if the query wants it.
    fn begin(&mut self, step: Step, into: &mut Vec<u8>) -> Option<u32> {
        let wants = |name: &str| self.query.wants(name).then_some(());
        match step {
            Step::Process => {
                process(&*self.host, &self.query, &mut self.writer, into);
                None
            }
            Step::Tables => {
                tables::write(&*self.host, &self.query, &mut self.writer, into);
                None
            }
            Step::Metric(scope, metric, turn) => {
                let (prefix, bit) = scope.prefix();
                let name = format!("{prefix}{}", metric.name);
                wants(&name)?;
                if turn == 0 {
                    let help = BY_NAME.get(metric.column).map_or("", |metric| metric.help);
                    let help = in_the_unit_of(metric.format, help);
                    let kind = FamilyKind::of(metric.counts);
                    self.writer.family(&name, &help, kind, into);
                }
                Some(bit)
            }
            Step::Extra(scope, column) => {
                let (prefix, bit) = scope.prefix();
                let name = format!("{prefix}{}", column.name);
                wants(&name)?;
                // HAProxy 3.2 calls all of them counters, also those that fall.
                self.writer
                    .family(&name, column.help, FamilyKind::Counter, into);
                Some(bit)
            }
            Step::Durations => {
                wants(DURATIONS)?;
                let help = "How long exchanges took that a server answered, in seconds";
                self.writer
                    .family(DURATIONS, help, FamilyKind::Histogram, into);
                Some(2)
            }
        }
    }
}

/// The help of a column, where metrics tell seconds and the column milliseconds.
fn in_the_unit_of(format: ValueFormat, help: &str) -> Cow<'_, str> {
    match format {
        ValueFormat::Milliseconds | ValueFormat::KnownMilliseconds => help
            .replace("milliseconds", "seconds")
            .replace("Milliseconds", "Seconds")
            .into(),
        _ => help.into(),
    }
}

const DURATIONS: &str = "ballast_backend_request_duration_seconds";
const KEY_QUEUE_FULL: &str = "ballast_process_ssl_key_queue_full_total";
const REGEX_EXHAUSTED: &str = "ballast_process_regex_exhausted_total";

fn process(host: &dyn StatsHost, query: &MetricsQuery, writer: &mut Writer, into: &mut Vec<u8>) {
    let view = InfoView::of(host, ProcessLoad::default());
    for (name, line, counts) in PROCESS {
        let full = format!("haproxy_process_{name}");
        let metric = info_metrics().iter().find(|metric| metric.name == *line);
        let Some(metric) = metric.filter(|_| query.wants(&full)) else {
            continue;
        };
        let value = (metric.read)(&view);
        if value == MetricValue::Empty && *name == "description" {
            continue;
        }
        writer.family(&full, metric.help, FamilyKind::of(*counts), into);
        let mut labels: Vec<Label<'_>> = Vec::new();
        if query.describes && !view.process_info.description.is_empty() {
            labels.push(("desc", Cow::Borrowed(&view.process_info.description)));
        }
        match value {
            MetricValue::Str(text) => {
                match *name {
                    "node" => labels.push(("node", text)),
                    // `desc-labels` has it there already.
                    "description" if !labels.is_empty() => {}
                    "description" => labels.push(("desc", text)),
                    _ => labels.push(("version", text)),
                }
                writer.sample(&labels, Amount::Unsigned(1), into);
            }
            value => writer.sample(&labels, amount(&value), into),
        }
    }
    let own: [(&str, &str, u64); 2] = [
        (
            REGEX_EXHAUSTED,
            "Searches that ended at tune.regex.max-steps: their regular expressions did not match",
            view.exhausted_searches,
        ),
        (
            KEY_QUEUE_FULL,
            "Handshakes that waited because the queue of tune.ssl.key-threads was full",
            view.tls.key_queue_full_total,
        ),
    ];
    for (name, help, value) in own {
        if query.wants(name) {
            writer.family(name, help, FamilyKind::Counter, into);
            writer.sample(&[], Amount::Unsigned(value), into);
        }
    }
}

/// What a step tells of a row.
fn write_samples(step: Step, row: &Row, describes: bool, writer: &mut Writer, into: &mut Vec<u8>) {
    let mut labels = labels(row);
    if describes && let Some(text) = &common(row).description {
        labels.push(("desc", Cow::Borrowed(text)));
    }
    match step {
        Step::Process | Step::Tables => {}
        Step::Durations => {
            if let Row::Backend(backend) = row {
                let sums = backend.backend.state.durations.read();
                writer.histogram(&labels, &sums, into);
            }
        }
        Step::Extra(_, column) => {
            let value = column.read(row);
            if value != MetricValue::Empty {
                labels.push(("mod", module_of(column.name).into()));
                writer.sample(&labels, amount(&value), into);
            }
        }
        Step::Metric(_, metric, turn) => one(metric, turn, row, labels, writer, into),
    }
}

/// The part of the program that counts in a column of a protocol.
fn module_of(column: &str) -> &str {
    match column.split('_').next().unwrap_or_default() {
        "pack" | "qpack" => "h3",
        module => module,
    }
}

fn common(row: &Row) -> &ProxyCommon {
    match row {
        Row::Frontend(row) => &row.frontend.model.common,
        Row::Backend(row) => &row.backend.model.common,
        Row::Listener(row) => &row.frontend.model.common,
        Row::Server(row) => &row.backend.model.common,
    }
}

/// The labels that say which row a number is of.
fn labels(row: &Row) -> Vec<Label<'_>> {
    // Room for the one that a metric adds, and for a description.
    let mut labels = Vec::with_capacity(4);
    labels.push(("proxy", Cow::Borrowed(common(row).name.as_str())));
    match row {
        Row::Frontend(_) | Row::Backend(_) => {}
        Row::Listener(row) => labels.push(("listener", Cow::Borrowed(row.name.as_str()))),
        Row::Server(row) => labels.push(("server", Cow::Borrowed(row.server.name()))),
    }
    labels
}

fn column<'r>(name: &str, row: &'r Row) -> MetricValue<'r> {
    BY_NAME
        .get(name)
        .map_or(MetricValue::Empty, |metric| metric.read(row))
}

/// The sample or samples of a metric for a row.
fn one(
    metric: &MetricColumn,
    turn: usize,
    row: &Row,
    mut labels: Vec<Label<'_>>,
    writer: &mut Writer,
    into: &mut Vec<u8>,
) {
    let value = column(metric.column, row);
    let of_servers = matches!(
        metric.format,
        ValueFormat::ServersByStatus | ValueFormat::ServersByCheck
    );
    if of_servers && matches!(row, Row::Backend(row) if row.backend.servers.is_empty()) {
        return;
    }
    match metric.format {
        ValueFormat::Http if common(row).mode != Mode::Http => {}
        ValueFormat::KnownMilliseconds if value == MetricValue::Empty => {}
        ValueFormat::Number | ValueFormat::Http => writer.sample(&labels, amount(&value), into),
        ValueFormat::CheckCode | ValueFormat::AgentCode => {
            if probe(metric.format, row).is_some() {
                let amount = match amount(&value) {
                    Amount::Unknown => Amount::Unsigned(0),
                    known => known,
                };
                writer.sample(&labels, amount, into);
            }
        }
        ValueFormat::Milliseconds | ValueFormat::KnownMilliseconds => {
            let ms = match value {
                MetricValue::U32(ms) => u64::from(ms),
                MetricValue::U64(ms) => ms,
                _ => 0,
            };
            writer.sample(&labels, Amount::Milliseconds(ms), into);
        }
        ValueFormat::Responses => {
            let (class, column_name) = RESPONSES[turn.min(RESPONSES.len() - 1)];
            let value = column(column_name, row);
            if value != MetricValue::Empty {
                labels.push(("code", class.into()));
                writer.sample(&labels, amount(&value), into);
            }
        }
        ValueFormat::Status => {
            let states: &[&'static str] = match row {
                Row::Frontend(_) | Row::Backend(_) => &STATES[..2],
                Row::Listener(_) => &["WAITING", "OPEN", "FULL"],
                Row::Server(_) => &STATES,
            };
            let is = status(row, &value);
            each(labels, states, |state| u32::from(state == is), writer, into);
        }
        ValueFormat::CheckStatus | ValueFormat::AgentStatus => {
            if let Some(probe) = probe(metric.format, row) {
                let is = |word: &str| u32::from(word == probe.word);
                each(labels, &OUTCOMES, is, writer, into);
            }
        }
        ValueFormat::ServersByStatus => {
            let count = |state: &str| servers(row, |health| server_state(&health.status) == state);
            each(labels, &STATES, count, writer, into);
        }
        ValueFormat::ServersByCheck => {
            let is_so = |health: &ServerHealth, word: &str| {
                health
                    .check
                    .as_ref()
                    .is_some_and(|check| check.word == word)
            };
            let count = |word: &str| servers(row, |health| is_so(health, word));
            each(labels, &OUTCOMES, count, writer, into);
        }
    }
}

/// The check of a server that a metric tells of, or its agent.
fn probe(format: ValueFormat, row: &Row) -> Option<&ProbeResult> {
    let Row::Server(row) = row else {
        return None;
    };
    match format {
        ValueFormat::AgentStatus | ValueFormat::AgentCode => row.health.agent.as_ref(),
        _ => row.health.check.as_ref(),
    }
}

/// A sample for each of some states.
fn each(
    mut labels: Vec<Label<'_>>,
    states: &[&'static str],
    count: impl Fn(&str) -> u32,
    writer: &mut Writer,
    into: &mut Vec<u8>,
) {
    for state in states {
        labels.push(("state", (*state).into()));
        writer.sample(&labels, Amount::Unsigned(count(state).into()), into);
        labels.pop();
    }
}

/// How many servers of a backend's row are so.
fn servers(row: &Row, is: impl Fn(&ServerHealth) -> bool) -> u32 {
    match row {
        Row::Backend(row) => row.count_servers(is),
        _ => 0,
    }
}

fn status(row: &Row, value: &MetricValue<'_>) -> &'static str {
    let MetricValue::Str(text) = value else {
        return "";
    };
    match row {
        Row::Frontend(_) => match &**text {
            "STOP" => "DOWN",
            _ => "UP",
        },
        Row::Listener(_) => match &**text {
            "OPEN" => "OPEN",
            "FULL" => "FULL",
            _ => "WAITING",
        },
        Row::Backend(_) | Row::Server(_) => server_state(text),
    }
}

/// The state that a status text tells.
fn server_state(text: &str) -> &'static str {
    let found = STATES.iter().find(|state| text.starts_with(**state));
    found.copied().unwrap_or("UP")
}

fn amount(value: &MetricValue<'_>) -> Amount {
    match value {
        // Lines with fractions are those of `show info float` only.
        MetricValue::Empty | MetricValue::Float(_) | MetricValue::Str(_) => Amount::Unknown,
        MetricValue::S32(number) => Amount::Signed(*number),
        MetricValue::U32(number) => Amount::Unsigned(u64::from(*number)),
        MetricValue::U64(number) => Amount::Unsigned(*number),
    }
}

#[cfg(test)]
mod tests;
