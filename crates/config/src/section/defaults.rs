//! `defaults` sections, and which sections use them.
//!
//! Source: HAProxy configuration manual, section 4: without `from`, the latest one.

use std::collections::HashMap;

use ballast_syntax::{Diagnostic, Section, SectionKind, Span};

use crate::context::{Context, suggestion};
use crate::draft::ProxyDraft;
use crate::section::header::invalid_char;

/// The `defaults` sections read so far.
#[derive(Debug, Default)]
pub(crate) struct Defaults {
    drafts: Vec<ProxyDraft>,
    /// The indexes of the first and the last section of a name.
    named: HashMap<String, (usize, usize)>,
    /// Which ones were named by `from`, with the first user, and which were used because they were
    /// the latest.
    explicit: HashMap<usize, String>,
    implicit: Vec<(usize, String, Option<Span>)>,
}

impl Defaults {
    /// The defaults of a section. `defaults` without `from` have none.
    pub(crate) fn parent(
        &mut self,
        section: &Section,
        context: &mut Context<'_>,
    ) -> Option<ProxyDraft> {
        let own_name = section.name().map_or("", |word| word.text());
        let title = format!("{} '{own_name}'", section.kind.word());
        if let Some(from) = section.from() {
            let name = from.text();
            if let Some(bad) = invalid_char(name) {
                let message =
                    format!("invalid character '{bad}' in the name of a defaults section '{name}'");
                context.report(Diagnostic::alert("bad-name", message).at(from.span()));
                return None;
            }
            return match self.named.get(name).copied() {
                None => {
                    let message = format!("defaults section '{name}' not found for {title}.");
                    let names = self.drafts.iter().map(|draft| draft.name.as_str());
                    let diagnostic = Diagnostic::alert("unknown-defaults", message).at(from.span());
                    let hint = context.hint(name, names);
                    let diagnostic = suggestion(diagnostic, name, hint.as_deref());
                    context.report(diagnostic);
                    None
                }
                Some((first, last)) if first == last => {
                    self.explicit.entry(first).or_insert(title);
                    Some(self.drafts[first].clone())
                }
                Some((first, last)) => {
                    let location = |at: usize| {
                        self.drafts[at]
                            .span
                            .map_or_else(String::new, |span| context.file_and_line(span))
                    };
                    let message = format!(
                        "ambiguous defaults section name '{name}' referenced by {title} exists \
                         at least at {} and {}.",
                        location(first),
                        location(last)
                    );
                    context
                        .report(Diagnostic::alert("ambiguous-defaults", message).at(from.span()));
                    Some(self.drafts[last].clone())
                }
            };
        }
        if section.kind == SectionKind::Defaults {
            return None;
        }
        let last = self.drafts.len().checked_sub(1)?;
        let span = section.header.as_ref().map(|line| line.words_span());
        self.implicit.push((last, title, span));
        Some(self.drafts[last].clone())
    }

    /// Adds a section.
    pub(crate) fn declare(&mut self, draft: ProxyDraft) {
        let at = self.drafts.len();
        let named = self.named.entry(draft.name.clone()).or_insert((at, at));
        named.1 = at;
        self.drafts.push(draft);
    }

    /// Warns about sections used both by name and because they were the latest.
    pub(crate) fn finish(self, context: &mut Context<'_>) {
        let mut last = None;
        for (at, title, span) in &self.implicit {
            let Some(by_name) = self.explicit.get(at) else {
                continue;
            };
            // Users of the same section are reported together.
            if last.replace(*at) == Some(*at) {
                continue;
            }
            let defaults = &self.drafts[*at];
            let location = defaults
                .span
                .map_or_else(String::new, |span| context.file_and_line(span));
            let message = format!(
                "{title} implicitly uses the defaults section '{}' declared at {location}, which \
                 {by_name} names with 'from'.",
                defaults.name
            );
            let mut diagnostic = Diagnostic::warning("mixed-defaults", message)
                .help(format!("write 'from {}' where it is meant", defaults.name));
            diagnostic.span = *span;
            context.report(diagnostic);
        }
    }
}
