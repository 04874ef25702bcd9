//! Header fields in their order, stored in one arena.
//!
//! The arena also holds the parts of the start line of the same head, so that a head is one
//! allocation. Replacing a value appends the new one and abandons the old; abandoned bytes are
//! removed when the arena would exceed twice the head's limit.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use crate::check::HeadText;
use crate::field_name::{FieldName, NO_NAME_NUMBER, WantedName, name_number};
use crate::limits::HeadLimits;
use crate::values::{CommaValues, comma_values};
use crate::words::{is_equal, make_lower};

/// The head would exceed its [`HeadLimits`]; it is unchanged.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct NoRoom;

impl fmt::Display for NoRoom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the message head would pass its limit")
    }
}

impl std::error::Error for NoRoom {}

/// One field, borrowed. The name is in lower case; the value has no surrounding space.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Field<'a> {
    /// The name in lower case.
    pub name: &'a [u8],
    /// The value as received.
    pub value: &'a [u8],
}

/// A range of the arena.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct ArenaRange {
    start: u32,
    len: u32,
}

impl ArenaRange {
    pub(crate) fn len(self) -> usize {
        self.len as usize
    }

    fn range(self) -> Range<usize> {
        self.start as usize..self.start as usize + self.len as usize
    }
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    name: ArenaRange,
    value: ArenaRange,
    /// That of the name ([`name_number`]): a search compares it before the name.
    name_number: u8,
}

impl Entry {
    /// Size on the wire: name, colon, space, value, line end.
    fn wire_bytes(self) -> u32 {
        self.name.len + self.value.len + ENTRY_EXTRA_BYTES as u32
    }
}

/// Size of a field line besides name and value: colon, space, line end.
const ENTRY_EXTRA_BYTES: usize = 4;

/// The fields of a head, or a trailer section of its own.
#[derive(Clone, Debug, Default)]
pub struct Fields {
    arena: Vec<u8>,
    entries: Vec<Entry>,
    /// The parts of the start line: method and target, or reason.
    line: [ArenaRange; 2],
    /// Size of the head when written, without the version.
    wire_bytes: u32,
    /// A bit for each number of a name that was ever added: a name whose bit is missing is not there,
    /// and no search is needed. Most look-ups are for fields that are not there.
    marks: u64,
    limits: HeadLimits,
}

impl Fields {
    /// No fields; nothing is allocated before the first.
    pub fn new(limits: HeadLimits) -> Fields {
        Fields {
            limits,
            ..Fields::default()
        }
    }

    /// Removes everything and keeps the memory.
    pub fn clear(&mut self) {
        self.arena.clear();
        self.entries.clear();
        self.line = [ArenaRange::default(); 2];
        self.wire_bytes = 0;
        self.marks = 0;
    }

    /// Removes everything and frees the memory, for a connection that becomes idle.
    pub fn release(&mut self) {
        *self = Fields::new(self.limits);
    }

    /// Makes this equal to `other`, in its present memory.
    pub fn copy_from(&mut self, other: &Fields) {
        self.arena.clone_from(&other.arena);
        self.entries.clone_from(&other.entries);
        self.line = other.line;
        self.wire_bytes = other.wire_bytes;
        self.marks = other.marks;
        self.limits = other.limits;
    }

    /// The limits in force.
    pub fn limits(&self) -> HeadLimits {
        self.limits
    }

    /// Sets the limits for everything that is added from now on.
    pub fn set_limits(&mut self, limits: HeadLimits) {
        self.limits = limits;
    }

    /// The number of fields of any name.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are no fields.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Size of the head when written as HTTP/1, without the version and the status.
    pub fn wire_bytes(&self) -> usize {
        self.wire_bytes as usize
    }

    /// Size of all names and values together.
    pub fn pair_bytes(&self) -> usize {
        let line = self.line[0].len() + self.line[1].len();
        self.wire_bytes() - line - ENTRY_EXTRA_BYTES * self.entries.len()
    }

    /// Bytes in the arena, abandoned ones included.
    #[cfg(test)]
    pub(crate) fn arena_bytes(&self) -> usize {
        self.arena.len()
    }

    // === looking up ===

