//! What the codec costs, in nanoseconds of a processor, beside the `h2` crate. It measures, and is not
//! part of `make test`:
//!
//! ```text
//! cargo test --release -p ballast-h2 --test cost -- --ignored --nocapture
//! ```

#![allow(clippy::panic, clippy::unwrap_used, reason = "tests")]

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use ballast_h2::{ErrorCode, Event, H2Connection, H2Settings, IncomingHeads, Role, StreamId};
use ballast_message::{Request, Response};
use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

const ROUNDS: u32 = 400_000;
/// Streams at once in an exchange of both ends.
const STREAMS: usize = 32;

/// What a browser sends.
const REQUEST: [(&str, &str); 12] = [
    (
        "sec-ch-ua",
        "\"Chromium\";v=\"128\", \"Not;A=Brand\";v=\"24\"",
    ),
    ("sec-ch-ua-mobile", "?0"),
    ("sec-ch-ua-platform", "\"Linux\""),
    (
        "user-agent",
        "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Chrome/128.0.0.0",
    ),
    (
        "accept",
        "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
    ),
    ("sec-fetch-site", "none"),
    ("sec-fetch-mode", "navigate"),
    ("sec-fetch-user", "?1"),
    ("sec-fetch-dest", "document"),
    ("accept-encoding", "gzip, deflate, br, zstd"),
    ("accept-language", "en-US,en;q=0.9"),
    (
        "cookie",
        "session=0123456789abcdef0123456789abcdef; theme=dark",
    ),
];

/// What a server answers.
const RESPONSE: [(&str, &str); 7] = [
    ("server", "nginx"),
    ("date", "Mon, 21 Oct 2013 20:13:21 GMT"),
    ("content-type", "text/html; charset=utf-8"),
    ("content-length", "1024"),
    ("cache-control", "max-age=3600"),
    ("etag", "\"5c7f1a2b-400\""),
    ("vary", "accept-encoding"),
];

/// Nanoseconds that this thread was on a processor.
fn processor_ns() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let first = text.split(' ').next().and_then(|word| word.parse().ok());
    first.unwrap_or(0)
}

fn measure(what: &str, rounds: u32, mut act: impl FnMut()) {
    (0..rounds / 10).for_each(|_| act());
    let began = processor_ns();
    (0..rounds).for_each(|_| act());
    let each = processor_ns().saturating_sub(began) / u64::from(rounds);
    println!("{what:<52} {each:>7} ns");
}

fn request() -> Request {
    let mut request = Request::default();
    request.set_method(b"GET").unwrap();
    request
        .set_target(b"https://www.example.com/a/path?and=query")
        .unwrap();
    for (name, value) in REQUEST {
        let fields = request.fields_mut();
        fields.add(name.as_bytes(), value.as_bytes()).unwrap();
    }
    request
}

fn response() -> Response {
    let mut response = Response::default();
    response.set_status(200).unwrap();
    for (name, value) in RESPONSE {
        let fields = response.fields_mut();
        fields.add(name.as_bytes(), value.as_bytes()).unwrap();
    }
    response
}

/// One end of a connection.
struct End {
    connection: H2Connection,
    heads: IncomingHeads,
    out: Vec<u8>,
}

impl End {
    fn new(role: Role) -> End {
        let mut out = Vec::new();
        End {
            connection: H2Connection::new(role, H2Settings::default(), &mut out),
            heads: IncomingHeads::default(),
            out,
        }
    }

    /// Gives each event of what the other end wrote to `act`.
    fn receive(&mut self, from: &mut End, mut act: impl FnMut(&mut End, Event)) {
        from.connection.write_owed(&mut from.out);
        let mut at = 0;
        loop {
            let step = self.connection.receive(&from.out[at..], &mut self.heads);
            at += step.consumed;
            match step.event {
                Event::Incomplete => break,
                event => act(self, event),
            }
        }
        from.out.clear();
    }
}

fn pair() -> (End, End) {
    let (mut client, mut server) = (End::new(Role::Client), End::new(Role::Server));
    for _ in 0..2 {
        server.receive(&mut client, |_, _| {});
        client.receive(&mut server, |_, _| {});
    }
    (client, server)
}

#[test]
#[ignore = "it measures: the numbers are those of the machine"]
fn what_the_parts_cost() {
    let (request, response) = (request(), response());
    let (mut client, mut server) = pair();
    measure(
        "a request head: written, read and forgotten",
        ROUNDS,
        || {
            let opened = client
                .connection
                .send_request(&request, None, true, &mut client.out);
            let stream = opened.unwrap();
            server.receive(&mut client, |_, _| {});
            server.connection.finish(stream, ErrorCode::NO_ERROR);
            client.connection.finish(stream, ErrorCode::NO_ERROR);
            client.receive(&mut server, |_, _| {});
        },
    );
    let (mut client, _) = pair();
    measure("the same, written only", ROUNDS, || {
        let opened = client
            .connection
            .send_request(&request, None, true, &mut client.out);
        client
            .connection
            .finish(opened.unwrap(), ErrorCode::NO_ERROR);
        client.connection.write_owed(&mut client.out);
        client.out.clear();
    });
    let (mut client, mut server) = pair();
    let mut opened = client
        .connection
        .send_request(&request, None, true, &mut client.out);
    server.receive(&mut client, |_, _| {});
    let stream = opened.unwrap();
    measure("a response head, written (as interim ones)", ROUNDS, || {
        server
            .connection
            .send_response(stream, &response, false, &mut server.out)
            .unwrap();
        server.out.clear();
    });
    let (mut client, mut server) = pair();
    opened = client
        .connection
        .send_request(&request, None, false, &mut client.out);
    let stream = opened.unwrap();
    server.receive(&mut client, |_, _| {});
    client.receive(&mut server, |_, _| {});
    let body = [0; 1024];
    measure("1 kB of DATA: written, read and given back", ROUNDS, || {
        assert_eq!(client.connection.reserve(stream, body.len()), body.len());
        client
            .connection
            .send_data(stream, &body, false, &mut client.out)
            .unwrap();
        server.receive(&mut client, |end, event| {
            if let Event::Data { range, .. } = event {
                end.connection.give_back(stream, range.len());
            }
        });
        client.receive(&mut server, |_, _| {});
    });
}

