//! The patterns of many lists together: which of the lists may match.
//!
//! An answer may name a list that does not match, never leave out one that does. So the case is
//! ignored everywhere, and of expressions and portions only a text is looked for.

use std::collections::{BTreeSet, HashMap};
use std::hash::Hash;
use std::net::IpAddr;

use smallvec::SmallVec;

use super::needles::NeedleSet;
use crate::value::{Value, v6_to_v4};

/// Those that have one key.
type Owners = SmallVec<[u32; 2]>;

type Keys<K> = HashMap<K, Owners, foldhash::fast::RandomState>;

/// The patterns of many lists, each list with its owner. It must be finished before it is asked.
#[derive(Default)]
pub(crate) struct PatternUnion {
    whole: Keys<Box<[u8]>>,
    prefixes: AffixOwners,
    suffixes: AffixOwners,
    numbers: NumberOwners,
    lengths: NumberOwners,
    v4: NetworkOwners<u32>,
    v6: NetworkOwners<u128>,
    /// Texts that are looked for anywhere, until the union is finished.
    texts: HashMap<Box<[u8]>, Vec<u32>>,
    needles: Option<NeedleSet<u32>>,
    /// What cannot be looked up.
    always: Vec<u32>,
}

#[derive(Default)]
struct AffixOwners {
    keys: Keys<Box<[u8]>>,
    lengths: BTreeSet<usize>,
}

#[derive(Default)]
struct NumberOwners {
    single: Keys<i64>,
    ranges: Vec<(i64, i64, u32)>,
}

struct NetworkOwners<B>(Vec<(B, Keys<B>)>);

impl<B> Default for NetworkOwners<B> {
    fn default() -> Self {
        NetworkOwners(Vec::new())
    }
}

fn lower(bytes: &[u8]) -> Box<[u8]> {
    bytes.to_ascii_lowercase().into()
}

impl PatternUnion {
    pub(super) fn add_whole(&mut self, bytes: &[u8], owner: u32) {
        self.whole.entry(lower(bytes)).or_default().push(owner);
    }

    pub(super) fn add_prefix(&mut self, bytes: &[u8], owner: u32) {
        self.prefixes.add(bytes, owner);
    }

    pub(super) fn add_suffix(&mut self, bytes: &[u8], owner: u32) {
        self.suffixes.add(bytes, owner);
    }

    /// Any of `texts` may stand anywhere; without one, anything may match.
    pub(super) fn add_texts(&mut self, texts: Option<Vec<Box<[u8]>>>, owner: u32) {
        match texts {
            None => self.always.push(owner),
            Some(texts) => {
                for text in texts {
                    self.texts.entry(lower(&text)).or_default().push(owner);
                }
            }
        }
    }

    pub(super) fn add_number(&mut self, (low, high): (i64, i64), of_length: bool, owner: u32) {
        let numbers = if of_length {
            &mut self.lengths
        } else {
            &mut self.numbers
        };
        if low == high {
            numbers.single.entry(low).or_default().push(owner);
        } else {
            numbers.ranges.push((low, high, owner));
        }
    }

    pub(super) fn add_v4(&mut self, net: u32, mask: u32, owner: u32) {
        self.v4.add(net, mask, owner);
    }

    pub(super) fn add_v6(&mut self, net: u128, mask: u128, owner: u32) {
        self.v6.add(net, mask, owner);
    }

    /// All lists were added.
    pub(crate) fn finish(&mut self) {
        let texts = std::mem::take(&mut self.texts);
        if texts.is_empty() {
            return;
        }
        let owners: Vec<u32> = texts.values().flatten().copied().collect();
        self.needles = NeedleSet::new(texts);
        if self.needles.is_none() {
            self.always.extend(owners);
        }
    }

    /// Names the owners of the lists that may match; one may be named several times. `spare` is
    /// memory for a copy in lower case.
    pub(crate) fn look_up(&self, value: Value<'_>, spare: &mut Vec<u8>, name: &mut dyn FnMut(u32)) {
        self.always.iter().for_each(|owner| name(*owner));
        match value {
            Value::Int(number) => self.numbers.look_up(number, name),
            Value::Bool(flag) => self.numbers.look_up(i64::from(flag), name),
            Value::Ipv4(address) => self.look_up_address(address.into(), name),
            Value::Ipv6(address) => self.look_up_address(address.into(), name),
            Value::Str(bytes) | Value::Bin(bytes) | Value::Meth(bytes) => {
                let length = i64::try_from(bytes.len()).unwrap_or(i64::MAX);
                self.lengths.look_up(length, name);
                if let Some(needles) = &self.needles {
                    needles.find(bytes, name);
                }
                spare.clear();
                spare.extend(bytes.iter().map(u8::to_ascii_lowercase));
                name_all(self.whole.get(&spare[..]), name);
                self.prefixes.look_up(spare.len(), |n| &spare[..n], name);
                let from_end = |n: usize| &spare[spare.len() - n..];
                self.suffixes.look_up(spare.len(), from_end, name);
            }
        }
    }

    fn look_up_address(&self, address: IpAddr, name: &mut dyn FnMut(u32)) {
        let (v4, v6) = match address {
            IpAddr::V4(v4) => (Some(v4), v4.to_ipv6_mapped()),
            IpAddr::V6(v6) => (v6_to_v4(&v6), v6),
        };
        if let Some(v4) = v4 {
            self.v4.look_up(u32::from(v4), name);
        }
        self.v6.look_up(u128::from(v6), name);
    }
}

fn name_all(owners: Option<&Owners>, name: &mut dyn FnMut(u32)) {
    let owners = owners.into_iter().flatten();
    owners.for_each(|owner| name(*owner));
}

impl AffixOwners {
    fn add(&mut self, bytes: &[u8], owner: u32) {
        self.lengths.insert(bytes.len());
        self.keys.entry(lower(bytes)).or_default().push(owner);
    }

    fn look_up<'s>(
        &self,
        length: usize,
        part: impl Fn(usize) -> &'s [u8],
        name: &mut dyn FnMut(u32),
    ) {
        for length in self.lengths.range(..=length) {
            name_all(self.keys.get(part(*length)), name);
        }
    }
}

impl NumberOwners {
    fn look_up(&self, number: i64, name: &mut dyn FnMut(u32)) {
        name_all(self.single.get(&number), name);
        for (low, high, owner) in &self.ranges {
            if (*low..=*high).contains(&number) {
                name(*owner);
            }
        }
    }
}

impl<B: Copy + Eq + Hash + std::ops::BitAnd<Output = B>> NetworkOwners<B> {
    fn add(&mut self, net: B, mask: B, owner: u32) {
        let at = match self.0.iter().position(|(known, _)| *known == mask) {
            Some(at) => at,
            None => {
                self.0.push((mask, HashMap::default()));
                self.0.len() - 1
            }
        };
        self.0[at].1.entry(net).or_default().push(owner);
    }

    fn look_up(&self, address: B, name: &mut dyn FnMut(u32)) {
        for (mask, nets) in &self.0 {
            name_all(nets.get(&(address & *mask)), name);
        }
    }
}
