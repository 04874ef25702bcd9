//! An entry while its shard is locked: what is read and changed.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use crate::clock::age_ms;
use crate::data::{DataKind, DataType, StoredType};
use crate::key::{Key, KeyType};
use crate::layout::{DataField, HEAD_WORDS, Layout, REFERENCES, TOUCHED};
use crate::rate;
use crate::settings::SERVER_KEYS_MAX;

/// The texts of `server_key`: entries have a number. Number 0 is no text.
#[derive(Debug, Default)]
pub(crate) struct Dictionary {
    known: RwLock<KnownTexts>,
    refused: AtomicU64,
}

#[derive(Debug, Default)]
struct KnownTexts {
    texts: Vec<Arc<str>>,
    numbers: HashMap<Arc<str>, u32>,
}

impl Dictionary {
    /// The number of a text, a new one if it has none; 0 when the dictionary is full.
    fn number(&self, text: &str) -> u32 {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(number) = known.numbers.get(text) {
            return *number;
        }
        let is_full = known.texts.len() >= SERVER_KEYS_MAX;
        drop(known);
        let number = if is_full { 0 } else { self.add(text) };
        if number == 0 {
            self.refused.fetch_add(1, Ordering::Relaxed);
        }
        number
    }

    fn add(&self, text: &str) -> u32 {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        // Another worker may have added it meanwhile.
        if let Some(number) = known.numbers.get(text) {
            return *number;
        }
        if known.texts.len() >= SERVER_KEYS_MAX {
            return 0;
        }
        let number = u32::try_from(known.texts.len() + 1).unwrap_or(0);
        let text: Arc<str> = text.into();
        known.texts.push(Arc::clone(&text));
        known.numbers.insert(text, number);
        number
    }

    fn text(&self, number: u32) -> Option<Arc<str>> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        let field = usize::try_from(number.checked_sub(1)?).ok()?;
        known.texts.get(field).cloned()
    }

    /// Texts that found it full.
    pub(crate) fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }
}

/// What an entry is read with.
#[derive(Clone, Copy)]
pub(crate) struct EntryContext<'t> {
    pub(crate) layout: &'t Layout,
    pub(crate) dictionary: &'t Dictionary,
    pub(crate) expire_ms: Option<u32>,
    pub(crate) brates_factor: u32,
    pub(crate) now_ms: u32,
    pub(crate) address: u64,
}

/// An entry that is read.
#[derive(Clone, Copy)]
pub struct Entry<'t> {
    pub(crate) context: EntryContext<'t>,
    pub(crate) words: &'t [u32],
}

impl Entry<'_> {
    /// An element of a data type; `element` is 0 where the type is no array. A rate is that of
    /// now. `None` if the table does not store it; a text has no number, and is `None`, too.
    #[inline]
    pub fn get(&self, data_type: DataType, element: u16) -> Option<u64> {
        let field = self.context.layout.field(data_type, element)?;
        read(&self.context, self.data(), field)
    }

    /// The text of `server_key`; `None` where there is none.
    pub fn server_key(&self) -> Option<Arc<str>> {
        let field = self.context.layout.field(DataType::ServerKey, 0)?;
        self.context.dictionary.text(self.data()[field.offset])
    }

    /// The words of a rate: the start of its period, the count of that and of the one before.
    pub(crate) fn rate_words(&self, data_type: DataType, element: u16) -> Option<[u32; 3]> {
        let field = self.context.layout.field(data_type, element)?;
        let words = self.data().get(field.offset..field.offset + 3)?;
        words.first_chunk().copied()
    }

    /// The period of a rate, in milliseconds.
    pub fn period_ms(&self, data_type: DataType) -> Option<u32> {
        let field = self.context.layout.field(data_type, 0)?;
        Some(field.period_ms)
    }

    /// The key. Texts and blocks go through `scratch`, which is overwritten.
    pub fn key<'s>(&self, scratch: &'s mut Vec<u8>) -> Key<'s> {
        let words = &self.words[HEAD_WORDS..self.context.layout.data_offset()];
        self.context.layout.key.unpack(words, scratch)
    }

    /// Whether the key is a text, and not a block of bytes.
    pub fn has_text_key(&self) -> bool {
        matches!(self.context.layout.key, KeyType::String { .. })
    }

    /// How many [`crate::TrackedEntry`]s there are of it.
    pub fn trackers(&self) -> u32 {
        self.words[REFERENCES]
    }

    /// Milliseconds until it expires, 0 when that is past; `None` where nothing expires.
    pub fn expires_in_ms(&self) -> Option<u32> {
        let expire_ms = self.context.expire_ms?;
        Some(expire_ms.saturating_sub(self.idle_ms()))
    }

    /// Milliseconds since it was touched.
    pub fn idle_ms(&self) -> u32 {
        age_ms(self.words[TOUCHED], self.context.now_ms)
    }

    /// A number that names the entry in its table while it lives, written as a pointer is.
    pub fn address(&self) -> u64 {
        self.context.address
    }

    /// What is stored, in the order of [`DataType`].
    pub fn stored(&self) -> &[StoredType] {
        &self.context.layout.stored
    }

    fn data(&self) -> &[u32] {
        &self.words[self.context.layout.data_offset()..]
    }
}

