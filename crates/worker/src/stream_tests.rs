//! Streams and acceptors on loopback.

use std::future::poll_fn;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

use ballast_net::{self as net, Address, ConnectOptions, ErrorClass, ListenOptions, Pipe};

use super::*;

/// Long enough that only a hang reaches it.
const HANG: Duration = Duration::from_secs(10);

fn acceptor() -> Acceptor {
    let any = Address::Ip("127.0.0.1:0".parse().unwrap());
    let bound = net::listen(&any, &ListenOptions::default()).unwrap();
    Acceptor::new(Arc::new(bound.fd)).unwrap()
}

async fn accept_one(acceptor: &Acceptor) -> Stream {
    let mut accepted = Vec::new();
    let taken = timeout(HANG, acceptor.accept_batch(1, &mut accepted))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(taken, 1);
    accepted.pop().unwrap().into_stream().unwrap().0
}

/// A blocking client, and the stream that serves it.
async fn pair() -> (TcpStream, Stream) {
    let acceptor = acceptor();
    let client = TcpStream::connect(acceptor.address().ip().unwrap()).unwrap();
    client.set_nodelay(true).unwrap();
    (client, accept_one(&acceptor).await)
}

// === The budget of a request ===

/// Forwards each piece as it comes, as the data path does.
async fn relay(client: Stream, server: Stream) {
    loop {
        for (from, to) in [(&client, &server), (&server, &client)] {
            from.readable().await.unwrap();
            let mut buffer = Buffer::take();
            let n = from.try_read(buffer.spare_mut()).unwrap();
            if n == 0 {
                return;
            }
            buffer.advance(n);
            to.write_all(buffer.filled()).await.unwrap();
        }
    }
}

#[test]
fn a_keep_alive_request_costs_four_calls_and_none_in_vain() {
    const CLIENTS: u64 = 4;
    const REQUESTS: u64 = 50;
    let origin = TcpListener::bind("127.0.0.1:0").unwrap();
    let target = Address::Ip(origin.local_addr().unwrap());
    std::thread::spawn(move || {
        for connection in origin.incoming() {
            let mut connection = connection.unwrap();
            connection.set_nodelay(true).unwrap();
            std::thread::spawn(move || {
                let mut bytes = [0; 4096];
                while connection.read(&mut bytes).unwrap_or(0) > 0 {
                    connection.write_all(b"response").unwrap();
                }
            });
        }
    });
    block_on(async {
        let acceptor = acceptor();
        let ip = acceptor.address().ip().unwrap();
        let clients: Vec<_> = (0..CLIENTS)
            .map(|_| {
                std::thread::spawn(move || {
                    let mut client = TcpStream::connect(ip).unwrap();
                    client.set_nodelay(true).unwrap();
                    for _ in 0..REQUESTS {
                        client.write_all(b"request").unwrap();
                        let mut bytes = [0; 8];
                        client.read_exact(&mut bytes).unwrap();
                    }
                })
            })
            .collect();
        let before = io_counts();
        let mut tasks = Vec::new();
        for _ in 0..CLIENTS {
            let client = accept_one(&acceptor).await;
            let server = Stream::connect(&target, &ConnectOptions::default())
                .await
                .unwrap();
            tasks.push(spawn_local(relay(client, server)));
        }
        for task in tasks {
            timeout(HANG, task.join()).await.unwrap().unwrap();
        }
        let after = io_counts();
        // The additional read of each client finds the end.
        assert_eq!(
            after.receives - before.receives,
            CLIENTS * (2 * REQUESTS + 1)
        );
        assert_eq!(after.sends - before.sends, CLIENTS * 2 * REQUESTS);
        assert_eq!(after.receives_in_vain, before.receives_in_vain);
        assert_eq!(after.sends_in_vain, before.sends_in_vain);
        assert_eq!(buffer_use().in_use, 0, "an idle connection holds no buffer");
        assert!(buffer_use().made <= CLIENTS, "{:?}", buffer_use());
        for client in clients {
            client.join().unwrap();
        }
    })
    .unwrap();
}

// === Stream ===

