//! What a client says first: the ClientHello, read from raw TLS records (RFC 8446, 4.1.2 and 5.1;
//! RFC 5246, 7.4.1.2).
//!
//! The parser is given all bytes that the connection has sent so far, again and again until they
//! are enough. It does not judge what rustls judges later (versions, missing extensions): it
//! answers what is asked before a handshake begins: which certificate, which TLS settings, and the
//! samples `req.ssl_*` and `ssl_fc_*_bin`.

use std::borrow::Cow;
use std::fmt;

/// The longest handshake message that is read. rustls accepts no longer one (OpenSSL: 131,396).
pub const HELLO_BYTES_MAX: usize = 0xffff;
/// The most records of a ClientHello. Clients that hide the name from what stands in between cut
/// their hello into records of a few bytes, and one with a post-quantum key share has 1,800: so each
/// byte may have a record of its own. OpenSSL has no limit; a hello that comes in pieces is read from
/// its beginning each time, so there is one here.
pub const HELLO_RECORDS_MAX: usize = 2_048;
/// The most bytes of records that can be asked for before the hello is complete or refused.
pub const HELLO_RAW_BYTES_MAX: usize =
    HELLO_BYTES_MAX + HANDSHAKE_HEADER_BYTES + HELLO_RECORDS_MAX * RECORD_HEADER_BYTES;

const RECORD_HEADER_BYTES: usize = 5;
const RECORD_PAYLOAD_BYTES_MAX: usize = 1 << 14;
const HANDSHAKE_HEADER_BYTES: usize = 4;
const CONTENT_HANDSHAKE: u8 = 22;
const HANDSHAKE_CLIENT_HELLO: u8 = 1;
const RANDOM_BYTES: usize = 32;
const SESSION_ID_BYTES_MAX: usize = 32;
const EXTENSIONS_MAX: usize = 128;
/// TLS 1.3, as hellos write it.
const TLS_1_3: u16 = 0x0304;

/// Extension numbers that are read here (IANA, "TLS ExtensionType Values").
pub mod extension {
    /// `server_name` (RFC 6066, 3).
    pub const SERVER_NAME: u16 = 0;
    /// `supported_groups` (RFC 8446, 4.2.7), once `elliptic_curves`.
    pub const SUPPORTED_GROUPS: u16 = 10;
    /// `ec_point_formats` (RFC 8422, 5.1.2).
    pub const EC_POINT_FORMATS: u16 = 11;
    /// `signature_algorithms` (RFC 8446, 4.2.3).
    pub const SIGNATURE_ALGORITHMS: u16 = 13;
    /// `application_layer_protocol_negotiation` (RFC 7301).
    pub const ALPN: u16 = 16;
    /// `session_ticket` (RFC 5077).
    pub const SESSION_TICKET: u16 = 35;
    /// `pre_shared_key` (RFC 8446, 4.2.11).
    pub const PRE_SHARED_KEY: u16 = 41;
    /// `early_data` (RFC 8446, 4.2.10).
    pub const EARLY_DATA: u16 = 42;
    /// `supported_versions` (RFC 8446, 4.2.1).
    pub const SUPPORTED_VERSIONS: u16 = 43;
}

/// What the bytes so far are.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum HelloOutcome<'a> {
    /// The start of a ClientHello: more bytes are needed.
    Incomplete,
    /// No TLS at all.
    NotTls(NotTls),
    /// TLS, but no ClientHello that can be read.
    Broken(BrokenHello),
    /// A whole ClientHello.
    Complete(ClientHello<'a>),
}

/// The first byte that shows that the client does not speak TLS.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct NotTls {
    /// Where it is among the bytes received.
    pub offset: usize,
    /// Its value.
    pub byte: u8,
}

/// Why a ClientHello is refused. The client is at fault.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum BrokenHello {
    /// A record of another content type, or of no bytes.
    Record,
    /// A record of too many bytes.
    LongRecord,
    /// The first handshake message is not a ClientHello.
    OtherMessage {
        /// Its type.
        message_type: u8,
    },
    /// Longer than [`HELLO_BYTES_MAX`], or in more than [`HELLO_RECORDS_MAX`] records.
    TooLong,
    /// A length that does not fit what is around it.
    Length,
    /// An extension that is there twice, or more than 128 extensions.
    Extensions,
}

