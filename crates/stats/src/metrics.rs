//! The metrics exporter: Prometheus text format, version 0.0.4, made piece by piece.
//!
//! The format wants all lines of one metric together, and memory is to stay bounded however
//! many servers there are: so the rows are walked once for each metric, and made anew. What
//! costs is on the side of who scrapes; nothing is added to what an exchange does but the
//! histogram of durations ([`ballast_engine::timings`]).

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::{Arc, LazyLock};

use crate::belief::Belief;
use crate::columns::columns;
use crate::filter::Filter;
use crate::format::plain;
use crate::info::{InfoView, Load};
use crate::info_table::info_metrics;
use crate::metric::Metric;
use crate::metrics_table::{BACKEND, Exported, FRONTEND, LISTENER, PROCESS, SERVER, Told};
use crate::row::Row;
use crate::rows::Rows;
use crate::surroundings::Surroundings;
use crate::value::Value;
use crate::web::{WebAnswer, decoded};

static BY_NAME: LazyLock<HashMap<&'static str, &'static Metric>> =
    LazyLock::new(|| columns().map(|metric| (metric.name, metric)).collect());

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

/// The parts of the export.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Scope {
    Process,
    Frontend,
    Listener,
    Backend,
    Server,
}

impl Scope {
    const ALL: [Self; 5] = [
        Self::Process,
        Self::Frontend,
        Self::Listener,
        Self::Backend,
        Self::Server,
    ];

    /// The words of `scope=`; those of parts that are not there ask for nothing.
    fn of_word(word: &str) -> Option<&'static [Self]> {
        Some(match word {
            "*" => &Self::ALL,
            "global" => &[Self::Process],
            "frontend" => &[Self::Frontend],
            "listener" => &[Self::Listener],
            "backend" => &[Self::Backend],
            "server" => &[Self::Server],
            "" | "sticktable" | "resolver" => &[],
            _ => return None,
        })
    }

    fn table(self) -> &'static [Exported] {
        match self {
            Self::Process => &[],
            Self::Frontend => FRONTEND,
            Self::Listener => LISTENER,
            Self::Backend => BACKEND,
            Self::Server => SERVER,
        }
    }

    /// What the names of its metrics begin with, and the bit of its rows.
    fn prefix(self) -> (&'static str, u32) {
        match self {
            Self::Process => ("haproxy_process_", 0),
            Self::Frontend => ("haproxy_frontend_", 1),
            Self::Listener => ("haproxy_listener_", 8),
            Self::Backend => ("haproxy_backend_", 2),
            Self::Server => ("haproxy_server_", 4),
        }
    }
}

/// What a scraper asks for.
#[derive(Clone, Debug, Default)]
struct Asked {
    scopes: Vec<Scope>,
    no_maint: bool,
    /// `metrics=`: only these; all when it is empty.
    wanted: Vec<String>,
    /// `metrics=-...`: not these.
    unwanted: Vec<String>,
}

impl Asked {
    /// Reads a query; `None` for one that names a scope nobody knows.
    fn read(target: &[u8]) -> Option<Self> {
        let mut asked = Self::default();
        let question = target.iter().position(|byte| *byte == b'?');
        let query = question.map_or(&[][..], |place| &target[place + 1..]);
        let mut scoped = false;
        for pair in query.split(|byte| *byte == b'&') {
            let pair = decoded(pair);
            let (name, value) = pair.split_once('=').unwrap_or((pair.as_str(), ""));
            match name {
                "scope" => {
                    scoped = true;
                    asked.scopes.extend(Scope::of_word(value)?);
                }
                "no-maint" => asked.no_maint = true,
                "metrics" => {
                    for metric in value.split(',').filter(|metric| !metric.is_empty()) {
                        match metric.strip_prefix('-') {
                            Some(metric) => asked.unwanted.push(metric.to_owned()),
                            None => asked.wanted.push(metric.to_owned()),
                        }
                    }
                }
                _ => {}
            }
        }
        if !scoped {
            asked.scopes.extend(Scope::ALL);
        }
        Some(asked)
    }

    fn wants(&self, name: &str) -> bool {
        (self.wanted.is_empty() || self.wanted.iter().any(|wanted| wanted == name))
            && !self.unwanted.iter().any(|unwanted| unwanted == name)
    }
}

