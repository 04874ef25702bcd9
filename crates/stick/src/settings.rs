//! What a table is configured to be.

use crate::data::{DataType, StoredType};
use crate::key::KeyType;

/// How many texts a table's dictionary of servers holds at most. A server key beyond that is
/// not stored.
pub const SERVER_KEYS_MAX: usize = 65_536;

/// How servers are named in `server_key` (`srvkey`).
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum ServerKeyKind {
    /// By name.
    #[default]
    Name,
    /// By address and port.
    Address,
}

/// The settings of a table (manual, section 11.1).
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct TableSettings {
    /// The type of keys.
    pub key: KeyType,
    /// How many entries fit.
    pub size: u32,
    /// How long an entry stays after it was touched, in milliseconds; `None`: until it is
    /// evicted.
    pub expire_ms: Option<u32>,
    /// A full table refuses new entries instead of evicting old ones.
    pub nopurge: bool,
    /// Only peers write.
    pub recv_only: bool,
    /// The table to which what peers tell is written, too.
    pub write_to: Option<String>,
    /// The `peers` section that shares the table.
    pub peers: Option<String>,
    /// How servers are named.
    pub server_key: ServerKeyKind,
    /// Bytes that make one count of a bytes rate, 1 to 1024.
    pub brates_factor: u32,
    /// What entries store, in the order of [`DataType`], each type once.
    pub stored: Vec<StoredType>,
}

impl TableSettings {
    /// Settings that store nothing and expire nothing.
    pub fn new(key: KeyType, size: u32) -> TableSettings {
        TableSettings {
            key,
            size,
            expire_ms: None,
            nopurge: false,
            recv_only: false,
            write_to: None,
            peers: None,
            server_key: ServerKeyKind::default(),
            brates_factor: 1,
            stored: Vec::new(),
        }
    }

    /// Stores one type more, unless it is stored already. Returns whether it is new.
    pub fn store(&mut self, stored: StoredType) -> bool {
        let index = self
            .stored
            .binary_search_by_key(&stored.data_type, |one| one.data_type);
        match index {
            Ok(_) => false,
            Err(index) => {
                self.stored.insert(index, stored);
                true
            }
        }
    }

    /// How a type is stored.
    pub fn stored(&self, data_type: DataType) -> Option<&StoredType> {
        self.stored.iter().find(|one| one.data_type == data_type)
    }
}
