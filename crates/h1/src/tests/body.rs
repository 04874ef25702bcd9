//! Chunked bodies.

use ballast_message::Fields;

use crate::{
    CHUNK_END, ChunkDecoder, ChunkEvent, H1Error, H1Limits, RelayEvent, chunk_header,
    write_last_chunk,
};

/// Feeds `input` in parts of `piece` bytes, keeping what was not consumed, as a connection does.
/// Returns the body, the trailers and the rest.
pub(super) fn decode(
    decoder: &mut ChunkDecoder,
    input: &[u8],
    piece: usize,
) -> Result<(Vec<u8>, Fields, usize), H1Error> {
    let mut body = Vec::new();
    let mut trailers = Fields::default();
    let mut buffer = Vec::new();
    let mut fed = 0;
    loop {
        let step = decoder.decode(&buffer, &mut trailers)?;
        match step.event {
            ChunkEvent::Data(ref range) => {
                assert_eq!(range.end, step.consumed);
                assert!(!range.is_empty());
                body.extend_from_slice(&buffer[range.clone()]);
            }
            ChunkEvent::Finished => {
                let left = buffer.len() - step.consumed + input.len() - fed;
                return Ok((body, trailers, left));
            }
            ChunkEvent::Incomplete if fed == input.len() => {
                return Ok((body, trailers, usize::MAX));
            }
            ChunkEvent::Incomplete => {}
        }
        let more = if matches!(step.event, ChunkEvent::Incomplete) {
            piece
        } else {
            0
        };
        buffer.drain(..step.consumed);
        let end = (fed + more).min(input.len());
        buffer.extend_from_slice(&input[fed..end]);
        fed = end;
    }
}

/// As [`decode`], by relaying: what the next hop gets.
pub(super) fn relay(
    decoder: &mut ChunkDecoder,
    input: &[u8],
    piece: usize,
) -> Result<(Vec<u8>, bool), H1Error> {
    let mut out = Vec::new();
    let mut trailers = Fields::default();
    let mut buffer = Vec::new();
    let mut fed = 0;
    loop {
        let step = decoder.relay(&buffer, &mut trailers)?;
        let mut more = 0;
        match step.event {
            RelayEvent::Verbatim(range) => out.extend_from_slice(&buffer[range]),
            RelayEvent::Write(bytes) => out.extend_from_slice(&bytes),
            RelayEvent::Finished => {
                write_last_chunk(&trailers, &mut out);
                return Ok((out, true));
            }
            RelayEvent::Incomplete if fed == input.len() => return Ok((out, false)),
            RelayEvent::Incomplete => more = piece,
        }
        buffer.drain(..step.consumed);
        let end = (fed + more).min(input.len());
        buffer.extend_from_slice(&input[fed..end]);
        fed = end;
    }
}

fn request_decoder() -> ChunkDecoder {
    ChunkDecoder::for_request(&H1Limits::default())
}

fn response_decoder() -> ChunkDecoder {
    ChunkDecoder::for_response(&H1Limits::default())
}

