//! Rules that are looked up in an index do what they do one by one.

#![allow(
    clippy::panic,
    clippy::unwrap_used,
    unreachable_pub,
    reason = "a test says what went wrong by failing"
)]

mod common;

use ballast_expr::{AclSet, Candidates, Condition, ConditionIndex, Linker, Needs, Scratch, Store};
use ballast_rules::{
    Cursor, IndexedRules, ParseEnv, RuleSetKind, RuleSets, Verdict, Workspace, parse_rule, run,
    run_from,
};
use common::{BOTH, Fake, no_files, words};
use proptest::prelude::*;

/// ACLs that lines may name.
const ACLS: [&str; 6] = [
    "several hdr(host) -i b.example c.EXAMPLE",
    "several hdr(host) -m beg d",
    "mixed hdr(host) a.example",
    "mixed path_beg /b",
    "counting src,table_inc_gpc0(t) gt 0",
    "setting path,set-var(txn.v) -m found",
];

/// Terms of conditions; those over the header and the path come often enough for an index.
const TERMS: [&str; 34] = [
    "{ hdr(host) -i A.example }",
    "{ hdr(host) b.example d.example }",
    "{ hdr(host) -m beg a b }",
    "{ hdr(host) -i -m end EXAMPLE }",
    "{ hdr(host) -m sub .ex }",
    "{ hdr(host) -m dom example }",
    "{ hdr(host) -m len 9 }",
    "{ hdr(host) -m reg -i ^[ab].EX }",
    "{ hdr(host) -m reg [0-9] }",
    "{ hdr(host) -m found }",
    "{ hdr(host),lower a.example }",
    "{ req.hdr(host) c.example }",
    "several",
    "mixed",
    "{ hdr(x-a) 1 3 }",
    "{ hdr(x-a) -m int 2 4:9 }",
    "{ hdr(x-a,1) 1 }",
    "{ hdr(x-a) -m ip 10.0.0.0/8 1.2.3.4 }",
    "{ hdr_cnt(x-a) gt 1 }",
    "{ path_beg /a / }",
    "{ path /b /a/b }",
    "{ path_end b .png }",
    "{ path_sub a }",
    "{ path_dir a }",
    "{ path_reg ^/[a-c]/b$ }",
    "{ path_len gt 3 }",
    "{ path -i /B }",
    "{ path -m str -- }",
    "{ var(txn.v) -m str a.example 1 }",
    "{ var(txn.v) -m beg a }",
    "{ src 127.0.0.0/8 }",
    "{ src 10.0.0.1 ::ffff:127.0.0.1 }",
    "TRUE",
    "METH_GET",
];

const ACTIONS: [&str; 12] = [
    "add-header x-trace",
    "add-header x-trace",
    "add-header x-trace",
    "add-header x-trace",
    "set-header host b.example #",
    "add-header host c.example #",
    "del-header host #",
    "set-path /a/b #",
    "set-var(txn.v) req.hdr(host) #",
    "set-var(txn.v) str(1) #",
    "add-header x-a 3 #",
    "deny status 403 #",
];

/// A rule by numbers: its action, `unless`, and the rows of its condition.
type Line = (usize, bool, Vec<Vec<(usize, bool)>>);

fn written(at: usize, (action, unless, rows): &Line) -> String {
    let action = ACTIONS[*action];
    let action = match action.strip_suffix(" #") {
        Some(whole) => whole.to_owned(),
        None => format!("{action} {at}"),
    };
    if rows.is_empty() {
        return action;
    }
    let rows: Vec<String> = rows
        .iter()
        .map(|row| {
            let terms = row.iter().map(|(term, negated)| {
                let not = if *negated { "!" } else { "" };
                format!("{not}{}", TERMS[*term])
            });
            terms.collect::<Vec<_>>().join(" ")
        })
        .collect();
    let word = if *unless { "unless" } else { "if" };
    format!("{action} {word} {}", rows.join(" or "))
}

fn acls() -> AclSet {
    let mut acls = AclSet::new();
    for line in ACLS {
        acls.declare(&line.split(' ').collect::<Vec<_>>()).unwrap();
    }
    acls
}

