//! When OCSP responses are asked for again (manual, 3.1, `ocsp-update.*`; 12.7.1, `ocsp-update`).
//! Pure: times are seconds since 1970, and chance is an argument.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// How the last update of a response went.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub enum UpdateStatus {
    /// There was none.
    #[default]
    Unknown,
    /// It was taken.
    Successful,
    /// The responder was not reached, or its answer is no successful one.
    Http,
    /// The answer is of another type.
    ContentType,
    /// The response is refused, and why.
    Refused(String),
    /// The certificate cannot be served with it, and why.
    NotInserted(String),
}

impl UpdateStatus {
    /// HAProxy's number of it.
    #[must_use]
    pub fn number(&self) -> u8 {
        match self {
            Self::Unknown => 0,
            Self::Successful => 1,
            Self::Http => 2,
            Self::ContentType => 3,
            Self::Refused(_) => 4,
            Self::NotInserted(_) => 5,
        }
    }
}

impl fmt::Display for UpdateStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown => f.write_str("Unknown"),
            Self::Successful => f.write_str("Update successful"),
            Self::Http => f.write_str("HTTP error"),
            Self::ContentType => f.write_str("Missing \"ocsp-response\" header"),
            Self::Refused(why) => write!(f, "OCSP response check failure ({why})"),
            Self::NotInserted(why) => write!(f, "Error during insertion ({why})"),
        }
    }
}

/// `ocsp-update.mindelay` and `ocsp-update.maxdelay`, in seconds.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct UpdateDelays {
    /// The shortest time between two updates.
    pub min: u32,
    /// The longest.
    pub max: u32,
}

/// A response that is kept fresh.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ScheduledUpdate {
    /// The name of the first certificate that it is for.
    pub path: String,
    /// When it is asked for next.
    pub next: i64,
    /// When it was last taken.
    pub last: Option<i64>,
    /// How many updates were taken.
    pub successes: u32,
    /// How many were not.
    pub failures: u32,
    /// How the last one went.
    pub status: UpdateStatus,
    failures_in_row: u32,
    is_under_way: bool,
}

/// The responses that are kept fresh, by the identifier of their certificate in OCSP
/// (`CertID`, DER).
#[derive(Clone, Debug, Default)]
pub struct UpdateSchedule(BTreeMap<Vec<u8>, ScheduledUpdate>);

impl UpdateSchedule {
    /// Adds a response that is first asked for at `first`. Of one that is there only `path` changes.
    pub fn add(&mut self, id: &[u8], path: &str, first: i64) {
        let row = self
            .0
            .entry(id.to_vec())
            .or_insert_with(|| ScheduledUpdate {
                next: first,
                ..ScheduledUpdate::default()
            });
        if row.path != path {
            path.clone_into(&mut row.path);
        }
    }

    /// Forgets all responses but these.
    pub fn keep(&mut self, ids: &BTreeSet<Vec<u8>>) {
        self.0.retain(|id, _| ids.contains(id));
    }

    /// The next response to ask for, the one that has waited longest. It is under way until
    /// [`Self::end`] says how it went.
    pub fn begin(&mut self, now: i64) -> Option<Vec<u8>> {
        let due = self.0.iter_mut().filter(|(_, row)| !row.is_under_way);
        let (id, row) = due.min_by_key(|(_, row)| row.next)?;
        if row.next > now {
            return None;
        }
        row.is_under_way = true;
        Some(id.clone())
    }

    /// When [`Self::begin`] has something to give.
    #[must_use]
    pub fn next(&self) -> Option<i64> {
        let idle = self.0.values().filter(|row| !row.is_under_way);
        idle.map(|row| row.next).min()
    }

