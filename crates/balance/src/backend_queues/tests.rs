use proptest::prelude::*;

use super::*;

const NONE: QueuePriority = QueuePriority {
    class: 0,
    offset_ms: 0,
};

#[test]
fn the_longest_wait_goes_first_over_both_queues() {
    let mut waiting = BackendQueues::default();
    let first = waiting.join(None, NONE, 5, 'a');
    let second = waiting.join(Some("a"), NONE, 5, 'b');
    let third = waiting.join(None, NONE, 6, 'c');
    let served = |offer, position| Some(CalledExchange { offer, position });
    assert_eq!(waiting.next_for("a", true), served('a', 1));
    assert_eq!(waiting.leave(None, first), None, "the first was called");
    assert_eq!(waiting.next_for("a", true), served('b', 1));
    assert_eq!(waiting.leave(Some("a"), second), None, "then the second");
    assert_eq!(waiting.next_for("b", true), served('c', 2));
    assert_eq!(waiting.leave(None, third), None);
    assert!(waiting.is_empty() && waiting.next_for("a", true).is_none());
}

#[test]
fn a_server_does_not_serve_anothers_queue() {
    let mut waiting = BackendQueues::default();
    let ticket = waiting.join(Some("a"), NONE, 0, 1);
    assert_eq!(waiting.next_for("b", true), None);
    let for_any = waiting.join(None, NONE, 0, 2);
    assert_eq!(waiting.next_for("b", false), None, "none but its own");
    assert!(waiting.waits_for("b", true) && !waiting.waits_for("b", false));
    assert_eq!(waiting.counts(), (1, 1));
    assert_eq!(waiting.leave(None, for_any), Some(0));
    assert_eq!(waiting.leave(Some("a"), ticket), Some(0));
    assert!(waiting.is_empty());
    waiting.join(Some("a"), NONE, 0, 3);
    waiting.join(None, NONE, 0, 4);
    let called = |offer, position| CalledExchange { offer, position };
    assert_eq!(waiting.take_queue(Some("a")), [called(3, 1)]);
    assert_eq!(waiting.take_queue(None), [called(4, 1)]);
    assert!(waiting.is_empty());
}

#[test]
fn who_chooses_again_keeps_its_place_and_its_position_counts_who_went_before() {
    let mut waiting = BackendQueues::default();
    let called = |offer, position| CalledExchange { offer, position };
    waiting.join(Some("a"), NONE, 0, "went before");
    let ticket = waiting.join(Some("a"), NONE, 1, "chooses again");
    waiting.join(None, NONE, 2, "came later");
    assert_eq!(waiting.next_for("a", true), Some(called("went before", 1)));
    assert_eq!(waiting.take_queue(Some("a")), [called("chooses again", 2)]);
    assert_eq!(waiting.leave(Some("a"), ticket), None, "it was called");
    assert_eq!(waiting.join_again(None, ticket, "chose again"), ticket);
    assert_eq!(waiting.next_for("b", true), Some(called("chose again", 1)));
    assert_eq!(waiting.next_for("b", true), Some(called("came later", 2)));
}

#[test]
fn a_class_goes_before_any_wait_and_an_offset_is_worth_its_time() {
    let mut waiting = BackendQueues::default();
    waiting.join(None, NONE, 0, "late");
    waiting.join(Some("a"), NONE.with_offset_ms(-1001), 1000, "moved");
    waiting.join(None, NONE.with_class(1), 0, "last");
    let gives_up = waiting.join(None, NONE.with_class(3), 0, "gives up");
    waiting.join(
        None,
        NONE.with_class(-1).with_offset_ms(500_000),
        9000,
        "first",
    );
    let mut order = Vec::new();
    for _ in 0..4 {
        order.extend(waiting.next_for("a", true).map(|next| next.offer));
    }
    assert_eq!(order, ["first", "moved", "late", "last"]);
    assert_eq!(waiting.leave(None, gives_up), Some(3));
}

#[test]
fn priorities_out_of_range_are_cut() {
    let least = NONE.with_class(i64::MIN).with_offset_ms(i64::MIN);
    assert_eq!((least.class(), least.offset_ms()), (-2047, -524_287));
    let most = NONE.with_class(i64::MAX).with_offset_ms(i64::MAX);
    assert_eq!((most.class(), most.offset_ms()), (2047, 524_287));
    assert!(least.rank(0) < most.rank(0) && most.rank(u64::MAX) > most.rank(0));
    assert!(most.with_class(2046).rank(u64::MAX) < most.rank(0));
}

