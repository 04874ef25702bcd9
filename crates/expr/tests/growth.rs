//! A condition over four times the values of one sample costs about four times as much: a client
//! decides how many there are.

#![allow(
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test says what went wrong by failing"
)]

use std::{fs, thread};

use ballast_expr::{
    AclSet, AddressPair, BodyFacts, Candidates, Condition, ConditionIndex, ConnectionFacts, Facts,
    Linker, Scratch, Side, Store, Time,
};
use ballast_message::{HeadLimits, Request, Response};

/// Values of the small input; the large one has four times as many.
const VALUES: usize = 1500;

/// Linear is 4, quadratic 16. The limit leaves room for a busy machine.
const RATIO_MAX: f64 = 9.0;

const ROOMY: HeadLimits = HeadLimits {
    field_count_max: u32::MAX,
    head_bytes_max: 1 << 24,
};

/// What a client and a server sent.
struct World {
    request: Request,
    response: Response,
    data: Vec<u8>,
    body: Vec<u8>,
    proxy_values: Vec<Vec<u8>>,
}

impl World {
    fn new() -> World {
        let mut request = Request::new(ROOMY);
        request.set_target(b"/").unwrap();
        World {
            request,
            response: Response::new(ROOMY),
            data: Vec::new(),
            body: Vec::new(),
            proxy_values: Vec::new(),
        }
    }

    fn with_field(name: &str, value: &str) -> World {
        let mut world = World::new();
        for fields in [world.request.fields_mut(), world.response.fields_mut()] {
            fields.add(name.as_bytes(), value.as_bytes()).unwrap();
        }
        world
    }
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
    fn response(&self) -> Option<&Response> {
        Some(&self.response)
    }
    fn data(&self, sent_by: Side) -> Option<&[u8]> {
        (sent_by == Side::Client).then_some(&self.data)
    }
    fn body(&self, sent_by: Side) -> Option<BodyFacts<'_>> {
        (sent_by == Side::Client).then_some(BodyFacts {
            bytes: &self.body,
            announced_bytes: None,
            is_final: true,
        })
    }
    fn connection(&self, to: Side) -> Option<&dyn ConnectionFacts> {
        (to == Side::Client).then_some(self)
    }
}

impl ConnectionFacts for World {
    fn address_pair(&self) -> AddressPair<'_> {
        AddressPair::default()
    }
    fn next_proxy_value(&self, _: u8, index: usize) -> Option<(&[u8], usize)> {
        Some((self.proxy_values.get(index)?, index + 1))
    }
}

fn condition(text: &str) -> Condition {
    let (store, acls) = (Store::new(), AclSet::new());
    let words: Vec<&str> = text.split(' ').collect();
    let mut condition = Condition::parse(&words, &acls).unwrap();
    let linked = condition.link(&mut Linker {
        store: &store,
        files: &mut |_: &str| Err("none".to_owned()),
        acls: &acls,
    });
    linked.unwrap();
    condition
}

/// Processor time of this thread, in nanoseconds.
fn spent() -> f64 {
    // The scheduler counts it up to the last time that it ran.
    thread::yield_now();
    let text = fs::read_to_string("/proc/thread-self/schedstat").expect("Linux tells it");
    let spent = text.split(' ').next().map(str::parse);
    spent.expect("a word").expect("a number")
}

/// Lowers `cost` to what this evaluation costs, for memory may have to be fetched first.
fn lower(cost: &mut f64, evaluate: impl FnOnce()) {
    let before = spent();
    evaluate();
    *cost = cost.min(spent() - before);
}

/// What `evaluate` costs grows with the number of values, which `world` is given.
fn grows_linearly(name: &str, world: impl Fn(usize) -> World, mut evaluate: impl FnMut(&World)) {
    const TRIES: usize = 5;
    let (small, large) = (world(VALUES), world(4 * VALUES));
    let (mut small_cost, mut large_cost) = (f64::MAX, f64::MAX);
    let mut ratio = f64::MAX;
    for _ in 0..TRIES {
        lower(&mut small_cost, || evaluate(&small));
        lower(&mut large_cost, || evaluate(&large));
        ratio = large_cost / small_cost;
        if ratio < RATIO_MAX {
            return;
        }
    }
    panic!("{name}: four times the values cost {ratio:.1} times as much");
}

/// The condition holds for the last value, and only for that, so that all values are walked over.
fn walks_linearly(text: &str, world: impl Fn(usize) -> World) {
    let condition = condition(text);
    let mut scratch = Scratch::new();
    grows_linearly(text, world, |world| {
        assert!(condition.holds(world, &mut scratch), "{text}");
    });
}

/// So many values, and another one at the end.
fn list(value: &str, count: usize, last: &str) -> String {
    value.repeat(count) + last
}

