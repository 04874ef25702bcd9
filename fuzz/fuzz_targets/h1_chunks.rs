//! Chunked bodies: decoding whole, decoding in pieces and relaying agree.
#![no_main]

use ballast_h1::{ChunkDecoder, ChunkEvent, H1Error, H1Limits, RelayEvent, write_last_chunk};
use ballast_message::Fields;
use libfuzzer_sys::fuzz_target;

/// Body, bytes left after it; None for the latter while it is not over.
type Decoded = Result<(Vec<u8>, Option<usize>), H1Error>;

fn decode(mut decoder: ChunkDecoder, input: &[u8], piece: usize) -> Decoded {
    let (mut body, mut trailers) = (Vec::new(), Fields::default());
    let (mut at, mut end) = (0, 0);
    loop {
        let step = decoder.decode(&input[at..end], &mut trailers)?;
        match step.event {
            ChunkEvent::Data(data) => body.extend_from_slice(&input[at..][data]),
            ChunkEvent::Finished => return Ok((body, Some(input.len() - at - step.consumed))),
            ChunkEvent::Incomplete if end == input.len() => return Ok((body, None)),
            ChunkEvent::Incomplete => end = (end + piece).min(input.len()),
        }
        at += step.consumed;
    }
}

fn relay(mut decoder: ChunkDecoder, input: &[u8], piece: usize) -> Result<Vec<u8>, H1Error> {
    let (mut out, mut trailers) = (Vec::new(), Fields::default());
    let (mut at, mut end) = (0, 0);
    loop {
        let step = decoder.relay(&input[at..end], &mut trailers)?;
        match step.event {
            RelayEvent::Verbatim(bytes) => out.extend_from_slice(&input[at..][bytes]),
            RelayEvent::Write(bytes) => out.extend_from_slice(&bytes),
            RelayEvent::Finished => {
                write_last_chunk(&trailers, &mut out);
                return Ok(out);
            }
            RelayEvent::Incomplete if end == input.len() => return Ok(out),
            RelayEvent::Incomplete => end = (end + piece).min(input.len()),
        }
        at += step.consumed;
    }
}

fuzz_target!(|data: &[u8]| {
    let [flags, bytes @ ..] = data else { return };
    let limits = H1Limits::default();
    let strict = || ChunkDecoder::for_request(&limits);
    let new = || {
        if flags & 1 == 1 {
            ChunkDecoder::for_response(&limits)
        } else {
            strict()
        }
    };
    let piece = usize::from(flags >> 1) + 1;
    let whole = decode(new(), bytes, usize::MAX / 2);
    let pieces = decode(new(), bytes, piece);
    let relayed = relay(new(), bytes, piece);
    assert_eq!(whole.is_err(), pieces.is_err());
    assert_eq!(whole.is_err(), relayed.is_err());
    let (Ok(whole), Ok(pieces), Ok(relayed)) = (whole, pieces, relayed) else {
        return;
    };
    assert_eq!(whole, pieces);
    // What is relayed may be longer by spaces and CRs than what was taken.
    let wider = H1Limits {
        trailer_bytes_max: 2 * limits.trailer_bytes_max,
        ..limits
    };
    let strict = ChunkDecoder::for_request(&wider);
    let again = decode(strict, &relayed, usize::MAX / 2).expect("what is relayed is strict");
    assert_eq!(again.0, whole.0);
});
