//! Networks by their masks: the longest prefix wins, and then the first that came.

use std::cmp::Reverse;
use std::hash::Hash;
use std::net::{Ipv4Addr, Ipv6Addr};

use super::key_entries::{self, EntriesByKey, Item, KeyEntries};

/// Networks of one family. A mask that is no prefix is compared one by one after the rest.
struct NetworkFamily<B> {
    /// Longest prefix first.
    prefixes: Vec<(B, EntriesByKey<B>)>,
    odd: Vec<(B, B, Item)>,
}

impl<B> Default for NetworkFamily<B> {
    fn default() -> Self {
        Self {
            prefixes: Vec::new(),
            odd: Vec::new(),
        }
    }
}

impl<B: Copy + Eq + Hash + Ord + std::ops::BitAnd<Output = B>> NetworkFamily<B> {
    fn find(&self, address: B) -> Option<&Item> {
        let by_prefix = self
            .prefixes
            .iter()
            .find_map(|(mask, nets)| nets.get(&(address & *mask))?.first());
        by_prefix.or_else(|| {
            let mut odd = self.odd.iter();
            odd.find(|(net, mask, _)| address & *mask == *net)
                .map(|(_, _, item)| item)
        })
    }

    fn push(&mut self, net: B, mask: B, is_prefix: bool, item: Item) {
        if !is_prefix {
            self.odd.push((net, mask, item));
            return;
        }
        let at = match self
            .prefixes
            .binary_search_by_key(&Reverse(mask), |(mask, _)| Reverse(*mask))
        {
            Ok(at) => at,
            Err(at) => {
                self.prefixes.insert(at, (mask, EntriesByKey::default()));
                at
            }
        };
        key_entries::push(&mut self.prefixes[at].1, net, item);
    }

    fn nets_mut(&mut self, mask: B) -> Option<&mut EntriesByKey<B>> {
        let mut prefixes = self.prefixes.iter_mut();
        prefixes
            .find(|(known, _)| *known == mask)
            .map(|(_, nets)| nets)
    }

    fn remove(&mut self, net: B, mask: B, id: u64) {
        self.odd.retain(|(_, _, item)| item.id != id);
        if let Some(nets) = self.nets_mut(mask) {
            key_entries::remove(nets, &net, id);
        }
        self.prefixes.retain(|(_, nets)| !nets.is_empty());
    }

    fn len(&self) -> usize {
        let prefixes = self.prefixes.iter();
        self.odd.len() + prefixes.map(|(_, nets)| nets.len()).sum::<usize>()
    }

    fn each(&self, mut visit: impl FnMut(B, B)) {
        for (mask, nets) in &self.prefixes {
            nets.keys().for_each(|net| visit(*net, *mask));
        }
        let odd = self.odd.iter();
        odd.for_each(|(net, mask, _)| visit(*net, *mask));
    }

    fn find_mut(&mut self, net: B, mask: B, id: u64) -> Option<&mut Item> {
        if let Some(at) = self.odd.iter().position(|(_, _, item)| item.id == id) {
            return self.odd.get_mut(at).map(|(_, _, item)| item);
        }
        self.nets_mut(mask)?
            .get_mut(&net)
            .and_then(|entries: &mut KeyEntries| entries.find_mut(id))
    }
}

#[derive(Default)]
pub(super) struct NetworkIndex {
    v4: NetworkFamily<u32>,
    v6: NetworkFamily<u128>,
}

impl NetworkIndex {
    pub(super) fn push4(&mut self, net: u32, mask: u32, item: Item) {
        self.v4.push(net, mask, is_prefix4(mask), item);
    }

    pub(super) fn push6(&mut self, net: u128, mask: u128, item: Item) {
        self.v6.push(net, mask, is_prefix6(mask), item);
    }

    pub(super) fn remove4(&mut self, net: u32, mask: u32, id: u64) {
        self.v4.remove(net, mask, id);
    }

    pub(super) fn remove6(&mut self, net: u128, mask: u128, id: u64) {
        self.v6.remove(net, mask, id);
    }

    pub(super) fn find_mut4(&mut self, net: u32, mask: u32, id: u64) -> Option<&mut Item> {
        self.v4.find_mut(net, mask, id)
    }

    pub(super) fn find_mut6(&mut self, net: u128, mask: u128, id: u64) -> Option<&mut Item> {
        self.v6.find_mut(net, mask, id)
    }

    /// How many networks there are.
    pub(super) fn len(&self) -> usize {
        self.v4.len() + self.v6.len()
    }

    /// Gives every IPv4 network and its mask.
    pub(super) fn each4(&self, visit: impl FnMut(u32, u32)) {
        self.v4.each(visit);
    }

    /// Gives every IPv6 network and its mask.
    pub(super) fn each6(&self, visit: impl FnMut(u128, u128)) {
        self.v6.each(visit);
    }

    pub(super) fn find4(&self, address: Ipv4Addr) -> Option<&Item> {
        self.v4.find(u32::from(address))
    }

    pub(super) fn find6(&self, address: Ipv6Addr) -> Option<&Item> {
        self.v6.find(u128::from(address))
    }
}

/// Whether the set bits of the mask are all in front.
pub(super) const fn is_prefix4(mask: u32) -> bool {
    mask.leading_ones() + mask.trailing_zeros() >= 32
}

/// The same for IPv6.
pub(super) const fn is_prefix6(mask: u128) -> bool {
    mask.leading_ones() + mask.trailing_zeros() >= 128
}
