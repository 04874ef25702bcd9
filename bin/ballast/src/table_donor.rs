//! Stick tables of this process on their way to the next one, which asks for them over a channel while
//! both run. Each channel has a thread: tables are read a few entries at a time, beside the traffic.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

use ballast_handover::{Message, TableChannel, TableOffer, TableRequest};
use ballast_net as net;
use ballast_stats::StatsHost;
use ballast_stick::{DumpProgress, Table};
use ballast_worker::{Stream, spawn_service};

use crate::{console, threads};

/// So many processes are answered at once.
const CHANNELS_MAX: usize = 8;

/// Workers' clocks may be behind the time that is noted as that of a copy.
const CLOCK_SLACK_MS: u32 = 1000;

/// How long a process waits for this one to stop.
pub(crate) const STOP_WAIT_MAX: Duration = Duration::from_secs(10);

/// How long the end of this process waits for a process that asked for nothing yet.
const CHANNEL_END_TIMEOUT: Duration = Duration::from_secs(1);

/// How much longer it waits for one that reads what changed last.
const LAST_CHANGES_TIMEOUT: Duration = Duration::from_secs(5);

/// The processes that ask this one for its tables.
#[derive(Debug, Default)]
pub(crate) struct TableDonor {
    host: OnceLock<Weak<dyn StatsHost>>,
    state: Mutex<DonorState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct DonorState {
    /// What processes find this one by, until it stops.
    offer: Option<TableOffer>,
    channels: usize,
    /// Of these, channels of processes that wait for the last changes, or read them.
    following: usize,
    /// No connection is accepted any more.
    has_stopped: bool,
}

impl TableDonor {
    /// Sets the process whose tables these are, once.
    pub(crate) fn set_host(&self, host: Weak<dyn StatsHost>) {
        // A second call changes nothing.
        let _ = self.host.set(host);
    }

    /// A channel for another process, which is answered from now on; `None` when there are too many, when
    /// this process accepts no connections any more, and where the system refuses.
    pub(crate) fn channel(self: &Arc<Self>) -> Option<OwnedFd> {
        let (here, there) = TableChannel::pair().ok()?;
        self.serve(here).then(|| there.into_fd())
    }

    /// Answers what comes over a channel. False when there are too many, or this process has stopped: the
    /// one that follows it has the tables.
    fn serve(self: &Arc<Self>, channel: TableChannel) -> bool {
        let Some(host) = self.host.get().and_then(Weak::upgrade) else {
            return false;
        };
        {
            let mut state = self.state();
            if state.has_stopped {
                return false;
            }
            if state.channels >= CHANNELS_MAX {
                drop(state);
                console::warn(&format!(
                    "stick tables are not handed over: {CHANNELS_MAX} processes read them already."
                ));
                return false;
            }
            state.channels += 1;
        }
        let donor = Arc::clone(self);
        let started = threads::start("ballast-tables", move || {
            // The other process may end at any time; it says so itself when it misses something.
            let _ = answer_all(&*host, &donor, &channel);
            drop(channel);
            donor.end_line();
        });
        if started.is_err() {
            self.end_line();
        }
        started.is_ok()
    }

    /// Notes that no connection is accepted any more: who waits for the last changes gets them, and
    /// nobody else asks this process.
    pub(crate) fn stopped(&self) {
        let mut state = self.state();
        state.has_stopped = true;
        let offer = state.offer.take();
        drop(state);
        drop(offer);
        self.changed.notify_all();
    }

    /// Waits until the last changes are read, but not for ever.
    pub(crate) fn finish(&self) {
        self.wait(CHANNEL_END_TIMEOUT, |state| state.channels == 0);
        self.wait(LAST_CHANGES_TIMEOUT, |state| state.following == 0);
    }

    /// Has processes find this one by the offer. False when it has stopped.
    fn hold(&self, offer: TableOffer) -> bool {
        let mut state = self.state();
        if !state.has_stopped {
            state.offer = Some(offer);
        }
        !state.has_stopped
    }

    fn end_line(&self) {
        self.state().channels -= 1;
        self.changed.notify_all();
    }