#[test]
fn nothing_is_asked_of_the_kernel_when_nothing_is_known() {
    block_on(async {
        let (mut client, stream) = pair().await;
        let before = io_counts();
        let mut bytes = [0; 16];
        assert_eq!(
            stream.try_read(&mut bytes).unwrap_err().kind(),
            std::io::ErrorKind::WouldBlock
        );
        assert_eq!(io_counts(), before);
        assert!(!stream.is_readable());
        client.write_all(b"abc").unwrap();
        timeout(HANG, stream.readable()).await.unwrap().unwrap();
        assert!(stream.is_readable());
        assert_eq!(stream.try_read(&mut bytes).unwrap(), 3);
        // The short read has shown that nothing is left.
        assert!(!stream.is_readable());
        assert!(
            timeout(Duration::from_millis(5), stream.readable())
                .await
                .is_err()
        );
        // A read that fills its buffer has not shown that.
        client.write_all(b"abcdef").unwrap();
        timeout(HANG, stream.readable()).await.unwrap().unwrap();
        assert_eq!(stream.try_read(&mut bytes[..4]).unwrap(), 4);
        assert!(stream.is_readable());
        assert_eq!(stream.try_read(&mut bytes[..4]).unwrap(), 2);
        assert!(!stream.is_readable());
        assert_eq!(io_counts().receives_in_vain, before.receives_in_vain);
    })
    .unwrap();
}

#[test]
fn the_end_stays_readable() {
    block_on(async {
        let (mut client, stream) = pair().await;
        client.write_all(b"last").unwrap();
        drop(client);
        let mut bytes = [0; 64];
        assert_eq!(
            timeout(HANG, stream.read(&mut bytes))
                .await
                .unwrap()
                .unwrap(),
            4
        );
        for _ in 0..3 {
            assert_eq!(
                timeout(HANG, stream.read(&mut bytes))
                    .await
                    .unwrap()
                    .unwrap(),
                0
            );
        }
    })
    .unwrap();
}

#[test]
fn a_close_is_seen_while_bytes_wait_and_the_bytes_are_not_lost() {
    block_on(async {
        let (mut client, stream) = pair().await;
        client.write_all(b"next request").unwrap();
        // Bytes are not an end.
        assert!(
            timeout(Duration::from_millis(5), stream.read_closed())
                .await
                .is_err()
        );
        assert!(stream.is_readable(), "what waits is still known");
        client.write_all(b" more").unwrap();
        assert!(
            timeout(Duration::from_millis(5), stream.read_closed())
                .await
                .is_err()
        );
        client.shutdown(std::net::Shutdown::Write).unwrap();
        timeout(HANG, stream.read_closed()).await.unwrap().unwrap();
        let mut bytes = [0; 64];
        let n = timeout(HANG, stream.read(&mut bytes))
            .await
            .unwrap()
            .unwrap();
        assert_eq!(&bytes[..n], b"next request more");
        assert_eq!(
            timeout(HANG, stream.read(&mut bytes))
                .await
                .unwrap()
                .unwrap(),
            0
        );
    })
    .unwrap();
}

#[test]
fn what_was_known_readable_is_read_once_without_a_report() {
    block_on(async {
        let (mut client, stream) = pair().await;
        client.write_all(b"x").unwrap();
        assert!(
            timeout(Duration::from_millis(5), stream.read_closed())
                .await
                .is_err()
        );
        let before = io_counts();
        let mut bytes = [0; 8];
        assert_eq!(stream.try_read(&mut bytes).unwrap(), 1);
        assert!(stream.try_read(&mut bytes).is_err());
        assert_eq!(io_counts().receives - before.receives, 1);
        assert_eq!(io_counts().receives_in_vain, before.receives_in_vain);
    })
    .unwrap();
}

#[test]
fn a_full_peer_makes_the_writer_wait() {
    block_on(async {
        let (client, stream) = pair().await;
        let piece = vec![7_u8; 1 << 16];
        let mut written = 0;
        let refused = loop {
            match stream.try_write_vectored(&[
                std::io::IoSlice::new(&piece[..100]),
                std::io::IoSlice::new(&piece[100..]),
            ]) {
                Ok(n) => written += n,
                Err(e) => break e,
            }
        };
        assert_eq!(refused.kind(), std::io::ErrorKind::WouldBlock);
        assert!(
            timeout(Duration::from_millis(5), stream.writable())
                .await
                .is_err()
        );
        let reader = std::thread::spawn(move || {
            let mut all = Vec::new();
            let mut client = client;
            client.read_to_end(&mut all).unwrap();
            all.len()
        });
        timeout(HANG, stream.write_all(&piece))
            .await
            .unwrap()
            .unwrap();
        stream.shutdown_write().unwrap();
        assert_eq!(reader.join().unwrap(), written + piece.len());
    })
    .unwrap();
}

