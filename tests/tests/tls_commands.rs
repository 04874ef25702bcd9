//! The commands for certificates: their answers, side by side with HAProxy's.

use ballast_tests::certificates::{Authority, Certificate, KeyType, Profile};
use ballast_tests::{Launch, Program, Proxy, RuntimeApi, free_port};

/// A list of two certificates, of an authority that is no more.
const REVOCATION_LIST: &str = "\
-----BEGIN X509 CRL-----
MIIBAjCBqgIBATAKBggqhkjOPQQDAjAyMQswCQYDVQQGEwJGUjERMA8GA1UECgwI
Um9vdCBPcmcxEDAOBgNVBAMMB1Jvb3QgQ0EXDTI2MTEyMjE1MjYyNFoXDTI2MTIy
MjE1MjYyNFowNzAgAgEPFw0yNjAxMDEwMDAwMDBaMAwwCgYDVR0VBAMKAQEwEwIC
EAgXDTI2MDEwMTAwMDAwMFqgDjAMMAoGA1UdFAQDAgECMAoGCCqGSM49BAMCA0cA
MEQCIFyVMqrutd4lFzuJ91t9Kaw1oD4317kb0hnWhh19gTubAiBaK+7FajZm16HA
JEjsv5VRkWEEY9z7sUuQsvx+kHp/iw==
-----END X509 CRL-----
";

/// What all scripts begin with: certificates, a list of them, a directory of them.
struct Site {
    authority: Authority,
    files: Vec<(String, String)>,
    /// The same for both programs, one after the other: answers tell them.
    ports: [u16; 3],
}

impl Site {
    fn new() -> Self {
        let authority = Authority::new("Root");
        let below = authority.intermediate("Below");
        let a = below.issue(&Profile::server(&["a.example", "*.a.example", "127.0.0.1"]));
        let rsa = Profile {
            key: KeyType::Rsa2048,
            ..Profile::server(&["b.example"])
        };
        let b = authority.issue(&rsa);
        let list = "a.pem\n\
                    b.pem [alpn http/1.1 ssl-min-ver TLSv1.2] *.b.example !no.b.example\n\
                    # a comment\n\
                    \n\
                    b.pem c.example\n";
        let files = [
            ("a.pem", a.bundle()),
            ("b.pem", b.bundle()),
            ("ca.pem", authority.certificate()),
            ("list.txt", list.to_owned()),
            ("keys", ticket_keys(48, 1)),
            ("more-keys", ticket_keys(80, 2)),
            ("crl.pem", REVOCATION_LIST.to_owned()),
        ];
        let files = files.map(|(name, text)| (name.to_owned(), text));
        Self {
            authority,
            files: files.into(),
            ports: std::array::from_fn(|_| free_port()),
        }
    }

    fn start(&self, program: &Program) -> (Proxy, RuntimeApi) {
        let [one, two, three] = self.ports;
        let text = format!(
            "global
    stats socket unix@ctl.sock level admin
crt-store web
    load crt b.pem alias bee
defaults
    mode http
    timeout connect 5s
    timeout client 5s
    timeout server 5s
frontend f1
    bind 127.0.0.1:{one} ssl crt a.pem crt b.pem tls-ticket-keys keys
    bind 127.0.0.1:{two} ssl crt-list list.txt
frontend f2
    bind 127.0.0.1:{three} ssl crt a.pem default-crt b.pem ca-file ca.pem verify optional tls-ticket-keys more-keys
"
        );
        let files: Vec<(&str, &str)> = self
            .files
            .iter()
            .map(|(name, text)| (name.as_str(), text.as_str()))
            .collect();
        let launch = Launch {
            ports: &self.ports,
            files: &files,
            ..Launch::default()
        };
        let proxy = Proxy::launch(program, &text, &launch);
        let api = RuntimeApi::at(proxy.directory().join("ctl.sock"));
        (proxy, api)
    }
}

/// Answers of both programs to the same commands must be the same.
fn same_answers(site: &Site, commands: &[String]) {
    let answers = Program::both().map(|program| {
        let (_proxy, api) = site.start(&program);
        // HAProxy ends the protocols of `alpn` with a null character.
        let answers = commands
            .iter()
            .map(|command| api.ask(command).replace('\0', ""));
        answers.collect::<Vec<String>>()
    });
    let [haproxy, ballast] = &answers;
    for ((command, expected), answer) in commands.iter().zip(haproxy).zip(ballast) {
        // A payload may have a key.
        let shown = command.lines().next().unwrap_or_default();
        assert_eq!(answer, expected, "{shown}");
    }
}

