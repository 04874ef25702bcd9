//! The channel between a master and a worker: messages, with descriptors beside them.
//!
//! A snapshot does not travel in a message but in a [`MemoryFile`], whose descriptor is sent, and so do
//! keys. The master keeps the files of the last second and gives them on without reading them.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use ballast_net::{
    PassedSocket, SocketPool, is_sealed, read_memory_file, receive_with_fds, sealed_file,
    sealed_file_of, send_with_fds,
};
use ballast_wire::getsocks::{self, SocketRecord};
use ballast_wire::handoff::{MESSAGE_BYTES_MAX, Message};

use crate::table_channel::TableChannel;

/// Sockets in one message at most: their records fit whatever their names.
const SOCKETS_PER_MESSAGE_MAX: usize = 100;

/// Bytes of a file in memory at most: some millions of servers.
const FILE_BYTES_MAX: u64 = 1 << 30;

/// The name of the file with secrets, as `/proc` shows it.
const SECRETS: &str = "ballast-secrets";

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

/// A snapshot, or secrets, in a sealed file in memory.
#[derive(Debug)]
pub struct MemoryFile(OwnedFd);

impl MemoryFile {
    /// Writes a snapshot.
    ///
    /// # Errors
    /// The system's refusal of memory.
    pub fn write(snapshot: &[u8]) -> io::Result<Self> {
        sealed_file("ballast-snapshot", snapshot).map(Self)
    }

    /// Writes what nobody may see.
    ///
    /// # Errors
    /// The system's refusal of memory.
    pub fn write_secrets(secrets: &[u8]) -> io::Result<Self> {
        sealed_file(SECRETS, secrets).map(Self)
    }

    /// The file with secrets that another process has open; `None` where there is none, and where
    /// this process may not look.
    pub fn secrets_of(pid: i32) -> Option<Self> {
        sealed_file_of(pid, SECRETS).ok().flatten().map(Self)
    }

    /// Whether nobody can change it.
    pub fn is_sealed(&self) -> bool {
        is_sealed(&self.0)
    }

    /// The file behind a descriptor.
    pub fn from_fd(fd: OwnedFd) -> Self {
        Self(fd)
    }

    /// The content.
    ///
    /// # Errors
    /// The system's refusal; more than 1 GB.
    pub fn read(&self) -> io::Result<Vec<u8>> {
        read_memory_file(&self.0, FILE_BYTES_MAX)
    }
}

impl AsFd for MemoryFile {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// What the master gives a worker before it starts.
#[derive(Debug)]
pub struct WorkerStart {
    /// The listening sockets.
    pub sockets: SocketPool,
    /// The last snapshot of the former worker.
    pub snapshot: Option<MemoryFile>,
    /// Its secrets.
    pub secrets: Option<MemoryFile>,
    /// The channel over which it gives its stick tables.
    pub tables: Option<TableChannel>,
    /// Whether this is the first worker.
    pub first: bool,
}

impl Channel {
    /// Receives what the master gives a worker before it starts.
    ///
    /// # Errors
    /// The master is gone, or sent a message that does not belong here.
    pub fn receive_start(&self) -> io::Result<WorkerStart> {
        let mut sockets = SocketPool::new();
        let (mut secrets, mut tables) = (None, None);
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
                Message::Secrets => {
                    secrets = received.fds.into_iter().next().map(MemoryFile::from_fd);
                }
                Message::TableChannel => {
                    tables = received.fds.into_iter().next().map(TableChannel::from_fd);
                }
                Message::Start { first } => {
                    return Ok(WorkerStart {
                        sockets,
                        snapshot: received.fds.into_iter().next().map(MemoryFile::from_fd),
                        secrets,
                        tables,
                        first,
                    });
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
        let file = MemoryFile::write(b"BLST\x01").unwrap();
        let secrets = MemoryFile::write_secrets(b"key").unwrap();
        let start = Message::Start { first: true };
        master.send_sockets(&sockets).unwrap();
        master.send(&Message::Secrets, &[secrets.as_fd()]).unwrap();
        master.send(&start, &[file.as_fd()]).unwrap();
        let given = worker.receive_start().unwrap();
        assert_eq!((given.sockets.len(), given.first), (sockets.len(), true));
        let secrets = given.secrets.unwrap();
        assert_eq!(secrets.read().unwrap(), b"key");
        assert!(secrets.is_sealed());
        let given = given.snapshot.unwrap();
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
