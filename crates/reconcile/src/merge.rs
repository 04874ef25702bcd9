//! Which of files and overrides wins when files are read again.
//!
//! A reload makes the process what the files say. Where overrides are kept, three configurations are
//! compared: the file as it was, the file as it is, and what commands made of it in between. Where
//! the file changed, the file wins; where it did not, an override stays.

use std::collections::HashSet;
use std::sync::Arc;

use ballast_model::change::{apply, diff};
use ballast_model::{Change, Config};

use crate::kinds;
use crate::object::ObjectName;
use crate::overrides::OverrideKey;

/// What a merge starts from: the configuration of the files as they were, with sections by command,
/// and the keys of overrides.
#[derive(Clone, Debug)]
pub struct MergeBase {
    pub(crate) file: Arc<Config>,
    pub(crate) overrides: Vec<OverrideKey>,
}

/// Files that were read again, merged with overrides.
#[derive(Debug)]
pub struct MergeOutcome {
    /// The configuration to put in force.
    pub config: Config,
    /// The changes to it from the configuration in force.
    pub changes: Vec<Change>,
    /// Changes by command that stay.
    pub kept: Vec<Change>,
    /// Changes by command that the file overrules.
    pub dropped: Vec<Change>,
    /// Overrides that the file overrules: it says something else of their settings now.
    pub overruled: Vec<OverrideKey>,
}

/// The kind and name of an object.
type ObjectId = (&'static str, ObjectName);

impl MergeBase {
    /// Merges the configuration `read` from files with what commands made of the former files in the
    /// configuration in force `current`.
    pub fn merge(&self, current: &Config, read: &Config) -> MergeOutcome {
        let by_file: HashSet<ObjectId> = diff(&self.file, read).iter().filter_map(object).collect();
        let mut by_command = diff(&self.file, current);
        by_command.retain(|change| !is_order(change));
        let is_dropped = |change: &Change| object(change).is_some_and(|id| by_file.contains(&id));
        let (mut dropped, mut kept): (Vec<_>, Vec<_>) =
            by_command.into_iter().partition(is_dropped);
        let config = apply(read, &kept).unwrap_or_else(|_| {
            // The object of some change is gone.
            apply_one_by_one(read, &mut kept, &mut dropped)
        });
        let changes = diff(current, &config);
        MergeOutcome {
            // Objects that are equal to those in force are the same objects.
            config: apply(current, &changes).unwrap_or(config),
            changes,
            kept,
            dropped,
            overruled: self
                .overrides
                .iter()
                .filter(|key| key.is_overruled(&self.file, read))
                .cloned()
                .collect(),
        }
    }
}

/// Applies the changes that fit; moves the others from `kept` to `dropped`.
fn apply_one_by_one(config: &Config, kept: &mut Vec<Change>, dropped: &mut Vec<Change>) -> Config {
    let mut config = config.clone();
    for change in std::mem::take(kept) {
        match apply(&config, std::slice::from_ref(&change)) {
            Ok(next) => {
                config = next;
                kept.push(change);
            }
            Err(_) => dropped.push(change),
        }
    }
    config
}

fn is_order(change: &Change) -> bool {
    matches!(
        change,
        Change::OrderFrontends(_)
            | Change::OrderBackends(_)
            | Change::OrderServers(..)
            | Change::OrderTables(_)
    )
}

/// The object that a change is about: two changes of one object have the same.
fn object(change: &Change) -> Option<ObjectId> {
    let (kind, name) = kinds::object_of(change)?;
    Some((kind.word, name))
}
