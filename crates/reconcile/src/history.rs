//! What was put in force, by whom, and what operators set beside it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use ballast_edit::SectionEdit;
use ballast_model::Config;
use ballast_model::change::diff;
use ballast_model::plan::{self, PlanLine};

use crate::merge::Basis;
use crate::object::{Override, OverrideKey};

/// How many former configurations are kept for `rollback`.
pub(crate) const HISTORY_COUNT_MAX: usize = 64;

/// As many are kept whatever their size.
pub(crate) const HISTORY_COUNT_MIN: usize = 4;

/// So many servers may stand in all that is kept: a kilobyte each, where no two share them.
pub(crate) const HISTORY_SERVER_COUNT_MAX: usize = 100_000;

/// How many settings by command are remembered one by one; the oldest go first.
pub(crate) const OVERRIDE_COUNT_MAX: usize = 10_000;

/// Bytes of text in all that is kept at most; what is the same is kept once.
pub(crate) const HISTORY_TEXT_BYTES_MAX: usize = 64 << 20;

/// What is written of a configuration: files, and what commands made of their sections.
#[derive(Clone, Debug, Default)]
pub struct ConfigSource {
    /// The files by name, as they were read.
    pub files: Arc<Vec<(String, Vec<u8>)>>,
    /// What the files say.
    pub file: Arc<Config>,
    /// Sections by command, in the order they came.
    pub section_edits: Arc<Vec<SectionEdit>>,
    /// What the files say with these sections.
    pub with_edits: Arc<Config>,
}

impl ConfigSource {
    /// Files, and what they say.
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
    /// What it changed.
    pub lines: Vec<PlanLine>,
    /// All of it.
    pub config: Arc<Config>,
    /// What was written at that time.
    pub written: ConfigSource,
}

/// The configuration of a process over time.
#[derive(Debug)]
pub struct ConfigHistory {
    written: ConfigSource,
    history: VecDeque<PastConfig>,
    overrides: BTreeMap<OverrideKey, Override>,
}

impl ConfigHistory {
    /// The history of a process that starts with `config`, which is what is written, and what
    /// operators did in the process before.
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

    /// What is written of what is in force.
    pub fn written(&self) -> &ConfigSource {
        &self.written
    }

    /// Notes what is written and changes nothing.
    pub fn written_is(&mut self, written: ConfigSource) {
        self.written = written;
    }

    /// What a merge goes by, as it is now: comparing whole configurations takes its time, and
    /// overrides are noted meanwhile.
    pub fn basis(&self) -> Basis {
        Basis {
            file: Arc::clone(&self.written.with_edits),
            overrides: self.overrides.keys().cloned().collect(),
        }
    }

    /// How what runs `now` differs from the file by what operators added and took away.
    pub fn overridden(&self, now: &Config) -> Vec<PlanLine> {
        let file = &self.written.file;
        plan::lines(file, &diff(file, now))
    }

    /// Notes what was put in force.
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

    /// Bytes of the texts that are kept, each once.
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

    /// What was put in force, oldest first.
    pub fn history(&self) -> impl DoubleEndedIterator<Item = &PastConfig> {
        self.history.iter()
    }

    /// Notes that `key` was set by command. The words of servers that were added stay until these
    /// go.
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

    /// Forgets the overrides on what a file changed, or is no more.
    pub fn forget_overrides(&mut self, is_overruled: impl Fn(&OverrideKey) -> bool) {
        self.overrides.retain(|key, _| !is_overruled(key));
    }

    /// Forgets overrides that are as they were when they were looked at: what was set since stays.
    pub fn forget_as_seen(&mut self, seen: &[(OverrideKey, Override)]) {
        for (key, then) in seen {
            if self.overrides.get(key) == Some(then) {
                self.overrides.remove(key);
            }
        }
    }

    /// What was set by command, by key.
    pub fn overrides(&self) -> impl Iterator<Item = (&OverrideKey, &Override)> {
        self.overrides.iter()
    }
}