#[test]
fn connecting_tells_the_refusal_and_its_kind() {
    block_on(async {
        let gone = TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap();
        let target = Address::Ip(gone);
        let error = timeout(HANG, Stream::connect(&target, &ConnectOptions::default()))
            .await
            .unwrap()
            .unwrap_err();
        assert_eq!(
            (error.call(), error.kind()),
            ("connect", ErrorClass::Refused)
        );
        assert_eq!(error.object(), gone.to_string());
    })
    .unwrap();
}

#[test]
fn no_delay_is_set_before_the_second_send_on_a_connection_that_was_opened() {
    block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let target = Address::Ip(listener.local_addr().unwrap());
        let options = ConnectOptions::default();
        let connect = || Stream::connect(&target, &options);
        let is_set = |fd: BorrowedFd<'_>| {
            let socket = TcpStream::from(fd.try_clone_to_owned().unwrap());
            socket.nodelay().unwrap()
        };
        let stream = connect().await.unwrap();
        assert_eq!(stream.try_write(b"one").unwrap(), 3);
        assert!(
            !is_set(stream.as_fd()),
            "nothing is on its way that would delay it"
        );
        assert_eq!(stream.try_write(b"two").unwrap(), 3);
        assert!(is_set(stream.as_fd()));
        // Whoever takes the socket need not know.
        let fd = connect().await.unwrap().into_fd();
        assert!(is_set(fd.as_fd()));
        // The first bytes do not wait for the end of the turn, the next ones do.
        let stream = connect().await.unwrap();
        let queues = spawn_local(async move {
            let first = queue_for_turn_end(&stream, b"one").await;
            stream.write_all(b"one").await.unwrap();
            (first, queue_for_turn_end(&stream, b"two").await)
        });
        assert_eq!(queues.join().await, Ok((false, true)));
    })
    .unwrap();
}

#[test]
fn unix_streams_are_streams() {
    block_on(async {
        let dir = tempfile::tempdir().unwrap();
        let address = Address::Unix(dir.path().join("s"));
        let bound = net::listen(&address, &ListenOptions::default()).unwrap();
        let acceptor = Acceptor::new(Arc::new(bound.fd)).unwrap();
        let client = Stream::connect(&address, &ConnectOptions::default())
            .await
            .unwrap();
        let server = accept_one(&acceptor).await;
        client.write_all(b"over unix").await.unwrap();
        let mut bytes = [0; 32];
        let n = timeout(HANG, server.read(&mut bytes))
            .await
            .unwrap()
            .unwrap();
        assert_eq!(&bytes[..n], b"over unix");
        assert_eq!(server.peer_address().unwrap(), Address::Unnamed);
    })
    .unwrap();
}

#[test]
fn spliced_bytes_arrive() {
    block_on(async {
        let (mut client, from) = pair().await;
        let (mut server, to) = pair().await;
        let mut pipe = Pipe::new(None).unwrap();
        client.write_all(&[3; 5000]).unwrap();
        drop(client);
        let mut moved = 0;
        loop {
            timeout(HANG, from.readable()).await.unwrap().unwrap();
            match from.try_splice_into(&mut pipe, 1 << 16) {
                Ok(0) => break,
                Ok(n) => moved += n,
                Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => continue,
                Err(e) => panic!("{e}"),
            }
            while pipe.held_bytes() > 0 {
                timeout(HANG, to.writable()).await.unwrap().unwrap();
                to.try_splice_from(&mut pipe, false).unwrap();
            }
        }
        assert_eq!(moved, 5000);
        drop(to);
        let mut all = Vec::new();
        server.read_to_end(&mut all).unwrap();
        assert_eq!(all, vec![3; 5000]);
    })
    .unwrap();
}

// === Acceptor ===

