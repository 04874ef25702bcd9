//! A client that sends exactly the given bytes and reads HTTP/1 responses strictly.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};

use crate::WAIT_MAX;

/// The maximum size of a response in a test, in case a proxy never stops.
const ANSWER_BYTES_MAX: usize = 64 << 20;

/// One connection to the proxy.
#[derive(Debug)]
pub struct Client {
    socket: TcpStream,
    /// Received, not yet consumed: pipelined responses wait here.
    received: Vec<u8>,
}

/// One response.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Response {
    /// The status, as in the first line.
    pub status: u16,
    /// The whole first line without its CRLF.
    pub line: String,
    /// Names as received, in order.
    pub headers: Vec<(String, String)>,
    /// The body, without chunk framing.
    pub body: Vec<u8>,
}

impl Response {
    /// The first field with that name, in any case.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(given, _)| given.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }

    /// The body as text.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

impl Client {
    /// Connects to a port of 127.0.0.1.
    ///
    /// # Panics
    ///
    /// When the connection is refused.
    #[must_use]
    pub fn connect(port: u16) -> Self {
        Self::try_connect(port).expect("the proxy accepts")
    }

    /// As [`Client::connect`], of a proxy that may refuse the client.
    ///
    /// # Errors
    ///
    /// When nobody listens, or when the proxy has closed the connection before this side saw it open.
    pub fn try_connect(port: u16) -> io::Result<Self> {
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        let socket = TcpStream::connect_timeout(&address, WAIT_MAX)?;
        socket
            .set_read_timeout(Some(WAIT_MAX))
            .expect("a timeout above zero");
        socket
            .set_write_timeout(Some(WAIT_MAX))
            .expect("a timeout above zero");
        socket.set_nodelay(true).expect("a TCP socket");
        Ok(Self {
            socket,
            received: Vec::new(),
        })
    }

    /// One `GET` on a connection of its own.
    ///
    /// # Panics
    ///
    /// When no complete response arrives.
    #[must_use]
    pub fn get_once(port: u16, path: &str) -> Response {
        let mut client = Self::connect(port);
        client.send(format!(
            "GET {path} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n"
        ));
        client.response()
    }

    /// One `GET` on this connection, which stays open.
    ///
    /// # Panics
    ///
    /// When no complete response arrives.
    pub fn get(&mut self, path: &str) -> Response {
        self.send(format!("GET {path} HTTP/1.1\r\nHost: test\r\n\r\n"));
        self.response()
    }

    /// The socket, for anything that this type does not offer.
    #[must_use]
    pub fn socket(&self) -> &TcpStream {
        &self.socket
    }

    /// Sends exactly these bytes.
    ///
    /// # Panics
    ///
    /// When the proxy has closed.
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.try_send(bytes).expect("the proxy reads");
    }

    /// As [`Client::send`], for when the proxy may have closed.
    ///
    /// # Errors
    ///
    /// What the kernel says: reset, broken pipe, timeout.
    pub fn try_send(&mut self, bytes: impl AsRef<[u8]>) -> io::Result<()> {
        self.socket.write_all(bytes.as_ref())
    }

    /// Ends the sending side.
    ///
    /// # Panics
    ///
    /// When the connection is gone.
    pub fn finish(&self) {
        self.socket
            .shutdown(Shutdown::Write)
            .expect("the connection is there");
    }

    /// Reads the response to a request other than `HEAD`.
    ///
    /// # Panics
    ///
    /// When no complete response arrives, or one that violates RFC 9112.
    pub fn response(&mut self) -> Response {
        self.try_response(false).expect("a whole answer comes")
    }

    /// Reads the response to a `HEAD`: no body, whatever the fields say.
    ///
    /// # Panics
    ///
    /// As [`Client::response`].
    pub fn response_to_head(&mut self) -> Response {
        self.try_response(true).expect("a whole answer comes")
    }

