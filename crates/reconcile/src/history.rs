//! The configurations that were in force, and the overrides.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use ballast_edit::SectionEdit;
use ballast_model::Config;
use ballast_model::change::diff;
use ballast_model::plan::{self, PlanLine};

use crate::merge::MergeBase;
use crate::overrides::{Override, OverrideKey};

/// How many former configurations `rollback` finds at most.
pub(crate) const HISTORY_COUNT_MAX: usize = 64;

/// How many are kept whatever their size.
pub(crate) const HISTORY_COUNT_MIN: usize = 4;

/// How many servers all of them may have together: a kilobyte each, where no two share them.
pub(crate) const HISTORY_SERVER_COUNT_MAX: usize = 100_000;

/// How many overrides are kept; the oldest go first.
pub(crate) const OVERRIDE_COUNT_MAX: usize = 10_000;

/// Bytes of text in all of them at most; equal texts are kept once.
pub(crate) const HISTORY_TEXT_BYTES_MAX: usize = 64 << 20;

/// The text of a configuration: files, and sections by command.
#[derive(Clone, Debug, Default)]
pub struct ConfigSource {
    /// The files by name, as they were read.
    pub files: Arc<Vec<(String, Vec<u8>)>>,
    /// The configuration of the files.
    pub file: Arc<Config>,
    /// Sections by command, in the order they came.
    pub section_edits: Arc<Vec<SectionEdit>>,
    /// The configuration of the files with these sections.
    pub with_edits: Arc<Config>,
}

impl ConfigSource {
    /// Files and their configuration, without sections by command.
    pub fn of_files(files: Vec<(String, Vec<u8>)>, file: Arc<Config>) -> Self {
        Self {
            files: Arc::new(files),
            with_edits: Arc::clone(&file),
            file,
            section_edits: Arc::default(),
        }
    }

    fn file_byte_count(&self) -> usize {
        self.files.iter().map(|(_, bytes)| bytes.len()).sum()
    }

    /// Bytes of the sections by command.
    pub fn section_edit_byte_count(&self) -> usize {
        let texts = self
            .section_edits
            .iter()
            .filter_map(|one| one.text.as_ref());
        texts.map(String::len).sum()
    }
}

/// A configuration that was put in force.
#[derive(Clone, Debug)]
pub struct PastConfig {
    /// Its generation.
    pub number: u64,
    /// When, in seconds since 1970.
    pub at_unix_s: u64,
    /// Why: `start`, `reload`, the command.
    pub cause: String,
    /// The lines of its plan.
    pub lines: Vec<PlanLine>,
    /// The configuration.
    pub config: Arc<Config>,
    /// Its text.
    pub written: ConfigSource,
}

/// The configurations of a process over time, and its overrides.
#[derive(Debug)]
pub struct ConfigHistory {
    written: ConfigSource,
    history: VecDeque<PastConfig>,
    overrides: BTreeMap<OverrideKey, Override>,
}

impl ConfigHistory {
    /// The history of a process that starts with `config`, whose text is `written`.
    pub fn begin(config: Arc<Config>, written: ConfigSource, at_unix_s: u64) -> Self {
        let first = PastConfig {
            number: 1,
            at_unix_s,
            cause: "start".into(),
            lines: Vec::new(),
            config,
            written: written.clone(),
        };
        Self {
            written,
            history: VecDeque::from([first]),
            overrides: BTreeMap::new(),
        }
    }

    /// The text of the configuration in force.
    pub fn written(&self) -> &ConfigSource {
        &self.written
    }

    /// Replaces the text, where the configuration is the same.
    pub fn set_written(&mut self, written: ConfigSource) {
        self.written = written;
    }

    /// A copy of what a merge starts from: overrides are noted while configurations are compared.
    pub fn merge_base(&self) -> MergeBase {
        MergeBase {
            file: Arc::clone(&self.written.with_edits),
            overrides: self.overrides.keys().cloned().collect(),
        }
    }

    /// The lines of a plan from the files to the configuration in force `current`.
    pub fn overridden(&self, current: &Config) -> Vec<PlanLine> {
        let file = &self.written.file;
        plan::lines(file, &diff(file, current))
    }

    /// Adds a configuration that was put in force.
    pub fn put_in_force(&mut self, past: PastConfig) {
        self.written = past.written.clone();
        let servers = past
            .config
            .backends
            .iter()
            .map(|backend| backend.servers.len());
        let count_max = HISTORY_SERVER_COUNT_MAX / servers.sum::<usize>().max(1);
        let count_max = count_max.clamp(HISTORY_COUNT_MIN, HISTORY_COUNT_MAX);
        while self.history.len() >= count_max {
            self.history.pop_front();
        }
        self.history.push_back(past);
        while self.history.len() > HISTORY_COUNT_MIN
            && self.text_byte_count() > HISTORY_TEXT_BYTES_MAX
        {
            self.history.pop_front();
        }
    }

    /// Bytes of all texts, each counted once.
    fn text_byte_count(&self) -> usize {
        let mut bytes = 0;
        let mut before: Option<&ConfigSource> = None;
        for past in &self.history {
            let written = &past.written;
            if !before.is_some_and(|one| Arc::ptr_eq(&one.files, &written.files)) {
                bytes += written.file_byte_count();
            }
            if !before.is_some_and(|one| Arc::ptr_eq(&one.section_edits, &written.section_edits)) {
                bytes += written.section_edit_byte_count();
            }
            before = Some(&past.written);
        }
        bytes
    }

    /// The configurations that were in force, oldest first.
    pub fn history(&self) -> impl DoubleEndedIterator<Item = &PastConfig> {
        self.history.iter()
    }

    /// Adds an override. The overrides that say that a server was added stay as long as the server.
    pub fn note(&mut self, key: OverrideKey, entry: Override) {
        if self.overrides.len() >= OVERRIDE_COUNT_MAX
            && let Some(oldest) = self
                .overrides
                .iter()
                .filter(|(key, _)| !key.setting.is_object)
                .min_by_key(|(_, entry)| entry.at_unix_s)
                .map(|(key, _)| key.clone())
        {
            self.overrides.remove(&oldest);
        }
        self.overrides.insert(key, entry);
    }

    /// Drops overrides.
    pub fn forget_overrides(&mut self, is_dropped: impl Fn(&OverrideKey) -> bool) {
        self.overrides.retain(|key, _| !is_dropped(key));
    }

    /// Drops overrides that are as in `seen`. Those that were set again since stay.
    pub fn forget_equal(&mut self, seen: &[(OverrideKey, Override)]) {
        for (key, then) in seen {
            if self.overrides.get(key) == Some(then) {
                self.overrides.remove(key);
            }
        }
    }

    /// The overrides, in the order of their keys.
    pub fn overrides(&self) -> impl Iterator<Item = (&OverrideKey, &Override)> {
        self.overrides.iter()
    }
}
