//! Compiles the TLS words of bind and server lines: reads the files they name, and judges the
//! options together. Last of all, when every section has been read: lines may name certificates of
//! `crt-store` sections below them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use ballast_model::{
    AuthoritySource, BindTls, CertificateList, CertificateListLine, CertificateSource, Config,
    FileBases, Global, GlobalTls, Origin, ServerTls, TlsFile, TlsOptions, VerifyErrors,
};
use ballast_syntax::{Diagnostic, Severity};
use ballast_tls::authorities::{Authorities as TrustContent, AuthorityError, TrustedAuthorities};
use ballast_tls::bind::{BindCertificates, BindEntry, ListRow};
use ballast_tls::ciphers::translate_signatures;
use ballast_tls::client_config::{ServerLineParts, ServerTrust};
use ballast_tls::client_verifier::ClientVerifier;
use ballast_tls::context::{BindContext, CompiledServer, ServerContext};
use ballast_tls::files::CertificateFileReader;
use ballast_tls::ocsp::{OcspError, OcspResponse};
use ballast_tls::options::VerifyMode;
use ballast_tls::rustls::server::{
    NoServerSessionStorage, ServerSessionMemoryCache, StoresServerSessions,
};
use ballast_tls::rustls::time_provider::{DefaultTimeProvider, TimeProvider as _};
use ballast_tls::server_config::{BindParts, BindTlsSettings};
use ballast_tls::shared_store::{FormerStore, SharedStore, StoreState};
use ballast_tls::store::{CertificateStore, LoadError, LoadReason, StoredCertificate, TakeOver};
use ballast_tls::store_transaction::{ListEdit, TrustFile, TrustKind, TrustState};
use ballast_tls::tickets::TicketKeys;
use ballast_tls::verify_error::IgnoredErrors;

use crate::context::Context;
use crate::machine::Machine;

mod list_edits;
mod machine_files;
mod ticket_keys;
mod translate;
mod unspoken;

use machine_files::{MachineFiles, SYSTEM_CA};
use translate::{client_options, filters_of, handshake_options, load_options, store_options};

/// Compiles all lines with TLS.
pub(crate) fn compile(config: &mut Config, context: &mut Context<'_>) {
    let global = Arc::clone(&config.global);
    let files = MachineFiles {
        machine: context.machine,
        bases: &global.tls.bases,
    };
    let mut compiler = Compiler::new(&files, &global, context.former.clone());
    compiler.load_stores(&global.tls);
    for frontend in &mut config.frontends {
        if frontend.binds.iter().all(|bind| bind.tls.is_none()) {
            continue;
        }
        let name = frontend.common.name.clone();
        for bind in &mut Arc::make_mut(frontend).binds {
            if let Some(tls) = &mut bind.tls {
                compiler.scope = format!("{name} {}", bind.address).into();
                compiler.bind(tls, &bind.origin);
            }
        }
    }
    for backend in &mut config.backends {
        if backend.servers.iter().all(|server| server.tls.is_none()) {
            continue;
        }
        for server in &mut Arc::make_mut(backend).servers {
            let server = Arc::make_mut(server);
            if server.tls.is_none() {
                continue;
            }
            if let Some(tls) = &mut server.settings.tls {
                tls.keeps_secrets = global.tls.keylog;
                compiler.server(tls, &server.origin);
            }
        }
    }
    compiler.unspoken(&context.declarations.tls.unspoken);
    let (read, problems) = compiler.finish();
    drop(global);
    Arc::make_mut(&mut config.global).tls.shared_store = read;
    for problem in problems {
        problem.report(context);
    }
}

/// What is wrong with a line.
struct Problem {
    severity: Severity,
    origin: Origin,
    text: String,
    /// The file that is missing, if that is it.
    missing: Option<String>,
}

