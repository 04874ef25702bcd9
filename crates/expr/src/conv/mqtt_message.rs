//! The first messages of MQTT 3.1, 3.1.1 and 5.0: CONNECT and CONNACK.

/// A type of message.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum MqttMessage {
    Connect,
    Connack,
}

impl MqttMessage {
    /// The type by its name or number.
    pub(super) fn parse(text: &str) -> Option<MqttMessage> {
        match text {
            "1" => Some(MqttMessage::Connect),
            "2" => Some(MqttMessage::Connack),
            _ if text.eq_ignore_ascii_case("connect") => Some(MqttMessage::Connect),
            _ if text.eq_ignore_ascii_case("connack") => Some(MqttMessage::Connack),
            _ => None,
        }
    }
}

/// What can be asked of a message.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum MqttField {
    ClientIdentifier,
    Flags,
    KeepAlive,
    Password,
    /// By its identifier (MQTT 5.0 section 2.2.2.2).
    Property(u8),
    ProtocolName,
    ProtocolVersion,
    ReasonCode,
    UserName,
    WillPayload,
    WillTopic,
}

impl MqttField {
    /// The field of a message by its name, or by the number of a property.
    pub(super) fn parse(message: MqttMessage, text: &str) -> Option<MqttField> {
        use MqttMessage::{Connack, Connect};
        if text.starts_with(|c: char| c.is_ascii_digit()) {
            let number: u8 = text.parse().ok()?;
            let property_places: &[PropertyPlace] = match message {
                Connect => &[PropertyPlace::Connect, PropertyPlace::Will],
                Connack => &[PropertyPlace::Connack],
            };
            let known = property_places
                .iter()
                .any(|property_place| kind_of(number, *property_place).is_some());
            return known.then_some(MqttField::Property(number));
        }
        let mut names = FIELDS.iter();
        let found = names.find(|(name, of, _)| {
            name.eq_ignore_ascii_case(text) && of.is_none_or(|of| of == message)
        })?;
        Some(found.2)
    }

    /// The names of the fields of a message.
    pub(super) fn words_of(message: MqttMessage) -> impl Iterator<Item = &'static str> {
        let of_it = move |of: &Option<MqttMessage>| of.is_none_or(|of| of == message);
        let fields = FIELDS.iter().filter(move |(_, of, _)| of_it(of));
        fields.map(|(name, _, _)| *name)
    }
}

/// The names of fields, and the message that alone has them.
const FIELDS: [(&str, Option<MqttMessage>, MqttField); 10] = [
    ("flags", None, MqttField::Flags),
    ("protocol_version", None, MqttField::ProtocolVersion),
    (
        "protocol_name",
        Some(MqttMessage::Connect),
        MqttField::ProtocolName,
    ),
    (
        "client_identifier",
        Some(MqttMessage::Connect),
        MqttField::ClientIdentifier,
    ),
    (
        "will_topic",
        Some(MqttMessage::Connect),
        MqttField::WillTopic,
    ),
    (
        "will_payload",
        Some(MqttMessage::Connect),
        MqttField::WillPayload,
    ),
    ("username", Some(MqttMessage::Connect), MqttField::UserName),
    ("password", Some(MqttMessage::Connect), MqttField::Password),
    (
        "keepalive",
        Some(MqttMessage::Connect),
        MqttField::KeepAlive,
    ),
    (
        "reason_code",
        Some(MqttMessage::Connack),
        MqttField::ReasonCode,
    ),
];

/// A value of a message.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum MqttValue<'m> {
    Number(u32),
    /// Possibly empty.
    Text(&'m [u8]),
}

/// Why a message cannot be read.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum MqttError {
    Invalid,
    /// More bytes must come.
    Unfinished,
}

/// Identifiers of properties are below this.
const PROPERTIES: usize = 43;

/// Where properties stand.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum PropertyPlace {
    Connect,
    Will,
    Connack,
}

/// How a property is written.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum PropertyKind {
    /// One byte, 0 or 1.
    Flag,
    /// Two bytes.
    Short,
    /// Two bytes, not 0.
    Positive,
    /// Four bytes.
    Long,
    /// Four bytes, not 0.
    PositiveLong,
    Text,
    /// Not empty.
    Name,
    /// A name and a value; the one that may be repeated, and is not kept.
    Pair,
}

/// The properties that HAProxy knows, where they may stand.
fn kind_of(identifier: u8, property_place: PropertyPlace) -> Option<PropertyKind> {
    use PropertyKind::{Flag, Long, Name, Pair, Positive, PositiveLong, Short, Text};
    use PropertyPlace::{Connack, Connect, Will};
    Some(match (identifier, property_place) {
        (1, Will) => Flag,
        (2 | 24, Will) => Long,
        (3 | 8 | 9, Will) => Text,
        (17, Connect | Connack) => Long,
        (18, Connack) => Name,
        (19, Connack) => Short,
        (21 | 22, Connect | Connack) => Text,
        (23 | 25, Connect) => Flag,
        (26 | 28 | 31, Connack) => Text,
        (33, Connect | Connack) => Positive,
        (34, Connect | Connack) => Short,
        (36 | 37 | 40 | 41 | 42, Connack) => Flag,
        (38, _) => Pair,
        (39, Connect | Connack) => PositiveLong,
        _ => return None,
    })
}