fn words(commands: &[&str]) -> Vec<String> {
    commands
        .iter()
        .map(|command| (*command).to_owned())
        .collect()
}

fn set(name: &str, payload: &str) -> String {
    format!("set ssl cert {name} <<\n{}\n", payload.trim_end())
}

#[test]
fn certificates_are_listed_and_told() {
    same_answers(
        &Site::new(),
        &words(&[
            "show ssl cert",
            "show ssl cert a.pem",
            "show ssl cert b.pem",
            "show ssl cert @web/bee",
            "show ssl cert nope",
            "show ssl cert *a.pem",
            "dump ssl cert a.pem",
            "dump ssl cert b.pem",
            "dump ssl cert nope",
            "show ssl crt-list",
            "show ssl crt-list list.txt",
            "show ssl crt-list -n list.txt",
            "show ssl crt-list -n",
            "show ssl crt-list nope",
            "show ssl sni",
            "show ssl sni -f f2",
            "show ssl sni -f nope",
            "show ssl sni -f",
            "show ssl sni -A",
            "show ssl sni -A -t 100d",
            "show ssl sni -t",
            "show ssl sni -t x",
            "show ssl sni more",
            "show ssl providers",
            "user; new ssl cert x",
            "operator; set ssl cert x",
            "operator; add ssl crt-list",
            "operator; show ssl crt-list",
        ]),
    );
}

#[test]
fn a_certificate_is_changed_in_a_transaction() {
    let site = Site::new();
    let renewed = site
        .authority
        .issue(&Profile::server(&["a.example", "new.a.example"]));
    let other = site.authority.issue(&Profile::server(&["other.example"]));
    let Certificate {
        certificate, key, ..
    } = &renewed;
    let mixed = format!("{certificate}{}", other.key);
    let commands = [
        words(&[
            "new ssl cert",
            "set ssl cert",
            "set ssl cert a.pem",
            "commit ssl cert",
            "abort ssl cert",
            "del ssl cert",
            "commit ssl cert a.pem",
            "abort ssl cert a.pem",
            "del ssl cert nope",
            "del ssl cert a.pem",
            "new ssl cert a.pem",
            "new ssl cert n.pem",
            "new ssl cert n.pem",
            "show ssl cert",
            "show ssl cert n.pem",
            "dump ssl cert n.pem",
        ]),
        vec![
            set("nope", &renewed.bundle()),
            set("a.pem.rsa", &renewed.bundle()),
            set("n.pem", "garbage"),
            set("n.pem", key),
            set(
                "n.pem",
                "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----",
            ),
            set(
                "n.pem",
                "-----BEGIN CERTIFICATE-----\n!!!\n-----END CERTIFICATE-----",
            ),
            set("n.pem", certificate),
        ],
        words(&[
            "show ssl cert",
            "show ssl cert *n.pem",
            "commit ssl cert n.pem",
        ]),
        vec![set("a.pem", &renewed.bundle())],
        words(&[
            "commit ssl cert a.pem",
            "abort ssl cert a.pem",
            "del ssl cert n.pem",
        ]),
        vec![set("n.pem.key", "garbage"), set("n.pem.key", key)],
        vec![
            set("n.pem.issuer", "x"),
            set("n.pem.ocsp", "?"),
            set("n.pem.sctl", "x"),
        ],
        words(&[
            "commit ssl cert n.pem",
            "show ssl cert n.pem",
            "show ssl cert",
        ]),
        vec![set("a.pem", &mixed)],
        words(&[
            "commit ssl cert a.pem",
            "abort ssl cert a.pem",
            "abort ssl cert a.pem",
        ]),
        vec![set("a.pem", &renewed.bundle())],
        words(&[
            "show ssl cert *a.pem",
            "dump ssl cert *a.pem",
            "show ssl sni -f f2",
            "set severity-output number; commit ssl cert a.pem",
            "show ssl cert a.pem",
            "show ssl cert @web/bee",
            "del ssl cert n.pem",
            "show ssl cert",
        ]),
        vec![set("@web/bee", &other.bundle())],
        words(&[
            "commit ssl cert @web/bee",
            "show ssl cert @web/bee",
            "del ssl cert @web/bee",
        ]),
    ];
    same_answers(&site, &commands.concat());
}