impl Problem {
    /// A file that is missing has a stand-in where another machine's configuration is checked.
    fn report(self, context: &mut Context<'_>) {
        if let Some(path) = &self.missing
            && let Some(text) = context.machine.stand_in(&format!("file '{path}'"))
        {
            context.used_stand_in(text);
            return;
        }
        let config_line = ballast_expr::ConfigLine {
            file: (&*self.origin.file).into(),
            line: self.origin.line,
        };
        let diagnostic = Diagnostic::new(self.severity, "tls", self.text);
        context.report(match context.line_of(&config_line) {
            Some(span) => diagnostic.at(span),
            None => diagnostic,
        });
    }
}

struct Compiler<'f> {
    files: &'f dyn CertificateFileReader,
    store: CertificateStore,
    /// Files of authorities by path.
    authorities: BTreeMap<String, TrustFile>,
    /// Files of revocation lists by path.
    revocation: BTreeMap<String, TrustFile>,
    /// What commands have done to lists of certificates.
    list_edits: Vec<ListEdit>,
    bases: FileBases,
    /// Keys of tickets by file, and those of the process.
    ticket_keys: BTreeMap<String, Arc<TicketKeys>>,
    former: FormerStore,
    sessions: Arc<dyn StoresServerSessions>,
    session_lifetime_s: u32,
    record_bytes_max: u32,
    /// What is free of a buffer: as much early data as HAProxy takes.
    early_data_bytes_max: u32,
    /// The bind line: its sessions are resumed there only.
    scope: Arc<str>,
    problems: Vec<Problem>,
}

/// The TLS settings of each set of options on one bind line.
type TlsSettingsByOptions = Vec<(TlsOptions, Arc<BindTlsSettings>)>;

impl<'f> Compiler<'f> {
    fn new(files: &'f dyn CertificateFileReader, process: &Global, former: FormerStore) -> Self {
        let (global, tune) = (&process.tls, &process.tune);
        Self {
            files,
            store: former.store(store_options(global)),
            authorities: BTreeMap::new(),
            revocation: BTreeMap::new(),
            list_edits: former.list_edits(),
            bases: global.bases.clone(),
            ticket_keys: BTreeMap::new(),
            former,
            sessions: process_sessions(global),
            early_data_bytes_max: tune.buffer_bytes.saturating_sub(tune.rewrite_bytes),
            session_lifetime_s: u32::try_from(global.session_lifetime.as_secs())
                .unwrap_or(u32::MAX),
            record_bytes_max: global.record_bytes_max,
            scope: "".into(),
            problems: Vec::new(),
        }
    }

    /// What was read, and what is wrong with it.
    fn finish(mut self) -> (SharedStore, Vec<Problem>) {
        let trust = |files| TrustState {
            files,
            transaction: None,
        };
        let (state, overruled) = self.former.state_after(StoreState {
            store: self.store,
            ticket_keys: self.ticket_keys,
            authorities: trust(self.authorities),
            revocation: trust(self.revocation),
            ..StoreState::default()
        });
        self.problems.extend(overruled.iter().map(|name| Problem {
            severity: Severity::Notice,
            origin: Origin::default(),
            text: format!("The file overrules what was set by command: certificate {name}"),
            missing: None,
        }));
        (SharedStore::new(state), self.problems)
    }

    /// Loads the certificates of `crt-store` sections. `issuers-chain-path` comes first: chains are
    /// completed as certificates are loaded.
    fn load_stores(&mut self, global: &GlobalTls) {
        if let Some(directory) = &global.issuers_chain_path {
            let loaded = self.store.load_issuers(self.files, &directory.path);
            self.loaded("issuers-chain-path", &directory.origin, loaded);
        }
        for load in global.certificate_stores.iter().flat_map(|one| &one.loads) {
            let options = load_options(&load.parts);
            let path = &load.certificate.path;
            let loaded = self.store.load_as(self.files, &load.name, path, &options);
            self.loaded("load", &load.certificate.origin, loaded);
        }
    }

