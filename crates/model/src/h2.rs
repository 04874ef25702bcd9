//! HTTP/2: what `tune.h2.*` says of its connections.

/// `tune.h2.*`, and what the global section says of WebSocket over HTTP/2.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct H2Tuning {
    /// Connections of clients: `tune.h2.fe.*`.
    pub front: H2SideTuning,
    /// Connections to servers: `tune.h2.be.*`.
    pub back: H2SideTuning,
    /// `tune.h2.fe.max-rst-at-once`: RST_STREAM frames of a client received in one turn; 0 is no
    /// limit.
    pub reset_count_max: u32,
    /// `tune.h2.fe.max-total-streams`: streams of a client's connection in all; 0 is no limit.
    pub stream_total_max: u32,
    /// `tune.h2.header-table-size`, in bytes; 4096 by default.
    pub header_table_bytes: u32,
    /// `tune.h2.initial-window-size`, in bytes, for both sides; follows `tune.bufsize` when `None`.
    pub window_bytes: Option<u32>,
    /// `tune.h2.max-concurrent-streams`, for both sides: 100 by default, 0 is no limit.
    pub stream_count_max: u32,
    /// `tune.h2.max-frame-size`, in bytes; `tune.bufsize` when `None`, and never more.
    pub frame_bytes: Option<u32>,
    /// `tune.h2.log-errors`.
    pub logged_errors: H2LoggedErrors,
    /// False after `h2-workaround-bogus-websocket-clients`: clients are not offered WebSocket over
    /// HTTP/2 (RFC 8441), and servers are not told that it is known.
    pub offers_websocket: bool,
}

/// What `tune.h2.fe.*` and `tune.h2.be.*` both have.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct H2SideTuning {
    /// `glitches-threshold`: odd frames until the connection ends; 0 is no limit.
    pub glitch_count_max: u32,
    /// `initial-window-size`, in bytes; [`H2Tuning::window_bytes`] when `None`.
    pub window_bytes: Option<u32>,
    /// `max-concurrent-streams`; [`H2Tuning::stream_count_max`] when `None`.
    pub stream_count_max: Option<u32>,
    /// `max-frames-at-once`: frames received in one turn; 0 is no limit.
    pub frame_count_max: u32,
    /// `rxbuf`, in bytes; 100 buffers of `tune.bufsize` when `None`.
    pub receive_bytes: Option<u32>,
}

/// `tune.h2.log-errors`: which breaches of the protocol are logged.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum H2LoggedErrors {
    /// `none`.
    None,
    /// `connection`: those that end the connection.
    Connection,
    /// `stream`, the default: also those that end a stream.
    #[default]
    Stream,
}

/// `ws`: the protocol in which WebSocket goes to a server.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum WebsocketProtocol {
    /// `auto`, the default: HTTP/1, except over connections that can only be of HTTP/2.
    #[default]
    Auto,
    /// `h1`.
    Http1,
    /// `h2`.
    Http2,
}

impl Default for H2Tuning {
    fn default() -> Self {
        Self {
            front: H2SideTuning::default(),
            back: H2SideTuning::default(),
            reset_count_max: 0,
            stream_total_max: 0,
            header_table_bytes: 4096,
            window_bytes: None,
            stream_count_max: 100,
            frame_bytes: None,
            logged_errors: H2LoggedErrors::default(),
            offers_websocket: true,
        }
    }
}
