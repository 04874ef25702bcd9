//! Expressions that need to turn back: look-around, references to groups, atomic groups.
//!
//! They are searched for as PCRE2 does, one beginning after the other, each way in its order. What
//! that takes can grow with any power of the subject's length, so a search is given a number of
//! steps and ends when it has taken them: the same search of the same subject always takes the same
//! number. The text comes from [`Pcre`](crate::pcre::Pcre), which writes each construct in one way.

mod analysis;
mod compile;
mod machine;
mod tree;

#[cfg(test)]
mod tests;

use std::sync::Mutex;

use crate::byte_set::ByteSet;
use crate::groups::{GROUPS_MAX, Groups};

use compile::Step;
use machine::{Machine, MachineMemory};

/// Places to turn back to beyond which the memory of a search is not kept for the next one.
const KEPT_FRAMES_MAX: usize = 4096;

/// The search took as many steps, or as much memory, as it may: whether the expression matches is
/// not known.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct SearchExhausted;

/// A compiled expression.
pub(crate) struct Program {
    steps: Vec<Step>,
    slot_count: usize,
    group_count: usize,
    starts: Starts,
    spare: Mutex<Option<MachineMemory>>,
}

/// Where a match can begin.
struct Starts {
    /// Only at the beginning of the subject.
    anchored: bool,
    /// Where one begins with this many bytes skipped, it is tried once for each line, or once.
    skipping: Option<Skipping>,
    /// The bytes one begins with, where it cannot be empty.
    first: Option<ByteSet>,
    /// Bytes that must stand at its beginning or behind it.
    required: Vec<u8>,
}

/// An expression that begins with `.*`: what it does not find from one beginning it does not find
/// from a later one either.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Skipping {
    /// Up to the end of the line.
    Line,
    /// Up to the end.
    All,
}

impl Program {
    /// Compiles what [`Pcre::marked`](crate::pcre::Pcre::marked) wrote; `fold` ignores the case.
    ///
    /// # Errors
    /// When it is too large, or looks behind without a limit.
    pub(crate) fn compile(text: &str, fold: bool) -> Result<Program, String> {
        let tree = tree::parse(text, fold)?;
        let compiled = compile::compile(&tree)?;
        Ok(Program {
            starts: analysis::starts(&tree.root),
            steps: compiled.steps,
            slot_count: compiled.slot_count,
            group_count: tree.group_count,
            spare: Mutex::new(None),
        })
    }

    /// The first match from byte `at` on, found in at most `steps` steps; they are what is left of them
    /// then.
    ///
    /// # Errors
    /// When the steps do not suffice.
    pub(crate) fn search(
        &self,
        subject: &[u8],
        at: usize,
        steps: &mut u64,
    ) -> Result<Option<Groups>, SearchExhausted> {
        // Positions take 32 bits.
        if subject.len() >= u32::MAX as usize {
            return Err(SearchExhausted);
        }
        let Some(last) = self.starts.last(subject, at) else {
            return Ok(None);
        };
        // Another worker may be using the memory: then this search brings its own.
        let taken = self.spare.try_lock().ok().and_then(|mut kept| kept.take());
        let mut memory = taken.unwrap_or_default();
        memory.reset(self.slot_count);
        let mut machine = Machine::new(&self.steps, subject, at, &mut memory, steps);
        let found = self.search_from(&mut machine, subject, at..=last);
        let groups = found.map(|found| found.map(|span| self.groups(span, &memory)));
        if memory.frame_capacity() <= KEPT_FRAMES_MAX
            && let Ok(mut kept) = self.spare.try_lock()
        {
            *kept = Some(memory);
        }
        groups
    }

    fn search_from(
        &self,
        machine: &mut Machine<'_>,
        subject: &[u8],
        range: std::ops::RangeInclusive<usize>,
    ) -> Result<Option<(usize, usize)>, SearchExhausted> {
        let (mut start, last) = (*range.start(), *range.end());
        while let Some(next) = self.starts.next(subject, start) {
            if next > last {
                break;
            }
            machine.charge_bytes(next - start)?;
            if let Some(end) = machine.run(0, next, None)? {
                return Ok(Some((next, end)));
            }
            if self.starts.anchored || self.starts.skipping == Some(Skipping::All) {
                break;
            }
            start = match self.starts.skipping {
                Some(_) => match memchr::memchr(b'\n', &subject[next..]) {
                    Some(length) => next + length + 1,
                    None => break,
                },
                None => next + 1,
            };
        }
        Ok(None)
    }

    fn groups(&self, (start, end): (usize, usize), memory: &MachineMemory) -> Groups {
        let mut groups = Groups::default();
        // What is kept may begin where the match ends, not later.
        groups[0] = Some((memory.kept_from().unwrap_or(start).min(end), end));
        for (number, group) in groups.iter_mut().enumerate().take(GROUPS_MAX).skip(1) {
            if number <= self.group_count {
                *group = memory.group(number);
            }
        }
        groups
    }
}

impl Starts {
    /// The last place where a match can begin; none where there is none.
    fn last(&self, subject: &[u8], at: usize) -> Option<usize> {
        if at > subject.len() || (self.anchored && at > 0) {
            return None;
        }
        let mut last = subject.len();
        for byte in &self.required {
            last = last.min(at + memchr::memrchr(*byte, &subject[at..])?);
        }
        Some(last)
    }

    /// The next place from `at` on where a match can begin.
    fn next(&self, subject: &[u8], at: usize) -> Option<usize> {
        let rest = subject.get(at..)?;
        let Some(first) = &self.first else {
            return Some(at);
        };
        let skipped = rest.iter().position(|byte| first.contains(*byte))?;
        Some(at + skipped)
    }
}
