//! Commands that show and change maps and the lists of ACLs.
//!
//! Source: management manual, section 9.3, "add map" and the like. The commands for maps and those
//! for ACLs work on the same lists; they differ in the lists that they take, and in their messages.

use std::fmt::Write as _;
use std::sync::Arc;

use ballast_expr::{
    DiscardedEntries, EntrySelector, ListLookup, ListedPatterns, PatternError, PatternRef, Store,
    parse_payload, text_of_bytes,
};
use ballast_net::give_back_free_memory;
use ballast_reconcile::kinds::{self, list::ENTRIES};
use ballast_reconcile::{ObjectKind, ObjectName, OverrideKey, OverrideValue};
use ballast_worker::{run_blocking, yield_now};

use crate::answer::CommandAnswer;
use crate::change_record::ChangeScope;
use crate::command::{Command, CommandCall};
use crate::control::Control;
use crate::shared::ProcessRole;

pub(crate) static COMMANDS: &[Command] = &[
    Command::new(
        &["add", "map"],
        "add map [@<ver>] <map> <key> <val>",
        "add an entry to a map; a payload holds a key and a value a line",
        add_map,
    )
    .changing(ChangeScope::State),
    Command::new(
        &["clear", "map"],
        "clear map [@<ver>] <map>",
        "remove all entries of a map",
        |call| clear(call, MAP),
    )
    .changing(ChangeScope::State),
    Command::new(
        &["commit", "map"],
        "commit map @<ver> <map>",
        "make a prepared version of a map the one in force",
        |call| commit(call, MAP),
    )
    .changing(ChangeScope::State),
    Command::new(
        &["del", "map"],
        "del map <map> [<key>|#<ref>]",
        "remove entries from a map",
        |call| del(call, MAP),
    )
    .changing(ChangeScope::State),
    Command::new(
        &["get", "map"],
        "get map <map> <value>",
        "tell what a map gives for a value",
        |call| get(call, MAP),
    ),
    Command::new(
        &["prepare", "map"],
        "prepare map <map>",
        "open a new version of a map, to be filled and committed",
        |call| prepare(call, MAP),
    )
    .changing(ChangeScope::State),
    Command::new(
        &["set", "map"],
        "set map <map> [<key>|#<ref>] <value>",
        "give entries of a map another value",
        set,
    )
    .changing(ChangeScope::State),
    Command::new(
        &["show", "map"],
        "show map [@<ver>] [<map>]",
        "list the maps, or the entries of one",
        |call| show(call, MAP),
    ),
];

/// A kind of list, and its name in messages.
#[derive(Clone, Copy)]
pub(super) struct ListKind {
    object: &'static ObjectKind,
    name: &'static str,
    includes: fn(&ListedPatterns) -> bool,
}

pub(super) const MAP: ListKind = ListKind {
    object: &kinds::MAP,
    name: "map",
    includes: |listed| listed.is_used_as_map,
};

pub(super) const ACL: ListKind = ListKind {
    object: &kinds::ACL,
    name: "ACL",
    includes: |listed| listed.is_acl,
};

/// How many entries are added or shown before other tasks run.
const ENTRIES_PER_TURN: usize = 256;

impl ListKind {
    fn unknown(self) -> CommandAnswer {
        let name = self.name;
        CommandAnswer::error(format!(
            "Unknown {name} identifier. Please use #<id> or <file>."
        ))
    }

    /// The message of a refusal.
    fn refused(self, error: PatternError) -> CommandAnswer {
        CommandAnswer::error(match error {
            PatternError::Invalid(why) => format!("{why}."),
            PatternError::NotFound => "Key not found.".into(),
            PatternError::Full => "The list is full.".into(),
            PatternError::Future => format!(
                "Version number in the future, please use 'prepare {}' before.",
                self.object.word
            ),
            PatternError::Version => "Version number out of range.".into(),
        })
    }
}

fn control(call: &CommandCall<'_>) -> Option<Arc<dyn Control>> {
    match &call.shared.role {
        ProcessRole::Worker(control) => Some(Arc::clone(control)),
        ProcessRole::Master(_) => None,
    }
}

fn store(call: &CommandCall<'_>) -> Arc<Store> {
    control(call).map_or_else(Arc::default, |control| control.patterns())
}

/// The list that an argument refers to.
fn find(call: &CommandCall<'_>, index: usize) -> Option<ListedPatterns> {
    let reference = call.arg(index);
    store(call)
        .find(reference)
        .filter(|_| !reference.is_empty())
}

