//! `_getsocks`: sends the listening sockets of this process to one that starts; and `_gettables`, which
//! sends it a channel for the stick tables.
//!
//! The answers are not text, so these are no rows of the catalogue: the session sends descriptors and
//! ends. As with HAProxy, a caller of any level gets them on a `stats socket` with
//! `expose-fd listeners`; on other sockets the connection is closed.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use ballast_net::{PassedSocket, send_with_fds};
use ballast_wire::getsocks::{self, SOCKETS_PER_MESSAGE_MAX};
use ballast_worker::{Stream, sleep, timeout};

/// How long the other process may take for each step.
const ACKNOWLEDGE_TIMEOUT: Duration = Duration::from_secs(1);

/// The time between two attempts to send.
const RETRY_PERIOD: Duration = Duration::from_millis(1);

/// The command.
pub(crate) const REQUEST: &str = "_getsocks";

/// The command for stick tables.
pub(crate) const TABLES_REQUEST: &str = "_gettables";

/// Sends the sockets.
///
/// # Errors
/// The other process has closed the connection or is too slow, or a name is too long.
pub(crate) async fn send_all(stream: &Stream, sockets: &[PassedSocket]) -> io::Result<()> {
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
    send_with(stream, &records, &fds).await
}

/// Sends a channel for stick tables.
///
/// # Errors
/// The other process has closed the connection or is too slow.
pub(crate) async fn send_table_channel(stream: &Stream, channel: BorrowedFd<'_>) -> io::Result<()> {
    send_with(stream, b"t", &[channel]).await
}

/// Sends bytes with descriptors.
async fn send_with(stream: &Stream, bytes: &[u8], fds: &[BorrowedFd<'_>]) -> io::Result<()> {
    let sending = async {
        loop {
            match send_with_fds(stream, bytes, fds) {
                // The previous message was acknowledged, so there will be room soon.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    sleep(RETRY_PERIOD).await
                }
                other => return other,
            }
        }
    };
    let sent = within(sending).await?;
    // The descriptors went with the first byte.
    within(stream.write_all(&bytes[sent..])).await
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
    timeout(ACKNOWLEDGE_TIMEOUT, step)
        .await
        .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}
