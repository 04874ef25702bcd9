//! Commands that show and change the certificates that are served.
//!
//! Source: management manual, section 9.3, "set ssl cert" and the like. A change is a transaction:
//! `set` begins it, `commit` ends it. The commit swaps the certificate on every bind line that has
//! it. An open transaction holds up no other change of the process: a lock is held only while a
//! command changes memory.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::Arc;

use ballast_model::CliLevel;
use ballast_tls::certificate::{Certificate, CertificateError};
use ballast_tls::certificate_file_changes;
use ballast_tls::ocsp::OcspError;
use ballast_tls::shared_store::StoreState;
use ballast_tls::store::{CertificateFiles, CertificateOrigin, StoredCertificate};
use ballast_tls::store_transaction::{
    CertificatePart, CertificateTransaction, describe, dump, ocsp_key,
};

use crate::answer::CommandAnswer;
use crate::change_record::ChangeScope;
use crate::command::{Command, CommandCall};
use crate::commands::in_force::{
    ChangeLock, ConfigInForce, PreparedServer, notice, uses_certificate,
};
use crate::commands::ocsp;
use crate::control::Control;
use crate::shared::ProcessRole;

pub(crate) static COMMANDS: &[Command] = &[
    Command::new(
        &["abort", "ssl", "cert"],
        "abort ssl cert <certfile>",
        "drop a pending change of a certificate",
        abort,
    )
    .changing(ChangeScope::State)
    .for_level(CliLevel::Admin),
    Command::new(
        &["commit", "ssl", "cert"],
        "commit ssl cert <certfile>",
        "serve a certificate as it was set",
        commit,
    )
    .changing(ChangeScope::State)
    .for_level(CliLevel::Admin),
    Command::new(
        &["del", "ssl", "cert"],
        "del ssl cert <certfile>",
        "forget a certificate that no line uses",
        del,
    )
    .changing(ChangeScope::State)
    .for_level(CliLevel::Admin),
    Command::new(
        &["dump", "ssl", "cert"],
        "dump ssl cert <certfile>",
        "write a certificate with its key and chain as PEM",
        |call| show_one(call, ShownPart::Dump),
    )
    .for_level(CliLevel::Admin),
    Command::new(
        &["new", "ssl", "cert"],
        "new ssl cert <certfile>",
        "make room for a certificate, to be set and added to a crt-list",
        new,
    )
    .changing(ChangeScope::State)
    .for_level(CliLevel::Admin),
    Command::new(
        &["set", "ssl", "cert"],
        "set ssl cert <certfile> <payload>",
        "replace a certificate, or a part of it, once it is committed",
        set,
    )
    .changing(ChangeScope::State)
    .for_level(CliLevel::Admin),
    Command::new(
        &["show", "ssl", "cert"],
        "show ssl cert [<certfile>]",
        "list the certificates, or tell about one",
        |call| match call.arg(0) {
            "" => list(call),
            _ => show_one(call, ShownPart::Description),
        },
    )
    .for_level(CliLevel::Operator),
    Command::new(
        &["show", "ssl", "providers"],
        "show ssl providers",
        "list the providers of the TLS library",
        |_| CommandAnswer::Report("Loaded providers : \n\t- default\n".into()),
    ),
];

fn new(call: &mut CommandCall<'_>) -> CommandAnswer {
    let name = call.arg(0);
    if name.is_empty() {
        return CommandAnswer::error("'new ssl cert' expects a filename");
    }
    let (in_force, _lock) = ConfigInForce::locked_for_change(call);
    let mut state = in_force.config().global.tls.shared_store.lock();
    if in_force.find(&state, name).is_some() {
        return CommandAnswer::error(format!("Certificate '{name}' already exists!"));
    }
    state.empty.insert(name.to_owned());
    notice(format!("New empty certificate store '{name}'!"))
}

