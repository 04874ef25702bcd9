//! Where in the words of a slot the key and each data type are.

use crate::data::{DataKind, DataType, StoredType};
use crate::key::KeyType;
use crate::settings::TableSettings;

/// Words before the key: links of the bucket and of the order of age, time of the last touch,
/// references.
pub(crate) const HEAD_WORDS: usize = 5;

/// Next slot of the bucket; of a free slot, the next free one.
pub(crate) const NEXT: usize = 0;
/// Neighbours in the order of age.
pub(crate) const OLDER: usize = 1;
pub(crate) const NEWER: usize = 2;
/// When the entry was touched last.
pub(crate) const TOUCHED: usize = 3;
/// How many trackers it has; u32::MAX in a slot without an entry.
pub(crate) const REFERENCES: usize = 4;

/// In `fields`, of a type that is not stored.
const NOWHERE: u32 = u32::MAX;

/// The words of a slot.
#[derive(Debug)]
pub(crate) struct Layout {
    pub(crate) key: KeyType,
    pub(crate) stored: Vec<StoredType>,
    /// By data type: index in `stored`, and offset in the data words.
    fields: [(u32, u32); DataType::ALL.len()],
    pub(crate) data_words: usize,
    /// The rates: offset in the data words, and period in milliseconds.
    pub(crate) rates: Vec<(usize, u32)>,
}

/// Where one element of a data type is.
#[derive(Clone, Copy)]
pub(crate) struct DataField {
    pub(crate) offset: usize,
    pub(crate) data_type: DataType,
    pub(crate) period_ms: u32,
}

impl Layout {
    pub(crate) fn new(settings: &TableSettings) -> Layout {
        let mut fields = [(NOWHERE, 0); DataType::ALL.len()];
        let (mut offset, mut rates) = (0, Vec::new());
        for (index, one) in (0..).zip(&settings.stored) {
            fields[one.data_type as usize] = (index, offset as u32);
            for _ in 0..one.elements {
                if one.data_type.kind() == DataKind::Rate {
                    rates.push((offset, one.period_ms));
                }
                offset += one.data_type.words();
            }
        }
        Layout {
            key: settings.key,
            stored: settings.stored.clone(),
            fields,
            data_words: offset,
            rates,
        }
    }

    /// Words of a slot.
    pub(crate) fn stride(&self) -> usize {
        self.data_offset() + self.data_words
    }

    pub(crate) fn data_offset(&self) -> usize {
        HEAD_WORDS + self.key.words()
    }

    /// Where an element is; `None` if the table does not store it. `gpc0` and its like are the
    /// first elements of an array where the table has that.
    #[inline]
    pub(crate) fn field(&self, data_type: DataType, element: u16) -> Option<DataField> {
        let (stored, offset) = self.fields[data_type as usize];
        let Some(stored) = self.stored.get(stored as usize) else {
            let (array, element) = data_type.element_of()?;
            return self.field(array, element);
        };
        (element < stored.elements).then(|| DataField {
            offset: offset as usize + usize::from(element) * data_type.words(),
            data_type,
            period_ms: stored.period_ms,
        })
    }

    /// Copies what both layouts store alike.
    pub(crate) fn copy_data(&self, data: &[u32], to: &Layout, to_data: &mut [u32]) {
        for one in &to.stored {
            let (index, from) = self.fields[one.data_type as usize];
            let Some(stored) = self.stored.get(index as usize) else {
                continue;
            };
            if stored.period_ms != one.period_ms {
                continue;
            }
            let (_, at) = to.fields[one.data_type as usize];
            let elements = usize::from(stored.elements.min(one.elements));
            let words = elements * one.data_type.words();
            let (from, at) = (from as usize, at as usize);
            to_data[at..at + words].copy_from_slice(&data[from..from + words]);
        }
    }
}
