//! Commands that show and change authorities (`ca-file`) and revocation lists (`crl-file`).
//!
//! Source: management manual, section 9.3, "set ssl ca-file" and "set ssl crl-file". A change is a
//! transaction, as that of a certificate. Both families are the same but for their words.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::Arc;

use ballast_model::CliLevel;
use ballast_tls::authorities::{Authorities, TrustedAuthorities};
use ballast_tls::bind::BindEntry;
use ballast_tls::describe::describe_revocation_list;
use ballast_tls::server_config::BindTlsSettings;
use ballast_tls::shared_store::StoreState;
use ballast_tls::store_transaction::{
    TrustFile, TrustState, TrustTransaction, describe_certificate,
};

use crate::answer::CommandAnswer;
use crate::change_record::ChangeScope;
use crate::command::{Command, CommandCall};
use crate::commands::in_force::{ConfigInForce, PreparedServer, notice, queue_persist};

macro_rules! row {
    ($words:expr, $usage:literal, $help:literal, $handler:expr) => {
        Command::new($words, $usage, $help, $handler)
            .changing(ChangeScope::State)
            .for_level(CliLevel::Admin)
    };
}

#[rustfmt::skip] // A command to a line or two.
pub(crate) static COMMANDS: &[Command] = &[
    row!(&["abort", "ssl", "ca-file"], "abort ssl ca-file <cafile>",
        "drop a pending change of a CA file", |call| abort(call, CA)),
    row!(&["abort", "ssl", "crl-file"], "abort ssl crl-file <crlfile>",
        "drop a pending change of a CRL file", |call| abort(call, CRL)),
    row!(&["add", "ssl", "ca-file"], "add ssl ca-file <cafile> <payload>",
        "add certificates to a CA file, once it is committed", |call| set(call, CA, true)),
    row!(&["commit", "ssl", "ca-file"], "commit ssl ca-file <cafile>",
        "trust a CA file as it was set", |call| commit(call, CA)),
    row!(&["commit", "ssl", "crl-file"], "commit ssl crl-file <crlfile>",
        "follow a CRL file as it was set", |call| commit(call, CRL)),
    row!(&["del", "ssl", "ca-file"], "del ssl ca-file <cafile>",
        "forget a CA file that no line uses", |call| del(call, CA)),
    row!(&["del", "ssl", "crl-file"], "del ssl crl-file <crlfile>",
        "forget a CRL file that no line uses", |call| del(call, CRL)),
    row!(&["new", "ssl", "ca-file"], "new ssl ca-file <cafile>",
        "make room for a CA file, to be set", |call| new(call, CA)),
    row!(&["new", "ssl", "crl-file"], "new ssl crl-file <crlfile>",
        "make room for a CRL file, to be set", |call| new(call, CRL)),
    row!(&["set", "ssl", "ca-file"], "set ssl ca-file <cafile> <payload>",
        "replace a CA file, once it is committed", |call| set(call, CA, false)),
    row!(&["set", "ssl", "crl-file"], "set ssl crl-file <crlfile> <payload>",
        "replace a CRL file, once it is committed", |call| set(call, CRL, false)),
    Command::new(&["show", "ssl", "ca-file"], "show ssl ca-file [<cafile>[:<index>]]",
        "list the CA files, or the certificates of one", |call| show(call, CA))
    .for_level(CliLevel::Operator),
    Command::new(&["show", "ssl", "crl-file"], "show ssl crl-file [<crlfile[:<index>>]]",
        "list the CRL files, or the lists of one", |call| show(call, CRL))
    .for_level(CliLevel::Operator),
];

/// One of the two families.
#[derive(Clone, Copy)]
struct TrustKind {
    /// The word of the commands: `ca-file`.
    word: &'static str,
    /// What messages call it: `CA`.
    name: &'static str,
    /// What a payload is called in `set`.
    payload: &'static str,
    is_revocation: bool,
}

