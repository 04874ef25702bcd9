//! Letting callers in.

use std::cell::{Cell, RefCell};
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::sync::Arc;

use ballast_model::{CliLevel, SeverityOutput};
use ballast_worker::sync::Semaphore;
use ballast_worker::{AcceptError, Acceptor, Error, Stream, select, spawn_local, spawn_service};
use ballast_worker::{is_stopping, stopping};

use crate::control::Control;
use crate::desk::{Desk, Door, House, Master};
use crate::limits::Limits;
use crate::session::{self, Session};

/// Serves the `stats socket` lines of a process. Must be called once, on a worker or inside
/// `block_on`: it starts a service for each door there and returns. The doors close when the
/// worker is told to stop; sessions finish the command in hand.
///
/// # Errors
/// A socket cannot be watched.
pub fn serve(
    surroundings: Arc<dyn Control>,
    doors: Vec<Door>,
    limits: Limits,
) -> Result<(), Error> {
    open(House::Worker(surroundings), doors, limits)
}

/// Serves the `-S` sockets of a master process; as [`serve`].
///
/// # Errors
/// A socket cannot be watched.
pub fn serve_master(
    master: Arc<dyn Master>,
    doors: Vec<Door>,
    limits: Limits,
) -> Result<(), Error> {
    open(House::Master(master), doors, limits)
}

/// Serves one caller on a connected socket (the master's, for `@1`), as a task of this worker.
///
/// # Errors
/// The socket cannot be watched.
pub fn serve_stream(
    socket: OwnedFd,
    surroundings: Arc<dyn Control>,
    level: CliLevel,
    limits: Limits,
) -> Result<(), Error> {
    let stream = Stream::from_fd(socket)?;
    let desk = Rc::new(Desk {
        house: House::Worker(surroundings),
        doors: Vec::new(),
        sockets: Vec::new(),
        limits,
        anonymous_key: Cell::new(None),
        caller_count: Cell::default(),
        callers: RefCell::default(),
    });
    let mut session = Session::new(&desk, level, SeverityOutput::None);
    session.caller = "the master's socket".to_owned();
    let listed = desk.list(None, 1);
    spawn_local(session::run(stream, desk, session, listed));
    Ok(())
}

fn open(house: House, doors: Vec<Door>, limits: Limits) -> Result<(), Error> {
    let labels = doors.iter().map(|door| (door.label.clone(), door.level));
    let sockets = doors.iter().map(|door| Arc::downgrade(&door.socket));
    let desk = Rc::new(Desk {
        house,
        doors: labels.collect(),
        sockets: sockets.collect(),
        limits,
        anonymous_key: Cell::new(None),
        caller_count: Cell::default(),
        callers: RefCell::default(),
    });
    let places = Arc::new(Semaphore::new(limits.connection_count_max));
    for (number, door) in (1..).zip(doors) {
        let acceptor = Acceptor::new(Arc::clone(&door.socket))?;
        let (desk, places) = (Rc::clone(&desk), Arc::clone(&places));
        spawn_service(async move {
            select! {
                () = let_in(&acceptor, (&door, number), &desk, &places) => {}
                _ = stopping() => {}
            }
        });
    }
    Ok(())
}

/// One caller at a time is accepted and waits here for a place; the others wait in the kernel.
async fn let_in(
    acceptor: &Acceptor,
    (door, number): (&Door, u32),
    desk: &Rc<Desk>,
    places: &Arc<Semaphore>,
) {
    let mut accepted = Vec::with_capacity(1);
    while !is_stopping() {
        match acceptor.accept_batch(1, &mut accepted).await {
            // Rests by itself, and the callers wait.
            Ok(_) | Err(AcceptError::Exhausted(_)) => {}
            Err(AcceptError::Broken(_)) => return,
        }
        for caller in accepted.drain(..) {
            let Ok(place) = Arc::clone(places).acquire_owned().await else {
                return;
            };
            let Ok((stream, peer)) = caller.into_stream() else {
                continue;
            };
            let desk = Rc::clone(desk);
            let mut session = Session::new(&desk, door.level, door.severity);
            session.exposes = door.expose_listeners;
            session.caller = match ballast_net::unix_peer(&stream) {
                Some((pid, uid)) => format!("{} (pid {pid}, uid {uid})", door.label),
                None => format!("{} ({peer})", door.label),
            };
            let listed = desk.list(Some(&peer), number);
            spawn_local(async move {
                session::run(stream, desk, session, listed).await;
                drop(place);
            });
        }
    }
}
