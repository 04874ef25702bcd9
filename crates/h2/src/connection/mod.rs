//! One connection: frames in, events out, and the reverse (RFC 9113 sections 3 to 6).
//!
//! The machine has no socket and no clock. A connection task gives it what it reads, hands events to
//! the tasks of streams, and writes what these append. What it holds is bounded: a header block, two
//! tables, a few frames that are owed, a small record per stream. Bodies pass by as ranges.

mod control;
mod data;
mod event;
mod headers;
mod owed;
mod receive;
mod send;

use std::collections::VecDeque;

use crate::error::{ErrorCode, H2Error};
use crate::flow::{ReceiveWindow, SendWindow};
use crate::frame::{self, PREFACE, STREAM_ID_MAX};
use crate::head::HeadScratch;
use crate::hpack::{HpackDecoder, HpackEncoder};
use crate::settings::{H2Settings, PeerSettings, WINDOW_BYTES_AT_FIRST};
use crate::stream::{Side, StreamId, StreamState, Streams, StreamsMemory, Waiting};

pub use event::{Event, IncomingHeads, Step};
pub use send::SendError;

use owed::OwedFrames;
use receive::Reader;

/// Which end of the connection we are.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Role {
    /// Streams are opened by us.
    Client,
    /// Streams are opened by the peer.
    Server,
}

/// What was counted on a connection since it began.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct ConnectionCounters {
    /// Frames received.
    pub frames: u64,
    /// HEADERS received.
    pub headers: u64,
    /// DATA received that belong to a stream.
    pub data: u64,
    /// SETTINGS received, acknowledgements too.
    pub settings: u64,
    /// RST_STREAM received.
    pub resets: u64,
    /// GOAWAY received.
    pub go_aways: u64,
    /// Breaches of the protocol that ended the connection: none or one.
    pub connection_errors: u64,
    /// Breaches of the protocol that ended a stream. What is late for a stream is none.
    pub stream_errors: u64,
    /// Of those, the heads that broke the rules: no stream came of them.
    pub bad_heads: u64,
    /// RST_STREAM sent, for an error or not.
    pub resets_sent: u64,
    /// GOAWAY sent for an error.
    pub go_aways_sent: u64,
    /// Streams opened.
    pub streams: u64,
    /// What HAProxy 3.2 counts as a glitch: samples `fc_glitches` and `bc_glitches`.
    pub glitches: u32,
}

/// How far our end of the connection has said that it goes away (RFC 9113 section 6.8).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum GoAwayState {
    NotSent,
    /// A GOAWAY that names no stream: the peer opens no more, those on the way are served.
    Announced,
    /// A GOAWAY that names the last stream we serve.
    Final {
        last_stream: u32,
    },
}

/// One HTTP/2 connection.
#[derive(Debug)]
pub struct H2Connection {
    role: Role,
    settings: H2Settings,
    peer: PeerSettings,
    reader: Reader,
    decoder: HpackDecoder,
    encoder: HpackEncoder,
    scratch: HeadScratch,
    streams: Streams,
    /// The highest stream that the peer opened.
    last_peer_stream: u32,
    /// The next stream that we open.
    next_own_stream: u32,
    send: SendWindow,
    receive: ReceiveWindow,
    /// Streams that wait for the window of the connection, the first first.
    turns: VecDeque<u32>,
    owed: OwedFrames,
    /// Streams with a window update due.
    updates: Vec<u32>,
    /// Streams whose peer may still send: they share the memory.
    receiving_count: u32,
    /// Whether the peer has acknowledged our settings.
    is_acknowledged: bool,
    /// Whether the peer's first SETTINGS have come.
    has_peer_settings: bool,
    go_away_state: GoAwayState,
    peer_go_away: Option<(u32, ErrorCode)>,
    counters: ConnectionCounters,
    /// Heads that were longer than we take.
    long_head_count: u32,
    /// How often all input was taken: what comes with one read has the same number.
    read_number: u32,
    /// The frames and the resets that were counted when the present turn began.
    turn_start: (u64, u64),
    error: Option<H2Error>,
}

/// What a connection needs only while frames are on the way: see [`H2Connection::release`].
#[derive(Debug)]
pub struct WorkMemory {
    streams: StreamsMemory,
    scratch: HeadScratch,
    strings: Vec<u8>,
    turns: VecDeque<u32>,
    updates: Vec<u32>,
}

