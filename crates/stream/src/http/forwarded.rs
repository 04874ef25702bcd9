//! The value of `Forwarded` (RFC 7239; configuration manual, "option forwarded").
//!
//! The values of expressions come from the traffic, so only what the RFC's grammar allows is
//! passed on. As in HAProxy, an invalid host becomes empty, an invalid node `unknown`, and an
//! invalid port is left out.

use std::io::Write as _;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use ballast_expr::{Value, is_forwarded_element};
use ballast_message::{Fields, NoRoom};
use ballast_model::{ForwardedHeader, ForwardedNode};

use crate::context::Context;
use crate::exchange::Exchange;
use crate::view::View;

/// The whole value; empty where the option asks for nothing.
pub(super) fn value(
    option: &ForwardedHeader,
    context: &Context<'_>,
    exchange: &Exchange,
) -> Vec<u8> {
    let mut out = Vec::with_capacity(64);
    let reader = NodeReader {
        view: View::new(context, exchange),
        context,
    };
    if option.proto {
        out.extend_from_slice(b"proto=http");
    }
    match &option.host {
        None => {}
        Some(ForwardedNode::Connection) => {
            if let Some(host) = exchange.request.host() {
                put_host(&mut out, host);
            }
        }
        Some(ForwardedNode::Expression(expr)) => {
            let text = reader.text(expr);
            put_host(&mut out, text.as_deref().unwrap_or_default());
        }
    }
    let (source, destination) = (
        exchange.settings.addresses.source,
        exchange.settings.addresses.destination,
    );
    if let Some(node) = &option.by {
        let (node, port) = reader.ends(node, option.by_port.as_ref(), destination);
        put_node(&mut out, b"by=", &node, port.as_ref());
    }
    if let Some(node) = &option.for_ {
        let (node, port) = reader.ends(node, option.for_port.as_ref(), source);
        put_node(&mut out, b"for=", &node, port.as_ref());
    }
    out
}

/// Appends an element to the last `Forwarded`, if that is one that a reader understands, else in a field
/// of its own: whoever reads the first field alone finds it there. Nothing is appended for no value.
pub(super) fn append(fields: &mut Fields, value: &[u8]) -> Result<(), NoRoom> {
    if value.is_empty() {
        return Ok(());
    }
    let last = fields.positions(b"forwarded").next_back();
    let before = last.and_then(|at| Some((at, fields.field(at)?.value)));
    match before.filter(|(_, value)| is_forwarded_element(value)) {
        Some((at, before)) => {
            let both = [before, value].join(&b","[..]);
            fields.replace_value(at, &both)
        }
        None => fields.add(b"forwarded", value),
    }
}

/// A node (RFC 7239, section 6).
#[derive(Debug, PartialEq)]
enum Node {
    Ip(IpAddr),
    /// A name that hides the address.
    Obfuscated(Vec<u8>),
    Unknown,
}

/// The port after a node's colon: digits or a name. `None` for an invalid one.
type Port = Option<Vec<u8>>;

struct NodeReader<'a> {
    view: View<'a>,
    context: &'a Context<'a>,
}

impl NodeReader<'_> {
    /// A node, and its port where one is asked for.
    fn ends(
        &self,
        node: &ForwardedNode,
        port: Option<&ForwardedNode>,
        address: Option<SocketAddr>,
    ) -> (Node, Option<Port>) {
        let node = match node {
            ForwardedNode::Connection => address.map_or(Node::Unknown, |address| {
                Node::Ip(address.ip().to_canonical())
            }),
            ForwardedNode::Expression(expr) => {
                self.with_value(expr, node_of).unwrap_or(Node::Unknown)
            }
        };
        let port = port.map(|port| match port {
            ForwardedNode::Connection => {
                address.map(|address| address.port().to_string().into_bytes())
            }
            ForwardedNode::Expression(expr) => self.text(expr).and_then(port_of),
        });
        (node, port)
    }

    fn text(&self, expr: &ballast_expr::Expr) -> Option<Vec<u8>> {
        self.with_value(expr, text_of)
    }

    fn with_value<T>(
        &self,
        expr: &ballast_expr::Expr,
        read: impl FnOnce(&Value<'_>) -> T,
    ) -> Option<T> {
        self.context.local.with_memory(|memory| {
            let value = ballast_expr::eval(expr, &self.view, &mut memory.scratch)?;
            Some(read(&value))
        })
    }
}

fn text_of(value: &Value<'_>) -> Vec<u8> {
    let mut text = Vec::new();
    value.append_to(&mut text);
    text
}

fn node_of(value: &Value<'_>) -> Node {
    match value {
        Value::Ipv4(address) => Node::Ip((*address).into()),
        Value::Ipv6(address) => Node::Ip((*address).into()),
        value => node_in(&text_of(value)),
    }
}

/// Parses a node: an address (IPv6 between brackets), a name that hides the address, which begins
/// with an underscore or gets one, or `unknown`.
fn node_in(text: &[u8]) -> Node {
    if text == b"unknown" {
        return Node::Unknown;
    }
    let words = std::str::from_utf8(text).unwrap_or_default();
    if let Ok(v4) = words.parse() {
        return Node::Ip(IpAddr::V4(v4));
    }
    // HAProxy does not accept an IPv6 address that ends in IPv4 notation.
    if let Some(v6) = in_brackets(words).filter(|_| !words.contains('.')) {
        return Node::Ip(IpAddr::V6(v6));
    }
    obfuscated(text).map_or(Node::Unknown, Node::Obfuscated)
}

