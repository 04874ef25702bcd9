//! Where HAProxy 3.2 puts its threads on described machines, compared with what comes out here.
//!
//! `scripts/record-topology` asked it; the machines, the cases and the answers are in
//! `tests/machines`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use ballast_topology::{CpuSet, CpuWords, Layout, Machine, WordError};

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/machines")
}

/// The files of a machine: `[0-3]` is several processors, `{}` the number of each.
fn texts(description: &str) -> BTreeMap<String, String> {
    let mut files = BTreeMap::new();
    for line in description.lines() {
        let Some((name, text)) = line.split_once(' ').filter(|_| !line.starts_with('#')) else {
            continue;
        };
        match name.split_once('[') {
            None => drop(files.insert(name.to_owned(), format!("{text}\n"))),
            Some((before, rest)) => {
                let (list, after) = rest.split_once(']').expect("a list of processors");
                for cpu in CpuSet::of_kernel_list(list).iter() {
                    let text = text.replace("{}", &cpu.to_string());
                    files.insert(format!("{before}{cpu}{after}"), format!("{text}\n"));
                }
            }
        }
    }
    files
}

fn read_line(words: &mut CpuWords, line: &str) -> Result<Vec<String>, WordError> {
    let all: Vec<&str> = line.split_whitespace().collect();
    let (keyword, args) = all.split_first().expect("a line");
    let done = match *keyword {
        "cpu-map" => words.cpu_map(args),
        "cpu-policy" => words.cpu_policy(args),
        "cpu-set" => words.cpu_set(args),
        "nbthread" => words.nbthread(args),
        "thread-group" => return words.thread_group(args),
        "thread-groups" => words.thread_groups(args),
        "thread-hard-limit" => words.thread_hard_limit(args),
        "no" => {
            words.numa_mapping = false;
            Ok(())
        }
        other => return Err(WordError(format!("unknown keyword {other}"))),
    };
    done.map(|()| Vec::new())
}

/// What is answered to a case, in the form of the recorded answers.
fn answer(machine: &BTreeMap<String, String>, case: &str, is_whole: bool) -> String {
    let (given, lines) = case.split_once('|').expect("processors and lines");
    let machine = Machine::of_sysfs(machine, CpuSet::of_kernel_list(given));
    let mut words = CpuWords::default();
    let mut text = String::new();
    for line in lines
        .split(';')
        .map(str::trim)
        .filter(|line| !line.is_empty())
    {
        match read_line(&mut words, line) {
            Ok(warnings) => {
                for warning in warnings {
                    let _ = writeln!(text, "message WARNING {warning}");
                }
            }
            Err(error) => {
                let _ = writeln!(text, "message ALERT {}", error.to_string().trim());
                return text;
            }
        }
    }
    let layout = match Layout::of(&machine, &words) {
        Ok(layout) => layout,
        Err(error) => {
            let _ = writeln!(text, "message ALERT {error}");
            return text;
        }
    };
    for warning in &layout.warnings {
        let _ = writeln!(text, "message WARNING {warning}");
    }
    let report = layout.report();
    if is_whole {
        for line in report.lines() {
            let _ = writeln!(text, "all {line}");
        }
        return text;
    }
    let _ = writeln!(text, "kept {}", layout.topology.enabled());
    let is_range =
        |line: &&str| line.starts_with("  ") && line.contains('/') && !line.contains("Tgrp");
    for line in report.lines().filter(is_range) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let _ = writeln!(text, "bound {}", words.join(" "));
    }
    text
}

