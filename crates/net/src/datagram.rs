//! Datagrams, for log collectors for example. Never blocks.
//!
//! The socket is unconnected on purpose: a restarted collector is found again at the next message,
//! and an ICMP error for one message does not affect others. The path of a unix socket may become
//! invisible later (`chroot`): a socket that exists at the start is connected to as well, and that
//! connection is used when the path does not work.

use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::net::{
    MMsgHdr, SendAncillaryBuffer, SendFlags, SocketAddrAny, SocketFlags, SocketType,
};

use crate::{Address, SystemCallError};

/// The maximum number of messages per system call.
const BATCH_MESSAGES_MAX: usize = 32;

/// A datagram socket with one destination.
#[derive(Debug)]
pub struct Datagram {
    fd: OwnedFd,
    target: Address,
    os_target: SocketAddrAny,
    /// Connected while the path was visible.
    lasting: Option<OwnedFd>,
    /// Whether the connected socket was the one that worked last.
    is_lasting_better: AtomicBool,
}

impl Datagram {
    /// A socket that sends to `target` (UDP, or a unix path or abstract name), optionally from a
    /// given address.
    pub fn new(target: Address, source: Option<SocketAddr>) -> Result<Self, SystemCallError> {
        let os_target = target.to_os()?;
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let fd = rustix::net::socket_with(target.family(), SocketType::DGRAM, flags, None)
            .map_err(|e| SystemCallError::new("socket", &target, e))?;
        if let Some(source) = source {
            rustix::net::bind(&fd, &source).map_err(|e| SystemCallError::new("bind", source, e))?;
        }
        let lasting = match target {
            Address::Unix(_) => connected(&target, &os_target),
            _ => None,
        };
        Ok(Self {
            fd,
            target,
            os_target,
            lasting,
            is_lasting_better: AtomicBool::new(false),
        })
    }

    /// The destination.
    pub fn target(&self) -> &Address {
        &self.target
    }

    /// Sends one message that consists of `parts`.
    ///
    /// # Errors
    /// `WouldBlock` when the kernel has no room: the caller drops the message and counts it.
    pub fn send(&self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        let mut control = SendAncillaryBuffer::default();
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        Ok(rustix::net::sendmsg_addr(
            &self.fd,
            &self.os_target,
            parts,
            &mut control,
            flags,
        )?)
    }

    /// Sends many messages with few calls; returns how many were sent. Stops at the first that the
    /// kernel refuses; an error only if that is the first of all.
    pub fn send_many(&self, messages: &[&[u8]]) -> io::Result<usize> {
        let mut sent = 0;
        for batch in messages.chunks(BATCH_MESSAGES_MAX) {
            match self.send_batch(batch) {
                Ok(n) if n == batch.len() => sent += n,
                Ok(n) => return Ok(sent + n),
                Err(e) if sent == 0 => return Err(e),
                Err(_) => return Ok(sent),
            }
        }
        Ok(sent)
    }

    /// Tries the socket that worked last, then the other one.
    fn send_batch(&self, batch: &[&[u8]]) -> io::Result<usize> {
        let Some(lasting) = &self.lasting else {
            return self.send_batch_by_name(batch);
        };
        let is_lasting = self.is_lasting_better.load(Ordering::Relaxed);
        let send = |is_lasting: bool| match is_lasting {
            true => send_connected(lasting, batch),
            false => self.send_batch_by_name(batch),
        };
        let first = send(is_lasting);
        if !first.as_ref().is_err_and(is_unreachable) {
            return first;
        }
        let second = send(!is_lasting);
        if second.as_ref().is_err_and(is_unreachable) {
            return first;
        }
        self.is_lasting_better.store(!is_lasting, Ordering::Relaxed);
        second
    }

