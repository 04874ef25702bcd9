//! The forms of `show stat`: CSV, typed, JSON.

use std::fmt::Write as _;

use crate::columns::{columns, columns_fixed};
use crate::metric::Metric;
use crate::row::Row;
use crate::rows::StatisticsRows;
use crate::value::MetricValue;

/// Whole numbers beyond this are no exact numbers in JSON readers, and are written as text.
const JSON_EXACT_MAX: u64 = (1 << 53) - 1;

/// How an answer is written.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum StatForm {
    /// CSV for `show stat`, lines for `show info`.
    #[default]
    Text,
    /// One line per value with its type.
    Typed {
        /// Whether each value comes with what it means.
        has_descriptions: bool,
    },
    /// JSON.
    Json,
}

/// An answer to `show stat`, row by row.
pub struct Stat {
    rows: StatisticsRows,
    form: StatForm,
    begun: bool,
    ended: bool,
}

impl Stat {
    /// The answer with these rows in this form.
    pub fn new(rows: StatisticsRows, form: StatForm) -> Self {
        Self {
            rows,
            form,
            begun: false,
            ended: false,
        }
    }

    /// Appends the next piece (the head, a row, the end); false when all was written.
    pub fn write_next(&mut self, into: &mut String) -> bool {
        if self.ended {
            return false;
        }
        let first = !std::mem::replace(&mut self.begun, true);
        if first {
            match self.form {
                StatForm::Text => csv_header(into),
                StatForm::Typed { .. } => {}
                StatForm::Json => into.push('['),
            }
        }
        let Some(row) = self.rows.next() else {
            self.ended = true;
            if self.form == StatForm::Json {
                into.push_str("]\n");
            }
            return true;
        };
        match self.form {
            StatForm::Text => csv_row(&row, into),
            StatForm::Typed {
                has_descriptions: help,
            } => typed_row(&row, help, into),
            StatForm::Json => {
                if !first {
                    into.push(',');
                }
                json_row(&row, into);
            }
        }
        true
    }
}

/// The first line of the CSV.
pub fn csv_header(into: &mut String) {
    into.push_str("# ");
    for (index, metric) in columns().enumerate() {
        if index == columns_fixed() {
            into.push_str("-,");
        }
        into.push_str(metric.name);
        into.push(',');
    }
    into.push('\n');
}

fn csv_row(row: &Row, into: &mut String) {
    for (index, metric) in columns().enumerate() {
        if index == columns_fixed() {
            into.push_str("-,");
        }
        match metric.read(row) {
            MetricValue::Str(text) => csv_text(&text, into),
            value => number(&value, into),
        }
        into.push(',');
    }
    into.push('\n');
}

/// Text with a comma, a quote or a line end is put in quotes, its own quotes doubled.
fn csv_text(text: &str, into: &mut String) {
    if !text.contains([',', '"', '\n', '\r']) {
        into.push_str(text);
        return;
    }
    into.push('"');
    for letter in text.chars() {
        if letter == '"' {
            into.push('"');
        }
        into.push(letter);
    }
    into.push('"');
}

fn typed_row(row: &Row, help: bool, into: &mut String) {
    let (letter, _) = row.type_words();
    let (proxy, id) = row.numbers();
    for (index, metric, value) in present(row) {
        let _ = write!(into, "{letter}.{proxy}.{id}.{index}.{}.1:", metric.name);
        typed_value(metric.tags_on(row), &value, into);
        if help {
            let _ = write!(into, ":\"{}\"", metric.help);
        }
        into.push('\n');
    }
}

/// The letters, the type and the value, as typed output has them.
pub(crate) fn typed_value(tags: crate::Tags, value: &MetricValue<'_>, into: &mut String) {
    let kind = value.type_name().unwrap_or_default();
    let (origin, nature, scope) = (
        tags.origin.letter(),
        tags.nature.letter(),
        tags.scope.letter(),
    );
    let _ = write!(into, "{origin}{nature}{scope}:{kind}:");
    plain(value, into);
}

fn json_row(row: &Row, into: &mut String) {
    let (_, kind) = row.type_words();
    let (proxy, id) = row.numbers();
    into.push('[');
    for (nth, (index, metric, value)) in present(row).enumerate() {
        if nth > 0 {
            into.push(',');
        }
        let _ = write!(
            into,
            "{{\"objType\":\"{kind}\",\"proxyId\":{proxy},\"id\":{id},"
        );
        json_field(index, metric.name, metric.tags_on(row), &value, into);
    }
    into.push(']');
}

/// A value's field, tags and value, and the end of its object.
pub(crate) fn json_field(
    index: usize,
    name: &str,
    tags: crate::Tags,
    value: &MetricValue<'_>,
    into: &mut String,
) {
    let kind = value.type_name().unwrap_or_default();
    let _ = write!(
        into,
        "\"field\":{{\"pos\":{index},\"name\":\"{name}\"}},\"processNum\":1,\"tags\":{{\
         \"origin\":\"{}\",\"nature\":\"{}\",\"scope\":\"{}\"}},\"value\":{{\"type\":\"{kind}\",\
         \"value\":",
        tags.origin.word(),
        tags.nature.word(),
        tags.scope.word(),
    );
    match value {
        MetricValue::Str(text) => json_text(text, into),
        MetricValue::U64(large) if *large > JSON_EXACT_MAX => {
            let _ = write!(into, "\"{large}\"");
        }
        value => number(value, into),
    }
    into.push_str("}}");
}

/// A JSON string (RFC 8259, section 7), with its quotes.
fn json_text(text: &str, into: &mut String) {
    into.push('"');
    escape_json(text, into);
    into.push('"');
}

/// Appends a text as it stands between the quotes of a JSON string (RFC 8259, section 7).
pub fn escape_json(text: &str, into: &mut String) {
    for letter in text.chars() {
        match letter {
            '"' => into.push_str("\\\""),
            '\\' => into.push_str("\\\\"),
            '\n' => into.push_str("\\n"),
            '\r' => into.push_str("\\r"),
            '\t' => into.push_str("\\t"),
            control if u32::from(control) < 0x20 => {
                let _ = write!(into, "\\u{:04x}", u32::from(control));
            }
            other => into.push(other),
        }
    }
}

/// A value as it is, a line end within it made a space: one value is one line.
pub(crate) fn plain(value: &MetricValue<'_>, into: &mut String) {
    match value {
        MetricValue::Str(text) => {
            for letter in text.chars() {
                into.push(if matches!(letter, '\n' | '\r') {
                    ' '
                } else {
                    letter
                });
            }
        }
        value => number(value, into),
    }
}

fn number(value: &MetricValue<'_>, into: &mut String) {
    let mut digits = itoa::Buffer::new();
    match value {
        MetricValue::Empty | MetricValue::Str(_) => {}
        MetricValue::Float(n) => {
            let written = format!("{n:.6}");
            into.push_str(written.trim_end_matches('0').trim_end_matches('.'));
        }
        MetricValue::S32(n) => into.push_str(digits.format(*n)),
        MetricValue::U32(n) => into.push_str(digits.format(*n)),
        MetricValue::U64(n) => into.push_str(digits.format(*n)),
    }
}

/// The values a row has, with their indexes.
fn present(row: &Row) -> impl Iterator<Item = (usize, &'static Metric, MetricValue<'_>)> {
    columns()
        .enumerate()
        .map(|(index, metric)| (index, metric, metric.read(row)))
        .filter(|(_, _, value)| *value != MetricValue::Empty)
}
