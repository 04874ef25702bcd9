//! A listening address as sessions and statistics see it.

use std::sync::Arc;

use ballast_engine::ListenerState;
use ballast_model as model;

/// A listening address of a frontend, as sessions see it.
#[derive(Debug)]
pub struct ListeningAddress {
    /// What the configuration says.
    pub bind: model::Bind,
    /// Its counters. They stay the same over every change that keeps the bind.
    pub state: Arc<ListenerState>,
}
