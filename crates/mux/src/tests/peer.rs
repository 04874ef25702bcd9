//! A connection over each kind of transport, and its other end.

use std::io::{ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

use ballast_transport::Transport;
use ballast_worker::Stream;

use super::records::{Content, Records, open, seal};

/// The transport of a test.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Travel {
    Clear,
    InRecords,
}

impl Travel {
    pub(super) const ALL: [Self; 2] = [Self::Clear, Self::InRecords];

    /// A transport and its other end, which the test reads and writes.
    pub(super) fn pair(self) -> (Transport, Peer) {
        let (ours, theirs) = UnixStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        theirs.set_nonblocking(true).unwrap();
        let stream = Stream::from_fd(OwnedFd::from(ours)).unwrap();
        let transport = match self {
            Self::Clear => Transport::from(stream),
            Self::InRecords => Transport::Sealed(Box::new(Records::new(stream))),
        };
        let peer = Peer {
            travel: self,
            socket: theirs,
            received: Vec::new(),
            has_ended: false,
        };
        (transport, peer)
    }
}

/// The other end.
pub(super) struct Peer {
    travel: Travel,
    socket: UnixStream,
    received: Vec<u8>,
    /// Whether our side has closed.
    pub(super) has_ended: bool,
}

impl Peer {
    /// Sends bytes, in one record where there are records.
    pub(super) fn say(&mut self, text: &str) {
        let mut bytes = text.as_bytes().to_vec();
        if self.travel == Travel::InRecords {
            bytes.clear();
            for piece in text.as_bytes().chunks(60_000) {
                seal(Content::Plaintext, piece, &mut bytes);
            }
        }
        self.socket.write_all(&bytes).unwrap();
    }

    /// Sends a record without plaintext; nothing where there are no records.
    pub(super) fn send_ticket(&mut self) {
        let mut ticket = Vec::new();
        seal(Content::Ticket, b"for another time", &mut ticket);
        self.socket.write_all(&ticket).unwrap();
    }

    /// Sends the first bytes of a record, which are no plaintext yet.
    pub(super) fn begin_record(&mut self) {
        let mut record = Vec::new();
        seal(Content::Plaintext, b"whole", &mut record);
        self.socket.write_all(&record[..4]).unwrap();
    }

    /// Closes its side; it can still read.
    pub(super) fn end(&mut self) {
        match self.travel {
            Travel::Clear => self.socket.shutdown(Shutdown::Write).unwrap(),
            Travel::InRecords => {
                let mut end = Vec::new();
                seal(Content::End, b"", &mut end);
                self.socket.write_all(&end).unwrap();
            }
        }
    }

    /// What was received since the last call.
    pub(super) fn heard(&mut self) -> String {
        let mut bytes = vec![0; 65_536];
        loop {
            match self.socket.read(&mut bytes) {
                Ok(0) => {
                    self.has_ended |= self.travel == Travel::Clear;
                    break;
                }
                Ok(count) => self.received.extend_from_slice(&bytes[..count]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => panic!("{error}"),
            }
        }
        let plaintext = match self.travel {
            Travel::Clear => std::mem::take(&mut self.received),
            Travel::InRecords => {
                let mut plaintext = Vec::new();
                while let Some((content, bytes)) = open(&mut self.received) {
                    self.has_ended |= content == Content::End;
                    plaintext.extend_from_slice(&bytes);
                }
                plaintext
            }
        };
        String::from_utf8_lossy(&plaintext).into_owned()
    }
}
