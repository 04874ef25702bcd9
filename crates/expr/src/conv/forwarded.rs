//! The parts of a `Forwarded` header, RFC 7239, manual 7.3.1.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::args::ArgKind::Text;
use crate::args::{Arg, bytes_arg};
use crate::conv::{Converter, NO_ARGS, args, rewritten, row, text_of};
use crate::evaluation::Evaluation;
use crate::number_text::push_int;
use crate::scratch::SampleText;
use crate::value::{Sample, SampleKind};

/// The rows of this family, in alphabetical order.
#[rustfmt::skip] // What belongs together stands on one line.
pub(super) const ROWS: &[Converter] = &[
    row("rfc7239_field", args(1, &[Text]), SampleKind::Str, SampleKind::Str)
        .examples("rfc7239_field(for)", "rfc7239_field(for,by)")
        .implemented("a parameter of a Forwarded header: proto, host, for or by", field),
    row("rfc7239_is_valid", NO_ARGS, SampleKind::Str, SampleKind::Bool)
        .implemented("whether it is a Forwarded header as RFC 7239 writes it", is_valid),
    row("rfc7239_n2nn", NO_ARGS, SampleKind::Str, SampleKind::Any)
        .implemented("the name in a node of a Forwarded header", node_to_name),
    row("rfc7239_n2np", NO_ARGS, SampleKind::Str, SampleKind::Any)
        .implemented("the port in a node of a Forwarded header", node_to_port),
    row("rfc7239_nn", NO_ARGS, SampleKind::Any, SampleKind::Str)
        .implemented("an address or a text as the name of a node", name_of_node),
    row("rfc7239_np", NO_ARGS, SampleKind::Any, SampleKind::Str)
        .implemented("a number or a text as the port of a node", port_of_node),
];

/// The parameters that a header may have, once each.
const PARAMETERS: [&[u8]; 4] = [b"proto", b"host", b"for", b"by"];

/// What a node begins with.
enum NodeName {
    Address(IpAddr),
    Unknown,
    /// From the underscore on, of this length.
    Obfuscated(usize),
}

/// The port of a node.
enum NodePort {
    Number(u16),
    /// From the underscore on, where it begins and ends.
    Obfuscated(usize, usize),
}

/// `name[:port]` at the beginning of a text, and where it ends.
struct Node {
    name: NodeName,
    port: Option<NodePort>,
    end: usize,
}

impl Node {
    fn parse(text: &[u8]) -> Option<Node> {
        let (name, end) = node_name(text)?;
        if text.get(end) != Some(&b':') {
            let port = None;
            return Some(Node { name, port, end });
        }
        let from = end + 1;
        let (port, end) = match text.get(from)? {
            b'_' => {
                let length = obfuscated(&text[from..])?;
                (NodePort::Obfuscated(from, from + length), from + length)
            }
            _ => {
                let digits = text[from..]
                    .iter()
                    .take_while(|byte| byte.is_ascii_digit())
                    .count();
                (
                    NodePort::Number(port_number(&text[from..from + digits])?),
                    from + digits,
                )
            }
        };
        Some(Node {
            name,
            port: Some(port),
            end,
        })
    }
}

/// A port other than 0, in decimal.
fn port_number(digits: &[u8]) -> Option<u16> {
    let port = std::str::from_utf8(digits).ok()?.parse().ok()?;
    (port != 0).then_some(port)
}

/// How long the identifier is that begins with an underscore.
fn obfuscated(text: &[u8]) -> Option<usize> {
    let rest = text.strip_prefix(b"_")?;
    let length = rest.iter().take_while(|byte| is_obfuscated(**byte)).count();
    (length > 0).then_some(length + 1)
}

const fn is_obfuscated(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-')
}

fn node_name(text: &[u8]) -> Option<(NodeName, usize)> {
    match text.first()? {
        b'_' => obfuscated(text).map(|end| (NodeName::Obfuscated(end), end)),
        b'[' => {
            let end = memchr::memchr(b']', text)?;
            let address = std::str::from_utf8(&text[1..end]).ok()?;
            // Only hexadecimal digits and colons make an address of IPv6 here.
            if address.contains('.') {
                return None;
            }
            let address: Ipv6Addr = address.parse().ok()?;
            Some((NodeName::Address(address.into()), end + 1))
        }
        _ if text.starts_with(b"unknown") => Some((NodeName::Unknown, b"unknown".len())),
        _ => {
            let end = text
                .iter()
                .take_while(|byte| byte.is_ascii_digit() || **byte == b'.')
                .count();
            let address: Ipv4Addr = std::str::from_utf8(&text[..end]).ok()?.parse().ok()?;
            Some((NodeName::Address(address.into()), end))
        }
    }
}

/// Whether `text` is a host, with a port where `quoted` allows it.
fn is_host(text: &[u8], quoted: bool) -> bool {
    let end = match text.first() {
        Some(b'[') if quoted => {
            let Some((NodeName::Address(_), end)) = node_name(text) else {
                return false;
            };
            end
        }
        _ => text
            .iter()
            .take_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-'))
            .count(),
    };
    match &text[end..] {
        [] => quoted || end > 0,
        [b':', digits @ ..] => quoted && port_number(digits).is_some(),
        _ => false,
    }
}

