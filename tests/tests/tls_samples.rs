//! Every sample of TLS, asked on HAProxy and on Ballast with the same client and the same
//! certificates.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};

use ballast_tests::{
    Authority, Client, KeyType, LogSink, Profile, Program, Proxy, WAIT_MAX, free_port,
};
use tempfile::TempDir;

/// What is asked of the client's session. What differs from one connection to the next is asked
/// for its length.
const FRONT: &[&str] = &[
    "ssl_fc",
    "ssl_fc_protocol",
    "ssl_fc_cipher",
    "ssl_fc_alg_keysize",
    "ssl_fc_use_keysize",
    "ssl_fc_alpn",
    "ssl_fc_npn",
    "ssl_fc_sni",
    "ssl_fc_has_sni",
    "ssl_fc_is_resumed",
    "ssl_fc_has_crt",
    "ssl_fc_has_early",
    "ssl_fc_early_rcvd",
    "ssl_fc_err",
    "ssl_fc_err_str",
    "fc_err",
    "fc_err_name",
    "fc_err_str",
    "ssl_fc_client_random,hex,length",
    "ssl_fc_server_random,hex,length",
    "ssl_fc_client_early_traffic_secret,length",
    "ssl_fc_client_handshake_traffic_secret,length",
    "ssl_fc_client_traffic_secret_0,length",
    "ssl_fc_server_handshake_traffic_secret,length",
    "ssl_fc_server_traffic_secret_0,length",
    "ssl_fc_exporter_secret,length",
    "ssl_fc_protocol_hello_id",
    "ssl_fc_cipherlist_bin,hex",
    "ssl_fc_cipherlist_hex(1)",
    "ssl_fc_cipherlist_str",
    "ssl_fc_cipherlist_xxh",
    "ssl_fc_extlist_bin(1),be2dec(-,2)",
    "ssl_fc_eclist_bin(1),be2dec(-,2)",
    "ssl_fc_ecformats_bin,be2dec(-,1)",
    "ssl_fc_sigalgs_bin,hex",
    "ssl_fc_supported_versions_bin,hex",
    "ssl_f_der,sha1,hex",
    "ssl_f_s_dn",
    "ssl_f_i_dn",
    "ssl_f_i_dn(,0,rfc2253)",
    "ssl_f_serial,hex",
    "ssl_f_sha1,hex",
    "ssl_f_key_alg",
    "ssl_f_sig_alg",
    "ssl_f_notbefore",
    "ssl_f_notafter",
    "ssl_f_version",
    "ssl_c_used",
    "ssl_c_verify",
    "ssl_c_err",
    "ssl_c_ca_err",
    "ssl_c_ca_err_depth",
    "ssl_c_der,sha1,hex",
    "ssl_c_chain_der,sha1,hex",
    "ssl_c_s_dn",
    "ssl_c_s_dn(CN)",
    "ssl_c_s_dn(cn,-1)",
    "ssl_c_s_dn(OU)",
    "ssl_c_s_dn(,0,rfc2253)",
    "ssl_c_i_dn",
    "ssl_c_r_dn",
    "ssl_c_r_dn(CN)",
    "ssl_c_san",
    "ssl_c_serial,hex",
    "ssl_c_sha1,hex",
    "ssl_c_key_alg",
    "ssl_c_sig_alg",
    "ssl_c_notbefore",
    "ssl_c_notafter",
    "ssl_c_version",
];

/// What is asked in full handshakes only: rustls does not know the group of a TLS 1.2 session that
/// is resumed (`ssl_bc_curve` is not asked for that reason).
const FRONT_FULL: &[&str] = &["ssl_fc_curve"];

