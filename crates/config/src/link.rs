//! Joins expressions to the lists and maps that they name.

use std::sync::Arc;

use ballast_expr::{AclSet, Linker, PatternFileReader, Store};
use ballast_model::LogProfile;
use ballast_syntax::{Diagnostic, Span};

use crate::context::Context;

/// Links the formats of a `log-profile` section to the lists and maps that they name.
pub(crate) fn link_log_profile(profile: &mut LogProfile, span: Span, context: &mut Context<'_>) {
    let title = format!("log-profile '{}'", profile.name);
    let acls = AclSet::new();
    with_files(context, (&title, "", Some(span)), |store, files| {
        let mut linker = Linker {
            store,
            files,
            acls: &acls,
        };
        let formats = profile.formats_mut();
        formats
            .filter_map(|format| format.link(&mut linker).err())
            .collect()
    });
}

/// Has `link` read the files that expressions of a section name, and reports what it returns. The
/// section is given by its title, the name of its own table and its place.
pub(crate) fn with_files(
    context: &mut Context<'_>,
    (title, table, span): (&str, &str, Option<Span>),
    link: impl FnOnce(&Store, &mut dyn PatternFileReader) -> Vec<ballast_expr::ExpressionError>,
) {
    let machine = context.machine;
    let mut stand_ins = Vec::new();
    let base = context.declarations.base.clone();
    let full = |path: &str| match &base {
        Some(base) if !path.starts_with('/') => format!("{base}/{path}"),
        _ => path.to_owned(),
    };
    let mut files = |path: &str| match machine.read(&full(path)) {
        Ok(bytes) => Ok(bytes),
        Err(error) => match machine.stand_in(&format!("file '{path}'")) {
            Some(text) => {
                stand_ins.push(text);
                Ok(Vec::new())
            }
            None => Err(error),
        },
    };
    let store = Arc::clone(&context.store);
    store.enter(title, base.as_deref());
    store.set_own_table(table);
    if let Some(span) = span {
        store.set_config_line(&context.config_line(span));
    }
    let errors = link(&store, &mut files);
    for text in stand_ins {
        context.used_stand_in(text);
    }
    for error in errors {
        let message = format!("{title} : {}", error.message);
        let diagnostic = Diagnostic::alert("unlinked-expression", message);
        let line = error
            .config_line
            .and_then(|config_line| context.line_of(&config_line));
        context.report(match line.or(span) {
            Some(span) => diagnostic.at(span),
            None => diagnostic,
        });
    }
}
