//! `bind` lines and the words on them.

use crate::draft::ProxyDraft;
use crate::keyword::Row;

/// The line itself.
pub(crate) const LINES: &[Row<ProxyDraft>] = &[];
