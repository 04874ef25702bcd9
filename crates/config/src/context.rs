//! State shared by the lowering of all sections: access to the machine, diagnostics, unimplemented
//! words, and the names that sections declare for one another.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use ballast_expr::{Condition, Expr, LogFormat, Store, nearest};
use ballast_model::{Address, ErrorPages, FileBases, NameFamily, StickTable};
use ballast_syntax::{DIAGNOSTIC_COUNT_MAX, Diagnostic, SectionKind, Severity, SourceMap, Span};
use ballast_tls::shared_store::FormerStore;

use crate::feature::feature_of;
use crate::machine::Machine;
use crate::tls::words::{BindWords, ServerWords, UnspokenFile};

/// A word that is parsed and checked but not implemented: a configuration that contains one is not
/// started.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Unimplemented {
    /// The word as in the tables (`ssl`, `stick-table`, a sample or an action).
    pub word: String,
    /// Where it stands.
    pub span: Option<Span>,
    /// The feature it is part of (`TLS`, `stick tables`); empty when it is part of none. A word that
    /// HAProxy has removed has `REMOVED`.
    pub feature: String,
}

/// The code of messages about threads and processors that belong to no line.
pub(crate) const THREADS_CODE: &str = "threads";

/// The feature of words that HAProxy has removed.
pub(crate) const REMOVED: &str = "nothing: it was removed";

impl Unimplemented {
    /// The message when the configuration is not started.
    #[must_use]
    pub fn message(&self) -> String {
        let word = &self.word;
        let refusal = ballast_expr::fetch(word).map_or("", |row| row.refusal);
        if !refusal.is_empty() {
            return format!("'{word}' is understood and not carried out: {refusal}");
        }
        match self.feature.as_str() {
            REMOVED => {
                format!("'{word}' is understood and not carried out: HAProxy has removed it")
            }
            feature => format!(
                "'{word}' is understood but not carried out yet: it {}",
                planned_release(feature)
            ),
        }
    }

    /// The same as a diagnostic of a severity.
    #[must_use]
    pub fn diagnostic(&self, severity: Severity) -> Diagnostic {
        let mut diagnostic = Diagnostic::new(severity, "not-served-yet", self.message());
        diagnostic.span = self.span;
        diagnostic
    }
}

/// When a word of a feature will be implemented; the feature may be empty.
pub(crate) fn planned_release(feature: &str) -> String {
    match feature {
        "" => "comes in a later version".to_owned(),
        feature => format!("comes in a later version, with {feature}"),
    }
}

/// Shared by all sections of one load.
pub(crate) struct Context<'s> {
    /// The machine.
    pub machine: &'s dyn Machine,
    /// The text, for messages that quote it and for lines of other files.
    pub sources: &'s SourceMap,
    /// Pattern lists and maps, shared by all expressions.
    pub store: Arc<Store>,
    /// The diagnostics so far.
    pub diagnostics: Diagnostics,
    /// How many more names may be compared with unknown ones to find a similar one.
    pub hint_names_left: Cell<usize>,
    /// Words that are not implemented.
    pub unimplemented: Vec<Unimplemented>,
    /// What was replaced by stand-ins.
    pub stand_ins: Vec<String>,
    /// The certificates and keys that were in force before.
    pub former: FormerStore,
    /// The environment after the text, for variables in addresses.
    pub environment: ballast_syntax::Env,
    /// Names declared by sections.
    pub declarations: Declarations,
    /// `tune.stick-counters`, if it was read already.
    pub stick_counters: u32,
}

