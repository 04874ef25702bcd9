//! The charts of one run.

use crate::html::panel::Panel;
use crate::html::scale::Scale;
use crate::html::text::{count, duration};
use crate::html::view::{Point, View};

/// The class names of colours, for what is stacked or compared.
pub(super) const COLOURS: usize = 6;

/// That this machine was late by more is said.
const LATE_US_MIN: f64 = 5e3;

/// A heading, a legend and the chart below it.
pub(super) fn section(title: &str, note: &str, legend: &[(String, String)], chart: &str) -> String {
    let keys: String = legend
        .iter()
        .map(|(class, name)| format!("<span class=\"key\"><i class=\"{class}\"></i>{name}</span>"))
        .collect();
    let note = match note {
        "" => String::new(),
        note => format!("<p class=\"note\">{note}</p>"),
    };
    format!(
        "<section><div class=\"head\"><h2>{title}</h2><div class=\"keys\">{keys}</div></div>{note}\n{chart}</section>\n"
    )
}

pub(super) fn legend(keys: &[(&str, &str)]) -> Vec<(String, String)> {
    let keys = keys.iter();
    keys.map(|(class, name)| ((*class).to_owned(), (*name).to_owned()))
        .collect()
}

/// The middle of a point, in seconds.
pub(super) fn middle(view: &View, point: &Point) -> f64 {
    let width = width(view);
    (point.at_ms / 1e3 + width / 2.0).min(view.length())
}

/// What a point covers, in seconds.
pub(super) fn width(view: &View) -> f64 {
    view.series.interval_ms / 1e3
}

fn tips(panel: &mut Panel, view: &View) {
    for point in &view.series.points {
        panel.tip((point.at_ms / 1e3, width(view)), &point.tip());
    }
}

/// The scale of all latencies over time.
pub(super) fn latency_scale(views: &[View]) -> Scale {
    let points = || views.iter().flat_map(|view| &view.series.points);
    let min = points()
        .filter_map(|point| point.p50)
        .fold(f64::MAX, f64::min);
    let max = points().filter_map(|point| point.max).fold(0.0, f64::max);
    Scale::log(if min == f64::MAX { 100.0 } else { min }, max)
}

/// Runs of points at which something was measured.
pub(super) fn measured(view: &View) -> Vec<Vec<(f64, &Point)>> {
    let mut runs = Vec::new();
    let mut run: Vec<(f64, &Point)> = Vec::new();
    for point in &view.series.points {
        if point.p50.is_some() {
            run.push((middle(view, point), point));
        } else if !run.is_empty() {
            runs.push(std::mem::take(&mut run));
        }
    }
    runs.push(run);
    runs.retain(|run| !run.is_empty());
    for run in &mut runs {
        // A run of one point has a length, too.
        let half = width(view) / 2.0;
        if let (Some(first), Some(last)) = (run.first().copied(), run.last().copied()) {
            run.insert(0, ((first.0 - half).max(0.0), first.1));
            run.push(((last.0 + half).min(view.length()), last.1));
        }
    }
    runs
}

/// Latency over time, as bands between percentiles.
pub(super) fn latency(view: &View) -> String {
    let scales = (
        Scale::Time { max: view.length() },
        latency_scale(std::slice::from_ref(view)),
    );
    let mut panel = Panel::new("Latency over time", scales, 240.0).with_marks(&view.marks);
    for run in measured(view) {
        let band = |low: fn(&Point) -> Option<f64>, high: fn(&Point) -> Option<f64>| {
            let points = run
                .iter()
                .map(|(x, point)| (*x, low(point).unwrap_or(0.0), high(point).unwrap_or(0.0)));
            points.collect::<Vec<_>>()
        };
        panel.band("band3", &band(|p| p.p99, |p| p.max));
        panel.band("band2", &band(|p| p.p90, |p| p.p99));
        panel.band("band1", &band(|p| p.p50, |p| p.p90));
        let median: Vec<_> = run
            .iter()
            .map(|(x, point)| (*x, point.p50.unwrap_or(0.0)))
            .collect();
        panel.line("p50", &median);
    }
    tips(&mut panel, view);
    let keys = legend(&[
        ("line-p50", "median"),
        ("fill-band1", "to p90"),
        ("fill-band2", "to p99"),
        ("fill-band3", "to the longest"),
    ]);
    let gap = "Where the bands are broken, nothing ended. ";
    let late = view.machine.late_us.max;
    let what = format!(
        "Each point covers {}. {}{}{}",
        duration(view.series.interval_ms * 1e3),
        if measured(view).len() > 1 { gap } else { "" },
        match view.from_sending_us {
            Some(_) => "Latency counts from when a request was due, so that waiting is seen.",
            None => "Latency counts from sending; while a server is slow, less is sent.",
        },
        match late {
            late if late < LATE_US_MIN => String::new(),
            late => format!(
                " This machine itself was late by up to {}: delays up to that may be its own.",
                duration(late)
            ),
        }
    );
    section("Latency over time", &what, &keys, &panel.finish())
}

