use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustls::pki_types::UnixTime;
use rustls::server::ServerSessionMemoryCache;

use super::*;

#[derive(Debug, Default)]
struct Clock(AtomicU64);

impl TimeProvider for Clock {
    fn current_time(&self) -> Option<UnixTime> {
        let seconds = self.0.load(Ordering::Relaxed);
        Some(UnixTime::since_unix_epoch(Duration::from_secs(seconds)))
    }
}

fn key(byte: u8, bytes: usize) -> String {
    STANDARD.encode(vec![byte; bytes])
}

fn file(keys: &[String]) -> Vec<u8> {
    (keys.join("\n") + "\n").into_bytes()
}

fn ticketer(keys: &Arc<TicketKeys>, context: u8, time: &Arc<Clock>) -> Ticketer {
    let time: Arc<dyn TimeProvider> = Arc::clone(time) as _;
    Ticketer {
        keys: Arc::clone(keys),
        context: [context; 32],
        age: SessionAge {
            time,
            lifetime_s: 300,
        },
    }
}

#[test]
fn a_file_has_at_least_three_keys_of_one_length() {
    let four: Vec<String> = (1..=4).map(|byte| key(byte, 48)).collect();
    let keys = TicketKeys::read(&file(&four)).expect("good");
    assert_eq!(keys.reveal(), four[1..]);
    let mixed = [key(1, 80), key(2, 80), key(3, 48)];
    let refused = |keys: &[String]| {
        TicketKeys::read(&file(keys))
            .map(|_| ())
            .expect_err("refused")
    };
    assert_eq!(refused(&four[..2]), TicketKeyError::TooFew { count: 2 });
    assert_eq!(refused(&mixed), TicketKeyError::Mixed { line: 3 });
    assert_eq!(
        refused(&[key(1, 49)]),
        TicketKeyError::Length { line: 1, bytes: 49 }
    );
    assert_eq!(
        refused(&[key(1, 48), "?".to_owned()]),
        TicketKeyError::Base64 { line: 2 }
    );
    assert!(!format!("{keys:?}").contains(&four[1][..8]));
}

#[test]
fn the_last_but_one_encrypts_and_all_decrypt() {
    let all: Vec<String> = (1..=3).map(|byte| key(byte, 80)).collect();
    let keys = Arc::new(TicketKeys::read(&file(&all)).expect("good"));
    let time = Arc::new(Clock::default());
    let ticketer = ticketer(&keys, 7, &time);
    let ticket = ticketer.encrypt(b"session").expect("sealed");
    assert_eq!(ticket[..NAME_BYTES], [2; NAME_BYTES]);
    // Its key is the last but one, then the oldest, then gone.
    for turn in 4..6 {
        assert_eq!(ticketer.decrypt(&ticket).as_deref(), Some(&b"session"[..]));
        keys.push(&key(turn, 80)).expect("good");
        assert_eq!(ticketer.encrypt(b"x").expect("sealed")[0], turn - 1);
    }
    assert_eq!(ticketer.decrypt(&ticket), None);
    assert_eq!(
        keys.push(&key(1, 48)),
        Err(TicketKeyError::Mixed { line: 1 })
    );
}

#[test]
fn a_ticket_belongs_to_its_context_and_ends() {
    let keys = Arc::new(TicketKeys::random());
    let time = Arc::new(Clock::default());
    let (open, closed) = (ticketer(&keys, 0, &time), ticketer(&keys, 1, &time));
    let ticket = open.encrypt(b"session").expect("sealed");
    assert_eq!(closed.decrypt(&ticket), None);
    for at in 0..ticket.len() {
        let mut other = ticket.clone();
        other[at] ^= 1;
        assert_eq!(open.decrypt(&other), None);
        assert_eq!(open.decrypt(&ticket[..at]), None);
    }
    time.0.store(300, Ordering::Relaxed);
    assert!(open.decrypt(&ticket).is_some());
    time.0.store(301, Ordering::Relaxed);
    assert_eq!(open.decrypt(&ticket), None);
}

#[test]
fn a_session_that_is_kept_belongs_to_its_context_and_ends() {
    let store = ServerSessionMemoryCache::new(8);
    let time = Arc::new(Clock::default());
    let bound = |context| BoundSessions {
        store: Arc::clone(&store) as _,
        context: [context; 32],
        age: SessionAge {
            time: Arc::clone(&time) as _,
            lifetime_s: 300,
        },
    };
    let (open, closed) = (bound(0), bound(1));
    assert!(open.put(b"id".to_vec(), b"session".to_vec()));
    assert_eq!(closed.get(b"id"), None);
    assert_eq!(open.get(b"id").as_deref(), Some(&b"session"[..]));
    assert_eq!(open.take(b"id").as_deref(), Some(&b"session"[..]));
    assert_eq!(open.take(b"id"), None);
    assert!(open.put(b"id".to_vec(), b"session".to_vec()));
    time.0.store(301, Ordering::Relaxed);
    assert_eq!(open.get(b"id"), None);
}
