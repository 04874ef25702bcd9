//! The cost of a request in the steady state: four data system calls, and no allocation.
//!
//! Both are counted from outside, on the normal program: with `strace`, and with a preloaded
//! library that counts calls of the allocator.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;
use std::time::Instant;

use ballast_tests::{
    Authority, Client, Launch, Origin, Profile, Program, Proxy, SealedClient, WAIT_MAX, free_port,
    repository,
};
use rustix::process::Signal;
use rustls::version::{TLS12, TLS13};

/// Requests before counting starts, which fill pools and grow buffers.
const WARM: usize = 300;
/// Requests that are counted.
const COUNTED: usize = 1_000;

fn configuration(port: u16, origin: &Origin) -> String {
    format!(
        "\
global
    nbthread 1
defaults
    mode http
    timeout connect 5s
    timeout client 20s
    timeout server 20s
frontend www
    bind 127.0.0.1:{port}
    acl is_api path_beg /api/
    use_backend none if is_api
    default_backend app
backend app
    server one 127.0.0.1:{}
backend none
    server none 127.0.0.1:1
",
        origin.port()
    )
}

/// The same proxy, with TLS towards clients.
fn sealed_configuration(port: u16, origin: &Origin) -> String {
    let bind = format!("bind 127.0.0.1:{port}");
    configuration(port, origin).replace(&bind, &format!("{bind} ssl crt {CERTIFICATE_FILE}"))
}

/// The certificate of the configurations with TLS, in the working directory of every proxy.
const CERTIFICATE_FILE: &str = "budget.pem";

/// That certificate, with its key.
static CERTIFICATE: LazyLock<String> = LazyLock::new(|| {
    let authority = Authority::new("the authority of the test");
    authority.issue(&Profile::server(&["127.0.0.1"])).bundle()
});

/// Calls of one kind, from the table `strace -c` prints.
#[derive(Debug)]
struct Calls {
    name: String,
    count: usize,
    failed: usize,
}

/// The same proxy, with a new connection for each request on both sides.
fn closing_configuration(port: u16, origin: &Origin) -> String {
    configuration(port, origin).replace("mode http\n", "mode http\n    option httpclose\n")
}

/// Sends this many requests on one connection.
fn ask_on_one(port: u16, requests: usize) {
    let mut client = Client::connect(port);
    for _ in 0..requests {
        assert_eq!(client.get("/").status, 200);
    }
}

/// Sends this many requests on one connection over TLS 1.3.
fn ask_on_one_sealed(port: u16, requests: usize) {
    let mut client = SealedClient::connect(port, &TLS13);
    for _ in 0..requests {
        client.get("hello");
    }
}

/// Sends this many requests, each on a new connection and with `Connection: close`.
fn ask_on_many(port: u16, requests: usize) {
    for _ in 0..requests {
        let mut client = Client::connect(port);
        client.send("GET / HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n");
        assert_eq!(client.response().status, 200);
    }
}

/// How a proxy is configured and used.
type Life = (fn(u16, &Origin) -> String, fn(u16, usize));
const KEPT: Life = (configuration, ask_on_one);
const SEALED: Life = (sealed_configuration, ask_on_one_sealed);
const CLOSED: Life = (closing_configuration, ask_on_many);

/// The system calls of the program's whole life, in which it served this many requests.
fn calls_of_life(program: &Program, life: Life, requests: usize) -> Vec<Calls> {
    calls_of_life_with(program, &Origin::saying("hello"), life, requests)
}

