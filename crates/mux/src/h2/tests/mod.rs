//! Connections with streams, against ends that the test moves.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use ballast_h2::{ErrorCode, Event, H2Settings, Role};
use ballast_message::{BodyLength, HeadLimits, Method, Request, Response, Version};
use ballast_worker::{BufferLimits, Deadline, block_on, configure_buffers, spawn_local, yield_now};

use self::end::{End, pair, request, response};
use super::client::{ClientStream, ClientStreams, NextStream, StreamSettings};
use super::connection::{SharedConnection, UNSENT_BYTES_MAX};
use super::drive::UNANSWERED_BYTES_MAX;
use super::server::ServerStreams;
use crate::{Announcement, Limits, ReadError, ServerConnection, WaitLimit, WriteError};

mod end;

const PATIENCE: Option<Duration> = Some(Duration::from_secs(20));
const PIECE: [u8; 8192] = [b'x'; 8192];

/// What our side of a connection from a client does.
#[derive(Clone, Copy)]
struct Answer {
    interim_count: usize,
    body_bytes: usize,
}

/// A body of so many bytes.
fn body(body_bytes: usize) -> Answer {
    Answer {
        interim_count: 0,
        body_bytes,
    }
}

/// The number of a stream, and how the body that was sent on it ended.
type BodyEnd = (u32, Result<(), WriteError>);

/// What a connection from a client has done.
#[derive(Clone)]
struct Served {
    shared: Rc<SharedConnection>,
    /// How each exchange ended.
    ends: Rc<RefCell<Vec<BodyEnd>>>,
    has_ended: Rc<Cell<bool>>,
}

/// Serves a client: each stream gets this answer.
fn serve(settings: StreamSettings, peer: H2Settings, answer: Answer) -> (Served, End) {
    let (transport, end) = pair(Role::Client, peer);
    let mut streams = ClientStreams::new(transport, settings, b"");
    let served = Served {
        shared: Rc::clone(streams.shared()),
        ends: Rc::default(),
        has_ended: Rc::default(),
    };
    let told = served.clone();
    spawn_local(async move {
        loop {
            match poll_fn(|cx| streams.poll_next(cx)).await {
                NextStream::Opened(opened) => {
                    let stream = ClientStream::from(opened);
                    let mut request = Request::new(HeadLimits::default());
                    streams.take_request(&mut request);
                    let ends = Rc::clone(&told.ends);
                    spawn_local(async move {
                        let (number, mut stream) = (stream.number(), stream);
                        let result = give(&mut stream, answer).await;
                        ends.borrow_mut().push((number, result));
                    });
                }
                NextStream::None | NextStream::EndAcknowledged => {}
                NextStream::Ended => break,
            }
        }
        told.has_ended.set(true);
    });
    (served, end)
}

async fn give(stream: &mut ClientStream, answer: Answer) -> Result<(), WriteError> {
    let deadline = Deadline::new();
    let wait = WaitLimit::each(&deadline, PATIENCE);
    let mut sink = stream.duplex().sink;
    for _ in 0..answer.interim_count {
        sink.bodiless_response(&response(103));
        sink.flush(&wait).await?;
    }
    let announcement = Announcement {
        method: Method::Get,
        version: Version::Http2,
        body: BodyLength::Known(answer.body_bytes as u64),
        is_in_memory: false,
        closes: false,
    };
    sink.begin_response(&mut response(200), announcement)
        .unwrap();
    let mut left = answer.body_bytes;
    while left > 0 {
        let piece = &PIECE[..left.min(PIECE.len())];
        sink.body(&wait, piece).await?;
        left -= piece.len();
        // As after each piece that is read elsewhere.
        yield_now().await;
    }
    sink.end_body(&wait, None).await
}

impl Served {
    fn unsent_bytes(&self) -> usize {
        self.shared.state.borrow().unsent_bytes()
    }

    /// The memory of what is written or was.
    fn out_bytes(&self) -> usize {
        self.shared.state.borrow().out.len()
    }

    fn end_count(&self) -> usize {
        self.ends.borrow().len()
    }
}

fn window(bytes: u32) -> H2Settings {
    H2Settings {
        initial_window_bytes: bytes,
        receive_bytes_max: bytes,
        buffer_bytes: bytes,
        ..H2Settings::default()
    }
}

