//! Commands that show and change the keys of TLS tickets.
//!
//! Source: management manual, section 9.3, "show tls-keys" and "set ssl tls-key".

use std::fmt::Write as _;
use std::sync::Arc;

use ballast_tls::tickets::{TicketKeyError, TicketKeys};

use crate::answer::CommandAnswer;
use crate::change_record::ChangeScope;
use crate::command::{Command, CommandCall};
use crate::commands::in_force::InForce;

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

/// A file of keys, and where they are used. Each bind line may have read the file by itself.
struct KeyFile {
    path: String,
    keys: Vec<Arc<TicketKeys>>,
}

/// The files of keys, the last one first, as HAProxy numbers them.
fn files(in_force: &InForce) -> Vec<KeyFile> {
    let mut files: Vec<KeyFile> = Vec::new();
    for (_, bind, certificates) in in_force.binds() {
        let file = bind.tls.as_ref().and_then(|tls| tls.ticket_keys.as_ref());
        let Some(path) = file.map(|file| file.path.clone()) else {
            continue;
        };
        let at = files.iter().position(|file| file.path == path);
        let at = at.unwrap_or_else(|| {
            files.push(KeyFile {
                path,
                keys: Vec::new(),
            });
            files.len() - 1
        });
        for entry in certificates.entries() {
            let known = &mut files[at].keys;
            if let Some(keys) = entry.terms.ticket_keys()
                && !known.iter().any(|one| Arc::ptr_eq(one, keys))
            {
                known.push(Arc::clone(keys));
            }
        }
    }
    files.reverse();
    files
}

/// The place of a file that `#<number>` or its path refers to.
fn find(files: &[KeyFile], reference: &str) -> Option<usize> {
    match reference.strip_prefix('#') {
        Some(number) => number.parse().ok().filter(|number| *number < files.len()),
        None => files.iter().position(|file| file.path == reference),
    }
}

fn show(call: &mut CommandCall<'_>) -> CommandAnswer {
    let files = files(&InForce::of(call));
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
        let keys = file.keys.first().map(|keys| keys.reveal());
        for (place, key) in keys.unwrap_or_default().iter().enumerate() {
            let _ = writeln!(text, "{id}.{place} {key}");
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
    let files = files(&InForce::of(call));
    let Some(file) = find(&files, reference).map(|at| &files[at]) else {
        return CommandAnswer::error("'set ssl tls-key' unable to locate referenced filename");
    };
    for keys in &file.keys {
        match keys.push(key) {
            Ok(()) => {}
            Err(TicketKeyError::Base64 { .. }) => {
                return CommandAnswer::error(
                    "'set ssl tls-key' received invalid base64 encoded TLS key.",
                );
            }
            Err(_) => {
                return CommandAnswer::error("'set ssl tls-key' received a key of wrong size.");
            }
        }
    }
    CommandAnswer::info("TLS ticket key updated!")
}
