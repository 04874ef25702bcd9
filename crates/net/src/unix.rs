//! Listening on a path: the socket appears under its name only when it is
//! complete (owner, mode, listening), in place of what stood there before.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::{Address, Error};

/// Who may reach a socket in the file system (`user`, `group`, `mode` of
/// `bind`, `unix-bind`). `None` leaves what the system gives.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct UnixPermissions {
    /// Owner.
    pub uid: Option<u32>,
    /// Group.
    pub gid: Option<u32>,
    /// Permission bits, as `0o660`.
    pub mode: Option<u32>,
}

/// A socket that is complete under a temporary name and takes the place of its path with
/// [`Unpublished::publish`]. Dropped before, it leaves the path as it is.
#[derive(Debug)]
pub struct Unpublished {
    temporary: PathBuf,
    path: PathBuf,
}

impl Unpublished {
    /// Lets clients find the socket: they see the one that was there before or this one, never
    /// none.
    ///
    /// # Errors
    /// The system's refusal to rename: the path is as it was.
    pub fn publish(self) -> Result<(), Error> {
        fs::rename(&self.temporary, &self.path)
            .map_err(|e| Error::new("rename", self.path.display(), e))
        // What is dropped now has no file under its temporary name any more.
    }
}

impl Drop for Unpublished {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.temporary);
    }
}

/// Binds `fd` to a temporary name beside `path` and calls `listen`.
pub(crate) fn bind_beside(
    fd: BorrowedFd<'_>,
    path: &Path,
    permissions: &UnixPermissions,
    listen: impl FnOnce() -> Result<(), Error>,
) -> Result<Unpublished, Error> {
    refuse_other_files(path)?;
    let temporary = temporary_name(path);
    let _ = fs::remove_file(&temporary);
    let address = Address::Unix(temporary.clone());
    rustix::net::bind(fd, &address.to_os()?).map_err(|e| Error::new("bind", path.display(), e))?;
    let unpublished = Unpublished {
        temporary,
        path: path.to_owned(),
    };
    dress(&unpublished.temporary, path, permissions)?;
    listen()?;
    Ok(unpublished)
}

/// A regular file under that name is somebody's data, not an old socket.
fn refuse_other_files(path: &Path) -> Result<(), Error> {
    match fs::symlink_metadata(path) {
        Ok(found) if !found.file_type().is_socket() && !found.file_type().is_symlink() => {
            let source = io::Error::from_raw_os_error(libc::ENOTSOCK);
            Err(Error::new("bind", path.display(), source))
        }
        _ => Ok(()),
    }
}

fn temporary_name(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{}.tmp", std::process::id()));
    PathBuf::from(name)
}

/// The name a socket has for good, of the one it was bound under: `path.PID.tmp` is how we and
/// HAProxy name a socket that is being made.
pub(crate) fn lasting_name(path: &Path) -> PathBuf {
    let bytes = path.as_os_str().as_bytes();
    let lasting = bytes.strip_suffix(b".tmp").and_then(|rest| {
        let dot = rest.iter().rposition(|&byte| byte == b'.')?;
        let number = &rest[dot + 1..];
        (!number.is_empty() && number.iter().all(u8::is_ascii_digit)).then_some(&rest[..dot])
    });
    lasting.map_or_else(|| path.to_owned(), |name| OsStr::from_bytes(name).into())
}

/// Whether there is a socket of that name.
pub(crate) fn is_socket(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| found.file_type().is_socket())
}

fn dress(temporary: &Path, path: &Path, permissions: &UnixPermissions) -> Result<(), Error> {
    if permissions.uid.is_some() || permissions.gid.is_some() {
        std::os::unix::fs::chown(temporary, permissions.uid, permissions.gid)
            .map_err(|e| Error::new("chown", path.display(), e))?;
    }
    if let Some(mode) = permissions.mode {
        fs::set_permissions(temporary, fs::Permissions::from_mode(mode))
            .map_err(|e| Error::new("chmod", path.display(), e))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_mark_of_a_name_in_the_making_is_taken_away() {
        let name = |path: &str| lasting_name(Path::new(path)).display().to_string();
        assert_eq!(name("/run/a.sock.13102.tmp"), "/run/a.sock");
        assert_eq!(name("/run/a.sock"), "/run/a.sock");
        assert_eq!(name("/run/a.x1.tmp"), "/run/a.x1.tmp");
        assert_eq!(name("/run/a..tmp"), "/run/a..tmp");
    }
}
