//! From one version of HTTP to another: what of the fields that concern one hop a server gets, over HTTP/1
//! alone and with HTTP/2 between. What is stopped in one version must not pass in another.

use ballast_tests::origin::answer;
use ballast_tests::{Client, Origin, Program, Proxy, free_port};

/// The fields of the hop: `connection`, `upgrade`, `te`, each `-` where it is missing.
const FIELDS: [&str; 3] = ["connection", "upgrade", "te"];

/// A request line and fields, then what the server gets: over HTTP/1, and where HTTP/2 is between. A number
/// is the status of a request that no server gets.
const ROWS: &[(&str, &str, &str)] = &[
    ("GET / HTTP/1.1\r\n", "- | - | -", "- | - | -"),
    (
        "GET / HTTP/1.1\r\nConnection: keep-alive, close\r\n",
        "- | - | -",
        "- | - | -",
    ),
    (
        "GET / HTTP/1.1\r\nConnection: x-hop\r\n",
        "x-hop | - | -",
        "- | - | -",
    ),
    (
        "GET / HTTP/1.1\r\nConnection: upgrade\r\nUpgrade: foo\r\n",
        "upgrade | foo | -",
        "upgrade | foo | -",
    ),
    (
        "GET / HTTP/1.1\r\nConnection: Upgrade, keep-alive\r\nUpgrade: foo, bar\r\n",
        "Upgrade | foo, bar | -",
        "upgrade | foo | -",
    ),
    (
        "GET / HTTP/1.1\r\nConnection: upgrade\r\nUpgrade: h2c\r\n",
        "- | - | -",
        "- | - | -",
    ),
    (
        "GET / HTTP/1.1\r\nConnection: upgrade, HTTP2-Settings\r\nUpgrade: H2\r\n",
        "HTTP2-Settings | - | -",
        "- | - | -",
    ),
    (
        "GET / HTTP/1.1\r\nConnection: upgrade\r\nUpgrade: h2c, foo\r\n",
        "upgrade | foo | -",
        "upgrade | foo | -",
    ),
    (
        "GET / HTTP/1.0\r\nConnection: upgrade\r\nUpgrade: h2c\r\n",
        "keep-alive | - | -",
        "- | - | -",
    ),
    (
        "GET / HTTP/1.1\r\nUpgrade: foo\r\n",
        "- | - | -",
        "- | - | -",
    ),
    (
        "GET / HTTP/1.1\r\nConnection: upgrade\r\n",
        "- | - | -",
        "- | - | -",
    ),
    ("GET / HTTP/1.1\r\nTE: gzip\r\n", "- | - | -", "- | - | -"),
    (
        "GET / HTTP/1.1\r\nTE: gzip, trailers\r\n",
        "- | - | trailers",
        "- | - | trailers",
    ),
    (
        "GET / HTTP/1.1\r\nConnection: te\r\nTE: trailers\r\n",
        "te | - | trailers",
        "- | - | trailers",
    ),
    ("PRI / HTTP/1.1\r\n", "400", "400"),
    ("pri / HTTP/1.1\r\n", "400", "400"),
    (
        "GET / HTTP/1.1\r\nConnection: upgrade\r\nUpgrade: websocket\r\n",
        "400",
        "400",
    ),
    ("GET / HTTP/1.1\r\nTransfer-Encoding: x\r\n", "400", "400"),
];

/// What one exchange came to: the fields that the server got, or the status.
fn outcome(origin: &Origin, port: u16, head: &str) -> String {
    let before = origin.requests().len();
    let mut client = Client::connect(port);
    client.send(format!("{head}Host: a.test\r\n\r\n"));
    let status = client.response_to_head().status;
    match origin.requests().get(before) {
        None => status.to_string(),
        Some(request) => FIELDS
            .map(|name| request.header(name).unwrap_or("-"))
            .join(" | "),
    }
}

#[test]
fn fields_of_the_hop_cross_as_the_table_says() {
    for program in Program::both() {
        let origin = Origin::start(|_| answer(200, "ok"));
        let ports = [(); 3].map(|()| free_port());
        let [direct, across, between] = ports;
        let app = origin.port();
        let configuration = format!(
            "defaults\n mode http\n timeout connect 20s\n timeout client 20s\n timeout server 20s\n\
             listen direct\n bind 127.0.0.1:{direct}\n server app 127.0.0.1:{app}\n\
             listen across\n bind 127.0.0.1:{across}\n server app 127.0.0.1:{between} proto h2\n\
             listen between\n bind 127.0.0.1:{between} proto h2\n server app 127.0.0.1:{app}\n"
        );
        let _proxy = Proxy::start(&program, &configuration, &ports);
        for (head, over_http1, over_http2) in ROWS {
            let name = program.name();
            assert_eq!(
                outcome(&origin, direct, head),
                *over_http1,
                "{name}: {head}"
            );
            assert_eq!(
                outcome(&origin, across, head),
                *over_http2,
                "{name}: {head}"
            );
        }
    }
}
