//! What was put in force, by whom, and who wins when a file is read again.
//!
//! A reload makes the process what the file says. Where overrides are to be kept, three have a
//! say: the file as it was, the file as it is, and the commands of operators in between. Where the
//! file changed, the file wins; where it did not, an override stays.

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::sync::Arc;

use ballast_edit::SectionEdit;
use ballast_model::change::{apply, diff};
use ballast_model::plan::{self, PlanLine};
use ballast_model::{Change, Config};

/// How many former configurations are kept for `rollback`.
pub const HISTORY_COUNT_MAX: usize = 64;

/// As many are kept whatever their size.
pub const HISTORY_COUNT_MIN: usize = 4;

/// So many servers may stand in all that is kept: a kilobyte each, where no two share them.
pub const HISTORY_SERVER_COUNT_MAX: usize = 100_000;

/// How many settings by command are remembered one by one; the oldest go first.
pub const OVERRIDE_COUNT_MAX: usize = 10_000;

/// The hand that has overrides written back (`persist on`): a reload leaves it.
pub const PERSIST: &str = "global persist";

/// Something that an operator set while the process ran.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Override {
    /// The value, as it was written.
    pub value: String,
    /// When, in seconds since 1970.
    pub at_unix_s: u64,
    /// The command.
    pub command: String,
}

/// Bytes of text in all that is kept at most; what is the same is kept once.
pub const HISTORY_TEXT_BYTES_MAX: usize = 64 << 20;

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
    overrides: BTreeMap<String, Override>,
}

/// What becomes of what operators set, when a configuration is read again.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Overrides {
    /// It stays where the file did not change.
    #[default]
    Keep,
    /// The process is to be what the file says.
    Drop,
}

/// What was written, and the keys of what operators set.
#[derive(Clone, Debug)]
pub struct Basis {
    file: Arc<Config>,
    overrides: Vec<String>,
}

/// A file that was read again, and what operators did meanwhile, in one.
#[derive(Debug)]
pub struct Merged {
    /// The configuration to put in force.
    pub config: Config,
    /// Changes by command that stay.
    pub kept: Vec<Change>,
    /// Changes by command that the file overrules.
    pub dropped: Vec<Change>,
    /// Keys of [`ConfigHistory::overrides`] that the file overrules: it has another word there now, or
    /// nothing stays.
    pub overruled: Vec<String>,
}

impl ConfigHistory {
    /// The config history of a process that starts with `config`, which is what is written, and what
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
    pub fn note(&mut self, key: &str, entry: Override) {
        if self.overrides.len() >= OVERRIDE_COUNT_MAX
            && let Some(oldest) = self
                .overrides
                .iter()
                .filter(|(key, _)| !key.ends_with(" added"))
                .min_by_key(|(_, entry)| entry.at_unix_s)
                .map(|(key, _)| key.clone())
        {
            self.overrides.remove(&oldest);
        }
        self.overrides.insert(key.to_owned(), entry);
    }

    /// Forgets the overrides on what a file changed, or is no more.
    pub fn forget_overrides(&mut self, is_overruled: impl Fn(&str) -> bool) {
        self.overrides.retain(|key, _| !is_overruled(key));
    }

    /// Forgets overrides that are as they were when they were looked at: what was set since stays.
    pub fn forget_as_seen(&mut self, seen: &[(String, Override)]) {
        for (key, then) in seen {
            if self.overrides.get(key) == Some(then) {
                self.overrides.remove(key);
            }
        }
    }

    /// What was set by command, by key.
    pub fn overrides(&self) -> impl Iterator<Item = (&str, &Override)> {
        self.overrides
            .iter()
            .map(|(key, entry)| (key.as_str(), entry))
    }
}

impl Basis {
    /// What a file that was read again amounts to, beside what runs `now`.
    pub fn merge(&self, now: &Config, read: &Config, overrides: Overrides) -> Merged {
        let drops = overrides == Overrides::Drop;
        let overridden: Vec<Change> = diff(&self.file, now)
            .into_iter()
            .filter(|change| !is_order(change))
            .collect();
        let by_file: HashSet<String> = diff(&self.file, read).iter().filter_map(subject).collect();
        // What is equal to what runs is what runs.
        let shared = apply(now, &diff(now, read)).unwrap_or_else(|_| read.clone());
        let mut merged = Merged {
            config: shared,
            kept: Vec::new(),
            dropped: Vec::new(),
            overruled: Vec::new(),
        };
        let is_dropped = |change: &Change| {
            drops || subject(change).is_some_and(|subject| by_file.contains(&subject))
        };
        (merged.dropped, merged.kept) = overridden.into_iter().partition(is_dropped);
        match apply(&merged.config, &merged.kept) {
            Ok(config) => merged.config = config,
            // What some of them were about is gone: one by one.
            Err(_) => merged.keep_what_fits(),
        }
        merged.overruled = self
            .overrides
            .iter()
            .filter(|key| drops && *key != PERSIST || is_overruled(key, &self.file, read))
            .cloned()
            .collect();
        merged
    }
}

