//! Workers seen from loopback.
