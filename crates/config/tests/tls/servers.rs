//! `server` lines, and the global defaults of theirs.

use super::*;

fn server_with(change: impl FnOnce(&mut ServerTls)) -> ServerTls {
    let mut tls = ServerTls {
        traffic: true,
        probes: true,
        verify: false,
        ..ServerTls::default()
    };
    change(&mut tls);
    tls
}

#[test]
fn words_of_server_lines_arrive() {
    let text = |text: &str| Some(text.to_owned());
    let list = |text: &str| vec![text.to_owned()];
    let rows: Vec<(&str, ServerTls)> = vec![
        ("", server_with(|_| {})),
        (
            "ca-file /ca verify required",
            server_with(|tls| {
                tls.verify = true;
                tls.ca_file = Some(AuthoritySource::File(file("/ca")));
            }),
        ),
        (
            "crl-file /crl crt /a.pem",
            server_with(|tls| {
                tls.crl_file = Some(file("/crl"));
                tls.certificate = Some(file("/a.pem"));
            }),
        ),
        (
            "alpn h2 check-alpn x check-sni s",
            server_with(|tls| {
                tls.alpn = list("h2");
                tls.check_alpn = Some(list("x"));
                tls.check_sni = text("s");
            }),
        ),
        (
            "verifyhost v",
            server_with(|tls| tls.verify_host = text("v")),
        ),
        (
            "ciphers A ciphersuites B curves C sigalgs D client-sigalgs E",
            server_with(|tls| {
                tls.ciphers = text("A");
                tls.ciphersuites = text("B");
                tls.curves = text("C");
                tls.signature_algorithms = text("D");
                tls.client_signature_algorithms = text("E");
            }),
        ),
        (
            "no-tlsv13",
            server_with(|tls| tls.version_max = Some(TlsVersion::Tls12)),
        ),
        (
            "ssl-min-ver TLSv1.3",
            server_with(|tls| tls.version_min = Some(TlsVersion::Tls13)),
        ),
        (
            "no-ssl-reuse no-tls-tickets allow-0rtt",
            server_with(|tls| {
                tls.reuse = false;
                tls.tickets = false;
                tls.allow_early_data = true;
            }),
        ),
        ("port 80", server_with(|tls| tls.probes = false)),
        ("port 80 check-ssl", server_with(|_| {})),
        ("no-check-ssl", server_with(|tls| tls.probes = false)),
    ];
    for (words, expected) in rows {
        assert_eq!(server(words), expected, "{words}");
    }
    let sni = server("sni req.hdr(host),lower").sni.unwrap();
    assert_eq!(sni.to_string(), "req.hdr(host),lower");
}

#[test]
fn a_server_has_tls_if_traffic_or_probes_have() {
    let tls = |before: &str, words: &str| server_after("", before, words, "tcp");
    assert!(tls("", "verify none crt /a").is_none());
    assert!(tls("", "no-ssl verify none").is_none());
    let probes = tls("", "check check-ssl verify none").unwrap();
    assert!(!probes.traffic && probes.probes);
    let off = tls(" default-server ssl verify none alpn x", "no-ssl").unwrap();
    assert!(!off.traffic && !off.probes && off.alpn == ["x"]);
    let steps = " option tcp-check\n tcp-check connect ssl sni a alpn x";
    let text = format!("backend b\n{steps}\n server s 192.0.2.1:1 check verify none\n");
    let loaded = good(&text);
    let backend = &loaded.config.backends[0];
    assert!(backend.servers[0].tls.is_some());
    let ballast_model::CheckMethod::Tcp { rules, .. } = &backend.check else {
        panic!("a TCP check");
    };
    let ballast_model::CheckRule::Connect(connect) = &rules[0] else {
        panic!("a connect");
    };
    let step = connect.tls.as_ref().unwrap();
    assert_eq!(
        (step.sni.as_deref(), step.alpn.as_ref().unwrap().len()),
        (Some("a"), 1)
    );
}

