//! The page: one run with all that is known of it, or several side by side.

use crate::html::text::escape;
use crate::html::view::View;
use crate::html::{charts, compare, tables};

/// The page of these runs.
pub(super) fn page(views: &[View]) -> String {
    let (title, body) = match views {
        [view] => (view.name().to_owned(), run(view)),
        views => {
            let names: Vec<&str> = views.iter().map(View::name).collect();
            (names.join(" and "), several(views))
        }
    };
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>{}</title>\n<style>{}</style>\n<main>\n{body}\
         <footer>ballast-load {}</footer>\n</main>\n</html>\n",
        escape(&title),
        include_str!("style.css"),
        env!("CARGO_PKG_VERSION"),
    )
}

/// The verdict, and what it rests on.
fn head(view: &View) -> String {
    let class = if view.failed > 0 { "bad" } else { "good" };
    let mut text = format!(
        "<p class=\"verdict {class}\">{}</p>\n",
        escape(&view.verdict())
    );
    if view.unsent > 0 {
        let unsent = crate::html::text::count(view.unsent as f64);
        text.push_str(&format!(
            "<p class=\"note\">{unsent} more were due and never begun: no connection was free.</p>\n"
        ));
    }
    if !view.command.is_empty() {
        text.push_str(&format!(
            "<p class=\"command\"><code>{}</code></p>\n",
            escape(&view.command)
        ));
    }
    text
}

fn run(view: &View) -> String {
    let mut body = format!(
        "<header><h1>{}</h1><p class=\"note\">{}</p></header>\n",
        escape(view.name()),
        escape(&view.subtitle())
    );
    body.push_str(&head(view));
    body.push_str(&tables::tiles(view));
    for part in [
        charts::latency(view),
        charts::rate(view),
        charts::failures(view),
        charts::open(view),
        charts::percentiles(view),
        tables::latencies(view),
        tables::urls(view),
        tables::marks(view),
        tables::counts(view),
        tables::failures(view),
    ] {
        body.push_str(&part);
    }
    body
}

fn several(views: &[View]) -> String {
    let mut body = "<header><h1>Comparison</h1></header>\n".to_owned();
    for (index, view) in views.iter().enumerate() {
        body.push_str(&format!(
            "<div class=\"run\"><h2><i class=\"line-c{}\"></i>{} {}</h2><p class=\"note\">{}</p>\n{}</div>\n",
            index % charts::COLOURS,
            compare::letter(index),
            escape(view.name()),
            escape(&view.subtitle()),
            head(view)
        ));
    }
    body.push_str(&tables::comparison(views));
    body.push_str(&compare::latency(views));
    body.push_str(&compare::rate(views));
    body.push_str(&compare::percentiles(views));
    for view in views.iter().filter(|view| view.failed > 0) {
        let name = escape(view.name());
        body.push_str(&format!("<h2 class=\"of\">{name}</h2>\n"));
        body.push_str(&charts::failures(view));
        body.push_str(&tables::failures(view));
    }
    body
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::html::view::{FirstFailure, Latency, Mark, Point, Series};

    fn view() -> View {
        let points = (0..20).map(|index| Point {
            at_ms: f64::from(index) * 100.0,
            rate: 1000.0,
            failed: u64::from(index == 10),
            failures: [("reset".to_owned(), 1)]
                .into_iter()
                .filter(|_| index == 10)
                .collect(),
            open: 16,
            p50: (index != 5).then_some(200.0),
            p90: Some(300.0),
            p99: Some(900.0),
            max: Some(2000.0),
        });
        View {
            mode: "http".to_owned(),
            seconds: 2.0,
            ok: 1999,
            failed: 1,
            rate: 999.5,
            failures: BTreeMap::from([("reset".to_owned(), 1), ("closed".to_owned(), 0)]),
            latency_us: Latency {
                count: 1999,
                min: 100.0,
                max: 2000.0,
                ..Latency::default()
            },
            title: Some("A <run>".to_owned()),
            first_failures: vec![FirstFailure {
                at_ms: 1000.0,
                class: "reset".to_owned(),
                reason: "reading: <reset>".to_owned(),
            }],
            marks: vec![Mark {
                at_ms: 1000.0,
                text: "reload".to_owned(),
            }],
            percentiles: vec![(0.0, 100.0), (50.0, 200.0), (100.0, 2000.0)],
            series: Series {
                interval_ms: 100.0,
                points: points.collect(),
            },
            ..View::default()
        }
    }

    /// Checks that every element that begins also ends, in order.
    #[track_caller]
    fn assert_balanced(page: &str) {
        let mut open = Vec::new();
        for tag in page.split('<').skip(1) {
            let name: String = tag
                .chars()
                .take_while(|c| !matches!(c, ' ' | '>' | '/'))
                .collect();
            match tag.strip_prefix('/') {
                Some(end) => {
                    let end: String = end.chars().take_while(|c| *c != '>').collect();
                    assert_eq!(open.pop(), Some(end.clone()), "</{end}>");
                }
                None if matches!(&*name, "!doctype" | "meta") => {}
                None if tag.split('>').next().is_some_and(|tag| tag.ends_with('/')) => {}
                None => open.push(name),
            }
        }
        assert!(open.is_empty(), "{open:?}");
    }

    #[test]
    fn a_page_has_everything_and_needs_nothing() {
        let page = page(&[view()]);
        assert_balanced(&page);
        for expected in [
            "1 of 2,000 requests failed (0.05 %).",
            "A &lt;run&gt;",
            "reading: &lt;reset&gt;",
            "prefers-color-scheme: dark",
            ">reload</text>",
        ] {
            assert!(page.contains(expected), "{expected}");
        }
        for missing in [
            "<script", "http://", "https://", "NaN", "inf", "<link", "url(",
        ] {
            assert!(!page.contains(missing), "{missing}");
        }
        assert_eq!(page.matches("<svg").count(), 4);
        // Nothing was measured in one point: the band has two parts.
        assert_eq!(page.matches("class=\"band1\"").count(), 2);
    }

    #[test]
    fn runs_are_side_by_side() {
        let mut other = view();
        other.title = Some("B".to_owned());
        other.latency_us.p50 = 300.0;
        let page = page(&[view(), other]);
        assert_balanced(&page);
        assert!(page.contains("Side by side"));
        assert!(page.contains("line-c1"));
        assert!(!page.contains("NaN"));
    }

    #[test]
    fn an_empty_run_has_a_page() {
        let page = page(&[View::default()]);
        assert_balanced(&page);
        assert!(!page.contains("NaN") && !page.contains("inf"), "{page}");
    }
}
