//! Writing a format out: HAProxy's escaping and number forms.

#[cfg(test)]
mod plan_tests;

use std::net::{IpAddr, SocketAddr};

use super::encode::{
    CBOR_BREAK, CBOR_LIST, CBOR_MAP, CBOR_NULL, CBOR_TEXT_PIECES, Encoding, push_cbor_bool,
    push_cbor_bytes, push_cbor_int, push_cbor_text, push_json, to_cbor_text, to_hex,
};
use super::line_bytes::{
    UPPER, hex_bytes, hex_number, is_escaped, is_refused_in_header, is_refused_in_http,
    is_refused_in_uri, line_part, until_nul,
};
use super::numbers::{bare_number, wide};
use super::plan::{Step, encoding};
use super::{AliasId, Flags, Item, ItemType, LogFormat, Usage};
use crate::calendar::{padded, push_log_date, zone};
use crate::facts::{
    AddressPair, CaptureFacts, ExchangeNumbers, Facts, Side, Time, TlsSessionFacts,
};
use crate::fetch::tls::{cipher_name, version_name};
use crate::number_text::{push_int, push_millis, push_v4};
use crate::scratch::Scratch;
use crate::value::{Sample, SampleKind, Value, push_v6};

/// The numbers of what is no exchange.
static UNKNOWN_NUMBERS: ExchangeNumbers = ExchangeNumbers::UNKNOWN;

impl LogFormat {
    /// Appends the line to `out`, samples and all. Nothing ends it.
    pub fn render(&self, facts: &dyn Facts, scratch: &mut Scratch, out: &mut Vec<u8>) {
        match encoding(self.usage, self.global) {
            Encoding::Plain => self.render_plain(facts, scratch, out),
            encoding => self.render_encoded(facts, scratch, out, encoding),
        }
    }

    fn render_plain(&self, facts: &dyn Facts, scratch: &mut Scratch, out: &mut Vec<u8>) {
        let mut writer = self.writer(facts, out);
        // Where the last blank ends of which a step asks.
        let mut blank_end = writer.out.len();
        for step in &self.steps {
            match step {
                Step::Byte(byte) => writer.out.push(*byte),
                Step::Text(text) => writer.out.extend_from_slice(text),
                Step::Blank => {
                    if writer.out.len() > blank_end {
                        writer.out.push(b' ');
                        blank_end = writer.out.len();
                    }
                }
                Step::Alias(id, flags) => {
                    writer.flags = *flags;
                    writer.alias(*id, scratch);
                }
                Step::Number(id) => {
                    if let Some(number) = bare_number(writer.numbers(), *id) {
                        push_int(writer.out, number);
                    }
                }
                Step::Item(index) => {
                    if let Some(item) = self.items.get(*index) {
                        self.render_item(item, scratch, &mut writer);
                    }
                }
            }
        }
    }

    /// Writes an item in its own encoding.
    fn render_item(&self, item: &Item, scratch: &mut Scratch, writer: &mut ItemWriter<'_>) {
        let (Item::Alias { flags, .. } | Item::Sample { flags, .. }) = item else {
            return;
        };
        let start = writer.out.len();
        writer.encoding = encoding(self.usage, *flags);
        writer.item(item, scratch);
        if writer.encoding == Encoding::Cbor {
            to_hex(writer.out, start);
        }
        writer.encoding = Encoding::Plain;
    }

    /// A writer of its items, which are not encoded.
    fn writer<'w>(&self, facts: &'w dyn Facts, out: &'w mut Vec<u8>) -> ItemWriter<'w> {
        ItemWriter {
            facts,
            numbers: None,
            flags: Flags::default(),
            usage: self.usage,
            encoding: Encoding::Plain,
            keeps_binary: self.global.bin && self.usage != Usage::Http,
            cast: None,
            out,
        }
    }

    /// An object, or a map, of the named items.
    fn render_encoded(
        &self,
        facts: &dyn Facts,
        scratch: &mut Scratch,
        out: &mut Vec<u8>,
        encoding: Encoding,
    ) {
        let start = out.len();
        let mut writer = self.writer(facts, out);
        writer.encoding = encoding;
        writer.out.push(match encoding {
            Encoding::Cbor => CBOR_MAP,
            _ => b'{',
        });
        let mut is_first = true;
        for item in &self.items {
            let (Item::Alias { name, .. } | Item::Sample { name, .. }) = item else {
                continue;
            };
            let Some(name) = name else {
                continue;
            };
            if encoding == Encoding::Cbor {
                push_cbor_text(writer.out, name.as_bytes());
            } else {
                if !std::mem::take(&mut is_first) {
                    writer.out.extend_from_slice(b", ");
                }
                writer.out.push(b'"');
                writer.out.extend_from_slice(name.as_bytes());
                writer.out.extend_from_slice(b"\": ");
            }
            writer.item(item, scratch);
        }
        if encoding != Encoding::Cbor {
            out.push(b'}');
            return;
        }
        out.push(CBOR_BREAK);
        if !self.global.bin {
            to_hex(out, start);
        }
    }
}