    fn bind(&mut self, tls: &mut BindTls, origin: &Origin) {
        let mut compiled = TlsSettingsByOptions::new();
        let mut entries = Vec::new();
        let mut lists = Vec::new();
        for source in &tls.certificates {
            lists.extend(self.list_of(source));
            match source {
                CertificateSource::Crt(file) => {
                    self.crt(tls, (file, false), &mut compiled, &mut entries);
                }
                CertificateSource::DefaultCrt(file) => {
                    self.crt(tls, (file, true), &mut compiled, &mut entries);
                }
                CertificateSource::List(list) => self.list(tls, list, &mut compiled, &mut entries),
            }
        }
        if tls.certificates.is_empty() {
            // Words are judged even where every name is refused.
            self.tls_settings(tls, &tls.options, origin, &mut compiled);
        }
        lists.sort_unstable();
        lists.dedup();
        let certificates = BindCertificates::new(entries, tls.strict_sni).with_lists(lists);
        let certificates = self.with_list_edits(tls, certificates, &mut compiled);
        tls.context = BindContext::new(certificates);
    }

    /// The path of a crt-list or of a directory.
    fn list_of(&self, source: &CertificateSource) -> Option<String> {
        let file = match source {
            CertificateSource::List(list) => return Some(list.path.clone()),
            CertificateSource::Crt(file) | CertificateSource::DefaultCrt(file) => file,
        };
        if self.store.get(&file.path).is_some() {
            return None;
        }
        // Who loads it reports an error.
        let names = self.files.list(&file.path).ok().flatten();
        names.map(|_| file.path.trim_end_matches('/').to_owned())
    }

    fn crt(
        &mut self,
        tls: &BindTls,
        (file, is_default): (&TlsFile, bool),
        compiled: &mut TlsSettingsByOptions,
        entries: &mut Vec<BindEntry>,
    ) {
        let loaded = self.store.load_crt(self.files, &file.path);
        let Some(certificates) = self.loaded("crt", &file.origin, loaded) else {
            return;
        };
        self.check_stapling(&certificates, &file.origin);
        let Some(tls_settings) = self.tls_settings(tls, &tls.options, &file.origin, compiled)
        else {
            return;
        };
        // All of a bundle that comes first are default certificates.
        let is_default = is_default || (entries.is_empty() && is_bundle(&certificates));
        let row = directory_row(&file.path, &certificates);
        entries.extend(certificates.into_iter().map(|certificate| BindEntry {
            certificate,
            filters: None,
            is_default,
            tls_settings: Arc::clone(&tls_settings),
            row: row.clone(),
        }));
    }

    fn list(
        &mut self,
        tls: &BindTls,
        list: &CertificateList,
        compiled: &mut TlsSettingsByOptions,
        entries: &mut Vec<BindEntry>,
    ) {
        for line in &list.lines {
            let loaded = self.list_line(line);
            let Some(certificates) = self.loaded("crt-list", &list.origin, loaded) else {
                continue;
            };
            self.check_stapling(&certificates, &list.origin);
            let options = line.options.inherit(&tls.options);
            let Some(tls_settings) = self.tls_settings(tls, &options, &list.origin, compiled)
            else {
                continue;
            };
            let filters = (!line.filters.is_empty()).then(|| filters_of(&line.filters));
            let row = list_row(&list.path, line);
            entries.extend(certificates.into_iter().map(|certificate| BindEntry {
                certificate,
                filters: filters.clone(),
                is_default: false,
                tls_settings: Arc::clone(&tls_settings),
                row: Some(Arc::clone(&row)),
            }));
        }
    }

