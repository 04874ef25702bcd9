use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::UdpSocket;
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use ballast_net::inherit;

use super::*;
use crate::limits::{PENDING_BYTES_MAX, QUEUED_BYTES_MAX};

const PATIENCE: Duration = Duration::from_secs(5);

/// Long enough for a busy machine, and shorter than any wait of a thread that was not woken.
const PROMPT: Duration = Duration::from_secs(2);

fn collector() -> (UdpSocket, Endpoint) {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let address = socket.local_addr().unwrap();
    (socket, Endpoint::Udp(address))
}

fn receive(socket: &UdpSocket) -> String {
    let mut bytes = [0; 70_000];
    let n = socket.recv(&mut bytes).unwrap();
    String::from_utf8(bytes[..n].to_vec()).unwrap()
}

fn target(endpoint: &Endpoint, format: Format) -> TargetSpec {
    let facility = "local0".parse().unwrap();
    TargetSpec {
        format: Some(format),
        ..TargetSpec::new(endpoint.clone(), facility)
    }
}

fn open(logs: &Logs, targets: Vec<TargetSpec>) -> Arc<LogSet> {
    let spec = LogSetSpec {
        tag: "ballast".to_owned(),
        hostname: None,
        targets: targets.into_iter().map(Arc::new).collect(),
    };
    logs.open(&[spec]).unwrap().remove(0)
}

fn raw(endpoint: &Endpoint) -> TargetSpec {
    target(endpoint, Format::Raw)
}

#[test]
fn a_line_reaches_udp_at_once_and_is_counted() {
    let (socket, endpoint) = collector();
    let logs = Logs::start().unwrap();
    let set = open(&logs, vec![target(&endpoint, Format::Local)]);
    let mut worker = logs.worker();
    let begun = Instant::now();
    worker.emit(&set, Level::Info, b"hello");
    let line = receive(&socket);
    assert!(begun.elapsed() < PROMPT, "prompt");
    let tail = format!(" ballast[{}]: hello\n", std::process::id());
    assert!(
        line.starts_with("<134>") && line.ends_with(&tail),
        "{line:?}"
    );
    // And from a thread that is no worker.
    logs.emit(&set, Level::Alert, b"Server b/s is DOWN");
    assert!(receive(&socket).starts_with("<129>"));
    assert!(logs.flush(PATIENCE));
    let counters = set.counters().next().unwrap();
    assert_eq!((counters.sent, counters.dropped), (2, 0));
    assert_eq!(logs.counters(), [(endpoint, counters)]);
}

#[test]
fn the_date_is_now_in_the_local_zone() {
    let (socket, endpoint) = collector();
    let logs = Logs::start().unwrap();
    let set = open(&logs, vec![target(&endpoint, Format::Iso)]);
    let mut worker = logs.worker();
    let seconds = || {
        std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .unwrap()
            .as_secs()
    };
    let before = seconds();
    worker.emit(&set, Level::Info, b"x");
    let line = receive(&socket);
    let after = seconds();
    let possible = (before..=after).any(|second| {
        let local = ballast_net::local_time(i64::try_from(second).unwrap());
        line.starts_with(&format!(
            "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.",
            local.year, local.month, local.day, local.hour, local.minute, local.second
        ))
    });
    assert!(possible, "{line}");
}

#[test]
fn levels_are_filtered_and_capped() {
    let (socket, endpoint) = collector();
    let logs = Logs::start().unwrap();
    let spec = TargetSpec {
        level_max: Level::Notice,
        level_min: Level::Err,
        ..target(&endpoint, Format::Short)
    };
    let set = open(&logs, vec![spec]);
    assert!(set.wants(Level::Notice) && !set.wants(Level::Info));
    let mut worker = logs.worker();
    for level in Level::ALL {
        worker.emit(&set, level, level.word().as_bytes());
    }
    let lines: Vec<_> = (0..6).map(|_| receive(&socket)).collect();
    assert_eq!(
        lines,
        [
            "<3>emerg\n",
            "<3>alert\n",
            "<3>crit\n",
            "<3>err\n",
            "<4>warning\n",
            "<5>notice\n"
        ]
    );
    assert!(logs.flush(PATIENCE));
    assert_eq!(set.counters().next().unwrap().sent, 6);
}

// As HAProxy 2.6.12 does with `sample 1:3` and `sample 1-2,5:6`.
#[test]
fn samples_are_counted_over_all_sets_of_a_line() {
    let (socket, endpoint) = collector();
    let logs = Logs::start().unwrap();
    let spec = Arc::new(TargetSpec {
        sample: Some(LineSampling {
            ranges: vec![(1, 2), (5, 5)],
            size: 6,
        }),
        ..raw(&endpoint)
    });
    let set = |tag: &str| LogSetSpec {
        tag: tag.to_owned(),
        hostname: None,
        targets: vec![Arc::clone(&spec)],
    };
    let sets = logs.open(&[set("a"), set("b")]).unwrap();
    let mut worker = logs.worker();
    for i in 0..8 {
        worker.emit(&sets[i % 2], Level::Info, i.to_string().as_bytes());
    }
    let lines: Vec<_> = (0..5).map(|_| receive(&socket)).collect();
    assert_eq!(lines.concat(), "0\n1\n4\n6\n7\n");
}

