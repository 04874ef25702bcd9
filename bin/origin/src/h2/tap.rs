//! Where the library's frames pass: some are dropped here, and others come in between.

use std::cell::RefCell;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::h2::options::Muted;
use crate::h2::raw::HEAD_BYTES;
use crate::tls::Stream;

/// More than this is not taken before it was sent.
const PENDING_BYTES_MAX: usize = 256 << 10;

/// A connection that knows where frames begin.
#[derive(Clone)]
pub(super) struct Tap(Rc<RefCell<Line>>);

struct Line {
    stream: Stream,
    /// Received before HTTP/2 was recognised.
    first: Vec<u8>,
    frames: Frames,
}

impl Tap {
    pub(super) fn new(stream: Stream, first: Vec<u8>, muted: Muted) -> Self {
        Self(Rc::new(RefCell::new(Line {
            stream,
            first,
            frames: Frames::new(muted),
        })))
    }

    /// Puts frames of ours behind the frame that is being written.
    pub(super) fn inject(&self, frames: &[u8]) {
        self.0.borrow_mut().frames.inject(frames);
    }

    /// Lets the end of the connection be a reset.
    pub(super) fn reset_on_close(&self) {
        self.0.borrow().stream.reset_on_close();
    }
}

impl Line {
    fn poll_drain(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.frames.sent < self.frames.out.len() {
            let rest = &self.frames.out[self.frames.sent..];
            let sent = ready!(Pin::new(&mut self.stream).poll_write(cx, rest))?;
            if sent == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.frames.sent += sent;
        }
        self.frames.out.clear();
        self.frames.sent = 0;
        Poll::Ready(Ok(()))
    }
}

impl AsyncRead for Tap {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let line = &mut *self.0.borrow_mut();
        if line.first.is_empty() {
            return Pin::new(&mut line.stream).poll_read(cx, buffer);
        }
        let length = line.first.len().min(buffer.remaining());
        buffer.put_slice(&line.first[..length]);
        line.first.drain(..length);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Tap {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let line = &mut *self.0.borrow_mut();
        if line.frames.out.len() >= PENDING_BYTES_MAX {
            ready!(line.poll_drain(cx))?;
        }
        line.frames.take(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let line = &mut *self.0.borrow_mut();
        ready!(line.poll_drain(cx))?;
        Pin::new(&mut line.stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let line = &mut *self.0.borrow_mut();
        ready!(line.poll_drain(cx))?;
        Pin::new(&mut line.stream).poll_shutdown(cx)
    }
}

/// The frames on their way out, without a socket.
struct Frames {
    muted: Muted,
    /// The head of the frame that is being written.
    head: [u8; HEAD_BYTES],
    head_length: usize,
    /// How much of its payload is still to come.
    left: usize,
    is_muted: bool,
    /// Frames of ours that wait for the end of this one.
    injected: Vec<u8>,
    out: Vec<u8>,
    /// How much of `out` was sent.
    sent: usize,
}

impl Frames {
    fn new(muted: Muted) -> Self {
        Self {
            muted,
            head: [0; HEAD_BYTES],
            head_length: 0,
            left: 0,
            is_muted: false,
            injected: Vec::new(),
            out: Vec::new(),
            sent: 0,
        }
    }

    fn inject(&mut self, frames: &[u8]) {
        if self.head_length == 0 {
            self.out.extend_from_slice(frames);
        } else {
            self.injected.extend_from_slice(frames);
        }
    }

    fn take(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            if self.head_length < HEAD_BYTES {
                let length = bytes.len().min(HEAD_BYTES - self.head_length);
                let (head, rest) = bytes.split_at(length);
                self.head[self.head_length..][..length].copy_from_slice(head);
                self.head_length += length;
                bytes = rest;
                if self.head_length < HEAD_BYTES {
                    return;
                }
                let [high, middle, low, kind, flags, ..] = self.head;
                self.left = usize::from(high) << 16 | usize::from(middle) << 8 | usize::from(low);
                self.is_muted = self.muted.has(kind, flags);
                if !self.is_muted {
                    self.out.extend_from_slice(&self.head);
                }
            }
            let (payload, rest) = bytes.split_at(bytes.len().min(self.left));
            if !self.is_muted {
                self.out.extend_from_slice(payload);
            }
            self.left -= payload.len();
            bytes = rest;
            if self.left == 0 {
                self.head_length = 0;
                self.out.append(&mut self.injected);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::h2::raw::{self, frame};

    #[test]
    fn frames_are_dropped_and_added_wherever_they_are_cut() {
        let ping = frame(raw::PING, raw::ACK, 0, b"12345678");
        let data = frame(raw::DATA, 0, 1, b"some data");
        let empty = frame(raw::SETTINGS, raw::ACK, 0, b"");
        let all = [ping, data.clone(), empty.clone()].concat();
        for cut in 0..=all.len() {
            let mut frames = Frames::new(Muted::read("ping-ack").unwrap());
            frames.take(&all[..cut]);
            frames.inject(b"ours");
            frames.take(&all[cut..]);
            let length = |part: &[u8]| frames.out.windows(part.len()).any(|one| one == part);
            assert!(length(&data) && length(&empty) && length(b"ours"), "{cut}");
            assert_eq!(frames.out.len(), data.len() + empty.len() + 4, "{cut}");
        }
    }
}
