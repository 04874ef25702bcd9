//! Replacing files atomically, and reading files without blocking.
//!
//! A reader of the path, before or after a crash, sees either the old contents or the new ones:
//! they are written to a file beside it, synced to the disk, and renamed.

use std::fs::{File, Metadata, OpenOptions, Permissions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{
    FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _, fchown,
};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat2};

use crate::{SystemCallError, has_memory};

/// How many names are tried for the temporary file.
const NAMES_MAX: usize = 16;

/// Replaces the contents of the file at `path` by `bytes`, atomically and durably: when this
/// returns, they survive a loss of power. Mode and owner stay, the owner as far as the process may
/// set it; a new file has mode 0644 less the umask. A symbolic link stays one: its target is
/// replaced. Only regular files are replaced: a pipe or a device is refused.
///
/// It blocks for as long as the disk takes.
///
/// # Errors
/// The system's error. The file is unchanged, and no temporary file is left; but when only syncing
/// the directory failed, the new contents may be there already.
pub fn replace_file(path: &Path, bytes: &[u8]) -> Result<(), SystemCallError> {
    replace_files(&[(path, bytes)])
}

/// Replaces the contents of several files, each as [`replace_file`] does, in the given order. All
/// contents are on the disk before the first file is replaced, so an error that can be found in
/// advance (no space, no permission, no directory) leaves all files unchanged.
///
/// The files together are not replaced in one step: a reader, or a loss of power, between two of
/// the renames finds the first files new and the others old. A path that is given twice gets the
/// later contents.
///
/// # Errors
/// The system's error for the first file that failed. No temporary file is left. Before the first
/// rename, all files are unchanged. When a rename fails, the files before it are replaced and those
/// from it on are not; when only syncing a directory failed, all are replaced and may not survive a
/// loss of power.
pub fn replace_files<P: AsRef<Path>, B: AsRef<[u8]>>(
    files: &[(P, B)],
) -> Result<(), SystemCallError> {
    let changes: Vec<FileChange<'_>> = files
        .iter()
        .map(|(path, bytes)| FileChange {
            path: path.as_ref(),
            content: Some(bytes.as_ref()),
            is_secret: false,
        })
        .collect();
    change_files(&changes)
}

/// A file that gets another content, or goes.
#[derive(Clone, Copy, Debug)]
pub struct FileChange<'f> {
    /// Its path.
    pub path: &'f Path,
    /// What it will have; `None`: it is removed, if it is there.
    pub content: Option<&'f [u8]>,
    /// Only its owner may read and write it (mode 0600), whatever its mode was.
    pub is_secret: bool,
}

/// As [`replace_files`], with files that are removed and files that are secret.
///
/// # Errors
/// As [`replace_files`].
pub fn change_files(changes: &[FileChange<'_>]) -> Result<(), SystemCallError> {
    // Temporary files that are not renamed are removed when dropped.
    let mut steps = Vec::with_capacity(changes.len());
    for change in changes {
        steps.push(ChangeStep::prepare(change)?);
    }
    let mut done = 0;
    let mut outcome = Ok(());
    for step in &mut steps {
        outcome = step.carry_out();
        if outcome.is_err() {
            break;
        }
        done += 1;
    }
    // What was done is synced whatever happened to the rest; the first error is returned.
    let mut synced: Vec<&Path> = Vec::new();
    for step in &steps[..done] {
        let (path, (directory, opened)) = step.directory();
        if synced.contains(&directory.as_path()) {
            continue;
        }
        synced.push(directory);
        let brought = opened.sync_all();
        outcome = outcome.and(brought.map_err(|error| fault(path, "fsync", error)));
    }
    outcome
}

/// A change of one file that is prepared.
enum ChangeStep {
    Replace(TemporaryFile),
    Remove {
        path: PathBuf,
        directory: (PathBuf, File),
    },
}

impl ChangeStep {
    fn prepare(change: &FileChange<'_>) -> Result<Self, SystemCallError> {
        let path = change.path;
        let Some(content) = change.content else {
            return Ok(Self::Remove {
                path: path.to_path_buf(),
                directory: directory_of(path).map_err(|error| fault(path, "open", error))?,
            });
        };
        TemporaryFile::write(path, content, change.is_secret).map(Self::Replace)
    }

    fn carry_out(&mut self) -> Result<(), SystemCallError> {
        match self {
            Self::Replace(file) => file.rename(),
            Self::Remove { path, .. } => match std::fs::remove_file(&*path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    Err(fault(path, "unlink", error))
                }
                _ => Ok(()),
            },
        }
    }

    /// The path, and the directory to sync.
    fn directory(&self) -> (&Path, &(PathBuf, File)) {
        match self {
            Self::Replace(file) => (&file.path, &file.directory),
            Self::Remove { path, directory } => (path, directory),
        }
    }
}

