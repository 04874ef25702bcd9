//! Milliseconds of a steady clock that wraps.

/// A moment that seems to be longer ago than this is in the future: a worker's clock may be behind
/// that of the worker that wrote last. The longest `expire` is half of the clock's range.
const PAST_MS_MAX: u32 = 3 << 30;

/// Milliseconds since a moment; one in the future is now.
pub(crate) fn age_ms(then_ms: u32, now_ms: u32) -> u32 {
    let age = now_ms.wrapping_sub(then_ms);
    if age > PAST_MS_MAX { 0 } else { age }
}
