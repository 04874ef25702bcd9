//! Client certificates are judged as OpenSSL judges them under HAProxy: the numbers of
//! `ssl_c_verify`, `ssl_c_err`, `ssl_c_ca_err` and its depth, and who is let in.
//!
//! Each case has two bind lines: one that ignores all errors and tells them, and one that ignores
//! none. Skipped with a message when haproxy is not installed.

#![allow(clippy::panic, clippy::unwrap_used, reason = "tests")]

#[path = "../../../tests/src/oracle.rs"]
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
use ballast_tls::rustls::pki_types::CertificateDer;
use ballast_tls::rustls::pki_types::UnixTime;
use ballast_tls::rustls::pki_types::pem::PemObject;
use ballast_tls::rustls::time_provider::TimeProvider;
use ballast_tls::rustls::{ClientConnection, Stream};
use ballast_tls::verifier::PeerVerdict;
use ballast_tls::verify_error::IgnoredErrors;
use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, CertifiedIssuer, DnType,
    ExtendedKeyUsagePurpose, GeneralSubtree, IsCa, Issuer, KeyIdMethod, KeyPair, KeyUsagePurpose,
    NameConstraints, PKCS_ECDSA_P256_SHA256, RevokedCertParams, SerialNumber, date_time_ymd,
};

const PATIENCE: Duration = Duration::from_secs(20);

type Authority = CertifiedIssuer<'static, KeyPair>;

fn key() -> KeyPair {
    KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).unwrap()
}

fn params(cn: &str) -> CertificateParams {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.distinguished_name.remove(DnType::CommonName);
    params.distinguished_name.push(DnType::CommonName, cn);
    params.use_authority_key_identifier_extension = true;
    params
}

fn ca(cn: &str) -> CertificateParams {
    let mut params = params(cn);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.use_authority_key_identifier_extension = false;
    params
}

fn root(params: CertificateParams) -> Authority {
    CertifiedIssuer::self_signed(params, key()).unwrap()
}

fn below(params: CertificateParams, above: &Issuer<'_, KeyPair>) -> Authority {
    CertifiedIssuer::signed_by(params, key(), above).unwrap()
}

/// What one client shows to one bind line.
struct Case {
    name: &'static str,
    /// The certificate with its key, and what is sent behind it.
    shown: String,
    authorities: String,
    revocation: Option<String>,
}

fn case(
    name: &'static str,
    leaf: &CertificateParams,
    by: &Issuer<'_, KeyPair>,
    sent: &[&Authority],
    trusted: &[&Authority],
) -> Case {
    let key = key();
    let mut shown = leaf.signed_by(&key, by).unwrap().pem() + &key.serialize_pem();
    shown.extend(sent.iter().map(|authority| authority.pem()));
    Case {
        name,
        shown,
        authorities: trusted.iter().map(|authority| authority.pem()).collect(),
        revocation: None,
    }
}

fn crl(by: &Issuer<'_, KeyPair>, revoked: &[u64], years: (i32, i32)) -> String {
    let revoked = revoked.iter().map(|serial| RevokedCertParams {
        serial_number: SerialNumber::from(*serial),
        revocation_time: date_time_ymd(2020, 1, 1),
        reason_code: None,
        invalidity_date: None,
    });
    let list = CertificateRevocationListParams {
        this_update: date_time_ymd(years.0, 1, 1),
        next_update: date_time_ymd(years.1, 1, 1),
        crl_number: SerialNumber::from(1),
        issuing_distribution_point: None,
        revoked_certs: revoked.collect(),
        key_identifier_method: KeyIdMethod::Sha256,
    };
    list.signed_by(by).unwrap().pem().unwrap()
}

