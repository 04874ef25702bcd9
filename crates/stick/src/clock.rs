//! Milliseconds of a steady clock that wraps.

/// How far a worker's clock may be behind that of the worker that wrote last.
const FUTURE_MS_MAX: u32 = 60_000;

/// Milliseconds since a moment; one in the future is now.
pub(crate) fn age_ms(then_ms: u32, now_ms: u32) -> u32 {
    let age = now_ms.wrapping_sub(then_ms);
    if age > u32::MAX - FUTURE_MS_MAX {
        0
    } else {
        age
    }
}