#[test]
#[ignore = "it measures: the numbers are those of the machine"]
fn what_an_exchange_costs() {
    ours();
    the_crate();
}

fn ours() {
    let (request, response) = (request(), response());
    let body = [0; 1024];
    let (mut client, mut server) = pair();
    let mut streams: Vec<StreamId> = Vec::new();
    let what = format!("{STREAMS} exchanges of 1 kB, both ends: ours");
    measure(&what, ROUNDS / 40, || {
        for _ in 0..STREAMS {
            let opened = client
                .connection
                .send_request(&request, None, true, &mut client.out);
            streams.push(opened.unwrap());
        }
        server.receive(&mut client, |end, event| {
            let Event::Request { stream, .. } = event else {
                return;
            };
            let connection = &mut end.connection;
            connection
                .send_response(stream, &response, false, &mut end.out)
                .unwrap();
            assert_eq!(connection.reserve(stream, body.len()), body.len());
            connection
                .send_data(stream, &body, true, &mut end.out)
                .unwrap();
            connection.finish(stream, ErrorCode::NO_ERROR);
        });
        let mut ended = 0;
        client.receive(&mut server, |end, event| {
            if let Event::Data {
                stream,
                range,
                ends_stream,
            } = event
            {
                end.connection.give_back(stream, range.len());
                ended += usize::from(ends_stream);
            }
        });
        assert_eq!(ended, STREAMS);
        for stream in streams.drain(..) {
            client.connection.finish(stream, ErrorCode::NO_ERROR);
        }
    });
}

// === the `h2` crate, over bytes in memory ===

type Queue = Arc<Mutex<Vec<u8>>>;

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
        buf.put_slice(&incoming[..count]);
        incoming.drain(..count);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Wire {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        self.outgoing.lock().unwrap().extend_from_slice(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

fn crate_request() -> http::Request<()> {
    let mut builder = http::Request::builder()
        .method("GET")
        .uri("https://www.example.com/a/path?and=query");
    for (name, value) in REQUEST {
        builder = builder.header(name, value);
    }
    builder.body(()).unwrap()
}

fn crate_response() -> http::Response<()> {
    let mut builder = http::Response::builder().status(200);
    for (name, value) in RESPONSE {
        builder = builder.header(name, value);
    }
    builder.body(()).unwrap()
}

fn the_crate() {
    let (up, down) = (Queue::default(), Queue::default());
    let mut context = Context::from_waker(Waker::noop());
    let wire = Wire {
        incoming: down.clone(),
        outgoing: up.clone(),
    };
    let mut handshake = Box::pin(h2::client::handshake(wire));
    let Poll::Ready(Ok((mut sender, mut client))) = handshake.as_mut().poll(&mut context) else {
        panic!("a client needs no answer to begin");
    };
    let wire = Wire {
        incoming: up,
        outgoing: down,
    };
    let mut handshake = Box::pin(h2::server::handshake(wire));
    let mut server = loop {
        let _ = Pin::new(&mut client).poll(&mut context);
        if let Poll::Ready(server) = handshake.as_mut().poll(&mut context) {
            break server.unwrap();
        }
    };
    let body = Bytes::from_static(&[0; 1024]);
    let what = format!("{STREAMS} exchanges of 1 kB, both ends: the h2 crate");
    measure(&what, ROUNDS / 40, || {
        let mut waiting = VecDeque::new();
        for _ in 0..STREAMS {
            assert!(sender.poll_ready(&mut context).is_ready());
            let (answer, _) = sender.send_request(crate_request(), true).unwrap();
            waiting.push_back(answer);
        }
        while !waiting.is_empty() {
            assert!(Pin::new(&mut client).poll(&mut context).is_pending());
            while let Poll::Ready(Some(accepted)) = server.poll_accept(&mut context) {
                let (_, mut respond) = accepted.unwrap();
                let mut stream = respond.send_response(crate_response(), false).unwrap();
                stream.send_data(body.clone(), true).unwrap();
            }
            assert!(Pin::new(&mut client).poll(&mut context).is_pending());
            waiting.retain_mut(|answer| {
                let Poll::Ready(answer) = Pin::new(answer).poll(&mut context) else {
                    return true;
                };
                let mut stream = answer.unwrap().into_body();
                while let Poll::Ready(Some(piece)) = stream.poll_data(&mut context) {
                    let bytes = piece.unwrap().len();
                    stream.flow_control().release_capacity(bytes).unwrap();
                }
                false
            });
        }
    });
}
