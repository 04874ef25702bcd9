//! Samples of tables, asked of real tables.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use ballast_stick::{DataType, Key, KeyType, StoredType, Table, TableSettings, TrackedEntry};

use crate::facts::{AddressPair, Facts, ProcessFacts, Time};
use crate::value::Value;
use crate::{Expr, Scratch, eval};

const NOW_MS: u32 = 5_000;
const SOURCE: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 7)), 99);

/// A client, three tables, and what counter 0 tracks.
struct World {
    addresses: Arc<Table>,
    others: Arc<Table>,
    texts: Arc<Table>,
    tracked: Option<TrackedEntry>,
}

fn table(name: &str, key: KeyType, stored: &[StoredType]) -> Arc<Table> {
    let mut settings = TableSettings::new(key, 100);
    settings.expire_ms = Some(60_000);
    for one in stored {
        settings.store(*one);
    }
    Table::new(name, settings, 1)
}

impl World {
    fn new() -> World {
        let counters = [
            StoredType::plain(DataType::ConnCnt),
            StoredType::plain(DataType::BytesInCnt),
            StoredType::rate(DataType::ConnRate, 10_000),
            StoredType {
                data_type: DataType::Gpc,
                elements: 3,
                period_ms: 0,
            },
        ];
        World {
            addresses: table("addresses", KeyType::Ipv4, &counters),
            others: table("others", KeyType::Ipv4, &counters),
            texts: table("texts", KeyType::String { len: 8 }, &counters),
            tracked: None,
        }
    }

    fn track(&mut self) -> &TrackedEntry {
        let tracked = self
            .addresses
            .track(Key::Ipv4(Ipv4Addr::new(192, 0, 2, 7)), NOW_MS);
        self.tracked.insert(tracked.unwrap())
    }

    fn text(&self, expression: &str) -> String {
        let expr = Expr::parse(expression).unwrap();
        let mut scratch = Scratch::new();
        let mut out = Vec::new();
        match eval(&expr, self, &mut scratch) {
            Some(Value::Bool(flag)) => return flag.to_string(),
            Some(value) => value.append_to(&mut out),
            None => return "none".to_owned(),
        }
        String::from_utf8(out).unwrap()
    }

    fn check(&self, wanted: &[(&str, &str)]) {
        for (expression, text) in wanted {
            assert_eq!(self.text(expression), *text, "{expression}");
        }
    }
}

impl ProcessFacts for World {
    fn rate_clock_ms(&self) -> Option<u32> {
        Some(NOW_MS)
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
    fn address_pair(&self) -> AddressPair<'_> {
        AddressPair {
            source: Some(&SOURCE),
            destination: None,
        }
    }
    fn table(&self, name: &str) -> Option<&Table> {
        let all = [&self.addresses, &self.others, &self.texts];
        all.into_iter()
            .find(|one| one.name() == name)
            .map(|one| &**one)
    }
    fn tracked(&self, number: u32) -> Option<&TrackedEntry> {
        self.tracked.as_ref().filter(|_| number == 0)
    }
}

#[test]
fn a_counter_that_tracks_nothing_has_no_values() {
    World::new().check(&[
        ("sc_conn_cnt(0)", "none"),
        ("sc_conn_cnt(0,others)", "none"),
        ("sc0_inc_gpc0", "none"),
        ("sc0_key", "none"),
        ("sc_conn_cnt(-1)", "none"),
        ("sc_tracked(0)", "false"),
        ("sc_tracked(0,addresses)", "false"),
        ("sc_trackers(0)", "none"),
    ]);
}

#[test]
fn a_tracked_entry_has_what_its_table_stores() {
    let mut world = World::new();
    world.track().update(NOW_MS, |entry| {
        entry.add(DataType::ConnCnt, 0, 3);
        entry.add(DataType::BytesInCnt, 0, 5000);
    });
    world.check(&[
        ("sc_conn_cnt(0)", "3"),
        ("sc0_conn_cnt", "3"),
        ("sc0_conn_cnt(addresses)", "3"),
        ("sc_kbytes_in(0)", "4"),
        ("sc_conn_cur(0)", "none"),
        ("sc_key(0)", "192.0.2.7"),
        ("sc_tracked(0)", "true"),
        ("sc_trackers(0)", "1"),
        ("sc_inc_gpc(2,0)", "1"),
        ("sc_inc_gpc(2,0)", "2"),
        ("sc_inc_gpc(3,0)", "0"),
        ("sc_get_gpc(2,0)", "2"),
        ("sc_get_gpc(3,0)", "none"),
        ("sc_clr_gpc(2,0)", "2"),
        ("sc_clr_gpc(2,0)", "0"),
        ("sc_inc_gpc0(0)", "1"),
        ("sc_inc_gpc1(0)", "1"),
        ("sc_get_gpc(1,0)", "1"),
        ("sc_gpc0_rate(0)", "none"),
        ("src_conn_cnt(addresses)", "3"),
        ("src,table_conn_cnt(addresses)", "3"),
        ("src,table_trackers(addresses)", "1"),
    ]);
}

#[test]
fn another_table_is_asked_for_the_same_key_and_gets_no_entry() {
    let mut world = World::new();
    world.track();
    world.check(&[
        ("sc_conn_cnt(0,others)", "0"),
        ("sc_inc_gpc(0,0,others)", "0"),
        ("sc_tracked(0,others)", "true"),
        ("sc_trackers(0,others)", "0"),
        ("table_cnt(others)", "0"),
        ("sc_conn_cnt(0,texts)", "none"),
        ("sc_tracked(0,texts)", "false"),
    ]);
    world.text("src_inc_gpc(0,others)");
    world.check(&[("sc_get_gpc(0,0,others)", "1")]);
}

#[test]
fn the_client_has_an_entry_once_something_is_counted() {
    let world = World::new();
    world.check(&[
        ("src_conn_cnt(addresses)", "0"),
        ("src_conn_cur(addresses)", "0"),
        ("table_avl(addresses)", "100"),
        ("src_clr_gpc(0,addresses)", "0"),
        ("src_conn_cur(addresses)", "none"),
        ("table_cnt(addresses)", "1"),
        ("table_avl(addresses)", "99"),
        ("src_updt_conn_cnt(addresses)", "1"),
        ("src_updt_conn_cnt(addresses)", "2"),
        ("src_conn_rate(addresses)", "0"),
        ("src_conn_cur(addresses)", "none"),
        ("src_inc_gpc0(texts)", "1"),
        ("str(192.0.3.7),table_gpc(0,texts)", "0"),
        ("str(192.0.2.),table_gpc(0,texts)", "1"),
        ("table_cnt(addresses)", "1"),
        ("table_avl(addresses)", "99"),
        ("src_conn_cnt(nosuch)", "none"),
    ]);
}

#[test]
fn what_is_no_key_has_no_entry() {
    let world = World::new();
    world.check(&[
        ("str(x),table_conn_cnt(addresses)", "0"),
        ("str(x),table_inc_gpc0(addresses)", "0"),
        ("str(x),in_table(addresses)", "false"),
        ("str(x),table_expire(addresses)", "none"),
        ("str(x),table_expire(addresses,7)", "7"),
        ("str(x),table_idle(addresses,8)", "8"),
        ("str(192.0.2.9),table_inc_gpc1(addresses)", "1"),
        ("ipv4(192.0.2.9),in_table(addresses)", "true"),
        ("ipv4(192.0.2.9),table_expire(addresses)", "60000"),
        ("ipv4(192.0.2.9),table_idle(addresses,8)", "0"),
        ("ipv4(192.0.2.9),table_server_id(addresses)", "none"),
    ]);
}
