//! The exporter's text, beside the list of HAProxy's metrics.

use super::*;
use crate::sample::{self, Sample};
use std::path::Path;

fn export(target: &str) -> String {
    let sample = Sample::of(sample::config());
    let state = &sample.generation.backends[0].state;
    state
        .durations
        .of(0)
        .note(std::time::Duration::from_millis(3));
    let mut answer = metrics(sample, target.as_bytes());
    let mut text = String::new();
    let mut pieces = answer.pieces.take().unwrap();
    while pieces(&mut text) {}
    text
}

#[test]
fn every_name_and_type_of_haproxy_is_there() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../../shared/reference/prometheus-metrics.txt");
    let Ok(reference) = std::fs::read_to_string(&path) else {
        eprintln!("SKIPPED: {} is not there", path.display());
        return;
    };
    let text = export("/metrics");
    let ours: Vec<&str> = text.lines().filter(|l| l.starts_with("# TYPE")).collect();
    // Parts there is nothing to tell of: they come with what they tell of.
    let later = ["haproxy_sticktable_", "haproxy_resolver_"];
    let missing: Vec<&str> = reference
        .lines()
        .filter(|line| line.starts_with("# TYPE"))
        .filter(|line| !later.iter().any(|part| line.contains(part)))
        .filter(|line| !ours.contains(line))
        .collect();
    assert!(missing.is_empty(), "{missing:#?}");
}

#[test]
fn every_line_is_a_number_of_the_metric_above_it() {
    let text = export("/metrics");
    let mut name = "";
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            name = rest.split(' ').next().unwrap();
        } else if !line.starts_with('#') {
            assert!(line.starts_with(name), "{line} under {name}");
            let value = line.rsplit(' ').next().unwrap();
            assert!(value.parse::<f64>().is_ok(), "{line}");
        }
    }
    assert!(text.contains(
        "ballast_backend_request_duration_seconds_bucket{proxy=\"be\",le=\"0.004096\"} 1\n"
    ));
    assert!(text.contains("haproxy_server_status{proxy=\"be\",server=\"s2\",state=\"MAINT\"} 1"));
    assert!(text.contains("haproxy_backend_agg_server_status{proxy=\"be\",state=\"UP\"} 2"));
}

#[test]
fn scopes_and_names_choose() {
    let text = export("/metrics?scope=server&no-maint");
    assert!(text.starts_with("# HELP haproxy_server_") && !text.contains("\"s2\""));
    assert!(!text.contains("haproxy_process_") && !text.contains("haproxy_backend_"));
    assert_eq!(export("/metrics?scope="), "");
    let text = export("/metrics?metrics=haproxy_process_nbthread");
    assert_eq!(text.lines().count(), 3, "{text}");
    let sample = Sample::of(sample::config());
    assert_eq!(metrics(sample, b"/m?scope=nosuch").status, 400);
}
