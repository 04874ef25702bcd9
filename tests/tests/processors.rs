//! Processors and threads on this machine: how many threads there are, where they run, and what `-dc`
//! prints, compared with HAProxy. Described machines are compared in `crates/topology`.

use std::fs;

use ballast_tests::{Client, Launch, Program, Proxy, free_port};

/// Lines of the global section, and a command that the program runs under.
const CASES: [(&str, &[&str]); 14] = [
    ("", &[]),
    ("nbthread 3", &[]),
    ("thread-hard-limit 1", &[]),
    ("nbthread 4\n    thread-groups 2", &[]),
    ("cpu-map auto:1/1-2 0-1", &[]),
    ("cpu-map 1/1 0", &[]),
    ("cpu-map 1 1", &[]),
    ("cpu-map 1 900", &[]),
    (
        "nbthread 4\n    thread-groups 2\n    cpu-map 1 0\n    cpu-map 2 1",
        &[],
    ),
    ("cpu-set only-cpu 1", &[]),
    ("cpu-set drop-cpu 0\n    cpu-policy performance", &[]),
    ("cpu-policy group-by-cluster", &[]),
    ("", &["taskset", "-c", "0"]),
    ("cpu-set reset", &["taskset", "-c", "0"]),
];

/// More threads than processors: what is warned of counts processors that are mapped, too.
const CROWDED: [&str; 5] = [
    "nbthread 8\n    cpu-map 1/1 0,9",
    "nbthread 5\n    cpu-map 1/1 0-3",
    "nbthread 3\n    cpu-map 1/1 9",
    "nbthread 3\n    cpu-map 1/1 0-3",
    "nbthread 6\n    cpu-map 1/1-2 8-11",
];

fn configuration(global: &str, port: u16) -> String {
    format!(
        "global\n    {global}\ndefaults\n    mode http\n    timeout client 5s\n\
         frontend www\n    bind 127.0.0.1:{port}\n    http-request return status 200\n"
    )
}

/// The processors that each thread may use that serves connections, in the order of the threads. The
/// threads of HAProxy do nothing else; those of Ballast have numbers in their names.
fn processors(proxy: &Proxy, program: &Program) -> Vec<String> {
    let tasks = fs::read_dir(format!("/proc/{}/task", proxy.pid())).expect("the process lives");
    let mut found: Vec<(usize, String)> = tasks
        .flatten()
        .filter_map(|task| {
            let status = fs::read_to_string(task.path().join("status")).ok()?;
            let value = |name: &str| {
                let line = status.lines().find_map(|line| line.strip_prefix(name))?;
                Some(line.trim().to_owned())
            };
            let thread: usize = match program.is_ballast() {
                true => value("Name:")?.strip_prefix("ballast-")?.parse().ok()?,
                false => task.file_name().into_string().ok()?.parse().ok()?,
            };
            Some((thread, value("Cpus_allowed_list:")?))
        })
        .collect();
    found.sort();
    found.into_iter().map(|(_, list)| list).collect()
}

#[test]
fn threads_run_where_those_of_haproxy_do() {
    for (global, under) in CASES {
        let [theirs, ours] = Program::both().map(|program| {
            let port = free_port();
            let launch = Launch {
                ports: &[port],
                under,
                ..Launch::default()
            };
            let proxy = Proxy::launch(&program, &configuration(global, port), &launch);
            // Who answers has started, and bound, all threads.
            assert_eq!(Client::get_once(port, "/").status, 200, "{global}");
            processors(&proxy, &program)
        });
        assert!(!theirs.is_empty(), "{global} {under:?}");
        assert_eq!(ours, theirs, "{global} {under:?}");
    }
}

/// Messages without what differs from run to run.
fn messages(stderr: &str) -> Vec<String> {
    let lines = stderr
        .lines()
        .filter(|line| line.starts_with("[WARNING]") || line.starts_with("[ALERT]"));
    let texts = lines.filter_map(|line| line.split_once(" : "));
    texts.map(|(_, text)| text.to_owned()).collect()
}

#[test]
fn the_table_of_processors_and_threads_is_haproxys() {
    let cases = CASES.map(|(global, _)| global);
    for global in cases.into_iter().chain(CROWDED) {
        let directory = tempfile::TempDir::new().expect("a directory");
        let file = directory.path().join("haproxy.cfg");
        fs::write(&file, configuration(global, 8080)).expect("a file");
        let [theirs, ours] = Program::both()
            .map(|program| program.run(&["-dc", "-c", "-f", &file.to_string_lossy()]));
        assert!(theirs.stdout.contains("Thread CPU Bindings:"), "{theirs:?}");
        assert_eq!(ours.stdout, theirs.stdout, "{global}");
        assert_eq!(messages(&ours.stderr), messages(&theirs.stderr), "{global}");
    }
}