#[test]
fn batches_pauses_and_resumptions() {
    block_on(async {
        let acceptor = Rc::new(acceptor());
        let ip = acceptor.address().ip().unwrap();
        let clients: Vec<_> = (0..5).map(|_| TcpStream::connect(ip).unwrap()).collect();
        let mut accepted = Vec::new();
        assert_eq!(acceptor.accept_batch(2, &mut accepted).await.unwrap(), 2);
        acceptor.pause();
        let paused = timeout(
            Duration::from_millis(5),
            acceptor.accept_batch(9, &mut accepted),
        );
        assert!(paused.await.is_err());
        assert_eq!(accepted.len(), 2);
        let resumer = Rc::clone(&acceptor);
        spawn_local(async move { resumer.resume() });
        let taken = timeout(HANG, acceptor.accept_batch(9, &mut accepted))
            .await
            .unwrap()
            .unwrap();
        assert_eq!(taken, 3);
        let peers: Vec<_> = accepted.iter().map(|a| a.peer.ip().unwrap()).collect();
        let own: Vec<_> = clients.iter().map(|c| c.local_addr().unwrap()).collect();
        assert_eq!(peers, own);
    })
    .unwrap();
}

// === The end of the turn ===

/// Stores `text` from a task; returns whether it was accepted.
async fn queue_for_turn_end(stream: &Stream, text: &[u8]) -> bool {
    let mut bytes = text.to_vec();
    poll_fn(|cx| Poll::Ready(stream.queue_for_turn_end(&mut bytes, cx))).await
}

#[test]
fn who_reads_what_is_there_already_lets_others_go_first() {
    const PIECES: usize = 16;
    block_on(async {
        let (mut client, stream) = pair().await;
        client.write_all(&[b'x'; PIECES * 1024]).unwrap();
        let turns = Rc::new(std::cell::Cell::new(0));
        let others = Rc::clone(&turns);
        let other = spawn_local(async move {
            loop {
                others.set(others.get() + 1);
                yield_now().await;
            }
        });
        let mut bytes = [0; 1024];
        let mut came = 0;
        while came < PIECES * 1024 {
            came += timeout(HANG, stream.read(&mut bytes))
                .await
                .unwrap()
                .unwrap();
        }
        other.abort();
        assert!(turns.get() >= PIECES - 1, "{} turns", turns.get());
    })
    .unwrap();
}

#[test]
fn what_is_put_down_leaves_when_every_task_has_had_its_turn() {
    block_on(async {
        let (mut first_client, first) = pair().await;
        let (mut second_client, second) = pair().await;
        assert!(!queue_for_turn_end(&first, b"no task is polled").await);
        let sends = || io_counts().sends;
        let before = sends();
        let tasks = [first, second].map(|stream| {
            spawn_local(async move {
                assert!(queue_for_turn_end(&stream, b"one").await);
                assert!(
                    stream.has_unsent() && sends() == before,
                    "nothing has left yet"
                );
                assert!(!queue_for_turn_end(&stream, b"two").await, "one at a time");
                yield_now().await;
                assert!(
                    sends() == before,
                    "a turn goes on while a task has something to do"
                );
                stream.readable().await.unwrap();
                assert!(!stream.has_unsent());
                assert!(
                    !queue_for_turn_end(&stream, b"three").await,
                    "the peer has spoken"
                );
            })
        });
        for client in [&mut first_client, &mut second_client] {
            // The tasks of this thread run while it sleeps, so it must not block.
            client.set_nonblocking(true).unwrap();
            let mut bytes = [0; 3];
            while client.read(&mut bytes).is_err() {
                sleep(Duration::from_millis(1)).await;
            }
            assert_eq!(&bytes, b"one");
            client.write_all(b"x").unwrap();
        }
        for task in tasks {
            task.join().await.unwrap();
        }
        assert_eq!(sends() - before, 2);
    })
    .unwrap();
}

#[test]
fn what_was_put_down_goes_before_what_is_written() {
    block_on(async {
        let (mut client, stream) = pair().await;
        let task = spawn_local(async move {
            assert!(queue_for_turn_end(&stream, b"one ").await);
            stream.write_all(b"two ").await.unwrap();
            assert!(queue_for_turn_end(&stream, b"three").await);
            stream.shutdown_write().unwrap();
        });
        task.join().await.unwrap();
        let mut text = String::new();
        client.read_to_string(&mut text).unwrap();
        assert_eq!(text, "one two three");
    })
    .unwrap();
}

