//! Listening on a path: the socket appears at its path only when it is complete (owner, mode,
//! listening), in place of the file that was there before.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::{Address, SystemCallError};

/// Owner and mode of a socket file (`user`, `group`, `mode` of `bind`, `unix-bind`). `None` leaves
/// the system's default.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct UnixPermissions {
    /// Owner.
    pub uid: Option<u32>,
    /// Group.
    pub gid: Option<u32>,
    /// Permission bits, as `0o660`.
    pub mode: Option<u32>,
}

/// A socket that is complete under a temporary path and takes its real path with
/// [`UnpublishedSocket::publish`]. If it is dropped before, the file at the real path stays.
#[derive(Debug)]
pub struct UnpublishedSocket {
    temporary: PathBuf,
    path: PathBuf,
}

impl UnpublishedSocket {
    /// Makes the socket visible to clients: at any moment they find either the previous socket or
    /// this one.
    ///
    /// # Errors
    /// The system's error from the rename: the file at the path is unchanged.
    pub fn publish(self) -> Result<(), SystemCallError> {
        fs::rename(&self.temporary, &self.path)
            .map_err(|e| SystemCallError::new("rename", self.path.display(), e))
        // The temporary path does not exist any more, so dropping has nothing to remove.
    }
}

impl Drop for UnpublishedSocket {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.temporary);
    }
}

/// Binds `fd` to a temporary path beside `path` and calls `listen`.
pub(crate) fn bind_beside(
    fd: BorrowedFd<'_>,
    path: &Path,
    permissions: &UnixPermissions,
    listen: impl FnOnce() -> Result<(), SystemCallError>,
) -> Result<UnpublishedSocket, SystemCallError> {
    refuse_other_files(path)?;
    let temporary = temporary_name(path);
    let _ = fs::remove_file(&temporary);
    let address = Address::Unix(temporary.clone());
    rustix::net::bind(fd, &address.to_os()?)
        .map_err(|e| SystemCallError::new("bind", path.display(), e))?;
    let unpublished = UnpublishedSocket {
        temporary,
        path: path.to_owned(),
    };
    set_permissions(&unpublished.temporary, path, permissions)?;
    listen()?;
    Ok(unpublished)
}

/// A regular file at the path is somebody's data and not an old socket.
fn refuse_other_files(path: &Path) -> Result<(), SystemCallError> {
    match fs::symlink_metadata(path) {
        Ok(found) if !found.file_type().is_socket() && !found.file_type().is_symlink() => {
            let source = io::Error::from_raw_os_error(libc::ENOTSOCK);
            Err(SystemCallError::new("bind", path.display(), source))
        }
        _ => Ok(()),
    }
}

fn temporary_name(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{}.tmp", std::process::id()));
    PathBuf::from(name)
}

/// The final path, from the temporary one: `path.PID.tmp` is the name that HAProxy and we give to a
/// socket until it is complete.
pub(crate) fn final_path(path: &Path) -> PathBuf {
    let bytes = path.as_os_str().as_bytes();
    let lasting = bytes.strip_suffix(b".tmp").and_then(|rest| {
        let dot = rest.iter().rposition(|&byte| byte == b'.')?;
        let number = &rest[dot + 1..];
        (!number.is_empty() && number.iter().all(u8::is_ascii_digit)).then_some(&rest[..dot])
    });
    lasting.map_or_else(|| path.to_owned(), |name| OsStr::from_bytes(name).into())
}

/// Whether there is a socket at that path.
pub(crate) fn is_socket(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| found.file_type().is_socket())
}

fn set_permissions(
    temporary: &Path,
    path: &Path,
    permissions: &UnixPermissions,
) -> Result<(), SystemCallError> {
    if permissions.uid.is_some() || permissions.gid.is_some() {
        std::os::unix::fs::chown(temporary, permissions.uid, permissions.gid)
            .map_err(|e| SystemCallError::new("chown", path.display(), e))?;
    }
    if let Some(mode) = permissions.mode {
        fs::set_permissions(temporary, fs::Permissions::from_mode(mode))
            .map_err(|e| SystemCallError::new("chmod", path.display(), e))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_mark_of_a_name_in_the_making_is_taken_away() {
        let name = |path: &str| final_path(Path::new(path)).display().to_string();
        assert_eq!(name("/run/a.sock.13102.tmp"), "/run/a.sock");
        assert_eq!(name("/run/a.sock"), "/run/a.sock");
        assert_eq!(name("/run/a.x1.tmp"), "/run/a.x1.tmp");
        assert_eq!(name("/run/a..tmp"), "/run/a..tmp");
    }
}
