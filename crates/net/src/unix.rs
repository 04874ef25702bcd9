//! Listening on a path: the socket appears under its name only when it is
//! complete (owner, mode, listening), in place of what stood there before.

use std::fs;
use std::io;
use std::os::fd::BorrowedFd;
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

/// Binds `fd` to `path` under a temporary name, calls `listen`, then renames:
/// clients see the old socket or the new one, never none.
pub(crate) fn bind_path(
    fd: BorrowedFd<'_>,
    path: &Path,
    permissions: &UnixPermissions,
    listen: impl FnOnce() -> Result<(), Error>,
) -> Result<(), Error> {
    refuse_other_files(path)?;
    let temporary = temporary_name(path);
    let _ = fs::remove_file(&temporary);
    let address = Address::Unix(temporary.clone());
    rustix::net::bind(fd, &address.to_os()?).map_err(|e| Error::new("bind", path.display(), e))?;
    let result = dress(&temporary, path, permissions)
        .and_then(|()| listen())
        .and_then(|()| {
            fs::rename(&temporary, path).map_err(|e| Error::new("rename", path.display(), e))
        });
    if result.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    result
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
