//! Types: which converter, matching method and key takes which sample, as HAProxy 3.2 has it; and what
//! the message says where one does not.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::process::Command;

use ballast_tests::{Program, Verdict};

/// A sample of each type.
const SAMPLES: &[&str] = &[
    "ssl_fc",
    "int(1)",
    "src",
    "ipv4(192.0.2.1)",
    "ipv6(2001:db8::1)",
    "path",
    "bin(00)",
    "method",
    "var(txn.x)",
];

/// A matching method, and a pattern for it.
const METHODS: &[(&str, &str)] = &[
    ("beg", "a"),
    ("bin", "00"),
    ("bool", ""),
    ("dir", "a"),
    ("dom", "a"),
    ("end", "a"),
    ("found", ""),
    ("int", "1"),
    ("ip", "192.0.2.1"),
    ("len", "1"),
    ("reg", "a"),
    ("str", "a"),
    ("sub", "a"),
];

/// Types of keys, and the table that has each.
const KEYS: &[&str] = &["ip", "ipv6", "integer", "string", "binary"];

/// Arguments that a converter wants in place of those of its types.
const ARGUMENTS: &[(&str, &str)] = &[
    ("add_item", "(-,,x)"),
    (
        "aes_gcm_dec",
        "(128,YWJjZGVmZ2hpamts,Zm9vb2Zvb29mb29wZm9vbw==,txn.t)",
    ),
    (
        "aes_gcm_enc",
        "(128,YWJjZGVmZ2hpamts,Zm9vb2Zvb29mb29wZm9vbw==,txn.t)",
    ),
    ("bytes", "(1)"),
    ("be2dec", "(:,2)"),
    ("be2hex", "(:,2)"),
    ("le2dec", "(:,2)"),
    ("capture-req", "(0)"),
    ("capture-res", "(0)"),
    ("concat", "(a)"),
    ("digest", "(sha256)"),
    ("field", "(1,a)"),
    ("fix_tag_value", "(35)"),
    ("hmac", "(sha256,Zm9v)"),
    ("ipmask", "(24)"),
    ("json", "(ascii)"),
    ("json_query", "('$.a')"),
    // Without arguments HAProxy 3.2 reads those of another line, and dies of it at times.
    ("http_date", "(0)"),
    ("sha2", "(256)"),
    ("jwt_header_query", "('$.a')"),
    ("jwt_payload_query", "('$.a')"),
    ("jwt_verify", "(HS256,a)"),
    ("language", "(a)"),
    ("mqtt_field_value", "(connect,flags)"),
    ("protobuf", "(1)"),
    ("regsub", "(a,b)"),
    ("rfc7239_field", "(host)"),
    ("secure_memcmp", "(txn.a)"),
    ("set-var", "(txn.a)"),
    ("strcmp", "(txn.a)"),
    ("ungrpc", "(1)"),
    ("unset-var", "(txn.a)"),
    ("url_enc", "(query)"),
    ("when", "(normal)"),
    ("word", "(1,a)"),
];

/// The types that came and were wanted where they do not fit, and a converter that helps if it is put
/// in place of `^`; empty where none does.
const MISFITS: &[(&str, &str, &str, &str)] = &[
    ("acl a src^,add(1) 1", "addr", "sint", ",be2dec(,4)"),
    ("acl a bin(00)^,add(1) 1", "bin", "sint", ",concat()"),
    ("acl a req.body^,mul(2) 1", "bin", "sint", ",be2dec(,8)"),
    ("acl a ssl_fc^,ipmask(24) 192.0.2.1", "bool", "addr", ""),
    (
        "acl a bin(00)^,ipmask(24) 192.0.2.1",
        "bin",
        "addr",
        ",concat()",
    ),
    ("acl a bin(00)^,iif(a,b) a", "bin", "bool", ",length,bool"),
    ("acl a method^,add(1) 1", "meth", "sint", ",length"),
    ("acl a method^,ipmask(24) 1", "meth", "addr", ""),
    ("acl a ipv6(::1)^,neg 1", "ipv6", "sint", ",be2dec(,4)"),
    ("acl a src^,even", "addr", "sint", ",xxh32"),
    ("acl a ssl_fc^ -m ip 192.0.2.1", "bool", "addr", ""),
    ("acl a bin(00)^ -m int 1", "bin", "sint", ",concat()"),
    ("acl a bin(00)^ -m ip 192.0.2.1", "bin", "addr", ",concat()"),
    ("acl a src^ -m int 1", "addr", "sint", ",be2dec(,4)"),
    ("acl a method^ -m int 1", "meth", "sint", ",length"),
    ("stick on ssl_fc^ table ip", "bool", "ipv4", ""),
    (
        "stick on req.body^ table integer",
        "bin",
        "sint",
        ",concat()",
    ),
    ("stick on src^ table integer", "addr", "sint", ",xxh32"),
    (
        "http-request track-sc0 bin(00)^ table ip",
        "bin",
        "ipv4",
        ",concat()",
    ),
    (
        "http-request track-sc0 method^ table integer",
        "meth",
        "sint",
        ",length",
    ),
];

