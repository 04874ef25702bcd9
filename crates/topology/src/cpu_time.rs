//! How much processor time a control group gives: containers are limited by it, and see all
//! processors of the machine nevertheless.

/// A limit of processor time.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct CpuTime {
    /// The time that may be used in a period, in microseconds.
    pub quota_us: u64,
    /// The period.
    pub period_us: u64,
}

impl CpuTime {
    /// The limit that a text of the second version of control groups tells: `max 100000` or
    /// `150000 100000`.
    #[must_use]
    pub fn of_cpu_max(text: &str) -> Option<Self> {
        let mut words = text.split_ascii_whitespace();
        Self::of_numbers(words.next()?, words.next()?)
    }

    fn of_numbers(quota: &str, period: &str) -> Option<Self> {
        let limit = Self {
            quota_us: quota.trim().parse().ok()?,
            period_us: period.trim().parse().ok()?,
        };
        (limit.quota_us > 0 && limit.period_us > 0).then_some(limit)
    }

    /// The closest limit of the groups that `/proc/self/cgroup` names. `read` has the texts below
    /// `/sys/fs/cgroup`.
    #[must_use]
    pub fn of_control_groups(groups: &str, read: &dyn Fn(&str) -> Option<String>) -> Option<Self> {
        let mut limits = Vec::new();
        for line in groups.lines() {
            let mut parts = line.splitn(3, ':');
            let (Some(_), Some(controllers), Some(path)) =
                (parts.next(), parts.next(), parts.next())
            else {
                continue;
            };
            let is_first_version = controllers.split(',').any(|one| one == "cpu");
            if !is_first_version && !controllers.is_empty() {
                continue;
            }
            let base = if is_first_version { "cpu" } else { "" };
            // The groups above limit it too, and inside a container its own group is the root.
            for group in std::path::Path::new(path).ancestors() {
                let group = group.to_string_lossy();
                let name = |file: &str| format!("{base}/{}/{file}", group.trim_matches('/'));
                let limit = match is_first_version {
                    true => read(&name("cpu.cfs_quota_us"))
                        .zip(read(&name("cpu.cfs_period_us")))
                        .and_then(|(quota, period)| Self::of_numbers(&quota, &period)),
                    false => read(&name("cpu.max")).and_then(|text| Self::of_cpu_max(&text)),
                };
                limits.extend(limit);
            }
        }
        limits.into_iter().min_by(|one, other| {
            let cross =
                |one: &Self, other: &Self| u128::from(one.quota_us) * u128::from(other.period_us);
            cross(one, other).cmp(&cross(other, one))
        })
    }

    /// As many processors are enough for it.
    #[must_use]
    pub fn processors(self) -> u64 {
        self.quota_us.div_ceil(self.period_us)
    }

    /// What an operator should know when there are more threads than the time is for.
    #[must_use]
    pub fn notice(self, thread_count: usize) -> Option<String> {
        let enough = self.processors();
        (thread_count as u64 > enough).then(|| {
            format!(
                "The control group gives this process the time of {enough} CPU(s), and it starts \
                 {thread_count} threads, as HAProxy does: all of them stand still when the time is \
                 used up. Consider 'nbthread {enough}' or 'thread-hard-limit {enough}'."
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_closest_limit_of_a_container_counts() {
        let files = |name: &str| {
            let text = match name {
                "/pods/one/cpu.max" => "150000 100000\n",
                "/pods/cpu.max" => "400000 100000\n",
                "//cpu.max" => "max 100000\n",
                _ => return None,
            };
            Some(text.to_owned())
        };
        let limit = CpuTime::of_control_groups("0::/pods/one\n", &files).unwrap();
        assert_eq!((limit.quota_us, limit.processors()), (150_000, 2));
        assert!(limit.notice(2).is_none());
        assert!(limit.notice(32).unwrap().contains("'nbthread 2'"));
        assert!(CpuTime::of_control_groups("0::/\n", &files).is_none());
    }

    #[test]
    fn the_first_version_of_control_groups_is_read() {
        let files = |name: &str| match name {
            "cpu/a/cpu.cfs_quota_us" => Some("50000\n".to_owned()),
            "cpu//cpu.cfs_quota_us" => Some("-1\n".to_owned()),
            "cpu/a/cpu.cfs_period_us" | "cpu//cpu.cfs_period_us" => Some("100000\n".to_owned()),
            _ => None,
        };
        let groups = "5:memory:/m\n4:cpu,cpuacct:/a\n0::/\n";
        let limit = CpuTime::of_control_groups(groups, &files).unwrap();
        assert_eq!(limit.processors(), 1);
        assert!(CpuTime::of_control_groups("4:cpu:/\n", &files).is_none());
        assert!(CpuTime::of_control_groups("nonsense\n:::\n", &files).is_none());
    }
}
