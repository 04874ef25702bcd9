//! `track-sc*` and `sc-*` on a real table.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use ballast_expr::{
    AclSet, AddressPair, Facts, Linker, Needs, ProcessFacts, Side, Store, Time, Value, VarName,
};
use ballast_message::Response;
use ballast_rules::{
    Capability, Cursor, EntryChange, LogLevel, ParseEnv, Rule, RuleSetKind, RuleSets, RunProgress,
    Transaction, Verdict, Workspace, parse_rule, run_from,
};
use ballast_stick::{DataType, Key, KeyType, StoredType, Table, TableSettings, TrackedEntry};

const SOURCE: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 7)), 99);

/// A client, the table of its frontend `f`, and what counters 0 and 1 track.
struct World {
    table: Arc<Table>,
    tracked: [Option<TrackedEntry>; 2],
    changes: Vec<(u32, EntryChange)>,
    answer: (Response, Vec<u8>),
}

impl World {
    fn new(key: KeyType) -> World {
        let mut settings = TableSettings::new(key, 10);
        settings.store(StoredType::plain(DataType::ConnCnt));
        World {
            table: Table::new("f", settings, 1),
            tracked: [None, None],
            changes: Vec::new(),
            answer: (Response::default(), Vec::new()),
        }
    }

    fn run(&mut self, lines: &[&str]) -> RunProgress {
        let acls = AclSet::new();
        let mut sets = RuleSets::default();
        for line in lines {
            sets.of_mut(RuleSetKind::TcpContent).push(rule(line, &acls));
        }
        let store = Store::new();
        store.set_own_table("f");
        let mut linker = Linker {
            store: &store,
            files: &mut |_: &str| Ok(Vec::new()),
            acls: &acls,
        };
        sets.link(&mut linker).expect("the tables are there");
        let rules = sets.of(RuleSetKind::TcpContent);
        let more = Needs::REQUEST_BYTES;
        run_from(rules, Cursor::default(), more, self, &mut Workspace::new())
    }

    /// The key that a counter tracks.
    fn key(&self, number: usize) -> Option<Vec<u8>> {
        let mut bytes = Vec::new();
        let entry = self.tracked[number].as_ref()?;
        entry.read(0, |entry| match entry.key(&mut bytes) {
            Key::Bytes(bytes) => bytes.to_vec(),
            other => format!("{other:?}").into_bytes(),
        })
    }
}

fn rule(line: &str, acls: &AclSet) -> Rule {
    let words: Vec<&str> = line.split(' ').collect();
    let capability = Capability {
        frontend: true,
        backend: false,
    };
    let mut files = |_: &str| Ok(Vec::new());
    let mut env = ParseEnv::new(acls, &mut files, capability, "frontend f");
    parse_rule(RuleSetKind::TcpContent, &words, &mut env).expect("the rule is accepted")
}

impl ProcessFacts for World {
    fn rate_clock_ms(&self) -> Option<u32> {
        Some(0)
    }
}

impl Facts for World {
    fn now(&self) -> Time {
        Time::default()
    }
    fn random(&self) -> u64 {
        4
    }
    fn process(&self) -> &dyn ProcessFacts {
        self
    }
    /// A connection in TCP mode whose client has not sent anything yet.
    fn data(&self, sent_by: Side) -> Option<&[u8]> {
        (sent_by == Side::Client).then_some(&[])
    }
    fn address_pair(&self) -> AddressPair<'_> {
        AddressPair {
            source: Some(&SOURCE),
            destination: None,
        }
    }
    fn table(&self, name: &str) -> Option<&Table> {
        (name == "f").then_some(&*self.table)
    }
    fn tracked(&self, number: u32) -> Option<&TrackedEntry> {
        self.tracked.get(number as usize)?.as_ref()
    }
}

impl Transaction for World {
    fn with_facts(&self, question: &mut dyn FnMut(&dyn Facts)) {
        question(self);
    }
    fn answer_mut(&mut self) -> (&mut Response, &mut Vec<u8>) {
        (&mut self.answer.0, &mut self.answer.1)
    }
    fn set_var(&mut self, _: &VarName, _: Option<Value<'_>>) {}
    fn capture_request(&mut self, _: usize, _: &[u8]) {}
    fn capture_response(&mut self, _: usize, _: &[u8]) {}
    fn set_log_level(&mut self, _: LogLevel) {}
    fn rewrite_failed(&mut self) {}
    fn track(&mut self, number: u32, table: &str, key: Key<'_>) {
        assert_eq!(table, "f");
        self.tracked[number as usize] = self.table.track(key, 0);
    }
    fn change_tracked(&mut self, number: u32, change: EntryChange) {
        self.changes.push((number, change));
    }
}

const DONE: RunProgress = RunProgress::Done(Verdict::Continue);

#[test]
fn the_first_key_is_tracked_in_the_own_table() {
    let mut world = World::new(KeyType::String { len: 32 });
    let rules = [
        "track-sc0 src",
        "track-sc0 str(other)",
        "track-sc1 int(5) table f",
    ];
    assert_eq!(world.run(&rules), DONE);
    assert_eq!(world.key(0).unwrap(), b"192.0.2.7");
    assert_eq!(world.key(1).unwrap(), b"5");
}

#[test]
fn what_has_no_value_or_is_no_key_is_not_tracked() {
    let mut world = World::new(KeyType::Ipv4);
    let rules = [
        "track-sc0 var(txn.none)",
        "track-sc0 str(word)",
        "track-sc1 src table nosuch",
    ];
    assert_eq!(world.run(&rules), DONE);
    assert_eq!((world.key(0), world.key(1)), (None, None));
    assert_eq!(world.run(&["track-sc0 str(192.0.2.9)"]), DONE);
    assert_eq!(world.key(0).unwrap(), b"Ipv4(192.0.2.9)");
}

#[test]
fn a_key_that_may_still_come_is_waited_for() {
    let mut world = World::new(KeyType::Binary { len: 4 });
    let RunProgress::Wait(wait) = world.run(&["track-sc0 req.payload(0,4)"]) else {
        panic!("the bytes have not come");
    };
    assert_eq!(wait.needs, Needs::REQUEST_BYTES);
}

#[test]
fn changes_have_the_lower_bits_of_their_numbers() {
    let mut world = World::new(KeyType::Ipv4);
    let rules = [
        "sc-inc-gpc0",
        "sc-inc-gpc1(1)",
        "sc-inc-gpc(2,1)",
        "sc-add-gpc(3,0) -2",
        "sc-add-gpc(3,0) str(abcd),length",
        "sc-set-gpt0(0) 4294967297",
        "sc-set-gpt(1,1) str(12x)",
        "sc-set-gpt(1,1) var(txn.none)",
    ];
    assert_eq!(world.run(&rules), DONE);
    let add = |data, element, amount| EntryChange::Add {
        data,
        element,
        amount,
    };
    let set = |data, element, value| EntryChange::Set {
        data,
        element,
        value,
    };
    let wanted = [
        (0, add(DataType::Gpc0, 0, 1)),
        (1, add(DataType::Gpc1, 0, 1)),
        (1, add(DataType::Gpc, 2, 1)),
        (0, add(DataType::Gpc, 3, u32::MAX - 1)),
        (0, add(DataType::Gpc, 3, 4)),
        (0, set(DataType::Gpt0, 0, 1)),
        (1, set(DataType::Gpt, 1, 12)),
    ];
    assert_eq!(world.changes, wanted);
}