fn set(call: &mut CommandCall<'_>) -> CommandAnswer {
    let name = call.arg(0).to_owned();
    let payload = call.payload.take();
    let Some(payload) = payload.filter(|_| !name.is_empty()) else {
        return CommandAnswer::error(
            "'set ssl cert' expects a filename and a certificate as a payload",
        );
    };
    let (in_force, _lock) = ConfigInForce::locked_for_change(call);
    let mut state = in_force.config().global.tls.shared_store.lock();
    let failed = |why: String| CommandAnswer::error(format!("{why}Can't update {name}!"));
    let (mut target, mut part) = CertificatePart::split(&name);
    if in_force.find(&state, &name).is_some() {
        (target, part) = (&name, CertificatePart::All);
    }
    // `ssl-load-extra-del-ext`: `site.key` belongs to `site.crt`.
    let replaces_extension = in_force.config().global.tls.extra_files.replaces_extension;
    let with_extension = format!("{target}.crt");
    if replaces_extension && part != CertificatePart::All && in_force.find(&state, target).is_none()
    {
        target = &with_extension;
    }
    let mut transaction = match &state.transaction {
        Some(open) if open.is_being_written => return failed(format!("{BEING_WRITTEN}\n")),
        Some(open) if open.name != target => {
            return failed(format!(
                "The ongoing transaction is about '{}' but you are trying to set '{target}'\n",
                open.name
            ));
        }
        Some(open) => open.clone(),
        None => match in_force.find(&state, target) {
            Some(found) => {
                CertificateTransaction::new(target, found.stored.first().map(|one| &**one))
            }
            None => {
                return failed(
                    "Can't replace a certificate which is not referenced by the configuration!\n"
                        .to_owned(),
                );
            }
        },
    };
    if let Err(why) = transaction.set(part, &payload) {
        return failed(format!("{why}Can't load the payload\n"));
    }
    let done = match state.transaction.replace(transaction) {
        Some(_) => "updated",
        None => "created",
    };
    let mut text = format!("Transaction {done} for certificate {target}!");
    if part == CertificatePart::Sctl {
        text.push_str("\nSigned certificate timestamps are not sent: the TLS library cannot.");
    }
    notice(text)
}

fn abort(call: &mut CommandCall<'_>) -> CommandAnswer {
    let name = call.arg(0);
    if name.is_empty() {
        return CommandAnswer::error("'abort ssl cert' expects a filename");
    }
    let (in_force, _lock) = ConfigInForce::locked_for_change(call);
    let mut state = in_force.config().global.tls.shared_store.lock();
    match &state.transaction {
        None => CommandAnswer::error("No ongoing transaction!"),
        Some(open) if open.name != name => CommandAnswer::error(format!(
            "The ongoing transaction is about '{}' but you are trying to abort a transaction for \
             '{name}'",
            open.name
        )),
        Some(open) if open.is_being_written => CommandAnswer::error(BEING_WRITTEN),
        Some(_) => {
            state.transaction = None;
            notice(format!("Transaction aborted for certificate '{name}'!"))
        }
    }
}

fn commit(call: &mut CommandCall<'_>) -> CommandAnswer {
    let name = call.arg(0);
    if name.is_empty() {
        return CommandAnswer::error("'commit ssl cert' expects a filename");
    }
    let (in_force, mut lock) = ConfigInForce::locked_for_change(call);
    let mut state = in_force.config().global.tls.shared_store.lock();
    let failed = |why: String| CommandAnswer::error(format!("{why}\nCan't commit {name}!"));
    let Some(open) = &state.transaction else {
        return failed("No ongoing transaction! !".to_owned());
    };
    if open.name != name {
        let open = &open.name;
        return failed(format!(
            "The ongoing transaction is about '{open}' but you are trying to set '{name}'"
        ));
    }
    if open.is_being_written {
        return failed(BEING_WRITTEN.to_owned());
    }
    if open.parts.certificates.is_empty() || open.parts.key.is_none() {
        return failed(
            "The transaction must contain at least a certificate and a private key!".to_owned(),
        );
    }
    let parts = open.parts.clone();
    let certificate = match state.store.build_certificate(parts) {
        Ok(certificate) => Arc::new(certificate),
        Err(CertificateError::KeyMismatch) => {
            return failed(format!(
                "inconsistencies between private key and certificate loaded '{name}'."
            ));
        }
        Err(error) => return failed(format!("{error} '{name}'.")),
    };
    let mut begun = state.transaction.take();
    let found = in_force.find(&state, name).unwrap_or_default();
    if let Some(error) = certificate.ocsp_error.filter(|_| found.is_used()) {
        let why = match error {
            OcspError::NoIssuer => format!(
                "'{name}.ocsp' is present and activates OCSP but it is impossible to compute the \
                 OCSP certificate ID (maybe the issuer could not be found)'."
            ),
            error => format!("{error}."),
        };
        return CommandAnswer::Report(format!("Committing {name}.\n {why}\nFailed!\n"));
    }
    let commit = CertificateCommit {
        name: name.to_owned(),
        certificate,
    };
    let Some(control) = control_if_persist_on(call) else {
        let text = commit.apply(&in_force, &mut state, None);
        commit.record(&mut lock, None);
        return CommandAnswer::Report(text);
    };
    if let Some(begun) = &mut begun {
        begun.is_being_written = true;
    }
    state.transaction = begun;
    drop(state);
    drop(lock);
    run_on_disk_thread(&control, move |control| commit.write(control))
}

