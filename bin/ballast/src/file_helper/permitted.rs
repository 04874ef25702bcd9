//! What a file helper opens: what the configuration names, and what lies beside that.
//!
//! The configuration is read at the start, and again when its files have changed. Then what the user of
//! the serving process could have written tells nothing: neither lists there nor links on the way.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use ballast_net as net;

use super::in_a_child;
use crate::args::Options;
use crate::identity::ProcessIdentity;
use crate::question::{Question, told};

/// Directories that many programs share: of these only what the configuration names itself is opened.
const SHARED_DIRECTORIES: [&str; 27] = [
    "/",
    "/boot",
    "/dev",
    "/dev/shm",
    "/etc",
    "/etc/ssl",
    "/etc/ssl/private",
    "/home",
    "/media",
    "/mnt",
    "/opt",
    "/proc",
    "/root",
    "/run",
    "/srv",
    "/sys",
    "/tmp",
    "/usr",
    "/usr/bin",
    "/usr/lib",
    "/usr/local",
    "/usr/sbin",
    "/usr/share",
    "/var",
    "/var/lib",
    "/var/log",
    "/var/tmp",
];

/// How many links lead to a file at most.
const LINKS_MAX: usize = 40;

/// The configuration while a file helper reads it.
static READING: Mutex<Option<Reading>> = Mutex::new(None);

#[derive(Debug)]
struct Reading {
    /// The paths that were asked about, each with its state before it was answered.
    named: BTreeMap<String, FileState>,
    /// The user whose files are not taken for what they say; `None`: every file is.
    distrusted: Option<Distrusted>,
}

/// Who may have written what leads to a file: the user of the serving process (`None`: root), and
/// whoever may write through a group or as anybody.
#[derive(Clone, Copy, Debug)]
struct Distrusted(Option<u32>);

/// The answer of this process, which may be a file helper that reads the configuration.
pub(crate) fn local_answer(question: Question, about: &str) -> Vec<u8> {
    let mut reading = READING.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(reading) = &mut *reading else {
        return question.answer(about);
    };
    if question.is_about_path() {
        let state = || state_of(&ballast_expr::path_of_text(about));
        let named = reading.named.entry(about.to_owned());
        named.or_insert_with(state);
    }
    match (question, reading.distrusted) {
        // Names are for what connects, and only the paths count here.
        (Question::Addresses, _) => [&[1], &b"192.0.2.1"[..]].concat(),
        (Question::Content { .. }, Some(distrusted)) => told(distrusted.content(about)),
        // A pipe that was read at the start has nothing more to say.
        (Question::Content { bytes_max: None }, None) => {
            let bytes_max = Some(super::FILE_BYTES_MAX);
            Question::Content { bytes_max }.answer(about)
        }
        _ => question.answer(about),
    }
}

/// A path that is relative to the directory of the start.
fn absolute(path: &Path) -> PathBuf {
    std::env::current_dir().unwrap_or_default().join(path)
}

/// A path behind all links.
pub(super) struct Way {
    pub(super) path: PathBuf,
    /// The user may write to a directory on the way.
    pub(super) is_of_user: bool,
}

/// The parts of a path, the last one first.
fn parts(path: &Path) -> Vec<PathBuf> {
    let parts = path.components().rev();
    let named = parts.filter(|part| matches!(part, Component::Normal(_) | Component::ParentDir));
    named.map(|part| PathBuf::from(part.as_os_str())).collect()
}

