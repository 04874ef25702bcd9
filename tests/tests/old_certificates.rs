// tidy: table, because it lists what certificates and files of companies were seen to look like.
//! Certificates that internal authorities have issued for years, and files that people put together by hand:
//! `bind ... ssl crt` takes and refuses them as HAProxy does, serves them to the same clients, and
//! `show ssl cert` tells the same of them.
//!
//! `openssl` makes keys and certificates. Odd ones are one of these with another field: nobody checks the
//! signature of a certificate that is served, but its client.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::io::{Read, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};

use ballast_tests::{Program, Proxy, RuntimeApi, WAIT_MAX};
use tempfile::TempDir;

/// How Ballast's judgement relates to HAProxy's.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Expected {
    /// As HAProxy, which serves it.
    Served,
    /// As HAProxy, which does not start with it.
    Refused,
    /// HAProxy serves it, and Ballast does not start with it, for the library cannot sign with such a key or
    /// does not read such a certificate (tls_key_kinds).
    RefusedHere,
    /// HAProxy does not start with it, and Ballast serves it.
    ServedHere,
}

use Expected::{Refused, RefusedHere, Served, ServedHere};

// === DER

fn tlv(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
    let content = parts.concat();
    let length = content.len();
    let mut der = vec![tag];
    match length {
        0..0x80 => der.push(length.to_le_bytes()[0]),
        0x80..0x100 => der.extend([0x81, length.to_le_bytes()[0]]),
        _ => der.extend([0x82, length.to_le_bytes()[1], length.to_le_bytes()[0]]),
    }
    der.extend(content);
    der
}

fn sequence(parts: &[&[u8]]) -> Vec<u8> {
    tlv(0x30, parts)
}

/// Tag, content and rest of the first element.
fn split(der: &[u8]) -> (u8, &[u8], &[u8]) {
    let (header, length) = match der[1] {
        0x81 => (3, usize::from(der[2])),
        0x82 => (4, usize::from(der[2]) << 8 | usize::from(der[3])),
        short => (2, usize::from(short)),
    };
    (
        der[0],
        &der[header..header + length],
        &der[header + length..],
    )
}

/// The elements of a sequence's content, with their tags and lengths.
fn elements(mut content: &[u8]) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    while !content.is_empty() {
        let (_, _, rest) = split(content);
        found.push(content[..content.len() - rest.len()].to_vec());
        content = rest;
    }
    found
}

const COMMON_NAME: &[u8] = &[6, 3, 0x55, 4, 3];
const ORGANIZATION: &[u8] = &[6, 3, 0x55, 4, 10];

fn name(entries: &[(&[u8], u8, &[u8])]) -> Vec<u8> {
    let sets: Vec<Vec<u8>> = entries
        .iter()
        .map(|(kind, tag, value)| tlv(0x31, &[&sequence(&[kind, &tlv(*tag, &[value])])]))
        .collect();
    sequence(&sets.iter().map(Vec::as_slice).collect::<Vec<_>>())
}

fn common_name(tag: u8, value: &[u8]) -> Vec<u8> {
    name(&[(COMMON_NAME, tag, value)])
}

fn validity(tag: u8, from: &str, to: &str) -> Vec<u8> {
    sequence(&[&tlv(tag, &[from.as_bytes()]), &tlv(tag, &[to.as_bytes()])])
}

fn extension(oid: &[u8], value: &[u8]) -> Vec<u8> {
    sequence(&[&tlv(6, &[oid]), &tlv(4, &[value])])
}

fn extensions(all: &[&[u8]]) -> Vec<u8> {
    tlv(0xa3, &[&sequence(all)])
}

/// `subjectAltName` with one DNS name.
fn alternative_name(name: &[u8]) -> Vec<u8> {
    extension(&[0x55, 0x1d, 17], &sequence(&[&tlv(0x82, &[name])]))
}

// === PEM

const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

fn base64(bytes: &[u8]) -> String {
    let mut text = String::new();
    for group in bytes.chunks(3) {
        let value = (0..3).fold(0, |value, at| {
            value << 8 | usize::from(group.get(at).copied().unwrap_or(0))
        });
        for at in 0..4 {
            text.push(match at <= group.len() {
                true => char::from(LETTERS[value >> (18 - 6 * at) & 63]),
                false => '=',
            });
        }
    }
    text
}

