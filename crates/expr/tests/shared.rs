//! Conditions that share a sample say what each says alone.

#![allow(
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test says what went wrong by failing"
)]

use ballast_expr::{
    AclSet, AddressPair, Condition, Facts, LastSample, Linker, Scratch, Store, Time,
};
use ballast_message::{HeadLimits, Request};
use proptest::prelude::*;

/// What conditions ask; several ask the same, and some of what is shared has no value or many.
const TERMS: [&str; 22] = [
    "{ hdr(host) -i A.example }",
    "{ hdr(host) b.example c.example }",
    "{ hdr(host) -m beg a b }",
    "{ hdr(host) -m found }",
    "{ hdr(host,1) -m beg a }",
    "{ hdr(host),lower a.example }",
    "{ req.hdr(host) c.example }",
    "{ req.fhdr(host) -m end example }",
    "{ hdr(x-a) 1 3 }",
    "{ hdr(x-a) -m int 2 4:9 }",
    "{ hdr(x-a) -m ip 10.0.0.0/8 }",
    "{ hdr(x-a) -m found }",
    "{ hdr_cnt(x-a) gt 1 }",
    "{ path_beg /a / }",
    "{ path_end b .png }",
    "{ path /b /a/b }",
    "{ path -m len gt 3 }",
    "{ method GET }",
    "{ method POST PUT }",
    "{ src 127.0.0.0/8 }",
    "{ src 10.0.0.1 ::1 }",
    "{ base_beg a.example/ }",
];

const HOSTS: [&str; 5] = ["a.example", "A.EXAMPLE", "b.example, c.example", "", "d"];
const VALUES: [&str; 6] = ["1", "2, 3", "10.1.2.3", "x", "", "5,\"6,7\""];
const PATHS: [&str; 5] = ["/", "/a/b", "/b", "/a/x.png", "*"];

struct World {
    request: Request,
    source: std::net::SocketAddr,
}

impl Facts for World {
    fn now(&self) -> Time {
        Time::default()
    }
    fn random(&self) -> u64 {
        7
    }
    fn request(&self) -> Option<&Request> {
        Some(&self.request)
    }
    fn address_pair(&self) -> AddressPair<'_> {
        AddressPair {
            source: Some(&self.source),
            ..AddressPair::default()
        }
    }
}

/// A condition by its terms, each with whether it is negated, and its rows.
type Line = (bool, Vec<Vec<(usize, bool)>>);

fn condition((unless, rows): &Line) -> Condition {
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
    let text = format!("{word} {}", rows.join(" or "));
    let words: Vec<&str> = text.split(' ').collect();
    let acls = AclSet::new();
    let mut condition = Condition::parse(&words, &acls).unwrap();
    let mut files = |_: &str| Err("none".to_owned());
    let mut linker = Linker {
        store: &Store::new(),
        files: &mut files,
        acls: &acls,
    };
    condition.link(&mut linker).unwrap();
    condition
}

fn lines() -> impl Strategy<Value = Vec<Line>> {
    let term = (0..TERMS.len(), any::<bool>());
    let row = proptest::collection::vec(term, 1..3);
    let rows = proptest::collection::vec(row, 1..3);
    proptest::collection::vec((any::<bool>(), rows), 1..8)
}

fn fields() -> impl Strategy<Value = Vec<(&'static str, &'static str)>> {
    let host = prop::sample::select(&HOSTS[..]).prop_map(|host| ("host", host));
    let value = prop::sample::select(&VALUES[..]).prop_map(|value| ("x-a", value));
    proptest::collection::vec(prop_oneof![host, value], 0..5)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn each_condition_holds_as_it_does_alone(
        lines in lines(),
        fields in fields(),
        path in prop::sample::select(&PATHS[..]),
        is_get in any::<bool>(),
        source in prop::sample::select(&["127.0.0.1:1", "10.0.0.1:1", "[::1]:1"][..]),
    ) {
        let mut request = Request::new(HeadLimits::default());
        request.set_method(if is_get { b"GET" } else { b"POST" }).unwrap();
        request.set_target(path.as_bytes()).unwrap();
        for (name, value) in fields {
            request.fields_mut().add(name.as_bytes(), value.as_bytes()).unwrap();
        }
        let world = World { request, source: source.parse().unwrap() };
        let conditions: Vec<Condition> = lines.iter().map(condition).collect();
        let mut scratch = Scratch::new();
        let mut last = LastSample::default();
        for (condition, line) in conditions.iter().zip(&lines) {
            scratch.clear();
            let shared = condition.holds_sharing(&world, &mut scratch, &mut last);
            // Each criterion alone: nothing is shared within a condition of one.
            let (unless, rows) = line;
            let holds_alone = |(term, negated): &(usize, bool)| {
                let alone = condition_of_one(*term).holds(&world, &mut Scratch::new());
                alone != *negated
            };
            let alone = rows.iter().any(|row| row.iter().all(holds_alone)) != *unless;
            prop_assert_eq!(shared, alone, "{}", condition);
            prop_assert_eq!(condition.holds(&world, &mut scratch), alone, "{}", condition);
        }
    }
}

fn condition_of_one(term: usize) -> Condition {
    condition(&(false, vec![vec![(term, false)]]))
}
