//! Counts: one tally per thread, added up at the end.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use crate::failure::{Failure, FailureClass};
use crate::h2::H2Tally;
use crate::histogram::Histogram;
use crate::longest::Longest;
use crate::marks::Mark;
use crate::series::{FailureCounts, Series, ThreadSeries};
use crate::tls::{Handshake, TlsTally};
use crate::wakeup::WakeupDelays;

/// How many of the first failures are kept with their texts.
pub(crate) const FIRST_FAILURE_COUNT_MAX: usize = 1000;
/// The maximum number of intervals of the timeline; later ones are added to the last.
const INTERVAL_COUNT_MAX: usize = 1_000_000;
/// Statuses have three digits.
const STATUS_COUNT: usize = 1000;

/// A failure, with its time and connection.
#[derive(Clone, Debug)]
pub(crate) struct FailureRecord {
    /// Since the start of the run; zero for failures before it.
    pub(crate) at: Duration,
    pub(crate) place: Place,
    pub(crate) failure: Failure,
}

/// One interval of the timeline.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct IntervalCounts {
    pub(crate) done: u64,
    pub(crate) failed: u64,
    pub(crate) latency_max: Duration,
}

/// The counts of one URL.
#[derive(Clone, Debug, Default)]
pub(crate) struct UrlTally {
    pub(crate) ok: u64,
    pub(crate) failures: FailureCounts,
    /// As in the latencies of the whole run.
    pub(crate) latency: Histogram,
}

impl UrlTally {
    fn add(&mut self, other: &Self) {
        self.ok += other.ok;
        for (mine, theirs) in self.failures.iter_mut().zip(other.failures) {
            *mine += theirs;
        }
        self.latency.add(&other.latency);
    }
}

/// Where something happened.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Place {
    /// The number of the connection.
    pub(crate) connection: usize,
    /// Its local port, if it was open.
    pub(crate) port: Option<u16>,
    /// The number of the URL, if one was asked for.
    pub(crate) url: Option<usize>,
}

/// Everything that a run counts.
#[derive(Debug)]
pub(crate) struct Tally {
    /// Requests with the expected response; echoes that arrived.
    pub(crate) ok: u64,
    /// Failures, in the order of [`FailureClass::ALL`].
    pub(crate) failures: FailureCounts,
    /// The first ones, in order of time.
    pub(crate) first: Vec<FailureRecord>,
    /// Requests that were sent again because their kept connection had been closed.
    pub(crate) retried: u64,
    /// Requests that were started.
    pub(crate) requests_started: u64,
    /// Requests that were due but never started.
    pub(crate) unsent: u64,
    /// Connections that were opened.
    pub(crate) opened: u64,
    pub(crate) received_bytes: u64,
    pub(crate) statuses: Vec<u64>,
    /// From the time when a request was due to the end of its response, or to its timeout.
    pub(crate) latency: Histogram,
    /// From sending a request to the end of its response, or to its timeout.
    pub(crate) from_sending: Histogram,
    /// The longest of `latency`.
    pub(crate) slowest: Longest,
    /// How long connecting took.
    pub(crate) connect: Histogram,
    /// By the number of the URL.
    pub(crate) urls: Vec<UrlTally>,
    /// What happened when, for who shows it meanwhile.
    series: Option<Arc<ThreadSeries>>,
    pub(crate) timeline: Vec<IntervalCounts>,
    /// The length of an interval of the timeline, if there is one.
    interval: Option<Duration>,
    /// When the run started, by the wall clock.
    pub(crate) started_at: Option<SystemTime>,
    /// When the last request ended, since the start.
    pub(crate) length: Duration,
    /// Processor time of the generator.
    pub(crate) cpu: Duration,
    /// WebSockets that were open at the end.
    pub(crate) alive: u64,
    /// How WebSockets ended before it.
    pub(crate) ends: BTreeMap<String, u64>,
    /// Handshakes, and how TLS failed.
    pub(crate) tls: TlsTally,
    /// What only HTTP/2 has.
    pub(crate) h2: H2Tally,
    /// What happened when, of the whole run.
    pub(crate) points: Series,
    /// What others did meanwhile.
    pub(crate) marks: Vec<Mark>,
    /// How late the wakeup probe woke in the same time.
    pub(crate) wakeup_delays: WakeupDelays,
}