const CA: TrustKind = TrustKind {
    word: "ca-file",
    name: "CA",
    payload: "CAs",
    is_revocation: false,
};

const CRL: TrustKind = TrustKind {
    word: "crl-file",
    name: "CRL",
    payload: "CRLs",
    is_revocation: true,
};

impl TrustKind {
    fn look(self, all: &StoreState) -> &TrustState {
        match self.is_revocation {
            true => &all.revocation,
            false => &all.authorities,
        }
    }

    fn state(self, all: &mut StoreState) -> &mut TrustState {
        match self.is_revocation {
            true => &mut all.revocation,
            false => &mut all.authorities,
        }
    }

    /// The files of this kind that a verifier uses.
    fn files(self, trust: &TrustedAuthorities) -> impl Iterator<Item = &Arc<Authorities>> {
        let files = match self.is_revocation {
            true => [trust.revocation.as_ref(), None],
            false => [trust.authorities.as_ref(), trust.verify_only.as_ref()],
        };
        files.into_iter().flatten()
    }

    fn count(self, content: &Authorities) -> usize {
        match self.is_revocation {
            true => content.revocation_lists().count(),
            false => content.certificates().count(),
        }
    }

    /// A row of the list of files.
    fn row(self, name: &str, content: &Authorities) -> String {
        match self.is_revocation {
            true => format!("{name}\n"),
            false => format!("{name} - {} certificate(s)\n", self.count(content)),
        }
    }
}

/// A file that is known, and how many entries of bind lines and server lines use it.
struct FoundTrust {
    content: Arc<Authorities>,
    use_count: usize,
}

/// All files of a kind by name.
fn known_files(
    in_force: &ConfigInForce,
    kind: TrustKind,
    state: &TrustState,
) -> BTreeMap<String, FoundTrust> {
    let mut all: BTreeMap<String, FoundTrust> = BTreeMap::new();
    let mut count_use = |content: &Arc<Authorities>, uses: usize| {
        let found = all.entry(content.name().to_owned());
        let found = found.or_insert_with(|| FoundTrust {
            content: Arc::clone(content),
            use_count: 0,
        });
        found.use_count += uses;
    };
    for (_, _, certificates) in in_force.binds() {
        for entry in certificates.entries() {
            if let Some(verifier) = entry.tls_settings.verifier() {
                kind.files(verifier.trust())
                    .for_each(|file| count_use(file, 1));
            }
        }
    }
    let servers = in_force
        .config()
        .backends
        .iter()
        .flat_map(|backend| &backend.servers);
    for server in servers {
        let compiled = server.tls.as_ref().and_then(|tls| tls.context.compiled());
        if let Some(trust) = compiled.as_ref().and_then(|compiled| compiled.trust()) {
            kind.files(trust).for_each(|file| count_use(file, 1));
        }
    }
    let files = state.files.values();
    files.for_each(|file| count_use(&file.content, 0));
    all
}

fn usage(command: &str, kind: TrustKind, rest: &str) -> CommandAnswer {
    CommandAnswer::error(format!("'{command} ssl {}' expects a {rest}", kind.word))
}

fn new(call: &mut CommandCall<'_>, kind: TrustKind) -> CommandAnswer {
    let name = call.arg(0);
    if name.is_empty() {
        return usage("new", kind, "filename");
    }
    let (in_force, _lock) = ConfigInForce::locked_for_change(call);
    let mut all = in_force.config().global.tls.shared_store.lock();
    let state = kind.state(&mut all);
    let what = kind.name;
    if known_files(&in_force, kind, state).contains_key(name) {
        return CommandAnswer::error(format!("{what} file '{name}' already exists!"));
    }
    let empty = TrustFile {
        content: Arc::new(Authorities::empty(name)),
        of_file: None,
    };
    state.files.insert(name.to_owned(), empty);
    notice(format!("New {what} file created '{name}'!"))
}

