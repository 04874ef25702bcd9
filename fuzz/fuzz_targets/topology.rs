//! Processors and threads: whatever the kernel's files and the lines of the global section say, no
//! panic, each thread is in one group, and the table can be printed.
#![no_main]

use std::collections::BTreeMap;

use ballast_topology::{CpuSet, CpuTime, CpuWords, Layout, Machine, ThreadSet};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let text = String::from_utf8_lossy(input);
    let mut files = BTreeMap::new();
    let mut words = CpuWords::default();
    let mut threads = Vec::new();
    for line in text.lines() {
        let all: Vec<&str> = line.split(' ').collect();
        let Some((keyword, args)) = all.split_first() else {
            continue;
        };
        match *keyword {
            "cpu-map" => drop(words.cpu_map(args)),
            "cpu-policy" => drop(words.cpu_policy(args)),
            "cpu-set" => drop(words.cpu_set(args)),
            "max-threads-per-group" => drop(words.max_threads_per_group(args)),
            "nbthread" => drop(words.nbthread(args)),
            "thread-group" => drop(words.thread_group(args)),
            "thread-groups" => drop(words.thread_groups(args)),
            "thread-hard-limit" => drop(words.thread_hard_limit(args)),
            "thread" => threads.extend(ThreadSet::parse(&args.join(" "))),
            file => drop(files.insert(file.to_owned(), args.join(" "))),
        }
    }
    let read = |name: &str| files.get(name).cloned();
    if let Some(time) = CpuTime::of_control_groups(&text, &read) {
        assert!(time.processors() > 0);
    }
    let given = files
        .get("affinity")
        .map_or(CpuSet::EMPTY, |list| CpuSet::of_kernel_list(list));
    let machine = Machine::of_sysfs(&files, given);
    let Ok(layout) = Layout::of(&machine, &words) else {
        return;
    };
    assert!(!layout.threads.is_empty() && !layout.groups.is_empty());
    assert!(layout.groups.iter().all(|group| group.count <= 64));
    for (number, group) in layout.groups.iter().enumerate() {
        assert!(
            group.first + group.count <= layout.threads.len(),
            "group {number}"
        );
    }
    for thread in threads
        .iter()
        .filter_map(|set| set.resolve(&layout).ok().flatten())
    {
        assert!(
            thread
                .iter()
                .all(|&one| usize::from(one) <= layout.threads.len() && one > 0)
        );
    }
    assert!(layout.report().contains("Thread CPU Bindings"));
});
