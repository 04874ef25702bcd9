//! What is in a certificate, in OpenSSL's words (RFC 5280; manual 7.3.4, `ssl_c_s_dn` and its
//! siblings).
//!
//! [`CertificateDetails`] holds all that samples ask, so that a certificate is parsed once for a
//! connection, and only if something is asked.

mod objects;
#[cfg(test)]
mod tests;

use std::fmt::Write;

use x509_parser::asn1_rs::{Any, Oid};
use x509_parser::extensions::{GeneralName, ParsedExtension};
use x509_parser::prelude::{ASN1Time, FromDer, X509Certificate, X509Name};
use x509_parser::public_key::PublicKey;

use objects::{Object, object};

const OID_P384: &str = "1.3.132.0.34";
const OID_P521: &str = "1.3.132.0.35";

/// The tags of ASN.1's strings whose characters are not one byte each.
const UTF8_STRING: u32 = 12;
const UNIVERSAL_STRING: u32 = 28;
const BMP_STRING: u32 = 30;

/// The characters that RFC 2253 has escaped wherever they stand.
const SPECIAL: &[char] = &[',', '+', '"', '\\', '<', '>', ';'];

/// What is in a certificate.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct CertificateDetails {
    /// Its version: 1 to 3.
    pub version: u32,
    /// The bytes of its serial number, without leading zeros.
    pub serial: Box<[u8]>,
    /// When it begins to be valid: `YYMMDDhhmmssZ`.
    pub not_before: Box<str>,
    /// When it ends to be valid.
    pub not_after: Box<str>,
    /// OpenSSL's name of the algorithm of its signature, `UNDEF` for one that has none.
    pub signature_algorithm: Box<str>,
    /// OpenSSL's name of the algorithm of its key.
    pub key_algorithm: Box<str>,
    /// The algorithm of its key and the bits of it: `RSA2048`, `EC256`; `None` for other
    /// algorithms, as HAProxy has no text for them.
    pub key: Option<Box<str>>,
    /// The `subjectAltName`s as OpenSSL prints them; `None` where there are none.
    pub alternative_names: Option<Box<[u8]>>,
    /// Whose it is.
    pub subject: DistinguishedName,
    /// Who signed it.
    pub issuer: DistinguishedName,
}

/// A name of attributes. Values are bytes as they stand in the certificate, whatever their
/// encoding.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct DistinguishedName {
    entries: Box<[NameEntry]>,
    whole: Option<Box<[u8]>>,
    rfc2253: Option<Box<[u8]>>,
}

#[derive(Clone, Debug, Eq, PartialEq)]
struct NameEntry {
    /// The short name, or the number where there is none.
    name: Box<str>,
    value: Box<[u8]>,
}

impl CertificateDetails {
    /// Reads a certificate; `None` when it is none.
    #[must_use]
    pub fn read(der: &[u8]) -> Option<Self> {
        let (_, certificate) = X509Certificate::from_der(der).ok()?;
        let signature = &certificate.signature_algorithm.algorithm;
        let key = &certificate.public_key().algorithm.algorithm;
        let validity = certificate.validity();
        Some(Self {
            version: certificate.version().0 + 1,
            serial: unsigned_bytes(certificate.raw_serial()),
            not_before: time_text(validity.not_before),
            not_after: time_text(validity.not_after),
            signature_algorithm: algorithm(signature),
            key_algorithm: algorithm(key),
            key: key_text(&certificate).map(Into::into),
            alternative_names: alternative_names(&certificate),
            subject: DistinguishedName::read(certificate.subject()),
            issuer: DistinguishedName::read(certificate.issuer()),
        })
    }
}

impl DistinguishedName {
    pub(crate) fn read(name: &X509Name<'_>) -> Self {
        let entries: Box<[NameEntry]> = name
            .iter_attributes()
            .map(|attribute| NameEntry {
                name: short_name(attribute.attr_type()),
                value: attribute.attr_value().data.into(),
            })
            .collect();
        if entries.is_empty() {
            return Self::default();
        }
        let is_sound = entries
            .iter()
            .all(|entry| is_free_of_hidden_tail(&entry.value));
        let whole = is_sound.then(|| {
            let mut out = Vec::new();
            for entry in &entries {
                out.push(b'/');
                out.extend_from_slice(entry.name.as_bytes());
                out.push(b'=');
                out.extend_from_slice(&entry.value);
            }
            out.into()
        });
        let rfc2253 = NameStyle::RFC2253.write(name);
        Self {
            entries,
            whole,
            rfc2253: rfc2253.map(|text| text.into_bytes().into()),
        }
    }