fn set(call: &mut CommandCall<'_>, kind: TrustKind, adds: bool) -> CommandAnswer {
    let name = call.arg(0).to_owned();
    let payload = call.payload.take();
    let Some(payload) = payload.filter(|_| !name.is_empty()) else {
        return usage(
            "set",
            kind,
            &format!("filename and {} as a payload", kind.payload),
        );
    };
    let (in_force, _lock) = ConfigInForce::locked_for_change(call);
    let mut all = in_force.config().global.tls.shared_store.lock();
    let state = kind.state(&mut all);
    let failed = |why: String| CommandAnswer::error(format!("{why}\nCan't update {name}!"));
    let what = kind.name;
    let begun = match &state.transaction {
        Some(open) if open.name != name => {
            return failed(format!(
                "The ongoing transaction is about '{}' but you are trying to set '{name}'",
                open.name
            ));
        }
        Some(open) => Some(Arc::clone(&open.content)),
        None => match known_files(&in_force, kind, state).remove(&name) {
            Some(found) => Some(found.content),
            None => {
                return failed(format!(
                    "Can't replace a {what} file which is not referenced by the configuration!"
                ));
            }
        },
    };
    let mut content = Authorities::empty(&name);
    let mut is_good = content.add(&payload).is_ok() && kind.count(&content) > 0;
    if let Some(begun) = begun.filter(|_| adds && is_good) {
        let mut both = Authorities::empty(&name);
        is_good = both.add(begun.pem().as_bytes()).is_ok() && both.add(&payload).is_ok();
        content = both;
    }
    if !is_good {
        return failed("Invalid payload".to_owned());
    }
    let transaction = TrustTransaction {
        name: name.clone(),
        content: Arc::new(content),
    };
    let done = match state.transaction.replace(transaction) {
        Some(_) => "updated",
        None => "created",
    };
    notice(format!("transaction {done} for {what} {name}!"))
}

fn abort(call: &mut CommandCall<'_>, kind: TrustKind) -> CommandAnswer {
    let name = call.arg(0);
    if name.is_empty() {
        return usage("abort", kind, "filename");
    }
    let (in_force, _lock) = ConfigInForce::locked_for_change(call);
    let mut all = in_force.config().global.tls.shared_store.lock();
    let state = kind.state(&mut all);
    match &state.transaction {
        None => CommandAnswer::error("No ongoing transaction!"),
        Some(open) if open.name != name => CommandAnswer::error(format!(
            "The ongoing transaction is about '{}' but you are trying to abort a transaction for \
             '{name}'",
            open.name
        )),
        Some(_) => {
            state.transaction = None;
            // HAProxy's words, for all three families.
            notice(format!("Transaction aborted for certificate '{name}'!"))
        }
    }
}

fn commit(call: &mut CommandCall<'_>, kind: TrustKind) -> CommandAnswer {
    let name = call.arg(0);
    if name.is_empty() {
        // HAProxy's words, for both families.
        return usage("commit", CA, "filename");
    }
    let (in_force, mut lock) = ConfigInForce::locked_for_change(call);
    let mut all = in_force.config().global.tls.shared_store.lock();
    let state = kind.state(&mut all);
    let failed = |why: &str| CommandAnswer::error(format!("{why}\nCan't commit {name}!"));
    let open = match state.transaction.take() {
        None => return failed("No ongoing transaction! !"),
        Some(open) if open.name != name => {
            let why = format!(
                "The ongoing transaction is about '{}' but you are trying to set '{name}'",
                open.name
            );
            state.transaction = Some(open);
            return failed(&why);
        }
        Some(open) => open,
    };
    match replace(&in_force, kind, &open.content) {
        Ok((count, remarks)) => {
            if let Some(file) = state.files.get_mut(name) {
                file.content = Arc::clone(&open.content);
            }
            lock.record(format!("{} {name}", kind.word), move |in_force, _| {
                commit_again(in_force, kind, &open.content);
            });
            queue_persist(call);
            let dots = ".".repeat(count);
            let remarks: String = remarks.iter().map(|one| format!("{one}\n")).collect();
            CommandAnswer::Report(format!("Committing {name}{dots}\n{remarks}Success!\n"))
        }
        Err(why) => CommandAnswer::Report(format!("Committing {name}\n{why}\nFailed!\n")),
    }
}

