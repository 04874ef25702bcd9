//! `ocsp-update`: both programs ask the same responders for the same, take and refuse the same
//! answers, and say so.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};

use ballast_tests::{LogSink, Program, Proxy, RuntimeApi, eventually, free_port};
use tempfile::TempDir;

/// The certificates: their names say how their responder behaves.
const ALL: &[&str] = &[
    "good",
    "revoked",
    "delegated",
    "forged",
    "garbage",
    "failing",
    "untyped",
    "closing",
];

/// Runs openssl with these words in a directory.
fn openssl(at: &Path, words: &str) -> Vec<u8> {
    let output = Command::new("openssl")
        .current_dir(at)
        .args(words.split_whitespace())
        .stdin(Stdio::null())
        .output()
        .expect("openssl runs");
    assert!(
        output.status.success(),
        "openssl {words}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    output.stdout
}

const NEW_KEY: &str = "-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes";

/// Authorities, certificates that name the responder, and its answers: `NAME.pem`, `NAME.answer` and
/// `NAME.request`.
fn files(responder: u16) -> TempDir {
    let directory = TempDir::new().expect("a temporary directory");
    let at = directory.path();
    let write = |name: &str, text: &str| fs::write(at.join(name), text).expect("it is written");
    for authority in ["ca", "other"] {
        openssl(
            at,
            &format!(
                "req -x509 {NEW_KEY} -days 9 -keyout {authority}.key -out {authority}.pem -subj /CN={authority}"
            ),
        );
    }
    let issue = |name: &str, serial: usize, extensions: &str| {
        write("ext", extensions);
        openssl(
            at,
            &format!("req {NEW_KEY} -keyout {name}.key -out csr -subj /CN={name}.test"),
        );
        openssl(
            at,
            &format!(
                "x509 -req -in csr -CA ca.pem -CAkey ca.key -set_serial {serial} -days 9 -extfile ext -out {name}.crt"
            ),
        );
    };
    issue("signer", 4000, "extendedKeyUsage=OCSPSigning\n");
    let mut index = String::new();
    for (number, name) in ALL
        .iter()
        .chain(&["lying", "stalling", "quiet"])
        .enumerate()
    {
        let serial = 4097 + number;
        issue(
            name,
            serial,
            &format!(
                "subjectAltName=DNS:{name}.test\nauthorityInfoAccess=OCSP;URI:http://127.0.0.1:{responder}/{name}\n"
            ),
        );
        let (state, at_time) = match *name {
            "revoked" => ("R", "260101000000Z"),
            _ => ("V", ""),
        };
        index +=
            &format!("{state}\t400101000000Z\t{at_time}\t{serial:04X}\tunknown\t/CN={name}.test\n");
        let read = |file: String| fs::read_to_string(at.join(file)).expect("a file");
        let bundle =
            read(format!("{name}.crt")) + &read("ca.pem".to_owned()) + &read(format!("{name}.key"));
        write(&format!("{name}.pem"), &bundle);
    }
    write("index", &index);
    for name in ALL.iter().chain(&["lying"]) {
        openssl(
            at,
            &format!("ocsp -issuer ca.pem -cert {name}.crt -no_nonce -reqout {name}.request"),
        );
        let signer = match *name {
            "delegated" => "-rsigner signer.crt -rkey signer.key",
            "forged" => "-rsigner other.pem -rkey other.key",
            _ => "-rsigner ca.pem -rkey ca.key",
        };
        let about = match *name {
            "lying" => "good",
            name => name,
        };
        openssl(
            at,
            &format!(
                "ocsp -index index -CA ca.pem {signer} -reqin {about}.request -respout {name}.answer -nmin 60"
            ),
        );
    }
    directory
}

/// What a responder was asked: the name in the path, and the whole path.
type Asked = (String, String);

/// A responder that tells what it is asked, and answers as the name in the path says.
fn respond(listener: TcpListener, at: &Path) -> Receiver<Asked> {
    let (told, asked) = channel();
    let at = at.to_owned();
    std::thread::spawn(move || {
        // Kept open: nothing comes on them.
        let mut stalled = Vec::new();
        for stream in listener.incoming() {
            let stream = stream.expect("a connection");
            if let Some(stream) = answer(stream, &at, &told) {
                stalled.push(stream);
            }
        }
    });
    asked
}

fn answer(mut stream: TcpStream, at: &Path, told: &Sender<Asked>) -> Option<TcpStream> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).ok()?;
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).expect("text");
    let path = head.split(' ').nth(1).expect("a path").to_owned();
    let name = path.split('/').nth(1).expect("a name").to_owned();
    let _ = told.send((name.clone(), path));
    let (status, content_type, body) = match &*name {
        "stalling" => return Some(stream),
        "closing" => return None,
        "garbage" => (200, "application/ocsp-response", b"garbage".to_vec()),
        "failing" => (500, "text/plain", Vec::new()),
        name => {
            let content_type = match name {
                "untyped" => "text/plain",
                _ => "application/ocsp-response",
            };
            let body = fs::read(at.join(format!("{name}.answer"))).expect("an answer");
            (200, content_type, body)
        }
    };
    let head = format!(
        "HTTP/1.1 {status} X\r\nContent-Type: {content_type}\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    let _ = stream.write_all(&[head.as_bytes(), &body].concat());
    None
}

