//! The numbers of an exchange, as log lines print them.

use super::Time;

/// Numbers about one exchange that log lines print. Times are milliseconds, -1 when the event
/// never came (manual 8.4).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ExchangeNumbers {
    /// When the connection was accepted (`%t`, `%T`, `%Ts`, `%ms`).
    pub accepted: Time,
    /// When the first byte of the request came (`%tr`).
    pub requested: Time,
    /// `%Th`: handshakes.
    pub handshake_ms: i64,
    /// `%Ti`: idle before the request.
    pub idle_ms: i64,
    /// `%TR`: receiving the request.
    pub request_ms: i64,
    /// `%Tw`: waiting in queues.
    pub queue_ms: i64,
    /// `%Tc`: connecting to the server.
    pub connect_ms: i64,
    /// `%Tr`: waiting for the response.
    pub response_ms: i64,
    /// `%Td`: transferring the data.
    pub data_ms: i64,
    /// `%Ta`: the exchange from the first byte of the request.
    pub active_ms: i64,
    /// `%Tt`: the session from the accept on.
    pub total_ms: i64,
    /// `%Tu`: what the client waited, without the idle time before the request.
    pub user_ms: i64,
    /// `%U`: bytes from the client to the server.
    pub bytes_in: u64,
    /// `%B`: bytes from the server to the client.
    pub bytes_out: u64,
    /// `%ST`: status given to the client; -1 when none was.
    pub status: i32,
    /// `%ts` and the rest of `%tsc`: the four letters of the termination state.
    pub termination: [u8; 4],
    /// `%rc`: connection retries.
    pub retries: u32,
    /// The last retry went to another server (`%rc` is then prefixed by `+`).
    pub redispatched: bool,
    /// `option logasap`: totals are not final and are prefixed by `+`.
    pub asap: bool,
    /// `%ac`: connections of the process.
    pub process_connections: u64,
    /// `%fc`: connections of the frontend.
    pub frontend_connections: u64,
    /// `%bc`: connections of the backend.
    pub backend_connections: u64,
    /// `%sc`: connections of the server.
    pub server_connections: u64,
    /// `%sq`: requests before this one in the server's queue.
    pub server_queue: u64,
    /// `%bq`: requests before this one in the backend's queue.
    pub backend_queue: u64,
    /// `%lc`: log lines of the frontend.
    pub log_counter: u64,
    /// `%rt`, `txn.id32`: the request's, or the session's, number in the process.
    pub request_counter: u64,
}

impl Default for ExchangeNumbers {
    fn default() -> ExchangeNumbers {
        ExchangeNumbers::UNKNOWN
    }
}

impl ExchangeNumbers {
    /// Those of what is no exchange.
    pub(crate) const UNKNOWN: ExchangeNumbers = ExchangeNumbers {
        accepted: Time { secs: 0, micros: 0 },
        requested: Time { secs: 0, micros: 0 },
        handshake_ms: 0,
        idle_ms: -1,
        request_ms: -1,
        queue_ms: -1,
        connect_ms: -1,
        response_ms: -1,
        data_ms: 0,
        active_ms: 0,
        total_ms: 0,
        user_ms: 0,
        bytes_in: 0,
        bytes_out: 0,
        status: -1,
        termination: *b"----",
        retries: 0,
        redispatched: false,
        asap: false,
        process_connections: 0,
        frontend_connections: 0,
        backend_connections: 0,
        server_connections: 0,
        server_queue: 0,
        backend_queue: 0,
        log_counter: 0,
        request_counter: 0,
    };

    /// `%Tq`: `Th + Ti + TR`, -1 when the request was never complete.
    pub fn tq_ms(&self) -> i64 {
        if self.request_ms < 0 {
            return -1;
        }
        self.handshake_ms + self.idle_ms.max(0) + self.request_ms
    }
}