/// Rules with their index.
fn sets(lines: &[String], store: &Store) -> RuleSets {
    let (mut acls, mut files) = (acls(), no_files);
    let mut sets = RuleSets::default();
    for line in lines {
        let cut = words(line);
        let cut: Vec<&str> = cut.iter().map(String::as_str).collect();
        let mut env = ParseEnv::new(&acls, &mut files, BOTH, "frontend 'f'");
        let rule = parse_rule(RuleSetKind::HttpRequest, &cut, &mut env);
        sets.http_request
            .push(rule.unwrap_or_else(|error| panic!("{line}: {error}")));
    }
    let mut files = no_files;
    acls.link(store, &mut files).unwrap();
    sets.link(&mut Linker {
        store,
        files: &mut files,
        acls: &acls,
    })
    .unwrap();
    sets.make_indexes();
    sets
}

fn request(host: &[usize], path: usize, more: &[usize]) -> Fake {
    const HOSTS: [&str; 6] = [
        "a.example",
        "B.example",
        "c.example",
        "d",
        "x.test, a.example",
        "",
    ];
    const PATHS: [&str; 5] = ["/", "/a", "/a/b", "/b", "/c/d.png?a"];
    const VALUES: [&str; 5] = ["1", "2, 3", "10.1.2.3", "x", "7,1.2.3.4"];
    let hosts = host.iter().map(|at| ("host", HOSTS[*at]));
    let more = more.iter().map(|at| ("x-a", VALUES[*at]));
    let fields: Vec<(&str, &str)> = hosts.chain(more).collect();
    Fake::asking("GET", PATHS[path], &fields)
}

/// What became of a request.
fn outcome(verdict: &Verdict, fake: &Fake) -> String {
    let var = fake.var("txn.v");
    format!("{verdict:?}\n{}{var:?}", fake.request_text())
}

fn line() -> impl Strategy<Value = Line> {
    let term = (0..TERMS.len(), prop::bool::weighted(0.2));
    let row = prop::collection::vec(term, 1..3);
    let rows = prop::collection::vec(row, 0..3);
    (0..ACTIONS.len(), prop::bool::weighted(0.25), rows)
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 500,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn an_index_changes_no_outcome(
        lines in prop::collection::vec(line(), 1..60),
        host in prop::collection::vec(0..6_usize, 0..3),
        path in 0..5_usize,
        more in prop::collection::vec(0..5_usize, 0..3),
        from in 0..5_usize,
    ) {
        let lines: Vec<String> =
            lines.iter().enumerate().map(|(at, line)| written(at, line)).collect();
        let store = Store::new();
        let sets = sets(&lines, &store);
        let (mut one, mut other) = (request(&host, path, &more), request(&host, path, &more));
        // The memory of a worker is used again.
        let mut space = Workspace::new();
        run(&sets.http_request, &mut request(&[0], from, &[]), &mut space);
        let indexed = run(&sets.http_request, &mut one, &mut space);
        let plain = run(sets.http_request.as_slice(), &mut other, &mut Workspace::new());
        prop_assert_eq!(outcome(&indexed, &one), outcome(&plain, &other), "{:#?}", lines);
    }

    #[test]
    fn a_list_that_is_changed_is_looked_at(
        lines in prop::collection::vec(line(), 12..40),
        changes in prop::collection::vec((any::<prop::sample::Index>(), 0..4_usize), 1..6),
        host in 0..6_usize,
        path in 0..5_usize,
    ) {
        let lines: Vec<String> =
            lines.iter().enumerate().map(|(at, line)| written(at, line)).collect();
        let store = Store::new();
        let sets = sets(&lines, &store);
        let lists = store.all();
        for (list, key) in changes {
            let list = &lists[list.index(lists.len())].list;
            let key = ["a.example", "/a", "127.0.0.1", "1"][key];
            // One that is no pattern for the list is refused.
            let _ = list.add(None, [(key, None)]);
        }
        let (mut one, mut other) = (request(&[host], path, &[0]), request(&[host], path, &[0]));
        let indexed = run(&sets.http_request, &mut one, &mut Workspace::new());
        let plain = run(sets.http_request.as_slice(), &mut other, &mut Workspace::new());
        prop_assert_eq!(outcome(&indexed, &one), outcome(&plain, &other), "{:#?}", lines);
    }
}

