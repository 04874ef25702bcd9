//! The command sockets of a master (`-S`).

use ballast_cli::CliBind;
use ballast_listen::open_bind;
use ballast_model::{Address, Bind, CliLevel, SeverityOutput};
use ballast_net::inherit;

use super::report_failure;
use crate::console;

/// `-S <address>[,<bind words>]`: opened with the rights of the master.
pub(super) fn open(text: &str) -> Result<CliBind, u8> {
    let address = text.split(',').next().unwrap_or_default();
    let parsed = self::address(address)
        .ok_or_else(|| report_failure(&format!("-S: '{address}' is no address to listen on")))?;
    let bind = Bind::new(parsed);
    let label = bind.address.to_string();
    let level = match text.split(',').skip_while(|&word| word != "level").nth(1) {
        Some("user") => CliLevel::User,
        Some("operator") => CliLevel::Operator,
        _ => CliLevel::Admin,
    };
    let opened = open_bind(&bind);
    if let Address::Fd(number) = bind.address {
        // No worker has a use for it.
        let _ = inherit::take(number);
    }
    match opened {
        Ok(socket) => Ok(CliBind {
            socket,
            label,
            level,
            severity: SeverityOutput::None,
            expose_listeners: false,
        }),
        Err(error) => {
            console::alert(&error.to_string());
            Err(1)
        }
    }
}

/// Where a master's socket may be: `fd@N`, a path, an abstract name, an IP address and port.
fn address(text: &str) -> Option<Address> {
    if let Some(number) = text.strip_prefix("fd@") {
        return number.parse().ok().map(Address::Fd);
    }
    if let Some(name) = text.strip_prefix("abns@") {
        return Some(Address::Abstract(name.to_owned()));
    }
    if let Some(path) = text
        .strip_prefix("unix@")
        .or(text.starts_with('/').then_some(text))
    {
        return Some(Address::Unix(path.to_owned()));
    }
    let inet = ["ipv4@", "ipv6@"]
        .iter()
        .find_map(|prefix| text.strip_prefix(prefix));
    inet.unwrap_or(text).parse().ok().map(Address::Inet)
}
