//! Who wins when a file is read again.
//!
//! A reload makes the process what the file says. Where overrides are to be kept, three have a
//! say: the file as it was, the file as it is, and the commands of operators in between. Where the
//! file changed, the file wins; where it did not, an override stays.

use std::collections::HashSet;
use std::sync::Arc;

use ballast_model::change::{apply, diff};
use ballast_model::{Change, Config};

use crate::object::OverrideKey;

/// What was written, and the keys of what operators set.
#[derive(Clone, Debug)]
pub struct Basis {
    pub(crate) file: Arc<Config>,
    pub(crate) overrides: Vec<OverrideKey>,
}

/// A file that was read again, and what operators did meanwhile, in one.
#[derive(Debug)]
pub struct Merged {
    /// The configuration to put in force.
    pub config: Config,
    /// Changes by command that stay.
    pub kept: Vec<Change>,
    /// Changes by command that the file overrules.
    pub dropped: Vec<Change>,
    /// Overrides that the file overrules: it has another word there now.
    pub overruled: Vec<OverrideKey>,
}

impl Basis {
    /// What a file that was read again amounts to, beside what operators did to what runs `now`.
    pub fn merge(&self, now: &Config, read: &Config) -> Merged {
        let overridden: Vec<Change> = diff(&self.file, now)
            .into_iter()
            .filter(|change| !is_order(change))
            .collect();
        let by_file: HashSet<String> = diff(&self.file, read).iter().filter_map(subject).collect();
        // What is equal to what runs is what runs.
        let shared = apply(now, &diff(now, read)).unwrap_or_else(|_| read.clone());
        let mut merged = Merged {
            config: shared,
            kept: Vec::new(),
            dropped: Vec::new(),
            overruled: Vec::new(),
        };
        let is_dropped =
            |change: &Change| subject(change).is_some_and(|subject| by_file.contains(&subject));
        (merged.dropped, merged.kept) = overridden.into_iter().partition(is_dropped);
        match apply(&merged.config, &merged.kept) {
            Ok(config) => merged.config = config,
            // What some of them were about is gone: one by one.
            Err(_) => merged.keep_what_fits(),
        }
        merged.overruled = self
            .overrides
            .iter()
            .filter(|key| key.is_overruled(&self.file, read))
            .cloned()
            .collect();
        merged
    }
}

impl Merged {
    fn keep_what_fits(&mut self) {
        for change in std::mem::take(&mut self.kept) {
            match apply(&self.config, std::slice::from_ref(&change)) {
                Ok(config) => {
                    self.config = config;
                    self.kept.push(change);
                }
                Err(_) => self.dropped.push(change),
            }
        }
    }
}

fn is_order(change: &Change) -> bool {
    matches!(
        change,
        Change::OrderFrontends(_) | Change::OrderBackends(_) | Change::OrderServers(..)
    )
}

/// What a change is about, such that two changes of one thing have the same.
fn subject(change: &Change) -> Option<String> {
    Some(match change {
        Change::SetGlobal(_) => "global".into(),
        Change::SetUserlists(_) => "userlists".into(),
        Change::AddFrontend(one) | Change::SetFrontend(one) => {
            format!("frontend {}", one.common.name)
        }
        Change::RemoveFrontend(name) => format!("frontend {name}"),
        Change::AddBackend(one) | Change::SetBackend(one) => format!("backend {}", one.common.name),
        Change::RemoveBackend(name) => format!("backend {name}"),
        Change::AddServer(backend, one) | Change::SetServer(backend, one) => {
            format!("server {backend}/{}", one.name)
        }
        Change::RemoveServer(backend, name) => format!("server {backend}/{name}"),
        Change::OrderFrontends(_) | Change::OrderBackends(_) | Change::OrderServers(..) => {
            return None;
        }
    })
}
