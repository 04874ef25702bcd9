use std::process::Command;

use super::*;

fn names(list: &str) -> Vec<&'static str> {
    let found = translate_ciphers(list)
        .map(|translation| translation.found)
        .unwrap_or_default();
    found
        .iter()
        .filter_map(|suite| openssl_name(suite.suite()))
        .collect()
}

/// What `openssl ciphers` makes of a list, of it what exists here.
fn openssl(list: &str) -> Option<Vec<String>> {
    let output = Command::new("openssl")
        .args(["ciphers", "-tls1_2", list])
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let ours = |name: &&str| TLS12_SUITES.iter().any(|(known, _, _)| known == name);
    Some(
        text.trim()
            .split(':')
            .filter(ours)
            .map(str::to_owned)
            .collect(),
    )
}

#[test]
fn lists_mean_what_openssl_makes_of_them() {
    let mut lists: Vec<String> = [
        "DEFAULT",
        "HIGH:!aNULL:!MD5",
        "ECDHE+AESGCM:ECDHE+CHACHA20:!aNULL:@STRENGTH",
        "AES128:AES256",
        "AES128+ECDHE:CHACHA20:@STRENGTH",
        "ALL:+AES256",
        "ALL:-AES256:AES",
        "ALL:-CHACHA20:@STRENGTH:CHACHA20",
        "!AES256:ALL",
        "FOO:ECDHE+FOO:CHACHA20",
        "AESGCM+ECDHE+aRSA,ECDHE-ECDSA-AES128-GCM-SHA256 ALL",
        "ecdhe-rsa-aes128-gcm-sha256",
        "kRSA",
        "DEFAULT@SECLEVEL=0",
        "DEFAULT@SECLEVEL=1:!AESGCM",
        "DEFAULT!CHACHA20",
        "ALL@SECLEVEL=0:!AES256",
        "@SECLEVEL=0:AES128!aRSA",
        "CHACHA20:DEFAULT@STRENGTH",
        "ALL!AES@SECLEVEL=0",
    ]
    .map(str::to_owned)
    .into();
    // Every pair of operations after a start: order and repeated words are what is easy to get wrong.
    for start in ["ALL", "AES128", "CHACHA20:ECDHE-RSA-AES256-GCM-SHA384"] {
        for first in ["-AES", "+aRSA", "AES256", "!ECDSA", "-CHACHA20:AESGCM"] {
            for second in ["ALL", "+AES128", "-aRSA:ECDHE", "@STRENGTH", "CHACHA20"] {
                lists.push(format!("{start}:{first}:{second}"));
            }
        }
    }
    if openssl("ALL").is_none() {
        eprintln!("SKIPPED: there is no `openssl` to compare with");
        return;
    }
    for list in lists {
        assert_eq!(
            Some(names(&list)),
            openssl(&list).map(|all| {
                all.iter()
                    .map(|name| {
                        TLS12_SUITES
                            .iter()
                            .find(|(known, _, _)| known == name)
                            .expect("ours")
                            .0
                    })
                    .collect()
            }),
            "{list}"
        );
    }
}

#[test]
fn what_does_not_exist_here_is_reported() {
    let mozilla =
        "ECDHE-RSA-AES128-GCM-SHA256:DHE-RSA-AES128-GCM-SHA256:AES256-SHA:!kRSA:@SECLEVEL=3";
    let translation = translate_ciphers(mozilla).expect("one exists");
    assert_eq!(translation.found.len(), 1);
    let missing = ["DHE-RSA-AES128-GCM-SHA256", "AES256-SHA", "@SECLEVEL=3"];
    assert_eq!(translation.missing, missing);
    let error = translate_ciphers("AES128-SHA:DES-CBC3-SHA")
        .map(|_| ())
        .expect_err("nothing exists");
    assert!(
        error
            .to_string()
            .starts_with("nothing of 'AES128-SHA:DES-CBC3-SHA' exists here")
    );
    assert_eq!(
        names("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"),
        ["ECDHE-RSA-AES128-GCM-SHA256"]
    );
}

#[test]
fn suites_of_tls13_keep_their_order() {
    let list = "TLS_AES_128_GCM_SHA256:TLS_AES_128_CCM_SHA256:TLS_AES_256_GCM_SHA384";
    let translation = translate_ciphersuites(list).expect("two exist");
    let names: Vec<_> = translation
        .found
        .iter()
        .filter_map(|suite| openssl_name(suite.suite()))
        .collect();
    assert_eq!(names, ["TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384"]);
    assert_eq!(translation.missing, ["TLS_AES_128_CCM_SHA256"]);
    assert!(translate_ciphersuites("ECDHE-RSA-AES128-GCM-SHA256").is_err());
}

#[test]
fn groups_and_signatures_have_openssls_names() {
    let groups = |list: &str| {
        translate_groups(list).map(|translation| {
            let names: Vec<_> = translation
                .found
                .iter()
                .map(|group| format!("{:?}", group.name()))
                .collect();
            (names.join(" "), translation.missing.join(" "))
        })
    };
    let ok = |found: &str, missing: &str| Ok((found.to_owned(), missing.to_owned()));
    assert_eq!(
        groups("x25519:prime256v1:P-521"),
        ok("X25519 secp256r1", "P-521")
    );
    assert_eq!(groups("?FOO:*X25519/P-384:-X25519"), ok("secp384r1", ""));
    assert_eq!(
        groups("DEFAULT:X25519"),
        ok("X25519MLKEM768 X25519 secp256r1 secp384r1", "")
    );
    let unknown = |word: &str| CipherError::UnknownWord {
        word: word.to_owned(),
    };
    assert_eq!(groups("FOO:X25519"), Err(unknown("FOO")));
    assert_eq!(
        groups("P-521"),
        Err(CipherError::Empty {
            list: "P-521".to_owned()
        })
    );

    let list = "ECDSA+SHA256:rsa_pss_rsae_sha256:PSS+SHA256:rsa+sha384:RSA+SHA1";
    let signatures = translate_signatures(list).expect("three exist");
    let expected = [
        SignatureScheme::ECDSA_NISTP256_SHA256,
        SignatureScheme::RSA_PSS_SHA256,
        SignatureScheme::RSA_PKCS1_SHA384,
    ];
    assert_eq!(signatures.found, expected);
    assert_eq!(signatures.missing, ["RSA+SHA1"]);
    assert!(translate_signatures("FOO:ECDSA+SHA256").is_err());
}
