//! What a scraper asks for: the words of its query, and the form it can read.
//!
//! Source: the guide of HAProxy's exporter, "metrics filtering".

use crate::metrics_table::{BACKEND, FRONTEND, LISTENER, MetricColumn, SERVER};
use crate::urlencoded::decoded;

use super::writer::ExportForm;

/// Names of metrics asked for, at most; what is beyond is not looked at.
const NAME_COUNT_MAX: usize = 1024;

/// The parts of the export.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Scope {
    Process,
    Frontend,
    Listener,
    Backend,
    Server,
    StickTable,
}

impl Scope {
    pub(super) const ALL: [Self; 6] = [
        Self::Process,
        Self::Frontend,
        Self::Listener,
        Self::Backend,
        Self::Server,
        Self::StickTable,
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
            "sticktable" => &[Self::StickTable],
            "resolver" => &[],
            _ => return None,
        })
    }

    pub(super) fn table(self) -> &'static [MetricColumn] {
        match self {
            Self::Process | Self::StickTable => &[],
            Self::Frontend => FRONTEND,
            Self::Listener => LISTENER,
            Self::Backend => BACKEND,
            Self::Server => SERVER,
        }
    }

    /// What the names of its metrics begin with, and the bit of its rows.
    pub(super) fn prefix(self) -> (&'static str, u32) {
        match self {
            Self::Process => ("haproxy_process_", 0),
            Self::Frontend => ("haproxy_frontend_", 1),
            Self::Listener => ("haproxy_listener_", 8),
            Self::Backend => ("haproxy_backend_", 2),
            Self::Server => ("haproxy_server_", 4),
            Self::StickTable => ("haproxy_sticktable_", 0),
        }
    }
}

/// What a scraper asks for.
#[derive(Clone, Debug, Default)]
pub(super) struct MetricsQuery {
    pub(super) scopes: Vec<Scope>,
    pub(super) no_maint: bool,
    /// `extra-counters`: also what each protocol counts.
    pub(super) extra: bool,
    /// `desc-labels`: what proxies say of themselves stands beside their names.
    pub(super) describes: bool,
    /// `metrics=`: only these; all when it is empty.
    wanted: Vec<String>,
    /// `metrics=-...`: not these.
    unwanted: Vec<String>,
}

impl MetricsQuery {
    /// Reads a query; `None` for one with an unknown scope, or a scope without a value.
    pub(super) fn read(target: &[u8]) -> Option<Self> {
        let mut read = Self {
            scopes: Scope::ALL.to_vec(),
            ..Self::default()
        };
        let question = target.iter().position(|byte| *byte == b'?');
        let query = question.map_or(&[][..], |index| &target[index + 1..]);
        let mut scoped = false;
        for pair in query.split(|byte| *byte == b'&') {
            let pair = decoded(pair);
            let (name, value) = match pair.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (pair.as_str(), None),
            };
            match name {
                "scope" => {
                    let value = value?;
                    // The first takes the place of all, and an empty one of all before it.
                    if !std::mem::replace(&mut scoped, true) || value.is_empty() {
                        read.scopes.clear();
                    }
                    if !value.is_empty() {
                        read.scopes.extend(Scope::of_word(value)?);
                    }
                }
                "no-maint" => read.no_maint = true,
                "extra-counters" => read.extra = true,
                "desc-labels" => read.describes = true,
                "metrics" => read.name(value.unwrap_or_default()),
                _ => {}
            }
        }
        Some(read)
    }

    fn name(&mut self, metrics: &str) {
        for metric in metrics.split(',').filter(|metric| !metric.is_empty()) {
            if self.wanted.len() + self.unwanted.len() >= NAME_COUNT_MAX {
                return;
            }
            match metric.strip_prefix('-') {
                Some(metric) => self.unwanted.push(metric.to_owned()),
                None => self.wanted.push(metric.to_owned()),
            }
        }
    }

    pub(super) fn wants(&self, name: &str) -> bool {
        (self.wanted.is_empty() || self.wanted.iter().any(|wanted| wanted == name))
            && !self.unwanted.iter().any(|unwanted| unwanted == name)
    }
}

