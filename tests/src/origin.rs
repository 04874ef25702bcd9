//! A server that records requests and sends given responses.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

/// The maximum size of a request in a test.
const REQUEST_BYTES_MAX: u64 = 64 << 20;

/// A request as the server saw it.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Request {
    /// Counted from 0 over all connections: requests on one connection have the same number.
    pub connection: usize,
    /// The first line without its CRLF.
    pub line: String,
    /// Names as received, in order.
    pub headers: Vec<(String, String)>,
    /// The body, without chunk framing.
    pub body: Vec<u8>,
}

impl Request {
    /// The first field with that name, in any case.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(given, _)| given.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }

    /// The target of the first line.
    #[must_use]
    pub fn target(&self) -> &str {
        self.line.split(' ').nth(1).unwrap_or_default()
    }
}

/// A server with a port of its own. Its threads end with the test process.
#[derive(Debug)]
pub struct Origin {
    port: u16,
    connections: Arc<AtomicUsize>,
    requests: Arc<Mutex<Vec<Request>>>,
}

impl Origin {
    /// Answers each request with the bytes that `answer` returns, and keeps the connection; an
    /// empty response closes it.
    ///
    /// # Panics
    ///
    /// When no port is free.
    #[must_use]
    pub fn start<A>(answer: A) -> Self
    where
        A: Fn(&Request) -> Vec<u8> + Send + Sync + 'static,
    {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
        let port = listener
            .local_addr()
            .expect("a bound socket has an address")
            .port();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let connections = Arc::new(AtomicUsize::new(0));
        let (seen, count) = (Arc::clone(&requests), Arc::clone(&connections));
        let answer = Arc::new(answer);
        thread::spawn(move || {
            for (connection, socket) in listener.incoming().flatten().enumerate() {
                count.fetch_add(1, Ordering::Release);
                let (seen, answer) = (Arc::clone(&seen), Arc::clone(&answer));
                thread::spawn(move || {
                    // Some tests are about a proxy that disconnects in the middle.
                    let _ = serve(&socket, connection, &seen, answer.as_ref());
                });
            }
        });
        Self {
            port,
            connections,
            requests,
        }
    }

    /// Answers every request with `200` and this body.
    #[must_use]
    pub fn saying(body: &'static str) -> Self {
        Self::start(move |_| answer(200, body))
    }

    /// Its port on 127.0.0.1.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// How many connections arrived so far.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::Acquire)
    }

    /// The requests so far.
    #[must_use]
    pub fn requests(&self) -> Vec<Request> {
        self.requests
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

/// A complete response with this status and body.
#[must_use]
pub fn answer(status: u16, body: &str) -> Vec<u8> {
    format!(
        "HTTP/1.1 {status} Said\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

fn serve(
    mut socket: &TcpStream,
    connection: usize,
    seen: &Mutex<Vec<Request>>,
    answer: &dyn Fn(&Request) -> Vec<u8>,
) -> io::Result<()> {
    socket.set_nodelay(true)?;
    let mut reader = BufReader::new(socket).take(REQUEST_BYTES_MAX);
    while let Some(request) = read_request(&mut reader, connection)? {
        let bytes = answer(&request);
        seen.lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(request);
        if bytes.is_empty() {
            break;
        }
        socket.write_all(&bytes)?;
        reader.set_limit(REQUEST_BYTES_MAX);
    }
    Ok(())
}

fn read_request(reader: &mut impl BufRead, connection: usize) -> io::Result<Option<Request>> {
    let Some(line) = read_line(reader)? else {
        return Ok(None);
    };
    let mut request = Request {
        connection,
        line,
        ..Request::default()
    };
    while let Some(field) = read_line(reader)?.filter(|field| !field.is_empty()) {
        let (name, value) = field.split_once(':').unwrap_or((&field, ""));
        request
            .headers
            .push((name.to_owned(), value.trim().to_owned()));
    }
    if request.header("transfer-encoding").is_some() {
        while let Some(size) = read_line(reader)? {
            let size = u64::from_str_radix(&size, 16).unwrap_or(0);
            reader.by_ref().take(size).read_to_end(&mut request.body)?;
            read_line(reader)?;
            if size == 0 {
                break;
            }
        }
    } else if let Some(length) = request
        .header("content-length")
        .and_then(|l| l.parse().ok())
    {
        reader
            .by_ref()
            .take(length)
            .read_to_end(&mut request.body)?;
    }
    Ok(Some(request))
}

/// One line without its CRLF, or `None` when the connection ended.
fn read_line(reader: &mut impl BufRead) -> io::Result<Option<String>> {
    let mut line = Vec::new();
    if reader.read_until(b'\n', &mut line)? == 0 {
        return Ok(None);
    }
    Ok(Some(
        String::from_utf8_lossy(&line)
            .trim_end_matches(['\r', '\n'])
            .to_owned(),
    ))
}
