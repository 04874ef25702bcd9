//! The dynamic table (RFC 7541 sections 2.3.2 and 4).
//!
//! Names and values stand one after the other in a ring of bytes, oldest first; the entries are a
//! ring of positions. An entry never wraps, so that it can be lent as two slices: when the end of
//! the memory is reached, the live bytes move to its start. The memory is twice the table's size:
//! a move copies at most as much as was added since the last one.

use std::collections::VecDeque;

use super::static_table::{self, STATIC_COUNT};

/// What each entry costs besides its bytes (section 4.1).
pub(crate) const ENTRY_EXTRA_BYTES: usize = 32;

#[derive(Clone, Copy, Debug)]
struct Entry {
    start: u32,
    name_bytes: u32,
    value_bytes: u32,
}

impl Entry {
    fn bytes(self) -> usize {
        (self.name_bytes + self.value_bytes) as usize
    }
}

/// The name of a field that is being added: one from a table, or a new one.
#[derive(Clone, Copy, Debug)]
pub(crate) enum EntryName<'a> {
    /// The name of this entry of the combined index.
    Indexed(usize),
    /// This name.
    New(&'a [u8]),
}

/// A dynamic table.
#[derive(Debug, Default)]
pub(crate) struct DynamicTable {
    bytes: Vec<u8>,
    /// The oldest first.
    entries: VecDeque<Entry>,
    /// Size of all entries (section 4.1).
    size: usize,
    size_max: usize,
    added: u32,
}

impl DynamicTable {
    /// An empty table; nothing is allocated before the first entry.
    pub(crate) fn new(size_max: usize) -> DynamicTable {
        DynamicTable {
            size_max,
            ..DynamicTable::default()
        }
    }

    pub(crate) fn size_max(&self) -> usize {
        self.size_max
    }

