//! A dummy origin whose responses are shaped by the request.
//!
//! Demonstrations, tests and benchmarks need a server that responds with a certain size, delay and
//! status, and that names itself. One process plays several: `ballast-origin --name blue --listen
//! 127.0.0.1:9001 --name green --listen ...`. It has one thread and answers pipelined requests with
//! one write.

mod answer;
mod at_once;
mod common_name;
mod filler;
mod h2;
mod head;
mod page;
mod serve;
mod tls;
mod websocket;

use std::cell::{Cell, RefCell};
use std::io::Write as _;
use std::process::ExitCode;
use std::rc::Rc;
use std::sync::Arc;

use rustls::ServerConfig;
use tokio::net::TcpListener;
use tokio::task::LocalSet;

use crate::filler::Filler;
use crate::h2::{FaultCounts, H2Options};
use crate::tls::TlsOptions;

const HELP: &str = "\
usage: ballast-origin [--name NAME] [TLS] [H2] --listen ADDRESS:PORT [[--name NAME] ... --listen ...]

Each --listen is a server; it bears the last --name before it, and is over TLS when a --tls-cert
stands before it:

  --tls-cert FILE        a certificate, its chain and perhaps its key (PEM). Several are chosen from
                         by the name asked for (SNI); the first is the default
  --tls-key FILE         the key of the --tls-cert before it, when it is in another file
  --tls-client-ca FILE   clients must have a certificate that one of these signed
  --tls-version V        1.2 or 1.3 (both)
  --tls-resume HOW       sessions: tickets, ids (the server keeps them), never (tickets)
  --tls-alpn LIST        protocols, the preferred first (h2,http/1.1)

A connection that begins with the preface of HTTP/2 is of that version. How a server speaks it:

  --h2 off               not at all (on)
  --h2-streams N         streams at the same time on a connection (1000)
  --h2-window N          the window of a stream, which may be 0 (1 MiB)
  --h2-mute LIST         frames that it never sends: settings, settings-ack, ping-ack, window-update,
                         headers, data, reset, goaway (none)

Paths and what they answer:

  /                 a page that says which server answered
  /echo             the request, as it was received (body included)
  /health           200 while the server is up; /down and /up change that
  /ws               a WebSocket that sends every message back;
                    with another Upgrade: 101, then every byte is sent back
  /tls              what TLS negotiated: lines of sni, version, cipher, group, resumed, alpn and
                    client (the common name of its certificate); `clear` without TLS
  any other path    a short text, shaped by the query:
    size=N          a body of N bytes (at most 1 GiB)
    delay=MS        wait before answering (at most 10 minutes)
    status=N        this status (200 to 599)
    chunked=1       chunks instead of Content-Length; over HTTP/2 no Content-Length
    piece=N         the body comes in parts of N bytes (16384)
    pause=MS        wait between two parts of the body
    trailers=1      the field x-trailer after the body; over HTTP/1 with chunked=1
    interim=N       N times 103 before the answer
    close=1         close the connection after the answer; over HTTP/2 by GOAWAY
    fault=WORD      over HTTP/2: one of the faults below
    code=N          the code of a reset or of a GOAWAY (2)
    times=N         only the first N requests for this target get the fault

Faults:
";

/// One of the servers in the process.
#[derive(Debug)]
struct Server {
    /// Its name in responses.
    name: String,
    /// The state that `/health` reports.
    is_up: Cell<bool>,
    /// Requests so far, shown on the page.
    requests: Cell<u64>,
    /// Connections so far, shown on the page.
    connections: Cell<u64>,
    /// For TLS.
    tls: Option<Arc<ServerConfig>>,
    /// How it speaks HTTP/2.
    h2: H2Options,
    /// How often each fault was shown that is asked for so many times.
    faults: FaultCounts,
    /// Long bodies; none where the kernel has no files in memory.
    filler: Option<Rc<Filler>>,
    /// Memory for the response, reused so that a request costs no allocation.
    scratch: RefCell<String>,
}

/// Servers, each with the address that it listens on.
type AddressedServers = Vec<(String, Rc<Server>)>;

fn main() -> ExitCode {
    let servers = match servers(std::env::args().skip(1)) {
        Ok(Some(servers)) if !servers.is_empty() => servers,
        Ok(Some(_)) => return usage("no --listen"),
        Ok(None) => {
            // Who asked for it may have closed the pipe that it goes to.
            let _ = write!(std::io::stdout(), "{HELP}{}", h2::faults_help());
            return ExitCode::SUCCESS;
        }
        Err(fault) => return usage(&fault),
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let outcome =
        runtime.and_then(|runtime| LocalSet::new().block_on(&runtime, listen_on_all(servers)));
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("ballast-origin: {error}");
            ExitCode::FAILURE
        }
    }
}

fn usage(fault: &str) -> ExitCode {
    eprintln!("ballast-origin: {fault}\n{HELP}{}", h2::faults_help());
    ExitCode::FAILURE
}

/// Pairs each address with what stands before it; `None` when help is requested.
fn servers(arguments: impl Iterator<Item = String>) -> Result<Option<AddressedServers>, String> {
    let (mut servers, mut name) = (Vec::new(), "origin".to_owned());
    let (mut tls, mut h2) = (TlsOptions::default(), H2Options::default());
    let mut arguments = arguments;
    let filler = Filler::new(answer::LETTER).ok().map(Rc::new);
    while let Some(word) = arguments.next() {
        let mut value = || {
            arguments
                .next()
                .ok_or_else(|| format!("{word} wants a value"))
        };
        match word.as_str() {
            "-h" | "--help" => return Ok(None),
            "--name" => name = value()?,
            "--listen" => {
                let server = Server {
                    name: name.clone(),
                    is_up: Cell::new(true),
                    requests: Cell::new(0),
                    connections: Cell::new(0),
                    tls: tls.configuration()?,
                    h2: h2.clone(),
                    faults: FaultCounts::default(),
                    filler: filler.clone(),
                    scratch: RefCell::new(String::new()),
                };
                servers.push((value()?, Rc::new(server)));
            }
            _ if tls.take(&word, &mut value)? || h2.take(&word, &mut value)? => {}
            _ => return Err(format!("unknown argument {word:?}")),
        }
    }
    Ok(Some(servers))
}

/// Binds every address first, so that a wrong one ends the program at once.
async fn listen_on_all(servers: AddressedServers) -> std::io::Result<()> {
    let mut tasks = Vec::new();
    for (address, server) in servers {
        let listener = TcpListener::bind(&address)
            .await
            .map_err(|error| std::io::Error::other(format!("{address}: {error}")))?;
        let listener = at_once::watch(listener.into_std()?)?;
        tasks.push(tokio::task::spawn_local(serve::accept(listener, server)));
    }
    for task in tasks {
        task.await.map_err(std::io::Error::other)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<Option<AddressedServers>, String> {
        servers(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn help_is_asked_for_by_its_word_and_no_mistake() {
        for line in ["--help", "-h", "--name a --listen 127.0.0.1:1 --help"] {
            assert!(matches!(read(line), Ok(None)), "{line}");
        }
        // A name may be anything.
        let named = read("--name --help --listen 127.0.0.1:1").unwrap().unwrap();
        assert_eq!(named[0].1.name, "--help");
        assert!(read("--helpme").unwrap_err().contains("unknown argument"));
    }
}
