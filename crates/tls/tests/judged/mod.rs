//! Certificates of clients, judged by HAProxy and by us: the numbers of `ssl_c_verify`, `ssl_c_err`,
//! `ssl_c_ca_err` and its depth, and who is let in.
//!
//! Each case has two bind lines: one that ignores all errors and tells them, and one that ignores
//! none.

#[path = "../../../../tests/src/oracle.rs"]
mod installed;

use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use ballast_tls::authorities::{Authorities, TrustedAuthorities};
use ballast_tls::certificate::{Certificate, CertificateParts};
use ballast_tls::client_config::{ServerLineParts, ServerTlsSettings, ServerTrust, server_name};
use ballast_tls::client_verifier::ClientVerifier;
use ballast_tls::options::{HandshakeOptions, VerifyMode};
use ballast_tls::rustls::pki_types::pem::PemObject;
use ballast_tls::rustls::pki_types::{CertificateDer, UnixTime};
use ballast_tls::rustls::time_provider::TimeProvider;
use ballast_tls::rustls::{ClientConnection, Stream};
use ballast_tls::verifier::PeerVerdict;
use ballast_tls::verify_error::IgnoredErrors;
use rcgen::{CertificateParams, DnType, KeyPair, PKCS_ECDSA_P256_SHA256};

const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) fn key() -> KeyPair {
    KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).unwrap()
}

pub(crate) fn params(cn: &str) -> CertificateParams {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.distinguished_name.remove(DnType::CommonName);
    params.distinguished_name.push(DnType::CommonName, cn);
    params.use_authority_key_identifier_extension = true;
    params
}

/// What one client shows to one bind line.
pub(crate) struct Case {
    pub(crate) name: String,
    /// The certificate with its key, and what is sent behind it.
    pub(crate) shown: String,
    pub(crate) authorities: String,
    pub(crate) revocation: Option<String>,
}

#[derive(Debug)]
struct Now;

impl TimeProvider for Now {
    fn current_time(&self) -> Option<UnixTime> {
        Some(UnixTime::now())
    }
}

/// Says hello with the certificate of a case; what the server tells, `None` when it refuses.
fn ask(socket: &Path, case: &Case) -> Option<String> {
    let parts = CertificateParts::read(case.shown.as_bytes()).unwrap();
    let certificate = Certificate::new(parts, |_, rest| rest.into()).unwrap();
    let parts = ServerLineParts {
        time: Arc::new(Now),
        trust: ServerTrust::Any,
        certificate: Some(Arc::new(certificate)),
        tickets: true,
        session_names_max: 0,
        record_bytes_max: 0,
    };
    let tls_settings = ServerTlsSettings::new(&HandshakeOptions::default(), &parts).unwrap();
    let mut client = ClientConnection::new(
        Arc::clone(tls_settings.config()),
        server_name(None, false).unwrap(),
    )
    .unwrap();
    let mut stream = UnixStream::connect(socket).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut stream = Stream::new(&mut client, &mut stream);
    stream.write_all(b"GET / HTTP/1.0\r\n\r\n").ok()?;
    let mut text = String::new();
    let _ = stream.read_to_string(&mut text);
    let body = text.split("\r\n\r\n").nth(1)?;
    (!body.is_empty()).then(|| body.to_owned())
}

fn trust(case: &Case) -> TrustedAuthorities {
    let read = |content: &str| {
        let mut authorities = Authorities::default();
        authorities.add(content.as_bytes()).unwrap();
        Some(Arc::new(authorities))
    };
    TrustedAuthorities {
        authorities: read(&case.authorities),
        verify_only: None,
        revocation: case.revocation.as_deref().and_then(read),
    }
}

/// What we would tell.
fn judge(case: &Case, ignored: &str) -> PeerVerdict {
    let ignored = match ignored {
        "" => IgnoredErrors::default(),
        list => IgnoredErrors::parse(list).unwrap(),
    };
    let verifier = ClientVerifier::new(
        VerifyMode::Required,
        trust(case),
        ignored,
        ignored,
        true,
        None,
    );
    let shown: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(case.shown.as_bytes())
        .map(Result::unwrap)
        .collect();
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap()
        .as_secs();
    verifier.verify(&shown[0], &shown[1..], i64::try_from(now).unwrap())
}

