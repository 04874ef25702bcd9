//! The side of TLS that a server has: its configuration, and what was negotiated.

use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use rustls::client::verify_server_name;
use rustls::crypto::aws_lc_rs;
use rustls::server::{
    ClientHello, NoServerSessionStorage, ParsedCertificate, ResolvesServerCert,
    ServerSessionMemoryCache, WebPkiClientVerifier,
};
use rustls::sign::CertifiedKey;
use rustls::{
    HandshakeKind, ProtocolVersion, RootCertStore, ServerConfig, SupportedProtocolVersion, version,
};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::common_name::common_name;

/// How many sessions are kept with `--tls-resume ids`.
const SESSION_COUNT_MAX: usize = 100_000;

/// How sessions are resumed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Resume {
    /// The client keeps them, in tickets.
    Tickets,
    /// The server keeps them.
    Ids,
    /// They are not.
    Never,
}

/// The options of the command line, for the servers that follow them.
#[derive(Clone, Debug)]
pub(crate) struct TlsOptions {
    /// Files of certificates, and of their keys where these are elsewhere.
    certificates: Vec<(PathBuf, Option<PathBuf>)>,
    client_authorities: Option<PathBuf>,
    versions: Vec<&'static SupportedProtocolVersion>,
    resume: Resume,
    protocols: Vec<Vec<u8>>,
}

impl Default for TlsOptions {
    fn default() -> Self {
        Self {
            certificates: Vec::new(),
            client_authorities: None,
            versions: vec![&version::TLS13, &version::TLS12],
            resume: Resume::Tickets,
            protocols: vec![b"h2".to_vec(), b"http/1.1".to_vec()],
        }
    }
}

impl TlsOptions {
    /// Takes one option; false when it is none of these.
    ///
    /// # Errors
    ///
    /// What is wrong with it.
    pub(crate) fn take(
        &mut self,
        option: &str,
        mut value: impl FnMut() -> Result<String, String>,
    ) -> Result<bool, String> {
        let wants = |what: &str, given: &str| Err(format!("{option} {given}: wants {what}"));
        match option {
            "--tls-cert" => self.certificates.push((value()?.into(), None)),
            "--tls-key" => match self.certificates.last_mut() {
                Some((_, key)) => *key = Some(value()?.into()),
                None => return Err("--tls-key stands behind its --tls-cert".to_owned()),
            },
            "--tls-client-ca" => self.client_authorities = Some(value()?.into()),
            "--tls-version" => {
                self.versions = match value()?.as_str() {
                    "1.2" => vec![&version::TLS12],
                    "1.3" => vec![&version::TLS13],
                    other => return wants("1.2 or 1.3", other),
                };
            }
            "--tls-alpn" => {
                let list = value()?;
                self.protocols = list.split(',').map(|word| word.trim().into()).collect();
                self.protocols.retain(|word| !word.is_empty());
            }
            "--tls-resume" => {
                self.resume = match value()?.as_str() {
                    "tickets" => Resume::Tickets,
                    "ids" => Resume::Ids,
                    "never" => Resume::Never,
                    other => return wants("tickets, ids or never", other),
                };
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// The configuration of a server; none when it has no certificate and is clear.
    ///
    /// # Errors
    ///
    /// What is wrong with a file.
    pub(crate) fn configuration(&self) -> Result<Option<Arc<ServerConfig>>, String> {
        if self.certificates.is_empty() {
            return Ok(None);
        }
        let provider = Arc::new(aws_lc_rs::default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(&self.versions)
            .map_err(|error| error.to_string())?;
        let builder = match &self.client_authorities {
            Some(path) => {
                let roots = Arc::new(roots(path)?);
                let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider);
                builder.with_client_cert_verifier(verifier.build().map_err(|e| wrong(path, &e))?)
            }
            None => builder.with_no_client_auth(),
        };
        let keys: Result<_, _> = self.certificates.iter().map(certified_key).collect();
        let mut config = builder.with_cert_resolver(Arc::new(CertificatesByName(keys?)));
        config.alpn_protocols.clone_from(&self.protocols);
        match self.resume {
            Resume::Tickets => {
                config.ticketer = aws_lc_rs::Ticketer::new().map_err(|error| error.to_string())?;
            }
            Resume::Ids => {
                config.session_storage = ServerSessionMemoryCache::new(SESSION_COUNT_MAX);
            }
            Resume::Never => {
                config.session_storage = Arc::new(NoServerSessionStorage {});
                config.send_tls13_tickets = 0;
            }
        }
        Ok(Some(Arc::new(config)))
    }
}

fn wrong(path: &Path, error: &dyn std::fmt::Display) -> String {
    format!("{}: {error}", path.display())
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let found = CertificateDer::pem_file_iter(path).map_err(|error| wrong(path, &error))?;
    let found: Result<Vec<_>, _> = found.collect();
    match found {
        Ok(found) if found.is_empty() => Err(wrong(path, &"no certificate")),
        found => found.map_err(|error| wrong(path, &error)),
    }
}

fn roots(path: &Path) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path)? {
        roots
            .add(certificate)
            .map_err(|error| wrong(path, &error))?;
    }
    Ok(roots)
}

fn certified_key(files: &(PathBuf, Option<PathBuf>)) -> Result<Arc<CertifiedKey>, String> {
    let (path, key) = (&files.0, files.1.as_ref().unwrap_or(&files.0));
    let chain = certificates(path)?;
    let key = PrivateKeyDer::from_pem_file(key).map_err(|error| wrong(key, &error))?;
    let provider = aws_lc_rs::default_provider();
    let certified = CertifiedKey::from_der(chain, key, &provider);
    certified.map(Arc::new).map_err(|error| wrong(path, &error))
}

/// The certificates of a server, in the order of the command line.
#[derive(Debug)]
struct CertificatesByName(Vec<Arc<CertifiedKey>>);

impl ResolvesServerCert for CertificatesByName {
    /// The first that covers the name and whose key the client understands; else the first that
    /// it understands.
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let name = hello
            .server_name()
            .and_then(|name| ServerName::try_from(name).ok());
        let covers = |key: &CertifiedKey| {
            let parsed = key.end_entity_cert().and_then(ParsedCertificate::try_from);
            match (&name, parsed) {
                (Some(name), Ok(certificate)) => verify_server_name(&certificate, name).is_ok(),
                _ => false,
            }
        };
        let schemes = hello.signature_schemes();
        let usable = || {
            let keys = self.0.iter();
            keys.filter(|key| key.key.choose_scheme(schemes).is_some())
        };
        usable()
            .find(|key| covers(key))
            .or_else(|| usable().next())
            .cloned()
    }
}