impl Merged {
    fn keep_what_fits(&mut self) {
        for change in std::mem::take(&mut self.kept) {
            match apply(&self.config, std::slice::from_ref(&change)) {
                Ok(config) => {
                    self.config = config;
                    self.kept.push(change);
                }
                Err(_) => self.dropped.push(change),
            }
        }
    }
}

/// Whether a file says something else than before where an override has set something, word by word.
fn is_overruled(key: &str, was: &Config, is: &Config) -> bool {
    let words: Vec<&str> = key.splitn(3, ' ').collect();
    match words[..] {
        ["server", at, word] => {
            let Some((backend, name)) = at.split_once('/') else {
                return false;
            };
            let of = |config: &Config| {
                let backend = config.backend(backend)?;
                backend.servers.iter().find(|one| one.name == name).cloned()
            };
            match (of(was), of(is)) {
                (Some(was), Some(is)) => match word {
                    "weight" => was.weight != is.weight,
                    "maxconn" => was.connection_count_max != is.connection_count_max,
                    "state" => was.disabled != is.disabled,
                    "addr" => was.address != is.address || was.port != is.port,
                    _ => was.checks != is.checks,
                },
                // What only an override knows has its overrides until it goes.
                (None, None) => false,
                _ => true,
            }
        }
        ["frontend", name, word] => match (was.frontend(name), is.frontend(name)) {
            (Some(was), Some(is)) => {
                word == "maxconn" && was.connection_count_max != is.connection_count_max
            }
            (None, None) => false,
            _ => true,
        },
        ["backend", name, word] => match (was.backend(name), is.backend(name)) {
            (Some(was), Some(is)) => match word {
                "dynamic-cookie" => was.cookie != is.cookie,
                "dynamic-cookie-key" => was.dynamic_cookie_key != is.dynamic_cookie_key,
                _ => false,
            },
            (None, None) => false,
            _ => true,
        },
        ["global", "maxconn"] => was.global.connection_count_max != is.global.connection_count_max,
        _ => false,
    }
}

fn is_order(change: &Change) -> bool {
    matches!(
        change,
        Change::OrderFrontends(_) | Change::OrderBackends(_) | Change::OrderServers(..)
    )
}