/// Memory for more streams, or for longer strings, is not kept.
const KEPT_STREAM_COUNT_MAX: usize = 128;
const KEPT_STRING_BYTES_MAX: usize = 4096;

impl WorkMemory {
    /// Without what it had; `None` when it is too large to be kept, or not worth it.
    fn cleared(mut self) -> Option<Self> {
        let streams = self.streams.stream_count();
        let largest = streams
            .max(self.turns.capacity())
            .max(self.updates.capacity());
        let scratch = &mut self.scratch;
        let strings = scratch.pseudo.capacity() + scratch.cookies.capacity();
        let bytes = strings + self.strings.capacity();
        if streams == 0 || largest > KEPT_STREAM_COUNT_MAX || bytes > KEPT_STRING_BYTES_MAX {
            return None;
        }
        scratch.pseudo.clear();
        scratch.cookies.clear();
        self.strings.clear();
        self.turns.clear();
        self.updates.clear();
        Some(self)
    }
}

/// A header block whose names and values take so many times what a block may take on the wire ends the
/// connection: no more of it is decoded. A list that is longer than a head may be, and shorter than this,
/// ends its stream only.
const LIST_FACTOR: u32 = 4;

impl H2Connection {
    /// A connection just opened. The first bytes to write are appended to `out`: SETTINGS, and before
    /// them the preface if we are the client (section 3.4).
    pub fn new(role: Role, settings: H2Settings, out: &mut Vec<u8>) -> H2Connection {
        let is_server = role == Role::Server;
        if !is_server {
            out.extend_from_slice(PREFACE);
        }
        frame::write_settings(out, settings.announced(is_server));
        // The peer may use a table of the default size until it knows ours.
        let mut decoder = HpackDecoder::new(settings.header_table_bytes_max.max(4096) as usize);
        let list_bytes_max = settings.header_block_bytes_max.saturating_mul(LIST_FACTOR);
        decoder.set_list_limit(list_bytes_max as usize);
        H2Connection {
            role,
            settings,
            peer: PeerSettings::default(),
            reader: Reader::new(role),
            decoder,
            encoder: HpackEncoder::new(settings.header_table_bytes_max as usize),
            scratch: HeadScratch::default(),
            streams: Streams::default(),
            last_peer_stream: 0,
            next_own_stream: 1,
            send: SendWindow::new(WINDOW_BYTES_AT_FIRST),
            receive: ReceiveWindow::new(WINDOW_BYTES_AT_FIRST),
            turns: VecDeque::new(),
            owed: OwedFrames::default(),
            updates: Vec::new(),
            receiving_count: 0,
            is_acknowledged: false,
            has_peer_settings: false,
            go_away_state: GoAwayState::NotSent,
            peer_go_away: None,
            counters: ConnectionCounters::default(),
            long_head_count: 0,
            read_number: 0,
            turn_start: (0, 0),
            error: None,
        }
    }

    /// Which end we are.
    pub fn role(&self) -> Role {
        self.role
    }

    /// What was counted so far.
    pub fn counters(&self) -> ConnectionCounters {
        self.counters
    }

    /// Begins another turn of receiving: see [`Event::TurnOver`].
    pub fn begin_turn(&mut self) {
        self.turn_start = (self.counters.frames, self.counters.resets);
    }

    /// Whether as much was received in this turn as the settings allow.
    fn is_turn_over(&self) -> bool {
        let is_reached =
            |count_max: u32, count: u64| count_max > 0 && count >= u64::from(count_max);
        let (now, (frames, resets)) = (&self.counters, self.turn_start);
        is_reached(self.settings.frame_count_max, now.frames - frames)
            || is_reached(self.settings.reset_count_max, now.resets - resets)
    }

    /// Streams whose exchanges are not over.
    pub fn stream_count(&self) -> usize {
        self.streams.len()
    }

    /// Streams that can still send or receive.
    pub fn active_stream_count(&self) -> usize {
        let is_active =
            |stream: &&crate::stream::Stream| stream.state.can_send() || stream.state.can_receive();
        self.streams.iter().filter(is_active).count()
    }

    /// The streams whose exchanges are not over, in the order in which they were opened.
    pub fn streams(&self) -> impl Iterator<Item = StreamId> {
        self.streams.ids().map(StreamId)
    }