/// The version, if the first word is `@<version>`, and the index of the word after it. A version
/// that is not a number is 0, as with HAProxy.
fn version(call: &CommandCall<'_>) -> (Option<u32>, usize) {
    let Some(text) = call.arg(0).strip_prefix('@') else {
        return (None, 0);
    };
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    (Some(text[..digits].parse().unwrap_or(0)), 1)
}

/// Parses a key, or `#0x<id>` as `show` displays it.
fn entry_selector(word: &str) -> EntrySelector<'_> {
    let id = word.strip_prefix("#0x");
    match id.map(|id| u64::from_str_radix(id, 16)) {
        Some(Ok(id)) => EntrySelector::Id(id),
        _ => EntrySelector::Key(word),
    }
}

/// Records that commands set entries of this list (`show overrides`). A payload is recorded before
/// its entries are added, even if they are refused then.
fn record_override(call: &CommandCall<'_>, kind: ListKind, listed: &ListedPatterns, command: &str) {
    if let Some(control) = control(call) {
        record_override_with(&*control, kind, listed, command);
    }
}

fn record_override_with(
    control: &dyn Control,
    kind: ListKind,
    listed: &ListedPatterns,
    command: &str,
) {
    let name = match listed.list.name() {
        "" => ObjectName::Named(format!("#{}", listed.id)),
        name => ObjectName::of(name),
    };
    let key = OverrideKey::new(kind.object, name, &ENTRIES);
    let command = format!("{command} {key}");
    control.note_override(key, OverrideValue::of_text(""), command);
}

/// Frees the removed entries of a list. If they are many, another thread does it.
fn discard(entry_count: usize, discarded: DiscardedEntries) -> CommandAnswer {
    if entry_count < ENTRIES_PER_TURN {
        return CommandAnswer::Done;
    }
    CommandAnswer::pending(async move {
        // If no thread can be started, they are freed here.
        let _ = run_blocking(move || {
            drop(discarded);
            give_back_free_memory();
        })
        .await;
        CommandAnswer::Done
    })
}

pub(super) fn show(call: &mut CommandCall<'_>, kind: ListKind) -> CommandAnswer {
    if call.arg(0).is_empty() {
        return list(call, kind);
    }
    let (version, at) = version(call);
    let Some(listed) = find(call, at).filter(kind.includes) else {
        return kind.unknown();
    };
    let list = listed.list;
    let version = version.unwrap_or_else(|| list.versions().0);
    let mut last = 0;
    CommandAnswer::Pieces(Box::new(move |into| {
        let entries = list.entries(Some(version), last, ENTRIES_PER_TURN);
        for entry in &entries {
            last = entry.id;
            // Writing to a string does not fail.
            let _ = match &entry.value {
                Some(value) => writeln!(into, "{:#x} {} {value}", entry.id, entry.key),
                None => writeln!(into, "{:#x} {}", entry.id, entry.key),
            };
        }
        !entries.is_empty()
    }))
}

fn list(call: &CommandCall<'_>, kind: ListKind) -> CommandAnswer {
    let all = store(call).all();
    let mut lists = all
        .into_iter()
        .filter(move |listed| (kind.includes)(listed));
    let mut head = Some("# id (file) description\n");
    CommandAnswer::Pieces(Box::new(move |into| {
        if let Some(head) = head.take() {
            into.push_str(head);
            return true;
        }
        let Some(listed) = lists.next() else {
            return false;
        };
        let (current, newest) = listed.list.versions();
        let _ = writeln!(
            into,
            "{} ({}) {}. curr_ver={current} next_ver={newest} entry_cnt={}",
            listed.id,
            listed.list.name(),
            listed.description(),
            listed.list.entry_count(),
        );
        true
    }))
}

pub(super) fn get(call: &mut CommandCall<'_>, kind: ListKind) -> CommandAnswer {
    if call.arg(0).is_empty() || call.arg(1).is_empty() {
        let name = kind.name;
        return CommandAnswer::error(format!("Missing {name} identifier and/or key."));
    }
    let Some(listed) = find(call, 0) else {
        return kind.unknown();
    };
    let mut text = String::new();
    for probe in listed.list.probe(call.arg(1)) {
        lookup_line(&probe, kind, &mut text);
    }
    CommandAnswer::Report(text)
}

