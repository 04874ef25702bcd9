//! The memory of the control group that this process is in: its limit, and what is used.
//!
//! Both versions are read: `memory.max`, `memory.current` and `memory.stat` of version 2, and
//! `memory.limit_in_bytes`, `memory.usage_in_bytes` and `memory.stat` of version 1 (Linux,
//! admin-guide/cgroup-v2 and cgroup-v1/memory).

use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use ballast_net::MemoryUse;

/// Where groups are mounted.
const MOUNTED_AT: &str = "/sys/fs/cgroup";

/// A limit so large is none: version 1 writes the largest number of pages.
const NO_LIMIT: u64 = 1 << 60;

/// `memory.stat` is smaller.
const STAT_BYTES_MAX: usize = 16 << 10;

/// The group with the smallest limit among those that this process is in.
#[derive(Debug)]
pub(crate) struct CgroupMemory {
    /// At the last look: it may be changed while the group lives.
    limit_bytes: u64,
    /// Open since before the chroot, which hides them.
    limit: File,
    usage: File,
    statistics: File,
    /// What this process uses, `/proc/self/status`.
    own: File,
    /// The names of the lines of cached files.
    cached_lines: [&'static str; 2],
    text: Vec<u8>,
}

/// The names of the files of a version.
struct Version {
    limit: &'static str,
    usage: &'static str,
    cached_lines: [&'static str; 2],
}

const VERSION_2: Version = Version {
    limit: "memory.max",
    usage: "memory.current",
    cached_lines: ["active_file", "inactive_file"],
};

const VERSION_1: Version = Version {
    limit: "memory.limit_in_bytes",
    usage: "memory.usage_in_bytes",
    cached_lines: ["total_active_file", "total_inactive_file"],
};

impl CgroupMemory {
    /// That of this process; `None` where it has no limit. A process that was forked since is another one.
    pub(crate) fn of_process() -> Option<Self> {
        let membership = fs::read_to_string("/proc/self/cgroup").ok()?;
        Self::of(Path::new(MOUNTED_AT), &membership)
    }

    fn of(mounted_at: &Path, membership: &str) -> Option<Self> {
        let mut smallest: Option<(u64, PathBuf, &Version)> = None;
        for line in membership.lines() {
            let mut fields = line.splitn(3, ':').skip(1);
            let (Some(controllers), Some(group)) = (fields.next(), fields.next()) else {
                continue;
            };
            let (root, version) = if controllers.is_empty() {
                (mounted_at.to_owned(), &VERSION_2)
            } else if controllers.split(',').any(|name| name == "memory") {
                (mounted_at.join("memory"), &VERSION_1)
            } else {
                continue;
            };
            // A limit holds for all groups below. In a container the path may be that outside of it: then
            // its own group is the root.
            for directory in Path::new(group).ancestors() {
                let directory = root.join(directory.strip_prefix("/").unwrap_or(directory));
                let limit = fs::read_to_string(directory.join(version.limit));
                let limit = limit.ok().and_then(|text| text.trim().parse::<u64>().ok());
                if let Some(limit) = limit.filter(|&limit| limit < NO_LIMIT)
                    && smallest.as_ref().is_none_or(|&(least, ..)| limit < least)
                {
                    smallest = Some((limit, directory, version));
                }
            }
        }
        let (limit_bytes, directory, version) = smallest?;
        Some(Self {
            limit_bytes,
            limit: File::open(directory.join(version.limit)).ok()?,
            usage: File::open(directory.join(version.usage)).ok()?,
            statistics: File::open(directory.join("memory.stat")).ok()?,
            own: File::open("/proc/self/status").ok()?,
            cached_lines: version.cached_lines,
            text: vec![0; STAT_BYTES_MAX],
        })
    }

    /// The limit.
    pub(crate) fn limit_bytes(&self) -> u64 {
        self.limit_bytes
    }

    /// What is used now, cached files included; `None` where it cannot be read. The limit is read again.
    pub(crate) fn used_bytes(&mut self) -> Option<u64> {
        let limit = read(&self.limit, &mut self.text)?.trim();
        self.limit_bytes = limit.parse().unwrap_or(u64::MAX);
        read(&self.usage, &mut self.text)?.trim().parse().ok()
    }