/// What is asked of the server's session.
const BACK: &[&str] = &[
    "ssl_bc",
    "ssl_bc_protocol",
    "ssl_bc_cipher",
    "ssl_bc_alg_keysize",
    "ssl_bc_use_keysize",
    "ssl_bc_alpn",
    "ssl_bc_npn",
    "ssl_bc_sni",
    "ssl_bc_is_resumed",
    "ssl_bc_client_random,hex,length",
    "ssl_bc_server_random,hex,length",
    "ssl_bc_session_id,hex,length",
    "ssl_bc_err",
    "ssl_bc_err_str",
    "ssl_bc_client_early_traffic_secret,length",
    "ssl_bc_client_handshake_traffic_secret,length",
    "ssl_bc_client_traffic_secret_0,length",
    "ssl_bc_exporter_secret,length",
    "ssl_bc_server_handshake_traffic_secret,length",
    "ssl_bc_server_traffic_secret_0,length",
    "ssl_s_der,sha1,hex",
    "ssl_s_chain_der,sha1,hex",
    "ssl_s_s_dn",
    "ssl_s_i_dn(CN)",
    "ssl_s_serial,hex",
    "ssl_s_sha1,hex",
    "ssl_s_key_alg",
    "ssl_s_sig_alg",
    "ssl_s_notbefore",
    "ssl_s_notafter",
    "ssl_s_version",
];

/// What is asked where a handshake failed.
const FAILED: &[&str] = &[
    "fc_err",
    "fc_err_name",
    "fc_err_str",
    "ssl_fc",
    "ssl_fc_err,hex",
    "ssl_fc_err_str",
    "ssl_c_err",
    "ssl_c_ca_err",
    "ssl_c_verify",
    "ssl_fc_is_resumed",
];

/// What `openssl s_client` is asked to do.
const CLIENTS: &[&str] = &[
    "-tls1_3 -servername a.test -alpn http/1.1",
    "-tls1_3 -noservername",
    "-tls1_2 -servername a.test",
    "-tls1_2 -servername a.test -cipher ECDHE-ECDSA-AES128-GCM-SHA256 -groups P-256",
    "-tls1_3 -servername a.test -ciphersuites TLS_CHACHA20_POLY1305_SHA256 -groups P-384",
    "-tls1_3 -servername a.test -cert client.pem",
    "-tls1_2 -servername a.test -cert client.pem",
    "-tls1_3 -servername a.test -cert rsa.pem",
    "-tls1_3 -servername a.test -cert client.pem -cert_chain ca.pem",
    "-tls1_3 -servername a.test -cert stranger.pem",
    "-tls1_3 -servername a.test -cert expired.pem",
];

/// Files of the test, the same for both programs.
struct Files(TempDir);

impl Files {
    fn new() -> Self {
        let directory = TempDir::new().expect("a temporary directory");
        let authority = Authority::new("the authority of the test");
        let stranger = Authority::new("another authority");
        let write = |name: &str, text: String| {
            fs::write(directory.path().join(name), text).expect("it is written");
        };
        write("ca.pem", authority.certificate());
        let site = authority.issue(&Profile::server(&["a.test", "*.b.test", "192.0.2.1"]));
        write("a.pem", site.bundle() + &authority.certificate());
        let client = Profile {
            names: &["client.test", "192.0.2.7"],
            ..Profile::client("a client, its name+\"")
        };
        write("client.pem", authority.issue(&client).bundle());
        let rsa = Profile {
            key: KeyType::Rsa2048,
            ..Profile::client("rsa")
        };
        write("rsa.pem", authority.issue(&rsa).bundle());
        let late = Profile {
            days: -20..=-10,
            ..Profile::client("too late")
        };
        write("expired.pem", authority.issue(&late).bundle());
        write(
            "stranger.pem",
            stranger.issue(&Profile::client("a stranger")).bundle(),
        );
        let line = |samples: &[&str]| -> String {
            let lines = samples
                .iter()
                .map(|sample| format!("{sample}=<%[{sample}]>\n"));
            lines.collect()
        };
        write("front.txt", line(FRONT));
        write("full.txt", line(&[FRONT, FRONT_FULL].concat()));
        Self(directory)
    }

