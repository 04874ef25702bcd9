//! Commands that show and change the crt-lists and directories of certificates, and the names that
//! certificates are chosen for.
//!
//! Source: management manual, section 9.3, "add ssl crt-list", "show ssl sni".

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use ballast_model::{Bind, BindTls, CertificateListLine, CliLevel, Frontend, TlsFile};
use ballast_tls::bind::{BindCertificates, BindEntry, ListRow};
use ballast_tls::describe::seconds_text;
use ballast_tls::names::{KeyAlgorithm, NameFilters};
use ballast_tls::store::StoredCertificate;
use ballast_tls::store_transaction::ListEdit;

use crate::answer::CommandAnswer;
use crate::change_record::ChangeScope;
use crate::command::{Command, CommandCall};
use crate::commands::in_force::{ConfigInForce, notice, queue_persist};
use crate::control::Control;
use crate::shared::ProcessRole;

pub(crate) static COMMANDS: &[Command] = &[
    Command::new(
        &["add", "ssl", "crt-list"],
        "add ssl crt-list <list> <cert> [opts]*",
        "add a certificate, or the line of a payload, to a list or directory",
        add,
    )
    .changing(ChangeScope::State)
    .for_level(CliLevel::Admin),
    Command::new(
        &["del", "ssl", "crt-list"],
        "del ssl crt-list <list> <cert[:line]>",
        "remove a certificate from a list or directory",
        del,
    )
    .changing(ChangeScope::State)
    .for_level(CliLevel::Admin),
    Command::new(
        &["show", "ssl", "crt-list"],
        "show ssl crt-list [-n] [<list>]",
        "list the lists and directories of certificates, or the lines of one",
        show,
    )
    .for_level(CliLevel::Admin),
    Command::new(
        &["show", "ssl", "sni"],
        "show ssl sni [-f <frontend>] [-A] [-t <offset>]",
        "list the names of certificates, or only those that have expired",
        show_names,
    ),
];

/// A line of a list: its number, its certificate, and what it says.
type Row = (usize, String, String);

/// The bind lines that have a list or directory.
fn binds_with<'f>(
    in_force: &'f ConfigInForce,
    list: &str,
) -> Vec<(&'f Frontend, &'f Bind, &'f BindTls, Arc<BindCertificates>)> {
    let all = in_force
        .binds()
        .filter_map(|(frontend, bind, certificates)| {
            let tls = bind.tls.as_deref()?;
            let has = certificates.lists().iter().any(|own| own == list);
            has.then_some((frontend, bind, tls, certificates))
        });
    all.collect()
}

/// The lines of a list, as they stand on a bind line that has it.
fn rows_of(certificates: &BindCertificates, list: &str) -> Vec<Row> {
    let entries = certificates.entries().iter();
    entries
        .filter_map(|entry| {
            let row = entry.row.as_ref().filter(|row| &*row.list == list)?;
            let name = entry.certificate.name().to_owned();
            Some((row.number, name, row.words.clone()))
        })
        .collect()
}

fn show(call: &mut CommandCall<'_>) -> CommandAnswer {
    let in_force = ConfigInForce::of(call);
    let has_numbers = call.arg(0) == "-n";
    let list = call.arg(usize::from(has_numbers)).trim_end_matches('/');
    if list.is_empty() && has_numbers {
        return CommandAnswer::error("'show ssl crt-list -n' expects a filename or a directory");
    }
    if list.is_empty() {
        let lists = in_force.binds();
        let lists = lists.flat_map(|(_, _, certificates)| certificates.lists().to_vec());
        let lists: BTreeSet<String> = lists.collect();
        let lines = lists.into_iter().map(|list| list + "\n");
        return CommandAnswer::Report(lines.collect());
    }
    let binds = binds_with(&in_force, list);
    let Some((_, _, _, certificates)) = binds.first() else {
        return CommandAnswer::error("didn't find the specified filename");
    };
    let mut text = format!("# {list}\n");
    for (number, name, words) in rows_of(certificates, list) {
        // Writing to a string does not fail.
        let _ = match has_numbers {
            true => writeln!(text, "{name}:{number}{words}"),
            false => writeln!(text, "{name}{words}"),
        };
    }
    CommandAnswer::Report(text)
}

