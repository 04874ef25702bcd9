//! Resource limits of this process (`ulimit-n`, `-m`, `set-dumpable`).

use rustix::process::{self, Rlimit};

use crate::SystemCallError;

/// A resource that the system limits per process.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Resource {
    /// Address space, bytes (RLIMIT_AS).
    AddressSpace,
    /// Size of a core file, bytes (RLIMIT_CORE).
    Core,
    /// Data segment, bytes (RLIMIT_DATA).
    Data,
    /// Open descriptors (RLIMIT_NOFILE).
    OpenFiles,
}

/// A soft limit, and the hard limit it may be raised to; `None` is unlimited.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ResourceLimit {
    /// The limit in force.
    pub soft: Option<u64>,
    /// The largest limit without privileges.
    pub hard: Option<u64>,
}

/// The limits in force.
pub fn limit(resource: Resource) -> ResourceLimit {
    let limit = process::getrlimit(resource.to_os());
    ResourceLimit {
        soft: limit.current,
        hard: limit.maximum,
    }
}

/// Sets both limits. Raising the hard one needs CAP_SYS_RESOURCE.
pub fn set_limit(resource: Resource, wanted: ResourceLimit) -> Result<(), SystemCallError> {
    process::setrlimit(
        resource.to_os(),
        Rlimit {
            current: wanted.soft,
            maximum: wanted.hard,
        },
    )
    .map_err(|e| SystemCallError::new("setrlimit", format_args!("{resource:?} {wanted:?}"), e))
}

/// Makes at least `wanted` descriptors available, raising the hard limit if that is necessary and
/// allowed; returns the soft limit afterwards. A higher limit is kept.
///
/// # Errors
/// The system's error; the best possible value (the hard limit) is set nevertheless.
pub fn raise_open_files(wanted: u64) -> Result<u64, SystemCallError> {
    let now = limit(Resource::OpenFiles);
    match now.soft {
        None => return Ok(u64::MAX),
        Some(soft) if soft >= wanted => return Ok(soft),
        Some(_) => {}
    }
    let hard = now.hard.map(|hard| hard.max(wanted));
    let result = set_limit(
        Resource::OpenFiles,
        ResourceLimit {
            soft: Some(wanted),
            hard,
        },
    );
    if let Err(error) = result {
        let _ = set_limit(
            Resource::OpenFiles,
            ResourceLimit {
                soft: now.hard,
                hard: now.hard,
            },
        );
        return Err(error);
    }
    Ok(wanted)
}

/// Allows core files up to the hard limit (`set-dumpable`).
pub fn raise_core_limit() -> Result<(), SystemCallError> {
    let unlimited = ResourceLimit {
        soft: None,
        hard: None,
    };
    set_limit(Resource::Core, unlimited).or_else(|_| {
        let hard = limit(Resource::Core).hard;
        set_limit(Resource::Core, ResourceLimit { soft: hard, hard })
    })
}

impl Resource {
    fn to_os(self) -> process::Resource {
        match self {
            Self::AddressSpace => process::Resource::As,
            Self::Core => process::Resource::Core,
            Self::Data => process::Resource::Data,
            Self::OpenFiles => process::Resource::Nofile,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_files_are_raised_and_never_lowered() {
        let before = limit(Resource::OpenFiles).soft.unwrap_or(u64::MAX);
        assert_eq!(raise_open_files(16).unwrap(), before);
        let hard = limit(Resource::OpenFiles).hard.unwrap_or(before);
        assert_eq!(raise_open_files(hard).unwrap(), hard.max(before));
        // More than the kernel's maximum (fs.nr_open) is refused, and the best possible value is
        // kept.
        assert!(raise_open_files(u64::MAX - 1).is_err());
        assert_eq!(limit(Resource::OpenFiles).soft, Some(hard));
    }
}
