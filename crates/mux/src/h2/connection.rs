//! What the task of a connection and those of its streams share.

use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use ballast_h2::{ConnectionCounters, ErrorCode, H2Connection, StreamId};
use ballast_transport::Transport;
use ballast_worker::{Buffer, approximate_now, send_buffers};

use super::stream_state::{StreamFailure, StreamState, note_waker};

/// Bytes that may wait for the socket before streams wait for room.
pub(super) const UNSENT_BYTES_MAX: usize = 64 * 1024;

/// A connection that carries streams.
#[derive(Debug)]
pub(crate) struct SharedConnection {
    pub(super) transport: Transport,
    pub(super) state: RefCell<ConnectionState>,
    /// The task that drives the connection.
    pub(super) driver: RefCell<Option<Waker>>,
    /// Whether that task was woken and did not run yet.
    pub(super) is_driver_woken: Cell<bool>,
}

/// The state of a connection.
#[derive(Debug)]
pub(super) struct ConnectionState {
    pub(super) codec: H2Connection,
    /// The streams whose handles live, by their numbers.
    pub(super) streams: Vec<Rc<StreamState>>,
    /// Bytes that were received and not decoded.
    pub(super) input: Option<Buffer>,
    /// Frames to write; those before `sent` are written.
    pub(super) out: Vec<u8>,
    pub(super) sent: usize,
    /// Tasks that wait for news of the connection and have no stream of it: for its settings, or its end.
    pub(super) waiting_without_stream: Vec<Waker>,
    /// Streams that wait until more of `out` is written.
    pub(super) waiting_for_room: Vec<Rc<StreamState>>,
    /// Whether the peer has closed its side of the connection.
    pub(super) peer_closed: bool,
    /// Whether writing has failed: what is to be sent is dropped.
    pub(super) takes_nothing: bool,
    /// Why the connection carries nothing more.
    pub(super) failure: Option<StreamFailure>,
    /// The odd frames after which the connection ends; 0 for no limit.
    pub(super) glitch_count_max: u32,
    /// Reads of the socket in the present turn of the connection's task; `None` between two turns.
    pub(super) read_count: Option<u32>,
    /// When the last bytes came; at first, when the connection began.
    pub(super) received_at: Instant,
}

impl SharedConnection {
    pub(super) fn new(
        transport: Transport,
        codec: H2Connection,
        out: Vec<u8>,
        glitch_count_max: u32,
    ) -> Self {
        Self {
            transport,
            state: RefCell::new(ConnectionState {
                codec,
                streams: Vec::new(),
                input: None,
                out,
                sent: 0,
                waiting_without_stream: Vec::new(),
                waiting_for_room: Vec::new(),
                peer_closed: false,
                takes_nothing: false,
                failure: None,
                glitch_count_max,
                read_count: None,
                received_at: approximate_now(),
            }),
            driver: RefCell::new(None),
            is_driver_woken: Cell::new(false),
        }
    }

    /// What was counted so far, and the streams that are open.
    pub(super) fn counts(&self) -> (ConnectionCounters, usize) {
        let state = self.state.borrow();
        (state.codec.counters(), state.streams.len())
    }

    /// Notes the connection's task, which is woken from now on.
    pub(super) fn register_driver(&self, cx: &Context<'_>) {
        self.is_driver_woken.set(false);
        note_waker(&self.driver, cx);
    }

    /// Has the connection's task write what was appended.
    pub(super) fn wake_driver(&self) {
        if self.is_driver_woken.replace(true) {
            return;
        }
        if let Some(driver) = &*self.driver.borrow() {
            driver.wake_by_ref();
        }
    }

    /// How much of `wanted` bytes of a body a stream may send now: within the windows, and as far
    /// as the socket takes what was sent before.
    pub(super) fn poll_capacity(
        &self,
        stream: &Rc<StreamState>,
        wanted: usize,
        cx: &Context<'_>,
    ) -> Poll<io::Result<usize>> {
        if let Some(failure) = stream.failure.get() {
            return Poll::Ready(Err(failure.into()));
        }
        let state = &mut *self.state.borrow_mut();
        let room = UNSENT_BYTES_MAX.saturating_sub(state.unsent_bytes());
        if room == 0 {
            state.wait_for_room(stream);
            stream.register(cx);
            return Poll::Pending;
        }
        match state.codec.reserve(stream.id, wanted.min(room)) {
            // Nobody will open a window any more.
            0 if state.peer_closed => Poll::Ready(Err(StreamFailure::Closed.into())),
            0 => {
                stream.register(cx);
                Poll::Pending
            }
            bytes => Poll::Ready(Ok(bytes)),
        }
    }

    /// A stream sends nothing more for now: what its turn left of the connection's window is for others,
    /// who may wait for nothing else.
    pub(super) fn end_turn_of_stream(&self) {
        self.state.borrow_mut().wake_turns();
    }