/// What a session is told while a certificate is written.
const BEING_WRITTEN: &str = "The ongoing transaction is being written to the disk!";

/// The worker's [`Control`] where `persist on` is set; `None` otherwise, and in the master.
fn control_if_persist_on(call: &CommandCall<'_>) -> Option<Arc<dyn Control>> {
    match &call.shared.role {
        ProcessRole::Worker(control) => Some(control).filter(|one| one.persists()).cloned(),
        ProcessRole::Master(_) => None,
    }
}

/// Runs `work`, which writes files and then changes memory, on another thread. It goes on if the
/// client of the command disconnects.
fn run_on_disk_thread(
    control: &Arc<dyn Control>,
    work: impl FnOnce(&dyn Control) -> String + Send + 'static,
) -> CommandAnswer {
    let (for_work, for_failure) = (Arc::clone(control), Arc::clone(control));
    let run = control.run_blocking(Box::new(move || work(&*for_work)));
    CommandAnswer::pending(async move {
        match run.await {
            Some(text) => CommandAnswer::Report(text),
            None => {
                release_after_failed_write(&*for_failure);
                CommandAnswer::error("No thread can be started to write the files.")
            }
        }
    })
}

/// A write failed: the transaction may be changed or committed again.
fn release_after_failed_write(control: &dyn Control) {
    let (in_force, _lock) = ConfigInForce::locked_for_change_by(control);
    if let Some(open) = &mut in_force.config().global.tls.shared_store.lock().transaction {
        open.is_being_written = false;
    }
}

/// A certificate that is served once it is committed.
#[derive(Clone)]
struct CertificateCommit {
    name: String,
    certificate: Arc<Certificate>,
}

impl CertificateCommit {
    /// Serves it. `origin` is where its files were written.
    fn apply(
        &self,
        in_force: &ConfigInForce,
        state: &mut StoreState,
        origin: Option<&CertificateOrigin>,
    ) -> String {
        let Self { name, certificate } = self;
        let found = in_force.find(state, name).unwrap_or_default();
        let servers = in_force.prepare_servers(|server, now| {
            uses_certificate(&server.model, name)
                .then(|| now.with_certificate(Arc::clone(certificate)))
        });
        let servers = match servers {
            Ok(servers) => servers,
            Err(why) => return format!("Committing {name}.\n{why}\nFailed!\n"),
        };
        let mut keeps_index = true;
        for stored in &found.stored {
            keeps_index &= stored.replace(Arc::clone(certificate));
            if let Some(origin) = origin {
                stored.note_origin(origin.clone());
            }
        }
        if found.stored.is_empty() {
            state.empty.remove(name);
            let stored = StoredCertificate::new(name, Arc::clone(certificate));
            let stored = stored.with_origin(origin.cloned().unwrap_or_default());
            state.store.insert(Arc::new(stored));
        }
        if !keeps_index {
            reindex(in_force, name);
        }
        let dots = ".".repeat(found.use_count + servers.len());
        servers.into_iter().for_each(PreparedServer::apply);
        format!("Committing {name}{dots}\nSuccess!\n")
    }

    /// Notes the commit for replay on a generation that is being compiled. There the certificate may
    /// be replaced already while the indexes of bind lines list its former names.
    fn record(self, lock: &mut ChangeLock<'_>, origin: Option<CertificateOrigin>) {
        let object = format!("cert {}", self.name);
        lock.record(object, move |in_force, _| {
            let mut state = in_force.config().global.tls.shared_store.lock();
            let _ = self.apply(in_force, &mut state, origin.as_ref());
            reindex(in_force, &self.name);
        });
    }

