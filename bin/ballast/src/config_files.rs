//! The files of a configuration, in order.

use std::io::Read;

use ballast_syntax::FILE_BYTES_MAX;

use crate::machine::{content, files_in, is_directory, regular_content};
use crate::question::error_text;

/// Reads files, and the `*.cfg` of directories in the order of their names, for a running process.
/// Only regular files of limited size are read: a pipe would block its changes, and an endless file
/// would fill its memory.
///
/// # Errors
/// What cannot be read, as HAProxy says it.
pub(crate) fn read(names: &[String]) -> Result<Vec<(String, Vec<u8>)>, String> {
    let content = |name: &str| regular_content(name, FILE_BYTES_MAX);
    read_each(names, content, |name| {
        Err(cannot_open(
            name,
            "a process that runs does not read its input",
        ))
    })
}

/// As [`read`], for a process that may wait: reads pipes (`-f <(...)`) and the standard input (`-`)
/// too.
///
/// # Errors
/// What cannot be read, as HAProxy says it.
pub(crate) fn read_with_pipes(names: &[String]) -> Result<Vec<(String, Vec<u8>)>, String> {
    read_each(names, content, |name| {
        let mut bytes = Vec::new();
        let read = std::io::stdin().lock().read_to_end(&mut bytes);
        read.map_err(|error| cannot_open(name, &error_text(&error)))?;
        Ok(("/dev/stdin".to_owned(), bytes))
    })
}

fn read_each(
    names: &[String],
    content: impl Fn(&str) -> Result<Vec<u8>, String>,
    input: impl Fn(&str) -> Result<(String, Vec<u8>), String>,
) -> Result<Vec<(String, Vec<u8>)>, String> {
    let read = |name: String| match content(&name) {
        Ok(bytes) => Ok((name, bytes)),
        Err(reason) => Err(cannot_open(&name, &reason)),
    };
    let mut files = Vec::new();
    for name in names {
        if name == "-" {
            files.push(input(name)?);
        } else if is_directory(name) {
            for inside in cfg_files_in(name)? {
                files.push(read(inside)?);
            }
        } else {
            files.push(read(name.clone())?);
        }
    }
    Ok(files)
}

/// The `*.cfg` files of a directory, without hidden ones, sorted by name.
fn cfg_files_in(name: &str) -> Result<Vec<String>, String> {
    let names = files_in(name).map_err(|reason| cannot_open(name, &reason))?;
    let mut found: Vec<String> = names
        .iter()
        .filter(|file| file.ends_with(".cfg") && !file.starts_with('.'))
        .map(|file| format!("{}/{file}", name.trim_end_matches('/')))
        .collect();
    found.sort();
    Ok(found)
}

fn cannot_open(name: &str, reason: &str) -> String {
    format!("config : Cannot open configuration file/directory {name} : {reason}")
}
