//! Every sample in every place of the rule language: both programs take it, warn of it, or refuse it.
//!
//! One file has one line for each sample, and each message names its line, so one run judges hundreds
//! of lines. HAProxy stops reading at some errors: lines that Ballast refuses are given to it one by
//! one, and only some: of samples that are available in the same places one, and of these every
//! twelfth, others in each place. `BALLAST_EVERY_SAMPLE=1` gives it all of them, which takes minutes.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use ballast_tests::{Program, Verdict};

/// Where a sample may stand: the section, its mode, and the line. `$` is the sample, `@` a number
/// that no other line has.
const PLACES: &[(&str, &str, &str)] = &[
    // conditions
    ("frontend", "http", "acl a@ $ -m found"),
    (
        "frontend",
        "http",
        "tcp-request connection accept if { $ -m found }",
    ),
    (
        "frontend",
        "http",
        "tcp-request session accept if { $ -m found }",
    ),
    (
        "frontend",
        "http",
        "tcp-request content accept if { $ -m found }",
    ),
    (
        "frontend",
        "tcp",
        "tcp-request content accept if { $ -m found }",
    ),
    ("frontend", "http", "http-request allow if { $ -m found }"),
    ("frontend", "http", "http-response allow if { $ -m found }"),
    (
        "frontend",
        "http",
        "http-after-response allow if { $ -m found }",
    ),
    ("frontend", "http", "use_backend b if { $ -m found }"),
    ("frontend", "tcp", "use_backend b if { $ -m found }"),
    ("frontend", "http", "monitor fail if { $ -m found }"),
    ("frontend", "http", "redirect location / if { $ -m found }"),
    ("frontend", "http", "stats admin if { $ -m found }"),
    (
        "backend",
        "http",
        "tcp-request content accept if { $ -m found }",
    ),
    (
        "backend",
        "http",
        "tcp-response content accept if { $ -m found }",
    ),
    (
        "backend",
        "tcp",
        "tcp-response content accept if { $ -m found }",
    ),
    ("backend", "http", "http-request allow if { $ -m found }"),
    ("backend", "http", "http-response allow if { $ -m found }"),
    (
        "backend",
        "http",
        "http-after-response allow if { $ -m found }",
    ),
    ("backend", "http", "redirect location / if { $ -m found }"),
    ("backend", "http", "use-server s if { $ -m found }"),
    ("backend", "http", "stick on src table t if { $ -m found }"),
    (
        "backend",
        "http",
        "stick store-response src table t if { $ -m found }",
    ),
    ("backend", "http", "force-persist if { $ -m found }"),
    ("backend", "http", "stats admin if { $ -m found }"),
    (
        "backend",
        "http",
        "stats http-request allow if { $ -m found }",
    ),
    ("backend", "http", "ignore-persist if { $ -m found }"),
    (
        "backend",
        "http",
        "stick match src table t if { $ -m found }",
    ),
    (
        "listen",
        "http",
        "tcp-request content accept if { $ -m found }",
    ),
    (
        "listen",
        "http",
        "tcp-response content accept if { $ -m found }",
    ),
    ("listen", "http", "http-request allow if { $ -m found }"),
    ("listen", "http", "http-response allow if { $ -m found }"),
    ("listen", "http", "redirect location / if { $ -m found }"),
    // expressions
    (
        "frontend",
        "http",
        "tcp-request connection set-var(sess.x) $",
    ),
    ("frontend", "http", "tcp-request session set-var(sess.x) $"),
    ("frontend", "http", "tcp-request content set-var(sess.x) $"),
    ("frontend", "http", "http-request set-var(sess.x) $"),
    ("frontend", "http", "http-response set-var(sess.x) $"),
    ("frontend", "http", "http-after-response set-var(sess.x) $"),
    (
        "frontend",
        "http",
        "tcp-request connection track-sc0 $ table t",
    ),
    ("frontend", "http", "http-request track-sc0 $ table t"),
    ("frontend", "http", "http-request capture $ len 10"),
    ("frontend", "tcp", "tcp-request content capture $ len 10"),
    ("backend", "http", "tcp-request content set-var(sess.x) $"),
    ("backend", "http", "tcp-response content set-var(sess.x) $"),
    ("backend", "http", "http-request set-var(sess.x) $"),
    ("backend", "http", "http-response set-var(sess.x) $"),
    ("backend", "http", "http-response track-sc0 $ table t"),
    ("backend", "http", "stick match $ table t"),
    ("backend", "http", "stick on $ table t"),
    ("backend", "http", "stick store-request $ table t"),
    ("backend", "http", "stick store-response $ table t"),
    ("backend", "http", "server s@ 127.0.0.1:1 pool-conn-name $"),
    ("listen", "http", "http-request set-var(sess.x) $"),
    ("listen", "http", "http-response set-var(sess.x) $"),
    ("global", "", "set-var proc.x $"),
    // formats
    (
        "frontend",
        "http",
        "tcp-request session set-var-fmt(sess.x) %[$]",
    ),
    ("frontend", "http", "http-request set-header x %[$]"),
    ("frontend", "http", "http-response set-header x %[$]"),
    ("frontend", "http", "http-after-response set-header x %[$]"),
    ("frontend", "http", "use_backend %[$]"),
    (
        "frontend",
        "http",
        "tcp-request content set-var-fmt(sess.x) %[$]",
    ),
    (
        "frontend",
        "tcp",
        "tcp-request content set-var-fmt(sess.x) %[$]",
    ),
    ("frontend", "http", "http-request set-var-fmt(sess.x) %[$]"),
    ("frontend", "http", "http-request set-path %[$]"),
    (
        "frontend",
        "http",
        "http-request redirect location %[$] if TRUE",
    ),
    (
        "frontend",
        "http",
        "http-request return status 200 content-type a lf-string %[$] if TRUE",
    ),
    (
        "frontend",
        "http",
        "http-request return status 200 hdr a %[$] if TRUE",
    ),
    ("frontend", "http", "http-request replace-header a b %[$]"),
    ("frontend", "http", "http-request add-acl(x) %[$]"),
    (
        "frontend",
        "http",
        "http-response set-status 200 reason %[$]",
    ),
    ("frontend", "http", "redirect location %[$] if TRUE"),
    ("backend", "http", "http-request set-header x %[$]"),
    ("backend", "http", "http-response set-header x %[$]"),
    (
        "backend",
        "http",
        "tcp-response content set-var-fmt(sess.x) %[$]",
    ),
    ("backend", "http", "use-server %[$] if TRUE"),
    ("backend", "http", "tcp-check send-lf %[$]"),
    ("listen", "http", "http-request set-header x %[$]"),
    ("global", "", "set-var-fmt proc.x %[$]"),
    // settings, of which a section has one: each stands in a section of its own
    ("frontend", "http", "!log-format %[$]"),
    ("frontend", "tcp", "!log-format %[$]"),
    ("frontend", "http", "!error-log-format %[$]"),
    ("frontend", "http", "!unique-id-format %[$]"),
    ("backend", "http", "!balance hash $"),
];