fn lookup_line(probe: &ListLookup, kind: ListKind, into: &mut String) {
    let case = if probe.folds {
        "insensitive"
    } else {
        "sensitive"
    };
    let is_map = kind.object.word == "map";
    let found = if is_map { "found" } else { "match" };
    let _ = write!(into, "type={}, case={case}, {found}=", probe.method.text());
    let Some(hit) = &probe.hit else {
        into.push_str("no\n");
        return;
    };
    let storage = if hit.is_in_tree { "tree" } else { "list" };
    let key = if is_map { "key" } else { "pattern" };
    let _ = write!(into, "yes, idx={storage}, {key}=\"{}\"", hit.key);
    if is_map {
        let _ = match &hit.value {
            Some((value, of)) => write!(into, ", value=\"{value}\", type=\"{of}\""),
            None => write!(into, ", value=none"),
        };
    }
    into.push('\n');
}

fn add_map(call: &mut CommandCall<'_>) -> CommandAnswer {
    let (version, at) = version(call);
    let key_and_value = !call.arg(at + 1).is_empty() && !call.arg(at + 2).is_empty();
    if call.arg(at).is_empty() || !(key_and_value || call.payload.is_some()) {
        return CommandAnswer::error(
            "'add map' expects three parameters (map identifier, key and value) or one \
             parameter (map identifier) and a payload",
        );
    }
    let Some(listed) = find(call, at) else {
        return MAP.unknown();
    };
    let Some(payload) = call.payload.take() else {
        let value = Some(call.arg(at + 2)).filter(|_| listed.list.is_map());
        let added = listed.list.add(version, [(call.arg(at + 1), value)]);
        return added_one(call, MAP, &listed, added);
    };
    let is_map = listed.list.is_map();
    add_payload(call, MAP, (listed, version), payload, move |text| {
        let entries = parse_payload(text);
        let entries = entries.map_err(|key| format!("Missing value for key '{key}'."))?;
        let entries = entries.into_iter();
        let owned = entries.map(|(key, value)| (key.into(), is_map.then(|| value.into())));
        Ok(owned.collect())
    })
}

pub(super) fn add_acl(call: &mut CommandCall<'_>) -> CommandAnswer {
    let (version, at) = version(call);
    if call.arg(at).is_empty() || (call.arg(at + 1).is_empty() && call.payload.is_none()) {
        return CommandAnswer::error(
            "'add acl' expects two parameters: ACL identifier and pattern.",
        );
    }
    let Some(listed) = find(call, at) else {
        return ACL.unknown();
    };
    if listed.list.is_map() {
        return CommandAnswer::error(
            "This ACL is shared with a map containing samples. You must use the command \
             'add map' to add values.",
        );
    }
    let Some(payload) = call.payload.take() else {
        let added = listed.list.add(version, [(call.arg(at + 1), None)]);
        return added_one(call, ACL, &listed, added);
    };
    add_payload(call, ACL, (listed, version), payload, |text| {
        let lines = text
            .lines()
            .map(|line| line.trim_start_matches([' ', '\t']));
        let lines = lines.filter(|line| !line.is_empty());
        Ok(lines.map(|line| (line.into(), None)).collect())
    })
}

fn added_one(
    call: &CommandCall<'_>,
    kind: ListKind,
    listed: &ListedPatterns,
    added: Result<(), PatternError>,
) -> CommandAnswer {
    match added {
        Ok(()) => {
            record_override(call, kind, listed, "add");
            CommandAnswer::Done
        }
        Err(error) => kind.refused(error),
    }
}

/// An entry of a payload.
type OwnedEntry = (Box<str>, Option<Box<str>>);

fn borrowed(entries: &[OwnedEntry]) -> impl Iterator<Item = (&str, Option<&str>)> {
    entries
        .iter()
        .map(|(key, value)| (&**key, value.as_deref()))
}

/// A payload up to this size is cut into entries by the worker itself.
const PAYLOAD_BYTES_PER_TURN: usize = 16 << 10;

/// Adds the entries of a payload, which `read` cuts it into. A large payload is cut on another thread.
fn add_payload(
    call: &CommandCall<'_>,
    kind: ListKind,
    (listed, version): (ListedPatterns, Option<u32>),
    payload: Vec<u8>,
    read: impl FnOnce(&str) -> Result<Vec<OwnedEntry>, String> + Send + 'static,
) -> CommandAnswer {
    let control = control(call);
    CommandAnswer::pending(async move {
        let is_large = payload.len() > PAYLOAD_BYTES_PER_TURN;
        let cut = move || read(&text_of_bytes(&payload));
        let entries = if is_large {
            let failed = |_| Err("The payload cannot be read.".to_owned());
            run_blocking(cut).await.unwrap_or_else(failed)
        } else {
            cut()
        };
        match entries {
            Err(message) => CommandAnswer::error(message),
            Ok(entries) => {
                if let Some(control) = control {
                    record_override_with(&*control, kind, &listed, "add");
                }
                add_all(kind, listed.list, version, entries).await
            }
        }
    })
}

