//! One listening address as connections pass it: its limits, and who is counted.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use ballast_engine::{ByHand, Frontend, Process};

use crate::arrival::Listening;
use crate::spread::Spread;
use crate::valve::Valve;

/// What all doors of a process share.
#[derive(Debug)]
pub(crate) struct House {
    pub(crate) process: Arc<Process>,
    pub(crate) spread: Spread,
    /// Opened when a connection leaves the process.
    pub(crate) valve: Valve,
    /// `maxconnrate`, connections per second.
    pub(crate) connection_rate_max: Option<u32>,
    /// `maxsessrate`, sessions per second.
    pub(crate) session_rate_max: Option<u32>,
    /// `tune.maxaccept`.
    pub(crate) accept_batch_max: usize,
    /// `tune.bufsize`: the longest PROXY header.
    pub(crate) header_bytes_max: usize,
}

/// One bind of a frontend.
#[derive(Debug)]
pub(crate) struct Door {
    pub(crate) house: Arc<House>,
    pub(crate) frontend: Arc<Frontend>,
    pub(crate) listening: Arc<Listening>,
    /// Opened when a connection leaves the frontend.
    pub(crate) frontend_valve: Arc<Valve>,
    /// Opened when the frontend is paused, resumed or shut.
    pub(crate) gate_valve: Arc<Valve>,
    /// Opened when a connection leaves the bind.
    pub(crate) valve: Valve,
    /// Workers that may carry its connections; not empty.
    pub(crate) workers: Box<[usize]>,
    /// Our end of every connection, when the socket is bound to one address and no other.
    pub(crate) destination: Option<SocketAddr>,
}

/// Why nobody may come in now.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Shut {
    /// `maxconn` of the process is reached.
    Process,
    /// `maxconn` of the frontend is reached.
    Frontend,
    /// `maxconn` of the bind is reached.
    Bind,
    /// A rate is reached; it may allow another one after this.
    Rate(Duration),
}

impl Door {
    /// How many may come in now, at least one.
    pub(crate) fn room(&self) -> Result<usize, Shut> {
        let state = &self.frontend.state;
        let process = &self.house.process;
        let mut room = u32::MAX;
        let mut look = |now: u32, max: u32, shut: Shut| {
            let left = max.saturating_sub(now);
            room = room.min(left);
            if left == 0 { Err(shut) } else { Ok(()) }
        };
        let connections = process.connections.now();
        look(connections, process.connection_count_max(), Shut::Process)?;
        look(
            state.sessions.now(),
            state.connection_count_max(),
            Shut::Frontend,
        )?;
        if let Some(max) = self.listening.bind.connection_count_max {
            look(self.listening.connections.now(), max, Shut::Bind)?;
        }
        let rates = [
            (
                &process.connection_rate,
                limit_now(&process.rates.connections, self.house.connection_rate_max),
            ),
            (
                &process.session_rate,
                limit_now(&process.rates.sessions, self.house.session_rate_max),
            ),
            (&state.session_rate, self.frontend.model.session_rate_max),
        ];
        for (rate, max) in rates {
            let Some(max) = max.filter(|&max| max > 0) else {
                continue;
            };
            let now = process.now_ms();
            let left = rate.room(now, max);
            if left == 0 {
                let wait = rate.wait_ms(now, max).max(1);
                return Err(Shut::Rate(Duration::from_millis(u64::from(wait))));
            }
            room = room.min(left);
        }
        Ok(usize::try_from(room).unwrap_or(usize::MAX))
    }

    /// Waits until the frontend was paused, resumed or shut since `epoch`.
    pub(crate) async fn gate_moved(&self, epoch: u32) {
        let gate = &self.frontend.state.gate;
        self.gate_valve.wait_until(|| gate.epoch() != epoch).await;
    }

    /// Waits until what was shut may have opened.
    pub(crate) async fn wait(&self, shut: Shut) {
        let still = |asked: Shut| self.room().is_err_and(|shut| shut == asked);
        match shut {
            Shut::Process => self.house.valve.wait_until(|| !still(shut)).await,
            Shut::Frontend => self.frontend_valve.wait_until(|| !still(shut)).await,
            Shut::Bind => self.valve.wait_until(|| !still(shut)).await,
            Shut::Rate(wait) => ballast_worker::sleep(wait).await,
        }
    }

    /// Counts one more connection, unless a limit is reached.
    pub(crate) fn enter(&self) -> Result<(), Shut> {
        let process = &self.house.process;
        let state = &self.frontend.state;
        let max = process.connection_count_max();
        if !process.connections.enter_below(Some(max)) {
            return Err(Shut::Process);
        }
        if !state
            .sessions
            .enter_below(Some(state.connection_count_max()))
        {
            process.connections.leave();
            self.house.valve.given_back();
            return Err(Shut::Frontend);
        }
        let max = self.listening.bind.connection_count_max;
        if !self.listening.connections.enter_below(max) {
            state.sessions.leave();
            process.connections.leave();
            self.frontend_valve.given_back();
            self.house.valve.given_back();
            return Err(Shut::Bind);
        }
        Ok(())
    }

    /// Undoes [`Door::enter`] at the end of the connection, and lets in who waits.
    pub(crate) fn leave(&self) {
        self.listening.connections.leave();
        self.frontend.state.sessions.leave();
        self.house.process.connections.leave();
        self.valve.given_back();
        self.frontend_valve.given_back();
        self.house.valve.given_back();
    }

    /// Counts what was accepted (management manual, section 9.1: `conn_tot`, `stot` and their
    /// rates) in the copies of the worker that accepted it.
    pub(crate) fn count(&self, worker: usize) {
        let process = &self.house.process;
        let now = process.now_ms();
        process.counters.of(worker).connections.increment();
        process.connection_rate.count(now, 1);
        process.session_rate.count(now, 1);
        let state = &self.frontend.state;
        let counters = state.counters.of(worker);
        counters.connections.increment();
        counters.sessions.increment();
        state.connection_rate.count(now, 1);
        state.session_rate.count(now, 1);
    }
}

/// A limit as written, or as set since.
fn limit_now(by_hand: &ByHand, written: Option<u32>) -> Option<u32> {
    by_hand.value().or(written)
}