#[test]
fn long_messages_are_cut_as_in_haproxy() {
    let (socket, endpoint) = collector();
    let logs = Logs::start().unwrap();
    let short = TargetSpec {
        line_bytes_max: 80,
        ..raw(&endpoint)
    };
    let long = TargetSpec {
        line_bytes_max: 300,
        ..raw(&endpoint)
    };
    let mut worker = logs.worker();
    let message = [b'x'; 400];
    let both = open(&logs, vec![short.clone(), long]);
    worker.emit(&both, Level::Info, &message);
    assert_eq!(receive(&socket).len(), 80);
    assert_eq!(receive(&socket).len(), 300);
    let alone = open(&logs, vec![short]);
    worker.emit(&alone, Level::Info, &message);
    assert_eq!(receive(&socket).len(), 80);
}

#[test]
fn a_storm_arrives_in_order_through_a_pipe() {
    let (reader, writer) = std::io::pipe().unwrap();
    let number = inherit::register(OwnedFd::from(writer));
    let logs = Logs::start().unwrap();
    let set = open(&logs, vec![raw(&Endpoint::Fd(number))]);
    // Only the log holds the pipe from now on: its end can be detected.
    drop(inherit::take(number).unwrap());
    let mut worker = logs.worker();
    let count = 20_000;
    for i in 0..count {
        worker.emit(&set, Level::Info, format!("line {i}").as_bytes());
    }
    let lines = BufReader::new(reader).lines();
    let reading = std::thread::spawn(move || {
        let mut next = 0;
        for line in lines {
            assert_eq!(line.unwrap(), format!("line {next}"));
            next += 1;
        }
        next
    });
    assert!(logs.shutdown(PATIENCE));
    let counters = set.counters().next().unwrap();
    assert_eq!((counters.sent, counters.dropped), (count, 0));
    drop((set, worker, logs));
    assert_eq!(reading.join().unwrap(), count);
}

#[test]
fn a_pipe_nobody_reads_loses_lines_but_delays_nobody() {
    let (mut reader, writer) = std::io::pipe().unwrap();
    let number = inherit::register(OwnedFd::from(writer));
    let (socket, endpoint) = collector();
    let logs = Logs::start().unwrap();
    let stuck = open(&logs, vec![raw(&Endpoint::Fd(number))]);
    drop(inherit::take(number).unwrap());
    let well = open(&logs, vec![raw(&endpoint)]);
    let mut worker = logs.worker();
    let message = [b'x'; 1023];
    let lines = 4 * (PENDING_BYTES_MAX + QUEUED_BYTES_MAX) / 1024;
    for _ in 0..lines {
        worker.emit(&stuck, Level::Info, &message);
    }
    let begun = Instant::now();
    worker.emit(&well, Level::Info, b"hello");
    assert_eq!(receive(&socket), "hello\n");
    assert!(begun.elapsed() < PROMPT, "prompt");
    assert!(!logs.flush(Duration::from_millis(20)), "lines are left");
    assert!(!logs.shutdown(Duration::from_millis(20)));
    let counters = stuck.counters().next().unwrap();
    assert_eq!(counters.sent + counters.dropped, lines as u64);
    assert!(counters.dropped > 0 && counters.sent > 0);
    drop((stuck, worker, logs));
    let mut rest = Vec::new();
    reader.read_to_end(&mut rest).unwrap();
    assert!(rest.len() as u64 >= counters.sent * 1024);
}

#[test]
fn failures_are_counted_and_end() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log");
    let logs = Logs::start().unwrap();
    let nobody = open(&logs, vec![raw(&Endpoint::Unix(path.clone()))]);
    let mut worker = logs.worker();
    for _ in 0..100 {
        worker.emit(&nobody, Level::Info, b"lost");
    }
    assert!(logs.flush(PATIENCE));
    let counters = nobody.counters().next().unwrap();
    assert_eq!((counters.sent, counters.dropped), (0, 100));
    // How the lines are split into rounds is open, but there are fewer attempts than lines.
    assert!(counters.errors > 0);
    // When a receiver appears, it works again.
    let daemon = UnixDatagram::bind(&path).unwrap();
    daemon.set_read_timeout(Some(PATIENCE)).unwrap();
    worker.emit(&nobody, Level::Info, b"found");
    let mut bytes = [0; 64];
    let n = daemon.recv(&mut bytes).unwrap();
    assert_eq!(&bytes[..n], b"found\n");

    if let Ok(full) = File::options().write(true).open("/dev/full") {
        let number = inherit::register(OwnedFd::from(full));
        let disk = open(&logs, vec![raw(&Endpoint::Fd(number))]);
        worker.emit(&disk, Level::Info, b"lost");
        assert!(logs.flush(PATIENCE));
        let counters = disk.counters().next().unwrap();
        let expected = SinkCounters {
            sent: 0,
            dropped: 1,
            errors: 1,
            last_error: 28,
        };
        assert_eq!(counters, expected);
    }
    // A datagram that is too long does not affect others.
    let (socket, endpoint) = collector();
    let long = TargetSpec {
        line_bytes_max: 65_535,
        ..raw(&endpoint)
    };
    let set = open(&logs, vec![long]);
    worker.emit(&set, Level::Info, &[b'x'; 65_530]);
    worker.emit(&set, Level::Info, b"short");
    assert_eq!(receive(&socket), "short\n");
}