    /// Writes the files first, and serves the certificate only if that succeeded. Only a failure of
    /// the disk between two files leaves files and memory different.
    fn write(self, control: &dyn Control) -> String {
        let generation = control.generation();
        let context = &generation.config.global.tls.shared_store;
        let _disk = context.lock_files();
        let in_force = ConfigInForce::in_generation(&generation);
        let found = in_force.find(&context.lock(), &self.name);
        let stored = found.and_then(|found| found.stored.into_iter().next());
        let origin = stored
            .as_ref()
            .map(|stored| stored.origin())
            .unwrap_or_default();
        // If no command changed it in memory alone, its files contain what is served now.
        let on_disk = stored.filter(|stored| !stored.is_changed());
        let on_disk = on_disk.map(|stored| stored.current());
        let changes = certificate_file_changes::changes(
            &self.name,
            &self.certificate,
            (&origin, on_disk.as_deref()),
        );
        let outcome = changes.and_then(|(changes, origin)| {
            control
                .change_certificate_files(&generation.config.global.tls.bases.at_paths(&changes))?;
            Ok(origin)
        });
        match outcome {
            Ok(origin) => {
                // Another generation may have been put in force while the disk was written.
                let (in_force, mut lock) = ConfigInForce::locked_for_change_by(control);
                let mut state = in_force.config().global.tls.shared_store.lock();
                let own = |open: &CertificateTransaction| open.name == self.name;
                if state.transaction.as_ref().is_some_and(own) {
                    state.transaction = None;
                }
                let text = self.apply(&in_force, &mut state, Some(&origin));
                drop(state);
                self.record(&mut lock, Some(origin));
                text
            }
            Err(why) => {
                release_after_failed_write(control);
                format!("Committing {}\n{why}\nFailed!\n", self.name)
            }
        }
    }
}

/// Rebuilds the index of every bind line that has the certificate: needed when its host names or
/// the algorithm of its key changed.
fn reindex(in_force: &ConfigInForce, name: &str) {
    for (_, bind, certificates) in in_force.binds() {
        if let Some(tls) = &bind.tls
            && certificates.with_certificate(name).next().is_some()
        {
            tls.context
                .replace(certificates.with_entries(certificates.entries().to_vec()));
        }
    }
}

fn del(call: &mut CommandCall<'_>) -> CommandAnswer {
    let name = call.arg(0);
    if name.is_empty() {
        return CommandAnswer::error("'del ssl cert' expects a certificate name");
    }
    let (in_force, mut lock) = ConfigInForce::locked_for_change(call);
    let mut state = in_force.config().global.tls.shared_store.lock();
    let failed = |why: String| CommandAnswer::error(format!("Can't remove the certificate: {why}"));
    if state
        .transaction
        .as_ref()
        .is_some_and(|open| open.name == name)
    {
        return failed(format!("ongoing transaction for the certificate '{name}'"));
    }
    match in_force.find(&state, name) {
        None => failed(format!("certificate '{name}' doesn't exist!")),
        Some(found) if found.is_used() => {
            failed(format!("certificate '{name}' in use, can't be deleted!"))
        }
        Some(found) => {
            let stored = found.stored.first();
            let origin = stored.map(|stored| stored.origin());
            let files = origin.filter(|origin| origin.files_digest.is_some());
            if let (Some(control), Some(origin)) = (control_if_persist_on(call), files) {
                drop(state);
                drop(lock);
                let name = name.to_owned();
                return run_on_disk_thread(&control, move |control| {
                    remove_files(control, &name, &origin)
                });
            }
            state.empty.remove(name);
            state.store.remove(name);
            record_removal(&mut lock, name);
            notice(format!("Certificate '{name}' deleted!"))
        }
    }
}

/// Deletes a certificate with its files.
fn remove_files(control: &dyn Control, name: &str, origin: &CertificateOrigin) -> String {
    let generation = control.generation();
    let _disk = generation.config.global.tls.shared_store.lock_files();
    let removals = certificate_file_changes::removals(&origin.files);
    let removals = generation.config.global.tls.bases.at_paths(&removals);
    if let Err(why) = control.change_certificate_files(&removals) {
        return format!("Can't remove the certificate: {why}\n");
    }
    let (in_force, mut lock) = ConfigInForce::locked_for_change_by(control);
    let mut state = in_force.config().global.tls.shared_store.lock();
    state.store.remove(name);
    drop(state);
    record_removal(&mut lock, name);
    format!("Certificate '{name}' deleted!\n")
}

