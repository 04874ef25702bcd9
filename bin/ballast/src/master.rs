//! The master process (`-W`, `-Ws`): it keeps the privileges and the listening sockets, and
//! watches one worker, which serves.
//!
//! It does nothing with connections; connections that come while there is no worker wait in the
//! kernel's queue. A worker that dies takes the master with it, and its exit code becomes the
//! master's, as with HAProxy: whoever supervises the master starts both anew.

use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use ballast_cli::{Control, Door, Limits as DeskLimits, Master, ProcessKind, ProcessRow, Target};
use ballast_listen::open_bind;
use ballast_model::{Address, Bind, CliLevel, SeverityOutput};
use ballast_net::{self as net, ChildEnd, Error, Fork, Signal, notify_supervisor};
use ballast_worker::{Signals, Stream, block_on, spawn_service};

use crate::args::Options;
use crate::process::{Herald, code_of, wait_ready};
use crate::say;
use crate::serve::{self, Premises};
use crate::version::VERSION;

/// The signals a master answers to.
const SIGNALS: [Signal; 9] = [
    Signal::Child,
    Signal::Hup,
    Signal::Int,
    Signal::Quit,
    Signal::Term,
    Signal::Ttin,
    Signal::Ttou,
    Signal::Usr1,
    Signal::Usr2,
];

/// Watches a worker until it ends; answers the exit code. In the worker, serves.
pub(crate) fn run(
    options: &Options,
    premises: Premises,
    mut herald: Herald,
    background: bool,
) -> Result<u8, u8> {
    let mut doors = Vec::new();
    for address in &options.master_sockets {
        doors.push(door(address)?);
    }
    let signals = Signals::open(&SIGNALS).map_err(|error| refuse(&error))?;
    let (own, line) = UnixStream::pair().map_err(|error| refuse(&error))?;
    let (reader, writer) = std::io::pipe().map_err(|error| refuse(&error))?;
    let started = Instant::now();
    let pid = match net::fork().map_err(|error| refuse(&error))? {
        Fork::Child => {
            drop((signals, own, reader, doors));
            herald.forget();
            herald.add(writer);
            return serve::run(premises, herald, background, Some(Line(line)));
        }
        Fork::Parent(pid) => pid,
    };
    drop((line, writer));
    say::notice(&format!("New worker ({pid}) forked"));
    let family = Arc::new(Family {
        master_pid: std::process::id(),
        worker_pid: u32::try_from(pid).unwrap_or(0),
        started,
        line: Mutex::new(own),
        startup_log: say::take_startup_log(),
    });
    let Some(code) = wait_ready(reader).filter(|&code| code == 0) else {
        // It has said why.
        let end = net::child_end(Some(pid), true).ok().flatten();
        return Err(end.map_or(1, |end| code_of(&end)).max(1));
    };
    say::notice("Loading success.");
    tell_supervisor(
        options,
        &format!("READY=1\nSTATUS=Ready.\nMAINPID={}", family.master_pid),
    );
    if background && net::redirect_standard_to_null().is_err() {
        say::warn("[haproxy.main()] the terminal cannot be left.");
    }
    herald.ready();
    let limits = DeskLimits::of(&premises.config.global);
    let watch = Watch {
        options,
        pid,
        signals,
        premises: Some(premises),
        asked: None,
    };
    let ended = block_on(async {
        ballast_cli::serve_master(family, doors, limits)?;
        watch.until_end().await
    });
    match ended {
        Ok(Ok(code_of_worker)) => Ok(code.max(code_of_worker)),
        Ok(Err(error)) | Err(error) => Err(refuse(&error)),
    }
}

/// The master at its watch.
struct Watch<'o> {
    options: &'o Options,
    pid: i32,
    signals: Signals,
    /// Holds the listening sockets open, until nothing more is to be accepted.
    premises: Option<Premises>,
    /// The signal that asked for the end.
    asked: Option<Signal>,
}

impl Watch<'_> {
    /// Hands signals on, until the worker has ended.
    async fn until_end(mut self) -> Result<u8, Error> {
        loop {
            match self.signals.next().await? {
                Signal::Child => {
                    if let Some(end) = net::child_end(Some(self.pid), false)? {
                        return Ok(self.ended(&end));
                    }
                }
                signal @ (Signal::Term | Signal::Int | Signal::Usr1) => self.end(signal),
                Signal::Hup | Signal::Usr2 => {
                    say::warn("reload: not available yet, the configuration stays as it is.");
                }
                signal => {
                    // Gone already: its end is on its way.
                    let _ = net::kill(self.pid, signal);
                }
            }
        }
    }

    fn end(&mut self, signal: Signal) {
        if self.asked.is_none() {
            say::warn("Exiting Master process...");
            tell_supervisor(self.options, "STOPPING=1\nSTATUS=Stopping.");
        }
        self.asked = Some(signal);
        // Ours are copies of the worker's: connections must not come to them for nothing.
        self.premises = None;
        let _ = net::kill(self.pid, signal);
    }

    /// What the worker's end means, in HAProxy's words.
    fn ended(&self, end: &ChildEnd) -> u8 {
        let code = code_of(end);
        let text = format!(
            "Current worker ({}) exited with code {code} ({})",
            self.pid,
            name(end)
        );
        if code == 0 {
            say::warn(&text);
        } else {
            say::alert(&text);
        }
        // Who was asked to end, or ended by a signal to end, ends well.
        let worker_asked = matches!(end.signal.and_then(Signal::from_number), Some(Signal::Term));
        let code = match self.asked {
            Some(Signal::Int) => code,
            Some(_) => 0,
            None if worker_asked || code == 0 => 0,
            None => {
                say::alert("exit-on-failure: killing every processes with SIGTERM");
                code
            }
        };
        say::warn(&format!("All workers exited. Exiting... ({code})"));
        code
    }
}

