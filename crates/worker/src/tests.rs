//! Workers seen from loopback.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::{Duration, Instant};

use ballast_net::{self as net, Address, ConnectOptions, Kind, ListenOptions, PipePool};

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

/// A client on its own thread's terms, and the stream that serves it.
async fn pair() -> (TcpStream, Stream) {
    let acceptor = acceptor();
    let client = TcpStream::connect(acceptor.address().ip().unwrap()).unwrap();
    client.set_nodelay(true).unwrap();
    (client, accept_one(&acceptor).await)
}

// === The budget of a request ===

/// Passes each piece on as it comes, as the data path does.
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
        // The one more read of each client is its end.
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
        // A read that fills its buffer has not.
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
        // Bytes are no end.
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
        assert_eq!((error.call(), error.kind()), ("connect", Kind::Refused));
        assert_eq!(error.object(), gone.to_string());
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
        let mut pool = PipePool::new(4, 4, None);
        let mut pipe = pool.take().unwrap();
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
            while pipe.held() > 0 {
                timeout(HANG, to.writable()).await.unwrap().unwrap();
                to.try_splice_from(&mut pipe, false).unwrap();
            }
        }
        pool.give_back(pipe);
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

// === Deadline ===

#[test]
fn a_deadline_moves_both_ways() {
    block_on(async {
        let deadline = Deadline::new();
        let start = Instant::now();
        deadline.set_after(Some(Duration::from_millis(5)));
        let early = deadline
            .guard(async {
                // Later: the timer, armed for 5 ms, must not end this.
                deadline.set_after(Some(HANG));
                sleep(Duration::from_millis(15)).await;
                1
            })
            .await;
        assert_eq!(early, Ok(1));
        // Earlier than the timer is armed for.
        deadline.set_after(Some(Duration::from_millis(5)));
        assert_eq!(
            deadline.guard(std::future::pending::<()>()).await,
            Err(Expired)
        );
        assert!(start.elapsed() >= Duration::from_millis(20));
        assert!(start.elapsed() < HANG);
        // Expired stays expired until moved.
        assert_eq!(
            deadline.guard(std::future::pending::<()>()).await,
            Err(Expired)
        );
        deadline.clear();
        assert_eq!(deadline.wanted(), None);
        assert!(
            timeout(Duration::from_millis(5), deadline.expired())
                .await
                .is_err()
        );
        // What is ready is never late.
        deadline.set(start);
        assert_eq!(deadline.guard(async { 2 }).await, Ok(2));
        deadline.release();
    })
    .unwrap();
}

#[test]
fn a_deadline_shortened_from_inside_ends_the_wait() {
    block_on(async {
        let deadline = Deadline::new();
        deadline.set_after(Some(HANG));
        let start = Instant::now();
        let guarded = deadline.guard(async {
            sleep(Duration::from_millis(2)).await;
            deadline.set_after(Some(Duration::from_millis(2)));
            std::future::pending::<()>().await;
        });
        assert_eq!(guarded.await, Err(Expired));
        assert!(start.elapsed() < HANG / 2);
    })
    .unwrap();
}

#[test]
fn a_deadline_wakes_the_task_that_waits_now() {
    block_on(async {
        let deadline = Rc::new(Deadline::new());
        deadline.set_after(Some(Duration::from_millis(20)));
        // Polled once by this task, then awaited by another: that one is woken.
        let pending = poll_fn(|cx| Poll::Ready(deadline.poll_expired(cx).is_pending())).await;
        assert!(pending);
        let other = Rc::clone(&deadline);
        let task = spawn_local(async move { other.expired().await });
        timeout(HANG, task.join()).await.unwrap().unwrap();
    })
    .unwrap();
}

#[test]
fn intervals_beat() {
    block_on(async {
        let mut interval = Interval::every(Duration::from_millis(2));
        let start = Instant::now();
        for _ in 0..3 {
            interval.tick().await;
        }
        assert!(start.elapsed() >= Duration::from_millis(6));
    })
    .unwrap();
}

// === Workers ===

#[test]
fn a_panic_ends_its_task_only_and_is_told() {
    let told = Arc::new(Mutex::new(Vec::new()));
    let hook = Arc::clone(&told);
    let options = Options {
        on_panic: Some(Arc::new(move |report: &PanicReport<'_>| {
            hook.lock()
                .unwrap()
                .push((report.worker, report.message.to_owned()));
        })),
        ..Options::default()
    };
    let workers = Workers::start(&options, |_| || ()).unwrap();
    let mailbox = workers.mailbox(0).unwrap();
    let (ends, end) = std::sync::mpsc::channel();
    mailbox
        .send(move || {
            spawn_local(async move {
                let bad = spawn_local(async {
                    yield_now().await;
                    panic!("one connection's mistake");
                });
                let good = spawn_local(async {
                    sleep(Duration::from_millis(2)).await;
                    5
                });
                let bad: Result<(), TaskEnd> = bad.join().await;
                ends.send((bad, good.join().await)).unwrap();
            });
        })
        .unwrap();
    assert_eq!(
        end.recv_timeout(HANG).unwrap(),
        (Err(TaskEnd::Panicked), Ok(5))
    );
    // A message that panics does not end the worker either.
    mailbox.send(|| panic!("a message's mistake")).unwrap();
    let counts = mailbox.call_blocking(task_counts).unwrap();
    assert_eq!((counts.panicked, counts.running, counts.started), (2, 0, 3));
    let told = told.lock().unwrap();
    assert_eq!(told[0], (Some(0), "one connection's mistake".to_owned()));
    assert_eq!(told.len(), 2);
    workers.stop(StopOrder::when_done());
    workers.join();
}