/// Names that sections declare. Uses are checked when all sections are read.
#[derive(Debug, Default)]
pub(crate) struct Declarations {
    /// The global section has a `description`.
    pub has_description: bool,
    /// `http-errors` groups.
    pub error_groups: BTreeMap<String, ErrorPages>,
    /// Every other named section.
    pub sections: DeclaredNames,
    /// Stick tables by name: the section that has it, and where.
    pub(crate) tables: BTreeMap<String, (String, Span)>,
    /// The settings of the stick tables, in file order.
    pub(crate) stick_tables: Vec<StickTable>,
    /// The tables whose lines say `write-to`, and where.
    pub(crate) write_tos: Vec<(String, Span)>,
    /// Tables in which stick rules store servers: by name, or of a proxy.
    pub(crate) sticky_tables: Vec<String>,
    /// References to sections: kind, name, the keyword, the place.
    pub references: Vec<(SectionKind, String, String, Span)>,
    /// The `defaults` with rules that frontends or backends used, by their places.
    pub rule_users: Vec<(Span, SectionKind)>,
    /// `unix-bind` of the global section.
    pub unix_bind: UnixBind,
    /// `default-path`: the directory that relative file names start from.
    pub(crate) base: Option<String>,
    /// `server-state-base`: the directory that names of state files start from.
    pub(crate) state_base: Option<String>,
    /// TLS words of the global section and of `crt-store` sections that other lines depend on.
    pub(crate) tls: TlsDefaults,
    /// `expose-experimental-directives` was read.
    pub(crate) experimental: bool,
    /// Words of the global section that may occur once, and did.
    pub(crate) used_once: BTreeSet<&'static str>,
}

/// TLS words that other lines depend on, as far as they were read: a line takes the defaults that
/// stand before it.
#[derive(Debug)]
pub(crate) struct TlsDefaults {
    /// `ca-base`, `crt-base`, `key-base`; `default-path` is [`Declarations::base`].
    pub(crate) bases: FileBases,
    /// `ssl-default-bind-*`.
    pub(crate) bind: BindWords,
    /// `ssl-default-server-*`.
    pub(crate) server: ServerWords,
    /// `ssl-server-verify none`.
    pub(crate) verify_none: bool,
    /// `ssl-load-extra-files` allows bundles.
    pub(crate) bundles: bool,
    /// The names of `load` lines.
    pub(crate) loads: BTreeSet<String>,
    /// The files of lines that do not speak TLS.
    pub(crate) unspoken: Vec<UnspokenFile>,
}

impl Default for TlsDefaults {
    fn default() -> Self {
        Self {
            bases: FileBases::default(),
            bind: BindWords::default(),
            server: ServerWords::default(),
            verify_none: false,
            bundles: true,
            loads: BTreeSet::new(),
            unspoken: Vec::new(),
        }
    }
}

/// `unix-bind` of the global section: defaults for unix sockets.
#[derive(Clone, Debug, Default)]
pub(crate) struct UnixBind {
    /// `prefix`.
    pub prefix: Option<String>,
    /// `user`, `group`, `mode`.
    pub owner: ballast_model::UnixOwner,
}

/// The named sections of the files.
#[derive(Debug, Default)]
pub(crate) struct DeclaredNames(BTreeMap<String, Vec<(SectionKind, Span)>>);

impl DeclaredNames {
    /// Adds one.
    pub(crate) fn add(&mut self, kind: SectionKind, name: &str, span: Span) {
        let same = self.0.entry(name.to_owned()).or_default();
        // A third section of the same name gives the same error as a second, so it is not stored.
        if same.len() < SAME_NAME_COUNT_MAX {
            same.push((kind, span));
        }
    }

    /// The sections with a name, in order.
    pub(crate) fn of_name(&self, name: &str) -> &[(SectionKind, Span)] {
        self.0.get(name).map_or(&[], Vec::as_slice)
    }

    /// The names of all sections of a kind.
    pub(crate) fn of_kind(&self, kind: SectionKind) -> impl Iterator<Item = &str> {
        let all = self.0.iter();
        all.filter(move |(_, same)| same.iter().any(|(known, _)| *known == kind))
            .map(|(name, _)| name.as_str())
    }
}

