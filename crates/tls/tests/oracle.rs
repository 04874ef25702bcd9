//! The certificate chosen for a ClientHello is HAProxy's: 10,000 names with wildcards, exclusions,
//! RSA and ECDSA twins, defaults and `strict-sni`, and clients that cannot verify each key.
//!
//! Clients say hello by hand and read the certificate of TLS 1.2, which is sent in clear. Skipped
//! with a message when haproxy is not installed.

#![allow(clippy::panic, clippy::unwrap_used, reason = "tests")]

#[path = "../../../tests/src/oracle.rs"]
mod installed;

use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use ballast_tls::bind::{BindCertificates, BindEntry};
use ballast_tls::files::CertificateFileReader;
use ballast_tls::hello::{ClientHello, HelloOutcome, parse_client_hello};
use ballast_tls::names::{KeyAlgorithm, NameFilters};
use ballast_tls::options::HandshakeOptions;
use ballast_tls::rustls::pki_types::UnixTime;
use ballast_tls::rustls::server::NoServerSessionStorage;
use ballast_tls::rustls::time_provider::TimeProvider;
use ballast_tls::server_config::{BindParts, BindTlsSettings};
use ballast_tls::store::{CertificateStore, StoreOptions};
use rcgen::{CertificateParams, DnType, KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_RSA_SHA256};

const PATIENCE: Duration = Duration::from_secs(20);
const NAMES: usize = 10_000;
const LISTS: usize = 8;
const LINES: usize = 40;

/// The generator of the C standard: the same lists and names in every run.
struct Chance(u32);

impl Chance {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(1_103_515_245).wrapping_add(12_345);
        (self.0 >> 8) as usize % end
    }

    fn name(&mut self) -> String {
        let label = |chance: &mut Self| ["a", "b", "c", "d", "e"][chance.below(5)];
        let domain = ["x.org", "y.net", "Z.com"][self.below(3)];
        match self.below(8) {
            0 => domain.to_owned(),
            1 => format!("{}.{}.{domain}", label(self), label(self)),
            _ => format!("{}.{domain}", label(self)),
        }
    }

    fn pattern(&mut self) -> String {
        let name = self.name();
        match self.below(3) {
            0 => format!("*.{}", name.split_once('.').unwrap().1),
            1 if self.below(4) == 0 => format!("*.{name}"),
            _ => name,
        }
    }
}

struct SystemFiles;

impl CertificateFileReader for SystemFiles {
    fn read(&self, path: &str) -> Result<Option<Vec<u8>>, String> {
        Ok(std::fs::read(path).ok())
    }

    fn list(&self, path: &str) -> Result<Option<Vec<String>>, String> {
        let Ok(directory) = std::fs::read_dir(path) else {
            return Ok(None);
        };
        let name = |entry: std::io::Result<std::fs::DirEntry>| entry.unwrap().file_name();
        Ok(Some(
            directory
                .map(|entry| name(entry).into_string().unwrap())
                .collect(),
        ))
    }
}

#[derive(Debug)]
struct NoTime;

impl TimeProvider for NoTime {
    fn current_time(&self) -> Option<UnixTime> {
        None
    }
}

/// The two keys of all certificates: making keys is what would take time.
struct Keys([KeyPair; 2]);

impl Keys {
    fn write(&self, path: &Path, is_rsa: bool, common_name: &str, names: &[String]) {
        let mut params = CertificateParams::new(names.to_vec()).unwrap();
        params.distinguished_name.remove(DnType::CommonName);
        params
            .distinguished_name
            .push(DnType::CommonName, common_name);
        params
            .distinguished_name
            .push(DnType::OrganizationName, path.to_str().unwrap());
        let key = &self.0[usize::from(is_rsa)];
        let certificate = params.self_signed(key).unwrap();
        std::fs::write(path, certificate.pem() + &key.serialize_pem()).unwrap();
    }
}

/// A bind line: its words, and what we make of them.
struct Line {
    words: String,
    ours: BindCertificates,
}