/// Arguments of the wrong type: the line, the text that came, and the type that is wanted.
const WRONG_ARGUMENTS: &[(&str, &str, &str)] = &[
    ("acl a path,field(x,/) a", "x", "integer"),
    ("acl a int(x) 1", "x", "integer"),
    ("acl a rand(1.5) 1", "1.5", "integer"),
    ("acl a ipv4(1.2.3) 1.2.3.4", "1.2.3", "IPv4 address"),
    ("acl a ipv6(x) ::1", "x", "IPv6 address"),
    ("acl a src,ipmask(99) 1.2.3.4", "99", "IPv4 mask"),
    ("acl a path,crc32(x) 1", "x", "integer"),
    ("acl a int(1),add(x) 1", "x", "integer"),
    ("acl a path,hmac(sha256,%%) a", "%%", "base 64"),
    (
        "acl a req.body,protobuf(a) a",
        "a",
        "Protocol buffers field number",
    ),
];

const HEAD: &str = "\
global
    nbthread 1
defaults
    mode http
    timeout client 9s
    timeout server 9s
    timeout connect 9s
";

/// The sections around lines, which stand in one section (`p`), and the number of the first line.
fn configuration(lines: &[String]) -> (String, usize) {
    let mut text = HEAD.to_owned();
    for key in KEYS {
        let store = "store gpc0,gpc1,gpt0,conn_rate(9s)";
        writeln!(
            text,
            "backend {key}\n    stick-table type {key} size 10 {store}"
        )
        .expect("it is a string");
    }
    text.push_str(
        "listen p\n    bind 127.0.0.1:1\n    server s 127.0.0.1:1\n    declare capture request len \
         9\n    declare capture response len 9\n",
    );
    let first = text.lines().count() + 1;
    for line in lines {
        writeln!(text, "    {line}").expect("it is a string");
    }
    (text, first)
}

/// What a program says of each line, when those before it that it refuses are left out.
fn judge(program: &Program, lines: &[String]) -> BTreeMap<String, (Verdict, String)> {
    let mut judged = BTreeMap::new();
    let mut left = lines.to_vec();
    while !left.is_empty() {
        let (text, first) = configuration(&left);
        let verdicts = program.verdicts(&text);
        let mut kept = vec![true; left.len()];
        for (number, said) in verdicts.lines {
            let Some(line) = number.checked_sub(first).and_then(|at| left.get(at)) else {
                continue;
            };
            kept[number - first] = said.0 != Verdict::Refused;
            judged.insert(line.clone(), said);
        }
        if verdicts.is_accepted {
            break;
        }
        assert!(
            kept.contains(&false),
            "{} refuses the whole: {:?}",
            program.name(),
            verdicts.others
        );
        let mut kept = kept.into_iter();
        left.retain(|_| kept.next().unwrap_or_default());
    }
    judged
}

/// Has both programs judge all lines, and fails where they differ.
fn compare(lines: &[String]) {
    let (theirs, ours) = std::thread::scope(|scope| {
        let theirs = scope.spawn(|| judge(&Program::haproxy(), lines));
        let ours = judge(&Program::ballast(), lines);
        (theirs.join().expect("it judges"), ours)
    });
    let mut differing = Vec::new();
    for line in lines {
        let of = |judged: &BTreeMap<String, (Verdict, String)>| {
            let said = judged.get(line);
            said.cloned().unwrap_or((Verdict::Taken, String::new()))
        };
        let (they, we) = (of(&theirs), of(&ours));
        if they.0 != we.0 {
            differing.push(format!(
                "{line}: HAProxy {:?}, Ballast {:?}\n    {}\n    {}",
                they.0, we.0, they.1, we.1
            ));
        }
    }
    eprintln!("{} lines compared", lines.len());
    assert!(
        differing.is_empty(),
        "{} verdicts differ:\n{}",
        differing.len(),
        differing.join("\n")
    );
}

/// The converters of HAProxy, with arguments.
fn converters() -> Vec<String> {
    let directory = tempfile::TempDir::new().expect("a temporary directory");
    let path = directory.path().join("haproxy.cfg");
    std::fs::write(&path, "global\n").expect("a file of the test is written");
    let printed = Command::new(Program::haproxy().path())
        .args(["-dKcnv", "-q", "-c", "-f"])
        .arg(&path)
        .output()
        .expect("the oracle runs");
    let printed = String::from_utf8_lossy(&printed.stdout).into_owned();
    let rows = printed.lines().filter(|line| line.contains(" => "));
    let converters: Vec<String> = rows
        .map(|row| {
            let (word, rest) = row.split_at(row.find(['(', ':']).unwrap_or(row.len()));
            let special = ARGUMENTS.iter().find(|(known, _)| *known == word);
            let arguments = match special {
                Some((_, arguments)) => (*arguments).to_owned(),
                None => arguments_of(word, rest),
            };
            format!("{word}{arguments}")
        })
        .collect();
    assert!(converters.len() > 150, "{} converters", converters.len());
    converters
}