/// The diagnostics of a configuration, up to a maximum number.
#[derive(Debug, Default)]
pub(crate) struct Diagnostics {
    diagnostics: Vec<Diagnostic>,
    has_alerts: bool,
    /// How many were dropped, and whether one of them was an alert.
    dropped: usize,
    dropped_alerts: bool,
}

impl Diagnostics {
    /// Continues after the diagnostics of an earlier step.
    pub(crate) fn after(diagnostics: Vec<Diagnostic>) -> Self {
        Self {
            has_alerts: diagnostics.iter().any(is_alert),
            diagnostics,
            ..Self::default()
        }
    }

    fn push(&mut self, diagnostic: Diagnostic) {
        let is_alert = is_alert(&diagnostic);
        self.has_alerts |= is_alert;
        if self.diagnostics.len() < DIAGNOSTIC_COUNT_MAX {
            self.diagnostics.push(diagnostic);
        } else {
            self.dropped += 1;
            self.dropped_alerts |= is_alert;
        }
    }

    /// All diagnostics. A dropped alert still counts as one.
    pub(crate) fn finish(mut self) -> Vec<Diagnostic> {
        if self.dropped > 0 {
            let severity = match self.dropped_alerts {
                true => Severity::Alert,
                false => Severity::Warning,
            };
            let message = format!("{} more messages are not shown", self.dropped);
            let last = Diagnostic::new(severity, "too-many-messages", message);
            self.diagnostics.push(last);
        }
        self.diagnostics
    }
}

fn is_alert(diagnostic: &Diagnostic) -> bool {
    diagnostic.severity == Severity::Alert
}

/// The maximum number of sections of one name that are stored.
const SAME_NAME_COUNT_MAX: usize = 64;

/// The maximum number of names compared with unknown ones for a whole file.
pub(crate) const HINT_NAMES_MAX: usize = 200_000;

impl Declarations {
    /// Whether a section of this kind and name was declared.
    #[must_use]
    pub(crate) fn declares(&self, kind: SectionKind, name: &str) -> bool {
        let mut same = self.sections.of_name(name).iter();
        same.any(|(known, _)| *known == kind)
    }

    /// Records that `keyword` refers to a section, to be checked at the end.
    pub(crate) fn add_reference(
        &mut self,
        kind: SectionKind,
        name: &str,
        keyword: &str,
        span: Span,
    ) {
        self.references
            .push((kind, name.to_owned(), keyword.to_owned(), span));
    }
}