    /// Whether the stream can neither send nor receive any more: ended, or reset by either side.
    pub fn is_closed(&self, stream: StreamId) -> bool {
        self.streams
            .find(stream.0)
            .is_none_or(|stream| !stream.state.can_send() && !stream.state.can_receive())
    }

    /// The rule that ended the connection.
    pub fn error(&self) -> Option<H2Error> {
        self.error
    }

    /// What the peer said when it announced to go away.
    pub fn peer_go_away(&self) -> Option<(u32, ErrorCode)> {
        self.peer_go_away
    }

    /// Whether we have said that we take no new streams.
    pub fn is_going_away(&self) -> bool {
        self.go_away_state != GoAwayState::NotSent
    }

    /// Whether we have said which stream is the last one that we serve.
    pub fn is_going_away_finally(&self) -> bool {
        matches!(self.go_away_state, GoAwayState::Final { .. })
    }

    /// Whether the client's preface has come: a peer that sends another says nothing that we could
    /// answer.
    pub fn has_preface(&self) -> bool {
        !matches!(self.reader.stage, receive::Stage::Preface(_))
    }

    /// Whether the peer's SETTINGS have come: until then nobody knows what it allows.
    pub fn has_peer_settings(&self) -> bool {
        self.has_peer_settings
    }

    /// Whether the peer takes extended CONNECT (RFC 8441).
    pub fn takes_connect_protocol(&self) -> bool {
        self.peer.takes_connect_protocol
    }

    /// How many streams there may be at once; `usize::MAX` for no limit.
    pub fn stream_count_max(&self) -> usize {
        let own = match self.settings.stream_count_max {
            0 => u32::MAX,
            own => own,
        };
        let allowed = match self.role {
            Role::Server => own,
            Role::Client => own.min(self.peer.stream_count_max),
        };
        match allowed {
            u32::MAX => usize::MAX,
            allowed => allowed as usize,
        }
    }

    /// How many more streams may be opened by us now.
    pub fn open_streams_max(&self) -> usize {
        if self.role == Role::Server
            || self.error.is_some()
            || self.peer_go_away.is_some()
            || self.is_going_away()
            || self.next_own_stream > STREAM_ID_MAX
        {
            return 0;
        }
        self.stream_count_max().saturating_sub(self.streams.len())
    }

    /// Frees the memory that is only needed while frames are on the way, for a connection that
    /// becomes idle. The tables of header fields stay. What is worth it is returned, for another
    /// connection or this one: see [`Self::resume`].
    pub fn release(&mut self) -> Option<WorkMemory> {
        self.reader.release();
        self.owed.release();
        let strings = self.decoder.take_memory();
        if self.streams.len() > 0 {
            return None;
        }
        let memory = WorkMemory {
            streams: self.streams.take_memory(),
            scratch: std::mem::take(&mut self.scratch),
            strings,
            turns: std::mem::take(&mut self.turns),
            updates: std::mem::take(&mut self.updates),
        };
        memory.cleared()
    }

    /// Whether its memory was released, and none was needed since.
    pub fn is_released(&self) -> bool {
        self.streams.has_no_memory()
    }

    /// Uses memory that was released, here or elsewhere: for a connection that becomes busy. It does
    /// nothing unless [`Self::is_released`].
    pub fn resume(&mut self, memory: WorkMemory) {
        if !self.is_released() {
            return;
        }
        self.streams.set_memory(memory.streams);
        self.decoder.set_memory(memory.strings);
        self.scratch = memory.scratch;
        if self.turns.is_empty() {
            self.turns = memory.turns;
        }
        if self.updates.is_empty() {
            self.updates = memory.updates;
        }
    }

    // === streams that end ===

    /// Resets a stream, if it is not closed. Write what is owed afterwards.
    pub fn reset(&mut self, stream: StreamId, code: ErrorCode) {
        let Some(found) = self.streams.find(stream.0) else {
            return;
        };
        if found.state.can_send() || found.state.can_receive() {
            self.owed.reset(stream.0, code);
            self.counters.resets_sent += 1;
            self.close(stream.0, Side::Us);
        }
    }

