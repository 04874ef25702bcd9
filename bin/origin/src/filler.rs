//! Long bodies that this program does not copy: the kernel sends the pages of a file in memory.

use std::fs::File;
use std::io::{self, Write as _};

use rustix::fs::{MemfdFlags, memfd_create, sendfile};
use rustix::net::{SendFlags, send};
use tokio::io::Interest;
use tokio::net::TcpStream;

/// The length of the file; longer bodies are sent from it again and again.
const FILE_BYTES: usize = 1 << 20;
/// Shorter bodies are copied: two system calls would cost more than that.
pub(crate) const BODY_BYTES_MIN: u64 = 64 << 10;

/// A file that has one letter, repeated.
#[derive(Debug)]
pub(crate) struct Filler(File);

impl Filler {
    /// Makes the file, which has no name and is gone with the process.
    ///
    /// # Errors
    ///
    /// Those of `memfd_create(2)`, and a lack of memory.
    pub(crate) fn new(letter: u8) -> io::Result<Self> {
        let mut file = File::from(memfd_create("filler", MemfdFlags::CLOEXEC)?);
        file.write_all(&vec![letter; FILE_BYTES])?;
        Ok(Self(file))
    }

    /// Sends the head, and so many bytes of body.
    ///
    /// # Errors
    ///
    /// Those of the connection.
    pub(crate) async fn send(&self, socket: &TcpStream, head: &[u8], body: u64) -> io::Result<()> {
        let mut head = head;
        while !head.is_empty() {
            // The head leaves with the beginning of the body.
            let sent = written(socket, || Ok(send(socket, head, SendFlags::MORE)?)).await?;
            head = &head[sent..];
        }
        let mut left = body;
        while left > 0 {
            let length = usize::try_from(left).map_or(FILE_BYTES, |left| left.min(FILE_BYTES));
            let sent = written(socket, || {
                Ok(sendfile(socket, &self.0, Some(&mut 0), length)?)
            });
            left -= sent.await? as u64;
        }
        Ok(())
    }
}

/// Writes as soon as the socket takes something; returns how much it took.
async fn written(
    socket: &TcpStream,
    mut write: impl FnMut() -> io::Result<usize>,
) -> io::Result<usize> {
    loop {
        match socket.try_io(Interest::WRITABLE, &mut write) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => socket.writable().await?,
            other => return other,
        }
    }
}