    /// All of it: `/C=FR/CN=name`. `None` where there is nothing, or a value that hides something
    /// behind a zero byte.
    #[must_use]
    pub fn whole(&self) -> Option<&[u8]> {
        self.whole.as_deref()
    }

    /// All of it as OpenSSL prints it in other texts: `C = FR, CN = name`.
    pub(crate) fn spaced_text(&self) -> String {
        let entries = self.entries.iter().map(|entry| {
            let value = String::from_utf8_lossy(&entry.value);
            format!("{} = {value}", entry.name)
        });
        entries.collect::<Vec<_>>().join(", ")
    }

    /// All of it as RFC 2253 writes it, the last entry first: `CN=name,C=FR`.
    #[must_use]
    pub fn rfc2253(&self) -> Option<&[u8]> {
        self.rfc2253.as_deref()
    }

    /// The value of an entry by its short name in any case, or by its number: which one from 1 on,
    /// or from -1 backwards. `None` as for [`Self::whole`].
    #[must_use]
    pub fn entry(&self, name: &str, occurrence: i64) -> Option<&[u8]> {
        let mut named = self
            .entries
            .iter()
            .filter(|entry| entry.name.eq_ignore_ascii_case(name));
        let before = usize::try_from(occurrence.unsigned_abs().checked_sub(1)?).ok()?;
        let found = if occurrence > 0 {
            named.nth(before)
        } else {
            named.nth_back(before)
        };
        found
            .map(|entry| &*entry.value)
            .filter(|value| is_free_of_hidden_tail(value))
    }
}

/// Whether nothing stands behind a zero byte, where some programs would end their reading.
fn is_free_of_hidden_tail(value: &[u8]) -> bool {
    let begin = value.iter().position(|byte| *byte == 0);
    begin.is_none_or(|begin| value[begin..].iter().all(|byte| *byte == 0))
}

/// The bytes of an ASN.1 integer without its sign.
pub(crate) fn unsigned_bytes(content: &[u8]) -> Box<[u8]> {
    let mut bytes = content.to_vec();
    if bytes.first().is_some_and(|first| *first >= 0x80) {
        // Two's complement: the digits turned round, and one more.
        let mut carry = true;
        for byte in bytes.iter_mut().rev() {
            (*byte, carry) = (!*byte).overflowing_add(u8::from(carry));
        }
    }
    let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
    bytes.drain(..zeros.min(bytes.len().saturating_sub(1)));
    bytes.into()
}

/// HAProxy leaves the century out.
fn time_text(time: ASN1Time) -> Box<str> {
    let at = time.to_datetime();
    format!(
        "{:02}{:02}{:02}{:02}{:02}{:02}Z",
        at.year().rem_euclid(100),
        u8::from(at.month()),
        at.day(),
        at.hour(),
        at.minute(),
        at.second()
    )
    .into()
}

/// The algorithm of a certificate's key and the bits of it: `RSA2048`, `EC256`; `None` for others.
pub(crate) fn key_text(certificate: &X509Certificate<'_>) -> Option<String> {
    let key = certificate.public_key();
    Some(match key.parsed() {
        Ok(PublicKey::RSA(rsa)) => format!("RSA{}", rsa.key_size()),
        Ok(PublicKey::EC(_)) => {
            let curve = key.algorithm.parameters.as_ref();
            let curve = curve.and_then(|curve| curve.as_oid().ok());
            match curve.map(|oid| oid.to_id_string()).as_deref() {
                Some(OID_P384) => "EC384".to_owned(),
                Some(OID_P521) => "EC521".to_owned(),
                _ => "EC256".to_owned(),
            }
        }
        _ => return None,
    })
}

/// OpenSSL's long name of an algorithm, or its number.
pub(crate) fn algorithm_name(oid: &Oid<'_>) -> Box<str> {
    let number = oid.to_id_string();
    match object(&number) {
        Some(object) => object.long.into(),
        None => number.into(),
    }
}

fn algorithm(oid: &Oid<'_>) -> Box<str> {
    object(&oid.to_id_string())
        .map_or("UNDEF", |object| object.short)
        .into()
}

fn short_name(oid: &Oid<'_>) -> Box<str> {
    let number = oid.to_id_string();
    match object(&number) {
        Some(object) => object.short.into(),
        None => number.into(),
    }
}

