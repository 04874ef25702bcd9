//! Connections at rest: open, idle, and ready for another exchange.
//!
//! Each worker keeps its own, by server, so that taking one and giving it back touches nothing
//! that another worker sees. The one used last is taken first: the others grow old and are
//! closed after `pool-purge-delay`. No more of them rest than were lately in use at once: under
//! `http-reuse safe` each new client opens a connection, and nobody would ever use most of what
//! they leave. HAProxy shows the same bound as `need_est` (`show servers conn`).

use std::cell::RefCell;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;
use std::time::{Duration, Instant};

use ballast_engine::{Backend, Server, ServerState};
use ballast_model::HttpReuse;

use crate::{Link, Particulars};

thread_local! {
    static POOL: RefCell<HashMap<usize, Shelf, BuildHasherDefault<AddressHasher>>> =
        RefCell::default();
}

/// Hashes an address, which nobody but the allocator chooses.
#[derive(Default)]
struct AddressHasher(u64);

impl Hasher for AddressHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_usize(&mut self, address: usize) {
        // The upper bits, which the table goes by too, have something of all (Fibonacci hashing).
        self.0 = (address as u64)
            .wrapping_mul(0x9E37_79B9_7F4A_7C15)
            .rotate_left(32);
    }
}

/// The idle connections of one server.
struct Shelf {
    state: Arc<ServerState>,
    resting: Vec<Resting>,
    purge: Duration,
    need: Need,
}

/// How many connections are worth having, judged by how many were in use at once.
struct Need {
    /// The most in use since `began`.
    highest: u32,
    /// What the periods before leave to expect.
    expected: u32,
    began: Instant,
}

impl Need {
    fn since(now: Instant) -> Self {
        Self {
            highest: 0,
            expected: 0,
            began: now,
        }
    }

    fn note(&mut self, used: u32) {
        self.highest = self.highest.max(used);
    }

    /// Begins another period when this one is over; what is not needed any more is forgotten by
    /// half.
    fn pass(&mut self, now: Instant, period: Duration) {
        if now.saturating_duration_since(self.began) >= period {
            self.expected = self.highest.max(self.expected / 2);
            self.highest = 0;
            self.began = now;
        }
    }

    fn count(&self) -> u32 {
        self.highest.max(self.expected)
    }
}

struct Resting {
    connection: Link,
    since: Instant,
}

/// Takes a connection for an exchange that asks for `wanted`, as `http-reuse` allows; `first`
/// says that it is the first exchange of its client's connection.
pub fn take(backend: &Backend, server: &Server, first: bool, wanted: &Particulars) -> Option<Link> {
    let reuse = backend.model.http_reuse;
    let proven = match (reuse, first) {
        (HttpReuse::Never, _) | (HttpReuse::Safe, true) => return None,
        (HttpReuse::Aggressive, true) => 2,
        _ => 1,
    };
    if wanted.is_of_one_client() {
        return None;
    }
    POOL.with_borrow_mut(|pool| {
        let shelf = pool.get_mut(&key(server))?;
        let mut at = shelf.resting.len();
        while at > 0 {
            at -= 1;
            if !shelf.resting[at].connection.is_reusable() {
                drop(shelf.resting.remove(at));
                shelf.state.idle.leave();
                continue;
            }
            let rests = &shelf.resting[at].connection;
            if rests.exchange_count >= proven && rests.fits(backend, server, wanted) {
                let resting = shelf.resting.remove(at);
                shelf.state.idle.leave();
                return Some(resting.connection);
            }
        }
        None
    })
}

/// Whether a connection may rest here for anyone, rather than stay with its client.
pub fn shares(backend: &Backend, server: &Server, link: &Link) -> bool {
    backend.model.http_reuse != HttpReuse::Never
        && server.model.idle_count_max != Some(0)
        && !link.is_of_one_client()
}

/// Gives a connection back after an exchange that left it clean.
pub fn give(server: &Server, mut connection: Link, now: Instant) {
    let limit = server
        .model
        .idle_count_max
        .map_or(usize::MAX, |limit| limit as usize);
    let worn = server
        .model
        .reuse_count_max
        .is_some_and(|max| connection.exchange_count > max);
    connection.rest();
    POOL.with_borrow_mut(|pool| {
        let shelf = pool.entry(key(server)).or_insert_with(|| Shelf {
            state: Arc::clone(&server.state),
            resting: Vec::new(),
            purge: server.model.idle_purge,
            need: Need::since(now),
        });
        shelf.purge = server.model.idle_purge;
        // Its address may have changed since the connection was opened.
        let strays = connection.epoch() != server.state.address_epoch();
        if worn || strays || shelf.resting.len() >= limit || !shelf.needs_one_more() {
            return;
        }
        shelf.state.idle.enter();
        shelf.resting.push(Resting {
            connection,
            since: now,
        });
    });
}

/// Closes what has rested too long or was closed by its server. To be called now and then on
/// each worker.
pub fn purge(now: Instant) {
    POOL.with_borrow_mut(|pool| {
        pool.retain(|_, shelf| {
            let (purge, state) = (shelf.purge, Arc::clone(&shelf.state));
            shelf.need.pass(now, purge);
            let gone = shelf.resting.extract_if(.., |resting| {
                now.saturating_duration_since(resting.since) >= purge
                    || !resting.connection.is_reusable()
            });
            for resting in gone {
                // Closed before it is counted out, here and elsewhere: who takes what rests from
                // what is open must not find one in use that nobody uses.
                drop(resting);
                state.idle.leave();
            }
            !shelf.resting.is_empty()
        });
    });
}

/// Closes every idle connection of a server, because it went down or changed its address.
pub fn clear(server: &Server) {
    POOL.with_borrow_mut(|pool| {
        if let Some(shelf) = pool.remove(&key(server)) {
            for resting in shelf.resting {
                drop(resting);
                shelf.state.idle.leave();
            }
        }
    });
}

/// Counts what rests on this worker: for each server, by the address of its state, how many
/// connections, and how many are expected to be wanted at once.
pub fn census() -> HashMap<usize, (u32, u32)> {
    POOL.with_borrow(|pool| {
        pool.iter()
            .map(|(key, shelf)| {
                let resting = u32::try_from(shelf.resting.len()).unwrap_or(u32::MAX);
                (*key, (resting, shelf.need.count()))
            })
            .collect()
    })
}

impl Shelf {
    /// Whether the connection that is given back will be wanted. A worker keeps its share of
    /// what all of them need, whatever rests with the others: it cannot use theirs.
    fn needs_one_more(&mut self) -> bool {
        let (open, idle) = (self.state.connections.now(), self.state.idle.now());
        self.need.note(open.saturating_sub(idle));
        let need = self.need.count();
        let share = need as usize / self.state.counters.worker_count();
        open <= need || self.resting.len() < share.max(1)
    }
}

/// The state's address: the shelf holds the state, so no other can have it meanwhile.
fn key(server: &Server) -> usize {
    Arc::as_ptr(&server.state).addr()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_needed_is_what_was_used_and_fades() {
        let (began, period) = (Instant::now(), Duration::from_secs(5));
        let mut need = Need::since(began);
        need.note(100);
        need.note(1);
        need.pass(began + Duration::from_secs(4), period);
        assert_eq!(need.count(), 100);
        let counts = [1, 2, 3].map(|periods| {
            need.pass(began + period * periods, period);
            need.count()
        });
        assert_eq!(counts, [100, 50, 25]);
        need.note(60);
        assert_eq!(need.count(), 60);
    }
}
