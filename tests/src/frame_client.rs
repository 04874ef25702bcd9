//! A client of HTTP/2 that writes frame by frame (RFC 9113 section 4.1), whatever is allowed.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use crate::WAIT_MAX;

/// The types of frames (RFC 9113 section 6) that tests name.
pub mod kind {
    /// Part of a body.
    pub const DATA: u8 = 0;
    /// A head, or trailers.
    pub const HEADERS: u8 = 1;
    /// Settings of the connection.
    pub const SETTINGS: u8 = 4;
    /// A question whether the other side is there.
    pub const PING: u8 = 6;
    /// More room in a window.
    pub const WINDOW_UPDATE: u8 = 8;
}

/// The flags END_STREAM and ACK.
pub const END_STREAM: u8 = 1;
/// The flag of a head that is whole.
pub const END_HEADERS: u8 = 4;

const HEAD_BYTES: usize = 9;

/// A frame that was received.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Frame {
    /// Its type.
    pub kind: u8,
    /// Its flags.
    pub flags: u8,
    /// Its stream; 0 is the connection.
    pub stream: u32,
    /// What it carries.
    pub payload: Vec<u8>,
}

/// A connection, after its preface.
#[derive(Debug)]
pub struct FrameClient {
    socket: TcpStream,
}

impl FrameClient {
    /// Connects, and sends the preface with these settings (RFC 9113 section 6.5.1).
    ///
    /// # Panics
    ///
    /// When nobody listens.
    #[must_use]
    pub fn connect(port: u16, settings: &[(u16, u32)]) -> Self {
        let socket = TcpStream::connect(("127.0.0.1", port)).expect("somebody listens");
        socket
            .set_read_timeout(Some(WAIT_MAX))
            .expect("a timeout above zero");
        let mut client = Self { socket };
        client.write(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
        let mut payload = Vec::new();
        for (name, value) in settings {
            payload.extend(name.to_be_bytes());
            payload.extend(value.to_be_bytes());
        }
        client.send(kind::SETTINGS, 0, 0, &payload);
        client
    }

    /// Sends one frame.
    ///
    /// # Panics
    ///
    /// When the connection is gone.
    pub fn send(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
        self.send_all(&[(kind, flags, stream, payload)]);
    }

    /// Sends frames (type, flags, stream, payload) in one write.
    ///
    /// # Panics
    ///
    /// When the connection is gone.
    pub fn send_all(&mut self, frames: &[(u8, u8, u32, &[u8])]) {
        let mut bytes = Vec::new();
        for (kind, flags, stream, payload) in frames {
            let length = u32::try_from(payload.len()).expect("a frame of less than 4 GB");
            bytes.extend(&length.to_be_bytes()[1..]);
            bytes.extend([*kind, *flags]);
            bytes.extend(stream.to_be_bytes());
            bytes.extend(*payload);
        }
        self.write(&bytes);
    }

    /// Sends a request without a body for a path of less than 127 bytes.
    ///
    /// # Panics
    ///
    /// When the connection is gone.
    pub fn get(&mut self, stream: u32, path: &str) {
        let length = u8::try_from(path.len()).expect("a short path");
        // :method GET, :scheme http, :path and :authority as literals (RFC 7541 appendix A).
        let head = [0x82, 0x86, 0x04, length];
        let block = [&head, path.as_bytes(), b"\x01\x09a.example"].concat();
        self.send(kind::HEADERS, END_STREAM | END_HEADERS, stream, &block);
    }

    /// Sends requests for `path` on new streams, and reads nothing, until the socket takes no more for
    /// `patience`, or `count_max` were sent. Returns how many were.
    ///
    /// # Panics
    ///
    /// When the connection is gone.
    pub fn ask_without_reading(&mut self, path: &str, count_max: u32, patience: Duration) -> u32 {
        /// Requests in one write.
        const BATCH: u32 = 500;
        let length = u8::try_from(path.len()).expect("a short path");
        let block = [
            &[0x82, 0x86, 0x04, length],
            path.as_bytes(),
            b"\x01\x09a.example",
        ]
        .concat();
        let block_bytes = u8::try_from(block.len()).expect("a short head");
        let timeout = self.socket.set_write_timeout(Some(patience));
        timeout.expect("a timeout above zero");
        let mut sent = 0;
        while sent < count_max {
            let mut bytes = Vec::new();
            for stream in (0..BATCH).map(|number| 2 * (sent + number) + 1) {
                bytes.extend([0, 0, block_bytes, kind::HEADERS, END_STREAM | END_HEADERS]);
                bytes.extend(stream.to_be_bytes());
                bytes.extend(&block);
            }
            let written = self.socket.write_all(&bytes);
            if let Err(error) = &written
                && error.kind() == ErrorKind::WouldBlock
            {
                break;
            }
            written.expect("the connection is open");
            sent += BATCH;
        }
        sent
    }

    /// Lets the other side send so many bytes more, on a stream or, with 0, on the connection.
    ///
    /// # Panics
    ///
    /// When the connection is gone.
    pub fn allow(&mut self, stream: u32, bytes: u32) {
        self.send(kind::WINDOW_UPDATE, 0, stream, &bytes.to_be_bytes());
    }

    /// The next frame.
    ///
    /// # Panics
    ///
    /// When none comes within [`WAIT_MAX`].
    pub fn receive(&mut self) -> Frame {
        let mut head = [0; HEAD_BYTES];
        self.socket.read_exact(&mut head).expect("a frame comes");
        let [high, middle, low, kind, flags, stream @ ..] = head;
        let length = u32::from_be_bytes([0, high, middle, low]);
        let mut payload = vec![0; usize::try_from(length).expect("24 bits")];
        self.socket
            .read_exact(&mut payload)
            .expect("its payload comes");
        Frame {
            kind,
            flags,
            stream: u32::from_be_bytes(stream),
            payload,
        }
    }

    fn write(&mut self, bytes: &[u8]) {
        self.socket
            .write_all(bytes)
            .expect("the connection is open");
    }
}
