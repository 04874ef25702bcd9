//! `ballast plan`: shows what files would change of a running process, and which connections would
//! drain.
//!
//! It asks the process (`show plan`), which alone knows its configuration, the overrides and the
//! connections. The process resolves the names in the files.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use crate::args::PlanOptions;
use crate::{config_files, console};

/// How long the process may take to answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);

/// Exit codes: nothing would change.
const EXIT_NOTHING: u8 = 0;
/// Something would change, and nothing of what would go has connections.
const EXIT_CHANGES: u8 = 1;
/// Something that has connections would go; they may finish.
const EXIT_DRAINS: u8 = 3;
/// The files are refused, or nobody answered; also a command line that is not understood, which
/// must not look like an answer.
const EXIT_REFUSED: u8 = crate::USAGE;

/// The line that ends the payload; no configuration has it.
const PAYLOAD_END: &str = "%-end-%";

/// Asks the process and prints the answer. Returns the exit code.
pub(crate) fn run(options: &PlanOptions) -> u8 {
    let fail = |text: &str| {
        console::alert(text);
        EXIT_REFUSED
    };
    let files = match config_files::read_with_pipes(&options.files) {
        Ok(files) => files,
        Err(error) => return fail(&error),
    };
    let answer = match ask(&options.socket, &command(&files)) {
        Ok(answer) => answer,
        Err(error) => {
            let socket = &options.socket;
            return fail(&format!("plan : cannot ask {socket}: {error}"));
        }
    };
    let answer = with_file_locations(answer.trim_end(), &files);
    let code = match answer.lines().last() {
        Some("Plan: nothing") => EXIT_NOTHING,
        Some("Plan: changes") => EXIT_CHANGES,
        Some("Plan: changes with drains") => EXIT_DRAINS,
        _ => EXIT_REFUSED,
    };
    if code == EXIT_REFUSED {
        console::print_error_line!("{answer}");
    } else {
        console::print_line!("{answer}");
    }
    code
}

/// The command, with the files as its payload.
fn command(files: &[(String, Vec<u8>)]) -> Vec<u8> {
    if files.is_empty() {
        return b"show plan\n".to_vec();
    }
    let mut text = format!("show plan <<{PAYLOAD_END}\n").into_bytes();
    for (_, bytes) in files {
        text.extend_from_slice(bytes);
        if !bytes.ends_with(b"\n") {
            text.push(b'\n');
        }
    }
    text.extend_from_slice(PAYLOAD_END.as_bytes());
    text.push(b'\n');
    text
}

fn ask(socket: &str, command: &[u8]) -> std::io::Result<String> {
    let path = socket.strip_prefix("unix@").unwrap_or(socket);
    let mut answer = Vec::new();
    if !path.starts_with('/') && !std::path::Path::new(path).exists() && socket.contains(':') {
        let mut stream = TcpStream::connect(socket)?;
        stream.set_read_timeout(Some(ANSWER_TIMEOUT))?;
        stream.write_all(command)?;
        stream.shutdown(Shutdown::Write)?;
        stream.read_to_end(&mut answer)?;
    } else {
        let mut stream = UnixStream::connect(path)?;
        stream.set_read_timeout(Some(ANSWER_TIMEOUT))?;
        stream.write_all(command)?;
        stream.shutdown(Shutdown::Write)?;
        stream.read_to_end(&mut answer)?;
    }
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

/// Replaces the lines of the payload by lines of the files.
fn with_file_locations(answer: &str, files: &[(String, Vec<u8>)]) -> String {
    let mut text = String::with_capacity(answer.len());
    let mut rest = answer;
    while let Some((before, after)) = rest.split_once("<<:") {
        text.push_str(before);
        let digits = after.bytes().take_while(u8::is_ascii_digit).count();
        match after[..digits]
            .parse()
            .ok()
            .and_then(|line| file_and_line(line, files))
        {
            Some(location) => text.push_str(&location),
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

fn file_and_line(line: usize, files: &[(String, Vec<u8>)]) -> Option<String> {
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
        let answer = "parsing [<<:2] : x, declared at <<:3. [<<:9] <<:";
        assert_eq!(
            with_file_locations(answer, &files),
            "parsing [a.cfg:2] : x, declared at b.cfg:1. [<<:9] <<:"
        );
        assert_eq!(
            String::from_utf8(command(&files)).unwrap(),
            format!("show plan <<{PAYLOAD_END}\none\ntwo\nthree\nfour\n{PAYLOAD_END}\n")
        );
        assert_eq!(command(&[]), b"show plan\n");
    }
}
