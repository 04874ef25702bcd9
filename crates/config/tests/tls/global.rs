//! The other words of the global section.

use super::*;

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn words_of_the_global_section_arrive() {
    let global = |line: &str| {
        good(&format!("global\n {line}\n"))
            .config
            .global
            .tls
            .clone()
    };
    let with = |change: &dyn Fn(&mut GlobalTls)| {
        let mut tls = GlobalTls::default();
        change(&mut tls);
        tls
    };
    let none = ExtraFiles {
        bundle: false,
        sctl: false,
        ocsp: false,
        issuer: false,
        key: false,
        replaces_extension: false,
    };
    let rows: Vec<(&str, GlobalTls)> = vec![
        ("", with(&|_| {})),
        (
            "ca-base /x",
            with(&|tls| tls.bases.ca_base = Some("/x".into())),
        ),
        (
            "crt-base /x",
            with(&|tls| tls.bases.crt_base = Some("/x".into())),
        ),
        (
            "key-base /x",
            with(&|tls| tls.bases.key_base = Some("/x".into())),
        ),
        (
            "issuers-chain-path /x",
            with(&|tls| tls.issuers_chain_path = Some(file("/x"))),
        ),
        (
            "ssl-load-extra-files none",
            with(&|tls| tls.extra_files = none),
        ),
        (
            "ssl-load-extra-files key ocsp",
            with(&|tls| {
                tls.extra_files = ExtraFiles {
                    key: true,
                    ocsp: true,
                    ..none
                };
            }),
        ),
        (
            "ssl-load-extra-del-ext",
            with(&|tls| tls.extra_files.replaces_extension = true),
        ),
        (
            "ssl-skip-self-issued-ca",
            with(&|tls| tls.skip_self_issued = true),
        ),
        (
            "maxsslconn 5",
            with(&|tls| tls.connection_count_max = Some(5)),
        ),
        ("maxsslconn 0", with(&|_| {})),
        ("maxsslrate 6", with(&|tls| tls.session_rate_max = Some(6))),
        (
            "tune.ssl.cachesize 7",
            with(&|tls| tls.session_cache_blocks = 7),
        ),
        (
            "tune.ssl.lifetime 8m",
            with(&|tls| tls.session_lifetime = Duration::from_secs(480)),
        ),
        (
            "tune.ssl.lifetime 8",
            with(&|tls| tls.session_lifetime = Duration::from_secs(8)),
        ),
        (
            "tune.ssl.maxrecord 9",
            with(&|tls| tls.record_bytes_first = 9),
        ),
        (
            "tune.ssl.hard-maxrecord 9",
            with(&|tls| tls.record_bytes_max = 9),
        ),
        (
            "tune.ssl.capture-buffer-size 9",
            with(&|tls| tls.capture_bytes = 9),
        ),
        (
            "tune.ssl.key-threads 2",
            with(&|tls| {
                tls.key_threads.count = 2;
                tls.key_threads.rsa = true;
            }),
        ),
        (
            "tune.ssl.key-threads 3 algo EC",
            with(&|tls| {
                tls.key_threads.count = 3;
                tls.key_threads.ecdsa = true;
            }),
        ),
        ("tune.ssl.key-threads 0 algo RSA,EC", with(&|_| {})),
        (
            "tune.ssl.key-queue 9",
            with(&|tls| tls.key_threads.queue_max = 9),
        ),
        ("tune.ssl.keylog on", with(&|tls| tls.keylog = true)),
        (
            "ocsp-update.mode on",
            with(&|tls| tls.ocsp_updates.is_default = true),
        ),
        (
            "ocsp-update.disable on",
            with(&|tls| tls.ocsp_updates.disabled = true),
        ),
        (
            "ocsp-update.mindelay 9",
            with(&|tls| tls.ocsp_updates.delay_min = Duration::from_secs(9)),
        ),
        (
            "ocsp-update.maxdelay 999",
            with(&|tls| tls.ocsp_updates.delay_max = Duration::from_secs(999)),
        ),
        (
            "ocsp-update.httpproxy 192.0.2.1:1",
            with(&|tls| tls.ocsp_updates.proxy = Some("192.0.2.1:1".into())),
        ),
    ];
    for (line, expected) in rows {
        assert_eq!(global(line), expected, "{line}");
    }
    let loaded = good("frontend f\n bind :80\n timeout client-hs 5s\n");
    let timeouts = loaded.config.frontends[0].timeouts;
    assert_eq!(timeouts.client_handshake, Some(Duration::from_secs(5)));
}

#[test]
fn what_is_wrong_in_the_global_section_is_said_as_haproxy_says_it() {
    for (line, message) in [
        (
            "ca-base",
            "global statement 'ca-base' expects a directory path as an argument.",
        ),
        (
            "ssl-default-bind-options",
            "global statement 'ssl-default-bind-options' expects an option as an argument.",
        ),
        (
            "ssl-default-bind-options verify none",
            "unknown option 'verify' on global statement 'ssl-default-bind-options'.",
        ),
        (
            "ssl-default-server-options strict-sni",
            "unknown option 'strict-sni' on global statement 'ssl-default-server-options'.",
        ),
        (
            "ssl-default-bind-options ssl-min-ver",
            "'ssl-min-ver' : missing the ssl/tls version on global statement 'ssl-default-bind-options'.",
        ),
        (
            "ssl-default-bind-options ssl-min-ver x",
            "'x' : unknown ssl/tls version on global statement 'ssl-default-bind-options'.",
        ),
        (
            "ssl-default-bind-ciphers",
            "global statement 'ssl-default-bind-ciphers' expects a cipher suite as an argument.",
        ),
        (
            "ssl-default-bind-ciphers A B",
            "'ssl-default-bind-ciphers' cannot handle unexpected argument 'B'.",
        ),
        (
            "ssl-server-verify foo",
            "'ssl-server-verify' expects 'none' or 'required' as argument.",
        ),
        (
            "ssl-load-extra-files none all",
            "'ssl-load-extra-files' 'none' and 'all' can be only used alone",
        ),
        (
            "ssl-load-extra-files",
            "'ssl-load-extra-files' expects one or multiple arguments (none, all, bundle, sctl, ocsp, issuer).",
        ),
        (
            "tune.ssl.cachesize -1",
            "'tune.ssl.cachesize' expects a positive numeric value.",
        ),
        (
            "tune.ssl.key-threads 2 algo DSA",
            "'tune.ssl.key-threads' knows the algorithms RSA and EC, and not 'DSA'.",
        ),
        (
            "tune.ssl.key-threads 2000",
            "'tune.ssl.key-threads' expects at most 1024 threads.",
        ),
        (
            "tune.ssl.keylog x",
            "'tune.ssl.keylog' expects either 'on' or 'off' but got 'x'.",
        ),
    ] {
        let said = alerts(&format!("global\n {line}\n"));
        let is_said = said.iter().any(|one| one.starts_with(message));
        assert!(is_said, "{line}: {said:?}");
    }
    let said = alerts("global\n ocsp-update.mindelay 10\n ocsp-update.maxdelay 5\n");
    assert_eq!(
        said,
        ["'ocsp-update.maxdelay' can not be lower than tune.ssl.ocsp-update.mindelay."]
    );
}
