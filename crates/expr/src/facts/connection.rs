//! Connections and where they come in.

use std::net::SocketAddr;

use super::TlsSessionFacts;

/// The two ends of a way. `None` where there is no address, as with unix sockets.
#[derive(Clone, Copy, Debug, Default)]
pub struct AddressPair<'f> {
    /// Who connected.
    pub source: Option<&'f SocketAddr>,
    /// What was connected to.
    pub destination: Option<&'f SocketAddr>,
}

/// A connection, the client's or the server's.
pub trait ConnectionFacts {
    /// The ends of the connection itself (`fc_src`, `bc_dst`).
    fn address_pair(&self) -> AddressPair<'_>;

    /// Its TLS session, if it carries TLS (`ssl_fc_cipher`).
    fn tls(&self) -> Option<&dyn TlsSessionFacts> {
        None
    }

    /// It carries TLS (`ssl_fc`, `ssl_bc`).
    fn is_tls(&self) -> bool {
        self.tls().is_some()
    }

    /// It carried exchanges before this one (`bc_reused`).
    fn is_reused(&self) -> bool {
        false
    }

    /// A PROXY header came over it (`fc_rcvd_proxy`).
    fn received_proxy_header(&self) -> bool {
        false
    }

    /// The first value of a type, among the values of the PROXY header that came over it, from an index
    /// on: 0, or the one that came with the value before (`fc_pp_tlv`).
    fn next_proxy_value(&self, _value_type: u8, _index: usize) -> Option<(&[u8], usize)> {
        None
    }

    /// It is, or was, established; one that is being opened, or could not be, is not (`bc_err`).
    fn is_established(&self) -> bool {
        true
    }

    /// What the system measured of it (`fc_rtt`). Asking costs a system call; `None` where it is not
    /// TCP, or is closed.
    fn tcp(&self) -> Option<TcpFacts> {
        None
    }

    /// What went wrong with it (`fc_err`).
    fn error(&self) -> ConnectionError {
        ConnectionError::default()
    }
}

/// What the system measured of a TCP connection (`TCP_INFO`).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct TcpFacts {
    /// The round trip time, in microseconds (`fc_rtt`).
    pub rtt_us: u32,
    /// Its variance, in microseconds (`fc_rttvar`).
    pub rtt_variance_us: u32,
    /// Packets that are not acknowledged (`fc_unacked`).
    pub unacked: u32,
    /// Packets acknowledged ahead of others (`fc_sacked`).
    pub sacked: u32,
    /// Packets that are being sent again (`fc_retrans`).
    pub retransmits: u32,
    /// Packets acknowledged ahead of others, as old kernels count (`fc_fackets`).
    pub fackets: u32,
    /// Packets that the system takes for lost (`fc_lost`).
    pub lost: u32,
    /// How far packets were seen out of order (`fc_reordering`).
    pub reordering: u32,
}

/// An exchange as part of its connection: one of several with protocols that have streams.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct StreamFacts {
    /// Its number there (`fs.id`): with HTTP/1, exchanges before it.
    pub id: i64,
    /// The peer has aborted it and kept the connection (`fs.aborted`).
    pub aborted: bool,
    /// The code with which the peer aborted it (`fs.rst_code`).
    pub reset_code: Option<i64>,
    /// Exchanges on the connection now (`fc_nb_streams`).
    pub count: i64,
    /// The most that the connection may carry side by side (`fc_settings_streams_limit`).
    pub count_max: i64,
    /// Small violations of the protocol, where the protocol counts them (`fc_glitches`).
    pub glitches: Option<i64>,
    /// The version of HTTP; `None` where it is not HTTP (`bc_http_major`).
    pub http_major: Option<u8>,
}

impl StreamFacts {
    /// An exchange that has its connection for itself: HTTP/1, or no HTTP at all.
    pub const fn alone(id: i64, http_major: Option<u8>) -> StreamFacts {
        StreamFacts {
            id,
            aborted: false,
            reset_code: None,
            count: 1,
            count_max: 1,
            glitches: None,
            http_major,
        }
    }
}

/// What went wrong with a connection (manual 7.3.3, "fc_err_str").
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ConnectionError {
    /// Its number; 0 for nothing (`fc_err`).
    pub number: i64,
    /// Its name; empty for nothing (`fc_err_name`).
    pub name: &'static str,
    /// Its text (`fc_err_str`).
    pub text: &'static str,
}

impl ConnectionError {
    /// The peer has reset the connection.
    pub const RESET: ConnectionError = ConnectionError {
        number: 47,
        name: "ERESET",
        text: "ECONNRESET returned by OS",
    };
}

impl Default for ConnectionError {
    /// Nothing.
    fn default() -> Self {
        Self {
            number: 0,
            name: "",
            text: "Success",
        }
    }
}

/// A bind line.
pub trait ListenerFacts {
    /// Its name (`so_name`).
    fn name(&self) -> Option<&str> {
        None
    }

    /// Its number (`so_id`).
    fn id(&self) -> i64;

    /// Its connections now (`dst_conn`).
    fn connections(&self) -> i64 {
        0
    }
}
