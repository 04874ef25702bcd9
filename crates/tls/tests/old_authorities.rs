// tidy: table, because it lists what authorities of companies were seen to issue.
//! What internal authorities have issued for years, and a browser would refuse: SHA-1, MD5, short keys,
//! odd serial numbers, old and critical extensions, revocation lists of all kinds. It is judged as
//! HAProxy judges it. What cannot be checked here is said when it is loaded, where that is known.
//!
//! `openssl` makes the certificates. Skipped with a message when it or haproxy is not installed.

#![allow(clippy::panic, clippy::unwrap_used, reason = "tests")]

mod judged;

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use judged::{Case, judge_all};

/// What an authority says of itself, where a row does not say it.
const AUTHORITY: &str = "basicConstraints=critical,CA:TRUE keyUsage=critical,keyCertSign,cRLSign";

/// How Ballast's judgement relates to HAProxy's.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Expected {
    Same,
    /// A signature cannot be checked, and a warning says so.
    Said,
    /// A signature of a client's certificate cannot be checked: nobody knows before it is shown.
    Refused,
}

/// One authority, with a certificate that it has issued and one that it has revoked.
struct Row {
    name: &'static str,
    /// The file of its key: `rsa`, `p256` ...
    key: &'static str,
    /// How it signs itself.
    root: &'static str,
    /// Its extensions.
    authority: &'static str,
    /// How it signs its clients' certificates.
    sign: &'static str,
    /// Their extension.
    leaf: &'static str,
    serials: [&'static str; 2],
    /// How it signs its revocation list; `None` without one.
    list: Option<&'static str>,
    /// How it signed the list that stands before that one in the file, and revokes nobody.
    former_list: Option<&'static str>,
    /// The list's extension.
    extension: &'static str,
    /// How it revokes.
    revoke: &'static str,
    expected: Expected,
}

const ROW: Row = Row {
    name: "plain",
    key: "rsa",
    root: "-sha256",
    authority: AUTHORITY,
    sign: "-sha256",
    leaf: "keyUsage=digitalSignature",
    serials: ["10", "11"],
    list: None,
    former_list: None,
    extension: "",
    revoke: "",
    expected: Same,
};

/// Lists that the RSA key signs.
const fn list(name: &'static str, list: &'static str, expected: Expected) -> Row {
    Row {
        name,
        list: Some(list),
        expected,
        ..ROW
    }
}

const fn list_with(name: &'static str, extension: &'static str) -> Row {
    Row {
        name,
        list: Some("-md sha1"),
        extension,
        ..ROW
    }
}

const fn revoked(name: &'static str, revoke: &'static str) -> Row {
    Row {
        name,
        list: Some("-md sha1"),
        revoke,
        ..ROW
    }
}

/// Everything signed by another key.
const fn keyed(name: &'static str, key: &'static str, md: &'static str, expected: Expected) -> Row {
    Row {
        name,
        key,
        list: Some(md),
        expected,
        ..ROW
    }
}

const fn signed(
    name: &'static str,
    key: &'static str,
    sign: &'static str,
    expected: Expected,
) -> Row {
    Row {
        name,
        key,
        sign,
        expected,
        ..ROW
    }
}

const fn leaf(name: &'static str, leaf: &'static str) -> Row {
    Row { name, leaf, ..ROW }
}

const fn serials(name: &'static str, serials: [&'static str; 2]) -> Row {
    Row {
        name,
        serials,
        list: Some("-md sha1"),
        ..ROW
    }
}

const fn authority(name: &'static str, authority: &'static str, leaf: &'static str) -> Row {
    Row {
        name,
        authority,
        leaf,
        ..ROW
    }
}

use Expected::{Refused, Said, Same};

const PSS: &str = "-md sha256 -sigopt rsa_padding_mode:pss -sigopt rsa_pss_saltlen:-1";
const PSS_LONG: &str = "-md sha256 -sigopt rsa_padding_mode:pss -sigopt rsa_pss_saltlen:-2";
const PSS_SHA1: &str = "-md sha1 -sigopt rsa_padding_mode:pss -sigopt rsa_pss_saltlen:-1";
const LEAF_PSS: &str = "-sha256 -sigopt rsa_padding_mode:pss -sigopt rsa_pss_saltlen:-1";
const LEAF_PSS_LONG: &str = "-sha256 -sigopt rsa_padding_mode:pss -sigopt rsa_pss_saltlen:-2";
const LEAF_USAGE: &str = ROW.leaf;
const PLACE: &str = "crlDistributionPoints=URI:http://lists.test/";

