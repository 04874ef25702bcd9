//! A list of sockets that the kernel watches (epoll), apart from the executor's.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};

use crate::SystemCallError;

/// The largest number of events that one call brings.
const EVENTS_MAX: usize = 64;

/// Sockets that wait for their peers, each with a key. The list itself is readable while an event
/// waits in it.
#[derive(Debug)]
pub struct Epoll(Arc<OwnedFd>);

impl Epoll {
    /// An empty list.
    ///
    /// # Errors
    /// A limit of descriptors, or memory.
    pub fn new() -> Result<Self, SystemCallError> {
        let list = epoll::create(CreateFlags::CLOEXEC)
            .map_err(|e| SystemCallError::new("epoll_create1", "", e))?;
        Ok(Self(Arc::new(list)))
    }

    /// The descriptor of the list, to be watched in turn.
    pub fn descriptor(&self) -> &Arc<OwnedFd> {
        &self.0
    }

    /// Watches a socket until its peer sends something, closes or breaks the connection, also if
    /// that has happened already. It is reported once; [`Self::forget`] removes it.
    ///
    /// # Errors
    /// The limit of watched descriptors of the user, or memory; the socket is in the list already.
    pub fn watch(&self, socket: impl AsFd, key: u64) -> io::Result<()> {
        let events = EventFlags::IN | EventFlags::RDHUP | EventFlags::ONESHOT;
        epoll::add(&self.0, socket, EventData::new_u64(key), events)?;
        Ok(())
    }

    /// Takes a socket off the list.
    ///
    /// # Errors
    /// It is not in the list.
    pub fn forget(&self, socket: impl AsFd) -> io::Result<()> {
        epoll::delete(&self.0, socket)?;
        Ok(())
    }

    /// Appends the keys of sockets with an event, without waiting. Returns whether there may be more.
    ///
    /// # Errors
    /// `Interrupted`, and nothing else where the list is good.
    pub fn ready(&self, keys: &mut Vec<u64>) -> io::Result<bool> {
        let mut room = [const { MaybeUninit::uninit() }; EVENTS_MAX];
        let no_wait = Timespec::default();
        let (events, _) = epoll::wait(&self.0, &mut room, Some(&no_wait))?;
        keys.extend(events.iter().map(|event| event.data.u64()));
        Ok(events.len() == EVENTS_MAX)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::net::UnixStream;

    use super::*;

    fn ready(list: &Epoll) -> Vec<u64> {
        let mut keys = Vec::new();
        assert!(!list.ready(&mut keys).unwrap());
        keys
    }

    #[test]
    fn an_event_is_reported_once() {
        let list = Epoll::new().unwrap();
        let (ours, mut peer) = UnixStream::pair().unwrap();
        list.watch(&ours, 7).unwrap();
        assert_eq!(ready(&list), []);
        peer.write_all(b"x").unwrap();
        assert_eq!(ready(&list), [7]);
        assert_eq!(ready(&list), []);
        list.forget(&ours).unwrap();
        // What came before it was watched counts.
        list.watch(&ours, 8).unwrap();
        assert_eq!(ready(&list), [8]);
        list.forget(&ours).unwrap();
        assert!(list.forget(&ours).is_err());
    }

    #[test]
    fn the_end_of_a_peer_is_an_event() {
        let list = Epoll::new().unwrap();
        let (ours, peer) = UnixStream::pair().unwrap();
        list.watch(&ours, 1).unwrap();
        drop(peer);
        assert_eq!(ready(&list), [1]);
    }

    #[test]
    fn there_may_be_more() {
        let list = Epoll::new().unwrap();
        let pairs: Vec<_> = (0..EVENTS_MAX as u64 + 1)
            .map(|key| {
                let (ours, peer) = UnixStream::pair().unwrap();
                list.watch(&ours, key).unwrap();
                (&peer).write_all(b"x").unwrap();
                (ours, peer)
            })
            .collect();
        let mut keys = Vec::new();
        assert!(list.ready(&mut keys).unwrap());
        assert!(!list.ready(&mut keys).unwrap());
        keys.sort_unstable();
        assert_eq!(keys, (0..pairs.len() as u64).collect::<Vec<_>>());
    }
}
