//! What the kernel tells of processors: the texts of `/sys/devices/system`, and what they say.
//!
//! Reading files is somebody else's: [`SysfsTexts`] is asked for the texts, by their names below
//! `/sys/devices/system` (`cpu/cpu3/topology/package_cpus_list`).

use std::collections::BTreeMap;

use crate::machine::{CACHE_LEVELS, Machine, Processor};
use crate::set::{CpuSet, PROCESSORS_MAX};

/// The caches of a processor that are looked at.
const CACHES_MAX: usize = 10;

/// Nodes have numbers below this.
pub const NODES_MAX: usize = 1024;

/// The texts of `/sys/devices/system`.
pub trait SysfsTexts {
    /// The text of a file; `None` when there is none, or when it cannot be read.
    fn text(&self, name: &str) -> Option<String>;

    /// Whether there is a directory of that name.
    fn has_directory(&self, name: &str) -> bool;

    /// The numbers N of the entries `nodeN` of the directory `node`.
    fn nodes(&self) -> Vec<usize>;
}

/// Texts that were written down: names and contents.
impl SysfsTexts for BTreeMap<String, String> {
    fn text(&self, name: &str) -> Option<String> {
        self.get(name).cloned()
    }

    fn has_directory(&self, name: &str) -> bool {
        let directory = format!("{name}/");
        let first = self.range(directory.clone()..).next();
        first.is_some_and(|(file, _)| file.starts_with(&directory))
    }

    fn nodes(&self) -> Vec<usize> {
        let names = self
            .keys()
            .filter_map(|name| name.strip_prefix("node/node"));
        let numbers = names.filter_map(|name| name.split('/').next()?.parse().ok());
        let mut nodes: Vec<usize> = numbers.collect();
        nodes.dedup();
        nodes
    }
}

impl Machine {
    /// The machine that the texts describe. `affinity` are the processors that this process may
    /// use as it was started.
    #[must_use]
    pub fn of_sysfs(texts: &dyn SysfsTexts, affinity: CpuSet) -> Self {
        let online = match texts.text("cpu/online") {
            Some(list) => CpuSet::of_kernel_list(&list),
            None => affinity,
        };
        let possible = texts.text("cpu/possible");
        let possible = possible.map_or(online, |list| CpuSet::of_kernel_list(&list));
        let possible = possible.union(&online);
        let mut reader = Reader {
            texts,
            processors: BTreeMap::new(),
            next: Next::default(),
        };
        for cpu in possible.iter() {
            let processor = Processor::new(cpu, online.contains(cpu));
            reader.processors.insert(cpu, processor);
        }
        for cpu in online.iter() {
            reader.processor(cpu);
        }
        reader.nodes();
        Self {
            processors: reader.processors.into_values().collect(),
            affinity,
        }
    }
}

/// Where numbers go on that are given in the order of finding.
#[derive(Default)]
struct Next {
    caches: [u16; CACHE_LEVELS],
    core: u16,
    cluster: u16,
    package: u16,
}

struct Reader<'t> {
    texts: &'t dyn SysfsTexts,
    processors: BTreeMap<usize, Processor>,
    next: Next,
}

/// A number, as a file of the kernel contains it: text after the digits is no part of it.
fn number(text: &str) -> Option<i64> {
    let text = text.trim();
    let digits = text.strip_prefix('-').unwrap_or(text);
    let end = digits.find(|c: char| !c.is_ascii_digit());
    let value: i64 = digits[..end.unwrap_or(digits.len())].parse().ok()?;
    Some(if digits.len() < text.len() {
        -value
    } else {
        value
    })
}

/// The next number of a series.
fn take(next: &mut u16) -> u16 {
    let number = *next;
    *next = next.saturating_add(1);
    number
}