const ROWS: &[Row] = &[
    ROW,
    list("list sha256", "-md sha256", Same),
    list("list sha1", "-md sha1", Same),
    list("list sha384", "-md sha384", Same),
    list("list sha512", "-md sha512", Same),
    list("list md5", "-md md5", Said),
    list("list sha224", "-md sha224", Said),
    list("list pss", PSS, Same),
    list("list pss with a long salt", PSS_LONG, Said),
    list("list pss sha1", PSS_SHA1, Said),
    list(
        "list expired",
        "-md sha1 -crl_lastupdate 20200101000000Z -crl_nextupdate 20200201000000Z",
        Same,
    ),
    list(
        "list of the future",
        "-md sha1 -crl_lastupdate 20900101000000Z -crl_nextupdate 20910101000000Z",
        Same,
    ),
    list(
        "list beyond 2050",
        "-md sha1 -crl_lastupdate 20200101000000Z -crl_nextupdate 20600201000000Z",
        Same,
    ),
    list_with(
        "list that names its key",
        "authorityKeyIdentifier=keyid:always",
    ),
    list_with(
        "list that names its issuer",
        "authorityKeyIdentifier=keyid:always,issuer:always",
    ),
    list_with("list with something unknown", "1.2.3.4=ASN1:NULL"),
    list_with(
        "list with something unknown and critical",
        "1.2.3.4=critical,ASN1:NULL",
    ),
    list_with(
        "list of a place",
        "issuingDistributionPoint=critical,@place",
    ),
    list_with("list of users", "issuingDistributionPoint=critical,@users"),
    list_with(
        "list of authorities",
        "issuingDistributionPoint=critical,@authorities",
    ),
    list_with(
        "list of attributes",
        "issuingDistributionPoint=critical,@attributes",
    ),
    list_with(
        "list of others",
        "issuingDistributionPoint=critical,@indirect",
    ),
    list_with(
        "list of some reasons",
        "issuingDistributionPoint=critical,@reasons",
    ),
    list_with("list of changes", "2.5.29.27=critical,ASN1:INTEGER:1"),
    Row {
        leaf: PLACE,
        ..list_with(
            "list of the place that is named",
            "issuingDistributionPoint=critical,@place",
        )
    },
    Row {
        leaf: PLACE,
        ..list_with(
            "list without a place",
            "issuingDistributionPoint=critical,@users",
        )
    },
    Row {
        leaf: "crlDistributionPoints=URI:http://other.test/",
        ..list_with(
            "list of another place",
            "issuingDistributionPoint=critical,@place",
        )
    },
    Row {
        former_list: Some("-crl_lastupdate 20200101000000Z -crl_nextupdate 20600101000000Z"),
        ..revoked("former list before the list", "")
    },
    revoked("revoked for a reason", "-crl_reason keyCompromise"),
    revoked("held back", "-crl_hold holdInstructionReject"),
    revoked("taken off the list", "-crl_reason removeFromCRL"),
    revoked("revoked since", "-crl_compromise 20200101000000Z"),
    keyed("p256, list sha1", "p256", "-md sha1", Same),
    keyed("p256, list sha224", "p256", "-md sha224", Said),
    keyed("p384, list sha1", "p384", "-md sha1", Said),
    keyed("p521, list sha1", "p521", "-md sha1", Same),
    keyed("p521", "p521", "-md sha512", Same),
    keyed("secp256k1", "k256", "-md sha256", Same),
    keyed("p224", "p224", "-md sha256", Said),
    keyed("brainpool", "brainpool", "-md sha256", Said),
    Row {
        root: "",
        sign: "",
        list: Some(""),
        ..signed("ed25519", "ed25519", "", Same)
    },
    Row {
        root: "",
        sign: "",
        list: Some(""),
        ..signed("ed448", "ed448", "", Said)
    },
    keyed("rsa of 1024 bits", "rsa1024", "-md sha256", Same),
    keyed("rsa of 1024 bits, list sha1", "rsa1024", "-md sha1", Same),
    keyed(
        "rsa of 1024 bits, list sha384",
        "rsa1024",
        "-md sha384",
        Said,
    ),
    keyed("rsa of 768 bits", "rsa768", "-md sha256", Said),
    keyed("rsa of 2047 bits", "rsa2047", "-md sha256", Same),
    keyed("key for pss only", "pss", "-md sha256", Said),
    Row {
        root: "-sha1",
        ..signed("root sha1", "rsa", "-sha256", Same)
    },
    Row {
        root: "-md5",
        ..signed("root md5", "rsa", "-sha256", Same)
    },
    Row {
        list: Some("-md sha1"),
        ..signed("certificate sha1", "rsa", "-sha1", Same)
    },
    signed("certificate sha1 by p256", "p256", "-sha1", Same),
    signed("certificate sha1 by p384", "p384", "-sha1", Refused),
    signed("certificate md5", "rsa", "-md5", Refused),
    signed("certificate sha224", "rsa", "-sha224", Refused),
    signed("certificate pss", "rsa", LEAF_PSS, Same),
    signed(
        "certificate pss with a long salt",
        "rsa",
        LEAF_PSS_LONG,
        Refused,
    ),
    Row {
        list: Some("-md sha1"),
        ..leaf("version 1", "")
    },
    leaf("unknown", "1.2.3.4=ASN1:NULL"),
    leaf("unknown and critical", "1.2.3.4=critical,ASN1:NULL"),
    leaf(
        "critical access",
        "authorityInfoAccess=critical,OCSP;URI:http://x/",
    ),
    leaf(
        "critical extended usage",
        "extendedKeyUsage=critical,clientAuth",
    ),
    leaf("critical names", "subjectAltName=critical,DNS:a"),
    leaf("critical policies", "certificatePolicies=critical,1.2.3.4"),
    leaf(
        "critical place of a list",
        "crlDistributionPoints=critical,URI:http://x/",
    ),
    leaf("critical key id", "subjectKeyIdentifier=critical,hash"),
    leaf(
        "critical key id of the authority",
        "authorityKeyIdentifier=critical,keyid",
    ),
    leaf("critical issuer names", "issuerAltName=critical,DNS:a"),
    leaf("critical stapling", "tlsfeature=critical,status_request"),
    leaf("critical no check", "noCheck=critical,ignored"),
    leaf("netscape client", "nsCertType=critical,client"),
    leaf("netscape server", "nsCertType=server"),
    leaf("netscape authority", "nsCertType=sslCA"),
    leaf(
        "proxy certificate",
        "proxyCertInfo=critical,language:id-ppl-anyLanguage",
    ),
    leaf("smart card only", "extendedKeyUsage=1.3.6.1.4.1.311.20.2.2"),
    leaf(
        "anything and clients",
        "extendedKeyUsage=anyExtendedKeyUsage,clientAuth",
    ),
    leaf("key agreement", "keyUsage=keyAgreement"),
    leaf(
        "odd names",
        "subjectAltName=email:x@y,IP:192.0.2.1,URI:http://x,otherName:1.2.3;UTF8:x",
    ),
    serials("negative serials", ["-5", "-6"]),
    serials("long negative serials", ["-0xff00", "-0xff01"]),
    serials("serials 0 and 1", ["0", "1"]),
    serials("serials with a high bit", ["0x80", "0xff80"]),
    serials(
        "serials of 40 bytes",
        [
            "0x7fabababababababababababababababababababababababababababababababababababababab",
            "0xffabababababababababababababababababababababababababababababababababababababab",
        ],
    ),
    authority("no constraints", "", LEAF_USAGE),
    Row {
        list: Some("-md sha1"),
        ..authority(
            "no constraints, usage",
            "keyUsage=keyCertSign,cRLSign",
            LEAF_USAGE,
        )
    },
    Row {
        list: Some("-md sha1"),
        ..authority(
            "no usage for lists",
            "basicConstraints=CA:TRUE keyUsage=keyCertSign",
            LEAF_USAGE,
        )
    },
    Row {
        list: Some("-md sha1"),
        ..authority("no usage", "basicConstraints=CA:TRUE", LEAF_USAGE)
    },
    authority(
        "no authority",
        "basicConstraints=critical,CA:FALSE",
        LEAF_USAGE,
    ),
    authority("netscape authority only", "nsCertType=sslCA", LEAF_USAGE),
    authority(
        "path of none",
        "basicConstraints=critical,CA:TRUE,pathlen:0 keyUsage=keyCertSign",
        LEAF_USAGE,
    ),
    authority(
        "authority with something critical",
        "basicConstraints=critical,CA:TRUE 1.2.3.4=critical,ASN1:NULL",
        LEAF_USAGE,
    ),
    authority(
        "addresses in",
        "basicConstraints=critical,CA:TRUE nameConstraints=critical,permitted;IP:192.0.2.0/255.255.255.0",
        "subjectAltName=IP:192.0.2.7",
    ),
    authority(
        "addresses out",
        "basicConstraints=critical,CA:TRUE nameConstraints=critical,permitted;IP:192.0.2.0/255.255.255.0",
        "subjectAltName=IP:198.51.100.7",
    ),
    authority(
        "uri in",
        "basicConstraints=critical,CA:TRUE nameConstraints=critical,permitted;URI:.example.com",
        "subjectAltName=URI:http://a.example.com/",
    ),
    authority(
        "uri out",
        "basicConstraints=critical,CA:TRUE nameConstraints=critical,permitted;URI:.example.com",
        "subjectAltName=URI:http://example.com/",
    ),
    authority(
        "uri with a port",
        "basicConstraints=critical,CA:TRUE nameConstraints=critical,permitted;URI:a.example.com",
        "subjectAltName=URI:http://a.example.com:81/x",
    ),
    authority(
        "uri without a host",
        "basicConstraints=critical,CA:TRUE nameConstraints=critical,permitted;URI:a.example.com",
        "subjectAltName=URI:urn:x",
    ),
    authority(
        "uri unused",
        "basicConstraints=critical,CA:TRUE nameConstraints=critical,permitted;URI:.example.com",
        "subjectAltName=DNS:x",
    ),
    authority(
        "policies",
        "basicConstraints=critical,CA:TRUE policyConstraints=critical,requireExplicitPolicy:0",
        LEAF_USAGE,
    ),
    authority(
        "any policy",
        "basicConstraints=critical,CA:TRUE inhibitAnyPolicy=critical,0",
        LEAF_USAGE,
    ),
    authority(
        "authority for clients",
        "basicConstraints=critical,CA:TRUE extendedKeyUsage=clientAuth",
        LEAF_USAGE,
    ),
];