/// A crt-list of chance, written and loaded.
fn crt_list(number: usize, at: &Path, keys: &Keys) -> Line {
    let mut chance = Chance(u32::try_from(number).unwrap() * 7_919 + 1);
    let mut text = String::new();
    for line in 0..LINES {
        let path = at.join(format!("{number}-{line}.pem"));
        let names: Vec<String> = (0..chance.below(3)).map(|_| chance.pattern()).collect();
        let common_name = chance.pattern();
        keys.write(&path, chance.below(2) == 0, &common_name, &names);
        text += path.to_str().unwrap();
        if chance.below(2) == 0 {
            for _ in 0..=chance.below(3) {
                let filter = match chance.below(5) {
                    0 => format!("!{}", chance.name()),
                    1 if chance.below(4) == 0 => "*".to_owned(),
                    _ => chance.pattern(),
                };
                write!(text, " {filter}").unwrap();
            }
        }
        text += "\n";
    }
    let path = at.join(format!("list{number}"));
    std::fs::write(&path, &text).unwrap();
    let path = path.to_str().unwrap();
    let strict_sni = number % 4 == 3;
    let mut store = CertificateStore::new(StoreOptions::default());
    let tls_settings = tls_settings();
    let entries = text.lines().map(|line| {
        let mut words = line.split(' ');
        let certificate = words.next().unwrap();
        let filters = NameFilters::of_names(words.map(str::as_bytes));
        BindEntry {
            certificate: store.load_crt(&SystemFiles, certificate).unwrap().remove(0),
            filters: (filters != NameFilters::default()).then_some(filters),
            is_default: false,
            tls_settings: Arc::clone(&tls_settings),
            row: None,
        }
    });
    Line {
        words: format!(
            "crt-list {path}{}",
            if strict_sni { " strict-sni" } else { "" }
        ),
        ours: BindCertificates::new(entries.collect(), strict_sni),
    }
}

/// A directory after single certificates, two of them `default-crt`, and a bundle.
fn directory(at: &Path, keys: &Keys, first: &str) -> Line {
    let mut chance = Chance(4_711);
    let directory = at.join(format!("directory-{}", first.replace('.', "-")));
    std::fs::create_dir(&directory).unwrap();
    for number in 0..LINES {
        let path = directory.join(format!("{number}.pem"));
        let names: Vec<String> = (0..chance.below(3)).map(|_| chance.pattern()).collect();
        keys.write(&path, chance.below(2) == 0, &chance.pattern(), &names);
    }
    let (mut store, tls_settings) = (CertificateStore::default(), tls_settings());
    let (mut entries, mut words) = (Vec::new(), String::new());
    for (word, path) in [
        ("crt", at.join(first)),
        ("default-crt", at.join("r.pem")),
        ("crt", directory),
        ("default-crt", at.join("e.pem")),
    ] {
        let path = path.to_str().unwrap();
        write!(words, "{word} {path} ").unwrap();
        let is_first = entries.is_empty();
        for certificate in store.load_crt(&SystemFiles, path).unwrap() {
            entries.push(BindEntry {
                certificate,
                filters: None,
                is_default: word == "default-crt" || is_first,
                tls_settings: Arc::clone(&tls_settings),
                row: None,
            });
        }
    }
    Line {
        words,
        ours: BindCertificates::new(entries, false),
    }
}

fn tls_settings() -> Arc<BindTlsSettings> {
    let parts = BindParts {
        time: Arc::new(NoTime),
        verifier: None,
        ticket_keys: None,
        scope: "".into(),
        session_lifetime_s: 300,
        sessions: Arc::new(NoServerSessionStorage {}),
        prefer_client_ciphers: false,
        early_data_bytes_max: 0,
        record_bytes_max: 0,
    };
    Arc::new(BindTlsSettings::new(&HandshakeOptions::default(), &parts).unwrap())
}

/// What a client can verify, and the suites it offers.
struct ClientAbility {
    schemes: &'static [u16],
    suites: &'static [u16],
}