#[test]
fn members_of_fields_are_walked_over_once() {
    let empty = |count| World::with_field("x", &list(",", count, "last"));
    walks_linearly("if { req.hdr(x) last }", empty);
    walks_linearly("if { req.hdr(x),lower last }", empty);
    walks_linearly("if { req.hdr last }", empty);
    walks_linearly("if { res.hdr(x) last }", empty);
    let no_address = |count| World::with_field("x", &list("a,", count, "192.0.2.1"));
    walks_linearly("if { hdr_ip(x) -m found }", no_address);
    walks_linearly("if { hdr_ip(x) 192.0.2.1 }", no_address);
    let numbers = |count| World::with_field("x", &list("1,", count, "9"));
    walks_linearly("if { hdr_val(x) 9 }", numbers);
}

#[test]
fn lines_of_fields_are_walked_over_once() {
    let lines = |count| {
        let mut world = World::new();
        let fields = world.request.fields_mut();
        for _ in 0..count {
            fields.add(b"x", b"1").unwrap();
            fields.add(b"y", b"1").unwrap();
        }
        fields.add(b"x", b"last").unwrap();
        world
    };
    walks_linearly("if { req.fhdr(x) last }", lines);
    walks_linearly("if { req.hdr(x) last }", lines);
    walks_linearly("if { req.fhdr last }", lines);
}

#[test]
fn cookies_are_walked_over_once() {
    let sent = |count| World::with_field("cookie", &list("a=;", count, "a=last"));
    walks_linearly("if { req.cook(a) last }", sent);
    walks_linearly("if { req.cook last }", sent);
    let others = |count| World::with_field("cookie", &list("a=;b=;", count, "a=last"));
    walks_linearly("if { req.cook(a) last }", others);
    let set = |count| World::with_field("set-cookie", &list("a=;b=x,", count, "a=last"));
    walks_linearly("if { res.cook(a) last }", set);
}

#[test]
fn parameters_are_walked_over_once() {
    let target = |count| {
        let mut world = World::new();
        let target = format!("/{}?{}", "p".repeat(count), list("a=&b=&", count, "a=last"));
        world.request.set_target(target.as_bytes()).unwrap();
        world
    };
    walks_linearly("if { url_param(a) last }", target);
    walks_linearly("if { url_param last }", target);
    let body = |count| {
        let mut world = World::new();
        world.body = list("a=&b=&", count, "a=last").into_bytes();
        world
    };
    walks_linearly("if { req.body_param(a) -m str last }", body);
}

#[test]
fn values_of_a_proxy_header_are_walked_over_once() {
    let header = |count| {
        let mut world = World::new();
        world.proxy_values = vec![Vec::new(); count];
        world.proxy_values.push(b"last".to_vec());
        world
    };
    walks_linearly("if { fc_pp_tlv(0xe0) last }", header);
}

/// Bytes behind their length, of `size` bytes.
fn behind_length(size: usize, bytes: &[u8]) -> Vec<u8> {
    let length = bytes.len().to_be_bytes();
    [&length[length.len() - size..], bytes].concat()
}

/// A client hello that offers so many protocols, behind as many extensions without contents.
fn hello(count: usize) -> Vec<u8> {
    let names = [b"\x01a".repeat(count), b"\x04last".to_vec()].concat();
    let mut extensions = [0xfa, 0xfa, 0, 0].repeat(count);
    extensions.extend_from_slice(&[0, 16]);
    extensions.extend(behind_length(2, &behind_length(2, &names)));
    let mut contents = vec![3, 3];
    contents.extend_from_slice(&[7; 32]);
    contents.extend(behind_length(1, &[]));
    contents.extend(behind_length(2, &[0x13, 1]));
    contents.extend(behind_length(1, &[0]));
    contents.extend(behind_length(2, &extensions));
    let message = [vec![1], behind_length(3, &contents)].concat();
    [vec![22, 3, 1], behind_length(2, &message)].concat()
}

#[test]
fn protocols_of_a_hello_are_walked_over_once() {
    let offered = |count| {
        let mut world = World::new();
        world.data = hello(count);
        world
    };
    walks_linearly("if { req.ssl_alpn last }", offered);
}

#[test]
fn an_index_walks_over_values_once() {
    let rules: Vec<Condition> = (0..20)
        .map(|at| {
            let last = if at == 19 { "last" } else { "none" };
            condition(&format!("if {{ req.hdr(x) a {at} {last} }}"))
        })
        .collect();
    let index = ConditionIndex::new(rules.iter().map(Some)).unwrap();
    let (mut scratch, mut candidates) = (Scratch::new(), Candidates::default());
    for member in [",", "a,"] {
        let members = |count| World::with_field("x", &list(member, count, "last"));
        grows_linearly("an index", members, |world| {
            candidates.begin(Some(&index), 0);
            let mut found = Vec::new();
            while let Some(at) =
                candidates.next(Some(&index), rules.len(), &mut scratch, |ask| ask(world))
            {
                found.push(at);
            }
            let expected = if member == "," { 19..20 } else { 0..20 };
            assert_eq!(found, expected.collect::<Vec<_>>());
        });
    }
}
