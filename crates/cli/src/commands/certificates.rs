//! Commands that show and change the certificates that are served.
//!
//! Source: management manual, section 9.3, "set ssl cert" and the like. A change is a transaction:
//! `set` begins it, `commit` ends it. The commit swaps the certificate on every bind line that has
//! it; no other change of the process waits for it, nor does it wait for one.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::Arc;

use ballast_model::CliLevel;
use ballast_tls::certificate::CertificateError;
use ballast_tls::ocsp::OcspError;
use ballast_tls::store::{CertificateFiles, StoredCertificate};
use ballast_tls::store_transaction::{
    CertificatePart, CertificateTransaction, describe, dump, ocsp_key,
};

use crate::answer::CommandAnswer;
use crate::change_record::ChangeScope;
use crate::command::{Command, CommandCall};
use crate::commands::in_force::{InForce, notice};
use crate::commands::ocsp;

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
        |call| show_one(call, Shown::Dump),
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
            _ => show_one(call, Shown::Description),
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
    let in_force = InForce::of(call);
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
    let in_force = InForce::of(call);
    let mut state = in_force.config().global.tls.shared_store.lock();
    let failed = |why: String| CommandAnswer::error(format!("{why}Can't update {name}!"));
    let (mut target, mut part) = CertificatePart::split(&name);
    if in_force.find(&state, &name).is_some() {
        (target, part) = (&name, CertificatePart::All);
    }
    let mut transaction = match &state.transaction {
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
    let in_force = InForce::of(call);
    let mut state = in_force.config().global.tls.shared_store.lock();
    match &state.transaction {
        None => CommandAnswer::error("No ongoing transaction!"),
        Some(open) if open.name != name => CommandAnswer::error(format!(
            "The ongoing transaction is about '{}' but you are trying to abort a transaction for \
             '{name}'",
            open.name
        )),
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
    let in_force = InForce::of(call);
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
    state.transaction = None;
    let found = in_force.find(&state, name).unwrap_or_default();
    if found.server_count > 0 {
        return CommandAnswer::Report(format!(
            "Committing {name}\nServer lines that show it are changed by a reload only.\nFailed!\n"
        ));
    }
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
    let mut keeps_names = true;
    for stored in &found.stored {
        keeps_names &= stored.replace(Arc::clone(&certificate));
    }
    if found.stored.is_empty() {
        state.empty.remove(name);
        state
            .store
            .insert(Arc::new(StoredCertificate::new(name, certificate)));
    }
    if !keeps_names {
        reindex(&in_force, name);
    }
    let dots = ".".repeat(found.use_count);
    CommandAnswer::Report(format!("Committing {name}{dots}\nSuccess!\n"))
}

/// Lists the names of a certificate again on the bind lines that have it.
fn reindex(in_force: &InForce, name: &str) {
    for (_, bind, certificates) in in_force.binds() {
        let mut entries = certificates.entries().iter();
        if let Some(tls) = &bind.tls
            && entries.any(|entry| entry.certificate.name() == name)
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
    let in_force = InForce::of(call);
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
        Some(_) => {
            state.empty.remove(name);
            state.store.remove(name);
            notice(format!("Certificate '{name}' deleted!"))
        }
    }
}

fn list(call: &CommandCall<'_>) -> CommandAnswer {
    let in_force = InForce::of(call);
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
enum Shown {
    Description,
    Dump,
}

const NOT_FOUND: &str = "Can't display the certificate: Not found or the certificate is a bundle!";

fn show_one(call: &mut CommandCall<'_>, shown: Shown) -> CommandAnswer {
    let in_force = InForce::of(call);
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
            (Some(open), Shown::Dump) => CommandAnswer::Report(dump(&open.parts)),
            (Some(open), Shown::Description) => {
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
    if shown == Shown::Dump {
        return CommandAnswer::Report(dump(&parts));
    }
    let status = match stored {
        None => "Empty",
        Some(_) if found.is_used() => "Used",
        Some(_) => "Unused",
    };
    let files = stored
        .map(|stored| stored.files().clone())
        .unwrap_or_default();
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