    /// All fields in order.
    pub fn iter(&self) -> FieldIter<'_> {
        FieldIter {
            fields: self,
            entries: self.entries.iter(),
        }
    }

    /// The field at `index`, counted from 0.
    pub fn field(&self, index: usize) -> Option<Field<'_>> {
        self.entries.get(index).map(|entry| self.view(*entry))
    }

    /// The whole values of the fields of this name (any case), in order: what `fhdr()` sees.
    pub fn find<'a>(&'a self, name: &'a [u8]) -> FieldValues<'a> {
        let wanted = WantedName::of(name);
        FieldValues {
            fields: self,
            wanted,
            entries: self.candidates(wanted).iter(),
        }
    }

    /// The whole value of the first field of this name from `index` on, or of the first of any name
    /// where `name` is empty; and the index of the next one after it.
    pub fn value_and_next(&self, name: &[u8], index: usize) -> Option<(&[u8], Option<usize>)> {
        if name.is_empty() {
            let value = self.slice(self.entries.get(index)?.value);
            return Some((value, Some(index + 1).filter(|next| *next < self.len())));
        }
        let wanted = WantedName::of(name);
        let entries = self.candidates(wanted);
        let mut left = entries.get(index..)?.iter();
        let entry = left.find(|entry| self.is_named(entry, wanted))?;
        let next = left.position(|entry| self.is_named(entry, wanted));
        let next = next.map(|_| entries.len() - left.len() - 1);
        Some((self.slice(entry.value), next))
    }

    /// The indexes of the fields of this name, in order, for [`Fields::replace_value`].
    pub fn positions<'a>(&'a self, name: &'a [u8]) -> impl DoubleEndedIterator<Item = usize> + 'a {
        let wanted = WantedName::of(name);
        let entries = self.candidates(wanted);
        (0..entries.len()).filter(move |at| self.is_named(&entries[*at], wanted))
    }

    /// The value of the first field of this name.
    pub fn first(&self, name: &[u8]) -> Option<&[u8]> {
        let wanted = WantedName::of(name);
        let mut entries = self.candidates(wanted).iter();
        let entry = entries.find(|entry| self.is_named(entry, wanted))?;
        Some(self.slice(entry.value))
    }

    /// The value of the last field of this name.
    pub fn last(&self, name: &[u8]) -> Option<&[u8]> {
        let wanted = WantedName::of(name);
        let mut entries = self.candidates(wanted).iter();
        let entry = entries.rfind(|entry| self.is_named(entry, wanted))?;
        Some(self.slice(entry.value))
    }

    /// Whether there is no field of this name, where that is known without a search. To be inlined: where
    /// the name is a constant it is one comparison.
    #[inline]
    pub(crate) fn surely_lacks(&self, name: &[u8]) -> bool {
        self.marks & (1 << name_number(name)) == 0
    }

    /// Whether there is a field of this name.
    #[inline]
    pub fn contains(&self, name: &[u8]) -> bool {
        !self.surely_lacks(name) && self.positions(name).next().is_some()
    }

    /// The number of fields (lines) of this name: `fhdr_cnt()`.
    pub fn count(&self, name: &[u8]) -> usize {
        let wanted = WantedName::of(name);
        let entries = self.candidates(wanted).iter();
        entries.filter(|entry| self.is_named(entry, wanted)).count()
    }

    /// The comma-separated members of all fields of this name, in order: what `hdr()` sees.
    pub fn values<'a>(&'a self, name: &'a [u8]) -> impl Iterator<Item = &'a [u8]> + 'a {
        self.find(name)
            .flat_map(|value| -> CommaValues<'a> { comma_values(value) })
    }

    /// The number of members in all fields of this name: `hdr_cnt()`.
    pub fn value_count(&self, name: &[u8]) -> usize {
        self.values(name).count()
    }

    /// The member that `hdr(name,occurrence)` returns: 1 is the first, -1 the last, 0 the last too
    /// (HAProxy's meaning of `hdr()` without a number).
    pub fn value_at<'a>(&'a self, name: &'a [u8], occurrence: i32) -> Option<&'a [u8]> {
        pick(occurrence, || self.values(name))
    }

    /// The line that `fhdr(name,occurrence)` returns, counted as in [`Fields::value_at`].
    pub fn line_at<'a>(&'a self, name: &'a [u8], occurrence: i32) -> Option<&'a [u8]> {
        pick(occurrence, || self.find(name))
    }

    // === changing ===

    // Each of these goes through `HeadText::escape`: whatever name and value contain, they stay one
    // field.

    /// Appends a field. The name is stored in lower case. A byte that would end the name or the
    /// line is escaped, as in `%0D`.
    pub fn add(&mut self, name: &[u8], value: &[u8]) -> Result<(), NoRoom> {
        self.insert(self.entries.len(), name, value)
    }

    /// Inserts a field before all others.
    pub fn add_front(&mut self, name: &[u8], value: &[u8]) -> Result<(), NoRoom> {
        self.insert(0, name, value)
    }

    /// Inserts a field at `index`, or at the end when there are fewer fields.
    pub fn insert(&mut self, index: usize, name: &[u8], value: &[u8]) -> Result<(), NoRoom> {
        let name = &*HeadText::Name.escape(name);
        let entry = self.append_entry(name, &HeadText::FieldValue.escape(value))?;
        if let Some(name) = self.arena.get_mut(entry.name.range()) {
            make_lower(name);
        }
        let at = index.min(self.entries.len());
        self.entries.insert(at, entry);
        Ok(())
    }

    /// As [`Fields::add`], for a name that was checked before.
    pub fn add_named(&mut self, name: &FieldName, value: &[u8]) -> Result<(), NoRoom> {
        let entry = self.append_entry(name.as_bytes(), &HeadText::FieldValue.escape(value))?;
        self.entries.push(entry);
        Ok(())
    }

    /// As [`Fields::set`], for a name that was checked before.
    pub fn set_named(&mut self, name: &FieldName, value: &[u8]) -> Result<(), NoRoom> {
        if self.candidates(WantedName::of(name.as_bytes())).is_empty() {
            return self.add_named(name, value);
        }
        self.set(name.as_bytes(), value)
    }

    /// Appends name and value, which need no escapes, as they are on the wire: so
    /// [`Fields::wire_run`] finds them.
    #[inline]
    fn append_entry(&mut self, name: &[u8], value: &[u8]) -> Result<Entry, NoRoom> {
        let bytes = name.len() + value.len() + ENTRY_EXTRA_BYTES;
        self.admit(bytes)?;
        let name_number = name_number(name);
        self.marks |= 1 << name_number;
        self.arena.reserve(bytes);
        let name = self.append(name);
        self.arena.extend_from_slice(b": ");
        let value = self.append(value);
        self.arena.extend_from_slice(b"\r\n");
        let entry = Entry {
            name,
            value,
            name_number,
        };
        self.wire_bytes += entry.wire_bytes();
        Ok(entry)
    }

    /// Replaces all fields of this name by one at the end with this value: `set-header`. On
    /// [`NoRoom`] the fields are unchanged.
    pub fn set(&mut self, name: &[u8], value: &[u8]) -> Result<(), NoRoom> {
        let value = &*HeadText::FieldValue.escape(value);
        let freed = self.bytes_of(name) as usize;
        let kept = self.wire_bytes as usize - freed;
        if kept + name.len() + value.len() + 4 > self.limits.head_bytes_max as usize {
            return Err(NoRoom);
        }
        self.remove(name);
        self.add(name, value)
    }

    /// Removes all fields of this name and returns how many there were.
    #[inline]
    pub fn remove(&mut self, name: &[u8]) -> usize {
        match self.surely_lacks(name) {
            true => 0,
            false => self.remove_among_entries(name),
        }
    }

    fn remove_among_entries(&mut self, name: &[u8]) -> usize {
        let mut positions = self.positions(name);
        match (positions.next(), positions.next()) {
            (None, _) => 0,
            (Some(only), None) => {
                drop(positions);
                usize::from(self.remove_at(only))
            }
            _ => {
                drop(positions);
                self.remove_matching(|field| field.name.eq_ignore_ascii_case(name))
            }
        }
    }

    /// Removes the field at `index`, if there is one.
    pub fn remove_at(&mut self, index: usize) -> bool {
        if index >= self.entries.len() {
            return false;
        }
        let entry = self.entries.remove(index);
        self.wire_bytes -= entry.wire_bytes();
        true
    }

    /// Removes each field for which `matches` is true and returns how many there were.
    pub fn remove_matching(&mut self, mut matches: impl FnMut(Field<'_>) -> bool) -> usize {
        let Fields {
            arena,
            entries,
            wire_bytes,
            ..
        } = self;
        let before = entries.len();
        let slice = |span: ArenaRange| arena.get(span.range()).unwrap_or_default();
        entries.retain(|entry| {
            let field = Field {
                name: slice(entry.name),
                value: slice(entry.value),
            };
            let gone = matches(field);
            if gone {
                *wire_bytes -= entry.wire_bytes();
            }
            !gone
        });
        before - entries.len()
    }

    /// Replaces the value of the field at `index`; its position and name stay. Does nothing if
    /// there is no such field.
    pub fn replace_value(&mut self, index: usize, value: &[u8]) -> Result<(), NoRoom> {
        let Some(entry) = self.entries.get(index).copied() else {
            return Ok(());
        };
        let value = &*HeadText::FieldValue.escape(value);
        self.admit_change(entry.value.len, value.len())?;
        let span = self.append(value);
        self.entries[index].value = span;
        self.wire_bytes = self.wire_bytes - entry.value.len + span.len;
        Ok(())
    }

    // === for codecs ===

    /// Adds a field by the ranges of its name and value in the head that is being received. It is
    /// empty until [`Fields::finish_received`] copies the bytes.
    ///
    /// # Errors
    /// [`NoRoom`] past [`HeadLimits::field_count_max`].
    #[inline]
    pub fn push_received(&mut self, name: Range<usize>, value: Range<usize>) -> Result<(), NoRoom> {
        if self.entries.len() + 1 >= self.limits.field_count_max as usize {
            return Err(NoRoom);
        }
        let entry = Entry {
            name: span_of(name),
            value: span_of(value),
            name_number: NO_NAME_NUMBER,
        };
        self.wire_bytes += entry.wire_bytes();
        self.entries.push(entry);
        Ok(())
    }

    /// Extends the value of the last field that was pushed by a continuation line at `more`; an
    /// empty value becomes `more`.
    pub fn extend_received(&mut self, more: Range<usize>) {
        if let Some(entry) = self.entries.last_mut() {
            let start = if entry.value.len == 0 {
                more.start
            } else {
                entry.value.start as usize
            };
            let value = span_of(start..more.end.max(start));
            self.wire_bytes = self.wire_bytes - entry.value.len + value.len;
            entry.value = value;
        }
    }

    /// Copies the bytes that the ranges pushed before refer to, and converts names to lower case.
    /// With `folded`, line ends within values become spaces (RFC 9112 section 5.2).
    ///
    /// Not limited by `head_bytes_max`: the codec has its own limit for what it receives.
    pub fn finish_received(&mut self, head: &[u8], folded: bool) {
        self.arena.clear();
        self.arena.extend_from_slice(head);
        for entry in &mut self.entries {
            if let Some(name) = self.arena.get_mut(entry.name.range()) {
                make_lower(name);
                entry.name_number = name_number(name);
                self.marks |= 1 << entry.name_number;
            }
            if folded && let Some(value) = self.arena.get_mut(entry.value.range()) {
                for byte in value
                    .iter_mut()
                    .filter(|byte| matches!(byte, b'\r' | b'\n'))
                {
                    *byte = b' ';
                }
            }
        }
    }

    /// Appends a field that a codec received by itself, as HTTP/2 has them, in the form in which it
    /// goes out over HTTP/1: [`Fields::wire_run`] finds it. The codec has checked name and value: the
    /// name is a token in lower case, the value ends no line and has no white space around it.
    ///
    /// # Errors
    /// [`NoRoom`] past [`HeadLimits::field_count_max`] or [`HeadLimits::head_bytes_max`].
    #[inline]
    pub fn append_received(&mut self, name: &[u8], value: &[u8]) -> Result<(), NoRoom> {
        debug_assert!(
            crate::check::is_field_value_lenient(value),
            "checked before"
        );
        if self.entries.len() + 1 >= self.limits.field_count_max as usize {
            return Err(NoRoom);
        }
        let entry = self.append_entry(name, value)?;
        self.entries.push(entry);
        Ok(())
    }

    /// The longest run of fields from `index` on that are in memory exactly as on the wire (name,
    /// colon, space, value, line end), and the index after it; `None` where the field at `index` is
    /// not. With this, unchanged fields are written in one go.
    pub fn wire_run(&self, index: usize) -> Option<(&[u8], usize)> {
        let entries = self.entries.get(index..)?;
        let start = entries.first()?.name.range().start;
        let mut end = start;
        let mut count = 0;
        for entry in entries {
            let (name, value) = (entry.name.range(), entry.value.range());
            let stands = name.start == end
                && name.end + 2 == value.start
                && self.arena.get(name.end..value.start) == Some(b": ")
                && self.arena.get(value.end..value.end + 2) == Some(b"\r\n");
            if !stands {
                break;
            }
            end = value.end + 2;
            count += 1;
        }
        let run = self.arena.get(start..end).filter(|run| !run.is_empty())?;
        Some((run, index + count))
    }

    // === the start line ===

    pub(crate) fn line_piece(&self, piece: usize) -> &[u8] {
        self.slice(self.line[piece])
    }

    pub(crate) fn set_line_received(&mut self, piece: usize, at: Range<usize>) {
        let span = span_of(at);
        self.wire_bytes = self.wire_bytes - self.line[piece].len + span.len;
        self.line[piece] = span;
    }

    /// Sets a part of the start line from segments, each either new bytes or a range within the
    /// present value.
    pub(crate) fn set_line(&mut self, piece: usize, parts: &[Segment<'_>]) -> Result<(), NoRoom> {
        let len = parts.iter().map(Segment::len).sum();
        let old = self.line[piece];
        self.admit_change(old.len, len)?;
        // Read after the check for room, which may have compacted the arena.
        let old = self.line[piece];
        let start = self.arena.len();
        for part in parts {
            match part {
                Segment::Kept(range) => {
                    let base = old.start as usize;
                    self.arena
                        .extend_from_within(base + range.start..base + range.end);
                }
                Segment::New(bytes) => self.arena.extend_from_slice(bytes),
            }
        }
        let span = span_of(start..start + len);
        self.wire_bytes = self.wire_bytes - old.len + span.len;
        self.line[piece] = span;
        Ok(())
    }

    /// Sets both parts of the start line, the second from segments, if no byte of them must be escaped;
    /// else nothing changes, and it returns false.
    pub(crate) fn set_clean_line(
        &mut self,
        first: &[u8],
        second: [&[u8]; 4],
    ) -> Result<bool, NoRoom> {
        let second_len: usize = second.iter().map(|part| part.len()).sum();
        let len = first.len() + second_len;
        let old = self.line[0].len + self.line[1].len;
        self.admit_change(old, len)?;
        let start = self.arena.len();
        self.arena.reserve(len);
        self.arena.extend_from_slice(first);
        for part in second {
            self.arena.extend_from_slice(part);
        }
        if !HeadText::Token.is_clean(&self.arena[start..]) {
            self.arena.truncate(start);
            return Ok(false);
        }
        let middle = start + first.len();
        self.line = [span_of(start..middle), span_of(middle..middle + second_len)];
        self.wire_bytes = self.wire_bytes - old + span_of(0..len).len;
        Ok(true)
    }

    // === the arena ===

    /// Empty for a range whose bytes are not here yet: a partly received head may be looked at.
    #[inline]
    fn slice(&self, span: ArenaRange) -> &[u8] {
        self.arena.get(span.range()).unwrap_or_default()
    }

    fn view(&self, entry: Entry) -> Field<'_> {
        Field {
            name: self.slice(entry.name),
            value: self.slice(entry.value),
        }
    }

    /// The entries that may contain this name: all, or none.
    #[inline]
    fn candidates(&self, wanted: WantedName<'_>) -> &[Entry] {
        if self.marks & (1 << wanted.number) == 0 {
            return &[];
        }
        &self.entries
    }

    #[inline]
    fn is_named(&self, entry: &Entry, wanted: WantedName<'_>) -> bool {
        entry.name_number == wanted.number
            && entry.name.len() == wanted.name.len()
            && self.is_same_name(entry, wanted.name)
    }

    #[inline]
    fn is_same_name(&self, entry: &Entry, name: &[u8]) -> bool {
        let own = self.slice(entry.name);
        // Usually the name is given in lower case and matches directly.
        is_equal(own, name) || own.eq_ignore_ascii_case(name)
    }

    fn bytes_of(&self, name: &[u8]) -> u32 {
        let wanted = WantedName::of(name);
        let entries = self.candidates(wanted).iter();
        entries
            .filter(|entry| self.is_named(entry, wanted))
            .map(|entry| entry.wire_bytes())
            .sum()
    }

    fn admit_change(&mut self, old: u32, new: usize) -> Result<(), NoRoom> {
        if new <= old as usize {
            self.make_room(new);
            return Ok(());
        }
        let grown = new - old as usize;
        if self.wire_bytes as usize + grown > self.limits.head_bytes_max as usize {
            return Err(NoRoom);
        }
        self.make_room(new);
        Ok(())
    }

    fn admit(&mut self, bytes: usize) -> Result<(), NoRoom> {
        if self.wire_bytes as usize + bytes > self.limits.head_bytes_max as usize {
            return Err(NoRoom);
        }
        self.make_room(bytes);
        Ok(())
    }

    /// Compacts the arena when appending would exceed twice the head's limit.
    fn make_room(&mut self, bytes: usize) {
        let arena_bytes_max = 2 * self.limits.head_bytes_max as usize;
        if self.arena.len() + bytes <= arena_bytes_max {
            return;
        }
        let old = std::mem::take(&mut self.arena);
        self.arena.reserve(old.len());
        let spans = self.line.iter_mut().chain(
            self.entries
                .iter_mut()
                .flat_map(|entry| [&mut entry.name, &mut entry.value]),
        );
        for span in spans {
            let start = self.arena.len();
            self.arena
                .extend_from_slice(old.get(span.range()).unwrap_or_default());
            *span = span_of(start..self.arena.len());
        }
    }

    fn append(&mut self, bytes: &[u8]) -> ArenaRange {
        let start = self.arena.len();
        self.arena.extend_from_slice(bytes);
        span_of(start..self.arena.len())
    }
}

