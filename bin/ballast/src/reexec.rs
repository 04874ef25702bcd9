//! A master that executes a new program and stays the same process.
//!
//! The descriptors it holds and the workers it watches are written to a [`MemoryFile`] that stays open
//! over `exec`. The next program may be of another version: tables and columns have names, and it
//! says which tables it does not know.

use std::collections::BTreeSet;
use std::io;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::Arc;

use ballast_cli::CliBind;
use ballast_handover::{Channel, MemoryFile};
use ballast_model::{CliLevel, SeverityOutput};
use ballast_net::{self as net, PassedSocket, inherit};
use ballast_wire::handoff::{self, Writer};

use crate::console;
use crate::variables;
use crate::worker_set::{ChildProcess, Program, Reloads, Role, WorkerList, command_line};

/// What a master inherits from the program that it executed before.
#[derive(Debug, Default)]
pub(crate) struct Inheritance {
    pub(crate) children: Vec<ChildProcess>,
    pub(crate) sockets: Vec<PassedSocket>,
    pub(crate) cli_binds: Vec<CliBind>,
    pub(crate) snapshot: Option<MemoryFile>,
    pub(crate) secrets: Option<MemoryFile>,
    pub(crate) reloads: Reloads,
    pub(crate) started_us: u64,
    pub(crate) background: bool,
    /// Tables that this version does not know.
    pub(crate) unknown_tables: BTreeSet<String>,
}

/// What a master passes on to the program that it executes.
#[derive(Debug)]
pub(crate) struct MasterState<'e> {
    pub(crate) workers: &'e WorkerList,
    pub(crate) sockets: &'e [PassedSocket],
    pub(crate) cli_binds: &'e [CliBind],
    pub(crate) snapshot: Option<&'e MemoryFile>,
    pub(crate) secrets: Option<&'e MemoryFile>,
    pub(crate) background: bool,
}

impl MasterState<'_> {
    /// Executes the program on the disk. Returns only when that fails.
    pub(crate) fn exec_program(&self, program: &Program) -> io::Error {
        match self.try_exec(program) {
            Ok(never) => never,
            Err(error) => error,
        }
    }

    fn try_exec(&self, program: &Program) -> io::Result<io::Error> {
        let mut fds = InheritableFds::default();
        let file = MemoryFile::write(&self.encode(&mut fds)?)?;
        fds.pass_on(&file)?;
        inherit::pass_on(true)?;
        let number = file.as_fd().as_raw_fd();
        let (name, words) = command_line();
        let error = Command::new(&program.path)
            .arg0(name)
            .args(words)
            .env(
                variables::REEXEC_VARIABLE,
                format!("{number}:{}", std::process::id()),
            )
            .env_remove(variables::WORKER_VARIABLE)
            .exec();
        fds.revoke(self);
        inherit::pass_on(false)?;
        Ok(error)
    }

    fn encode(&self, fds: &mut InheritableFds) -> io::Result<Vec<u8>> {
        let mut writer = Writer::new();
        let workers = self.workers;
        writer.table(
            "master",
            0,
            &[
                "reloads",
                "failed",
                "started_us",
                "background",
                "snapshot",
                "secrets",
            ],
        );
        let mut passed = |file: Option<&MemoryFile>| match file {
            Some(file) => fds.pass_on(file).map(number),
            None => Ok(0),
        };
        let (snapshot, secrets) = (passed(self.snapshot)?, passed(self.secrets)?);
        let row = [
            workers.reloads.all.into(),
            workers.reloads.failed.into(),
            workers.started_us,
            self.background.into(),
            snapshot,
            secrets,
        ];
        writer.row(&[], &row);
        writer.table(
            "workers",
            1,
            &["pid", "leaving", "line", "started_us", "born_at_reload"],
        );
        // Workers that start and privileged helpers end when their channel closes.
        let stays = |one: &&ChildProcess| matches!(one.role, Role::Current | Role::Leaving);
        for child in workers.children.iter().filter(stays) {
            let row = [
                u64::try_from(child.pid).unwrap_or(0),
                u64::from(child.role == Role::Leaving),
                number(fds.pass_on(&child.channel)?),
                child.started_us,
                child.born_at_reload.into(),
            ];
            writer.row(&[&child.version], &row);
        }
        writer.table("sockets", 2, &["fd"]);
        for socket in self.sockets {
            let row = [number(fds.pass_on(&*socket.fd)?)];
            writer.row(&[&socket.namespace, &socket.interface], &row);
        }
        writer.table("command sockets", 1, &["fd", "level"]);
        for cli_bind in self.cli_binds {
            let level = match cli_bind.level {
                CliLevel::User => 0,
                CliLevel::Operator => 1,
                CliLevel::Admin => 2,
            };
            let row = [number(fds.pass_on(&*cli_bind.socket)?), level];
            writer.row(&[&cli_bind.label], &row);
        }
        Ok(writer.finish())
    }
}

