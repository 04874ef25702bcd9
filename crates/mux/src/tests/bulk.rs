//! Bodies of megabytes: copied, and moved by the kernel.

use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::thread;

use ballast_message::BodyLength;
use ballast_transport::Transport;
use ballast_worker::{Deadline, PipeCounts, PipeOptions, Stream, block_on, configure_pipes};

use super::PATIENCE;
use super::peer::Travel;
use crate::bulk::Bulk;
use crate::channel::Channel;
use crate::{AfterBody, ClientConnection, Limits, Piece, ServerConnection, WaitLimit, relay};
use crate::{SpliceMode, inbound::Inbound, outbound::Outbound};

const BODY_BYTES: usize = 2_000_003;

fn content() -> Vec<u8> {
    let bytes = (0..BODY_BYTES).map(|at| (at % 251) as u8 ^ (at / 65_536) as u8);
    bytes.collect()
}

fn pair() -> (Transport, UnixStream) {
    let (ours, theirs) = UnixStream::pair().unwrap();
    ours.set_nonblocking(true).unwrap();
    let stream = Stream::from_fd(OwnedFd::from(ours)).unwrap();
    (Transport::from(stream), theirs)
}

/// The body in chunks of so many bytes.
fn chunked(body: &[u8], size: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    for chunk in body.chunks(size) {
        bytes.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
        bytes.extend_from_slice(chunk);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes.extend_from_slice(b"0\r\n\r\n");
    bytes
}

/// The body of chunks.
fn unchunked(mut bytes: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    loop {
        let end = bytes.windows(2).position(|two| two == b"\r\n").unwrap();
        let size = std::str::from_utf8(&bytes[..end]).unwrap();
        let size = usize::from_str_radix(size, 16).unwrap();
        let data = &bytes[end + 2..];
        body.extend_from_slice(&data[..size]);
        assert_eq!(&data[size..size + 2], b"\r\n");
        if size == 0 {
            assert_eq!(data.len(), 2, "nothing is behind the body");
            return body;
        }
        bytes = &data[size + 2..];
    }
}

/// Sends `sent` through a relay; gives what came out, and how many bytes the kernel moved.
fn carried(
    mode: SpliceMode,
    (from, sent): (BodyLength, Vec<u8>),
    to: BodyLength,
) -> (Vec<u8>, usize) {
    block_on(async {
        let counts = Arc::new(PipeCounts::new(1));
        let options = PipeOptions {
            counts: Arc::clone(&counts),
            pipe_bytes: None,
        };
        configure_pipes(&options, 1);
        let (transport, mut server_end) = pair();
        let mut server = ServerConnection::new(transport, Limits::default());
        let (transport, mut client_end) = pair();
        let mut client = ClientConnection::new(transport, Limits::default(), b"");
        let ends = from != BodyLength::UntilClose;
        let writer = thread::spawn(move || {
            server_end.write_all(&sent).unwrap();
            ends.then_some(server_end)
        });
        let reader = thread::spawn(move || {
            let mut got = Vec::new();
            client_end.read_to_end(&mut got).unwrap();
            got
        });
        server.inbound.begin_body(from, &Limits::default(), false);
        client.outbound.begin_body(to);
        let (up, down) = (Deadline::new(), Deadline::new());
        let (mut bytes, mut spliced) = (0, 0);
        relay(
            (&mut server.duplex().source, &WaitLimit::each(&up, PATIENCE)),
            (&mut client.duplex().sink, &WaitLimit::each(&down, PATIENCE)),
            (mode, AfterBody::Other),
            |piece: Piece| {
                bytes += piece.bytes;
                spliced += if piece.is_spliced { piece.bytes } else { 0 };
            },
        )
        .await
        .unwrap();
        assert_eq!(bytes, BODY_BYTES);
        assert_eq!(counts.in_use(), 0, "the pipe is back");
        let server_end = writer.join().unwrap();
        if ends {
            assert!(server.is_reusable(), "it is known that nothing follows");
        }
        drop((server, client, server_end));
        (reader.join().unwrap(), spliced)
    })
    .unwrap()
}

#[test]
fn a_large_body_arrives_whole_in_every_framing_and_mode() {
    let body = content();
    for mode in [SpliceMode::Never, SpliceMode::Auto, SpliceMode::Always] {
        let plain = BodyLength::Known(BODY_BYTES as u64);
        let sources = [
            (plain, body.clone()),
            (BodyLength::UntilClose, body.clone()),
            (BodyLength::Chunked, chunked(&body, 500)),
            (BodyLength::Chunked, chunked(&body, 100_000)),
            (BodyLength::Chunked, chunked(&body, BODY_BYTES)),
        ];
        for (from, sent) in sources {
            for to in [plain, BodyLength::Chunked] {
                let small_chunks = sent.len() > BODY_BYTES + 20_000;
                let (got, spliced) = carried(mode, (from, sent.clone()), to);
                let got = match to {
                    BodyLength::Chunked => unchunked(&got),
                    _ => got,
                };
                let what = format!("{mode:?}, {from:?} to {to:?}");
                assert!(got == body, "{what}");
                if mode == SpliceMode::Never || small_chunks {
                    assert_eq!(spliced, 0, "{what}");
                } else if mode == SpliceMode::Always {
                    assert!(spliced > BODY_BYTES / 2, "{what}: {spliced}");
                }
            }
        }
    }
}

#[test]
fn a_body_that_no_pipe_may_carry_is_copied() {
    let counts = Arc::new(PipeCounts::new(0));
    let mut inbound = Inbound::default();
    block_on(async {
        let options = PipeOptions {
            counts,
            pipe_bytes: None,
        };
        configure_pipes(&options, 1);
        let (transport, mut end) = pair();
        let channel = Channel::from(&transport);
        let mut bulk = Bulk::towards(SpliceMode::Always, channel);
        inbound.begin_body(BodyLength::UntilClose, &Limits::default(), false);
        end.write_all(&[b'x'; 100_000]).unwrap();
        let deadline = Deadline::new();
        let wait = WaitLimit::each(&deadline, PATIENCE);
        let count = inbound.receive_bulk(channel, &wait, &mut bulk).await;
        assert_eq!((count.unwrap(), bulk.held_bytes()), (16_384, 0));
        inbound.consume(16_384);
        // It was filled: a larger one is worth it.
        let count = inbound.receive_bulk(channel, &wait, &mut bulk).await;
        assert_eq!((count.unwrap(), bulk.held_bytes()), (65_536, 0));
    })
    .unwrap();
}

#[test]
fn what_waits_in_a_pipe_is_copied_to_a_transport_that_takes_no_pipe() {
    block_on(async {
        let options = PipeOptions {
            counts: Arc::new(PipeCounts::new(1)),
            pipe_bytes: None,
        };
        configure_pipes(&options, 1);
        let (clear, mut end) = pair();
        let mut bulk = Bulk::towards(SpliceMode::Always, Channel::from(&clear));
        let mut inbound = Inbound::default();
        inbound.begin_body(BodyLength::UntilClose, &Limits::default(), false);
        end.write_all(&[b'x'; 40_000]).unwrap();
        let deadline = Deadline::new();
        let wait = WaitLimit::each(&deadline, PATIENCE);
        let count = inbound
            .receive_bulk(Channel::from(&clear), &wait, &mut bulk)
            .await
            .unwrap();
        assert_eq!(count, bulk.held_bytes());
        let (sealed, mut peer) = Travel::InRecords.pair();
        let mut outbound = Outbound::default();
        outbound.begin_body(BodyLength::Chunked);
        let channel = Channel::from(&sealed);
        outbound.spliced(channel, &wait, &mut bulk).await.unwrap();
        outbound.end_body(channel, None);
        outbound.flush(channel, &wait).await.unwrap();
        assert_eq!(bulk.held_bytes(), 0);
        let got = unchunked(peer.heard().as_bytes());
        assert!(got.len() == count && got.iter().all(|byte| *byte == b'x'));
        // It is not tried again.
        end.write_all(&[b'x'; 40_000]).unwrap();
        let again = inbound.receive_bulk(Channel::from(&clear), &wait, &mut bulk);
        again.await.unwrap();
        assert_eq!(bulk.held_bytes(), 0);
    })
    .unwrap();
}

#[test]
fn what_comes_slowly_is_copied_again() {
    block_on(async {
        let options = PipeOptions {
            counts: Arc::new(PipeCounts::new(1)),
            pipe_bytes: None,
        };
        configure_pipes(&options, 1);
        let (transport, mut end) = pair();
        let channel = Channel::from(&transport);
        let mut bulk = Bulk::towards(SpliceMode::Auto, channel);
        let mut inbound = Inbound::default();
        inbound.begin_body(BodyLength::UntilClose, &Limits::default(), false);
        let (sink, mut sink_end) = pair();
        let mut outbound = Outbound::default();
        let deadline = Deadline::new();
        let wait = WaitLimit::each(&deadline, PATIENCE);
        let reader = thread::spawn(move || std::io::copy(&mut sink_end, &mut std::io::sink()));
        let mut was_spliced = Vec::new();
        for size in [150_000, 100, 100, 100, 100, 100] {
            end.write_all(&vec![b'x'; size]).unwrap();
            let mut left = size;
            while left > 0 {
                left -= inbound
                    .receive_bulk(channel, &wait, &mut bulk)
                    .await
                    .unwrap();
                was_spliced.push(bulk.held_bytes() > 0);
                outbound
                    .spliced(Channel::from(&sink), &wait, &mut bulk)
                    .await
                    .unwrap();
                inbound.consume(inbound.bytes().len());
            }
        }
        assert_eq!(was_spliced.first(), Some(&false), "{was_spliced:?}");
        assert!(was_spliced.contains(&true), "{was_spliced:?}");
        assert_eq!(was_spliced.last(), Some(&false), "{was_spliced:?}");
        drop(sink);
        reader.join().unwrap().unwrap();
    })
    .unwrap();
}