impl fmt::Display for BrokenHello {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LongRecord => f.write_str("the client sent a TLS record that is too long"),
            Self::Record => {
                f.write_str("the client sent a TLS record that cannot hold a ClientHello")
            }
            Self::OtherMessage { message_type } => {
                write!(
                    f,
                    "the client's first message has type {message_type}, not ClientHello (1)"
                )
            }
            Self::TooLong => write!(
                f,
                "the ClientHello is longer than {HELLO_BYTES_MAX} bytes or in more than \
                 {HELLO_RECORDS_MAX} records"
            ),
            Self::Length => f.write_str("a length in the ClientHello does not fit its content"),
            Self::Extensions => {
                f.write_str("the ClientHello has an extension twice, or too many extensions")
            }
        }
    }
}

/// A part of the message: offset and length. Messages are shorter than 64 kB.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
struct Part {
    start: u16,
    length: u16,
}

/// A ClientHello. Lists are as the client wrote them: network order, without their length.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ClientHello<'a> {
    /// The version in the header of the first record.
    record_version: u16,
    /// Bytes of records that the message took, headers included.
    raw_bytes: usize,
    /// The message without its handshake header.
    message: Cow<'a, [u8]>,
    session_id: Part,
    ciphers: Part,
    extensions: Part,
    server_name: Option<Part>,
    groups: Part,
    point_formats: Part,
    signature_algorithms: Option<Part>,
    alpn: Option<Part>,
    session_ticket: Option<Part>,
    supported_versions: Option<Part>,
    has_pre_shared_key: bool,
    has_early_data: bool,
}

/// Reads what a connection has sent so far.
#[must_use]
pub fn parse_client_hello(raw: &[u8]) -> HelloOutcome<'_> {
    match join_records(raw) {
        Ok(Some(joined_message)) => match read_message(joined_message) {
            Ok(hello) => HelloOutcome::Complete(hello),
            Err(broken) => HelloOutcome::Broken(broken),
        },
        Ok(None) => HelloOutcome::Incomplete,
        Err(outcome) => outcome,
    }
}

/// The handshake message, taken out of its records.
struct JoinedMessage<'a> {
    record_version: u16,
    raw_bytes: usize,
    message: Cow<'a, [u8]>,
}

/// Joins the records of the first handshake message. `None`: more bytes are needed.
fn join_records(raw: &[u8]) -> Result<Option<JoinedMessage<'_>>, HelloOutcome<'_>> {
    let broken = |why| Err(HelloOutcome::Broken(why));
    let not_tls = |offset: usize| {
        let byte = raw[offset];
        Err(HelloOutcome::NotTls(NotTls { offset, byte }))
    };
    match raw {
        [] => return Ok(None),
        [content, ..] if *content != CONTENT_HANDSHAKE => return not_tls(0),
        [_, major, ..] if *major != 3 => return not_tls(1),
        _ => {}
    }
    let mut joined: Vec<u8> = Vec::new();
    let mut rest = raw;
    for _ in 0..HELLO_RECORDS_MAX {
        let Some((header, after)) = rest.split_at_checked(RECORD_HEADER_BYTES) else {
            return Ok(None);
        };
        let length = usize::from(u16::from_be_bytes([header[3], header[4]]));
        if header[0] != CONTENT_HANDSHAKE || header[1] != 3 || length == 0 {
            return broken(BrokenHello::Record);
        }
        if length > RECORD_PAYLOAD_BYTES_MAX {
            return broken(BrokenHello::LongRecord);
        }
        let here = &after[..length.min(after.len())];
        // One record is the rule: it is read where it stands.
        if joined.is_empty() && here.len() >= HANDSHAKE_HEADER_BYTES {
            let wanted = match message_bytes(here) {
                Ok(wanted) => wanted,
                Err(why) => return broken(why),
            };
            if wanted <= here.len() {
                return Ok(Some(JoinedMessage {
                    record_version: version_at(raw, 1),
                    raw_bytes: raw.len() - after.len() + wanted,
                    message: Cow::Borrowed(&here[HANDSHAKE_HEADER_BYTES..wanted]),
                }));
            }
        }
        joined.extend_from_slice(here);
        if joined.len() >= HANDSHAKE_HEADER_BYTES {
            let wanted = match message_bytes(&joined) {
                Ok(wanted) => wanted,
                Err(why) => return broken(why),
            };
            if wanted <= joined.len() {
                let over = joined.len() - wanted;
                joined.truncate(wanted);
                joined.drain(..HANDSHAKE_HEADER_BYTES);
                return Ok(Some(JoinedMessage {
                    record_version: version_at(raw, 1),
                    raw_bytes: raw.len() - after.len() + here.len() - over,
                    message: Cow::Owned(joined),
                }));
            }
        } else if let Some(message_type) = joined.first().copied()
            && message_type != HANDSHAKE_CLIENT_HELLO
        {
            return broken(BrokenHello::OtherMessage { message_type });
        }
        if after.len() < length {
            return Ok(None);
        }
        rest = &after[length..];
    }
    broken(BrokenHello::TooLong)
}

