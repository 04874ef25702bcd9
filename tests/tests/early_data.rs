//! Requests that come with a client's hello (`allow-0rtt`), on HAProxy and on Ballast. The client
//! holds back the end of its handshake, so that it is known what is done before it.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

use ballast_tests::{
    Authority, Launch, Origin, Profile, Program, Proxy, Request, WAIT_MAX, eventually, free_port,
};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

const SITE: &str = "\
defaults
    mode http
    timeout connect 5s
    timeout client 5s
    timeout server 5s
    timeout client-hs 2s
frontend sealed
    bind 127.0.0.1:SEALED ssl crt site.pem alpn http/1.1 allow-0rtt WORDS
    http-request wait-for-handshake if { path /wait }
    http-request set-header x-has %[ssl_fc_has_early]
    http-request set-header x-rcvd %[ssl_fc_early_rcvd]
    default_backend app
backend app
    server app 127.0.0.1:ORIGIN
";

struct Site {
    proxy: Proxy,
    origin: Origin,
    port: u16,
    client: Arc<ClientConfig>,
}

impl Site {
    fn start(program: &Program, words: &str) -> Self {
        let authority = Authority::new("the authority of the test");
        let certificate = authority.issue(&Profile::server(&["a.test"]));
        let origin = Origin::saying("hello");
        let port = free_port();
        let keys = format!("{0}\n{0}\n{0}\n", "A".repeat(64));
        let text = SITE
            .replace("WORDS", words)
            .replace(":SEALED", &format!(":{port}"))
            .replace(":ORIGIN", &format!(":{}", origin.port()));
        let launch = Launch {
            files: &[("site.pem", &certificate.bundle()), ("keys", &keys)],
            ports: &[port],
            ..Launch::default()
        };
        let proxy = Proxy::launch(program, &text, &launch);
        let mut roots = RootCertStore::empty();
        let root = CertificateDer::from_pem_slice(authority.certificate().as_bytes());
        roots.add(root.expect("a certificate")).expect("a root");
        let mut client = ClientConfig::builder()
            .with_root_certificates(roots)
            .with_no_client_auth();
        client.enable_early_data = true;
        client.alpn_protocols = vec![b"http/1.1".to_vec()];
        let site = Self {
            proxy,
            origin,
            port,
            client: Arc::new(client),
        };
        // The first connection brings the session.
        let mut first = StreamOwned::new(site.connection(), site.socket());
        first.write_all(&request("/first")).expect("it is sent");
        answer(&mut first);
        site
    }

    fn connection(&self) -> ClientConnection {
        let name = ServerName::try_from("a.test").expect("a name");
        ClientConnection::new(Arc::clone(&self.client), name).expect("a connection")
    }

    fn socket(&self) -> TcpStream {
        let socket = TcpStream::connect(("127.0.0.1", self.port)).expect("it accepts");
        socket.set_read_timeout(Some(WAIT_MAX)).expect("a timeout");
        socket
    }

    /// Sends this request with a hello, and nothing more; also the bytes that were sent.
    fn early(&self, path: &str) -> (ClientConnection, TcpStream, Vec<u8>) {
        let mut connection = self.connection();
        let mut early = connection.early_data().expect("a session allows it");
        early.write_all(&request(path)).expect("it fits");
        let mut flight = Vec::new();
        while connection.wants_write() {
            connection.write_tls(&mut flight).expect("memory");
        }
        let mut socket = self.socket();
        socket.write_all(&flight).expect("it is sent");
        (connection, socket, flight)
    }

    /// Requests of this path that the server got.
    fn got(&self, path: &str) -> Vec<Request> {
        let mut requests = self.origin.requests();
        requests.retain(|request| request.target() == path);
        requests
    }

    fn until_got(&self, path: &str) -> Request {
        eventually("the server got it", || !self.got(path).is_empty());
        self.got(path).remove(0)
    }
}

fn request(path: &str) -> Vec<u8> {
    format!("GET {path} HTTP/1.1\r\nHost: a.test\r\n\r\n").into_bytes()
}

/// Reads a response of a known body.
fn answer(stream: &mut impl Read) -> String {
    let (mut text, mut byte) = (Vec::new(), [0]);
    while !text.ends_with(b"hello") {
        stream.read_exact(&mut byte).expect("a response");
        text.push(byte[0]);
    }
    String::from_utf8(text).expect("a text")
}

