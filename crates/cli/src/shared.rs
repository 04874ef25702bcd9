//! The command sockets, and the process that their commands are about.

use std::cell::{Cell, RefCell};
use std::os::fd::{AsRawFd, OwnedFd};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::{Arc, Weak};
use std::time::{Instant, SystemTime};

use ballast_engine::descriptors::{
    ConnectionDescriptor, ConnectionKind, ConnectionSide, ListeningDescriptor,
};
use ballast_engine::sessions::{ProxyName, SessionInfo};
use ballast_model::{CliLevel, SeverityOutput};
use ballast_net::{Address, PassedSocket, socket_number};
use ballast_worker::{SocketReference, Stream};

use crate::control::Control;
use crate::limits::CliLimits;

/// One `stats socket`, bound and listening.
#[derive(Clone, Debug)]
pub struct CliBind {
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

/// The process that a Runtime API belongs to.
#[derive(Clone)]
pub(crate) enum ProcessRole {
    /// The one that serves.
    Worker(Arc<dyn Control>),
    /// The one that watches it (`-W`).
    Master(Arc<dyn Master>),
}

/// The state that all sessions of a process share.
pub(crate) struct CliShared {
    pub(crate) role: ProcessRole,
    pub(crate) binds: Vec<(String, CliLevel)>,
    /// The sockets of the binds, while they are open.
    pub(crate) sockets: Vec<Weak<OwnedFd>>,
    pub(crate) limits: CliLimits,
    /// The key for sessions that name none (`set anon global-key`).
    pub(crate) anonymous_key: Cell<Option<u32>>,
    /// How many callers there were: the number of the last one.
    pub(crate) caller_count: Cell<u64>,
    /// The callers that are served.
    pub(crate) callers: RefCell<Vec<Rc<Caller>>>,
}

/// Added to the numbers of callers to get ids: no id of a worker's session has these bits.
const ID_BASE: u64 = 0xff << 32;

/// A caller on a command socket, for `show sess`.
#[derive(Debug)]
pub(crate) struct Caller {
    /// Counts the callers of the process.
    pub(crate) number: u64,
    /// Where they come from; `None` over a unix socket.
    pub(crate) source: Option<std::net::SocketAddr>,
    /// The number of the socket they came through, from 1.
    pub(crate) bind: u32,
    pub(crate) since: Instant,
    pub(crate) since_wall: SystemTime,
    /// Commands so far.
    pub(crate) command_count: Cell<u64>,
    /// Its socket.
    pub(crate) socket: SocketReference,
}

impl Caller {
    fn session(&self) -> SessionInfo {
        let over_unix = format!("unix:{}", self.bind);
        SessionInfo {
            id: ID_BASE | self.number,
            worker: 0,
            protocol: match self.source {
                Some(source) if source.is_ipv6() => "tcpv6",
                Some(_) => "tcpv4",
                None => "unix_stream",
            },
            source: match self.source {
                Some(source) => source.to_string(),
                None => over_unix.clone(),
            },
            destination: over_unix,
            frontend: ProxyName {
                name: "GLOBAL".into(),
                id: 0,
                mode: "tcp",
            },
            listener: (None, self.bind),
            backend: None,
            server: None,
            accepted_at: self.since_wall,
            age: self.since.elapsed(),
            exchange_count: self.command_count.get(),
            uri: String::new(),
            is_busy: true,
        }
    }
}

/// The entry of a caller in the list. Its drop removes the caller.
pub(crate) struct CallerEntry {
    shared: Rc<CliShared>,
    pub(crate) caller: Rc<Caller>,
}

impl Drop for CallerEntry {
    fn drop(&mut self) {
        let mut callers = self.shared.callers.borrow_mut();
        callers.retain(|known| !Rc::ptr_eq(known, &self.caller));
    }
}

impl CliShared {
    /// The command sockets themselves, for a process that takes over.
    pub(crate) fn sockets(&self) -> impl Iterator<Item = PassedSocket> {
        let open = self.sockets.iter().filter_map(Weak::upgrade);
        open.map(|fd| PassedSocket {
            fd,
            interface: String::new(),
            namespace: String::new(),
        })
    }

    /// Adds a caller from `peer` on a bind to the list.
    pub(crate) fn list(
        self: &Rc<Self>,
        stream: &Stream,
        peer: Option<&Address>,
        bind: u32,
    ) -> CallerEntry {
        let number = self.caller_count.get() + 1;
        self.caller_count.set(number);
        let caller = Rc::new(Caller {
            number,
            source: peer.and_then(Address::ip),
            bind,
            since: Instant::now(),
            since_wall: SystemTime::now(),
            command_count: Cell::new(0),
            socket: stream.socket_reference(),
        });
        self.callers.borrow_mut().push(Rc::clone(&caller));
        CallerEntry {
            shared: Rc::clone(self),
            caller,
        }
    }

