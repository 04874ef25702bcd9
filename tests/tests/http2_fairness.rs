//! What a stalled stream of HTTP/2 costs the other streams of its connection: none of their rate.

use std::time::{Duration, Instant};

use ballast_tests::frame_client::{END_STREAM, kind};
use ballast_tests::{FrameClient, Program, Proxy, ShapedOrigin, free_port};
use tempfile::TempDir;

/// Streams that are served at a time.
const BUSY: u32 = 31;
/// Answers in one run: few, so that some runs are not disturbed by what else the machine does.
const ANSWERS: u32 = 93;
/// The part of the rate that a stalled stream must leave to the others.
const RATE_MIN: f64 = 0.95;
/// Runs of each kind, which take turns: at least, and until the machine was quiet for enough of them.
const RUNS_MIN: usize = 20;
const RUNS_MAX: usize = 600;

/// How the stream stalls: the query of its request.
const STALLS: [(&str, &str); 2] = [
    ("its client takes no more of the body", "size=100000000"),
    ("its server does not answer", "delay=60000"),
];

/// A connection on which streams are kept busy.
struct BusyClient {
    client: FrameClient,
    next_stream: u32,
}

impl BusyClient {
    fn connect(port: u16) -> Self {
        let mut client = FrameClient::connect(port, &[]);
        client.allow(0, 1 << 30);
        Self {
            client,
            next_stream: 1,
        }
    }

    fn ask(&mut self, query: &str) {
        self.client.get(self.next_stream, &format!("/x?{query}"));
        self.next_stream += 2;
    }

    /// Opens the first stream, which is never served to its end.
    fn stall(&mut self, query: &str) {
        self.ask(query);
        let mut taken = 0;
        while query.starts_with("size") && taken < 65_535 {
            let frame = self.client.receive();
            if frame.kind == kind::DATA {
                taken += frame.payload.len();
            }
        }
    }

    /// How long it takes until all of these streams are answered, some at a time.
    fn run(&mut self) -> Duration {
        let begun = Instant::now();
        let (mut asked, mut answered) = (0, 0);
        while answered < ANSWERS {
            while asked < ANSWERS && asked - answered < BUSY {
                self.ask("size=2000");
                asked += 1;
            }
            let frame = self.client.receive();
            let ends = matches!(frame.kind, kind::DATA | kind::HEADERS);
            answered += u32::from(ends && frame.flags & END_STREAM != 0);
        }
        begun.elapsed()
    }
}

/// What a tenth of the runs took at most: these were hardly disturbed.
fn fast(runs: &mut [Duration]) -> Duration {
    let rank = runs.len() / 10;
    *runs.select_nth_unstable(rank).1
}

/// The rate beside a stalled stream, as a part of the rate without one.
fn part_of_rate(port: u16, query: &str) -> f64 {
    let (mut quiet, mut beside) = (BusyClient::connect(port), BusyClient::connect(port));
    beside.stall(query);
    let (mut alone, mut next_to) = (Vec::new(), Vec::new());
    let mut part = 0.0;
    for run in 1..=RUNS_MAX {
        alone.push(quiet.run());
        next_to.push(beside.run());
        if run >= RUNS_MIN && run.is_multiple_of(10) {
            part = fast(&mut alone).as_secs_f64() / fast(&mut next_to).as_secs_f64();
            if part >= RATE_MIN {
                break;
            }
        }
    }
    part
}

/// Towards servers of HTTP/2 HAProxy 3.2 lets one stream hold up the others of the connection that
/// they share.
#[test]
fn a_stalled_stream_leaves_the_others_their_rate() {
    let [oracle, ballast] = Program::both();
    for (program, version) in [(oracle, ""), (ballast.clone(), ""), (ballast, " proto h2")] {
        let directory = TempDir::new().expect("a temporary directory");
        let [server, port] = [(); 2].map(|()| free_port());
        let words = ["--listen".to_owned(), format!("127.0.0.1:{server}")];
        let _origin = ShapedOrigin::start(&words, &[server], directory.path());
        let configuration = format!(
            "global\n maxconn 500\n nbthread 1\n\
             defaults\n mode http\n http-reuse always\n timeout connect 5s\n timeout client 2m\n timeout server 2m\n\
             listen site\n bind 127.0.0.1:{port} proto h2\n server s 127.0.0.1:{server}{version}\n"
        );
        let _proxy = Proxy::start(&program, &configuration, &[port]);
        for (stall, query) in STALLS {
            let part = part_of_rate(port, query);
            println!("{}{version}: {stall}: {part:.3}", program.name());
            assert!(
                part >= RATE_MIN,
                "{}{version}: {stall}: {part:.3} of the rate is left",
                program.name()
            );
        }
    }
}
