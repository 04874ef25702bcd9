//! Streams: their states, and the table of those that exist (RFC 9113 section 5.1).
//!
//! ```text
//!             head                 END_STREAM of the peer
//!   [Idle] ---------> [Open] --------------------------> [HalfClosedRemote]
//!                       |                                        |
//!                       | END_STREAM of ours                     | END_STREAM of ours
//!                       v         END_STREAM of the peer         v
//!               [HalfClosedLocal] --------------------------> [Closed]
//!                                       RST_STREAM from any state
//! ```
//!
//! A stream that is closed stays in the table until its exchange is over as well. It counts until
//! then: a client that resets its requests at once gets no more of them done than one that waits.

use std::cell::Cell;
use std::collections::VecDeque;

use ballast_message::Method;

use crate::flow::{ReceiveWindow, SendWindow};

/// A stream identifier (RFC 9113 section 5.1.1).
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct StreamId(pub(crate) u32);

impl StreamId {
    /// What frames about the connection itself name: no stream.
    pub const CONNECTION: StreamId = StreamId(0);

    /// The number, as in frames.
    pub fn number(self) -> u32 {
        self.0
    }
}

impl std::fmt::Display for StreamId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// The state of a stream that is not idle. We neither push nor are pushed to: none is reserved.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum StreamState {
    Open,
    HalfClosedLocal,
    HalfClosedRemote,
    Closed,
}

impl StreamState {
    /// We have sent END_STREAM.
    pub(crate) fn end_local(self) -> StreamState {
        match self {
            StreamState::Open => StreamState::HalfClosedLocal,
            StreamState::HalfClosedRemote => StreamState::Closed,
            StreamState::HalfClosedLocal | StreamState::Closed => self,
        }
    }

    /// The peer has sent END_STREAM.
    pub(crate) fn end_remote(self) -> StreamState {
        match self {
            StreamState::Open => StreamState::HalfClosedRemote,
            StreamState::HalfClosedLocal => StreamState::Closed,
            StreamState::HalfClosedRemote | StreamState::Closed => self,
        }
    }

    pub(crate) fn can_send(self) -> bool {
        matches!(self, StreamState::Open | StreamState::HalfClosedRemote)
    }

    pub(crate) fn can_receive(self) -> bool {
        matches!(self, StreamState::Open | StreamState::HalfClosedLocal)
    }
}

/// What a stream waits for before it can send.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) enum Waiting {
    #[default]
    Nothing,
    /// Its own window.
    Window,
    /// Its turn at the window of the connection.
    Turn,
}

/// A stream.
#[derive(Debug)]
pub(crate) struct Stream {
    pub(crate) id: u32,
    pub(crate) state: StreamState,
    pub(crate) send: SendWindow,
    pub(crate) receive: ReceiveWindow,
    pub(crate) waiting: Waiting,
    /// Whether a window update is owed.
    pub(crate) is_update_due: bool,
    /// What `content-length` says is still to come.
    pub(crate) body_left: Option<u64>,
    /// Whether the peer's final head has come: trailers are next.
    pub(crate) has_head: bool,
    /// Whether a head of the peer's has come that answers ours, an interim one at least.
    pub(crate) is_answered: bool,
    /// Whether DATA is dropped: the response has no body (RFC 9110 section 6.4.1), and HAProxy
    /// ignores what comes all the same.
    pub(crate) drops_data: bool,
    /// The number of the read in which it was opened.
    pub(crate) opened_in: u32,
    /// Who reset it, if somebody did.
    pub(crate) reset_by: Option<Side>,
    /// The method of our request.
    pub(crate) method: Method,
    /// The protocol that our request asked for by extended CONNECT.
    pub(crate) protocol: Option<Box<[u8]>>,
}

/// An end of the connection.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Side {
    Us,
    Peer,
}

impl Stream {
    pub(crate) fn new(id: u32, send_bytes: u32, receive_bytes: u32) -> Stream {
        Stream {
            id,
            state: StreamState::Open,
            send: SendWindow::new(send_bytes),
            receive: ReceiveWindow::new(receive_bytes),
            waiting: Waiting::Nothing,
            is_update_due: false,
            body_left: None,
            has_head: false,
            is_answered: false,
            drops_data: false,
            opened_in: 0,
            reset_by: None,
            method: Method::Get,
            protocol: None,
        }
    }
}

/// The streams whose exchanges are not over, and the last ones before them.
#[derive(Debug, Default)]
pub(crate) struct Streams {
    slots: Vec<Option<Stream>>,
    free: Vec<u32>,
    /// Identifier and slot, in the order of the identifiers, which only grow: a new one is last.
    order: Vec<(u32, u32)>,
    /// Identifier and slot of the stream that was found last: most questions about one follow each
    /// other.
    latest: Cell<Option<(u32, u32)>>,
    former: VecDeque<(u32, Side)>,
}

/// How many former streams are remembered: those of a second or so. Frames of older ones cannot be
/// on the way any more.
const FORMER_COUNT_MAX: usize = 64;

impl Streams {
    pub(crate) fn len(&self) -> usize {
        self.order.len()
    }

    #[inline]
    fn slot(&self, id: u32) -> Option<usize> {
        if let Some((latest, slot)) = self.latest.get()
            && latest == id
        {
            return Some(slot as usize);
        }
        // A stream that is about to be opened.
        if self.order.last().is_none_or(|(last, _)| *last < id) {
            return None;
        }
        self.search(id)
    }