#[test]
fn a_slow_unix_collector_gets_all_that_fits() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log");
    let collector = UnixDatagram::bind(&path).unwrap();
    collector.set_read_timeout(Some(PATIENCE)).unwrap();
    let logs = Logs::start().unwrap();
    let set = open(&logs, vec![raw(&Endpoint::Unix(path))]);
    let mut worker = logs.worker();
    for i in 0..2000 {
        worker.emit(&set, Level::Info, i.to_string().as_bytes());
    }
    let mut bytes = [0; 64];
    for i in 0..2000 {
        let n = collector.recv(&mut bytes).unwrap();
        assert_eq!(bytes[..n], *format!("{i}\n").as_bytes());
    }
}

#[test]
fn files_and_sockets_by_number() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log");
    let mut file = File::create(&path).unwrap();
    file.write_all(b"before\n").unwrap();
    let (ours, mut theirs) = UnixStream::pair().unwrap();
    let logs = Logs::start().unwrap();
    let set = open(
        &logs,
        vec![
            raw(&Endpoint::Fd(inherit::register(OwnedFd::from(file)))),
            raw(&Endpoint::Fd(inherit::register(OwnedFd::from(ours)))),
        ],
    );
    logs.worker().emit(&set, Level::Info, b"hello");
    assert!(logs.shutdown(PATIENCE));
    assert_eq!(fs::read(&path).unwrap(), b"before\nhello\n");
    let mut bytes = [0; 6];
    theirs.read_exact(&mut bytes).unwrap();
    assert_eq!(&bytes, b"hello\n");
    let unknown = LogSetSpec {
        tag: String::new(),
        hostname: None,
        targets: vec![Arc::new(raw(&Endpoint::Fd(9999)))],
    };
    let error = Logs::start().unwrap().open(&[unknown]).unwrap_err();
    assert!(error.to_string().starts_with("cannot log to 'fd@9999'"));
}

#[test]
fn many_workers_and_a_change_of_targets_lose_nothing() {
    // A unix socket: UDP could lose datagrams when its reader is too slow.
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log");
    let daemon = UnixDatagram::bind(&path).unwrap();
    daemon.set_read_timeout(Some(PATIENCE)).unwrap();
    let endpoint = Endpoint::Unix(path);
    let logs = Logs::start().unwrap();
    let count = 200;
    let worker = |name: char| {
        let (logs, endpoint) = (logs.clone(), endpoint.clone());
        std::thread::spawn(move || {
            let mut worker = logs.worker();
            for i in 0..count {
                // A new set each time, as a reload makes it, only more often.
                let set = open(&logs, vec![raw(&endpoint)]);
                worker.emit(&set, Level::Info, format!("{name}{i}").as_bytes());
            }
        })
    };
    let threads = ['a', 'b', 'c'].map(worker);
    let mut next = [0; 3];
    for _ in 0..3 * count {
        let mut bytes = [0; 64];
        let n = daemon.recv(&mut bytes).unwrap();
        let line = std::str::from_utf8(&bytes[..n]).unwrap();
        let (name, number) = line.trim_end().split_at(1);
        let at = usize::from(name.as_bytes()[0] - b'a');
        assert_eq!(number, next[at].to_string(), "in order by worker");
        next[at] += 1;
    }
    for thread in threads {
        thread.join().unwrap();
    }
}

#[test]
fn the_last_line_is_not_lost() {
    for _ in 0..50 {
        let (socket, endpoint) = collector();
        let logs = Logs::start().unwrap();
        let set = open(&logs, vec![raw(&endpoint)]);
        let mut worker = logs.worker();
        worker.emit(&set, Level::Info, b"last");
        drop(worker);
        assert!(logs.shutdown(PATIENCE));
        socket.set_nonblocking(true).unwrap();
        assert_eq!(receive(&socket), "last\n");
        assert!(logs.flush(Duration::ZERO), "nothing is left to flush");
    }
}
