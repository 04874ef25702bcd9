//! Datagrams to log collectors and the like: never waits, never connects.
//!
//! Unconnected on purpose: a collector that restarts is found again at the
//! next message, and an ICMP refusal of one message costs no other.

use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::{
    MMsgHdr, SendAncillaryBuffer, SendFlags, SocketAddrAny, SocketFlags, SocketType,
};

use crate::{Address, Error};

/// Messages handed to the kernel in one call at most.
const BATCH_MESSAGES_MAX: usize = 32;

/// A datagram socket with one destination.
#[derive(Debug)]
pub struct Datagram {
    fd: OwnedFd,
    target: Address,
    os_target: SocketAddrAny,
}

impl Datagram {
    /// A socket that sends to `target` (UDP, or a unix path or abstract name),
    /// optionally from an address of its own.
    pub fn new(target: Address, source: Option<SocketAddr>) -> Result<Self, Error> {
        let os_target = target.to_os()?;
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let fd = rustix::net::socket_with(target.family(), SocketType::DGRAM, flags, None)
            .map_err(|e| Error::new("socket", &target, e))?;
        if let Some(source) = source {
            rustix::net::bind(&fd, &source).map_err(|e| Error::new("bind", source, e))?;
        }
        Ok(Self {
            fd,
            target,
            os_target,
        })
    }

    /// Where it sends.
    pub fn target(&self) -> &Address {
        &self.target
    }

    /// Sends one message made of `parts`.
    ///
    /// # Errors
    /// `WouldBlock` when the kernel has no room: the caller drops and counts.
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

    /// Sends many messages with few calls; answers how many went out. Stops at
    /// the first that the kernel refuses; an error only if that is the first
    /// of all.
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

    fn send_batch(&self, batch: &[&[u8]]) -> io::Result<usize> {
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