impl Reader<'_> {
    fn text(&self, cpu: usize, file: &str) -> Option<String> {
        self.texts.text(&format!("cpu/cpu{cpu}/{file}"))
    }

    fn list(&self, cpu: usize, file: &str) -> Option<CpuSet> {
        Some(CpuSet::of_kernel_list(&self.text(cpu, file)?))
    }

    /// Notes something of each processor of a list, with its rank in the list.
    fn note(&mut self, cpus: &CpuSet, mut note: impl FnMut(usize, &mut Processor)) {
        for (rank, cpu) in cpus.iter().enumerate() {
            if let Some(processor) = self.processors.get_mut(&cpu) {
                note(rank, processor);
            }
        }
    }

    fn processor(&mut self, cpu: usize) {
        if !self.texts.has_directory(&format!("cpu/cpu{cpu}")) {
            return;
        }
        self.caches(cpu);
        self.core(cpu);
        self.cluster(cpu);
        self.package(cpu);
        self.capacity(cpu);
    }

    fn known(&self, cpu: usize) -> Processor {
        let known = self.processors.get(&cpu);
        known.cloned().unwrap_or_else(|| Processor::new(cpu, false))
    }

    /// The data and unified caches. Each has a number in the order of finding.
    fn caches(&mut self, cpu: usize) {
        let mut next_level = 1;
        for index in 0..CACHES_MAX {
            let cache = format!("cache/index{index}");
            if !self.texts.has_directory(&format!("cpu/cpu{cpu}/{cache}")) {
                break;
            }
            let kind = self.text(cpu, &format!("{cache}/type"));
            if kind.is_some_and(|kind| kind.trim() == "Instruction") {
                continue;
            }
            let written = self.text(cpu, &format!("{cache}/level"));
            let written = written.and_then(|text| number(&text));
            let level = written.unwrap_or(next_level);
            if written.is_some() {
                next_level = level.saturating_add(1);
            }
            let Some(level) = usize::try_from(level).ok().filter(|&l| l < CACHE_LEVELS) else {
                continue;
            };
            if self.known(cpu).caches[level].is_some() {
                continue;
            }
            if let Some(cpus) = self.list(cpu, &format!("{cache}/shared_cpu_list")) {
                let number = take(&mut self.next.caches[level]);
                self.note(&cpus, |_, one| one.caches[level] = Some(number));
            }
        }
    }

    fn core(&mut self, cpu: usize) {
        if self.known(cpu).core.is_none()
            && let Some(cpus) = self.list(cpu, "topology/thread_siblings_list")
        {
            let number = take(&mut self.next.core);
            let count = u16::try_from(cpus.len()).unwrap_or(u16::MAX);
            self.note(&cpus, |rank, one| {
                one.core = Some(number);
                one.thread = u16::try_from(rank).unwrap_or(u16::MAX);
                one.core_threads = count;
            });
        }
    }

    fn cluster(&mut self, cpu: usize) {
        if self.known(cpu).cluster.is_none()
            && let Some(cpus) = self
                .list(cpu, "topology/cluster_cpus_list")
                .or_else(|| self.list(cpu, "topology/core_siblings_list"))
        {
            let number = take(&mut self.next.cluster);
            self.note(&cpus, |_, one| one.cluster = Some(number));
        }
    }

    fn package(&mut self, cpu: usize) {
        if self.known(cpu).package.is_some() {
            return;
        }
        let list = self
            .list(cpu, "topology/package_cpus_list")
            .or_else(|| self.list(cpu, "topology/core_siblings_list"));
        if let Some(cpus) = list {
            let number = take(&mut self.next.package);
            self.note(&cpus, |_, one| one.package = Some(number));
        } else if let Some(text) = self.text(cpu, "topology/physical_package_id")
            && let Some(number) = number(&text).and_then(|number| u16::try_from(number).ok())
            && let Some(one) = self.processors.get_mut(&cpu)
        {
            one.package = Some(number);
        }
    }

    /// The capacity that the kernel computes; else the highest frequency, in MHz; else the number
    /// that the firmware tells.
    fn capacity(&mut self, cpu: usize) {
        let read = |file| {
            let value = self.text(cpu, file).and_then(|text| number(&text))?;
            u32::try_from(value).ok()
        };
        let (mut capacity, mut is_frequency) = (read("cpu_capacity"), false);
        if capacity.is_none() {
            capacity = read("cpufreq/scaling_max_freq").map(|khz| khz / 1000);
            is_frequency = capacity.is_some();
        }
        let capacity = capacity.or_else(|| read("acpi_cppc/nominal_perf"));
        if let Some(one) = self.processors.get_mut(&cpu) {
            one.capacity = capacity;
            one.capacity_is_frequency = is_frequency;
        }
    }

    fn nodes(&mut self) {
        let mut nodes = self.texts.nodes();
        nodes.sort_unstable();
        for node in nodes.into_iter().filter(|&node| node < NODES_MAX) {
            let Some(list) = self.texts.text(&format!("node/node{node}/cpulist")) else {
                continue;
            };
            let number = u16::try_from(node).unwrap_or(u16::MAX);
            self.note(&CpuSet::of_kernel_list(&list), |_, one| {
                one.node = Some(number);
            });
        }
    }
}

const _: () = assert!(PROCESSORS_MAX <= u16::MAX as usize);