fn name(end: &ChildEnd) -> &'static str {
    match end.signal {
        None => "Exit",
        Some(1) => "Hangup",
        Some(2) => "Interrupt",
        Some(3) => "Quit",
        Some(6) => "Aborted",
        Some(9) => "Killed",
        Some(11) => "Segmentation fault",
        Some(15) => "Terminated",
        Some(_) => "Signal",
    }
}

/// The master and its worker, as `show proc` tells of them.
struct Family {
    master_pid: u32,
    worker_pid: u32,
    started: Instant,
    /// To the worker: each descriptor sent there becomes a caller of its desk.
    line: Mutex<UnixStream>,
    startup_log: String,
}

impl Master for Family {
    fn version(&self) -> String {
        VERSION.to_owned()
    }

    fn processes(&self) -> Vec<ProcessRow> {
        let uptime_s = self.started.elapsed().as_secs();
        let row = |process_id, kind| ProcessRow {
            process_id,
            kind,
            reload_count: 0,
            failed_reload_count: 0,
            uptime_s,
            version: VERSION.to_owned(),
        };
        vec![
            row(self.master_pid, ProcessKind::Master),
            row(self.worker_pid, ProcessKind::Worker),
        ]
    }

    fn connect(&self, target: Target) -> Result<OwnedFd, String> {
        if self.process_id(target) != Some(self.worker_pid) {
            return Err("Can't connect to the target CLI!".into());
        }
        let cannot = |error: std::io::Error| format!("Can't connect to the target CLI! ({error})");
        let (own, other) = UnixStream::pair().map_err(cannot)?;
        own.set_nonblocking(true).map_err(cannot)?;
        other.set_nonblocking(true).map_err(cannot)?;
        let line = self.line.lock().unwrap_or_else(PoisonError::into_inner);
        net::send_with_fds(&*line, b"c", &[other.as_fd()]).map_err(cannot)?;
        Ok(own.into())
    }

    fn startup_log(&self) -> String {
        self.startup_log.clone()
    }
}

/// The worker's end of the line to its master.
#[derive(Debug)]
pub(crate) struct Line(UnixStream);

impl Line {
    /// Serves each caller that the master sends, on this worker.
    pub(crate) fn answer(self, desk: Arc<dyn Control>, limits: DeskLimits) -> Result<(), Error> {
        let fail = |error| Error::new("ioctl(FIONBIO)", "master", error);
        self.0.set_nonblocking(true).map_err(fail)?;
        let stream = Stream::from_fd(self.0.into())?;
        spawn_service(async move {
            while stream.readable().await.is_ok() {
                let mut word = [0];
                match net::receive_with_fds(&stream, &mut word) {
                    Ok((1.., callers)) => {
                        for caller in callers {
                            let desk = Arc::clone(&desk);
                            // A caller that cannot be watched is closed, and sees it.
                            let _ =
                                ballast_cli::serve_stream(caller, desk, CliLevel::Admin, limits);
                        }
                    }
                    Ok((0, _)) => return,
                    // Nothing more is there: this clears what the executor believes.
                    Err(_) => drop(stream.try_peek(&mut word)),
                }
            }
        });
        Ok(())
    }
}

/// `-S <address>[,<bind words>]`: opened with the rights of the master.
fn door(text: &str) -> Result<Door, u8> {
    let address = text.split(',').next().unwrap_or_default();
    let parsed = self::address(address)
        .ok_or_else(|| refuse(&format!("-S: '{address}' is no address to listen on")))?;
    let bind = Bind::new(parsed);
    let label = bind.address.to_string();
    let level = match text.split(',').skip_while(|&word| word != "level").nth(1) {
        Some("user") => CliLevel::User,
        Some("operator") => CliLevel::Operator,
        _ => CliLevel::Admin,
    };
    match open_bind(&bind) {
        Ok(socket) => Ok(Door {
            socket,
            label,
            level,
            severity: SeverityOutput::None,
            expose_listeners: false,
        }),
        Err(error) => {
            say::alert(&error.to_string());
            Err(1)
        }
    }
}

fn tell_supervisor(options: &Options, state: &str) {
    if options.notify
        && let Err(error) = notify_supervisor(state)
    {
        say::warn(&format!("the supervisor cannot be told: {error}."));
    }
}

fn refuse(error: &dyn std::fmt::Display) -> u8 {
    say::alert(&format!("[haproxy.main()] {error}."));
    1
}

/// Where a master's socket may be: `fd@N`, a path, an abstract name, an IP address and port.
pub(crate) fn address(text: &str) -> Option<Address> {
    if let Some(number) = text.strip_prefix("fd@") {
        return number.parse().ok().map(Address::Fd);
    }
    if let Some(name) = text.strip_prefix("abns@") {
        return Some(Address::Abstract(name.to_owned()));
    }
    if let Some(path) = text
        .strip_prefix("unix@")
        .or(text.starts_with('/').then_some(text))
    {
        return Some(Address::Unix(path.to_owned()));
    }
    let inet = ["ipv4@", "ipv6@"]
        .iter()
        .find_map(|prefix| text.strip_prefix(prefix));
    inet.unwrap_or(text).parse().ok().map(Address::Inet)
}
