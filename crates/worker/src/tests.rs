//! Workers on loopback.

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

use ballast_net as net;

use super::*;

/// Long enough that only a hang reaches it.
const HANG: Duration = Duration::from_secs(10);

// === Deadline ===

#[test]
fn a_deadline_moves_both_ways() {
    block_on(async {
        let deadline = Deadline::new();
        let start = Instant::now();
        deadline.set_after(Some(Duration::from_millis(5)));
        let early = deadline
            .guard(async {
                // Later: the timer, set for 5 ms, must not end this.
                deadline.set_after(Some(HANG));
                sleep(Duration::from_millis(15)).await;
                1
            })
            .await;
        assert_eq!(early, Ok(1));
        // Earlier than the timer is set for.
        deadline.set_after(Some(Duration::from_millis(5)));
        assert_eq!(
            deadline.guard(std::future::pending::<()>()).await,
            Err(DeadlinePassed)
        );
        assert!(start.elapsed() >= Duration::from_millis(20));
        assert!(start.elapsed() < HANG);
        // Expired stays expired until moved.
        assert_eq!(
            deadline.guard(std::future::pending::<()>()).await,
            Err(DeadlinePassed)
        );
        deadline.clear();
        assert_eq!(deadline.current(), None);
        assert!(
            timeout(Duration::from_millis(5), deadline.expired())
                .await
                .is_err()
        );
        // A ready result is never late.
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
        assert_eq!(guarded.await, Err(DeadlinePassed));
        assert!(start.elapsed() < HANG / 2);
    })
    .unwrap();
}