    /// Reports what came with certificates and is not used: timestamps, and OCSP answers that are
    /// no good, or not in time. As in HAProxy only an unknown issuer is an error.
    fn check_stapling(&mut self, certificates: &[Arc<StoredCertificate>], origin: &Origin) {
        for stored in certificates {
            let certificate = stored.current();
            if certificate.sctl.is_some() {
                let text = format!(
                    "'{}' : signed certificate timestamps ('sctl') are not sent: the TLS library \
                     cannot; ask for a certificate that holds them itself",
                    stored.name()
                );
                self.report(Severity::Warning, origin, text);
            }
            let Some(error) = &certificate.ocsp_error else {
                if let Some(why) = certificate
                    .ocsp
                    .as_ref()
                    .and_then(|answer| out_of_time(answer))
                {
                    let text = format!("'{}' : OCSP answer not used: {why}", stored.name());
                    self.report(Severity::Warning, origin, text);
                }
                continue;
            };
            let severity = match error {
                OcspError::NoIssuer => Severity::Alert,
                _ => Severity::Warning,
            };
            let text = format!("'{}' : OCSP answer not used: {error}", stored.name());
            self.report(severity, origin, text);
        }
    }

    fn list_line(
        &mut self,
        line: &CertificateListLine,
    ) -> Result<Vec<Arc<StoredCertificate>>, LoadError> {
        let path = &line.certificate.path;
        let options = load_options(&line.parts);
        if !options.names_files() {
            return self.store.load_crt_with(self.files, path, &options);
        }
        let one = self.store.load(self.files, path, &options)?;
        Ok(vec![one])
    }

    /// The TLS settings of a set of options, made once for a bind line.
    fn tls_settings(
        &mut self,
        tls: &BindTls,
        written: &TlsOptions,
        origin: &Origin,
        compiled: &mut TlsSettingsByOptions,
    ) -> Option<Arc<BindTlsSettings>> {
        if let Some((_, tls_settings)) = compiled.iter().find(|(options, _)| options == written) {
            return Some(Arc::clone(tls_settings));
        }
        let takes_early_data = self.takes_early_data(tls, written, origin);
        let parts = BindParts {
            time: Arc::new(DefaultTimeProvider),
            verifier: self.verifier(tls, written, origin)?,
            // Early data may come once: they need a session that is kept here, and taken with them.
            ticket_keys: match takes_early_data {
                true => None,
                false => self.ticket_keys(tls)?,
            },
            sessions: Arc::clone(&self.sessions),
            scope: match tls.ticket_keys {
                // Who shares keys shares sessions.
                Some(_) => "".into(),
                None => Arc::clone(&self.scope),
            },
            session_lifetime_s: self.session_lifetime_s,
            prefer_client_ciphers: tls.prefer_client_ciphers,
            early_data_bytes_max: match takes_early_data {
                true => self.early_data_bytes_max,
                false => 0,
            },
            record_bytes_max: self.record_bytes_max,
        };
        let tls_settings = self.or_report(
            BindTlsSettings::new(&handshake_options(written), &parts),
            origin,
        )?;
        for missing in tls_settings.missing_words() {
            let text = format!(
                "'{}' : '{}' is not built in: it is left out",
                missing.option, missing.word
            );
            self.report(Severity::Warning, origin, text);
        }
        let tls_settings = Arc::new(tls_settings);
        compiled.push((written.clone(), Arc::clone(&tls_settings)));
        Some(tls_settings)
    }

    /// Whether these TLS settings take early data: their sessions are kept here then, and not in tickets.
    fn takes_early_data(&mut self, tls: &BindTls, written: &TlsOptions, origin: &Origin) -> bool {
        if !written.allow_early_data {
            return false;
        }
        let reason = if tls.tickets && tls.ticket_keys.is_some() {
            "tickets of 'tls-ticket-keys' can be shown twice"
        } else if !self.sessions.can_cache() {
            "'tune.ssl.cachesize 0' leaves no place for sessions that can be shown once"
        } else {
            return true;
        };
        let text = format!(
            "'allow-0rtt' : {reason}: no early data are taken, sessions are resumed with a round trip"
        );
        self.report(Severity::Notice, origin, text);
        false
    }