/// How a distinguished name is written.
struct NameStyle {
    between_entries: &'static str,
    between_values: &'static str,
    equals: &'static str,
    /// The last entry comes first.
    is_reversed: bool,
    /// Special characters are between quotes, and not behind a backslash.
    has_quotes: bool,
    /// Entries without a name are written in hexadecimal digits.
    dumps_unknown: bool,
}

impl NameStyle {
    /// RFC 2253.
    const RFC2253: Self = Self {
        between_entries: ",",
        between_values: "+",
        equals: "=",
        is_reversed: true,
        has_quotes: false,
        dumps_unknown: true,
    };
    /// OpenSSL's on one line.
    const ONE_LINE: Self = Self {
        between_entries: ", ",
        between_values: " + ",
        equals: " = ",
        is_reversed: false,
        has_quotes: true,
        dumps_unknown: false,
    };

    /// The name; `None` where a value is not text in its own encoding.
    fn write(&self, name: &X509Name<'_>) -> Option<String> {
        let mut values: Vec<(usize, Object, Box<str>, &Any<'_>)> = Vec::new();
        for (index, rdn) in name.iter_rdn().enumerate() {
            for attribute in rdn.iter() {
                let number = attribute.attr_type().to_id_string();
                let known = object(&number).unwrap_or(Object::UNKNOWN);
                values.push((index, known, number.into(), attribute.attr_value()));
            }
        }
        if self.is_reversed {
            values.reverse();
        }
        let mut out = String::new();
        let mut before = None;
        for (index, known, number, value) in values {
            match before {
                None => {}
                Some(before) if before == index => out.push_str(self.between_values),
                Some(_) => out.push_str(self.between_entries),
            }
            before = Some(index);
            let is_known = !known.short.is_empty();
            out.push_str(if is_known { known.short } else { &number });
            out.push_str(self.equals);
            if !is_known && self.dumps_unknown {
                dump(&mut out, value);
            } else {
                self.write_value(&mut out, &text_of(value)?);
            }
        }
        Some(out)
    }

    fn write_value(&self, out: &mut String, text: &str) {
        let last = text.chars().count().saturating_sub(1);
        let is_special = |index: usize, c: char| {
            SPECIAL.contains(&c)
                || (c == ' ' && (index == 0 || index == last))
                || (c == '#' && index == 0)
        };
        let needs_quotes = |(index, c)| is_special(index, c) && !matches!(c, '"' | '\\');
        let is_quoted = self.has_quotes && text.chars().enumerate().any(needs_quotes);
        if is_quoted {
            out.push('"');
        }
        for (index, c) in text.chars().enumerate() {
            if !(' '..='~').contains(&c) {
                let mut bytes = [0; 4];
                for byte in c.encode_utf8(&mut bytes).bytes() {
                    let _ = write!(out, "\\{byte:02X}");
                }
                continue;
            }
            let escape = if self.has_quotes {
                matches!(c, '"' | '\\')
            } else {
                is_special(index, c)
            };
            if escape {
                out.push('\\');
            }
            out.push(c);
        }
        if is_quoted {
            out.push('"');
        }
    }
}

/// The text of an ASN.1 string; `None` where it is none in its own encoding.
fn text_of(value: &Any<'_>) -> Option<String> {
    let data = value.data;
    match value.tag().0 {
        UTF8_STRING => String::from_utf8(data.to_vec()).ok(),
        BMP_STRING if data.len().is_multiple_of(2) => data
            .chunks_exact(2)
            .map(|pair| char::from_u32(u32::from(u16::from_be_bytes([pair[0], pair[1]]))))
            .collect(),
        UNIVERSAL_STRING if data.len().is_multiple_of(4) => data
            .chunks_exact(4)
            .map(|four| char::from_u32(u32::from_be_bytes([four[0], four[1], four[2], four[3]])))
            .collect(),
        BMP_STRING | UNIVERSAL_STRING => None,
        _ => Some(data.iter().map(|byte| char::from(*byte)).collect()),
    }
}

/// `#` and the value with its header, in hexadecimal digits.
fn dump(out: &mut String, value: &Any<'_>) {
    let constructed = u8::from(value.header.is_constructed()) << 5;
    let class = value.header.class() as u8;
    let tag = u8::try_from(value.tag().0).unwrap_or(31);
    let _ = write!(out, "#{:02X}", class << 6 | constructed | tag);
    let length = value.data.len();
    if length < 0x80 {
        let _ = write!(out, "{length:02X}");
    } else {
        let bytes = length.to_be_bytes();
        let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
        let _ = write!(out, "{:02X}", 0x80 + bytes.len() - zeros);
        for byte in &bytes[zeros..] {
            let _ = write!(out, "{byte:02X}");
        }
    }
    for byte in value.data {
        let _ = write!(out, "{byte:02X}");
    }
}

/// The names of `subjectAltName`, as OpenSSL prints them, separated by commas.
fn alternative_names(certificate: &X509Certificate<'_>) -> Option<Box<[u8]>> {
    let mut extensions = certificate.extensions().iter();
    let names = extensions.find_map(|extension| match extension.parsed_extension() {
        ParsedExtension::SubjectAlternativeName(names) => Some(&names.general_names),
        _ => None,
    })?;
    let mut out = Vec::new();
    for name in names {
        if !out.is_empty() {
            out.extend_from_slice(b", ");
        }
        push_general_name(&mut out, name);
    }
    (!out.is_empty()).then(|| out.into())
}

fn push_general_name(out: &mut Vec<u8>, name: &GeneralName<'_>) {
    let (label, value): (&str, String) = match name {
        GeneralName::DNSName(name) => ("DNS:", printable(name.as_bytes())),
        GeneralName::RFC822Name(name) => ("email:", printable(name.as_bytes())),
        GeneralName::URI(name) => ("URI:", printable(name.as_bytes())),
        GeneralName::IPAddress(address) => ("IP Address:", address_text(address)),
        GeneralName::RegisteredID(oid) => {
            let number = oid.to_id_string();
            let known = object(&number).map(|object| object.long.to_owned());
            ("Registered ID:", known.unwrap_or(number))
        }
        GeneralName::DirectoryName(name) => (
            "DirName:",
            NameStyle::ONE_LINE.write(name).unwrap_or_default(),
        ),
        GeneralName::OtherName(oid, value) => {
            out.extend_from_slice(b"othername:");
            return push_other_name(out, &oid.to_id_string(), value);
        }
        GeneralName::X400Address(_) => ("X400Name:", "<unsupported>".to_owned()),
        GeneralName::EDIPartyName(_) => ("EdiPartyName:", "<unsupported>".to_owned()),
        GeneralName::Invalid(tag, bytes) => match tag.0 {
            1 => ("email:", printable(bytes)),
            2 => ("DNS:", printable(bytes)),
            6 => ("URI:", printable(bytes)),
            _ => return,
        },
    };
    out.extend_from_slice(label.as_bytes());
    out.extend_from_slice(value.as_bytes());
}

/// The kinds of `otherName` that OpenSSL prints: number, name and the tag of their text.
const OTHER_NAMES: [(&str, &str, u32); 5] = [
    ("1.3.6.1.4.1.311.20.2.3", "UPN", UTF8_STRING),
    ("1.3.6.1.5.5.7.8.5", "XmppAddr", UTF8_STRING),
    ("1.3.6.1.5.5.7.8.7", "SRVName", IA5_STRING),
    ("1.3.6.1.5.5.7.8.8", "NAIRealm", UTF8_STRING),
    ("1.3.6.1.5.5.7.8.9", "SmtpUTF8Mailbox", UTF8_STRING),
];
const IA5_STRING: u32 = 22;

/// `value` is the content behind the number: a text within an explicit tag.
fn push_other_name(out: &mut Vec<u8>, number: &str, value: &[u8]) {
    let known = OTHER_NAMES.iter().find(|row| row.0 == number);
    let text = Any::from_der(value)
        .ok()
        .and_then(|(_, tagged)| Any::from_der(tagged.data).ok());
    match (known, text) {
        (Some((_, name, tag)), Some((_, text))) if text.tag().0 == *tag => {
            out.extend_from_slice(name.as_bytes());
            out.push(b':');
            out.extend_from_slice(text.data);
        }
        _ => out.extend_from_slice(b"<unsupported>"),
    }
}

/// What is not printable ASCII becomes a dot.
fn printable(bytes: &[u8]) -> String {
    let printable = |byte: &u8| match byte {
        b' '..=b'~' | b'\n' | b'\r' => char::from(*byte),
        _ => '.',
    };
    bytes.iter().map(printable).collect()
}

fn address_text(address: &[u8]) -> String {
    match address.len() {
        4 => {
            let numbers: Vec<String> = address.iter().map(u8::to_string).collect();
            numbers.join(".")
        }
        16 => {
            let groups = address.chunks_exact(2);
            let groups: Vec<String> = groups
                .map(|pair| format!("{:X}", u16::from_be_bytes([pair[0], pair[1]])))
                .collect();
            groups.join(":")
        }
        _ => "<invalid>".to_owned(),
    }
}