impl Tally {
    pub(crate) fn new(interval: Option<Duration>) -> Self {
        Self {
            ok: 0,
            failures: [0; FailureClass::ALL.len()],
            first: Vec::new(),
            retried: 0,
            requests_started: 0,
            unsent: 0,
            opened: 0,
            received_bytes: 0,
            statuses: vec![0; STATUS_COUNT],
            latency: Histogram::default(),
            from_sending: Histogram::default(),
            slowest: Longest::default(),
            connect: Histogram::default(),
            urls: Vec::new(),
            series: None,
            timeline: Vec::new(),
            interval,
            started_at: None,
            length: Duration::ZERO,
            cpu: Duration::ZERO,
            alive: 0,
            ends: BTreeMap::new(),
            tls: TlsTally::default(),
            h2: H2Tally::default(),
            points: Series::default(),
            marks: Vec::new(),
            wakeup_delays: WakeupDelays::default(),
        }
    }

    /// All failures.
    pub(crate) fn failed(&self) -> u64 {
        self.failures.iter().sum()
    }

    /// Counts a response's status.
    pub(crate) fn status(&mut self, status: u16) {
        if let Some(count) = self.statuses.get_mut(usize::from(status)) {
            *count += 1;
        }
    }

    /// Counts a connection that was opened, and its handshake, if it has one.
    pub(crate) fn open(&mut self, connecting: Duration, handshake: Option<&Handshake>) {
        self.opened += 1;
        self.connect.record(connecting);
        if let Some(handshake) = handshake {
            self.tls.count(handshake);
        }
    }

    /// The counts of one thread, which others may follow.
    pub(crate) fn of_thread(
        interval: Option<Duration>,
        urls: usize,
        series: Arc<ThreadSeries>,
    ) -> Self {
        Self {
            urls: vec![UrlTally::default(); urls],
            series: Some(series),
            ..Self::new(interval)
        }
    }

    /// Counts a success that ended at `at`.
    pub(crate) fn count_success(&mut self, at: Duration, place: Place, latency: Duration) {
        self.ok += 1;
        self.length = self.length.max(at);
        self.measure(at, place, latency);
        if let Some(url) = self.url(place) {
            url.ok += 1;
        }
        if let Some(interval) = self.interval_at(at) {
            interval.done += 1;
            interval.latency_max = interval.latency_max.max(latency);
        }
        if let Some(series) = &self.series {
            series.update(at, |interval| {
                interval.ok += 1;
                interval.latency.record(latency);
            });
        }
    }

    fn measure(&mut self, at: Duration, place: Place, latency: Duration) {
        self.latency.record(latency);
        self.slowest.note(at, place.connection, latency);
        if let Some(url) = self.url(place) {
            url.latency.record(latency);
        }
    }

    fn url(&mut self, place: Place) -> Option<&mut UrlTally> {
        self.urls.get_mut(place.url?)
    }

    /// Counts a failure at `at`; its latency, too, where leaving it out would hide slow requests.
    pub(crate) fn fail(
        &mut self,
        at: Duration,
        place: Place,
        latency: Option<Duration>,
        failure: Failure,
    ) {
        let class = failure.class as usize;
        self.failures[class] += 1;
        if let Some(latency) = latency {
            self.measure(at, place, latency);
        }
        if let Some(url) = self.url(place) {
            url.failures[class] += 1;
        }
        if let Some(series) = &self.series {
            series.update(at, |interval| {
                interval.failures[class] += 1;
                latency.inspect(|latency| interval.latency.record(*latency));
            });
        }
        if let Some(alert) = failure.alert {
            *self.tls.alerts.entry(alert).or_default() += 1;
        }
        self.length = self.length.max(at);
        if let Some(interval) = self.interval_at(at) {
            interval.failed += 1;
        }
        if self.first.len() < FIRST_FAILURE_COUNT_MAX {
            self.first.push(FailureRecord { at, place, failure });
        }
    }

