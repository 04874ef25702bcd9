//! `hash-type consistent` and `random`: points on a ring of 2^32.
//!
//! Each server has as many points as its effective weight (16 for a weight of 1). Point `n` of a
//! server is at avalanche(seed + n), where the seed is computed from its id (or address). So a
//! server always has the same points, and a weight change adds or removes only the last of them. A
//! key belongs to the nearest point on either side.

use std::net::{IpAddr, SocketAddr};

use xxhash_rust::xxh32::xxh32;

use crate::hash::avalanche;

/// Distance between the seeds of consecutive ids: the largest number of points of a server.
const POINTS_MAX: u32 = 4096;

/// What a server's points are computed from (`hash-key`, HAProxy 3.0).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum HashKey {
    /// The address: several load balancers agree without having the same ids.
    Addr(IpAddr),
    /// Address and port.
    AddrPort(SocketAddr),
    /// The server's id (`id`, else its position in the backend).
    #[default]
    Id,
}

impl HashKey {
    /// The seed of the server with this key and id.
    pub(crate) fn seed(self, id: u32) -> u32 {
        match self {
            Self::Addr(address) => address_seed(address, 0),
            Self::AddrPort(address) => address_seed(address.ip(), avalanche(address.port().into())),
            Self::Id => id.wrapping_mul(POINTS_MAX),
        }
    }
}

/// The seed of an address, for a server that is told from others at its address by `port`.
fn address_seed(address: IpAddr, port: u32) -> u32 {
    match address {
        // The word as a little-endian machine holds an address in network order.
        IpAddr::V4(four) => avalanche(port.wrapping_add(u32::from_le_bytes(four.octets()))),
        IpAddr::V6(six) => xxh32(&six.octets(), port),
    }
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct RingPoint {
    at: u32,
    index: u32,
}

/// Sorted points; among equals those that came first stand first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ring {
    cursor: Option<RingPoint>,
    points: Vec<RingPoint>,
}

impl Ring {
    /// Adds all servers at once, as `(index, seed, points)` in the order of configuration.
    pub(crate) fn build(servers: impl Iterator<Item = (u32, u32, u32)>) -> Self {
        let mut points: Vec<RingPoint> = servers
            .flat_map(|(index, seed, count)| {
                (0..count).map(move |number| RingPoint {
                    at: avalanche(seed.wrapping_add(number)),
                    index,
                })
            })
            .collect();
        points.sort_by_key(|point| point.at);
        Self {
            cursor: None,
            points,
        }
    }

    /// Adds points `from..to` of this seed for the server.
    pub(crate) fn grow(&mut self, index: u32, seed: u32, from: u32, to: u32) {
        let mut fresh: Vec<RingPoint> = (from..to)
            .map(|number| RingPoint {
                at: avalanche(seed.wrapping_add(number)),
                index,
            })
            .collect();
        fresh.sort_by_key(|point| point.at);
        let old = std::mem::take(&mut self.points);
        let mut merged = Vec::with_capacity(old.len() + fresh.len());
        let mut fresh = fresh.into_iter().peekable();
        for point in old {
            while let Some(before) = fresh.next_if(|new| new.at < point.at) {
                merged.push(before);
            }
            merged.push(point);
        }
        merged.extend(fresh);
        self.points = merged;
    }

    /// Removes points `from..to` of this seed of the server.
    pub(crate) fn shrink(&mut self, index: u32, seed: u32, from: u32, to: u32) {
        let mut gone: Vec<u32> = (from..to)
            .map(|number| avalanche(seed.wrapping_add(number)))
            .collect();
        gone.sort_unstable();
        self.points
            .retain(|point| point.index != index || gone.binary_search(&point.at).is_err());
        if self
            .cursor
            .is_some_and(|at| at.index == index && gone.binary_search(&at.at).is_ok())
        {
            self.cursor = None;
        }
    }

    /// The server nearest to `hash`, or the next one along the ring that is not refused. When
    /// all are refused, the one at which the search ended.
    pub(crate) fn at_hash(&self, hash: u32, refuses: impl Fn(u32) -> bool) -> Option<u32> {
        let count = self.points.len();
        let after = self.points.partition_point(|point| point.at < hash);
        let next = after.checked_rem(count)?;
        let previous = (next + count - 1) % count;
        let back = hash.wrapping_sub(self.points[previous].at);
        let ahead = self.points[next].at.wrapping_sub(hash);
        let start = if back <= ahead { previous } else { next };
        // The search covers the ring at least once, and ends at the end of the ring.
        let walk = self.points[start..].iter().chain(&self.points);
        let found = walk.map(|point| point.index).find(|&index| !refuses(index));
        found.or_else(|| self.points.last().map(|point| point.index))
    }

    /// The server of the next point in turn that is not full; for requests without a key.
    pub(crate) fn next(&mut self, avoid: &[u32], is_full: impl Fn(u32) -> bool) -> Option<u32> {
        let count = self.points.len();
        let start = self.cursor.map_or(0, |last| self.place_after(last));
        let mut avoided = None;
        for step in 0..count {
            let point = self.points[(start + step) % count];
            self.cursor = Some(point);
            if is_full(point.index) {
                continue;
            }
            if !avoid.contains(&point.index) {
                return Some(point.index);
            }
            avoided = Some(point);
        }
        let point = avoided?;
        self.cursor = Some(point);
        Some(point.index)
    }

    fn place_after(&self, last: RingPoint) -> usize {
        let first = self.points.partition_point(|point| point.at < last.at);
        let equals = self.points[first..]
            .iter()
            .take_while(|point| point.at == last.at);
        let mut position = first;
        for (offset, point) in equals.enumerate() {
            if point.index == last.index {
                position = first + offset + 1;
            }
        }
        position
    }

    pub(crate) fn count_of(&self, index: u32) -> usize {
        self.points
            .iter()
            .filter(|point| point.index == index)
            .count()
    }

    pub(crate) fn check_invariants(&self) {
        assert!(
            self.points.is_sorted_by_key(|point| point.at),
            "points stand in order"
        );
    }
}
