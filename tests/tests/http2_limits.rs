//! What clients of HTTP/2 that do not read cost: memory, and the other streams of their connection.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use ballast_tests::frame_client::{END_STREAM, kind};
use ballast_tests::{FrameClient, Program, Proxy, ShapedOrigin, free_port};
use tempfile::TempDir;

/// SETTINGS_INITIAL_WINDOW_SIZE.
const INITIAL_WINDOW: u16 = 4;
const STREAMS: u32 = 100;
/// What all bodies that nobody takes may cost together.
const GROWN_BYTES_MAX: usize = 32 << 20;
/// For how long memory is watched after the last head has come.
const WATCHED: Duration = Duration::from_millis(500);

struct Site {
    proxy: Proxy,
    port: u16,
    _origin: ShapedOrigin,
    _directory: TempDir,
}

/// A proxy before an origin whose bodies are as long as one asks for.
fn site(program: &Program, version: &str) -> Site {
    let directory = TempDir::new().expect("a temporary directory");
    let [server, port] = [(); 2].map(|()| free_port());
    let words = ["--listen".to_owned(), format!("127.0.0.1:{server}")];
    let origin = ShapedOrigin::start(&words, &[server], directory.path());
    let configuration = format!(
        "global\n maxconn 500\n nbthread 1\n\
         defaults\n mode http\n http-reuse always\n timeout connect 5s\n timeout client 30s\n timeout server 30s\n\
         listen site\n bind 127.0.0.1:{port} proto h2\n server s 127.0.0.1:{server}{version}\n"
    );
    Site {
        proxy: Proxy::start(program, &configuration, &[port]),
        port,
        _origin: origin,
        _directory: directory,
    }
}

/// Towards servers of HTTP/2 HAProxy 3.2 keeps 1.3 MB of each body, and lets one stream hold up the
/// others of the connection that they share.
fn rows() -> [(Program, &'static str); 3] {
    let [oracle, ballast] = Program::both();
    [(oracle, ""), (ballast.clone(), ""), (ballast, " proto h2")]
}

#[test]
fn bodies_wait_at_the_server_while_the_window_is_closed() {
    for (program, version) in rows() {
        let site = site(&program, version);
        // Once through, so that pools are made.
        let mut client = FrameClient::connect(site.port, &[]);
        client.get(1, "/x?size=10000");
        while client.receive().flags & END_STREAM == 0 {}
        let before = site.proxy.resident_bytes();
        let mut client = FrameClient::connect(site.port, &[(INITIAL_WINDOW, 0)]);
        let streams: BTreeSet<u32> = (0..STREAMS).map(|number| 2 * number + 1).collect();
        for stream in &streams {
            client.get(*stream, "/x?size=100000000");
        }
        let mut answered = BTreeSet::new();
        while answered != streams {
            let frame = client.receive();
            assert_ne!(
                frame.kind,
                kind::DATA,
                "{}: a closed window",
                program.name()
            );
            if frame.kind == kind::HEADERS {
                answered.insert(frame.stream);
            }
        }
        let (began, mut most) = (Instant::now(), 0);
        while began.elapsed() < WATCHED {
            most = most.max(site.proxy.resident_bytes());
            std::thread::yield_now();
        }
        let grown = most.saturating_sub(before);
        assert!(
            grown < GROWN_BYTES_MAX,
            "{}{version}: {grown} bytes",
            program.name()
        );
    }
}

#[test]
fn heads_that_nobody_reads_are_no_more_than_wait_for_the_client() {
    let [_, program] = Program::both();
    let port = free_port();
    let location = "l".repeat(3_000);
    let configuration = format!(
        "defaults\n mode http\n timeout client 30s\n\
         frontend site\n bind 127.0.0.1:{port} proto h2\n http-request redirect location /{location}\n"
    );
    let proxy = Proxy::start(&program, &configuration, &[port]);
    let mut client = FrameClient::connect(port, &[]);
    client.get(1, "/");
    while client.receive().flags & END_STREAM == 0 {}
    let before = proxy.resident_bytes();
    let mut client = FrameClient::connect(port, &[]);
    let sent = client.ask_without_reading("/", 1_000_000, Duration::from_secs(2));
    assert!(sent >= 500, "{sent} requests");
    let grown = proxy.resident_bytes().saturating_sub(before);
    assert!(grown < GROWN_BYTES_MAX, "{sent} requests: {grown} bytes");
}

#[test]
fn a_stream_that_nobody_reads_holds_up_no_other() {
    for (program, version) in rows() {
        let site = site(&program, version);
        let mut client = FrameClient::connect(site.port, &[]);
        // Its window is used up, and never opened again; that of the connection is.
        client.get(1, "/x?size=100000000");
        client.allow(0, 1 << 30);
        let mut taken = 0;
        while taken < 65_535 {
            let frame = client.receive();
            if frame.kind == kind::DATA && frame.stream == 1 {
                taken += frame.payload.len();
            }
        }
        for number in 1..=200 {
            let stream = 2 * number + 1;
            client.get(stream, "/x?size=20000");
            let mut bytes = 0;
            loop {
                let frame = client.receive();
                if frame.stream != stream {
                    continue;
                }
                if frame.kind == kind::DATA {
                    bytes += frame.payload.len();
                }
                if frame.flags & END_STREAM != 0 {
                    break;
                }
            }
            assert_eq!(
                bytes,
                20_000,
                "{}{version}: stream {stream}",
                program.name()
            );
        }
    }
}

/// With servers of HTTP/2 both connections of clients may share one to the server (`http-reuse always`).
#[test]
fn a_client_that_reads_nothing_holds_up_no_other() {
    const BODY: usize = 200_000;
    for (program, version) in rows() {
        let site = site(&program, version);
        let mut stalled = FrameClient::connect(site.port, &[(INITIAL_WINDOW, 0)]);
        stalled.get(1, "/x?size=100000000");
        while stalled.receive().kind != kind::HEADERS {}
        let mut client = FrameClient::connect(site.port, &[(INITIAL_WINDOW, 1 << 20)]);
        client.allow(0, 1 << 30);
        let streams: Vec<u32> = (0..31).map(|number| 2 * number + 1).collect();
        for stream in &streams {
            client.get(*stream, &format!("/x?size={BODY}"));
        }
        let (mut bytes, mut ended) = (0, 0);
        while ended < streams.len() {
            let frame = client.receive();
            if frame.kind == kind::DATA {
                bytes += frame.payload.len();
            }
            ended += usize::from(frame.flags & END_STREAM != 0 && frame.stream != 0);
        }
        let wanted = BODY * streams.len();
        assert_eq!(bytes, wanted, "{}{version}", program.name());
    }
}