/// The path of a request about a certificate: its base64, escaped.
fn path(at: &Path, name: &str) -> String {
    let text = openssl(at, &format!("base64 -A -in {name}.request"));
    let text = String::from_utf8(text).expect("text");
    let text = text.trim().replace('+', "%2B").replace('/', "%2F");
    format!("/{name}/{}", text.replace('=', "%3D"))
}

struct Site {
    /// Killed with the test.
    _proxy: Proxy,
    port: u16,
    sink: LogSink,
    api: RuntimeApi,
}

/// A proxy with these certificates, which are kept fresh, and one that is not.
fn site(program: &Program, at: &Path, names: &[&str]) -> Site {
    let sink = LogSink::start();
    let (port, clear) = (free_port(), free_port());
    let at_text = at.display();
    let mut list: String = names
        .iter()
        .map(|name| format!("{at_text}/{name}.pem [ocsp-update on]\n"))
        .collect();
    list += &format!("{at_text}/quiet.pem\n");
    let list_path = at.join(format!("{}.list", program.name()));
    fs::write(&list_path, list).expect("a list");
    let socket = at.join(format!("{}.sock", program.name()));
    let text = format!(
        "\
global
    log 127.0.0.1:{} len 4096 format raw local0
    stats socket {} level admin
    ocsp-update.mindelay 1000
    ocsp-update.maxdelay 2000
defaults
    mode http
    timeout connect 5s
    timeout client 20s
    timeout server 20s
frontend www
    bind 127.0.0.1:{clear}
    bind 127.0.0.1:{port} ssl crt-list {}
    http-request return status 200
",
        sink.port(),
        socket.display(),
        list_path.display()
    );
    Site {
        _proxy: Proxy::start(program, &text, &[clear]),
        port,
        sink,
        api: RuntimeApi::at(&socket),
    }
}

impl Site {
    /// Name, number, failures and successes of the next line about an update.
    fn line(&self) -> (String, String) {
        let line = self.sink.line_with("<OCSP-UPDATE> /");
        let (_, rest) = line.split_once("<OCSP-UPDATE> ").expect("a line");
        let words: Vec<&str> = rest.split_whitespace().collect();
        assert!(words.len() > 3, "{line}");
        let (path, number) = (words[0], words[1]);
        let [failures, successes] = [words[words.len() - 2], words[words.len() - 1]];
        let name = path.rsplit('/').next().expect("a name");
        (
            name.replace(".pem", ""),
            format!("{number} {failures} {successes}"),
        )
    }

    fn lines(&self, count: usize) -> BTreeMap<String, String> {
        (0..count).map(|_| self.line()).collect()
    }

    /// What is stapled for a name.
    fn stapled(&self, name: &str) -> String {
        let port = self.port;
        let words = format!("s_client -connect 127.0.0.1:{port} -servername {name}.test -status");
        let told = openssl(Path::new("."), &words);
        let told = String::from_utf8_lossy(&told).into_owned();
        let status = told.lines().find(|line| line.contains("Cert Status"));
        status.map_or("none", str::trim).to_owned()
    }