fn pem_of_width(label: &str, der: &[u8], width: usize) -> String {
    let text = base64(der);
    let mut out = format!("-----BEGIN {label}-----\n");
    for line in text.as_bytes().chunks(width) {
        out.push_str(&String::from_utf8_lossy(line));
        out.push('\n');
    }
    out + &format!("-----END {label}-----\n")
}

fn pem(label: &str, der: &[u8]) -> String {
    pem_of_width(label, der, 64)
}

// === Material

/// What all cases are made of.
struct Material {
    directory: TempDir,
    /// The fields of a P-256 certificate's content.
    fields: Vec<Vec<u8>>,
    /// Its algorithm and signature.
    behind: [Vec<u8>; 2],
    certificate: Vec<u8>,
    key: String,
    rsa_certificate: String,
    rsa_key: String,
}

/// The fields of a certificate's content.
#[derive(Clone, Copy)]
enum Field {
    Version,
    Serial,
    Algorithm,
    Issuer,
    Validity,
    Subject,
    PublicKey,
    Extensions,
}

impl Material {
    fn new() -> Self {
        let directory = TempDir::new().expect("a temporary directory");
        let at = directory.path();
        fs::write(at.join("cnf"), "[req]\ndistinguished_name=dn\n[dn]\n").expect("written");
        for (name, words) in KEYS {
            openssl(at, &format!("genpkey -algorithm {words} -out {name}.key"));
        }
        openssl(
            at,
            "genpkey -genparam -algorithm DSA -pkeyopt dsa_paramgen_bits:2048 -out dsa.par",
        );
        openssl(at, "genpkey -paramfile dsa.par -out dsa.key");
        let der = |name: &str| {
            openssl(
                at,
                &format!(
                    "req -x509 -config cnf -key {name}.key -days 30 -subj /CN=a.example -outform DER -out {name}.der -addext subjectAltName=DNS:a.example"
                ),
            );
            fs::read(at.join(format!("{name}.der"))).expect("made")
        };
        let certificate = der("p256");
        let parts = elements(split(&certificate).1);
        let text = |name: &str| fs::read_to_string(at.join(name)).expect("made");
        Self {
            fields: elements(split(&parts[0]).1),
            behind: [parts[1].clone(), parts[2].clone()],
            key: text("p256.key"),
            rsa_certificate: pem("CERTIFICATE", &der("rsa")),
            rsa_key: text("rsa.key"),
            certificate,
            directory,
        }
    }

    /// The certificate with other fields, and something behind the signature.
    fn changed(&self, changes: &[(Field, Vec<u8>)], behind: &[u8]) -> Vec<u8> {
        let mut fields = self.fields.clone();
        for (field, value) in changes {
            fields[*field as usize].clone_from(value);
        }
        let fields: Vec<&[u8]> = fields.iter().map(Vec::as_slice).collect();
        let [algorithm, signature] = &self.behind;
        sequence(&[&sequence(&fields), algorithm, signature, behind])
    }

    fn with(&self, changes: &[(Field, Vec<u8>)]) -> Vec<u8> {
        self.file_of(&self.changed(changes, &[]))
    }

    fn file_of(&self, certificate: &[u8]) -> Vec<u8> {
        (pem("CERTIFICATE", certificate) + &self.key).into_bytes()
    }

    /// The same with what `openssl` writes, of a key in the directory.
    fn command(&self, words: &str) -> String {
        openssl(self.directory.path(), words)
    }

    /// A certificate of a key, made with these options, and the key.
    fn issued(&self, key: &str, options: &str) -> Vec<u8> {
        let made = self.command(&format!(
            "req -x509 -config cnf -key {key}.key -days 30 -subj /CN=a.example {options}"
        ));
        let at = self.directory.path().join(format!("{key}.key"));
        (made + &fs::read_to_string(at).expect("made")).into_bytes()
    }
}

