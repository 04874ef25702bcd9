//! From text to model: every section in turn, then the checks of the whole.

use std::cell::Cell;
use std::sync::Arc;

use ballast_expr::{Linker, Store};
use ballast_model::{Config, StatsSocket};
use ballast_syntax::{
    Diagnostic, Document, Env, Parser, Section, SectionKind, SectionPlace, Severity, SourceMap,
    Span, TextEdit,
};
use ballast_tls::shared_store::FormerStore;

use crate::build::{self, Drafts};
use crate::context::{Context, Declarations, Diagnostics, HINT_NAMES_MAX, LUA, Unimplemented};
use crate::draft::ProxyDraft;
use crate::machine::Machine;
use crate::tls_context;
use crate::{global, link, post, proxy, section, upgrade};

/// The default of `tune.stick-counters`.
const STICK_COUNTERS: u32 = 3;

/// A configuration that was read, usable or not.
#[derive(Debug)]
pub struct LoadedConfig {
    /// The model; when there are alerts, as much as could be understood.
    pub config: Config,
    /// Pattern lists and maps, shared by the expressions of the model.
    pub store: Arc<Store>,
    /// All diagnostics, in order of files and lines.
    pub diagnostics: Vec<Diagnostic>,
    /// The text, for printing diagnostics.
    pub sources: SourceMap,
    /// The places of proxy sections.
    pub sections: Vec<SectionPlace>,
    /// What is checked but not implemented. If it is not empty, the configuration must not be
    /// started.
    pub unimplemented: Vec<Unimplemented>,
    /// What was replaced by stand-ins.
    pub stand_ins: Vec<String>,
    /// The environment after the last line.
    pub environment: Env,
}

impl LoadedConfig {
    /// Whether there was an alert: the configuration is refused.
    #[must_use]
    pub fn has_alerts(&self) -> bool {
        self.highest_severity() == Some(Severity::Alert)
    }

    /// Whether there was a warning.
    #[must_use]
    pub fn has_warnings(&self) -> bool {
        self.diagnostics
            .iter()
            .any(|diagnostic| diagnostic.severity == Severity::Warning)
    }

    /// The highest severity of the diagnostics.
    #[must_use]
    pub fn highest_severity(&self) -> Option<Severity> {
        self.diagnostics
            .iter()
            .map(|diagnostic| diagnostic.severity)
            .max()
    }
}

/// Reads a configuration in this environment.
pub(crate) fn load_with(
    (store, former): (Arc<Store>, FormerStore),
    files: Vec<(String, Vec<u8>)>,
    machine: &dyn Machine,
    (environment, stand_ins): (Env, Vec<String>),
) -> LoadedConfig {
    let mut document = parse_files(files, machine, environment);
    let diagnostics = std::mem::take(&mut document.diagnostics);
    let mut context = Context {
        machine,
        sources: &document.sources,
        store: Arc::clone(&store),
        diagnostics: Diagnostics::after(diagnostics),
        hint_names_left: Cell::new(HINT_NAMES_MAX),
        unimplemented: Vec::new(),
        stand_ins,
        former,
        environment: document.env.clone(),
        declarations: Declarations::default(),
        stick_counters: STICK_COUNTERS,
    };
    let mut config = lower(&document, &mut context);
    let global = Arc::make_mut(&mut config.global);
    global.environment = running_environment(
        &document.env,
        machine.environment().value("HAPROXY_CFGFILES"),
        &global.stats_sockets,
    );
    let Context {
        diagnostics,
        mut unimplemented,
        stand_ins,
        ..
    } = context;
    let mut diagnostics = diagnostics.finish();
    check_lua(&mut unimplemented, &mut diagnostics);
    suggest_upgrades(&document, &mut diagnostics);
    let position = |span: Option<Span>| span.map(|span| (span.file, span.start));
    // Messages about the whole have no place, and come last.
    diagnostics.sort_by_key(|diagnostic| (diagnostic.span.is_none(), position(diagnostic.span)));
    diagnostics.dedup();
    unimplemented.sort_by_key(|word| position(word.span));
    unimplemented.dedup();
    let sections = document.sections_of_proxies();
    LoadedConfig {
        config,
        store,
        diagnostics,
        sections,
        sources: document.sources,
        unimplemented,
        stand_ins,
        environment: document.env,
    }
}