impl Distrusted {
    /// Follows links to what is there, or could be.
    ///
    /// # Errors
    /// A link that the user could have made.
    fn resolve(self, path: &Path) -> Result<Way, String> {
        let mut left: Vec<PathBuf> = parts(path);
        let mut way = Way {
            path: PathBuf::from("/"),
            is_of_user: false,
        };
        let mut link_count = 0;
        while let Some(part) = left.pop() {
            if part == Path::new("..") {
                way.path.pop();
                continue;
            }
            let entry = way.path.join(&part);
            let known = std::fs::symlink_metadata(&entry);
            way.is_of_user |= self.may_replace(&way.path, known.as_ref().ok());
            match known {
                Ok(known) if known.is_symlink() => {
                    link_count += 1;
                    if way.is_of_user || link_count > LINKS_MAX {
                        return Err(format!(
                            "{} is a symbolic link that others than root could have made",
                            entry.display()
                        ));
                    }
                    let target = std::fs::read_link(&entry).map_err(|error| error.to_string())?;
                    if target.is_absolute() {
                        way.path = PathBuf::from("/");
                    }
                    left.extend(parts(&target));
                }
                _ => way.path = entry,
            }
        }
        Ok(way)
    }

    /// The content of a file; nothing where the user could have written it.
    fn content(self, about: &str) -> io::Result<Vec<u8>> {
        let way = self.resolve(&absolute(&ballast_expr::path_of_text(about)));
        let way = way.map_err(io::Error::other)?;
        if way.is_of_user {
            return Ok(Vec::new());
        }
        // What is looked at is what is read: the user can put nothing in its place.
        let known = std::fs::metadata(&way.path)?;
        match self.0 == Some(known.uid()) || known.mode() & 0o022 != 0 {
            true => Ok(Vec::new()),
            false => net::read_file(&way.path, super::FILE_BYTES_MAX),
        }
    }

    /// Whether the user could put something else in the place of an entry.
    fn may_replace(self, directory: &Path, entry: Option<&Metadata>) -> bool {
        let Ok(known) = std::fs::metadata(directory) else {
            return false;
        };
        let is_owner = |of: &Metadata| self.0 == Some(of.uid());
        let may_write = is_owner(&known) || known.mode() & 0o022 != 0;
        // In a sticky directory (`/tmp`) nobody replaces what is another's.
        let is_kept = known.mode() & 0o1000 != 0
            && !is_owner(&known)
            && entry.is_some_and(|entry| entry.uid() == 0 && !is_owner(entry));
        may_write && !is_kept
    }
}

/// Reads the configuration of a start, to learn what it names.
pub(crate) type ReadConfiguration = fn(&Options);

/// What the helper opens.
#[derive(Debug)]
pub(super) struct Permitted {
    read: ReadConfiguration,
    files: BTreeSet<PathBuf>,
    directories: BTreeSet<PathBuf>,
    /// The user that the serving process became.
    identity: ProcessIdentity,
    /// The states of the files before they were read last.
    states: BTreeMap<PathBuf, FileState>,
}

/// The number of a file's inode, the time of its last change, its length; empty where it is not.
type FileState = String;

fn state_of(path: &Path) -> FileState {
    let Ok(known) = std::fs::metadata(path) else {
        return String::new();
    };
    let (ino, length) = (known.ino(), known.len());
    format!("{ino} {} {} {length}", known.ctime(), known.ctime_nsec())
}

impl Permitted {
    /// What the configuration of the start names.
    pub(super) fn at_start(
        options: &Options,
        identity: ProcessIdentity,
        read: ReadConfiguration,
    ) -> Self {
        let mut permitted = Self {
            read,
            files: BTreeSet::new(),
            directories: BTreeSet::new(),
            identity,
            states: BTreeMap::new(),
        };
        permitted.read(options, None);
        permitted
    }

    /// The user that the serving process became at its start.
    pub(super) fn identity(&self) -> &ProcessIdentity {
        &self.identity
    }

    /// The path behind all links of what may be opened.
    ///
    /// # Errors
    /// Why it may not.
    pub(super) fn resolved(&mut self, options: &Options, path: &Path) -> Result<Way, String> {
        self.check(options, path)?;
        self.distrusted().resolve(&absolute(path))
    }

    fn distrusted(&self) -> Distrusted {
        // What is root's is its own where it stays root.
        Distrusted(self.identity.uid().filter(|uid| *uid != 0))
    }