    /// Reads one response.
    ///
    /// # Errors
    ///
    /// `UnexpectedEof` when the proxy closes first, `InvalidData` when the response is malformed,
    /// else the system's error.
    pub fn try_response(&mut self, to_head: bool) -> io::Result<Response> {
        let head_length = self.fill_until(b"\r\n\r\n")?;
        let head: Vec<u8> = self.received.drain(..head_length).collect();
        let head = String::from_utf8(head).map_err(|_| malformed("head is not UTF-8"))?;
        let mut lines = head.trim_end_matches("\r\n").split("\r\n");
        let line = lines.next().unwrap_or_default().to_owned();
        let status = line
            .split(' ')
            .nth(1)
            .and_then(|code| code.parse().ok())
            .ok_or_else(|| malformed(&format!("status line {line:?}")))?;
        let headers: Vec<(String, String)> = lines
            .map(|field| field.split_once(':').ok_or_else(|| malformed(field)))
            .map(|field| field.map(|(name, value)| (name.to_owned(), value.trim().to_owned())))
            .collect::<io::Result<_>>()?;
        let mut response = Response {
            status,
            line,
            headers,
            body: Vec::new(),
        };
        if !(to_head || status < 200 || status == 204 || status == 304) {
            response.body = self.body(&response)?;
        }
        Ok(response)
    }

    fn body(&mut self, head: &Response) -> io::Result<Vec<u8>> {
        let coding = head
            .header("transfer-encoding")
            .map(str::to_ascii_lowercase);
        if coding.as_deref() == Some("chunked") {
            return self.chunks();
        }
        match head.header("content-length") {
            Some(length) => {
                let length = length.parse().map_err(|_| malformed("content-length"))?;
                self.exactly(length)
            }
            None => self.try_rest(),
        }
    }

    fn chunks(&mut self) -> io::Result<Vec<u8>> {
        let mut body = Vec::new();
        loop {
            let length = self.fill_until(b"\r\n")?;
            let line: Vec<u8> = self.received.drain(..length).collect();
            let digits = String::from_utf8_lossy(&line[..length - 2]).into_owned();
            let digits = digits.split(';').next().unwrap_or_default();
            let size = usize::from_str_radix(digits, 16).map_err(|_| malformed("chunk size"))?;
            if size == 0 {
                break;
            }
            body.extend(self.exactly(size)?);
            if self.exactly(2)? != b"\r\n" {
                return Err(malformed("chunk without CRLF"));
            }
        }
        // Trailers, up to the empty line.
        while self.fill_until(b"\r\n")? != 2 {
            let length = self.fill_until(b"\r\n")?;
            self.received.drain(..length);
        }
        self.received.drain(..2);
        Ok(body)
    }

    /// Reads exactly this many bytes.
    ///
    /// # Errors
    ///
    /// As [`Client::try_response`].
    pub fn exactly(&mut self, length: usize) -> io::Result<Vec<u8>> {
        while self.received.len() < length {
            self.receive()?;
        }
        Ok(self.received.drain(..length).collect())
    }

    /// Reads until the proxy closes, with a FIN or a reset.
    #[must_use]
    pub fn rest(&mut self) -> Vec<u8> {
        while self.receive().is_ok() {}
        std::mem::take(&mut self.received)
    }

    fn try_rest(&mut self) -> io::Result<Vec<u8>> {
        loop {
            match self.receive() {
                Ok(()) => {}
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => break,
                Err(error) => return Err(error),
            }
        }
        Ok(std::mem::take(&mut self.received))
    }

    /// True when the proxy closes, or has closed, without sending anything.
    ///
    /// # Panics
    ///
    /// When it neither closes nor sends within [`WAIT_MAX`].
    #[must_use]
    pub fn is_closed(&mut self) -> bool {
        match self.receive() {
            Ok(()) => false,
            Err(error) => {
                assert!(
                    !matches!(error.kind(), ErrorKind::TimedOut | ErrorKind::WouldBlock),
                    "the proxy neither closes nor sends"
                );
                self.received.is_empty()
            }
        }
    }

    /// Receives until `mark` is found, and returns the length up to its end.
    fn fill_until(&mut self, mark: &[u8]) -> io::Result<usize> {
        let mut from = 0;
        loop {
            let position = self.received[from..]
                .windows(mark.len())
                .position(|bytes| bytes == mark);
            if let Some(position) = position {
                return Ok(from + position + mark.len());
            }
            from = self.received.len().saturating_sub(mark.len() - 1);
            self.receive()?;
        }
    }

    fn receive(&mut self) -> io::Result<()> {
        let mut piece = [0; 16 << 10];
        match self.socket.read(&mut piece)? {
            0 => Err(ErrorKind::UnexpectedEof.into()),
            _ if self.received.len() > ANSWER_BYTES_MAX => Err(malformed("endless answer")),
            length => {
                self.received.extend_from_slice(&piece[..length]);
                Ok(())
            }
        }
    }
}

fn malformed(what: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, format!("malformed answer: {what}"))
}