/// What happens to the queues.
#[derive(Clone, Debug)]
enum Event {
    /// One more waits: its server, class and offset, and the milliseconds since the last event.
    Join(Option<u8>, i64, i64, u64),
    /// One that waits gives up.
    Leave(usize),
    /// A server has a free slot.
    Serve(u8, bool),
}

fn event() -> impl Strategy<Value = Event> {
    let server = prop_oneof![Just(None), (0_u8..3).prop_map(Some)];
    let class = prop_oneof![Just(0_i64), -2..3_i64, -9999..9999_i64];
    let offset = prop_oneof![Just(0_i64), -20..20_i64, -999_999..999_999_i64];
    prop_oneof![
        3 => (server, class, offset, 0_u64..15).prop_map(|(s, c, o, t)| Event::Join(s, c, o, t)),
        1 => any::<usize>().prop_map(Event::Leave),
        2 => (0_u8..3, any::<bool>()).prop_map(|(s, any)| Event::Serve(s, any)),
    ]
}

/// One that waits, as the manual describes it.
#[derive(Debug)]
struct Simulated {
    server: Option<u8>,
    class: i64,
    due_ms: i64,
    number: usize,
    ticket: QueueTicket,
    passed: u32,
}

fn name(server: Option<u8>) -> Option<&'static str> {
    server.map(|server| ["a", "b", "c"][usize::from(server)])
}

proptest! {
    /// Over any life of the queues the one that is served is the first by class, then by moved
    /// moment, then by arrival, and its position counts those who went before it.
    #[test]
    fn who_is_served_is_whom_the_manual_names(events in prop::collection::vec(event(), 1..120)) {
        let mut waiting = BackendQueues::default();
        let mut simulated: Vec<Simulated> = Vec::new();
        let (mut now_ms, mut count) = (0, 0);
        for event in events {
            match event {
                Event::Join(server, class, offset, later) => {
                    now_ms += later;
                    let priority = NONE.with_class(class).with_offset_ms(offset);
                    let ticket = waiting.join(name(server), priority, now_ms, count);
                    simulated.push(Simulated {
                        server,
                        class: class.clamp(-2047, 2047),
                        due_ms: i64::try_from(now_ms).unwrap() + offset.clamp(-524_287, 524_287),
                        number: count,
                        ticket,
                        passed: 0,
                    });
                    count += 1;
                }
                Event::Leave(position) if !simulated.is_empty() => {
                    let one = simulated.remove(position % simulated.len());
                    prop_assert_eq!(waiting.leave(name(one.server), one.ticket), Some(one.passed));
                    prop_assert_eq!(waiting.leave(name(one.server), one.ticket), None);
                }
                Event::Leave(_) => {}
                Event::Serve(server, takes_any) => {
                    let may = |one: &Simulated| match one.server {
                        Some(own) => own == server,
                        None => takes_any,
                    };
                    let position = (0..simulated.len())
                        .filter(|position| may(&simulated[*position]))
                        .min_by_key(|position| {
                            let one = &simulated[*position];
                            (one.class, one.due_ms, one.number)
                        });
                    let expected = position.map(|position| {
                        let one = simulated.remove(position);
                        let queue = simulated.iter_mut().filter(|other| other.server == one.server);
                        queue.for_each(|other| other.passed += 1);
                        CalledExchange {
                            offer: one.number,
                            position: one.passed + 1,
                        }
                    });
                    let own = name(Some(server)).unwrap();
                    prop_assert_eq!(waiting.waits_for(own, takes_any), expected.is_some());
                    prop_assert_eq!(waiting.next_for(own, takes_any), expected);
                }
            }
            prop_assert_eq!(waiting.is_empty(), simulated.is_empty());
        }
        simulated.sort_by_key(|one| (one.class, one.due_ms, one.number));
        let rest: Vec<usize> = simulated.iter().map(|one| one.number).collect();
        let taken = waiting.take_all().into_iter();
        let taken: Vec<usize> = taken.map(|one| one.offer).collect();
        prop_assert_eq!(taken, rest);
    }
}