    /// Who judges client certificates. The outer `None`: it was reported why there is nobody.
    fn verifier(
        &mut self,
        tls: &BindTls,
        options: &TlsOptions,
        origin: &Origin,
    ) -> Option<Option<Arc<ClientVerifier>>> {
        // What is named is read, and judged, even where nobody is asked for a certificate.
        let trust = TrustedAuthorities {
            authorities: self.authorities(options.ca_file.as_ref())?,
            verify_only: self.authorities(options.ca_verify_file.as_ref())?,
            revocation: self.revocation(options.crl_file.as_ref())?,
        };
        let schemes = match &options.client_signature_algorithms {
            Some(list) => {
                let translated = translate_signatures(list);
                let translated = translated.map_err(|error| format!("'client-sigalgs' : {error}"));
                Some(self.or_report(translated, origin)?.found)
            }
            None => None,
        };
        let mode = match options.verify {
            None | Some(VerifyMode::None) => return Some(None),
            Some(mode) => mode,
        };
        self.report_unusable(&trust, origin);
        Some(Some(Arc::new(ClientVerifier::new(
            mode,
            trust,
            ignored(&tls.ca_ignored_errors),
            ignored(&tls.crt_ignored_errors),
            !options.no_ca_names,
            schemes,
        ))))
    }

    /// The authorities of `ca-file` and `ca-verify-file`; each file is read once.
    fn authorities(
        &mut self,
        written: Option<&AuthoritySource>,
    ) -> Option<Option<Arc<TrustContent>>> {
        let file = match written {
            None => return Some(None),
            Some(AuthoritySource::File(file)) => file.clone(),
            Some(AuthoritySource::System(origin)) => TlsFile {
                path: SYSTEM_CA.to_owned(),
                origin: origin.clone(),
            },
        };
        self.trust_file(TrustKind::Authorities, &file).map(Some)
    }

    fn revocation(&mut self, file: Option<&TlsFile>) -> Option<Option<Arc<TrustContent>>> {
        match file {
            None => Some(None),
            Some(file) => self.trust_file(TrustKind::Revocation, file).map(Some),
        }
    }

    /// Warns once of each authority and revocation list that cannot be used here.
    fn report_unusable(&mut self, trust: &TrustedAuthorities, origin: &Origin) {
        for text in trust.remarks() {
            if self.problems.iter().all(|problem| problem.text != text) {
                self.report(Severity::Warning, origin, text);
            }
        }
    }

    fn trust_file(&mut self, kind: TrustKind, file: &TlsFile) -> Option<Arc<TrustContent>> {
        let (word, compiled) = match kind {
            TrustKind::Authorities => ("ca-file", &self.authorities),
            TrustKind::Revocation => ("crl-file", &self.revocation),
        };
        if let Some(compiled) = compiled.get(&file.path) {
            return Some(Arc::clone(&compiled.content));
        }
        let found = match self.former.trust(kind, &file.path) {
            Some(former) => Ok(former),
            None => match TrustContent::load(self.files, &file.path) {
                Ok(read) => {
                    let read = TrustFile::read(read);
                    Ok(self.former.trust_after(kind, &file.path, read))
                }
                Err(error) if error.reason == AuthorityError::Missing => {
                    let former = self.former.trust_of_missing(kind, &file.path);
                    former.ok_or(error)
                }
                Err(error) => Err(error),
            },
        };
        let found = match found {
            Ok(found) => found,
            Err(error) => {
                let is_missing = error.reason == AuthorityError::Missing;
                let text = format!("'{word}' : unable to load {error}");
                self.file_problem(&file.origin, is_missing.then_some(&error.file), text);
                return None;
            }
        };
        let compiled = match kind {
            TrustKind::Authorities => &mut self.authorities,
            TrustKind::Revocation => &mut self.revocation,
        };
        let content = Arc::clone(&found.content);
        compiled.insert(file.path.clone(), found);
        Some(content)
    }

