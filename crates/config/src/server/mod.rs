//! `server`, `default-server` and `server-template` lines and the words on them.

use crate::draft::ProxyDraft;
use crate::keyword::Row;

/// The lines themselves.
pub(crate) const LINES: &[Row<ProxyDraft>] = &[];
