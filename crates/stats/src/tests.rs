//! The forms against each other, against the reference lists, and against HAProxy.

#[path = "../../../tests/src/oracle.rs"]
mod installed;

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::sample::{self, TestProcess};
use crate::{Filter, InfoForm, ProcessLoad, Stat, StatForm, StatisticsRows, columns, info};

fn stat(sample: &Arc<TestProcess>, filter: Filter, form: StatForm) -> String {
    let host: Arc<dyn crate::StatsHost> = Arc::clone(sample) as _;
    let mut stat = Stat::new(StatisticsRows::new(host, filter), form);
    let mut text = String::new();
    while stat.write_next(&mut text) {}
    text
}

/// Rows of a CSV: (proxy, name) to column to value.
fn table(csv: &str) -> BTreeMap<(String, String), BTreeMap<String, String>> {
    let mut lines = csv.lines().filter(|line| !line.is_empty());
    let head = lines.next().unwrap().strip_prefix("# ").unwrap();
    let head: Vec<&str> = head.split(',').collect();
    lines
        .map(|line| {
            let row: BTreeMap<String, String> = head
                .iter()
                .zip(line.split(','))
                .map(|(name, value)| ((*name).to_owned(), value.to_owned()))
                .collect();
            ((row["pxname"].clone(), row["svname"].clone()), row)
        })
        .collect()
}

#[test]
fn rows_come_in_the_order_of_the_file_and_every_row_has_every_column() {
    let csv = stat(
        &TestProcess::of(sample::config()),
        Filter::default(),
        StatForm::Text,
    );
    let names: Vec<String> = csv
        .lines()
        .skip(1)
        .map(|line| line.splitn(3, ',').take(2).collect::<Vec<_>>().join("/"))
        .collect();
    let expected = "fe/FRONTEND fe/door fe/sock-2 fe2/FRONTEND be/s1 be/s2 be/s3 be/BACKEND \
                    be2/t1 be2/BACKEND none/BACKEND";
    assert_eq!(names.join(" "), expected);
    let counts: Vec<usize> = csv.lines().map(|line| line.matches(',').count()).collect();
    assert!(counts.iter().all(|&count| count == columns().count() + 1));
}

#[test]
fn what_is_configured_and_counted_is_shown() {
    let sample = TestProcess::of(sample::config());
    let fe = &sample.generation.frontends[0];
    for worker in 0..2 {
        fe.state.counters.of(worker).sessions.add(3);
        fe.state.counters.of(worker).count_status(404);
    }
    fe.state.sessions.enter();
    let be = &sample.generation.backends[0];
    be.servers[0].state.counters.of(1).bytes_in.add(1 << 40);
    let rows = table(&stat(&sample, Filter::default(), StatForm::Text));
    let cell = |proxy: &str, name: &str, column: &str| {
        rows[&(proxy.to_owned(), name.to_owned())][column].clone()
    };
    assert_eq!(cell("fe", "FRONTEND", "stot"), "6");
    assert_eq!(cell("fe", "FRONTEND", "hrsp_4xx"), "2");
    assert_eq!(cell("fe", "FRONTEND", "scur"), "1");
    assert_eq!(cell("fe", "door", "type"), "3");
    assert_eq!(cell("be", "s1", "bin"), "1099511627776");
    assert_eq!(cell("be", "s2", "status"), "MAINT");
    assert_eq!(cell("be", "s3", "addr"), "[::1]:18492");
    assert_eq!(cell("be", "BACKEND", "weight"), "11");
    assert_eq!(cell("none", "BACKEND", "status"), "UP");
}

