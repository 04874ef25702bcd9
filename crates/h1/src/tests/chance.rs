//! Properties that must hold for any input.

use ballast_message::{Method, Request, Version};
use proptest::collection::vec;
use proptest::prelude::*;

use super::body::{decode, relay};
use super::request;
use crate::{
    CHUNK_END, ChunkDecoder, H1Limits, HeadParse, HeadScan, RequestHead, chunk_header,
    parse_request, parse_response, write_last_chunk, write_request_head,
};

/// Valid and invalid parts of heads.
fn head_bytes() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        6 => prop::sample::select(vec![
            "GET / HTTP/1.1\r\n", "POST /a?b HTTP/1.0\r\n", "CONNECT a:443 HTTP/1.1\r\n",
            "GET http://a:80/ HTTP/1.1\r\n", "Host: a\r\n", "Host: b\r\n", "host:a:80\r\n",
            "Content-Length: 5\r\n", "Content-Length: 5, 5\r\n", "Transfer-Encoding: chunked\r\n",
            "transfer-encoding: ,chunked\r\n", "Connection: close, x\r\n", "X: a b\t\r\n",
            "Connection: Upgrade\r\nUpgrade: foo\r\n", " folded\r\n", "Expect: 100-continue\r\n",
            "\r\n", "\r\n\r\n", "X: y\n", "\r",
        ]).prop_map(|piece| piece.as_bytes().to_vec()),
        1 => vec(any::<u8>(), 0..3),
    ];
    let start = prop_oneof![
        4 => Just(b"POST /a?b HTTP/1.1\r\n".to_vec()),
        1 => Just(b"GET http://a:80/ HTTP/1.1\r\n".to_vec()),
        1 => Just(Vec::new()),
    ];
    let end = prop_oneof![5 => Just(&b"\r\n"[..]), 1 => Just(&b""[..])];
    (start, vec(piece, 0..6), end)
        .prop_map(|(start, pieces, end)| [&start, &pieces.concat(), end].concat())
}

/// Feeds the head `step` bytes at a time.
fn slowly(bytes: &[u8], step: usize, limits: &H1Limits) -> (HeadParse<RequestHead>, Request) {
    let mut request = Request::default();
    let mut scan = HeadScan::default();
    let mut len = 0;
    loop {
        len = (len + step).min(bytes.len());
        let parse = parse_request(&bytes[..len], &mut scan, limits, &mut request);
        if parse != HeadParse::Incomplete || len == bytes.len() {
            return (parse, request);
        }
    }
}

