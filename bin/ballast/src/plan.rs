//! `ballast plan`: what files would change of a process that runs, and what that would drain.
//!
//! The process itself says so (`show plan`): it alone knows what runs, what operators set, and which
//! connections there are. Names in the files are looked up where it runs.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use crate::args::PlanOptions;
use crate::{read, say};

/// How long the process may take to answer.
const ANSWER_MAX: Duration = Duration::from_secs(60);

/// Exit codes: nothing would change.
const NOTHING: u8 = 0;
/// Something would change, and nothing of what would go has connections.
const CHANGES: u8 = 1;
/// Something that has connections would go; they may finish.
const DRAINS: u8 = 3;
/// The files are refused, or nobody answered; also a command line that is not understood, which
/// must not look like an answer.
const REFUSED: u8 = crate::USAGE;

/// What ends the payload: a line that no configuration has.
const END: &str = "%ballast-plan-ends-here%";

/// Asks the process and prints what it says; the exit code says how much that is.
pub(crate) fn run(options: &PlanOptions) -> u8 {
    let fail = |text: &str| {
        say::alert(text);
        REFUSED
    };
    let files = match read::files_and_pipes(&options.files) {
        Ok(files) => files,
        Err(error) => return fail(&error),
    };
    let answer = match ask(&options.socket, &question(&files)) {
        Ok(answer) => answer,
        Err(error) => {
            let socket = &options.socket;
            return fail(&format!("plan : cannot ask {socket}: {error}"));
        }
    };
    let answer = placed(answer.trim_end(), &files);
    let code = match answer.lines().last() {
        Some("Plan: nothing") => NOTHING,
        Some("Plan: changes") => CHANGES,
        Some("Plan: changes with drains") => DRAINS,
        _ => REFUSED,
    };
    if code == REFUSED {
        say::error_line!("{answer}");
    } else {
        say::line!("{answer}");
    }
    code
}

/// The command, with the files as its payload.
fn question(files: &[(String, Vec<u8>)]) -> Vec<u8> {
    if files.is_empty() {
        return b"show plan\n".to_vec();
    }
    let mut text = format!("show plan <<{END}\n").into_bytes();
    for (_, bytes) in files {
        text.extend_from_slice(bytes);
        if !bytes.ends_with(b"\n") {
            text.push(b'\n');
        }
    }
    text.extend_from_slice(END.as_bytes());
    text.push(b'\n');
    text
}

fn ask(socket: &str, question: &[u8]) -> std::io::Result<String> {
    let path = socket.strip_prefix("unix@").unwrap_or(socket);
    let mut answer = Vec::new();
    if !path.starts_with('/') && !std::path::Path::new(path).exists() && socket.contains(':') {
        let mut instance = TcpStream::connect(socket)?;
        instance.set_read_timeout(Some(ANSWER_MAX))?;
        instance.write_all(question)?;
        instance.shutdown(Shutdown::Write)?;
        instance.read_to_end(&mut answer)?;
    } else {
        let mut instance = UnixStream::connect(path)?;
        instance.set_read_timeout(Some(ANSWER_MAX))?;
        instance.write_all(question)?;
        instance.shutdown(Shutdown::Write)?;
        instance.read_to_end(&mut answer)?;
    }
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

/// The answer, with places in the payload replaced by places in its files.
fn placed(answer: &str, files: &[(String, Vec<u8>)]) -> String {
    let mut text = String::with_capacity(answer.len());
    let mut rest = answer;
    while let Some((before, after)) = rest.split_once("<<:") {
        text.push_str(before);
        let digits = after.bytes().take_while(u8::is_ascii_digit).count();
        match after[..digits]
            .parse()
            .ok()
            .and_then(|line| place(line, files))
        {
            Some(place) => text.push_str(&place),
            None => {
                text.push_str("<<:");
                text.push_str(&after[..digits]);
            }
        }
        rest = &after[digits..];
    }
    text.push_str(rest);
    text
}

fn place(line: usize, files: &[(String, Vec<u8>)]) -> Option<String> {
    let mut left = line;
    for (name, bytes) in files {
        let ends = bytes.iter().filter(|byte| **byte == b'\n').count();
        let count = ends + usize::from(!bytes.is_empty() && !bytes.ends_with(b"\n"));
        if left <= count {
            return Some(format!("{name}:{left}"));
        }
        left -= count;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_in_the_payload_are_places_in_the_files() {
        let files = [
            ("a.cfg".to_owned(), b"one\ntwo".to_vec()),
            ("b.cfg".to_owned(), b"three\nfour\n".to_vec()),
        ];
        let said = "parsing [<<:2] : x, declared at <<:3. [<<:9] <<:";
        assert_eq!(
            placed(said, &files),
            "parsing [a.cfg:2] : x, declared at b.cfg:1. [<<:9] <<:"
        );
        assert_eq!(
            String::from_utf8(question(&files)).unwrap(),
            format!("show plan <<{END}\none\ntwo\nthree\nfour\n{END}\n")
        );
        assert_eq!(question(&[]), b"show plan\n");
    }
}
