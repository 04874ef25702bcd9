//! Stick tables (manual, section 11.1).

pub use ballast_stick::TableSettings;

/// A table that the configuration declares.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct StickTable {
    /// The name of its proxy, or `section/name` in a `peers` section.
    pub name: String,
    /// Its settings.
    pub settings: TableSettings,
}