    fn search(&self, id: u32) -> Option<usize> {
        let at = self.order.binary_search_by_key(&id, |(id, _)| *id).ok()?;
        let (_, slot) = self.order[at];
        self.latest.set(Some((id, slot)));
        Some(slot as usize)
    }

    #[inline]
    pub(crate) fn find(&self, id: u32) -> Option<&Stream> {
        self.slots.get(self.slot(id)?)?.as_ref()
    }

    #[inline]
    pub(crate) fn find_mut(&mut self, id: u32) -> Option<&mut Stream> {
        let slot = self.slot(id)?;
        self.slots.get_mut(slot)?.as_mut()
    }

    /// Adds a stream; its identifier is above all others.
    pub(crate) fn insert(&mut self, stream: Stream) {
        debug_assert!(
            self.order.last().is_none_or(|(id, _)| *id < stream.id),
            "stream identifiers grow"
        );
        let id = stream.id;
        let slot = match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize] = Some(stream);
                slot
            }
            None => {
                self.slots.push(Some(stream));
                u32::try_from(self.slots.len() - 1).unwrap_or(u32::MAX)
            }
        };
        self.order.push((id, slot));
        self.latest.set(Some((id, slot)));
    }

    /// Removes a stream whose exchange is over.
    pub(crate) fn remove(&mut self, id: u32) -> Option<Stream> {
        let at = self.order.binary_search_by_key(&id, |(id, _)| *id).ok()?;
        let (_, slot) = self.order.remove(at);
        self.latest.set(None);
        self.free.push(slot);
        self.slots.get_mut(slot as usize)?.take()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Stream> {
        self.slots.iter().flatten()
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Stream> {
        self.slots.iter_mut().flatten()
    }

    /// The identifiers, in order.
    pub(crate) fn ids(&self) -> impl Iterator<Item = u32> {
        self.order.iter().map(|(id, _)| *id)
    }

    /// Remembers a stream that has left, and who reset it or ended it. What is remembered last counts.
    pub(crate) fn remember(&mut self, id: u32, side: Side) {
        if self.former.len() == FORMER_COUNT_MAX {
            self.former.pop_front();
        }
        self.former.push_back((id, side));
    }

    /// Who reset or ended a former stream.
    pub(crate) fn former(&self, id: u32) -> Option<Side> {
        let found = self.former.iter().rev().find(|(other, _)| *other == id);
        found.map(|(_, side)| *side)
    }

    /// Gives up the memory for streams; there are none.
    pub(crate) fn take_memory(&mut self) -> StreamsMemory {
        debug_assert!(self.order.is_empty(), "no streams");
        let mut memory = StreamsMemory {
            slots: std::mem::take(&mut self.slots),
            free: std::mem::take(&mut self.free),
            order: std::mem::take(&mut self.order),
        };
        memory.slots.clear();
        memory.free.clear();
        memory
    }

    /// Whether there is no memory for streams.
    pub(crate) fn has_no_memory(&self) -> bool {
        self.slots.capacity() == 0
    }

    /// Uses this memory for streams, if there is none.
    pub(crate) fn set_memory(&mut self, memory: StreamsMemory) {
        if self.has_no_memory() {
            (self.slots, self.free, self.order) = (memory.slots, memory.free, memory.order);
        }
    }
}

/// The memory of a table without streams.
#[derive(Debug)]
pub(crate) struct StreamsMemory {
    slots: Vec<Option<Stream>>,
    free: Vec<u32>,
    order: Vec<(u32, u32)>,
}

impl StreamsMemory {
    /// For how many streams there is room.
    pub(crate) fn stream_count(&self) -> usize {
        let (slots, free) = (self.slots.capacity(), self.free.capacity());
        slots.max(free).max(self.order.capacity())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_end_each_side_by_itself() {
        use StreamState::{Closed, HalfClosedLocal, HalfClosedRemote, Open};
        for (state, local, remote, sends, receives) in [
            (Open, HalfClosedLocal, HalfClosedRemote, true, true),
            (HalfClosedLocal, HalfClosedLocal, Closed, false, true),
            (HalfClosedRemote, Closed, HalfClosedRemote, true, false),
            (Closed, Closed, Closed, false, false),
        ] {
            assert_eq!(state.end_local(), local);
            assert_eq!(state.end_remote(), remote);
            assert_eq!((state.can_send(), state.can_receive()), (sends, receives));
        }
    }

    #[test]
    fn streams_are_found_in_any_order() {
        let mut streams = Streams::default();
        for id in (1..100).step_by(2) {
            streams.insert(Stream::new(id, 1, 1));
        }
        for id in (1..100).step_by(4) {
            assert_eq!(streams.remove(id).map(|stream| stream.id), Some(id));
        }
        for id in (101..150).step_by(2) {
            streams.insert(Stream::new(id, 1, 1));
        }
        assert_eq!(streams.len(), 25 + 25);
        assert_eq!(streams.find(3).map(|stream| stream.id), Some(3));
        assert_eq!(streams.find(149).map(|stream| stream.id), Some(149));
        assert!(streams.find(5).is_none());
        assert!(streams.find(2).is_none());
        assert!(streams.remove(5).is_none());
        assert_eq!(streams.slots.len(), 50);
    }

    #[test]
    fn few_former_streams_are_remembered() {
        let mut streams = Streams::default();
        for id in 1..1000 {
            streams.remember(id, Side::Us);
        }
        assert_eq!(streams.former(999), Some(Side::Us));
        assert_eq!(streams.former(1), None);
        streams.remember(999, Side::Peer);
        assert_eq!(streams.former(999), Some(Side::Peer));
        assert_eq!(streams.former.len(), FORMER_COUNT_MAX);
    }
}
