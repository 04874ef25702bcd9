//! What is kept of a TLS handshake with a client.

use std::sync::Arc;

use ballast_tls::capture::{HelloCapture, HelloLists};
use ballast_tls::certificate::Certificate;
use ballast_tls::client_verifier::ClientVerification;
use ballast_tls::hello::ClientHello;
use ballast_tls::openssl_error::OpensslError;
use ballast_tls::verifier::PeerVerdict;
use ballast_transport::TlsFacts;

/// A TLS session with a client, or as much of one as there was when its handshake failed.
#[derive(Debug, Default)]
pub struct ClientTls {
    /// What both sides agreed on; `None` after a failure.
    pub facts: Option<TlsFacts>,
    /// The name that the client sent.
    pub server_name: Option<Box<[u8]>>,
    /// What the client offered, where `tune.ssl.capture-buffer-size` has it kept.
    pub hello: Option<HelloCapture>,
    /// The certificate that was chosen.
    pub certificate: Option<Arc<Certificate>>,
    /// The check of the client's certificate, where one was asked for.
    pub verification: Option<Arc<ClientVerification>>,
    /// Why it failed.
    pub error: Option<OpensslError>,
}

impl ClientTls {
    /// What the check of the client's certificate found; `None` where it showed none in this
    /// handshake.
    #[must_use]
    pub fn verdict(&self) -> Option<PeerVerdict> {
        self.verification.as_ref()?.verdict()
    }

    /// A session of which the ClientHello is known; at most `capture_bytes` of it are kept.
    pub(super) fn begin(hello: &ClientHello<'_>, capture_bytes: usize) -> Self {
        Self {
            server_name: hello.server_name().map(Into::into),
            hello: (capture_bytes > 0).then(|| capture(hello, capture_bytes)),
            ..Self::default()
        }
    }
}

fn capture(hello: &ClientHello<'_>, bytes_max: usize) -> HelloCapture {
    let numbers = |numbers: &mut dyn Iterator<Item = u16>| -> Vec<u8> {
        numbers.flat_map(u16::to_be_bytes).collect()
    };
    let lists = HelloLists {
        version: hello.legacy_version(),
        ciphers: hello.cipher_list(),
        extensions: &numbers(&mut hello.extensions().map(|(number, _)| number)),
        groups: hello.group_list(),
        point_formats: hello.point_formats(),
        versions: &numbers(&mut hello.supported_versions()),
        signature_schemes: hello.signature_algorithm_list().unwrap_or_default(),
    };
    HelloCapture::new(&lists, bytes_max)
}