/// The bytes of the handshake message that begins here, header included.
fn message_bytes(start: &[u8]) -> Result<usize, BrokenHello> {
    if start[0] != HANDSHAKE_CLIENT_HELLO {
        return Err(BrokenHello::OtherMessage {
            message_type: start[0],
        });
    }
    let length = usize::from(start[1]) << 16 | usize::from(start[2]) << 8 | usize::from(start[3]);
    if length > HELLO_BYTES_MAX {
        return Err(BrokenHello::TooLong);
    }
    Ok(length + HANDSHAKE_HEADER_BYTES)
}

fn version_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

/// A place in the message, from which parts are taken.
struct Cursor<'m> {
    message: &'m [u8],
    at: usize,
    end: usize,
}

impl Cursor<'_> {
    fn take(&mut self, length: usize) -> Result<Part, BrokenHello> {
        if length > self.end - self.at {
            return Err(BrokenHello::Length);
        }
        // The message is shorter than 64 kB.
        let part = Part {
            start: u16::try_from(self.at).map_err(|_| BrokenHello::TooLong)?,
            length: u16::try_from(length).map_err(|_| BrokenHello::TooLong)?,
        };
        self.at += length;
        Ok(part)
    }

    fn byte(&mut self) -> Result<usize, BrokenHello> {
        let at = usize::from(self.take(1)?.start);
        Ok(usize::from(self.message[at]))
    }

    fn number(&mut self) -> Result<u16, BrokenHello> {
        let at = usize::from(self.take(2)?.start);
        Ok(version_at(self.message, at))
    }

    /// A list with its length in two bytes.
    fn list(&mut self) -> Result<Part, BrokenHello> {
        let length = usize::from(self.number()?);
        self.take(length)
    }

    /// A list with its length in one byte.
    fn short_list(&mut self) -> Result<Part, BrokenHello> {
        let length = self.byte()?;
        self.take(length)
    }

    fn is_at_end(&self) -> bool {
        self.at == self.end
    }

    /// What must have been read to its end.
    fn whole(&self, part: Part) -> Result<Part, BrokenHello> {
        if self.is_at_end() {
            Ok(part)
        } else {
            Err(BrokenHello::Length)
        }
    }

    fn within(&self, part: Part) -> Self {
        let at = usize::from(part.start);
        Self {
            message: self.message,
            at,
            end: at + usize::from(part.length),
        }
    }
}