/// Adds many entries, a few at a time so that other tasks of the worker do not wait. If one of the
/// entries is not valid, none is added.
async fn add_all(
    kind: ListKind,
    list: Arc<PatternRef>,
    version: Option<u32>,
    entries: Vec<OwnedEntry>,
) -> CommandAnswer {
    // The version is fixed first, so that a commit in between does not split the entries.
    let version = Some(version.unwrap_or_else(|| list.versions().0));
    for some in entries.chunks(ENTRIES_PER_TURN) {
        if let Err(error) = list.check(version, borrowed(some)) {
            return kind.refused(error);
        }
        yield_now().await;
    }
    let mut left = entries.into_iter();
    loop {
        // What was added is freed at once, not all of it at the end.
        let some: Vec<OwnedEntry> = left.by_ref().take(ENTRIES_PER_TURN).collect();
        if some.is_empty() {
            return CommandAnswer::Done;
        }
        if let Err(error) = list.add(version, borrowed(&some)) {
            return kind.refused(error);
        }
        yield_now().await;
    }
}

fn set(call: &mut CommandCall<'_>) -> CommandAnswer {
    if (0..3).any(|index| call.arg(index).is_empty()) {
        return CommandAnswer::error(
            "'set map' expects three parameters: map identifier, key and value.",
        );
    }
    let Some(listed) = find(call, 0).filter(|listed| listed.list.is_map()) else {
        return MAP.unknown();
    };
    let entry_selector = entry_selector(call.arg(1));
    match (listed.list.set(entry_selector, call.arg(2)), entry_selector) {
        (Ok(()), _) => {
            record_override(call, MAP, &listed, "set");
            CommandAnswer::Done
        }
        (Err(PatternError::NotFound), EntrySelector::Key(_)) => {
            CommandAnswer::error("entry not found.")
        }
        (Err(PatternError::NotFound), EntrySelector::Id(_)) => {
            CommandAnswer::error("key or pattern not found.")
        }
        (Err(error), _) => MAP.refused(error),
    }
}

pub(super) fn del(call: &mut CommandCall<'_>, kind: ListKind) -> CommandAnswer {
    if call.arg(0).is_empty() || call.arg(1).is_empty() {
        return CommandAnswer::error(format!(
            "This command expects two parameters: {} identifier and key.",
            kind.name
        ));
    }
    let Some(listed) = find(call, 0).filter(kind.includes) else {
        return kind.unknown();
    };
    match listed.list.del(entry_selector(call.arg(1))) {
        Ok(()) => {
            record_override(call, kind, &listed, "del");
            CommandAnswer::Done
        }
        Err(error) => kind.refused(error),
    }
}

pub(super) fn clear(call: &mut CommandCall<'_>, kind: ListKind) -> CommandAnswer {
    let (version, at) = version(call);
    if call.arg(at).is_empty() {
        return CommandAnswer::error(format!("Missing {} identifier.", kind.name));
    }
    let Some(listed) = find(call, at).filter(kind.includes) else {
        return kind.unknown();
    };
    let count = listed.list.entry_count();
    let discarded = listed.list.clear(version);
    record_override(call, kind, &listed, "clear");
    discard(count, discarded)
}

pub(super) fn prepare(call: &mut CommandCall<'_>, kind: ListKind) -> CommandAnswer {
    let Some(listed) = find(call, 0).filter(kind.includes) else {
        return kind.unknown();
    };
    let version = listed.list.prepare();
    CommandAnswer::info(format!("New version created: {version}"))
}

pub(super) fn commit(call: &mut CommandCall<'_>, kind: ListKind) -> CommandAnswer {
    let (Some(version), at) = version(call) else {
        return CommandAnswer::error("Missing version number.");
    };
    if call.arg(at).is_empty() {
        return CommandAnswer::error(format!("Missing {} identifier.", kind.name));
    }
    let Some(listed) = find(call, at).filter(kind.includes) else {
        return kind.unknown();
    };
    let count = listed.list.entry_count();
    match listed.list.commit(version) {
        Ok(discarded) => {
            record_override(call, kind, &listed, "commit");
            discard(count, discarded)
        }
        Err(error) => kind.refused(error),
    }
}
