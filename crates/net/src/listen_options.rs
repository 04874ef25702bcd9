//! The options of `bind` for a listening socket.

use std::sync::Arc;
use std::time::Duration;

use crate::{KeepAlive, Namespace, UnixPermissions};

/// The options of a listening socket (manual section 5.1).
#[derive(Clone, Debug)]
pub struct ListenOptions {
    /// The maximum number of connections waiting to be accepted; the kernel may lower it
    /// (net.core.somaxconn).
    pub backlog: u32,
    /// `cc`: congestion control by name.
    pub congestion: Option<Box<str>>,
    /// `defer-accept`: wake only after the client has sent something.
    pub defer_accept: bool,
    /// `tfo`: the maximum number of pending fast-open requests.
    pub fast_open_pending_max: Option<u32>,
    /// `interface`.
    pub interface: Option<Box<str>>,
    /// `option clitcpka` and its parameters; accepted connections inherit it.
    pub keepalive: Option<KeepAlive>,
    /// `mss`, bytes.
    pub mss: Option<u32>,
    /// `namespace`.
    pub namespace: Option<Arc<Namespace>>,
    /// `tune.rcvbuf.client`, bytes; accepted connections inherit it.
    pub receive_buffer: Option<usize>,
    /// Several sockets, of several processes too, may share the address (off with `noreuseport`).
    pub reuse_port: bool,
    /// `tune.sndbuf.client`, bytes; accepted connections inherit it.
    pub send_buffer: Option<usize>,
    /// `option tcp-smart-accept`: what accepted connections receive is acknowledged together with
    /// the response.
    pub smart_accept: bool,
    /// `transparent`: the address need not belong to this machine.
    pub transparent: bool,
    /// `user`, `group`, `mode` of a path.
    pub unix: UnixPermissions,
    /// `tcp-ut`.
    pub user_timeout: Option<Duration>,
    /// `v6only` is `Some(true)`, `v4v6` is `Some(false)`.
    pub v6_only: Option<bool>,
}

impl Default for ListenOptions {
    fn default() -> Self {
        Self {
            backlog: 1024,
            congestion: None,
            defer_accept: false,
            fast_open_pending_max: None,
            interface: None,
            keepalive: None,
            mss: None,
            namespace: None,
            receive_buffer: None,
            reuse_port: true,
            send_buffer: None,
            smart_accept: false,
            transparent: false,
            unix: UnixPermissions::default(),
            user_timeout: None,
            v6_only: None,
        }
    }
}