    /// Adds the counts of another thread.
    pub(crate) fn add(&mut self, other: Self) {
        self.ok += other.ok;
        for (mine, theirs) in self.failures.iter_mut().zip(other.failures) {
            *mine += theirs;
        }
        self.first.extend(other.first);
        self.first.sort_by_key(|failure| failure.at);
        self.first.truncate(FIRST_FAILURE_COUNT_MAX);
        self.retried += other.retried;
        self.requests_started += other.requests_started;
        self.unsent += other.unsent;
        self.opened += other.opened;
        self.received_bytes += other.received_bytes;
        for (mine, theirs) in self.statuses.iter_mut().zip(other.statuses) {
            *mine += theirs;
        }
        self.latency.add(&other.latency);
        self.from_sending.add(&other.from_sending);
        self.slowest.add(&other.slowest);
        self.connect.add(&other.connect);
        let urls = self.urls.len().max(other.urls.len());
        self.urls.resize(urls, UrlTally::default());
        for (mine, theirs) in self.urls.iter_mut().zip(&other.urls) {
            mine.add(theirs);
        }
        let length = self.timeline.len().max(other.timeline.len());
        self.timeline.resize(length, IntervalCounts::default());
        for (mine, theirs) in self.timeline.iter_mut().zip(other.timeline) {
            mine.done += theirs.done;
            mine.failed += theirs.failed;
            mine.latency_max = mine.latency_max.max(theirs.latency_max);
        }
        self.length = self.length.max(other.length);
        self.cpu += other.cpu;
        self.alive += other.alive;
        for (end, count) in other.ends {
            *self.ends.entry(end).or_default() += count;
        }
        self.tls.add(other.tls);
        self.h2.add(other.h2);
    }

    fn interval_at(&mut self, at: Duration) -> Option<&mut IntervalCounts> {
        let number = at.as_nanos() / self.interval?.as_nanos().max(1);
        let number = usize::try_from(number)
            .unwrap_or(usize::MAX)
            .min(INTERVAL_COUNT_MAX - 1);
        if number >= self.timeline.len() {
            self.timeline.resize(number + 1, IntervalCounts::default());
        }
        self.timeline.get_mut(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn the_first_failures_of_all_threads_are_kept_in_order_of_time() {
        let (mut all, mut other) = (Tally::new(None), Tally::new(None));
        for number in 0..FIRST_FAILURE_COUNT_MAX as u32 {
            let failure = Failure::new(FailureClass::Reset, "");
            all.fail(MS * (2 * number), Place::default(), None, failure.clone());
            other.fail(MS * (2 * number + 1), Place::default(), None, failure);
        }
        all.add(other);
        assert_eq!(all.failed(), 2000);
        assert_eq!(all.failures[FailureClass::Reset as usize], 2000);
        let at: Vec<Duration> = all.first.iter().map(|failure| failure.at).collect();
        let expected: Vec<Duration> = (0..1000).map(|number| MS * number).collect();
        assert_eq!(at, expected);
    }

    #[test]
    fn intervals_of_all_threads_are_added() {
        let mut all = Tally::new(Some(MS * 10));
        all.count_success(MS * 25, Place::default(), MS);
        let mut other = Tally::new(Some(MS * 10));
        other.count_success(MS * 29, Place::default(), MS * 3);
        let failure = Failure::new(FailureClass::Timeout, "");
        other.fail(MS * 39, Place::default(), None, failure);
        all.add(other);
        let interval = |done, failed, latency_max| IntervalCounts {
            done,
            failed,
            latency_max,
        };
        assert_eq!(all.length, MS * 39);
        assert_eq!(
            all.timeline,
            [
                interval(0, 0, Duration::ZERO),
                interval(0, 0, Duration::ZERO),
                interval(2, 0, MS * 3),
                interval(0, 1, Duration::ZERO),
            ]
        );
    }
}