    /// Notes how an update went. `until` is the end of the response's validity. `chance` is
    /// uniformly random: it moves the next request up to a tenth earlier, so that responders are not
    /// asked for everything at once.
    pub fn end(
        &mut self,
        id: &[u8],
        (now, until): (i64, Option<i64>),
        status: UpdateStatus,
        delays: UpdateDelays,
        chance: u8,
    ) -> Option<&ScheduledUpdate> {
        let row = self.0.get_mut(id)?;
        row.is_under_way = false;
        let (min, max) = (i64::from(delays.min), i64::from(delays.max));
        let delay = if status == UpdateStatus::Successful {
            row.successes += 1;
            row.failures_in_row = 0;
            row.last = Some(now);
            until.map_or(min, |until| until - now)
        } else {
            row.failures += 1;
            row.failures_in_row += 1;
            min.saturating_mul(1 << row.failures_in_row.min(16))
        };
        row.status = status;
        let delay = delay.clamp(min, max.max(min));
        // Up to a tenth earlier.
        let early = delay / 10 * i64::from(chance) / 256;
        row.next = now + (delay - early).max(min);
        Some(row)
    }

    /// All responses, the next to be asked for first.
    #[must_use]
    pub fn rows(&self) -> Vec<(&[u8], &ScheduledUpdate)> {
        let mut rows: Vec<_> = self.0.iter().map(|(id, row)| (&id[..], row)).collect();
        rows.sort_by_key(|(_, row)| row.next);
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DELAYS: UpdateDelays = UpdateDelays {
        min: 300,
        max: 3600,
    };

    fn after(status: UpdateStatus, until: Option<i64>, chance: u8) -> i64 {
        let mut schedule = UpdateSchedule::default();
        schedule.add(b"a", "a.pem", 0);
        assert_eq!(schedule.begin(5).as_deref(), Some(&b"a"[..]));
        assert_eq!((schedule.begin(5), schedule.next()), (None, None));
        let row = schedule.end(b"a", (1000, until), status, DELAYS, chance);
        row.expect("a row").next - 1000
    }

    #[test]
    fn updates_follow_the_validity_within_limits() {
        for (until, delay) in [
            (Some(1000 + 600), 600),
            (Some(1000 + 10), 300),
            (Some(1000 + 86_400), 3600),
            (None, 300),
        ] {
            assert_eq!(after(UpdateStatus::Successful, until, 0), delay);
        }
        let early = after(UpdateStatus::Successful, Some(1000 + 86_400), 255);
        assert!((3240..3600).contains(&early), "{early}");
        assert_eq!(after(UpdateStatus::Successful, None, 255), 300);
    }

    #[test]
    fn failures_wait_longer_each_time_and_successes_start_anew() {
        let mut schedule = UpdateSchedule::default();
        schedule.add(b"a", "a.pem", 0);
        let mut end = |status: UpdateStatus| {
            let row = schedule.end(b"a", (0, Some(7200)), status, DELAYS, 0);
            let row = row.expect("a row");
            (row.next, row.successes, row.failures)
        };
        let told = [0; 5].map(|_| end(UpdateStatus::Http));
        let delays = told.map(|row| row.0);
        assert_eq!(delays, [600, 1200, 2400, 3600, 3600]);
        assert_eq!(end(UpdateStatus::Successful), (3600, 1, 5));
        assert_eq!(end(UpdateStatus::ContentType), (600, 1, 6));
        for _ in 0..100 {
            end(UpdateStatus::Http);
        }
    }

    #[test]
    fn what_is_gone_is_forgotten_and_what_is_there_stays() {
        let mut schedule = UpdateSchedule::default();
        schedule.add(b"a", "a.pem", 10);
        schedule.add(b"b", "b.pem", 5);
        schedule.add(b"b", "c.pem", 50);
        assert_eq!(schedule.next(), Some(5));
        assert_eq!(schedule.rows()[0].1.path, "c.pem");
        schedule.keep(&BTreeSet::from([b"a".to_vec()]));
        assert_eq!(schedule.begin(9), None);
        assert_eq!(schedule.begin(10).as_deref(), Some(&b"a"[..]));
    }
}
