//! `write-to` of stick tables: the table must exist, and have such keys (manual, section 11.1).

use ballast_model::{StickTable, TableSettings};
use ballast_stick::KeyType;
use ballast_syntax::Diagnostic;

use crate::context::Context;

/// Checks every `write-to`, in the order of the file. A table that cannot write to another one is a
/// source no more for those that follow, as in HAProxy.
pub(super) fn check(context: &mut Context<'_>) {
    let write_tos = std::mem::take(&mut context.declarations.write_tos);
    let mut refused: Vec<&str> = Vec::new();
    for (name, span) in &write_tos {
        let tables = &context.declarations.stick_tables;
        let Some(why) = fault(tables, name, &refused) else {
            continue;
        };
        refused.push(name);
        let message = match name.contains('/') {
            true => format!("failed to initialize '{name}' stick-table: write-to: {why}."),
            false => {
                format!("Proxy '{name}': failed to initialize stick-table: write-to: {why}.")
            }
        };
        context.report(Diagnostic::alert("write-to", message).at(*span));
    }
}

/// Why a table cannot write to the one that its line names.
fn fault(tables: &[StickTable], name: &str, refused: &[&str]) -> Option<String> {
    let named = |name: &str| tables.iter().find(|table| table.name == name);
    let settings = &named(name)?.settings;
    let target = settings.write_to.as_deref()?;
    let Some(other) = named(target).map(|table| &table.settings) else {
        return Some(format!("table '{target}' doesn't exist"));
    };
    let (word, other_word) = (settings.key.word(), other.key.word());
    if word != other_word {
        return Some(format!(
            "cannot mix table types ('{target}' has '{other_word}' type and '{name}' has '{word}' \
             type)"
        ));
    }
    let (size, other_size) = (key_size(settings), key_size(other));
    if size != other_size {
        return Some(format!(
            "cannot mix key sizes ('{target}' has '{other_size}' key_size and '{name}' has '{size}' \
             key_size)"
        ));
    }
    // A table may name itself, which does nothing.
    let is_source = target != name && other.write_to.is_some() && !refused.contains(&target);
    is_source.then(|| format!("table '{target}' is already used as a source table"))
}

/// The bytes of a key, with the NUL that ends a string in HAProxy.
fn key_size(settings: &TableSettings) -> usize {
    let nul = matches!(settings.key, KeyType::String { .. });
    settings.key.len_bytes() + usize::from(nul)
}