/// A client's connection, clear or over TLS.
#[derive(Debug)]
pub(crate) enum Stream {
    Clear(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

impl Stream {
    /// Makes the handshake, if the server is over TLS.
    ///
    /// # Errors
    ///
    /// Errors of the connection and of the handshake.
    pub(crate) async fn accept(
        socket: TcpStream,
        tls: Option<&Arc<ServerConfig>>,
    ) -> io::Result<Self> {
        let Some(config) = tls else {
            return Ok(Self::Clear(socket));
        };
        let acceptor = TlsAcceptor::from(Arc::clone(config));
        let stream = acceptor.accept(socket).await?;
        Ok(Self::Tls(Box::new(stream)))
    }

    /// The socket, when what is written to it is what the client reads.
    pub(crate) fn as_clear(&self) -> Option<&TcpStream> {
        match self {
            Self::Clear(socket) => Some(socket),
            Self::Tls(_) => None,
        }
    }

    /// Sends what is written at once, however little it is.
    pub(crate) fn set_nodelay(&self) {
        let socket = match self {
            Self::Clear(socket) => socket,
            Self::Tls(stream) => stream.get_ref().0,
        };
        // This fails only on a closed socket, which the next write will report.
        let _ = socket.set_nodelay(true);
    }

    /// Lets the end of the connection be a reset instead of an end.
    pub(crate) fn reset_on_close(&self) {
        let socket = match self {
            Self::Clear(socket) => socket,
            Self::Tls(stream) => stream.get_ref().0,
        };
        // This fails only on a closed socket, where nothing is left to do.
        let _ = socket.set_zero_linger();
    }

    /// What was negotiated, a line each; an empty value where there is none.
    pub(crate) fn negotiated(&self) -> String {
        let Self::Tls(stream) = self else {
            return "clear\n".to_owned();
        };
        let connection = stream.get_ref().1;
        let version = match connection.protocol_version() {
            Some(ProtocolVersion::TLSv1_2) => "TLSv1.2",
            Some(ProtocolVersion::TLSv1_3) => "TLSv1.3",
            _ => "",
        };
        let suite = connection.negotiated_cipher_suite();
        let suite = suite.and_then(|suite| suite.suite().as_str());
        let group = connection.negotiated_key_exchange_group();
        let group = group.and_then(|group| group.name().as_str());
        let resumed = connection.handshake_kind() == Some(HandshakeKind::Resumed);
        let alpn = connection.alpn_protocol().unwrap_or_default();
        let client = connection.peer_certificates().and_then(<[_]>::first);
        let client = client.and_then(|certificate| common_name(certificate));
        let mut text = String::new();
        for (name, value) in [
            ("sni", connection.server_name().unwrap_or_default()),
            ("version", version),
            // The library's names differ from the standards' in TLS 1.3 only.
            (
                "cipher",
                &suite.unwrap_or_default().replace("TLS13_", "TLS_"),
            ),
            ("group", group.unwrap_or_default()),
            ("resumed", if resumed { "1" } else { "0" }),
            ("alpn", &String::from_utf8_lossy(alpn)),
            ("client", &client.unwrap_or_default()),
        ] {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{name}: {value}");
        }
        text
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Clear(socket) => Pin::new(socket).poll_read(cx, buffer),
            Self::Tls(stream) => Pin::new(stream).poll_read(cx, buffer),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Clear(socket) => Pin::new(socket).poll_write(cx, bytes),
            Self::Tls(stream) => Pin::new(stream).poll_write(cx, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Clear(socket) => Pin::new(socket).poll_flush(cx),
            Self::Tls(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Clear(socket) => Pin::new(socket).poll_shutdown(cx),
            Self::Tls(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}
