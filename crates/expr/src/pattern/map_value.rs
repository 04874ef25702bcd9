//! What a map gives for a key.

use std::net::IpAddr;
use std::sync::Arc;

/// The value beside a key.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum MapValue {
    None,
    Str(Arc<str>),
    Int(i64),
    Ip(IpAddr),
}
