//! What belongs to the process and not to a proxy.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Instant, SystemTime};

use arc_swap::ArcSwap;
use ballast_expr::{SearchLimit, bytes_of_text};
use ballast_model::CloseSpread;

use crate::counters::{PerWorker, ProcessCounters};
use crate::{EventBuffer, Gauge, OverrideCell, ProcessVariables, Rate, RateLimits, TlsCounters};

/// The process: its limits, its counters, and whether it is stopping.
#[derive(Debug)]
pub struct Process {
    /// Client connections open now.
    pub connections: Gauge,
    /// Open connections to servers, in use or idle.
    pub server_connections: Gauge,
    /// How many of them may be idle.
    pub idle_connections: IdleConnectionLimits,
    /// Connections accepted per second.
    pub connection_rate: Rate,
    /// Sessions begun per second.
    pub session_rate: Rate,
    /// TLS connections on both sides.
    pub tls: TlsCounters,
    /// Counted by the workers.
    pub counters: PerWorker<ProcessCounters>,
    /// When the process began, on the monotonic clock.
    pub started: Instant,
    /// When the process began, on the wall clock.
    pub started_at: SystemTime,
    /// Limits per second, where commands set them.
    pub rates: RateLimits,
    /// Variables of the scope `proc`.
    pub variables: ProcessVariables,
    /// The variables of the environment, as the configuration in force leaves them.
    environment: ArcSwap<HashMap<String, Arc<[u8]>>>,
    /// What `debug` converters were given.
    pub events: EventBuffer,
    configured_connection_max: AtomicU32,
    connection_limit_override: OverrideCell,
    stopping: AtomicBool,
    closing: OnceLock<ClosingPlan>,
    next_unique: AtomicU32,
    /// Callers of the command sockets: each is a connection and a request of `show info`.
    pub callers: AtomicU64,
    /// So many connections there is memory for, as far as is known; without a limit as long as nobody says.
    pub memory_connection_max: AtomicU32,
    /// Allocations that were refused (`PoolFailed`).
    pub refused_allocations: AtomicU64,
    invalid_messages: AtomicU64,
    sent: Mutex<SentBytes>,
}

/// When connections are closed while the process stops, where that is not at once.
#[derive(Clone, Copy, Debug)]
struct ClosingPlan {
    /// When the first may be closed.
    from: Instant,
    spread: CloseSpread,
}

impl ClosingPlan {
    /// When an idle connection is closed that is told at `now`; `None` for never. The moments of all are
    /// spread evenly, by their random numbers.
    fn idle_until(&self, now: Instant, random: u64) -> Option<Instant> {
        let CloseSpread::Over(time) = self.spread else {
            return None;
        };
        let begin = now.max(self.from);
        let left = (self.from + time).saturating_duration_since(begin);
        Some(begin + left.mul_f64(fraction(random)))
    }

    /// Whether a connection whose exchange ends at `now` carries no other: the more time has passed, the
    /// more of them do not.
    fn closes_active(&self, now: Instant, random: u64) -> bool {
        let CloseSpread::Over(time) = self.spread else {
            return false;
        };
        let passed = now.saturating_duration_since(self.from);
        passed > time.mul_f64(fraction(random))
    }
}

/// How many descriptors may be used before idle connections to servers make room for others.
#[derive(Debug)]
pub struct IdleConnectionLimits {
    /// Descriptors that the process may have; without a limit as long as nobody says.
    descriptor_count_max: AtomicU64,
    low_percent: AtomicU32,
    high_percent: AtomicU32,
}

/// How much of its descriptors the process uses ([`Process::descriptor_pressure`]).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum DescriptorPressure {
    /// Idle connections are kept as they are needed.
    Low,
    /// `tune.pool-low-fd-ratio` is reached: a worker keeps one idle connection of a server at the most.
    Medium,
    /// `tune.pool-high-fd-ratio` is reached: none is kept, and each new connection closes an idle one.
    High,
}

impl Default for IdleConnectionLimits {
    fn default() -> Self {
        Self {
            descriptor_count_max: AtomicU64::new(u64::MAX),
            low_percent: AtomicU32::new(100),
            high_percent: AtomicU32::new(100),
        }
    }
}

impl IdleConnectionLimits {
    /// Sets how many descriptors the process may have.
    pub fn limit_descriptors(&self, count_max: u64) {
        self.descriptor_count_max
            .store(count_max, Ordering::Relaxed);
    }

    /// Sets the shares of them, in percent (`tune.pool-low-fd-ratio`, `tune.pool-high-fd-ratio`).
    pub fn set_percents(&self, low: u32, high: u32) {
        self.low_percent.store(low, Ordering::Relaxed);
        self.high_percent.store(high, Ordering::Relaxed);
    }

