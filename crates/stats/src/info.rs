//! `show info`: the process in numbers.

use std::fmt::Write as _;

use crate::format::{StatForm, json_field, plain, typed_value};
use crate::host::StatsHost;
use crate::info_table::info_metrics;
use crate::info_view::{InfoView, ProcessLoad};
use crate::value::MetricValue;

/// The answer to `show info`; `help` adds what each line means.
pub fn info(host: &dyn StatsHost, load: ProcessLoad, form: StatForm, help: bool) -> String {
    let view = InfoView::of(host, load);
    let values = info_metrics()
        .iter()
        .enumerate()
        .map(|(index, metric)| (index, metric, (metric.read)(&view)))
        .filter(|(_, _, value)| *value != MetricValue::Empty);
    let mut text = String::with_capacity(8192);
    if form == StatForm::Json {
        text.push('[');
    }
    for (nth, (index, metric, value)) in values.enumerate() {
        match form {
            StatForm::Text => {
                text.push_str(metric.name);
                text.push_str(": ");
                plain(&value, &mut text);
            }
            StatForm::Typed { .. } => {
                let _ = write!(text, "{index}.{}.1:", metric.name);
                typed_value(metric.tags, &value, &mut text);
            }
            StatForm::Json => {
                text.push_str(if nth > 0 { ",{" } else { "{" });
                json_field(index, metric.name, metric.tags, &value, &mut text);
                continue;
            }
        }
        if help {
            let _ = write!(text, ":\"{}\"", metric.help);
        }
        text.push('\n');
    }
    if form == StatForm::Json {
        text.push_str("]\n");
    }
    text
}
