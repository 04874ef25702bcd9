//! The channel between a master and a worker: messages, with descriptors beside them.
//!
//! A snapshot does not travel in a message but in a [`SnapshotFile`], a file in memory whose descriptor
//! is sent. The master keeps the file of the last second and gives it on without reading it.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use ballast_net::{PassedSocket, SocketPool, memory_file, receive_with_fds, send_with_fds};
use ballast_wire::getsocks::{self, SocketRecord};
use ballast_wire::handoff::{MESSAGE_BYTES_MAX, Message};

/// Sockets in one message at most: their records fit whatever their names.
const SOCKETS_PER_MESSAGE_MAX: usize = 100;

/// Bytes of a snapshot at most: some millions of servers.
const SNAPSHOT_BYTES_MAX: u64 = 1 << 30;

/// One end of a channel. Any thread may send: messages do not mix.
#[derive(Clone, Debug)]
pub struct Channel(Arc<OwnedFd>);

/// A message that came over a channel.
#[derive(Debug)]
pub struct MessageWithFds {
    /// The message.
    pub message: Message,
    /// The descriptors that came beside it.
    pub fds: Vec<OwnedFd>,
}

impl Channel {
    /// Both ends of a new channel.
    ///
    /// # Errors
    /// The system's refusal.
    pub fn pair() -> io::Result<(Self, Self)> {
        let (here, there) = ballast_net::message_line()?;
        Ok((Self::from_fd(here), Self::from_fd(there)))
    }

    /// The end behind a descriptor.
    pub fn from_fd(fd: OwnedFd) -> Self {
        Self(Arc::new(fd))
    }

    /// Sends a message. Waits if the other end does not read; not at all if the end was made
    /// non-blocking.
    ///
    /// # Errors
    /// The other end is gone, or has no room.
    pub fn send(&self, message: &Message, fds: &[BorrowedFd<'_>]) -> io::Result<()> {
        send_with_fds(&*self.0, &message.encode(), fds).map(drop)
    }

    /// Sends a list of sockets.
    ///
    /// # Errors
    /// As [`Channel::send`].
    pub fn send_sockets(&self, sockets: &[PassedSocket]) -> io::Result<()> {
        let mut groups = sockets.chunks(SOCKETS_PER_MESSAGE_MAX).peekable();
        let mut begins = true;
        loop {
            let group = groups.next().unwrap_or_default();
            let ends = groups.peek().is_none();
            let mut records = Vec::new();
            for socket in group {
                let record = SocketRecord {
                    namespace: socket.namespace.clone(),
                    interface: socket.interface.clone(),
                };
                getsocks::write(&record, &mut records).map_err(io::Error::other)?;
            }
            let fds: Vec<_> = group.iter().map(|socket| socket.fd.as_fd()).collect();
            let message = Message::Sockets {
                begins,
                ends,
                records,
            };
            self.send(&message, &fds)?;
            if ends {
                return Ok(());
            }
            begins = false;
        }
    }

    /// Receives a message; `None` when the other end is gone. Waits, unless the end was made
    /// non-blocking.
    ///
    /// # Errors
    /// The system's refusal; `InvalidData` for what is no message.
    pub fn receive(&self) -> io::Result<Option<MessageWithFds>> {
        let mut bytes = vec![0; MESSAGE_BYTES_MAX + 1];
        let (length, fds) = receive_with_fds(&*self.0, &mut bytes)?;
        if length == 0 {
            return Ok(None);
        }
        let message = Message::decode(&bytes[..length])
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        Ok(Some(MessageWithFds { message, fds }))
    }
}

impl AsFd for Channel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// The sockets of a message, by its records. Those without a record are closed.
pub fn sockets_of(records: &[u8], fds: Vec<OwnedFd>) -> Vec<PassedSocket> {
    let mut rest = records;
    let mut sockets = Vec::new();
    for fd in fds {
        let Ok(Some((record, length))) = getsocks::read(rest) else {
            break;
        };
        rest = &rest[length..];
        sockets.push(PassedSocket {
            fd: Arc::new(fd),
            interface: record.interface,
            namespace: record.namespace,
        });
    }
    sockets
}

/// A snapshot in a file in memory.
#[derive(Debug)]
pub struct SnapshotFile(OwnedFd);

impl SnapshotFile {
    /// Writes a snapshot.
    ///
    /// # Errors
    /// The system's refusal of memory.
    pub fn write(snapshot: &[u8]) -> io::Result<Self> {
        let mut file = File::from(memory_file("ballast-snapshot")?);
        file.write_all(snapshot)?;
        Ok(Self(file.into()))
    }

