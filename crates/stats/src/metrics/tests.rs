//! The exporter's text, beside the list of HAProxy's metrics; and its protocol buffers, read back
//! and compared with the text.

use super::*;
use crate::sample::{self, TestProcess};
use std::path::Path;

const PROTOBUF: &[u8] = b"application/vnd.google.protobuf;\
    proto=io.prometheus.client.MetricFamily;encoding=delimited;q=0.7,text/plain;q=0.3";

fn durations_ms() -> Arc<TestProcess> {
    let sample = TestProcess::of(sample::config());
    let state = &sample.generation.backends[0].state;
    for ms in [3, 3, 4, 900, 5_000_000] {
        let took = std::time::Duration::from_millis(ms);
        state.durations.of(0).note(took);
    }
    sample
}

fn bytes(sample: Arc<TestProcess>, target: &str, accept: &[u8]) -> Vec<u8> {
    let mut answer = metrics(sample, target.as_bytes(), accept);
    let mut bytes = Vec::new();
    let mut pieces = answer.pieces.take().unwrap();
    while pieces(&mut bytes) {}
    bytes
}

fn export(target: &str) -> String {
    String::from_utf8(bytes(durations_ms(), target, b"")).unwrap()
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
    // Parts there is nothing to tell of: they come with what they tell of. The others are of
    // versions after the dialect, 3.2.
    let later = [
        "haproxy_sticktable_",
        "haproxy_resolver_",
        "_patterns_added_total",
        "_patterns_freed_total",
        "_nb_thread_groups",
        "_http_cache_hint_hits_total",
        "_private_idle_connections_current",
    ];
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
    let bucket = "ballast_backend_request_duration_seconds_bucket{proxy=\"be\",le=";
    assert!(text.contains(&format!(
        "{bucket}\"0.001953125\"}} 0\n{bucket}\"0.00390625\"}} 2\n"
    )));
    assert!(text.contains(&format!("{bucket}\"64\"}} 4\n{bucket}\"+Inf\"}} 5\n")));
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
    let sample = TestProcess::of(sample::config());
    assert_eq!(metrics(sample, b"/m?scope=nosuch", b"").status, 400);
}

#[test]
fn what_protocols_count_and_what_proxies_say_comes_when_asked_for() {
    let plain = export("/metrics");
    assert!(!plain.contains("mod=") && !plain.contains("desc="));
    let text = export("/metrics?extra-counters&scope=frontend");
    assert!(text.contains(
        "# TYPE haproxy_frontend_h1_open_connections counter\n\
         haproxy_frontend_h1_open_connections{proxy=\"fe\",mod=\"h1\"} 0\n"
    ));
    assert!(text.contains("# TYPE haproxy_frontend_ssl_sess counter\n"));
    assert!(!export("/metrics?extra-counters&scope=server").contains("h1_open"));
    let mut config = sample::config();
    let front = Arc::make_mut(&mut config.frontends[0]);
    front.common.description = Some("the \"door\"".into());
    let sample = TestProcess::of(config);
    let text = bytes(
        sample,
        "/m?desc-labels&metrics=haproxy_frontend_current_sessions",
        b"",
    );
    let text = String::from_utf8(text).unwrap();
    assert!(
        text.contains("{proxy=\"fe\",desc=\"the \\\"door\\\"\"} 0\n"),
        "{text}"
    );
}

// === reading it back ===

/// A field: its number and what follows.
#[derive(Debug)]
enum Field<'m> {
    Varint(u64),
    Double(f64),
    Bytes(&'m [u8]),
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let (mut value, mut shift) = (0, 0);
    loop {
        let byte = bytes[0];
        *bytes = &bytes[1..];
        value |= u64::from(byte & 0x7f) << shift;
        shift += 7;
        if byte & 0x80 == 0 {
            return value;
        }
    }
}

fn take<'m>(bytes: &mut &'m [u8], count: usize) -> &'m [u8] {
    let (taken, rest) = bytes.split_at(count);
    *bytes = rest;
    taken
}

fn fields(mut message: &[u8]) -> Vec<(u64, Field<'_>)> {
    let mut fields = Vec::new();
    while !message.is_empty() {
        let key = varint(&mut message);
        let field = match key & 7 {
            0 => Field::Varint(varint(&mut message)),
            1 => Field::Double(f64::from_le_bytes(
                take(&mut message, 8).try_into().unwrap(),
            )),
            2 => {
                let length = varint(&mut message) as usize;
                Field::Bytes(take(&mut message, length))
            }
            other => panic!("wire type {other}"),
        };
        fields.push((key >> 3, field));
    }
    fields
}

fn messages<'m>(fields: &[(u64, Field<'m>)], number: u64) -> Vec<&'m [u8]> {
    let found = fields.iter().filter(|(known, _)| *known == number);
    found
        .map(|(_, field)| match field {
            Field::Bytes(bytes) => *bytes,
            other => panic!("{other:?}"),
        })
        .collect()
}

