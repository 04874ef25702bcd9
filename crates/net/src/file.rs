//! A file's contents, replaced whole or not at all.
//!
//! Whoever reads the path, before or after a crash, sees the old contents or the new ones: they
//! are written beside it, brought to the disk, and given its name in one step.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, fchown};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::Error;

/// Names that are tried for the file beside.
const NAMES_MAX: usize = 16;

/// Gives the file at `path` the contents `bytes`, atomically and for good: when this returns, they
/// survive a loss of power. Mode and owner stay as they are, the owner as far as the process may
/// set it; a new file has mode 0644 less the umask. A symbolic link stays one: what it leads to
/// is replaced. Only files are: a pipe or a device is refused.
///
/// It blocks for as long as the disk takes.
///
/// # Errors
/// What the system said. The file is as it was, and nothing is left beside it; but when the
/// directory alone could not be brought to the disk, the new contents may be there already.
pub fn replace_file(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let fault = |call, error: io::Error| Error::new(call, path.display(), error);
    let target = match std::fs::canonicalize(path) {
        Ok(target) => target,
        Err(error) if error.kind() == io::ErrorKind::NotFound => path.to_path_buf(),
        Err(error) => return Err(fault("realpath", error)),
    };
    let known = match std::fs::metadata(&target) {
        Ok(known) if !known.is_file() => {
            let error = io::Error::new(io::ErrorKind::InvalidInput, "not a regular file");
            return Err(fault("rename", error));
        }
        Ok(known) => Some(known),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(fault("stat", error)),
    };
    let directory = match target.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    // Before anything is written: who cannot open it cannot bring it to the disk.
    let opened = File::open(directory).map_err(|error| fault("open", error))?;
    let (beside, mut file) = open_beside(&target).map_err(|error| fault("open", error))?;
    let written = (|| {
        file.write_all(bytes)
            .map_err(|error| fault("write", error))?;
        if let Some(known) = &known {
            // Not allowed to all, and no reason not to write.
            let _ = fchown(&file, Some(known.uid()), Some(known.gid()));
            file.set_permissions(known.permissions())
                .map_err(|error| fault("fchmod", error))?;
        }
        file.sync_all().map_err(|error| fault("fsync", error))?;
        std::fs::rename(&beside, &target).map_err(|error| fault("rename", error))
    })();
    if written.is_err() {
        // The first error is the one to tell.
        let _ = std::fs::remove_file(&beside);
        return written;
    }
    opened.sync_all().map_err(|error| fault("fsync", error))
}

/// A new file in the same directory: only there a rename is one step.
fn open_beside(target: &Path) -> io::Result<(PathBuf, File)> {
    static TURN: AtomicU64 = AtomicU64::new(0);
    let name = target.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(0o644);
    let mut last = io::Error::from(io::ErrorKind::AlreadyExists);
    for _ in 0..NAMES_MAX {
        let turn = TURN.fetch_add(1, Ordering::Relaxed);
        let mut beside = std::ffi::OsString::from(".");
        beside.push(name);
        beside.push(format!(".{}.{turn}.new", std::process::id()));
        let beside = target.with_file_name(beside);
        match options.open(&beside) {
            Ok(file) => return Ok((beside, file)),
            // Left by a process of the same number that was killed while it wrote.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => last = error,
            Err(error) => return Err(error),
        }
    }
    Err(last)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    fn names(directory: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(directory).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    }

    #[test]
    fn the_contents_are_replaced_and_mode_and_links_stay() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.map");
        replace_file(&path, b"new").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"new");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
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
        // Nobody may make a file here, whoever they are.
        let path = Path::new("/proc/self/a.map");
        assert!(replace_file(path, b"x").is_err());
        if crate::is_root() {
            return; // Modes do not bind root.
        }
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.map");
        std::fs::write(&path, "old").unwrap();
        let read_only = std::fs::Permissions::from_mode(0o500);
        std::fs::set_permissions(directory.path(), read_only).unwrap();
        assert!(replace_file(&path, b"new").is_err());
        assert_eq!(std::fs::read(&path).unwrap(), b"old");
        let usual = std::fs::Permissions::from_mode(0o700);
        std::fs::set_permissions(directory.path(), usual).unwrap();
    }

    /// A disk is full for a process when it may write no more: the limit on the size of files
    /// fails a write half-way, as a full disk does.
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
