//! Sections other than `global` and the proxies, and what sections have in common.

pub(crate) mod defaults;
pub(crate) mod header;

use ballast_syntax::Section;

use crate::context::Context;

/// Lowers a section that is neither `global` nor a proxy.
pub(crate) fn lower(section: &Section, context: &mut Context<'_>) {
    let _ = (section, context);
}