#[test]
fn what_is_believed_of_a_server_and_of_one_that_follows_it_is_shown() {
    let mut config = sample::config();
    sample::server_of(&mut config, 0, 0).checks.enabled = true;
    sample::server_of(&mut config, 0, 2).track = Some(("be".into(), "s1".into()));
    let sample = TestProcess::of(config);
    let servers = &sample.generation.backends[0].servers;
    let verdict = {
        let mut health = servers[0].state.health();
        let mut verdict = health.check().last.clone();
        (verdict.code, verdict.duration_ms) = (None, Some(3));
        verdict.info = "Connection refused".into();
        health.check_done(10, verdict.clone());
        verdict
    };
    let rows = table(&stat(&sample, Filter::default(), StatForm::Text));
    let cell = |name: &str, column: &str| rows[&("be".to_owned(), name.to_owned())][column].clone();
    assert_eq!(cell("s1", "check_status"), verdict.status.word());
    assert_eq!(cell("s1", "check_desc"), verdict.status.description());
    assert_eq!(cell("s1", "check_duration"), "3");
    assert_eq!(cell("s1", "last_chk"), "Connection refused");
    assert_eq!(
        (cell("s1", "check_rise"), cell("s1", "check_fall")),
        ("2".into(), "3".into())
    );
    assert_eq!(
        (cell("s1", "chkdown"), cell("s1", "lastchg")),
        ("0".into(), "0".into())
    );
    assert_eq!(
        (cell("s3", "tracked"), cell("s3", "check_rise")),
        ("be/s1".into(), String::new())
    );
    assert_eq!(cell("s3", "status"), cell("s1", "status"));
    assert!(
        cell("s1", "status").starts_with("UP"),
        "{}",
        cell("s1", "status")
    );
}

#[test]
fn filters_choose_proxies_types_numbers_and_states() {
    let sample = TestProcess::of(sample::config());
    let names = |filter: Filter| {
        let csv = stat(&sample, filter, StatForm::Text);
        let rows = csv.lines().skip(1);
        rows.map(|line| line.split(',').nth(1).unwrap().to_owned())
            .collect::<Vec<_>>()
            .join(" ")
    };
    let all = Filter::default();
    assert_eq!(names(all.clone().with_numbers(Some(4), "4", "2")), "s2");
    assert_eq!(
        names(all.clone().with_numbers(Some(4), "-1", "2")),
        "s2 BACKEND"
    );
    assert_eq!(
        names(all.clone().with_numbers(Some(2), "8", "-1")),
        "door sock-2"
    );
    assert_eq!(
        names(all.clone().with_numbers(None, "1", "-1")),
        "FRONTEND FRONTEND"
    );
    assert_eq!(names(all.clone().with_numbers(Some(99), "-1", "-1")), "");
    let no_maint = Filter {
        no_maint: true,
        ..all.clone()
    };
    assert_eq!(
        names(no_maint.clone().with_numbers(Some(4), "4", "-1")),
        "s1 s3"
    );
    let up = Filter {
        up: true,
        ..all.clone()
    };
    assert_eq!(names(up.clone().with_numbers(Some(4), "4", "-1")), "s1 s3");
}

#[test]
fn weights_of_backups_count_only_when_no_active_server_is_left() {
    let mut config = sample::config();
    let first = sample::server_of(&mut config, 1, 0);
    (first.backup, first.weight) = (true, 7);
    let mut other = sample::server("t2", 2, "127.0.0.1:2");
    (other.backup, other.weight) = (true, 8);
    let backend = Arc::make_mut(&mut config.backends[1]);
    backend.servers.push(Arc::new(other));
    let weight = |config| {
        let rows = table(&stat(
            &TestProcess::of(config),
            Filter::default(),
            StatForm::Text,
        ));
        let row = &rows[&("be2".to_owned(), "BACKEND".to_owned())];
        (
            row["weight"].clone(),
            row["act"].clone(),
            row["bck"].clone(),
        )
    };
    assert_eq!(weight(config.clone()), ("7".into(), "0".into(), "2".into()));
    Arc::make_mut(&mut config.backends[1]).options.all_backups = true;
    assert_eq!(weight(config), ("15".into(), "0".into(), "2".into()));
}