fn read_message(joined_message: JoinedMessage<'_>) -> Result<ClientHello<'_>, BrokenHello> {
    let mut hello = ClientHello {
        record_version: joined_message.record_version,
        raw_bytes: joined_message.raw_bytes,
        message: joined_message.message,
        session_id: Part::default(),
        ciphers: Part::default(),
        extensions: Part::default(),
        server_name: None,
        groups: Part::default(),
        point_formats: Part::default(),
        signature_algorithms: None,
        alpn: None,
        session_ticket: None,
        supported_versions: None,
        has_pre_shared_key: false,
        has_early_data: false,
    };
    let message = std::mem::take(&mut hello.message);
    let mut cursor = Cursor {
        message: &message,
        at: 0,
        end: message.len(),
    };
    cursor.take(2 + RANDOM_BYTES)?;
    hello.session_id = cursor.short_list()?;
    hello.ciphers = cursor.list()?;
    if usize::from(hello.session_id.length) > SESSION_ID_BYTES_MAX || hello.ciphers.length % 2 == 1
    {
        return Err(BrokenHello::Length);
    }
    cursor.short_list()?; // compression methods
    if !cursor.is_at_end() {
        let extensions = cursor.list()?;
        hello.extensions = cursor.whole(extensions)?;
        read_extensions(&mut hello, cursor.within(extensions))?;
    }
    hello.message = message;
    Ok(hello)
}

fn read_extensions(hello: &mut ClientHello<'_>, mut all: Cursor<'_>) -> Result<(), BrokenHello> {
    let mut found = [0_u16; EXTENSIONS_MAX];
    let mut count = 0;
    while !all.is_at_end() {
        let number = all.number()?;
        let content = all.list()?;
        if count == EXTENSIONS_MAX || found[..count].contains(&number) {
            return Err(BrokenHello::Extensions);
        }
        found[count] = number;
        count += 1;
        let mut inner = all.within(content);
        let even = |part: Part| match part.length % 2 {
            0 => Ok(part),
            _ => Err(BrokenHello::Length),
        };
        match number {
            extension::SERVER_NAME => {
                let names = inner.list()?;
                inner.whole(names)?;
                hello.server_name = host_name(inner.within(names))?;
            }
            extension::SUPPORTED_GROUPS => {
                let list = inner.list()?;
                hello.groups = even(inner.whole(list)?)?;
            }
            extension::EC_POINT_FORMATS => {
                let list = inner.short_list()?;
                hello.point_formats = inner.whole(list)?;
            }
            extension::SIGNATURE_ALGORITHMS => {
                let list = inner.list()?;
                hello.signature_algorithms = Some(even(inner.whole(list)?)?);
            }
            extension::ALPN => {
                let list = inner.list()?;
                hello.alpn = Some(inner.whole(list)?);
                let mut protocols = inner.within(list);
                while !protocols.is_at_end() {
                    protocols.short_list()?;
                }
            }
            extension::SUPPORTED_VERSIONS => {
                let list = inner.short_list()?;
                hello.supported_versions = Some(even(inner.whole(list)?)?);
            }
            extension::SESSION_TICKET => hello.session_ticket = Some(content),
            extension::PRE_SHARED_KEY => hello.has_pre_shared_key = true,
            extension::EARLY_DATA => hello.has_early_data = true,
            _ => {}
        }
    }
    Ok(())
}

/// The first name of type `host_name` (0) in a list of server names.
fn host_name(mut names: Cursor<'_>) -> Result<Option<Part>, BrokenHello> {
    let mut first = None;
    while !names.is_at_end() {
        let name_type = names.byte()?;
        let name = names.list()?;
        if name_type == 0 && first.is_none() {
            first = Some(name);
        }
    }
    Ok(first)
}

impl ClientHello<'_> {
    fn part(&self, part: Part) -> &[u8] {
        let start = usize::from(part.start);
        &self.message[start..start + usize::from(part.length)]
    }

    /// The same hello, on bytes of its own.
    #[must_use]
    pub fn into_owned(self) -> ClientHello<'static> {
        ClientHello {
            message: Cow::Owned(self.message.into_owned()),
            ..self
        }
    }

    /// The handshake message, with its header.
    #[must_use]
    pub fn to_message(&self) -> Vec<u8> {
        // The message is shorter than 64 kB.
        let [.., high, low] = self.message.len().to_be_bytes();
        [&[HANDSHAKE_CLIENT_HELLO, 0, high, low], &*self.message].concat()
    }

    /// The version in the header of the first record: 0x0301, mostly.
    #[must_use]
    pub fn record_version(&self) -> u16 {
        self.record_version
    }

    /// How many of the raw bytes the message took, record headers included.
    #[must_use]
    pub fn raw_bytes(&self) -> usize {
        self.raw_bytes
    }

    /// `legacy_version`: 0x0303 for TLS 1.2 and later.
    #[must_use]
    pub fn legacy_version(&self) -> u16 {
        version_at(&self.message, 0)
    }

    /// The client's random, 32 bytes.
    #[must_use]
    pub fn random(&self) -> &[u8] {
        &self.message[2..2 + RANDOM_BYTES]
    }

    /// The session identifier: up to 32 bytes; TLS 1.3 clients send a random one.
    #[must_use]
    pub fn session_id(&self) -> &[u8] {
        self.part(self.session_id)
    }

    /// The list of cipher suites, two bytes each.
    #[must_use]
    pub fn cipher_list(&self) -> &[u8] {
        self.part(self.ciphers)
    }

    /// The cipher suites by number.
    pub fn ciphers(&self) -> impl Iterator<Item = u16> {
        numbers(self.cipher_list())
    }

    /// The extensions in the client's order: number and content.
    pub fn extensions(&self) -> impl Iterator<Item = (u16, &[u8])> {
        let mut rest = self.part(self.extensions);
        std::iter::from_fn(move || {
            let (header, after) = rest.split_at_checked(4)?;
            let length = usize::from(version_at(header, 2));
            let (content, after) = after.split_at_checked(length)?;
            rest = after;
            Some((version_at(header, 0), content))
        })
    }

    /// The first `host_name` of `server_name`, as the client wrote it.
    #[must_use]
    pub fn server_name(&self) -> Option<&[u8]> {
        self.server_name.map(|part| self.part(part))
    }

    /// True when the client offers protocols by ALPN.
    #[must_use]
    pub fn has_alpn(&self) -> bool {
        self.alpn.is_some()
    }

    /// The protocols offered by ALPN, in the client's order.
    pub fn alpn(&self) -> impl Iterator<Item = &[u8]> {
        let mut rest = self.alpn.map_or(&[][..], |part| self.part(part));
        std::iter::from_fn(move || {
            let (length, after) = rest.split_first()?;
            let (protocol, after) = after.split_at_checked(usize::from(*length))?;
            rest = after;
            Some(protocol)
        })
    }

    /// `supported_groups`, two bytes each; empty where there is none.
    #[must_use]
    pub fn group_list(&self) -> &[u8] {
        self.part(self.groups)
    }

    /// `ec_point_formats`, a byte each; empty where there is none.
    #[must_use]
    pub fn point_formats(&self) -> &[u8] {
        self.part(self.point_formats)
    }

    /// `signature_algorithms`, two bytes each; `None` without the extension.
    #[must_use]
    pub fn signature_algorithm_list(&self) -> Option<&[u8]> {
        self.signature_algorithms.map(|part| self.part(part))
    }

    /// The schemes of `signature_algorithms` by number.
    pub fn signature_algorithms(&self) -> impl Iterator<Item = u16> {
        numbers(self.signature_algorithm_list().unwrap_or_default())
    }

    /// The versions of `supported_versions`; none before TLS 1.3.
    pub fn supported_versions(&self) -> impl Iterator<Item = u16> {
        numbers(
            self.supported_versions
                .map_or(&[][..], |part| self.part(part)),
        )
    }

    /// The highest version the client offers, values without meaning (GREASE, RFC 8701) left out.
    #[must_use]
    pub fn version_max(&self) -> u16 {
        self.supported_versions()
            .filter(|version| !is_grease(*version))
            .max()
            .unwrap_or_else(|| self.legacy_version())
    }

    /// The content of `session_ticket` (TLS 1.2): empty when the client asks for one.
    #[must_use]
    pub fn session_ticket(&self) -> Option<&[u8]> {
        self.session_ticket.map(|part| self.part(part))
    }

    /// True when the client offers a TLS 1.3 session (`pre_shared_key`).
    #[must_use]
    pub fn has_pre_shared_key(&self) -> bool {
        self.has_pre_shared_key
    }

    /// True when the client offers to resume a session: with a key of before, or, without TLS 1.3, by
    /// number or ticket.
    #[must_use]
    pub fn may_resume(&self) -> bool {
        // A client with TLS 1.3 sends a number without a session (RFC 8446, D.4).
        let has_old_session = !self.session_id().is_empty()
            || self
                .session_ticket()
                .is_some_and(|ticket| !ticket.is_empty());
        self.has_pre_shared_key() || (self.version_max() < TLS_1_3 && has_old_session)
    }

    /// True when the client sends early data (0-RTT).
    #[must_use]
    pub fn has_early_data(&self) -> bool {
        self.has_early_data
    }
}

fn numbers(list: &[u8]) -> impl Iterator<Item = u16> {
    list.chunks_exact(2).map(|pair| version_at(pair, 0))
}

/// True for the values that clients add so that servers stay tolerant (RFC 8701).
#[must_use]
pub fn is_grease(number: u16) -> bool {
    number & 0x0f0f == 0x0a0a && number >> 8 == number & 0xff
}

#[cfg(test)]
mod tests;