/// The descriptors that stay open over `exec`.
#[derive(Debug, Default)]
struct InheritableFds(Vec<RawFd>);

impl InheritableFds {
    fn pass_on(&mut self, fd: impl AsFd) -> io::Result<RawFd> {
        net::set_inheritable(&fd, true)?;
        let number = fd.as_fd().as_raw_fd();
        self.0.push(number);
        Ok(number)
    }

    /// Undoes `pass_on`, because the program was not executed.
    fn revoke(&self, state: &MasterState<'_>) {
        let sockets = state.sockets.iter().map(|socket| socket.fd.as_fd());
        let cli_binds = state
            .cli_binds
            .iter()
            .map(|cli_bind| cli_bind.socket.as_fd());
        let channels = state
            .workers
            .children
            .iter()
            .map(|child| child.channel.as_fd());
        let files = state.snapshot.iter().chain(&state.secrets);
        let files = files.map(|file| file.as_fd());
        for fd in sockets.chain(cli_binds).chain(channels).chain(files) {
            let _ = net::set_inheritable(fd, false);
        }
    }
}

fn number(fd: RawFd) -> u64 {
    u64::try_from(fd).unwrap_or(0)
}

impl Inheritance {
    /// What this process inherits; `None` when it was started anew.
    pub(crate) fn of_this_process() -> Option<Self> {
        let value = std::env::var(variables::REEXEC_VARIABLE).ok()?;
        let (number, own) = value.split_once(':')?;
        // Children of this master inherit the variable.
        if own.parse() != Ok(std::process::id()) {
            return None;
        }
        let file = inherit::take(number.parse().ok()?).ok()?;
        let mut inheritance = Self::default();
        let read = MemoryFile::from_fd(file).read().map_err(|e| e.to_string());
        let outcome = read.and_then(|bytes| {
            handoff::read(&bytes, |row| inheritance.take(row)).map_err(|e| e.to_string())
        });
        if let Err(error) = outcome {
            console::warn(&format!("what the master was is known in part: {error}."));
        }
        for table in &inheritance.unknown_tables {
            console::warn(&format!(
                "the former master handed over '{table}', which this version does not know: start \
                 the master anew to have that back."
            ));
        }
        Some(inheritance)
    }

    fn take(&mut self, row: &handoff::SnapshotRow<'_>) {
        let number = |column| row.number(column).unwrap_or(0);
        let small = |column| u32::try_from(number(column)).unwrap_or(u32::MAX);
        let owned = |column| {
            let fd = i32::try_from(row.number(column)?).ok()?;
            inherit::take(fd).ok()
        };
        match row.table {
            "master" => {
                self.reloads = Reloads {
                    all: small("reloads"),
                    failed: small("failed"),
                };
                self.started_us = number("started_us");
                self.background = number("background") != 0;
                self.snapshot = owned("snapshot").map(MemoryFile::from_fd);
                self.secrets = owned("secrets").map(MemoryFile::from_fd);
            }
            "workers" => {
                let (Ok(pid), Some(line)) = (i32::try_from(number("pid")), owned("line")) else {
                    return;
                };
                let mut child =
                    ChildProcess::new(pid, Channel::from_fd(line), small("born_at_reload"));
                child.role = match number("leaving") {
                    0 => Role::Current,
                    _ => Role::Leaving,
                };
                child.started_us = number("started_us");
                row.key(0).clone_into(&mut child.version);
                self.children.push(child);
            }
            "sockets" => {
                if let Some(fd) = owned("fd") {
                    self.sockets.push(PassedSocket {
                        fd: Arc::new(fd),
                        namespace: row.key(0).to_owned(),
                        interface: row.key(1).to_owned(),
                    });
                }
            }
            "command sockets" => {
                if let Some(fd) = owned("fd") {
                    self.cli_binds.push(CliBind {
                        socket: Arc::new(fd),
                        label: row.key(0).to_owned(),
                        level: match number("level") {
                            0 => CliLevel::User,
                            1 => CliLevel::Operator,
                            _ => CliLevel::Admin,
                        },
                        severity: SeverityOutput::None,
                        expose_listeners: false,
                    });
                }
            }
            unknown => {
                self.unknown_tables.insert(unknown.to_owned());
            }
        }
    }
}