#[expect(clippy::too_many_lines, reason = "a table")]
fn cases() -> Vec<Case> {
    let top = root(ca("root"));
    let middle = below(ca("middle"), &top);
    let leaf = params("leaf");
    let mut cases = vec![
        case("good", &leaf, &middle, &[&middle], &[&top]),
        case("good without a middle", &leaf, &top, &[], &[&top]),
        case("root sent too", &leaf, &middle, &[&middle, &top], &[&top]),
        case("middle trusted too", &leaf, &middle, &[], &[&middle, &top]),
        case("middle missing", &leaf, &middle, &[], &[&top]),
        case(
            "only the middle trusted",
            &leaf,
            &middle,
            &[&middle],
            &[&middle],
        ),
        case(
            "other root",
            &leaf,
            &middle,
            &[&middle],
            &[&root(ca("other"))],
        ),
        case(
            "other root sent",
            &leaf,
            &middle,
            &[&middle, &top],
            &[&root(ca("other"))],
        ),
        case(
            "root of the same name",
            &leaf,
            &top,
            &[],
            &[&root(ca("root"))],
        ),
    ];
    let dated = |mut params: CertificateParams, from: i32, to: i32| {
        params.not_before = date_time_ymd(from, 1, 1);
        params.not_after = date_time_ymd(to, 1, 1);
        params
    };
    let expired_middle = below(dated(ca("middle"), 2000, 2001), &top);
    let expired_top = root(dated(ca("root"), 2000, 2001));
    cases.extend([
        case(
            "expired",
            &dated(params("leaf"), 2000, 2001),
            &middle,
            &[&middle],
            &[&top],
        ),
        case(
            "not yet valid",
            &dated(params("leaf"), 2090, 2099),
            &middle,
            &[&middle],
            &[&top],
        ),
        case(
            "expired middle",
            &leaf,
            &expired_middle,
            &[&expired_middle],
            &[&top],
        ),
        case("expired root", &leaf, &expired_top, &[], &[&expired_top]),
        case(
            "expired and untrusted",
            &dated(params("leaf"), 2000, 2001),
            &middle,
            &[&middle],
            &[&root(ca("other"))],
        ),
    ]);
    let used = |extended: &[ExtendedKeyUsagePurpose], usages: &[KeyUsagePurpose]| {
        let mut params = params("leaf");
        params.extended_key_usages = extended.to_vec();
        params.key_usages = usages.to_vec();
        params
    };
    use ExtendedKeyUsagePurpose::{Any, ClientAuth, ServerAuth};
    let encipher = [KeyUsagePurpose::KeyEncipherment];
    cases.extend([
        case("for clients", &used(&[ClientAuth], &[]), &top, &[], &[&top]),
        case(
            "for servers only",
            &used(&[ServerAuth], &[]),
            &top,
            &[],
            &[&top],
        ),
        case("for anything", &used(&[Any], &[]), &top, &[], &[&top]),
        case(
            "for encryption only",
            &used(&[], &encipher),
            &top,
            &[],
            &[&top],
        ),
        case(
            "for signatures",
            &used(&[], &[KeyUsagePurpose::DigitalSignature]),
            &top,
            &[],
            &[&top],
        ),
    ]);
    let no_ca = below(params("middle"), &top);
    let mut explicit = params("middle");
    explicit.is_ca = IsCa::ExplicitNoCa;
    let explicit = below(explicit, &top);
    let mut servers_only = ca("middle");
    servers_only.extended_key_usages = vec![ServerAuth];
    let servers_only = below(servers_only, &top);
    let mut short = ca("short");
    short.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    let short = root(short);
    let under_short = below(ca("middle"), &short);
    cases.extend([
        case("middle is no authority", &leaf, &no_ca, &[&no_ca], &[&top]),
        case(
            "middle says it is none",
            &leaf,
            &explicit,
            &[&explicit],
            &[&top],
        ),
        case(
            "middle for servers",
            &leaf,
            &servers_only,
            &[&servers_only],
            &[&top],
        ),
        case(
            "path too long",
            &leaf,
            &under_short,
            &[&under_short],
            &[&short],
        ),
        case("path long enough", &leaf, &short, &[], &[&short]),
    ]);
    let mut narrow = ca("narrow");
    narrow.name_constraints = Some(NameConstraints {
        permitted_subtrees: vec![GeneralSubtree::DnsName("in.org".to_owned())],
        excluded_subtrees: vec![GeneralSubtree::DnsName("no.in.org".to_owned())],
    });
    let narrow = root(narrow);
    let named = |name: &str| {
        let mut params = CertificateParams::new([name.to_owned()]).unwrap();
        params.distinguished_name = leaf.distinguished_name.clone();
        params
    };
    cases.extend([
        case(
            "permitted name",
            &named("a.in.org"),
            &narrow,
            &[],
            &[&narrow],
        ),
        case("other name", &named("a.out.org"), &narrow, &[], &[&narrow]),
        case(
            "excluded name",
            &named("x.no.in.org"),
            &narrow,
            &[],
            &[&narrow],
        ),
        case(
            "common name in",
            &params("in.org"),
            &narrow,
            &[],
            &[&narrow],
        ),
        case(
            "common name out",
            &params("a.out.org"),
            &narrow,
            &[],
            &[&narrow],
        ),
    ]);
    cases.extend(revoked(&top, &middle));
    cases.extend(signed_by_itself(&top));
    cases.extend(by_openssl());
    cases
}

