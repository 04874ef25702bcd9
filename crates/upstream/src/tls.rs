//! The TLS handshake with a server.

use std::sync::Arc;

use ballast_engine::Server;
use ballast_tls::client_config::server_name;
use ballast_tls::rustls::pki_types::ServerName;
use ballast_tls::rustls::{CertificateError, ClientConfig, Error};
use ballast_transport::{Handshake, HandshakeFailure, SecretKeeper, TlsFacts, Transport};
use ballast_worker::{Stream, worker_index};

/// A handshake with a server, ready to run.
pub(crate) struct ServerHandshake<'a> {
    server: &'a Server,
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
    /// The protocols to offer (ALPN); those of the configuration when `None`.
    protocols: Option<Vec<Vec<u8>>>,
}

impl<'a> ServerHandshake<'a> {
    /// The handshake of a connection that sends the name `sni`.
    ///
    /// # Errors
    /// The server has no configuration, or the name cannot be sent and would have to be verified.
    pub(crate) fn new(server: &'a Server, sni: Option<&[u8]>) -> Result<Self, HandshakeFailure> {
        let config = server.tls.as_ref().and_then(|tls| tls.config());
        let config = config.ok_or_else(|| Error::General("no configuration".to_owned()))?;
        let verifies = server.model.tls.as_ref().is_none_or(|line| line.verify);
        Ok(Self {
            server,
            config,
            name: server_name(sni, verifies)?,
            protocols: None,
        })
    }

    /// Offers these protocols.
    pub(crate) fn offer(mut self, protocols: Option<&[String]>) -> Self {
        let bytes = |name: &String| name.as_bytes().to_vec();
        self.protocols = protocols.map(|names| names.iter().map(bytes).collect());
        self
    }

    /// Whether the server is sent a name.
    pub(crate) fn sends_name(&self) -> bool {
        matches!(self.name, ServerName::DnsName(_))
    }

    /// The configuration.
    pub(crate) fn config(&self) -> &Arc<ClientConfig> {
        &self.config
    }

    /// Makes the handshake, and counts it. The end of its last flight leaves with the first bytes that are sent.
    ///
    /// # Errors
    /// [`HandshakeFailure`].
    pub(crate) async fn run(
        self,
        socket: Stream,
    ) -> Result<(Transport, TlsFacts), HandshakeFailure> {
        let Self {
            server,
            mut config,
            name,
            protocols,
        } = self;
        let line = server.model.tls.as_ref();
        if line.is_some_and(|line| line.keeps_secrets) {
            Arc::make_mut(&mut config).key_log = Arc::new(SecretKeeper);
        }
        let handshake = match protocols {
            None => Handshake::client(config, name)?,
            Some(protocols) => Handshake::client_offering(config, name, protocols)?,
        };
        let made = handshake.run(socket, Vec::new()).await;
        let (counters, worker) = (&server.tls_counters, worker_index().unwrap_or(0));
        match &made {
            Ok((_, facts)) => counters.count_handshake(worker, facts.is_resumed),
            Err(_) => counters.count_failed_handshake(worker),
        }
        made
    }
}

/// Whether a handshake failed because the certificate is for another name.
pub(crate) fn is_other_name(failure: &HandshakeFailure) -> bool {
    matches!(
        failure,
        HandshakeFailure::Tls(Error::InvalidCertificate(
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
        ))
    )
}

/// HAProxy's text for a handshake that failed, `is_named` where a name was sent.
pub(crate) fn failure_text(failure: &HandshakeFailure, is_named: bool) -> &'static str {
    match is_other_name(failure) {
        true if is_named => "Server presented an SSL certificate different from the expected one",
        true => "Server presented an SSL certificate different from the configured one",
        false => "SSL handshake failure",
    }
}

#[cfg(test)]
mod tests;