/// Answers a scraper.
pub fn metrics(surroundings: Arc<dyn Surroundings>, target: &[u8]) -> WebAnswer {
    let Some(asked) = Asked::read(target) else {
        return WebAnswer {
            status: 400,
            fields: Vec::new(),
            pieces: None,
        };
    };
    let mut export = Export {
        steps: steps(&asked).into_iter(),
        surroundings,
        asked,
        under_way: None,
    };
    WebAnswer {
        status: 200,
        fields: vec![
            ("cache-control", "no-cache".to_owned()),
            (
                "content-type",
                "text/plain; version=0.0.4; charset=utf-8".to_owned(),
            ),
        ],
        pieces: Some(Box::new(move |into| export.write_next(into))),
    }
}

/// One thing after the other.
#[derive(Clone, Copy, Debug)]
enum Step {
    Process,
    /// A metric of a scope; for responses, those of one class.
    Metric(Scope, &'static Exported, usize),
    Durations,
}

fn steps(asked: &Asked) -> Vec<Step> {
    let mut steps = Vec::new();
    for scope in Scope::ALL {
        if !asked.scopes.contains(&scope) {
            continue;
        }
        if scope == Scope::Process {
            steps.push(Step::Process);
        }
        for metric in scope.table() {
            let turns = if metric.told == Told::Responses {
                RESPONSES.len()
            } else {
                1
            };
            steps.extend((0..turns).map(|turn| Step::Metric(scope, metric, turn)));
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
    surroundings: Arc<dyn Surroundings>,
    asked: Asked,
    under_way: Option<(Step, Rows)>,
}

impl Export {
    fn write_next(&mut self, into: &mut String) -> bool {
        if let Some((step, rows)) = &mut self.under_way {
            match rows.next() {
                Some(row) => line_of(*step, &row, into),
                None => self.under_way = None,
            }
            return true;
        }
        let Some(step) = self.steps.next() else {
            return false;
        };
        let bit = match step {
            Step::Process => {
                process(&*self.surroundings, &self.asked, into);
                return true;
            }
            Step::Metric(scope, metric, turn) => {
                let (prefix, bit) = scope.prefix();
                let name = format!("{prefix}{}", metric.name);
                if !self.asked.wants(&name) {
                    return true;
                }
                if turn == 0 {
                    let help = BY_NAME.get(metric.column).map_or("", |metric| metric.help);
                    head(&name, help, kind(metric.counts), into);
                }
                bit
            }
            Step::Durations => {
                if !self.asked.wants(DURATIONS) {
                    return true;
                }
                let help = "How long exchanges took that a server answered, in seconds";
                head(DURATIONS, help, "histogram", into);
                2
            }
        };
        let filter = Filter {
            types: Some(bit),
            no_maint: self.asked.no_maint,
            ..Filter::default()
        };
        let rows = Rows::new(Arc::clone(&self.surroundings), filter);
        self.under_way = Some((step, rows));
        true
    }
}

const DURATIONS: &str = "ballast_backend_request_duration_seconds";

fn kind(counts: bool) -> &'static str {
    if counts { "counter" } else { "gauge" }
}

fn head(name: &str, help: &str, kind: &str, into: &mut String) {
    let _ = write!(into, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
}

fn process(surroundings: &dyn Surroundings, asked: &Asked, into: &mut String) {
    let view = InfoView::of(surroundings, Load::default());
    for (name, line, counts) in PROCESS {
        let full = format!("haproxy_process_{name}");
        let metric = info_metrics().iter().find(|metric| metric.name == *line);
        let Some(metric) = metric.filter(|_| asked.wants(&full)) else {
            continue;
        };
        head(&full, metric.help, kind(*counts), into);
        match (metric.read)(&view) {
            Value::Str(text) => {
                let label = if *name == "node" { "node" } else { "version" };
                let _ = writeln!(into, "{full}{{{label}=\"{}\"}} 1", label_text(&text));
            }
            value => {
                let _ = write!(into, "{full} ");
                number(&value, into);
                into.push('\n');
            }
        }
    }
}

fn line_of(step: Step, row: &Row, into: &mut String) {
    match step {
        Step::Process => {}
        Step::Durations => durations(row, into),
        Step::Metric(scope, metric, turn) => {
            let (prefix, _) = scope.prefix();
            let name = format!("{prefix}{}", metric.name);
            one(&name, metric, turn, row, into);
        }
    }
}

/// The labels that say which row a number is of, without the closing brace.
fn labels(row: &Row) -> String {
    match row {
        Row::Frontend(row) => format!("{{proxy=\"{}\"", label_text(row.frontend.name())),
        Row::Backend(row) => format!("{{proxy=\"{}\"", label_text(row.backend.name())),
        Row::Listener(row) => format!(
            "{{proxy=\"{}\",listener=\"{}\"",
            label_text(row.frontend.name()),
            label_text(&row.name)
        ),
        Row::Server(row) => format!(
            "{{proxy=\"{}\",server=\"{}\"",
            label_text(row.backend.name()),
            label_text(row.server.name())
        ),
    }
}

/// A label's value: backslash, quote and line end are escaped.
fn label_text(text: &str) -> Cow<'_, str> {
    if !text.contains(['\\', '"', '\n']) {
        return Cow::Borrowed(text);
    }
    let text = text.replace('\\', "\\\\").replace('"', "\\\"");
    Cow::Owned(text.replace('\n', "\\n"))
}

fn column<'r>(name: &str, row: &'r Row) -> Value<'r> {
    BY_NAME
        .get(name)
        .map_or(Value::Empty, |metric| metric.read(row))
}