/// The environment of the process that runs, in HAProxy's order: it names its files and itself behind
/// what the files set, and its command sockets last. A worker of a master knows its name before.
fn running_environment(
    read: &Env,
    files: Option<&str>,
    sockets: &[StatsSocket],
) -> Vec<(String, String)> {
    let is_late = |name: &str| match name {
        "HAPROXY_CFGFILES" => true,
        "HAPROXY_LOCALPEER" => !read.is_defined("HAPROXY_MWORKER"),
        _ => false,
    };
    let (mut late, early): (Vec<_>, Vec<_>) = read.iter().partition(|(name, _)| is_late(name));
    // In the order of their names.
    late.sort_unstable();
    let all = early.into_iter().chain(late);
    let mut variables: Vec<_> = all
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    // Whatever was unset.
    if let Some(files) = files
        && !read.is_defined("HAPROXY_CFGFILES")
    {
        variables.push(("HAPROXY_CFGFILES".to_owned(), files.to_owned()));
    }
    if !sockets.is_empty() {
        let names: Vec<_> = sockets
            .iter()
            .map(|socket| socket.bind.address.with_family())
            .collect();
        variables.retain(|(name, _)| name != "HAPROXY_CLI");
        variables.push(("HAPROXY_CLI".to_owned(), names.join(";")));
    }
    variables
}

/// Sections and lines.
pub(crate) fn parse_files(
    files: Vec<(String, Vec<u8>)>,
    machine: &dyn Machine,
    environment: Env,
) -> Document {
    let facts = machine.facts();
    let mut parser = Parser::new(environment, &facts);
    for (name, bytes) in files {
        parser.add_file(name, bytes);
    }
    parser.finish()
}

fn lower(document: &Document, context: &mut Context<'_>) -> Config {
    let mut drafts = Drafts::default();
    let mut defaults = section::defaults::Defaults::default();
    global::prepare(&mut drafts.global);
    for section in &document.sections {
        match section.kind {
            SectionKind::Preamble => {}
            SectionKind::Global => {
                section::header::check_global(section, context);
                for line in section.statements() {
                    let result = global::line(&mut drafts.global, line, context);
                    context.report_error(result);
                }
            }
            SectionKind::Defaults => {
                let parent = defaults.parent(section, context);
                let name = section.name().map_or("", |word| word.text());
                let mut draft = ProxyDraft::inherit(parent.as_ref(), section.kind, name);
                proxy_section(section, &mut draft, context);
                defaults.declare(draft);
            }
            SectionKind::Frontend | SectionKind::Backend | SectionKind::Listen => {
                let parent = defaults.parent(section, context);
                let name = section.name().map_or("", |word| word.text());
                let mut draft = ProxyDraft::inherit(parent.as_ref(), section.kind, name);
                section::header::check(section, &mut draft, context);
                proxy_section(section, &mut draft, context);
                drafts.proxies.push(draft);
            }
            SectionKind::Healthcheck => {
                section::lower(section, context, &mut drafts);
                healthcheck(section, &mut drafts, context);
            }
            _ => section::lower(section, context, &mut drafts),
        }
    }
    defaults.finish(context);
    post::check(&mut drafts, context);
    let mut config = build::build(drafts, context);
    tls_context::compile(&mut config, context);
    config
}

/// The check that a `healthcheck` section describes.
fn healthcheck(section: &Section, drafts: &mut Drafts, context: &mut Context<'_>) {
    let Some(name) = section.name() else {
        return;
    };
    let mut draft = ProxyDraft::inherit(None, section.kind, name.text());
    proxy_section(section, &mut draft, context);
    let check = Arc::new(draft.back.check);
    drafts.healthchecks.insert(name.text().to_owned(), check);
}

