//! Words of TLS towards servers that HAProxy and Ballast act on alike: what is told of a handshake
//! that failed, and TLS that a command turns on and off.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;

use ballast_tests::{
    Authority, Client, LogSink, Profile, Program, Proxy, RuntimeApi, WAIT_MAX, free_port,
};
use tempfile::TempDir;

#[test]
fn failed_handshakes_with_servers_are_told() {
    let directory = TempDir::new().expect("a temporary directory");
    let (authority, other) = (Authority::new("the authority"), Authority::new("another"));
    let at = directory.path().display();
    authority
        .issue(&Profile::server(&["a.test"]))
        .write(directory.path(), "a.pem");
    authority.write(directory.path(), "ca.pem");
    other.write(directory.path(), "other.pem");
    let told = Program::both().map(|program| {
        let sink = LogSink::start();
        let [clear, sealed, www] = [free_port(), free_port(), free_port()];
        let servers = [
            format!("{sealed} ssl verify required ca-file {at}/ca.pem"),
            format!("{sealed} ssl verify required ca-file {at}/other.pem"),
            format!("{sealed} ssl verify required ca-file {at}/ca.pem verifyhost b.test"),
            format!("{sealed} ssl verify none ssl-max-ver TLSv1.2"),
            format!("{clear} ssl verify none"),
        ];
        let mut text = format!(
            "\
defaults
    mode http
    timeout connect 5s
    timeout client 20s
    timeout server 20s
    retries 0
frontend answering
    bind 127.0.0.1:{clear}
    bind 127.0.0.1:{sealed} ssl crt {at}/a.pem ssl-min-ver TLSv1.3
    http-request return status 200
frontend www
    bind 127.0.0.1:{www}
    log 127.0.0.1:{} format raw local0
    log-format \"%b %ST %ts <%[ssl_bc]> <%[ssl_bc_err,hex]> <%[ssl_bc_err_str]>\"
    use_backend %[path,field(2,/)]
",
            sink.port()
        );
        for (number, words) in servers.iter().enumerate() {
            text += &format!("backend b{number}\n    server s 127.0.0.1:{words}\n");
        }
        let _proxy = Proxy::start(&program, &text, &[clear, www]);
        let mut told = Vec::new();
        for number in 0..servers.len() {
            let _ = Client::get_once(www, &format!("/b{number}"));
            told.push(sink.line_with(&format!("b{number} ")));
        }
        told
    });
    let [theirs, ours] = &told;
    assert!(
        theirs[1].contains("certificate verify failed"),
        "{theirs:?}"
    );
    assert_eq!(theirs, ours);
}

#[test]
fn a_command_turns_tls_on_and_off() {
    for program in Program::both() {
        let server = TcpListener::bind("127.0.0.1:0").expect("a port");
        let server_port = server.local_addr().expect("its address").port();
        let (told, first_bytes) = channel();
        std::thread::spawn(move || {
            for stream in server.incoming() {
                let mut stream = stream.expect("a connection");
                let mut bytes = [0; 16_384];
                let count = stream.read(&mut bytes).unwrap_or(0);
                if count > 0 {
                    let _ = told.send(bytes[0]);
                    let _ = stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n");
                }
            }
        });
        let port = free_port();
        let directory = TempDir::new().expect("a temporary directory");
        let socket = directory.path().join("s");
        let text = format!(
            "\
global
    stats socket {} level admin
defaults
    mode http
    timeout connect 5s
    timeout client 20s
    timeout server 20s
    retries 0
listen www
    bind 127.0.0.1:{port}
    default-server ssl verify none
    server s 127.0.0.1:{server_port}
    server never 127.0.0.1:{server_port} no-ssl disabled
backend clear
    server s 127.0.0.1:{server_port}
",
            socket.display()
        );
        let _proxy = Proxy::start(&program, &text, &[port]);
        let api = RuntimeApi::at(&socket);
        let set = |words: &str| api.ask(&format!("set server {words}")).trim().to_owned();
        let first_byte = || {
            let _ = Client::get_once(port, "/");
            first_bytes.recv_timeout(WAIT_MAX).expect("a byte")
        };
        let done = "server ssl setting updated.";
        let unfit = "'set server <srv> ssl' expects 'on' or 'off'.";
        let unset =
            "'set server <srv> ssl' cannot be set.  default-server should define ssl settings";
        assert_eq!(first_byte(), 0x16, "{}", program.name());
        assert_eq!(set("www/s ssl off"), done);
        assert_eq!(first_byte(), b'G');
        assert_eq!(set("www/s ssl"), unfit);
        assert_eq!(set("www/s ssl yes"), unfit);
        assert_eq!(first_byte(), b'G');
        assert_eq!(set("www/s ssl on"), done);
        assert_eq!(first_byte(), 0x16);
        assert_eq!(set("www/never ssl on"), done);
        assert_eq!(set("clear/s ssl on"), unset);
        if program.is_ballast() {
            assert!(api.ask("show overrides").contains("ssl"));
        }
    }
}