fn in_brackets(text: &str) -> Option<Ipv6Addr> {
    let inner = text.strip_prefix('[')?.strip_suffix(']')?;
    inner.parse().ok()
}

/// `_` and letters, digits, dots, underscores and hyphens.
fn obfuscated(text: &[u8]) -> Option<Vec<u8>> {
    let is_known = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    if text.is_empty() || !text.iter().all(is_known) {
        return None;
    }
    let has_mark = text[0] == b'_' && text.len() > 1;
    let mark: &[u8] = if has_mark { b"" } else { b"_" };
    Some([mark, text].concat())
}

fn port_of(text: Vec<u8>) -> Port {
    if is_port(&text) {
        return Some(text);
    }
    obfuscated(&text)
}

fn is_port(text: &[u8]) -> bool {
    let number = text.iter().try_fold(0_u32, |number, byte| {
        let digit = byte.is_ascii_digit().then(|| u32::from(byte - b'0'))?;
        Some(number * 10 + digit).filter(|number| *number <= 65535)
    });
    number.is_some_and(|number| number > 0)
}

/// Whether it is a host, with or without a port.
fn is_host(text: &[u8]) -> bool {
    let end = match text.iter().position(|byte| *byte == b']') {
        Some(bracket) => bracket + 1,
        None => text
            .iter()
            .position(|byte| *byte == b':')
            .unwrap_or(text.len()),
    };
    let (host, rest) = text.split_at(end);
    let port_fits = match rest {
        [] => true,
        [b':', port @ ..] => is_port(port),
        _ => false,
    };
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-');
    let is_v6 = || std::str::from_utf8(host).is_ok_and(|host| in_brackets(host).is_some());
    port_fits && !host.is_empty() && (host.iter().all(is_name) || is_v6())
}

fn put_host(out: &mut Vec<u8>, host: &[u8]) {
    let host = if is_host(host) { host } else { b"" };
    separate(out);
    for piece in [b"host=\"", host, b"\""] {
        out.extend_from_slice(piece);
    }
}

/// A node with a port, or in brackets, is quoted: neither is a token.
fn put_node(out: &mut Vec<u8>, name: &[u8], node: &Node, port: Option<&Port>) {
    separate(out);
    out.extend_from_slice(name);
    let is_quoted = port.is_some() || matches!(node, Node::Ip(IpAddr::V6(_)));
    let quote: &[u8] = if is_quoted { b"\"" } else { b"" };
    out.extend_from_slice(quote);
    // Writing to a vector does not fail.
    let _ = match node {
        Node::Ip(IpAddr::V4(v4)) => write!(out, "{v4}"),
        Node::Ip(IpAddr::V6(v6)) => write!(out, "[{v6}]"),
        Node::Obfuscated(name) => out.write_all(name),
        Node::Unknown => out.write_all(b"unknown"),
    };
    if let Some(Some(port)) = port {
        out.push(b':');
        out.extend_from_slice(port);
    }
    out.extend_from_slice(quote);
}

fn separate(out: &mut Vec<u8>) {
    if !out.is_empty() {
        out.push(b';');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_names_or_addresses_with_or_without_a_port() {
        for host in [
            "example.com",
            "a-b.c",
            "1.2.3.4:80",
            "[::1]",
            "[::1]:65535",
            "a:08",
        ] {
            assert!(is_host(host.as_bytes()), "{host}");
        }
        for host in [
            "", ":80", "a:", "a:0", "a:65536", "a:8x", "::1", "[::1", "[::1]x", "[x]", "[::1]:",
            "a,b", "a b", "a\r\nb", "a\0", "a\"b", "a;b", "a/b", "a_b", "a@b", "é", "a]",
        ] {
            assert!(!is_host(host.as_bytes()), "{host:?}");
        }
    }

    #[test]
    fn nodes_are_addresses_or_names_that_hide_them() {
        let mut out = Vec::new();
        for (text, port, expected) in [
            ("1.2.3.4", None, "1.2.3.4"),
            ("1.2.3.4", Some("80"), "\"1.2.3.4:80\""),
            ("1.2.3.4", Some("99999"), "\"1.2.3.4:_99999\""),
            ("1.2.3.4", Some("8\r\n0"), "\"1.2.3.4\""),
            ("1.2.3.4:80", None, "unknown"),
            ("[::1]", None, "\"[::1]\""),
            ("::1", None, "unknown"),
            ("unknown", Some("_p"), "\"unknown:_p\""),
            ("abc", None, "_abc"),
            ("_abc", None, "_abc"),
            ("_", Some("_"), "\"__:__\""),
            ("", Some(""), "\"unknown\""),
            ("a\r\nb", None, "unknown"),
            ("_a\0", None, "unknown"),
            ("_\"", None, "unknown"),
        ] {
            out.clear();
            let port = port.map(|port| port_of(port.as_bytes().to_vec()));
            put_node(&mut out, b"", &node_in(text.as_bytes()), port.as_ref());
            assert_eq!(String::from_utf8_lossy(&out), expected, "{text:?}");
        }
    }
}
