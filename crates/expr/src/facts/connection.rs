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

    /// A value of the PROXY header that came over it, by its type and its place among those of that
    /// type, from 0 (`fc_pp_tlv`).
    fn proxy_value(&self, _value_type: u8, _place: usize) -> Option<&[u8]> {
        None
    }

    /// What went wrong with it (`fc_err`).
    fn error(&self) -> ConnectionError {
        ConnectionError::default()
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
