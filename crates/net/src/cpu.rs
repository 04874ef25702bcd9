//! Processors: how many this process may use, and which ones a thread may run on.

use rustix::thread::{CpuSet as OsSet, sched_getaffinity, sched_setaffinity};

use crate::SystemCallError;

/// A set of processors, by number from 0 (`cpu-map`).
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct CpuSet(Vec<usize>);

impl CpuSet {
    /// The processors this process may use now (`taskset`, cgroup, `cpu-map`).
    pub fn allowed() -> Self {
        match sched_getaffinity(None) {
            Ok(set) => (0..OsSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).collect(),
            Err(_) => Self(vec![0]),
        }
    }

    /// The numbers in it, ascending, without duplicates.
    pub fn cpus(&self) -> &[usize] {
        &self.0
    }

    /// True if it is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl FromIterator<usize> for CpuSet {
    fn from_iter<I: IntoIterator<Item = usize>>(cpus: I) -> Self {
        let mut cpus: Vec<usize> = cpus.into_iter().filter(|&c| c < OsSet::MAX_CPU).collect();
        cpus.sort_unstable();
        cpus.dedup();
        Self(cpus)
    }
}

/// How many processors this process may use; at least 1.
pub fn cpu_count() -> usize {
    CpuSet::allowed().0.len().max(1)
}

/// Restricts the calling thread to `cpus`.
///
/// # Errors
/// `EINVAL` if none of them exists or may be used.
pub fn pin_thread(cpus: &CpuSet) -> Result<(), SystemCallError> {
    let mut set = OsSet::new();
    for &cpu in &cpus.0 {
        set.set(cpu);
    }
    sched_setaffinity(None, &set)
        .map_err(|e| SystemCallError::new("sched_setaffinity", format_args!("{:?}", cpus.0), e))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_pinned_and_others_are_not() {
        let before = CpuSet::allowed();
        assert_eq!(cpu_count(), before.cpus().len());
        let last = *before.cpus().last().unwrap();
        std::thread::spawn(move || {
            pin_thread(&CpuSet::from_iter([last, last])).unwrap();
            assert_eq!(CpuSet::allowed().cpus(), [last]);
            assert!(pin_thread(&CpuSet::default()).is_err());
        })
        .join()
        .unwrap();
        assert_eq!(CpuSet::allowed(), before);
    }
}