    /// Certificate, successes, failures and status of each row of `show ssl ocsp-updates`.
    fn rows(&self) -> Vec<String> {
        let told = self.api.ask("show ssl ocsp-updates");
        let rows = told.lines().skip(1).filter(|line| !line.is_empty());
        let mut rows: Vec<String> = rows
            .map(|row| {
                let columns: Vec<&str> = row.split(" | ").collect();
                let dates = [columns[2], columns[3]].map(|date| match date {
                    "-" => 0,
                    date => date.len(),
                });
                format!(
                    "{} {} {dates:?} {:?}",
                    columns[0],
                    columns[1],
                    &columns[4..7]
                )
            })
            .collect();
        rows.sort();
        rows
    }
}

#[test]
fn responses_are_asked_for_and_judged_as_in_haproxy() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let directory = files(listener.local_addr().expect("its address").port());
    let at = directory.path();
    let asked = respond(listener, at);
    let told = Program::both().map(|program| {
        let site = site(&program, at, ALL);
        let lines = site.lines(ALL.len());
        let mut paths: Vec<Asked> = asked.try_iter().collect();
        paths.sort();
        paths.dedup();
        let stapled = ["good", "revoked", "delegated", "forged", "quiet"]
            .map(|name| format!("{name} {}", site.stapled(name)));
        let rows = site.rows();
        let file = |name: &str| at.join(name).display().to_string();
        let update = |name: &str| {
            let command = format!("update ssl ocsp-response {}", file(name));
            site.api.ask(&command).replace(&file(name), "FILE")
        };
        let answers = [
            update("good.pem"),
            update("quiet.pem"),
            update("nobody.pem"),
        ];
        let again = site.line();
        (lines, paths, stapled, rows, answers, again)
    });
    let [theirs, ours] = &told;
    let expected: BTreeMap<String, String> = [
        ("good", "1 0 1"),
        ("revoked", "1 0 1"),
        ("delegated", "1 0 1"),
        ("forged", "4 1 0"),
        ("garbage", "4 1 0"),
        ("failing", "2 1 0"),
        ("untyped", "3 1 0"),
        ("closing", "2 1 0"),
    ]
    .map(|(name, told)| (name.to_owned(), told.to_owned()))
    .into();
    assert_eq!(theirs.0, expected);
    assert_eq!(ours.0, expected);
    for name in ["good", "revoked", "delegated"] {
        let wanted = (name.to_owned(), path(at, name));
        assert!(theirs.1.contains(&wanted), "{:?}", theirs.1);
        assert!(ours.1.contains(&wanted), "{:?}", ours.1);
    }
    assert_eq!(
        theirs.2[..2],
        ["good Cert Status: good", "revoked Cert Status: revoked"]
    );
    assert_eq!(theirs.2, ours.2);
    assert_eq!(theirs.3, ours.3);
    assert_eq!(theirs.4, ours.4);
    assert_eq!(theirs.5, ("good".to_owned(), "1 0 2".to_owned()));
    assert_eq!(theirs.5, ours.5);
}

/// HAProxy 3.2 staples what was said of another certificate, and waits for one responder after the
/// other.
#[test]
fn a_responder_that_lies_or_stalls_hurts_nobody() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let directory = files(listener.local_addr().expect("its address").port());
    let at = directory.path();
    let _asked = respond(listener, at);
    let site = site(&Program::ballast(), at, &["stalling", "lying", "good"]);
    let lines = site.lines(2);
    assert_eq!(lines["good"], "1 0 1");
    assert_eq!(lines["lying"], "4 1 0");
    assert_eq!(site.stapled("lying"), "none");
    assert_eq!(site.stapled("good"), "Cert Status: good");
    // What was fetched outlives a reload, which reads files that do not have it.
    let _ = site.api.ask("reload");
    eventually("it is stapled again", || {
        site.stapled("good") == "Cert Status: good"
    });
    assert_eq!(site.line(), ("stalling".to_owned(), "2 1 0".to_owned()));
}
