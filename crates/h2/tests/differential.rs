//! The `h2` crate as the other end, in both roles: what one says the other understands, and the
//! reverse, in pieces of any size.
//!
//! Nothing is asynchronous here: the futures of the crate are polled in turn with our connection,
//! over two queues of bytes.

#![allow(clippy::panic, clippy::unwrap_used, reason = "tests")]

use std::collections::{BTreeMap, VecDeque};
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use ballast_h2::{ErrorCode, Event, H2Connection, H2Settings, IncomingHeads, Role, StreamId};
use ballast_message::{Fields, Request, Response};
use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Bytes on the way from one end to the other.
type Queue = Arc<Mutex<VecDeque<u8>>>;

/// The crate's end of the connection.
struct Wire {
    incoming: Queue,
    outgoing: Queue,
}

impl AsyncRead for Wire {
    fn poll_read(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let mut incoming = self.incoming.lock().unwrap();
        if incoming.is_empty() {
            return Poll::Pending;
        }
        let count = incoming.len().min(buf.remaining());
        let bytes: Vec<u8> = incoming.drain(..count).collect();
        buf.put_slice(&bytes);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Wire {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        self.outgoing.lock().unwrap().extend(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// A small generator: the same numbers for the same seed.
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        usize::try_from(self.0 >> 33).unwrap() % bound
    }
}

/// Fields of a message: names and values that repeat, and some that do not.
fn fields(chance: &mut Chance) -> Vec<(String, String)> {
    const NAMES: [&str; 10] = [
        "accept",
        "user-agent",
        "cache-control",
        "x-a",
        "x-long-name-of-a-field",
        "authorization",
        "content-type",
        "x-b",
        "via",
        "etag",
    ];
    const VALUES: [&str; 6] = [
        "*/*",
        "",
        "text/html; charset=utf-8",
        "1",
        "a, b, \"c\"",
        "~",
    ];
    (0..chance.below(12))
        .map(|_| {
            let value = match chance.below(3) {
                0 => "v".repeat(chance.below(300)),
                _ => VALUES[chance.below(VALUES.len())].to_owned(),
            };
            (NAMES[chance.below(NAMES.len())].to_owned(), value)
        })
        .collect()
}

/// As the crate keeps them: by name.
fn by_name(fields: impl IntoIterator<Item = (String, String)>) -> BTreeMap<String, Vec<String>> {
    let mut map: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (name, value) in fields {
        map.entry(name).or_default().push(value);
    }
    map
}

fn of_message(fields: &Fields) -> BTreeMap<String, Vec<String>> {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    by_name(
        fields
            .iter()
            .filter(|field| field.name != b"host")
            .map(|field| (text(field.name), text(field.value))),
    )
}

fn of_crate(fields: &http::HeaderMap) -> BTreeMap<String, Vec<String>> {
    by_name(
        fields
            .iter()
            .map(|(name, value)| (name.as_str().to_owned(), value.to_str().unwrap().to_owned())),
    )
}

/// What one exchange says in each direction.
#[derive(Clone, Debug, Default)]
struct Script {
    path: String,
    request: Vec<(String, String)>,
    request_body: Vec<u8>,
    response: Vec<(String, String)>,
    status: u16,
    response_body: Vec<u8>,
    trailers: Vec<(String, String)>,
}

impl Script {
    fn new(chance: &mut Chance, number: usize) -> Script {
        let body = |chance: &mut Chance| {
            let size = [0, 1, 100, 70_000, 200_000][chance.below(5)];
            vec![u8::try_from(number % 256).unwrap(); chance.below(size + 1)]
        };
        Script {
            path: format!("/{number}?q={}", chance.below(1000)),
            request: fields(chance),
            request_body: body(chance),
            response: fields(chance),
            status: [200, 404, 503][chance.below(3)],
            response_body: body(chance),
            trailers: match chance.below(2) {
                0 => Vec::new(),
                _ => vec![("x-trailer".to_owned(), number.to_string())],
            },
        }
    }
}

/// One stream at our end.
#[derive(Default)]
struct OurStream {
    script: usize,
    received: Vec<u8>,
    trailers: Option<BTreeMap<String, Vec<String>>>,
    fields: BTreeMap<String, Vec<String>>,
    status: u16,
    target: String,
    has_ended: bool,
    sent: usize,
    has_sent_all: bool,
}

/// Our end.
struct Ours {
    connection: H2Connection,
    heads: IncomingHeads,
    input: Vec<u8>,
    out: Vec<u8>,
    streams: BTreeMap<StreamId, OurStream>,
}

impl Ours {
    fn new(role: Role) -> Ours {
        let mut out = Vec::new();
        Ours {
            connection: H2Connection::new(role, H2Settings::default(), &mut out),
            heads: IncomingHeads::default(),
            input: Vec::new(),
            out,
            streams: BTreeMap::new(),
        }
    }

    /// Reads a piece.
    fn receive(&mut self, piece: &[u8]) {
        self.input.extend_from_slice(piece);
        let input = std::mem::take(&mut self.input);
        let mut at = 0;
        loop {
            let step = self.connection.receive(&input[at..], &mut self.heads);
            let from = at;
            at += step.consumed;
            match step.event {
                Event::Incomplete => break,
                Event::OutputFull => self.connection.write_owed(&mut self.out),
                Event::Request {
                    stream,
                    ends_stream,
                    ..
                } => {
                    let request = &self.heads.request;
                    let target = String::from_utf8(request.wire_target().to_vec()).unwrap();
                    let number = target[1..].split('?').next().unwrap().parse().unwrap();
                    let entry = self.streams.entry(stream).or_default();
                    entry.script = number;
                    entry.target = target;
                    entry.fields = of_message(request.fields());
                    entry.has_ended = ends_stream;
                }
                Event::Response {
                    stream,
                    ends_stream,
                    ..
                } => {
                    let entry = self.streams.entry(stream).or_default();
                    entry.status = self.heads.response.status();
                    entry.fields = of_message(self.heads.response.fields());
                    entry.has_ended = ends_stream;
                }
                Event::Data {
                    stream,
                    range,
                    ends_stream,
                } => {
                    let entry = self.streams.entry(stream).or_default();
                    entry
                        .received
                        .extend_from_slice(&input[from..][range.clone()]);
                    entry.has_ended = ends_stream;
                    self.connection.give_back(stream, range.len());
                }
                Event::Trailers { stream } => {
                    let entry = self.streams.entry(stream).or_default();
                    entry.trailers = Some(of_message(&self.heads.trailers));
                    entry.has_ended = true;
                }
                Event::WindowOpened | Event::Settings | Event::PingReply { .. } => {}
                event => panic!("{event:?}"),
            }
        }
        self.input = input[at..].to_vec();
    }

    /// Sends what may be sent of a body; then trailers, or the end.
    fn send_body(&mut self, stream: StreamId, body: &[u8], trailers: &[(String, String)]) {
        let entry = self.streams.get_mut(&stream).unwrap();
        if entry.has_sent_all {
            return;
        }
        let left = &body[entry.sent..];
        let allowed = self.connection.reserve(stream, left.len().min(30_000));
        let is_last = allowed == left.len();
        if allowed > 0 || is_last {
            let ends = is_last && trailers.is_empty();
            let piece = &left[..allowed];
            self.connection
                .send_data(stream, piece, ends, &mut self.out)
                .unwrap();
            entry.sent += allowed;
        }
        if is_last {
            entry.has_sent_all = true;
            if !trailers.is_empty() {
                let trailers = our_fields(trailers);
                self.connection
                    .send_trailers(stream, &trailers, &mut self.out)
                    .unwrap();
            }
        }
    }

    /// Moves a piece each way.
    fn exchange(&mut self, from: &Queue, to: &Queue, chance: &mut Chance) {
        while self.connection.next_turn().is_some() {}
        self.connection.write_owed(&mut self.out);
        to.lock().unwrap().extend(self.out.drain(..));
        let piece: Vec<u8> = {
            let mut from = from.lock().unwrap();
            let count = from.len().min(1 + chance.below(20_000));
            from.drain(..count).collect()
        };
        self.receive(&piece);
    }
}

fn our_fields(list: &[(String, String)]) -> Fields {
    let mut fields = Fields::default();
    for (name, value) in list {
        fields.add(name.as_bytes(), value.as_bytes()).unwrap();
    }
    fields
}

/// Polls a future once.
fn poll_once<F: Future + ?Sized>(future: &mut Pin<Box<F>>) -> Option<F::Output> {
    let mut context = Context::from_waker(Waker::noop());
    match future.as_mut().poll(&mut context) {
        Poll::Ready(output) => Some(output),
        Poll::Pending => None,
    }
}

/// Rounds after which a test that does not end has failed.
const ROUNDS_MAX: usize = 200_000;

#[test]
fn the_crate_as_client() {
    for seed in 1..12 {
        let mut chance = Chance(seed);
        let scripts: Vec<Script> = (0..10).map(|at| Script::new(&mut chance, at)).collect();
        let (to_crate, to_us) = (Queue::default(), Queue::default());
        let wire = Wire {
            incoming: to_crate.clone(),
            outgoing: to_us.clone(),
        };
        let mut ours = Ours::new(Role::Server);
        let client = drive_client(wire, scripts.clone());
        let mut client: Pin<Box<dyn Future<Output = ()>>> = Box::pin(client);
        let mut is_done = false;
        for _ in 0..ROUNDS_MAX {
            is_done = is_done || poll_once(&mut client).is_some();
            ours.exchange(&to_us, &to_crate, &mut chance);
            answer_all(&mut ours, &scripts);
            if is_done {
                break;
            }
        }
        assert!(is_done, "seed {seed}");
        assert_eq!(ours.connection.stream_count(), 0);
        // Its window below 65,535 is one, as in HAProxy.
        assert_eq!(ours.connection.counters().glitches, 1);
    }
}

/// Answers each request that is complete, and checks it.
fn answer_all(ours: &mut Ours, scripts: &[Script]) {
    let streams: Vec<StreamId> = ours.streams.keys().copied().collect();
    for stream in streams {
        let entry = &ours.streams[&stream];
        if !entry.has_ended {
            continue;
        }
        let script = &scripts[entry.script];
        if entry.status == 0 {
            assert_eq!(entry.target, script.path);
            assert_eq!(entry.fields, by_name(script.request.clone()));
            assert_eq!(entry.received, script.request_body);
            let mut response = Response::default();
            response.set_status(script.status).unwrap();
            for (name, value) in &script.response {
                let fields = response.fields_mut();
                fields.add(name.as_bytes(), value.as_bytes()).unwrap();
            }
            ours.connection
                .send_response(stream, &response, false, &mut ours.out)
                .unwrap();
            ours.streams.get_mut(&stream).unwrap().status = script.status;
        }
        ours.send_body(stream, &script.response_body, &script.trailers);
        if ours.streams[&stream].has_sent_all {
            ours.connection.finish(stream, ErrorCode::NO_ERROR);
            ours.streams.remove(&stream);
        }
    }
}

/// Sends all requests at once with the crate, and checks the answers.
async fn drive_client(wire: Wire, scripts: Vec<Script>) {
    let handshake = h2::client::Builder::new()
        .initial_window_size(20_000)
        .header_table_size(1_000)
        .handshake::<_, Bytes>(wire);
    let (mut sender, mut connection) = handshake.await.unwrap();
    let exchanges = async {
        let mut waiting = Vec::new();
        for script in &scripts {
            let mut request = http::Request::builder()
                .method("POST")
                .uri(format!("https://a.b{}", script.path));
            for (name, value) in &script.request {
                request = request.header(name, value);
            }
            sender = sender.ready().await.unwrap();
            let ends = script.request_body.is_empty();
            let (response, stream) = sender
                .send_request(request.body(()).unwrap(), ends)
                .unwrap();
            if !ends {
                send_with_crate(stream, &script.request_body, None).await;
            }
            waiting.push(response);
        }
        for (response, script) in waiting.into_iter().zip(&scripts) {
            let response = response.await.unwrap();
            assert_eq!(response.status().as_u16(), script.status);
            assert_eq!(
                of_crate(response.headers()),
                by_name(script.response.clone())
            );
            let (body, trailers) = receive_with_crate(response.into_body()).await;
            assert_eq!(body, script.response_body);
            assert_eq!(trailers, by_name(script.trailers.clone()));
        }
    };
    // Both are polled whenever one of them is.
    let mut exchanges = Box::pin(exchanges);
    std::future::poll_fn(move |context| {
        if let Poll::Ready(result) = Pin::new(&mut connection).poll(context) {
            result.unwrap();
        }
        exchanges.as_mut().poll(context)
    })
    .await;
}

/// Sends a body as its window allows.
async fn send_with_crate(
    mut stream: h2::SendStream<Bytes>,
    body: &[u8],
    trailers: Option<http::HeaderMap>,
) {
    let mut rest = Bytes::copy_from_slice(body);
    while !rest.is_empty() {
        stream.reserve_capacity(rest.len());
        let allowed = std::future::poll_fn(|context| stream.poll_capacity(context)).await;
        let piece = rest.split_to(allowed.unwrap().unwrap());
        let ends = rest.is_empty() && trailers.is_none();
        stream.send_data(piece, ends).unwrap();
    }
    match trailers {
        Some(trailers) => stream.send_trailers(trailers).unwrap(),
        None if body.is_empty() => stream.send_data(Bytes::new(), true).unwrap(),
        None => {}
    }
}

async fn receive_with_crate(
    mut stream: h2::RecvStream,
) -> (Vec<u8>, BTreeMap<String, Vec<String>>) {
    let mut body = Vec::new();
    while let Some(piece) = stream.data().await {
        let piece = piece.unwrap();
        body.extend_from_slice(&piece);
        stream.flow_control().release_capacity(piece.len()).unwrap();
    }
    let trailers = stream.trailers().await.unwrap();
    (
        body,
        trailers
            .map(|trailers| of_crate(&trailers))
            .unwrap_or_default(),
    )
}

#[test]
fn the_crate_as_server() {
    for seed in 101..112 {
        let mut chance = Chance(seed);
        let scripts: Vec<Script> = (0..10).map(|at| Script::new(&mut chance, at)).collect();
        let (to_crate, to_us) = (Queue::default(), Queue::default());
        let wire = Wire {
            incoming: to_crate.clone(),
            outgoing: to_us.clone(),
        };
        let mut ours = Ours::new(Role::Client);
        let server = drive_server(wire, scripts.clone());
        let mut server: Pin<Box<dyn Future<Output = ()>>> = Box::pin(server);
        for (number, script) in scripts.iter().enumerate() {
            let mut request = Request::default();
            request.set_method(b"POST").unwrap();
            let target = format!("https://a.b{}", script.path);
            request.set_target(target.as_bytes()).unwrap();
            for (name, value) in &script.request {
                let fields = request.fields_mut();
                fields.add(name.as_bytes(), value.as_bytes()).unwrap();
            }
            let opened = ours
                .connection
                .send_request(&request, None, false, &mut ours.out);
            let entry = ours.streams.entry(opened.unwrap()).or_default();
            entry.script = number;
        }
        let mut is_done = false;
        for _ in 0..ROUNDS_MAX {
            let ended = poll_once(&mut server).is_some();
            assert!(!ended, "the server serves");
            ours.exchange(&to_us, &to_crate, &mut chance);
            let streams: Vec<StreamId> = ours.streams.keys().copied().collect();
            for stream in &streams {
                let script = &scripts[ours.streams[stream].script];
                ours.send_body(*stream, &script.request_body, &[]);
            }
            is_done = ours.streams.values().all(|entry| entry.has_ended);
            if is_done {
                break;
            }
        }
        assert!(is_done, "seed {seed}");
        for (stream, entry) in &ours.streams {
            let script = &scripts[entry.script];
            assert_eq!(entry.status, script.status);
            assert_eq!(entry.fields, by_name(script.response.clone()));
            assert_eq!(entry.received, script.response_body);
            let trailers = entry.trailers.clone().unwrap_or_default();
            assert_eq!(trailers, by_name(script.trailers.clone()));
            assert!(ours.connection.is_closed(*stream));
        }
        assert_eq!(ours.connection.counters().glitches, 0);
    }
}

/// Serves with the crate.
async fn drive_server(wire: Wire, scripts: Vec<Script>) {
    let handshake = h2::server::Builder::new()
        .max_frame_size(30_000)
        .handshake::<_, Bytes>(wire);
    let mut connection = handshake.await.unwrap();
    let mut answers: Vec<Pin<Box<dyn Future<Output = ()>>>> = Vec::new();
    std::future::poll_fn(move |context| {
        while let Poll::Ready(Some(accepted)) = connection.poll_accept(context) {
            let (request, respond) = accepted.unwrap();
            answers.push(Box::pin(answer_with_crate(
                request,
                respond,
                scripts.clone(),
            )));
        }
        answers.retain_mut(|answer| answer.as_mut().poll(context).is_pending());
        Poll::<()>::Pending
    })
    .await;
}

async fn answer_with_crate(
    request: http::Request<h2::RecvStream>,
    mut respond: h2::server::SendResponse<Bytes>,
    scripts: Vec<Script>,
) {
    let path = request.uri().path();
    let script = &scripts[path[1..].parse::<usize>().unwrap()];
    let whole = request.uri().path_and_query().unwrap().as_str();
    assert_eq!(whole, script.path);
    assert_eq!(request.uri().authority().unwrap(), "a.b");
    assert_eq!(of_crate(request.headers()), by_name(script.request.clone()));
    let (body, _) = receive_with_crate(request.into_body()).await;
    assert_eq!(body, script.request_body);
    let mut response = http::Response::builder().status(script.status);
    for (name, value) in &script.response {
        response = response.header(name, value);
    }
    let response = response.body(()).unwrap();
    let stream = respond.send_response(response, false).unwrap();
    let trailers = (!script.trailers.is_empty()).then(|| {
        let mut map = http::HeaderMap::new();
        for (name, value) in &script.trailers {
            let name: http::HeaderName = name.parse().unwrap();
            map.append(name, value.parse().unwrap());
        }
        map
    });
    send_with_crate(stream, &script.response_body, trailers).await;
}