#[test]
fn a_deadline_wakes_the_task_that_waits_now() {
    block_on(async {
        let deadline = Rc::new(Deadline::new());
        deadline.set_after(Some(Duration::from_millis(20)));
        // Polled once by this task, then awaited by another: the other one is woken.
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
    let options = WorkerOptions {
        on_panic: Some(Arc::new(move |report: &PanicReport<'_>| {
            hook.lock()
                .unwrap()
                .push((report.worker, report.message.to_owned()));
        })),
        ..WorkerOptions::default()
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
    let options = WorkerOptions {
        count: 2,
        name: "w".into(),
        pins: vec![net::CpuSet::from_iter([cpu])],
        ..WorkerOptions::default()
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
    // Busy time is counted, idle time is not.
    let worked = Duration::from_millis(5);
    let spin = move || {
        let start = Instant::now();
        while start.elapsed() < worked {}
    };
    workers.mailbox(0).unwrap().call_blocking(spin).unwrap();
    let start = Instant::now();
    while workers.load(0).busy < worked {
        assert!(start.elapsed() < HANG);
        std::thread::yield_now();
    }
    assert!(workers.load(0).elapsed > workers.load(1).busy);
    let mailbox = workers.mailbox(1).unwrap().clone();
    workers.stop(StopOrder::now());
    assert_eq!(workers.join().len(), 2);
    assert_eq!(mailbox.send(|| ()), Err(MailboxRefusal::Ended));
}

#[test]
fn a_worker_without_any_of_its_processors_runs_where_it_may() {
    let nowhere = net::CpuSet::from_iter([1023]);
    let allowed = net::CpuSet::allowed();
    let last = net::CpuSet::from_iter(allowed.cpus().last().copied());
    let options = WorkerOptions {
        count: 2,
        pins: vec![last.clone(), nowhere],
        ..WorkerOptions::default()
    };
    let workers = Workers::start(&options, |_| || ()).unwrap();
    for (index, wanted) in [(0, last), (1, allowed)] {
        let (tell, told) = std::sync::mpsc::channel();
        let ask = move || tell.send(net::CpuSet::allowed()).unwrap();
        workers.mailbox(index).unwrap().send(ask).unwrap();
        assert_eq!(told.recv().unwrap(), wanted, "worker {index}");
    }
    workers.stop(StopOrder::now());
    workers.join();
}

#[test]
fn a_full_mailbox_refuses() {
    let options = WorkerOptions {
        mailbox_messages_max: 2,
        ..WorkerOptions::default()
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
fn the_first_worker_serves_until_the_others_have_ended() {
    let options = WorkerOptions {
        count: 2,
        ..WorkerOptions::default()
    };
    let workers = Workers::start(&options, |_| || {}).unwrap();
    let (finish, finished) = sync::oneshot::channel::<()>();
    let second = workers.mailbox(1).unwrap();
    let started = second.call_blocking(move || {
        spawn_local(async move { finished.await.unwrap() });
    });
    started.unwrap();
    workers.stop(StopOrder::when_done());
    let first = workers.mailbox(0).unwrap();
    // It has nothing to do itself, and answers all the same.
    let (held, is_held) = std::sync::mpsc::channel();
    let (let_go, gone) = sync::oneshot::channel::<()>();
    let asked = first.call_blocking(move || {
        spawn_service(async move {
            let _hold = hold();
            held.send(()).unwrap();
            gone.await.unwrap();
        });
    });
    asked.unwrap();
    is_held.recv_timeout(HANG).unwrap();
    finish.send(()).unwrap();
    // What its service does is to be finished, too.
    assert_eq!(first.call_blocking(|| 3), Ok(3));
    let_go.send(()).unwrap();
    assert_eq!(workers.join().len(), 2);
}

#[test]
fn a_soft_stop_waits_for_tasks_and_not_for_services() {
    let (finish, finished) = sync::oneshot::channel::<()>();
    let (stopped, stop_seen) = std::sync::mpsc::channel();
    let mut finished = Some(finished);
    let workers = Workers::start(&WorkerOptions::default(), |_| {
        let finished = finished.take().unwrap();
        let stopped = stopped.clone();
        move || {
            spawn_service(std::future::pending::<()>());
            spawn_local(async move {
                let order = stopping().await;
                assert!(is_stopping());
                stopped.send(order).unwrap();
                finished.await.unwrap();
                // Tasks started while stopping are waited for too.
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
    // Messages are still processed while stopping.
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
fn what_was_sent_before_a_soft_stop_is_done() {
    let workers = Workers::start(&WorkerOptions::default(), |_| || {}).unwrap();
    let mailbox = workers.mailbox(0).unwrap();
    let (let_go, held) = std::sync::mpsc::channel::<()>();
    let (done, done_seen) = std::sync::mpsc::channel();
    mailbox
        .send(move || held.recv_timeout(HANG).unwrap())
        .unwrap();
    mailbox
        .send(move || {
            spawn_local(async move {
                sleep(Duration::from_millis(5)).await;
                done.send(()).unwrap();
            });
        })
        .unwrap();
    // The worker finds the order and the message at the same time.
    workers.stop(StopOrder::when_done());
    let_go.send(()).unwrap();
    assert_eq!(done_seen.recv_timeout(HANG), Ok(()));
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
    let workers = Workers::start(&WorkerOptions::default(), |_| {
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
fn tasks_hear_that_they_will_be_cut_off_and_not_of_a_soft_stop() {
    let (tell, told) = std::sync::mpsc::channel();
    let workers = Workers::start(&WorkerOptions::default(), |_| {
        let tell = tell.clone();
        move || {
            spawn_local(async move {
                stopping().await;
                tell.send("soft").unwrap();
                cutting_off().await;
                tell.send("hard").unwrap();
            });
        }
    })
    .unwrap();
    workers.stop(StopOrder::when_done());
    assert_eq!(told.recv_timeout(HANG), Ok("soft"));
    workers.mailbox(0).unwrap().call_blocking(|| ()).unwrap();
    assert!(told.try_recv().is_err(), "not before there is a deadline");
    workers.stop(StopOrder::within(HANG));
    assert_eq!(told.recv_timeout(HANG), Ok("hard"));
    let end = WorkerEnd {
        index: 0,
        cut_off: 0,
    };
    assert_eq!(workers.join(), [end], "it had time to say so");
}

#[test]
fn an_accepted_socket_is_served_by_another_worker() {
    // A blocking socket, as an inherited one may be: watching it makes it non-blocking.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let ip = listener.local_addr().unwrap();
    let listening: Arc<OwnedFd> = Arc::new(listener.into());
    let options = WorkerOptions {
        count: 2,
        ..WorkerOptions::default()
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
        ..BufferLimits::default()
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

#[test]
fn large_buffers_are_few() {
    configure_buffers(BufferLimits {
        large_in_use_max: 1,
        ..BufferLimits::default()
    });
    let large = Buffer::try_take_large().unwrap();
    assert!(large.is_large() && large.capacity() > Buffer::take().capacity());
    assert!(Buffer::try_take_large().is_none(), "one at most");
    drop(large);
    assert!(Buffer::try_take_large().is_some());
    configure_buffers(BufferLimits {
        bytes: 65_536,
        ..BufferLimits::default()
    });
    assert!(Buffer::try_take_large().is_none(), "all are as large");
    assert!(!Buffer::take().is_large());
}

#[test]
fn a_pipe_comes_back_to_its_worker() {
    assert!(PooledPipe::take().is_none(), "none is allowed");
    let counts = Arc::new(PipeCounts::new(3));
    let options = PipeOptions {
        counts: Arc::clone(&counts),
        pipe_bytes: None,
    };
    // More workers than pipes: each keeps one all the same.
    configure_pipes(&options, 4);
    let (first, second) = (PooledPipe::take().unwrap(), PooledPipe::take().unwrap());
    assert_eq!((counts.in_use(), counts.free()), (2, 0));
    drop((first, second));
    assert_eq!(
        (counts.in_use(), counts.free()),
        (0, 1),
        "a share of them is kept"
    );
}

#[test]
fn a_pool_carries_one_thing_after_the_other_and_survives_a_panic() {
    use std::cell::RefCell;
    use std::rc::Rc;

    block_on(async {
        let done = Rc::new(RefCell::new(Vec::new()));
        let seen = Rc::clone(&done);
        let pool = TaskPool::new(move |mut numbers: PoolItems<u32>| {
            let seen = Rc::clone(&seen);
            async move {
                while let Some(number) = numbers.next().await {
                    yield_now().await;
                    assert!(number != 2, "one that fails");
                    seen.borrow_mut().push(number);
                }
            }
        });
        for round in [[0, 1], [2, 3], [4, 5]] {
            round.into_iter().for_each(|number| pool.submit(number));
            // Each is started, and yields once.
            for _ in 0..4 {
                yield_now().await;
            }
        }
        let mut done = done.take();
        done.sort_unstable();
        assert_eq!(done, [0, 1, 3, 4, 5]);
    })
    .unwrap();
}

#[test]
fn a_soft_stop_waits_for_what_a_pool_carries_and_not_for_its_tasks() {
    let (finish, finished) = sync::oneshot::channel::<()>();
    let mut finished = Some(finished);
    let workers = Workers::start(&WorkerOptions::default(), |_| {
        let finished = finished.take().unwrap();
        move || {
            let pool = TaskPool::new(|mut items: PoolItems<_>| async move {
                while let Some(work) = items.next().await {
                    if let Some::<sync::oneshot::Receiver<()>>(work) = work {
                        work.await.unwrap();
                    }
                }
            });
            // One member will have nothing to do, the other one will.
            pool.submit(None);
            pool.submit(Some(finished));
        }
    })
    .unwrap();
    let running = || {
        let mailbox = workers.mailbox(0).unwrap();
        mailbox.call_blocking(|| task_counts().running).unwrap()
    };
    let begun = Instant::now();
    while running() != 1 && begun.elapsed() < HANG {
        std::thread::yield_now();
    }
    workers.stop(StopOrder::when_done());
    assert_eq!(running(), 1);
    assert!(!workers.have_ended());
    finish.send(()).unwrap();
    let end = WorkerEnd {
        index: 0,
        cut_off: 0,
    };
    assert_eq!(workers.join(), [end]);
}
