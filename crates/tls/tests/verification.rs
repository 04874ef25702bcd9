//! Client certificates are judged as OpenSSL judges them under HAProxy. Skipped with a message when
//! haproxy is not installed.

#![allow(clippy::panic, clippy::unwrap_used, reason = "tests")]

mod judged;

use std::fmt::Write as _;
use std::process::Command;

use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, CertifiedIssuer,
    ExtendedKeyUsagePurpose, GeneralSubtree, IsCa, Issuer, KeyIdMethod, KeyPair, KeyUsagePurpose,
    NameConstraints, RevokedCertParams, SerialNumber, date_time_ymd,
};

use judged::{Case, judge_all, key, params};

type Authority = CertifiedIssuer<'static, KeyPair>;

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
        name: name.to_owned(),
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
    let alone = |name: &str, params: CertificateParams, is_trusted: bool| {
        let key = key();
        let certificate = params.self_signed(&key).unwrap().pem();
        Case {
            name: name.to_owned(),
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
        name: "version 1".to_owned(),
        shown: read("leaf") + &read("leaf.key"),
        authorities: read("root"),
        revocation: None,
    }]
}

#[test]
fn client_certificates_are_judged_as_haproxy_judges_them() {
    let cases = cases();
    let Some(judged) = judge_all(&cases) else {
        return;
    };
    let mut different = String::new();
    for (case, judged) in cases.iter().zip(judged) {
        if judged.ours != judged.theirs {
            let (name, ours, theirs) = (&case.name, judged.ours, judged.theirs);
            writeln!(different, "{name}: ours {ours}; theirs {theirs}").unwrap();
        }
    }
    assert!(
        different.is_empty(),
        "verify, err, ca_err, ca_err_depth, let in:\n{different}"
    );
}
