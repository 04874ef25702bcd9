//! gRPC through the proxy: grpc-go's client and server, with all four kinds of calls.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use ballast_tests::{Authority, Profile, Program, Proxy, eventually, free_port};
use tempfile::TempDir;

/// The program that `scripts/go-program grpc` builds.
fn grpc() -> Command {
    Command::new(std::env::var("GRPC").expect("GRPC names the program"))
}

/// The server. Dropping it kills it.
struct Server(Child);

impl Server {
    fn start(port: u16) -> Self {
        let child = grpc()
            .args(["server", &format!("127.0.0.1:{port}")])
            .stdin(Stdio::null())
            .spawn()
            .expect("the server starts");
        let server = Self(child);
        eventually("the server listens", || {
            std::net::TcpStream::connect(("127.0.0.1", port)).is_ok()
        });
        server
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It fails when the program has ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// All calls of the client.
#[track_caller]
fn call(words: &str, directory: &Path, name: &str) {
    let output = grpc()
        .arg("client")
        .args(words.split(' '))
        .current_dir(directory)
        .output()
        .expect("the client starts");
    let [said, faults] =
        [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
    assert!(output.status.success(), "{name}: {words}: {said}{faults}");
    assert_eq!(said.lines().count(), 12, "{name}: {said}");
}

#[test]
#[ignore = "it needs a program in Go: `make exam` builds it and names it by GRPC"]
fn all_kinds_of_calls_pass() {
    let directory = TempDir::new().expect("a temporary directory");
    let at = directory.path();
    let authority = Authority::new("the authority of the test");
    authority.write(at, "ca.pem");
    authority
        .issue(&Profile::server(&["127.0.0.1"]))
        .write(at, "a.pem");
    for program in Program::both() {
        let [server, clear, sealed] = [(); 3].map(|()| free_port());
        let _server = Server::start(server);
        let configuration = format!(
            "global\n maxconn 500\n\
             defaults\n mode http\n timeout connect 5s\n timeout client 60s\n timeout server 60s\n\
             frontend site\n bind 127.0.0.1:{clear} proto h2\n \
             bind 127.0.0.1:{sealed} ssl crt {}/a.pem alpn h2\n default_backend app\n\
             backend app\n server s 127.0.0.1:{server} proto h2\n",
            at.display()
        );
        let _proxy = Proxy::start(&program, &configuration, &[clear, sealed]);
        // HAProxy 3.2 does not end calls of 50 kB that are side by side on a connection.
        let bytes = if program.is_ballast() { 300_000 } else { 0 };
        let name = program.name();
        call(&format!("-bytes {bytes} 127.0.0.1:{clear}"), at, name);
        call(
            &format!("-bytes {bytes} -ca ca.pem 127.0.0.1:{sealed}"),
            at,
            name,
        );
    }
}

/// What grpcurl prints; it learns by reflection what there is to call.
#[track_caller]
fn grpcurl(directory: &Path, words: &[&str]) -> (bool, String) {
    let output = Command::new(std::env::var("GRPCURL").expect("GRPCURL names the program"))
        .args(["-max-time", "30"])
        .args(words)
        .current_dir(directory)
        .output()
        .expect("grpcurl starts");
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    let words: Vec<&str> = text.split_whitespace().collect();
    (output.status.success(), words.join(" "))
}

#[test]
#[ignore = "it needs programs in Go: `make exam` builds them and names them by GRPC and GRPCURL"]
fn grpcurl_calls_by_reflection() {
    let directory = TempDir::new().expect("a temporary directory");
    let at = directory.path();
    let authority = Authority::new("the authority of the test");
    authority.write(at, "ca.pem");
    authority
        .issue(&Profile::server(&["127.0.0.1"]))
        .write(at, "a.pem");
    for program in Program::both() {
        let [server, clear, sealed] = [(); 3].map(|()| free_port());
        let _server = Server::start(server);
        let configuration = format!(
            "global\n maxconn 500\n\
             defaults\n mode http\n timeout connect 5s\n timeout client 60s\n timeout server 60s\n\
             frontend site\n bind 127.0.0.1:{clear} proto h2\n \
             bind 127.0.0.1:{sealed} ssl crt {}/a.pem alpn h2\n default_backend app\n\
             backend app\n server s 127.0.0.1:{server} proto h2\n",
            at.display()
        );
        let _proxy = Proxy::start(&program, &configuration, &[clear, sealed]);
        let [clear, sealed] = [clear, sealed].map(|port| format!("127.0.0.1:{port}"));
        for security in [&["-plaintext", &clear][..], &["-cacert", "ca.pem", &sealed]] {
            let (address, options) = security.split_last().expect("it ends with the address");
            let call = |data: &str, method: &str| {
                let method = format!("grpc.testing.TestService/{method}");
                grpcurl(at, &[options, &["-d", data, address, &method]].concat())
            };
            let name = program.name();
            let (is_listed, services) = grpcurl(at, &[options, &[address, "list"]].concat());
            assert!(is_listed, "{name}: {services}");
            assert!(
                services.contains("grpc.testing.TestService"),
                "{name}: {services}"
            );
            let unary = call(r#"{"response_size": 3}"#, "UnaryCall");
            let wanted = r#"{ "payload": { "body": "AAAA" } }"#;
            assert_eq!(unary, (true, wanted.to_owned()), "{name}");
            let upload = call(
                r#"{"payload": {"body": "AAAA"}} {"payload": {"body": "AAAA"}}"#,
                "StreamingInputCall",
            );
            let wanted = r#"{ "aggregatedPayloadSize": 6 }"#;
            assert_eq!(upload, (true, wanted.to_owned()), "{name}");
            let (is_success, said) = call(
                r#"{"response_status": {"code": 5, "message": "not here"}}"#,
                "UnaryCall",
            );
            assert!(!is_success, "{name}: {said}");
            assert!(
                said.contains("Code: NotFound Message: not here"),
                "{name}: {said}"
            );
        }
    }
}
