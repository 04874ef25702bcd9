//! A carrier for tests: records of scrambled bytes, and some that carry no plaintext.
//!
//! To the rooms above it behaves like TLS: bytes come a record at a time, a ticket makes the
//! socket readable without plaintext, the end is a record, and what a full socket does not take is
//! sent later. A record is a type (a byte), a length (two bytes, big endian), and its bytes.

use std::cell::{Cell, RefCell};
use std::io::{self, ErrorKind, IoSlice};
use std::task::{Context, Poll};

use ballast_transport::Carrier;
use ballast_worker::Stream;

/// The most plaintext a record holds, bytes.
const RECORD_BYTES_MAX: usize = 4096;
/// The most that may wait to be sent before plaintext is refused, bytes.
const UNSENT_BYTES_MAX: usize = 256 * 1024;
const HEADER_BYTES: usize = 3;
const SCRAMBLE: u8 = 0x5a;

/// The type of a record.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Content {
    Plaintext = 1,
    Ticket = 2,
    End = 3,
}

/// Appends a record.
pub(super) fn seal(content: Content, plaintext: &[u8], out: &mut Vec<u8>) {
    let length = u16::try_from(plaintext.len()).unwrap();
    out.push(content as u8);
    out.extend_from_slice(&length.to_be_bytes());
    out.extend(plaintext.iter().map(|byte| byte ^ SCRAMBLE));
}

/// Takes a record off the front, if a whole one is there.
pub(super) fn open(bytes: &mut Vec<u8>) -> Option<(Content, Vec<u8>)> {
    let header = bytes.get(..HEADER_BYTES)?;
    let content = match header[0] {
        1 => Content::Plaintext,
        2 => Content::Ticket,
        _ => Content::End,
    };
    let length = usize::from(u16::from_be_bytes([header[1], header[2]]));
    let sealed = bytes.get(HEADER_BYTES..HEADER_BYTES + length)?;
    let plaintext = sealed.iter().map(|byte| byte ^ SCRAMBLE).collect();
    bytes.drain(..HEADER_BYTES + length);
    Some((content, plaintext))
}

#[derive(Debug)]
pub(super) struct Records {
    socket: Stream,
    received: RefCell<Vec<u8>>,
    plaintext: RefCell<Vec<u8>>,
    has_ended: Cell<bool>,
    unsent: RefCell<Vec<u8>>,
}

impl Records {
    pub(super) fn new(socket: Stream) -> Self {
        Self {
            socket,
            received: RefCell::default(),
            plaintext: RefCell::default(),
            has_ended: Cell::new(false),
            unsent: RefCell::default(),
        }
    }

    fn has_news(&self) -> bool {
        !self.plaintext.borrow().is_empty() || self.has_ended.get()
    }

    /// Decodes whole records that were received until there is plaintext or the end.
    fn open_received(&self) {
        while !self.has_news() {
            match open(&mut self.received.borrow_mut()) {
                Some((Content::Plaintext, plaintext)) => drop(self.plaintext.replace(plaintext)),
                Some((Content::Ticket, _)) => {}
                Some((Content::End, _)) => self.has_ended.set(true),
                None => return,
            }
        }
    }

    /// Receives until there is plaintext or the end.
    fn receive(&self) -> io::Result<()> {
        loop {
            self.open_received();
            if self.has_news() {
                return Ok(());
            }
            let mut bytes = [0; 1024];
            match self.socket.try_read(&mut bytes)? {
                0 => return Err(ErrorKind::UnexpectedEof.into()),
                count => self
                    .received
                    .borrow_mut()
                    .extend_from_slice(&bytes[..count]),
            }
        }
    }
}

impl Carrier for Records {
    fn socket(&self) -> &Stream {
        &self.socket
    }

    fn is_readable(&self) -> bool {
        self.has_news() || self.socket.is_readable()
    }

    fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.has_unsent() && self.socket.poll_writable(cx).is_ready() {
            let _ = self.try_send_unsent();
        }
        if self.is_readable() {
            return Poll::Ready(Ok(()));
        }
        self.socket.poll_readable(cx)
    }

    fn try_read(&self, bytes: &mut [u8]) -> io::Result<usize> {
        self.receive()?;
        let mut plaintext = self.plaintext.borrow_mut();
        let count = plaintext.len().min(bytes.len());
        bytes[..count].copy_from_slice(&plaintext[..count]);
        plaintext.drain(..count);
        drop(plaintext);
        // The next record may be buffered already: then the socket does not become readable for
        // it.
        self.open_received();
        Ok(count)
    }

    fn try_write(&self, parts: &[IoSlice<'_>], _: bool) -> io::Result<usize> {
        if self.unsent.borrow().len() >= UNSENT_BYTES_MAX {
            self.try_send_unsent()?;
        }
        let plaintext: Vec<u8> = parts.iter().flat_map(|part| part.iter().copied()).collect();
        let count = plaintext.len().min(RECORD_BYTES_MAX);
        seal(
            Content::Plaintext,
            &plaintext[..count],
            &mut self.unsent.borrow_mut(),
        );
        match self.try_send_unsent() {
            Err(error) if error.kind() != ErrorKind::WouldBlock => Err(error),
            _ => Ok(count),
        }
    }

    fn has_unsent(&self) -> bool {
        !self.unsent.borrow().is_empty() || self.socket.has_unsent()
    }

    fn try_send_unsent(&self) -> io::Result<()> {
        self.socket.try_send_unsent()?;
        let mut unsent = self.unsent.borrow_mut();
        while !unsent.is_empty() {
            let count = self.socket.try_write(&unsent)?;
            unsent.drain(..count);
        }
        Ok(())
    }

    fn queue_for_turn_end(&self, bytes: &mut Vec<u8>, cx: &Context<'_>) -> bool {
        if self.has_unsent() || bytes.len() > RECORD_BYTES_MAX {
            return false;
        }
        let mut record = Vec::new();
        seal(Content::Plaintext, bytes, &mut record);
        let is_queued = self.socket.queue_for_turn_end(&mut record, cx);
        if is_queued {
            bytes.clear();
        }
        is_queued
    }

    fn is_quiet(&self) -> bool {
        let failed = match self.socket.is_readable() {
            true => self.receive().err(),
            false => None,
        };
        failed.is_none_or(|error| error.kind() == ErrorKind::WouldBlock) && !self.has_news()
    }

    fn shutdown_write(&self) -> io::Result<()> {
        seal(Content::End, b"", &mut self.unsent.borrow_mut());
        self.try_send_unsent()
    }
}