/// Arguments for `(type,type[,type]): ...`, those that must be given.
fn arguments_of(word: &str, rest: &str) -> String {
    let required = rest.strip_prefix('(').unwrap_or_default();
    let required = required.split(['[', ')']).next().unwrap_or_default();
    let values = required.split(',').filter(|kind| !kind.is_empty());
    let values: Vec<&str> = values
        .map(|kind| match kind {
            "integer" => "1",
            "table" => "string",
            _ if word.starts_with("map") => "/dev/null",
            _ => "1",
        })
        .collect();
    match values.is_empty() {
        true => String::new(),
        false => format!("({})", values.join(",")),
    }
}

#[test]
fn converters_take_the_samples_that_haproxy_lets_them_take() {
    let mut lines = Vec::new();
    for converter in converters() {
        for sample in SAMPLES {
            let number = lines.len();
            lines.push(format!("acl a{number} {sample},{converter} -m found"));
        }
    }
    compare(&lines);
}

#[test]
fn matching_methods_take_the_samples_that_haproxy_lets_them_take() {
    let mut lines = Vec::new();
    for sample in SAMPLES {
        for (method, pattern) in METHODS {
            let number = lines.len();
            lines.push(format!("acl a{number} {sample} -m {method} {pattern}"));
        }
        let number = lines.len();
        lines.push(format!("acl b{number} {sample} 1"));
        lines.push(format!("acl c{number} {sample} -i 1"));
        lines.push(format!("acl d{number} {sample} -- 1"));
    }
    compare(&lines);
}

/// An ACL without a pattern: the warning names no line there.
#[test]
fn what_compares_with_nothing_is_warned_of_as_by_haproxy() {
    for sample in SAMPLES {
        let (text, _) = configuration(&[format!("acl a {sample}")]);
        let [theirs, ours] = Program::both().map(|program| {
            let result = program.check(&text);
            (
                result.status.success(),
                result.stderr.contains("never match"),
            )
        });
        assert_eq!(theirs, ours, "acl a {sample}");
    }
}

/// Whether a table takes a key is checked for all sections together, and the message names the proxy.
#[test]
fn tables_take_the_keys_that_haproxy_lets_them_take() {
    let mut lines = Vec::new();
    for sample in SAMPLES {
        for key in KEYS {
            lines.push(format!("stick on {sample} table {key}"));
            lines.push(format!("stick store-request {sample} table {key}"));
            lines.push(format!("http-request track-sc0 {sample} table {key}"));
        }
    }
    let mut text = configuration(&[]).0;
    for (number, line) in lines.iter().enumerate() {
        writeln!(
            text,
            "listen q{number}\n    bind 127.0.0.1:1\n    server s 127.0.0.1:1\n    {line}"
        )
        .expect("it is a string");
    }
    let [theirs, ours] = Program::both().map(|program| {
        let said = program.check(&text).stderr;
        let refused = |number: usize| said.contains(&format!("Proxy 'q{number}': "));
        let lines = lines.iter().enumerate();
        let refused = lines.filter(|(number, _)| refused(*number));
        refused.map(|(_, line)| line.clone()).collect::<Vec<_>>()
    });
    assert!(theirs.len() > 20, "{} are refused", theirs.len());
    assert_eq!(theirs, ours);
    let mut lookups = Vec::new();
    for sample in SAMPLES {
        for key in KEYS {
            let number = lookups.len();
            lookups.push(format!("acl a{number} {sample},table_gpc0({key}) gt 1"));
        }
    }
    compare(&lookups);
}

/// What Ballast says when it refuses a line.
fn refusal(line: &str) -> String {
    let (text, _) = configuration(&[line.to_owned()]);
    let result = Program::ballast().check(&text);
    assert!(!result.status.success(), "{line} is accepted");
    result.stderr + &result.stdout
}

#[test]
fn a_type_that_does_not_fit_is_named_with_what_helps() {
    for (form, came, wanted, helps) in MISFITS {
        let line = form.replace('^', "");
        let (text, _) = configuration(std::slice::from_ref(&line));
        let is_taken = Program::haproxy().check(&text).status.success();
        assert!(!is_taken, "HAProxy takes {line}");
        let said = refusal(&line);
        let help = match *helps {
            "" => "no converter makes one".to_owned(),
            converter => format!("'{converter}'"),
        };
        for text in [*came, *wanted, &help] {
            assert!(said.contains(text), "{line}: no {text} in\n{said}");
        }
        if helps.is_empty() {
            continue;
        }
        // What is said to help is taken.
        let (text, _) = configuration(&[form.replace('^', helps)]);
        for program in Program::both() {
            let result = program.check(&text);
            let name = program.name();
            assert!(result.status.success(), "{name} {form}: {}", result.stderr);
        }
    }
}

#[test]
fn an_argument_of_the_wrong_type_is_named_with_the_right_one() {
    for (line, came, wanted) in WRONG_ARGUMENTS {
        let (text, _) = configuration(&[(*line).to_owned()]);
        let is_taken = Program::haproxy().check(&text).status.success();
        assert!(!is_taken, "HAProxy takes {line}");
        let said = refusal(line);
        for text in [&format!("'{came}'"), *wanted] {
            assert!(said.contains(text), "{line}: no {text} in\n{said}");
        }
    }
}
