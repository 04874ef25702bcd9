//! Signals reach a thread and a task. A process of its own: the harness's threads would not block
//! the signals.

use std::time::Duration;

use ballast_worker::{Signal, Signals, StopOrder, WorkerOptions, Workers, block_on, timeout};

const HANG: Duration = Duration::from_secs(10);

fn main() {
    let signals = Signals::open(&[Signal::Usr1, Signal::Term, Signal::Hup]).expect("open");
    let workers = Workers::start(&WorkerOptions::default(), |_| || ()).expect("workers");
    assert_eq!(signals.try_next().expect("read"), None);
    assert_eq!(
        signals.wait(Some(Duration::from_millis(1))).expect("wait"),
        None
    );

    // The thread waits for it; it is sent from a worker, whose thread blocks it too.
    let mailbox = workers.mailbox(0).expect("one");
    mailbox
        .send(|| ballast_net::raise(Signal::Usr1).expect("kill"))
        .expect("send");
    assert_eq!(signals.wait(Some(HANG)).expect("wait"), Some(Signal::Usr1));

    // A task waits for them; both arrive when two are sent at once.
    mailbox
        .send(|| {
            ballast_net::raise(Signal::Term).expect("kill");
            ballast_net::raise(Signal::Hup).expect("kill");
        })
        .expect("send");
    let mut seen = block_on(async {
        let mut seen = Vec::new();
        for _ in 0..2 {
            seen.push(
                timeout(HANG, signals.next())
                    .await
                    .expect("in time")
                    .expect("next"),
            );
        }
        assert!(
            timeout(Duration::from_millis(2), signals.next())
                .await
                .is_err()
        );
        seen
    })
    .expect("executor");
    seen.sort_by_key(|signal| signal.number());
    assert_eq!(seen, [Signal::Hup, Signal::Term]);

    workers.stop(StopOrder::now());
    workers.join();
    println!("signals: ok");
}
