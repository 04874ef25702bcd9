//! Writing PROXY protocol headers: `send-proxy`, `send-proxy-v2` and
//! `proxy-v2-options`, with values in the order HAProxy 3.2 writes them.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use crate::crc32c;
use crate::proxy_header::kind;
use crate::proxy_v2::{FIXED_BYTES, SIGNATURE, UNIQUE_ID_BYTES_MAX};

/// The values that `proxy-v2-options` enables (configuration manual, section 5.2).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct V2Options {
    /// `authority`: the host name requested with TLS.
    pub authority: bool,
    /// `cert-cn`: the common name of the client's certificate.
    pub cert_cn: bool,
    /// `cert-key`: the key algorithm of our certificate.
    pub cert_key: bool,
    /// `cert-sig`: the signature algorithm of our certificate.
    pub cert_sig: bool,
    /// `crc32c`: a checksum.
    pub crc32c: bool,
    /// `ssl`: facts of the TLS layer; implied by the other options about TLS.
    pub ssl: bool,
    /// `ssl-cipher`: the cipher's name.
    pub ssl_cipher: bool,
    /// `unique-id`: the connection's identifier.
    pub unique_id: bool,
}

impl V2Options {
    /// The words of `proxy-v2-options`.
    pub const WORDS: [&'static str; 8] = [
        "ssl",
        "cert-cn",
        "ssl-cipher",
        "cert-sig",
        "cert-key",
        "authority",
        "crc32c",
        "unique-id",
    ];

    /// Enables the option `word`; false if there is no such option.
    pub fn enable(&mut self, word: &str) -> bool {
        match word {
            "authority" => self.authority = true,
            "cert-cn" => (self.cert_cn, self.ssl) = (true, true),
            "cert-key" => (self.cert_key, self.ssl) = (true, true),
            "cert-sig" => (self.cert_sig, self.ssl) = (true, true),
            "crc32c" => self.crc32c = true,
            "ssl" => self.ssl = true,
            "ssl-cipher" => (self.ssl_cipher, self.ssl) = (true, true),
            "unique-id" => self.unique_id = true,
            _ => return false,
        }
        true
    }
}

/// The facts of the relayed connection. Values whose option is not enabled are left out, so a
/// caller may fill in all it knows.
#[derive(Clone, Copy, Debug, Default)]
pub struct V2Facts<'a> {
    /// The protocol negotiated by TLS; sent regardless of the options.
    pub alpn: Option<&'a [u8]>,
    /// The host name requested with TLS.
    pub authority: Option<&'a [u8]>,
    /// The connection's identifier; an empty one is sent as such, as in HAProxy when the frontend
    /// has no `unique-id-format`. Cut at 128 bytes.
    pub unique_id: Option<&'a [u8]>,
    /// Facts of the TLS layer; `None` for a connection without TLS.
    pub ssl: Option<SslFacts<'a>>,
    /// The network namespace the connection came from.
    pub namespace: Option<&'a [u8]>,
    /// Values of `set-proxy-v2-tlv-fmt`, type and content.
    pub custom: &'a [(u8, &'a [u8])],
}

/// Facts of the TLS layer of the relayed connection.
#[derive(Clone, Copy, Debug, Default)]
pub struct SslFacts<'a> {
    /// Such as `TLSv1.3`.
    pub version: &'a [u8],
    /// The client sent a certificate over this connection.
    pub certificate_in_connection: bool,
    /// The client sent a certificate in this session.
    pub certificate_in_session: bool,
    /// 0, or the code with which the client's certificate was refused.
    pub verify_result: u32,
    /// The common name of the client's certificate.
    pub common_name: Option<&'a [u8]>,
    /// The cipher's name.
    pub cipher: Option<&'a [u8]>,
    /// The signature algorithm of our certificate, such as `RSA-SHA256`.
    pub signature_algorithm: Option<&'a [u8]>,
    /// The key algorithm of our certificate, such as `RSA2048`.
    pub key_algorithm: Option<&'a [u8]>,
}

/// The values do not fit in the 65535 bytes that a header may announce, or one of them is longer
/// than that.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct TooLong;

impl fmt::Display for TooLong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the PROXY protocol header would exceed 65535 bytes")
    }
}

impl std::error::Error for TooLong {}

/// Appends a version 1 header to `out`: `UNKNOWN` without addresses, and TCP6 if one of the two is
/// an IPv6 address.
pub fn encode_v1(out: &mut Vec<u8>, endpoints: Option<(SocketAddr, SocketAddr)>) {
    let Some((source, destination)) = endpoints else {
        out.extend_from_slice(b"PROXY UNKNOWN\r\n");
        return;
    };
    let line = match (source.ip(), destination.ip()) {
        (IpAddr::V4(from), IpAddr::V4(to)) => write_v1(out, "TCP4", from, to),
        (from, to) => write_v1(out, "TCP6", widened(from), widened(to)),
    };
    line.and_then(|()| write_ports(out, source.port(), destination.port()))
        .expect("writing to a vector does not fail");
}

fn write_v1(
    out: &mut Vec<u8>,
    family: &str,
    from: impl fmt::Display,
    to: impl fmt::Display,
) -> std::io::Result<()> {
    use std::io::Write as _;
    write!(out, "PROXY {family} {from} {to} ")
}

fn write_ports(out: &mut Vec<u8>, from: u16, to: u16) -> std::io::Result<()> {
    use std::io::Write as _;
    write!(out, "{from} {to}\r\n")
}

