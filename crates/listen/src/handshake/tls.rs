//! The TLS handshake of a bind line with `ssl`.

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use ballast_tls::bind::BindChoice;
use ballast_tls::context::BindContext;
use ballast_tls::hello::{
    BrokenHello, ClientHello, HELLO_RAW_BYTES_MAX, HelloOutcome, parse_client_hello,
};
use ballast_tls::hidden_name::hide_server_name;
use ballast_tls::openssl_error::{
    BAD_EXTENSION, CALLBACK_FAILED, DATA_LENGTH_TOO_LONG, EXCESSIVE_MESSAGE_SIZE, LENGTH_MISMATCH,
    OpensslError, UNEXPECTED_MESSAGE, WRONG_VERSION_NUMBER,
};
use ballast_tls::rustls::server::UnbufferedServerConnection;
use ballast_tls::rustls::{AlertDescription, Error, ServerConfig};
use ballast_tls::server_config::HandshakeTlsSettings;
use ballast_tls::verifier::PeerVerdict;
use ballast_tls::verify_error::VerifyError;
use ballast_transport::{HandshakeFailure, SecretKeeper, TlsFacts, Transport};
use ballast_worker::ThreadPool;

use super::{ClientTls, EstablishedConnection, HandshakeError, HandshakeRefusal, Handshakes};

/// The server's side of a handshake.
type ServerHandshake = ballast_transport::Handshake<UnbufferedServerConnection>;

/// Alerts that are sent before rustls has a configuration to work with (RFC 8446, 6.2).
#[derive(Clone, Copy, Debug)]
enum Alert {
    UnexpectedMessage = 10,
    DecodeError = 50,
    UnrecognizedName = 112,
}

/// The types of TLS records: RFC 8446, section 5.1.
const RECORD_TYPES: RangeInclusive<u8> = 20..=23;

/// TLS 1.2, as hellos write it.
const TLS_1_2: u16 = 0x0303;

/// How much is read at once.
const READ_BYTES: usize = 4096;

/// Makes the handshake: reads the ClientHello, chooses a certificate and its TLS settings, and leaves the
/// rest to the transport.
///
/// # Errors
/// Why the connection must be closed.
pub(crate) async fn accept(
    connection: EstablishedConnection,
    context: &BindContext,
    handshakes: Handshakes<'_>,
) -> Result<EstablishedConnection, HandshakeRefusal> {
    let EstablishedConnection {
        transport,
        read_ahead: mut bytes,
        proxied,
        inserted,
        ..
    } = connection;
    let limits = handshakes.limits;
    let (choice, mut session, offer) = loop {
        match parse_client_hello(&bytes) {
            HelloOutcome::Complete(hello) => {
                let session = ClientTls::begin(&hello, limits.capture_bytes);
                let certificates = context.certificates();
                match certificates.and_then(|certificates| certificates.choose(&hello)) {
                    Some(choice) => break (choice, session, HelloOffer::of(&hello)),
                    None => {
                        let alert = Alert::UnrecognizedName;
                        return Err(refuse(&transport, alert, session, CALLBACK_FAILED));
                    }
                }
            }
            HelloOutcome::Incomplete if bytes.len() < HELLO_RAW_BYTES_MAX => {}
            HelloOutcome::NotTls(found) => {
                let Some(error) = OpensslError::of_first_bytes(&bytes) else {
                    receive(&transport, &mut bytes).await?;
                    continue;
                };
                let session = ClientTls::default();
                // As with OpenSSL, a client that speaks no TLS gets no alert.
                if found.offset > 0 || !RECORD_TYPES.contains(&found.byte) {
                    return Err(refusal(session, error));
                }
                return Err(refuse(&transport, Alert::UnexpectedMessage, session, error));
            }
            HelloOutcome::Incomplete => {
                let (alert, session) = (Alert::DecodeError, ClientTls::default());
                return Err(refuse(&transport, alert, session, EXCESSIVE_MESSAGE_SIZE));
            }
            HelloOutcome::Broken(why) => {
                let (alert, session) = (Alert::DecodeError, ClientTls::default());
                return Err(refuse(&transport, alert, session, error_of(why)));
            }
        }
        receive(&transport, &mut bytes).await?;
    };
    let Ok(socket) = transport.into_clear() else {
        // A bind line has one TLS handshake.
        return Err(HandshakeError::Tls.into());
    };
    let BindChoice {
        tls_settings,
        certificate,
        ..
    } = choice;
    let key_threads = handshakes
        .key_threads
        .and_then(|keys| keys.of(&certificate));
    session.certificate = Some(certificate);
    let handshake = begin(
        &tls_settings,
        &offer,
        limits.keeps_secrets,
        key_threads,
        &mut bytes,
    );
    session.verification = tls_settings.verification;
    let made = match handshake {
        Ok(handshake) => handshake.run(socket, bytes).await,
        Err(error) => Err(error.into()),
    };
    match made {
        Ok((transport, facts)) => {
            if let Some(counters) = handshakes.counters {
                counters.count_handshake(facts.is_resumed);
            }
            verify_resumed(&session, &facts);
            session.facts = Some(facts);
            Ok(EstablishedConnection {
                transport,
                read_ahead: Vec::new(),
                proxied,
                inserted,
                tls: Some(Box::new(session)),
            })
        }
        Err(failure) => Err(HandshakeRefusal {
            error: note_failure(&failure, &offer, &mut session),
            tls: Some(Box::new(session)),
            proxied: None,
            inserted: None,
        }),
    }
}