/// A message as it was read.
#[derive(Debug)]
pub(super) struct MqttHead<'m> {
    pub(super) message: MqttMessage,
    version: u8,
    flags: u8,
    reason: u8,
    keep_alive: u16,
    protocol_name: &'m [u8],
    client_identifier: &'m [u8],
    will: Option<(&'m [u8], &'m [u8])>,
    user_name: Option<&'m [u8]>,
    password: Option<&'m [u8]>,
    properties: [Option<MqttValue<'m>>; PROPERTIES],
}

/// Flags of CONNECT.
const WILL: u8 = 0x04;
const PASSWORD: u8 = 0x40;
const USER_NAME: u8 = 0x80;

impl<'m> MqttHead<'m> {
    /// Reads the message that `bytes` begin with.
    pub(super) fn parse(bytes: &'m [u8]) -> Result<MqttHead<'m>, MqttError> {
        let [kind, rest @ ..] = bytes else {
            return Err(MqttError::Unfinished);
        };
        if rest.is_empty() {
            return Err(MqttError::Unfinished);
        }
        // The flags are reserved but for PUBLISH (MQTT 5.0, section 2.1.3).
        let has_its_flags = match kind >> 4 {
            0 => false,
            3 => true,
            6 | 8 | 10 => kind & 0x0f == 2,
            _ => kind & 0x0f == 0,
        };
        if !has_its_flags {
            return Err(MqttError::Invalid);
        }
        let mut reader = Reader { rest };
        let length = reader.length()?;
        let body = reader.rest.get(..length).ok_or(MqttError::Unfinished)?;
        let message = match kind {
            0x10 => MqttMessage::Connect,
            0x20 => MqttMessage::Connack,
            _ => return Err(MqttError::Invalid),
        };
        let mut head = MqttHead {
            message,
            version: 4,
            flags: 0,
            reason: 0,
            keep_alive: 0,
            protocol_name: b"",
            client_identifier: b"",
            will: None,
            user_name: None,
            password: None,
            properties: [None; PROPERTIES],
        };
        let mut reader = Reader { rest: body };
        match message {
            MqttMessage::Connect => head.read_connect(&mut reader)?,
            MqttMessage::Connack => head.read_connack(&mut reader)?,
        }
        if reader.rest.is_empty() {
            Ok(head)
        } else {
            Err(MqttError::Invalid)
        }
    }

    fn read_connect(&mut self, reader: &mut Reader<'m>) -> Result<(), MqttError> {
        self.protocol_name = reader.text()?;
        self.version = reader.byte()?;
        self.flags = reader.byte()?;
        self.keep_alive = u16::from_be_bytes(reader.array()?);
        let is_known = matches!(self.protocol_name, b"MQTT" | b"MQIsdp")
            && matches!(self.version, 3..=5)
            && self.flags & 1 == 0;
        if !is_known {
            return Err(MqttError::Invalid);
        }
        if self.version == 5 {
            self.read_properties(reader, PropertyPlace::Connect)?;
            // Data for an authentication need its method.
            if self.properties[22].is_some() && self.properties[21].is_none() {
                return Err(MqttError::Invalid);
            }
        }
        self.client_identifier = reader.text()?;
        if self.flags & WILL != 0 {
            if self.version == 5 {
                self.read_properties(reader, PropertyPlace::Will)?;
            }
            self.will = Some((reader.text()?, reader.text()?));
        }
        if self.flags & USER_NAME != 0 {
            self.user_name = Some(reader.text()?);
        }
        if self.flags & PASSWORD != 0 {
            self.password = Some(reader.text()?);
        }
        Ok(())
    }

    fn read_connack(&mut self, reader: &mut Reader<'m>) -> Result<(), MqttError> {
        self.flags = reader.byte()?;
        self.reason = reader.byte()?;
        if self.flags > 1 {
            return Err(MqttError::Invalid);
        }
        // Only version 5 has more.
        if !reader.rest.is_empty() {
            self.version = 5;
            self.read_properties(reader, PropertyPlace::Connack)?;
        }
        Ok(())
    }

    fn read_properties(
        &mut self,
        reader: &mut Reader<'m>,
        property_place: PropertyPlace,
    ) -> Result<(), MqttError> {
        let length = reader.length()?;
        let mut inside = Reader {
            rest: reader.take(length)?,
        };
        while !inside.rest.is_empty() {
            let identifier = inside.byte()?;
            let kind = kind_of(identifier, property_place).ok_or(MqttError::Invalid)?;
            let value = inside.property(kind)?;
            if kind == PropertyKind::Pair {
                continue;
            }
            let slot = self.properties.get_mut(usize::from(identifier));
            let slot = slot.ok_or(MqttError::Invalid)?;
            if slot.replace(value).is_some() {
                return Err(MqttError::Invalid);
            }
        }
        Ok(())
    }

    /// The value of a field; `None` for one that the message has not.
    pub(super) fn value(&self, field: MqttField) -> Option<MqttValue<'m>> {
        let number = |number: u32| Some(MqttValue::Number(number));
        match field {
            MqttField::ClientIdentifier => Some(MqttValue::Text(self.client_identifier)),
            MqttField::Flags => number(u32::from(self.flags)),
            MqttField::KeepAlive => number(u32::from(self.keep_alive)),
            MqttField::Password => self.password.map(MqttValue::Text),
            MqttField::ProtocolName => Some(MqttValue::Text(self.protocol_name)),
            MqttField::ProtocolVersion => number(u32::from(self.version)),
            MqttField::ReasonCode => number(u32::from(self.reason)),
            MqttField::UserName => self.user_name.map(MqttValue::Text),
            MqttField::WillPayload => self.will.map(|(_, payload)| MqttValue::Text(payload)),
            MqttField::WillTopic => self.will.map(|(topic, _)| MqttValue::Text(topic)),
            MqttField::Property(_) if self.version < 5 => None,
            MqttField::Property(identifier) => self.property(identifier),
        }
    }