/// The line or lines of a metric for a row.
fn one(name: &str, metric: &Exported, turn: usize, row: &Row, into: &mut String) {
    let labels = labels(row);
    let value = column(metric.column, row);
    match metric.told {
        Told::Known | Told::KnownMilliseconds if value == Value::Empty => {}
        Told::Number | Told::Known => {
            let _ = write!(into, "{name}{labels}}} ");
            number(&value, into);
            into.push('\n');
        }
        Told::Milliseconds | Told::KnownMilliseconds => {
            let ms = match value {
                Value::U32(ms) => u64::from(ms),
                Value::U64(ms) => ms,
                _ => 0,
            };
            let (seconds, rest) = (ms / 1000, ms % 1000);
            let _ = writeln!(into, "{name}{labels}}} {seconds}.{rest:03}000");
        }
        Told::Responses => {
            let (class, column_name) = RESPONSES[turn.min(RESPONSES.len() - 1)];
            let value = column(column_name, row);
            if value != Value::Empty {
                let _ = write!(into, "{name}{labels},code=\"{class}\"}} ");
                number(&value, into);
                into.push('\n');
            }
        }
        Told::Status => {
            let states: &[&str] = match row {
                Row::Frontend(_) | Row::Backend(_) => &STATES[..2],
                Row::Listener(_) => &["WAITING", "OPEN", "FULL"],
                Row::Server(_) => &STATES,
            };
            let is = status(row, &value);
            each(name, &labels, states, |state| u32::from(state == is), into);
        }
        Told::CheckStatus => {
            if let Row::Server(row) = row
                && let Some(check) = &row.belief.check
            {
                let is = |word: &str| u32::from(word == check.word);
                each(name, &labels, &OUTCOMES, is, into);
            }
        }
        Told::ServersByStatus => {
            let count = |state: &str| servers(row, |belief| server_state(&belief.status) == state);
            each(name, &labels, &STATES, count, into);
        }
        Told::ServersByCheck => {
            let count = |word: &str| {
                servers(row, |belief| {
                    belief
                        .check
                        .as_ref()
                        .is_some_and(|check| check.word == word)
                })
            };
            each(name, &labels, &OUTCOMES, count, into);
        }
    }
}

fn each(name: &str, labels: &str, states: &[&str], count: impl Fn(&str) -> u32, into: &mut String) {
    for state in states {
        let _ = writeln!(into, "{name}{labels},state=\"{state}\"}} {}", count(state));
    }
}

/// How many servers of a backend's row are so.
fn servers(row: &Row, is: impl Fn(&Belief) -> bool) -> u32 {
    match row {
        Row::Backend(row) => row.count_servers(is),
        _ => 0,
    }
}

fn status(row: &Row, value: &Value<'_>) -> &'static str {
    let Value::Str(text) = value else {
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

fn number(value: &Value<'_>, into: &mut String) {
    match value {
        Value::Empty | Value::Str(_) => into.push_str("NaN"),
        value => plain(value, into),
    }
}

/// The histogram of a backend.
fn durations(row: &Row, into: &mut String) {
    let Row::Backend(backend) = row else {
        return;
    };
    let labels = labels(row);
    let sums = backend.backend.state.durations.read();
    for (bound_us, count) in &sums.up_to_us {
        let (seconds, rest) = (bound_us / 1_000_000, bound_us % 1_000_000);
        let bound = format!("{seconds}.{rest:06}");
        let bound = bound.trim_end_matches('0').trim_end_matches('.');
        let _ = writeln!(into, "{DURATIONS}_bucket{labels},le=\"{bound}\"}} {count}");
    }
    let (count, sum) = (sums.count, sums.sum_us);
    let _ = write!(
        into,
        "{DURATIONS}_bucket{labels},le=\"+Inf\"}} {count}\n\
         {DURATIONS}_sum{labels}}} {}.{:06}\n{DURATIONS}_count{labels}}} {count}\n",
        sum / 1_000_000,
        sum % 1_000_000
    );
}

#[cfg(test)]
mod tests;