/// The frontend's name, or nothing.
fn frontend_name(facts: &dyn Facts) -> &str {
    facts.frontend().map_or("", |frontend| frontend.name())
}

/// The TLS session with the client.
fn tls_session(facts: &dyn Facts) -> Option<&dyn TlsSessionFacts> {
    facts.connection(Side::Client)?.tls()
}

/// The ends of the connection to the server.
fn server_ends(facts: &dyn Facts) -> AddressPair<'_> {
    let connection = facts.connection(Side::Server);
    connection.map_or_else(AddressPair::default, |connection| connection.address_pair())
}

/// One item being written.
struct ItemWriter<'a> {
    facts: &'a dyn Facts,
    /// The numbers of the exchange, once an item has asked for them.
    numbers: Option<&'a ExchangeNumbers>,
    flags: Flags,
    usage: Usage,
    encoding: Encoding,
    /// Samples of bytes are written as bytes.
    keeps_binary: bool,
    cast: Option<ItemType>,
    out: &'a mut Vec<u8>,
}

impl<'a> ItemWriter<'a> {
    /// Writes an alias or a sample.
    fn item(&mut self, item: &Item, scratch: &mut Scratch) {
        match item {
            Item::Alias {
                alias, flags, cast, ..
            } => {
                (self.flags, self.cast) = (*flags, *cast);
                self.alias(alias.id, scratch);
            }
            Item::Sample {
                expr, flags, cast, ..
            } => {
                (self.flags, self.cast) = (*flags, *cast);
                // As in HAProxy, samples of rules stand without quotes: they are for fields and URIs.
                self.flags.quote &= !matches!(self.usage, Usage::Http | Usage::UniqueId);
                let mark = scratch.mark();
                match expr.sample(self.facts, scratch) {
                    Some(sample) => self.sample(sample, scratch),
                    None => self.write_absent(),
                }
                scratch.rewind(mark);
            }
            Item::Literal(_) | Item::Blank => {}
        }
    }

