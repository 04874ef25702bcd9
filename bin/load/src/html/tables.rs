//! The tables of a page.

use crate::html::text::{change, count, duration, escape};
use crate::html::view::{Latency, View};

/// How many kinds of failures are shown.
const FAILURE_COUNT_MAX: usize = 50;

/// A table with a head. The first column is text, the others are numbers.
fn table(title: &str, head: &[&str], rows: &[Vec<String>]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let head: String = head.iter().map(|cell| format!("<th>{cell}</th>")).collect();
    let rows: String = rows
        .iter()
        .map(|row| {
            let cells: String = row.iter().map(|cell| format!("<td>{cell}</td>")).collect();
            format!("<tr>{cells}</tr>\n")
        })
        .collect();
    format!(
        "<section><h2>{title}</h2><div class=\"wide\"><table><thead><tr>{head}</tr></thead>\n\
         <tbody>{rows}</tbody></table></div></section>\n"
    )
}

/// The numbers that matter most, large.
pub(super) fn tiles(view: &View) -> String {
    let latency = &view.latency_us;
    let failed = if view.failed > 0 { " bad" } else { "" };
    // Of WebSockets, connections fail and messages are counted.
    let (all, lost) = match view.websockets {
        Some(_) => (view.ok, "connections lost"),
        None => (view.ok + view.failed, "failed"),
    };
    let mut tiles = vec![
        (view.noun().to_owned(), count(all as f64), ""),
        ("per second".to_owned(), count(view.rate), ""),
        (lost.to_owned(), count(view.failed as f64), failed),
    ];
    for (name, us) in [
        ("median", latency.p50),
        ("p99", latency.p99),
        ("p99.9", latency.p999),
        ("longest", latency.max),
    ] {
        let value = if latency.count > 0 {
            duration(us)
        } else {
            "-".to_owned()
        };
        tiles.push((name.to_owned(), value, ""));
    }
    let tiles: String = tiles
        .iter()
        .map(|(name, value, class)| {
            format!("<div class=\"tile{class}\"><b>{value}</b><span>{name}</span></div>")
        })
        .collect();
    format!("<div class=\"tiles\">{tiles}</div>\n")
}

/// All latencies.
pub(super) fn latencies(view: &View) -> String {
    let row = |name: &str, latency: &Latency| {
        let Latency {
            min,
            mean,
            p50,
            p90,
            p95,
            p99,
            p999,
            max,
            ..
        } = *latency;
        let times = [min, mean, p50, p90, p95, p99, p999, max].map(duration);
        let mut row = vec![name.to_owned(), count(latency.count as f64)];
        row.extend(times);
        row
    };
    let all = [
        ("latency", Some(&view.latency_us)),
        ("from sending", view.from_sending_us.as_ref()),
        ("connecting", Some(&view.connect_us)),
        ("this machine was late by", Some(&view.machine.late_us)),
    ];
    let rows: Vec<_> = all
        .iter()
        .filter_map(|(name, latency)| latency.map(|latency| (name, latency)))
        .filter(|(_, latency)| latency.count > 0)
        .map(|(name, latency)| row(name, latency))
        .collect();
    let head = [
        "", "count", "least", "mean", "median", "p90", "p95", "p99", "p99.9", "longest",
    ];
    table("Times", &head, &rows)
}

/// Counts by URL.
pub(super) fn urls(view: &View) -> String {
    let rows: Vec<_> = view
        .urls
        .iter()
        .map(|url| {
            vec![
                format!("<code>{}</code>", escape(&url.url)),
                count(url.weight as f64),
                count(url.ok as f64),
                count(url.failed as f64),
                count(url.rate),
                duration(url.latency_us.p50),
                duration(url.latency_us.p99),
                duration(url.latency_us.max),
            ]
        })
        .collect();
    let head = [
        "URL",
        "weight",
        "as expected",
        "failed",
        "per second",
        "median",
        "p99",
        "longest",
    ];
    table("By URL", &head, &rows)
}

