//! What expressions may ask of the world: the one door between the language and the traffic.

use std::net::{IpAddr, SocketAddr};

use ballast_message::{Request, Response};

use crate::value::Value;
use crate::vars::VarName;

/// A point in time: seconds and microseconds since 1970, UTC.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub struct Time {
    /// Whole seconds.
    pub secs: i64,
    /// Microseconds within the second, below 1,000,000.
    pub micros: u32,
}

/// What is counted of a backend.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum BackendCount {
    /// Average queue length per usable server (`avg_queue`).
    AverageQueue,
    /// Current connections (`be_conn`).
    Connections,
    /// Connections that the usable servers can still take (`be_conn_free`), -1 for no bound.
    ConnectionsFree,
    /// Connection and queue slots left (`connslots`), -1 for no bound.
    Slots,
    /// Requests waiting in the backend's and its servers' queues (`queue`).
    Queue,
    /// Sessions in the last second (`be_sess_rate`).
    SessionRate,
    /// Usable servers (`nbsrv`).
    UsableServers,
}

/// What is counted of a frontend.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum FrontendCount {
    /// Current connections (`fe_conn`).
    Connections,
    /// Requests in the last second (`fe_req_rate`).
    RequestRate,
    /// Sessions in the last second (`fe_sess_rate`).
    SessionRate,
}

/// What is counted of a server.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ServerCount {
    /// Current connections (`srv_conn`).
    Connections,
    /// Connections it can still take (`srv_conn_free`), -1 for no bound.
    ConnectionsFree,
    /// Initial weight (`srv_iweight`).
    InitialWeight,
    /// 1 when it may be used (`srv_is_up`), 0 otherwise.
    IsUp,
    /// Requests in its queue (`srv_queue`).
    Queue,
    /// Sessions in the last second (`srv_sess_rate`).
    SessionRate,
    /// The weight as the operator set it (`srv_uweight`).
    UserWeight,
    /// The weight as used now (`srv_weight`).
    Weight,
}

/// Numbers about one exchange that log lines print. Times are milliseconds, -1 when the event
/// never came (manual 8.4).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Record {
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
    /// `%rt`: requests or sessions of the process.
    pub request_counter: u64,
}

impl Default for Record {
    fn default() -> Record {
        Record {
            accepted: Time::default(),
            requested: Time::default(),
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
        }
    }
}

impl Record {
    /// `%Tq`: `Th + Ti + TR`, -1 when the request was never complete.
    pub fn tq_ms(&self) -> i64 {
        if self.request_ms < 0 {
            return -1;
        }
        self.handshake_ms + self.idle_ms.max(0) + self.request_ms
    }
}

/// What an expression may ask. Everything has an answer "not known" by default, so that an
/// implementation gives what it has.
///
/// An empty proxy name means the current one.
pub trait Facts {
    /// Now.
    fn now(&self) -> Time;

    /// A random number.
    fn random(&self) -> u64;

    /// Seconds that local time is ahead of UTC at `_secs`.
    fn utc_offset_secs(&self, _secs: i64) -> i32 {
        0
    }

    /// The request's head, while it is known.
    fn request(&self) -> Option<&Request> {
        None
    }

    /// The response's head, while it is known.
    fn response(&self) -> Option<&Response> {
        None
    }

    /// The rules being evaluated are those of the response: words without a direction of their
    /// own (`hdr`, `cookie`) then mean the response.
    fn is_response_side(&self) -> bool {
        false
    }

    /// What is buffered of the request: all of it in TCP mode, the body in HTTP mode.
    fn request_data(&self) -> Option<&[u8]> {
        None
    }

    /// What is buffered of the response.
    fn response_data(&self) -> Option<&[u8]> {
        None
    }

    /// The client ends its request with what is buffered.
    fn request_data_complete(&self) -> bool {
        false
    }

    /// This is the first request of its connection.
    fn is_first_request(&self) -> bool {
        true
    }

    /// The client's address, as `set-src` left it. `None` over a unix socket.
    fn source(&self) -> Option<SocketAddr> {
        None
    }

    /// The address the client connected to, as `set-dst` left it.
    fn destination(&self) -> Option<SocketAddr> {
        None
    }

    /// The client's address on the connection itself.
    fn connection_source(&self) -> Option<SocketAddr> {
        self.source()
    }

    /// The destination on the connection itself.
    fn connection_destination(&self) -> Option<SocketAddr> {
        self.destination()
    }

    /// Our address towards the server.
    fn server_source(&self) -> Option<SocketAddr> {
        None
    }

    /// The server's address.
    fn server_destination(&self) -> Option<SocketAddr> {
        None
    }