#[test]
fn a_stream_that_is_dropped_still_says_what_it_put_down() {
    block_on(async {
        let (mut client, stream) = pair().await;
        let task = spawn_local(async move { assert!(queue_for_turn_end(&stream, b"bye").await) });
        task.join().await.unwrap();
        sleep(Duration::from_millis(1)).await;
        let mut text = String::new();
        client.read_to_string(&mut text).unwrap();
        assert_eq!(text, "bye");
    })
    .unwrap();
}

#[test]
fn who_waits_for_an_answer_sends_what_there_was_no_room_for() {
    block_on(async {
        let (mut client, stream) = pair().await;
        let task = spawn_local(async move {
            let filler = [b'f'; 65_536];
            let mut filled = 0;
            while let Ok(count) = stream.try_write(&filler) {
                filled += count;
            }
            assert!(queue_for_turn_end(&stream, b"last").await);
            stream.readable().await.unwrap();
            filled
        });
        let reader = std::thread::spawn(move || {
            let mut all = Vec::new();
            let mut bytes = [0; 65_536];
            while !all.ends_with(b"last") {
                let count = client.read(&mut bytes).unwrap();
                all.extend_from_slice(&bytes[..count]);
            }
            client.write_all(b"x").unwrap();
            all.len()
        });
        let filled = timeout(HANG, task.join()).await.unwrap().unwrap();
        assert_eq!(reader.join().unwrap(), filled + 4);
    })
    .unwrap();
}

#[test]
fn who_waits_for_an_answer_hears_that_nothing_could_be_sent() {
    block_on(async {
        let (client, stream) = pair().await;
        let task = spawn_local(async move {
            assert!(queue_for_turn_end(&stream, b"to nobody").await);
            // Nothing was noticed yet: the turn continues, and the peer resets before its end.
            net::set_linger_zero(&client).unwrap();
            drop(client);
            let heard = stream.readable().await;
            // The failed send has consumed the error: only the end is left to read.
            heard.is_err() || !matches!(stream.try_read(&mut [0; 8]), Ok(1..))
        });
        assert!(timeout(HANG, task.join()).await.unwrap().unwrap());
    })
    .unwrap();
}

// === When the kernel is asked to watch ===

/// A connection as it is served: accepted, and not watched yet.
async fn unwatched_pair() -> (TcpStream, Stream) {
    let acceptor = acceptor();
    let client = TcpStream::connect(acceptor.address().ip().unwrap()).unwrap();
    client.set_nodelay(true).unwrap();
    let mut accepted = Vec::new();
    acceptor.accept_batch(1, &mut accepted).await.unwrap();
    (client, Stream::accepted(accepted.pop().unwrap().fd))
}

#[test]
fn what_came_with_the_connection_is_read_without_a_report() {
    block_on(async {
        let (mut client, stream) = unwatched_pair().await;
        client.write_all(b"request").unwrap();
        let before = io_counts();
        let mut bytes = [0; 64];
        assert!(stream.is_readable(), "expected until the kernel says no");
        assert_eq!(stream.try_read(&mut bytes).unwrap(), 7);
        assert!(!stream.is_readable());
        assert_eq!(stream.try_write(b"response").unwrap(), 8);
        let now = io_counts();
        assert_eq!(
            (
                now.receives - before.receives,
                now.receives_in_vain - before.receives_in_vain,
                now.sends - before.sends
            ),
            (1, 0, 1)
        );
    })
    .unwrap();
}

#[test]
fn what_comes_later_is_reported() {
    block_on(async {
        let (mut client, stream) = unwatched_pair().await;
        let mut bytes = [0; 64];
        let error = stream.try_read(&mut bytes).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock);
        let later = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(20));
            client.write_all(b"late").unwrap();
            client
        });
        assert_eq!(
            timeout(HANG, stream.read(&mut bytes))
                .await
                .unwrap()
                .unwrap(),
            4
        );
        drop(later.join().unwrap());
        assert_eq!(
            timeout(HANG, stream.read(&mut bytes))
                .await
                .unwrap()
                .unwrap(),
            0
        );
    })
    .unwrap();
}