#[test]
fn threads_are_where_haproxy_has_them() {
    let mut compared = 0;
    let mut wrong = String::new();
    for entry in fs::read_dir(directory()).expect("the machines") {
        let path = entry.expect("an entry").path();
        if path
            .extension()
            .is_none_or(|extension| extension != "machine")
        {
            continue;
        }
        let machine = texts(&fs::read_to_string(&path).expect("a machine"));
        let answers = fs::read_to_string(path.with_extension("answers")).expect("its answers");
        for (at, block) in answers.split("case ").skip(1).enumerate() {
            let (case, wanted) = block.split_once('\n').expect("a case");
            let found = answer(&machine, case, at == 0);
            if found != wanted {
                let name = path.file_stem().expect("a name").to_string_lossy();
                let _ = write!(
                    wrong,
                    "{name}: {case}\n--- HAProxy\n{wanted}--- here\n{found}"
                );
            }
            compared += 1;
        }
    }
    assert!(compared > 150, "only {compared} cases were found");
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn the_talks_epyc_has_groups_of_8_8_8_and_7() {
    let description = fs::read_to_string(directory().join("epyc-7502p.machine")).expect("it");
    let machine = Machine::of_sysfs(&texts(&description), CpuSet::range(0, 31));
    let layout = |lines: &[&str]| {
        let mut words = CpuWords::default();
        for line in lines {
            read_line(&mut words, line).expect("a line");
        }
        Layout::of(&machine, &words).expect("a layout")
    };
    let by_policy = layout(&["cpu-set drop-cpu 31", "cpu-policy group-by-2-clusters"]);
    let by_hand = layout(&[
        "nbthread 31",
        "thread-groups 4",
        "cpu-map auto:1/1-8 0-7",
        "cpu-map auto:2/1-8 8-15",
        "cpu-map auto:3/1-8 16-23",
        "cpu-map auto:4/1-7 24-30",
    ]);
    let sizes: Vec<usize> = by_policy.groups.iter().map(|group| group.count).collect();
    assert_eq!(sizes, [8, 8, 8, 7]);
    assert_eq!(by_policy.groups, by_hand.groups);
    for (group, place) in by_policy.groups.iter().zip(0..) {
        let cpus = (group.first..group.first + group.count)
            .map(|thread| by_hand.threads[thread].cpus)
            .fold(CpuSet::EMPTY, |all, cpus| all.union(&cpus));
        assert_eq!(by_policy.threads[group.first].cpus, cpus, "group {place}");
    }
}

/// Lines that are wrong, and what HAProxy 3.2 answers.
const WRONG_LINES: [(&str, &str); 31] = [
    (
        "nbthread",
        "'nbthread' passed a missing or unparsable integer value in ''",
    ),
    (
        "nbthread 0",
        "'nbthread' value must be between 1 and 1024 (was 0)",
    ),
    (
        "nbthread 1x",
        "'nbthread' passed a missing or unparsable integer value in '1x'",
    ),
    (
        "nbthread 99999999999999999999",
        "'nbthread' value must be between 1 and 1024 (was 9223372036854775807)",
    ),
    (
        "nbthread 2 3",
        "'nbthread' cannot handle unexpected argument '3'.",
    ),
    (
        "thread-groups 33",
        "'thread-groups' value must be between 1 and 32 (was 33)",
    ),
    (
        "thread-hard-limit 1025",
        "'thread-hard-limit' value must be at least 1 (was 1025)",
    ),
    (
        "thread-group x",
        "'thread-group' passed a missing or unparsable integer value in 'x'",
    ),
    (
        "thread-group 33",
        "'thread-group' thread-group number must be between 1 and 32 (was 33)",
    ),
    (
        "thread-group 1 1-",
        "'thread-group 1' passed an unparsable or invalid thread number '1-' (valid range is 1 to 1024)",
    ),
    (
        "thread-group 1 1 3",
        "'thread-group 1' assigned sparse threads, only contiguous supported",
    ),
    (
        "thread-group 1 1-65",
        "'thread-group 1' assigned too many threads (65, max=64)",
    ),
    (
        "cpu-map 1",
        "cpu-map expects a thread group number  ('all', 'odd', 'even', a number from 1 to 64 or a range),  followed by a list of CPU ranges with numbers from 0 to 63.",
    ),
    ("cpu-map x 0", "cpu-map : 'x' is not a valid number/range."),
    (
        "cpu-map 1/65 0",
        "cpu-map : '65' is not a valid number/range. It supports numbers from 1 to 64.\n",
    ),
    (
        "cpu-map 99999999999999999999 0",
        "cpu-map : '99999999999999999999' is not a valid number/range. It supports numbers from 1 to 64.\n",
    ),
    (
        "cpu-map 1/1-2- 0",
        "cpu-map : '1-2-' is not a valid number/range.",
    ),
    (
        "cpu-map / 0",
        "cpu-map : '' is not a valid number/range. It supports numbers from 1 to 64.\n",
    ),
    ("cpu-map 1 ,0", "cpu-map : ',0' is not a CPU range."),
    (
        "cpu-map 1 1024",
        "cpu-map : supports CPU numbers from 0 to 1023.",
    ),
    (
        "cpu-map 1 0-99999999999999999999",
        "cpu-map : supports CPU numbers from 0 to 1023.",
    ),
    (
        "cpu-map auto:1/1 0-3",
        "cpu-map : TGROUP/THREAD range and CPU sets must have the same size to be automatically bound",
    ),
    (
        "cpu-map auto:1-2/1-2 0-3",
        "cpu-map : TGROUP/THREAD range and CPU sets must have the same size to be automatically bound",
    ),
    (
        "cpu-set",
        "'cpu-set' requires a directive and an optional value (only 'reset', 'only-cpu', 'drop-cpu', 'only-node', 'drop-node', 'only-cluster', 'drop-cluster', 'only-core', 'drop-core', 'only-thread', 'drop-thread' supported).",
    ),
    (
        "cpu-set reset x",
        "'cpu-set' passed an unknown directive 'x' (only 'reset', 'only-cpu', 'drop-cpu', 'only-node', 'drop-node', 'only-cluster', 'drop-cluster', 'only-core', 'drop-core', 'only-thread', 'drop-thread' supported).",
    ),
    ("cpu-set drop-cpu", "'cpu-set drop-cpu': missing CPU set\n."),
    (
        "cpu-set only-node",
        "'cpu-set only-node': missing node set\n.",
    ),
    (
        "cpu-set drop-cpu all",
        "'cpu-set drop-cpu': 'all' is not a CPU range.\n.",
    ),
    (
        "cpu-set drop-cpu 1024",
        "'cpu-set drop-cpu': supports CPU numbers from 0 to 1023.\n.",
    ),
    (
        "cpu-policy none x",
        "'cpu-policy' cannot handle unexpected argument 'x'.",
    ),
    (
        "cpu-policy x",
        "'cpu-policy' passed an unknown CPU policy 'x'. Supported values are: and 'none' (use all available CPUs), 'first-usable-node' (use only first usable node if nbthreads not set), 'group-by-ccx' (make one thread group per CCX), 'group-by-2-ccx' (make one thread group per 2 CCX), 'group-by-3-ccx' (make one thread group per 3 CCX), 'group-by-4-ccx' (make one thread group per 4 CCX), 'group-by-cluster' (make one thread group per core cluster), 'group-by-2-clusters' (make one thread group per 2 core clusters), 'group-by-3-clusters' (make one thread group per 3 core clusters), 'group-by-4-clusters' (make one thread group per 4 core clusters), 'performance' (make one thread group per perf. core cluster), 'efficiency' (make one thread group per eff. core cluster), and 'resource' (make one thread group from the smallest cluster).\n",
    ),
];

#[test]
fn wrong_lines_are_told_in_haproxys_words() {
    for (line, wanted) in WRONG_LINES {
        let error = read_line(&mut CpuWords::default(), line).expect_err(line);
        assert_eq!(error.to_string(), wanted, "{line}");
    }
}

/// What HAProxy 3.2 makes of lines that it accepts.
#[test]
fn lines_are_read_as_haproxy_reads_them() {
    let small = fs::read_to_string(directory().join("small-vm.machine")).expect("it");
    let machine = texts(&small);
    let bound = |case: &str| {
        let text = answer(&machine, &format!("0-3 | {case}"), false);
        let bound = text.lines().filter_map(|line| line.strip_prefix("bound "));
        bound.collect::<Vec<_>>().join("; ")
    };
    for (case, wanted) in [
        ("cpu-map 1 3-1", "1/1-4 1-4 3: 1-3"),
        ("cpu-map 1 0-", "1/1-4 1-4 1024: 0-1023"),
        ("cpu-map 1 1--2", "1/1-4 1-4 2: 0-1"),
        ("cpu-map 1 0-1x,3", "1/1-4 1-4 3: 0-1,3"),
        ("cpu-map 1 1,,2", "1/1-4 1-4 3: 0-2"),
        ("cpu-map 4294967297 0", "1/1-4 1-4 1: 0"),
        (
            "cpu-map 1/1-2 0 ; cpu-map 1/2-3 1",
            "1/1 1 1: 0; 1/2-3 2-3 1: 1; 1/4 4 <all>",
        ),
        (
            "cpu-map 1/1-4 0 ; cpu-map auto:1/1-4 1",
            "1/1 1 1: 1; 1/2-4 2-4 <all>",
        ),
        (
            "cpu-map auto:1-4/1 0-3 ; thread-groups 4",
            "1/1 1 1: 0; 2/1 2 1: 0; 3/1 3 1: 0; 4/1 4 1: 0",
        ),
        (
            "cpu-map auto:1-4 0-3",
            "1/1 1 1: 0; 1/2 2 1: 1; 1/3 3 1: 2; 1/4 4 1: 3",
        ),
        ("cpu-map 1/2 0", "1/1-4 1-4 4: 0-3"),
        ("nbthread +2", "1/1-2 1-2 4: 0-3"),
        ("nbthread 65", "1/1-64 1-64 4: 0-3"),
        (
            "thread-groups 3 ; nbthread 4 ; thread-group 2 3-4",
            "1/1 1 4: 0-3; 2/1-2 3-4 4: 0-3; 3/1 2 4: 0-3",
        ),
        (
            "thread-groups 2 ; nbthread 4 ; thread-group 1 1-2 ; thread-group 2 2-4",
            "1/1-2 1-2 4: 0-3; 2/1-3 2-4 4: 0-3",
        ),
    ] {
        assert_eq!(bound(case), wanted, "{case}");
    }
}

/// Words of HAProxy 3.3: there is no 3.2 to ask.
#[test]
fn later_words_limit_groups_and_threads() {
    let xeon = fs::read_to_string(directory().join("dual-xeon.machine")).expect("it");
    let machine = Machine::of_sysfs(&texts(&xeon), CpuSet::range(0, 31));
    let mut words = CpuWords::default();
    words.max_threads_per_group(&["8"]).expect("a number");
    words.cpu_policy(&["performance"]).expect("a policy");
    let sizes = |words: &CpuWords| {
        let layout = Layout::of(&machine, words).expect("a layout");
        layout
            .groups
            .iter()
            .map(|group| group.count)
            .collect::<Vec<_>>()
    };
    assert_eq!(sizes(&words), [8, 8, 8, 8]);
    let one_thread = ["performance", "threads-per-core", "1"];
    words.cpu_policy(&one_thread).expect("a policy");
    assert_eq!(sizes(&words), [8, 8]);
    let layout = Layout::of(&machine, &words).expect("a layout");
    assert_eq!(layout.threads[8].cpus, CpuSet::range(8, 15));
}