/// The form that an `Accept` field prefers: text unless protocol buffers are named, and no less
/// welcome (RFC 9110, section 12.5.1).
pub(super) fn form(accept: &[u8]) -> ExportForm {
    let (mut text, mut protobuf) = (0, 0);
    for range in accept.split(|byte| *byte == b',') {
        let range = String::from_utf8_lossy(range);
        let mut words = range
            .split(';')
            .map(|word| word.trim().to_ascii_lowercase());
        let kind = words.next().unwrap_or_default();
        let parameters: Vec<String> = words.map(|word| word.replace([' ', '"'], "")).collect();
        let has = |wanted: &str| parameters.iter().any(|word| word == wanted);
        let quality = parameters.iter().find_map(|word| word.strip_prefix("q="));
        let quality = quality.map_or(1000, thousandths);
        match kind.as_str() {
            "application/vnd.google.protobuf"
                if has("proto=io.prometheus.client.metricfamily") && has("encoding=delimited") =>
            {
                protobuf = protobuf.max(quality);
            }
            "text/plain" | "text/*" | "*/*" => text = text.max(quality),
            _ => {}
        }
    }
    if protobuf > 0 && protobuf >= text {
        ExportForm::Protobuf
    } else {
        ExportForm::Text
    }
}

/// A quality in thousandths; what is none is 0.
fn thousandths(quality: &str) -> u32 {
    let quality: f64 = quality.parse().unwrap_or(0.0);
    // In range: it is cut to it.
    (quality.clamp(0.0, 1.0) * 1000.0) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_are_read_one_after_the_other() {
        let scopes = |query: &str| MetricsQuery::read(query.as_bytes()).map(|query| query.scopes);
        assert_eq!(scopes("/m").unwrap().len(), 6);
        assert_eq!(scopes("/m?no-maint").unwrap().len(), 6);
        assert_eq!(scopes("/m?scope=server").unwrap(), [Scope::Server]);
        assert_eq!(scopes("/m?scope=*&scope=").unwrap(), []);
        assert_eq!(scopes("/m?scope=&scope=global").unwrap(), [Scope::Process]);
        assert_eq!(scopes("/m?scope=sticktable").unwrap(), [Scope::StickTable]);
        assert_eq!(scopes("/m?scope=resolver").unwrap(), []);
        assert_eq!(scopes("/m?scope"), None);
        assert_eq!(scopes("/m?scope=nosuch"), None);
    }

    #[test]
    fn protocol_buffers_must_be_asked_for_by_name() {
        const PROTOBUF: &str = "application/vnd.google.protobuf;\
            proto=io.prometheus.client.MetricFamily;encoding=delimited";
        for (accept, expected) in [
            (String::new(), ExportForm::Text),
            ("*/*".into(), ExportForm::Text),
            ("application/vnd.google.protobuf".into(), ExportForm::Text),
            (PROTOBUF.into(), ExportForm::Protobuf),
            (
                PROTOBUF
                    .replace(';', " ; ")
                    .replace("delimited", "\"delimited\""),
                ExportForm::Protobuf,
            ),
            (PROTOBUF.replace("delimited", "text"), ExportForm::Text),
            (format!("{PROTOBUF};q=0"), ExportForm::Text),
            // As Prometheus asks with native histograms, and without.
            (
                format!(
                    "{PROTOBUF};q=0.6,application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.4,*/*;q=0.2"
                ),
                ExportForm::Protobuf,
            ),
            (
                format!("text/plain;version=0.0.4;q=0.6,{PROTOBUF};q=0.3,*/*;q=0.2"),
                ExportForm::Text,
            ),
        ] {
            assert_eq!(form(accept.as_bytes()), expected, "{accept}");
        }
    }
}
