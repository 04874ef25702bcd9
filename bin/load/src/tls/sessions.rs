//! The sessions that can be resumed, by server name, for all connections of a run.
//!
//! A ticket of TLS 1.3 is used once (the library gives no way to use one twice, as RFC 8446
//! section C.4 wants it): each connection takes one and brings at least one back. A session of TLS
//! 1.2 is used again and again.

use std::cell::Cell;
use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustls::NamedGroup;
use rustls::client::{ClientSessionStore, Tls12ClientSessionValue, Tls13ClientSessionValue};
use rustls_pki_types::ServerName;

/// The sessions of one name.
#[derive(Default)]
struct Stock {
    tls12: Option<Tls12ClientSessionValue>,
    /// The oldest first.
    tls13: VecDeque<Tls13ClientSessionValue>,
    group: Option<NamedGroup>,
}

/// The sessions of all names.
pub(crate) struct Sessions {
    stocks: Mutex<HashMap<ServerName<'static>, Stock>>,
    /// How many tickets are kept of one name: as many as connections may ask for at once.
    tickets_max: usize,
}

thread_local! {
    /// How many sessions this thread has taken: who makes a ClientHello learns from it whether
    /// that offers one.
    static TAKEN_COUNT: Cell<u64> = const { Cell::new(0) };
}

impl std::fmt::Debug for Sessions {
    /// Without the secrets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sessions").finish_non_exhaustive()
    }
}

impl Sessions {
    /// No session yet, of any name.
    pub(crate) fn new(tickets_max: usize) -> Self {
        Self {
            stocks: Mutex::default(),
            tickets_max,
        }
    }

    /// How many sessions this thread has taken.
    pub(crate) fn taken_by_this_thread() -> u64 {
        TAKEN_COUNT.get()
    }

    fn lock_stocks(&self) -> MutexGuard<'_, HashMap<ServerName<'static>, Stock>> {
        self.stocks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn count<T>(session: Option<T>) -> Option<T> {
    if session.is_some() {
        TAKEN_COUNT.set(TAKEN_COUNT.get() + 1);
    }
    session
}

impl ClientSessionStore for Sessions {
    fn set_kx_hint(&self, name: ServerName<'static>, group: NamedGroup) {
        self.lock_stocks().entry(name).or_default().group = Some(group);
    }

    fn kx_hint(&self, name: &ServerName<'_>) -> Option<NamedGroup> {
        self.lock_stocks().get(&name.to_owned())?.group
    }

    fn set_tls12_session(&self, name: ServerName<'static>, session: Tls12ClientSessionValue) {
        self.lock_stocks().entry(name).or_default().tls12 = Some(session);
    }

    fn tls12_session(&self, name: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
        let session = self.lock_stocks().get(&name.to_owned())?.tls12.clone();
        count(session)
    }

    fn remove_tls12_session(&self, name: &ServerName<'static>) {
        if let Some(stock) = self.lock_stocks().get_mut(name) {
            stock.tls12 = None;
        }
    }

    fn insert_tls13_ticket(&self, name: ServerName<'static>, ticket: Tls13ClientSessionValue) {
        let mut stocks = self.lock_stocks();
        let tickets = &mut stocks.entry(name).or_default().tls13;
        if tickets.len() >= self.tickets_max {
            tickets.pop_front();
        }
        tickets.push_back(ticket);
    }

    fn take_tls13_ticket(&self, name: &ServerName<'static>) -> Option<Tls13ClientSessionValue> {
        let ticket = self.lock_stocks().get_mut(name)?.tls13.pop_front();
        count(ticket)
    }
}
