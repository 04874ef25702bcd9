//! The stick tables of a generation.
//!
//! A table outlives its generations: [`crate::Registry`] keeps it by name while a generation has
//! it. Its settings change when a generation takes over, and not before.

use std::collections::HashMap;
use std::sync::Arc;

use ballast_model as model;
use ballast_stick::Table;

use crate::Registry;

/// Entries of a shard that one cleaning removes at most, before other work has its turn.
pub const PURGED_MAX: usize = 16;

/// The tables of a generation, by name.
#[derive(Debug, Default)]
pub struct Tables {
    declared: Vec<Arc<model::StickTable>>,
    all: Vec<Arc<Table>>,
    /// Rules name them for each request; names are not chosen by clients.
    by_name: HashMap<String, usize, foldhash::fast::RandomState>,
}

impl Tables {
    /// The tables of a configuration; `previous` if they are the same.
    pub(crate) fn compile(
        config: &model::Config,
        registry: &Registry,
        previous: Option<&Arc<Tables>>,
    ) -> Arc<Tables> {
        if let Some(previous) = previous
            && previous.declared == config.tables
        {
            return Arc::clone(previous);
        }
        let names = config.tables.iter().map(|one| one.name.clone());
        Arc::new(Tables {
            declared: config.tables.clone(),
            all: config
                .tables
                .iter()
                .map(|one| registry.table(one))
                .collect(),
            by_name: names.zip(0..).collect(),
        })
    }

    /// The table of that name: of a proxy, or `section/name` of a `peers` section.
    pub fn find(&self, name: &str) -> Option<&Arc<Table>> {
        self.all.get(*self.by_name.get(name)?)
    }

    /// In the order of the file.
    pub fn all(&self) -> &[Arc<Table>] {
        &self.all
    }

    /// Removes what has expired, a bounded number of entries; returns whether there may be more.
    pub fn purge(&self, now_ms: u32) -> bool {
        let mut is_more = false;
        for table in &self.all {
            is_more |= table.purge(now_ms, PURGED_MAX) >= PURGED_MAX;
        }
        is_more
    }

    /// Gives tables the settings of this generation, and forgets those of the previous one that
    /// are not configured any more.
    pub(crate) fn take_over(&self, previous: Option<&Tables>, registry: &Registry) {
        for (declared, table) in self.declared.iter().zip(&self.all) {
            if *table.settings() != declared.settings {
                table.change(declared.settings.clone());
            }
        }
        let former = previous.map_or(&[][..], |previous| &previous.all);
        for table in former.iter().filter(|one| self.find(one.name()).is_none()) {
            registry.forget_table(table.name());
        }
    }
}
