//! Keys of session tickets (manual, 5.1, `tls-ticket-keys`), and who may resume what.
//!
//! A ticket is sealed for a *context*: a digest of all that decides whether a client is let in
//! (the verifier, its authorities and revocation lists). Where bind lines share keys, a session
//! made on an open one is no session for one that wants client certificates. The server name is
//! part of the session itself: rustls compares it. One that is hidden from rustls ([`crate::hidden_name`])
//! is part of the context.
//!
//! The file's bytes are HAProxy's; what is sealed is rustls's session, so tickets go from Ballast
//! to Ballast only. The first 16 bytes of a key name it, the others are stretched to a key for
//! AES-256-GCM-SIV, which survives a nonce that chance repeats.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use arc_swap::ArcSwap;
use aws_lc_rs::aead::{AES_256_GCM_SIV, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use aws_lc_rs::digest::{Context, SHA256};
use aws_lc_rs::hkdf::{HKDF_SHA256, Salt};
use aws_lc_rs::rand;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustls::server::{ProducesTickets, StoresServerSessions};
use rustls::time_provider::TimeProvider;

use crate::files::ContentDigest;

/// The keys that are kept (HAProxy's TLS_TICKETS_NO).
pub const TICKET_KEYS: usize = 3;
/// The bytes of a key for AES-128 and for AES-256.
const KEY_BYTES: [usize; 2] = [48, 80];
const NAME_BYTES: usize = 16;
const TAG_BYTES: usize = 16;
const TIME_BYTES: usize = 8;
/// What stands before the session in a ticket.
const BEFORE_SESSION_BYTES: usize = NAME_BYTES + NONCE_LEN;
/// The longest session that is kept here, bytes: ten of HAProxy's blocks (manual,
/// "tune.ssl.cachesize").
const SESSION_BYTES_MAX: usize = 2048;
/// The longest ticket (RFC 5077, 3.3; RFC 8446, 4.6.1): its length has two bytes.
const TICKET_BYTES_MAX: usize = 65_535;
const HKDF_SALT: &[u8] = b"ballast session ticket";

/// The digest of what decides whether a client is let in.
pub type ResumptionContext = [u8; 32];

/// Why ticket keys are refused. The operator is at fault.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum TicketKeyError {
    /// A line is not base64.
    Base64 {
        /// Its number, from 1.
        line: usize,
    },
    /// A key has neither 48 nor 80 bytes.
    Length {
        /// The number of its line, from 1.
        line: usize,
        /// Its bytes.
        bytes: usize,
    },
    /// A key is not as long as the first one.
    Mixed {
        /// The number of its line, from 1.
        line: usize,
    },
    /// Fewer than three keys.
    TooFew {
        /// How many.
        count: usize,
    },
}

impl fmt::Display for TicketKeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Base64 { line } => write!(f, "unable to decode base64 key on line {line}"),
            Self::Length { line, bytes } => {
                write!(
                    f,
                    "wrong sized key on line {line}: {bytes} bytes, 48 or 80 are needed"
                )
            }
            Self::Mixed { line } => write!(
                f,
                "wrong sized key on line {line}: keys of 48 and of 80 bytes cannot be mixed, the \
                 first one decides"
            ),
            Self::TooFew { count } => {
                write!(
                    f,
                    "please supply at least {TICKET_KEYS} keys, {count} found"
                )
            }
        }
    }
}

/// One key, as it was given and as it is used.
struct TicketKey {
    given: Box<[u8]>,
    cipher: LessSafeKey,
}

impl TicketKey {
    fn new(given: &[u8], line: usize) -> Result<Self, TicketKeyError> {
        let length = TicketKeyError::Length {
            line,
            bytes: given.len(),
        };
        if !KEY_BYTES.contains(&given.len()) {
            return Err(length);
        }
        let mut key = [0; 32];
        let stretched = Salt::new(HKDF_SHA256, HKDF_SALT).extract(&given[NAME_BYTES..]);
        let name = [&given[..NAME_BYTES]];
        let filled = stretched.expand(&name, HKDF_SHA256);
        filled
            .and_then(|okm| okm.fill(&mut key))
            .map_err(|_| length)?;
        let cipher = UnboundKey::new(&AES_256_GCM_SIV, &key).map_err(|_| length)?;
        Ok(Self {
            given: given.into(),
            cipher: LessSafeKey::new(cipher),
        })
    }

    fn name(&self) -> &[u8] {
        &self.given[..NAME_BYTES]
    }
}

/// The keys of one `tls-ticket-keys` file, or random ones. The oldest first: all decrypt, the last
/// but one encrypts, so that every node knows a key before a ticket is sealed with it.
///
/// All bind lines that name a file share its keys.
pub struct TicketKeys {
    keys: ArcSwap<VecDeque<Arc<TicketKey>>>,
    /// The digest of the keys that the file had when it was last read.
    of_file: ArcSwap<ContentDigest>,
}

/// Keys are never shown.
impl fmt::Debug for TicketKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TicketKeys({})", self.keys.load().len())
    }
}