struct Oracle(Child);

impl Drop for Oracle {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start(at: &Path, cases: &[Case]) -> Option<Oracle> {
    let program = installed::haproxy()?;
    let server_key = key();
    let server = params("server").self_signed(&server_key).unwrap();
    let file = |name: String, content: &str| {
        let path = at.join(name);
        std::fs::write(&path, content).unwrap();
        path.display().to_string()
    };
    let crt = file(
        "server".to_owned(),
        &(server.pem() + &server_key.serialize_pem()),
    );
    let mut config = "global\n  nbthread 1\ndefaults\n  mode http\n  timeout client 60s\n  \
        timeout server 60s\n  timeout connect 5s\nlisten all\n  http-request return status 200 \
        content-type text/plain lf-string \"%[ssl_c_verify] %[ssl_c_err] %[ssl_c_ca_err] \
        %[ssl_c_ca_err_depth]\"\n"
        .to_owned();
    for (number, case) in cases.iter().enumerate() {
        let ca = file(format!("ca{number}"), &case.authorities);
        let crl = case.revocation.as_ref().map_or(String::new(), |lists| {
            format!(" crl-file {}", file(format!("crl{number}"), lists))
        });
        let socket = at.join(format!("s{number}"));
        let socket = socket.display();
        for (ending, ignored) in [("a", " ca-ignore-err all crt-ignore-err all"), ("b", "")] {
            writeln!(
                config,
                "  bind unix@{socket}{ending} ssl crt {crt} verify required ca-file {ca}{crl}{ignored}"
            )
            .unwrap();
        }
    }
    let path = file("haproxy.cfg".to_owned(), &config);
    let log = std::fs::File::create(at.join("log")).unwrap();
    let process = Command::new(program)
        .args(["-db", "-f", &path])
        .stdout(Stdio::null())
        .stderr(log)
        .spawn()
        .unwrap();
    let mut oracle = Oracle(process);
    let start = Instant::now();
    while UnixStream::connect(at.join("s0a")).is_err() {
        let said = std::fs::read_to_string(at.join("log")).unwrap();
        assert!(start.elapsed() < PATIENCE, "haproxy does not start: {said}");
        assert!(
            oracle.0.try_wait().unwrap().is_none(),
            "haproxy ended: {said}"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
    Some(oracle)
}

/// What both say of a case: what all errors ignored come to, and whether it is let in.
#[derive(Debug, Eq, PartialEq)]
pub(crate) struct Judgement {
    pub(crate) ours: String,
    pub(crate) theirs: String,
    /// What we say when the files are loaded.
    pub(crate) remarks: Vec<String>,
}

/// Has all cases judged; `None` when haproxy is not installed.
pub(crate) fn judge_all(cases: &[Case]) -> Option<Vec<Judgement>> {
    let directory = tempfile::tempdir().unwrap();
    let _oracle = start(directory.path(), cases)?;
    let judged = cases.iter().enumerate().map(|(number, case)| {
        let socket = |ending| directory.path().join(format!("s{number}{ending}"));
        let all = judge(case, "all");
        let ours = match all.is_refused {
            true => "refused".to_owned(),
            false => format!(
                "{} {} {} {}",
                all.result.0, all.error.0, all.ca_error.0, all.ca_error_depth
            ),
        };
        let theirs = ask(&socket("a"), case).unwrap_or_else(|| "refused".to_owned());
        let told = |text: String, is_let_in| match is_let_in {
            true => format!("{text}, let in"),
            false => format!("{text}, not let in"),
        };
        Judgement {
            ours: told(ours, !judge(case, "").is_refused),
            theirs: told(theirs, ask(&socket("b"), case).is_some()),
            remarks: trust(case).remarks(),
        }
    });
    Some(judged.collect())
}