#[test]
fn workers_know_themselves_and_each_other() {
    let cpu = net::CpuSet::allowed().cpus()[0];
    let options = Options {
        count: 2,
        name: "w".into(),
        pins: vec![net::CpuSet::from_iter([cpu])],
        ..Options::default()
    };
    let first = Arc::new(AtomicUsize::new(0));
    let workers = Workers::start(&options, |index| {
        let first = Arc::clone(&first);
        move || {
            set_local(Rc::new(RefCell::new(index * 10)));
            first.fetch_add(index + 1, Ordering::SeqCst);
        }
    })
    .unwrap();
    let from_other = workers
        .mailbox(0)
        .unwrap()
        .call_blocking(|| {
            let name = std::thread::current().name().map(str::to_owned);
            (
                worker_index(),
                worker_count(),
                name,
                net::CpuSet::allowed().cpus().len(),
            )
        })
        .unwrap();
    assert_eq!(from_other, (Some(0), 2, Some("w-0".to_owned()), 1));
    // From one worker to the other and back.
    let (answers, answer) = std::sync::mpsc::channel();
    workers
        .mailbox(0)
        .unwrap()
        .send(move || {
            spawn_local(async move {
                let other = mailbox(1).unwrap();
                let value = other
                    .call(|| *local::<RefCell<usize>>().unwrap().borrow())
                    .await;
                answers.send((value, mailbox(2).is_none())).unwrap();
            });
        })
        .unwrap();
    assert_eq!(answer.recv_timeout(HANG).unwrap(), (Ok(10), true));
    assert_eq!(first.load(Ordering::SeqCst), 3);
    assert_eq!((worker_index(), worker_count()), (None, 0));
    let refused = workers.mailbox(0).unwrap().call_blocking(|| {
        mailbox(1).unwrap().call_blocking(|| ()) // would wait with the whole worker
    });
    assert_eq!(refused, Ok(Err(MailboxRefusal::Full)));
    assert!(workers.load(0).elapsed > Duration::ZERO);
    let mailbox = workers.mailbox(1).unwrap().clone();
    workers.stop(StopOrder::now());
    assert_eq!(workers.join().len(), 2);
    assert_eq!(mailbox.send(|| ()), Err(MailboxRefusal::Ended));
}

#[test]
fn an_impossible_pin_is_told_and_nothing_is_left_running() {
    let nowhere = net::CpuSet::from_iter([1023]);
    let options = Options {
        count: 2,
        pins: vec![net::CpuSet::default(), nowhere],
        ..Options::default()
    };
    let error = Workers::start(&options, |_| || ()).unwrap_err();
    assert_eq!(error.call(), "sched_setaffinity");
}

#[test]
fn a_full_mailbox_refuses() {
    let options = Options {
        mailbox_messages_max: 2,
        ..Options::default()
    };
    let workers = Workers::start(&options, |_| || ()).unwrap();
    let mailbox = workers.mailbox(0).unwrap();
    let (entered, inside) = std::sync::mpsc::channel();
    let (open, gate) = std::sync::mpsc::channel::<()>();
    mailbox
        .send(move || {
            entered.send(()).unwrap();
            gate.recv().unwrap();
        })
        .unwrap();
    inside.recv_timeout(HANG).unwrap();
    assert_eq!(mailbox.send(|| ()), Ok(()));
    assert_eq!(mailbox.send(|| ()), Ok(()));
    assert_eq!(mailbox.send(|| ()), Err(MailboxRefusal::Full));
    open.send(()).unwrap();
    mailbox
        .call_blocking(|| ())
        .unwrap_or_else(|e| assert_eq!(e, MailboxRefusal::Full));
    workers.stop(StopOrder::when_done());
    workers.join();
}

#[test]
fn a_soft_stop_waits_for_tasks_and_not_for_services() {
    let (finish, finished) = sync::oneshot::channel::<()>();
    let (stopped, stop_seen) = std::sync::mpsc::channel();
    let mut finished = Some(finished);
    let workers = Workers::start(&Options::default(), |_| {
        let finished = finished.take().unwrap();
        let stopped = stopped.clone();
        move || {
            spawn_service(std::future::pending::<()>());
            spawn_local(async move {
                let order = stopping().await;
                assert!(is_stopping());
                stopped.send(order).unwrap();
                finished.await.unwrap();
                // Work started while stopping is waited for too.
                spawn_local(sleep(Duration::from_millis(5)));
            });
        }
    })
    .unwrap();
    workers.stop(StopOrder::when_done());
    assert_eq!(
        stop_seen.recv_timeout(HANG).unwrap(),
        StopOrder::when_done()
    );
    assert!(!workers.have_ended());
    // Messages are still answered while stopping.
    assert_eq!(workers.mailbox(0).unwrap().call_blocking(|| 3), Ok(3));
    finish.send(()).unwrap();
    assert_eq!(
        workers.join(),
        [WorkerEnd {
            index: 0,
            cut_off: 0
        }]
    );
}