/// Why a handshake failed; what OpenSSL says of it is noted.
fn note_failure(
    failure: &HandshakeFailure,
    offer: &HelloOffer,
    session: &mut ClientTls,
) -> HandshakeError {
    match failure {
        HandshakeFailure::Closed { .. } => HandshakeError::Tls,
        HandshakeFailure::Left => HandshakeError::TlsClosed,
        HandshakeFailure::Tls(Error::AlertReceived(AlertDescription::CloseNotify))
            if offer.version_max > TLS_1_2 =>
        {
            HandshakeError::TlsClosed
        }
        HandshakeFailure::Tls(error) => {
            session.error = Some(OpensslError::of_handshake(error, offer.version_max));
            refusal_of(session.verdict())
        }
    }
}

/// What of a ClientHello is asked for later.
#[derive(Clone, Copy, Debug)]
struct HelloOffer {
    version_max: u16,
    may_resume: bool,
}

impl HelloOffer {
    fn of(hello: &ClientHello<'_>) -> Self {
        Self {
            version_max: hello.version_max(),
            may_resume: hello.may_resume(),
        }
    }
}

/// Begins the handshake with the hello, which is taken where it was used.
///
/// With a key that signs on other threads, a session is resumed here, where that needs no signature:
/// it does not wait behind the handshakes that do.
fn begin(
    tls_settings: &HandshakeTlsSettings,
    offer: &HelloOffer,
    keeps_secrets: bool,
    key_threads: Option<Arc<ThreadPool>>,
    hello: &mut Vec<u8>,
) -> Result<ServerHandshake, Error> {
    if tls_settings.hides_name {
        // It is complete.
        hide_server_name(hello);
    }
    let server = || {
        let config = Arc::clone(&tls_settings.config);
        let server = ballast_transport::Handshake::server(keep_secrets(config, keeps_secrets))?;
        Ok(match tls_settings.hides_name {
            true => server.filter_second_hello(hide_server_name),
            false => server,
        })
    };
    let Some(key_threads) = key_threads else {
        return server();
    };
    if offer.may_resume {
        let config = keep_secrets(tls_settings.without_signature(), keeps_secrets);
        if let Some(handshake) = ballast_transport::Handshake::resuming(config, hello) {
            hello.clear();
            return Ok(handshake);
        }
    }
    Ok(server()?.sign_on(key_threads))
}

/// A resumed session has the client's certificates, and not what was found of them.
fn verify_resumed(session: &ClientTls, facts: &TlsFacts) {
    if facts.is_resumed
        && let Some(verification) = &session.verification
        && let Some(chain) = &facts.peer_certificates
    {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = now.map_or(0, |since| since.as_secs());
        verification.verify_resumed(chain, i64::try_from(now).unwrap_or(i64::MAX));
    }
}

/// The configuration of a handshake whose secrets are kept, where they are.
fn keep_secrets(mut config: Arc<ServerConfig>, keeps_secrets: bool) -> Arc<ServerConfig> {
    if keeps_secrets {
        Arc::make_mut(&mut config).key_log = Arc::new(SecretKeeper);
    }
    config
}

/// Why a handshake failed that this verdict came to.
fn refusal_of(verdict: Option<PeerVerdict>) -> HandshakeError {
    match verdict {
        Some(verdict) if verdict.is_refused && verdict.error != VerifyError::OK => {
            HandshakeError::TlsUntrusted
        }
        Some(verdict) if verdict.is_refused => HandshakeError::TlsUntrustedAuthority,
        _ => HandshakeError::Tls,
    }
}

/// What OpenSSL says of a hello that cannot be read.
fn error_of(why: BrokenHello) -> OpensslError {
    match why {
        BrokenHello::Record => WRONG_VERSION_NUMBER,
        BrokenHello::LongRecord => DATA_LENGTH_TOO_LONG,
        BrokenHello::OtherMessage { .. } => UNEXPECTED_MESSAGE,
        BrokenHello::TooLong => EXCESSIVE_MESSAGE_SIZE,
        BrokenHello::Length => LENGTH_MISMATCH,
        BrokenHello::Extensions => BAD_EXTENSION,
    }
}

/// Receives more of the ClientHello.
async fn receive(transport: &Transport, bytes: &mut Vec<u8>) -> Result<(), HandshakeError> {
    let have = bytes.len();
    bytes.resize(have + READ_BYTES, 0);
    let read = transport.read(&mut bytes[have..]).await;
    bytes.truncate(have + read.as_ref().copied().unwrap_or(0));
    match read {
        Ok(0) => Err(HandshakeError::TlsClosed),
        Err(_) => Err(HandshakeError::Tls),
        Ok(_) => Ok(()),
    }
}

/// Sends an alert, in a record of TLS 1.2 as every version does at this point.
fn refuse(
    transport: &Transport,
    alert: Alert,
    session: ClientTls,
    error: OpensslError,
) -> HandshakeRefusal {
    const FATAL: u8 = 2;
    // A client that does not read gets no alert.
    let _ = transport.try_write(&[21, 3, 3, 0, 2, FATAL, alert as u8]);
    refusal(session, error)
}

fn refusal(session: ClientTls, error: OpensslError) -> HandshakeRefusal {
    HandshakeRefusal {
        error: HandshakeError::Tls,
        tls: Some(Box::new(ClientTls {
            error: Some(error),
            ..session
        })),
        proxied: None,
        inserted: None,
    }
}
