//! What a snapshot is taken of.

use ballast_engine::{Generation, Process};
use ballast_reconcile::Memory;

/// What runs, as a snapshot is taken of it or given to it.
#[derive(Clone, Copy, Debug)]
pub struct Running<'r> {
    /// The configuration and the states of what it names.
    pub generation: &'r Generation,
    /// The process.
    pub process: &'r Process,
    /// What operators did to the configuration.
    pub memory: &'r Memory,
}