/// The directory of a file, opened: one that cannot be opened cannot be synced.
fn directory_of(path: &Path) -> io::Result<(PathBuf, File)> {
    let directory = match path.parent() {
        Some(parent) if parent != Path::new("") => parent.to_path_buf(),
        _ => PathBuf::from("."),
    };
    let opened = File::open(&directory)?;
    Ok((directory, opened))
}

fn fault(path: &Path, call: &'static str, error: io::Error) -> SystemCallError {
    SystemCallError::new(call, path.display(), error)
}

/// New contents on the disk, in a temporary file beside the one they are for.
struct TemporaryFile {
    /// The path as given.
    path: PathBuf,
    /// The path with links resolved.
    target: PathBuf,
    /// The directory to sync after the rename.
    directory: (PathBuf, File),
    /// The temporary path; `None` after the rename.
    name: Option<PathBuf>,
}

impl TemporaryFile {
    fn write(path: &Path, bytes: &[u8], is_secret: bool) -> Result<Self, SystemCallError> {
        let fault = |call, error| fault(path, call, error);
        let target = match std::fs::canonicalize(path) {
            Ok(target) => target,
            Err(error) if error.kind() == io::ErrorKind::NotFound => path.to_path_buf(),
            Err(error) => return Err(fault("realpath", error)),
        };
        let known = match std::fs::metadata(&target) {
            Ok(known) if !known.is_file() => return Err(fault("rename", no_file())),
            Ok(known) => Some(known),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(fault("stat", error)),
        };
        // Before anything is written.
        let directory = directory_of(&target).map_err(|error| fault("open", error))?;
        // Nobody else reads it before it has the mode of the file that it replaces.
        let mode = if is_secret || known.is_some() {
            0o600
        } else {
            0o644
        };
        let (name, mut file) = open_beside(&target, mode).map_err(|error| fault("open", error))?;
        let beside = Self {
            path: path.to_path_buf(),
            target,
            directory,
            name: Some(name),
        };
        file.write_all(bytes)
            .map_err(|error| fault("write", error))?;
        if let Some(known) = &known {
            // Not everybody may change the owner; that is no reason not to write.
            let _ = fchown(&file, Some(known.uid()), Some(known.gid()));
            let mode = match is_secret {
                true => Permissions::from_mode(0o600),
                false => known.permissions(),
            };
            file.set_permissions(mode)
                .map_err(|error| fault("fchmod", error))?;
        }
        file.sync_all().map_err(|error| fault("fsync", error))?;
        Ok(beside)
    }

    /// Renames the temporary file.
    fn rename(&mut self) -> Result<(), SystemCallError> {
        if let Some(name) = &self.name {
            std::fs::rename(name, &self.target)
                .map_err(|error| fault(&self.path, "rename", error))?;
            self.name = None;
        }
        Ok(())
    }
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        if let Some(name) = &self.name {
            // The first error is the one to return.
            let _ = std::fs::remove_file(name);
        }
    }
}

/// A file is not read where there is less memory than so many times its size: what is made of it (the
/// entries of a map, parsed sections) would not fit.
const MEMORY_PER_BYTE: usize = 4;

/// The contents of a regular file of at most `bytes_max` bytes, or of the null device, which has
/// none. A symbolic link is followed. Anything that may block or never end (a pipe, a device, a
/// socket) is not opened.
///
/// # Errors
/// The system's error, "not a regular file", the size limit, or too little memory.
pub fn read_file(path: &Path, bytes_max: usize) -> io::Result<Vec<u8>> {
    if is_null_device(&std::fs::metadata(path)?)? {
        return Ok(Vec::new());
    }
    let mut options = OpenOptions::new();
    // Another file may be there by now; opening that must not block either.
    options
        .read(true)
        .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY);
    content_of(options.open(path)?, bytes_max)
}