/// Whether `text` is a node, with a port or of IPv6 where `quoted` allows it.
fn is_node(text: &[u8], quoted: bool) -> bool {
    Node::parse(text).is_some_and(|node| {
        let is_plain =
            node.port.is_none() && !matches!(node.name, NodeName::Address(IpAddr::V6(_)));
        node.end == text.len() && (quoted || is_plain)
    })
}

/// Where the value of each parameter begins and ends; `None` for a header that is not valid.
fn parameters(header: &[u8]) -> Option<[Option<(usize, usize)>; 4]> {
    let mut found = [None; 4];
    let mut at = 0;
    loop {
        let equals = at + memchr::memchr(b'=', &header[at..])?;
        let number = PARAMETERS
            .iter()
            .position(|name| **name == header[at..equals])?;
        let from = equals + 1;
        let quoted = header.get(from) == Some(&b'"');
        let (from, to, end) = if quoted {
            let from = from + 1;
            let to = from + memchr::memchr(b'"', &header[from..])?;
            (from, to, to + 1)
        } else {
            let to = memchr::memchr(b';', &header[from..]).map_or(header.len(), |at| from + at);
            (from, to, to)
        };
        let value = &header[from..to];
        let good = match number {
            0 => !quoted && matches!(value, b"http" | b"https"),
            1 => is_host(value, quoted),
            _ => is_node(value, quoted),
        };
        if !good || found[number].is_some() {
            return None;
        }
        found[number] = Some((from, to));
        match header.get(end) {
            None => return Some(found),
            Some(b';') => at = end + 1,
            Some(_) => return None,
        }
    }
}

/// Whether the value of a `Forwarded` field is one element of the grammar of RFC 7239.
pub fn is_forwarded_element(value: &[u8]) -> bool {
    parameters(value).is_some()
}

fn is_valid<'f>(
    cx: &mut Evaluation<'f, '_>,
    _: &'f [Arg],
    input: Sample<'f>,
) -> Option<Sample<'f>> {
    let header = cx.scratch.bytes(text_of(input)?);
    Some(Sample::Bool(parameters(header).is_some()))
}

fn field<'f>(
    cx: &mut Evaluation<'f, '_>,
    args: &'f [Arg],
    input: Sample<'f>,
) -> Option<Sample<'f>> {
    let text = text_of(input)?;
    let wanted = bytes_arg(args, 0);
    let number = PARAMETERS.iter().position(|name| *name == wanted)?;
    let (from, to) = parameters(cx.scratch.bytes(text))?[number]?;
    Some(Sample::Str(cx.scratch.part(text, from, to)))
}

fn node_to_name<'f>(
    cx: &mut Evaluation<'f, '_>,
    _: &'f [Arg],
    input: Sample<'f>,
) -> Option<Sample<'f>> {
    let text = text_of(input)?;
    let node = Node::parse(cx.scratch.bytes(text))?;
    Some(match node.name {
        NodeName::Address(address) => Sample::ip(address),
        NodeName::Unknown => Sample::str(b"unknown"),
        NodeName::Obfuscated(end) => Sample::Str(cx.scratch.part(text, 0, end)),
    })
}

fn node_to_port<'f>(
    cx: &mut Evaluation<'f, '_>,
    _: &'f [Arg],
    input: Sample<'f>,
) -> Option<Sample<'f>> {
    let text = text_of(input)?;
    let node = Node::parse(cx.scratch.bytes(text))?;
    Some(match node.port? {
        NodePort::Number(number) => Sample::Int(i64::from(number)),
        NodePort::Obfuscated(from, to) => Sample::Str(cx.scratch.part(text, from, to)),
    })
}

/// An underscore and the text, which must fit into an identifier.
fn obfuscating<'f>(cx: &mut Evaluation<'f, '_>, text: SampleText<'f>) -> Option<Sample<'f>> {
    let made = rewritten(cx, text, |bytes, out| {
        out.push(b'_');
        out.extend_from_slice(bytes);
        bytes.iter().all(|byte| is_obfuscated(*byte)).then_some(())
    })?;
    Some(Sample::Str(made))
}

fn name_of_node<'f>(
    cx: &mut Evaluation<'f, '_>,
    _: &'f [Arg],
    input: Sample<'f>,
) -> Option<Sample<'f>> {
    if let Sample::Ipv6(address) = input {
        let mut out = cx.scratch.open();
        out.push(b'[');
        Sample::Ipv6(address).value(cx.scratch).append_to(&mut out);
        out.push(b']');
        return Some(Sample::Str(cx.scratch.close(out)));
    }
    let text = text_of(input.cast(SampleKind::Str, cx.scratch)?)?;
    if matches!(input, Sample::Ipv4(_)) {
        return Some(Sample::Str(text));
    }
    if cx.scratch.bytes(text).is_empty() {
        return Some(Sample::str(b"unknown"));
    }
    obfuscating(cx, text)
}

fn port_of_node<'f>(
    cx: &mut Evaluation<'f, '_>,
    _: &'f [Arg],
    input: Sample<'f>,
) -> Option<Sample<'f>> {
    if let Sample::Int(number) = input {
        let mut out = cx.scratch.open();
        push_int(&mut out, i64::from(number as u32));
        return Some(Sample::Str(cx.scratch.close(out)));
    }
    let text = text_of(input.cast(SampleKind::Str, cx.scratch)?)?;
    if cx.scratch.bytes(text).is_empty() {
        return None;
    }
    obfuscating(cx, text)
}