    /// The value of a property. A number that the message has not is 0.
    fn property(&self, identifier: u8) -> Option<MqttValue<'m>> {
        let given = self.properties.get(usize::from(identifier))?;
        given.or_else(|| {
            let property_places: &[PropertyPlace] = match self.message {
                MqttMessage::Connect => &[PropertyPlace::Connect, PropertyPlace::Will],
                MqttMessage::Connack => &[PropertyPlace::Connack],
            };
            let kind = property_places
                .iter()
                .find_map(|property_place| kind_of(identifier, *property_place));
            match kind? {
                PropertyKind::Text | PropertyKind::Name | PropertyKind::Pair => None,
                _ => Some(MqttValue::Number(0)),
            }
        })
    }
}

/// What is left of a message.
struct Reader<'m> {
    rest: &'m [u8],
}

impl<'m> Reader<'m> {
    fn take(&mut self, length: usize) -> Result<&'m [u8], MqttError> {
        let (taken, rest) = self
            .rest
            .split_at_checked(length)
            .ok_or(MqttError::Invalid)?;
        self.rest = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], MqttError> {
        let (taken, rest) = self.rest.split_first_chunk().ok_or(MqttError::Invalid)?;
        self.rest = rest;
        Ok(*taken)
    }

    fn byte(&mut self) -> Result<u8, MqttError> {
        let [byte] = self.array()?;
        Ok(byte)
    }

    /// A length of one to four bytes (MQTT 5.0 section 1.5.5).
    fn length(&mut self) -> Result<usize, MqttError> {
        let mut length = 0;
        for position in 0..4 {
            let byte = self.byte()?;
            length |= usize::from(byte & 0x7f) << (7 * position);
            if byte & 0x80 == 0 {
                return Ok(length);
            }
        }
        Err(MqttError::Invalid)
    }

    fn text(&mut self) -> Result<&'m [u8], MqttError> {
        let length = u16::from_be_bytes(self.array()?);
        self.take(usize::from(length))
    }

    fn property(&mut self, kind: PropertyKind) -> Result<MqttValue<'m>, MqttError> {
        let value = match kind {
            PropertyKind::Flag => MqttValue::Number(u32::from(self.byte()?)),
            PropertyKind::Short | PropertyKind::Positive => {
                MqttValue::Number(u32::from(u16::from_be_bytes(self.array()?)))
            }
            PropertyKind::Long | PropertyKind::PositiveLong => {
                MqttValue::Number(u32::from_be_bytes(self.array()?))
            }
            PropertyKind::Text | PropertyKind::Name => MqttValue::Text(self.text()?),
            PropertyKind::Pair => {
                self.text()?;
                MqttValue::Text(self.text()?)
            }
        };
        let is_good = match (kind, value) {
            (PropertyKind::Flag, MqttValue::Number(flag)) => flag <= 1,
            (PropertyKind::Positive | PropertyKind::PositiveLong, MqttValue::Number(number)) => {
                number != 0
            }
            (PropertyKind::Name, MqttValue::Text(name)) => !name.is_empty(),
            _ => true,
        };
        is_good.then_some(value).ok_or(MqttError::Invalid)
    }
}