    /// Checks that the configuration names a path, or something beside it. What is not known yet may
    /// be named by files that have changed since.
    ///
    /// # Errors
    /// It does not.
    fn check(&mut self, options: &Options, path: &Path) -> Result<(), String> {
        let path = absolute(path);
        if !self.names(&path) && self.have_changed(options) {
            self.read(options, Some(self.distrusted()));
        }
        match self.names(&path) {
            true => Ok(()),
            false => Err(format!(
                "the process {} opens what the configuration files name, and what lies beside that: \
                 move it there",
                super::NAME
            )),
        }
    }

    /// Whether there is another state of a file, or another file.
    fn have_changed(&self, options: &Options) -> bool {
        let mut known = self.states.iter();
        known.any(|(path, state)| state_of(path) != *state)
            || configuration_files(options).any(|path| !self.states.contains_key(&path))
    }

    fn names(&self, path: &Path) -> bool {
        let climbs = path.components().any(|part| part == Component::ParentDir);
        let beside = |directory: &Path| self.directories.contains(directory);
        self.files.contains(path)
            || (!climbs && (beside(path) || path.parent().is_some_and(beside)))
    }

    /// Adds what the files on the disk name. They are read in a process of its own, which takes the
    /// memory for them along.
    fn read(&mut self, options: &Options, distrusted: Option<Distrusted>) {
        let read = self.read;
        let files = configuration_files(options);
        let mut states: BTreeMap<_, _> =
            files.map(|path| (path.clone(), state_of(&path))).collect();
        let said = in_a_child(|| {
            *READING.lock().unwrap_or_else(PoisonError::into_inner) = Some(Reading {
                named: BTreeMap::new(),
                distrusted,
            });
            // What is wrong with it was said, or will be, by the process that is to have it.
            read(options);
            let reading = READING
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .take();
            let named = reading.map(|reading| reading.named).unwrap_or_default();
            let lines = named
                .into_iter()
                .map(|(path, state)| format!("{path}\0{state}\0"));
            lines.collect::<String>().into_bytes()
        });
        let Ok(said) = said else {
            // It could not be read (no memory for a process, too slow a disk): it is with the next question.
            self.states.clear();
            return;
        };
        let said = String::from_utf8_lossy(&said);
        let mut words = said.split('\0');
        while let (Some(path), Some(state)) = (words.next(), words.next()) {
            let path = absolute(&ballast_expr::path_of_text(path));
            states
                .entry(path.clone())
                .or_insert_with(|| state.to_owned());
            let directory = match path.is_dir() {
                true => Some(path.as_path()),
                false => path.parent(),
            };
            let shared = |directory: &Path| {
                let behind_links = std::fs::canonicalize(directory);
                let directory = behind_links.as_deref().unwrap_or(directory);
                let mut shared = SHARED_DIRECTORIES.iter();
                shared.any(|shared| Path::new(shared) == directory)
            };
            if let Some(directory) = directory.filter(|directory| !shared(directory)) {
                self.directories.insert(directory.to_owned());
            }
            self.files.insert(path);
        }
        self.states = states;
    }
}

