//! `_getsocks`: a process that starts is given the listening sockets of this one.
//!
//! The answer is no text, so it stands beside the catalogue: the session hands its connection over
//! and ends. HAProxy gives them to any level of a `stats socket` with `expose-fd listeners`, and
//! closes the connection of whoever asks elsewhere; so does this.

use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use ballast_net::{PassedSocket, send_with_fds};
use ballast_wire::getsocks::{self, SOCKETS_PER_MESSAGE_MAX};
use ballast_worker::{Stream, sleep, timeout};

/// How long the other process may take for each step.
const PATIENCE: Duration = Duration::from_secs(1);

/// Between two tries to send where there should be room.
const LOOK_AGAIN: Duration = Duration::from_millis(1);

/// The word that asks for them.
pub(crate) const REQUEST: &str = "_getsocks";

/// Sends the sockets.
///
/// # Errors
/// The other process left, or was too slow; or a name is too long to be told.
pub(crate) async fn give(stream: &Stream, sockets: &[PassedSocket]) -> io::Result<()> {
    let count = getsocks::write_count(sockets.len()).map_err(io::Error::other)?;
    within(stream.write_all(&count)).await?;
    let mut groups = sockets.chunks(SOCKETS_PER_MESSAGE_MAX).peekable();
    while let Some(group) = groups.next() {
        send(stream, group).await?;
        if groups.peek().is_some() {
            acknowledged(stream).await?;
        }
    }
    Ok(())
}

async fn send(stream: &Stream, group: &[PassedSocket]) -> io::Result<()> {
    let mut records = Vec::new();
    for socket in group {
        getsocks::write_names(&socket.namespace, &socket.interface, &mut records)
            .map_err(io::Error::other)?;
    }
    let fds: Vec<_> = group.iter().map(|socket| socket.fd.as_fd()).collect();
    let sending = async {
        loop {
            match send_with_fds(stream, &records, &fds) {
                // There is room for a message: the one before was acknowledged.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => sleep(LOOK_AGAIN).await,
                other => return other,
            }
        }
    };
    let sent = within(sending).await?;
    // The descriptors went with the first byte.
    within(stream.write_all(&records[sent..])).await
}

async fn acknowledged(stream: &Stream) -> io::Result<()> {
    let mut bytes = [0; 4];
    let mut have = 0;
    while have < bytes.len() {
        match within(stream.read(&mut bytes[have..])).await? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            count => have += count,
        }
    }
    Ok(())
}

async fn within<T>(step: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    timeout(PATIENCE, step)
        .await
        .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}