    /// A server line, and what probes of it need.
    fn server(&mut self, tls: &mut ServerTls, origin: &Origin) {
        let Some(parts) = self.client_parts(tls, origin) else {
            return;
        };
        let compiled = CompiledServer::new(client_options(tls), parts);
        if let Some(compiled) = self.or_report(compiled, origin) {
            tls.context = ServerContext::new(compiled);
        }
    }

    fn client_parts(&mut self, tls: &ServerTls, origin: &Origin) -> Option<ServerLineParts> {
        let trust = if tls.verify {
            let trust = TrustedAuthorities {
                authorities: self.authorities(tls.ca_file.as_ref())?,
                verify_only: None,
                revocation: self.revocation(tls.crl_file.as_ref())?,
            };
            self.report_unusable(&trust, origin);
            ServerTrust::Required {
                trust,
                verify_host: tls.verify_host.clone(),
            }
        } else {
            ServerTrust::Any
        };
        let certificate = match &tls.certificate {
            None => None,
            Some(file) => {
                let loaded = self.store.load_crt(self.files, &file.path);
                let loaded = self.loaded("crt", &file.origin, loaded)?;
                loaded.first().map(|stored| stored.current())
            }
        };
        Some(ServerLineParts {
            time: Arc::new(DefaultTimeProvider),
            trust,
            certificate,
            tickets: tls.tickets,
            session_names_max: if tls.reuse { SESSION_NAMES_MAX } else { 0 },
            record_bytes_max: self.record_bytes_max,
        })
    }

    /// What was loaded, or a report of why not.
    fn loaded<T>(
        &mut self,
        word: &str,
        origin: &Origin,
        loaded: Result<T, LoadError>,
    ) -> Option<T> {
        match loaded {
            Ok(loaded) => Some(loaded),
            Err(error) => {
                let is_missing = error.reason == LoadReason::Missing;
                let text = format!("'{word}' : unable to load certificate {error}");
                self.file_problem(origin, is_missing.then_some(&error.file), text);
                None
            }
        }
    }

    /// What was made, or a report of why not.
    fn or_report<T, E: ToString>(&mut self, made: Result<T, E>, origin: &Origin) -> Option<T> {
        made.map_err(|error| self.report(Severity::Alert, origin, error.to_string()))
            .ok()
    }

    fn report(&mut self, severity: Severity, origin: &Origin, text: String) {
        self.problems.push(Problem {
            severity,
            origin: origin.clone(),
            text,
            missing: None,
        });
    }

    fn file_problem(&mut self, origin: &Origin, missing: Option<&String>, text: String) {
        self.problems.push(Problem {
            severity: Severity::Alert,
            origin: origin.clone(),
            text,
            missing: missing.cloned(),
        });
    }
}

/// For how many names the sessions with a server are kept.
const SESSION_NAMES_MAX: usize = 1024;

/// Sessions that are resumed without tickets: all bind lines of a process share them, and they outlive
/// reloads.
struct SessionCache {
    /// The size of [`Self::sessions`].
    blocks: u32,
    sessions: Arc<dyn StoresServerSessions>,
}

/// The cache of the process, made anew when `tune.ssl.cachesize` changes. A block is one session here, and about 200 bytes
/// in HAProxy (manual, "tune.ssl.cachesize"). It takes its room at once: it holds four million sessions at most.
fn process_sessions(global: &GlobalTls) -> Arc<dyn StoresServerSessions> {
    static CACHE: Mutex<Option<SessionCache>> = Mutex::new(None);
    let mut held = CACHE.lock().unwrap_or_else(PoisonError::into_inner);
    let blocks = global.session_cache_blocks;
    if let Some(cache) = held.as_ref().filter(|cache| cache.blocks == blocks) {
        return Arc::clone(&cache.sessions);
    }
    let sessions: Arc<dyn StoresServerSessions> = match blocks {
        0 => Arc::new(NoServerSessionStorage {}),
        blocks => ServerSessionMemoryCache::new((blocks as usize).min(1 << 22)),
    };
    *held = Some(SessionCache {
        blocks,
        sessions: Arc::clone(&sessions),
    });
    sessions
}

