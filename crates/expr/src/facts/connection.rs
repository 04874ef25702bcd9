//! Connections and where they come in.

use std::net::SocketAddr;

/// The two ends of a way. `None` where there is no address, as with unix sockets.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ends<'f> {
    /// Who connected.
    pub source: Option<&'f SocketAddr>,
    /// What was connected to.
    pub destination: Option<&'f SocketAddr>,
}

/// A connection, the client's or the server's.
pub trait ConnectionFacts {
    /// The ends of the connection itself (`fc_src`, `bc_dst`).
    fn ends(&self) -> Ends<'_>;

    /// It carries TLS (`ssl_fc`, `ssl_bc`).
    fn is_tls(&self) -> bool {
        false
    }

    /// It carried exchanges before this one (`bc_reused`).
    fn is_reused(&self) -> bool {
        false
    }

    /// A PROXY header came over it (`fc_rcvd_proxy`).
    fn received_proxy_header(&self) -> bool {
        false
    }

    /// What went wrong with it: number and text (`fc_err`, `fc_err_str`).
    fn error(&self) -> (i64, &'static str) {
        (0, "Success")
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
