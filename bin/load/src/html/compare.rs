//! The charts of several runs, one over the other.

use crate::html::charts::{COLOURS, latency_scale, measured, rate_line, section, tail_scale};
use crate::html::panel::Panel;
use crate::html::scale::Scale;
use crate::html::text::escape;
use crate::html::view::{Mark, Point, View};

fn keys(views: &[View]) -> Vec<(String, String)> {
    let keys = views.iter().enumerate().map(|(index, view)| {
        let name = format!("{} {}", letter(index), escape(view.name()));
        (format!("line-c{}", index % COLOURS), name)
    });
    keys.collect()
}

fn time(views: &[View]) -> Scale {
    Scale::Time {
        max: views.iter().map(View::length).fold(0.0, f64::max),
    }
}

/// The letter of a run.
pub(super) fn letter(index: usize) -> char {
    ('A'..='Z').nth(index).unwrap_or('?')
}

/// The marks of all runs, each with the letter of its run.
fn marks(views: &[View]) -> Vec<Mark> {
    let all = views.iter().enumerate().flat_map(|(index, view)| {
        view.marks.iter().map(move |mark| Mark {
            at_ms: mark.at_ms,
            text: format!("{}: {}", letter(index), mark.text),
        })
    });
    let mut all: Vec<Mark> = all.collect();
    all.sort_by(|one, other| one.at_ms.total_cmp(&other.at_ms));
    all
}

/// Median and 99th percentile over time.
pub(super) fn latency(views: &[View]) -> String {
    let scales = (time(views), latency_scale(views));
    let mut panel = Panel::new("Latency over time", scales, 240.0).with_marks(&marks(views));
    for (index, view) in views.iter().enumerate() {
        let colour = index % COLOURS;
        for run in measured(view) {
            let line = |value: fn(&Point) -> Option<f64>| {
                let points = run.iter();
                points
                    .map(|(x, point)| (*x, value(point).unwrap_or(0.0)))
                    .collect::<Vec<_>>()
            };
            panel.line(&format!("c{colour}"), &line(|point| point.p50));
            panel.line(&format!("c{colour} dashed"), &line(|point| point.p99));
        }
    }
    let note = "The line is the median, the dashed line the 99th percentile.";
    section("Latency over time", note, &keys(views), &panel.finish())
}

/// Rate over time.
pub(super) fn rate(views: &[View]) -> String {
    let points = views.iter().flat_map(|view| &view.series.points);
    let max = points.map(|point| point.rate).fold(0.0, f64::max);
    let scales = (time(views), Scale::count(max));
    let mut panel = Panel::new("Rate over time", scales, 160.0).with_marks(&marks(views));
    for (index, view) in views.iter().enumerate() {
        panel.line(&format!("c{}", index % COLOURS), &rate_line(view));
    }
    section(
        "Rate",
        "As expected, per second.",
        &keys(views),
        &panel.finish(),
    )
}

/// Latency by percentile.
pub(super) fn percentiles(views: &[View]) -> String {
    let min = views.iter().map(|view| view.latency_us.min);
    let max = views.iter().map(|view| view.latency_us.max);
    let scales = (
        tail_scale(views),
        Scale::log(min.fold(f64::MAX, f64::min), max.fold(0.0, f64::max)),
    );
    let mut panel = Panel::new("Latency by percentile", scales, 220.0);
    for (index, view) in views.iter().enumerate() {
        panel.line(&format!("c{}", index % COLOURS), &view.percentiles);
    }
    let note =
        "How many percent had their answer within which time; every nine is as wide as another.";
    section("Latency by percentile", note, &keys(views), &panel.finish())
}