fn ignored(errors: &VerifyErrors) -> IgnoredErrors {
    let list = match errors {
        VerifyErrors::All => "all".to_owned(),
        VerifyErrors::Numbers(numbers) => {
            let numbers: Vec<String> = numbers.iter().map(u8::to_string).collect();
            numbers.join(",")
        }
    };
    // The list was judged when its line was read; an empty one ignores nothing.
    IgnoredErrors::parse(&list).unwrap_or_default()
}

/// Where the certificates of a directory stand; `None` for a file and for a bundle.
fn directory_row(path: &str, certificates: &[Arc<StoredCertificate>]) -> Option<Arc<ListRow>> {
    let directory = path.trim_end_matches('/');
    let is_inside = |one: &Arc<StoredCertificate>| {
        let rest = one.name().strip_prefix(directory);
        rest.is_some_and(|rest| rest.starts_with('/'))
    };
    let row = || ListRow {
        list: directory.into(),
        number: 0,
        words: String::new(),
    };
    certificates.iter().any(is_inside).then(|| Arc::new(row()))
}

/// Why an OCSP answer is not stapled now.
fn out_of_time(answer: &OcspResponse) -> Option<&'static str> {
    let now = i64::try_from(DefaultTimeProvider.current_time()?.as_secs()).ok()?;
    match answer.is_valid_at(now) {
        true => None,
        false if answer.this_update() > now => Some("OCSP single response: not yet valid"),
        false => Some("OCSP single response: no longer valid"),
    }
}

/// Where a line of a crt-list stands.
fn list_row(list: &str, line: &CertificateListLine) -> Arc<ListRow> {
    Arc::new(ListRow {
        list: list.into(),
        number: line.certificate.origin.line as usize,
        words: line.words(),
    })
}

/// The TLS settings of a set of options on a bind line of a configuration that is in force: for a line
/// that a command adds. Files that lines in force name are not read again. The caller holds no lock
/// of the store.
///
/// # Errors
/// Why the options cannot be carried out.
pub fn compile_bind_tls_settings(
    global: &Global,
    tls: &BindTls,
    options: &TlsOptions,
    machine: &dyn Machine,
) -> Result<Arc<BindTlsSettings>, String> {
    let verifies = !matches!(options.verify, None | Some(VerifyMode::None));
    if verifies && options.ca_file.is_none() && options.ca_verify_file.is_none() {
        return Err("verify is enabled but no CA file specified".to_owned());
    }
    let files = MachineFiles {
        machine,
        bases: &global.tls.bases,
    };
    let former = global.tls.shared_store.former(TakeOver::All);
    let mut compiler = Compiler::new(&files, global, former);
    let origin = Origin::default();
    let tls_settings =
        compiler.tls_settings(tls, options, &origin, &mut TlsSettingsByOptions::new());
    let (read, problems) = compiler.finish();
    let certificates = &global.tls.shared_store;
    certificates.adopt(&read, certificates);
    tls_settings.ok_or_else(|| {
        let problems = problems.into_iter();
        let mut errors = problems.filter(|problem| problem.severity == Severity::Alert);
        errors
            .next()
            .map(|problem| problem.text)
            .unwrap_or_default()
    })
}

/// Whether these are the files of a bundle, and not of a directory.
fn is_bundle(certificates: &[Arc<StoredCertificate>]) -> bool {
    let endings = [".rsa", ".ecdsa", ".dsa"];
    let is_part =
        |one: &Arc<StoredCertificate>| endings.iter().any(|ending| one.name().ends_with(ending));
    certificates.len() > 1 && certificates.iter().all(is_part)
}