impl TicketKeys {
    /// Reads a file: a key a line, in base64. The last three are kept.
    ///
    /// # Errors
    ///
    /// [`TicketKeyError`].
    pub fn read(content: &[u8]) -> Result<Self, TicketKeyError> {
        let mut keys = VecDeque::with_capacity(TICKET_KEYS);
        let mut count = 0;
        let mut first_bytes = 0;
        let lines = content.split(|byte| *byte == b'\n').count();
        for (line, text) in (1..).zip(content.split(|byte| *byte == b'\n')) {
            let text = text.strip_suffix(b"\r").unwrap_or(text);
            // What follows the end of the last line.
            if text.is_empty() && line == lines {
                continue;
            }
            let given = STANDARD
                .decode(text)
                .map_err(|_| TicketKeyError::Base64 { line })?;
            let key = TicketKey::new(&given, line)?;
            if count > 0 && given.len() != first_bytes {
                return Err(TicketKeyError::Mixed { line });
            }
            first_bytes = given.len();
            count += 1;
            if keys.len() == TICKET_KEYS {
                keys.pop_front();
            }
            keys.push_back(Arc::new(key));
        }
        if count < TICKET_KEYS {
            return Err(TicketKeyError::TooFew { count });
        }
        Ok(Self::of(keys))
    }

    /// Random keys: what a bind line without `tls-ticket-keys` has.
    ///
    /// # Panics
    ///
    /// Where the system has no random numbers: nothing can be encrypted then.
    #[must_use]
    pub fn random() -> Self {
        let key = |_| {
            let mut given = [0; KEY_BYTES[1]];
            rand::fill(&mut given).expect("the system has random numbers");
            Arc::new(TicketKey::new(&given, 1).expect("80 bytes are a key"))
        };
        Self::of((0..TICKET_KEYS).map(key).collect())
    }

    fn of(keys: VecDeque<Arc<TicketKey>>) -> Self {
        Self {
            of_file: ArcSwap::from_pointee(digest(&keys)),
            keys: ArcSwap::from_pointee(keys),
        }
    }

    /// The digest of the keys that the file had when it was last read or written.
    #[must_use]
    pub fn of_file(&self) -> ContentDigest {
        **self.of_file.load()
    }

    /// Whether a command changed what the file has.
    #[must_use]
    pub fn is_changed(&self) -> bool {
        self.of_file() != digest(&self.keys.load())
    }

    /// The text of a file with these keys, and its digest. Secret.
    #[must_use]
    pub fn file(&self) -> (String, ContentDigest) {
        let keys = self.keys.load();
        let lines = keys.iter().map(|key| STANDARD.encode(&key.given) + "\n");
        (lines.collect(), digest(&keys))
    }

    /// The file was read again or written, and has keys with this digest.
    pub fn note_of_file(&self, digest: ContentDigest) {
        self.of_file.store(Arc::new(digest));
    }

    /// Whether both have the same keys now.
    #[must_use]
    pub fn has_same_keys(&self, other: &Self) -> bool {
        digest(&self.keys.load()) == digest(&other.keys.load())
    }

    /// Adds the next key (`set ssl tls-key`): the oldest is forgotten, the last one until now
    /// encrypts from now on.
    ///
    /// # Errors
    ///
    /// [`TicketKeyError`]; the line is 1.
    pub fn push(&self, base64: &str) -> Result<(), TicketKeyError> {
        let given = STANDARD
            .decode(base64.trim())
            .map_err(|_| TicketKeyError::Base64 { line: 1 })?;
        let key = Arc::new(TicketKey::new(&given, 1)?);
        if self.keys.load()[0].given.len() != given.len() {
            return Err(TicketKeyError::Mixed { line: 1 });
        }
        // Another command may push at the same time: both keys are kept.
        self.keys.rcu(|keys| {
            let mut keys = VecDeque::clone(keys);
            keys.pop_front();
            keys.push_back(Arc::clone(&key));
            keys
        });
        Ok(())
    }

    /// The keys in base64, the oldest first: what `show tls-keys` prints, and the next process
    /// gets. Secret.
    #[must_use]
    pub fn reveal(&self) -> Vec<String> {
        self.keys
            .load()
            .iter()
            .map(|key| STANDARD.encode(&key.given))
            .collect()
    }

    /// Seals a session for a context. `None` where that fails: the client gets no ticket.
    #[must_use]
    pub fn encrypt(&self, context: &ResumptionContext, plain: &[u8]) -> Option<Vec<u8>> {
        self.encrypt_parts(context, [plain, &[]])
    }

    /// As [`Self::encrypt`], of two parts that follow each other.
    fn encrypt_parts(&self, context: &ResumptionContext, parts: [&[u8]; 2]) -> Option<Vec<u8>> {
        let keys = self.keys.load();
        let key = keys.get(keys.len().checked_sub(2)?)?;
        let mut nonce = [0; NONCE_LEN];
        rand::fill(&mut nonce).ok()?;
        let length = BEFORE_SESSION_BYTES + parts[0].len() + parts[1].len() + TAG_BYTES;
        if length > TICKET_BYTES_MAX {
            return None;
        }
        let mut ticket = Vec::with_capacity(length);
        ticket.extend_from_slice(key.name());
        ticket.extend_from_slice(&nonce);
        ticket.extend_from_slice(parts[0]);
        ticket.extend_from_slice(parts[1]);
        let aad = Aad::from(aad(key, context));
        let nonce = Nonce::assume_unique_for_key(nonce);
        let session = &mut ticket[BEFORE_SESSION_BYTES..];
        let sealed = key.cipher.seal_in_place_separate_tag(nonce, aad, session);
        ticket.extend_from_slice(sealed.ok()?.as_ref());
        Some(ticket)
    }