#[test]
fn a_body_waits_for_the_window() {
    block_on(async {
        let settings = StreamSettings::default();
        let (served, mut end) = serve(settings, window(1000), body(2500));
        end.gives_back = false;
        let stream = end.get();
        end.until("a window of it", |end| end.body_bytes(stream) == 1000)
            .await;
        end.settle().await;
        assert_eq!((end.body_bytes(stream), served.end_count()), (1000, 0));
        end.codec.give_back(stream, 1000);
        end.until("two", |end| end.body_bytes(stream) == 2000).await;
        end.codec.give_back(stream, 1000);
        end.until("all", |end| end.ended.contains(&stream)).await;
        assert_eq!(end.body_bytes(stream), 2500);
    })
    .unwrap();
}

#[test]
fn streams_use_the_window_of_their_connection_in_turn() {
    block_on(async {
        const BYTES: usize = 300_000;
        let settings = StreamSettings::default();
        let (_served, mut end) = serve(settings, window(1 << 20), body(BYTES));
        // Without it the connection's window stays at that of the protocol.
        end.hides_acknowledgement = true;
        let [one, other] = [(); 2].map(|()| end.get());
        end.until("the first", |end| end.ended.contains(&one)).await;
        let ahead = BYTES - end.body_bytes(other);
        assert!(ahead <= 65_535 + 2 * 16_384, "{ahead}");
        end.until("the other", |end| end.ended.contains(&other))
            .await;
    })
    .unwrap();
}

/// Notes that a task was woken.
#[derive(Default)]
struct Bell(AtomicBool);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn what_a_stream_does_not_use_of_the_window_goes_to_others_that_wait() {
    block_on(async {
        let (transport, mut end) = pair(Role::Client, window(1 << 20));
        let mut streams = ClientStreams::new(transport, StreamSettings::default(), b"");
        end.hides_acknowledgement = true;
        for _ in 0..3 {
            end.get();
        }
        let mut opened = Vec::new();
        end.until("three streams", |_| {
            let cx = &mut Context::from_waker(Waker::noop());
            if let Poll::Ready(NextStream::Opened(stream)) = streams.poll_next(cx) {
                opened.push(ClientStream::from(stream));
            }
            opened.len() == 3
        })
        .await;
        let nothing = streams.poll_next(&mut Context::from_waker(Waker::noop()));
        assert!(nothing.is_pending(), "all is written");
        let bells = [(); 3].map(|()| Arc::new(Bell::default()));
        let reserve = |stream: &ClientStream, bell: &Arc<Bell>, wanted: usize| {
            let waker = Waker::from(Arc::clone(bell));
            let cx = Context::from_waker(&waker);
            let room = stream.handle().poll_capacity(wanted, &cx);
            room.map(Result::unwrap)
        };
        let all = reserve(&opened[0], &bells[0], 65_535);
        assert_eq!(all, Poll::Ready(65_535));
        for number in [1, 2] {
            assert!(reserve(&opened[number], &bells[number], 10).is_pending());
        }
        assert_eq!(reserve(&opened[0], &bells[0], 1), Poll::Ready(1));
        let deadline = Deadline::new();
        let wait = WaitLimit::each(&deadline, PATIENCE);
        opened[0].duplex().sink.flush(&wait).await.unwrap();
        for number in [1, 2] {
            assert!(bells[number].0.load(Ordering::Relaxed), "{number} waits");
            let bytes = reserve(&opened[number], &bells[number], 10);
            assert_eq!(bytes, Poll::Ready(10));
        }
    })
    .unwrap();
}

#[test]
fn a_reset_ends_the_wait_of_its_stream_alone() {
    block_on(async {
        let settings = StreamSettings::default();
        let (served, mut end) = serve(settings, window(1000), body(2500));
        end.gives_back = false;
        let [one, other] = [(); 2].map(|()| end.get());
        end.until("a window of each", |end| {
            end.body_bytes(one) + end.body_bytes(other) == 2000
        })
        .await;
        end.codec.reset(one, ErrorCode::CANCEL);
        end.until("one has ended", |_| served.end_count() == 1)
            .await;
        {
            let ends = served.ends.borrow();
            assert!(
                matches!(ends[0], (1, Err(WriteError::Broken(_)))),
                "{ends:?}"
            );
        }
        assert_eq!(served.shared.state.borrow().streams.len(), 1);
        end.gives_back = true;
        end.codec.give_back(other, 1000);
        end.until("the other", |end| end.ended.contains(&other))
            .await;
    })
    .unwrap();
}