/// The conditions that are evaluated for a request with this host.
fn evaluated(texts: &[String], host: &str) -> Vec<usize> {
    let acls = acls();
    let conditions: Vec<Condition> = texts
        .iter()
        .map(|text| {
            let words: Vec<&str> = text.split(' ').collect();
            let mut condition = Condition::parse(&words, &acls).unwrap();
            let mut files = no_files;
            let (store, files) = (&Store::new(), &mut files);
            condition
                .link(&mut Linker {
                    store,
                    files,
                    acls: &acls,
                })
                .unwrap();
            condition
        })
        .collect();
    let index = ConditionIndex::new(conditions.iter().map(Some));
    let index = index.as_deref();
    let fake = Fake::asking("GET", "/", &[("host", host)]);
    let (mut candidates, mut scratch) = (Candidates::default(), Scratch::new());
    candidates.begin(index, 0);
    let mut all = Vec::new();
    while let Some(at) =
        candidates.next(index, texts.len(), &mut scratch, |question| question(&fake))
    {
        all.push(at);
    }
    all
}

/// Conditions over the host and some others.
fn over_hosts(count: usize) -> Vec<String> {
    let conditions = (0..count).map(|at| match at % 3 {
        0 => format!("if {{ hdr(host) -i Host{at}.example }}"),
        1 => format!("if {{ path_beg / }} {{ hdr(host) host{at}.example other{at} }}"),
        _ => format!("unless !{{ hdr(host) -m end t{at}.example }} or !TRUE"),
    });
    conditions.collect()
}

#[test]
fn a_thousand_rules_cost_what_a_few_do() {
    let thousand = over_hosts(1000);
    assert_eq!(evaluated(&thousand, "host900.example"), [900]);
    assert_eq!(evaluated(&thousand, "OTHER901"), [901]);
    assert_eq!(evaluated(&thousand, "host2.example"), [2]);
    assert_eq!(evaluated(&thousand, "elsewhere"), [0; 0]);
}

/// Expressions that count in a table.
const COUNTING: [&str; 17] = [
    "src,table_inc_gpc0(t)",
    "src,table_inc_gpc1(t)",
    "src,table_inc_gpc(0,t)",
    "src,table_clr_gpc0(t)",
    "src,table_clr_gpc1(t)",
    "src,table_clr_gpc(0,t)",
    "src_inc_gpc0(t)",
    "src_inc_gpc(0,t)",
    "src_clr_gpc1(t)",
    "src_updt_conn_cnt(t)",
    "sc_inc_gpc0(0)",
    "sc_clr_gpc(0,0)",
    "sc0_inc_gpc0",
    "sc1_clr_gpc1",
    "sc2_inc_gpc0",
    "acl(counting)",
    "hdr(host),when(acl,counting)",
];

/// Expressions that change what others see.
const CHANGING: [&str; 7] = [
    "hdr(host),set-var(txn.v)",
    "hdr(host),unset-var(txn.v)",
    "hdr(host),capture-req(0)",
    "hdr(host),capture-res(0)",
    "hdr(host),aes_gcm_enc(128,txn.nonce,Zm9vb2Zvb29mb29wZm9vbw==,txn.tag)",
    "acl(setting)",
    "hdr(host),when(acl,setting)",
];

#[test]
fn a_condition_that_counts_is_evaluated_for_every_request() {
    for counting in COUNTING {
        let mut conditions = over_hosts(20);
        let counted = format!("if {{ {counting} -m found }} {{ hdr(host) -i a }}");
        conditions.insert(7, counted);
        let hosts = evaluated(&conditions, "elsewhere");
        assert_eq!(hosts, [7], "{counting}");
    }
}

#[test]
fn conditions_that_change_what_others_see_have_no_index() {
    for changing in CHANGING {
        let mut conditions = over_hosts(20);
        let changed = format!("if {{ {changing} -m found }} {{ hdr(host) -i a }}");
        conditions.insert(7, changed);
        let all: Vec<usize> = (0..21).collect();
        assert_eq!(evaluated(&conditions, "elsewhere"), all, "{changing}");
    }
}

#[test]
fn a_list_of_rules_has_an_index() {
    let lines: Vec<String> = (0..20)
        .map(|at| format!("deny status 403 if {{ hdr(host) h{at} }} {{ path -m found }}"))
        .collect();
    let store = Store::new();
    let sets = sets(&lines, &store);
    let rules = IndexedRules::from(&sets.http_request);
    assert!(format!("{rules:?}").contains("ConditionIndex(1 samples, 0 others)"));
    let mut fake = Fake::asking("GET", "/", &[("host", "h3")]);
    let progress = run_from(
        rules,
        Cursor::default(),
        Needs::TIME,
        &mut fake,
        &mut Workspace::new(),
    );
    assert!(
        format!("{progress:?}").contains("status: 403"),
        "{progress:?}"
    );
}