    /// The session of a ticket that one of these keys has sealed for this context.
    #[must_use]
    pub fn decrypt(&self, context: &ResumptionContext, ticket: &[u8]) -> Option<Vec<u8>> {
        let (name, rest) = ticket.split_at_checked(NAME_BYTES)?;
        let (nonce, sealed) = rest.split_at_checked(NONCE_LEN)?;
        let keys = self.keys.load();
        let key = keys.iter().find(|key| key.name() == name)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
        let mut plain = sealed.to_vec();
        let bytes = key
            .cipher
            .open_in_place(nonce, Aad::from(aad(key, context)), &mut plain)
            .ok()?
            .len();
        plain.truncate(bytes);
        Some(plain)
    }
}

/// The digest of keys, in their order.
fn digest(keys: &VecDeque<Arc<TicketKey>>) -> ContentDigest {
    let mut context = Context::new(&SHA256);
    for key in keys {
        context.update(&[u8::try_from(key.given.len()).unwrap_or(0)]);
        context.update(&key.given);
    }
    let mut digest = ContentDigest::default();
    digest.copy_from_slice(context.finish().as_ref());
    digest
}

/// What a ticket is bound to besides its key.
fn aad(key: &TicketKey, context: &ResumptionContext) -> [u8; NAME_BYTES + 32] {
    let mut aad = [0; NAME_BYTES + 32];
    aad[..NAME_BYTES].copy_from_slice(key.name());
    aad[NAME_BYTES..].copy_from_slice(context);
    aad
}

/// When sessions end, by which clock.
#[derive(Clone, Debug)]
pub(crate) struct SessionAge {
    pub(crate) time: Arc<dyn TimeProvider>,
    /// `tune.ssl.lifetime`.
    pub(crate) lifetime_s: u32,
}

impl SessionAge {
    fn now(&self) -> Option<u64> {
        self.time.current_time().map(|now| now.as_secs())
    }

    /// The time, as it stands before a session.
    fn stamp(&self) -> Option<[u8; TIME_BYTES]> {
        Some(self.now()?.to_be_bytes())
    }

    /// The value, if it is not too old. A clock that went back makes it young.
    fn fresh(&self, mut stamped: Vec<u8>) -> Option<Vec<u8>> {
        let made = u64::from_be_bytes(*stamped.first_chunk::<TIME_BYTES>()?);
        if self.now()?.saturating_sub(made) > u64::from(self.lifetime_s) {
            return None;
        }
        stamped.drain(..TIME_BYTES);
        Some(stamped)
    }
}

/// Tickets of one set of TLS settings.
#[derive(Debug)]
pub(crate) struct Ticketer {
    pub(crate) keys: Arc<TicketKeys>,
    pub(crate) context: ResumptionContext,
    pub(crate) age: SessionAge,
}

impl ProducesTickets for Ticketer {
    fn enabled(&self) -> bool {
        true
    }

    fn lifetime(&self) -> u32 {
        self.age.lifetime_s
    }

    fn encrypt(&self, plain: &[u8]) -> Option<Vec<u8>> {
        self.keys
            .encrypt_parts(&self.context, [&self.age.stamp()?, plain])
    }

    fn decrypt(&self, cipher: &[u8]) -> Option<Vec<u8>> {
        self.age.fresh(self.keys.decrypt(&self.context, cipher)?)
    }
}

/// Sessions kept here, of one set of TLS settings: the same store, other names.
#[derive(Debug)]
pub(crate) struct BoundSessions {
    pub(crate) store: Arc<dyn StoresServerSessions>,
    pub(crate) context: ResumptionContext,
    pub(crate) age: SessionAge,
}

impl BoundSessions {
    fn key(&self, key: &[u8]) -> Vec<u8> {
        [&self.context[..], key].concat()
    }
}

impl StoresServerSessions for BoundSessions {
    fn put(&self, key: Vec<u8>, value: Vec<u8>) -> bool {
        // The store counts sessions, not bytes: one with a long chain of the client's is not kept.
        if value.len() > SESSION_BYTES_MAX {
            return false;
        }
        let stamp = self.age.stamp();
        stamp.is_some_and(|stamp| {
            self.store
                .put(self.key(&key), [&stamp[..], &value].concat())
        })
    }

    fn get(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.age.fresh(self.store.get(&self.key(key))?)
    }

    fn take(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.age.fresh(self.store.take(&self.key(key))?)
    }

    fn can_cache(&self) -> bool {
        self.store.can_cache()
    }
}

#[cfg(test)]
mod tests;