/// The keys of authorities, each made once; `leaf` is that of all clients.
const KEYS: [(&str, &str); 14] = [
    ("leaf", "ec -pkeyopt ec_paramgen_curve:prime256v1"),
    ("rsa", "rsa -pkeyopt rsa_keygen_bits:2048"),
    ("rsa768", "rsa -pkeyopt rsa_keygen_bits:768"),
    ("rsa1024", "rsa -pkeyopt rsa_keygen_bits:1024"),
    ("rsa2047", "rsa -pkeyopt rsa_keygen_bits:2047"),
    ("pss", "rsa-pss -pkeyopt rsa_keygen_bits:2048"),
    ("p256", "ec -pkeyopt ec_paramgen_curve:prime256v1"),
    ("p384", "ec -pkeyopt ec_paramgen_curve:secp384r1"),
    ("p521", "ec -pkeyopt ec_paramgen_curve:secp521r1"),
    ("p224", "ec -pkeyopt ec_paramgen_curve:secp224r1"),
    ("k256", "ec -pkeyopt ec_paramgen_curve:secp256k1"),
    ("brainpool", "ec -pkeyopt ec_paramgen_curve:brainpoolP256r1"),
    ("ed25519", "ed25519"),
    ("ed448", "ed448"),
];

/// Sections of openssl's configuration.
const SECTIONS: &str = "[req]\ndistinguished_name = dn\n[dn]\n[ca]\ndefault_ca = c\n[place]\n\
    fullname = URI:http://lists.test/\n[users]\nonlyuser = TRUE\n[authorities]\nonlyCA = TRUE\n\
    [attributes]\nonlyAA = TRUE\n[indirect]\nindirectCRL = TRUE\n[reasons]\n\
    onlysomereasons = keyCompromise\n";