const ABILITIES: [ClientAbility; 6] = [
    ClientAbility {
        schemes: &[0x0403, 0x0804, 0x0401],
        suites: &[0xc02b, 0xc02f],
    },
    ClientAbility {
        schemes: &[0x0804, 0x0401],
        suites: &[0xc02b, 0xc02f],
    },
    ClientAbility {
        schemes: &[0x0403],
        suites: &[0xc02b, 0xc02f],
    },
    ClientAbility {
        schemes: &[0x0403, 0x0804, 0x0401],
        suites: &[0xc02f],
    },
    ClientAbility {
        schemes: &[0x0403, 0x0804, 0x0401],
        suites: &[0x1301, 0xc02f, 0xc02b],
    },
    ClientAbility {
        schemes: &[0x0401, 0x0403],
        suites: &[0xcca9, 0xcca8],
    },
];

/// The record of a ClientHello of TLS 1.2.
fn hello(name: Option<&str>, ability: &ClientAbility) -> Vec<u8> {
    let short = |length: usize| u16::try_from(length).unwrap().to_be_bytes();
    let list = |numbers: &[u16]| -> Vec<u8> {
        numbers
            .iter()
            .flat_map(|number| number.to_be_bytes())
            .collect()
    };
    let with_length = |content: &[u8]| [&short(content.len())[..], content].concat();
    let mut extensions = Vec::new();
    let mut extension = |number: u16, content: &[u8]| {
        extensions.extend(number.to_be_bytes());
        extensions.extend(with_length(content));
    };
    if let Some(name) = name {
        let entry = [&[0][..], &with_length(name.as_bytes())].concat();
        extension(0, &with_length(&entry));
    }
    extension(10, &with_length(&list(&[29, 23])));
    extension(11, &[1, 0]);
    extension(13, &with_length(&list(ability.schemes)));
    let mut body = vec![3, 3];
    body.extend([9; 32]);
    body.push(0);
    body.extend(with_length(&list(ability.suites)));
    body.extend([1, 0]);
    body.extend(with_length(&extensions));
    let length = short(body.len());
    let message = [&[1, 0, length[0], length[1]][..], &body].concat();
    let length = short(message.len());
    [&[22, 3, 1, length[0], length[1]][..], &message].concat()
}

/// What a server answers: its certificate, or the number of its alert.
#[derive(Debug, Eq, PartialEq)]
enum Reply {
    Certificate(Vec<u8>),
    Alert(u8),
}

fn ask(socket: &Path, hello: &[u8]) -> Reply {
    let mut stream = UnixStream::connect(socket).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(hello).unwrap();
    let mut messages: Vec<u8> = Vec::new();
    loop {
        let mut header = [0; 5];
        stream.read_exact(&mut header).unwrap();
        let mut record = vec![0; usize::from(u16::from_be_bytes([header[3], header[4]]))];
        stream.read_exact(&mut record).unwrap();
        match header[0] {
            21 => return Reply::Alert(record[1]),
            22 => messages.extend(record),
            other => panic!("a record of type {other}"),
        }
        let number = |at: usize| {
            messages.get(at..at + 3).map(|bytes| {
                bytes
                    .iter()
                    .fold(0, |number, byte| number << 8 | usize::from(*byte))
            })
        };
        // ServerHello, then Certificate: the length of all, the length of the first, the first.
        let Some(first) = number(1).map(|length| 4 + length) else {
            continue;
        };
        let Some(length) = number(first + 7) else {
            continue;
        };
        if let Some(certificate) = messages.get(first + 10..first + 10 + length) {
            assert_eq!(messages[first], 11, "the second message is Certificate");
            return Reply::Certificate(certificate.to_vec());
        }
    }
}

/// What we would answer.
fn expected(bind: &BindCertificates, hello: &ClientHello<'_>) -> Reply {
    let Some(found) = bind.find(hello) else {
        return Reply::Alert(112);
    };
    let certificate = bind.entries()[found.entry].certificate.current();
    let client = bind.client_keys(hello);
    let is_verified = match certificate.algorithm() {
        KeyAlgorithm::Ecdsa => client.ecdsa,
        KeyAlgorithm::Rsa => client.rsa,
        KeyAlgorithm::Other => true,
    };
    if is_verified {
        Reply::Certificate(certificate.leaf().to_vec())
    } else {
        Reply::Alert(40)
    }
}