#[test]
fn defaults_of_servers_hold_where_the_line_says_nothing() {
    let global = " ssl-default-server-options no-tls-tickets ssl-max-ver TLSv1.2\n ssl-default-server-ciphers A\n \
                  ssl-default-server-curves B\n ssl-server-verify none\n ca-base /ca\n crt-base /crt\n";
    let tls = server_after(global, "", "ssl crt a crl-file c", "tcp").unwrap();
    assert!(!tls.tickets && !tls.verify);
    assert_eq!(tls.version_max, Some(TlsVersion::Tls12));
    assert_eq!(
        (tls.ciphers.as_deref(), tls.curves.as_deref()),
        (Some("A"), Some("B"))
    );
    assert_eq!(
        (tls.certificate, tls.crl_file),
        (Some(file("/crt/a")), Some(file("/ca/c")))
    );
    let before = " default-server ciphers X tls-tickets";
    let tls = server_after(global, before, "ssl ssl-max-ver TLSv1.3", "tcp").unwrap();
    assert!(tls.tickets);
    assert_eq!(
        (tls.ciphers.as_deref(), tls.version_max),
        (Some("X"), Some(TlsVersion::Tls13))
    );
    for mode in ["http", "tcp"] {
        let words = "ssl verify none alpn h2,http/1.1";
        let tls = server_after("", " option httpchk", words, mode).unwrap();
        assert_eq!(tls.alpn, ["h2", "http/1.1"]);
        assert_eq!(tls.check_alpn, None);
    }
}

#[test]
fn what_is_wrong_in_a_server_line_is_said_as_haproxy_says_it() {
    let lan = "verify is enabled by default but no CA file specified. If you're running on a LAN where you're certain to trust the server's certificate, please set an explicit 'verify none' statement on the 'server' line, or use 'ssl-server-verify none' in the global section to disable server-side verifications by default.";
    for (words, message) in [
        ("ssl", format!("'server b/s' : {lan}")),
        ("check-ssl", format!("'server b/s' : {lan}")),
        ("ssl verify none ssl-min-ver TLSv1.3 ssl-max-ver TLSv1.2", "'server b/s' : backend 'b': all SSL/TLS versions are disabled for server 's'.".into()),
        ("ssl verify optional", "'server b/s' : 'verify' : unknown verify method 'optional', only 'none' and 'required' are supported".into()),
        ("ssl verify none curves", "'server b/s' : 'curves' : missing curves list".into()),
        ("ssl verify none crt", "'server b/s' : 'crt' : missing certificate file path".into()),
        ("ssl verify none verifyhost", "'server b/s' : 'verifyhost' : missing hostname to verify against".into()),
        ("ssl verify none check-sni", "'server b/s' : 'check-sni' : missing SNI".into()),
        ("ssl verify none sni", "'server b/s' : 'sni' : missing sni expression".into()),
    ] {
        let said = alerts(&format!("backend b\n server s 192.0.2.1:443 {words}\n"));
        assert!(said.contains(&message), "{words}: {said:#?}");
    }
    let sni = alerts("backend b\n server s 192.0.2.1:443 ssl verify none sni res.hdr(host)\n");
    assert!(sni[0].contains("error detected while parsing sni or pool-conn-name expressions : fetch method 'res.hdr' is not available here"), "{sni:?}");
    let said = alerts(
        "global\n ssl-server-verify none\nbackend b\n server s 192.0.2.1:443 ssl verify required\n",
    );
    assert_eq!(
        said,
        ["'server b/s' : verify is enabled but no CA file specified."]
    );
    let loaded = good("backend b\n server s 192.0.2.1:443 ssl verify none no-tlsv12\n");
    assert!(
        said_warning(&loaded).contains(
            "SSL/TLS versions range not contiguous for server 's'. Hole find for TLSv1.2."
        )
    );
}
