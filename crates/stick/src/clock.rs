//! Milliseconds of a steady clock that wraps after 49.7 days.
//!
//! The table's cleaning looks at every entry at least every [`SWEEP_PERIOD_MS`], so that what is
//! older than the clock can tell does not come back as new.

/// Workers' clocks differ by less than this. What seems to be older than the clock's range without
/// it is in the future: a worker's clock may be behind that of the worker that wrote last.
const SKEW_MS_MAX: u32 = 60_000;

/// An entry's time is not kept as longer ago than this, the longest `expire`.
pub(crate) const IDLE_MS_MAX: u32 = i32::MAX as u32;

/// The events of a rate that began longer ago than this are forgotten (45 days). The rest of the
/// clock's range is for the time until the next sweep.
pub(crate) const RATE_AGE_MS_MAX: u32 = 45 * 86_400_000;

/// How long after one sweep through all entries the next one begins: a day.
pub(crate) const SWEEP_PERIOD_MS: u32 = 86_400_000;

/// Milliseconds since a moment; one in the future is now.
pub(crate) fn age_ms(then_ms: u32, now_ms: u32) -> u32 {
    let age = now_ms.wrapping_sub(then_ms);
    if age > u32::MAX - SKEW_MS_MAX { 0 } else { age }
}