#[test]
fn streams_end_with_their_connection() {
    block_on(async {
        let settings = StreamSettings::default();
        let (served, mut end) = serve(settings, window(1000), body(2500));
        end.gives_back = false;
        let stream = end.get();
        end.until("a window of it", |end| end.body_bytes(stream) == 1000)
            .await;
        drop(end);
        while !(served.has_ended.get() && served.end_count() == 1) {
            yield_now().await;
        }
        let ends = served.ends.borrow();
        assert!(
            matches!(ends[0], (1, Err(WriteError::Broken(_)))),
            "{ends:?}"
        );
    })
    .unwrap();
}

#[test]
fn a_connection_ends_when_its_client_goes_away_and_its_streams_are_over() {
    block_on(async {
        let settings = StreamSettings::default();
        let (served, mut end) = serve(settings, window(1000), body(2500));
        end.gives_back = false;
        let stream = end.get();
        end.until("a window of it", |end| end.body_bytes(stream) == 1000)
            .await;
        end.codec.go_away(ErrorCode::NO_ERROR);
        end.settle().await;
        assert!(!served.has_ended.get());
        end.gives_back = true;
        end.codec.give_back(stream, 1000);
        end.until("all of it", |end| end.ended.contains(&stream))
            .await;
        end.until("the end", |_| served.has_ended.get()).await;
    })
    .unwrap();
}

#[test]
fn too_many_odd_frames_end_a_connection() {
    block_on(async {
        let settings = StreamSettings {
            glitch_count_max: 3,
            ..StreamSettings::default()
        };
        let (served, mut end) = serve(settings, window(1000), body(2500));
        let stream = end.get();
        end.gives_back = false;
        end.until("a window of it", |end| end.body_bytes(stream) == 1000)
            .await;
        // A smaller initial window is odd.
        for bytes in [900_u32, 800, 700] {
            assert!(!served.has_ended.get());
            let parameter = [&[0, 4][..], &bytes.to_be_bytes()].concat();
            end.send_frame(4, 0, 0, &parameter);
        }
        end.until("told to calm down", |end| {
            end.events.iter().any(|event| {
                matches!(event, Event::GoAway { code, .. } if *code == ErrorCode::ENHANCE_YOUR_CALM)
            })
        })
        .await;
        end.until("the end", |_| {
            served.has_ended.get() && served.end_count() == 1
        })
        .await;
    })
    .unwrap();
}

#[test]
fn bodies_wait_for_a_socket_that_nobody_reads() {
    block_on(async {
        let settings = StreamSettings::default();
        let (served, mut end) = serve(settings, window(1 << 24), body(1 << 20));
        let streams = [(); 10].map(|()| end.get());
        end.until("heads", |end| end.begun.len() == 10).await;
        end.read_bytes_max = 0;
        end.until("no more room", |_| {
            served.unsent_bytes() >= UNSENT_BYTES_MAX
        })
        .await;
        // Read slowly: what was written is not kept.
        end.read_bytes_max = 10_000;
        let mut most = 0;
        end.until("all of it", |end| {
            most = most.max(served.out_bytes());
            streams.iter().all(|stream| end.ended.contains(stream))
        })
        .await;
        assert!(most <= 3 * UNSENT_BYTES_MAX, "{most} bytes");
    })
    .unwrap();
}

#[test]
fn a_client_that_does_not_read_is_not_answered_without_end() {
    block_on(async {
        let settings = StreamSettings::default();
        let (served, mut end) = serve(settings, H2Settings::default(), body(0));
        end.read_bytes_max = 0;
        let mut opened = 0;
        let mut idle = 0;
        // Until nothing is taken of what it says.
        end.until("it waits", |end| {
            let unread = end.out.len();
            idle = if unread > 1 << 16 { idle + 1 } else { 0 };
            while end.out.len() < 1 << 17 {
                // An empty head of a new stream: GET, http, and an authority.
                let stream = 2 * opened + 1;
                opened += 1;
                end.send_frame(1, 5, stream, b"\x82\x86\x84\x01\x01a");
            }
            let out_bytes = served.out_bytes();
            assert!(out_bytes <= 3 * UNANSWERED_BYTES_MAX, "{out_bytes} bytes");
            idle > 2000
        })
        .await;
        assert!(served.unsent_bytes() > 0);
        assert!(served.end_count() > 1000, "{}", served.end_count());
    })
    .unwrap();
}