/// The same, in front of this server.
fn calls_of_life_with(
    program: &Program,
    origin: &Origin,
    (configured, ask): Life,
    requests: usize,
) -> Vec<Calls> {
    let port = free_port();
    let launch = Launch {
        ports: &[port],
        files: &[(CERTIFICATE_FILE, &CERTIFICATE)],
        // `-D`: the tracer is a grandchild, and the child of the test is the program itself.
        under: &["strace", "-D", "-f", "-c", "-o", "calls"],
        ..Launch::default()
    };
    let mut proxy = Proxy::launch(program, &configured(port, origin), &launch);
    ask(port, requests);
    proxy.signal(Signal::TERM);
    proxy.wait();
    // The tracer writes its table after the program has ended.
    let (file, deadline) = (proxy.directory().join("calls"), Instant::now() + WAIT_MAX);
    let table = loop {
        let table = fs::read_to_string(&file).unwrap_or_default();
        if table.contains(" total\n") {
            break table;
        }
        assert!(
            Instant::now() < deadline,
            "strace writes its table: {table}"
        );
        std::thread::yield_now();
    };
    table.lines().filter_map(row).collect()
}

/// `% time  seconds  usecs/call  calls  [errors]  syscall`
fn row(line: &str) -> Option<Calls> {
    let columns: Vec<&str> = line.split_ascii_whitespace().collect();
    let (name, numbers) = columns.split_last()?;
    let count = numbers.get(3)?.parse().ok()?;
    let failed = numbers.get(4).map_or(Ok(0), |errors| errors.parse()).ok()?;
    Some(Calls {
        name: (*name).to_owned(),
        count,
        failed,
    })
}

/// A megabyte, which the server sends for each request.
static MEGABYTE: LazyLock<String> = LazyLock::new(|| "x".repeat(1 << 20));

/// A proxy for bodies of megabytes, under these lines.
fn bulk_configuration((global, options): (&str, &str), port: u16, origin: &Origin) -> String {
    configuration(port, origin)
        .replace("nbthread 1\n", &format!("nbthread 1\n    {global}\n"))
        .replace("mode http\n", &format!("mode http\n    {options}\n"))
}

/// The data calls that carry a megabyte to a client, by how it is carried.
fn data_calls_a_megabyte(configured: fn(u16, &Origin) -> String) -> f64 {
    let (short, long) = (4, 44);
    let calls = |requests| {
        let origin = Origin::saying(&MEGABYTE);
        let calls = calls_of_life_with(
            &Program::ballast(),
            &origin,
            (configured, ask_on_one),
            requests,
        );
        let data = calls.iter().filter(|calls| moves_data(calls));
        data.map(|calls| calls.count).sum::<usize>()
    };
    let difference = calls(long).saturating_sub(calls(short));
    f64::from(u32::try_from(difference).expect("some hundreds of calls")) / 40.0
}

#[test]
fn a_megabyte_is_carried_in_few_calls() {
    let copied =
        data_calls_a_megabyte(|port, origin| bulk_configuration(("nosplice", ""), port, origin));
    // Sixteen reads and writes of 64 kB, and some of what has come when the proxy is awake.
    assert!(copied < 60.0, "{copied} data calls a megabyte");
    let spliced = data_calls_a_megabyte(|port, origin| {
        bulk_configuration(("", "option splice-response"), port, origin)
    });
    assert!(spliced < 60.0, "{spliced} data calls a megabyte");
}

/// Calls per request: the difference between a longer and a shorter life, divided by its requests.
fn per_request(program: &Program, life: Life, is_counted: impl Fn(&Calls) -> usize) -> f64 {
    let sum = |requests| {
        calls_of_life(program, life, requests)
            .iter()
            .map(&is_counted)
            .sum::<usize>()
    };
    let (short, long) = (sum(WARM), sum(WARM + COUNTED));
    assert!(long > 0, "strace saw calls");
    f64::from(u32::try_from(long.saturating_sub(short)).expect("a few thousand calls"))
        / f64::from(u32::try_from(COUNTED).expect("a thousand"))
}

/// Whether the call moves the bytes of an exchange. A plain `write` does not: it wakes a thread (each
/// 50 ms while connections wait in a pool, so the more the slower the machine is) or says a line on
/// standard output. Sockets are sent to.
fn moves_data(calls: &Calls) -> bool {
    if calls.name == "write" {
        return false;
    }
    [
        "recv", "send", "read", "write", "splice", "preadv", "pwritev",
    ]
    .iter()
    .any(|kind| calls.name.starts_with(kind))
}