#[test]
fn who_waits_for_both_directions_hears_of_both() {
    block_on(async {
        let (mut client, stream) = unwatched_pair().await;
        // The kernel is asked to watch for reading first, and for writing only when there is no
        // room.
        let heap = vec![b'x'; 1 << 20];
        let written = async {
            let mut left = 16 * heap.len();
            while left > 0 {
                match stream.try_write(&heap[..left.min(heap.len())]) {
                    Ok(count) => left -= count,
                    Err(_) => stream.writable().await.unwrap(),
                }
            }
        };
        let heard = async {
            let mut bytes = [0; 64];
            stream.read(&mut bytes).await.unwrap()
        };
        let total = 16 * heap.len();
        let peer = std::thread::spawn(move || {
            // The writer fills the socket while the reader waits; then the peer sends, then it
            // reads.
            std::thread::sleep(Duration::from_millis(30));
            client.write_all(b"stop").unwrap();
            let mut bytes = vec![0; 1 << 16];
            let mut read = 0;
            while read < total {
                read += client.read(&mut bytes).unwrap();
            }
            client
        });
        let both = async { join!(heard, written).0 };
        assert_eq!(timeout(HANG, both).await.unwrap(), 4);
        drop(peer.join().unwrap());
    })
    .unwrap();
}

#[test]
fn a_wait_to_read_outlives_the_first_wait_for_room() {
    block_on(async {
        let (mut client, stream) = unwatched_pair().await;
        let heap = vec![b'x'; 1 << 20];
        // The task waits to read, then for room, and polls neither again until it is woken.
        poll_fn(|cx| {
            stream.try_read(&mut [0]).unwrap_err();
            assert!(stream.poll_readable(cx).is_pending());
            Poll::Ready(())
        })
        .await;
        poll_fn(|cx| {
            while stream.try_write(&heap).is_ok() {}
            assert!(stream.poll_writable(cx).is_pending());
            Poll::Ready(())
        })
        .await;
        let peer = std::thread::spawn(move || {
            // The wake-ups of the waits themselves are over by then.
            std::thread::sleep(Duration::from_millis(30));
            client.write_all(b"ping").unwrap();
            client
        });
        let begun = Instant::now();
        let woken = poll_fn(|_| match stream.is_readable() {
            true => Poll::Ready(()),
            false => Poll::Pending,
        });
        timeout(HANG, woken).await.unwrap();
        assert!(begun.elapsed() < HANG, "only the limit woke it");
        drop(peer.join().unwrap());
    })
    .unwrap();
}

#[test]
fn what_was_held_back_for_more_leaves_when_pushed() {
    block_on(async {
        let (client, stream) = pair().await;
        client
            .set_read_timeout(Some(Duration::from_millis(50)))
            .unwrap();
        let mut client = client;
        stream.try_write_more(b"first").unwrap();
        let mut bytes = [0; 64];
        assert!(
            client.read(&mut bytes).is_err(),
            "the kernel waits for more"
        );
        stream.push();
        assert_eq!(client.read(&mut bytes).unwrap(), 5);
    })
    .unwrap();
}

/// A task that counts nothing: what its wakers keep alive.
struct Woken;

impl Wake for Woken {
    fn wake(self: Arc<Self>) {}
}

#[test]
fn a_stream_that_waits_for_another_task_keeps_none() {
    block_on(async {
        let (client, stream) = pair().await;
        let task = Arc::new(Woken);
        let waker = Waker::from(Arc::clone(&task));
        let before = Arc::strong_count(&task);
        let stream = spawn_local(async move {
            let mut bytes = b"answer".to_vec();
            assert!(stream.queue_for_turn_end(&mut bytes, &Context::from_waker(&waker)));
            stream.forget_task();
            assert!(stream.has_unsent());
            drop(waker);
            stream
        });
        let stream = stream.join().await.unwrap();
        assert_eq!(
            Arc::strong_count(&task),
            before,
            "it is to be woken, should the send fail"
        );
        while stream.has_unsent() {
            sleep(Duration::from_millis(1)).await;
        }
        stream.forget_task();
        assert_eq!(Arc::strong_count(&task), before - 1);
        drop(client);
    })
    .unwrap();
}