    /// The file behind a descriptor.
    pub fn from_fd(fd: OwnedFd) -> Self {
        Self(fd)
    }

    /// The snapshot.
    ///
    /// # Errors
    /// The system's refusal; more than 1 GB.
    pub fn read(&self) -> io::Result<Vec<u8>> {
        let mut file = File::from(self.0.try_clone()?);
        file.seek(SeekFrom::Start(0))?;
        let mut snapshot = Vec::new();
        file.take(SNAPSHOT_BYTES_MAX + 1)
            .read_to_end(&mut snapshot)?;
        if snapshot.len() as u64 > SNAPSHOT_BYTES_MAX {
            return Err(io::Error::other("the snapshot is too long"));
        }
        Ok(snapshot)
    }
}

impl AsFd for SnapshotFile {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Channel {
    /// Receives what the master gives a worker before it starts: sockets, the last snapshot, and
    /// whether this is the first worker.
    ///
    /// # Errors
    /// The master is gone, or sent a message that does not belong here.
    pub fn receive_start(&self) -> io::Result<(SocketPool, Option<SnapshotFile>, bool)> {
        let mut sockets = SocketPool::new();
        loop {
            let Some(received) = self.receive()? else {
                return Err(io::ErrorKind::UnexpectedEof.into());
            };
            match received.message {
                Message::Sockets { records, .. } => {
                    for socket in sockets_of(&records, received.fds) {
                        if let Ok(fd) = Arc::try_unwrap(socket.fd) {
                            sockets.add(fd, socket.interface, socket.namespace);
                        }
                    }
                }
                Message::Start { first } => {
                    let file = received.fds.into_iter().next().map(SnapshotFile::from_fd);
                    return Ok((sockets, file, first));
                }
                other => return Err(io::Error::other(format!("{other:?} before a start"))),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listener(interface: &str) -> PassedSocket {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        PassedSocket {
            fd: Arc::new(listener.into()),
            interface: interface.into(),
            namespace: String::new(),
        }
    }

    #[test]
    fn a_worker_is_given_sockets_and_a_snapshot() {
        let (master, worker) = Channel::pair().unwrap();
        let sockets: Vec<_> = (0..SOCKETS_PER_MESSAGE_MAX + 3)
            .map(|_| listener(""))
            .collect();
        let file = SnapshotFile::write(b"BLST\x01").unwrap();
        let start = Message::Start { first: true };
        master.send_sockets(&sockets).unwrap();
        master.send(&start, &[file.as_fd()]).unwrap();
        let (pool, given, first) = worker.receive_start().unwrap();
        assert_eq!((pool.len(), first), (sockets.len(), true));
        let given = given.unwrap();
        // It may be read again, here or there.
        assert_eq!(given.read().unwrap(), b"BLST\x01");
        assert_eq!(file.read().unwrap(), b"BLST\x01");
    }

    #[test]
    fn an_empty_list_is_a_list() {
        let (master, worker) = Channel::pair().unwrap();
        worker.send_sockets(&[]).unwrap();
        let received = master.receive().unwrap().unwrap();
        let empty = Message::Sockets {
            begins: true,
            ends: true,
            records: Vec::new(),
        };
        assert_eq!((received.message, received.fds.len()), (empty, 0));
        drop(worker);
        assert!(master.receive().unwrap().is_none());
    }

    #[test]
    fn names_go_with_their_sockets_and_nameless_ones_are_closed() {
        let (master, worker) = Channel::pair().unwrap();
        worker
            .send_sockets(&[listener("lo"), listener("eth0")])
            .unwrap();
        let received = master.receive().unwrap().unwrap();
        let Message::Sockets { records, .. } = received.message else {
            panic!("sockets");
        };
        let sockets = sockets_of(&records, received.fds);
        let names: Vec<_> = sockets.iter().map(|socket| &*socket.interface).collect();
        assert_eq!(names, ["lo", "eth0"]);
        assert!(sockets_of(b"\0", vec![sockets[0].fd.try_clone().unwrap()]).is_empty());
    }

    #[test]
    fn nonsense_before_a_start_is_refused() {
        let (master, worker) = Channel::pair().unwrap();
        master.send(&Message::Reload, &[]).unwrap();
        assert!(worker.receive_start().is_err());
        drop(master);
        assert!(worker.receive_start().is_err());
    }
}
