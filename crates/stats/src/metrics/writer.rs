//! The two forms of an export: text for people and for most scrapers, protocol buffers for those
//! that want native histograms.
//!
//! Sources: Prometheus, "Exposition formats"; its `metrics.proto` for the fields of messages.

use std::borrow::Cow;
use std::io::Write as _;

use ballast_engine::timings::HistogramSums;

use super::protobuf::Message;

/// A family is cut here into several of its name, so that memory stays bounded however many
/// servers there are. Nobody below thousands of servers meets it.
const FAMILY_BYTES_MAX: usize = 4 << 20;

/// The form of an export.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) enum ExportForm {
    /// Text, version 0.0.4.
    #[default]
    Text,
    /// `MetricFamily` messages, each behind its length.
    Protobuf,
}

impl ExportForm {
    pub(super) fn content_type(self) -> &'static str {
        match self {
            Self::Text => "text/plain; version=0.0.4; charset=utf-8",
            Self::Protobuf => {
                "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; \
                 encoding=delimited"
            }
        }
    }
}

/// What a family holds.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) enum FamilyKind {
    Counter,
    #[default]
    Gauge,
    Histogram,
}

impl FamilyKind {
    pub(super) fn of(counts: bool) -> Self {
        if counts { Self::Counter } else { Self::Gauge }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }

    /// Its number in `MetricType`.
    fn number(self) -> u64 {
        match self {
            Self::Counter => 0,
            Self::Gauge => 1,
            Self::Histogram => 4,
        }
    }

    /// The field of `Metric` that holds it.
    fn field(self) -> u32 {
        match self {
            Self::Counter => 3,
            Self::Gauge => 2,
            Self::Histogram => 7,
        }
    }
}

/// A number of a metric.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Amount {
    /// There is none.
    Unknown,
    Signed(i32),
    Unsigned(u64),
    /// Told in seconds.
    Milliseconds(u64),
}

impl Amount {
    fn write_text(self, into: &mut Vec<u8>) {
        // Writing to memory cannot fail.
        let _ = match self {
            Self::Unknown => write!(into, "NaN"),
            Self::Signed(number) => write!(into, "{number}"),
            Self::Unsigned(number) => write!(into, "{number}"),
            Self::Milliseconds(ms) => write!(into, "{}.{:03}000", ms / 1000, ms % 1000),
        };
    }

    fn value(self) -> f64 {
        match self {
            Self::Unknown => f64::NAN,
            Self::Signed(number) => f64::from(number),
            Self::Unsigned(number) => number as f64,
            Self::Milliseconds(ms) => ms as f64 / 1000.0,
        }
    }
}

/// A label: name and value.
pub(super) type Label<'l> = (&'static str, Cow<'l, str>);

/// Writes families, one after the other.
#[derive(Debug, Default)]
pub(super) struct Writer {
    form: ExportForm,
    family: Family,
}

/// The family under way.
#[derive(Debug, Default)]
struct Family {
    name: String,
    help: String,
    kind: FamilyKind,
    /// Its metrics as messages, until they are written.
    metrics: Message,
}

impl Writer {
    pub(super) fn new(form: ExportForm) -> Self {
        Self {
            form,
            family: Family::default(),
        }
    }

