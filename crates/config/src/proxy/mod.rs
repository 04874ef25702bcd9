//! Lines of `defaults`, `frontend`, `listen` and `backend`, less `bind` and `server`.

mod timeouts;

use std::sync::LazyLock;

use ballast_expr::{Condition, Linker};
use ballast_syntax::{Diagnostic, Line};

use crate::context::Context;
use crate::draft::ProxyDraft;
use crate::keyword::{Keyword, Row, Sections};
use crate::table::Table;

/// All families of proxy keywords.
const FAMILIES: &[&[Row<ProxyDraft>]] = &[crate::bind::LINES, crate::server::LINES, timeouts::ROWS];

static TABLE: LazyLock<Table<ProxyDraft>> = LazyLock::new(|| Table::new(FAMILIES));

/// The rows, for the keyword table.
pub(crate) fn keywords() -> Vec<Keyword> {
    TABLE.keywords().collect()
}

/// Lowers one line of a proxy section.
///
/// # Errors
/// With the diagnostic to report.
pub(crate) fn line(
    draft: &mut ProxyDraft,
    line: &Line,
    context: &mut Context<'_>,
) -> Result<(), Diagnostic> {
    let place = draft.place();
    let found = TABLE.find(line, place)?;
    let keyword = &found.row.keyword;
    if !keyword.sections.has(place) {
        return Err(misplaced(draft, keyword, line, found.first));
    }
    let span = line.words[found.first].span();
    if keyword.http && place != Sections::DEFAULTS {
        draft.http_words.push((keyword.word, span));
    }
    found.perform(draft, line, context)
}

/// What HAProxy says of a keyword of another kind of proxy: it ignores the line with a warning,
/// but refuses servers in frontends and everything that `defaults` cannot hold.
fn misplaced(draft: &ProxyDraft, keyword: &Keyword, line: &Line, first: usize) -> Diagnostic {
    let word = keyword.word;
    let span = line.words[first].span();
    let place = draft.place();
    if place == Sections::DEFAULTS {
        let message = format!("'{word}' not allowed in 'defaults' section.");
        return Diagnostic::alert("misplaced-keyword", message)
            .at(span)
            .help(format!("it belongs to: {}", keyword.sections));
    }
    let lacking = if place == Sections::FRONTEND {
        "backend"
    } else {
        "frontend"
    };
    let title = draft.title();
    if matches!(word, "server" | "server-template" | "default-server") {
        let message = format!("'{word}' not allowed because {title} has no {lacking} capability.");
        return Diagnostic::alert("misplaced-keyword", message).at(span);
    }
    let mut message = format!("'{word}' ignored because {title} has no {lacking} capability.");
    match (word, place) {
        ("maxconn", Sections::BACKEND) => message.push_str(" Maybe you want 'fullconn' instead ?"),
        ("fullconn", Sections::FRONTEND) => message.push_str(" Maybe you want 'maxconn' instead ?"),
        _ => {}
    }
    Diagnostic::warning("misplaced-keyword", message)
        .at(span)
        .help(format!("it belongs to: {}", keyword.sections))
}

/// Joins every expression of the draft to its ACLs, lists and maps. Whoever adds a place for
/// expressions to the draft adds it here.
pub(crate) fn link(draft: &mut ProxyDraft, linker: &mut Linker<'_>) -> Vec<ballast_expr::Error> {
    let routes = draft.front.routes.iter_mut();
    let mut conditions: Vec<&mut Condition> = routes
        .filter_map(|route| route.condition.as_mut())
        .collect();
    conditions.extend(draft.front.monitor.fail.iter_mut());
    conditions.extend(
        draft
            .back
            .use_servers
            .iter_mut()
            .filter_map(|one| one.condition.as_mut()),
    );
    conditions
        .into_iter()
        .filter_map(|condition| condition.link(linker).err())
        .collect()
}
