//! Limits of logging.

use std::time::Duration;

/// Bytes of lines that may wait for one sink in one worker's queue.
pub const QUEUED_BYTES_MAX: usize = 1 << 20;

/// Lines that may wait in one worker's queue, for all sinks together.
pub const QUEUED_LINES_MAX: usize = 32_768;

/// Bytes that a sink keeps while it cannot send.
pub const PENDING_BYTES_MAX: usize = 1 << 20;

/// Buffers that have grown beyond this size are freed when they are empty.
pub(crate) const KEPT_BYTES_MAX: usize = 256 * 1024;

/// How long the thread pauses between two rounds while lines keep coming: the longest time a line
/// waits, and the reason why one wake-up serves many lines.
pub const ROUND_PAUSE: Duration = Duration::from_millis(4);

/// With this many lines in one worker's queue the thread does not pause: a collector's socket
/// buffer would overflow with a larger burst, and the loss would not be counted (the usual 208 kB
/// hold fewer than 300 datagrams).
pub(crate) const NO_PAUSE_LINES: usize = 64;

/// Pause between two attempts of a sink that sends some lines but not all.
pub(crate) const SLOW_SINK_PAUSE: Duration = Duration::from_millis(1);

/// The longest pause between two attempts of a sink that makes no progress.
pub(crate) const STUCK_SINK_PAUSE_MAX: Duration = Duration::from_millis(64);

/// After this many failures in a row a sink drops what it holds.
pub(crate) const FAILURES_IN_A_ROW_MAX: u32 = 8;

/// The largest write to a descriptor when it is more than one line: a pipe writes that much
/// atomically (PIPE_BUF), so that lines of several processes do not mix.
pub(crate) const WRITE_BYTES_MAX: usize = 4096;

/// The allowed range of a target's line length, in bytes.
pub const LINE_BYTES_RANGE: std::ops::RangeInclusive<u32> = 80..=65_535;
