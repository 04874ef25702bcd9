//! Reads a configuration from named files, with stand-ins for what is missing.

use std::sync::Arc;

use ballast_expr::Store;
use ballast_syntax::Document;
use ballast_tls::shared_store::FormerStore;

use crate::lower::{LoadedConfig, load_with, parse_files};
use crate::machine::Machine;
use crate::stand_ins;

/// How a configuration is read.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// `-dD`: diagnostics of diagnostic mode are wanted. They are kept in any case and marked
    /// [`Severity::Diag`](ballast_syntax::Severity::Diag); at present this has no other effect.
    pub diagnostic_mode: bool,
    /// The certificates and keys that were in force before.
    pub former: FormerStore,
}

/// Reads a configuration from named files, in sequence. It never fails: errors are in
/// [`LoadedConfig::diagnostics`].
#[must_use]
pub fn load(
    files: Vec<(String, Vec<u8>)>,
    machine: &dyn Machine,
    options: Options,
) -> LoadedConfig {
    load_into(Arc::new(Store::new()), files, machine, options)
}

/// As [`load`], for a configuration that is to replace the one whose lists and maps are in
/// `patterns`: lists that both have are shared, and keep the changes made by the Runtime API.
/// Nothing changes before [`Store::commit`] of [`LoadedConfig::store`].
#[must_use]
pub fn load_after(
    patterns: &Arc<Store>,
    files: Vec<(String, Vec<u8>)>,
    machine: &dyn Machine,
    options: Options,
) -> LoadedConfig {
    let store = Store::reusing_lists_of(Arc::clone(patterns));
    load_into(Arc::new(store), files, machine, options)
}

fn load_into(
    store: Arc<Store>,
    files: Vec<(String, Vec<u8>)>,
    machine: &dyn Machine,
    options: Options,
) -> LoadedConfig {
    let environment = stand_ins::environment(&files, machine);
    load_with((store, options.former), files, machine, environment)
}

/// Only the syntax, as sections and lines: the first step of [`load`].
#[must_use]
pub fn parse_document(files: Vec<(String, Vec<u8>)>, machine: &dyn Machine) -> Document {
    let (environment, _) = stand_ins::environment(&files, machine);
    parse_files(files, machine, environment)
}
