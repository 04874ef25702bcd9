//! Opening the listening sockets of a configuration, all of them or none.

use std::fmt;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use ballast_model as model;
use ballast_net::{
    self as net, Address, KeepAlive, ListenOptions, Namespace, SystemCallError, Tuning,
    UnixPermissions, UnpublishedSocket,
};

use crate::socket_defaults::SocketDefaults;

/// Settings of the whole configuration for opening sockets.
#[derive(Clone, Copy, Debug)]
pub struct OpenSettings {
    /// `maxconn` of the process: the queue length when nothing else sets one.
    pub connection_count_max: u32,
    /// `noreuseport` or `-dR`.
    pub no_reuseport: bool,
    /// The number of workers: a bind has at most so many `shards`.
    pub worker_count: usize,
}

/// A listening socket.
#[derive(Debug)]
pub struct ListenSocket {
    /// The index of its frontend in the configuration.
    pub frontend: usize,
    /// The bind it was opened for.
    pub bind: model::Bind,
    /// The address it is really bound to.
    pub address: Address,
    /// The socket.
    pub fd: Arc<OwnedFd>,
    /// Its tuning.
    pub(crate) tuning: Tuning,
}

/// The listening sockets of a configuration.
#[derive(Debug, Default)]
pub struct OpenSockets {
    /// In the order of the file.
    pub sockets: Vec<ListenSocket>,
    /// Options that the system refused; the sockets work without them.
    pub refused: Vec<RefusedOption>,
    pub(crate) defaults: SocketDefaults,
}

/// A bind that cannot be listened on. Its `Display` is HAProxy's alert, without the level.
#[derive(Debug)]
pub struct ListenError {
    /// The frontend (or `GLOBAL`) it belongs to.
    pub frontend: String,
    /// The bind.
    pub bind: Box<model::Bind>,
    /// The system's error.
    pub error: SystemCallError,
}

/// An option of a bind that the system refused. Its `Display` is HAProxy's warning, without the
/// level.
#[derive(Debug)]
pub struct RefusedOption {
    /// The frontend it belongs to.
    pub frontend: String,
    /// The bind.
    pub bind: Box<model::Bind>,
    /// The system's error.
    pub error: SystemCallError,
}

/// Opens the sockets of all binds of all enabled frontends.
///
/// # Errors
/// Every bind that cannot be listened on; all other sockets are closed again.
pub fn open(
    config: &model::Config,
    settings: OpenSettings,
) -> Result<OpenSockets, Vec<ListenError>> {
    let mut opened = OpenSockets {
        defaults: SocketDefaults::of(config, settings.connection_count_max),
        ..OpenSockets::default()
    };
    let mut errors = Vec::new();
    for (frontend_index, frontend) in config.frontends.iter().enumerate() {
        if frontend.common.disabled {
            continue;
        }
        for bind in &frontend.binds {
            for _ in 0..shards(bind, settings.worker_count) {
                let tuning = tuning(config, frontend, bind, settings);
                let bound = options(config, bind, settings, &tuning)
                    .and_then(|options| net::listen(&address(&bind.address), &options));
                match bound {
                    Ok(bound) => opened.add(frontend_index, frontend, bind, bound, tuning),
                    Err(error) => {
                        let frontend = frontend.common.name.clone();
                        errors.push(ListenError {
                            frontend,
                            bind: Box::new(bind.clone()),
                            error,
                        });
                        break;
                    }
                }
            }
        }
    }
    if errors.is_empty() {
        Ok(opened)
    } else {
        Err(errors)
    }
}

/// Opens the socket of a bind that belongs to no frontend (`stats socket`, `-S`).
///
/// # Errors
/// The system's error.
pub fn open_bind(bind: &model::Bind) -> Result<Arc<OwnedFd>, ListenError> {
    let open = || {
        let mut options = ListenOptions {
            unix: permissions(&bind.unix_owner)?,
            interface: bind.interface.as_deref().map(Box::from),
            v6_only: bind.v6_only,
            ..ListenOptions::default()
        };
        if let Some(backlog) = bind.backlog {
            options.backlog = backlog;
        }
        net::listen(&address(&bind.address), &options)
    };
    match open() {
        Ok(bound) => Ok(Arc::new(bound.fd)),
        Err(error) => Err(ListenError {
            frontend: "GLOBAL".into(),
            bind: Box::new(bind.clone()),
            error,
        }),
    }
}