/// Expected responses per second over time.
pub(super) fn rate(view: &View) -> String {
    let points = &view.series.points;
    let max = points.iter().map(|point| point.rate).fold(0.0, f64::max);
    let scales = (Scale::Time { max: view.length() }, Scale::count(max));
    let mut panel = Panel::new("Rate over time", scales, 150.0).with_marks(&view.marks);
    let line = rate_line(view);
    let area: Vec<_> = line.iter().map(|(x, y)| (*x, 0.0, *y)).collect();
    panel.band("area", &area);
    panel.line("rate", &line);
    tips(&mut panel, view);
    let keys = legend(&[("line-rate", "as expected, per second")]);
    section("Rate", "", &keys, &panel.finish())
}

/// The rate at the middles of all points, and at both ends.
pub(super) fn rate_line(view: &View) -> Vec<(f64, f64)> {
    let points = &view.series.points;
    let mut line: Vec<_> = points
        .iter()
        .map(|point| (middle(view, point), point.rate))
        .collect();
    if let (Some(first), Some(last)) = (line.first().copied(), line.last().copied()) {
        line.insert(0, (0.0, first.1));
        line.push((view.length(), last.1));
    }
    line
}

/// Failures over time, by class.
pub(super) fn failures(view: &View) -> String {
    let classes = view.failed_classes();
    if classes.is_empty() {
        return section("Failures", "There were none.", &[], "");
    }
    let points = &view.series.points;
    let max = points.iter().map(|point| point.failed).max().unwrap_or(0);
    let scales = (Scale::Time { max: view.length() }, Scale::count(max as f64));
    let mut panel =
        Panel::new("Failures over time, by class", scales, 130.0).with_marks(&view.marks);
    for point in points {
        let mut low = 0.0;
        for (index, (class, _)) in classes.iter().enumerate() {
            let failed = point.failures.get(*class).copied().unwrap_or(0) as f64;
            if failed > 0.0 {
                let colour = format!("fill-f{}", index % COLOURS);
                panel.bar(
                    &colour,
                    (point.at_ms / 1e3, width(view)),
                    (low, low + failed),
                );
                low += failed;
            }
        }
    }
    tips(&mut panel, view);
    let keys: Vec<_> = classes
        .iter()
        .enumerate()
        .map(|(index, (class, failed))| {
            let name = format!("{} {}", count(*failed as f64), class.replace('_', " "));
            (format!("fill-f{}", index % COLOURS), name)
        })
        .collect();
    let note = format!(
        "Each bar covers {}.",
        duration(view.series.interval_ms * 1e3)
    );
    section("Failures", &note, &keys, &panel.finish())
}

/// Open connections over time, where there is something to see.
pub(super) fn open(view: &View) -> String {
    let points = &view.series.points;
    // The last point is cut by the end.
    let seen = points.split_last().map_or(&[][..], |(_, seen)| seen);
    let (min, max) = seen.iter().fold((u64::MAX, 0), |(min, max), point| {
        (min.min(point.open), max.max(point.open))
    });
    if seen.is_empty() || (view.websockets.is_none() && min == max) {
        return String::new();
    }
    let scales = (Scale::Time { max: view.length() }, Scale::count(max as f64));
    let mut panel = Panel::new("Open connections over time", scales, 110.0).with_marks(&view.marks);
    let line: Vec<_> = seen
        .iter()
        .flat_map(|point| {
            let at = point.at_ms / 1e3;
            [
                (at, point.open as f64),
                (at + width(view), point.open as f64),
            ]
        })
        .collect();
    panel.line("rate", &line);
    tips(&mut panel, view);
    section("Open connections", "", &[], &panel.finish())
}

/// The scale of percentiles.
pub(super) fn tail_scale(views: &[View]) -> Scale {
    let most = views.iter().map(|view| view.latency_us.count).max();
    let last = 100.0 - 100.0 / (most.unwrap_or(0) as f64).max(10.0);
    Scale::Tail { last }
}

/// Latency by percentile.
pub(super) fn percentiles(view: &View) -> String {
    if view.percentiles.is_empty() {
        return String::new();
    }
    let scales = (
        tail_scale(std::slice::from_ref(view)),
        Scale::log(view.latency_us.min, view.latency_us.max),
    );
    let mut panel = Panel::new("Latency by percentile", scales, 200.0);
    panel.line("p50", &view.percentiles);
    for pair in view.percentiles.windows(2) {
        let [(from, _), (to, us)] = pair else {
            continue;
        };
        let tip = format!("{to:.4} % within {}", duration(*us));
        panel.tip((*from, to - from), &tip);
    }
    let note =
        "How many percent had their answer within which time; every nine is as wide as another.";
    section("Latency by percentile", note, &[], &panel.finish())
}