    fn path(&self) -> &Path {
        self.0.path()
    }
}

struct Site {
    /// Killed with the test.
    _proxy: Proxy,
    /// Open, requiring, clear towards a TLS server.
    ports: [u16; 3],
    sink: LogSink,
}

impl Site {
    fn start(program: &Program, files: &Files) -> Self {
        let at = files.path().display();
        let ports = [free_port(), free_port(), free_port()];
        let [open, requiring, clear] = ports;
        let sink = LogSink::start();
        let failed: Vec<String> = FAILED.iter().map(|it| format!("{it}=<%[{it}]>")).collect();
        let back: String = BACK
            .iter()
            .enumerate()
            .map(|(number, sample)| {
                format!("    http-response set-header x-{number:02} \"{sample}=<%[{sample}]>\"\n")
            })
            .collect();
        let text = format!(
            "global\n    log 127.0.0.1:{log} len 8192 format raw local0\n    \
             tune.ssl.capture-buffer-size 4096\n    tune.ssl.keylog on\n    tune.bufsize 65536\n\
             defaults\n    mode http\n    timeout connect 5s\n    timeout client 5s\n    \
             timeout server 5s\n\
             frontend open\n    log global\n    option httpslog\n    bind 127.0.0.1:{open} ssl crt {at}/a.pem ca-file {at}/ca.pem \
             verify optional crt-ignore-err all ca-ignore-err all\n    \
             http-request return status 200 content-type text/plain lf-file {at}/full.txt if \
             !{{ ssl_fc_is_resumed }}\n    \
             http-request return status 200 content-type text/plain lf-file {at}/front.txt\n\
             frontend requiring\n    log global\n    \
             error-log-format \"{failed}\"\n    \
             bind 127.0.0.1:{requiring} ssl crt {at}/a.pem ca-file {at}/ca.pem verify required\n    \
             http-request return status 200\n\
             frontend clear\n    bind 127.0.0.1:{clear}\n    use_backend old if {{ path /old }}\n    \
             default_backend new\n\
             backend new\n    http-reuse never\n{back}    server s 127.0.0.1:{open} ssl verify none \
             sni str(a.test) alpn http/1.1\n\
             backend old\n    http-reuse never\n{back}    server s 127.0.0.1:{open} ssl verify none \
             ssl-max-ver TLSv1.2\n",
            log = sink.port(),
            failed = failed.join(" ").replace('"', "\\\""),
        );
        Self {
            _proxy: Proxy::start(program, &text, &ports[2..]),
            ports,
            sink,
        }
    }

    /// What a client gets to read, with these words of `openssl s_client`.
    fn ask(&self, files: &Files, words: &str, port: u16) -> String {
        let mut client = Command::new("openssl")
            .current_dir(files.path())
            .args([
                "s_client",
                "-quiet",
                "-connect",
                &format!("127.0.0.1:{port}"),
            ])
            .args(words.split(' '))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("openssl runs");
        let mut stdin = client.stdin.take().expect("a pipe");
        // A client that was refused does not read.
        let _ = stdin.write_all(b"GET /p HTTP/1.0\r\n\r\n");
        let output = client.wait_with_output().expect("it ends");
        drop(stdin);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        text.split_once("\r\n\r\n")
            .map_or(String::new(), |(_, body)| body.to_owned())
    }
}

fn compare(differences: &mut Vec<String>, what: &str, theirs: &str, ours: &str) {
    assert!(!theirs.is_empty(), "HAProxy answers: {what}");
    if theirs.lines().count() != ours.lines().count() {
        return differences.push(format!("{what}\n{theirs}\n--\n{ours}"));
    }
    for (theirs, ours) in theirs.lines().zip(ours.lines()) {
        if theirs != ours {
            differences.push(format!("{what}\n  HAProxy {theirs}\n  Ballast {ours}"));
        }
    }
}