impl OpenSockets {
    fn add(
        &mut self,
        frontend_index: usize,
        frontend: &model::Frontend,
        bind: &model::Bind,
        bound: net::ListeningSocket,
        tuning: Tuning,
    ) {
        for error in bound.refused {
            // TCP options are ignored for other sockets.
            if matches!(bound.address, Address::Ip(_)) {
                let name = &frontend.common.name;
                self.refused.push(RefusedOption::new(name, bind, error));
            }
        }
        self.sockets.push(ListenSocket {
            frontend: frontend_index,
            bind: bind.clone(),
            address: bound.address,
            fd: Arc::new(bound.fd),
            tuning,
        });
    }
}

/// Several sockets on the same address: only IP addresses can be bound several times.
pub(crate) fn shards(bind: &model::Bind, worker_count: usize) -> usize {
    match bind.address {
        model::Address::Inet(_) => usize::from(bind.shard_count).clamp(1, worker_count.max(1)),
        _ => 1,
    }
}

/// Opens one socket of a bind. An existing file under a unix socket's path is replaced only later,
/// when the caller says so.
pub(crate) fn open_beside(
    config: &model::Config,
    frontend: &model::Frontend,
    bind: &model::Bind,
    settings: OpenSettings,
) -> Result<(net::ListeningSocket, Option<UnpublishedSocket>), SystemCallError> {
    let tuning = tuning(config, frontend, bind, settings);
    let options = options(config, bind, settings, &tuning)?;
    net::listen_unpublished(&address(&bind.address), &options)
}

/// The options of a bind's sockets that can be changed while they listen.
pub(crate) fn tuning(
    config: &model::Config,
    frontend: &model::Frontend,
    bind: &model::Bind,
    settings: OpenSettings,
) -> Tuning {
    let tune = &config.global.tune;
    let backlog = backlog(frontend, bind, settings.connection_count_max);
    let keepalive = &frontend.keepalive;
    Tuning {
        backlog,
        congestion: bind.congestion_algorithm.as_deref().map(Box::from),
        defer_accept: bind.defer_accept,
        fast_open_pending_max: bind.tcp_fast_open.then_some(backlog),
        keepalive: keepalive.enabled.then_some(KeepAlive {
            count: keepalive.probe_count,
            idle: keepalive.idle,
            interval: keepalive.interval,
        }),
        mss: bind.mss.map(u32::from),
        receive_buffer: tune.receive_buffer_client.map(|bytes| bytes as usize),
        send_buffer: tune.send_buffer_client.map(|bytes| bytes as usize),
        smart_accept: frontend
            .options
            .smart_accept
            .unwrap_or(frontend.common.mode == model::Mode::Http),
        user_timeout: bind.tcp_user_timeout,
    }
}

/// All options of a bind's sockets.
fn options(
    config: &model::Config,
    bind: &model::Bind,
    settings: OpenSettings,
    tuning: &Tuning,
) -> Result<ListenOptions, SystemCallError> {
    let namespace = match &bind.namespace {
        Some(name) => Some(Arc::new(Namespace::open(name)?)),
        None => None,
    };
    Ok(ListenOptions {
        backlog: tuning.backlog,
        congestion: tuning.congestion.clone(),
        defer_accept: tuning.defer_accept,
        fast_open_pending_max: tuning.fast_open_pending_max,
        interface: bind.interface.as_deref().map(Box::from),
        keepalive: tuning.keepalive,
        mss: tuning.mss,
        namespace,
        receive_buffer: tuning.receive_buffer,
        reuse_port: !(settings.no_reuseport || config.global.no_reuseport),
        send_buffer: tuning.send_buffer,
        smart_accept: tuning.smart_accept,
        transparent: bind.transparent,
        unix: permissions(&bind.unix_owner)?,
        user_timeout: tuning.user_timeout,
        v6_only: bind.v6_only,
    })
}

/// The length of the kernel's queue of a bind: `backlog` of the bind, of the frontend, else as many
/// connections as may be admitted (configuration manual, "backlog").
pub(crate) fn backlog(frontend: &model::Frontend, bind: &model::Bind, process_max: u32) -> u32 {
    bind.backlog
        .or(frontend.backlog)
        .or(bind.connection_count_max)
        .or(frontend.connection_count_max)
        .unwrap_or(process_max)
        .max(1)
}