    /// The exchange of a stream is over. A stream that is not closed is reset with `code`; what
    /// nobody took of its body is given back. Ask [`H2Connection::next_turn`] afterwards: what was
    /// reserved for it is free.
    pub fn finish(&mut self, stream: StreamId, code: ErrorCode) {
        self.reset(stream, code);
        let Some(stream) = self.streams.remove(stream.0) else {
            return;
        };
        self.receive.give_back(stream.receive.held());
        if stream.is_update_due {
            self.updates.retain(|id| *id != stream.id);
        }
        let side = stream.reset_by.unwrap_or(Side::Peer);
        self.streams.remember(stream.id, side);
        self.check_invariants();
    }

    /// A stream is closed by a reset: nothing is sent on it or expected from it any more.
    fn close(&mut self, id: u32, by: Side) {
        let Some(stream) = self.streams.find_mut(id) else {
            self.streams.remember(id, by);
            return;
        };
        let was_receiving = stream.state.can_receive();
        stream.state = StreamState::Closed;
        stream.reset_by.get_or_insert(by);
        self.stop_sending(id);
        if was_receiving {
            self.receiving_count -= 1;
        }
    }

    /// Gives up what a stream reserved, and its place among those that wait.
    fn stop_sending(&mut self, id: u32) {
        let Some(stream) = self.streams.find_mut(id) else {
            return;
        };
        let reserved = stream.send.unreserve();
        self.send.unreserve_part(reserved);
        if std::mem::take(&mut stream.waiting) == Waiting::Turn {
            self.turns.retain(|other| *other != id);
        }
    }

    /// The peer has sent END_STREAM.
    fn end_remote(&mut self, id: u32) {
        if let Some(stream) = self.streams.find_mut(id)
            && stream.state.can_receive()
        {
            stream.state = stream.state.end_remote();
            self.receiving_count -= 1;
        }
    }

    // === windows that are given back ===

    /// Whoever receives the body of a stream has taken `bytes` of it: the peer may send as many
    /// again. Also for a stream that was closed meanwhile.
    pub fn give_back(&mut self, stream: StreamId, bytes: usize) {
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        if let Some(found) = self.streams.find_mut(stream.0) {
            let bytes = bytes.min(found.receive.held());
            found.receive.give_back(bytes);
            self.receive.give_back(bytes);
            self.update_window(stream.0);
        }
    }

    /// Notes that a window update is due for a stream, if one is worth it.
    fn update_window(&mut self, id: u32) {
        let target = self.settings.window_bytes(self.receiving_count);
        if let Some(stream) = self.streams.find_mut(id)
            && !stream.is_update_due
            && stream.state.can_receive()
            && stream.receive.credit(target) > 0
        {
            stream.is_update_due = true;
            self.updates.push(id);
        }
    }

    /// The window of the whole connection: as large as can be, for streams are limited one by one.
    /// Before the peer has acknowledged our smaller windows for streams, it is all that limits it.
    fn window_target(&self) -> u32 {
        if self.is_acknowledged {
            STREAM_ID_MAX
        } else {
            WINDOW_BYTES_AT_FIRST
        }
    }

    // === ends ===

    /// Ends the connection because of a rule that the peer broke.
    fn fail(&mut self, error: H2Error) {
        self.error = Some(error);
        self.counters.connection_errors += 1;
        self.glitch();
        self.go_away(error.code());
    }

    /// What must hold between two calls. Asked in builds with assertions only.
    fn check_invariants(&self) {
        if cfg!(debug_assertions) {
            let streams = || self.streams.iter();
            let receiving = streams()
                .filter(|stream| stream.state.can_receive())
                .count();
            assert_eq!(receiving, self.receiving_count as usize);
            let promised: i64 = streams().map(|stream| stream.send.promised()).sum();
            assert_eq!(
                promised,
                self.send.promised(),
                "each promise is of both windows"
            );
            let held: u64 = streams()
                .map(|stream| u64::from(stream.receive.held()))
                .sum();
            assert_eq!(held, u64::from(self.receive.held()));
            let waiting = streams()
                .filter(|stream| stream.waiting == Waiting::Turn)
                .count();
            assert_eq!(waiting, self.turns.len());
            let due = streams().filter(|stream| stream.is_update_due).count();
            assert_eq!(due, self.updates.len());
        }
    }

    fn glitch(&mut self) {
        self.counters.glitches = self.counters.glitches.saturating_add(1);
    }
}