    /// What of it are cached files, which the kernel gives up before it kills. Adding them up may take the
    /// kernel a while.
    pub(crate) fn cached_bytes(&mut self) -> u64 {
        let statistics = read(&self.statistics, &mut self.text).unwrap_or_default();
        let cached = statistics.lines().filter_map(|line| {
            let (name, number) = line.split_once(' ')?;
            let is_cached = self.cached_lines.contains(&name);
            is_cached.then(|| number.trim().parse::<u64>().unwrap_or(0))
        });
        cached.sum()
    }

    /// What of it this process has in memory.
    pub(crate) fn own_bytes(&mut self) -> u64 {
        let status = read(&self.own, &mut self.text).unwrap_or_default();
        MemoryUse::read(status).resident
    }
}

/// The text of a file from its beginning.
fn read<'t>(file: &File, text: &'t mut [u8]) -> Option<&'t str> {
    let count = file.read_at(text, 0).ok()?;
    std::str::from_utf8(&text[..count]).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(root: &Path, files: &[(&str, &str)]) {
        for (name, text) in files {
            let path = root.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
    }

    #[test]
    fn the_smallest_limit_above_a_group_holds() {
        let root = tempfile::tempdir().unwrap();
        write(
            root.path(),
            &[
                ("a/memory.max", "400000\n"),
                ("a/memory.current", "350000\n"),
                (
                    "a/memory.stat",
                    "anon 5\ninactive_file 49000\nactive_file 1000\n",
                ),
                ("a/b/memory.max", "max\n"),
                ("a/b/memory.current", "1\n"),
            ],
        );
        let mut found = CgroupMemory::of(root.path(), "4:cpu:/x\n0::/a/b\n").unwrap();
        assert_eq!(found.limit_bytes(), 400_000);
        assert_eq!(found.used_bytes(), Some(350_000));
        assert_eq!(found.cached_bytes(), 50_000);
        assert!(found.own_bytes() > 100_000);
        write(root.path(), &[("a/memory.current", "60000\n")]);
        assert_eq!(found.used_bytes(), Some(60_000), "it is read again");
        write(root.path(), &[("a/memory.max", "800000\n")]);
        assert_eq!(found.used_bytes(), Some(60_000));
        assert_eq!(found.limit_bytes(), 800_000, "so is the limit");
    }

    #[test]
    fn version_1_is_read() {
        let root = tempfile::tempdir().unwrap();
        write(
            root.path(),
            &[
                ("memory/memory.limit_in_bytes", "9223372036854771712\n"),
                ("memory/pod/memory.limit_in_bytes", "1000\n"),
                ("memory/pod/memory.usage_in_bytes", "900\n"),
                (
                    "memory/pod/memory.stat",
                    "inactive_file 1\ntotal_inactive_file 200\n",
                ),
            ],
        );
        let mut found = CgroupMemory::of(root.path(), "5:cpu,memory:/pod\n0::/\n").unwrap();
        assert_eq!((found.limit_bytes(), found.used_bytes()), (1000, Some(900)));
        assert_eq!(found.cached_bytes(), 200);
    }

    /// Without a namespace of its own a container sees a path that it has not.
    #[test]
    fn the_root_is_the_group_of_a_container() {
        let root = tempfile::tempdir().unwrap();
        write(
            root.path(),
            &[
                ("memory.max", "5\n"),
                ("memory.current", "3"),
                ("memory.stat", ""),
            ],
        );
        let mut found = CgroupMemory::of(root.path(), "0::/kubepods/pod1/c\n").unwrap();
        assert_eq!((found.limit_bytes(), found.used_bytes()), (5, Some(3)));
    }

    #[test]
    fn there_may_be_no_limit() {
        let root = tempfile::tempdir().unwrap();
        assert!(CgroupMemory::of(root.path(), "0::/\n").is_none());
        write(root.path(), &[("memory.max", "max\n")]);
        assert!(CgroupMemory::of(root.path(), "0::/\n\nodd\n1:memory\n").is_none());
    }
}
