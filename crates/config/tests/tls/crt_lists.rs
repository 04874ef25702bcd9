//! Lines of crt-lists, `ssl-f-use` lines and `crt-store` sections.

use super::*;

#[test]
fn lines_of_crt_lists_arrive() {
    let text = "# comment\n\na.pem\nb.pem [alpn h2,http/1.1 verify none] Foo.X *.y !a.y\n\
                /c.pem[ key c.key ocsp o ocsp-update on ] *\nd.pem !*\n";
    let bases = FileBases {
        crt_base: Some("/crt".to_owned()),
        key_base: Some("/key".to_owned()),
        ..FileBases::default()
    };
    let list = certificate_list("l", text, &bases).unwrap();
    assert_eq!(list.warnings, [""; 0]);
    let lines = &list.lines;
    let names: Vec<_> = lines
        .iter()
        .map(|line| line.certificate.path.as_str())
        .collect();
    assert_eq!(names, ["/crt/a.pem", "/crt/b.pem", "/c.pem", "/crt/d.pem"]);
    assert_eq!(lines[1].certificate.origin.line, 4);
    assert_eq!(lines[1].options.alpn.as_ref().unwrap().len(), 2);
    assert_eq!(lines[1].options.verify, Some(VerifyMode::None));
    let filters: Vec<_> = lines[1]
        .filters
        .iter()
        .map(|one| (one.negated, one.name.as_str()))
        .collect();
    assert_eq!(filters, [(false, "foo.x"), (false, "*.y"), (true, "a.y")]);
    assert_eq!(lines[2].parts.key, Some(file("c.key")));
    assert_eq!(lines[2].parts.ocsp_update, Some(true));
    assert_eq!(lines[2].filters.len(), 1);
    assert!(lines[3].filters.is_empty());
    // Without its closing bracket, the opening one only separates words.
    let list = certificate_list("l", "a.pem [alpn h2 x\n", &bases).unwrap();
    assert_eq!(list.lines[0].filters.len(), 3);
}

#[test]
fn what_is_wrong_in_a_crt_list_is_said_as_haproxy_says_it() {
    let bases = FileBases::default();
    for (text, message) in [
        ("a alpn h2]", "parsing [l:1]: missing '['"),
        ("a [alpn h2] [x] y", "parsing [l:1]: too many '['"),
        ("a\nb [bogus]", "parsing [l:2]: unknown ssl keyword bogus"),
        ("a [ssl]", "parsing [l:1]: unknown ssl keyword ssl"),
        (
            "a [force-tlsv12]",
            "parsing [l:1]: unknown ssl keyword force-tlsv12",
        ),
        ("a [alpn]", "parsing [l:1]: ssl args out of '[]' for alpn"),
        ("a [ssl-min-ver foo]", "'foo' : unknown ssl/tls version"),
        (
            "a [ocsp-update maybe]",
            "parsing [l:1] : cannot parse 'ocsp-update' value 'maybe', 'on' or 'off' is expected.",
        ),
    ] {
        assert_eq!(
            certificate_list("l", &format!("{text}\n"), &bases),
            Err(message.to_owned()),
            "{text}"
        );
    }
    for (text, message) in [
        (
            "a b [alpn h2]",
            "parsing [l:1]: malformated line, filters can't be between filename and options!",
        ),
        (
            "a.pem !y.x",
            "crt-list: negative filters on crt-list line \"a.pem\" without a positive wildcard filter won't do anything!",
        ),
        (
            "a *.x !*.z",
            "crt-list: Unsupported exclusion (!) on a wildcard filter \"!*.z\"",
        ),
    ] {
        assert_eq!(
            certificate_list("l", &format!("{text}\n"), &bases)
                .unwrap()
                .warnings,
            [message]
        );
    }
}

#[test]
fn a_crt_list_that_was_cut_is_refused() {
    let read = |text| certificate_list("l", text, &FileBases::default());
    for (text, location) in [
        ("a.pem", (1, 6)),
        ("a.pem\nb", (2, 2)),
        ("a.pem\n ", (2, 2)),
    ] {
        let (line, position) = location;
        let message = format!(
            "parsing [l:{line}]: Missing LF on last line, file might have been truncated at \
             position {position}."
        );
        assert_eq!(read(text), Err(message), "{text}");
    }
    assert_eq!(read("a.pem\n# b").unwrap().lines.len(), 1);
}