struct Oracle(Child);

impl Drop for Oracle {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start(program: PathBuf, at: &Path, lines: &[Line]) -> Oracle {
    let mut config =
        "global\n  nbthread 1\n  ssl-default-bind-options no-tls-tickets\ndefaults\n  \
        mode tcp\n  timeout client 60s\n  timeout server 60s\n  timeout connect 5s\n\
        listen all\n  server s 127.0.0.1:1\n"
            .to_owned();
    for (number, line) in lines.iter().enumerate() {
        let socket = at.join(format!("s{number}"));
        writeln!(
            config,
            "  bind unix@{} ssl {}",
            socket.display(),
            line.words
        )
        .unwrap();
    }
    let file = at.join("haproxy.cfg");
    std::fs::write(&file, config).unwrap();
    let log = std::fs::File::create(at.join("log")).unwrap();
    let process = Command::new(program)
        .args(["-db", "-f"])
        .arg(&file)
        .stdout(Stdio::null())
        .stderr(log)
        .spawn()
        .unwrap();
    let mut oracle = Oracle(process);
    let start = Instant::now();
    while UnixStream::connect(at.join("s0")).is_err() {
        let said = std::fs::read_to_string(at.join("log")).unwrap();
        assert!(start.elapsed() < PATIENCE, "haproxy does not start: {said}");
        assert!(
            oracle.0.try_wait().unwrap().is_none(),
            "haproxy ended: {said}"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
    oracle
}

#[test]
fn the_certificate_for_a_name_is_haproxys() {
    let Some(program) = installed::haproxy() else {
        return;
    };
    if installed::version() < (3, 2) {
        eprintln!("SKIPPED: default certificates are chosen otherwise before HAProxy 3.0");
        return;
    }
    let directory_of_all = tempfile::tempdir().unwrap();
    let at = directory_of_all.path();
    let keys = Keys([
        KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).unwrap(),
        KeyPair::generate_for(&PKCS_RSA_SHA256).unwrap(),
    ]);
    let mut lines: Vec<Line> = (0..LISTS)
        .map(|number| crt_list(number, at, &keys))
        .collect();
    for (file, is_rsa) in [
        ("e.pem", false),
        ("r.pem", true),
        ("t.pem.ecdsa", false),
        ("t.pem.rsa", true),
    ] {
        keys.write(
            &at.join(file),
            is_rsa,
            "default.org",
            &["d.x.org".to_owned()],
        );
    }
    lines.push(directory(at, &keys, "e.pem"));
    lines.push(directory(at, &keys, "t.pem"));
    let _oracle = start(program, at, &lines);

    let mut chance = Chance(1);
    let (mut certificates, mut alerts) = (std::collections::BTreeSet::new(), 0);
    for probe in 0..NAMES {
        let number = probe % lines.len();
        let mut name = chance.name();
        match chance.below(20) {
            0 => name.make_ascii_uppercase(),
            1 => name += ".",
            2 => name = chance.pattern(),
            _ => {}
        }
        let name = (chance.below(20) != 0).then_some(name);
        let ability = chance.below(ABILITIES.len());
        let raw = hello(name.as_deref(), &ABILITIES[ability]);
        let HelloOutcome::Complete(parsed) = parse_client_hello(&raw) else {
            panic!("our own hello");
        };
        let ours = expected(&lines[number].ours, &parsed);
        let theirs = ask(&at.join(format!("s{number}")), &raw);
        assert!(
            ours == theirs,
            "{name:?} of client {ability} at: {} (ours left)",
            lines[number].words
        );
        match theirs {
            Reply::Certificate(certificate) => drop(certificates.insert(certificate)),
            Reply::Alert(_) => alerts += 1,
        }
    }
    assert!(
        certificates.len() > 100 && alerts > 100,
        "{} {alerts}",
        certificates.len()
    );
}