#[test]
fn lines_are_added_to_lists_and_removed() {
    let site = Site::new();
    let fresh = site.authority.issue(&Profile::server(&["fresh.example"]));
    let add = |line: &str| format!("add ssl crt-list list.txt <<\n{line}\n");
    let commands = [
        words(&[
            "add ssl crt-list",
            "add ssl crt-list x",
            "add ssl crt-list x y",
            "add ssl crt-list list.txt nope.pem",
            "new ssl cert n.pem",
            "add ssl crt-list list.txt n.pem",
        ]),
        vec![set("n.pem", &fresh.bundle())],
        words(&["commit ssl cert n.pem", "add ssl crt-list list.txt n.pem"]),
        vec![
            add(
                "n.pem [alpn http/1.1 verify required ca-file ca.pem] x.example *.x.example !y.x.example",
            ),
            add("n.pem [verify none]"),
            add("n.pem [no-alpn]"),
            add("n.pem !z.example"),
            add("n.pem [bla]"),
            add("n.pem [[alpn h2]"),
            add("n.pem ]"),
            add("[verify none] x"),
            add("n.pem [verify required]"),
            add("n.pem [verify foo]"),
            add("n.pem\na.pem"),
            add("other.pem [verify none]"),
        ],
        words(&[
            "show ssl crt-list -n list.txt",
            "show ssl crt-list list.txt",
            "show ssl sni -f f1",
            "show ssl cert n.pem",
            "del ssl cert n.pem",
            "del ssl crt-list",
            "del ssl crt-list x",
            "del ssl crt-list x y",
            "del ssl crt-list list.txt nope.pem",
            "del ssl crt-list list.txt n.pem",
            "del ssl crt-list list.txt n.pem:99",
            "del ssl crt-list list.txt n.pem:x",
            "del ssl crt-list list.txt a.pem",
            "del ssl crt-list list.txt n.pem:6",
            "show ssl crt-list -n list.txt",
            "show ssl sni -f f1",
        ]),
    ];
    same_answers(&site, &commands.concat());
}

/// Three keys of that many bytes, as a file has them.
fn ticket_keys(bytes: usize, seed: u8) -> String {
    let key = |number: u8| base64(&vec![number.wrapping_mul(seed); bytes]) + "\n";
    (1..=3).map(key).collect()
}

fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let letters = bytes.chunks(3).flat_map(|three| {
        let number = (0..3).fold(0, |all, at| {
            (all << 8) | usize::from(three.get(at).copied().unwrap_or_default())
        });
        let count = three.len();
        (0..4).map(move |at| match at <= count {
            true => char::from(LETTERS[(number >> (18 - 6 * at)) & 63]),
            false => '=',
        })
    });
    letters.collect()
}

#[test]
fn keys_of_tickets_are_shown_and_set() {
    let [short, long] = [48, 80].map(|bytes| base64(&vec![9; bytes]));
    let set = |file: &str, key: &str| format!("set ssl tls-key {file} {key}");
    let commands = [
        words(&[
            "show tls-keys",
            "show tls-keys *",
            "show tls-keys #0",
            "show tls-keys keys",
        ]),
        words(&[
            "show tls-keys #9",
            "show tls-keys 0",
            "set ssl tls-key",
            "set ssl tls-key keys",
        ]),
        vec![
            set("nope", &short),
            set("keys", "%%%%"),
            set("keys", &long),
            set("keys", &short),
            set("#0", &long),
            "show tls-keys *".to_owned(),
        ],
    ];
    same_answers(&Site::new(), &commands.concat());
}

#[test]
fn authorities_and_revocation_lists_are_changed_in_transactions() {
    let site = Site::new();
    let other = Authority::new("Other").certificate();
    for (kind, used, payload) in [
        ("ca-file", Some("ca.pem"), other.as_str()),
        ("crl-file", None, REVOCATION_LIST),
    ] {
        let set = |word: &str, name: &str, text: &str| {
            format!("{word} ssl {kind} {name} <<\n{}\n", text.trim_end())
        };
        let plain = |text: &str| text.replace("KIND", kind);
        let mut commands: Vec<String> = [
            "new ssl KIND",
            "set ssl KIND",
            "set ssl KIND x",
            "commit ssl KIND",
            "abort ssl KIND",
            "del ssl KIND",
            "commit ssl KIND x",
            "abort ssl KIND x",
            "del ssl KIND x",
            "show ssl KIND x",
            "show ssl KIND *x",
            "show ssl KIND x:0",
            "show ssl KIND x:y",
            "new ssl KIND x",
            "new ssl KIND x",
            "show ssl KIND x",
        ]
        .map(plain)
        .into();
        commands.extend([
            set("set", "nope", payload),
            set("set", "x", "garbage"),
            set("set", "x", payload),
            set("set", "x", payload),
            plain("show ssl KIND *x"),
            plain("show ssl KIND *x:1"),
            plain("show ssl KIND *x:2"),
            plain("del ssl KIND x"),
            plain("commit ssl KIND y"),
            plain("abort ssl KIND y"),
            plain("commit ssl KIND x"),
            plain("show ssl KIND x"),
            plain("show ssl KIND x:1"),
            set("set", "x", payload),
            plain("abort ssl KIND x"),
        ]);
        if let Some(used) = used {
            let here = |text: &str| plain(text).replace("USED", used);
            commands.extend([
                here("new ssl KIND USED"),
                here("show ssl KIND USED"),
                here("del ssl KIND USED"),
                set("set", used, payload),
                here("commit ssl KIND USED"),
                here("show ssl KIND USED"),
                set("add", used, &site.authority.certificate()),
                here("show ssl KIND *USED"),
                here("commit ssl KIND USED"),
                here("show ssl KIND USED:2"),
            ]);
        }
        commands.push(plain("del ssl KIND x"));
        same_answers(&site, &commands);
    }
}