#[test]
fn samples_of_clients_are_haproxys() {
    let files = Files::new();
    let sites = Program::both().map(|program| Site::start(&program, &files));
    let mut differences = Vec::new();
    for words in CLIENTS {
        let [theirs, ours] = sites
            .each_ref()
            .map(|it| it.ask(&files, words, it.ports[0]));
        compare(&mut differences, words, &theirs, &ours);
    }
    for version in ["-tls1_2", "-tls1_3"] {
        let [theirs, ours] = sites.each_ref().map(|it| {
            let words = format!("{version} -servername a.test -cert client.pem");
            let port = it.ports[0];
            let _ = it.ask(&files, &format!("{words} -sess_out session"), port);
            it.ask(&files, &format!("{words} -sess_in session"), port)
        });
        assert!(theirs.contains("ssl_fc_is_resumed=<1>"), "{theirs}");
        compare(
            &mut differences,
            &format!("resumed {version}"),
            &theirs,
            &ours,
        );
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

#[test]
fn samples_of_servers_are_haproxys() {
    let files = Files::new();
    let sites = Program::both().map(|program| Site::start(&program, &files));
    let mut differences = Vec::new();
    for path in ["/", "/", "/old", "/old"] {
        let [theirs, ours] = sites.each_ref().map(|site| {
            let response = Client::get_once(site.ports[2], path);
            let values = (0..BACK.len()).map(|number| {
                let value = response.header(&format!("x-{number:02}")).unwrap_or("none");
                format!("{value}\n")
            });
            values.collect::<String>()
        });
        compare(&mut differences, path, &theirs, &ours);
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

#[test]
fn failed_handshakes_are_logged_with_openssls_errors() {
    let files = Files::new();
    let sites = Program::both().map(|program| Site::start(&program, &files));
    let mut differences = Vec::new();
    let raw: [&[u8]; 5] = [
        b"GET / HTTP/1.1\r\n\r\n",
        b"CONNECT a:1 HTTP/1.1\r\n\r\n",
        b"SSH-2.0-x\r\n",
        b"\x15\x03\x01\x00\x02\x02\x28",
        b"",
    ];
    for bytes in raw {
        let [theirs, ours] = sites.each_ref().map(|site| {
            let mut socket = TcpStream::connect(("127.0.0.1", site.ports[1])).expect("it accepts");
            socket.set_read_timeout(Some(WAIT_MAX)).expect("a limit");
            socket.write_all(bytes).expect("it reads");
            socket.shutdown(std::net::Shutdown::Write).expect("an end");
            let _ = socket.read_to_end(&mut Vec::new());
            site.sink.line_with("fc_err=")
        });
        let what = String::from_utf8_lossy(bytes).into_owned();
        compare(&mut differences, &what, &theirs, &ours);
    }
    for words in [
        "-tls1_2 -servername a.test",
        "-tls1_3 -servername a.test",
        "-tls1_2 -servername a.test -cert stranger.pem",
        "-tls1_3 -servername a.test -cert expired.pem",
        "-tls1_2 -cert client.pem -verify_return_error -verify 1",
        "-tls1_1 -cipher DEFAULT@SECLEVEL=0",
        "-tls1_2 -cipher AES128-SHA",
    ] {
        let [theirs, ours] = sites.each_ref().map(|site| {
            let _ = site.ask(&files, words, site.ports[1]);
            site.sink.line_with("fc_err=")
        });
        compare(&mut differences, words, &theirs, &ours);
    }
    let [theirs, ours] = sites.each_ref().map(|site| {
        let words = "-tls1_3 -servername a.test -cert client.pem";
        let _ = site.ask(&files, words, site.ports[0]);
        let line = site.sink.line_with("GET /p");
        line.rsplit("\" ").next().unwrap_or_default().to_owned()
    });
    compare(&mut differences, "option httpslog", &theirs, &ours);
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}