    #[cfg(test)]
    pub(crate) fn size(&self) -> usize {
        self.size
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Changes the size, and evicts what does not fit any more (section 4.3).
    pub(crate) fn resize(&mut self, size_max: usize) {
        self.size_max = size_max;
        self.evict(size_max);
        if self.entries.is_empty() {
            // A smaller table keeps no larger memory.
            self.bytes = Vec::new();
        }
    }

    /// Name and value of an entry; 0 is the newest.
    #[inline]
    pub(crate) fn entry(&self, at: usize) -> Option<(&[u8], &[u8])> {
        let place = self.entries.len().checked_sub(at + 1)?;
        let entry = self.entries.get(place)?;
        let bytes = self
            .bytes
            .get(entry.start as usize..)?
            .get(..entry.bytes())?;
        bytes.split_at_checked(entry.name_bytes as usize)
    }

    /// Name and value of an entry of the combined index: the static table, then this one (section
    /// 2.3.3).
    #[inline]
    pub(crate) fn indexed(&self, index: usize) -> Option<(&[u8], &[u8])> {
        if index <= STATIC_COUNT {
            return static_table::entry(index);
        }
        self.entry(index - STATIC_COUNT - 1)
    }

    /// How many entries were ever added: the newest has this number. It wraps.
    pub(crate) fn added(&self) -> u32 {
        self.added
    }

    /// The place, counted from the newest, of the entry with this number, if it is still there and
    /// has this name and value.
    pub(crate) fn place_of(&self, number: u32, name: &[u8], value: &[u8]) -> Option<usize> {
        let place = self.added.wrapping_sub(number) as usize;
        (self.entry(place)? == (name, value)).then_some(place)
    }

    /// Adds an entry. One that is larger than the table empties it (section 4.4).
    pub(crate) fn insert(&mut self, name: EntryName<'_>, value: &[u8]) {
        let name_bytes = match name {
            EntryName::New(name) => name.len(),
            EntryName::Indexed(index) => self.indexed(index).map_or(0, |(name, _)| name.len()),
        };
        let needed = name_bytes + value.len();
        if needed + ENTRY_EXTRA_BYTES > self.size_max {
            self.evict(0);
            return;
        }
        // The name may be that of an entry which is evicted now: it is copied first.
        self.make_room(needed);
        let start = self.bytes.len();
        self.append_name(name);
        self.bytes.extend_from_slice(value);
        self.evict(self.size_max - needed - ENTRY_EXTRA_BYTES);
        let small = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        self.entries.push_back(Entry {
            start: small(start),
            name_bytes: small(name_bytes),
            value_bytes: small(value.len()),
        });
        self.size += needed + ENTRY_EXTRA_BYTES;
        self.added = self.added.wrapping_add(1);
    }

    fn append_name(&mut self, name: EntryName<'_>) {
        match name {
            EntryName::New(name) => self.bytes.extend_from_slice(name),
            EntryName::Indexed(index) if index <= STATIC_COUNT => {
                let (name, _) = static_table::entry(index).unwrap_or_default();
                self.bytes.extend_from_slice(name);
            }
            EntryName::Indexed(index) => {
                let place = self.entries.len().checked_sub(index - STATIC_COUNT);
                if let Some(entry) = place.and_then(|place| self.entries.get(place)) {
                    let start = entry.start as usize;
                    self.bytes
                        .extend_from_within(start..start + entry.name_bytes as usize);
                }
            }
        }
    }

    /// Moves the live bytes to the start of the memory if these would pass its end.
    fn make_room(&mut self, needed: usize) {
        // An entry is added before others are evicted: for a moment there are more bytes than the
        // table's size.
        let bytes_max = 2 * self.size_max;
        let used = self.bytes.len() + needed;
        if used <= bytes_max {
            if used > self.bytes.capacity() {
                // Small at first: many connections send few fields.
                let grown = (2 * self.bytes.capacity()).clamp(512.min(bytes_max), bytes_max);
                self.bytes.reserve_exact(grown.max(used) - self.bytes.len());
            }
            return;
        }
        let live = self
            .entries
            .front()
            .map_or(self.bytes.len(), |entry| entry.start as usize);
        self.bytes.copy_within(live.., 0);
        self.bytes.truncate(self.bytes.len() - live);
        let moved = u32::try_from(live).unwrap_or(0);
        for entry in &mut self.entries {
            entry.start -= moved;
        }
    }

    /// Removes the oldest entries until the size is at most `size_max`.
    fn evict(&mut self, size_max: usize) {
        while self.size > size_max {
            let Some(entry) = self.entries.pop_front() else {
                debug_assert!(false, "a table without entries has no size");
                self.size = 0;
                return;
            };
            self.size -= entry.bytes() + ENTRY_EXTRA_BYTES;
        }
        if self.entries.is_empty() && size_max == 0 {
            self.bytes.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(table: &DynamicTable) -> Vec<String> {
        (0..table.len())
            .map(|at| String::from_utf8_lossy(table.entry(at).unwrap().0).into_owned())
            .collect()
    }

    #[test]
    fn the_oldest_leave_first() {
        let mut table = DynamicTable::new(3 * 34);
        for name in ["a", "b", "c", "d"] {
            table.insert(EntryName::New(name.as_bytes()), b"1");
        }
        assert_eq!(names(&table), ["d", "c", "b"]);
        assert_eq!(table.size(), 102);
        table.resize(70);
        assert_eq!(names(&table), ["d", "c"]);
        table.insert(EntryName::New(b"e"), &[b'x'; 64]);
        assert_eq!(names(&table), [] as [&str; 0]);
        assert_eq!(table.size(), 0);
    }

    #[test]
    fn a_name_may_be_taken_from_the_entry_that_leaves() {
        let mut table = DynamicTable::new(40);
        table.insert(EntryName::New(b"abc"), b"1");
        table.insert(EntryName::Indexed(62), b"22");
        assert_eq!(table.entry(0), Some((&b"abc"[..], &b"22"[..])));
        assert_eq!(table.len(), 1);
    }

    #[test]
    fn the_memory_is_bounded_however_many_entries_pass() {
        let mut table = DynamicTable::new(4096);
        for round in 0..10_000_u32 {
            let value = vec![b'v'; (round % 700) as usize];
            table.insert(EntryName::New(&round.to_be_bytes()), &value);
            let newest = table.entry(0).unwrap();
            assert_eq!(newest, (&round.to_be_bytes()[..], &value[..]));
            assert!(table.size() <= 4096);
            assert!(table.bytes.capacity() <= 8192, "{}", table.bytes.capacity());
        }
    }
}