/// Notes that a certificate was forgotten. A generation whose lines name it keeps it.
fn record_removal(lock: &mut ChangeLock<'_>, name: &str) {
    let name = name.to_owned();
    lock.record(format!("cert {name}"), move |in_force, _| {
        let mut state = in_force.config().global.tls.shared_store.lock();
        let found = in_force.find(&state, &name);
        if found.is_some_and(|found| !found.is_used()) {
            state.empty.remove(&name);
            state.store.remove(&name);
        }
    });
}

fn list(call: &CommandCall<'_>) -> CommandAnswer {
    let in_force = ConfigInForce::of(call);
    let state = in_force.config().global.tls.shared_store.lock();
    let mut text = String::new();
    if let Some(open) = &state.transaction {
        // Writing to a string does not fail.
        let _ = writeln!(text, "# transaction\n*{}", open.name);
    }
    let mut names: BTreeSet<String> = state.empty.clone();
    names.extend(state.store.iter().map(|stored| stored.name().to_owned()));
    for (_, _, certificates) in in_force.binds() {
        let entries = certificates.entries().iter();
        names.extend(entries.map(|entry| entry.certificate.name().to_owned()));
    }
    if !names.is_empty() {
        text.push_str("# filename\n");
    }
    for name in names {
        text.push_str(&name);
        text.push('\n');
    }
    CommandAnswer::Report(text)
}

/// What is shown of a certificate.
#[derive(Clone, Copy, Eq, PartialEq)]
enum ShownPart {
    Description,
    Dump,
}

const NOT_FOUND: &str = "Can't display the certificate: Not found or the certificate is a bundle!";

fn show_one(call: &mut CommandCall<'_>, shown: ShownPart) -> CommandAnswer {
    let in_force = ConfigInForce::of(call);
    let state = in_force.config().global.tls.shared_store.lock();
    let name = call.arg(0);
    if let Some(name) = name.strip_prefix('*') {
        let open = state.transaction.as_ref();
        if let Some(open) = open
            && name.strip_suffix(".ocsp") == Some(&open.name)
        {
            let response = open.parts.ocsp.as_deref();
            return CommandAnswer::Report(response.map(ocsp::text).unwrap_or_default());
        }
        let open = open.filter(|open| open.name == name);
        return match (open, shown) {
            (None, _) => CommandAnswer::error(NOT_FOUND),
            (Some(open), ShownPart::Dump) => CommandAnswer::Report(dump(&open.parts)),
            (Some(open), ShownPart::Description) => {
                let head = head(&format!("*{name}"), &open.files, "Uncommitted");
                let told = describe(&open.parts);
                CommandAnswer::Report(format!("{head}{told}OCSP Response Key: \n"))
            }
        };
    }
    let name = name.strip_prefix('\\').unwrap_or(name);
    let Some(found) = in_force.find(&state, name) else {
        let base = name.strip_suffix(".ocsp");
        let found = base.and_then(|base| in_force.find(&state, base));
        return found.map_or_else(
            || CommandAnswer::error(NOT_FOUND),
            |found| {
                let stored = found.stored.first();
                let response = stored.and_then(|stored| stored.current().ocsp.clone());
                CommandAnswer::Report(
                    response
                        .map(|one| ocsp::text(one.der()))
                        .unwrap_or_default(),
                )
            },
        );
    };
    let stored = found.stored.first();
    let parts = stored
        .map(|stored| stored.current().parts())
        .unwrap_or_default();
    if shown == ShownPart::Dump {
        return CommandAnswer::Report(dump(&parts));
    }
    let status = match stored {
        None => "Empty",
        Some(_) if found.is_used() => "Used",
        Some(_) => "Unused",
    };
    let files = stored.map(|stored| stored.origin().files.clone());
    let files = files.unwrap_or_default();
    let key = stored.map(|stored| ocsp_key(stored)).unwrap_or_default();
    let head = head(name, &files, status);
    let told = describe(&parts);
    CommandAnswer::Report(format!("{head}{told}OCSP Response Key: {key}\n"))
}

/// The lines of `show ssl cert` before the certificate itself.
fn head(name: &str, files: &CertificateFiles, status: &str) -> String {
    let mut text = format!("Filename: {name}\n");
    let files = [
        ("Crt", &files.certificate),
        ("Key", &files.key),
        ("OCSP", &files.ocsp),
        ("OCSP Issuer", &files.issuer),
        ("SCTL", &files.sctl),
    ];
    for (what, file) in files {
        if let Some(file) = file {
            let _ = writeln!(text, "{what} filename: {file}");
        }
    }
    let _ = writeln!(text, "Status: {status}");
    text
}
