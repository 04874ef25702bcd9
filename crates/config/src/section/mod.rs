//! Sections other than `global` and the proxies, and functions for all sections.
//!
//! Most of these sections have no effect until a keyword elsewhere names them; they are checked
//! here, and the keyword that names them is honoured or not implemented.

mod acme;
mod crt_store;
pub(crate) mod defaults;
mod draft;
mod fcgi_app;
pub(crate) mod header;
mod http_errors;
mod log_profile;
mod logs;
mod net;
mod peers;
mod program;
mod userlist;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use ballast_syntax::{Diagnostic, Section, SectionKind, SectionNaming};

use crate::build::Drafts;
use crate::context::{Context, REMOVED};
use crate::keyword::{Keyword, Row, Sections};
use crate::table::{Table, unexposed};

pub(crate) use draft::PlainSectionDraft;

/// The rows of each section.
const SECTIONS: &[(SectionKind, &[Row<PlainSectionDraft>])] = &[
    (SectionKind::Acme, acme::ACME),
    (SectionKind::Cache, net::CACHE),
    (SectionKind::CrtStore, crt_store::CRT_STORE),
    (SectionKind::FcgiApp, fcgi_app::ROWS),
    // Its words are those of proxies.
    (SectionKind::Healthcheck, &[]),
    (SectionKind::HttpErrors, http_errors::ROWS),
    (SectionKind::LogForward, logs::LOG_FORWARD),
    (SectionKind::LogProfile, log_profile::ROWS),
    (SectionKind::Mailers, net::MAILERS),
    (SectionKind::NamespaceList, net::NAMESPACE_LIST),
    (SectionKind::Peers, peers::ROWS),
    (SectionKind::Program, program::ROWS),
    (SectionKind::Resolvers, net::RESOLVERS),
    (SectionKind::Ring, logs::RING),
    (SectionKind::Traces, logs::TRACES),
    (SectionKind::Userlist, userlist::ROWS),
];

/// Sections with an effect of their own: a configuration that contains one is not started.
const UNIMPLEMENTED_SECTIONS: &[(SectionKind, &str)] = &[
    (SectionKind::LogForward, "log forwarding"),
    (SectionKind::Peers, "peers"),
];

static TABLES: LazyLock<BTreeMap<SectionKind, Table<PlainSectionDraft>>> = LazyLock::new(|| {
    SECTIONS
        .iter()
        .map(|(kind, rows)| (*kind, Table::new(&[rows])))
        .collect()
});

/// The rows, for the keyword table.
pub(crate) fn keywords() -> Vec<Keyword> {
    let mut all: Vec<_> = TABLES.values().flat_map(Table::keywords).collect();
    all.extend(crt_store::load_keywords());
    all
}

/// Lowers a section that is neither `global` nor a proxy.
pub(crate) fn lower(section: &Section, context: &mut Context<'_>, drafts: &mut Drafts) {
    let (Some(table), Some(header)) = (TABLES.get(&section.kind), &section.header) else {
        return;
    };
    let kind = section.kind.word();
    let span = header.words_span();
    if section.kind == SectionKind::Program {
        context.report(program::refusal(span));
        context.unimplemented(kind, REMOVED, span);
        return;
    }
    if section.kind == SectionKind::Acme && !context.declarations.experimental {
        context.report(unexposed("section 'acme'").at(header.words[0].span()));
    }
    let name = section.name();
    let naming = section.kind.row().map(|row| row.naming);
    if name.is_none() && naming == Some(SectionNaming::Required) {
        let message = format!("'{kind}' expects a name as its argument");
        context.report(Diagnostic::alert("missing-argument", message).at(span));
    }
    let text = name.map_or("", |name| name.text());
    let after = usize::from(name.is_some()) + 1;
    if let Some(extra) = header.words.get(after) {
        let message = format!(
            "'{kind}' cannot handle unexpected argument '{}'.",
            extra.text()
        );
        let is_lax = matches!(
            section.kind,
            SectionKind::HttpErrors | SectionKind::Resolvers
        );
        let diagnostic = if is_lax {
            Diagnostic::warning("unexpected-word", message)
        } else {
            Diagnostic::alert("unexpected-word", message)
        };
        context.report(diagnostic.at(extra.span()));
    }
    declare(section, context);
    let unserved_before = context.unimplemented.len();
    if let Some((_, feature)) = UNIMPLEMENTED_SECTIONS
        .iter()
        .find(|(known, _)| *known == section.kind)
    {
        context.unimplemented(kind, feature, header.words[0].span());
    }
    if section.kind == SectionKind::Healthcheck {
        // Its lines are read as those of proxies.
        return;
    }
    let mut draft = PlainSectionDraft::new(section.kind, text);
    let sections = Sections::of(section.kind);
    for line in section.statements() {
        let result = table.line(&mut draft, line, sections, context);
        context.report_error(result);
    }
    if section.kind == SectionKind::Peers && peers::is_alone(&draft, span, context) {
        context.unimplemented.truncate(unserved_before);
    }
    draft.finish(span, context, drafts);
}

/// Names are unique among sections of a kind, and made of the usual characters.
fn declare(section: &Section, context: &mut Context<'_>) {
    let Some(name) = section.name() else {
        return;
    };
    let kind = section.kind.word();
    if section.kind == SectionKind::CrtStore {
        // Any name will do, and sections of one name are one store.
        return;
    }
    if let Some(bad) = header::invalid_char(name.text()) {
        let message = format!(
            "character '{bad}' is not permitted in '{kind}' name '{}'.",
            name.text()
        );
        context.report(Diagnostic::alert("bad-name", message).at(name.span()));
    }
    let mut same = context.declarations.sections.of_name(name.text()).iter();
    let twin = same.find(|(known, _)| *known == section.kind);
    let twin = twin.map(|(_, span)| *span);
    if let Some(span) = twin {
        let message = format!(
            "{kind} '{}' has the same name as another declared at {}.",
            name.text(),
            context.file_and_line(span)
        );
        let is_list = section.kind == SectionKind::Userlist;
        let diagnostic = if is_list {
            // HAProxy ignores the second list.
            Diagnostic::warning("duplicate-name", message)
        } else {
            Diagnostic::alert("duplicate-name", message)
        };
        context.report(diagnostic.at(name.span()));
    }
    let sections = &mut context.declarations.sections;
    sections.add(section.kind, name.text(), name.span());
}
