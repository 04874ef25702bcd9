//! Parses addresses.
//!
//! Source: HAProxy configuration manual, section 11; details are as observed in HAProxy (the last
//! colon before a bracket always begins the port).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use ballast_model::{Address, Host};
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
pub(crate) enum Port {
    /// None was written.
    Absent,
    /// One, or the first and last of a range.
    Fixed(u16, u16),
    /// Relative to the client's destination port.
    Offset(i32),
}

/// The transport that a prefix selects.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) enum Transport {
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
    pub(crate) port: Port,
    /// What a prefix asked for.
    pub(crate) transport: Transport,
}

/// Parses an address.
///
/// # Errors
/// A sentence that says what is wrong.
pub(crate) fn parse(text: &str, wants: AddressForm, env: &Env) -> Result<ParsedAddress, String> {
    let written = text;
    let text = &expand(text, env);
    if text.is_empty() && !written.is_empty() {
        return Err(format!(
            "'{written}' resolves to an empty address (environment variable missing?)"
        ));
    }
    let (transport, family, rest) = prefix(text);
    let done = |address| {
        Ok(ParsedAddress {
            address,
            port: Port::Absent,
            transport,
        })
    };
    match family {
        Family::Unix => return done(Address::Unix(path(rest, text, 107)?)),
        Family::Abstract => return done(Address::Abstract(path(rest, text, 107)?)),
        Family::AbstractUnpadded => {
            return done(Address::AbstractUnpadded(path(rest, text, 107)?));
        }
        Family::Fd => return done(Address::Fd(descriptor(rest, text)?)),
        Family::SocketPair => return done(Address::SocketPair(descriptor(rest, text)?)),
        Family::Reverse => return done(Address::Abstract(format!("rhttp@{rest}"))),
        Family::Ip | Family::V4 | Family::V6 => {}
    }
    let (host, port) = split_port(rest);
    let port = match port {
        None if wants.port => {
            return Err(missing_port(text));
        }
        None => Port::Absent,
        Some("") if wants.port => return Err(missing_port(text)),
        Some("") => Port::Absent,
        Some(port) => parse_port(port, wants, text)?,
    };
    let number = match port {
        Port::Fixed(first, _) => first,
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
enum Family {
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

fn prefix(text: &str) -> (Transport, Family, &str) {
    let mut transport = Transport::Usual;
    let mut rest = text;
    for (word, meaning) in [
        ("stream+", Transport::Stream),
        ("dgram+", Transport::Datagram),
        ("quic+", Transport::Quic),
    ] {
        if let Some(after) = rest.strip_prefix(word) {
            (transport, rest) = (meaning, after);
        }
    }
    const FAMILIES: &[(&str, Family, Transport)] = &[
        ("unix@", Family::Unix, Transport::Usual),
        ("uxst@", Family::Unix, Transport::Stream),
        ("uxdg@", Family::Unix, Transport::Datagram),
        ("abns@", Family::Abstract, Transport::Usual),
        ("abnsz@", Family::AbstractUnpadded, Transport::Usual),
        ("ip@", Family::Ip, Transport::Usual),
        ("ipv4@", Family::V4, Transport::Usual),
        ("ipv6@", Family::V6, Transport::Usual),
        ("tcp@", Family::Ip, Transport::Stream),
        ("tcp4@", Family::V4, Transport::Stream),
        ("tcp6@", Family::V6, Transport::Stream),
        ("udp@", Family::Ip, Transport::Datagram),
        ("udp4@", Family::V4, Transport::Datagram),
        ("udp6@", Family::V6, Transport::Datagram),
        ("quic4@", Family::V4, Transport::Quic),
        ("quic6@", Family::V6, Transport::Quic),
        ("mptcp@", Family::Ip, Transport::Multipath),
        ("mptcp4@", Family::V4, Transport::Multipath),
        ("mptcp6@", Family::V6, Transport::Multipath),
        ("fd@", Family::Fd, Transport::Usual),
        ("sockpair@", Family::SocketPair, Transport::Usual),
        ("rev@", Family::Reverse, Transport::Reverse),
        ("rhttp@", Family::Reverse, Transport::Reverse),
    ];
    if rest.starts_with('/') {
        return (transport, Family::Unix, rest);
    }
    for (word, family, asked) in FAMILIES {
        if let Some(after) = rest.strip_prefix(word) {
            if *asked != Transport::Usual {
                transport = *asked;
            }
            let family = if after.starts_with('/') && matches!(family, Family::Ip) {
                Family::Unix
            } else {
                *family
            };
            return (transport, family, after);
        }
    }
    (transport, Family::Ip, rest)
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

fn parse_port(port: &str, wants: AddressForm, text: &str) -> Result<Port, String> {
    let number = |digits: &str| match digits.parse::<u32>() {
        Ok(number) if (1..=65535).contains(&number) => {
            Ok(u16::try_from(number).expect("65535 fits 16 bits"))
        }
        Ok(0) if !wants.port => Ok(0),
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
        if !wants.offset {
            return Err(format!("port offsets are not permitted here in '{text}'"));
        }
        let offset = i32::from(number(rest)?);
        let sign = if port.starts_with('-') { -1 } else { 1 };
        return Ok(Port::Offset(sign * offset));
    }
    if let Some((first, last)) = port.split_once('-') {
        if !wants.range {
            return Err(format!(
                "port range '{port}' is not permitted here in '{text}'"
            ));
        }
        let (first, last) = (number(first)?, number(last)?);
        if last < first {
            return Err(format!("invalid port range '{port}' in '{text}'"));
        }
        return Ok(Port::Fixed(first, last));
    }
    let number = number(port)?;
    Ok(Port::Fixed(number, number))
}

fn host_address(host: &str, port: u16, family: Family, text: &str) -> Result<Address, String> {
    let bare = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'))
        .unwrap_or(host);
    let any = match family {
        Family::V6 => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        _ => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
    };
    let ip = match bare {
        "" | "*" => Some(any),
        _ => bare.parse::<IpAddr>().ok(),
    };
    if let Some(ip) = ip {
        let fits = match family {
            Family::V4 => ip.is_ipv4(),
            Family::V6 => ip.is_ipv6(),
            _ => true,
        };
        if !fits {
            return Err(format!("invalid address: '{bare}' in '{text}'"));
        }
        return Ok(Address::Inet(SocketAddr::new(ip, port)));
    }
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if !bare.chars().all(is_name) || bare.len() > 255 {
        let hint = match text.rsplit('@').next().unwrap_or_default() {
            whole if whole.parse::<Ipv6Addr>().is_ok() => {
                format!(" (without brackets the last group is the port: [{whole}])")
            }
            _ => String::new(),
        };
        return Err(format!("invalid address: '{bare}' in '{text}'{hint}"));
    }
    let family = match family {
        Family::V4 => Host::V4,
        Family::V6 => Host::V6,
        _ => Host::Any,
    };
    Ok(Address::Name {
        host: bare.to_owned(),
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

    fn ok(text: &str, wants: AddressForm) -> (String, Port) {
        let parsed = parse(text, wants, &Env::new()).unwrap();
        (parsed.address.to_string(), parsed.port)
    }

    #[test]
    fn addresses_in_all_forms() {
        let any = AddressForm {
            range: true,
            offset: true,
            ..AddressForm::default()
        };
        let fixed = |port| Port::Fixed(port, port);
        for (text, shown, port) in [
            (":80", "0.0.0.0:80", fixed(80)),
            ("*:80", "0.0.0.0:80", fixed(80)),
            (":::80", "[::]:80", fixed(80)),
            ("[::1]:80", "[::1]:80", fixed(80)),
            ("ipv6@*:80", "[::]:80", fixed(80)),
            ("10.0.0.1", "10.0.0.1:0", Port::Absent),
            ("2001:db8::1:80", "[2001:db8::1]:80", fixed(80)),
            ("[2001:db8::1]", "[2001:db8::1]:0", Port::Absent),
            ("host.example:8080", "host.example:8080", fixed(8080)),
            ("10.0.0.1:80-90", "10.0.0.1:80", Port::Fixed(80, 90)),
            ("10.0.0.1:+100", "10.0.0.1:0", Port::Offset(100)),
            ("10.0.0.1:-100", "10.0.0.1:0", Port::Offset(-100)),
            ("/run/a.sock", "unix@/run/a.sock", Port::Absent),
            ("unix@a.sock", "unix@a.sock", Port::Absent),
            ("abns@x", "abns@x", Port::Absent),
            ("fd@3", "fd@3", Port::Absent),
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