/// Gives a generation that is being made what was committed.
fn commit_again(in_force: &ConfigInForce, kind: TrustKind, content: &Arc<Authorities>) {
    let mut all = in_force.config().global.tls.shared_store.lock();
    if replace(in_force, kind, content).is_err() {
        // The lines in force have it: others take no less.
        return;
    }
    let files = &mut kind.state(&mut all).files;
    let file = files.entry(content.name().to_owned());
    let file = file.or_insert_with(|| TrustFile {
        content: Arc::clone(content),
        of_file: None,
    });
    file.content = Arc::clone(content);
}

/// Replaces the content of a file on all bind lines that use it. Everything is prepared before
/// anything is changed. Returns how many lines use it, and what of their authorities and lists cannot be
/// used, as a start says it.
///
/// # Errors
/// Why a line cannot.
fn replace(
    in_force: &ConfigInForce,
    kind: TrustKind,
    content: &Arc<Authorities>,
) -> Result<(usize, BTreeSet<String>), String> {
    let mut count = 0;
    let mut remarks = BTreeSet::new();
    let mut prepared = Vec::new();
    for (_, bind, certificates) in in_force.binds() {
        // Lines with the same options share their TLS settings, before and after.
        let mut renewed: Vec<(Arc<BindTlsSettings>, Arc<BindTlsSettings>)> = Vec::new();
        let mut entries: Vec<BindEntry> = certificates.entries().to_vec();
        let before = count;
        for entry in &mut entries {
            let Some(verifier) = entry.tls_settings.verifier() else {
                continue;
            };
            let has = kind
                .files(verifier.trust())
                .any(|file| file.name() == content.name());
            if !has {
                continue;
            }
            count += 1;
            let known = renewed
                .iter()
                .find(|(old, _)| Arc::ptr_eq(old, &entry.tls_settings));
            let new = match known {
                Some((_, new)) => Arc::clone(new),
                None => {
                    let trust = verifier.trust().with(kind.is_revocation, content);
                    remarks.extend(trust.remarks());
                    let tls_settings = entry.tls_settings.with_trust(trust);
                    let new = Arc::new(tls_settings.map_err(|error| error.to_string())?);
                    renewed.push((Arc::clone(&entry.tls_settings), Arc::clone(&new)));
                    new
                }
            };
            entry.tls_settings = new;
        }
        if let Some(tls) = bind.tls.as_ref().filter(|_| count > before) {
            prepared.push((tls, certificates.with_entries(entries)));
        }
    }
    let servers = in_force.prepare_servers(|_, now| {
        let trust = now.trust()?;
        let has = kind.files(trust).any(|file| file.name() == content.name());
        has.then(|| {
            let trust = trust.with(kind.is_revocation, content);
            remarks.extend(trust.remarks());
            now.with_trust(trust)
        })
    })?;
    count += servers.len();
    for (tls, certificates) in prepared {
        tls.context.replace(certificates);
    }
    servers.into_iter().for_each(PreparedServer::apply);
    Ok((count, remarks))
}