#[test]
fn chunks_are_judged_as_by_the_oracle_or_stricter() {
    use H1Error as E;
    let large = || Err(E::ChunkSizeTooLarge);
    let long = format!("2;{}\r\nab\r\n0\r\n\r\n", "a".repeat(5000));
    // The bytes, HAProxy's status, ours to a client, ours to a server.
    type Row<'a> = (&'a str, u16, Result<&'a str, E>, Result<&'a str, E>);
    let rows: [Row<'_>; 27] = [
        ("2\r\nab\r\n0\r\n\r\n", 200, Ok("ab"), Ok("ab")),
        (
            "00000000000000000002\r\nab\r\n00\r\n\r\n",
            200,
            Ok("ab"),
            Ok("ab"),
        ),
        ("2;a=b\r\nab\r\n0;x\r\n\r\n", 200, Ok("ab"), Ok("ab")),
        ("2 ;a=b\r\nab\r\n0\r\n\r\n", 200, Ok("ab"), Ok("ab")),
        ("2 \t\r\nab\r\n0\r\n\r\n", 200, Ok("ab"), Ok("ab")),
        (" 2\r\nab\r\n0\r\n\r\n", 400, size(), size()),
        ("0x2\r\nab\r\n0\r\n\r\n", 400, size(), size()),
        ("-2\r\nab\r\n0\r\n\r\n", 400, size(), size()),
        ("+2\r\nab\r\n0\r\n\r\n", 400, size(), size()),
        ("\r\nab\r\n0\r\n\r\n", 400, size(), size()),
        ("g", 400, size(), size()),
        ("2g\r\nab\r\n0\r\n\r\n", 400, size(), size()),
        ("10000000000000\r\nab", 400, large(), large()),
        ("10000000000000002\r\nab", 400, large(), large()),
        ("ffffffffffffffff\r\nab", 400, large(), large()),
        ("2\nab\r\n0\r\n\r\n", 400, Err(E::BareLf), Err(E::BareLf)),
        (
            "2\r\nab\n0\r\n\r\n",
            400,
            Err(E::ChunkEndMissing),
            Err(E::ChunkEndMissing),
        ),
        ("2\rab\r\n0\r\n\r\n", 400, size(), size()),
        (
            "2\r\nabcd\r\n0\r\n\r\n",
            400,
            Err(E::ChunkEndMissing),
            Err(E::ChunkEndMissing),
        ),
        (
            "2;a\rb\r\nab\r\n0\r\n\r\n",
            400,
            Err(E::BareCr),
            Err(E::BareCr),
        ),
        ("2;a\0b\r\nab\r\n0\r\n\r\n", 200, Err(E::Nul), Err(E::Nul)),
        (
            &long,
            200,
            Err(E::ChunkExtensionsTooLong),
            Err(E::ChunkExtensionsTooLong),
        ),
        ("0\r\n\n", 200, Err(E::BareLf), Ok("")),
        (
            "0\r\nX T: a\r\n\r\n",
            200,
            Err(E::FieldNameInvalid),
            Err(E::FieldNameInvalid),
        ),
        (
            "0\r\nX : a\r\n\r\n",
            200,
            Err(E::SpaceBeforeColon),
            Err(E::SpaceBeforeColon),
        ),
        (
            "0\r\nX: a\r\n b\r\n\r\n",
            200,
            Err(E::FoldedLine),
            Err(E::FoldedLine),
        ),
        ("0\r\nX: a\rb\r\n\r\n", 400, Err(E::BareCr), Err(E::BareCr)),
    ];
    for (bytes, oracle, client, server) in rows {
        for piece in [1, 3, bytes.len()] {
            for (mut decoder, ours) in [(request_decoder(), client), (response_decoder(), server)] {
                let got = decode(&mut decoder.clone(), bytes.as_bytes(), piece);
                let body = got.map(|(body, _, left)| (String::from_utf8(body).unwrap(), left));
                assert_eq!(
                    body,
                    ours.map(|body| (body.to_owned(), 0)),
                    "{bytes:?} by {piece}"
                );
                assert_eq!(
                    relay(&mut decoder, bytes.as_bytes(), piece).map(|(_, finished)| finished),
                    ours.map(|_| true),
                    "{bytes:?} by {piece}"
                );
            }
        }
        assert!(oracle == 200 || client.is_err());
    }
}

fn size<T>() -> Result<T, H1Error> {
    Err(H1Error::ChunkSizeInvalid)
}

#[test]
fn trailers_are_fields_without_what_only_a_head_may_say() {
    let bytes = b"2\r\nab\r\n0\r\nX-T:  a \r\nHost: b\r\nCONTENT-length: 3\r\nY:\r\n\r\nnext";
    for piece in 1..bytes.len() {
        let (body, trailers, left) = decode(&mut request_decoder(), bytes, piece).unwrap();
        assert_eq!(body, b"ab");
        assert_eq!(left, 4);
        let lines: Vec<_> = trailers
            .iter()
            .map(|field| (field.name, field.value))
            .collect();
        assert_eq!(lines, [(&b"x-t"[..], &b"a"[..]), (b"y", b"")]);
    }
}

