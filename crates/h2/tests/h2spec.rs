//! h2spec against the codec alone: a small server on sockets, without anything of Ballast around it.
//! `H2SPEC` names the program, which `scripts/go-program` builds; `make exam` does both:
//!
//! ```text
//! H2SPEC=$(scripts/go-program h2spec) cargo test -p ballast-h2 --test h2spec -- --ignored --nocapture
//! ```

#![allow(clippy::panic, clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::process::Command;
use std::time::Duration;

use ballast_h2::{ErrorCode, Event, H2Connection, H2Settings, IncomingHeads, Role, StreamId};
use ballast_message::Response;

const BODY: &[u8] = b"a body of a few bytes";

struct Session {
    connection: H2Connection,
    heads: IncomingHeads,
    out: Vec<u8>,
    /// How much of the body each stream has still to send.
    left: BTreeMap<StreamId, usize>,
}

impl Session {
    fn new() -> Session {
        let mut out = Vec::new();
        Session {
            connection: H2Connection::new(Role::Server, H2Settings::default(), &mut out),
            heads: IncomingHeads::default(),
            out,
            left: BTreeMap::new(),
        }
    }

    /// Takes what was read; returns how much of it is done with, and whether the connection goes on.
    fn receive(&mut self, input: &[u8]) -> (usize, bool) {
        let mut at = 0;
        loop {
            let step = self.connection.receive(&input[at..], &mut self.heads);
            at += step.consumed;
            match step.event {
                Event::Incomplete => break,
                Event::Error(_) => return (at, false),
                Event::OutputFull => self.connection.write_owed(&mut self.out),
                Event::Request {
                    stream,
                    ends_stream: true,
                    ..
                }
                | Event::Trailers { stream } => self.answer(stream),
                Event::Data {
                    stream,
                    range,
                    ends_stream,
                } => {
                    self.connection.give_back(stream, range.len());
                    if ends_stream {
                        self.answer(stream);
                    }
                }
                Event::Reset { stream, .. } | Event::StreamError { stream, .. } => {
                    self.left.remove(&stream);
                    self.connection.finish(stream, ErrorCode::CANCEL);
                }
                _ => {}
            }
        }
        self.send();
        (at, true)
    }

    fn answer(&mut self, stream: StreamId) {
        let mut response = Response::default();
        response.set_status(200).unwrap();
        response.fields_mut().add(b"server", b"test").unwrap();
        let sent = self
            .connection
            .send_response(stream, &response, false, &mut self.out);
        if sent.is_ok() {
            self.left.insert(stream, BODY.len());
        }
    }

    fn send(&mut self) {
        while self.connection.next_turn().is_some() {}
        let streams: Vec<StreamId> = self.left.keys().copied().collect();
        for stream in streams {
            let left = self.left[&stream];
            let allowed = self.connection.reserve(stream, left);
            if allowed == 0 {
                continue;
            }
            let piece = &BODY[BODY.len() - left..][..allowed];
            let is_last = allowed == left;
            self.connection
                .send_data(stream, piece, is_last, &mut self.out)
                .unwrap();
            self.left.insert(stream, left - allowed);
            if is_last {
                self.left.remove(&stream);
                self.connection.finish(stream, ErrorCode::NO_ERROR);
            }
        }
    }
}

fn serve(mut socket: TcpStream) -> std::io::Result<()> {
    let mut session = Session::new();
    let mut input = Vec::new();
    let mut piece = [0; 4096];
    socket.set_read_timeout(Some(Duration::from_secs(10)))?;
    loop {
        socket.write_all(&session.out)?;
        session.out.clear();
        let count = socket.read(&mut piece)?;
        if count == 0 {
            return Ok(());
        }
        input.extend_from_slice(&piece[..count]);
        let (consumed, goes_on) = session.receive(&input);
        input.drain(..consumed);
        session.connection.write_owed(&mut session.out);
        if !goes_on {
            socket.write_all(&session.out)?;
            socket.shutdown(Shutdown::Write)?;
            // What was said last is to arrive: no reset.
            while socket.read(&mut piece)? > 0 {}
            return Ok(());
        }
    }
}

#[test]
#[ignore = "it needs the program h2spec: H2SPEC names it"]
fn h2spec_passes_whole() {
    let program = std::env::var("H2SPEC").expect("H2SPEC names the program");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    std::thread::spawn(move || {
        for socket in listener.incoming() {
            let socket = socket.unwrap();
            std::thread::spawn(move || drop(serve(socket)));
        }
    });
    let status = Command::new(program)
        .args(["-h", "127.0.0.1", "-p", &port, "--strict", "--timeout", "2"])
        .status()
        .expect("the program runs");
    assert!(status.success());
}
