//! Both peers stay in step with the proxy: heads frame what follows, connections are used only by
//! clients that may, and waits end when they should and no sooner.

use std::thread;
use std::time::Duration;

use ballast_tests::origin::answer;
use ballast_tests::{Client, Origin, Program, Proxy, Request, free_port};
use rustix::process::Signal;

const GET: &str = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

fn configuration(port: u16, origin: &Origin, front: &str, back: &str) -> String {
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
    {front}
    default_backend app
backend app
    {back}
    server one 127.0.0.1:{}
",
        origin.port()
    )
}

/// Runs the body on both programs, each with a new origin.
fn on_both(
    (front, back): (&str, &str),
    answer: impl Fn(&Request) -> Vec<u8> + Clone + Send + Sync + 'static,
    body: impl Fn(&Program, &mut Proxy, u16, &Origin),
) {
    for program in Program::both() {
        let (origin, port) = (Origin::start(answer.clone()), free_port());
        let text = configuration(port, &origin, front, back);
        let mut proxy = Proxy::start(&program, &text, &[port]);
        body(&program, &mut proxy, port, &origin);
    }
}

/// A response is parsed according to the method of its request: what a server sends after the head
/// of a response to HEAD must not be taken for its next response.
#[test]
fn a_head_made_a_get_leaves_nothing_behind() {
    let rule = "http-request set-method GET if { method HEAD }";
    on_both(
        (rule, "http-reuse always"),
        |request| {
            answer(
                200,
                if request.header("Second").is_some() {
                    "right"
                } else {
                    "wrong"
                },
            )
        },
        |program, _, port, origin| {
            let mut client = Client::connect(port);
            client.send("HEAD / HTTP/1.1\r\nHost: a\r\n\r\n");
            assert_eq!(client.response_to_head().status, 200, "{}", program.name());
            client.send("GET / HTTP/1.1\r\nHost: a\r\nSecond: yes\r\n\r\n");
            assert_eq!(client.response().text(), "right", "{}", program.name());
            assert_eq!(origin.connections(), 1, "{}", program.name());
        },
    );
}

#[test]
fn a_response_robbed_of_its_length_is_still_whole() {
    for (rule, body) in [
        ("http-response del-header content-length", "body"),
        ("http-response set-status 204", ""),
        ("http-response set-status 304", ""),
    ] {
        on_both(
            (rule, ""),
            |_| answer(200, "body"),
            |program, _, port, _| {
                let mut client = Client::connect(port);
                for _ in 0..2 {
                    client.send(GET);
                    let response = client.response();
                    assert_eq!(response.text(), body, "{}: {rule}", program.name());
                    // HAProxy 3.2 marks the end by closing, Ballast with a last chunk.
                    if response.header("connection") == Some("close") {
                        client = Client::connect(port);
                    }
                }
            },
        );
    }
}

/// Nor is the body of a request taken for the next request to the server.
#[test]
fn a_request_robbed_of_its_length_is_still_whole() {
    on_both(
        ("http-request del-header content-length", ""),
        |_| answer(200, ""),
        |program, _, port, origin| {
            let mut client = Client::connect(port);
            client.send(
                "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 18\r\n\r\nGET /2 HTTP/1.1\r\n\r",
            );
            assert_eq!(client.response().status, 200, "{}", program.name());
            client.send(GET);
            assert_eq!(client.response().status, 200, "{}", program.name());
            let targets: Vec<_> = origin
                .requests()
                .iter()
                .map(|it| it.target().to_owned())
                .collect();
            assert_eq!(targets, ["/", "/"], "{}", program.name());
        },
    );
}

/// NTLM authenticates a connection, not a request: no other client may use it.
#[test]
fn a_connection_that_knows_its_client_serves_no_other() {
    on_both(
        ("", "http-reuse always"),
        |_| b"HTTP/1.1 401 No\r\nWWW-Authenticate: NTLM\r\nContent-Length: 0\r\n\r\n".to_vec(),
        |program, _, port, origin| {
            let mut first = Client::connect(port);
            for _ in 0..2 {
                assert_eq!(first.get("/").status, 401, "{}", program.name());
            }
            assert_eq!(origin.connections(), 1, "{}", program.name());
            assert_eq!(
                Client::get_once(port, "/").status,
                401,
                "{}",
                program.name()
            );
            assert_eq!(origin.connections(), 2, "{}", program.name());
        },
    );
}

#[test]
fn a_protocol_nobody_asked_for_is_refused() {
    on_both(
        ("", ""),
        |_| b"HTTP/1.1 101 Other\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n".to_vec(),
        |program, _, port, _| {
            assert_eq!(
                Client::get_once(port, "/").status,
                502,
                "{}",
                program.name()
            );
        },
    );
}

/// `timeout server` limits the server's time to respond, not the client's time to send.
#[test]
fn an_upload_may_last_longer_than_the_server_may_think() {
    on_both(
        ("", "timeout server 400ms"),
        |_| answer(200, ""),
        |program, _, port, _| {
            let mut client = Client::connect(port);
            client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 8\r\n\r\n");
            for _ in 0..8 {
                thread::sleep(Duration::from_millis(100));
                client.send("x");
            }
            assert_eq!(client.response().status, 200, "{}", program.name());
        },
    );
}

/// A process must be able to end while clients keep idle connections.
#[test]
fn a_soft_stop_lets_idle_clients_go() {
    on_both(
        ("", ""),
        |_| answer(200, ""),
        |program, proxy, port, _| {
            let mut client = Client::connect(port);
            assert_eq!(client.get("/").status, 200, "{}", program.name());
            proxy.signal(Signal::USR1);
            assert!(client.is_closed(), "{}", program.name());
            assert!(proxy.wait().success(), "{}", program.name());
        },
    );
}
