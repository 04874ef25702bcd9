//! The files of a configuration, in order.

use std::io::Read;

use crate::machine::{content, files_in, is_directory, plain};

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
            read.map_err(|error| cannot(name, &plain(&error)))?;
            files.push(("/dev/stdin".to_owned(), bytes));
        } else if is_directory(name) {
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
    match content(&name) {
        Ok(bytes) => Ok((name, bytes)),
        Err(said) => Err(cannot(&name, &said)),
    }
}

/// Hidden files and those that do not end in `.cfg` are left out.
fn directory(name: &str) -> Result<Vec<String>, String> {
    let names = files_in(name).map_err(|said| cannot(name, &said))?;
    let mut found: Vec<String> = names
        .iter()
        .filter(|file| file.ends_with(".cfg") && !file.starts_with('.'))
        .map(|file| format!("{}/{file}", name.trim_end_matches('/')))
        .collect();
    found.sort();
    Ok(found)
}

fn cannot(name: &str, said: &str) -> String {
    format!("config : Cannot open configuration file/directory {name} : {said}")
}
