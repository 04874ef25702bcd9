//! Other processes, as the kernel shows them: their children, and the sockets they listen on
//! (`-sf`, `-st`).

use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use rustix::net::sockopt;
use rustix::process::{PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open, test_kill_process};

use crate::process::one_process;
use crate::{Address, SocketPool, SystemCallError};

/// Whether this process may send signals to that process.
///
/// # Errors
/// `ESRCH` if there is no such process, `EPERM` if this process may not.
pub fn may_signal(pid: i32) -> Result<(), SystemCallError> {
    test_kill_process(one_process(pid)?).map_err(|e| SystemCallError::new("kill", pid, e))
}

/// The process number and user of the peer of a unix socket, at the time it connected or made the
/// pair. `None` for other sockets, and for peers that are not visible (another namespace).
pub fn unix_peer(fd: impl AsFd) -> Option<(i32, u32)> {
    let fd = fd.as_fd();
    if matches!(Address::local_of(fd), Ok(Address::Ip(_)) | Err(_)) {
        return None;
    }
    let mut record = [0; size_of::<libc::ucred>()];
    option_of(fd, libc::SO_PEERCRED, &mut record)?;
    let number = |at: usize| record[at..at + 4].try_into().ok();
    let pid = number(std::mem::offset_of!(libc::ucred, pid)).map(i32::from_ne_bytes)?;
    let uid = number(std::mem::offset_of!(libc::ucred, uid)).map(u32::from_ne_bytes)?;
    (pid > 0).then_some((pid, uid))
}

/// Whether a process exists and runs. A zombie does not run.
pub fn process_lives(pid: i32) -> bool {
    living_parent(pid).is_some()
}

/// A process and all its living descendants, itself first. Empty if there is none; a zombie does
/// not count.
pub fn process_tree(pid: i32) -> Vec<i32> {
    let parents: Vec<(i32, i32)> = fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter_map(|one| Some((one, living_parent(one)?)))
        .collect();
    let mut tree: Vec<i32> = parents
        .iter()
        .filter(|&&(one, _)| one == pid)
        .map(|&(one, _)| one)
        .collect();
    let mut next = 0;
    while let Some(&parent) = tree.get(next) {
        let children = parents
            .iter()
            .filter(|&&(one, of)| of == parent && one != pid);
        tree.extend(children.map(|&(one, _)| one));
        next += 1;
    }
    tree
}

/// Whether a process was stopped by a signal, or by who traces it.
pub fn is_stopped(pid: i32) -> bool {
    state_and_parent(pid).is_some_and(|(state, _)| matches!(&*state, "T" | "t"))
}

/// The parent of a running process.
fn living_parent(pid: i32) -> Option<i32> {
    let (state, parent) = state_and_parent(pid)?;
    (!matches!(&*state, "Z" | "X")).then_some(parent)
}

/// The letter of a process's state, and its parent (proc_pid_stat(5)).
fn state_and_parent(pid: i32) -> Option<(String, i32)> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // They stand behind the name, which may contain anything.
    let (_, rest) = stat.rsplit_once(") ")?;
    let mut words = rest.split(' ');
    let state = words.next()?.to_owned();
    Some((state, words.next()?.parse().ok()?))
}

/// A copy of a stream socket that another process listens on.
#[derive(Debug)]
pub struct ForeignListener {
    fd: OwnedFd,
    /// The descriptor in the other process.
    path: PathBuf,
    /// The link target of that descriptor, which identifies the socket.
    link: PathBuf,
}

impl ForeignListener {
    /// The address it listens on.
    ///
    /// # Errors
    /// The system's error.
    pub fn address(&self) -> io::Result<Address> {
        Address::local_of(&self.fd)
    }

    /// Whether the other process still has it open.
    pub fn is_held(&self) -> bool {
        fs::read_link(&self.path).is_ok_and(|link| link == self.link)
    }

    /// Whether both are the same socket, shared by two processes.
    pub fn is_same(&self, other: &Self) -> bool {
        self.link == other.link
    }
}

/// The sockets that a process listens on.
///
/// # Errors
/// `ESRCH` if there is no such process; `EPERM` or `EACCES` if this process may not inspect it;
/// root with `CAP_SYS_PTRACE` may.
pub fn listening_sockets_of(pid: i32) -> Result<Vec<ForeignListener>, SystemCallError> {
    let process = pidfd_open(one_process(pid)?, PidfdFlags::empty())
        .map_err(|e| SystemCallError::new("pidfd_open", pid, e))?;
    let directory = format!("/proc/{pid}/fd");
    let refused = |e: io::Error| SystemCallError::new("open", &directory, e);
    let mut found = Vec::new();
    for entry in fs::read_dir(&directory).map_err(refused)?.flatten() {
        let path = entry.path();
        let number = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok());
        let link = match fs::read_link(&path) {
            Ok(link) => link,
            Err(e) if e.kind() == io::ErrorKind::PermissionDenied => return Err(refused(e)),
            // Closed in the meantime.
            Err(_) => continue,
        };
        let Some(number) = number else { continue };
        if !is_socket(&link) {
            continue;
        }
        let fd = match pidfd_getfd(&process, number, PidfdGetfdFlags::empty()) {
            Ok(fd) => fd,
            // Closed in the meantime.
            Err(Errno::BADF) => continue,
            Err(e) => return Err(SystemCallError::new("pidfd_getfd", pid, e)),
        };
        if sockopt::socket_acceptconn(&fd).unwrap_or(false) && is_of_our_network(fd.as_fd()) {
            found.push(ForeignListener { fd, path, link });
        }
    }
    Ok(found)
}

