//! Which host a request is for.

use std::fmt;

use crate::check::parse_authority;
use crate::request::Request;
use crate::target::TargetForm;

/// Why it is not clear which host a request is for.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum HostError {
    /// More than one `Host`, and they differ.
    HostsDiffer,
    /// The target names one host and `Host` another.
    HostNotAuthority,
    /// The target's authority is malformed, or has user information in CONNECT.
    AuthorityInvalid,
    /// `Host` has an invalid byte, or an unbalanced bracket.
    HostInvalid,
}

impl fmt::Display for HostError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            HostError::HostsDiffer => "several Host fields differ",
            HostError::HostNotAuthority => "Host differs from the target's authority",
            HostError::AuthorityInvalid => "the target's authority is invalid",
            HostError::HostInvalid => "Host is no host",
        })
    }
}

impl std::error::Error for HostError {}

/// Checks that all `Host` fields, and the authority of the target where it has one, name the
/// same host (RFC 9112 section 3.2.2, RFC 9110 section 7.2). A port that is the scheme's
/// default is the same as none.
///
/// # Errors
/// [`HostError`]: the request must be refused with 400.
pub fn validate_host(request: &Request) -> Result<(), HostError> {
    let mut hosts = request.fields().find(b"host");
    let Some(host) = hosts.next() else {
        return Ok(());
    };
    if hosts.any(|other| !other.eq_ignore_ascii_case(host)) {
        return Err(HostError::HostsDiffer);
    }
    let Some(authority) = request.target_authority() else {
        return Ok(());
    };
    if authority.eq_ignore_ascii_case(host) {
        return Ok(());
    }
    let (name, port) = parse_authority(authority).ok_or(HostError::AuthorityInvalid)?;
    let (host_name, host_port) = parse_authority(host).ok_or(HostError::HostNotAuthority)?;
    let default = default_port(request);
    let same_port = match (effective_port(port), effective_port(host_port)) {
        (Some(one), Some(other)) => one == other,
        (Some(one), None) | (None, Some(one)) => default.contains(&one),
        (None, None) => true,
    };
    if name.eq_ignore_ascii_case(host_name) && same_port {
        Ok(())
    } else {
        Err(HostError::HostNotAuthority)
    }
}

/// An empty port counts as none (RFC 3986 section 3.2.3).
fn effective_port(port: Option<&[u8]>) -> Option<&[u8]> {
    port.filter(|port| !port.is_empty())
}

/// The default ports for this request's authority. CONNECT has no scheme: HAProxy accepts both
/// usual ports there.
pub fn default_port(request: &Request) -> &'static [&'static [u8]] {
    match request.scheme() {
        Some(scheme) if scheme.eq_ignore_ascii_case(b"http") => &[b"80"],
        Some(scheme) if scheme.eq_ignore_ascii_case(b"https") => &[b"443"],
        Some(_) => &[],
        None if request.form() == TargetForm::Authority => &[b"80", b"443"],
        None => &[],
    }
}
