//! Lists and maps: the entries that were read with a configuration are in force once it is committed.

use std::sync::Arc;

use ballast_edit::Refusal;
use ballast_expr::{ListChange, Store};

use crate::controller::Controller;
use crate::participant::{CommitEffects, GenerationSwitch, Participant, PreparedChange};

/// The participant that holds the lists and maps in force.
pub(crate) struct Lists(pub(crate) Arc<Controller>);

impl Participant for Lists {
    fn prepare(
        &self,
        to: &GenerationSwitch<'_>,
    ) -> Result<Option<Box<dyn PreparedChange>>, Refusal> {
        let store = to.patterns.cloned();
        Ok(store.map(|store| Box::new(PreparedLists(Arc::clone(&self.0), store)) as _))
    }

    fn plan(&self, to: &GenerationSwitch<'_>) -> Vec<String> {
        let changes = to.patterns.iter().flat_map(|store| store.changes());
        changes.map(|list| line(&list)).collect()
    }
}

struct PreparedLists(Arc<Controller>, Arc<Store>);

impl PreparedChange for PreparedLists {
    fn commit(&mut self, _: &GenerationSwitch<'_>, _: &mut CommitEffects) {
        let _ = self.1.commit();
        self.0.set_patterns(&self.1);
    }
}

/// The line of a plan for a list that gets other entries.
fn line(change: &ListChange) -> String {
    let (list, added, removed) = (&change.list, change.added, change.removed);
    let kind = if list.is_map() { "map" } else { "acl" };
    match list.name() {
        "" => format!("~ {kind} patterns: {added} added, {removed} removed"),
        name => format!("~ {kind} {name}: {added} added, {removed} removed"),
    }
}
