//! Where callers come in, and whom they ask.

use std::cell::Cell;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::sync::{Arc, Weak};

use ballast_model::{CliLevel, SeverityOutput};
use ballast_net::PassedSocket;

use crate::catalogue::{Command, commands_of_master, commands_of_worker};
use crate::control::Control;
use crate::limits::Limits;

/// One `stats socket`, bound and listening.
#[derive(Clone, Debug)]
pub struct Door {
    /// The socket.
    pub socket: Arc<OwnedFd>,
    /// Its address, as `show cli sockets` tells it: `unix@/run/x.sock`, `ipv4@127.0.0.1:9999`.
    pub label: String,
    /// What callers may do.
    pub level: CliLevel,
    /// How messages show their severity.
    pub severity: SeverityOutput,
    /// `expose-fd listeners`.
    pub expose_listeners: bool,
}

/// The process that a desk belongs to.
#[derive(Clone)]
pub(crate) enum House {
    /// The one that serves.
    Worker(Arc<dyn Control>),
    /// The one that watches it (`-W`).
    Master(Arc<dyn Master>),
}

/// What all sessions of a process share.
pub(crate) struct Desk {
    pub(crate) house: House,
    pub(crate) doors: Vec<(String, CliLevel)>,
    /// The sockets of the doors, while they are open.
    pub(crate) sockets: Vec<Weak<OwnedFd>>,
    pub(crate) limits: Limits,
    /// The key for sessions that name none (`set anon global-key`).
    pub(crate) anonymous_key: Cell<Option<u32>>,
}

impl Desk {
    /// What may be asked here.
    pub(crate) fn commands(&self) -> impl Iterator<Item = &'static Command> + use<> {
        match self.house {
            House::Worker(_) => commands_of_worker(),
            House::Master(_) => commands_of_master(),
        }
        .iter()
        .flat_map(|family| family.iter())
    }

    /// The command sockets themselves, for who takes over.
    pub(crate) fn sockets(&self) -> impl Iterator<Item = PassedSocket> {
        let open = self.sockets.iter().filter_map(Weak::upgrade);
        open.map(|fd| PassedSocket {
            fd,
            interface: String::new(),
            namespace: String::new(),
        })
    }

    pub(crate) fn is_master(&self) -> bool {
        matches!(self.house, House::Master(_))
    }

    pub(crate) fn version(&self) -> String {
        match &self.house {
            House::Worker(surroundings) => surroundings.facts().version.clone(),
            House::Master(master) => master.version(),
        }
    }

    pub(crate) fn startup_log(&self) -> String {
        match &self.house {
            House::Worker(surroundings) => surroundings.startup_log(),
            House::Master(master) => master.startup_log(),
        }
    }
}

/// The master process, as its desk needs it. The program implements it once.
pub trait Master: Send + Sync {
    /// The version of the program.
    fn version(&self) -> String;

    /// Itself first, then its workers.
    fn processes(&self) -> Vec<ProcessRow>;

    /// A connection to a worker's own desk, for `@1 show info`.
    ///
    /// # Errors
    /// What the caller is told.
    fn connect(&self, target: Target) -> Result<OwnedFd, String> {
        let _ = target;
        Err("Can't connect to the target CLI!".into())
    }

    /// The process id of a target, when there is one.
    fn process_id(&self, target: Target) -> Option<u32> {
        let rows = self.processes();
        let workers = || rows.iter().filter(|row| row.kind == ProcessKind::Worker);
        match target {
            Target::Relative(number) => workers().nth(usize::from(number).checked_sub(1)?),
            Target::Process(id) => rows.iter().find(|row| row.process_id == id),
        }
        .map(|row| row.process_id)
    }

    /// `reload`: reads the configuration again; what was said of it, once it is in force or
    /// refused.
    fn reload(&self) -> Reloading {
        let refused = Err("Reloading is not available here.".into());
        Box::pin(std::future::ready(refused))
    }

    /// What was said when the process started.
    fn startup_log(&self) -> String {
        String::new()
    }
}

/// What comes of a reload: the log of one that is in force, or of one that was refused.
pub type Reloading = Pin<Box<dyn Future<Output = Result<String, String>>>>;

/// Which worker a command is for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Target {
    /// `@1`: the current worker of that number.
    Relative(u16),
    /// `@!1234`: a worker by its process id, also one that is leaving.
    Process(u32),
}

/// One line of `show proc`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ProcessRow {
    /// Process id.
    pub process_id: u32,
    /// What it does.
    pub kind: ProcessKind,
    /// Reloads it has seen.
    pub reload_count: u32,
    /// Reloads that failed since the last good one (of the master).
    pub failed_reload_count: u32,
    /// Its age, in seconds.
    pub uptime_s: u64,
    /// Its version.
    pub version: String,
}

/// What a process of the family does.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ProcessKind {
    /// Watches the others.
    Master,
    /// Was replaced and finishes what it has.
    OldWorker,
    /// Serves.
    Worker,
}
