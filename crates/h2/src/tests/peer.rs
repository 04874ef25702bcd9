//! A peer that writes any frames, and reads ours.

use ballast_message::{Fields, Method, Request, Response};

use crate::frame::{Flags, FrameHeader, FrameType, write_header};
use crate::{
    Event, FRAME_HEADER_BYTES, FieldSink, H2Connection, H2Settings, HpackDecoder, IncomingHeads,
    PREFACE, Role,
};

pub(super) const END_STREAM: u8 = 1;
pub(super) const ACK: u8 = 1;
pub(super) const END_HEADERS: u8 = 4;
pub(super) const PADDED: u8 = 8;
pub(super) const PRIORITY: u8 = 0x20;
/// A whole head without a body.
pub(super) const WHOLE: u8 = END_STREAM | END_HEADERS;

pub(super) const GET: [(&str, &str); 4] = [
    (":method", "GET"),
    (":scheme", "http"),
    (":path", "/"),
    (":authority", "a.b"),
];
pub(super) const POST: [(&str, &str); 4] = [
    (":method", "POST"),
    (":scheme", "http"),
    (":path", "/"),
    (":authority", "a.b"),
];

/// A frame of any type with any payload.
pub(super) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap();
    let mut out = Vec::new();
    write_header(&mut out, length, FrameType::Unknown, Flags(flags), stream);
    out[3] = kind;
    out.extend_from_slice(payload);
    out
}

pub(super) fn data(stream: u32, payload: &[u8], flags: u8) -> Vec<u8> {
    frame(0, flags, stream, payload)
}

pub(super) fn headers(stream: u32, block: &[u8], flags: u8) -> Vec<u8> {
    frame(1, flags, stream, block)
}

pub(super) fn rst(stream: u32, code: u32) -> Vec<u8> {
    frame(3, 0, stream, &code.to_be_bytes())
}

pub(super) fn settings(list: &[(u16, u32)]) -> Vec<u8> {
    let payload: Vec<u8> = list
        .iter()
        .flat_map(|(name, value)| [&name.to_be_bytes()[..], &value.to_be_bytes()[..]].concat())
        .collect();
    frame(4, 0, 0, &payload)
}

pub(super) fn window_update(stream: u32, increment: u32) -> Vec<u8> {
    frame(8, 0, stream, &increment.to_be_bytes())
}

/// Literals without indexing, without Huffman.
pub(super) fn block(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut out = Vec::new();
    for (name, value) in fields {
        out.push(0);
        for text in [name, value] {
            // Each byte of a test's text stands for itself, above 0x7f too.
            let bytes: Vec<u8> = text
                .chars()
                .map(|c| u8::try_from(c as u32).unwrap())
                .collect();
            crate::hpack::write_integer(&mut out, bytes.len(), 7, 0);
            out.extend_from_slice(&bytes);
        }
    }
    out
}

/// A frame that we wrote, readable: `HEADERS 1 ES 0288`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Written {
    pub(super) kind: u8,
    pub(super) flags: u8,
    pub(super) stream: u32,
    pub(super) payload: Vec<u8>,
}

impl Written {
    pub(super) fn number(&self) -> u32 {
        u32::from_be_bytes(*self.payload.last_chunk().unwrap())
    }
}

/// Splits what we wrote into frames.
pub(super) fn frames(mut out: &[u8]) -> Vec<Written> {
    if out.starts_with(PREFACE) {
        out = &out[PREFACE.len()..];
    }
    let mut list = Vec::new();
    while let Some((head, rest)) = out.split_first_chunk::<FRAME_HEADER_BYTES>() {
        let header = FrameHeader::parse(head);
        let (payload, after) = rest.split_at(header.length as usize);
        list.push(Written {
            kind: head[3],
            flags: head[4],
            stream: header.stream,
            payload: payload.to_vec(),
        });
        out = after;
    }
    assert!(out.is_empty(), "whole frames");
    list
}

/// Our connection, and what it said.
pub(super) struct Tested {
    pub(super) connection: H2Connection,
    pub(super) heads: IncomingHeads,
    pub(super) events: Vec<Event>,
    /// The requests that came, as they would be written over HTTP/1.
    pub(super) requests: Vec<String>,
    pub(super) out: Vec<u8>,
}

impl Tested {
    /// A server whose client has sent its preface and empty settings.
    pub(super) fn server() -> Tested {
        Tested::server_with(H2Settings::default())
    }

    pub(super) fn server_with(settings: H2Settings) -> Tested {
        let mut tested = Tested::fresh(Role::Server, settings);
        tested.feed(PREFACE);
        tested.feed(&frame(4, 0, 0, &[]));
        tested.feed(&frame(4, ACK, 0, &[]));
        assert_eq!(tested.events, [Event::Settings]);
        tested.events.clear();
        tested.written();
        tested
    }