/// The sockets that the processes listen on, as an offer to the binds of this process
/// ([`crate::offer_sockets`]). A socket that several of them have is included once.
///
/// # Errors
/// See [`listening_sockets_of`].
pub fn sockets_of(pids: &[i32]) -> Result<SocketPool, SystemCallError> {
    let mut found: Vec<ForeignListener> = Vec::new();
    for &pid in pids {
        for listener in listening_sockets_of(pid)? {
            if !found.iter().any(|known| known.is_same(&listener)) {
                found.push(listener);
            }
        }
    }
    let mut pool = SocketPool::new();
    for listener in found {
        let interface = interface_of(listener.fd.as_fd());
        pool.add(listener.fd, interface, String::new());
    }
    Ok(pool)
}

fn is_socket(link: &Path) -> bool {
    link.to_str()
        .is_some_and(|link| link.starts_with("socket:"))
}

/// A bind finds a socket by its address, which does not include the network namespace.
fn is_of_our_network(fd: BorrowedFd<'_>) -> bool {
    let any = rustix::net::socket(
        rustix::net::AddressFamily::UNIX,
        rustix::net::SocketType::STREAM,
        None,
    );
    let own = any.ok().and_then(|own| network_of(own.as_fd()));
    own == network_of(fd)
}

/// The number of the network namespace of a socket; `None` before Linux 5.14.
fn network_of(fd: BorrowedFd<'_>) -> Option<u64> {
    let mut number = [0; 8];
    let length = option_of(fd, libc::SO_NETNS_COOKIE, &mut number)?;
    (length == number.len()).then(|| u64::from_ne_bytes(number))
}

/// The interface that a socket is bound to; empty for none.
fn interface_of(fd: BorrowedFd<'_>) -> String {
    let mut name = [0; libc::IFNAMSIZ];
    let length = option_of(fd, libc::SO_BINDTODEVICE, &mut name).unwrap_or(0);
    let name = name[..length].split(|&byte| byte == 0).next();
    String::from_utf8_lossy(name.unwrap_or_default()).into_owned()
}

#[expect(unsafe_code, reason = "getsockopt fills a buffer")]
fn option_of(fd: BorrowedFd<'_>, name: i32, value: &mut [u8]) -> Option<usize> {
    let mut length = libc::socklen_t::try_from(value.len()).expect("option values are short");
    // SAFETY: the kernel writes at most `length` bytes into `value`, which is that long and ours;
    // the descriptor is borrowed and so is open.
    let answer = unsafe {
        libc::getsockopt(
            fd.as_raw_fd(),
            libc::SOL_SOCKET,
            name,
            value.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    (answer == 0).then_some(length as usize)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::os::fd::AsRawFd;
    use std::process::{Command, Stdio};

    use super::*;

    fn own_pid() -> i32 {
        crate::process_id()
    }

    #[test]
    fn a_child_is_of_the_tree_until_it_ends() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let pid = i32::try_from(child.id()).unwrap();
        let tree = process_tree(own_pid());
        assert_eq!(tree[0], own_pid());
        assert!(tree.contains(&pid));
        assert_eq!(process_tree(pid), [pid]);
        assert!(process_lives(pid));
        assert!(may_signal(pid).is_ok());
        assert!(!is_stopped(pid));
        let mut stop = Command::new("kill");
        let stopped = stop.args(["-STOP", &pid.to_string()]).status();
        assert!(stopped.unwrap().success());
        // The signal is there at once, and acted on when the process runs next.
        while !is_stopped(pid) {
            std::thread::yield_now();
        }
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!is_stopped(pid));
        assert!(process_tree(pid).is_empty() && !process_lives(pid));
        assert_eq!(may_signal(pid).unwrap_err().os_code(), libc::ESRCH);
        assert_eq!(may_signal(-1).unwrap_err().os_code(), libc::EINVAL);
    }

    #[test]
    fn what_is_listened_on_is_found_once_and_seen_to_go() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = Address::Ip(listener.local_addr().unwrap());
        let connected = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let second = listener.try_clone().unwrap();
        let found = listening_sockets_of(own_pid()).unwrap();
        // This process inspects itself here, and may find the copies that it makes.
        let own = [listener.as_raw_fd(), second.as_raw_fd()].map(|fd| fd.to_string());
        let mine = |one: &&ForeignListener| own.iter().any(|fd| one.path.ends_with(fd));
        let mine: Vec<_> = found.iter().filter(mine).collect();
        assert!(
            mine.iter()
                .all(|one| one.address().is_ok_and(|at| at == address))
        );
        assert_eq!(mine.len(), 2);
        assert!(mine[0].is_same(mine[1]) && mine[0].is_held() && mine[1].is_held());
        drop((listener, second));
        assert!(!mine[0].is_held() && !mine[1].is_held());
        drop(connected);
    }

    #[test]
    fn a_unix_peer_is_known_and_no_other() {
        let (here, _there) = std::os::unix::net::UnixStream::pair().unwrap();
        let user = rustix::process::geteuid().as_raw();
        assert_eq!(unix_peer(&here), Some((own_pid(), user)));
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let peer = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        assert_eq!(unix_peer(&peer), None);
    }

    #[test]
    fn a_process_that_is_not_there_has_none() {
        for pid in [-1, 0, i32::MAX] {
            assert!(listening_sockets_of(pid).is_err());
        }
    }
}
