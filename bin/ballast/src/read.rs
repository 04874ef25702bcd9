//! The files of a configuration, in order.

use std::io::Read;

use crate::machine::{content, files_in, is_directory, plain, regular_content};

/// Reads files, and the `*.cfg` of directories in the order of their names, for a process that
/// runs: whoever stands behind a name must not hold up its changes, nor fill its memory. Only
/// regular files are read, of the size that is understood, and no standard input.
///
/// # Errors
/// What cannot be read, as HAProxy says it.
pub(crate) fn files(names: &[String]) -> Result<Vec<(String, Vec<u8>)>, String> {
    each(names, regular_content, |name| {
        Err(cannot(name, "a process that runs does not read its input"))
    })
}

/// As [`files`], for a process that begins or does nothing else: also pipes (`-f <(...)`) and the
/// standard input (`-`), for which it waits.
///
/// # Errors
/// What cannot be read, as HAProxy says it.
pub(crate) fn files_and_pipes(names: &[String]) -> Result<Vec<(String, Vec<u8>)>, String> {
    each(names, content, |name| {
        let mut bytes = Vec::new();
        let read = std::io::stdin().lock().read_to_end(&mut bytes);
        read.map_err(|error| cannot(name, &plain(&error)))?;
        Ok(("/dev/stdin".to_owned(), bytes))
    })
}

fn each(
    names: &[String],
    content: impl Fn(&str) -> Result<Vec<u8>, String>,
    input: impl Fn(&str) -> Result<(String, Vec<u8>), String>,
) -> Result<Vec<(String, Vec<u8>)>, String> {
    let one = |name: String| match content(&name) {
        Ok(bytes) => Ok((name, bytes)),
        Err(said) => Err(cannot(&name, &said)),
    };
    let mut files = Vec::new();
    for name in names {
        if name == "-" {
            files.push(input(name)?);
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