fn openssl(at: &Path, line: &str) {
    let output = Command::new("openssl")
        .args(line.split_whitespace())
        .current_dir(at)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "openssl {line}: {said}");
}

/// The two clients of a row.
fn make(keys: &Path, row: &Row) -> [Case; 2] {
    let directory = tempfile::tempdir_in(keys).unwrap();
    let at = directory.path();
    let write = |name: &str, text: &str| std::fs::write(at.join(name), text).unwrap();
    let read = |name: &str| std::fs::read_to_string(at.join(name)).unwrap();
    let mut text =
        format!("{SECTIONS}[c]\ndatabase = index\ncrlnumber = number\ndefault_md = sha256\n");
    if !row.extension.is_empty() {
        text.push_str(&format!("crl_extensions = e\n[e]\n{}\n", row.extension));
    }
    write("cnf", &text);
    write("index", "");
    write("number", "01\n");
    write("extension", row.leaf);
    let key = format!("../{}.key", row.key);
    let own: String = row
        .authority
        .split(' ')
        .filter(|own| !own.is_empty())
        .fold(String::new(), |own, extension| {
            own + " -addext " + extension
        });
    let root = row.root;
    openssl(
        at,
        &format!("req -x509 -config cnf -key {key} -out root -subj /CN=root -days 5 {root}{own}"),
    );
    let cases = ["good", "revoked"].map(|name| {
        let serial = row.serials[usize::from(name == "revoked")];
        let extension = if row.leaf.is_empty() { "" } else { "-extfile extension" };
        openssl(at, &format!("req -new -config cnf -key ../leaf.key -out csr -subj /CN={name}"));
        openssl(at, &format!("x509 -req -in csr -CA root -CAkey {key} -set_serial={serial} -days 5 -out {name} {} {extension}", row.sign));
        Case {
            name: format!("{}: {name}", row.name),
            shown: read(name) + &read("../leaf.key"),
            authorities: read("root"),
            revocation: None,
        }
    });
    let Some(list) = row.list else {
        return cases;
    };
    let days = if list.contains("-crl_nextupdate") {
        ""
    } else {
        "-crldays 5"
    };
    write("former", "");
    if let Some(former) = row.former_list {
        openssl(
            at,
            &format!("ca -config cnf -keyfile {key} -cert root -gencrl -out former {former}"),
        );
    }
    openssl(
        at,
        &format!(
            "ca -config cnf -keyfile {key} -cert root -revoke revoked {}",
            row.revoke
        ),
    );
    openssl(
        at,
        &format!("ca -config cnf -keyfile {key} -cert root -gencrl -out list {list} {days}"),
    );
    cases.map(|case| Case {
        revocation: Some(read("former") + &read("list")),
        ..case
    })
}

