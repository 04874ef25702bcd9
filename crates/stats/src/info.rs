//! `show info`: the process in numbers.

use std::fmt::Write as _;

use crate::format::{StatForm, json_field, plain, typed_value};
use crate::host::StatsHost;
use crate::info_table::{info_metrics, with_fraction};
use crate::info_view::{InfoView, ProcessLoad};
use crate::value::MetricValue;

/// How `show info` shows its lines.
#[derive(Clone, Copy, Debug, Default)]
pub struct InfoForm {
    /// The form.
    pub form: StatForm,
    /// `desc`: each line says what it means.
    pub help: bool,
    /// `float`: times have fractions, and rates the type of what may have some.
    pub fractions: bool,
}

/// The answer to `show info`.
pub fn info(host: &dyn StatsHost, load: ProcessLoad, shown: InfoForm) -> String {
    let form = shown.form;
    let view = InfoView::of(host, load);
    let values = info_metrics()
        .iter()
        .enumerate()
        .map(|(index, metric)| {
            let value = (metric.read)(&view);
            let fraction = shown
                .fractions
                .then(|| with_fraction(metric, &view, &value))
                .flatten();
            match fraction {
                Some((tags, number)) => (index, metric.name, tags, MetricValue::Float(number)),
                None => (index, metric.name, metric.tags, value),
            }
        })
        .filter(|(_, _, _, value)| *value != MetricValue::Empty);
    let mut text = String::with_capacity(8192);
    if form == StatForm::Json {
        text.push('[');
    }
    for (nth, (index, name, tags, value)) in values.enumerate() {
        match form {
            StatForm::Text => {
                text.push_str(name);
                text.push_str(": ");
                plain(&value, &mut text);
            }
            StatForm::Typed { .. } => {
                let _ = write!(text, "{index}.{name}.1:");
                typed_value(tags, &value, &mut text);
            }
            StatForm::Json => {
                text.push_str(if nth > 0 { ",{" } else { "{" });
                json_field(index, name, tags, &value, &mut text);
                continue;
            }
        }
        if shown.help {
            let _ = write!(text, ":\"{}\"", info_metrics()[index].help);
        }
        text.push('\n');
    }
    if form == StatForm::Json {
        text.push_str("]\n");
    }
    text
}