#[test]
fn interim_responses_wait_for_room() {
    block_on(async {
        const MANY: Answer = Answer {
            interim_count: 200_000,
            body_bytes: 0,
        };
        let settings = StreamSettings::default();
        let (served, mut end) = serve(settings, H2Settings::default(), MANY);
        end.read_bytes_max = 0;
        let stream = end.get();
        end.until("no room", |_| served.unsent_bytes() >= UNSENT_BYTES_MAX)
            .await;
        for _ in 0..100 {
            end.advance();
            yield_now().await;
        }
        assert!(served.unsent_bytes() < 2 * UNSENT_BYTES_MAX);
        end.read_bytes_max = 1 << 20;
        end.until("all", |end| end.ended.contains(&stream)).await;
    })
    .unwrap();
}

#[test]
fn a_flood_leaves_other_tasks_their_turns() {
    block_on(async {
        let (transport, mut end) = pair(Role::Client, H2Settings::default());
        let settings = StreamSettings {
            h2: H2Settings {
                frame_count_max: 10,
                ..H2Settings::default()
            },
            ..StreamSettings::default()
        };
        let mut streams = ClientStreams::new(transport, settings, b"");
        for _ in 0..100 {
            // Answers to questions that nobody asked: each is reported.
            end.send_frame(6, 1, 0, b"anything");
        }
        let bell = Arc::new(Bell::default());
        let waker = Waker::from(Arc::clone(&bell));
        let cx = &mut Context::from_waker(&waker);
        let (mut reports, mut turns) = (0, 0);
        while reports < 100 {
            end.advance();
            let before = reports;
            bell.0.store(false, Ordering::Relaxed);
            while let Poll::Ready(next) = streams.poll_next(cx) {
                assert!(matches!(next, NextStream::None), "{next:?}");
                reports += 1;
            }
            assert!(reports - before <= 10, "{reports} after {before}");
            turns += 1;
            assert!(turns < 1000);
            yield_now().await;
        }
        assert!(turns >= 10);
    })
    .unwrap();
}

// === towards servers ===

/// A connection to a server, its driver not started.
fn server() -> (ServerStreams, super::server::StreamDriver, End) {
    let (transport, end) = pair(Role::Server, H2Settings::default());
    let (streams, driver) = ServerStreams::start(transport, StreamSettings::default(), b"");
    (streams, driver, end)
}

async fn is_unprocessed(mut connection: ServerConnection) -> bool {
    let deadline = Deadline::new();
    let wait = WaitLimit::each(&deadline, PATIENCE);
    connection.begin_request(&request(), BodyLength::None, None);
    let mut source = connection.duplex().source;
    let mut response = Response::new(HeadLimits::default());
    let received = source.response(&wait, Method::Get, &mut response).await;
    assert!(matches!(received, Err(ReadError::Closed)), "{received:?}");
    source.is_unprocessed()
}

/// How a server ends a connection.
const ENDINGS: [fn(&mut End); 3] = [
    |end| end.close(),
    |end| end.codec.go_away(ErrorCode::NO_ERROR),
    |end| end.send_frame(0, 0, 0, b"a body of no stream"),
];

#[test]
fn who_keeps_a_connection_without_a_stream_hears_of_its_end() {
    for ending in ENDINGS {
        block_on(async {
            let (streams, mut driver, mut end) = server();
            let mut kept = ServerConnection::on_stream(&streams, Limits::default());
            let _carried = spawn_local(async move { poll_fn(|cx| driver.poll(cx)).await });
            let heard = spawn_local(async move { kept.duplex().peer.ended().await });
            end.settle().await;
            assert!(!heard.is_finished());
            ending(&mut end);
            end.until("its end is heard", |_| heard.is_finished()).await;
        })
        .unwrap();
    }
}

#[test]
fn a_request_on_a_connection_that_has_ended_is_unprocessed() {
    for ending in ENDINGS {
        block_on(async {
            let (streams, mut driver, mut end) = server();
            let carried = spawn_local(async move { poll_fn(|cx| driver.poll(cx)).await });
            let planned = ServerConnection::on_stream(&streams, Limits::default());
            assert_eq!(streams.used_count(), 1);
            end.settle().await;
            ending(&mut end);
            end.until("the driver ends", |_| carried.is_finished())
                .await;
            assert_eq!(streams.free_count(), 0);
            assert!(is_unprocessed(planned).await);
            assert_eq!(streams.used_count(), 0);
        })
        .unwrap();
    }
}