    /// Begins a family; the one before ends.
    pub(super) fn family(&mut self, name: &str, help: &str, kind: FamilyKind, into: &mut Vec<u8>) {
        self.end(into);
        name.clone_into(&mut self.family.name);
        help.clone_into(&mut self.family.help);
        self.family.kind = kind;
        if self.form == ExportForm::Text {
            let kind = kind.word();
            let _ = write!(into, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
        }
    }

    /// A metric of the family under way.
    pub(super) fn sample(&mut self, labels: &[Label<'_>], amount: Amount, into: &mut Vec<u8>) {
        if self.form == ExportForm::Text {
            line_begin(&self.family.name, "", labels, into);
            amount.write_text(into);
            into.push(b'\n');
            return;
        }
        let kind = self.family.kind;
        self.metric(labels, into, |metric| {
            metric.message(kind.field(), |value| value.double(1, amount.value()));
        });
    }

    /// A histogram of the family under way.
    pub(super) fn histogram(
        &mut self,
        labels: &[Label<'_>],
        sums: &HistogramSums,
        into: &mut Vec<u8>,
    ) {
        match self.form {
            ExportForm::Text => histogram_text(&self.family.name, labels, sums, into),
            ExportForm::Protobuf => self.metric(labels, into, |metric| {
                metric.message(FamilyKind::Histogram.field(), |histogram| {
                    histogram_message(histogram, sums);
                });
            }),
        }
    }

    fn metric(
        &mut self,
        labels: &[Label<'_>],
        into: &mut Vec<u8>,
        value: impl FnOnce(&mut Message),
    ) {
        self.family.metrics.message(4, |metric| {
            for (name, text) in labels {
                metric.message(1, |label| {
                    label.text(1, name);
                    label.text(2, text);
                });
            }
            value(metric);
        });
        if self.family.metrics.bytes().len() >= FAMILY_BYTES_MAX {
            self.end(into);
        }
    }

    /// Ends the family under way, if there is any of it left to write. One without metrics is
    /// not worth a message.
    pub(super) fn end(&mut self, into: &mut Vec<u8>) {
        let family = &mut self.family;
        if family.metrics.bytes().is_empty() {
            return;
        }
        let mut head = Message::default();
        head.text(1, &family.name);
        head.text(2, &family.help);
        head.number(3, family.kind.number());
        let metrics = std::mem::take(&mut family.metrics);
        Message::write_length(head.bytes().len() + metrics.bytes().len(), into);
        into.extend_from_slice(head.bytes());
        into.extend_from_slice(metrics.bytes());
    }
}

/// A line up to its number.
fn line_begin(name: &str, suffix: &str, labels: &[Label<'_>], into: &mut Vec<u8>) {
    into.extend_from_slice(name.as_bytes());
    into.extend_from_slice(suffix.as_bytes());
    for (nth, (label, text)) in labels.iter().enumerate() {
        into.push(if nth == 0 { b'{' } else { b',' });
        let _ = write!(into, "{label}=\"{}\"", escaped(text));
    }
    if !labels.is_empty() {
        into.push(b'}');
    }
    into.push(b' ');
}

/// A label's value: backslash, quote and line end are escaped.
fn escaped(text: &str) -> Cow<'_, str> {
    if !text.contains(['\\', '"', '\n']) {
        return Cow::Borrowed(text);
    }
    let text = text.replace('\\', "\\\\").replace('"', "\\\"");
    Cow::Owned(text.replace('\n', "\\n"))
}

/// A power of two, in the shortest digits that tell it.
fn power_text(power: i32) -> String {
    format!("{}", f64::from(power).exp2())
}

fn histogram_text(name: &str, labels: &[Label<'_>], sums: &HistogramSums, into: &mut Vec<u8>) {
    let mut bucket = |bound: String, count: u64| {
        let mut labels = labels.to_vec();
        labels.push(("le", Cow::Owned(bound)));
        line_begin(name, "_bucket", &labels, into);
        let _ = writeln!(into, "{count}");
    };
    for (power, count) in &sums.up_to_power {
        bucket(power_text(*power), *count);
    }
    bucket("+Inf".into(), sums.count);
    line_begin(name, "_sum", labels, into);
    let (seconds, rest) = (sums.sum_us / 1_000_000, sums.sum_us % 1_000_000);
    let _ = writeln!(into, "{seconds}.{rest:06}");
    line_begin(name, "_count", labels, into);
    let _ = writeln!(into, "{}", sums.count);
}

/// Both kinds at once: classic buckets, and the native ones for whoever knows them. What took
/// longer than all bounds is in the bucket of the infinite.
fn histogram_message(histogram: &mut Message, sums: &HistogramSums) {
    histogram.number(1, sums.count);
    histogram.double(2, sums.sum_us as f64 / 1e6);
    for (power, count) in &sums.up_to_power {
        histogram.message(3, |bucket| {
            bucket.number(1, *count);
            bucket.double(2, f64::from(*power).exp2());
        });
    }
    histogram.message(3, |bucket| {
        bucket.number(1, sums.count);
        bucket.double(2, f64::INFINITY);
    });
    histogram.signed(5, i64::from(HistogramSums::SCHEMA));
    histogram.double(6, f64::from(HistogramSums::ZERO_POWER).exp2());
    let Some((zero, buckets)) = sums.buckets.split_first() else {
        return;
    };
    histogram.number(7, *zero);
    let infinite = (1024 << HistogramSums::SCHEMA) + 1;
    let last = buckets.len().saturating_sub(1);
    let numbered = buckets.iter().zip(HistogramSums::FIRST_INDEX..).enumerate();
    let filled: Vec<(i32, u64)> = numbered
        .filter(|(_, (count, _))| **count > 0)
        .map(|(position, (count, index))| (if position == last { infinite } else { index }, *count))
        .collect();
    // Spans: how many buckets after the last one the next stand, and how many in a row.
    let mut next = 0;
    for run in filled.chunk_by(|(one, _), (other, _)| one + 1 == *other) {
        let (first, length) = (run[0].0, run.len());
        histogram.message(12, |span| {
            span.signed(1, i64::from(first - next));
            span.number(2, length as u64);
        });
        next = run[length - 1].0 + 1;
    }
    // A bucket has the difference to the count before it.
    let mut before = 0;
    for (_, count) in filled {
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        histogram.signed(13, count - before);
        before = count;
    }
}
