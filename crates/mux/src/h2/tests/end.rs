//! The other end of a connection: a codec and a socket, which the test moves.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use ballast_h2::{Event, H2Connection, H2Settings, IncomingHeads, Role, StreamId};
use ballast_message::{HeadLimits, Method, Request, Response};
use ballast_transport::Transport;
use ballast_worker::{Stream, yield_now};

/// How long a test waits for what must come.
const PATIENCE: Duration = Duration::from_secs(20);

/// The other end.
pub(super) struct End {
    socket: UnixStream,
    pub(super) codec: H2Connection,
    pub(super) out: Vec<u8>,
    input: Vec<u8>,
    heads: IncomingHeads,
    /// Most bytes that it reads in one move.
    pub(super) read_bytes_max: usize,
    /// Whether it passes over our word that its settings are in force.
    pub(super) hides_acknowledgement: bool,
    /// Whether it gives back windows.
    pub(super) gives_back: bool,
    /// What came of each body.
    pub(super) bodies: BTreeMap<StreamId, usize>,
    /// The streams whose heads came.
    pub(super) begun: BTreeSet<StreamId>,
    /// The streams that have ended well.
    pub(super) ended: BTreeSet<StreamId>,
    /// The other events.
    pub(super) events: Vec<Event>,
    /// Whether our side has closed.
    pub(super) is_closed: bool,
}

/// A transport, and its other end in this role.
pub(super) fn pair(role: Role, settings: H2Settings) -> (Transport, End) {
    let (ours, theirs) = UnixStream::pair().unwrap();
    ours.set_nonblocking(true).unwrap();
    theirs.set_nonblocking(true).unwrap();
    let transport = Transport::from(Stream::from_fd(OwnedFd::from(ours)).unwrap());
    let mut out = Vec::new();
    let codec = H2Connection::new(role, settings, &mut out);
    let end = End {
        socket: theirs,
        codec,
        out,
        input: Vec::new(),
        heads: IncomingHeads::new(HeadLimits::default()),
        read_bytes_max: 1 << 20,
        hides_acknowledgement: false,
        gives_back: true,
        bodies: BTreeMap::new(),
        begun: BTreeSet::new(),
        ended: BTreeSet::new(),
        events: Vec::new(),
        is_closed: false,
    };
    (transport, end)
}

/// A request without a body.
pub(super) fn request() -> Request {
    let mut request = Request::new(HeadLimits::default());
    request.set_method(b"GET").unwrap();
    request.set_target(b"/").unwrap();
    request.fields_mut().add(b"host", b"a.b").unwrap();
    assert_eq!(request.method(), Method::Get);
    request
}

/// A response.
pub(super) fn response(status: u16) -> Response {
    let mut response = Response::new(HeadLimits::default());
    response.set_status(status).unwrap();
    response
}

impl End {
    /// Opens a stream with a request without a body.
    pub(super) fn get(&mut self) -> StreamId {
        let request = request();
        self.codec
            .send_request(&request, None, true, &mut self.out)
            .unwrap()
    }

    /// Sends bytes that no codec would.
    pub(super) fn send_frame(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
        let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
        self.out.extend_from_slice(&length[1..]);
        self.out.extend_from_slice(&[kind, flags]);
        self.out.extend_from_slice(&stream.to_be_bytes());
        self.out.extend_from_slice(payload);
    }

    /// What came of a body.
    pub(super) fn body_bytes(&self, stream: StreamId) -> usize {
        self.bodies.get(&stream).copied().unwrap_or(0)
    }

    /// Sends nothing more.
    pub(super) fn close(&self) {
        self.socket.shutdown(Shutdown::Write).unwrap();
    }

    /// Writes and reads what is possible at once.
    pub(super) fn advance(&mut self) {
        self.codec.write_owed(&mut self.out);
        match self.socket.write(&self.out) {
            Ok(count) => drop(self.out.drain(..count)),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(_) => self.out.clear(),
        }
        let mut bytes = vec![0; self.read_bytes_max];
        match self.socket.read(&mut bytes) {
            Ok(0) => self.is_closed |= self.read_bytes_max > 0,
            Ok(count) => self.input.extend_from_slice(&bytes[..count]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(_) => self.is_closed = true,
        }
        let acknowledgement = [0, 0, 0, 4, 1, 0, 0, 0, 0];
        let mut frames = self.input.windows(acknowledgement.len());
        if self.hides_acknowledgement
            && let Some(at) = frames.position(|frame| frame == acknowledgement)
        {
            self.input.drain(at..at + acknowledgement.len());
        }
        self.decode();
    }

    fn decode(&mut self) {
        loop {
            let step = self.codec.receive(&self.input, &mut self.heads);
            self.input.drain(..step.consumed);
            match step.event {
                Event::Incomplete | Event::OutputFull => return,
                Event::Data {
                    stream,
                    range,
                    ends_stream,
                } => {
                    *self.bodies.entry(stream).or_default() += range.len();
                    if self.gives_back {
                        self.codec.give_back(stream, range.len());
                    }
                    self.note(stream, ends_stream);
                }
                Event::Request {
                    stream,
                    ends_stream,
                    ..
                }
                | Event::Response {
                    stream,
                    ends_stream,
                    ..
                } => {
                    self.begun.insert(stream);
                    self.note(stream, ends_stream);
                }
                Event::Error(error) => {
                    self.events.push(Event::Error(error));
                    return;
                }
                event => self.events.push(event),
            }
        }
    }

    fn note(&mut self, stream: StreamId, ends_stream: bool) {
        if ends_stream {
            self.ended.insert(stream);
        }
    }

    /// Moves until the condition holds.
    pub(super) async fn until(&mut self, what: &str, mut holds: impl FnMut(&mut Self) -> bool) {
        let began = Instant::now();
        while !holds(self) {
            assert!(began.elapsed() < PATIENCE, "{what}: {:?}", self.events);
            self.advance();
            yield_now().await;
        }
    }

    /// Moves until nothing more comes: our side has answered a question that was asked behind everything.
    pub(super) async fn settle(&mut self) {
        let token = [7; 8];
        let answer = Event::PingReply { payload: token };
        self.events.retain(|event| *event != answer);
        self.codec.ping(token, &mut self.out);
        self.until("it answers", |end| end.events.contains(&answer))
            .await;
        self.events.retain(|event| *event != answer);
    }
}