#[test]
fn trailers_are_bounded() {
    let many: String = (0..101).map(|at| format!("h{at}: a\r\n")).collect();
    let error = decode(
        &mut request_decoder(),
        format!("0\r\n{many}\r\n").as_bytes(),
        64,
    );
    assert_eq!(error.unwrap_err(), H1Error::TooManyFields);
    let long = format!("0\r\nX: {}", "a".repeat(9000));
    let error = decode(&mut request_decoder(), long.as_bytes(), 64);
    assert_eq!(error.unwrap_err(), H1Error::TrailersTooLong);
    let dropped = "Host: a\r\n".repeat(1000);
    let error = decode(
        &mut request_decoder(),
        format!("0\r\n{dropped}\r\n").as_bytes(),
        64,
    );
    assert_eq!(error.unwrap_err(), H1Error::TrailersTooLong);
}

#[test]
fn extensions_are_bounded_over_the_whole_body() {
    let chunk = format!("1;{}\r\na\r\n", "b".repeat(1000));
    let body = chunk.repeat(17);
    let error = decode(&mut request_decoder(), body.as_bytes(), 64).unwrap_err();
    assert_eq!(error, H1Error::ChunkExtensionsTooLong);
    let error = relay(&mut request_decoder(), body.as_bytes(), 5000).unwrap_err();
    assert_eq!(error, H1Error::ChunkExtensionsTooLong);
    assert!(relay(&mut request_decoder(), chunk.repeat(16).as_bytes(), 5000).is_ok());
}

#[test]
fn relaying_keeps_what_is_plain_and_rewrites_what_is_odd() {
    for (received, sent) in [
        (
            "2\r\nab\r\nA\r\n0123456789\r\n0\r\n\r\n",
            "2\r\nab\r\nA\r\n0123456789\r\n0\r\n\r\n",
        ),
        (
            "2;x=y\r\nab\r\n1 \r\nc\r\n0;z\r\n\r\n",
            "2\r\nab\r\n1\r\nc\r\n0\r\n\r\n",
        ),
        (
            "2\r\nab\r\n1\r\nc\r\n0\r\nT: a\n\n",
            "2\r\nab\r\n1\r\nc\r\n0\r\nt: a\r\n\r\n",
        ),
        ("00000000000000001\r\na\r\n0\r\n\r\n", "1\r\na\r\n0\r\n\r\n"),
        ("0\r\nHost: b\r\nT: a\r\n\r\n", "0\r\nt: a\r\n\r\n"),
    ] {
        for piece in 1..=received.len() {
            let (out, finished) =
                relay(&mut response_decoder(), received.as_bytes(), piece).unwrap();
            assert!(finished);
            assert_eq!(String::from_utf8(out).unwrap(), sent, "by {piece}");
        }
    }
    // Plain chunks are relayed at once, up to the last one.
    let mut trailers = Fields::default();
    let step = request_decoder()
        .relay(b"1\r\na\r\n1\r\nb\r\n0\r\n\r\n", &mut trailers)
        .unwrap();
    assert_eq!(step.event, RelayEvent::Verbatim(0..12));
}

#[test]
fn data_may_go_by_without_us() {
    let mut decoder = request_decoder();
    let mut trailers = Fields::default();
    let step = decoder.decode(b"64\r\na", &mut trailers).unwrap();
    assert_eq!((step.consumed, decoder.data_left()), (5, 99));
    decoder.skip_data(99);
    assert_eq!(decoder.data_left(), 0);
    let step = decoder.decode(b"\r\n0\r\n\r\n", &mut trailers).unwrap();
    assert_eq!(step.event, ChunkEvent::Finished);
    assert!(decoder.is_finished());
}

#[test]
fn chunk_headers() {
    assert_eq!(&*chunk_header(1), b"1\r\n");
    assert_eq!(&*chunk_header(0x1af), b"1AF\r\n");
    assert_eq!(&*chunk_header(u64::MAX), b"FFFFFFFFFFFFFFFF\r\n");
    assert_eq!(CHUNK_END, b"\r\n");
    let mut out = Vec::new();
    write_last_chunk(&Fields::default(), &mut out);
    assert_eq!(out, b"0\r\n\r\n");
}