/// Verdicts that differ on purpose: the end of a place's line, the sample, and why.
const DEVIATIONS: &[(&str, &str, &str)] = &[
    (TCP_RESPONSE, "payload(1,1)", WORKS),
    (TCP_RESPONSE, "payload_lv(1,1)", WORKS),
    (STORE_RESPONSE, "payload(1,1)", WORKS),
    (STORE_RESPONSE, "payload_lv(1,1)", WORKS),
];

const TCP_RESPONSE: &str = "tcp-response content accept if { $ -m found }";
const STORE_RESPONSE: &str = "stick store-response src table t if { $ -m found }";
const WORKS: &str =
    "HAProxy's own matrix has the place, and the sample gives the response's bytes there";

/// A sample: its words, and what it shares with those that are judged alike.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
struct Sample {
    text: String,
    alike: String,
}

/// The samples that both programs know, as HAProxy prints them (`-dKall`), with arguments.
fn samples() -> Vec<Sample> {
    let directory = tempfile::TempDir::new().expect("a temporary directory");
    let path = directory.path().join("haproxy.cfg");
    std::fs::write(&path, "global\n").expect("a file of the test is written");
    let printed = Command::new(Program::haproxy().path())
        .args(["-dKsmp", "-q", "-c", "-f"])
        .arg(&path)
        .output()
        .expect("the oracle runs");
    let printed = String::from_utf8_lossy(&printed.stdout).into_owned();
    let known = Program::ballast().run(&["keywords", "--json"]).stdout;
    let known: BTreeSet<String> = known
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).expect("a row in JSON"))
        .filter(|row| row["sections"][0] == "samples" && row["state"] == "honoured")
        .filter_map(|row| Some(row["keyword"].as_str()?.to_owned()))
        .collect();
    let mut samples = Vec::new();
    for line in printed.lines().filter(|line| line.starts_with("[ ")) {
        let Some((places, entry)) = line.split_once(" ] ") else {
            continue;
        };
        let (form, _) = entry.rsplit_once(": ").expect("a type after the arguments");
        let (word, arguments) = form.split_once('(').unwrap_or((form, ""));
        // It needs patterns, and other samples do not.
        if known.contains(word) && word != "http_auth_group" {
            samples.push(Sample {
                text: format!("{word}{}", required(arguments)),
                alike: places.to_owned(),
            });
        }
    }
    assert!(samples.len() > 400, "{} samples", samples.len());
    samples
}

