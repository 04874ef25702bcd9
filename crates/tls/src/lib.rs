//! Which certificate, and on which terms? All of TLS that is a decision: the ClientHello, names,
//! ciphers, certificates and the lists they stand in.
//!
//! Nothing here opens a file or a socket or reads a clock. The content of files comes through
//! [`files::Files`], bytes of a connection as a slice, the time through rustls's `TimeProvider`.
//! Handshakes and records are rustls's, carried by `transport`.
//!
//! A bind line is a [`bind::BindCertificates`]: entries of certificates ([`store`]) with their
//! filters ([`names`]) and terms ([`server_config`]). Its `choose` answers a
//! [`hello::ClientHello`] with the configuration for `rustls::server::Accepted::into_connection`.

pub mod bind;
pub mod certificate;
pub mod ciphers;
pub mod crt_list;
pub mod files;
pub mod hello;
pub mod names;
pub mod options;
pub mod pem;
pub mod server_config;
pub mod store;

/// The library that speaks TLS, for the rooms that hold its connections.
pub use rustls;

#[cfg(test)]
mod testing;
