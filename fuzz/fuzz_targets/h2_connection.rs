//! Two connections of ours that talk, whatever their users do and in whatever pieces: neither ever
//! breaks a rule that the other sees, and no window is passed.
#![no_main]

use std::collections::BTreeSet;

use ballast_h2::{ErrorCode, Event, H2Connection, H2Settings, IncomingHeads, Role, StreamId};
use ballast_message::{Request, Response};
use libfuzzer_sys::fuzz_target;

/// What is on the way in one direction: a peer that does not read is not written to.
const OUT_BYTES_MAX: usize = 100_000;

struct End {
    connection: H2Connection,
    heads: IncomingHeads,
    out: Vec<u8>,
    input: Vec<u8>,
    untaken: Vec<(StreamId, usize)>,
    /// Streams that may carry DATA: a server sends its head first.
    begun: BTreeSet<StreamId>,
}

impl End {
    fn new(role: Role, settings: H2Settings) -> End {
        let mut out = Vec::new();
        End {
            connection: H2Connection::new(role, settings, &mut out),
            heads: IncomingHeads::default(),
            out,
            input: Vec::new(),
            untaken: Vec::new(),
            begun: BTreeSet::new(),
        }
    }

    fn receive(&mut self, bytes: &[u8]) {
        self.input.extend_from_slice(bytes);
        let input = std::mem::take(&mut self.input);
        let mut at = 0;
        loop {
            let step = self.connection.receive(&input[at..], &mut self.heads);
            at += step.consumed;
            match step.event {
                Event::Incomplete => break,
                Event::OutputFull => self.connection.write_owed(&mut self.out),
                Event::Error(error) => panic!("our own peer broke a rule: {error}"),
                Event::StreamError { error, .. } => {
                    // A stream may be opened while there are too many, and have ended long ago.
                    let codes = [ErrorCode::REFUSED_STREAM, ErrorCode::STREAM_CLOSED];
                    assert!(codes.contains(&error.code()), "{error}");
                }
                Event::Data { stream, range, .. } => self.untaken.push((stream, range.len())),
                _ => {}
            }
        }
        self.input = input[at..].to_vec();
    }

    fn stream(&self, number: u8) -> Option<StreamId> {
        let count = self.connection.stream_count().max(1);
        self.connection.streams().nth(usize::from(number) % count)
    }

    /// One thing that a user of the connection does.
    fn act(&mut self, action: u8, number: u8, role: Role) {
        if action % 8 != 7 && self.out.len() > OUT_BYTES_MAX {
            return;
        }
        if action % 8 == 0 && role == Role::Client {
            let mut request = Request::default();
            request.set_method(b"POST").expect("it fits");
            request.set_target(b"http://a.b/").expect("it fits");
            let ends = number & 1 == 1;
            let opened = self
                .connection
                .send_request(&request, None, ends, &mut self.out);
            self.begun.extend(opened.ok());
            return;
        }
        let Some(stream) = self.stream(number) else {
            return;
        };
        match action % 8 {
            0 | 1 if role == Role::Server && self.begun.insert(stream) => {
                let mut response = Response::default();
                response.set_status(200).expect("it fits");
                let connection = &mut self.connection;
                let _ = connection.send_response(stream, &response, false, &mut self.out);
            }
            2 | 3 => {
                let wanted = usize::from(action) * 400;
                let allowed = self.connection.reserve(stream, wanted);
                assert!(allowed <= wanted);
                let data = vec![number; allowed];
                if self.begun.contains(&stream) {
                    let ends = number & 2 == 2;
                    let _ = self
                        .connection
                        .send_data(stream, &data, ends, &mut self.out);
                }
            }
            4 => {
                for (stream, bytes) in self.untaken.drain(..) {
                    self.connection.give_back(stream, bytes);
                }
            }
            5 => self.connection.finish(stream, ErrorCode::CANCEL),
            6 => self.connection.unreserve(stream),
            _ => while self.connection.next_turn().is_some() {},
        }
    }
}

fuzz_target!(|data: &[u8]| {
    let [window, count, actions @ ..] = data else {
        return;
    };
    let settings = H2Settings {
        initial_window_bytes: u32::from(*window) * 300,
        stream_count_max: u32::from(*count % 16),
        receive_bytes_max: 200_000,
        ..H2Settings::default()
    };
    let mut client = End::new(Role::Client, H2Settings::default());
    let mut server = End::new(Role::Server, settings);
    for action in actions.chunks_exact(3) {
        let [what, number, pieces] = action else {
            return;
        };
        if what & 0x80 == 0 {
            client.act(*what, *number, Role::Client);
        } else {
            server.act(*what & 0x7f, *number, Role::Server);
        }
        if pieces & 1 == 1 {
            let size = usize::from(*pieces) * 64;
            client.connection.write_owed(&mut client.out);
            server.connection.write_owed(&mut server.out);
            let up: Vec<u8> = client.out.drain(..size.min(client.out.len())).collect();
            server.receive(&up);
            let down: Vec<u8> = server.out.drain(..size.min(server.out.len())).collect();
            client.receive(&down);
        }
    }
});