    /// The connections of the callers that are served; `worker` serves them.
    pub(crate) fn connections(&self, worker: usize) -> Vec<ConnectionDescriptor> {
        let callers = self.callers.borrow();
        let open = callers.iter().filter_map(|caller| {
            let socket = caller.socket.open_socket()?;
            Some(ConnectionDescriptor {
                descriptor: socket.descriptor,
                socket: socket.number,
                worker,
                local: socket.local,
                peer: socket.peer,
                side: ConnectionSide::Caller,
                carries: Some(ConnectionKind::Tcp),
                is_tls: false,
                session: None,
            })
        });
        open.collect()
    }

    /// The command sockets, as `show fd` shows them; `worker` accepts from them.
    pub(crate) fn listeners(&self, worker: usize) -> Vec<ListeningDescriptor> {
        let open = self.sockets.iter().filter_map(Weak::upgrade);
        let listeners = open.map(|socket| ListeningDescriptor {
            descriptor: socket.as_raw_fd(),
            socket: socket_number(&socket).ok(),
            worker,
            state: "RDY",
            frontend: "GLOBAL".into(),
            address: Address::local_of(&socket).ok().and_then(|own| own.ip()),
        });
        listeners.collect()
    }

    /// The callers that are served, as sessions.
    pub(crate) fn sessions(&self) -> Vec<SessionInfo> {
        let callers = self.callers.borrow();
        callers.iter().map(|caller| caller.session()).collect()
    }

    pub(crate) fn is_master(&self) -> bool {
        matches!(self.role, ProcessRole::Master(_))
    }

    pub(crate) fn version(&self) -> String {
        match &self.role {
            ProcessRole::Worker(host) => host.process_info().version.clone(),
            ProcessRole::Master(master) => master.version(),
        }
    }

    pub(crate) fn startup_log(&self) -> String {
        match &self.role {
            ProcessRole::Worker(host) => host.startup_log(),
            ProcessRole::Master(master) => master.startup_log(),
        }
    }
}

/// The master process, as its Runtime API needs it. The program implements it once.
pub trait Master: Send + Sync {
    /// The version of the program.
    fn version(&self) -> String;

    /// Itself first, then its workers.
    fn processes(&self) -> Vec<ProcessRow>;

    /// A connection to a worker's own Runtime API, for `@1 show info`.
    ///
    /// # Errors
    /// The text for the caller.
    fn connect(&self, target: TargetWorker) -> Result<OwnedFd, String> {
        let _ = target;
        Err("Can't connect to the target CLI!".into())
    }

    /// The process id of a target, when there is one.
    fn process_id(&self, target: TargetWorker) -> Option<u32> {
        let rows = self.processes();
        let workers = || rows.iter().filter(|row| row.kind == ProcessKind::Worker);
        match target {
            TargetWorker::Relative(number) => workers().nth(usize::from(number).checked_sub(1)?),
            TargetWorker::Process(id) => rows.iter().find(|row| row.process_id == id),
        }
        .map(|row| row.process_id)
    }

    /// `reload`: reads the configuration again; what was said of it, once it is in force or
    /// refused. `hard` has another worker serve then, and the connections of this one end.
    fn reload(&self, hard: bool) -> ReloadOutcome {
        let _ = hard;
        let refused = Err("Reloading is not available here.".into());
        Box::pin(std::future::ready(refused))
    }

    /// The messages of the start.
    fn startup_log(&self) -> String {
        String::new()
    }
}

/// The result of a reload, once it is known: its messages, as an error when it was refused.
pub type ReloadOutcome = Pin<Box<dyn Future<Output = Result<String, String>>>>;

/// Which worker a command is for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum TargetWorker {
    /// `@1`: the current worker of that number.
    Relative(u16),
    /// `@!1234`: a worker by its process id, also one that was replaced.
    Process(u32),
}

/// One line of `show proc`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ProcessRow {
    /// Process id.
    pub process_id: u32,
    /// What it does.
    pub kind: ProcessKind,
    /// Reloads since what it serves was read.
    pub reload_count: u32,
    /// 1 when the last reload failed (of the master).
    pub failed_reload_count: u32,
    /// Its age, in seconds.
    pub uptime_s: u64,
    /// Its version.
    pub version: String,
}

/// The role of a process.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ProcessKind {
    /// The master: it watches the workers.
    Master,
    /// A worker that was replaced and finishes its connections.
    OldWorker,
    /// A worker that accepts connections.
    Worker,
}