#[test]
fn four_data_calls_a_request() {
    for life in [KEPT, SEALED] {
        let data = per_request(&Program::ballast(), life, |calls| {
            if moves_data(calls) { calls.count } else { 0 }
        });
        assert!((3.9..=4.05).contains(&data), "{data} data calls a request");
    }
}

#[test]
fn no_call_is_made_in_vain() {
    for life in [KEPT, SEALED] {
        let vain = per_request(&Program::ballast(), life, |calls| {
            let is_bookkeeping = calls.name.starts_with("timer") || calls.name == "epoll_ctl";
            let failed = if moves_data(calls) { calls.failed } else { 0 };
            if is_bookkeeping { calls.count } else { failed }
        });
        assert!(vain <= 0.05, "{vain} calls a request that move nothing");
    }
}

/// The calls for one request with a connection on each side: accept4, recv; socket, connect twice (the
/// second reports that it is connected), send; recv, send; setsockopt (for a reset) and close;
/// close. HAProxy 2.6 makes 14. One that fails is not counted: it asks, before a socket that was not
/// watched is closed, whether something came.
#[test]
fn eleven_calls_a_connection() {
    // How often a task waits, or tries in vain, depends on timing; registrations are counted below.
    // And a build with assertions checks a descriptor before it closes it.
    let waits = [
        "fcntl",
        "epoll_wait",
        "epoll_pwait",
        "epoll_ctl",
        "futex",
        "write",
        "total",
    ];
    let calls = per_request(&Program::ballast(), CLOSED, |calls| {
        match calls.name.as_str() {
            name if waits.contains(&name) => 0,
            "accept4" | "recvfrom" => calls.count - calls.failed,
            _ => calls.count,
        }
    });
    assert!((10.9..=11.1).contains(&calls), "{calls} calls a connection");
}

#[test]
fn a_client_that_says_its_last_word_is_not_waited_for() {
    let (watched, shut) = ("epoll_ctl", "shutdown");
    let calls = per_request(&Program::ballast(), CLOSED, |calls| {
        if [watched, shut].contains(&calls.name.as_str()) {
            calls.count
        } else {
            0
        }
    });
    // The server's side: registered and removed. The client's: only when its request came late.
    assert!(calls <= 4.05, "{calls} calls a connection");
}

/// The counting library, built once in cargo's directory for tests.
static COUNTING_LIBRARY: LazyLock<PathBuf> = LazyLock::new(|| {
    let library = Path::new(env!("CARGO_TARGET_TMPDIR")).join("libcount.so");
    let built = Command::new("cc")
        .args(["-shared", "-fPIC", "-O2", "-o"])
        .arg(&library)
        .arg(repository().join("tests/preload/count.c"))
        .status()
        .expect("cc is there: Rust links with it");
    assert!(built.success(), "the library compiles");
    library
});

/// Allocations of the counted requests of one connection in the steady state.
fn allocations_of_steady_state(configuration: &str, port: u16, request: &str) -> u64 {
    let mut client = None;
    allocations(configuration, port, &mut |count| {
        let client = client.get_or_insert_with(|| Client::connect(port));
        for _ in 0..count {
            client.send(request);
            assert_eq!(client.response().status, 200);
        }
    })
}

/// Allocations of the counted requests in the steady state of the program.
fn allocations(configuration: &str, port: u16, ask: &mut dyn FnMut(usize)) -> u64 {
    let counter = tempfile::NamedTempFile::new().expect("a temporary file");
    fs::write(counter.path(), 0_u64.to_ne_bytes()).expect("the file is written");
    let variables = [
        (
            "LD_PRELOAD",
            COUNTING_LIBRARY.to_string_lossy().into_owned(),
        ),
        (
            "ALLOCATION_COUNT_FILE",
            counter.path().to_string_lossy().into_owned(),
        ),
    ];
    let launch = Launch {
        ports: &[port],
        files: &[(CERTIFICATE_FILE, &CERTIFICATE)],
        variables: &variables
            .each_ref()
            .map(|(name, value)| (*name, value.as_str())),
        ..Launch::default()
    };
    let allocations = || {
        let bytes = fs::read(counter.path()).expect("the file is there");
        u64::from_ne_bytes(bytes.try_into().expect("eight bytes"))
    };
    let _proxy = Proxy::launch(&Program::ballast(), configuration, &launch);
    assert!(
        allocations() > 50,
        "the start allocates, so the library counts"
    );

    ask(WARM);
    let before = allocations();
    ask(COUNTED);
    allocations() - before
}