    fn pressure(&self, used: u32) -> DescriptorPressure {
        let count_max = self.descriptor_count_max.load(Ordering::Relaxed);
        let reaches = |percent: &AtomicU32| {
            let percent = percent.load(Ordering::Relaxed);
            u64::from(used)
                >= count_max / 100 * u64::from(percent) + count_max % 100 * u64::from(percent) / 100
        };
        if reaches(&self.high_percent) {
            DescriptorPressure::High
        } else if reaches(&self.low_percent) {
            DescriptorPressure::Medium
        } else {
            DescriptorPressure::Low
        }
    }
}

/// From 0 to almost 1.
fn fraction(random: u64) -> f64 {
    let upper = u32::try_from(random >> 32).unwrap_or(u32::MAX);
    f64::from(upper) / (f64::from(u32::MAX) + 1.0)
}

/// Bytes sent, at the last measurement.
#[derive(Clone, Copy, Debug, Default)]
struct SentBytes {
    at_ms: u64,
    bytes: u64,
    per_second: u64,
}

impl Process {
    /// Searches for regular expressions that ended because they had taken all their steps
    /// (`tune.regex.max-steps`): the expressions did not match.
    pub fn exhausted_searches(&self) -> u64 {
        SearchLimit::exhausted_total()
    }

    /// A process that begins now, with `worker_count` workers and at most
    /// `connection_count_max` client connections (`maxconn` of the global section).
    pub fn new(worker_count: usize, connection_count_max: u32) -> Self {
        Self {
            connections: Gauge::default(),
            server_connections: Gauge::default(),
            idle_connections: IdleConnectionLimits::default(),
            connection_rate: Rate::default(),
            session_rate: Rate::default(),
            tls: TlsCounters::default(),
            counters: PerWorker::new(worker_count),
            started: Instant::now(),
            started_at: SystemTime::now(),
            rates: RateLimits::default(),
            variables: ProcessVariables::default(),
            environment: ArcSwap::default(),
            events: EventBuffer::default(),
            configured_connection_max: AtomicU32::new(connection_count_max),
            connection_limit_override: OverrideCell::default(),
            stopping: AtomicBool::new(false),
            closing: OnceLock::new(),
            next_unique: AtomicU32::new(0),
            callers: AtomicU64::new(0),
            memory_connection_max: AtomicU32::new(u32::MAX),
            refused_allocations: AtomicU64::new(0),
            invalid_messages: AtomicU64::new(0),
            sent: Mutex::default(),
        }
    }

    /// How much of its descriptors the process uses: beyond a share idle connections to servers leave them
    /// to clients.
    pub fn descriptor_pressure(&self) -> DescriptorPressure {
        let used = self.connections.current() + self.server_connections.current();
        self.idle_connections.pressure(used)
    }

    /// A variable of the environment (`env`).
    #[must_use]
    pub fn environment_variable(&self, name: &str) -> Option<Arc<[u8]>> {
        self.environment.load().get(name).cloned()
    }

    /// Takes the environment of a configuration.
    pub(crate) fn set_environment(&self, variables: &[(String, String)]) {
        let value = |text: &String| Arc::from(&*bytes_of_text(text));
        let variables = variables.iter();
        let variables = variables.map(|(name, text)| (name.clone(), value(text)));
        self.environment.store(Arc::new(variables.collect()));
    }

    /// Sends a line to a sink of events: to the buffer. Standard output and error are no sinks of
    /// events here: a worker would have to wait for them.
    pub fn add_event(&self, sink: &str, text: &[u8]) {
        if sink == "buf0" {
            self.events.add(text);
        }
    }

    /// The largest number of client connections at once.
    pub fn connection_count_max(&self) -> u32 {
        self.connection_limit_override
            .or(self.configured_connection_max())
    }

    /// The limit that the configuration says, or that is derived from it, whatever commands set: other
    /// limits are computed from it.
    pub fn configured_connection_max(&self) -> u32 {
        self.configured_connection_max.load(Ordering::Relaxed)
    }

    /// Changes the limit that the configuration says.
    pub fn limit_connections(&self, count_max: u32) {
        self.configured_connection_max
            .store(count_max, Ordering::Relaxed);
    }

    /// Overrides the limit (`set maxconn global`); `None` returns to the configuration's.
    pub fn override_connection_limit(&self, count_max: Option<u32>) {
        self.connection_limit_override.set(count_max);
    }

