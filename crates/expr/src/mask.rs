//! Masks of networks.

use std::net::{Ipv4Addr, Ipv6Addr};

/// A mask of IPv4, written as a number of bits or as an address.
pub(crate) fn mask4(text: &str) -> Option<u32> {
    match text.parse::<u32>() {
        Ok(bits @ 0..=32) => Some(u32::MAX.checked_shl(32 - bits).unwrap_or(0)),
        Ok(_) => None,
        Err(_) => text.parse::<Ipv4Addr>().ok().map(u32::from),
    }
}

/// A mask of IPv6, written as a number of bits or as an address.
pub(crate) fn mask6(text: &str) -> Option<u128> {
    match text.parse::<u32>() {
        Ok(bits @ 0..=128) => Some(u128::MAX.checked_shl(128 - bits).unwrap_or(0)),
        Ok(_) => None,
        Err(_) => text.parse::<Ipv6Addr>().ok().map(u128::from),
    }
}
