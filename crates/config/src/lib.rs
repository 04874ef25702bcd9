//! Keyword rows: tree to model, defaults inheritance, diagnostics.