fn permissions(owner: &model::UnixOwner) -> Result<UnixPermissions, SystemCallError> {
    let uid = |name: &String| -> Result<u32, SystemCallError> {
        let found = net::user_by_name(name)?.map(|user| user.uid);
        found
            .or_else(|| name.parse().ok())
            .ok_or_else(|| unknown("user", name))
    };
    let gid = |name: &String| -> Result<u32, SystemCallError> {
        let found = net::group_by_name(name)?.map(|group| group.gid);
        found
            .or_else(|| name.parse().ok())
            .ok_or_else(|| unknown("group", name))
    };
    Ok(UnixPermissions {
        uid: owner.user.as_ref().map(uid).transpose()?,
        gid: owner.group.as_ref().map(gid).transpose()?,
        mode: owner.mode,
    })
}

fn unknown(call: &'static str, name: &str) -> SystemCallError {
    SystemCallError::new(
        call,
        name,
        std::io::Error::other("there is none of that name"),
    )
}

/// The address as the kernel takes it. Names are resolved when the configuration is read, so none
/// is left here; if there is one, or a socket pair, listening is refused.
fn address(address: &model::Address) -> Address {
    match address {
        model::Address::Inet(inet) => Address::Ip(*inet),
        model::Address::Unix(path) => Address::Unix(model::path_of_text(path)),
        model::Address::Abstract(name) => Address::Abstract {
            name: name.as_bytes().into(),
            padded: true,
        },
        model::Address::AbstractUnpadded(name) => Address::Abstract {
            name: name.as_bytes().into(),
            padded: false,
        },
        model::Address::Fd(number) => Address::Inherited(*number),
        model::Address::Name { .. } | model::Address::SocketPair(_) => Address::Unnamed,
    }
}

impl fmt::Display for ListenError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_place(out, &self.bind, &self.frontend)?;
        let said = system_error_text(&self.error);
        let address = &self.bind.address;
        match (address, self.error.call()) {
            (model::Address::Unix(path), "bind" | "rename" | "chown" | "chmod") => {
                write!(out, "cannot bind UNIX socket ({said}) [{path}]")
            }
            (model::Address::Fd(number), _) => {
                write!(out, "cannot use file descriptor '{number}' : {said}.")
            }
            (_, "bind") => write!(out, "cannot bind socket ({said}) for [{address}]"),
            (_, "listen") => write!(out, "cannot listen to socket ({said}) for [{address}]"),
            (_, "socket") => write!(
                out,
                "cannot create receiving socket ({said}) for [{address}]"
            ),
            (_, "setns" | "open") => write!(
                out,
                "cannot enter namespace '{}' ({said}) for [{address}]",
                self.bind.namespace.as_deref().unwrap_or_default()
            ),
            _ => write!(out, "{} for [{address}]", self.error),
        }
    }
}

impl std::error::Error for ListenError {}

impl RefusedOption {
    pub(crate) fn new(frontend: &str, bind: &model::Bind, error: SystemCallError) -> Self {
        Self {
            frontend: frontend.to_owned(),
            bind: Box::new(bind.clone()),
            error,
        }
    }
}

impl fmt::Display for RefusedOption {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_place(out, &self.bind, &self.frontend)?;
        let said = system_error_text(&self.error);
        let address = &self.bind.address;
        match (&self.bind.interface, self.error.call()) {
            (Some(interface), "setsockopt(SO_BINDTODEVICE)") => {
                write!(
                    out,
                    "cannot bind receiver to device '{interface}' ({said}) for [{address}]"
                )
            }
            (_, call) => write!(out, "{call} was refused ({said}) for [{address}]"),
        }
    }
}

/// `Binding [file:line] for frontend fe: `.
fn write_place(out: &mut fmt::Formatter<'_>, bind: &model::Bind, frontend: &str) -> fmt::Result {
    let origin = &bind.origin;
    write!(
        out,
        "Binding [{}:{}] for frontend {frontend}: ",
        origin.file, origin.line
    )
}

/// The system's error text, without the number that Rust adds.
fn system_error_text(error: &SystemCallError) -> String {
    let text = error.io().to_string();
    match text.split_once(" (os error") {
        Some((words, _)) => words.to_owned(),
        None => text,
    }
}