    /// Whether the address is one of this machine's.
    fn is_local(&self, _address: IpAddr) -> bool {
        false
    }

    /// The client came over TLS.
    fn is_client_tls(&self) -> bool {
        false
    }

    /// The server is reached over TLS.
    fn is_server_tls(&self) -> bool {
        false
    }

    /// The connection to the server was used before.
    fn is_server_connection_reused(&self) -> bool {
        false
    }

    /// What went wrong with the client's connection: number and text (`fc_err`, `fc_err_str`).
    fn client_error(&self) -> (i64, &'static str) {
        (0, "Success")
    }

    /// The client takes us for its proxy, and is asked for credentials as proxies ask
    /// (`option http-use-proxy-header`).
    fn asks_as_proxy(&self) -> bool {
        false
    }

    /// A PROXY header came.
    fn received_proxy_header(&self) -> bool {
        false
    }

    /// The frontend's name.
    fn frontend_name(&self) -> Option<&str> {
        None
    }

    /// The frontend's number.
    fn frontend_id(&self) -> Option<i64> {
        None
    }

    /// The name of the frontend's default backend.
    fn default_backend_name(&self) -> Option<&str> {
        None
    }

    /// The backend's name once it is chosen.
    fn backend_name(&self) -> Option<&str> {
        None
    }

    /// The backend's number once it is chosen.
    fn backend_id(&self) -> Option<i64> {
        None
    }

    /// The server's name once it is chosen.
    fn server_name(&self) -> Option<&str> {
        None
    }

    /// The server's number once it is chosen.
    fn server_id(&self) -> Option<i64> {
        None
    }

    /// The service that answered in place of a server (`<STATS>`).
    fn applet_name(&self) -> Option<&str> {
        None
    }

    /// The name of the bind line (`so_name`).
    fn listener_name(&self) -> Option<&str> {
        None
    }

    /// The number of the bind line (`so_id`).
    fn listener_id(&self) -> Option<i64> {
        None
    }

    /// Connections on the bind line (`dst_conn`).
    fn listener_connections(&self) -> Option<i64> {
        None
    }

    /// A figure of a backend; `None` when it does not exist.
    fn backend_count(&self, _backend: &str, _what: BackendCount) -> Option<i64> {
        None
    }

    /// A figure of a frontend; `None` when it does not exist.
    fn frontend_count(&self, _frontend: &str, _what: FrontendCount) -> Option<i64> {
        None
    }

    /// A figure of a server; `None` when it does not exist.
    fn server_count(&self, _backend: &str, _server: &str, _what: ServerCount) -> Option<i64> {
        None
    }

    /// A variable.
    fn var(&self, _name: &VarName) -> Option<Value<'_>> {
        None
    }

    /// An environment variable of the process.
    fn env(&self, _name: &str) -> Option<&[u8]> {
        None
    }

    /// The machine's name.
    fn hostname(&self) -> &str {
        ""
    }

    /// The process's number.
    fn pid(&self) -> i64 {
        0
    }

    /// The worker's number, from 0.
    fn thread(&self) -> i64 {
        0
    }

    /// The process is stopping.
    fn is_stopping(&self) -> bool {
        false
    }

    /// Seconds since the process started.
    fn uptime_secs(&self) -> i64 {
        0
    }

    /// Connections of the process (`act_conn`).
    fn process_connections(&self) -> i64 {
        0
    }

    /// The unique id of the exchange, when one was made.
    fn unique_id(&self) -> Option<&[u8]> {
        None
    }

    /// How many request captures the frontend declares.
    fn request_captures(&self) -> usize {
        0
    }

    /// What request capture `_slot` holds.
    fn request_capture(&self, _slot: usize) -> Option<&[u8]> {
        None
    }

    /// How many response captures the frontend declares.
    fn response_captures(&self) -> usize {
        0
    }

    /// What response capture `_slot` holds.
    fn response_capture(&self, _slot: usize) -> Option<&[u8]> {
        None
    }

    /// The cookie captured from the request (`%CC`), `name=value`.
    fn request_cookie_capture(&self) -> Option<&[u8]> {
        None
    }

    /// The cookie captured from the response (`%CS`), `name=value`.
    fn response_cookie_capture(&self) -> Option<&[u8]> {
        None
    }

    /// The request line kept for the log (`%r`): method, URI and version as received.
    fn request_line(&self) -> Option<&[u8]> {
        None
    }

    /// Why the log line is written (`%OG`).
    fn log_origin(&self) -> &str {
        "unspec"
    }

    /// Numbers about the exchange; `None` outside of one.
    fn record(&self) -> Option<&Record> {
        None
    }
}
