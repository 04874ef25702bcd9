//! The effect of `server` options on the bytes that a server receives, where a script cannot check
//! it.

use std::io::{Read, Write};
use std::net::TcpListener;

use ballast_tests::{Client, Program, Proxy, WAIT_MAX, free_port};

/// The values of a PROXY header of version 2, type and content.
fn values(mut header: &[u8]) -> Vec<(u8, Vec<u8>)> {
    let mut found = Vec::new();
    while let [kind, high, low, rest @ ..] = header {
        let length = usize::from(u16::from_be_bytes([*high, *low]));
        found.push((*kind, rest[..length].to_vec()));
        header = &rest[length..];
    }
    found
}

#[test]
fn values_of_the_line_are_told_to_the_server_for_each_request() {
    for program in Program::both() {
        let server = TcpListener::bind("127.0.0.1:0").expect("a port");
        let server_port = server.local_addr().expect("its address").port();
        let serving = std::thread::spawn(move || {
            let mut told = Vec::new();
            // Kept open: a connection that is used for the wrong request gets no response.
            let mut open = Vec::new();
            for _ in 0..3 {
                let (mut stream, _) = server.accept().expect("a connection");
                stream.set_read_timeout(Some(WAIT_MAX)).expect("a limit");
                let mut fixed = [0; 16];
                stream.read_exact(&mut fixed).expect("the fixed part");
                assert_eq!(&fixed[..13], b"\r\n\r\n\0\r\nQUIT\n\x21");
                let length = u16::from_be_bytes([fixed[14], fixed[15]]);
                let mut rest = vec![0; usize::from(length)];
                stream.read_exact(&mut rest).expect("addresses and values");
                // Two IPv4 addresses and ports come first.
                told.push(values(&rest[12..]));
                let mut request = [0; 4096];
                let count = stream.read(&mut request).expect("a request");
                assert!(request[..count].starts_with(b"GET /"));
                stream
                    .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
                    .expect("the answer is taken");
                open.push(stream);
            }
            told
        });
        let port = free_port();
        let configuration = format!(
            "\
defaults
    mode http
    timeout connect 5s
    timeout client 20s
    timeout server 20s
listen www
    bind 127.0.0.1:{port}
    http-reuse always
    http-request set-var(txn.path) path
    unique-id-format id-of-%[path]
    server one 127.0.0.1:{server_port} send-proxy-v2 proxy-v2-options unique-id set-proxy-v2-tlv-fmt(0xE1) %[var(txn.path)] \
set-proxy-v2-tlv-fmt(226) %[req.hdr(x-none)] set-proxy-v2-tlv-fmt(0xE3) from\\ %ci
"
        );
        let _proxy = Proxy::start(&program, &configuration, &[port]);
        assert_eq!(Client::get_once(port, "/first").text(), "ok");
        // HAProxy has released the request by then, so a variable keeps the path. The values
        // differ, so one connection cannot be used for both.
        let mut client = Client::connect(port);
        assert_eq!(client.get("/second").text(), "ok");
        assert_eq!(client.get("/third").text(), "ok");
        let expected = |path: &str| {
            vec![
                (0xE1, path.as_bytes().to_vec()),
                (0xE2, Vec::new()),
                (0xE3, b"from 127.0.0.1".to_vec()),
                (0x05, format!("id-of-{path}").into_bytes()),
            ]
        };
        let told = serving.join().expect("the server ends well");
        let wanted = ["/first", "/second", "/third"].map(expected);
        assert_eq!(told, wanted, "{}", program.name());
    }
}
