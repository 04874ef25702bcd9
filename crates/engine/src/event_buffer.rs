//! The last events of the process: what `debug` converters were given. `show events buf0` shows them.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

/// The most bytes that events may take; the oldest go first. It is the size of HAProxy's `buf0`.
const EVENT_BYTES_MAX: usize = 1 << 20;

/// The most bytes of one event; what is longer is cut.
const ONE_EVENT_BYTES_MAX: usize = 16 * 1024;

/// Events by their numbers, the oldest of which are forgotten. No memory is taken before the first.
#[derive(Debug, Default)]
pub struct EventBuffer {
    events: Mutex<Events>,
}

#[derive(Debug, Default)]
struct Events {
    bytes: VecDeque<u8>,
    /// Length and time of each.
    entries: VecDeque<(usize, u64)>,
    /// The number of the oldest.
    first: u64,
}

impl EventBuffer {
    /// Adds an event that happens now.
    pub fn add(&self, text: &[u8]) {
        let now = SystemTime::now();
        let now = now.duration_since(UNIX_EPOCH).unwrap_or_default();
        let now_us = u64::try_from(now.as_micros()).unwrap_or(u64::MAX);
        let text = &text[..text.len().min(ONE_EVENT_BYTES_MAX)];
        let mut events = self.lock();
        while events.bytes.len() + text.len() > EVENT_BYTES_MAX {
            events.forget_oldest();
        }
        events.bytes.extend(text);
        events.entries.push_back((text.len(), now_us));
    }

    /// The number that the next event will have.
    pub fn next_number(&self) -> u64 {
        let events = self.lock();
        events.first + events.entries.len() as u64
    }

    /// Gives `take` the events from a number on, with their times in microseconds since 1970, as long
    /// as it asks for more. Returns the number of the first that was not given. It is for reports:
    /// events before the number are counted through.
    pub fn read(&self, from: u64, mut take: impl FnMut(u64, &[u8]) -> bool) -> u64 {
        let mut events = self.lock();
        events.bytes.make_contiguous();
        let (bytes, _) = events.bytes.as_slices();
        let (mut number, mut at) = (events.first, 0);
        for (length, time_us) in &events.entries {
            let text = &bytes[at..at + length];
            at += length;
            if number >= from && !take(*time_us, text) {
                return number + 1;
            }
            number += 1;
        }
        number
    }

    fn lock(&self) -> MutexGuard<'_, Events> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Events {
    fn forget_oldest(&mut self) {
        if let Some((length, _)) = self.entries.pop_front() {
            self.bytes.drain(..length);
            self.first += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(buffer: &EventBuffer, from: u64) -> Vec<String> {
        let mut texts = Vec::new();
        buffer.read(from, |_, text| {
            texts.push(String::from_utf8_lossy(text).into_owned());
            true
        });
        texts
    }

    #[test]
    fn events_are_read_from_any_number_on() {
        let buffer = EventBuffer::default();
        assert_eq!(buffer.next_number(), 0);
        for name in ["a", "b", "c"] {
            buffer.add(name.as_bytes());
        }
        assert_eq!(all(&buffer, 0), ["a", "b", "c"]);
        assert_eq!(all(&buffer, 2), ["c"]);
        assert_eq!(buffer.next_number(), 3);
        let mut seen = 0;
        let next = buffer.read(0, |_, _| {
            seen += 1;
            seen < 2
        });
        assert_eq!((seen, next), (2, 2));
    }

    #[test]
    fn the_oldest_events_go_when_it_is_full() {
        let buffer = EventBuffer::default();
        let long = vec![b'x'; ONE_EVENT_BYTES_MAX + 1];
        let count = EVENT_BYTES_MAX / ONE_EVENT_BYTES_MAX + 3;
        for _ in 0..count {
            buffer.add(&long);
        }
        let kept = all(&buffer, 0);
        assert_eq!(kept.len(), EVENT_BYTES_MAX / ONE_EVENT_BYTES_MAX);
        assert!(kept.iter().all(|text| text.len() == ONE_EVENT_BYTES_MAX));
        assert_eq!(buffer.next_number(), count as u64);
        assert_eq!(all(&buffer, count as u64 - 1).len(), 1);
    }
}