    /// Milliseconds since the process began: the clock of every
    /// [`Health`](ballast_health::Health).
    pub fn age_ms(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Milliseconds since the process began, wrapping: the clock of every [`Rate`].
    pub fn now_ms(&self) -> u32 {
        #[expect(clippy::cast_possible_truncation, reason = "the clock of a rate wraps")]
        {
            self.started.elapsed().as_millis() as u32
        }
    }

    /// As [`Self::now_ms`], for a given moment; now when it is `None`.
    pub fn ms_at(&self, moment: Option<Instant>) -> u32 {
        let Some(moment) = moment else {
            return self.now_ms();
        };
        #[expect(clippy::cast_possible_truncation, reason = "the clock of a rate wraps")]
        {
            moment.saturating_duration_since(self.started).as_millis() as u32
        }
    }

    /// The next value of `%rt`: a number that is unique to each request, wrapping.
    pub fn next_request_number(&self) -> u32 {
        self.next_unique.fetch_add(1, Ordering::Relaxed)
    }

    /// How many messages were refused because they broke the protocol (`show errors`).
    pub fn invalid_message_count(&self) -> u64 {
        self.invalid_messages.load(Ordering::Relaxed)
    }

    /// Counts a refused message; returns how many there were before.
    pub fn count_invalid_message(&self) -> u64 {
        self.invalid_messages.fetch_add(1, Ordering::Relaxed)
    }

    /// Bytes sent per second since the last call that was at least a second ago, given the total
    /// sent.
    pub fn bytes_out_per_second(&self, bytes: u64) -> u64 {
        let mut sent = self.sent.lock().unwrap_or_else(PoisonError::into_inner);
        let now_ms = self.age_ms();
        let passed_ms = now_ms.saturating_sub(sent.at_ms);
        if passed_ms >= 1000 || sent.at_ms == 0 {
            let more = bytes.saturating_sub(sent.bytes);
            *sent = SentBytes {
                at_ms: now_ms,
                bytes,
                per_second: more.saturating_mul(1000) / passed_ms.max(1000),
            };
        }
        sent.per_second
    }

    /// Whether the process accepts no more connections and ends with its last session.
    pub fn stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    /// Whether the process stops, and every connection of HTTP is closed as soon as it carries nothing.
    pub fn closes_at_once(&self) -> bool {
        self.stopping() && self.closing.get().is_none()
    }

    /// Whether the stop closes a connection whose exchange ends at `now`, by its random number.
    pub fn closes_active(&self, now: Instant, random: u64) -> bool {
        let plan = self.closing.get();
        self.stopping() && plan.is_none_or(|plan| plan.closes_active(now, random))
    }

    /// When the stop closes an idle connection that is told of it at `now`, by its random number; `None`
    /// for never.
    pub fn idle_until(&self, now: Instant, random: u64) -> Option<Instant> {
        match self.closing.get() {
            Some(plan) => plan.idle_until(now, random),
            None => Some(now),
        }
    }

    /// Begins the soft stop; true for the first caller only. Connections are closed from that moment on, and
    /// at once where there is no `spread`.
    pub fn begin_stopping(&self, spread: Option<CloseSpread>, from: Instant) -> bool {
        if let Some(spread) = spread {
            self.closing.get_or_init(|| ClosingPlan { from, spread });
        }
        !self.stopping.swap(true, Ordering::AcqRel)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const LATE: u64 = u64::MAX;
    const EARLY: u64 = 0;
    const MIDDLE: u64 = 1 << 63;

    #[test]
    fn connections_are_closed_at_once_or_spread_over_a_time_or_never() {
        let now = Instant::now();
        let second = Duration::from_secs(1);
        let process = |spread| {
            let process = Process::new(1, 1);
            assert!(!process.closes_at_once() && !process.closes_active(now, EARLY));
            assert!(process.begin_stopping(spread, now + second));
            process
        };
        let at_once = process(None);
        assert!(at_once.closes_at_once() && at_once.closes_active(now, LATE));
        assert_eq!(at_once.idle_until(now, LATE), Some(now));

        // From the end of `grace` on.
        let spread = process(Some(CloseSpread::Over(4 * second)));
        assert!(!spread.closes_at_once());
        assert_eq!(spread.idle_until(now, EARLY), Some(now + second));
        assert_eq!(spread.idle_until(now, MIDDLE), Some(now + 3 * second));
        let told_later = now + 3 * second;
        assert_eq!(
            spread.idle_until(told_later, MIDDLE),
            Some(now + 4 * second)
        );
        assert_eq!(
            spread.idle_until(now + 9 * second, LATE),
            Some(now + 9 * second)
        );
        assert!(!spread.closes_active(now + second, EARLY));
        assert!(spread.closes_active(told_later + second, MIDDLE));
        assert!(!spread.closes_active(told_later + second, LATE));
        assert!(spread.closes_active(now + 5 * second, LATE));

        let never = process(Some(CloseSpread::Never));
        assert!(!never.closes_at_once() && !never.closes_active(now + 99 * second, LATE));
        assert_eq!(never.idle_until(now, EARLY), None);
    }

    #[test]
    fn the_rate_of_bytes_is_looked_at_once_a_second() {
        let process = Process::new(1, 10);
        process.sent.lock().unwrap().at_ms = 1;
        assert_eq!(process.bytes_out_per_second(500), 0, "too early to tell");
        let long_ago = SentBytes::default();
        *process.sent.lock().unwrap() = long_ago;
        assert_eq!(process.bytes_out_per_second(500), 500);
        // A total that went down was cleared: that is no traffic.
        *process.sent.lock().unwrap() = SentBytes {
            bytes: 900,
            ..long_ago
        };
        assert_eq!(process.bytes_out_per_second(100), 0);
    }
}
