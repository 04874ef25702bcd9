//! Files in memory that nobody can change: how a process gives the next one what must not touch a
//! disk.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, memfd_create};
use rustix::process::{PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};

use crate::SystemCallError;
use crate::process::one_process;

/// The content of the file never changes.
const ALL_SEALS: SealFlags = SealFlags::SEAL
    .union(SealFlags::SHRINK)
    .union(SealFlags::GROW)
    .union(SealFlags::WRITE);

/// A file in memory with this content, which nobody can change. It is gone with its last descriptor,
/// and closed on exec. `/proc` shows its name.
///
/// # Errors
/// The system's error.
pub fn sealed_file(name: &str, content: &[u8]) -> io::Result<OwnedFd> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let mut file = File::from(memfd_create(name, flags)?);
    file.write_all(content)?;
    fcntl_add_seals(&file, ALL_SEALS)?;
    Ok(file.into())
}

/// Whether nobody can change the content of a file.
pub fn is_sealed(fd: impl AsFd) -> bool {
    fcntl_get_seals(fd).is_ok_and(|seals| seals.contains(ALL_SEALS))
}

/// The content of a file in memory, from its beginning. Whoever else reads it does not notice.
///
/// # Errors
/// The system's error; the file has more than `bytes_max` bytes.
pub fn read_memory_file(fd: impl AsFd, bytes_max: u64) -> io::Result<Vec<u8>> {
    let file = File::from(fd.as_fd().try_clone_to_owned()?);
    let length = file.metadata()?.len();
    if length > bytes_max {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    let mut content = vec![0; usize::try_from(length).map_err(io::Error::other)?];
    file.read_exact_at(&mut content, 0)?;
    Ok(content)
}

/// The sealed file of that name which another process has open; `None` when it has none. Of several
/// it is the one that was opened last.
///
/// # Errors
/// `ESRCH` if there is no such process; `EPERM` or `EACCES` if this process may not inspect it.
pub fn sealed_file_of(pid: i32, name: &str) -> Result<Option<OwnedFd>, SystemCallError> {
    let process = pidfd_open(one_process(pid)?, PidfdFlags::empty())
        .map_err(|error| SystemCallError::new("pidfd_open", pid, error))?;
    let directory = format!("/proc/{pid}/fd");
    let entries = fs::read_dir(&directory);
    let entries = entries.map_err(|error| SystemCallError::new("open", &directory, error))?;
    let link = format!("/memfd:{name} (deleted)");
    let mut numbers: Vec<i32> = Vec::new();
    for entry in entries.flatten() {
        let is_it = fs::read_link(entry.path()).is_ok_and(|to| to.as_os_str() == link.as_str());
        let number: Option<i32> = entry.file_name().to_str().and_then(|one| one.parse().ok());
        numbers.extend(number.filter(|_| is_it));
    }
    // A descriptor may be closed meanwhile.
    let mut found = numbers.into_iter().filter_map(|number| {
        let fd = pidfd_getfd(&process, number, PidfdGetfdFlags::empty()).ok()?;
        is_sealed(&fd).then_some(fd)
    });
    Ok(found.next_back())
}

/// A copy of a descriptor that another process has open, by its number there.
///
/// # Errors
/// See [`sealed_file_of`]; `EBADF` if it has no such descriptor.
pub fn foreign_fd(pid: i32, number: i32) -> Result<OwnedFd, SystemCallError> {
    let process = pidfd_open(one_process(pid)?, PidfdFlags::empty())
        .map_err(|error| SystemCallError::new("pidfd_open", pid, error))?;
    pidfd_getfd(&process, number, PidfdGetfdFlags::empty())
        .map_err(|error| SystemCallError::new("pidfd_getfd", pid, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_changes_a_sealed_file() {
        let fd = sealed_file("a-test", b"secret").unwrap();
        assert!(is_sealed(&fd));
        let file = File::from(fd.try_clone().unwrap());
        assert!(file.write_at(b"x", 0).is_err());
        assert!(file.set_len(1).is_err() && file.set_len(100).is_err());
        assert!(fcntl_add_seals(&fd, SealFlags::empty()).is_err());
        // It can be read again and again, by anybody who has it.
        for _ in 0..2 {
            assert_eq!(read_memory_file(&fd, 6).unwrap(), b"secret");
        }
        assert!(read_memory_file(&fd, 5).is_err());
        let other = tempfile::tempfile().unwrap();
        assert!(!is_sealed(&other));
    }

    #[test]
    fn the_file_of_another_process_is_found_by_its_name() {
        let own = crate::process_id();
        let name = "a-test-of-finding";
        assert!(sealed_file_of(own, name).unwrap().is_none());
        let _fd = sealed_file(name, b"it").unwrap();
        let _other = sealed_file("a-test-of-finding-others", b"not it").unwrap();
        let found = sealed_file_of(own, name).unwrap().unwrap();
        assert_eq!(read_memory_file(found, 9).unwrap(), b"it");
        assert!(sealed_file_of(i32::MAX, name).is_err());
    }
}
