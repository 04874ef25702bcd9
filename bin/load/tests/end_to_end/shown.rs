//! What is shown: a line each second, marks, pages.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::sync::Mutex;

use serde_json::Value;

use crate::support::{HELLO, TestFile, load, run, serve};

#[test]
fn a_line_is_printed_each_second_unless_it_is_not_wanted() {
    let address = serve(|socket, _, _| socket.write_all(HELLO).is_ok());
    let stderr = |more: &[&str]| {
        let words = ["--duration", "1s", "--rate", "100", &address];
        let output = run(words.into_iter().chain(more.iter().copied()));
        String::from_utf8(output.stderr).unwrap()
    };
    let lines = stderr(&[]);
    let first = lines.lines().next().unwrap();
    for expected in ["/s  p50", "p99", "open ", "failed 0"] {
        assert!(first.contains(expected), "{lines}");
    }
    assert!(!lines.contains('\r'), "it is no terminal: {lines:?}");
    assert_eq!(stderr(&["--quiet"]), "");
}

#[test]
fn marks_are_in_the_report_where_they_were_written() {
    let marks = TestFile::with("marks", "before the start\n");
    let file = OpenOptions::new().append(true).open(&marks.0).unwrap();
    let file = Mutex::new(file);
    let address = serve(move |socket, number, _| {
        if number == 50 {
            file.lock().unwrap().write_all(b"weight <50%>\n").unwrap();
        }
        socket.write_all(HELLO).is_ok()
    });
    let page = TestFile::new("page.html");
    let line = format!(
        "--connections 1 --rate 200 --requests 200 --marks {} --html {} --title Weights",
        marks.path(),
        page.path()
    );
    let (_, json) = load(&line, &address);
    assert_eq!(json["marks"].as_array().unwrap().len(), 1, "{json}");
    assert_eq!(json["marks"][0]["text"], "weight <50%>", "{json}");
    let at = json["marks"][0]["at_ms"].as_f64().unwrap();
    assert!(
        at >= 250.0 && at <= json["seconds"].as_f64().unwrap() * 1e3,
        "{json}"
    );
    let page = page.text();
    assert!(page.contains("weight &lt;50%&gt;</text>"), "{page}");
    assert!(page.contains("<title>Weights</title>"), "{page}");
    assert!(page.contains("Nothing failed: 200 requests."), "{page}");
}

#[test]
fn the_series_adds_up() {
    let address = serve(|socket, number, _| match number % 4 {
        0 => socket
            .write_all(b"HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n")
            .is_ok(),
        _ => socket.write_all(HELLO).is_ok(),
    });
    let (_, json) = load("--connections 4 --threads 2 --requests 4000", &address);
    let points = json["series"]["points"].as_array().unwrap();
    let sum = |of: &dyn Fn(&Value) -> Option<u64>| -> u64 { points.iter().filter_map(of).sum() };
    for name in ["ok", "failed"] {
        assert_eq!(
            sum(&|point| point[name].as_u64()),
            json[name],
            "{name}: {json}"
        );
    }
    let by_class = sum(&|point| point["failures"]["wrong_status"].as_u64());
    assert_eq!(by_class, json["failures"]["wrong_status"], "{json}");
    assert!(by_class > 0, "{json}");
    let max = |value: &Value| value.as_f64().unwrap_or(0.0);
    let longest = points
        .iter()
        .map(|point| max(&point["max"]))
        .fold(0.0, f64::max);
    assert_eq!(longest, max(&json["latency_us"]["max"]), "{json}");
    let last = json["percentiles"].as_array().unwrap().last().unwrap();
    assert_eq!(last[1], json["latency_us"]["max"], "{json}");
}

#[test]
fn reports_are_compared_in_a_page() {
    let address = serve(|socket, _, _| socket.write_all(HELLO).is_ok());
    let report = |name: &str| {
        let output = run(["--requests", "50", "--quiet", "--json", &address].into_iter());
        TestFile::with(name, output.stdout)
    };
    let (one, other, page) = (
        report("one.json"),
        report("two.json"),
        TestFile::new("x.html"),
    );
    let words = ["report", one.path(), other.path(), "--html", page.path()];
    let output = run(words.into_iter());
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let page = page.text();
    assert!(page.contains("Side by side"), "{page}");
    assert!(page.contains("one") && page.contains("two"), "{page}");
    let broken = TestFile::with("broken.json", "{}");
    let words = ["report", broken.path(), "--html", "/nowhere/x.html"];
    assert_eq!(run(words.into_iter()).status.code(), Some(2));
}

#[test]
fn a_page_that_cannot_be_written_is_said_before_the_run() {
    let words = [
        "--html",
        "/nowhere/x.html",
        "--duration",
        "600s",
        "127.0.0.1:1",
    ];
    let output = run(words.into_iter());
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("/nowhere/x.html"), "{said}");
}