#[test]
fn the_table_is_printed_when_a_bind_names_threads_that_are_not_there() {
    // With warnings before the alert, and without.
    for timeouts in ["", "    timeout client 5s\n"] {
        let directory = tempfile::TempDir::new().expect("a directory");
        let file = directory.path().join("haproxy.cfg");
        let text = format!(
            "global\n    nbthread 2\ndefaults\n    mode http\n{timeouts}frontend www\n    \
             bind 127.0.0.1:8080 thread 5\n"
        );
        fs::write(&file, text).expect("a file");
        let [theirs, ours] = Program::both()
            .map(|program| program.run(&["-dc", "-c", "-f", &file.to_string_lossy()]));
        assert!(theirs.stdout.contains("Thread CPU Bindings:"), "{theirs:?}");
        assert_eq!(ours.stdout, theirs.stdout);
        assert_eq!(ours.status.code(), theirs.status.code());
    }
}

#[test]
fn lines_that_cannot_be_are_refused_in_haproxys_words() {
    for global in [
        "nbthread 0",
        "nbthread 99999",
        "thread-groups 33",
        "thread-groups 2\n    nbthread 1",
        "thread-group 1 1-2\n    nbthread 4",
        "thread-group 1 1 3",
        "thread-groups 2\n    thread-group 1 12",
        "thread-groups 2\n    nbthread 4\n    thread-group 1 12",
        "thread-hard-limit x",
        "cpu-map 1/65 0",
        "cpu-map auto:1/1 0-3",
        "cpu-map 1 x",
        "cpu-set drop-cpu",
        "cpu-set nothing",
        "cpu-policy nothing",
    ] {
        let text = configuration(global, 8080);
        let [theirs, ours] = Program::both().map(|program| program.check(&text));
        // The directory of the file has another name each time.
        let told = |stderr: &str| -> Vec<String> {
            let all = messages(stderr).into_iter();
            let cut = |text: String| {
                text.rsplit_once("haproxy.cfg")
                    .map_or(text.clone(), |(_, rest)| rest.to_owned())
            };
            all.filter(|text| !text.contains("rror(s) found") && !text.contains("Fatal errors"))
                .map(cut)
                .collect()
        };
        assert_eq!(theirs.status.code(), Some(1), "{global}");
        assert_eq!(ours.status.code(), Some(1), "{global}");
        assert_eq!(told(&ours.stderr), told(&theirs.stderr), "{global}");
    }
}

#[test]
fn a_described_machine_is_read_in_place_of_this_one() {
    let port = free_port();
    let machine = tempfile::TempDir::new().expect("a directory");
    let write = |name: &str, text: &str| {
        let file = machine.path().join(name);
        fs::create_dir_all(file.parent().expect("a directory")).expect("it is made");
        fs::write(file, text).expect("it is written");
    };
    write("cpu/possible", "0-5\n");
    write("cpu/online", "0-5\n");
    write("affinity", "0-4\n");
    for cpu in 0..6 {
        write(
            &format!("cpu/cpu{cpu}/topology/thread_siblings_list"),
            &format!("{cpu}\n"),
        );
        let package = if cpu < 3 { "0-2\n" } else { "3-5\n" };
        write(&format!("cpu/cpu{cpu}/topology/package_cpus_list"), package);
    }
    let root = machine.path().to_string_lossy();
    let launch = Launch {
        ports: &[port],
        words: &["-db", "-dc"],
        variables: &[("BALLAST_SYSFS", &root)],
        ..Launch::default()
    };
    let program = Program::ballast();
    let global = "cpu-policy group-by-cluster";
    let proxy = Proxy::launch(&program, &configuration(global, port), &launch);
    let table = proxy.stdout();
    assert!(table.contains("  1/1-3     1-3        3: 0-2\n"), "{table}");
    assert!(table.contains("  2/1-2     4-5        2: 3-4\n"), "{table}");
    assert!(table.contains("[----] cpu=  5 pk=01"), "{table}");
    // Processors that this machine does not have keep nobody from serving.
    assert_eq!(Client::get_once(port, "/").status, 200);
    assert_eq!(processors(&proxy, &program).len(), 5);
}
