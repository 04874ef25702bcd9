//! Server names in a ClientHello that are no names of DNS: `app:443`, `a..b`, `access-`.
//!
//! OpenSSL leaves it to its user what a name means, so HAProxy looks it up as it is, and serves the
//! default certificate where nothing matches. rustls ends the handshake at such a name, before anybody is
//! asked. So it gets the hello with another number in place of `server_name`'s, of an extension that it
//! does not know and passes over: for rustls the client sent no name. Both sides prove to each other that
//! they saw the same hello, so every hash over it must be made of what the client sent: the suites of
//! such a handshake hash with the number put back (`RestoringHash`), and so does the check of a client's
//! signature in TLS 1.2, which is one over the messages themselves (`restore`).
//!
//! Other handshakes know nothing of this. A hello that has the other number itself is left as it is.

use std::borrow::Cow;
use std::sync::LazyLock;

use rustls::crypto::hash::{Context, Hash, HashAlgorithm, Output};
use rustls::pki_types::ServerName;
use rustls::{CipherSuiteCommon, SupportedCipherSuite, Tls12CipherSuite, Tls13CipherSuite};

use crate::ciphers::{default_ciphers, default_ciphersuites};
use crate::hello::{ClientHello, HelloOutcome, extension, parse_client_hello};

/// What stands for `server_name` while rustls reads the hello: a number for private use (RFC 8446, 11).
const HIDDEN_NAME: u16 = 0xffb1;
/// The longest name that OpenSSL takes.
const NAME_BYTES_MAX: usize = 255;

const RECORD_HEADER_BYTES: usize = 5;
const RECORD_PAYLOAD_BYTES_MAX: usize = 1 << 14;
const CONTENT_CHANGE_CIPHER_SPEC: u8 = 20;
const CONTENT_HANDSHAKE: u8 = 22;
const CONTENT_APPLICATION_DATA: u8 = 23;
const MESSAGE_HEADER_BYTES: usize = 4;
const MESSAGE_CLIENT_HELLO: u8 = 1;
const RANDOM_BYTES: usize = 32;

/// True where rustls would end the handshake at this name, and OpenSSL would not.
pub(crate) fn is_hidden(name: &[u8]) -> bool {
    ServerName::try_from(name).is_err()
        && (1..=NAME_BYTES_MAX).contains(&name.len())
        && !name.contains(&0)
}

/// Hides the name of the hello that these records begin with, where rustls would end the handshake
/// at it. False when more bytes are needed: nothing is changed then. What is no hello is left as it is.
pub fn hide_server_name(records: &mut Vec<u8>) -> bool {
    // Before the second hello may come what keeps old boxes on the way content, and early data (RFC
    // 8446, D.4 and 4.2.10).
    let start = skip_records(records, 0, |_, content| {
        matches!(
            content,
            CONTENT_CHANGE_CIPHER_SPEC | CONTENT_APPLICATION_DATA
        )
    });
    let hello = match parse_client_hello(&records[start..]) {
        HelloOutcome::Complete(hello) => hello,
        HelloOutcome::Incomplete => return false,
        HelloOutcome::NotTls(_) | HelloOutcome::Broken(_) => return true,
    };
    let end = start + hello.raw_bytes();
    if hello.server_name().is_some_and(is_hidden)
        && skip_records(records, start, |at, _| at < end) == end
        && let Some(hidden) = with_hidden_name(&hello)
    {
        records.splice(start..end, hidden);
    }
    true
}

/// The end of the whole records from `at` on that `is_skipped` says of: it gets place and type.
fn skip_records(records: &[u8], mut at: usize, is_skipped: impl Fn(usize, u8) -> bool) -> usize {
    while let Some([content, _, _, high, low]) = records.get(at..at + RECORD_HEADER_BYTES) {
        let end = at + RECORD_HEADER_BYTES + usize::from(u16::from_be_bytes([*high, *low]));
        if end > records.len() || !is_skipped(at, *content) {
            break;
        }
        at = end;
    }
    at
}

/// The hello in records, with the other number.
fn with_hidden_name(hello: &ClientHello<'_>) -> Option<Vec<u8>> {
    let mut message = hello.to_message();
    if extension_at(&message, HIDDEN_NAME).is_some() {
        return None;
    }
    let at = extension_at(&message, extension::SERVER_NAME)?;
    message[at..at + 2].copy_from_slice(&HIDDEN_NAME.to_be_bytes());
    let mut records = Vec::with_capacity(message.len() + 2 * RECORD_HEADER_BYTES);
    for payload in message.chunks(RECORD_PAYLOAD_BYTES_MAX) {
        records.push(CONTENT_HANDSHAKE);
        records.extend(hello.record_version().to_be_bytes());
        records.extend(u16::try_from(payload.len()).ok()?.to_be_bytes());
        records.extend(payload);
    }
    Some(records)
}