/// The files of the command line, and what is in its directories.
fn configuration_files(options: &Options) -> impl Iterator<Item = PathBuf> {
    let files = options.files.iter().map(|name| absolute(Path::new(name)));
    files.flat_map(|path| {
        let entries = std::fs::read_dir(&path).into_iter().flatten().flatten();
        let inside: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
        inside.into_iter().chain([path])
    })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt as _, chown, symlink};

    use super::*;

    /// A directory `own` of somebody, and `secret` and `etc` beside it.
    fn directories() -> (tempfile::TempDir, PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        for name in ["own", "secret", "etc"] {
            fs::create_dir(root.join(name)).unwrap();
            fs::write(root.join(name).join("file"), name).unwrap();
        }
        (directory, root)
    }

    fn own_uid() -> u32 {
        fs::metadata("/proc/self").unwrap().uid()
    }

    #[test]
    fn links_are_followed_unless_the_user_could_have_made_them() {
        let (_directory, root) = directories();
        symlink("../secret/file", root.join("etc/link")).unwrap();
        symlink("etc", root.join("other")).unwrap();
        let target = root.join("secret/file");
        let somebody = Distrusted(Some(own_uid() + 1));
        for name in ["etc/link", "other/link", "other/../etc/link"] {
            let way = somebody.resolve(&root.join(name)).unwrap();
            assert_eq!((&way.path, way.is_of_user), (&target, false), "{name}");
        }
        for user in [Distrusted(Some(own_uid())), somebody] {
            let way = user.resolve(&root.join("etc/file")).unwrap();
            assert_eq!(way.is_of_user, user.0 == Some(own_uid()));
        }
        let why = Distrusted(Some(own_uid()))
            .resolve(&root.join("etc/link"))
            .err()
            .unwrap();
        assert!(why.contains("symbolic link"), "{why}");
        // Through a group, or as anybody.
        for mode in [0o775, 0o757] {
            fs::set_permissions(root.join("etc"), fs::Permissions::from_mode(mode)).unwrap();
            assert!(
                somebody.resolve(&root.join("etc/link")).is_err(),
                "{mode:o}"
            );
        }
        symlink("turn", root.join("turn")).unwrap();
        assert!(somebody.resolve(&root.join("turn")).is_err());
    }

    #[test]
    fn a_link_of_root_leads_no_further_than_the_directory_of_the_user() {
        if !ballast_net::is_root() {
            eprintln!("SKIPPED: only root may give a directory away");
            return;
        }
        let (_directory, root) = directories();
        let user = Distrusted(Some(12_345));
        chown(root.join("own"), user.0, None).unwrap();
        symlink("../own/file", root.join("etc/link")).unwrap();
        let way = user.resolve(&root.join("etc/link")).unwrap();
        assert_eq!((way.path, way.is_of_user), (root.join("own/file"), true));
        fs::remove_file(root.join("own/file")).unwrap();
        symlink("../secret/file", root.join("own/file")).unwrap();
        assert!(user.resolve(&root.join("etc/link")).is_err());
    }

    #[test]
    fn what_the_user_can_write_says_nothing() {
        let (_directory, root) = directories();
        let file = root.join("etc/file");
        let content = |user: u32| {
            Distrusted(Some(user))
                .content(file.to_str().unwrap())
                .unwrap()
        };
        assert_eq!(content(own_uid() + 1), b"etc");
        assert_eq!(content(own_uid()), b"");
        for mode in [0o664, 0o646] {
            fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(content(own_uid() + 1), b"", "{mode:o}");
        }
    }

    /// A process with a second thread cannot be copied: no more could one without memory.
    #[test]
    fn a_configuration_that_could_not_be_read_is_read_again() {
        let (_directory, root) = directories();
        let options = Options {
            files: vec![root.join("etc/file").display().to_string()],
            ..Options::default()
        };
        let (ends, end) = std::sync::mpsc::channel::<()>();
        let beside = std::thread::spawn(move || end.recv());
        let permitted = Permitted::at_start(&options, ProcessIdentity::default(), |_| ());
        assert!(permitted.have_changed(&options));
        drop(ends);
        let _ = beside.join().unwrap();
    }

    #[test]
    fn what_is_named_and_what_lies_beside_it_is_permitted() {
        let permitted = Permitted {
            files: ["/etc/one.cfg", "/etc/haproxy/../maps/a.map"]
                .map(PathBuf::from)
                .into(),
            directories: ["/etc/haproxy"].map(PathBuf::from).into(),
            read: |_| (),
            identity: ProcessIdentity::default(),
            states: BTreeMap::new(),
        };
        for (path, is_permitted) in [
            ("/etc/one.cfg", true),
            ("/etc/shadow", false),
            ("/etc/haproxy", true),
            ("/etc/haproxy/new.pem", true),
            ("/etc/haproxy/deeper/new.pem", false),
            ("/etc/haproxy/../shadow", false),
            ("/etc/haproxy/../maps/a.map", true),
            ("/etc/haproxy/../maps/b.map", false),
        ] {
            assert_eq!(permitted.names(Path::new(path)), is_permitted, "{path}");
        }
    }
}
