//! Connections that carry streams, as their exchanges see them.

use std::future::poll_fn;

use ballast_h2::H2Settings;
use ballast_worker::block_on;

use super::peer::Travel;
use crate::{ClientStream, ClientStreams, NextStream, StreamSettings};

/// The preface, SETTINGS, and HEADERS of a POST to `/` on stream 1 whose body is not there yet.
const BEGUN: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0\
    \0\0\x03\x01\x04\0\0\0\x01\x83\x86\x84";

#[test]
fn streams_end_with_the_task_of_their_connection() {
    for travel in Travel::ALL {
        block_on(async {
            let (transport, _client_end) = travel.pair();
            let settings = StreamSettings {
                h2: H2Settings::default(),
                ..StreamSettings::default()
            };
            let mut streams = ClientStreams::new(transport, settings, BEGUN);
            let NextStream::Opened(stream) = poll_fn(|cx| streams.poll_next(cx)).await else {
                panic!("a stream is opened");
            };
            let stream = ClientStream::from(stream);
            let reference = stream.reference();
            assert!(!reference.has_failed());
            drop(streams);
            assert!(reference.has_failed(), "nobody would carry it");
        })
        .unwrap();
    }
}