fn add(call: &mut CommandCall<'_>) -> CommandAnswer {
    let list = call.arg(0).trim_end_matches('/').to_owned();
    let payload = call.payload.take();
    if list.is_empty() || (payload.is_none() && call.arg(1).is_empty()) {
        return CommandAnswer::error("'add ssl crtlist' expects a filename and a certificate name");
    }
    let failed = |why: String| CommandAnswer::error(format!("Can't edit the crt-list: {why}"));
    let (in_force, mut lock) = ConfigInForce::locked_for_change(call);
    let binds = binds_with(&in_force, &list);
    let Some((_, _, _, certificates)) = binds.first() else {
        return failed(format!("crt-list '{list}' does not exist!"));
    };
    let given = payload.as_deref().map(String::from_utf8_lossy);
    let given = given.map(std::borrow::Cow::into_owned);
    let line = match &given {
        Some(text) => line_of(call, text),
        None => Ok(CertificateListLine {
            certificate: TlsFile {
                path: in_force.config().global.tls.bases.certificate(call.arg(1)),
                ..TlsFile::default()
            },
            ..CertificateListLine::default()
        }),
    };
    let line = match line {
        Ok(line) => line,
        Err(why) => return failed(why),
    };
    let name = &line.certificate.path;
    let found = {
        let state = in_force.config().global.tls.shared_store.lock();
        in_force.find(&state, name)
    };
    match found {
        None => return failed(format!("certificate '{name}' does not exist!")),
        Some(found) => match found.stored.first() {
            None => return failed(format!("certificate '{name}' is empty!")),
            Some(stored) => {
                if let Err(why) = agrees(&in_force, stored, &line) {
                    return failed(why);
                }
            }
        },
    }
    let ProcessRole::Worker(control) = &call.shared.role else {
        return failed("no bind line is here".to_owned());
    };
    let numbers = rows_of(certificates, &list).into_iter();
    let added = AddedLine {
        edit: ListEdit {
            is_added: true,
            number: numbers.map(|(number, ..)| number).max().unwrap_or(0) + 1,
            certificate: name.clone(),
            words: line.words(),
            line: given,
            list,
        },
        line,
    };
    let begun = format!(
        "Inserting certificate '{}' in crt-list '{}'",
        added.edit.certificate, added.edit.list
    );
    let count = match added.insert(&**control, &in_force) {
        Ok(count) => count,
        Err((count, why)) => {
            let dots = ".".repeat(count);
            return CommandAnswer::Report(format!("{begun}{dots}\n{why}\nFailed!\n"));
        }
    };
    let mut state = in_force.config().global.tls.shared_store.lock();
    state.note_list_edit(added.edit.clone());
    drop(state);
    let control = Arc::downgrade(control);
    lock.record(object_of(&added.edit), move |in_force, next| {
        let Some(control) = control.upgrade() else {
            return;
        };
        // A line that the next lists cannot have is no longer added, as at a reload.
        if added.insert(&*control, in_force).is_ok() && !next.keeps_commands {
            let mut state = in_force.config().global.tls.shared_store.lock();
            state.note_list_edit(added.edit.clone());
        }
    });
    queue_persist(call);
    let dots = ".".repeat(count);
    CommandAnswer::Report(format!("{begun}{dots}\nSuccess!\n"))
}

/// Whether a certificate that lines serve already is kept fresh as another line says.
///
/// # Errors
/// HAProxy's words for what differs.
fn agrees(
    in_force: &ConfigInForce,
    stored: &Arc<StoredCertificate>,
    line: &CertificateListLine,
) -> Result<(), String> {
    let word = |updates: bool| if updates { "on" } else { "off" };
    let is_served = || {
        in_force.binds().any(|(_, _, certificates)| {
            let mut entries = certificates.entries().iter();
            entries.any(|entry| Arc::ptr_eq(&entry.certificate, stored))
        })
    };
    match line.parts.ocsp_update {
        Some(updates) if updates != stored.updates_ocsp() && is_served() => Err(format!(
            "'{}' is already instantiated with incompatible parameters:\n - different parameter \
             'ocsp-update' : previously '{}' vs '{}'",
            stored.name(),
            word(stored.updates_ocsp()),
            word(updates)
        )),
        _ => Ok(()),
    }
}

/// What a line of a list is called while a change is made.
fn object_of(edit: &ListEdit) -> String {
    let ListEdit {
        list,
        number,
        certificate,
        words,
        ..
    } = edit;
    format!("crt-list {list} {number} {certificate}{words}")
}

