//! `bind` lines, and the global defaults of theirs.

use super::*;

/// A bind with one certificate, and what the words change.
fn bind_with(change: impl FnOnce(&mut BindTls)) -> BindTls {
    let mut tls = BindTls {
        certificates: vec![crt("/a.pem")],
        ..BindTls::default()
    };
    change(&mut tls);
    tls
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn words_of_bind_lines_arrive() {
    let text = |text: &str| Some(text.to_owned());
    let rows: Vec<(&str, BindTls)> = vec![
        ("", bind_with(|_| {})),
        (
            "alpn h2,http/1.1",
            bind_with(|tls| tls.options.alpn = Some(vec!["h2".into(), "http/1.1".into()])),
        ),
        (
            "alpn x no-alpn",
            bind_with(|tls| tls.options.alpn = Some(vec![])),
        ),
        (
            "ciphers A",
            bind_with(|tls| tls.options.ciphers = text("A")),
        ),
        (
            "ciphersuites A",
            bind_with(|tls| tls.options.ciphersuites = text("A")),
        ),
        ("curves A", bind_with(|tls| tls.options.curves = text("A"))),
        ("ecdhe A", bind_with(|tls| tls.options.ecdhe = text("A"))),
        (
            "ecdhe A curves B",
            bind_with(|tls| tls.options.curves = text("B")),
        ),
        (
            "sigalgs A",
            bind_with(|tls| tls.options.signature_algorithms = text("A")),
        ),
        (
            "client-sigalgs A",
            bind_with(|tls| tls.options.client_signature_algorithms = text("A")),
        ),
        (
            "ssl-min-ver TLSv1.3",
            bind_with(|tls| tls.options.version_min = Some(TlsVersion::Tls13)),
        ),
        (
            "ssl-min-ver TLSv1.0",
            bind_with(|tls| tls.options.version_min = Some(TlsVersion::Tls12)),
        ),
        (
            "no-tlsv13 no-tlsv10",
            bind_with(|tls| tls.options.version_max = Some(TlsVersion::Tls12)),
        ),
        (
            "force-tlsv13",
            bind_with(|tls| {
                tls.options.version_min = Some(TlsVersion::Tls13);
                tls.options.version_max = Some(TlsVersion::Tls13);
            }),
        ),
        (
            "verify required ca-file /ca",
            bind_with(|tls| {
                tls.options.verify = Some(VerifyMode::Required);
                tls.options.ca_file = Some(AuthoritySource::File(file("/ca")));
            }),
        ),
        (
            "verify optional ca-verify-file @system-ca",
            bind_with(|tls| {
                tls.options.verify = Some(VerifyMode::Optional);
                tls.options.ca_verify_file = Some(AuthoritySource::System(Default::default()));
            }),
        ),
        (
            "crl-file /crl no-ca-names allow-0rtt",
            bind_with(|tls| {
                tls.options.crl_file = Some(file("/crl"));
                tls.options.no_ca_names = true;
                tls.options.allow_early_data = true;
            }),
        ),
        (
            "default-crt /b.pem crt /c.pem",
            bind_with(|tls| {
                tls.certificates
                    .push(CertificateSource::DefaultCrt(file("/b.pem")));
                tls.certificates.push(crt("/c.pem"));
            }),
        ),
        (
            "strict-sni no-tls-tickets prefer-client-ciphers",
            bind_with(|tls| {
                tls.strict_sni = true;
                tls.tickets = false;
                tls.prefer_client_ciphers = true;
            }),
        ),
        (
            "tls-ticket-keys /keys",
            bind_with(|tls| tls.ticket_keys = Some(file("/keys"))),
        ),
        (
            "ca-ignore-err 10,X509_V_ERR_CERT_NOT_YET_VALID crt-ignore-err all",
            bind_with(|tls| {
                tls.ca_ignored_errors = VerifyErrors::Numbers(vec![9, 10]);
                tls.crt_ignored_errors = VerifyErrors::All;
            }),
        ),
    ];
    for (words, expected) in rows {
        assert_eq!(bind(words), expected, "{words}");
    }
    assert!(
        good("frontend f\n bind :80 crt /a.pem\n").config.frontends[0].binds[0]
            .tls
            .is_none()
    );
}

#[test]
fn files_start_from_their_directories_and_know_their_lines() {
    let global = " ca-base /ca\n crt-base /crt\n";
    let words =
        "ssl crt a.pem crt /x/b.pem ca-file c ca-verify-file d crl-file e tls-ticket-keys k";
    let tls = bind_after(global, words, "tcp");
    assert_eq!(tls.certificates, [crt("/crt/a.pem"), crt("/x/b.pem")]);
    assert_eq!(
        tls.options.ca_file,
        Some(AuthoritySource::File(file("/ca/c")))
    );
    assert_eq!(
        tls.options.ca_verify_file,
        Some(AuthoritySource::File(file("/ca/d")))
    );
    assert_eq!(tls.options.crl_file, Some(file("/ca/e")));
    assert_eq!(tls.ticket_keys, Some(file("k")));
    let CertificateSource::Crt(first) = &tls.certificates[0] else {
        panic!("a certificate");
    };
    assert_eq!((&*first.origin.file, first.origin.line), ("t.cfg", 9));
}

#[test]
fn global_defaults_hold_where_the_line_says_nothing() {
    let global = " ssl-default-bind-options ssl-min-ver TLSv1.3 no-tls-tickets strict-sni prefer-client-ciphers\n \
                  ssl-default-bind-ciphers A\n ssl-default-bind-ciphersuites B\n ssl-default-bind-curves C\n \
                  ssl-default-bind-sigalgs D\n ssl-default-bind-client-sigalgs E\n";
    let tls = bind_after(global, "ssl crt /a.pem", "tcp");
    assert_eq!(tls.options.version_min, Some(TlsVersion::Tls13));
    assert!(!tls.tickets && tls.strict_sni && tls.prefer_client_ciphers);
    let all = [
        &tls.options.ciphers,
        &tls.options.ciphersuites,
        &tls.options.curves,
        &tls.options.signature_algorithms,
        &tls.options.client_signature_algorithms,
    ];
    assert_eq!(
        all.map(|one| one.as_deref()),
        ["A", "B", "C", "D", "E"].map(Some)
    );
    let words = "ssl crt /a.pem ssl-min-ver TLSv1.2 tls-tickets no-strict-sni ciphers X ecdhe Y";
    let tls = bind_after(global, words, "tcp");
    assert_eq!(tls.options.version_min, Some(TlsVersion::Tls12));
    assert!(tls.tickets && !tls.strict_sni);
    assert_eq!(tls.options.ciphers.as_deref(), Some("X"));
    assert_eq!(
        (tls.options.curves.as_deref(), tls.options.ecdhe),
        (Some("C"), None)
    );
    // Defaults that stand after the line are for later ones.
    let late = "frontend f\n mode tcp\n bind :1 ssl crt /a\nglobal\n ssl-default-bind-ciphers A\n";
    let loaded = good(late);
    let tls = loaded.config.frontends[0].binds[0].tls.as_ref();
    assert_eq!(tls.unwrap().options.ciphers, None);
}

/// HAProxy 3.2 offers `h2,http/1.1` by default.
#[test]
fn http_frontends_offer_both_versions() {
    let list = |names: &[&str]| Some(names.iter().map(|name| (*name).to_owned()).collect());
    let both = list(&["h2", "http/1.1"]);
    let offered = |words: &str, mode| {
        bind_after("", &format!("ssl crt /a {words}"), mode)
            .options
            .alpn
    };
    assert_eq!(offered("", "http"), both);
    assert_eq!(offered("alpn h2,http/1.1", "http"), both);
    assert_eq!(offered("alpn h2", "http"), list(&["h2"]));
    assert_eq!(offered("proto h2", "http"), list(&["h2"]));
    assert_eq!(offered("proto h1", "http"), both);
    assert_eq!(offered("proto h1 alpn h2,http/1.1", "http"), both);
    assert_eq!(offered("alpn http/1.1,x", "http"), list(&["http/1.1", "x"]));
    assert_eq!(offered("no-alpn", "http"), Some(vec![]));
    assert_eq!(offered("npn h2", "http"), Some(vec![]));
    assert_eq!(offered("", "tcp"), None);
    assert_eq!(offered("alpn h2", "tcp"), Some(vec!["h2".to_owned()]));
    let notices = |words: &str| {
        let text = format!("frontend f\n mode http\n bind :443 ssl crt /a {words}\n");
        said(&good(&text), Severity::Notice).len()
    };
    let counts = [
        "",
        "alpn h2",
        "proto h2",
        "proto h1",
        "proto h1 alpn http/1.1",
    ]
    .map(notices);
    assert_eq!(counts, [0, 0, 0, 1, 0]);
}

#[test]
fn what_is_wrong_in_a_bind_line_is_said_as_haproxy_says_it() {
    let location = "for bind ':443' at [t.cfg:3]";
    for (words, message) in [
        ("ssl", format!("Proxy 'f': no SSL certificate specified {location} (use 'crt').")),
        ("ssl crt /a ssl-min-ver TLSv1.3 ssl-max-ver TLSv1.2", format!("Proxy 'f': all SSL/TLS versions are disabled {location}.")),
        ("ssl crt /a no-tlsv12 no-tlsv13", format!("Proxy 'f': all SSL/TLS versions are disabled {location}.")),
        ("ssl crt /a ssl-max-ver TLSv1.1", format!("Proxy 'f': TLSv1.1 is the newest version allowed, and none before TLSv1.2 is built in, {location}.")),
        ("ssl crt /a force-tlsv10", format!("Proxy 'f': TLSv1.0 is the newest version allowed, and none before TLSv1.2 is built in, {location}.")),
        ("ssl crt /a verify required", format!("Proxy 'f': verify is enabled but no CA file specified {location}.")),
        ("ssl crt /a ssl-min-ver 1.2", "'bind :443' in section 'frontend' : '1.2' : unknown ssl/tls version".into()),
        ("ssl crt /a ssl-min-ver", "'bind :443' in section 'frontend' : 'ssl-min-ver' : missing the ssl/tls version".into()),
        ("ssl crt /a alpn", "'bind :443' in section 'frontend' : 'alpn' : missing the comma-delimited ALPN protocol suite".into()),
        ("ssl crt /a verify maybe", "'bind :443' in section 'frontend' : 'verify' : unknown verify method 'maybe', only 'none', 'optional', and 'required' are supported".into()),
        ("ssl crt /a ca-file", "'bind :443' in section 'frontend' : 'ca-file' : missing CAfile path".into()),
        ("ssl crt /a crl-file", "'bind :443' in section 'frontend' : 'crl-file' : missing CRLfile path".into()),
        ("ssl crt /a ciphers", "'bind :443' in section 'frontend' : 'ciphers' : missing cipher suite".into()),
        ("ssl crt /a curves", "'bind :443' in section 'frontend' : 'curves' : missing curve suite".into()),
        ("ssl crt /a tls-ticket-keys", "'bind :443' in section 'frontend' : 'tls-ticket-keys' : missing TLS ticket keys file path".into()),
        ("ssl crt /a crt", "'bind :443' in section 'frontend' : 'crt' : missing certificate location".into()),
        ("ssl crt /a ca-ignore-err foo", "'bind :443' in section 'frontend' : 'ca-ignore-err' : error constant 'foo' unknown in error IDs list 'foo'".into()),
        ("ssl crt /a crt-ignore-err 99", "'bind :443' in section 'frontend' : 'crt-ignore-err' : ID '99' out of range (1..94) in error IDs list '99'".into()),
    ] {
        let said = alerts(&format!("frontend f\n mode tcp\n bind :443 {words}\n"));
        assert!(said.contains(&message), "{words}: {said:#?}");
    }
    let loaded = good(
        "frontend f\n bind :443 ssl strict-sni\n bind :444 ssl crt /a force-tlsv13 no-tlsv13\n",
    );
    let warnings = said(&loaded, Severity::Warning);
    assert!(warnings.contains(&"Proxy 'f': no SSL certificate specified for bind ':443' at [t.cfg:2], ssl connections will fail (use 'crt')."));
    assert!(warnings.contains(&"Proxy 'f': no-sslv3/no-tlsv1x are ignored for bind ':444' at [t.cfg:3]. Use only 'ssl-min-ver' and 'ssl-max-ver' to fix."));
    let loaded = good("frontend f\n mode tcp\n bind :443 ssl crt /a ssl-min-ver TLSv1.1\n");
    assert_eq!(said(&loaded, Severity::Notice).len(), 1);
}

#[test]
fn files_must_be_there() {
    let machine = Files(&[
        ("/a.pem", ""),
        ("/b.pem.rsa", ""),
        ("/list", "/a.pem\n/none.pem\n"),
    ]);
    for (words, message) in [
        ("crt /a.pem", None),
        ("crt /b.pem", None),
        (
            "crt /c.pem",
            Some("unable to stat SSL certificate from file '/c.pem' : No such file or directory."),
        ),
        (
            "crt @x/y",
            Some("unable to stat SSL certificate from file '@x/y' : No such file or directory."),
        ),
        (
            "crt /a.pem ca-file /ca",
            Some("'ca-file' : unable to load /ca"),
        ),
        (
            "crt /a.pem crl-file /crl",
            Some("'crl-file' : unable to load /crl"),
        ),
        (
            "crt /a.pem tls-ticket-keys /k",
            Some("'/k' : unable to load ssl tickets keys file"),
        ),
        (
            "crt-list /no",
            Some("'crt-list' : cannot open file '/no' : No such file or directory"),
        ),
        (
            "crt-list /list",
            Some(
                "'crt-list' : unable to stat SSL certificate from file '/none.pem' : No such file or directory.",
            ),
        ),
    ] {
        let loaded = read(&format!("frontend f\n bind :443 ssl {words}\n"), &machine);
        let alerts = said(&loaded, Severity::Alert);
        let expected =
            message.map(|message| format!("'bind :443' in section 'frontend' : {message}"));
        assert_eq!(alerts.first().copied(), expected.as_deref(), "{words}");
    }
    let text = "global\n ssl-load-extra-files none\nfrontend f\n bind :443 ssl crt /b.pem\n";
    assert!(is_refused(&read(text, &machine)));
}
