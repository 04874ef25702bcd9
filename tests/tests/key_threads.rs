//! Keys that sign on threads of their own (`tune.ssl.key-threads`), in the program.

use std::fs;
use std::process::{Child, Command, Stdio};

use ballast_tests::{
    Authority, Client, KeyType, Launch, Profile, Program, Proxy, RuntimeApi, eventually, free_port,
    program,
};
use rustix::process::Signal;

const SITE: &str = "\
global
    stats socket unix@ctl.sock level admin
    nbthread 1
    WORDS
defaults
    mode http
    timeout connect 5s
    timeout client 5s
    timeout server 5s
frontend sealed
    bind 127.0.0.1:SEALED ssl crt site.pem
    http-request return status 200 content-type text/plain string hello
frontend clear
    bind 127.0.0.1:CLEAR
    http-request use-service prometheus-exporter if { path /metrics }
    http-request return status 200 content-type text/plain string hello
";

struct Site {
    proxy: Proxy,
    sealed: u16,
    clear: u16,
}

impl Site {
    fn start(words: &str, key: KeyType) -> Self {
        let authority = Authority::new("the authority of the test");
        let certificate = authority.issue(&Profile {
            key,
            ..Profile::server(&["a.test", "127.0.0.1"])
        });
        let [sealed, clear] = [free_port(), free_port()];
        let text = text(words, sealed, clear);
        let launch = Launch {
            files: &[
                ("site.pem", &certificate.bundle()),
                ("ca.pem", &authority.certificate()),
            ],
            ports: &[clear],
            ..Launch::default()
        };
        let proxy = Proxy::launch(&Program::ballast(), &text, &launch);
        Self {
            proxy,
            sealed,
            clear,
        }
    }

    fn load(&self, words: &[&str]) -> Child {
        Command::new(program("LOAD", "target/debug/ballast-load"))
            .args(words)
            .args(["--cacert", "ca.pem"])
            .arg(format!("https://127.0.0.1:{}/", self.sealed))
            .current_dir(self.proxy.directory())
            .stdout(Stdio::null())
            .stderr(Stdio::inherit())
            .spawn()
            .expect("the load generator starts")
    }

    fn handshakes(&self, words: &[&str]) {
        let words = [&["handshakes", "--requests", "20"], words].concat();
        let status = self.load(&words).wait().expect("it ends");
        assert!(status.success(), "{words:?}");
    }

    /// How many threads the program has on which keys sign.
    fn key_threads(&self) -> usize {
        let threads = fs::read_dir(format!("/proc/{}/task", self.proxy.pid()));
        threads
            .expect("its threads")
            .flatten()
            .filter_map(|thread| fs::read_to_string(thread.path().join("comm")).ok())
            .filter(|name| name.trim() == "ballast-keys")
            .count()
    }

    fn queue_full_total(&self) -> u64 {
        let text = Client::get_once(self.clear, "/metrics?scope=global").text();
        let name = "ballast_process_ssl_key_queue_full_total ";
        let value = text.lines().find_map(|line| line.strip_prefix(name));
        value
            .and_then(|value| value.parse().ok())
            .expect("a number")
    }
}

fn text(words: &str, sealed: u16, clear: u16) -> String {
    SITE.replace("WORDS", words)
        .replace(":SEALED", &format!(":{sealed}"))
        .replace(":CLEAR", &format!(":{clear}"))
}

#[test]
fn only_the_keys_that_are_named_sign_on_threads() {
    let site = Site::start("tune.ssl.key-threads 2", KeyType::Rsa2048);
    assert_eq!(site.key_threads(), 0, "nothing was signed yet");
    for version in ["1.2", "1.3"] {
        site.handshakes(&["--tls-version", version]);
        site.handshakes(&["--tls-version", version, "--resume", "always"]);
    }
    assert_eq!(site.key_threads(), 2);
    let site = Site::start("tune.ssl.key-threads 2", KeyType::P256);
    site.handshakes(&[]);
    assert_eq!(site.key_threads(), 0, "RSA keys only");
    let site = Site::start("tune.ssl.key-threads 1 algo RSA,EC", KeyType::P256);
    site.handshakes(&[]);
    assert_eq!(site.key_threads(), 1);
}

#[test]
fn the_words_follow_a_reload() {
    let site = Site::start("tune.ssl.key-threads 2", KeyType::Rsa2048);
    site.handshakes(&[]);
    let api = RuntimeApi::at(site.proxy.directory().join("ctl.sock"));
    let answer = api.apply(&text("tune.ssl.key-threads 0", site.sealed, site.clear));
    eventually("the threads are gone", || site.key_threads() == 0);
    site.handshakes(&[]);
    assert_eq!(site.key_threads(), 0, "{answer}");
}

#[test]
fn a_full_queue_is_counted_and_a_stop_waits_for_nobody_but_its_connections() {
    let words = "tune.ssl.key-threads 1\n    tune.ssl.key-queue 1";
    let mut site = Site::start(words, KeyType::Rsa2048);
    let mut load = site.load(&["handshakes", "--connections", "32", "--duration", "60s"]);
    eventually("the queue was full", || site.queue_full_total() > 0);
    site.proxy.signal(Signal::USR1);
    assert!(site.proxy.wait().success());
    load.kill().expect("it runs");
    load.wait().expect("it ends");
}