/// A line that a command adds to a list.
struct AddedLine {
    edit: ListEdit,
    line: CertificateListLine,
}

impl AddedLine {
    /// Adds it to the bind lines that have its list and not the line. All is prepared before anything
    /// is changed. Answers how many have the list.
    ///
    /// # Errors
    /// Why a line cannot have it, and its number among them, from 1.
    fn insert(
        &self,
        control: &dyn Control,
        in_force: &ConfigInForce,
    ) -> Result<usize, (usize, String)> {
        let name = &self.edit.certificate;
        let config = in_force.config();
        let found = {
            let state = config.global.tls.shared_store.lock();
            in_force.find(&state, name)
        };
        let stored = found.and_then(|found| found.stored.into_iter().next());
        let none = || (0, format!("certificate '{name}' does not exist!"));
        let stored = stored.ok_or_else(none)?;
        let row = Arc::new(ListRow {
            list: self.edit.list.as_str().into(),
            number: self.edit.number,
            words: self.edit.words.clone(),
        });
        let binds = binds_with(in_force, &self.edit.list);
        let mut prepared = Vec::with_capacity(binds.len());
        for (index, (frontend, bind, tls, certificates)) in binds.iter().enumerate() {
            let mut entries = certificates.entries().to_vec();
            if entries.iter().any(|entry| self.edit.is_about(entry)) {
                continue;
            }
            let options = self.line.options.inherit(&tls.options);
            let tls_settings = control.bind_tls_settings(&config.global, tls, &options);
            let tls_settings = tls_settings.map_err(|why| {
                let (name, origin) = (&frontend.common.name, &bind.origin);
                let (at, line, address) = (&origin.file, origin.line, &bind.address);
                let why = format!("Proxy '{name}': {why} for bind '{address}' at [{at}:{line}].");
                (index + 1, why)
            })?;
            entries.push(BindEntry {
                certificate: Arc::clone(&stored),
                filters: filters_of(&self.line),
                is_default: false,
                tls_settings,
                row: Some(Arc::clone(&row)),
            });
            prepared.push((tls, certificates.with_entries(entries)));
        }
        for (tls, certificates) in prepared {
            tls.context.replace(certificates);
        }
        if let Some(updates) = self.line.parts.ocsp_update {
            stored.set_updates_ocsp(updates);
            control.ocsp_updates_changed();
        }
        Ok(binds.len())
    }
}

/// Reads the one line of a payload.
fn line_of(call: &CommandCall<'_>, text: &str) -> Result<CertificateListLine, String> {
    let mut lines = text.lines();
    match (lines.next(), lines.next(), &call.shared.role) {
        (Some(line), None, ProcessRole::Worker(control)) if !line.trim().is_empty() => {
            control.certificate_line(line)
        }
        _ => Err("only one line of payload is supported!".to_owned()),
    }
}

fn filters_of(line: &CertificateListLine) -> Option<NameFilters> {
    let mut filters = NameFilters::default();
    for filter in &line.filters {
        let mark = if filter.negated { "!" } else { "" };
        filters.add(format!("{mark}{}", filter.name).as_bytes());
    }
    (!line.filters.is_empty()).then_some(filters)
}

