//! Which certificate, and with which TLS settings? All of TLS that is a decision: the ClientHello, names,
//! ciphers, certificates and the lists they stand in.
//!
//! Nothing here opens a file or a socket or reads a clock. The content of files comes through
//! [`files::CertificateFileReader`], bytes of a connection as a slice, the time through rustls's `TimeProvider`.
//! Handshakes and records are rustls's, carried by `transport`.
//!
//! A bind line is a [`bind::BindCertificates`]: entries of certificates ([`store`]) with their
//! filters ([`names`]) and TLS settings ([`server_config`]). Its `choose` answers a
//! [`hello::ClientHello`] with the configuration for `rustls::server::Accepted::into_connection`.
//! A `server` line is a [`client_config::ServerTlsSettings`]. Certificates of either side are judged by
//! [`verifier`], and who may resume a session is decided in [`tickets`].

pub mod authorities;
pub mod bind;
pub mod capture;
pub mod certificate;
pub mod certificate_file_changes;
pub mod ciphers;
pub mod client_config;
pub mod client_verifier;
pub mod context;
mod der;
pub mod describe;
pub mod details;
pub mod files;
pub mod handed_over;
pub mod hello;
pub mod hidden_name;
pub mod names;
pub mod ocsp;
pub mod ocsp_details;
pub mod ocsp_request;
pub mod ocsp_schedule;
pub mod openssl_error;
mod openssl_form;
pub mod options;
pub mod pem;
mod pkcs8;
pub mod server_config;
pub mod shared_store;
mod signatures;
pub mod store;
pub mod store_transaction;
pub mod tickets;
mod trust_remarks;
pub mod verifier;
pub mod verify_error;
mod x509;

/// The library that speaks TLS, for the rooms that hold its connections.
pub use rustls;

#[cfg(test)]
mod testing;