    fn state(&self) -> MutexGuard<'_, DonorState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait(&self, at_most: Duration, holds: impl Fn(&DonorState) -> bool) {
        let until = Instant::now() + at_most;
        let mut state = self.state();
        while !holds(&state) {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            let waited = self.changed.wait_timeout(state, left);
            (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// Answers until the other process closes the channel.
fn answer_all(host: &dyn StatsHost, donor: &TableDonor, channel: &TableChannel) -> io::Result<()> {
    while let Some(request) = channel.next_request()? {
        if matches!(request, TableRequest::LastChanges(_)) {
            let _following = Following::begin(donor);
            donor.wait(STOP_WAIT_MAX, |state| state.has_stopped);
            answer(host, channel, request)?;
            // The other process closes the channel when it has read all.
            return channel.next_request().map(drop);
        }
        answer(host, channel, request)?;
    }
    Ok(())
}

/// A channel that counts among those of processes that wait for the last changes, or read them.
struct Following<'d>(&'d TableDonor);

impl<'d> Following<'d> {
    fn begin(donor: &'d TableDonor) -> Self {
        donor.state().following += 1;
        Self(donor)
    }
}

impl Drop for Following<'_> {
    fn drop(&mut self) {
        self.0.state().following -= 1;
        self.0.changed.notify_all();
    }
}

fn answer(host: &dyn StatsHost, channel: &TableChannel, request: TableRequest) -> io::Result<()> {
    let generation = host.generation();
    let process = host.registry().process();
    let tables = generation.tables.all();
    let now = AnswerToken {
        ms: process.now_ms(),
        removals: removals(tables),
    };
    let since_ms = match request {
        TableRequest::All => None,
        TableRequest::Changes(token) => {
            let since = AnswerToken::read(token);
            // What was removed cannot be told of: everything is told again.
            (since.removals == now.removals).then_some(since.ms)
        }
        TableRequest::LastChanges(token) => Some(AnswerToken::read(token).ms),
    };
    channel.begin_answer(since_ms.is_none())?;
    let mut dump = Vec::new();
    for table in tables {
        let mut progress = match since_ms {
            None => DumpProgress::default(),
            Some(ms) => DumpProgress::of_changes(ms.wrapping_sub(CLOCK_SLACK_MS)),
        };
        loop {
            dump.clear();
            let written_us = net::monotonic_us();
            let is_more = table.write_dump(&mut progress, process.now_ms(), &mut dump);
            if !dump.is_empty() {
                channel.send_dump(&dump, written_us)?;
            }
            if !is_more {
                break;
            }
        }
    }
    channel.end_answer(now.write())
}

/// How many entries commands removed, modulo 2^32.
fn removals(tables: &[Arc<Table>]) -> u32 {
    let each = tables.iter().map(|table| table.removals());
    each.fold(0, u32::wrapping_add)
}

/// What an answer was true of.
#[derive(Clone, Copy)]
struct AnswerToken {
    /// When it began.
    ms: u32,
    /// What commands had removed then.
    removals: u32,
}

impl AnswerToken {
    fn write(self) -> u64 {
        u64::from(self.ms) << 32 | u64::from(self.removals)
    }

    #[expect(
        clippy::cast_possible_truncation,
        reason = "the two halves of the number"
    )]
    fn read(token: u64) -> Self {
        Self {
            ms: (token >> 32) as u32,
            removals: token as u32,
        }
    }
}

/// Answers processes that find this one by its number, from now on. To be called on a worker.
pub(crate) fn offer(donor: &Arc<TableDonor>) {
    if let Err(error) = try_offer(donor) {
        console::warn(&format!(
            "stick tables cannot be handed over to a process that starts with -sf: {error}."
        ));
    }
}

fn try_offer(donor: &Arc<TableDonor>) -> io::Result<()> {
    let offer = TableOffer::open()?;
    let readable_end = offer.served().as_fd().try_clone_to_owned()?;
    net::set_non_blocking(&readable_end)?;
    let stream = Stream::from_fd(readable_end).map_err(io::Error::other)?;
    let served = offer.served().clone();
    if !donor.hold(offer) {
        return Ok(());
    }
    let donor = Arc::clone(donor);
    spawn_service(async move {
        while stream.readable().await.is_ok() {
            match served.receive() {
                Ok(Some(received)) if received.message == Message::TableChannel => {
                    for fd in received.fds {
                        donor.serve(TableChannel::from_fd(fd));
                    }
                }
                Ok(Some(_)) => {}
                Ok(None) => return,
                Err(error) if error.kind() == io::ErrorKind::InvalidData => {}
                // No message is left: this clears the readiness of the executor.
                Err(_) => drop(stream.try_peek(&mut [0])),
            }
        }
    });
    Ok(())
}