/// Work that runs once a second may allocate; a request may not.
const SECONDLY_MAX: u64 = 20;

/// The allocations allowed for the two connections of one request.
const CONNECTION_MAX: u64 = 9;

#[test]
fn no_allocation_a_request() {
    let (origin, port) = (Origin::saying("hello"), free_port());
    let grown = allocations_of_steady_state(
        &configuration(port, &origin),
        port,
        "GET / HTTP/1.1\r\nHost: test\r\n\r\n",
    );
    assert!(
        grown < SECONDLY_MAX,
        "{grown} allocations in {COUNTED} requests"
    );
}

/// rustls makes a vector for each record that it decrypts, and one for each that it encrypts.
const SEALED_REQUEST_MAX: f64 = 2.0;

#[test]
fn two_allocations_a_request_over_tls() {
    let (origin, port) = (Origin::saying("hello"), free_port());
    let mut client = None;
    let grown = allocations(&sealed_configuration(port, &origin), port, &mut |count| {
        let client = client.get_or_insert_with(|| SealedClient::connect(port, &TLS13));
        for _ in 0..count {
            client.get("hello");
        }
    });
    let each = grown.saturating_sub(SECONDLY_MAX) as f64 / COUNTED as f64;
    assert!(each <= SEALED_REQUEST_MAX, "{each} allocations a request");
}

/// The same proxy, which connects to itself over TLS: a request goes through three sealed streams,
/// of which one is a server's.
fn encrypting_configuration(port: u16, origin: &Origin) -> String {
    let inner = free_port();
    let inside = sealed_configuration(inner, origin);
    format!(
        "{inside}
frontend outer
    bind 127.0.0.1:{port} ssl crt {CERTIFICATE_FILE}
    default_backend inner
backend inner
    server inner 127.0.0.1:{inner} ssl verify none
"
    )
}

/// A vector a record: two towards the client, two towards the server, and two in the server, which
/// is the same process.
const ENCRYPTED_REQUEST_MAX: f64 = 6.0;

#[test]
fn six_allocations_a_request_that_is_encrypted_again() {
    let (origin, port) = (Origin::saying("hello"), free_port());
    let mut client = None;
    let configuration = encrypting_configuration(port, &origin);
    let grown = allocations(&configuration, port, &mut |count| {
        let client = client.get_or_insert_with(|| SealedClient::connect(port, &TLS13));
        for _ in 0..count {
            client.get("hello");
        }
    });
    let each = grown.saturating_sub(SECONDLY_MAX) as f64 / COUNTED as f64;
    assert!(
        each <= ENCRYPTED_REQUEST_MAX,
        "{each} allocations a request"
    );
}

/// A connection whose session is resumed, with one request: in TLS 1.3 and in TLS 1.2. Most of them are rustls's: one for
/// each protocol that is offered.
const RESUMED_CONNECTION_MAX: [u64; 2] = [152, 100];

/// One handshake for this many counted requests: it costs as much time.
const REQUESTS_A_HANDSHAKE: usize = 10;

