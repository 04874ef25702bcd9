//! Addresses and ports of checks and agents, as commands override the `server` line.

use std::borrow::Cow;
use std::net::IpAddr;

use ballast_model::{Address, ServerChecks};

/// What `set server` changed of a server's checks; `None` means as written.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct CheckOverrides {
    /// `check-addr`.
    pub check_address: Option<IpAddr>,
    /// `check-port`; 0 means the server's own port.
    pub check_port: Option<u16>,
    /// `agent-addr`.
    pub agent_address: Option<IpAddr>,
    /// `agent-port`; 0 means the server's own port.
    pub agent_port: Option<u16>,
    /// `agent-send`; nothing is sent when it is empty.
    pub agent_send: Option<String>,
}

impl CheckOverrides {
    /// The checks of a server's line with these overrides applied.
    pub(crate) fn applied_to<'c>(&self, written: &'c ServerChecks) -> Cow<'c, ServerChecks> {
        if *self == Self::default() {
            return Cow::Borrowed(written);
        }
        let inet = |ip: IpAddr| Address::Inet((ip, 0).into());
        let mut checks = written.clone();
        if let Some(ip) = self.check_address {
            checks.address = Some(inet(ip));
        }
        if let Some(port) = self.check_port {
            checks.port = Some(port).filter(|port| *port != 0);
        }
        if let Some(ip) = self.agent_address {
            checks.agent_address = Some(inet(ip));
        }
        if let Some(port) = self.agent_port {
            checks.agent_port = Some(port).filter(|port| *port != 0);
        }
        if let Some(text) = &self.agent_send {
            checks.agent_send = Some(text.clone()).filter(|text| !text.is_empty());
        }
        Cow::Owned(checks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_set_goes_before_what_is_written() {
        let written = ServerChecks {
            port: Some(80),
            agent_port: Some(99),
            agent_send: Some("hi".into()),
            ..ServerChecks::default()
        };
        let mut entry = CheckOverrides::default();
        assert!(matches!(entry.applied_to(&written), Cow::Borrowed(_)));
        entry.check_address = "127.0.0.2".parse().ok();
        entry.check_port = Some(0);
        entry.agent_send = Some(String::new());
        let checks = entry.applied_to(&written).into_owned();
        assert_eq!(checks.address.unwrap().to_string(), "127.0.0.2:0");
        assert_eq!(
            (checks.port, checks.agent_port, checks.agent_send),
            (None, Some(99), None)
        );
    }
}