    fn send_batch_by_name(&self, batch: &[&[u8]]) -> io::Result<usize> {
        let parts: [[IoSlice<'_>; 1]; BATCH_MESSAGES_MAX] =
            std::array::from_fn(|i| [IoSlice::new(batch.get(i).copied().unwrap_or_default())]);
        let mut controls: [SendAncillaryBuffer<'_, '_, '_>; BATCH_MESSAGES_MAX] =
            std::array::from_fn(|_| SendAncillaryBuffer::default());
        let mut control = controls.iter_mut();
        let mut headers: [MMsgHdr<'_>; BATCH_MESSAGES_MAX] = std::array::from_fn(|i| {
            let control = control.next().expect("as many controls as headers");
            MMsgHdr::new_with_addr(&self.os_target, &parts[i], control)
        });
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        Ok(rustix::net::sendmmsg(
            &self.fd,
            &mut headers[..batch.len()],
            flags,
        )?)
    }
}

/// A socket that is connected to a path, if somebody listens there.
fn connected(target: &Address, os_target: &SocketAddrAny) -> Option<OwnedFd> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let fd = rustix::net::socket_with(target.family(), SocketType::DGRAM, flags, None).ok()?;
    rustix::net::connect(&fd, os_target).ok()?;
    Some(fd)
}

/// Sends as many as the kernel accepts; an error only if that is none.
fn send_connected(fd: &OwnedFd, batch: &[&[u8]]) -> io::Result<usize> {
    let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
    for (sent, message) in batch.iter().enumerate() {
        match rustix::net::send(fd, message, flags) {
            Ok(_) => {}
            Err(error) if sent == 0 => return Err(error.into()),
            Err(_) => return Ok(sent),
        }
    }
    Ok(batch.len())
}

/// Whether nobody listens, or the path cannot be reached from here: the message itself is not the
/// cause.
fn is_unreachable(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(
            libc::ENOENT
                | libc::ENOTDIR
                | libc::EACCES
                | libc::ECONNREFUSED
                | libc::ECONNRESET
                | libc::ENOTCONN
                | libc::EPIPE
                | libc::EPROTOTYPE
        )
    )
}

impl AsFd for Datagram {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::os::unix::net::UnixDatagram;

    use super::*;

    #[test]
    fn udp_messages_arrive_whole_and_in_order() {
        let collector = UdpSocket::bind("127.0.0.1:0").unwrap();
        let target = Address::Ip(collector.local_addr().unwrap());
        let datagram = Datagram::new(target, Some("127.0.0.1:0".parse().unwrap())).unwrap();
        datagram
            .send(&[IoSlice::new(b"<134>"), IoSlice::new(b"one")])
            .unwrap();
        let texts: Vec<String> = (0..70).map(|i| format!("message {i}")).collect();
        let messages: Vec<&[u8]> = texts.iter().map(String::as_bytes).collect();
        assert_eq!(datagram.send_many(&messages).unwrap(), 70);
        let mut bytes = [0; 64];
        let n = collector.recv(&mut bytes).unwrap();
        assert_eq!(&bytes[..n], b"<134>one");
        for text in &texts {
            let n = collector.recv(&mut bytes).unwrap();
            assert_eq!(&bytes[..n], text.as_bytes());
        }
    }

    #[test]
    fn a_collector_whose_name_is_out_of_sight_is_reached_and_a_new_one_is_found() {
        let dir = tempfile::tempdir().unwrap();
        let (path, moved) = (dir.path().join("log"), dir.path().join("moved"));
        let first = UnixDatagram::bind(&path).unwrap();
        let datagram = Datagram::new(Address::Unix(path.clone()), None).unwrap();
        let mut bytes = [0; 8];
        std::fs::rename(&path, &moved).unwrap();
        for text in [&b"one"[..], b"two"] {
            assert_eq!(datagram.send_many(&[text]).unwrap(), 1);
            assert_eq!(first.recv(&mut bytes).unwrap(), 3);
        }
        drop(first);
        let error = datagram.send_many(&[b"lost"]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
        let second = UnixDatagram::bind(&path).unwrap();
        assert_eq!(datagram.send_many(&[b"three", b"four"]).unwrap(), 2);
        assert_eq!(second.recv(&mut bytes).unwrap(), 5);
    }

    #[test]
    fn a_full_unix_collector_says_would_block_and_a_missing_one_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let datagram = Datagram::new(Address::Unix(path.clone()), None).unwrap();
        let error = datagram.send(&[IoSlice::new(b"x")]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        let collector = UnixDatagram::bind(&path).unwrap();
        let mut sent = 0;
        let refused = loop {
            match datagram.send(&[IoSlice::new(b"x")]) {
                Ok(_) => sent += 1,
                Err(e) => break e,
            }
        };
        assert!(sent > 0);
        assert_eq!(refused.kind(), io::ErrorKind::WouldBlock);
        let mut bytes = [0; 8];
        assert_eq!(collector.recv(&mut bytes).unwrap(), 1);
    }
}
