//! Participants hold the things that a configuration names: listening sockets, log targets, lists,
//! probes, workers.

use std::sync::Arc;

use ballast_edit::Refusal;
use ballast_engine::{Generation, GenerationChanges};
use ballast_expr::Store;

/// A change from one generation to the next.
#[derive(Clone, Copy, Debug)]
pub struct GenerationSwitch<'t> {
    /// The generation in force.
    pub now: &'t Generation,
    /// The generation to be put in force; `None` where the configuration is the same. The lists and
    /// files that it names may be others all the same.
    pub next: Option<&'t Arc<Generation>>,
    /// The lists and maps that were read with it, where files were read.
    pub patterns: Option<&'t Arc<Store>>,
    /// What `next` took over from `now`; `None` until the commit.
    pub changes: Option<&'t GenerationChanges>,
}

/// Effects of a commit on the participants that commit later.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct CommitEffects {
    /// A `bind` line is gone: idle connections of its clients are closed.
    pub listeners_ended: bool,
}

/// A holder of open things. All participants of a process prepare before the first commits.
pub trait Participant: Send + Sync {
    /// Opens what is new. Nothing is in force yet. When another participant refuses, the answer is
    /// dropped, and that closes what was opened. `None` when there is nothing to do.
    ///
    /// # Errors
    /// Why the change cannot be made: nothing is changed then.
    fn prepare(
        &self,
        to: &GenerationSwitch<'_>,
    ) -> Result<Option<Box<dyn PreparedChange>>, Refusal>;

    /// The lines of a plan for changes that the configuration does not show.
    fn plan(&self, to: &GenerationSwitch<'_>) -> Vec<String> {
        let _ = to;
        Vec::new()
    }
}

/// Things that a participant opened for a change.
pub trait PreparedChange {
    /// Puts them in use. Cannot fail.
    fn commit(&mut self, to: &GenerationSwitch<'_>, effects: &mut CommitEffects);

    /// Closes what is no longer in use, once all participants have committed.
    fn finish(self: Box<Self>) {}
}