/// The lengths of the records with data that `openssl s_client` receives.
fn record_lengths(port: u16) -> Vec<usize> {
    let mut client = Command::new("openssl")
        .args(["s_client", "-msg", "-ign_eof", "-connect"])
        .arg(format!("127.0.0.1:{port}"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("openssl runs");
    let mut stdin = client.stdin.take().expect("a pipe");
    let _ = stdin.write_all(b"GET / HTTP/1.0\r\n\r\n");
    let output = client.wait_with_output().expect("it ends");
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    let heads = told.lines().collect::<Vec<_>>();
    let received = heads
        .windows(2)
        .filter(|lines| lines[0].contains("<<<") && lines[0].contains("RecordHeader"));
    received
        .filter_map(|lines| lines[1].trim().strip_prefix("17 03 03 "))
        .map(|length| usize::from_str_radix(&length.replace(' ', ""), 16).expect("a length"))
        .collect()
}

#[test]
fn records_are_as_long_as_the_configuration_allows() {
    let directory = TempDir::new().expect("a temporary directory");
    let at = directory.path().display();
    let authority = Authority::new("the authority");
    authority
        .issue(&Profile::server(&["a.test"]))
        .write(directory.path(), "a.pem");
    fs::write(directory.path().join("body"), vec![b'x'; 12_000]).expect("a file");
    for program in Program::both() {
        let [clear, sealed] = [free_port(), free_port()];
        let text = format!(
            "\
global
    tune.ssl.hard-maxrecord 1000
defaults
    mode http
    timeout client 20s
frontend www
    bind 127.0.0.1:{clear}
    bind 127.0.0.1:{sealed} ssl crt {at}/a.pem
    http-request return status 200 content-type text/plain file {at}/body
"
        );
        let _proxy = Proxy::start(&program, &text, &[clear]);
        let lengths = record_lengths(sealed);
        // The type and the tag come to what is encrypted.
        let longest = lengths.iter().max().copied();
        assert_eq!(longest, Some(1017), "{}: {lengths:?}", program.name());
        assert!(lengths.len() > 10, "{lengths:?}");
    }
}

/// The first record of a client's hello in pieces of one byte each: 300 records.
#[test]
fn a_hello_in_small_records_is_read() {
    let directory = TempDir::new().expect("a temporary directory");
    let at = directory.path().display();
    let authority = Authority::new("the authority");
    authority
        .issue(&Profile::server(&["a.test"]))
        .write(directory.path(), "a.pem");
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("its address").port();
    let mut client = Command::new("openssl")
        .args(["s_client", "-tls1_2", "-servername", "a.test", "-connect"])
        .arg(format!("127.0.0.1:{port}"))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("openssl runs");
    let (mut stream, _) = listener.accept().expect("a connection");
    let mut head = [0; 5];
    stream.read_exact(&mut head).expect("the head of a record");
    let mut hello = vec![0; usize::from(u16::from_be_bytes([head[3], head[4]]))];
    stream.read_exact(&mut hello).expect("a hello");
    drop(stream);
    let _ = client.wait();
    let pieces: Vec<u8> = hello
        .iter()
        .flat_map(|byte| [22, 3, 1, 0, 1, *byte])
        .collect();
    assert!(hello.len() > 100);
    for program in Program::both() {
        let [clear, sealed] = [free_port(), free_port()];
        let text = format!(
            "\
defaults
    mode http
    timeout client 20s
frontend www
    bind 127.0.0.1:{clear}
    bind 127.0.0.1:{sealed} ssl crt {at}/a.pem
    http-request return status 200
"
        );
        let _proxy = Proxy::start(&program, &text, &[clear]);
        let mut stream = TcpStream::connect(("127.0.0.1", sealed)).expect("it listens");
        stream.set_read_timeout(Some(WAIT_MAX)).expect("a limit");
        stream.write_all(&pieces).expect("it is read");
        let mut head = [0; 6];
        stream.read_exact(&mut head).expect("an answer");
        // A ServerHello.
        assert_eq!((head[0], head[5]), (22, 2), "{}", program.name());
    }
}
