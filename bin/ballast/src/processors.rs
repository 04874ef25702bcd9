//! The processors of this machine: reads what the kernel tells of them.
//!
//! It is read once, before the process enters a chroot or binds a thread. `BALLAST_SYSFS` names a
//! directory that is read instead of `/sys/devices/system`, for tests: a described machine. Its
//! file `affinity`, a list as `0-3,8`, has the processors that the process was given there.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use ballast_topology::{CpuSet, CpuTime, Layout, LayoutError, Machine, SysfsTexts};

/// The variable that names another directory.
const ROOT_VARIABLE: &str = "BALLAST_SYSFS";

/// Where the kernel tells of processors.
const ROOT: &str = "/sys/devices/system";

/// Files of the kernel about processors are smaller.
const TEXT_BYTES_MAX: usize = 65_536;

/// Directories have no more entries that are read.
const ENTRIES_MAX: usize = 8192;

struct Directory(PathBuf);

fn text(path: &Path) -> Option<String> {
    let bytes = ballast_net::read_file(path, TEXT_BYTES_MAX).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

impl SysfsTexts for Directory {
    fn text(&self, name: &str) -> Option<String> {
        text(&self.0.join(name))
    }

    fn has_directory(&self, name: &str) -> bool {
        self.0.join(name).is_dir()
    }

    fn nodes(&self) -> Vec<usize> {
        let Ok(entries) = std::fs::read_dir(self.0.join("node")) else {
            return Vec::new();
        };
        let names = entries.take(ENTRIES_MAX).filter_map(Result::ok);
        let names = names.filter_map(|entry| entry.file_name().into_string().ok());
        names
            .filter_map(|name| name.strip_prefix("node")?.parse().ok())
            .collect()
    }
}

/// The processors of this machine.
pub(crate) fn machine() -> &'static Machine {
    static MACHINE: OnceLock<Machine> = OnceLock::new();
    MACHINE.get_or_init(|| {
        let given: CpuSet = ballast_net::CpuSet::allowed()
            .cpus()
            .iter()
            .copied()
            .collect();
        let Some(root) = std::env::var_os(ROOT_VARIABLE) else {
            return Machine::of_sysfs(&Directory(ROOT.into()), given);
        };
        let root = Directory(root.into());
        let given = match root.text("affinity") {
            Some(list) => CpuSet::of_kernel_list(&list),
            None => CpuSet::range(0, ballast_topology::PROCESSORS_MAX - 1),
        };
        Machine::of_sysfs(&root, given)
    })
}

/// The threads that a configuration asks for on this machine.
///
/// # Errors
/// As [`Layout::of`].
pub(crate) fn layout(words: &ballast_topology::CpuWords) -> Result<Layout, LayoutError> {
    Layout::of(machine(), words)
}

/// The processors of a set, for the threads of this process.
pub(crate) fn pin(cpus: &CpuSet) -> ballast_net::CpuSet {
    cpus.iter().collect()
}

/// The processor time that the control group of this process gives it, if it is limited.
pub(crate) fn cpu_time() -> Option<CpuTime> {
    let groups = text(Path::new("/proc/self/cgroup"))?;
    let read = |name: &str| text(&Path::new("/sys/fs/cgroup").join(name.trim_start_matches('/')));
    CpuTime::of_control_groups(&groups, &read)
}
