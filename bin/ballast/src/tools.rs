//! Commands that start nothing: a condition, the list of keywords, the rewriting of old files.

use std::io::Write;

use ballast_syntax::{Diagnostic, evaluate_condition};

use crate::args::UpgradeOptions;
use crate::machine::LocalMachine;
use crate::{config_files, console};

/// `-cc`: 0 when the condition holds, 1 when not, 2 when it cannot be read.
pub(crate) fn condition(text: &str) -> u8 {
    let machine = LocalMachine::new(&[], None, false);
    let environment = ballast_config::Machine::environment(&machine);
    match evaluate_condition(text, &environment, &crate::version::facts()) {
        Ok(true) => 0,
        Ok(false) => 1,
        Err(Diagnostic {
            message,
            notes,
            help,
            ..
        }) => {
            console::alert(&format!("config : Failed to evaluate condition: {message}"));
            for more in notes.iter().chain(&help) {
                console::print_error_line!("   | {more}");
            }
            2
        }
    }
}

/// `keywords`: prints every keyword and how it is treated.
pub(crate) fn keywords(json: bool) -> u8 {
    let keywords = ballast_config::keywords();
    let text = if json {
        ballast_config::keyword_json(&keywords)
    } else {
        ballast_config::keyword_text(&keywords)
    };
    print_all(&text)
}

/// `upgrade`: prints the changes, or writes them (`--write`). Returns 1 if a line cannot be
/// rewritten, or a file cannot be read or written.
pub(crate) fn upgrade(options: &UpgradeOptions) -> u8 {
    let files = match config_files::read_with_pipes(&options.files) {
        Ok(files) => files,
        Err(error) => {
            console::alert(&error);
            return 1;
        }
    };
    let mut code = 0;
    for (name, bytes) in files {
        let upgraded = ballast_config::upgrade(&name, &bytes);
        for left in &upgraded.left {
            console::print_error_line!(
                "{name}:{}: left as it is: {}\n    {}",
                left.line,
                left.reason,
                left.from
            );
            code = 1;
        }
        if upgraded.changes.is_empty() {
            console::print_error_line!("{name}: nothing to rewrite");
        } else if options.write {
            if let Err(error) = replace(&name, &upgraded.text) {
                console::alert(&format!("cannot write {name}: {error}"));
                return 1;
            }
            console::print_error_line!("{name}: {} lines rewritten", upgraded.changes.len());
        } else {
            code = code.max(print_all(&upgraded.diff));
        }
    }
    code
}

/// Replaces a file in one step: a reader sees either the old or the new content.
fn replace(name: &str, bytes: &[u8]) -> std::io::Result<()> {
    let mode = std::fs::metadata(name)?.permissions();
    let beside = format!("{name}.upgrade.{}", std::process::id());
    let written = std::fs::File::create(&beside).and_then(|mut file| {
        file.set_permissions(mode)?;
        file.write_all(bytes)?;
        file.sync_all()
    });
    let renamed = written.and_then(|()| std::fs::rename(&beside, name));
    if renamed.is_err() {
        // A part of the file may have been written.
        let _ = std::fs::remove_file(&beside);
    }
    renamed
}

/// Prints a text. A reader that has closed the pipe (`| head`) is no failure. Returns the exit code.
pub(crate) fn print_all(text: &str) -> u8 {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => 0,
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => 0,
        Err(_) => 1,
    }
}