/// An entry that may be changed.
pub struct EntryMut<'t> {
    pub(crate) context: EntryContext<'t>,
    pub(crate) words: &'t mut [u32],
}

impl EntryMut<'_> {
    /// The entry, to be read.
    pub fn as_entry(&self) -> Entry<'_> {
        Entry {
            context: self.context,
            words: self.words,
        }
    }

    /// As [`Entry::get`].
    #[inline]
    pub fn get(&self, data_type: DataType, element: u16) -> Option<u64> {
        self.as_entry().get(data_type, element)
    }

    /// Adds to a number, or counts events of a rate, and returns what it is then. Numbers stay
    /// at their maximum. Of a bytes rate `amount` is bytes.
    #[inline]
    pub fn add(&mut self, data_type: DataType, element: u16, amount: u64) -> Option<u64> {
        let (field, now_ms) = (self.field(data_type, element)?, self.context.now_ms);
        let amount = match field.data_type.is_bytes_rate() {
            true => amount.div_ceil(u64::from(self.context.brates_factor.max(1))),
            false => amount,
        };
        let small = u32::try_from(amount).unwrap_or(u32::MAX);
        let words = self.data();
        match field.data_type.kind() {
            DataKind::Number => {
                words[field.offset] = words[field.offset].saturating_add(small);
            }
            DataKind::LargeNumber => {
                let sum = large(words, field.offset).saturating_add(amount);
                set_large(words, field.offset, sum);
            }
            DataKind::Rate => {
                let words = &mut words[field.offset..field.offset + 3];
                rate::add(words, field.period_ms, now_ms, small);
            }
            DataKind::Text => return None,
        }
        self.get(data_type, element)
    }

    /// Takes from a number, to 0 at least, and returns what it is then; `None` for a rate.
    pub fn subtract(&mut self, data_type: DataType, element: u16, amount: u64) -> Option<u64> {
        let field = self.field(data_type, element)?;
        if matches!(field.data_type.kind(), DataKind::Rate | DataKind::Text) {
            return None;
        }
        let value = self.get(data_type, element)?.saturating_sub(amount);
        self.set(data_type, element, value)
    }

    /// Sets a number, or makes a rate `value` events per period now (as `set table` does: of a
    /// bytes rate, `value` is in units of `brates-factor`). Returns `value`.
    pub fn set(&mut self, data_type: DataType, element: u16, value: u64) -> Option<u64> {
        let (field, now_ms) = (self.field(data_type, element)?, self.context.now_ms);
        let small = u32::try_from(value).unwrap_or(u32::MAX);
        let words = self.data();
        match field.data_type.kind() {
            DataKind::Number => words[field.offset] = small,
            DataKind::LargeNumber => set_large(words, field.offset, value),
            DataKind::Rate => {
                rate::set(&mut words[field.offset..field.offset + 3], now_ms, small);
            }
            DataKind::Text => return None,
        }
        Some(value)
    }

    /// Sets the words of a rate.
    pub(crate) fn set_rate_words(&mut self, data_type: DataType, element: u16, words: [u32; 3]) {
        if let Some(field) = self.field(data_type, element)
            && field.data_type.kind() == DataKind::Rate
        {
            self.data()[field.offset..field.offset + 3].copy_from_slice(&words);
        }
    }

    /// Sets the text of `server_key`. Returns false if the table does not store it, or its
    /// dictionary is full ([`SERVER_KEYS_MAX`]).
    pub fn set_server_key(&mut self, text: &str) -> bool {
        let Some(field) = self.field(DataType::ServerKey, 0) else {
            return false;
        };
        let number = self.context.dictionary.number(text);
        self.data()[field.offset] = number;
        number != 0
    }

    fn field(&self, data_type: DataType, element: u16) -> Option<DataField> {
        self.context.layout.field(data_type, element)
    }

    fn data(&mut self) -> &mut [u32] {
        &mut self.words[self.context.layout.data_offset()..]
    }
}

fn read(context: &EntryContext<'_>, words: &[u32], field: DataField) -> Option<u64> {
    Some(match field.data_type.kind() {
        DataKind::Number => u64::from(words[field.offset]),
        DataKind::LargeNumber => large(words, field.offset),
        DataKind::Rate => {
            let words = &words[field.offset..field.offset + 3];
            let events = u64::from(rate::read(words, field.period_ms, context.now_ms));
            match field.data_type.is_bytes_rate() {
                true => events * u64::from(context.brates_factor.max(1)),
                false => events,
            }
        }
        DataKind::Text => return None,
    })
}

fn large(words: &[u32], offset: usize) -> u64 {
    u64::from(words[offset]) | u64::from(words[offset + 1]) << 32
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "the two halves of the number"
)]
fn set_large(words: &mut [u32], offset: usize, value: u64) {
    words[offset] = value as u32;
    words[offset + 1] = (value >> 32) as u32;
}
