//! Parses addresses.
//!
//! Source: HAProxy configuration manual, section 11; details are as observed in HAProxy (the last
//! colon before a bracket always begins the port).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use ballast_model::{Address, NameFamily};
use ballast_syntax::Env;

/// What a keyword accepts besides the host.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct AddressForm {
    /// A port is required, or may follow.
    pub(crate) port: bool,
    /// `80-90` may be given.
    pub(crate) range: bool,
    /// `+1000` and `-1000` may be given.
    pub(crate) offset: bool,
}

/// The port of an address.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum AddressPort {
    /// None was written.
    Absent,
    /// One, or the first and last of a range.
    Fixed(u16, u16),
    /// Relative to the client's destination port.
    Offset(i32),
}

/// The transport that a prefix selects.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) enum TransportPrefix {
    /// The keyword's usual one.
    #[default]
    Usual,
    /// `tcp@`, `stream+`.
    Stream,
    /// `udp@`, `dgram+`.
    Datagram,
    /// `quic4@`, `quic6@`.
    Quic,
    /// `rhttp@`: connections are opened by servers.
    Reverse,
    /// `mptcp@`.
    Multipath,
}

/// A parsed address.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ParsedAddress {
    /// With the first port, 0 when there is none.
    pub(crate) address: Address,
    /// The port.
    pub(crate) port: AddressPort,
    /// What a prefix asked for.
    pub(crate) transport: TransportPrefix,
}

/// Parses an address.
///
/// # Errors
/// A sentence that says what is wrong.
pub(crate) fn parse(text: &str, form: AddressForm, env: &Env) -> Result<ParsedAddress, String> {
    let written = text;
    let text = &expand(text, env);
    if text.is_empty() && !written.is_empty() {
        return Err(format!(
            "'{written}' resolves to an empty address (environment variable missing?)"
        ));
    }
    let (transport, family, rest) = prefix(text);
    let without_port = |address| {
        Ok(ParsedAddress {
            address,
            port: AddressPort::Absent,
            transport,
        })
    };
    match family {
        AddressFamily::Unix => return without_port(Address::Unix(path(rest, text, 107)?)),
        AddressFamily::Abstract => return without_port(Address::Abstract(path(rest, text, 107)?)),
        AddressFamily::AbstractUnpadded => {
            return without_port(Address::AbstractUnpadded(path(rest, text, 107)?));
        }
        AddressFamily::Fd => return without_port(Address::Fd(descriptor(rest, text)?)),
        AddressFamily::SocketPair => {
            return without_port(Address::SocketPair(descriptor(rest, text)?));
        }
        AddressFamily::Reverse => return without_port(Address::Abstract(format!("rhttp@{rest}"))),
        AddressFamily::Ip | AddressFamily::V4 | AddressFamily::V6 => {}
    }
    let (host, port) = split_port(rest);
    let port = match port {
        None if form.port => {
            return Err(missing_port(text));
        }
        None => AddressPort::Absent,
        Some("") if form.port => return Err(missing_port(text)),
        Some("") => AddressPort::Absent,
        Some(port) => parse_port(port, form, text)?,
    };
    let number = match port {
        AddressPort::Fixed(first, _) => first,
        _ => 0,
    };
    let address = host_address(host, number, family, text)?;
    Ok(ParsedAddress {
        address,
        port,
        transport,
    })
}