#[test]
fn few_allocations_a_resumed_handshake() {
    let (origin, port) = (Origin::saying("hello"), free_port());
    for (version, most) in [&TLS13, &TLS12].into_iter().zip(RESUMED_CONNECTION_MAX) {
        let config = SealedClient::config(version);
        let configuration = sealed_configuration(port, &origin);
        let mut count_of_full = 0;
        let grown = allocations(&configuration, port, &mut |count| {
            for _ in 0..count / REQUESTS_A_HANDSHAKE {
                let mut client = SealedClient::connect_with(port, &config);
                client.get("hello");
                count_of_full += usize::from(!client.is_resumed());
            }
        });
        assert_eq!(count_of_full, 1, "all but the first were resumed");
        let handshakes = (COUNTED / REQUESTS_A_HANDSHAKE) as u64;
        let each = grown.saturating_sub(SECONDLY_MAX) / handshakes;
        eprintln!("{each} allocations of a resumed handshake");
        assert!(each <= most, "{each} allocations a resumed handshake");
    }
}

/// A connection on each side may cost only these: two sockets, the registration of one, the
/// server's connection, its timer, and the client's entry for `show sess`.
#[test]
fn few_allocations_a_connection() {
    let (origin, port) = (Origin::saying("hello"), free_port());
    let grown = allocations(&closing_configuration(port, &origin), port, &mut |count| {
        ask_on_many(port, count);
    });
    let each = grown / COUNTED as u64;
    assert!(each <= CONNECTION_MAX, "{each} allocations a connection");
}

/// Options that most configurations use: added headers, rules, persistence.
#[test]
fn no_allocation_for_rules_and_cookies() {
    let (origin, port) = (Origin::saying("hello"), free_port());
    let configuration = format!(
        "\
global
    nbthread 1
defaults
    mode http
    option forwardfor
    timeout connect 5s
    timeout client 20s
    timeout server 20s
frontend www
    bind 127.0.0.1:{port}
    http-request set-var(txn.path) path,lower
    http-request set-header X-Forwarded-Proto http
    http-request add-header X-Path %[var(txn.path)]
    http-request deny if {{ path_reg ^/admin }}
    http-request set-path %[path,regsub(^/x,/)]
    http-response set-header X-Frame-Options DENY
    http-response del-header Server
    default_backend app
backend app
    balance leastconn
    cookie SERVER insert indirect nocache
    server one 127.0.0.1:{} cookie a maxconn 100
",
        origin.port()
    );
    let grown = allocations_of_steady_state(
        &configuration,
        port,
        "GET /Page?a=b HTTP/1.1\r\nHost: test\r\nCookie: b=c; SERVER=a\r\n\r\n",
    );
    assert!(
        grown < SECONDLY_MAX,
        "{grown} allocations in {COUNTED} requests"
    );
}

/// Tracking, conditions on what is tracked, and a table of servers.
#[test]
fn no_allocation_for_stick_tables() {
    let (origin, port) = (Origin::saying("hello"), free_port());
    let configuration = format!(
        "\
global
    nbthread 1
defaults
    mode http
    timeout connect 5s
    timeout client 20s
    timeout server 20s
frontend www
    bind 127.0.0.1:{port}
    http-request track-sc0 src table clients
    http-request track-sc1 req.hdr(x-key) table keys
    http-request sc-inc-gpc(1,1)
    http-request deny if {{ sc_http_req_rate(0) gt 1000000 }} || {{ sc1_conn_cur gt 100 }}
    http-request set-header X-Seen %[sc1_http_req_cnt]
    default_backend app
backend clients
    stick-table type ip size 1m expire 1h store http_req_rate(10s),bytes_out_rate(1m),conn_cur
backend keys
    stick-table type string len 40 size 1m expire 1h store http_req_cnt,gpc(2),conn_cur
backend app
    stick-table type string size 1m expire 1h srvkey addr
    stick on req.cook(SESSION)
    server one 127.0.0.1:{}
",
        origin.port()
    );
    let grown = allocations_of_steady_state(
        &configuration,
        port,
        "GET / HTTP/1.1\r\nHost: test\r\nX-Key: a-client\r\nCookie: SESSION=0123456789\r\n\r\n",
    );
    assert!(
        grown < SECONDLY_MAX,
        "{grown} allocations in {COUNTED} requests"
    );
}