/// As [`read_file`], where no part of the path is a symbolic link.
///
/// # Errors
/// As [`read_file`]; `ELOOP` for a link.
pub fn read_file_without_links(path: &Path, bytes_max: usize) -> io::Result<Vec<u8>> {
    content_of(open_without_links(path)?, bytes_max)
}

/// Opens a file or a directory to read it, without blocking; no part of the path may be a symbolic
/// link (`openat2`, Linux 5.6).
///
/// # Errors
/// The system's error; `ELOOP` for a link.
pub fn open_without_links(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let opened = openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS)?;
    Ok(opened.into())
}

/// The content of a file that was opened without blocking.
fn content_of(file: File, bytes_max: usize) -> io::Result<Vec<u8>> {
    let too_long = || {
        let text = format!("larger than {bytes_max} bytes");
        io::Error::new(io::ErrorKind::FileTooLarge, text)
    };
    let known = file.metadata()?;
    if is_null_device(&known)? {
        return Ok(Vec::new());
    }
    let room = bytes_max as u64;
    if known.len() > room {
        return Err(too_long());
    }
    let mut bytes = Vec::new();
    // With room for one byte more, for a caller that marks what it has read.
    let size = known.len().saturating_add(1);
    bytes.try_reserve_exact(usize::try_from(size).unwrap_or(usize::MAX))?;
    if !has_memory(1, bytes.capacity().saturating_mul(MEMORY_PER_BYTE)) {
        return Err(io::ErrorKind::OutOfMemory.into());
    }
    // It may grow while it is read, and some files (of `/proc`) do not report their size.
    file.take(room.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() > bytes_max {
        return Err(too_long());
    }
    Ok(bytes)
}

/// Whether it is the null device rather than a file.
///
/// # Errors
/// It is neither.
fn is_null_device(known: &Metadata) -> io::Result<bool> {
    if known.is_file() {
        return Ok(false);
    }
    let null = libc::makedev(1, 3);
    if known.file_type().is_char_device() && known.rdev() == null {
        return Ok(true);
    }
    Err(no_file())
}

fn no_file() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "not a regular file")
}