/// What else was counted.
pub(super) fn counts(view: &View) -> String {
    let mut rows = Vec::new();
    let mut add = |name: &str, value: String| rows.push(vec![escape(name), value]);
    if let Some(sockets) = &view.websockets {
        add("WebSockets open at the end", count(sockets.alive as f64));
        for (end, lost) in &sockets.ended {
            add(&format!("WebSockets lost: {end}"), count(*lost as f64));
        }
    }
    for (status, answers) in &view.statuses {
        add(&format!("status {status}"), count(*answers as f64));
    }
    add("connections opened", count(view.connections_opened as f64));
    if view.retried > 0 {
        add(
            "sent again, because a kept connection had been closed (no failures)",
            count(view.retried as f64),
        );
    }
    if view.unsent > 0 {
        add("due, and never begun", count(view.unsent as f64));
    }
    add(
        "received",
        format!("{:.1} MB", view.received_bytes as f64 / 1e6),
    );
    let each = view.cpu_seconds * 1e6 / (view.ok + view.failed).max(1) as f64;
    add(
        "processor time of the generator",
        format!(
            "{} ({} each)",
            duration(view.cpu_seconds * 1e6),
            duration(each)
        ),
    );
    table("Counts", &["", ""], &rows)
}

/// What others did meanwhile.
pub(super) fn marks(view: &View) -> String {
    let rows: Vec<_> = view
        .marks
        .iter()
        .map(|mark| vec![escape(&mark.text), format!("{:.2} s", mark.at_ms / 1e3)])
        .collect();
    table("Marks", &["what happened", "at"], &rows)
}

/// What was observed of failures: equal ones in a row.
pub(super) fn failures(view: &View) -> String {
    let mut rows: Vec<(String, u64, f64, f64)> = Vec::new();
    for failure in &view.first_failures {
        let text = format!("{}: {}", failure.class.replace('_', " "), failure.reason);
        let is_full = rows.len() >= FAILURE_COUNT_MAX;
        match rows.iter_mut().find(|(known, ..)| *known == text) {
            Some((_, times, _, last)) => (*times, *last) = (*times + 1, failure.at_ms),
            None if !is_full => {
                rows.push((text, 1, failure.at_ms, failure.at_ms));
            }
            None => {}
        }
    }
    let rows: Vec<_> = rows
        .iter()
        .map(|(text, times, first, last)| {
            let seconds = |ms: f64| format!("{:.2} s", ms / 1e3);
            let times = count(*times as f64);
            vec![escape(text), times, seconds(*first), seconds(*last)]
        })
        .collect();
    let known = view.first_failures.len() as u64;
    let title = match view.failed > known {
        true => format!("The first {} failures", count(known as f64)),
        false => "What failed, and how".to_owned(),
    };
    table(
        &title,
        &["what was observed", "times", "first at", "last at"],
        &rows,
    )
}

/// A name, what it is of a run, and how it is shown.
type Measure = (&'static str, fn(&View) -> f64, fn(f64) -> String);

/// Several runs, with the changes against the first.
pub(super) fn comparison(views: &[View]) -> String {
    let Some((first, others)) = views.split_first() else {
        return String::new();
    };
    let measure: [Measure; 9] = [
        ("as expected", |view| view.ok as f64, count),
        ("per second", |view| view.rate, count),
        ("failed", |view| view.failed as f64, count),
        ("median", |view| view.latency_us.p50, duration),
        ("p90", |view| view.latency_us.p90, duration),
        ("p99", |view| view.latency_us.p99, duration),
        ("p99.9", |view| view.latency_us.p999, duration),
        ("longest", |view| view.latency_us.max, duration),
        ("mean", |view| view.latency_us.mean, duration),
    ];
    let rows: Vec<_> = measure
        .iter()
        .map(|(name, value, show)| {
            let mut row = vec![(*name).to_owned(), show(value(first))];
            for other in others {
                row.push(show(value(other)));
                row.push(change(value(first), value(other)));
            }
            row
        })
        .collect();
    let names: Vec<String> = views.iter().map(|view| escape(view.name())).collect();
    let mut head = vec![""];
    for (index, name) in names.iter().enumerate() {
        head.push(name);
        if index > 0 {
            head.push("change");
        }
    }
    table("Side by side", &head, &rows)
}