#[test]
fn values_that_csv_and_json_could_misread_are_dressed() {
    let mut config = sample::config();
    sample::server_of(&mut config, 0, 0).cookie = Some("a,\"b\"\n".into());
    let sample = TestProcess::of(config);
    let filter = Filter::default().with_numbers(Some(4), "4", "1");
    assert!(stat(&sample, filter.clone(), StatForm::Text).contains(",\"a,\"\"b\"\"\n\","));
    assert!(stat(&sample, filter.clone(), StatForm::Json).contains(r#""value":"a,\"b\"\n"}"#));
    let typed = stat(
        &sample,
        filter.clone(),
        StatForm::Typed {
            has_descriptions: false,
        },
    );
    assert!(
        typed.contains("cookie.1:CNS:str:a,\"b\" \n"),
        "one value is one line"
    );
    let counters = &sample.generation.backends[0].servers[0].state.counters;
    counters.of(0).bytes_out.set(u64::MAX);
    let large = r#""type":"u64","value":"18446744073709551615"}"#;
    assert!(stat(&sample, filter.clone(), StatForm::Json).contains(large));
}

#[test]
fn info_has_its_lines_in_every_form() {
    let sample = TestProcess::of(sample::config());
    sample.registry.process().counters.of(1).requests.add(5);
    let load = ProcessLoad {
        tasks: 3,
        cli_sessions: 1,
    };
    let text = info(&*sample, load, InfoForm::default());
    assert!(text.starts_with("Name: HAProxy\nVersion: 0.1\n"), "{text}");
    for line in [
        "\nPid: 7\n",
        "\nCumReq: 5\n",
        "\nTasks: 3\n",
        "\nUptime: 0d 0h00m0",
        "\nMaxconn: 100\n",
    ] {
        assert!(text.contains(line), "{line} in {text}");
    }
    assert!(!text.contains("description"), "there is none");
    let typed_form = InfoForm {
        form: StatForm::Typed {
            has_descriptions: false,
        },
        ..InfoForm::default()
    };
    let described = InfoForm {
        help: true,
        ..typed_form
    };
    let typed = info(&*sample, load, described);
    assert!(
        typed.contains("\n47.Tasks.1:MGP:u32:3:\"Tasks of all workers\"\n"),
        "{typed}"
    );
    let fractions = InfoForm {
        fractions: true,
        ..typed_form
    };
    let typed = info(&*sample, load, fractions);
    for line in [
        ".Uptime_sec.1:MDP:flt:0",
        ".SslFrontendKeyRate.1:MRP:flt:0\n",
        ".MaxSessRate.1:MRP:u32:0\n",
        ".SslFrontendSessionReuse_pct.1:MRP:flt:0\n",
    ] {
        assert!(typed.contains(line), "{line} in {typed}");
    }
    let json = InfoForm {
        form: StatForm::Json,
        ..InfoForm::default()
    };
    let json = info(&*sample, load, json);
    assert!(json.starts_with("[{\"field\":{\"pos\":0,\"name\":\"Name\"},\"processNum\":1,"));
    assert!(json.ends_with("}}]\n"));
}

// === the oracle ===

struct Oracle {
    child: Child,
    directory: PathBuf,
}

impl Drop for Oracle {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

impl Oracle {
    /// Debian's HAProxy with the sample's configuration, or nothing where it is not installed.
    fn start() -> Option<Self> {
        let program = installed::haproxy()?;
        let directory = std::env::temp_dir().join(format!("ballast-stats-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let socket = directory.join("cli.sock");
        let config = format!(
            "global\n maxconn 100\n nbthread 2\n node here\n stats socket {}\n\
             defaults\n mode http\n timeout client 5s\n timeout server 5s\n timeout connect 5s\n\
             frontend fe\n maxconn 50\n bind 127.0.0.1:18481 name door\n bind 127.0.0.1:18482\n \
             option socket-stats\n default_backend be\n\
             frontend fe2\n mode tcp\n maxconn 7\n rate-limit sessions 5\n bind 127.0.0.1:18483\n \
             default_backend be2\n\
             backend be\n balance leastconn\n cookie SRV insert\n fullconn 33\n \
             server s1 127.0.0.1:18490 weight 10 cookie c1 maxconn 10 maxqueue 4\n \
             server s2 127.0.0.1:18491 disabled backup\n server s3 [::1]:18492\n\
             backend be2\n mode tcp\n fullconn 44\n server t1 127.0.0.1:18490\n\
             backend none\n fullconn 1\n",
            socket.display()
        );
        let file = directory.join("haproxy.cfg");
        std::fs::write(&file, config).unwrap();
        let child = Command::new(program)
            .args(["-db", "-f"])
            .arg(&file)
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let oracle = Self { child, directory };
        let until = Instant::now() + Duration::from_secs(10);
        while UnixStream::connect(&socket).is_err() {
            assert!(Instant::now() < until, "HAProxy did not start");
            std::thread::sleep(Duration::from_millis(10));
        }
        Some(oracle)
    }

    fn ask(&self, command: &str) -> String {
        let mut socket = UnixStream::connect(self.directory.join("cli.sock")).unwrap();
        socket.write_all(command.as_bytes()).unwrap();
        socket.write_all(b"\n").unwrap();
        let mut answer = String::new();
        socket.read_to_string(&mut answer).unwrap();
        answer.trim_end().to_owned() + "\n"
    }
}

/// What no two processes have in common, and what HAProxy 2.6 knew otherwise or we do not count
/// yet.
const NOT_COMPARED: &[&str] = &[
    "lastchg",
    "downtime",
    "qtime",
    "ctime",
    "rtime",
    "ttime",
    "qtime_max",
    "ctime_max",
    "rtime_max",
    "ttime_max",
    "need_conn_est",
];

#[test]
fn a_fresh_process_shows_what_haproxy_shows() {
    let Some(oracle) = Oracle::start() else {
        return;
    };
    let sample = TestProcess::of(sample::config());
    let theirs = oracle.ask("show stat");
    if oracle.ask("show info").contains("\nVersion: 3.2.") {
        let ours = stat(&sample, Filter::default(), StatForm::Text);
        assert_eq!(ours.lines().next(), theirs.lines().next());
    }
    let theirs = table(&theirs);
    let ours = table(&stat(&sample, Filter::default(), StatForm::Text));
    assert_eq!(
        ours.keys().collect::<Vec<_>>(),
        theirs.keys().collect::<Vec<_>>()
    );
    let mut differences = Vec::new();
    for (name, row) in &theirs {
        for (column, value) in row.iter().filter(|(column, _)| !column.is_empty()) {
            // HAProxy before 3.2 leaves this one empty in the rows of listeners.
            let is_new = column == "conn_tot" && value.is_empty();
            if !is_new && !NOT_COMPARED.contains(&column.as_str()) && ours[name][column] != *value {
                differences.push(format!(
                    "{name:?} {column}: {} not {value}",
                    ours[name][column]
                ));
            }
        }
    }
    assert!(differences.is_empty(), "{differences:#?}");
    if installed::version() < (3, 2) {
        eprintln!("SKIPPED: the kinds of typed lines, which HAProxy before 3.2 gives otherwise");
        return;
    }
    compare_kinds(
        &oracle.ask("show stat typed"),
        &stat(
            &sample,
            Filter::default(),
            StatForm::Typed {
                has_descriptions: false,
            },
        ),
    );
    let info_typed = info(
        &*sample,
        ProcessLoad::default(),
        InfoForm {
            form: StatForm::Typed {
                has_descriptions: false,
            },
            ..InfoForm::default()
        },
    );
    compare_kinds(&oracle.ask("show info typed"), &info_typed);
}

/// Each typed line of HAProxy has one of ours with the same letters and type.
fn compare_kinds(theirs: &str, ours: &str) {
    let kinds = |text: &str| -> BTreeMap<String, String> {
        text.lines()
            .filter_map(|line| {
                let mut parts = line.split(':');
                let mut path: Vec<&str> = parts.next()?.split('.').collect();
                // Places differ between versions.
                path.remove(if path.len() > 3 { 3 } else { 0 });
                Some((
                    path.join("."),
                    format!("{}:{}", parts.next()?, parts.next()?),
                ))
            })
            .collect()
    };
    let (theirs, ours) = (kinds(theirs), kinds(ours));
    let differences: Vec<String> = theirs
        .iter()
        .filter(|(name, _)| !name.contains("TotalSplicded"))
        .filter(|(name, _)| {
            !NOT_COMPARED
                .iter()
                .any(|column| name.contains(&format!(".{column}.")))
        })
        .filter(|(name, kind)| ours.get(*name) != Some(kind))
        .map(|(name, kind)| format!("{name}: {:?} not {kind}", ours.get(name)))
        .collect();
    assert!(differences.is_empty(), "{differences:#?}");
}