fn missing_port(text: &str) -> String {
    format!("missing port specification in '{text}'")
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum AddressFamily {
    Ip,
    V4,
    V6,
    Unix,
    Abstract,
    AbstractUnpadded,
    Fd,
    SocketPair,
    Reverse,
}

fn prefix(text: &str) -> (TransportPrefix, AddressFamily, &str) {
    let mut transport = TransportPrefix::Usual;
    let mut rest = text;
    for (word, meaning) in [
        ("stream+", TransportPrefix::Stream),
        ("dgram+", TransportPrefix::Datagram),
        ("quic+", TransportPrefix::Quic),
    ] {
        if let Some(after) = rest.strip_prefix(word) {
            (transport, rest) = (meaning, after);
        }
    }
    const FAMILIES: &[(&str, AddressFamily, TransportPrefix)] = &[
        ("unix@", AddressFamily::Unix, TransportPrefix::Usual),
        ("uxst@", AddressFamily::Unix, TransportPrefix::Stream),
        ("uxdg@", AddressFamily::Unix, TransportPrefix::Datagram),
        ("abns@", AddressFamily::Abstract, TransportPrefix::Usual),
        (
            "abnsz@",
            AddressFamily::AbstractUnpadded,
            TransportPrefix::Usual,
        ),
        ("ip@", AddressFamily::Ip, TransportPrefix::Usual),
        ("ipv4@", AddressFamily::V4, TransportPrefix::Usual),
        ("ipv6@", AddressFamily::V6, TransportPrefix::Usual),
        ("tcp@", AddressFamily::Ip, TransportPrefix::Stream),
        ("tcp4@", AddressFamily::V4, TransportPrefix::Stream),
        ("tcp6@", AddressFamily::V6, TransportPrefix::Stream),
        ("udp@", AddressFamily::Ip, TransportPrefix::Datagram),
        ("udp4@", AddressFamily::V4, TransportPrefix::Datagram),
        ("udp6@", AddressFamily::V6, TransportPrefix::Datagram),
        ("quic4@", AddressFamily::V4, TransportPrefix::Quic),
        ("quic6@", AddressFamily::V6, TransportPrefix::Quic),
        ("mptcp@", AddressFamily::Ip, TransportPrefix::Multipath),
        ("mptcp4@", AddressFamily::V4, TransportPrefix::Multipath),
        ("mptcp6@", AddressFamily::V6, TransportPrefix::Multipath),
        ("fd@", AddressFamily::Fd, TransportPrefix::Usual),
        (
            "sockpair@",
            AddressFamily::SocketPair,
            TransportPrefix::Usual,
        ),
        ("rev@", AddressFamily::Reverse, TransportPrefix::Reverse),
        ("rhttp@", AddressFamily::Reverse, TransportPrefix::Reverse),
    ];
    if rest.starts_with('/') {
        return (transport, AddressFamily::Unix, rest);
    }
    for (word, family, selected) in FAMILIES {
        if let Some(after) = rest.strip_prefix(word) {
            if *selected != TransportPrefix::Usual {
                transport = *selected;
            }
            let family = if after.starts_with('/') && matches!(family, AddressFamily::Ip) {
                AddressFamily::Unix
            } else {
                *family
            };
            return (transport, family, after);
        }
    }
    (transport, AddressFamily::Ip, rest)
}

/// Checks a socket's path or name: not empty, and short enough for the kernel.
fn path(rest: &str, text: &str, bytes_max: usize) -> Result<String, String> {
    if rest.is_empty() {
        return Err(format!("missing path in '{text}'"));
    }
    if rest.len() > bytes_max {
        return Err(format!(
            "socket path '{rest}' too long (max {bytes_max} bytes)"
        ));
    }
    Ok(rest.to_owned())
}

fn descriptor(rest: &str, text: &str) -> Result<i32, String> {
    match rest.parse::<i32>() {
        Ok(number) if number >= 0 => Ok(number),
        _ => Err(format!(
            "file descriptor '{rest}' is not a number in '{text}'"
        )),
    }
}

/// The host and the text after the colon, `None` without a colon.
fn split_port(rest: &str) -> (&str, Option<&str>) {
    match rest.rfind([':', ']']) {
        Some(at) if rest.as_bytes()[at] == b':' => (&rest[..at], Some(&rest[at + 1..])),
        _ => (rest, None),
    }
}

fn parse_port(port: &str, form: AddressForm, text: &str) -> Result<AddressPort, String> {
    let number = |digits: &str| match digits.parse::<u32>() {
        Ok(number) if (1..=65535).contains(&number) => {
            Ok(u16::try_from(number).expect("65535 fits 16 bits"))
        }
        Ok(0) if !form.port => Ok(0),
        Ok(_) => Err(format!("invalid port '{digits}' in '{text}'")),
        Err(_) => {
            let bad = digits.chars().find(|c| !c.is_ascii_digit());
            match bad {
                Some(bad) => Err(format!(
                    "invalid character '{bad}' in port number '{digits}' in '{text}'"
                )),
                None => Err(format!("invalid port '{digits}' in '{text}'")),
            }
        }
    };
    if let Some(rest) = port.strip_prefix(['+', '-']) {
        if !form.offset {
            return Err(format!("port offsets are not permitted here in '{text}'"));
        }
        let offset = i32::from(number(rest)?);
        let sign = if port.starts_with('-') { -1 } else { 1 };
        return Ok(AddressPort::Offset(sign * offset));
    }
    if let Some((first, last)) = port.split_once('-') {
        if !form.range {
            return Err(format!(
                "port range '{port}' is not permitted here in '{text}'"
            ));
        }
        let (first, last) = (number(first)?, number(last)?);
        if last < first {
            return Err(format!("invalid port range '{port}' in '{text}'"));
        }
        return Ok(AddressPort::Fixed(first, last));
    }
    let number = number(port)?;
    Ok(AddressPort::Fixed(number, number))
}

fn host_address(
    host: &str,
    port: u16,
    family: AddressFamily,
    text: &str,
) -> Result<Address, String> {
    let unbracketed = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'))
        .unwrap_or(host);
    let any = match family {
        AddressFamily::V6 => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        _ => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
    };
    let ip = match unbracketed {
        "" | "*" => Some(any),
        _ => unbracketed.parse::<IpAddr>().ok(),
    };
    if let Some(ip) = ip {
        let fits = match family {
            AddressFamily::V4 => ip.is_ipv4(),
            AddressFamily::V6 => ip.is_ipv6(),
            _ => true,
        };
        if !fits {
            return Err(format!("invalid address: '{unbracketed}' in '{text}'"));
        }
        return Ok(Address::Inet(SocketAddr::new(ip, port)));
    }
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if !unbracketed.chars().all(is_name) || unbracketed.len() > 255 {
        let hint = match text.rsplit('@').next().unwrap_or_default() {
            whole if whole.parse::<Ipv6Addr>().is_ok() => {
                format!(" (without brackets the last group is the port: [{whole}])")
            }
            _ => String::new(),
        };
        return Err(format!(
            "invalid address: '{unbracketed}' in '{text}'{hint}"
        ));
    }
    let family = match family {
        AddressFamily::V4 => NameFamily::V4,
        AddressFamily::V6 => NameFamily::V6,
        _ => NameFamily::Any,
    };
    Ok(Address::Name {
        host: unbracketed.to_owned(),
        port,
        family,
    })
}

/// Replaces `$NAME` and `${NAME}`, which are expanded in addresses even outside double quotes.
fn expand(text: &str, env: &Env) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        let after = &rest[at + 1..];
        let (name, next) = match after.strip_prefix('{') {
            Some(inside) => match inside.split_once('}') {
                Some((name, next)) => (name, next),
                None => (inside, ""),
            },
            None => {
                let end = after
                    .find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
                    .unwrap_or(after.len());
                after.split_at(end)
            }
        };
        out.push_str(env.value(name).unwrap_or_default());
        rest = next;
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ok(text: &str, form: AddressForm) -> (String, AddressPort) {
        let parsed = parse(text, form, &Env::new()).unwrap();
        (parsed.address.to_string(), parsed.port)
    }

    #[test]
    fn addresses_in_all_forms() {
        let any = AddressForm {
            range: true,
            offset: true,
            ..AddressForm::default()
        };
        let fixed = |port| AddressPort::Fixed(port, port);
        for (text, shown, port) in [
            (":80", "0.0.0.0:80", fixed(80)),
            ("*:80", "0.0.0.0:80", fixed(80)),
            (":::80", "[::]:80", fixed(80)),
            ("[::1]:80", "[::1]:80", fixed(80)),
            ("ipv6@*:80", "[::]:80", fixed(80)),
            ("10.0.0.1", "10.0.0.1:0", AddressPort::Absent),
            ("2001:db8::1:80", "[2001:db8::1]:80", fixed(80)),
            ("[2001:db8::1]", "[2001:db8::1]:0", AddressPort::Absent),
            ("host.example:8080", "host.example:8080", fixed(8080)),
            ("10.0.0.1:80-90", "10.0.0.1:80", AddressPort::Fixed(80, 90)),
            ("10.0.0.1:+100", "10.0.0.1:0", AddressPort::Offset(100)),
            ("10.0.0.1:-100", "10.0.0.1:0", AddressPort::Offset(-100)),
            ("/run/a.sock", "unix@/run/a.sock", AddressPort::Absent),
            ("unix@a.sock", "unix@a.sock", AddressPort::Absent),
            ("abns@x", "abns@x", AddressPort::Absent),
            ("fd@3", "fd@3", AddressPort::Absent),
        ] {
            assert_eq!(ok(text, any), (shown.to_owned(), port), "{text}");
        }
    }

    #[test]
    fn what_is_no_address() {
        let port = AddressForm {
            port: true,
            ..AddressForm::default()
        };
        for text in [
            "10.0.0.1",
            "10.0.0.1:",
            ":0",
            ":65536",
            ":a",
            "fd@x",
            "a b:80",
            "ipv4@::1:80",
            "::1",
            "2001:db8::1",
            "10.0.0.1:80-90",
            "10.0.0.1:+1",
        ] {
            assert!(parse(text, port, &Env::new()).is_err(), "{text}");
        }
    }

    #[test]
    fn variables_in_addresses() {
        let env: Env = [("H", "10.0.0.1"), ("P", "80")].into_iter().collect();
        let parsed = parse("${H}:$P", AddressForm::default(), &env).unwrap();
        assert_eq!(parsed.address.to_string(), "10.0.0.1:80");
    }
}