#[test]
fn a_connection_whose_driver_is_gone_carries_nothing() {
    block_on(async {
        let (streams, driver, _end) = server();
        let planned = ServerConnection::on_stream(&streams, Limits::default());
        drop(driver);
        assert_eq!(streams.free_count(), 0);
        assert!(is_unprocessed(planned).await);
    })
    .unwrap();
}

/// What is written then fails, before what came is read.
#[test]
fn a_server_may_answer_and_close_within_a_request() {
    block_on(async {
        let (streams, mut driver, mut end) = server();
        let _carried = spawn_local(async move { poll_fn(|cx| driver.poll(cx)).await });
        end.settle().await;
        let mut connection = ServerConnection::on_stream(&streams, Limits::default());
        connection.begin_request(&request(), BodyLength::Chunked, None);
        let deadline = Deadline::new();
        let wait = WaitLimit::each(&deadline, PATIENCE);
        let mut duplex = connection.duplex();
        duplex.sink.flush(&wait).await.unwrap();
        end.until("the head comes", |end| !end.begun.is_empty())
            .await;
        // END_STREAM and END_HEADERS; `:status 200`.
        end.send_frame(1, 5, 1, b"\x88");
        end.advance();
        drop(end);
        // No turn for the driver between.
        let _ = duplex.sink.body(&wait, b"body").await;
        let _ = duplex.sink.flush(&wait).await;
        let mut response = Response::new(HeadLimits::default());
        let received = duplex.source.response(&wait, Method::Get, &mut response);
        received.await.unwrap();
        assert_eq!(response.status(), 200);
    })
    .unwrap();
}

#[test]
fn a_server_that_does_not_read_is_not_waited_for_without_end() {
    block_on(async {
        let (streams, mut driver, mut end) = server();
        let carried = spawn_local(async move { poll_fn(|cx| driver.poll(cx)).await });
        end.settle().await;
        end.read_bytes_max = 0;
        let mut connection = ServerConnection::on_stream(&streams, Limits::default());
        connection.begin_request(&request(), BodyLength::Chunked, None);
        let deadline = Deadline::new();
        let wait = WaitLimit::each(&deadline, Some(Duration::from_millis(50)));
        end.send_frame(8, 0, 0, &(1_u32 << 30).to_be_bytes());
        end.send_frame(8, 0, 1, &(1_u32 << 30).to_be_bytes());
        end.advance();
        loop {
            let sent = connection.duplex().sink.body(&wait, &PIECE).await;
            if let Err(error) = sent {
                assert!(matches!(error, WriteError::TimedOut), "{error:?}");
                break;
            }
        }
        drop(connection);
        streams.end();
        end.until("the driver ends", |_| carried.is_finished())
            .await;
    })
    .unwrap();
}

/// What is lost of a body does not look like its end.
#[test]
fn a_body_without_buffers_is_broken_and_not_cut_short() {
    block_on(async {
        let (streams, mut driver, mut end) = server();
        let _carried = spawn_local(async move { poll_fn(|cx| driver.poll(cx)).await });
        end.settle().await;
        let mut connection = ServerConnection::on_stream(&streams, Limits::default());
        connection.begin_request(&request(), BodyLength::None, None);
        let deadline = Deadline::new();
        let wait = WaitLimit::each(&deadline, PATIENCE);
        let mut duplex = connection.duplex();
        duplex.sink.flush(&wait).await.unwrap();
        end.until("the head comes", |end| !end.begun.is_empty())
            .await;
        // END_HEADERS; `:status 200`.
        end.send_frame(1, 4, 1, b"\x88");
        end.advance();
        let mut response = Response::new(HeadLimits::default());
        let received = duplex.source.response(&wait, Method::Get, &mut response);
        received.await.unwrap();
        // What is received first has the only one.
        configure_buffers(BufferLimits {
            in_use_max: 1,
            ..BufferLimits::default()
        });
        end.send_frame(0, 0, 1, b"lost");
        end.advance();
        end.settle().await;
        configure_buffers(BufferLimits::default());
        // END_STREAM.
        end.send_frame(0, 1, 1, b"kept");
        end.advance();
        let piece = duplex.source.piece(&wait).await;
        assert!(matches!(piece, Err(ReadError::Broken(_))), "{piece:?}");
    })
    .unwrap();
}
