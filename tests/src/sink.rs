//! A syslog server over UDP that returns lines as they arrive.

use std::net::UdpSocket;

use crate::WAIT_MAX;

/// Larger than any datagram of a log.
const LINE_BYTES_MAX: usize = 64 << 10;

/// A socket that log lines are sent to.
#[derive(Debug)]
pub struct LogSink {
    socket: UdpSocket,
}

impl Default for LogSink {
    fn default() -> Self {
        Self::start()
    }
}

impl LogSink {
    /// Listens on a free port of 127.0.0.1.
    ///
    /// # Panics
    ///
    /// When no port is free.
    #[must_use]
    pub fn start() -> Self {
        let socket = UdpSocket::bind(("127.0.0.1", 0)).expect("a free port");
        socket
            .set_read_timeout(Some(WAIT_MAX))
            .expect("a timeout above zero");
        Self { socket }
    }

    /// Its port.
    ///
    /// # Panics
    ///
    /// Never: the socket is bound.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.socket
            .local_addr()
            .expect("a bound socket has an address")
            .port()
    }

    /// Waits for the next line and returns it.
    ///
    /// # Panics
    ///
    /// When none arrives within [`WAIT_MAX`].
    #[must_use]
    pub fn line(&self) -> String {
        let mut line = vec![0; LINE_BYTES_MAX];
        let length = self.socket.recv(&mut line).expect("a log line comes");
        String::from_utf8_lossy(&line[..length]).into_owned()
    }

    /// The next line that contains this word; others, such as start-up notices, are skipped.
    ///
    /// # Panics
    ///
    /// When none arrives within [`WAIT_MAX`].
    #[must_use]
    pub fn line_with(&self, word: &str) -> String {
        std::iter::repeat_with(|| self.line())
            .find(|line| line.contains(word))
            .expect("an endless iterator ends by finding")
    }
}