/// A segment of a new part of the start line.
pub(crate) enum Segment<'a> {
    /// A range within the present value.
    Kept(Range<usize>),
    /// Bytes from outside, escaped.
    New(Cow<'a, [u8]>),
}

impl<'a> Segment<'a> {
    /// Bytes from outside, for this kind of part.
    pub(crate) fn new(piece: HeadText, bytes: &'a [u8]) -> Self {
        Self::New(piece.escape(bytes))
    }

    fn len(&self) -> usize {
        match self {
            Segment::Kept(range) => range.len(),
            Segment::New(bytes) => bytes.len(),
        }
    }
}

#[inline]
fn span_of(range: Range<usize>) -> ArenaRange {
    // A head is limited far below 4 GiB by `head_bytes_max`, itself a u32.
    let start = u32::try_from(range.start).expect("a head is smaller than 4 GiB");
    let len = u32::try_from(range.len()).expect("a head is smaller than 4 GiB");
    ArenaRange { start, len }
}

fn pick<'a, I: Iterator<Item = &'a [u8]>>(
    occurrence: i32,
    values: impl Fn() -> I,
) -> Option<&'a [u8]> {
    match occurrence {
        0 | -1 => values().last(),
        1.. => values().nth(usize::try_from(occurrence - 1).ok()?),
        _ => {
            let back = usize::try_from(occurrence.unsigned_abs()).ok()?;
            let count = values().count();
            values().nth(count.checked_sub(back)?)
        }
    }
}

