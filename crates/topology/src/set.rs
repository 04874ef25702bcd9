//! Sets of processors, and the lists that the kernel and configurations write them as.

use std::fmt;

/// Processors have numbers below this, as in HAProxy and glibc.
pub const PROCESSORS_MAX: usize = 1024;

/// The bits of a word of a set.
const WORD_BITS: usize = 64;

/// A set of processors by their numbers, from 0.
#[derive(Clone, Copy, Eq, Hash, PartialEq)]
pub struct CpuSet([u64; PROCESSORS_MAX / WORD_BITS]);

impl CpuSet {
    /// No processor.
    pub const EMPTY: Self = Self([0; PROCESSORS_MAX / WORD_BITS]);

    /// The processors from `first` to `last`; those that no set can hold are left out.
    #[must_use]
    pub fn range(first: usize, last: usize) -> Self {
        (first..=last.min(PROCESSORS_MAX - 1)).collect()
    }

    /// The set of a list as the kernel writes it: `0-3,8`. What is no number ends the list, and
    /// numbers that no set can hold are left out.
    #[must_use]
    pub fn of_kernel_list(text: &str) -> Self {
        let mut set = Self::EMPTY;
        for part in text.trim().split(',') {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (Ok(first), Ok(last)) = (first.trim().parse(), last.trim().parse()) else {
                break;
            };
            set = set.union(&Self::range(first, last));
        }
        set
    }

    /// Adds a processor. A number that no set can hold is ignored.
    pub fn insert(&mut self, cpu: usize) {
        if let Some(word) = self.0.get_mut(cpu / WORD_BITS) {
            *word |= 1 << (cpu % WORD_BITS);
        }
    }

    /// Takes a processor out.
    pub fn remove(&mut self, cpu: usize) {
        if let Some(word) = self.0.get_mut(cpu / WORD_BITS) {
            *word &= !(1 << (cpu % WORD_BITS));
        }
    }

    /// Whether a processor is in it.
    #[must_use]
    pub fn contains(&self, cpu: usize) -> bool {
        let word = self.0.get(cpu / WORD_BITS).copied().unwrap_or(0);
        word >> (cpu % WORD_BITS) & 1 == 1
    }

    /// How many processors are in it.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Whether none is in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::EMPTY
    }

    /// The numbers in it, ascending.
    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        (0..PROCESSORS_MAX).filter(|&cpu| self.contains(cpu))
    }

    /// The processors that are in either set.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        let mut both = *self;
        for (word, added) in both.0.iter_mut().zip(other.0) {
            *word |= added;
        }
        both
    }

    /// The processors that are in both sets.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        let mut common = *self;
        for (word, kept) in common.0.iter_mut().zip(other.0) {
            *word &= kept;
        }
        common
    }

    /// The processors that are in this set and not in the other.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Self {
        let mut rest = *self;
        for (word, dropped) in rest.0.iter_mut().zip(other.0) {
            *word &= !dropped;
        }
        rest
    }
}

impl Default for CpuSet {
    fn default() -> Self {
        Self::EMPTY
    }
}

impl FromIterator<usize> for CpuSet {
    fn from_iter<I: IntoIterator<Item = usize>>(cpus: I) -> Self {
        let mut set = Self::EMPTY;
        cpus.into_iter().for_each(|cpu| set.insert(cpu));
        set
    }
}

impl fmt::Debug for CpuSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{{{self}}}")
    }
}

/// As the kernel writes lists: `0-3,8`.
impl fmt::Display for CpuSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut comma = "";
        let mut cpus = self.iter().peekable();
        while let Some(first) = cpus.next() {
            let mut last = first;
            while cpus.next_if_eq(&(last + 1)).is_some() {
                last += 1;
            }
            match last == first {
                true => write!(f, "{comma}{first}")?,
                false => write!(f, "{comma}{first}-{last}")?,
            }
            comma = ",";
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_list_of_the_kernel_is_read() {
        let list = |text| CpuSet::of_kernel_list(text).to_string();
        assert_eq!(list("0-3,8\n"), "0-3,8");
        assert_eq!(list("5"), "5");
        assert_eq!(list("\n"), "");
        assert_eq!(list("0,1,2,4"), "0-2,4");
        assert_eq!(list("1023-1030"), "1023");
        assert_eq!(list("3-1,7"), "7");
        assert_eq!(list("2,x,3"), "2");
    }

    proptest! {
        #[test]
        fn a_set_is_what_its_list_says(cpus in proptest::collection::btree_set(0usize..1024, 0..40)) {
            let set: CpuSet = cpus.iter().copied().collect();
            prop_assert_eq!(set.len(), cpus.len());
            prop_assert!(set.iter().eq(cpus.iter().copied()));
            prop_assert_eq!(CpuSet::of_kernel_list(&set.to_string()), set);
        }

        #[test]
        fn no_text_makes_the_reader_fail(text in "[0-9,\\- x\n]{0,40}") {
            let _ = CpuSet::of_kernel_list(&text);
        }
    }
}
