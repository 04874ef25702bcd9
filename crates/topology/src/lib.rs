//! Which thread runs on which processors?
//!
//! A description of the machine ([`Machine`]) and the words of the configuration ([`CpuWords`]) go
//! in; the number of threads, their groups and the CPU set of each ([`Layout`]) come out. Nothing is
//! read and nothing is bound here: [`Machine::of_sysfs`] is given texts, and who has threads binds
//! them.
//!
//! What comes out is what HAProxy 3.2 does on the same machine, compared by running it on described
//! machines.

mod clusters;
mod cpu_time;
mod layout;
mod limits;
mod machine;
mod numbers;
mod policy;
mod report;
mod set;
mod sysfs;
mod thread_groups;
mod thread_set;
mod words;

pub use clusters::{Cluster, Place, Topology};
pub use cpu_time::CpuTime;
pub use layout::{Layout, LayoutError, ThreadPlace};
pub use limits::{GROUP_THREADS_MAX, GROUPS_MAX, THREADS_MAX};
pub use machine::{CACHE_LEVELS, Machine, Processor};
pub use numbers::NumberSet;
pub use set::{CpuSet, PROCESSORS_MAX};
pub use sysfs::{NODES_MAX, SysfsTexts};
pub use thread_groups::{Group, GroupLines};
pub use thread_set::ThreadSet;
pub use words::{CpuMap, CpuPart, CpuPolicy, CpuSetWords, CpuWords, WordError};
