//! What bounds the way of a log line.

use std::time::Duration;

/// Bytes of lines for one sink that wait in one worker's queue at most.
pub const QUEUED_BYTES_MAX: usize = 1 << 20;

/// Lines that wait in one worker's queue at most, for all sinks together.
pub const QUEUED_LINES_MAX: usize = 32_768;

/// Bytes that a sink which cannot send at the moment keeps at most.
pub const PENDING_BYTES_MAX: usize = 1 << 20;

/// Buffers that have grown beyond this are given back when they are empty.
pub(crate) const KEPT_BYTES_MAX: usize = 256 * 1024;

/// How long the thread rests between two rounds while lines keep coming: the
/// longest a line waits, and what makes one wake-up serve many lines.
pub const REST: Duration = Duration::from_millis(4);

/// Lines in one worker's queue at which the thread is not left to rest: a burst
/// of datagrams larger than a collector's socket buffer would be lost there,
/// where nobody counts (the usual 208 kB hold fewer than 300).
pub(crate) const HURRY_LINES: usize = 64;

/// How long it rests between two tries of a sink that takes some lines but not
/// all.
pub(crate) const SLOW_REST: Duration = Duration::from_millis(1);

/// How long it rests at most between two tries of a sink that makes no
/// progress.
pub(crate) const STUCK_REST_MAX: Duration = Duration::from_millis(64);

/// Failures in a row after which a sink gives up what it holds.
pub(crate) const FAILURES_IN_A_ROW_MAX: u32 = 8;

/// Bytes written to a descriptor in one call at most, if more than one line:
/// a pipe takes that much whole (PIPE_BUF), so that lines of several processes
/// do not mix.
pub(crate) const WRITE_BYTES_MAX: usize = 4096;

/// The shortest and longest bounds of a line that a target may have, in bytes.
pub const LINE_BYTES_RANGE: std::ops::RangeInclusive<u32> = 80..=65_535;
