//! Texts that are searched for together, each with those who want to know of it.

use std::collections::HashMap;

use aho_corasick::{AhoCorasick, AhoCorasickKind};
use smallvec::SmallVec;

/// From so many texts on, the automaton is one that takes little memory.
const COMPACT_TEXTS_MIN: usize = 200;

/// Texts that are found in one pass over a subject, whatever their case, with their owners.
pub(super) struct NeedleSet<O> {
    automaton: AhoCorasick,
    /// Where the owners of each text begin, and where the last ones end.
    starts: Vec<u32>,
    owners: Vec<O>,
}

impl<O: Copy> NeedleSet<O> {
    /// The set of texts and their owners; `None` when there are too many for an automaton.
    pub(super) fn new(texts: HashMap<Box<[u8]>, Vec<O>>) -> Option<NeedleSet<O>> {
        let kind = (texts.len() >= COMPACT_TEXTS_MIN).then_some(AhoCorasickKind::ContiguousNFA);
        let mut starts = Vec::with_capacity(texts.len() + 1);
        let mut owners = Vec::with_capacity(texts.len());
        let (texts, owners_of): (Vec<_>, Vec<_>) = texts.into_iter().unzip();
        for of in owners_of {
            starts.push(u32::try_from(owners.len()).ok()?);
            owners.extend(of);
        }
        starts.push(u32::try_from(owners.len()).ok()?);
        let mut builder = AhoCorasick::builder();
        let builder = builder
            .ascii_case_insensitive(true)
            .kind(kind)
            .prefilter(false);
        let automaton = builder.build(&texts).ok()?;
        Some(NeedleSet {
            automaton,
            starts,
            owners,
        })
    }

    /// Names the owners of each text that is in `subject`; one with several texts may be named
    /// several times.
    pub(super) fn find(&self, subject: &[u8], visit: &mut dyn FnMut(O)) {
        let mut found: SmallVec<[u32; 64]> = SmallVec::new();
        let hits = self.automaton.find_overlapping_iter(subject);
        for hit in hits {
            let text = hit.pattern().as_u32();
            if found.last() != Some(&text) {
                found.push(text);
            }
        }
        found.sort_unstable();
        found.dedup();
        for text in found {
            let text = text as usize;
            let owners = self.starts[text] as usize..self.starts[text + 1] as usize;
            self.owners[owners].iter().for_each(|owner| visit(*owner));
        }
    }
}
