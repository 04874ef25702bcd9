//! The files of a configuration, in order.

use std::io::Read;
use std::path::Path;

use crate::machine::plain;

/// Reads files, the `*.cfg` of directories in the order of their names, and standard input (`-`).
///
/// # Errors
/// What cannot be read, as HAProxy says it.
pub(crate) fn files(names: &[String]) -> Result<Vec<(String, Vec<u8>)>, String> {
    let mut files = Vec::new();
    for name in names {
        if name == "-" {
            let mut bytes = Vec::new();
            let read = std::io::stdin().lock().read_to_end(&mut bytes);
            read.map_err(|error| cannot(name, &error))?;
            files.push(("/dev/stdin".to_owned(), bytes));
        } else if Path::new(name).is_dir() {
            for inside in directory(name)? {
                files.push(one(inside)?);
            }
        } else {
            files.push(one(name.clone())?);
        }
    }
    Ok(files)
}

fn one(name: String) -> Result<(String, Vec<u8>), String> {
    match std::fs::read(&name) {
        Ok(bytes) => Ok((name, bytes)),
        Err(error) => Err(cannot(&name, &error)),
    }
}

/// Hidden files and those that do not end in `.cfg` are left out.
fn directory(name: &str) -> Result<Vec<String>, String> {
    let entries = std::fs::read_dir(name).map_err(|error| cannot(name, &error))?;
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry.map_err(|error| cannot(name, &error))?;
        let file = entry.file_name().to_string_lossy().into_owned();
        if file.ends_with(".cfg") && !file.starts_with('.') && entry.path().is_file() {
            found.push(format!("{}/{file}", name.trim_end_matches('/')));
        }
    }
    found.sort();
    Ok(found)
}

fn cannot(name: &str, error: &std::io::Error) -> String {
    let said = plain(error);
    format!("config : Cannot open configuration file/directory {name} : {said}")
}