    fn numbers(&mut self) -> &'a ExchangeNumbers {
        let facts = self.facts;
        self.numbers
            .get_or_insert_with(|| facts.line_numbers().unwrap_or(&UNKNOWN_NUMBERS))
    }

    fn is_mandatory(&self) -> bool {
        self.usage == Usage::Log
    }

    /// What is not known: a dash in logs, nothing elsewhere; quotes stay.
    fn write_absent(&mut self) {
        self.text(b"");
    }

    /// Text, between quotes when asked, a dash when empty in a log and not quoted.
    fn text(&mut self, bytes: &[u8]) {
        match self.encoding {
            Encoding::Plain => self.plain_text(bytes),
            Encoding::Json { utf8 } => {
                self.out.push(b'"');
                push_json(self.out, bytes, utf8);
                self.out.push(b'"');
            }
            Encoding::Cbor if bytes.is_empty() => self.out.push(CBOR_NULL),
            Encoding::Cbor => push_cbor_text(self.out, bytes),
        }
    }

    /// What an encoding tells from an empty text; nothing where there is no encoding.
    fn write_null(&mut self) {
        match self.encoding {
            Encoding::Plain => {}
            Encoding::Json { .. } => self.out.extend_from_slice(b"null"),
            Encoding::Cbor => self.out.push(CBOR_NULL),
        }
    }

    /// Text that needs no escapes.
    fn unescaped(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let start = self.out.len();
        write(self.out);
        match self.encoding {
            Encoding::Plain => {}
            Encoding::Json { .. } => {
                self.out.insert(start, b'"');
                self.out.push(b'"');
            }
            Encoding::Cbor => to_cbor_text(self.out, start),
        }
    }

    fn plain_text(&mut self, bytes: &[u8]) {
        if self.flags.quote {
            self.out.push(b'"');
        }
        if bytes.is_empty() {
            if self.is_mandatory() && !self.flags.quote {
                self.out.push(b'-');
            }
        } else if self.flags.escape {
            for byte in bytes {
                if is_escaped(*byte) {
                    self.out.push(b'\\');
                }
                self.out.push(*byte);
            }
        } else {
            self.out.extend_from_slice(bytes);
        }
        if self.flags.quote {
            self.out.push(b'"');
        }
    }

    /// Text between quotes when asked, with the bytes of `refused` as `escape` and two digits.
    fn encoded(&mut self, bytes: &[u8], escape: u8, refused: impl Fn(u8) -> bool) {
        self.in_quotes(|line| line.encode(bytes, escape, refused));
    }

    /// Between quotes: where they are asked, and in JSON. In CBOR it is a text in pieces.
    fn in_quotes(&mut self, write: impl FnOnce(&mut Self)) {
        let (open, close) = match self.encoding {
            Encoding::Plain if self.flags.quote => (b"\"".as_slice(), b"\"".as_slice()),
            Encoding::Plain => (b"".as_slice(), b"".as_slice()),
            Encoding::Json { .. } => (b"\"".as_slice(), b"\"".as_slice()),
            Encoding::Cbor => (&[CBOR_TEXT_PIECES][..], &[CBOR_BREAK][..]),
        };
        self.out.extend_from_slice(open);
        write(self);
        self.out.extend_from_slice(close);
    }

    /// A part of an encoded text.
    fn piece(&mut self, bytes: &[u8]) {
        match self.encoding {
            Encoding::Plain => self.out.extend_from_slice(bytes),
            Encoding::Json { utf8 } => push_json(self.out, bytes, utf8),
            Encoding::Cbor if bytes.is_empty() => {}
            Encoding::Cbor => push_cbor_text(self.out, bytes),
        }
    }

    fn encode(&mut self, bytes: &[u8], escape: u8, refused: impl Fn(u8) -> bool) {
        if self.encoding != Encoding::Plain {
            let mut rest = bytes;
            while let Some(at) = rest.iter().position(|byte| refused(*byte)) {
                let byte = rest[at];
                if at == 0 && self.encoding == Encoding::Cbor {
                    // HAProxy writes what stands between two escapes even if that is nothing.
                    push_cbor_text(self.out, b"");
                }
                self.piece(&rest[..at]);
                let [high, low] = [byte >> 4, byte & 15].map(|digit| UPPER[usize::from(digit)]);
                self.piece(&[escape, high, low]);
                rest = &rest[at + 1..];
            }
            return self.piece(rest);
        }
        // Examines all bytes without stopping, which is done many at a time: most texts are clean.
        let is_changed = |byte: u8| refused(byte) | (self.flags.escape & is_escaped(byte));
        if !bytes
            .iter()
            .fold(false, |any, byte| any | is_changed(*byte))
        {
            return self.out.extend_from_slice(bytes);
        }
        for byte in bytes {
            if refused(*byte) {
                self.out.push(escape);
                self.out.push(UPPER[usize::from(byte >> 4)]);
                self.out.push(UPPER[usize::from(byte & 15)]);
            } else if self.flags.escape && is_escaped(*byte) {
                self.out.extend_from_slice(&[b'\\', *byte]);
            } else {
                self.out.push(*byte);
            }
        }
    }

    fn sample(&mut self, sample: Sample<'_>, scratch: &mut Scratch) {
        if self.encoding != Encoding::Plain {
            return self.encoded_sample(sample, scratch);
        }
        // Cast to a text, it would end at a NUL.
        if let (true, Sample::Bin(bytes)) = (self.keeps_binary, &sample) {
            return self.out.extend_from_slice(scratch.bytes(*bytes));
        }
        // Nothing in the texts of numbers and addresses is escaped anywhere.
        let is_text = matches!(sample, Sample::Str(_) | Sample::Bin(_) | Sample::Meth(_));
        if !is_text && !self.flags.quote {
            return sample.value(scratch).append_to(self.out);
        }
        let Some(sample) = sample.cast(SampleKind::Str, scratch) else {
            return self.write_absent();
        };
        let Value::Str(bytes) = sample.value(scratch) else {
            return self.write_absent();
        };
        match self.usage {
            Usage::Http | Usage::UniqueId => self.encoded(bytes, b'%', is_refused_in_http),
            Usage::Log => self.text(until_nul(bytes)),
            Usage::Text => self.text(bytes),
        }
    }

    fn encoded_sample(&mut self, sample: Sample<'_>, scratch: &mut Scratch) {
        let wanted = match self.cast {
            Some(ItemType::Bool) => SampleKind::Bool,
            Some(ItemType::Int) => SampleKind::Int,
            Some(ItemType::Str) => SampleKind::Str,
            None => match sample {
                Sample::Bool(_) | Sample::Int(_) | Sample::Bin(_) => SampleKind::Any,
                _ => SampleKind::Str,
            },
        };
        let Some(sample) = sample.cast(wanted, scratch) else {
            return self.write_absent();
        };
        match (sample.value(scratch), self.encoding) {
            (Value::Bool(flag), _) => self.flag(flag),
            (Value::Int(number), Encoding::Cbor) => push_cbor_int(self.out, number),
            (Value::Int(number), _) => push_int(self.out, number),
            (Value::Bin(bytes), Encoding::Json { utf8 }) if self.keeps_binary => {
                push_json(self.out, bytes, utf8);
            }
            (Value::Bin(bytes), Encoding::Cbor) if !bytes.is_empty() => {
                push_cbor_bytes(self.out, bytes);
            }
            (Value::Str(bytes) | Value::Bin(bytes) | Value::Meth(bytes), _) => {
                self.text(until_nul(bytes));
            }
            (Value::Ipv4(_) | Value::Ipv6(_), _) => self.write_absent(),
        }
    }

    fn flag(&mut self, flag: bool) {
        if self.encoding == Encoding::Cbor {
            push_cbor_bool(self.out, flag);
        } else {
            let text: &[u8] = if flag { b"true" } else { b"false" };
            self.out.extend_from_slice(text);
        }
    }

    fn alias(&mut self, id: AliasId, scratch: &mut Scratch) {
        use AliasId as Id;
        match id {
            Id::Frontend
            | Id::FrontendTransport
            | Id::Backend
            | Id::Server
            | Id::Hostname
            | Id::UniqueId
            | Id::Origin
            | Id::TlsCipher
            | Id::TlsVersion => self.name(id),
            Id::ClientIp
            | Id::ClientPort
            | Id::FrontendIp
            | Id::FrontendPort
            | Id::SourceIp
            | Id::SourcePort
            | Id::ServerIp
            | Id::ServerPort => self.address(id),
            Id::RequestLine
            | Id::Method
            | Id::Uri
            | Id::Path
            | Id::PathOnly
            | Id::Query
            | Id::HttpVersion => self.line(id),
            Id::RequestCookie
            | Id::ResponseCookie
            | Id::RequestCaptures
            | Id::ResponseCaptures
            | Id::RequestCapturesClf
            | Id::ResponseCapturesClf => self.captured(id),
            Id::AcceptDate
            | Id::RequestDate
            | Id::AcceptDateGmt
            | Id::AcceptDateLocal
            | Id::RequestDateGmt
            | Id::RequestDateLocal
            | Id::AcceptStamp
            | Id::AcceptMillis => self.date(id, scratch),
            Id::Options => {}
            _ => self.write_number(id),
        }
    }

    fn name(&mut self, id: AliasId) {
        let facts = self.facts;
        match id {
            AliasId::Frontend => self.text(frontend_name(facts).as_bytes()),
            AliasId::FrontendTransport => {
                let name = frontend_name(facts);
                let quote = std::mem::take(&mut self.flags.quote);
                let connection = facts.connection(Side::Client);
                let is_tls = connection.is_some_and(|connection| connection.is_tls());
                let mark: &[u8] = if is_tls { b"~" } else { b"" };
                if self.encoding != Encoding::Plain {
                    self.in_quotes(|line| {
                        line.piece(name.as_bytes());
                        line.piece(mark);
                    });
                    return;
                }
                self.quoted(quote, |line| {
                    line.text(name.as_bytes());
                    line.out.extend_from_slice(mark);
                });
            }
            AliasId::Backend => {
                let name = match facts.backend() {
                    Some(backend) => backend.name(),
                    None => frontend_name(facts),
                };
                self.text(name.as_bytes());
            }
            AliasId::Server => {
                let name = match facts.server() {
                    Some(server) => server.name(),
                    None => facts.exchange().service_name().unwrap_or("<NOSRV>"),
                };
                self.text(name.as_bytes());
            }
            AliasId::Hostname => self.text(facts.process().hostname().as_bytes()),
            AliasId::UniqueId => self.text(facts.exchange().unique_id().unwrap_or_default()),
            AliasId::Origin => self.text(facts.exchange().log_origin().as_bytes()),
            AliasId::TlsCipher => {
                let cipher = tls_session(facts).and_then(|tls| cipher_name(tls.cipher()?));
                self.text(cipher.unwrap_or_default().as_bytes());
            }
            AliasId::TlsVersion => {
                let version = tls_session(facts).and_then(|tls| tls.version());
                self.text(version.map_or("", version_name).as_bytes());
            }
            _ => {}
        }
    }

    fn quoted(&mut self, quote: bool, write: impl FnOnce(&mut Self)) {
        if quote {
            self.out.push(b'"');
        }
        write(self);
        if quote {
            self.out.push(b'"');
        }
    }

    fn address(&mut self, id: AliasId) {
        let facts = self.facts;
        match id {
            AliasId::ClientIp => self.ip(facts.address_pair().source, true),
            AliasId::ClientPort => self.port(facts.address_pair().source, true),
            AliasId::FrontendIp => self.ip(facts.address_pair().destination, false),
            AliasId::FrontendPort => self.port(facts.address_pair().destination, false),
            AliasId::SourceIp => self.ip(server_ends(facts).source, false),
            AliasId::SourcePort => self.port(server_ends(facts).source, false),
            AliasId::ServerIp => self.ip(server_ends(facts).destination, false),
            AliasId::ServerPort => self.port(server_ends(facts).destination, false),
            _ => {}
        }
    }

    fn ip(&mut self, address: Option<&SocketAddr>, is_client: bool) {
        let Some(address) = address else {
            return self.text(if is_client { b"unix" } else { b"" });
        };
        let address = address.ip().to_canonical();
        let is_hex = self.flags.hex;
        let quote = self.flags.quote && self.encoding == Encoding::Plain && !is_hex;
        self.quoted(quote, |line| {
            line.unescaped(|out| match address {
                IpAddr::V4(v4) if is_hex => hex_bytes(out, &v4.octets()),
                IpAddr::V6(v6) if is_hex => hex_bytes(out, &v6.octets()),
                IpAddr::V4(v4) => push_v4(out, v4),
                IpAddr::V6(v6) => push_v6(out, &v6),
            });
        });
    }

    fn port(&mut self, address: Option<&SocketAddr>, is_client: bool) {
        match address {
            Some(address) => self.number_or_hex(i64::from(address.port()), 4),
            None if is_client => {
                let id = self.facts.listener().map_or(0, |listener| listener.id());
                self.number_or_hex(id, 4);
            }
            None => self.write_absent(),
        }
    }

    fn number_or_hex(&mut self, number: i64, digits: usize) {
        if self.flags.hex {
            self.unescaped(|out| hex_number(out, number as u64, digits));
        } else {
            self.number(number);
        }
    }

    fn number(&mut self, number: i64) {
        match (self.encoding, self.cast) {
            (Encoding::Plain, _) => push_int(self.out, number),
            (_, Some(ItemType::Bool)) => self.flag(number != 0),
            (Encoding::Cbor, _) => push_cbor_int(self.out, number),
            (Encoding::Json { .. }, Some(ItemType::Str)) => {
                self.unescaped(|out| push_int(out, number));
            }
            (Encoding::Json { .. }, _) => push_int(self.out, number),
        }
    }

    fn date(&mut self, id: AliasId, scratch: &mut Scratch) {
        let record = self.numbers();
        let local = |time: Time| self.facts.process().utc_offset_secs(time.secs);
        let (time, ahead, form) = match id {
            AliasId::AcceptDate => (record.accepted, local(record.accepted), DateForm::Millis),
            AliasId::RequestDate => (record.requested, local(record.requested), DateForm::Millis),
            AliasId::AcceptDateGmt => (record.accepted, 0, DateForm::Zone),
            AliasId::AcceptDateLocal => (record.accepted, local(record.accepted), DateForm::Zone),
            AliasId::RequestDateGmt => (record.requested, 0, DateForm::Zone),
            AliasId::RequestDateLocal => {
                (record.requested, local(record.requested), DateForm::Zone)
            }
            AliasId::AcceptStamp => return self.number_or_hex(record.accepted.secs, 4),
            _ => {
                let millis = i64::from(record.accepted.micros / 1000);
                if self.flags.hex || self.encoding != Encoding::Plain {
                    self.number_or_hex(millis, 2);
                } else {
                    padded(self.out, millis, 3, b'0');
                }
                return;
            }
        };
        self.unescaped(|out| {
            out.extend_from_slice(scratch.date.of(time.secs, ahead, push_log_date));
            match form {
                DateForm::Millis => {
                    out.push(b'.');
                    push_millis(out, time.micros / 1000);
                }
                DateForm::Zone => {
                    out.push(b' ');
                    zone(out, ahead);
                }
            }
        });
    }

    /// The request line, or a part of it.
    fn line(&mut self, id: AliasId) {
        let part = match self.facts.exchange().request_line() {
            Some(line) => line_part(line, id),
            None => b"<BADREQ>",
        };
        self.encoded(part, b'#', is_refused_in_uri);
    }

    fn captured(&mut self, id: AliasId) {
        let facts = self.facts;
        match id {
            AliasId::RequestCookie => self.text(facts.captures(Side::Client).cookie),
            AliasId::ResponseCookie => self.text(facts.captures(Side::Server).cookie),
            AliasId::RequestCaptures => self.captures(facts.captures(Side::Client)),
            AliasId::ResponseCaptures => self.captures(facts.captures(Side::Server)),
            AliasId::RequestCapturesClf => self.captures_clf(facts.captures(Side::Client)),
            _ => self.captures_clf(facts.captures(Side::Server)),
        }
    }

    /// Without a request there are no captures, not even empty ones.
    fn has_no_captures(&self) -> bool {
        self.encoding != Encoding::Plain && self.facts.exchange().request_line().is_none()
    }

    /// `{one|two}`; nothing at all when no capture is declared.
    fn captures(&mut self, captures: CaptureFacts<'_>) {
        if captures.slot_count == 0 || self.has_no_captures() {
            return self.write_null();
        }
        self.in_quotes(|line| {
            line.piece(b"{");
            for number in 0..captures.slot_count {
                if number > 0 {
                    line.piece(b"|");
                }
                let held = captures.slot(number).unwrap_or_default();
                line.encode(held, b'#', is_refused_in_header);
            }
            line.piece(b"}");
        });
    }

    /// Each capture by itself, or a dash: a list where it is encoded.
    fn captures_clf(&mut self, captures: CaptureFacts<'_>) {
        let (open, between, close): (&[u8], &[u8], &[u8]) = match self.encoding {
            Encoding::Plain => (b"", b" ", b""),
            _ if captures.slot_count == 0 || self.has_no_captures() => return self.write_null(),
            Encoding::Json { .. } => (b"[", b", ", b"]"),
            Encoding::Cbor => (&[CBOR_LIST], b"", &[CBOR_BREAK]),
        };
        self.out.extend_from_slice(open);
        for number in 0..captures.slot_count {
            if number > 0 {
                self.out.extend_from_slice(between);
            }
            match captures.slot(number) {
                Some(value) => self.encoded(value, b'#', is_refused_in_header),
                None if self.encoding == Encoding::Plain => self.write_absent(),
                None => {
                    let dash: &[u8] = if self.flags.quote { b"" } else { b"-" };
                    self.in_quotes(|line| line.piece(dash));
                }
            }
        }
        self.out.extend_from_slice(close);
    }

    fn write_number(&mut self, id: AliasId) {
        let record = self.numbers();
        let is_plain = self.encoding == Encoding::Plain;
        match id {
            AliasId::Pid => self.number_or_hex(self.facts.process().pid(), 4),
            AliasId::RequestCounter => self.number_or_hex(wide(record.request_counter), 4),
            AliasId::Termination => {
                self.unescaped(|out| out.extend_from_slice(&record.termination[..2]));
            }
            AliasId::TerminationCookie => {
                self.unescaped(|out| out.extend_from_slice(&record.termination));
            }
            AliasId::ActiveTime | AliasId::TotalTime | AliasId::UserTime | AliasId::BytesOut => {
                if record.asap && is_plain {
                    self.out.push(b'+');
                }
                self.number(match id {
                    AliasId::ActiveTime => record.active_ms,
                    AliasId::TotalTime => record.total_ms,
                    AliasId::UserTime => record.user_ms,
                    _ => wide(record.bytes_out),
                });
            }
            AliasId::Retries => {
                if record.redispatched && is_plain {
                    self.out.push(b'+');
                }
                self.number(i64::from(record.retries));
            }
            _ => {
                if let Some(number) = bare_number(record, id) {
                    self.number(number);
                }
            }
        }
    }
}

#[derive(Clone, Copy)]
enum DateForm {
    /// `21/Nov/2026:09:40:07.123`.
    Millis,
    /// `21/Nov/2026:09:40:07 +0000`.
    Zone,
}