#[test]
fn old_authorities_are_judged_as_haproxy_judges_them() {
    if Command::new("openssl").arg("version").output().is_err() {
        eprintln!("SKIPPED: openssl is not installed");
        return;
    }
    let keys = tempfile::tempdir().unwrap();
    for (name, words) in KEYS {
        openssl(
            keys.path(),
            &format!("genpkey -algorithm {words} -out {name}.key"),
        );
    }
    let cases: Vec<Case> = ROWS.iter().flat_map(|row| make(keys.path(), row)).collect();
    let Some(judged) = judge_all(&cases) else {
        return;
    };
    let mut wrong = String::new();
    for (index, (case, judged)) in cases.iter().zip(judged).enumerate() {
        let row = &ROWS[index / 2];
        let is_same = judged.ours == judged.theirs;
        let found = match (is_same, judged.remarks.is_empty()) {
            (true, true) => Same,
            (_, false) => Said,
            (false, true) => Refused,
        };
        // A row is there for its good client: the revoked one is refused in any case.
        let is_good = index % 2 == 0;
        if found != row.expected && (is_good || found != Same) {
            writeln!(wrong, "{}: {found:?}, {judged:?}", case.name).unwrap();
        }
    }
    assert!(wrong.is_empty(), "not as expected:\n{wrong}");
}
