//! What rules set for one exchange alone, in place of what the configuration says.

use std::net::IpAddr;
use std::time::Duration;

/// One setting of an exchange, with its value.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ExchangeSetting {
    /// `set-src`: the client's address. Its port stays.
    SourceAddress(IpAddr),
    /// `set-src-port`: the client's port.
    SourcePort(u16),
    /// `set-dst`: the address the client connected to. Its port stays.
    DestinationAddress(IpAddr),
    /// `set-dst-port`: the port the client connected to.
    DestinationPort(u16),
    /// `set-fc-mark`: the mark of the packets to the client.
    ClientMark(u32),
    /// `set-fc-tos`: the TOS byte of the packets to the client.
    ClientTos(u8),
    /// `set-bc-mark`: the mark of the packets to the server.
    ServerMark(u32),
    /// `set-bc-tos`: the TOS byte of the packets to the server.
    ServerTos(u8),
    /// `set-timeout`.
    Timeout(SettableTimeout, Duration),
    /// `set-retries`: how often a connection is tried again.
    RetryCountMax(u32),
    /// `disable-l7-retry`: `retry-on` does not apply once the request was sent.
    DisableL7Retry,
    /// `set-priority-class`: a number of any size.
    PriorityClass(i64),
    /// `set-priority-offset`: milliseconds, of any size.
    PriorityOffset(i64),
    /// `set-status`: the status that the response tells now, which logs and counters tell, too.
    ResponseStatus(u16),
    /// `expect-proxy layer4`, `expect-netscaler-cip layer4`: the header that the connection begins
    /// with.
    Expect(ExpectedHeader),
}

/// The timeouts of `set-timeout`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum SettableTimeout {
    /// `timeout client`.
    Client,
    /// `timeout connect`.
    Connect,
    /// `timeout queue`.
    Queue,
    /// `timeout server`.
    Server,
    /// `timeout tunnel`.
    Tunnel,
}

/// What a client's connection begins with, before TLS.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ExpectedHeader {
    /// A header of the NetScaler Client IP insertion protocol.
    NetscalerCip,
    /// A header of the PROXY protocol.
    Proxy,
}