fn revoked(top: &Authority, middle: &Authority) -> Vec<Case> {
    let mut leaf = params("leaf");
    leaf.serial_number = Some(SerialNumber::from(77));
    let with = |name, lists: &[String]| Case {
        revocation: Some(lists.concat()),
        ..case(name, &leaf, middle, &[middle], &[top])
    };
    let of_top = crl(top, &[], (2020, 2090));
    let good = |by: &Authority| crl(by, &[1, 5], (2020, 2090));
    // The same name, another key.
    let forged = root(ca("middle"));
    vec![
        with("lists that revoke others", &[of_top.clone(), good(middle)]),
        with(
            "revoked",
            &[of_top.clone(), crl(middle, &[5, 77], (2020, 2090))],
        ),
        with("no list of the middle", std::slice::from_ref(&of_top)),
        with("no list of the root", &[good(middle)]),
        with(
            "expired list",
            &[of_top.clone(), crl(middle, &[], (2020, 2021))],
        ),
        with(
            "expired list that revokes",
            &[of_top.clone(), crl(middle, &[77], (2020, 2021))],
        ),
        with(
            "list of the future",
            &[of_top.clone(), crl(middle, &[], (2080, 2090))],
        ),
        with("forged list", &[of_top, good(&forged)]),
    ]
}

fn signed_by_itself(top: &Authority) -> Vec<Case> {
    let alone = |name, params: CertificateParams, is_trusted: bool| {
        let key = key();
        let certificate = params.self_signed(&key).unwrap().pem();
        Case {
            name,
            shown: certificate.clone() + &key.serialize_pem(),
            authorities: if is_trusted { certificate } else { top.pem() },
            revocation: None,
        }
    };
    vec![
        alone("signed by itself", params("alone"), false),
        alone("signed by itself and trusted", params("alone"), true),
        alone("root shown as a client", ca("alone"), true),
        alone("unknown root shown as a client", ca("alone"), false),
    ]
}

/// What rcgen does not make: certificates of version 1.
fn by_openssl() -> Vec<Case> {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    let run = |line: &str| {
        Command::new("openssl")
            .args(line.split(' '))
            .current_dir(at)
            .output()
            .is_ok_and(|output| output.status.success())
    };
    let ec = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes";
    let sign = "x509 -req -CA root -CAkey root.key -CAcreateserial -days 100";
    let is_made = run(&format!(
        "req -new {ec} -keyout root.key -out root.csr -subj /CN=first"
    )) && run("x509 -req -in root.csr -signkey root.key -days 100 -out root")
        && run(&format!(
            "req -new {ec} -keyout leaf.key -out leaf.csr -subj /CN=leaf"
        ))
        && run(&format!("{sign} -in leaf.csr -out leaf"));
    if !is_made {
        eprintln!("SKIPPED: openssl makes no certificates, version 1 is not compared");
        return Vec::new();
    }
    let read = |name: &str| std::fs::read_to_string(at.join(name)).unwrap();
    vec![Case {
        name: "version 1",
        shown: read("leaf") + &read("leaf.key"),
        authorities: read("root"),
        revocation: None,
    }]
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

/// What we would tell.
fn judge(case: &Case, ignored: &str) -> PeerVerdict {
    let read = |content: &str| {
        let mut authorities = Authorities::default();
        authorities.add(content.as_bytes()).unwrap();
        Some(Arc::new(authorities))
    };
    let trust = TrustedAuthorities {
        authorities: read(&case.authorities),
        verify_only: None,
        revocation: case.revocation.as_deref().and_then(read),
    };
    let ignored = match ignored {
        "" => IgnoredErrors::default(),
        list => IgnoredErrors::parse(list).unwrap(),
    };
    let verifier = ClientVerifier::new(VerifyMode::Required, trust, ignored, ignored, true, None);
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

#[test]
fn client_certificates_are_judged_as_haproxy_judges_them() {
    let directory = tempfile::tempdir().unwrap();
    let cases = cases();
    let Some(_oracle) = start(directory.path(), &cases) else {
        return;
    };
    let mut different = String::new();
    for (number, case) in cases.iter().enumerate() {
        let socket = |ending| directory.path().join(format!("s{number}{ending}"));
        let all = judge(case, "all");
        let ours = format!(
            "{} {} {} {}",
            all.result.0, all.error.0, all.ca_error.0, all.ca_error_depth
        );
        let ours = if all.is_refused {
            "refused".to_owned()
        } else {
            ours
        };
        let theirs = ask(&socket("a"), case).unwrap_or_else(|| "refused".to_owned());
        let is_let_in = ask(&socket("b"), case).is_some();
        let we_let_in = !judge(case, "").is_refused;
        if ours != theirs || is_let_in != we_let_in {
            let name = case.name;
            writeln!(
                different,
                "{name}: ours {ours} {we_let_in}, theirs {theirs} {is_let_in}"
            )
            .unwrap();
        }
    }
    assert!(
        different.is_empty(),
        "verify, err, ca_err, ca_err_depth, let in:\n{different}"
    );
}
