//! Accepting callers.

use std::cell::{Cell, RefCell};
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use ballast_model::{CliLevel, SeverityOutput};
use ballast_worker::sync::Semaphore;
use ballast_worker::{AcceptError, Acceptor, Stream, SystemCallError, select, spawn_service};
use ballast_worker::{is_stopping, stopping};

use crate::control::Control;
use crate::conversation;
use crate::limits::CliLimits;
use crate::session::CliSession;
use crate::shared::{CliBind, CliShared, Master, ProcessRole};

/// Serves the `stats socket` lines of a process. Must be called once, on a worker or inside
/// `block_on`: it starts a service for each bind there and returns. The binds close when the
/// worker stops; sessions finish the command in hand.
///
/// # Errors
/// A socket cannot be watched.
pub fn serve(
    host: Arc<dyn Control>,
    binds: Vec<CliBind>,
    limits: CliLimits,
) -> Result<(), SystemCallError> {
    open(ProcessRole::Worker(host), binds, limits)
}

/// Serves the `-S` sockets of a master process; as [`serve`].
///
/// # Errors
/// A socket cannot be watched.
pub fn serve_master(
    master: Arc<dyn Master>,
    binds: Vec<CliBind>,
    limits: CliLimits,
) -> Result<(), SystemCallError> {
    open(ProcessRole::Master(master), binds, limits)
}

/// Serves one caller on a connected socket (the master's, for `@1`), as a task of this worker.
///
/// # Errors
/// The socket cannot be watched.
pub fn serve_stream(
    socket: OwnedFd,
    host: Arc<dyn Control>,
    level: CliLevel,
    limits: CliLimits,
) -> Result<(), SystemCallError> {
    let stream = Stream::from_fd(socket)?;
    let shared = Rc::new(CliShared {
        role: ProcessRole::Worker(host),
        binds: Vec::new(),
        sockets: Vec::new(),
        limits,
        anonymous_key: Cell::new(None),
        caller_count: Cell::default(),
        callers: RefCell::default(),
    });
    let mut session = CliSession::new(&shared, level, SeverityOutput::None);
    session.caller = "the master's socket".to_owned();
    let listed = shared.list(&stream, None, 1);
    spawn_service(conversation::run(stream, shared, session, listed));
    Ok(())
}

fn open(role: ProcessRole, binds: Vec<CliBind>, limits: CliLimits) -> Result<(), SystemCallError> {
    let labels = binds.iter().map(|bind| (bind.label.clone(), bind.level));
    let sockets = binds.iter().map(|bind| Arc::downgrade(&bind.socket));
    let shared = Rc::new(CliShared {
        role,
        binds: labels.collect(),
        sockets: sockets.collect(),
        limits,
        anonymous_key: Cell::new(None),
        caller_count: Cell::default(),
        callers: RefCell::default(),
    });
    let permits = Arc::new(Semaphore::new(limits.connection_count_max));
    for (number, bind) in (1..).zip(binds) {
        let acceptor = Acceptor::new(Arc::clone(&bind.socket))?;
        let (shared, permits) = (Rc::clone(&shared), Arc::clone(&permits));
        spawn_service(async move {
            select! {
                () = accept_within_limit(&acceptor, (&bind, number), &shared, &permits) => {}
                _ = stopping() => {}
            }
        });
    }
    Ok(())
}

/// One caller at a time is accepted and waits here for a permit; the others wait in the kernel.
async fn accept_within_limit(
    acceptor: &Acceptor,
    (bind, number): (&CliBind, u32),
    shared: &Rc<CliShared>,
    permits: &Arc<Semaphore>,
) {
    let mut accepted = Vec::with_capacity(1);
    while !is_stopping() {
        match acceptor.accept_batch(1, &mut accepted).await {
            // Rests by itself, and the callers wait.
            Ok(_) | Err(AcceptError::Exhausted(_)) => {}
            Err(AcceptError::Broken(_)) => return,
        }
        for caller in accepted.drain(..) {
            let Ok(permit) = Arc::clone(permits).acquire_owned().await else {
                return;
            };
            let Ok((stream, peer)) = caller.into_stream() else {
                continue;
            };
            let shared = Rc::clone(shared);
            if let ProcessRole::Worker(host) = &shared.role {
                let callers = &host.registry().process().callers;
                callers.fetch_add(1, Ordering::Relaxed);
            }
            let mut session = CliSession::new(&shared, bind.level, bind.severity);
            session.exposes = bind.expose_listeners;
            session.caller = match ballast_net::unix_peer(&stream) {
                Some((pid, uid)) => format!("{} (pid {pid}, uid {uid})", bind.label),
                None => format!("{} ({peer})", bind.label),
            };
            let listed = shared.list(&stream, Some(&peer), number);
            spawn_service(async move {
                conversation::run(stream, shared, session, listed).await;
                drop(permit);
            });
        }
    }
}
