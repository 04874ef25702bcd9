//! Open log targets.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ballast_model::LogProfile;
use ballast_wire::syslog::{Level, Origin};

use crate::sink::{LogSink, SinkCounters};
use crate::spec::TargetSpec;

/// The open targets of one proxy, or of the process itself.
///
/// Made by [`crate::Logs::open`]; shared by all workers.
#[derive(Debug)]
pub struct LogSet {
    pub(crate) targets: Vec<OpenTarget>,
    pub(crate) message_bytes_max: usize,
    pub(crate) tag: String,
    level_max: Option<Level>,
    has_profiles: bool,
}

impl LogSet {
    pub(crate) fn new(targets: Vec<OpenTarget>, tag: &str, message_bytes_max: usize) -> Self {
        let level_max = targets.iter().map(|target| target.spec.level_max).max();
        let has_profiles = targets.iter().any(|target| target.spec.profile.is_some());
        Self {
            targets,
            message_bytes_max,
            tag: tag.to_owned(),
            level_max,
            has_profiles,
        }
    }

    /// The tag of lines for targets whose profile has none.
    pub fn tag(&self) -> &str {
        &self.tag
    }

    /// Counts a line that is not sent to these targets among those that are sampled (`sample`).
    pub fn pass_over(&self, targets: Targets, level: Level) {
        for target in self.chosen(targets) {
            target.admits(level);
        }
    }

    pub(crate) fn chosen(&self, targets: Targets) -> &[OpenTarget] {
        match targets {
            Targets::All => &self.targets,
            Targets::One(index) => self.targets.get(index..=index).unwrap_or_default(),
        }
    }

    /// Whether a target has a profile: then not all get the same line.
    pub fn has_profiles(&self) -> bool {
        self.has_profiles
    }

    /// The profile of each target, in the order of the configuration.
    pub fn profiles(&self) -> impl Iterator<Item = Option<&LogProfile>> {
        self.targets
            .iter()
            .map(|target| target.spec.profile.as_deref())
    }

    /// Whether any target accepts a line of that level: if not, the message need not be composed.
    pub fn wants(&self, level: Level) -> bool {
        self.level_max.is_some_and(|most| level <= most)
    }

    /// Longer messages are cut, in bytes: one less than the longest line length of any target of
    /// the configuration, as in HAProxy.
    pub fn message_bytes_max(&self) -> usize {
        self.message_bytes_max
    }

    /// The counters by target, in the order of the configuration. Targets with the same endpoint
    /// share their counters.
    pub fn counters(&self) -> impl Iterator<Item = SinkCounters> + '_ {
        self.targets.iter().map(|target| target.sink.counters())
    }
}

/// Which targets of a set a line is for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Targets {
    /// All.
    All,
    /// One, by its place in the configuration.
    One(usize),
}

#[derive(Debug)]
pub(crate) struct OpenTarget {
    pub(crate) sink: Arc<LogSink>,
    pub(crate) origin: Origin,
    pub(crate) line_bytes_max: usize,
    spec: Arc<TargetSpec>,
    /// Lines that went through sampling, in all sets that share the `log` line.
    sampled: Arc<AtomicU64>,
}

impl OpenTarget {
    pub(crate) fn new(
        spec: Arc<TargetSpec>,
        sink: Arc<LogSink>,
        origin: Origin,
        sampled: Arc<AtomicU64>,
    ) -> Self {
        Self {
            sink,
            origin,
            line_bytes_max: spec.line_bytes_max(),
            spec,
            sampled,
        }
    }

    /// The level with which a line of `level` is sent, if it is to be sent.
    pub(crate) fn admits(&self, level: Level) -> Option<Level> {
        if level > self.spec.level_max {
            return None;
        }
        if let Some(sample) = &self.spec.sample
            && !sample.takes(self.sampled.fetch_add(1, Ordering::Relaxed))
        {
            return None;
        }
        Some(level.max(self.spec.level_min))
    }
}