/// What a change is about, such that two changes of one thing have the same.
fn subject(change: &Change) -> Option<String> {
    Some(match change {
        Change::SetGlobal(_) => "global".into(),
        Change::SetUserlists(_) => "userlists".into(),
        Change::AddFrontend(one) | Change::SetFrontend(one) => {
            format!("frontend {}", one.common.name)
        }
        Change::RemoveFrontend(name) => format!("frontend {name}"),
        Change::AddBackend(one) | Change::SetBackend(one) => format!("backend {}", one.common.name),
        Change::RemoveBackend(name) => format!("backend {name}"),
        Change::AddServer(backend, one) | Change::SetServer(backend, one) => {
            format!("server {backend}/{}", one.name)
        }
        Change::RemoveServer(backend, name) => format!("server {backend}/{name}"),
        Change::OrderFrontends(_) | Change::OrderBackends(_) | Change::OrderServers(..) => {
            return None;
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use ballast_model::{Address, Backend, Server};

    fn server(name: &str, weight: u16) -> Arc<Server> {
        let mut server = Server::new(name.into(), Address::Unix(format!("/{name}")));
        server.weight = weight;
        Arc::new(server)
    }

    fn config(servers: &[(&str, u16)]) -> Config {
        let mut backend = Backend::default();
        backend.common.name = "be".into();
        backend.servers = servers
            .iter()
            .map(|(name, weight)| server(name, *weight))
            .collect();
        Config {
            backends: vec![Arc::new(backend)],
            ..Config::default()
        }
    }

    fn begun(file: Config) -> ConfigHistory {
        let file = Arc::new(file);
        let written = ConfigSource::of_files(Vec::new(), Arc::clone(&file));
        ConfigHistory::begin(file, written, 0)
    }

    fn names(config: &Config) -> Vec<String> {
        let servers = &config.backends[0].servers;
        servers
            .iter()
            .map(|one| format!("{}={}", one.name, one.weight))
            .collect()
    }

    #[test]
    fn an_override_stays_where_the_file_did_not_change() {
        let file = config(&[("a", 1), ("b", 1)]);
        let config_history = begun(file);
        // By hand: c came, b went.
        let now = config(&[("a", 1), ("c", 3)]);
        let read = config(&[("a", 9), ("b", 1), ("d", 1)]);
        let merged = config_history.basis().merge(&now, &read, Overrides::Keep);
        assert_eq!(names(&merged.config), ["a=9", "d=1", "c=3"]);
        assert_eq!((merged.kept.len(), merged.dropped.len()), (2, 0));
    }

    #[test]
    fn the_file_wins_where_it_changed() {
        let file = config(&[("a", 1), ("b", 1)]);
        let config_history = begun(file);
        let now = config(&[("a", 1), ("c", 3)]);
        // The file has its own c now, and changed b.
        let read = config(&[("a", 1), ("b", 5), ("c", 4)]);
        let merged = config_history.basis().merge(&now, &read, Overrides::Keep);
        assert_eq!(names(&merged.config), ["a=1", "b=5", "c=4"]);
        assert_eq!((merged.kept.len(), merged.dropped.len()), (0, 2));
    }

    #[test]
    fn an_override_of_a_word_goes_when_the_file_has_another_there() {
        let mut config_history = begun(config(&[("a", 1), ("b", 1)]));
        let entry = || Override {
            value: "x".into(),
            at_unix_s: 0,
            command: "set".into(),
        };
        for key in [
            "server be/a weight",
            "server be/a state",
            "server be/b weight",
        ] {
            config_history.note(key, entry());
        }
        config_history.note("server be/mine weight", entry());
        config_history.note("global rate-limit sessions", entry());
        config_history.note(PERSIST, entry());
        let now = config(&[("a", 1), ("b", 1), ("mine", 1)]);
        let overruled = |read: &Config| {
            config_history
                .basis()
                .merge(&now, read, Overrides::Keep)
                .overruled
        };
        assert_eq!(overruled(&config(&[("a", 1), ("b", 1)])), [""; 0]);
        assert_eq!(
            overruled(&config(&[("a", 2), ("b", 1)])),
            ["server be/a weight"]
        );
        // A server that goes takes what was set of it along.
        assert_eq!(overruled(&config(&[("a", 1)])), ["server be/b weight"]);
        let all =
            config_history
                .basis()
                .merge(&now, &config(&[("a", 1), ("b", 1)]), Overrides::Drop);
        assert_eq!(all.overruled.len(), 5, "all but that they are written back");
    }

    #[test]
    fn a_reload_drops_what_the_file_does_not_have() {
        let file = config(&[("a", 1)]);
        let config_history = begun(file.clone());
        let merged =
            config_history
                .basis()
                .merge(&config(&[("a", 1), ("x", 1)]), &file, Overrides::Drop);
        assert_eq!(names(&merged.config), ["a=1"]);
        let merged =
            config_history
                .basis()
                .merge(&config(&[("a", 1), ("x", 1)]), &file, Overrides::Keep);
        assert_eq!(names(&merged.config), ["a=1", "x=1"]);
    }

    #[test]
    fn history_and_overrides_are_bounded() {
        let mut config_history = begun(config(&[("a", 1)]));
        for number in 0..(HISTORY_COUNT_MAX as u64 + 5) {
            let mut past = config_history.history().next_back().unwrap().clone();
            past.number = number;
            config_history.put_in_force(past);
        }
        assert_eq!(config_history.history().count(), HISTORY_COUNT_MAX);
        // Large texts leave fewer, and one text is counted once.
        let long = Arc::new(vec![("f".to_owned(), vec![0; HISTORY_TEXT_BYTES_MAX / 8])]);
        for number in 0..20 {
            let mut past = config_history.history().next_back().unwrap().clone();
            past.number = number;
            past.written.files = if number < 10 {
                Arc::clone(&long)
            } else {
                Arc::new(Vec::clone(&long))
            };
            config_history.put_in_force(past);
        }
        assert_eq!(config_history.history().count(), 8);
    }
}