fn openssl(at: &Path, line: &str) -> String {
    let output = Command::new("openssl")
        .args(line.split_whitespace())
        .current_dir(at)
        .output()
        .expect("openssl is installed");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "openssl {line}: {said}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

const KEYS: [(&str, &str); 14] = [
    ("rsa", "rsa -pkeyopt rsa_keygen_bits:2048"),
    ("rsa1024", "rsa -pkeyopt rsa_keygen_bits:1024"),
    ("rsa1536", "rsa -pkeyopt rsa_keygen_bits:1536"),
    ("rsa2047", "rsa -pkeyopt rsa_keygen_bits:2047"),
    (
        "rsa3",
        "rsa -pkeyopt rsa_keygen_bits:2048 -pkeyopt rsa_keygen_pubexp:3",
    ),
    ("pss", "rsa-pss -pkeyopt rsa_keygen_bits:2048"),
    ("p256", "ec -pkeyopt ec_paramgen_curve:prime256v1"),
    (
        "explicit",
        "ec -pkeyopt ec_paramgen_curve:prime256v1 -pkeyopt ec_param_enc:explicit",
    ),
    ("p384", "ec -pkeyopt ec_paramgen_curve:secp384r1"),
    ("p521", "ec -pkeyopt ec_paramgen_curve:secp521r1"),
    ("p224", "ec -pkeyopt ec_paramgen_curve:secp224r1"),
    ("k256", "ec -pkeyopt ec_paramgen_curve:secp256k1"),
    ("ed25519", "ed25519"),
    ("ed448", "ed448"),
];

// === The table

struct Case {
    name: String,
    content: Vec<u8>,
    expected: Expected,
}

type Cases = Vec<Case>;

fn add(
    cases: &mut Cases,
    name: impl Into<String>,
    content: impl Into<Vec<u8>>,
    expected: Expected,
) {
    cases.push(Case {
        name: name.into(),
        content: content.into(),
        expected,
    });
}

/// Keys of all kinds, and how they were signed.
#[rustfmt::skip] // One row, one line.
fn keys(cases: &mut Cases, material: &Material) {
    for (key, expected) in [
        ("rsa", Served),
        ("rsa1024", Refused),
        ("rsa1536", Refused),
        ("rsa2047", RefusedHere),
        ("rsa3", Served),
        ("pss", RefusedHere),
        ("explicit", Served),
        ("p384", Served),
        ("p521", Served),
        ("p224", RefusedHere),
        ("k256", RefusedHere),
        ("ed25519", Served),
        ("ed448", RefusedHere),
        ("dsa", RefusedHere),
    ] {
        add(cases, format!("key {key}"), material.issued(key, ""), expected);
    }
    for (key, digest) in [
        ("rsa", "md5"),
        ("rsa", "sha1"),
        ("rsa", "sha224"),
        ("rsa", "sha512"),
        ("p256", "sha1"),
        ("p256", "sha224"),
        ("rsa", "sha256 -sigopt rsa_padding_mode:pss"),
    ] {
        let content = material.issued(key, &format!("-{digest}"));
        add(cases, format!("{key} signed with {digest}"), content, Served);
    }
}

/// Other versions, serial numbers and times.
#[rustfmt::skip] // One row, one line.
fn fields(cases: &mut Cases, material: &Material) {
    use Field::{Extensions, Serial, Validity, Version};
    let version = |number: u8| tlv(0xa0, &[&tlv(2, &[&[number]])]);
    for (name, changes) in [
        ("version 1", vec![(Version, vec![]), (Extensions, vec![])]),
        ("version 1 with extensions", vec![(Version, vec![])]),
        ("version 1 that is told", vec![(Version, version(0)), (Extensions, vec![])]),
        ("version 2", vec![(Version, version(1)), (Extensions, vec![])]),
        ("version 4", vec![(Version, version(3))]),
        ("identifiers of version 2", vec![(Version, version(1)), (Extensions, [tlv(0x81, &[b"\0ab"]), tlv(0x82, &[b"\0cd"])].concat())]),
    ] {
        add(cases, name, material.with(&changes), Served);
    }
    let long = [0x11; 200];
    for (serial, expected) in [
        (&[0xfb][..], Served),
        (&[0x80, 1, 1, 1], Served),
        (&[0], Served),
        (&[0, 0xff], Served),
        (&[0x7f; 40], Served),
        (&long, Served),
        (&[0, 0, 5], Refused),
        (&[0xff, 0xff, 5], Refused),
        (&[], Refused),
    ] {
        let content = material.with(&[(Serial, tlv(2, &[serial]))]);
        add(cases, format!("serial {serial:02x?}"), content, expected);
    }
    for (tag, from, to, expected) in [
        (0x18, "20200101000000Z", "20450101000000Z", Served),
        (0x18, "19000101000000Z", "99991231235959Z", Served),
        (0x17, "500101000000Z", "491231235959Z", Served),
        (0x17, "100101000000Z", "110101000000Z", Served),
        (0x17, "480101000000Z", "490101000000Z", Served),
        (0x17, "480101000000Z", "100101000000Z", Served),
        (0x17, "2001010000Z", "4901010000Z", Refused),
        (0x17, "201301000000Z", "490101000000Z", RefusedHere),
        (0x17, "200230000000Z", "490101000000Z", RefusedHere),
        (0x17, "", "", Refused),
    ] {
        let content = material.with(&[(Validity, validity(tag, from, to))]);
        add(cases, format!("valid from {from} to {to}"), content, expected);
    }
}

/// Names of all kinds of strings.
#[rustfmt::skip] // One row, one line.
fn names(cases: &mut Cases, material: &Material) {
    use Field::{Extensions, Issuer, Subject};
    let empty = || sequence(&[]);
    add(cases, "no subject", material.with(&[(Subject, empty())]), Served);
    add(cases, "no issuer", material.with(&[(Issuer, empty())]), Served);
    for (kind, tag, value, expected) in [
        ("T61", 0x14, &b"\xe4.example"[..], Served),
        ("IA5", 0x16, b"i\xe4.example", Served),
        ("printable that is not", 0x13, b"a@b_.example", Served),
        ("UTF-8", 0x0c, "\u{e4}.example".as_bytes(), Served),
        ("UTF-8 that is none", 0x0c, b"\xff.example", Refused),
        ("BMP", 0x1e, b"\0b\0.\0c", Served),
        ("BMP of odd length", 0x1e, b"abc", Refused),
        ("universal", 0x1c, b"\0\0\0u", Served),
        ("universal of odd length", 0x1c, b"\0\0u", Refused),
        ("numeric", 0x12, b"12", Served),
        ("visible", 0x1a, b"v.example", Refused),
        ("general", 0x1b, b"g.example", Refused),
        ("octets", 4, b"o.example", Refused),
        ("an integer", 2, b"\x05", Refused),
        ("nothing", 0x0c, b"", Served),
    ] {
        let subject = common_name(tag, value);
        let changes = [(Subject, subject), (Extensions, vec![])];
        add(cases, format!("name of {kind}"), material.with(&changes), expected);
        let subject = name(&[(ORGANIZATION, tag, value), (COMMON_NAME, 12, b"a.example")]);
        add(cases, format!("organization of {kind}"), material.with(&[(Subject, subject)]), expected);
        if expected == Refused {
            let issuer = common_name(tag, value);
            add(cases, format!("issuer of {kind}"), material.with(&[(Issuer, issuer)]), expected);
        }
    }
    let two = name(&[
        (COMMON_NAME, 12, b"one.example"),
        (COMMON_NAME, 12, b"two.example"),
    ]);
    add(cases, "two names", material.with(&[(Subject, two), (Extensions, vec![])]), Served);
}

/// Extensions that are missing, twice, broken or unknown. Clients may refuse them.
#[rustfmt::skip] // One row, one line.
fn extension_cases(cases: &mut Cases, material: &Material) {
    let good = alternative_name(b"a.example");
    let usage = extension(&[0x55, 0x1d, 15], &tlv(3, &[&[7, 0x80]]));
    let unknown = extension(&[0x2a, 3, 4], &[5, 0]);
    let broken = |number: u8| extension(&[0x55, 0x1d, number], b"zz");
    for (name, value) in [
        ("none", vec![]),
        ("an empty list", extensions(&[])),
        ("unknown", extensions(&[&good, &unknown])),
        ("unknown twice", extensions(&[&good, &unknown, &unknown])),
        ("names twice", extensions(&[&good, &alternative_name(b"b.example")])),
        ("usage twice", extensions(&[&good, &usage, &usage])),
        ("broken names", extensions(&[&broken(17)])),
        ("broken usage", extensions(&[&good, &broken(15)])),
        ("broken constraints", extensions(&[&good, &broken(19)])),
        ("broken key identifier", extensions(&[&good, &broken(14)])),
        ("broken place of a list", extensions(&[&good, &broken(31)])),
        ("usage of the key for others", extensions(&[&good, &extension(&[0x55, 0x1d, 37], &sequence(&[&tlv(6, &[&[0x2b, 6, 1, 5, 5, 7, 3, 2]])]))])),
        ("a name of capitals", extensions(&[&alternative_name(b"UP.Example")])),
        ("a name with a dot behind", extensions(&[&alternative_name(b"a.example.")])),
        ("an empty name", extensions(&[&alternative_name(b"")])),
    ] {
        let content = material.with(&[(Field::Extensions, value)]);
        add(cases, format!("extensions: {name}"), content, Served);
    }
}

/// Other encodings, algorithms and public keys.
#[rustfmt::skip] // One row, one line.
fn encodings(cases: &mut Cases, material: &Material) {
    use Field::{Algorithm, PublicKey, Subject};
    let longer = |der: &[u8]| {
        let (tag, content, _) = split(der);
        let length = content.len();
        let header = [
            tag,
            0x83,
            0,
            length.to_le_bytes()[1],
            length.to_le_bytes()[0],
        ];
        [&header[..], content].concat()
    };
    let endless = |der: &[u8]| {
        let (tag, content, _) = split(der);
        [&[tag, 0x80][..], content, &[0, 0]].concat()
    };
    let subject = &material.fields[Subject as usize];
    add(cases, "a length of more bytes", material.with(&[(Subject, longer(subject))]), Served);
    add(cases, "BER without a length", material.file_of(&endless(&material.certificate)), RefusedHere);
    add(cases, "a field of BER without a length", material.with(&[(Subject, endless(subject))]), RefusedHere);
    add(cases, "bytes behind the certificate", material.file_of(&[&material.certificate[..], &[5, 0]].concat()), Refused);
    add(cases, "bytes behind the signature", material.file_of(&material.changed(&[], &[5, 0])), Refused);
    let other = sequence(&[&[6, 3, 0x2a, 3, 4]]);
    add(cases, "an algorithm that nobody knows", material.with(&[(Algorithm, other)]), Served);

    let parts = elements(split(&material.fields[PublicKey as usize]).1);
    let (_, point, _) = split(&parts[1]);
    let (x, y) = point[2..].split_at(32);
    let parity = y[31] & 1;
    let curve = |point: &[u8]| sequence(&[&parts[0], &tlv(3, &[&[0], point])]);
    let compressed = curve(&[&[2 + parity][..], x].concat());
    add(cases, "a compressed point", material.with(&[(PublicKey, compressed)]), Served);
    let wrong = curve(&[&[3 - parity][..], x].concat());
    add(cases, "the other compressed point", material.with(&[(PublicKey, wrong)]), Refused);
    let hybrid = curve(&[&[6 + parity][..], x, y].concat());
    add(cases, "a hybrid point", material.with(&[(PublicKey, hybrid)]), Served);
}

/// Keys in all the forms in which they are stored.
#[rustfmt::skip] // One row, one line.
fn key_forms(cases: &mut Cases, material: &Material) {
    let certificate = pem("CERTIFICATE", &material.certificate);
    let rsa = &material.rsa_certificate;
    let sec1 = material.command("ec -in p256.key");
    let pkcs1 = material.command("rsa -in rsa.key -traditional");
    let parameters = material.command("ecparam -name prime256v1");
    let encrypted = material.command("pkcs8 -topk8 -in p256.key -passout pass:x");
    let old_encrypted = material.command("rsa -in rsa.key -traditional -aes128 -passout pass:x");
    let diffie_hellman = material.command("dhparam -dsaparam 1024");
    let (key, rsa_key) = (&material.key, &material.rsa_key);
    let openssh = "-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n-----END OPENSSH PRIVATE KEY-----\n";
    let der = |pem_text: &str| {
        let lines: String = pem_text
            .lines()
            .filter(|line| !line.starts_with('-'))
            .collect();
        decode(&lines)
    };
    let ec_parts = elements(split(&der(key)).1);
    let rsa_parts = elements(split(&der(rsa_key)).1);
    let newer = sequence(&[
        &[2, 1, 1],
        &ec_parts[1],
        &ec_parts[2],
        &tlv(0x81, &[&[0, 4]]),
    ]);
    let attributes = sequence(&[&ec_parts[0], &ec_parts[1], &ec_parts[2], &tlv(0xa0, &[])]);
    let bare = sequence(&[&[6, 9, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 1]]);
    let no_null = sequence(&[&rsa_parts[0], &bare, &rsa_parts[2]]);
    for (name, content, expected) in [
        ("SEC 1", [&*certificate, &sec1].concat(), Served),
        ("PKCS #1", [&**rsa, &pkcs1].concat(), Served),
        ("parameters before the key", [&*certificate, &parameters, &sec1].concat(), Served),
        ("parameters before all", [&*parameters, &certificate, &sec1].concat(), Served),
        ("the key first", [&**key, &certificate].concat(), Served),
        ("encrypted", [&*certificate, &encrypted].concat(), Refused),
        ("encrypted in the old form", [&**rsa, &old_encrypted].concat(), Refused),
        ("encrypted, and another behind", [&*certificate, &encrypted, key].concat(), Refused),
        ("encrypted behind the good one", [&*certificate, key, &encrypted].concat(), Served),
        ("two keys", [&*certificate, key, rsa_key].concat(), Served),
        ("two keys, the wrong one first", [&*certificate, rsa_key, key].concat(), Refused),
        ("two certificates, the second one's key", [&**rsa, &certificate, key].concat(), Refused),
        ("the same certificate twice", [&*certificate, &certificate, key].concat(), Served),
        ("Diffie-Hellman parameters", [&*certificate, key, &diffie_hellman].concat(), Served),
        ("a key of OpenSSH before", [&*certificate, openssh, key].concat(), Served),
        ("PKCS #8 that says EC", [&*certificate, &key.replace("PRIVATE", "EC PRIVATE")].concat(), Served),
        ("PKCS #8 that says RSA", [&**rsa, &rsa_key.replace("PRIVATE", "RSA PRIVATE")].concat(), Served),
        ("SEC 1 that says PKCS #8", [&*certificate, &sec1.replace("EC PRIVATE", "PRIVATE")].concat(), Refused),
        ("PKCS #1 that says PKCS #8", [&**rsa, &pkcs1.replace("RSA PRIVATE", "PRIVATE")].concat(), Refused),
        ("PKCS #8 of version 2", [&*certificate, &pem("PRIVATE KEY", &newer)].concat(), Served),
        ("PKCS #8 with attributes", [&*certificate, &pem("PRIVATE KEY", &attributes)].concat(), Served),
        ("PKCS #8 without a NULL", [&**rsa, &pem("PRIVATE KEY", &no_null)].concat(), Served),
        ("no key", certificate.clone(), Refused),
        ("no certificate", key.clone(), Refused),
    ] {
        add(cases, format!("key: {name}"), content, expected);
    }
}

fn decode(text: &str) -> Vec<u8> {
    let values: Vec<usize> = text
        .bytes()
        .filter_map(|letter| LETTERS.iter().position(|known| *known == letter))
        .collect();
    let bytes = values.chunks(4).flat_map(|group| {
        let value =
            group.iter().fold(0, |value, digit| value << 6 | digit) << (6 * (4 - group.len()));
        let bytes = value.to_be_bytes();
        bytes[5..]
            .iter()
            .copied()
            .take(group.len() * 6 / 8)
            .collect::<Vec<u8>>()
    });
    bytes.collect()
}

/// Files as editors, mailers and people leave them.
#[rustfmt::skip] // One row, one line.
fn files(cases: &mut Cases, material: &Material) {
    let key = &material.key;
    let certificate = pem("CERTIFICATE", &material.certificate);
    let both = [&*certificate, key].concat();
    let second_line = certificate.find('\n').expect("a line") + 1;
    let with = |inserted: &str| {
        let (head, tail) = certificate.split_at(second_line);
        [head, &tail[..8], inserted, &tail[8..], key].concat()
    };
    let width = |width| pem_of_width("CERTIFICATE", &material.certificate, width) + key;
    let indented =
        |text: &str| -> String { text.lines().map(|line| format!(" {line}\n")).collect() };
    let base64_indented: String = both
        .lines()
        .map(|line| match line.starts_with('-') {
            true => format!("{line}\n"),
            false => format!("  {line}\n"),
        })
        .collect();
    for (name, content, expected) in [
        ("text between", format!("Bag Attributes\n x: y\n{certificate}words: ; -- ---\n{key}end"), Served),
        ("CR LF", both.replace('\n', "\r\n"), Served),
        ("CR alone", both.replace('\n', "\r"), Refused),
        ("spaces behind", both.replace('\n', "  \n"), Served),
        ("tabs behind", both.replace('\n', "\t\n"), Served),
        ("control characters behind", both.replace('\n', "\x0b\x0c\n"), Served),
        ("spaces before all", indented(&both), Refused),
        ("spaces before base64", base64_indented, Served),
        ("a space in base64", with(" "), Served),
        ("a bad letter in base64", with("!"), Refused),
        ("a dash in base64", with("-"), Refused),
        ("lines of 76", width(76), Served),
        ("lines of 30", width(30), Served),
        ("lines of 1", width(1), Served),
        ("one line", width(9_999), Served),
        ("no last line feed", both.trim_end().to_owned(), Served),
        ("no line feed between", [certificate.trim_end(), key].concat(), Refused),
        ("old label", both.replace("CERTIFICATE", "X509 CERTIFICATE"), Served),
        ("label of small letters", both.replace("CERTIFICATE", "certificate"), Refused),
        ("unknown section", format!("{certificate}-----BEGIN FOO-----\nAAAA\n-----END FOO-----\n{key}"), Served),
        ("unknown section of no base64", format!("{certificate}-----BEGIN FOO-----\n!!\n-----END FOO-----\n{key}"), Refused),
        ("unfinished section", format!("{both}-----BEGIN FOO-----\nAAAA\n"), Refused),
        ("no end", both.replacen("-----END CERTIFICATE-----\n", "", 1), Refused),
        ("another end", both.replacen("END CERTIFICATE", "END CERT", 1), Refused),
        ("byte order mark", format!("\u{feff}{both}"), Served),
        ("an empty certificate first", format!("-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n{both}"), Refused),
        ("headers", both.replacen("-----\n", "-----\nX-A: b\n\n", 1), ServedHere),
        ("nothing", String::new(), Refused),
    ] {
        add(cases, format!("file: {name}"), content, expected);
    }
    let high = [certificate.as_bytes(), b"\xff\xfe\n", key.as_bytes()].concat();
    add(cases, "file: bytes between", high, Served);
    let zero = [certificate.as_bytes(), b"\0\n", key.as_bytes()].concat();
    add(cases, "file: a zero between", zero, Served);
    add(cases, "file: DER", material.certificate.clone(), Refused);
}

// === Judgement

/// A bind line for each of these files.
fn configuration(at: &Path, numbers: impl Iterator<Item = usize>) -> String {
    let place = at.display();
    let mut text = format!(
        "global\n  stats socket {place}/api level admin\ndefaults\n  mode http\n  timeout connect 10s\n  \
         timeout client 10s\n  timeout server 10s\nfrontend f\n  http-request return status 200\n"
    );
    for number in numbers {
        writeln!(
            text,
            "  bind unix@{place}/s{number} ssl crt {place}/f{number}"
        )
        .expect("text");
    }
    text
}

/// The files that a program does not start with: their bind lines have an error each. It is asked again without
/// these, for it does not always tell of all at once.
fn refused(program: &Program, at: &Path, count: usize) -> BTreeSet<usize> {
    let file = at.join("check.cfg");
    let mut all = BTreeSet::new();
    loop {
        let rest = (0..count).filter(|number| !all.contains(number));
        fs::write(&file, configuration(at, rest)).expect("written");
        let result = program.run(&["-c", "-f", &file.to_string_lossy()]);
        if result.status.success() {
            return all;
        }
        let lines = result.stderr.lines();
        let number = |line: &str| {
            let file = line.rsplit(&format!("{}/f", at.display())).next()?;
            let digits = file.chars().take_while(char::is_ascii_digit);
            digits.collect::<String>().parse().ok()
        };
        let found: Vec<usize> = lines.filter_map(number).collect();
        assert!(!found.is_empty(), "{}", result.stderr);
        all.extend(found);
    }
}

/// Whether a client of this version is served, and the certificate that it is shown.
fn handshake(socket: &Path, version: &str) -> String {
    let mut client = Command::new("openssl")
        .args([
            "s_client",
            "-unix",
            &socket.to_string_lossy(),
            version,
            "-ign_eof",
        ])
        .args(["-cipher", "ECDHE@SECLEVEL=0", "-servername", "a.example"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("openssl runs");
    let mut input = client.stdin.take().expect("piped");
    let _ = input.write_all(b"GET / HTTP/1.0\r\n\r\n");
    let output = client.wait_with_output().expect("it ends");
    drop(input);
    let said = String::from_utf8_lossy(&output.stdout);
    let shown = said.split("-----BEGIN CERTIFICATE-----").nth(1);
    let shown = shown
        .and_then(|rest| rest.split("-----END").next())
        .unwrap_or_default();
    match said.contains("HTTP/1.1 200") {
        true => format!("served {shown}"),
        false => "not served".to_owned(),
    }
}

/// What `show ssl cert` tells, as bytes that each are a character.
fn told(api: &Path, file: &Path) -> String {
    let mut socket = UnixStream::connect(api).expect("the command socket listens");
    socket.set_read_timeout(Some(WAIT_MAX)).expect("a timeout");
    writeln!(socket, "show ssl cert {}", file.display()).expect("it reads");
    let mut answer = Vec::new();
    socket.read_to_end(&mut answer).expect("it answers");
    let lines = answer
        .split(|byte| *byte == b'\n')
        .take_while(|line| !line.starts_with(b"Algorithm: "));
    let rest = answer
        .split(|byte| *byte == b'\n')
        .filter(|line| line.starts_with(b"Subject: ") || line.starts_with(b"Issuer"));
    let kept: Vec<&[u8]> = lines.chain(rest).collect();
    kept.join(&b'\n').iter().copied().map(char::from).collect()
}

/// What clients see of each file, and what is told of it. Keys are used in both versions of TLS; with TLS 1.2
/// OpenSSL does not serve points in odd forms, which are no keys that anybody uses.
fn observed(
    program: &Program,
    at: &Path,
    cases: &[Case],
    numbers: &BTreeSet<usize>,
) -> Vec<(usize, String, String)> {
    let configuration = configuration(at, numbers.iter().copied());
    let _proxy = Proxy::start(program, &configuration, &[]);
    let _ = RuntimeApi::at(at.join("api"));
    let each = numbers.iter().map(|number| {
        let socket = at.join(format!("s{number}"));
        let is_of_key = cases[*number].name.starts_with("key");
        let versions: &[&str] = if is_of_key {
            &["-tls1_2", "-tls1_3"]
        } else {
            &["-tls1_3"]
        };
        let seen: Vec<String> = versions
            .iter()
            .map(|version| handshake(&socket, version))
            .collect();
        let told = told(&at.join("api"), &at.join(format!("f{number}")));
        (*number, seen.join(", "), told)
    });
    let each = each.collect();
    fs::remove_file(at.join("api")).expect("a socket");
    each
}

#[test]
fn old_certificates_are_served_as_haproxy_serves_them() {
    let material = Material::new();
    let mut cases = Vec::new();
    keys(&mut cases, &material);
    fields(&mut cases, &material);
    names(&mut cases, &material);
    extension_cases(&mut cases, &material);
    encodings(&mut cases, &material);
    key_forms(&mut cases, &material);
    files(&mut cases, &material);
    let at = material.directory.path();
    for (number, case) in cases.iter().enumerate() {
        fs::write(at.join(format!("f{number}")), &case.content).expect("written");
    }
    let [theirs, ours] = Program::both().map(|program| refused(&program, at, cases.len()));
    let mut wrong = String::new();
    let mut served = BTreeSet::new();
    for (number, case) in cases.iter().enumerate() {
        let found = match (theirs.contains(&number), ours.contains(&number)) {
            (true, true) => Refused,
            (true, false) => ServedHere,
            (false, true) => RefusedHere,
            (false, false) => {
                served.insert(number);
                Served
            }
        };
        if found != case.expected {
            writeln!(wrong, "{}: {found:?}, not {:?}", case.name, case.expected).expect("text");
        }
    }
    let [theirs, ours] = Program::both().map(|program| observed(&program, at, &cases, &served));
    for ((number, seen, told), (_, ours_seen, ours_told)) in theirs.iter().zip(&ours) {
        let name = &cases[*number].name;
        if seen != ours_seen {
            writeln!(wrong, "{name}: HAProxy {seen}, Ballast {ours_seen}").expect("text");
        }
        // HAProxy ends before the algorithm where the key is of Ed25519.
        if !ours_told.starts_with(told) {
            writeln!(
                wrong,
                "{name}: HAProxy tells\n{told}\nBallast tells\n{ours_told}"
            )
            .expect("text");
        }
    }
    assert!(
        wrong.is_empty(),
        "{} cases, not as expected:\n{wrong}",
        cases.len()
    );
}
