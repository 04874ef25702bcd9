//! PROXY headers of version 2 with facts of TLS, and values of a client's own header: both programs
//! write and read the same bytes.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, channel};

use ballast_tests::{Authority, Client, Profile, Program, Proxy, WAIT_MAX, free_port};
use tempfile::TempDir;

/// Words of a `server` line.
const LINES: &[&str] = &[
    "send-proxy-v2",
    "send-proxy-v2-ssl",
    "send-proxy-v2-ssl-cn",
    "send-proxy-v2 proxy-v2-options ssl,cert-cn,cert-sig,cert-key,ssl-cipher,authority,crc32c,unique-id",
    "proxy-v2-options cert-key,authority send-proxy send-proxy-v2",
    // Words are switches: the other options of TLS come with `ssl` only.
    "proxy-v2-options cert-sig,crc32c no-send-proxy-v2-ssl-cn send-proxy-v2",
    "send-proxy-v2-ssl-cn no-send-proxy-v2-ssl send-proxy-v2-ssl",
];

/// What `openssl s_client` is asked to do.
const CLIENTS: &[&str] = &[
    "-tls1_3 -servername a.test -alpn http/1.1 -cert client.pem",
    "-tls1_2 -servername a.test",
    "-tls1_2 -noservername -cert other.pem",
    "-tls1_3 -noservername -cert stranger.pem",
];

/// A server that keeps its connections, answers each request with nothing, and tells the header at
/// the beginning of each connection.
fn server() -> (u16, Receiver<Vec<u8>>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("its address").port();
    let (told, headers) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let told = told.clone();
            std::thread::spawn(move || serve(stream.expect("a connection"), &told));
        }
    });
    (port, headers)
}

fn serve(mut stream: TcpStream, told: &std::sync::mpsc::Sender<Vec<u8>>) {
    let mut fixed = [0; 16];
    stream.read_exact(&mut fixed).expect("the fixed part");
    assert_eq!(&fixed[..12], b"\r\n\r\n\0\r\nQUIT\n");
    let length = u16::from_be_bytes([fixed[14], fixed[15]]);
    let mut rest = vec![0; usize::from(length)];
    stream.read_exact(&mut rest).expect("addresses and values");
    let _ = told.send([&fixed[12..14], &rest[..]].concat());
    let mut request = [0; 4096];
    while stream.read(&mut request).is_ok_and(|count| count > 0) {
        if stream
            .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
            .is_err()
        {
            return;
        }
    }
}

/// A header without what differs from one connection to the next: the addresses of IPv4, and the
/// checksum.
fn values(header: &[u8]) -> String {
    let mut text = format!("{:02x?}", &header[..2]);
    let mut rest = &header[14..];
    while let [kind, high, low, after @ ..] = rest {
        let (value, after) = after.split_at(usize::from(u16::from_be_bytes([*high, *low])));
        text += &match kind {
            3 => format!(" 3:{}", value.len()),
            _ => format!(" {kind:x}:{}", value.escape_ascii()),
        };
        rest = after;
    }
    text
}

fn files() -> TempDir {
    let directory = TempDir::new().expect("a temporary directory");
    let write = |name: &str, text: String| {
        fs::write(directory.path().join(name), text).expect("it is written");
    };
    let (authority, stranger) = (Authority::new("the authority"), Authority::new("another"));
    write("ca.pem", authority.certificate());
    let site = authority.issue(&Profile::server(&["a.test"]));
    write("a.pem", site.bundle());
    let client = |by: &Authority, name| by.issue(&Profile::client(name)).bundle();
    write("client.pem", client(&authority, "a client"));
    write("other.pem", client(&authority, "another client"));
    write("stranger.pem", client(&stranger, "a stranger"));
    directory
}

/// Asks once with these words of `openssl s_client`.
fn ask(files: &TempDir, words: &str, port: u16) {
    let mut client = Command::new("openssl")
        .current_dir(files.path())
        .args(["s_client", "-quiet", "-connect"])
        .arg(format!("127.0.0.1:{port}"))
        .args(words.split(' '))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("openssl runs");
    let mut stdin = client.stdin.take().expect("a pipe");
    let _ = stdin.write_all(b"GET / HTTP/1.0\r\n\r\n");
    let output = client.wait_with_output().expect("it ends");
    assert!(
        output.stdout.starts_with(b"HTTP/1.1 200"),
        "{words}: {}",
        output.stdout.escape_ascii()
    );
}