/// Values for the arguments that must be given.
fn required(arguments: &str) -> String {
    let required = arguments.split(['[', ')']).next().unwrap_or_default();
    let values: Vec<&str> = required
        .split(',')
        .filter(|kind| !kind.is_empty())
        .map(|kind| match kind {
            "string" => "a",
            "integer" | "unsigned" => "1",
            "frontend" => "f",
            "backend" | "table" => "b",
            "server" => "b/s",
            "user list" => "u",
            "IPv4 address" => "192.0.2.1",
            "IPv6 address" => "2001:db8::1",
            // HAProxy refuses it, and the place fails by name.
            other => other,
        })
        .collect();
    match values.is_empty() {
        true => String::new(),
        false => format!("({})", values.join(",")),
    }
}

/// What the words of samples need in place of the values above.
fn with_valid_arguments(text: &str) -> String {
    let valid = match text {
        "acl(a)" => "acl(TRUE)",
        "bool(a)" => "bool(true)",
        "bin(a)" => "bin(00)",
        "var(a)" => "var(txn.a)",
        "env(a)" => "env(PATH)",
        "uuid(1)" => "uuid(4)",
        "fc_pp_tlv(a)" => "fc_pp_tlv(1)",
        "meth(a)" => "meth(GET)",
        "method(a)" => "method",
        other => other,
    };
    valid.to_owned()
}

/// The sections that a place needs around it.
const TAIL: &str = "\
userlist u
    user a insecure-password b
frontend f
    bind 127.0.0.1:2
    default_backend b
backend b
    stick-table type string size 10 store gpc0,gpt0,conn_rate(10s)
    server s 127.0.0.1:1
backend t
    stick-table type string size 10 store gpc0,gpt0,conn_rate(10s)
";

/// A configuration with a line of `place` for each sample, and which sample stands on which line.
fn configuration(
    place: &(&str, &str, &str),
    samples: &[&Sample],
) -> (String, BTreeMap<usize, usize>) {
    let (section, mode, line) = *place;
    let (line, own) = match line.strip_prefix('!') {
        Some(line) => (line, true),
        None => (line, false),
    };
    let defaults = format!(
        "defaults\n    mode {mode}\n    timeout client 9s\n    timeout server 9s\n    \
         timeout connect 9s\n",
        mode = if mode.is_empty() { "http" } else { mode },
    );
    let begin = |number: usize| {
        let words = match section {
            "frontend" => "    bind 127.0.0.1:1\n    log 127.0.0.1:514 local0\n",
            "listen" => "    bind 127.0.0.1:1\n    server s 127.0.0.1:1\n",
            _ => "    server s 127.0.0.1:1\n    option tcp-check\n",
        };
        format!("{section} p{number}\n{words}")
    };
    let mut text = "global\n    nbthread 1\n".to_owned();
    if section != "global" {
        text.push_str(&defaults);
        if !own {
            text.push_str(&begin(0));
        }
    }
    let mut lines = BTreeMap::new();
    let mut number = text.lines().count();
    for (at, sample) in samples.iter().enumerate() {
        if own {
            let head = begin(at);
            // Some messages name the section.
            lines.insert(number + 1, at);
            number += head.lines().count();
            text.push_str(&head);
        }
        let line = line.replace('$', &with_valid_arguments(&sample.text));
        writeln!(text, "    {}", line.replace('@', &at.to_string())).expect("it is a string");
        number += 1;
        lines.insert(number, at);
    }
    if section == "global" {
        text.push_str(&defaults);
    }
    text.push_str(TAIL);
    (text, lines)
}