/// A new file in the same directory: a rename is atomic only there.
fn open_beside(target: &Path, mode: u32) -> io::Result<(PathBuf, File)> {
    static TURN: AtomicU64 = AtomicU64::new(0);
    let name = target.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(mode);
    let mut last = io::Error::from(io::ErrorKind::AlreadyExists);
    for _ in 0..NAMES_MAX {
        let turn = TURN.fetch_add(1, Ordering::Relaxed);
        let mut beside = std::ffi::OsString::from(".");
        beside.push(name);
        beside.push(format!(".{}.{turn}.new", std::process::id()));
        let beside = target.with_file_name(beside);
        match options.open(&beside) {
            Ok(file) => return Ok((beside, file)),
            // Left by a process with the same number that was killed while it wrote.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => last = error,
            Err(error) => return Err(error),
        }
    }
    Err(last)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn names(directory: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(directory).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    }

    #[test]
    fn no_link_is_followed_where_none_may_be() {
        let directory = tempfile::tempdir().unwrap();
        // The directory for temporary files may be a link itself.
        let directory = directory.path().canonicalize().unwrap();
        std::fs::create_dir(directory.join("real")).unwrap();
        std::fs::write(directory.join("real/file"), "content").unwrap();
        symlink("real", directory.join("link")).unwrap();
        symlink("file", directory.join("real/also")).unwrap();
        let read = |name: &str| read_file_without_links(&directory.join(name), 100);
        assert_eq!(read("real/file").unwrap(), b"content");
        for name in ["link/file", "real/also", "link/also"] {
            assert_eq!(
                read(name).unwrap_err().raw_os_error(),
                Some(libc::ELOOP),
                "{name}"
            );
            assert_eq!(read_file(&directory.join(name), 100).unwrap(), b"content");
        }
        assert!(read("real").is_err());
    }

    #[test]
    fn the_contents_are_replaced_and_mode_and_links_stay() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.map");
        replace_file(&path, b"new").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"new");
        std::fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
        let link = directory.path().join("link");
        symlink("a.map", &link).unwrap();
        replace_file(&link, b"").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"");
        assert!(link.is_symlink());
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o640);
        assert_eq!(names(directory.path()), ["a.map", "link"]);
    }

    #[test]
    fn who_has_it_open_keeps_what_they_opened() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.map");
        std::fs::write(&path, "old").unwrap();
        let open = File::open(&path).unwrap();
        replace_file(&path, b"new").unwrap();
        assert_eq!(io::read_to_string(open).unwrap(), "old");
    }

    #[test]
    fn what_is_no_file_or_has_no_directory_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        assert!(replace_file(directory.path(), b"x").is_err());
        assert!(replace_file(Path::new("/dev/full"), b"x").is_err());
        assert!(Path::new("/dev/full").exists());
        assert!(replace_file(&directory.path().join("none/a"), b"x").is_err());
        assert!(replace_file(Path::new("/"), b"x").is_err());
        assert!(names(directory.path()).is_empty());
    }

    #[test]
    fn without_permission_nothing_is_changed() {
        // Nobody, not even root, may create a file here.
        let path = Path::new("/proc/self/a.map");
        assert!(replace_file(path, b"x").is_err());
        if crate::is_root() {
            return; // Modes do not bind root.
        }
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.map");
        std::fs::write(&path, "old").unwrap();
        let read_only = Permissions::from_mode(0o500);
        std::fs::set_permissions(directory.path(), read_only).unwrap();
        assert!(replace_file(&path, b"new").is_err());
        assert_eq!(std::fs::read(&path).unwrap(), b"old");
        let usual = Permissions::from_mode(0o700);
        std::fs::set_permissions(directory.path(), usual).unwrap();
    }

    #[test]
    fn several_are_replaced_together() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir(directory.path().join("sub")).unwrap();
        let names_of = ["a.map", "sub/b.map", "c.map"];
        let files = names_of.map(|name| (directory.path().join(name), name.as_bytes()));
        std::fs::write(&files[0].0, "old").unwrap();
        replace_files(&files).unwrap();
        for (path, bytes) in &files {
            assert_eq!(std::fs::read(path).unwrap(), *bytes);
        }
        assert_eq!(names(directory.path()), ["a.map", "c.map", "sub"]);
        assert_eq!(names(&directory.path().join("sub")), ["b.map"]);
        replace_files::<&Path, &[u8]>(&[]).unwrap();
        // The later one wins.
        let twice = [(&files[0].0, "one"), (&files[0].0, "two")];
        replace_files(&twice).unwrap();
        assert_eq!(std::fs::read(&files[0].0).unwrap(), b"two");
        assert_eq!(names(directory.path()), ["a.map", "c.map", "sub"]);
    }

    #[test]
    fn one_that_cannot_be_written_leaves_all_as_they_were() {
        let directory = tempfile::tempdir().unwrap();
        let (first, third) = (directory.path().join("a"), directory.path().join("c"));
        std::fs::write(&first, "old").unwrap();
        let locked = directory.path().join("locked");
        std::fs::create_dir(&locked).unwrap();
        let mut refused = vec![
            directory.path().join("none/b"),
            PathBuf::from("/dev/full"),
            locked.clone(),
        ];
        if !crate::is_root() {
            let read_only = Permissions::from_mode(0o500);
            std::fs::set_permissions(&locked, read_only).unwrap();
            refused.push(locked.join("b"));
        }
        for second in refused {
            let files = [(&first, "1"), (&second, "2"), (&third, "3")];
            let error = replace_files(&files).unwrap_err().to_string();
            assert!(error.contains(&second.display().to_string()), "{error}");
            assert_eq!(std::fs::read(&first).unwrap(), b"old");
            assert_eq!(names(directory.path()), ["a", "locked"]);
        }
        let usual = Permissions::from_mode(0o700);
        std::fs::set_permissions(&locked, usual).unwrap();
    }

    /// A rename fails when a directory has taken the place meanwhile; this test does the steps one
    /// by one to get there.
    #[test]
    fn nothing_is_left_beside_what_cannot_be_renamed() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a");
        let mut beside = TemporaryFile::write(&path, b"new", false).unwrap();
        std::fs::create_dir(&path).unwrap();
        assert_eq!(names(directory.path()).len(), 2);
        assert!(beside.rename().is_err());
        drop(beside);
        assert_eq!(names(directory.path()), ["a"]);
    }

    #[test]
    fn secret_files_are_their_owners_alone_and_files_are_removed() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        let (key, certificate, gone) = (path("key"), path("crt"), path("gone"));
        std::fs::write(&key, "old").unwrap();
        std::fs::set_permissions(&key, Permissions::from_mode(0o644)).unwrap();
        std::fs::write(&gone, "old").unwrap();
        let change = |path, content, is_secret| FileChange {
            path,
            content,
            is_secret,
        };
        let changes = [
            change(&*gone, None, false),
            change(&*key, Some(&b"new"[..]), true),
            change(&*certificate, Some(&b"new"[..]), true),
        ];
        change_files(&changes).unwrap();
        for name in ["crt", "key"] {
            assert_eq!(std::fs::read(path(name)).unwrap(), b"new");
            let mode = std::fs::metadata(path(name)).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "{name}");
        }
        assert_eq!(names(directory.path()), ["crt", "key"]);
        // It is gone already.
        change_files(&changes[..1]).unwrap();
        // One that cannot be written leaves all as they were.
        let none = path("none/x");
        let changes = [
            change(&*key, None, false),
            change(&*none, Some(&b"new"[..]), true),
        ];
        assert!(change_files(&changes).is_err());
        assert_eq!(names(directory.path()), ["crt", "key"]);
    }

    #[test]
    fn only_files_within_their_bound_are_read() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.cfg");
        std::fs::write(&path, "12345").unwrap();
        symlink("a.cfg", directory.path().join("link")).unwrap();
        assert_eq!(read_file(&path, 5).unwrap(), b"12345");
        let link = directory.path().join("link");
        assert_eq!(read_file(&link, 5).unwrap(), b"12345");
        let error = read_file(&path, 4).unwrap_err().to_string();
        assert_eq!(error, "larger than 4 bytes");
        // Its size is not reported.
        assert!(read_file(Path::new("/proc/self/status"), 9).is_err());
        assert!(read_file(Path::new("/proc/self/status"), 1 << 20).is_ok());
        assert!(read_file(Path::new("/dev/null"), 5).unwrap().is_empty());
        for other in [Path::new("/dev/zero"), directory.path()] {
            let error = read_file(other, 5).unwrap_err().to_string();
            assert_eq!(error, "not a regular file");
        }
        let none = read_file(&directory.path().join("none"), 5).unwrap_err();
        assert_eq!(none.kind(), io::ErrorKind::NotFound);
    }

    /// A limit on the size of files makes a write fail half-way, as a full disk does.
    #[test]
    fn a_full_disk_leaves_the_file_as_it_was() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.map");
        std::fs::write(&path, "old").unwrap();
        let program = std::env::current_exe().unwrap();
        let mut shell = std::process::Command::new("sh");
        shell.args(["-c", "ulimit -f 1; trap '' XFSZ; exec \"$0\" \"$@\""]);
        shell
            .arg(program)
            .args(["--exact", "file::tests::writes_too_much", "--ignored"]);
        let status = shell.env("REPLACED", &path).output().unwrap().status;
        assert!(status.success(), "the child saw its write fail");
        assert_eq!(std::fs::read(&path).unwrap(), b"old");
        assert_eq!(names(directory.path()), ["a.map"]);
    }

    #[test]
    #[ignore = "run by the test above, with a limit on the size of files"]
    fn writes_too_much() {
        let path = std::env::var_os("REPLACED").unwrap();
        let error = replace_file(Path::new(&path), &[b'x'; 100_000]).unwrap_err();
        assert!(error.to_string().contains("write"), "{error}");
    }
}