/// Appends a version 2 header to `out`: LOCAL without addresses (our own
/// health checks, clients on unix sockets), and IPv6 if one of the two is.
///
/// # Errors
/// [`TooLong`]; `out` is unchanged.
pub fn encode_v2(
    out: &mut Vec<u8>,
    endpoints: Option<(SocketAddr, SocketAddr)>,
    options: V2Options,
    facts: &V2Facts<'_>,
) -> Result<(), TooLong> {
    let start = out.len();
    let written = write_v2(out, endpoints, options, facts);
    if written.is_err() {
        out.truncate(start);
    }
    written
}

fn write_v2(
    out: &mut Vec<u8>,
    endpoints: Option<(SocketAddr, SocketAddr)>,
    options: V2Options,
    facts: &V2Facts<'_>,
) -> Result<(), TooLong> {
    let start = out.len();
    out.extend_from_slice(&SIGNATURE);
    write_addresses(out, endpoints);
    for (value_kind, value) in facts.custom {
        write_tlv(out, *value_kind, value)?;
    }
    let checksum_at = options.crc32c.then_some(out.len() + 3);
    if options.crc32c {
        write_tlv(out, kind::CRC32C, &[0; 4])?;
    }
    if let Some(alpn) = facts.alpn {
        write_tlv(out, kind::ALPN, alpn)?;
    }
    if let Some(authority) = facts.authority.filter(|_| options.authority) {
        write_tlv(out, kind::AUTHORITY, authority)?;
    }
    if let Some(id) = facts.unique_id.filter(|_| options.unique_id) {
        write_tlv(
            out,
            kind::UNIQUE_ID,
            &id[..id.len().min(UNIQUE_ID_BYTES_MAX)],
        )?;
    }
    if options.ssl {
        write_ssl(out, options, facts.ssl.as_ref())?;
    }
    if let Some(namespace) = facts.namespace {
        write_tlv(out, kind::NETNS, namespace)?;
    }
    let length = u16::try_from(out.len() - start - FIXED_BYTES).map_err(|_| TooLong)?;
    out[start + 14..start + 16].copy_from_slice(&length.to_be_bytes());
    if let Some(at) = checksum_at {
        let sum = crc32c(&out[start..]);
        out[at..at + 4].copy_from_slice(&sum.to_be_bytes());
    }
    Ok(())
}

/// Command, family, two bytes for the length, addresses.
fn write_addresses(out: &mut Vec<u8>, endpoints: Option<(SocketAddr, SocketAddr)>) {
    let Some((source, destination)) = endpoints else {
        out.extend_from_slice(&[0x20, 0x00, 0, 0]);
        return;
    };
    match (source.ip(), destination.ip()) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            out.extend_from_slice(&[0x21, 0x11, 0, 0]);
            out.extend_from_slice(&from.octets());
            out.extend_from_slice(&to.octets());
        }
        (from, to) => {
            out.extend_from_slice(&[0x21, 0x21, 0, 0]);
            out.extend_from_slice(&widened(from).octets());
            out.extend_from_slice(&widened(to).octets());
        }
    }
    out.extend_from_slice(&source.port().to_be_bytes());
    out.extend_from_slice(&destination.port().to_be_bytes());
}

fn write_ssl(
    out: &mut Vec<u8>,
    options: V2Options,
    facts: Option<&SslFacts<'_>>,
) -> Result<(), TooLong> {
    let length_at = out.len() + 1;
    out.extend_from_slice(&[kind::SSL, 0, 0]);
    let Some(ssl) = facts else {
        out.extend_from_slice(&[0; 5]);
        return write_length(out, length_at);
    };
    let client = 1
        | u8::from(ssl.certificate_in_connection) << 1
        | u8::from(ssl.certificate_in_session) << 2;
    out.push(client);
    out.extend_from_slice(&ssl.verify_result.to_be_bytes());
    write_tlv(out, kind::SSL_VERSION, ssl.version)?;
    for (wanted, value_kind, value) in [
        (options.cert_cn, kind::SSL_CN, ssl.common_name),
        (options.cert_key, kind::SSL_KEY_ALG, ssl.key_algorithm),
        (options.cert_sig, kind::SSL_SIG_ALG, ssl.signature_algorithm),
        (options.ssl_cipher, kind::SSL_CIPHER, ssl.cipher),
    ] {
        if let Some(value) = value.filter(|_| wanted) {
            write_tlv(out, value_kind, value)?;
        }
    }
    write_length(out, length_at)
}

/// Stores the number of bytes after `at + 2` in the two bytes at `at`.
fn write_length(out: &mut [u8], at: usize) -> Result<(), TooLong> {
    let length = u16::try_from(out.len() - at - 2).map_err(|_| TooLong)?;
    out[at..at + 2].copy_from_slice(&length.to_be_bytes());
    Ok(())
}

fn write_tlv(out: &mut Vec<u8>, value_kind: u8, value: &[u8]) -> Result<(), TooLong> {
    let length = u16::try_from(value.len()).map_err(|_| TooLong)?;
    out.push(value_kind);
    out.extend_from_slice(&length.to_be_bytes());
    out.extend_from_slice(value);
    Ok(())
}

fn widened(address: IpAddr) -> Ipv6Addr {
    match address {
        IpAddr::V4(v4) => v4.to_ipv6_mapped(),
        IpAddr::V6(v6) => v6,
    }
}

#[cfg(test)]
#[path = "proxy_encode_tests.rs"]
mod tests;
