//! What a connection and an exchange know of a stream, and why it broke.

use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;
use std::task::{Context, Waker};

use ballast_h2::{ErrorCode, ResponseHead, StreamId};
use ballast_message::{Fields, Response};
use ballast_worker::Buffer;

use super::short_queue::ShortQueue;

/// States that a worker keeps for its next streams.
const SPARE_COUNT_MAX: usize = 256;

thread_local! {
    static SPARE: RefCell<Vec<Rc<StreamState>>> = const { RefCell::new(Vec::new()) };
}

/// The state of a stream, of which its connection learns first.
#[derive(Debug)]
pub(super) struct StreamState {
    pub(super) id: StreamId,
    /// What came of the body and was not taken.
    pub(super) received: RefCell<ShortQueue<Buffer>>,
    /// Whether nothing follows `received`.
    pub(super) received_end: Cell<bool>,
    /// Trailers that came behind the body.
    pub(super) trailers: RefCell<Option<Box<Fields>>>,
    /// Heads of responses that were not taken.
    pub(super) responses: RefCell<ShortQueue<(Response, ResponseHead)>>,
    /// Whether the peer has answered, with an interim response at least: it processes the request.
    pub(super) is_answered: Cell<bool>,
    /// What answers the key of a request for a WebSocket.
    pub(super) websocket_accept: RefCell<Option<Box<str>>>,
    /// Why the stream carries nothing more.
    pub(super) failure: Cell<Option<StreamFailure>>,
    /// Whether our side of the stream has ended.
    pub(super) sent_end: Cell<bool>,
    /// Whether it stands among those that wait for room.
    pub(super) waits_for_room: Cell<bool>,
    /// The task of its exchange.
    waker: RefCell<Option<Waker>>,
}

/// Why a stream carries nothing more.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum StreamFailure {
    /// The peer reset it.
    Reset(ErrorCode),
    /// The peer did not process its request, which may be repeated elsewhere.
    Unprocessed,
    /// The peer takes no request of its kind (an extended CONNECT): nothing was sent.
    NotTaken,
    /// The peer broke the protocol on the stream.
    Violation,
    /// The peer broke the protocol on the connection, or speaks another one.
    Protocol,
    /// The connection was closed in order.
    Closed,
    /// The connection broke.
    Broken(io::ErrorKind),
}

impl From<StreamFailure> for io::Error {
    fn from(failure: StreamFailure) -> Self {
        match failure {
            StreamFailure::Reset(_) | StreamFailure::Unprocessed => {
                io::ErrorKind::ConnectionReset.into()
            }
            StreamFailure::Violation | StreamFailure::Protocol => io::ErrorKind::InvalidData.into(),
            StreamFailure::NotTaken => io::ErrorKind::Unsupported.into(),
            StreamFailure::Closed => io::ErrorKind::UnexpectedEof.into(),
            StreamFailure::Broken(kind) => kind.into(),
        }
    }
}

impl StreamState {
    /// The state of another stream: a spare one, or a new one.
    pub(super) fn take(id: StreamId) -> Rc<Self> {
        // While the thread ends they may be gone already.
        let spare = SPARE.try_with(|spare| spare.borrow_mut().pop());
        if let Ok(Some(mut spare)) = spare
            && let Some(state) = Rc::get_mut(&mut spare)
        {
            state.id = id;
            return spare;
        }
        Rc::new(Self::new(id))
    }

    /// Keeps the state of a stream that is over for another one, if nobody else holds it.
    pub(super) fn give_back(state: &Rc<Self>) {
        if Rc::strong_count(state) > 1 || Rc::weak_count(state) > 0 {
            return;
        }
        // To let go of the task may drop it, and its streams: so nothing is borrowed here.
        state.clear();
        let _ = SPARE.try_with(|spare| {
            let mut spare = spare.borrow_mut();
            if spare.len() < SPARE_COUNT_MAX {
                spare.push(Rc::clone(state));
            }
        });
    }

    /// As [`Self::new`], but for the number.
    fn clear(&self) {
        let Self {
            id: _,
            received,
            received_end,
            trailers,
            responses,
            is_answered,
            websocket_accept,
            failure,
            sent_end,
            waits_for_room,
            waker,
        } = self;
        received.borrow_mut().clear();
        received_end.set(false);
        drop(trailers.take());
        responses.borrow_mut().clear();
        is_answered.set(false);
        drop(websocket_accept.take());
        failure.set(None);
        sent_end.set(false);
        waits_for_room.set(false);
        drop(waker.take());
    }

    fn new(id: StreamId) -> Self {
        Self {
            id,
            received: RefCell::default(),
            received_end: Cell::new(false),
            trailers: RefCell::new(None),
            responses: RefCell::default(),
            is_answered: Cell::new(false),
            websocket_accept: RefCell::new(None),
            failure: Cell::new(None),
            sent_end: Cell::new(false),
            waits_for_room: Cell::new(false),
            waker: RefCell::new(None),
        }
    }

    /// Notes who is woken when something changes.
    pub(super) fn register(&self, cx: &Context<'_>) {
        note_waker(&self.waker, cx);
    }

    pub(super) fn wake(&self) {
        if let Some(waker) = &*self.waker.borrow() {
            waker.wake_by_ref();
        }
    }

    /// Ends the stream for its exchange; the first failure counts.
    pub(super) fn fail(&self, failure: StreamFailure) {
        if self.failure.get().is_none() {
            self.failure.set(Some(failure));
        }
        self.wake();
    }
}

/// Notes which task is to be woken; without a clone when it is known.
pub(super) fn note_waker(noted: &RefCell<Option<Waker>>, cx: &Context<'_>) {
    match &mut *noted.borrow_mut() {
        Some(waker) => waker.clone_from(cx.waker()),
        none => *none = Some(cx.waker().clone()),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::task::Wake;

    use super::*;

    struct Task;

    impl Wake for Task {
        fn wake(self: Arc<Self>) {}
    }

    #[test]
    fn a_kept_state_has_nothing_of_its_former_stream() {
        let first = StreamState::take(StreamId::CONNECTION);
        let task = Arc::new(Task);
        first.register(&Context::from_waker(&Waker::from(Arc::clone(&task))));
        first.fail(StreamFailure::Protocol);
        first.received.borrow_mut().push_back(Buffer::take());
        first.received_end.set(true);
        first.sent_end.set(true);
        first.waits_for_room.set(true);
        *first.websocket_accept.borrow_mut() = Some("accept".into());
        let holder = Rc::clone(&first);
        StreamState::give_back(&first);
        assert_eq!(first.failure.get(), Some(StreamFailure::Protocol), "held");
        drop(holder);
        StreamState::give_back(&first);
        assert_eq!(Arc::strong_count(&task), 1, "its task is let go");
        let address = Rc::as_ptr(&first);
        drop(first);
        let second = StreamState::take(StreamId::CONNECTION);
        assert_eq!(Rc::as_ptr(&second), address, "it is used again");
        let new = StreamState::new(StreamId::CONNECTION);
        assert_eq!(format!("{second:?}"), format!("{new:?}"));
        let third = StreamState::take(StreamId::CONNECTION);
        assert_ne!(Rc::as_ptr(&third), address);
    }
}