fn del(call: &mut CommandCall<'_>) -> CommandAnswer {
    let (list, given) = (call.arg(0).trim_end_matches('/'), call.arg(1));
    if list.is_empty() || given.is_empty() {
        return CommandAnswer::error("'del ssl crtlist' expects a filename and a certificate name");
    }
    let failed = |why: String| CommandAnswer::error(format!("Can't delete the entry: {why}"));
    let (in_force, mut lock) = ConfigInForce::locked_for_change(call);
    let binds = binds_with(&in_force, list);
    let Some((_, _, _, certificates)) = binds.first() else {
        return failed(format!("crt-list '{list}' does not exist!"));
    };
    let (name, number) = match given.rsplit_once(':') {
        None => (given, None),
        Some((name, number)) => match number.parse::<usize>() {
            Ok(number) => (name, Some(number).filter(|number| *number > 0)),
            Err(_) => {
                return failed(format!("wrong line number after colons in '{given}'!"));
            }
        },
    };
    let mut state = in_force.config().global.tls.shared_store.lock();
    if in_force.find(&state, name).is_none() {
        return failed(format!("certificate '{name}' does not exist!"));
    }
    let rows = rows_of(certificates, list).into_iter();
    let numbers: Vec<usize> = rows
        .filter(|(_, certificate, _)| certificate == name)
        .map(|(number, ..)| number)
        .collect();
    let number = match entry_number((list, name), number, &numbers) {
        Ok(number) => number,
        Err(why) => return failed(why),
    };
    let is_meant = |entry: &&BindEntry| {
        let row = entry.row.as_ref();
        entry.certificate.name() == name
            && entry.is_in(list)
            && row.is_some_and(|row| row.number == number)
    };
    let defaults: Vec<String> = binds
        .iter()
        .filter(|(_, _, tls, certificates)| {
            let mut meant = certificates.entries().iter().filter(is_meant);
            !tls.strict_sni && meant.any(|entry| entry.is_default)
        })
        .map(|(_, bind, ..)| format!("\n\t- {}:{}", bind.origin.file, bind.origin.line))
        .collect();
    if !defaults.is_empty() {
        return failed(format!(
            "certificate '{name}' cannot be deleted, it is used as default certificate by the \
             following frontends:{}",
            defaults.concat()
        ));
    }
    let words = rows_of(certificates, list).into_iter();
    let words = words.filter(|(row, certificate, _)| *row == number && certificate == name);
    let words: Option<String> = words.map(|(.., words)| words).next();
    for (_, _, tls, certificates) in &binds {
        let entries = certificates.entries().iter();
        let kept = entries.filter(|entry| !is_meant(entry)).cloned().collect();
        tls.context.replace(certificates.with_entries(kept));
    }
    let edit = ListEdit {
        is_added: false,
        list: list.to_owned(),
        number,
        certificate: name.to_owned(),
        words: words.unwrap_or_default(),
        line: None,
    };
    state.note_list_edit(edit.clone());
    drop(state);
    lock.record(object_of(&edit), move |in_force, next| {
        for (_, _, tls, certificates) in binds_with(in_force, &edit.list) {
            let entries = certificates.entries().iter();
            let kept = entries.filter(|entry| !edit.is_about(entry));
            tls.context
                .replace(certificates.with_entries(kept.cloned().collect()));
        }
        if !next.keeps_commands {
            let mut state = in_force.config().global.tls.shared_store.lock();
            state.note_list_edit(edit.clone());
        }
    });
    queue_persist(call);
    notice(format!("Entry '{name}' deleted in crtlist '{list}'!"))
}

/// Which entry of a certificate is meant: the one of this line, or the only one. `numbers` has the
/// lines of all entries.
fn entry_number(
    (list, name): (&str, &str),
    number: Option<usize>,
    numbers: &[usize],
) -> Result<usize, String> {
    let all: Vec<String> = numbers.iter().map(usize::to_string).collect();
    let all = all.join(", ");
    match (number, numbers) {
        (_, []) => Err(format!(
            "didn't find certificate '{name}' in crt-list '{list}'!"
        )),
        (None, [only]) => Ok(*only),
        (None, _) => Err(format!(
            "found the certificate '{name}' in several entries, please specify a line number \
             preceded by colons ({all})!"
        )),
        (Some(number), _) if numbers.contains(&number) => Ok(number),
        (Some(_), _) => Err(format!(
            "found a certificate '{name}' but the line number is incorrect, please specify a \
             correct line number preceded by colons ({all})!"
        )),
    }
}

/// What `show ssl sni` shows.
struct NameSelector<'c> {
    frontend: Option<&'c str>,
    /// Only certificates that end before, in seconds since 1970.
    ended_at: Option<i64>,
}

/// Reads the options of `show ssl sni`.
fn selector<'c>(call: &'c CommandCall<'_>) -> Result<NameSelector<'c>, String> {
    let mut selected = NameSelector {
        frontend: None,
        ended_at: None,
    };
    let (mut only_ended, mut offset) = (false, 0);
    let mut args = call.args.iter().map(String::as_str);
    while let Some(word) = args.next() {
        match word {
            "-A" => only_ended = true,
            "-f" => match args.next() {
                Some(name) => selected.frontend = Some(name),
                None => return Err("'-f' requires a frontend name!".to_owned()),
            },
            "-t" => match args.next() {
                Some(text) => offset = seconds(text)?,
                None => return Err("'-t' requires an offset argument!".to_owned()),
            },
            _ => {
                return Err(
                    "Invalid parameters, 'show ssl sni' only supports '-f', '-A' or '-t' \
                            options!"
                        .to_owned(),
                );
            }
        }
    }
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let now = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
    selected.ended_at = only_ended.then(|| now.saturating_add(offset));
    Ok(selected)
}