fn text(fields: &[(u64, Field<'_>)], number: u64) -> String {
    String::from_utf8(messages(fields, number)[0].to_vec()).unwrap()
}

fn numbers(fields: &[(u64, Field<'_>)], number: u64) -> Vec<u64> {
    let found = fields.iter().filter(|(known, _)| *known == number);
    found
        .map(|(_, field)| match field {
            Field::Varint(value) => *value,
            other => panic!("{other:?}"),
        })
        .collect()
}

fn double(fields: &[(u64, Field<'_>)], number: u64) -> f64 {
    let found = fields.iter().find(|(known, _)| *known == number);
    match found {
        Some((_, Field::Double(value))) => *value,
        other => panic!("{other:?}"),
    }
}

fn zigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

/// The families of an export: name, type, metrics.
fn families(mut bytes: &[u8]) -> Vec<(String, u64, Vec<Vec<u8>>)> {
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let length = varint(&mut bytes) as usize;
        let family = fields(take(&mut bytes, length));
        assert!(!text(&family, 2).is_empty() || text(&family, 1).starts_with("haproxy_"));
        let metrics = messages(&family, 4).into_iter().map(<[u8]>::to_vec);
        found.push((text(&family, 1), numbers(&family, 3)[0], metrics.collect()));
    }
    found
}

/// A metric as its line of text has it.
fn line(name: &str, kind: u64, metric: &[u8]) -> (String, f64) {
    let metric = fields(metric);
    let labels: Vec<String> = messages(&metric, 1)
        .into_iter()
        .map(|label| {
            let label = fields(label);
            format!("{}=\"{}\"", text(&label, 1), text(&label, 2))
        })
        .collect();
    let value = fields(messages(&metric, if kind == 0 { 3 } else { 2 })[0]);
    let labels = match labels.is_empty() {
        true => String::new(),
        false => format!("{{{}}}", labels.join(",")),
    };
    (format!("{name}{labels}"), double(&value, 1))
}

#[test]
fn protocol_buffers_tell_what_the_text_tells() {
    // What the process counts moves between two exports.
    let target = "/metrics?scope=frontend&scope=backend&scope=server&scope=listener";
    let sample = durations_ms();
    let answer = metrics(Arc::clone(&sample) as _, target.as_bytes(), PROTOBUF);
    assert!(answer.fields[1].1.contains("vnd.google.protobuf; proto="));
    let told = families(&bytes(Arc::clone(&sample), target, PROTOBUF));
    let text = String::from_utf8(bytes(sample, target, b"")).unwrap();
    let mut lines: HashMap<&str, &str> = HashMap::new();
    let mut kinds: HashMap<&str, &str> = HashMap::new();
    for line in text.lines().filter(|line| !line.contains(DURATIONS)) {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            kinds.extend(rest.split_once(' '));
        } else if !line.starts_with('#') {
            lines.extend(line.rsplit_once(' '));
        }
    }
    assert!(lines.len() > 300);
    for (name, kind, metrics) in &told {
        if name == DURATIONS {
            continue;
        }
        assert_eq!(kinds[name.as_str()], ["counter", "gauge"][*kind as usize]);
        for metric in metrics {
            let (line, value) = line(name, *kind, metric);
            let other: f64 = lines.remove(line.as_str()).unwrap().parse().unwrap();
            assert!(
                other == value || other.is_nan() && value.is_nan(),
                "{line}: {value}"
            );
        }
    }
    assert!(lines.is_empty(), "{lines:?}");
    let whole = families(&bytes(TestProcess::of(sample::config()), "/m", PROTOBUF));
    let process = whole.iter().find(|one| one.0 == "haproxy_process_nbthread");
    assert_eq!(line("", 1, &process.unwrap().2[0]), (String::new(), 2.0));
}

#[test]
fn a_histogram_is_told_with_classic_and_with_native_buckets() {
    let target = format!("/m?metrics={DURATIONS}");
    let told = families(&bytes(durations_ms(), &target, PROTOBUF));
    assert_eq!((told.len(), told[0].1), (1, 4));
    let metric = fields(&told[0].2[0]);
    let histogram = fields(messages(&metric, 7)[0]);
    assert_eq!(numbers(&histogram, 1), [5]);
    assert!((double(&histogram, 2) - 5000.91).abs() < 1e-9);
    let classic: Vec<(f64, u64)> = messages(&histogram, 3)
        .into_iter()
        .map(fields)
        .map(|bucket| (double(&bucket, 2), numbers(&bucket, 1)[0]))
        .collect();
    assert_eq!(classic.len(), 22);
    assert!(classic.contains(&(0.001_953_125, 0)) && classic.contains(&(0.003_906_25, 2)));
    assert_eq!(classic.last(), Some(&(f64::INFINITY, 5)));
    let schema = zigzag(numbers(&histogram, 5)[0]);
    assert_eq!((schema, double(&histogram, 6)), (2, (-14.0_f64).exp2()));
    assert_eq!(numbers(&histogram, 7), [0]);
    // As a reader puts buckets together: spans say where, deltas how many.
    let mut deltas = numbers(&histogram, 13).into_iter().map(zigzag);
    let (mut next, mut count, mut native) = (0, 0, Vec::new());
    for span in messages(&histogram, 12) {
        let span = fields(span);
        next += zigzag(numbers(&span, 1)[0]);
        for _ in 0..numbers(&span, 2)[0] {
            count += deltas.next().unwrap();
            native.push((next, count));
            next += 1;
        }
    }
    assert_eq!(deltas.next(), None);
    // Each lies between the bound below its bucket and the bucket's own.
    let bucket_of = |seconds: f64| (seconds.log2() * 4.0).ceil() as i64;
    assert_eq!(
        native,
        [
            (bucket_of(0.003), 2),
            (bucket_of(0.004), 1),
            (bucket_of(0.9), 1),
            // Longer than all bounds: the bucket of the infinite.
            (4 * 1024 + 1, 1)
        ]
    );
}
