//! TLS sessions and certificates.
//!
//! Versions, suites and groups are IANA's numbers: the samples turn them into OpenSSL's names.

use super::Side;

/// A TLS session with one side, or the beginning of one that failed. `None` is what is not known,
/// or not there.
pub trait TlsSessionFacts {
    /// The version (`ssl_fc_protocol`).
    fn version(&self) -> Option<u16>;

    /// The cipher suite (`ssl_fc_cipher`).
    fn cipher(&self) -> Option<u16>;

    /// The group of the key exchange (`ssl_fc_curve`).
    fn group(&self) -> Option<u16>;

    /// The protocol that ALPN brought (`ssl_fc_alpn`).
    fn protocol(&self) -> Option<&[u8]>;

    /// The name that the client sent (`ssl_fc_sni`).
    fn server_name(&self) -> Option<&[u8]>;

    /// The session is a former one (`ssl_fc_is_resumed`).
    fn is_resumed(&self) -> bool;

    /// The client sent data before the handshake was over (`ssl_fc_early_rcvd`).
    fn received_early_data(&self) -> bool {
        false
    }

    /// It did, and the handshake is not over (`ssl_fc_has_early`).
    fn has_early_data(&self) -> bool {
        false
    }

    /// What names the session (`ssl_fc_session_id`).
    fn session_id(&self) -> Option<&[u8]>;

    /// The random bytes of a hello (`ssl_fc_client_random`).
    fn random(&self, of: Side) -> Option<&[u8]>;

    /// A secret by its label in a key log, as bytes; `None` without `tune.ssl.keylog`.
    fn secret(&self, label: &str) -> Option<&[u8]>;

    /// A certificate.
    fn certificate(&self, whose: CertificateOwner) -> Option<&dyn CertificateFacts>;

    /// The certificates that the peer sent with this handshake, its own first, one after the other
    /// (`ssl_c_chain_der`).
    fn peer_chain(&self, each: &mut dyn FnMut(&[u8]));

    /// What the check of the peer's certificate found (`ssl_c_err`).
    fn verification(&self) -> PeerVerification {
        PeerVerification::default()
    }

    /// What went wrong (`ssl_fc_err`).
    fn error(&self) -> TlsError {
        TlsError::default()
    }

    /// What the client offered; `None` without `tune.ssl.capture-buffer-size`.
    fn hello(&self) -> Option<HelloFacts<'_>> {
        None
    }
}

/// Whose certificate is meant.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum CertificateOwner {
    /// The one that we show (`ssl_f_*`).
    Us,
    /// The one that the other side shows (`ssl_c_*`, `ssl_s_*`).
    Peer,
    /// The root that the peer's was traced to (`ssl_c_r_dn`).
    PeerRoot,
}

/// A certificate (RFC 5280). Texts are OpenSSL's.
pub trait CertificateFacts {
    /// All of it, DER.
    fn der(&self) -> &[u8];

    /// Its version: 1 to 3.
    fn version(&self) -> i64;

    /// The bytes of its serial number.
    fn serial(&self) -> &[u8];

    /// When it begins to be valid: `YYMMDDhhmmssZ`.
    fn not_before(&self) -> &str;

    /// When it ends to be valid.
    fn not_after(&self) -> &str;

    /// The name of the algorithm of its signature.
    fn signature_algorithm(&self) -> &str;

    /// The name of the algorithm of its key.
    fn key_algorithm(&self) -> &str;

    /// The `subjectAltName`s, separated by commas.
    fn alternative_names(&self) -> Option<&[u8]>;

    /// Something of the subject's name.
    fn subject(&self, part: NamePart<'_>) -> Option<&[u8]>;

    /// Something of the issuer's name.
    fn issuer(&self, part: NamePart<'_>) -> Option<&[u8]>;
}

/// What is wanted of a distinguished name.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum NamePart<'a> {
    /// All of it: `/C=FR/CN=name`.
    Whole,
    /// All of it as RFC 2253 writes it: `CN=name,C=FR`.
    Rfc2253,
    /// The value of an entry.
    Entry {
        /// Its short name (`CN`), in any case, or its number (`2.5.4.3`).
        name: &'a str,
        /// Which of several: from 1, or from -1 backwards.
        occurrence: i64,
    },
}

/// What the check of the peer's certificate found, in the numbers of OpenSSL's `X509_V_ERR_*`.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct PeerVerification {
    /// The result (`ssl_c_verify`), kept with the session; `None` until the handshake is over.
    pub result: Option<i64>,
    /// The first error of the certificate itself in this handshake (`ssl_c_err`).
    pub leaf_error: i64,
    /// The first error above it in this handshake (`ssl_c_ca_err`).
    pub authority_error: i64,
    /// How far above it that was (`ssl_c_ca_err_depth`).
    pub authority_depth: i64,
}

/// An error in OpenSSL's terms.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct TlsError {
    /// Its number with the library's in front; 0 for none.
    pub number: u32,
    /// Its reason.
    pub reason: &'static str,
}

/// The lists of a ClientHello, as the client wrote them and without their lengths, cut to
/// `tune.ssl.capture-buffer-size`.
#[derive(Clone, Copy, Debug, Default)]
pub struct HelloFacts<'f> {
    /// The version in its head.
    pub version: u16,
    /// All cipher suites, whatever fits.
    pub all_ciphers: &'f [u8],
    /// The cipher suites.
    pub ciphers: &'f [u8],
    /// The numbers of the extensions.
    pub extensions: &'f [u8],
    /// The groups.
    pub groups: &'f [u8],
    /// The formats of points.
    pub point_formats: &'f [u8],
    /// The versions.
    pub versions: &'f [u8],
    /// The signature schemes.
    pub signature_schemes: &'f [u8],
}