/// Reads a time: a number with a unit, seconds without one.
fn seconds(text: &str) -> Result<i64, String> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let unexpected = |rest: &str| {
        let first = rest.chars().next().unwrap_or_default();
        format!("'-t {text}' : unexpected character '{first}'")
    };
    let number: i64 = text[..digits].parse().map_err(|_| unexpected(text))?;
    let unit = match &text[digits..] {
        "" | "s" => 1,
        "m" => 60,
        "h" => 3600,
        "d" => 86_400,
        rest => return Err(unexpected(rest)),
    };
    Ok(number.saturating_mul(unit))
}

fn show_names(call: &mut CommandCall<'_>) -> CommandAnswer {
    let selected = match selector(call) {
        Ok(selected) => selected,
        Err(why) => return CommandAnswer::error(why),
    };
    let in_force = ConfigInForce::of(call);
    let frontends = &in_force.config().frontends;
    if let Some(name) = selected.frontend
        && !frontends
            .iter()
            .any(|frontend| frontend.common.name == name)
    {
        return CommandAnswer::error("Couldn't find the specified frontend!");
    }
    let mut text =
        "# Frontend/Bind\tSNI\tNegative Filter\tType\tFilename\tNotAfter\tNotBefore\n".to_owned();
    for (frontend, bind, certificates) in in_force.binds() {
        if selected
            .frontend
            .is_some_and(|name| frontend.common.name != name)
        {
            continue;
        }
        let (file, line) = (&bind.origin.file, bind.origin.line);
        let location = format!("{}/{file}:{line}", frontend.common.name);
        names_of(&location, &certificates, selected.ended_at, &mut text);
    }
    CommandAnswer::Report(text)
}

/// The names of a bind line: first whole ones, then wildcards, both in order.
fn names_of(
    location: &str,
    certificates: &BindCertificates,
    ended_at: Option<i64>,
    into: &mut String,
) {
    let mut exact: BTreeMap<Box<[u8]>, Vec<String>> = BTreeMap::new();
    let mut wild: BTreeMap<Box<[u8]>, Vec<String>> = BTreeMap::new();
    for entry in certificates.entries() {
        let certificate = entry.certificate.current();
        if ended_at.is_some_and(|at| certificate.not_after() >= at) {
            continue;
        }
        let names = entry.names();
        let excluded = names.excluded.iter();
        let excluded: String = excluded
            .map(|name| format!("!{} ", String::from_utf8_lossy(name)))
            .collect();
        let algorithm = match certificate.algorithm() {
            KeyAlgorithm::Ecdsa => "ecdsa",
            KeyAlgorithm::Rsa => "rsa",
            // HAProxy's word for all others.
            KeyAlgorithm::Other => "dsa",
        };
        let (after, before) = (certificate.not_after(), certificate.not_before());
        let (after, before) = (seconds_text(after), seconds_text(before));
        let file = entry.certificate.name();
        let row = |excluded: &str| format!("{excluded}\t{algorithm}\t{file}\t{after}\t{before}");
        let negative = if excluded.is_empty() { "-" } else { &excluded };
        for name in &names.names {
            match name.strip_prefix(b"*") {
                Some(suffix) => wild.entry(suffix.into()).or_default().push(row(negative)),
                None => exact.entry(name.clone()).or_default().push(row("-")),
            }
        }
        if entry.is_default || names.is_default {
            wild.entry(Box::default()).or_default().push(row("-"));
        }
    }
    let exact = exact.iter().map(|(name, rows)| ("", name, rows));
    let wild = wild.iter().map(|(name, rows)| ("*", name, rows));
    for (star, name, rows) in exact.chain(wild) {
        let name = String::from_utf8_lossy(name);
        for row in rows {
            // Writing to a string does not fail.
            let _ = writeln!(into, "{location}\t{star}{name}\t{row}");
        }
    }
}