impl Context<'_> {
    /// Adds a diagnostic.
    pub(crate) fn report(&mut self, diagnostic: Diagnostic) {
        self.diagnostics.push(diagnostic);
    }

    /// Adds the diagnostic of a line that failed.
    pub(crate) fn report_error(&mut self, result: Result<(), Diagnostic>) {
        if let Err(diagnostic) = result {
            self.report(diagnostic);
        }
    }

    /// The most similar of `names` to an unknown name, if it is similar enough.
    pub(crate) fn hint<'a>(
        &self,
        name: &str,
        names: impl IntoIterator<Item = &'a str>,
    ) -> Option<String> {
        let mut left = self.hint_names_left.get();
        let names = names.into_iter().take(left).inspect(|_| left -= 1);
        let hint = nearest(name, names);
        self.hint_names_left.set(left);
        hint
    }

    /// Adds a warning.
    pub(crate) fn warn(&mut self, code: &'static str, message: impl Into<String>, span: Span) {
        self.report(Diagnostic::warning(code, message).at(span));
    }

    /// The name of this process among peers: `localpeer`, `-L`, or the machine's.
    pub(crate) fn local_peer(&self) -> String {
        let named = self.environment.value("HAPROXY_LOCALPEER");
        named.map_or_else(|| self.machine.hostname(), str::to_owned)
    }

    /// Whether there was an error so far.
    pub(crate) fn has_alerts(&self) -> bool {
        self.diagnostics.has_alerts
    }

    /// Records that a word is not implemented.
    pub(crate) fn unimplemented(&mut self, word: &str, feature: &str, span: Span) {
        self.unimplemented.push(Unimplemented {
            word: word.to_owned(),
            span: Some(span),
            feature: feature.to_owned(),
        });
    }

    /// Records the parts of an expression that are not implemented.
    pub(crate) fn check_expr(&mut self, expr: &Expr, span: Span) {
        for word in expr.unimplemented() {
            self.unimplemented(word, feature_of(word), span);
        }
    }

    /// The same for a log format.
    pub(crate) fn check_format(&mut self, format: &LogFormat, span: Span) {
        for word in format.unimplemented() {
            self.unimplemented(word, feature_of(word), span);
        }
    }

    /// The same for the anonymous ACLs of a condition and the named ones it uses.
    pub(crate) fn check_condition(
        &mut self,
        condition: &Condition,
        acls: &ballast_expr::AclSet,
        span: Span,
    ) {
        for word in condition.unimplemented(acls) {
            self.unimplemented(word, feature_of(word), span);
        }
    }

    /// Records that a stand-in was used.
    pub(crate) fn used_stand_in(&mut self, what: String) {
        if !self.stand_ins.contains(&what) {
            self.stand_ins.push(what);
        }
    }

    /// The content of a file that a keyword names; a stand-in is empty.
    ///
    /// # Errors
    /// With an alert at `span`.
    pub(crate) fn read(
        &mut self,
        path: &str,
        keyword: &str,
        span: Span,
    ) -> Result<Vec<u8>, Diagnostic> {
        match self.machine.read(&self.path(path)) {
            Ok(bytes) => Ok(bytes),
            Err(error) => {
                self.stand_in_or(&format!("file '{path}'"), || {
                    let message = format!("'{keyword}' : cannot read file '{path}': {error}");
                    Diagnostic::alert("missing-file", message).at(span)
                })?;
                Ok(Vec::new())
            }
        }
    }

    /// A file name after `default-path`.
    pub(crate) fn path(&self, path: &str) -> String {
        match &self.declarations.base {
            Some(base) if !path.starts_with('/') => format!("{base}/{path}"),
            _ => path.to_owned(),
        }
    }

    /// Checks that a path exists.
    ///
    /// # Errors
    /// With an alert at `span`.
    pub(crate) fn exists(
        &mut self,
        path: &str,
        keyword: &str,
        span: Span,
    ) -> Result<(), Diagnostic> {
        if self.machine.exists(&self.path(path)) {
            return Ok(());
        }
        self.stand_in_or(&format!("file '{path}'"), || {
            let message = format!("'{keyword}' : cannot find '{path}'");
            Diagnostic::alert("missing-file", message).at(span)
        })
    }

    /// Checks that the file of a TLS name exists, or that what it has is in memory.
    ///
    /// # Errors
    /// With `error`.
    pub(crate) fn exists_at(
        &mut self,
        name: &str,
        error: impl FnOnce() -> Diagnostic,
    ) -> Result<(), Diagnostic> {
        if self.former.is_in_memory(name) || self.machine.exists(&self.path(name)) {
            return Ok(());
        }
        self.stand_in_or(&format!("file '{name}'"), error)
    }

    /// The addresses of a name; the stand-ins are 192.0.2.1 and 2001:db8::1.
    ///
    /// # Errors
    /// The reason.
    pub(crate) fn resolve(&mut self, host: &str) -> Result<Vec<IpAddr>, String> {
        match self.machine.resolve(host) {
            Ok(addresses) if !addresses.is_empty() => Ok(addresses),
            found => match self.machine.stand_in(&format!("host '{host}'")) {
                Some(text) => {
                    self.used_stand_in(text);
                    Ok(vec![
                        IpAddr::from([192, 0, 2, 1]),
                        IpAddr::from([0x2001, 0xdb8, 0, 0, 0, 0, 0, 1]),
                    ])
                }
                None => Err(found.err().unwrap_or_else(|| "no address".to_owned())),
            },
        }
    }

    /// An address with its name resolved.
    ///
    /// # Errors
    /// The reason.
    pub(crate) fn resolve_address(&mut self, address: &Address) -> Result<Address, String> {
        let Address::Name { host, port, family } = address else {
            return Ok(address.clone());
        };
        let fits = |ip: &IpAddr| match family {
            NameFamily::Any => true,
            NameFamily::V4 => ip.is_ipv4(),
            NameFamily::V6 => ip.is_ipv6(),
        };
        let found = self.resolve(host);
        let ip = found.map(|all| all.into_iter().find(fits));
        match ip {
            Ok(Some(ip)) => Ok(Address::Inet(SocketAddr::new(ip, *port))),
            Ok(None) => Err(format!(
                "could not resolve address '{host}': none of the family"
            )),
            Err(error) => Err(format!("could not resolve address '{host}': {error}")),
        }
    }

    /// Uses a stand-in for something missing if the machine provides one.
    ///
    /// # Errors
    /// With `error` if it does not.
    pub(crate) fn stand_in_or(
        &mut self,
        what: &str,
        error: impl FnOnce() -> Diagnostic,
    ) -> Result<(), Diagnostic> {
        match self.machine.stand_in(what) {
            Some(text) => {
                self.used_stand_in(text);
                Ok(())
            }
            None => Err(error()),
        }
    }

    /// A position in messages: `file:line`.
    #[must_use]
    pub(crate) fn file_and_line(&self, span: Span) -> String {
        let at = self.sources.locate(span);
        format!("{}:{}", at.file, at.line)
    }

    /// The line, as pattern lists note it.
    #[must_use]
    pub(crate) fn config_line(&self, span: Span) -> ballast_expr::ConfigLine {
        let at = self.sources.locate(span);
        ballast_expr::ConfigLine {
            file: at.file.into(),
            line: at.line,
        }
    }

    /// The span of a line that a pattern list noted.
    #[must_use]
    pub(crate) fn line_of(&self, config_line: &ballast_expr::ConfigLine) -> Option<Span> {
        let mut files = self.sources.files();
        let file = files.find(|file| self.sources.name(*file) == &*config_line.file)?;
        self.sources.line_span(file, config_line.line)
    }

    /// The position, as the model notes it.
    #[must_use]
    pub(crate) fn origin(&self, span: Span) -> ballast_model::Origin {
        let at = self.sources.locate(span);
        ballast_model::Origin {
            file: self.sources.shared_name(span.file),
            line: at.line,
        }
    }
}

/// The names that scripts provide: fetches, converters, actions and services.
pub(crate) const LUA: &str = "lua.";

/// So many words are listed where another was meant.
const LISTED_MAX: usize = 40;

/// Adds the words that are allowed, "did you mean" and the edit to a diagnostic at a wrong word.
#[must_use]
pub(crate) fn suggestion<'a>(
    diagnostic: Diagnostic,
    word: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Diagnostic {
    let mut known: Vec<&str> = candidates.into_iter().collect();
    // Of words that begin many keywords the first is told once.
    known.dedup();
    let mut diagnostic = diagnostic;
    let is_told = known.iter().all(|one| diagnostic.message.contains(one));
    if diagnostic.help.is_none() && known.len() <= LISTED_MAX && !is_told {
        diagnostic.help = Some(format!("one of: {}", known.join(", ")));
    }
    let Some(hint) = nearest(word, known) else {
        return diagnostic;
    };
    diagnostic.message = format!("{}; did you mean '{hint}' maybe ?", diagnostic.message);
    match diagnostic.span {
        Some(span) => diagnostic.replace(span, hint),
        None => diagnostic,
    }
}
