//! Who holds what a configuration names: listening sockets, log targets, lists, probes, workers.

use std::sync::Arc;

use ballast_edit::Refusal;
use ballast_engine::{Generation, TakenOver};
use ballast_expr::Store;

/// A change from one generation to the next.
#[derive(Clone, Copy, Debug)]
pub struct Transition<'t> {
    /// What is in force.
    pub now: &'t Generation,
    /// What is to be in force; `None` where the configuration says nothing else, but lists or
    /// files that it names may hold something else.
    pub next: Option<&'t Arc<Generation>>,
    /// The lists and maps that were read with it, where text was read.
    pub patterns: Option<&'t Arc<Store>>,
    /// What `next` took over from `now`: known when it is committed.
    pub taken: Option<&'t TakenOver>,
}

/// What a commit leaves for those who commit after it.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Effects {
    /// Somebody listens no more at a `bind` line: connections that idle there are let go.
    pub listeners_ended: bool,
}

/// One who holds something open. All participants of a process prepare before the first commits.
pub trait Participant: Send + Sync {
    /// Opens what is new. Nothing is in force yet; what comes back is dropped when somebody
    /// refuses, and that closes what was opened. `None` when there is nothing to do.
    ///
    /// # Errors
    /// Why the change cannot be made: nothing is changed then.
    fn prepare(&self, to: &Transition<'_>) -> Result<Option<Box<dyn Prepared>>, Refusal>;

    /// The lines of a plan for what changes beside the configuration.
    fn plan(&self, to: &Transition<'_>) -> Vec<String> {
        let _ = to;
        Vec::new()
    }
}

/// What was opened.
pub trait Prepared {
    /// Goes over to it. Cannot fail.
    fn commit(&mut self, to: &Transition<'_>, effects: &mut Effects);

    /// Ends what is no more, once everybody has gone over.
    fn finish(self: Box<Self>) {}
}
