//! `show fd`: connections at rest, those whose handshakes go on, and those over TLS.

use std::net::TcpStream;
use std::thread;
use std::time::Duration;

use ballast_tests::origin::answer;
use ballast_tests::{
    Authority, Client, Origin, Profile, Program, Proxy, RuntimeApi, SealedClient, eventually,
    free_port,
};

/// After this an idle connection rests: it is called after one to two seconds. Nothing tells from
/// outside that it does.
const UNTIL_REST: Duration = Duration::from_millis(2_500);

/// The lines of `show fd f` with this word.
fn lines_with(api: &RuntimeApi, word: &str) -> Vec<String> {
    let all = api.ask("show fd f");
    let lines = all.lines().filter(|line| line.contains(word));
    lines.map(str::to_owned).collect()
}

#[test]
fn a_rested_connection_is_described() {
    for program in Program::both() {
        let origin = Origin::start(|request| answer(200, request.target()));
        let port = free_port();
        let text = format!(
            "global\n nbthread 1\n stats socket unix@ctl.sock level admin\n\
             defaults\n mode http\n timeout connect 5s\n timeout client 20s\n timeout server 20s\n\
             frontend www\n bind 127.0.0.1:{port}\n default_backend app\n\
             backend app\n server one 127.0.0.1:{}\n",
            origin.port()
        );
        let proxy = Proxy::start(&program, &text, &[port]);
        let api = RuntimeApi::at(proxy.directory().join("ctl.sock"));
        let mut clients: Vec<Client> = (0..3).map(|_| Client::connect(port)).collect();
        for client in &mut clients {
            assert_eq!(client.get("/first").text(), "/first");
        }
        thread::sleep(UNTIL_REST);
        let listed = lines_with(&api, " fe=www ");
        assert_eq!(listed.len(), 3, "{}: {listed:?}", program.name());
        for line in listed {
            for part in [" back=0 ", " mux=H1 ", " xprt=RAW"] {
                assert!(line.contains(part), "{}: {line}", program.name());
            }
            assert!(!line.contains(".sc.app="), "{}: {line}", program.name());
        }
        drop(clients);
        eventually("all have left", || lines_with(&api, " fe=www ").is_empty());
    }
}

#[test]
fn a_connection_over_tls_is_described_during_its_handshake_and_after() {
    let certificate = Authority::new("descriptors").issue(&Profile::server(&["localhost"]));
    for program in Program::both() {
        let port = free_port();
        let directory = tempfile::tempdir().expect("a directory");
        let bundle = certificate.write(directory.path(), "site.pem");
        let text = format!(
            "global\n nbthread 1\n stats socket unix@ctl.sock level admin\n\
             defaults\n mode http\n timeout client 20s\n\
             frontend www\n bind 127.0.0.1:{port} ssl crt {}\n\
             http-request return status 200 content-type text/plain string hello\n",
            bundle.display()
        );
        let proxy = Proxy::start(&program, &text, &[port]);
        let api = RuntimeApi::at(proxy.directory().join("ctl.sock"));
        let silent = TcpStream::connect(("127.0.0.1", port)).expect("a connection");
        eventually("the handshake is awaited", || {
            let listed = lines_with(&api, " fe=www ");
            let has = |part: &str| listed.iter().all(|line| line.contains(part));
            listed.len() == 1 && has(" nomux ") && has(" xprt=SSL")
        });
        let mut client = SealedClient::connect(port, &rustls::version::TLS13);
        client.get("hello");
        eventually("the request was served", || {
            lines_with(&api, " mux=H1 ").len() == 1 && lines_with(&api, " nomux ").len() == 1
        });
        assert!(lines_with(&api, " mux=H1 ")[0].contains(" xprt=SSL"));
        drop(silent);
        eventually("it has left", || lines_with(&api, " nomux ").is_empty());
    }
}
