//! `-x`: the listening sockets of a process that serves now, HAProxy or Ballast.

use std::fmt;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use ballast_net::{SocketPool, receive_with_fds};
use ballast_wire::getsocks::{self, RECORD_BYTES_MAX, SOCKETS_PER_MESSAGE_MAX, SocketRecord};

/// How long the other process may be silent.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);

/// How long it may take for all of it.
const PATIENCE_IN_ALL: Duration = Duration::from_secs(30);

/// Bytes of the records of one message at most.
const MESSAGE_BYTES_MAX: usize = RECORD_BYTES_MAX * SOCKETS_PER_MESSAGE_MAX;

/// Why the sockets could not be fetched.
#[derive(Debug)]
pub enum FetchError {
    /// Nothing listens there.
    Connect(io::Error),
    /// It does not give them: it ended before it said how many there are. Most often the `stats
    /// socket` lacks `expose-fd listeners`.
    Refused,
    /// It broke off, was too slow, or sent a malformed message.
    Broken(io::Error),
}

impl fmt::Display for FetchError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connect(error) => write!(out, "nobody answers there: {error}"),
            Self::Refused => out.write_str(
                "it does not give its listening sockets; does its 'stats socket' line say \
                 'expose-fd listeners'?",
            ),
            Self::Broken(error) => write!(out, "the sockets did not come whole: {error}"),
        }
    }
}

impl std::error::Error for FetchError {}

/// Asks the process behind a command socket for its listening sockets. Waits, but not for ever.
///
/// # Errors
/// See [`FetchError`]; what came until then is closed here, and stays open there.
pub fn fetch(path: &Path) -> Result<SocketPool, FetchError> {
    let mut stream = UnixStream::connect(path).map_err(FetchError::Connect)?;
    let set = stream
        .set_read_timeout(Some(ANSWER_TIMEOUT))
        .and_then(|()| stream.set_write_timeout(Some(ANSWER_TIMEOUT)));
    set.and_then(|()| stream.write_all(getsocks::REQUEST))
        .map_err(FetchError::Broken)?;
    let mut count = [0; 4];
    match stream.read_exact(&mut count) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
            return Err(FetchError::Refused);
        }
        Err(error) => return Err(FetchError::Broken(error)),
    }
    let count = getsocks::read_count(count).map_err(|error| broken(&error))?;
    receive(&stream, count).map_err(FetchError::Broken)
}

fn receive(stream: &UnixStream, count: usize) -> io::Result<SocketPool> {
    let until = Instant::now() + PATIENCE_IN_ALL;
    let mut pool = SocketPool::new();
    let mut had = 0;
    while had < count {
        let (records, fds) = message(stream, count - had, until)?;
        let got = fds.len();
        for (record, fd) in records.into_iter().zip(fds) {
            pool.add(fd, record.interface, record.namespace);
        }
        let before = getsocks::write_count(had).map_err(io::Error::other)?;
        // The process may close its end after its last message.
        let _ = (&*stream).write_all(&before);
        had += got;
    }
    Ok(pool)
}

/// One message: as many records as descriptors.
fn message(
    stream: &UnixStream,
    wanted_max: usize,
    until: Instant,
) -> io::Result<(Vec<SocketRecord>, Vec<OwnedFd>)> {
    let mut bytes = Vec::new();
    let mut fds: Vec<OwnedFd> = Vec::new();
    let mut records = Vec::new();
    let mut piece = vec![0; 64 << 10];
    loop {
        if Instant::now() >= until {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let (length, came) = receive_with_fds(stream, &mut piece)?;
        if length == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        fds.extend(came);
        bytes.extend_from_slice(&piece[..length]);
        let mut read = 0;
        while let Some((record, length)) =
            getsocks::read(&bytes[read..]).map_err(io::Error::other)?
        {
            records.push(record);
            read += length;
        }
        bytes.drain(..read);
        if fds.is_empty() || fds.len() > wanted_max || records.len() > fds.len() {
            return Err(io::Error::other("as many records as sockets were expected"));
        }
        if records.len() == fds.len() && bytes.is_empty() {
            return Ok((records, fds));
        }
        if bytes.len() > MESSAGE_BYTES_MAX {
            return Err(io::Error::other("a record is too long"));
        }
    }
}

fn broken(error: &getsocks::GetsocksError) -> FetchError {
    FetchError::Broken(io::Error::other(error.to_string()))
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixListener;
    use std::thread;

    use ballast_net::send_with_fds;

    use super::*;

    /// Answers one request with these messages: bytes, and how many descriptors go with them.
    fn answering(messages: Vec<(Vec<u8>, usize)>) -> (tempfile::TempDir, thread::JoinHandle<()>) {
        let dir = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(dir.path().join("x")).unwrap();
        let thread = thread::spawn(move || {
            let (mut caller, _) = listener.accept().unwrap();
            let mut request = [0; getsocks::REQUEST.len()];
            caller.read_exact(&mut request).unwrap();
            assert_eq!(request, getsocks::REQUEST);
            for (bytes, count) in messages {
                let given: Vec<_> = (0..count)
                    .map(|_| std::net::TcpListener::bind("127.0.0.1:0").unwrap())
                    .collect();
                let fds: Vec<_> = given.iter().map(AsFd::as_fd).collect();
                send_with_fds(&caller, &bytes, &fds).unwrap();
                if count > 0 {
                    let mut acknowledged = [0; 4];
                    // The caller leaves after a malformed message.
                    let _ = caller.read_exact(&mut acknowledged);
                }
            }
        });
        (dir, thread)
    }

    fn records(count: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        for _ in 0..count {
            getsocks::write(&SocketRecord::default(), &mut bytes).unwrap();
        }
        bytes
    }

    fn counted(count: usize) -> (Vec<u8>, usize) {
        (getsocks::write_count(count).unwrap().to_vec(), 0)
    }

    #[test]
    fn sockets_come_in_several_messages() {
        let messages = vec![counted(5), (records(3), 3), (records(2), 2)];
        let (dir, thread) = answering(messages);
        assert_eq!(fetch(&dir.path().join("x")).unwrap().len(), 5);
        thread.join().unwrap();
    }

    #[test]
    fn a_process_without_any_gives_none() {
        let (dir, thread) = answering(vec![counted(0)]);
        assert!(fetch(&dir.path().join("x")).unwrap().is_empty());
        thread.join().unwrap();
    }

    #[test]
    fn nonsense_and_refusals_are_told_apart() {
        let nobody = fetch(Path::new("/no-such/socket")).unwrap_err();
        assert!(matches!(nobody, FetchError::Connect(_)));
        let (dir, thread) = answering(Vec::new());
        let refused = fetch(&dir.path().join("x")).unwrap_err();
        assert!(matches!(refused, FetchError::Refused));
        thread.join().unwrap();
        for messages in [
            vec![(vec![255; 4], 0)],
            vec![counted(2), (records(3), 3)],
            vec![counted(2), (records(2), 1)],
            vec![counted(2), (records(2), 0)],
            vec![counted(3), (records(2), 2)],
        ] {
            let (dir, thread) = answering(messages);
            let broken = fetch(&dir.path().join("x")).unwrap_err();
            assert!(matches!(broken, FetchError::Broken(_)), "{broken}");
            thread.join().unwrap();
        }
    }
}