#[test]
fn the_server_is_told_of_what_came_before_the_end_of_the_handshake() {
    for program in Program::both() {
        let site = Site::start(&program, "");
        let first = site.until_got("/first");
        assert_eq!(first.header("early-data"), None);
        assert_eq!(first.header("x-rcvd"), Some("0"));
        let (connection, socket, _) = site.early("/early");
        // It got there, and the client has not said another word.
        let early = site.until_got("/early");
        assert_eq!(early.header("early-data"), Some("1"), "{}", program.name());
        assert_eq!(early.header("x-has"), Some("1"));
        assert_eq!(early.header("x-rcvd"), Some("1"));
        let mut stream = StreamOwned::new(connection, socket);
        assert!(answer(&mut stream).starts_with("HTTP/1.1 200"));
        assert!(stream.conn.is_early_data_accepted());
        stream.write_all(&request("/later")).expect("it is sent");
        answer(&mut stream);
        let later = site.until_got("/later");
        assert_eq!(later.header("early-data"), None, "{}", program.name());
        assert_eq!(later.header("x-has"), Some("0"));
        assert_eq!(later.header("x-rcvd"), Some("1"));
    }
}

/// HAProxy 3.2 holds the answer until the client has finished its handshake.
#[test]
fn the_answer_does_not_wait_for_the_end_of_the_handshake() {
    let site = Site::start(&Program::ballast(), "");
    let (mut connection, mut socket, _) = site.early("/early");
    let mut read = String::new();
    while !read.ends_with("hello") {
        connection.read_tls(&mut socket).expect("records");
        let state = connection.process_new_packets().expect("a server's");
        let mut bytes = vec![0; state.plaintext_bytes_to_read()];
        connection.reader().read_exact(&mut bytes).expect("bytes");
        read.push_str(&String::from_utf8(bytes).expect("a text"));
    }
    assert!(read.starts_with("HTTP/1.1 200"));
}

/// HAProxy 3.2 waits, and does not go on when the handshake is over.
#[test]
fn a_rule_may_wait_for_the_end_of_the_handshake() {
    let site = Site::start(&Program::ballast(), "");
    let (connection, socket, _) = site.early("/wait");
    // Another one passes meanwhile.
    let other = Site::early(&Site::start(&Program::ballast(), ""), "/early");
    drop(other);
    assert!(site.got("/wait").is_empty());
    let mut stream = StreamOwned::new(connection, socket);
    answer(&mut stream);
    let waited = site.until_got("/wait");
    assert_eq!(waited.header("early-data"), None);
    assert_eq!(waited.header("x-has"), Some("0"));
    assert_eq!(waited.header("x-rcvd"), Some("1"));
}

#[test]
fn who_never_ends_its_handshake_is_not_waited_for_longer_than_it_may_take() {
    let site = Site::start(&Program::ballast(), "");
    let (_, mut socket, _) = site.early("/wait");
    // The end comes before the patience of this test.
    socket.read_to_end(&mut Vec::new()).expect("an end");
    assert!(site.got("/wait").is_empty());
}

#[test]
fn what_came_early_cannot_be_repeated() {
    let site = Site::start(&Program::ballast(), "");
    let (connection, socket, flight) = site.early("/once");
    site.until_got("/once");
    let mut again = site.socket();
    again.write_all(&flight).expect("it is sent");
    // A full handshake begins: our records, and nothing for the server.
    assert!(again.read(&mut [0; 4096]).expect("records") > 500);
    let mut stream = StreamOwned::new(connection, socket);
    answer(&mut stream);
    assert_eq!(site.got("/once").len(), 1);
}

#[test]
fn shared_keys_of_tickets_win_and_it_is_said() {
    let site = Site::start(&Program::ballast(), "tls-ticket-keys keys");
    let said = site.proxy.stderr();
    assert!(said.contains("no early data are taken"), "{said}");
    let mut connection = site.connection();
    assert!(connection.early_data().is_none());
    let mut stream = StreamOwned::new(connection, site.socket());
    stream.write_all(&request("/again")).expect("it is sent");
    answer(&mut stream);
    let kind = stream.conn.handshake_kind();
    assert_eq!(kind, Some(rustls::HandshakeKind::Resumed));
}