/// All lines of a proxy section; links its rules to its ACLs.
fn proxy_section(section: &Section, draft: &mut ProxyDraft, context: &mut Context<'_>) {
    let header = section.header.as_ref();
    draft.span = header.map(|line| line.words_span());
    if let Some(span) = draft.span {
        draft.common.origin = context.origin(span);
    }
    for line in section.statements() {
        let result = proxy::line(draft, line, context);
        context.report_error(result);
    }
    proxy::finish(draft, context);
    link(draft, context);
}

/// Links the section's expressions to pattern files and ACLs.
fn link(draft: &mut ProxyDraft, context: &mut Context<'_>) {
    if has_unknown_acls(draft, context) {
        return;
    }
    let (title, name, span) = (draft.title(), draft.name.clone(), draft.span);
    let line = span
        .map(|span| context.config_line(span))
        .unwrap_or_default();
    let mut acls = std::mem::take(&mut draft.acls);
    link::with_files(context, (&title, &name, span), |store, files| {
        let mut errors = Vec::new();
        if let Err(failed) = acls.link(store, files) {
            errors.extend(failed);
        }
        let mut linker = Linker {
            store,
            files,
            acls: &acls,
        };
        errors.extend(proxy::link(draft, line, &mut linker));
        errors
    });
    draft.acls = acls;
}

/// Reports ACLs that formats name and nothing declares: formats are made when the section is read.
fn has_unknown_acls(draft: &ProxyDraft, context: &mut Context<'_>) -> bool {
    let mut found = false;
    for (reference, span) in &draft.section_state.references {
        let Err(error) = draft.acls.check_names(std::slice::from_ref(reference)) else {
            continue;
        };
        found = true;
        let message = format!("{} : {}", draft.title(), error.message);
        let mut diagnostic = Diagnostic::alert("unknown-acl", message).at(*span);
        diagnostic.help = error.hint.map(|hint| format!("did you mean '{hint}'?"));
        context.report(diagnostic);
    }
    found
}

/// Names that scripts provide are valid only if a script is loaded.
fn check_lua(unimplemented: &mut Vec<Unimplemented>, diagnostics: &mut Vec<Diagnostic>) {
    if unimplemented
        .iter()
        .any(|word| word.word.starts_with("lua-load"))
    {
        return;
    }
    unimplemented.retain(|word| {
        if word.word != LUA {
            return true;
        }
        let message = "unknown: what begins with 'lua.' comes from a script, and none is loaded";
        let mut alert = Diagnostic::alert("unknown-lua", message)
            .help("load one in the global section: lua-load <file>");
        alert.span = word.span;
        diagnostics.push(alert);
        false
    });
}

/// Adds the exact replacement lines to diagnostics about removed directives.
fn suggest_upgrades(document: &Document, diagnostics: &mut [Diagnostic]) {
    for diagnostic in diagnostics {
        if !matches!(diagnostic.code, "address-on-section" | "refused-keyword") {
            continue;
        }
        let Some(span) = diagnostic.span else {
            continue;
        };
        let found = document.sections.iter().find_map(|section| {
            let mut lines = section.all_lines();
            let line = lines.find(|line| {
                line.span.file == span.file
                    && line.span.start <= span.start
                    && span.start < line.span.end
            })?;
            Some((section, line))
        });
        let Some((section, line)) = found else {
            continue;
        };
        let Some((lines, reason)) = upgrade::suggestion(document, section, line) else {
            continue;
        };
        diagnostic.help = Some(if lines.is_empty() {
            format!("remove the line: {reason}")
        } else {
            format!("write: {}", lines.join(" ; "))
        });
        let edit = TextEdit {
            span: line.words_span(),
            text: lines.join("\n"),
        };
        diagnostic.replacement = Some(Box::new(edit));
    }
}
