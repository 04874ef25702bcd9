//! Commands that show and change the keys of TLS tickets.
//!
//! Source: management manual, section 9.3, "show tls-keys" and "set ssl tls-key".

use std::fmt::Write as _;
use std::sync::Arc;

use ballast_tls::shared_store::StoreState;
use ballast_tls::tickets::{TicketKeyError, TicketKeys};

use crate::answer::CommandAnswer;
use crate::change_record::ChangeScope;
use crate::command::{Command, CommandCall};
use crate::commands::in_force::{ConfigInForce, queue_persist};

pub(crate) static COMMANDS: &[Command] = &[
    Command::new(
        &["set", "ssl", "tls-key"],
        "set ssl tls-key [id|file] <key>",
        "set the next key of TLS tickets",
        set,
    )
    .changing(ChangeScope::State)
    .with_secrets(),
    Command::new(
        &["show", "tls-keys"],
        "show tls-keys [id|*]",
        "list the files of keys of TLS tickets, or their keys",
        show,
    ),
];

/// A file of keys that lines in force name.
struct KeyFile {
    path: String,
    keys: Arc<TicketKeys>,
}

/// The files of keys, the last one first, as HAProxy numbers them.
fn files(in_force: &ConfigInForce, state: &StoreState) -> Vec<KeyFile> {
    let mut files: Vec<KeyFile> = Vec::new();
    for (_, bind, _) in in_force.binds() {
        let file = bind.tls.as_ref().and_then(|tls| tls.ticket_keys.as_ref());
        if let Some(path) = file.map(|file| &file.path)
            && let Some(keys) = state.ticket_keys.get(path)
            && !files.iter().any(|known| known.path == *path)
        {
            files.push(KeyFile {
                path: path.clone(),
                keys: Arc::clone(keys),
            });
        }
    }
    files.reverse();
    files
}

/// The index of a file that `#<number>` or its path refers to.
fn find(files: &[KeyFile], reference: &str) -> Option<usize> {
    match reference.strip_prefix('#') {
        Some(number) => number.parse().ok().filter(|number| *number < files.len()),
        None => files.iter().position(|file| file.path == reference),
    }
}

fn show(call: &mut CommandCall<'_>) -> CommandAnswer {
    let in_force = ConfigInForce::of(call);
    let files = files(&in_force, &in_force.config().global.tls.shared_store.lock());
    let only = match call.arg(0) {
        "" => {
            let rows = files.iter().enumerate();
            let rows = rows.map(|(id, file)| format!("{id} ({})\n", file.path));
            return CommandAnswer::Report(format!("# id (file)\n{}", rows.collect::<String>()));
        }
        "*" => None,
        reference => match find(&files, reference) {
            Some(at) => Some(at),
            None => {
                return CommandAnswer::error(
                    "'show tls-keys' unable to locate referenced filename",
                );
            }
        },
    };
    let mut text = "# id secret\n".to_owned();
    for (id, file) in files.iter().enumerate() {
        if only.is_some_and(|only| only != id) {
            continue;
        }
        // Writing to a string does not fail.
        let _ = writeln!(text, "# {id} ({})", file.path);
        for (index, key) in file.keys.reveal().iter().enumerate() {
            let _ = writeln!(text, "{id}.{index} {key}");
        }
    }
    CommandAnswer::Report(text)
}

fn set(call: &mut CommandCall<'_>) -> CommandAnswer {
    let [reference, key, ..] = call.args else {
        return CommandAnswer::error(
            "'set ssl tls-key' expects a filename and the new TLS key in base64 encoding.",
        );
    };
    let (in_force, mut lock) = ConfigInForce::locked_for_change(call);
    let state = in_force.config().global.tls.shared_store.lock();
    let files = files(&in_force, &state);
    let Some(file) = find(&files, reference).map(|at| &files[at]) else {
        return CommandAnswer::error("'set ssl tls-key' unable to locate referenced filename");
    };
    match file.keys.push(key) {
        Ok(()) => {
            state.note_change();
            let (path, keys, key) = (file.path.clone(), Arc::clone(&file.keys), key.clone());
            lock.record(format!("tls-key {path} {key}"), move |in_force, _| {
                let state = in_force.config().global.tls.shared_store.lock();
                let next = state.ticket_keys.get(&path);
                // Where the file was not read, or says the same, the keys are the same object.
                if let Some(next) = next.filter(|next| !Arc::ptr_eq(next, &keys)) {
                    let _ = next.push(&key);
                    state.note_change();
                }
            });
            queue_persist(call);
            CommandAnswer::info("TLS ticket key updated!")
        }
        Err(TicketKeyError::Base64 { .. }) => {
            CommandAnswer::error("'set ssl tls-key' received invalid base64 encoded TLS key.")
        }
        Err(_) => CommandAnswer::error("'set ssl tls-key' received a key of wrong size."),
    }
}