/// The headers of all lines and clients with one program.
fn headers(program: &Program, files: &TempDir) -> Vec<String> {
    let (server, headers) = server();
    let at = files.path().display();
    let (sealed, clear) = (free_port(), free_port());
    let mut text = format!(
        "\
defaults
    mode http
    timeout connect 5s
    timeout client 20s
    timeout server 20s
    http-reuse always
frontend www
    bind 127.0.0.1:{sealed} ssl crt {at}/a.pem alpn http/1.1 ca-file {at}/ca.pem verify optional \
crt-ignore-err all ca-ignore-err all
    bind 127.0.0.1:{clear}
    unique-id-format an-id
"
    );
    // One of them at a time takes the requests.
    for number in 0..LINES.len() {
        text += &format!("    use_backend b{number} if {{ nbsrv(b{number}) gt 0 }}\n");
    }
    for (number, words) in LINES.iter().enumerate() {
        text += &format!("backend b{number}\n    server s 127.0.0.1:{server} disabled {words}\n");
    }
    text = format!(
        "global\n    stats socket {at}/{}.sock level admin\n{text}",
        program.name()
    );
    let proxy = Proxy::start(program, &text, &[clear]);
    let api = ballast_tests::RuntimeApi::at(files.path().join(format!("{}.sock", program.name())));
    let mut told = Vec::new();
    let mut next = |what: String| {
        let header = headers.recv_timeout(WAIT_MAX).expect("a header");
        told.push(format!("{what}: {}", values(&header)));
    };
    for (number, words) in LINES.iter().enumerate() {
        let _ = api.ask(&format!("set server b{number}/s state ready"));
        for client in CLIENTS {
            ask(files, client, sealed);
            next(format!("{words} with {client}"));
        }
        for version in ["-tls1_2", "-tls1_3"] {
            let words = format!("{version} -servername a.test -cert client.pem");
            ask(files, &format!("{words} -sess_out session"), sealed);
            next(format!("{words}, full"));
            ask(files, &format!("{words} -sess_in session"), sealed);
            next(format!("{words}, resumed"));
        }
        let _ = Client::get_once(clear, "/");
        next(format!("{words} in clear"));
        let _ = api.ask(&format!("set server b{number}/s state maint"));
    }
    drop(proxy);
    told
}

#[test]
fn what_headers_tell_of_tls_is_haproxys() {
    let files = files();
    let [theirs, ours] = Program::both().map(|program| headers(&program, &files));
    assert!(theirs.iter().any(|told| told.contains("a client")));
    for (theirs, ours) in theirs.iter().zip(&ours) {
        assert_eq!(theirs, ours);
    }
    assert_eq!(theirs.len(), LINES.len() * (CLIENTS.len() + 5));
}

/// The values of a header, with their types.
type Values<'v> = &'v [(u8, &'v [u8])];

/// A header of version 2 for an IPv4 client, with these values.
fn header(values: Values<'_>) -> Vec<u8> {
    let mut body = vec![1, 2, 3, 4, 5, 6, 7, 8, 0, 11, 0, 22];
    for (kind, value) in values {
        body.push(*kind);
        let length = u16::try_from(value.len()).expect("a short value");
        body.extend_from_slice(&length.to_be_bytes());
        body.extend_from_slice(value);
    }
    let mut header = b"\r\n\r\n\0\r\nQUIT\n\x21\x11".to_vec();
    let length = u16::try_from(body.len()).expect("a short header");
    header.extend_from_slice(&length.to_be_bytes());
    header.extend_from_slice(&body);
    header
}

#[test]
fn values_of_a_clients_header_are_told() {
    let (long, longest) = ([b'x'; 1025], [b'y'; 1024]);
    let cases: &[(Values<'_>, bool)] = &[
        (&[], true),
        (
            &[
                (1, b"h2"),
                (2, b"first.test"),
                (2, b"second.test"),
                (5, b"id"),
                (0x20, b"\x07\0\0\0\0\x21\0\x07TLSv1.3"),
                (0x30, b"ns"),
                (0xe1, b"one\0x"),
                (0xe1, b"two"),
            ],
            true,
        ),
        (&[(0xe1, &longest)], true),
        (&[(0xe1, &long)], false),
        (&[(4, &long)], false),
        (&[(2, &long[..256])], false),
        (&[(2, &[])], true),
    ];
    for program in Program::both() {
        let port = free_port();
        let asked = [
            "fc_pp_authority",
            "fc_pp_unique_id",
            "fc_pp_tlv(alpn),hex",
            "fc_pp_tlv(AUTHORITY)",
            "fc_pp_tlv(ssl),hex",
            "fc_pp_tlv(ssl_version)",
            "fc_pp_tlv(netns)",
            "fc_pp_tlv(0xe1),hex",
            "fc_pp_tlv(225),length",
            "fc_pp_tlv(crc32c)",
        ];
        let line: Vec<String> = asked.iter().map(|it| format!("<%[{it}]>")).collect();
        let text = format!(
            "\
defaults
    mode http
    timeout connect 5s
    timeout client 20s
    timeout server 20s
frontend www
    bind 127.0.0.1:{port} accept-proxy
    http-request return status 201 if {{ fc_pp_tlv(0xe1) two }}
    http-request return status 200 content-type text/plain lf-string \"{}\"
",
            line.join("")
        );
        let _proxy = Proxy::start(&program, &text, &[port]);
        let mut told = Vec::new();
        for (values, is_taken) in cases {
            let mut client = Client::connect(port);
            client.send([&header(values)[..], b"GET / HTTP/1.0\r\n\r\n"].concat());
            match client.try_response(false) {
                Ok(response) => told.push((response.status, response.text())),
                Err(_) => told.push((0, String::new())),
            }
            assert_eq!(told.last().is_some_and(|told| told.0 != 0), *is_taken);
        }
        let text = |longest: usize, value: &str| format!("<><><><><><><><{value}><{longest}><>");
        let expected = [
            (200, "<><><><><><><><><><>".to_owned()),
            // An ACL looks at every value of a type.
            (201, String::new()),
            (200, text(1024, &"79".repeat(1024))),
        ];
        assert_eq!(told[..3], expected, "{}", program.name());
    }
}