/// The lines are in the model: a reload sees what changed in the file.
#[test]
fn a_crt_list_that_changed_is_another_bind() {
    let text = "frontend f\n mode tcp\n bind :443 ssl crt-list /l\n";
    let read = |machine| {
        let loaded = read(text, &Files(machine));
        assert!(!is_refused(&loaded), "{:#?}", loaded.diagnostics);
        loaded.config
    };
    let before = read(&[("/a", ""), ("/l", "/a x\n")]);
    let moved = read(&[("/a", ""), ("/l", "\n/a x\n")]);
    let after = read(&[("/a", ""), ("/l", "/a y\n")]);
    assert!(ballast_model::change::diff(&before, &moved).is_empty());
    assert_eq!(ballast_model::change::diff(&before, &after).len(), 1);
}

#[test]
fn certificates_of_a_frontend_are_for_all_its_binds() {
    let loaded = good(
        "frontend f\n bind :443 ssl\n bind :80\n bind :444 ssl crt /a\n ssl-f-use crt /b alpn x sigalgs s\n ssl-f-use crt /c key /k\n",
    );
    let binds = &loaded.config.frontends[0].binds;
    let CertificateSource::List(list) = &binds[0].tls.as_ref().unwrap().certificates[0] else {
        panic!("a list");
    };
    assert_eq!((list.path.as_str(), list.lines.len()), ("@f", 2));
    assert_eq!(
        list.lines[0].options.signature_algorithms.as_deref(),
        Some("s")
    );
    assert_eq!(list.lines[1].parts.key, Some(file("/k")));
    assert!(binds[1].tls.is_none());
    assert_eq!(binds[2].tls.as_ref().unwrap().certificates.len(), 2);
    for (words, message) in [
        (
            "",
            "Trying to load a certificate but no 'crt' keyword specified.",
        ),
        ("/a", "unknown crt keyword '/a'"),
        ("crt /a strict-sni x", "unknown crt keyword 'strict-sni'"),
        (
            "crt /a alpn",
            "'alpn' : missing the comma-delimited ALPN protocol suite",
        ),
    ] {
        let said = alerts(&format!(
            "frontend f\n bind :443 ssl crt /a\n ssl-f-use {words}\n"
        ));
        assert_eq!(said, [message], "{words}");
    }
}

#[test]
fn stores_name_certificates() {
    let loaded = good(
        "global\n crt-base /crt\n key-base /key\n\
         crt-store\n load crt a.pem\n load crt b.pem alias b key b.key\n\
         crt-store web\n crt-base /web\n load crt c.pem ocsp o issuer i sctl s ocsp-update on\n\
         crt-store web\n load crt d.pem alias d domains x,y\n\
         frontend f\n bind :443 ssl crt a.pem crt @/b crt @web/c.pem crt @web/d\n",
    );
    let stores = &loaded.config.global.tls.certificate_stores;
    let loads: Vec<_> = stores
        .iter()
        .flat_map(|store| &store.loads)
        .map(|load| (load.name.as_str(), load.certificate.path.as_str()))
        .collect();
    let expected = [
        ("/crt/a.pem", "/crt/a.pem"),
        ("@/b", "/crt/b.pem"),
        ("@web/c.pem", "/web/c.pem"),
        ("@web/d", "/crt/d.pem"),
    ];
    assert_eq!(loads, expected);
    assert_eq!(stores[0].loads[1].parts.key, Some(file("/key/b.key")));
    let parts = &stores[1].loads[0].parts;
    let files = [&parts.ocsp, &parts.issuer, &parts.sctl];
    assert_eq!(
        files.map(|one| one.as_ref().unwrap().path.as_str()),
        ["o", "i", "s"]
    );
    assert_eq!(parts.ocsp_update, Some(true));
    assert_eq!(stores[1].loads[1].domains, ["x", "y"]);
    let named = &loaded.config.frontends[0].binds[0]
        .tls
        .as_ref()
        .unwrap()
        .certificates;
    let expected = ["/crt/a.pem", "@/b", "@web/c.pem", "@web/d"].map(crt);
    assert_eq!(*named, expected);
    for (lines, message) in [
        (
            "load",
            "'load' in section 'crt-store': mandatory 'crt' parameter not found.",
        ),
        (
            "load crt a foo b",
            "'load foo' in section 'crt-store': unknown keyword 'foo'.",
        ),
        (
            "load crt a\n load crt a",
            "'load' in section 'crt-store': store 'a' was already defined.",
        ),
        (
            "load crt a alias x\n load crt b alias x",
            "'load' in section 'crt-store': store '@/x' was already defined.",
        ),
        (
            "load crt a ocsp-update maybe",
            "cannot parse 'ocsp-update' value 'maybe', 'on' or 'off' is expected.",
        ),
        (
            "load crt a\n crt-base /x",
            "'crt-base' can't be used after a load line, use it at the beginning of the section.",
        ),
        ("crt-base", "'crt-base' requires a <path> argument."),
    ] {
        assert_eq!(
            alerts(&format!("crt-store\n {lines}\n")),
            [message],
            "{lines}"
        );
    }
}