/// Iterates over all fields. See [`Fields::iter`].
#[derive(Clone, Debug)]
pub struct FieldIter<'a> {
    fields: &'a Fields,
    entries: std::slice::Iter<'a, Entry>,
}

impl<'a> Iterator for FieldIter<'a> {
    type Item = Field<'a>;

    fn next(&mut self) -> Option<Field<'a>> {
        self.entries.next().map(|entry| self.fields.view(*entry))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.entries.size_hint()
    }
}

impl DoubleEndedIterator for FieldIter<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.entries
            .next_back()
            .map(|entry| self.fields.view(*entry))
    }
}

impl ExactSizeIterator for FieldIter<'_> {}

impl<'a> IntoIterator for &'a Fields {
    type IntoIter = FieldIter<'a>;
    type Item = Field<'a>;

    fn into_iter(self) -> FieldIter<'a> {
        self.iter()
    }
}

/// Iterates over the values of the fields of one name. See [`Fields::find`].
#[derive(Clone, Debug)]
pub struct FieldValues<'a> {
    fields: &'a Fields,
    wanted: WantedName<'a>,
    entries: std::slice::Iter<'a, Entry>,
}

impl<'a> Iterator for FieldValues<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let FieldValues {
            fields,
            wanted,
            entries,
        } = self;
        entries
            .find(|entry| fields.is_named(entry, *wanted))
            .map(|entry| fields.slice(entry.value))
    }
}

impl DoubleEndedIterator for FieldValues<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        let FieldValues {
            fields,
            wanted,
            entries,
        } = self;
        entries
            .rfind(|entry| fields.is_named(entry, *wanted))
            .map(|entry| fields.slice(entry.value))
    }
}
