//! Wall-clock dates in the machine's time zone, and a cheap coarse clock.

use rustix::time::{ClockId, clock_gettime};

/// A local date and time.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct LocalTime {
    /// Such as 2025.
    pub year: i32,
    /// 1 to 12.
    pub month: u8,
    /// 1 to 31.
    pub day: u8,
    /// 0 to 23.
    pub hour: u8,
    /// 0 to 59.
    pub minute: u8,
    /// 0 to 60.
    pub second: u8,
    /// 0 is Sunday.
    pub weekday: u8,
    /// East of UTC, seconds.
    pub utc_offset_s: i32,
}

/// The local date and time (TZ or /etc/localtime) of a moment, for log dates. `unix_s` is seconds
/// since 1970 UTC.
#[expect(unsafe_code, reason = "localtime_r fills a structure")]
pub fn local_time(unix_s: i64) -> LocalTime {
    let time: libc::time_t = unix_s;
    // SAFETY: `tm` holds integers and a pointer that may be null: all zeroes is a valid value.
    let mut tm: libc::tm = unsafe { std::mem::zeroed() };
    // SAFETY: both pointers are to our own live values. The environment may be read for TZ;
    // changing it while threads run would need unsafe code, which only this crate may contain, and
    // it does not.
    let answer = unsafe { libc::localtime_r(&raw const time, &raw mut tm) };
    if answer.is_null() {
        // The year does not fit in an int: no clock shows such a time.
        return LocalTime {
            year: 1970,
            month: 1,
            day: 1,
            weekday: 4,
            ..LocalTime::default()
        };
    }
    let small = |n: libc::c_int| u8::try_from(n).unwrap_or(0);
    LocalTime {
        year: tm.tm_year.saturating_add(1900),
        month: small(tm.tm_mon) + 1,
        day: small(tm.tm_mday),
        hour: small(tm.tm_hour),
        minute: small(tm.tm_min),
        second: small(tm.tm_sec),
        weekday: small(tm.tm_wday),
        utc_offset_s: i32::try_from(tm.tm_gmtoff).unwrap_or(0),
    }
}

/// Milliseconds of the monotonic clock at the last kernel tick (1 to 10 ms ago): for ages and
/// rates, much cheaper than the precise clock.
pub fn coarse_ms() -> u64 {
    let now = clock_gettime(ClockId::MonotonicCoarse);
    let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
    let nanoseconds = u64::try_from(now.tv_nsec).unwrap_or(0);
    seconds * 1000 + nanoseconds / 1_000_000
}

/// Microseconds of the monotonic clock of the machine (CLOCK_MONOTONIC): the same in every process.
pub fn monotonic_us() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    seconds * 1_000_000 + u64::try_from(time.tv_nsec).unwrap_or(0) / 1000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_known_moment_whatever_the_zone() {
        // 2009-02-13 23:31:30 UTC.
        let time = local_time(1_234_567_890);
        let minutes = i32::from(time.hour) * 60 + i32::from(time.minute);
        let utc = (minutes - time.utc_offset_s / 60).rem_euclid(24 * 60);
        assert_eq!((utc / 60, utc % 60, time.second), (23, 31, 30));
        assert_eq!((time.year, time.month), (2009, 2));
        assert!((13..=14).contains(&time.day));
        assert_eq!(local_time(i64::MAX).year, 1970);
    }

    #[test]
    fn the_coarse_clock_never_goes_back() {
        let first = coarse_ms();
        assert!(first > 0);
        assert!(coarse_ms() >= first);
    }
}