/// Messages of a handshake as the client sent them: with the number of `server_name` in its place.
/// The last one may lack its end, as a hello does that a key of before is bound to (RFC 8446, 4.2.11.2).
pub fn restore(messages: &[u8]) -> Cow<'_, [u8]> {
    let mut restored = Cow::Borrowed(messages);
    let mut at = 0;
    while let Some([message_type, high, middle, low]) = messages.get(at..at + MESSAGE_HEADER_BYTES)
    {
        let length = u32::from_be_bytes([0, *high, *middle, *low]) as usize;
        let end = at + MESSAGE_HEADER_BYTES + length;
        let message = &messages[at..end.min(messages.len())];
        if *message_type == MESSAGE_CLIENT_HELLO
            && let Some(place) = extension_at(message, HIDDEN_NAME)
        {
            let number = extension::SERVER_NAME.to_be_bytes();
            restored.to_mut()[at + place..][..2].copy_from_slice(&number);
        }
        at = end;
    }
    restored
}

/// Where an extension's number stands in a ClientHello, which may lack its end.
fn extension_at(message: &[u8], wanted: u16) -> Option<usize> {
    let byte = |at: usize| message.get(at).copied().map(usize::from);
    let number = |at: usize| Some(byte(at)? << 8 | byte(at + 1)?);
    let mut at = MESSAGE_HEADER_BYTES + 2 + RANDOM_BYTES;
    at += 1 + byte(at)?; // session id
    at += 2 + number(at)?; // cipher suites
    at += 1 + byte(at)?; // compression methods
    at += 2; // the length of all extensions
    while number(at)? != usize::from(wanted) {
        at += 4 + number(at + 2)?;
    }
    Some(at)
}

/// A hash over the messages that the client sent, made of those that rustls was given.
struct RestoringHash(&'static dyn Hash);

impl Hash for RestoringHash {
    fn start(&self) -> Box<dyn Context> {
        Box::new(RestoringContext(self.0.start()))
    }

    fn hash(&self, data: &[u8]) -> Output {
        self.0.hash(&restore(data))
    }

    fn output_len(&self) -> usize {
        self.0.output_len()
    }

    fn algorithm(&self) -> HashAlgorithm {
        self.0.algorithm()
    }
}

/// rustls adds whole messages, or a hello without its end.
struct RestoringContext(Box<dyn Context>);

impl Context for RestoringContext {
    fn fork_finish(&self) -> Output {
        self.0.fork_finish()
    }

    fn fork(&self) -> Box<dyn Context> {
        Box::new(Self(self.0.fork()))
    }

    fn finish(self: Box<Self>) -> Output {
        self.0.finish()
    }

    fn update(&mut self, data: &[u8]) {
        self.0.update(&restore(data));
    }
}

/// The same suites, with hashes that put the number back.
pub(crate) fn restoring(suites: &[SupportedCipherSuite]) -> Vec<SupportedCipherSuite> {
    let of = |suite: &SupportedCipherSuite| {
        let mut all = RESTORING_SUITES.iter();
        all.find(|known| known.suite() == suite.suite()).copied()
    };
    suites.iter().filter_map(of).collect()
}

/// All suites there are. rustls takes references that live as long as the process.
static RESTORING_SUITES: LazyLock<Vec<SupportedCipherSuite>> = LazyLock::new(|| {
    let all = [default_ciphersuites(), default_ciphers()].concat();
    all.into_iter().map(restoring_suite).collect()
});

fn restoring_suite(suite: SupportedCipherSuite) -> SupportedCipherSuite {
    let common = |common: &CipherSuiteCommon| CipherSuiteCommon {
        hash_provider: Box::leak(Box::new(RestoringHash(common.hash_provider))),
        ..*common
    };
    match suite {
        SupportedCipherSuite::Tls12(suite) => {
            SupportedCipherSuite::Tls12(Box::leak(Box::new(Tls12CipherSuite {
                common: common(&suite.common),
                ..*suite
            })))
        }
        SupportedCipherSuite::Tls13(suite) => {
            SupportedCipherSuite::Tls13(Box::leak(Box::new(Tls13CipherSuite {
                common: common(&suite.common),
                ..*suite
            })))
        }
    }
}

#[cfg(test)]
mod tests;