    /// A client whose server has sent its settings.
    pub(super) fn client() -> Tested {
        let mut tested = Tested::fresh(Role::Client, H2Settings::default());
        tested.feed(&frame(4, 0, 0, &[]));
        tested.feed(&frame(4, ACK, 0, &[]));
        tested.events.clear();
        tested.written();
        tested
    }

    pub(super) fn fresh(role: Role, settings: H2Settings) -> Tested {
        let mut out = Vec::new();
        Tested {
            connection: H2Connection::new(role, settings, &mut out),
            heads: IncomingHeads::default(),
            events: Vec::new(),
            requests: Vec::new(),
            out,
        }
    }

    /// Gives bytes to the connection; bodies are taken at once.
    pub(super) fn feed(&mut self, input: &[u8]) {
        let mut at = 0;
        loop {
            let step = self.connection.receive(&input[at..], &mut self.heads);
            at += step.consumed;
            match step.event {
                Event::Incomplete => {
                    assert_eq!(at, input.len(), "whole frames are fed");
                    return;
                }
                Event::OutputFull => self.connection.write_owed(&mut self.out),
                Event::Error(error) => {
                    self.events.push(Event::Error(error));
                    return;
                }
                Event::Data {
                    stream, ref range, ..
                } => {
                    self.connection.give_back(stream, range.len());
                    self.events.push(step.event);
                }
                event => {
                    if let Event::Request { .. } = event {
                        self.requests.push(request_text(&self.heads.request));
                    }
                    self.events.push(event);
                }
            }
        }
    }

    /// Feeds a request; answers are up to the test.
    pub(super) fn request(&mut self, stream: u32, fields: &[(&str, &str)], flags: u8) {
        self.feed(&headers(stream, &block(fields), flags));
    }

    /// What we wrote since the last time.
    pub(super) fn written(&mut self) -> Vec<Written> {
        self.connection.write_owed(&mut self.out);
        frames(&std::mem::take(&mut self.out))
    }

    /// The codes of resets and of GOAWAY since the last time, as `RST 1 5` or `GOAWAY 1`.
    pub(super) fn ends(&mut self) -> Vec<String> {
        let list = self.written();
        list.iter()
            .filter_map(|frame| match frame.kind {
                3 => Some(format!("RST {} {}", frame.stream, frame.number())),
                7 => Some(format!("GOAWAY {}", frame.number())),
                _ => None,
            })
            .collect()
    }
}

/// A request as it would be written over HTTP/1, lines joined by `|`.
pub(super) fn request_text(request: &Request) -> String {
    let mut text = latin1(request.method_token());
    text.push(' ');
    text.push_str(&latin1(request.wire_target()));
    text.push_str(&fields_text(request.fields()));
    text
}

pub(super) fn response_text(response: &Response) -> String {
    format!("{}{}", response.status(), fields_text(response.fields()))
}

pub(super) fn fields_text(fields: &Fields) -> String {
    fields
        .iter()
        .map(|field| format!("|{}: {}", latin1(field.name), latin1(field.value)))
        .collect()
}

fn latin1(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| char::from(*byte)).collect()
}

/// Decodes the blocks that we wrote.
pub(super) struct BlockReader(HpackDecoder);

impl BlockReader {
    pub(super) fn new() -> BlockReader {
        BlockReader(HpackDecoder::new(4096))
    }

    pub(super) fn read(&mut self, block: &[u8]) -> Vec<String> {
        struct Lines(Vec<String>);
        impl FieldSink for Lines {
            fn field(&mut self, name: &[u8], value: &[u8]) {
                self.0.push(format!("{}: {}", latin1(name), latin1(value)));
            }
        }
        let mut lines = Lines(Vec::new());
        self.0.decode(block, &mut lines).unwrap();
        lines.0
    }
}

/// A response with these fields.
pub(super) fn response(status: u16, fields: &[(&str, &str)]) -> Response {
    let mut response = Response::default();
    response.set_status(status).unwrap();
    for (name, value) in fields {
        let fields = response.fields_mut();
        fields.add(name.as_bytes(), value.as_bytes()).unwrap();
    }
    response
}

/// A request with this target and these fields.
pub(super) fn request(method: &str, target: &str, fields: &[(&str, &str)]) -> Request {
    let mut request = Request::default();
    request.set_method(method.as_bytes()).unwrap();
    request.set_target(target.as_bytes()).unwrap();
    for (name, value) in fields {
        let fields = request.fields_mut();
        fields.add(name.as_bytes(), value.as_bytes()).unwrap();
    }
    assert_eq!(request.method(), Method::from_token(method.as_bytes()));
    request
}
