//! Who always has more to do is one among others: the worker goes round.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use ballast_tests::{Client, Origin, Program, Proxy, WAIT_MAX, free_port};

/// The median of a modest client's requests may take this long beside busy ones: some fifty times
/// what it takes when the worker goes round.
const MEDIAN_MAX: Duration = Duration::from_millis(10);
/// Requests of the modest client.
const COUNT: usize = 31;

fn configuration(port: u16, origin: &Origin) -> String {
    format!(
        "global\n    nbthread 1\n    stats socket unix@stats level admin\ndefaults\n    mode http\n    \
         timeout client 20s\n    timeout connect 5s\n    timeout server 20s\n\
         frontend www\n    bind 127.0.0.1:{port}\n    \
         http-request return status 200 if {{ path /local }}\n    default_backend app\n\
         backend app\n    server one 127.0.0.1:{}\n",
        origin.port()
    )
}

/// Says the same again and again, as fast as it is taken, until told to stop.
fn busy<S>(mut ours: S, mut theirs: S, words: String, stop: &Arc<AtomicBool>) -> [JoinHandle<()>; 2]
where
    S: Read + Write + Send + 'static,
{
    let stopped = [Arc::clone(stop), Arc::clone(stop)];
    let [says, hears] = stopped;
    [
        thread::spawn(move || {
            while !says.load(Ordering::Relaxed) && ours.write_all(words.as_bytes()).is_ok() {}
        }),
        thread::spawn(move || {
            let mut bytes = vec![0; 1 << 16];
            while !hears.load(Ordering::Relaxed) && matches!(theirs.read(&mut bytes), Ok(1..)) {}
        }),
    ]
}

fn join(threads: [JoinHandle<()>; 2]) {
    for thread in threads {
        thread.join().expect("a thread ends");
    }
}

/// How long a client waits that has one request at a time.
fn median(port: u16, path: &str) -> Duration {
    let mut client = Client::connect(port);
    let mut times: Vec<Duration> = (0..COUNT)
        .map(|_| {
            let begun = Instant::now();
            assert_eq!(client.get(path).status, 200);
            begun.elapsed()
        })
        .collect();
    times.sort_unstable();
    times[COUNT / 2]
}

#[track_caller]
fn modest_beside(program: &Program, port: u16) {
    for path in ["/local", "/server"] {
        let time = median(port, path);
        assert!(time < MEDIAN_MAX, "{}, {path}: {time:?}", program.name());
    }
}

#[test]
fn clients_that_pipeline_leave_others_their_turn() {
    for program in Program::both() {
        let (origin, port) = (Origin::saying("hello"), free_port());
        let _proxy = Proxy::start(&program, &configuration(port, &origin), &[port]);
        let stop = Arc::new(AtomicBool::new(false));
        let busy = [(); 2].map(|()| {
            let client = Client::connect(port);
            let clone = || client.socket().try_clone().expect("a descriptor");
            let requests = "GET /local HTTP/1.1\r\nHost: t\r\n\r\n".repeat(500);
            (busy(clone(), clone(), requests, &stop), clone())
        });
        modest_beside(&program, port);
        stop.store(true, Ordering::Relaxed);
        for (threads, socket) in busy {
            // Ends both waits.
            let _ = socket.shutdown(Shutdown::Both);
            join(threads);
        }
    }
}

/// HAProxy 3.2 carries out all that has come of a session before it serves anybody else.
#[test]
fn an_operator_with_many_commands_leaves_clients_their_turn() {
    let program = Program::ballast();
    let (origin, port) = (Origin::saying("hello"), free_port());
    let proxy = Proxy::start(&program, &configuration(port, &origin), &[port]);
    let desk = UnixStream::connect(proxy.directory().join("stats")).expect("it listens");
    desk.set_read_timeout(Some(WAIT_MAX)).expect("a timeout");
    (&desk).write_all(b"prompt\n").expect("the desk reads");
    let stop = Arc::new(AtomicBool::new(false));
    let clone = || desk.try_clone().expect("a descriptor");
    let commands = "show info;show version\n".repeat(200);
    let threads = busy(clone(), clone(), commands, &stop);
    modest_beside(&program, port);
    stop.store(true, Ordering::Relaxed);
    let _ = desk.shutdown(Shutdown::Both);
    join(threads);
}