#[test]
fn a_reload_serves_what_the_files_say() {
    let site = Site::new();
    let (_proxy, api) = site.start(&Program::ballast());
    let told = || {
        let commands = [
            "show ssl cert",
            "show ssl cert a.pem",
            "show ssl crt-list -n list.txt",
        ];
        commands.map(|command| api.ask(command))
    };
    let before = told();
    let renewed = site
        .authority
        .issue(&Profile::server(&["a.example", "new.a.example"]));
    for name in ["a.pem", "n.pem"] {
        let _ = api.ask("new ssl cert n.pem");
        let said = api.ask(&set(name, &renewed.bundle()));
        assert!(said.starts_with("Transaction created"), "{said}");
        let said = api.ask(&format!("commit ssl cert {name}"));
        assert!(said.ends_with("Success!"), "{said}");
    }
    let said = api.ask("add ssl crt-list list.txt n.pem");
    assert!(said.ends_with("Success!"), "{said}");
    assert_ne!(told(), before);
    let said = api.ask("reload");
    assert!(said.starts_with("Success=1"), "{said}");
    assert_eq!(told(), before);
}

/// A directory whose last certificate was removed is refused, and what is served stays.
#[test]
fn a_directory_without_certificates_refuses_the_reload() {
    let directory = tempfile::TempDir::new().expect("a temporary directory");
    let path = directory.path().join("a.pem");
    let port = free_port();
    let pem = Authority::new("Root").issue(&Profile::server(&["a.example"]));
    std::fs::write(&path, pem.bundle()).expect("a certificate");
    let text = format!(
        "global
    stats socket unix@ctl.sock level admin
defaults
    mode http
    timeout connect 5s
    timeout client 5s
    timeout server 5s
frontend f
    bind 127.0.0.1:{port} ssl crt {}/ alpn http/1.1
",
        directory.path().display()
    );
    let [_, ballast] = Program::both();
    let proxy = Proxy::start(&ballast, &text, &[port]);
    let api = RuntimeApi::at(proxy.directory().join("ctl.sock"));
    let before = api.ask("show ssl sni");
    assert!(before.contains("a.example"), "{before}");
    std::fs::remove_file(&path).expect("it was there");
    let answer = api.ask("reload");
    assert!(answer.contains("no SSL certificate specified"), "{answer}");
    assert_eq!(api.ask("show ssl sni"), before);
}

/// A directory is a list, also before it has a certificate.
#[test]
fn an_empty_directory_is_a_list() {
    let directory = tempfile::TempDir::new().expect("a temporary directory");
    let list = directory.path().to_string_lossy().into_owned();
    let port = free_port();
    let pem = Authority::new("Root").issue(&Profile::server(&["a.example"]));
    let answers = Program::both().map(|program| {
        let text = format!(
            "global
    stats socket unix@ctl.sock level admin
defaults
    mode http
    timeout connect 5s
    timeout client 5s
    timeout server 5s
frontend f
    bind 127.0.0.1:{port} ssl strict-sni crt {list}/
"
        );
        let proxy = Proxy::start(&program, &text, &[port]);
        let api = RuntimeApi::at(proxy.directory().join("ctl.sock"));
        let name = format!("{list}/a.pem");
        let commands = [
            "show ssl crt-list".to_owned(),
            format!("show ssl crt-list {list}"),
            format!("new ssl cert {name}"),
            set(&name, &pem.bundle()),
            format!("commit ssl cert {name}"),
            format!("add ssl crt-list {list}/ {name}"),
            format!("show ssl crt-list -n {list}"),
            "show ssl sni".to_owned(),
        ];
        commands.map(|command| api.ask(&command))
    });
    assert_eq!(answers[1], answers[0]);
}