fn del(call: &mut CommandCall<'_>, kind: TrustKind) -> CommandAnswer {
    let (name, what) = (call.arg(0), kind.name);
    if name.is_empty() {
        return usage("del", kind, &format!("{what} file name"));
    }
    let (in_force, mut lock) = ConfigInForce::locked_for_change(call);
    let mut all = in_force.config().global.tls.shared_store.lock();
    let state = kind.state(&mut all);
    let failed = |why: String| CommandAnswer::error(format!("Can't remove the {what} file: {why}"));
    if state
        .transaction
        .as_ref()
        .is_some_and(|open| open.name == name)
    {
        return failed(format!("ongoing transaction for the {what} file '{name}'"));
    }
    match known_files(&in_force, kind, state).get(name) {
        None => failed(format!("{what} file '{name}' doesn't exist!")),
        Some(found) if found.use_count > 0 => {
            failed(format!("{what} file '{name}' in use, can't be deleted!"))
        }
        Some(_) => {
            state.files.remove(name);
            let removed = name.to_owned();
            lock.record(format!("{} {name}", kind.word), move |in_force, _| {
                let mut all = in_force.config().global.tls.shared_store.lock();
                let state = kind.state(&mut all);
                let known = known_files(in_force, kind, state);
                if known
                    .get(&removed)
                    .is_some_and(|found| found.use_count == 0)
                {
                    state.files.remove(&removed);
                }
            });
            notice(format!("{what} file '{name}' deleted!"))
        }
    }
}

fn show(call: &mut CommandCall<'_>, kind: TrustKind) -> CommandAnswer {
    let in_force = ConfigInForce::of(call);
    let all = in_force.config().global.tls.shared_store.lock();
    let state = kind.look(&all);
    let mut known = known_files(&in_force, kind, state);
    let given = call.arg(0);
    if given.is_empty() {
        let mut text = String::new();
        if let Some(open) = &state.transaction {
            // Writing to a string does not fail.
            let _ = write!(
                text,
                "# transaction\n*{}",
                kind.row(&open.name, &open.content)
            );
        }
        text.push_str("# filename\n");
        for (name, found) in &known {
            text.push_str(&kind.row(name, &found.content));
        }
        return CommandAnswer::Report(text);
    }
    let (name, index) = match given.rsplit_once(':') {
        None => (given, None),
        Some((name, index)) => match index.parse::<usize>() {
            Ok(index) if index > 0 => (name, Some(index)),
            _ => {
                let what = kind.name;
                return CommandAnswer::error(format!(
                    "wrong {what} index after colons in '{given}'!"
                ));
            }
        },
    };
    let not_found =
        || CommandAnswer::error(format!("Can't display the {} file : Not found!", kind.name));
    if let Some(name) = name.strip_prefix('*') {
        return match state.transaction.as_ref().filter(|open| open.name == name) {
            None => not_found(),
            Some(open) => {
                let name = format!("*{name}");
                CommandAnswer::Report(describe(kind, (&name, "Uncommitted"), &open.content, index))
            }
        };
    }
    let name = name.strip_prefix('\\').unwrap_or(name);
    let Some(found) = known.remove(name) else {
        return not_found();
    };
    let status = match found.use_count {
        _ if found.content.is_empty() => "Empty",
        0 => "Unused",
        _ => "Used",
    };
    CommandAnswer::Report(describe(kind, (name, status), &found.content, index))
}

/// A file, or the one certificate or list of it at an index from 1.
fn describe(
    kind: TrustKind,
    (name, status): (&str, &str),
    content: &Authorities,
    index: Option<usize>,
) -> String {
    let parts: Vec<String> = match kind.is_revocation {
        true => content
            .revocation_lists()
            .map(describe_revocation_list)
            .collect(),
        false => content
            .certificates()
            .map(|der| describe_certificate(der))
            .collect(),
    };
    let what = match kind.is_revocation {
        true => "Certificate Revocation List",
        false => "Certificate",
    };
    let mut text = String::new();
    for (number, part) in (1..).zip(parts) {
        if index.is_none_or(|index| index == number) {
            // Writing to a string does not fail.
            let _ = write!(text, " \n{what} #{number}:\n{part}");
        }
    }
    // HAProxy shows nothing of a CA file without certificates, nor behind its last one.
    if text.is_empty() && !kind.is_revocation {
        return text;
    }
    format!("Filename: {name}\nStatus: {status}\n{text}")
}