fn written(request: &Request) -> Vec<u8> {
    let mut out = Vec::new();
    write_request_head(request, &mut out);
    out
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn split_anywhere_is_the_same(bytes in head_bytes(), step in 1_usize..20, lenient: bool) {
        let limits = H1Limits { lenient, ..H1Limits::default() };
        let (at_once, one) = request(&bytes, &limits);
        let (in_steps, other) = slowly(&bytes, step, &limits);
        match (at_once, in_steps) {
            // When the first bytes are refused early, the rule may be a different one; the verdict
            // is not.
            (HeadParse::Error(_), HeadParse::Error(_)) => {}
            (at_once, in_steps) => prop_assert_eq!(at_once, in_steps),
        }
        if matches!(at_once, HeadParse::Complete(_)) {
            prop_assert_eq!(written(&one), written(&other));
        }
    }

    #[test]
    fn what_we_forward_we_accept_and_forward_unchanged(bytes in head_bytes(), lenient: bool) {
        let limits = H1Limits { lenient, ..H1Limits::default() };
        if let (HeadParse::Complete(head), forwarded) = request(&bytes, &limits) {
            let once = written(&forwarded);
            let (again, twice) = request(&once, &limits);
            let HeadParse::Complete(next) = again else { panic!("{again:?}") };
            prop_assert_eq!(next.body, head.body);
            prop_assert_eq!(next.head_bytes, once.len());
            prop_assert_eq!(&written(&twice), &once);
        }
    }

    /// Another parser reads what we forward in the same way.
    #[test]
    fn httparse_agrees(bytes in head_bytes()) {
        if let (HeadParse::Complete(_), forwarded) = request(&bytes, &H1Limits::default()) {
            let out = written(&forwarded);
            let mut fields = [httparse::EMPTY_HEADER; 101];
            let mut other = httparse::Request::new(&mut fields);
            match other.parse(&out) {
                Ok(httparse::Status::Complete(len)) => prop_assert_eq!(len, out.len()),
                Ok(httparse::Status::Partial) => panic!("{out:?}"),
                // Control characters, which RFC 9110 permits and the other parser refuses.
                Err(error) => {
                    prop_assert_eq!(error, httparse::Error::HeaderValue);
                    return Ok(());
                }
            }
            prop_assert_eq!(other.method.unwrap().as_bytes(), forwarded.method_token());
            prop_assert_eq!(other.path.unwrap().as_bytes(), forwarded.target());
            prop_assert_eq!(other.headers.len(), forwarded.fields().len());
            for (field, header) in forwarded.fields().iter().zip(other.headers.iter()) {
                prop_assert_eq!(field.name, header.name.as_bytes());
                prop_assert_eq!(field.value, header.value);
            }
        }
    }

    #[test]
    fn built_requests_come_back(
        path in "/[a-z/]{0,20}",
        fields in vec(("[a-z-]{1,12}", "[!-~]([ -~]{0,20}[!-~])?"), 0..20),
    ) {
        let mut built = Request::default();
        built.set_method(b"PURGE").unwrap();
        built.set_target(path.as_bytes()).unwrap();
        built.set_version(Version::Http11);
        for (name, value) in &fields {
            let name = format!("x-{name}");
            built.fields_mut().add(name.as_bytes(), value.as_bytes()).unwrap();
        }
        let out = written(&built);
        let (parse, back) = request(&out, &H1Limits::default());
        prop_assert!(matches!(parse, HeadParse::Complete(_)));
        prop_assert_eq!(back.method(), Method::Other);
        prop_assert!(back.fields().iter().eq(built.fields().iter()));
        prop_assert_eq!(back.fields().wire_bytes(), built.fields().wire_bytes());
    }

    #[test]
    fn bodies_come_back(
        chunks in vec(vec(any::<u8>(), 1..40), 0..6),
        piece in 1_usize..30,
        extended in vec(any::<bool>(), 6),
    ) {
        let mut out = Vec::new();
        for (chunk, extended) in chunks.iter().zip(extended) {
            let header = chunk_header(chunk.len() as u64);
            if extended {
                out.extend_from_slice(&header[..header.len() - 2]);
                out.extend_from_slice(b" ;a=\"b\"\r\n");
            } else {
                out.extend_from_slice(&header);
            }
            out.extend_from_slice(chunk);
            out.extend_from_slice(CHUNK_END);
        }
        let mut trailers = ballast_message::Fields::default();
        trailers.add(b"x-t", b"1").unwrap();
        write_last_chunk(&trailers, &mut out);
        let new = || ChunkDecoder::for_request(&H1Limits::default());
        let (body, back, left) = decode(&mut new(), &out, piece).unwrap();
        prop_assert_eq!(&body, &chunks.concat());
        prop_assert_eq!((back.first(b"x-t"), left), (Some(&b"1"[..]), 0));
        let (relayed, finished) = relay(&mut new(), &out, piece).unwrap();
        prop_assert!(finished);
        let (body, _, left) = decode(&mut new(), &relayed, 7).unwrap();
        prop_assert_eq!((body, left), (chunks.concat(), 0));
    }

    #[test]
    fn any_body_is_the_same_in_any_pieces(
        bytes in vec(prop::sample::select(&b"0123aF;x \t\r\n\r\n\r\n\0T:"[..]), 0..60),
        piece in 1_usize..10,
        server: bool,
    ) {
        let limits = H1Limits::default();
        let new = || match server {
            true => ChunkDecoder::for_response(&limits),
            false => ChunkDecoder::for_request(&limits),
        };
        let at_once = decode(&mut new(), &bytes, bytes.len().max(1));
        let in_pieces = decode(&mut new(), &bytes, piece);
        let relayed = relay(&mut new(), &bytes, piece);
        prop_assert_eq!(at_once.is_err(), in_pieces.is_err());
        prop_assert_eq!(at_once.is_err(), relayed.is_err());
        if let (Ok(one), Ok(other), Ok((out, finished))) = (at_once, in_pieces, relayed) {
            prop_assert_eq!((&one.0, one.2), (&other.0, other.2));
            prop_assert_eq!(finished, one.2 != usize::MAX);
            // Relayed chunks give the same data to the strictest reader.
            let strict = decode(&mut ChunkDecoder::for_request(&limits), &out, 64).unwrap();
            prop_assert_eq!(strict.0, one.0);
        }
    }

    /// The fast parser for regular lines and the slow one agree: a head that arrives in small parts
    /// is parsed by the slow one.
    #[test]
    fn any_response_is_the_same_in_any_pieces(
        start in prop::sample::select(vec![
            "HTTP/1.1 200 OK\r\n", "HTTP/1.1 404 \r\n", "HTTP/1.1 200\r\n", "HTTP/1.0 200 OK\r\n",
            "HTTP/1.1  200 OK\r\n", "HTTP/1.1 099 Low\r\n", "HTTP/1.1 200 a\tb \r\n", "\r\nHTTP/1.1 200 OK\n",
        ]),
        lines in vec(prop::sample::select(vec![
            "Content-Length: 5\r\n", "content-length:5\r\n", "Content-Length: 5, 5\r\n", "Content-Length: 6\r\n",
            "Transfer-Encoding: chunked\r\n", "Connection: keep-alive\r\n", "Connection:\tclose \r\n",
            "Server: a\tb\r\n", "X-Empty:\r\n", "X-Spaces:   \r\n", "Bare: x\n", " folded\r\n", "No colon\r\n",
            "Bad name: x\r\n", ": none\r\n", "Nul: \0\r\n", "Cr: a\rb\r\n", "Long-Enough-For-A-Word: 0123456789abcdef\r\n",
        ]), 0..6),
        end in prop::sample::select(vec!["\r\n", "\n", ""]),
        step in 1_usize..5,
    ) {
        let input = [start, &lines.concat(), end].concat().into_bytes();
        let limits = H1Limits::default();
        let parse = |step: usize| {
            let mut response = ballast_message::Response::default();
            let mut scan = HeadScan::default();
            let mut len = 0;
            loop {
                len = (len + step).min(input.len());
                let parse = parse_response(&input[..len], &mut scan, &limits, Method::Get, &mut response);
                if parse != HeadParse::Incomplete || len == input.len() {
                    let mut out = Vec::new();
                    if matches!(parse, HeadParse::Complete(_)) {
                        crate::write_response_head(&response, &mut out);
                    }
                    return (parse, out);
                }
            }
        };
        prop_assert_eq!(parse(input.len()), parse(step));
    }

    #[test]
    fn responses_never_panic(bytes in vec(any::<u8>(), 0..60), step in 1_usize..20) {
        let mut input = b"HTTP/1.1 200 OK\r\nX: ".to_vec();
        input.extend_from_slice(&bytes);
        let mut scan = HeadScan::default();
        let mut response = ballast_message::Response::default();
        for len in (0..=input.len()).step_by(step) {
            let limits = H1Limits::default();
            match parse_response(&input[..len], &mut scan, &limits, Method::Get, &mut response) {
                HeadParse::Incomplete => {}
                _ => break,
            }
        }
    }
}