/// What a program says of each sample in a place. Lines that it refuses are left out until it accepts
/// the rest, for some checks are made only then.
fn judge(
    program: &Program,
    place: &(&str, &str, &str),
    samples: &[&Sample],
) -> BTreeMap<String, (Verdict, String)> {
    /// Rounds until the rest is accepted: HAProxy may stop at each line that it refuses.
    const ROUNDS_MAX: usize = 60;
    let mut judged = BTreeMap::new();
    let mut left = samples.to_vec();
    for _ in 0..ROUNDS_MAX {
        let (text, lines) = configuration(place, &left);
        let verdicts = program.verdicts(&text);
        let (mut refused, mut outside) = (BTreeSet::new(), verdicts.others);
        for (number, said) in verdicts.lines {
            let Some(at) = lines.get(&number) else {
                outside.push(said.1);
                continue;
            };
            if said.0 == Verdict::Refused {
                refused.insert(*at);
            }
            judged.insert(left[*at].text.clone(), said);
        }
        if verdicts.is_accepted {
            return judged;
        }
        assert!(
            !refused.is_empty(),
            "{} refuses '{}' for no line of it: {:?}",
            program.name(),
            place.2,
            outside
        );
        let kept = left
            .iter()
            .enumerate()
            .filter(|(at, _)| !refused.contains(at));
        left = kept.map(|(_, sample)| *sample).collect();
    }
    assert!(
        left.is_empty(),
        "{} refuses '{}' again and again",
        program.name(),
        place.2
    );
    judged
}

/// Of samples that are refused, one in so many is given to HAProxy.
const SHARE: usize = 12;

/// Samples of a place that the programs judge differently. `number` is that of the place.
fn differences(number: usize, place: &(&str, &str, &str), samples: &[Sample]) -> Vec<String> {
    let (haproxy, ballast) = (Program::haproxy(), Program::ballast());
    // HAProxy dies of these where there is no proxy.
    let is_deadly = |sample: &&Sample| {
        place.0 == "global" && (sample.text.starts_with("acl(") || sample.text == "unique-id")
    };
    let all: Vec<&Sample> = samples.iter().filter(|one| !is_deadly(one)).collect();
    let ours = judge(&ballast, place, &all);
    let verdict = |judged: &BTreeMap<String, (Verdict, String)>, sample: &Sample| {
        let said = judged.get(&sample.text);
        said.cloned().unwrap_or((Verdict::Taken, String::new()))
    };
    let (refused, others): (Vec<&Sample>, Vec<&Sample>) = all
        .into_iter()
        .partition(|sample| verdict(&ours, sample).0 == Verdict::Refused);
    let mut theirs = judge(&haproxy, place, &others);
    let every = std::env::var_os("BALLAST_EVERY_SAMPLE").is_some();
    let mut alike = BTreeSet::new();
    let mut compared = others;
    for sample in refused {
        let is_new = alike.insert(&sample.alike);
        if every || (is_new && (alike.len() + number).is_multiple_of(SHARE)) {
            theirs.append(&mut judge(&haproxy, place, &[sample]));
            compared.push(sample);
        }
    }
    let (section, mode, line) = place;
    let mut differing = Vec::new();
    for sample in compared {
        let (we, they) = (verdict(&ours, sample), verdict(&theirs, sample));
        let is_known = DEVIATIONS
            .iter()
            .any(|(end, text, _)| line.ends_with(end) && sample.text == *text);
        if we.0 != they.0 && !is_known {
            differing.push(format!(
                "{section} {mode} '{line}' {}: HAProxy {:?}, Ballast {:?}\n    {}\n    {}",
                sample.text, they.0, we.0, they.1, we.1
            ));
        }
    }
    differing
}

#[test]
fn each_sample_is_judged_in_each_place_as_haproxy_judges_it() {
    let samples = samples();
    let next = AtomicUsize::new(0);
    let found = Mutex::new(Vec::new());
    let work = || {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(place) = PLACES.get(number) else {
                break;
            };
            let differing = differences(number, place, &samples);
            found.lock().expect("no judge panics").extend(differing);
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(work);
        scope.spawn(work);
    });
    let found = found.into_inner().expect("no judge panics");
    assert!(
        found.is_empty(),
        "{} verdicts differ:\n{}",
        found.len(),
        found.join("\n")
    );
}