    /// Ready when the socket has taken most of what was appended before.
    pub(super) fn poll_room(
        &self,
        stream: &Rc<StreamState>,
        cx: &Context<'_>,
    ) -> Poll<io::Result<()>> {
        if let Some(failure) = stream.failure.get() {
            return Poll::Ready(Err(failure.into()));
        }
        let state = &mut *self.state.borrow_mut();
        if state.unsent_bytes() < UNSENT_BYTES_MAX {
            return Poll::Ready(Ok(()));
        }
        state.wait_for_room(stream);
        stream.register(cx);
        Poll::Pending
    }

    /// Nobody drives the connection any more: its streams have failed, and no more are opened.
    pub(super) fn abandon(&self) {
        let state = &mut *self.state.borrow_mut();
        state.fail(StreamFailure::Broken(io::ErrorKind::ConnectionAborted));
    }

    /// Takes a stream off the connection. One that is not closed is reset with `code`.
    pub(super) fn finish(&self, stream: &StreamState, code: ErrorCode) {
        let state = &mut *self.state.borrow_mut();
        state.codec.finish(stream.id, code);
        if let Ok(position) = state.position(stream.id) {
            state.streams.remove(position);
        }
        state.waiting_for_room.retain(|other| other.id != stream.id);
        state.wake_turns();
        self.wake_driver();
    }
}

impl ConnectionState {
    /// Whether it is of no use for new streams: it has failed, or the peer has closed its side, or takes
    /// nothing more.
    pub(super) fn is_gone(&self) -> bool {
        self.peer_closed || self.takes_nothing || self.failure.is_some()
    }

    /// Bytes that the socket has not taken.
    pub(super) fn unsent_bytes(&self) -> usize {
        self.out.len() - self.sent
    }

    /// Forgets what was written, before it outgrows what is not.
    pub(super) fn forget_written(&mut self) {
        if self.sent >= self.unsent_bytes() {
            self.out.drain(..self.sent);
            self.sent = 0;
        }
    }

    pub(super) fn position(&self, id: StreamId) -> Result<usize, usize> {
        self.streams.binary_search_by_key(&id, |stream| stream.id)
    }

    pub(super) fn stream(&self, id: StreamId) -> Option<&Rc<StreamState>> {
        let position = self.position(id).ok()?;
        self.streams.get(position)
    }

    /// Adds a stream that was just opened.
    pub(super) fn open(&mut self, id: StreamId) -> Rc<StreamState> {
        let stream = StreamState::take(id);
        // Their numbers grow.
        if self.streams.last().is_none_or(|last| last.id < id) {
            self.streams.push(Rc::clone(&stream));
            return stream;
        }
        match self.position(id) {
            Ok(position) => self.streams[position] = Rc::clone(&stream),
            Err(position) => self.streams.insert(position, Rc::clone(&stream)),
        }
        stream
    }

    /// The frames to write, to append to.
    pub(super) fn out(&mut self) -> (&mut H2Connection, &mut Vec<u8>) {
        if self.out.capacity() == 0 {
            self.out = send_buffers::take();
        }
        (&mut self.codec, &mut self.out)
    }

    /// Wakes the streams that may send what they waited for.
    pub(super) fn wake_turns(&mut self) {
        while let Some(id) = self.codec.next_turn() {
            match self.stream(id) {
                Some(stream) => stream.wake(),
                None => self.codec.unreserve(id),
            }
        }
    }

    fn wait_for_room(&mut self, stream: &Rc<StreamState>) {
        if !stream.waits_for_room.replace(true) {
            self.waiting_for_room.push(Rc::clone(stream));
        }
    }

    /// Wakes the streams that wait for room, if there is enough.
    pub(super) fn wake_for_room(&mut self) {
        if self.waiting_for_room.is_empty() || self.unsent_bytes() > UNSENT_BYTES_MAX / 2 {
            return;
        }
        for stream in self.waiting_for_room.drain(..) {
            stream.waits_for_room.set(false);
            stream.wake();
        }
    }

    /// Ends all streams, and whatever comes after them.
    pub(super) fn fail(&mut self, failure: StreamFailure) {
        self.failure.get_or_insert(failure);
        for stream in &self.streams {
            stream.fail(failure);
        }
        self.wake_without_stream();
    }

    /// Has a task woken that has no stream.
    pub(super) fn register_without_stream(&mut self, cx: &Context<'_>) {
        let waiting = &mut self.waiting_without_stream;
        if !waiting.iter().any(|known| known.will_wake(cx.waker())) {
            waiting.push(cx.waker().clone());
        }
    }

    /// Wakes the tasks that have no stream.
    pub(super) fn wake_without_stream(&mut self) {
        self.waiting_without_stream.drain(..).for_each(Waker::wake);
    }
}

impl Drop for ConnectionState {
    fn drop(&mut self) {
        send_buffers::give_back(std::mem::take(&mut self.out));
    }
}