#[test]
fn a_stop_is_hardened_and_what_is_cut_off_is_dropped_on_its_thread() {
    struct Held(Arc<AtomicUsize>);
    impl Drop for Held {
        fn drop(&mut self) {
            assert_eq!(worker_index(), Some(0));
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
    let drops = Arc::new(AtomicUsize::new(0));
    let workers = Workers::start(&Options::default(), |_| {
        let held = Held(Arc::clone(&drops));
        move || {
            spawn_local(async move {
                let _held = held;
                std::future::pending::<()>().await;
            });
        }
    })
    .unwrap();
    workers.stop(StopOrder::when_done());
    workers.mailbox(0).unwrap().call_blocking(|| ()).unwrap();
    workers.stop(StopOrder::within(Duration::from_millis(5)));
    assert_eq!(
        workers.join(),
        [WorkerEnd {
            index: 0,
            cut_off: 1
        }]
    );
    assert_eq!(drops.load(Ordering::SeqCst), 1);
}

#[test]
fn an_accepted_socket_is_served_by_another_worker() {
    // A blocking socket, as one inherited may be: watching it ends that.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let ip = listener.local_addr().unwrap();
    let listening: Arc<OwnedFd> = Arc::new(listener.into());
    let options = Options {
        count: 2,
        ..Options::default()
    };
    let workers = Workers::start(&options, |index| {
        let listening = Arc::clone(&listening);
        move || {
            if index == 0 {
                spawn_service(hand_over(listening));
            }
        }
    })
    .unwrap();
    let mut client = TcpStream::connect(ip).unwrap();
    client.write_all(b"who?").unwrap();
    let mut text = String::new();
    client.read_to_string(&mut text).unwrap();
    assert_eq!(text, "worker Some(1)");
    workers.stop(StopOrder::within(HANG));
    workers.join();
}

async fn hand_over(listening: Arc<OwnedFd>) {
    let acceptor = Acceptor::new(listening).unwrap();
    let mut batch = Vec::new();
    loop {
        acceptor.accept_batch(16, &mut batch).await.unwrap();
        for accepted in batch.drain(..) {
            let serve = move || {
                let (stream, _) = accepted.into_stream().unwrap();
                spawn_local(async move {
                    let mut bytes = [0; 16];
                    stream.read(&mut bytes).await.unwrap();
                    let text = format!("worker {:?}", worker_index());
                    stream.write_all(text.as_bytes()).await.unwrap();
                });
            };
            mailbox(1).unwrap().send(serve).unwrap();
        }
    }
}

#[test]
fn tasks_are_aborted_on_demand_and_blocking_work_runs_aside() {
    block_on(async {
        let here = std::thread::current().id();
        let elsewhere = run_blocking(move || std::thread::current().id() != here).await;
        assert_eq!(elsewhere, Ok(true));
        let dropped = Rc::new(Cell::new(false));
        struct Flag(Rc<Cell<bool>>);
        impl Drop for Flag {
            fn drop(&mut self) {
                self.0.set(true);
            }
        }
        let flag = Flag(Rc::clone(&dropped));
        let task = spawn_local(async move {
            let _flag = flag;
            std::future::pending::<()>().await;
        });
        yield_now().await;
        assert!(!task.is_finished());
        task.abort();
        assert_eq!(task.join().await, Err(TaskEnd::Aborted));
        assert!(dropped.get());
    })
    .unwrap();
}

// === Buffers ===

#[test]
fn buffers_are_given_back_and_show_only_what_was_written() {
    configure_buffers(BufferLimits {
        bytes: 2048,
        free_max: 1,
        in_use_max: 2,
    });
    let mut first = Buffer::take();
    assert_eq!((first.capacity(), first.append(b"secret")), (2048, 6));
    first.consume(2);
    assert_eq!(first.filled(), b"cret");
    first.compact();
    assert_eq!((first.filled(), first.spare_len()), (&b"cret"[..], 2044));
    assert_eq!(first.append(&[1; 4096]), 2044);
    assert_eq!(first.spare_mut().len(), 0);
    let second = Buffer::try_take().unwrap();
    assert!(Buffer::try_take().is_none());
    assert_eq!(
        buffer_use(),
        BufferUse {
            free: 0,
            in_use: 2,
            made: 2
        }
    );
    drop(first);
    drop(second);
    assert_eq!(
        buffer_use(),
        BufferUse {
            free: 1,
            in_use: 0,
            made: 2
        }
    );
    let again = Buffer::take();
    assert!(again.is_empty() && again.filled().is_empty());
    assert_eq!(buffer_use().made, 2, "no new memory");
}
