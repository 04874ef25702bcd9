//! The line that opens a proxy: a name that is unique for its kind, and nothing else.
//!
//! Source: HAProxy configuration manual, section 4.

use ballast_syntax::{Diagnostic, Section, SectionKind};

use crate::context::Context;
use crate::draft::ProxyDraft;

/// Checks the name and what follows it.
pub(crate) fn check(section: &Section, draft: &mut ProxyDraft, context: &mut Context<'_>) {
    let Some(header) = &section.header else {
        return;
    };
    let word = section.kind.word();
    let Some(name) = section.name() else {
        let message = format!("'{word}' expects an <id> as its argument");
        context.report(Diagnostic::alert("missing-argument", message).at(header.words_span()));
        return;
    };
    if let Some(bad) = invalid_char(name.text()) {
        let message = format!(
            "character '{bad}' is not permitted in '{word}' name '{}'.",
            name.text()
        );
        context.report(Diagnostic::alert("bad-name", message).at(name.span()));
    }
    let after = if section.from().is_some() { 4 } else { 2 };
    if let Some(extra) = header.words.get(after) {
        let text = extra.text();
        let diagnostic = if after == 2 && is_address(text) {
            // HAProxy before 2.0 took the address here.
            Diagnostic::alert(
                "address-on-section",
                "please use the 'bind' keyword for listening addresses.",
            )
            .at(extra.span())
            .help(format!("write below: bind {text}"))
        } else {
            let message = format!("'{word}' cannot handle unexpected argument '{text}'.");
            if section.kind == SectionKind::Backend {
                // HAProxy ignores it.
                Diagnostic::warning("unexpected-word", message).at(extra.span())
            } else {
                Diagnostic::alert("unexpected-word", message).at(extra.span())
            }
        };
        context.report(diagnostic);
    }
    duplicate(section, draft, context);
}

/// The `global` section has no name.
pub(crate) fn check_global(section: &Section, context: &mut Context<'_>) {
    let extra = section.header.as_ref().and_then(|line| line.words.get(1));
    if let Some(extra) = extra {
        let message = format!(
            "'global' cannot handle unexpected argument '{}'.",
            extra.text()
        );
        context.report(Diagnostic::alert("unexpected-word", message).at(extra.span()));
    }
}

/// Two proxies that share a side must not have the same name.
fn duplicate(section: &Section, draft: &ProxyDraft, context: &mut Context<'_>) {
    let Some(name) = section.name() else {
        return;
    };
    let overlaps = |kind: SectionKind| match section.kind {
        SectionKind::Frontend => matches!(kind, SectionKind::Frontend | SectionKind::Listen),
        SectionKind::Backend => matches!(kind, SectionKind::Backend | SectionKind::Listen),
        _ => matches!(
            kind,
            SectionKind::Frontend | SectionKind::Backend | SectionKind::Listen
        ),
    };
    let is_proxy = |kind: SectionKind| {
        matches!(
            kind,
            SectionKind::Frontend | SectionKind::Backend | SectionKind::Listen
        )
    };
    let sections = context.declarations.sections.of_name(name.text()).iter();
    let same = sections.filter(|(kind, _)| is_proxy(*kind));
    let other = same.max_by_key(|(kind, _)| overlaps(*kind)).copied();
    if let Some((kind, span)) = other {
        let old = match kind {
            SectionKind::Listen => "proxy",
            kind => kind.word(),
        };
        let message = format!(
            "{} has the same name as {old} '{}' declared at {}.",
            draft.title(),
            name.text(),
            context.file_and_line(span)
        );
        let diagnostic = if overlaps(kind) {
            Diagnostic::alert("duplicate-name", message)
        } else {
            let text = "This is dangerous and will not be supported anymore in version 3.3.";
            Diagnostic::warning("duplicate-name", format!("{message} {text}"))
        };
        context.report(diagnostic.at(name.span()));
    }
    let sections = &mut context.declarations.sections;
    sections.add(section.kind, name.text(), name.span());
}

/// The first character that is not allowed in a name.
pub(crate) fn invalid_char(name: &str) -> Option<char> {
    name.chars()
        .find(|c| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ':')))
}

/// Whether a word on a section line looks like the address that was allowed there in old versions.
fn is_address(text: &str) -> bool {
    text.starts_with(['/', ':', '*']) || text.contains(':') || text.contains('@')
}
