//! Takes the steps of an expression, and turns back where one fails.

use super::SearchExhausted;
use super::compile::{KEPT_SLOT, Run, Step, group_slot};
use super::tree::{Order, Place};

/// Places to turn back to, at most: 20 MB of them, PCRE2's limit.
const FRAMES_MAX: usize = (20 << 20) / size_of::<Frame>();
/// Bytes that are looked at in the time of a step.
const BYTES_PER_STEP: usize = 16;
/// A slot that holds no place.
const NOWHERE: u32 = u32::MAX;

/// What to do when a step fails.
#[derive(Clone, Copy)]
enum Frame {
    /// Go on there.
    Branch { step: u32, at: u32 },
    /// The slot held that.
    Restore { slot: u32, was: u32 },
    /// A run that took bytes up to `at` takes fewer, down to `low`.
    Fewer { step: u32, low: u32, at: u32 },
    /// A run that took bytes up to `at` takes more, up to `left`.
    More { step: u32, at: u32, left: u32 },
}

/// Memory of a search.
#[derive(Default)]
pub(super) struct MachineMemory {
    frames: Vec<Frame>,
    slots: Vec<u32>,
}

impl MachineMemory {
    pub(super) fn reset(&mut self, slot_count: usize) {
        self.frames.clear();
        self.slots.clear();
        self.slots.resize(slot_count, NOWHERE);
    }

    pub(super) fn frame_capacity(&self) -> usize {
        self.frames.capacity()
    }

    /// Where what is reported begins, when the expression says so.
    pub(super) fn kept_from(&self) -> Option<usize> {
        place(self.slots[KEPT_SLOT as usize])
    }

    /// What a group matched.
    pub(super) fn group(&self, number: usize) -> Option<(usize, usize)> {
        let slot = group_slot(u32::try_from(number).ok()?) as usize;
        place(self.slots[slot + 1]).zip(place(self.slots[slot + 2]))
    }
}

fn place(slot: u32) -> Option<usize> {
    (slot != NOWHERE).then_some(slot as usize)
}

fn narrow(at: usize) -> u32 {
    u32::try_from(at).expect("a subject is shorter than 4 GB")
}

pub(super) struct Machine<'m> {
    steps: &'m [Step],
    subject: &'m [u8],
    /// Where the search began.
    begin: usize,
    memory: &'m mut MachineMemory,
    /// Steps that may still be taken.
    left: &'m mut u64,
}

type Taken<T = ()> = Result<T, SearchExhausted>;

impl<'m> Machine<'m> {
    pub(super) fn new(
        steps: &'m [Step],
        subject: &'m [u8],
        begin: usize,
        memory: &'m mut MachineMemory,
        left: &'m mut u64,
    ) -> Machine<'m> {
        Machine {
            steps,
            subject,
            begin,
            memory,
            left,
        }
    }

    fn charge(&mut self, steps: usize) -> Taken {
        let left = self.left.checked_sub(steps as u64);
        *self.left = left.unwrap_or(0);
        left.map(|_| ()).ok_or(SearchExhausted)
    }

    /// Counts the steps that looking at so many bytes takes.
    pub(super) fn charge_bytes(&mut self, bytes: usize) -> Taken {
        self.charge(bytes / BYTES_PER_STEP)
    }

    /// Takes steps from `step` on up to an [`Step::Accept`]: where the match ends, which is at
    /// `wanted` if that is given. What it leaves to turn back to is above what was there.
    pub(super) fn run(
        &mut self,
        step: u32,
        at: usize,
        wanted: Option<usize>,
    ) -> Taken<Option<usize>> {
        let base = self.memory.frames.len();
        let (mut step, mut at) = (step, at);
        loop {
            self.charge(1)?;
            if let Step::Accept = self.steps[step as usize]
                && wanted.is_none_or(|wanted| wanted == at)
            {
                return Ok(Some(at));
            }
            let next = match self.take(step, at)? {
                Some(next) => Some(next),
                None => self.turn_back(base)?,
            };
            match next {
                Some(next) => (step, at) = next,
                None => return Ok(None),
            }
        }
    }

    fn push(&mut self, frame: Frame) -> Taken {
        if self.memory.frames.len() >= FRAMES_MAX {
            return Err(SearchExhausted);
        }
        self.memory.frames.push(frame);
        Ok(())
    }

    fn set(&mut self, slot: u32, value: u32) -> Taken {
        let was = self.memory.slots[slot as usize];
        self.push(Frame::Restore { slot, was })?;
        self.memory.slots[slot as usize] = value;
        Ok(())
    }

    /// Takes one step: the next one and the place then; none when it fails.
    fn take(&mut self, step: u32, at: usize) -> Taken<Option<(u32, usize)>> {
        let steps = self.steps;
        let next = step + 1;
        let if_so = |is: bool| Ok(is.then_some((next, at)));
        match &steps[step as usize] {
            Step::Accept => Ok(None),
            Step::Byte(byte) => Ok((self.subject.get(at) == Some(byte)).then_some((next, at + 1))),
            Step::Set(set) => {
                let is_in = self.subject.get(at).is_some_and(|byte| set.contains(*byte));
                Ok(is_in.then_some((next, at + 1)))
            }
            Step::Run(run) => Ok(self.take_run(step, run, at)?.map(|at| (next, at))),
            Step::Jump(to) => Ok(Some((*to, at))),
            Step::Split { first, second } => {
                self.push(Frame::Branch {
                    step: *second,
                    at: narrow(at),
                })?;
                Ok(Some((*first, at)))
            }
            Step::Mark(slot) => {
                self.set(*slot, narrow(at))?;
                if_so(true)
            }
            Step::Close(group) => {
                let slot = group_slot(*group);
                let began = self.memory.slots[slot as usize];
                self.set(slot + 1, began)?;
                self.set(slot + 2, narrow(at))?;
                if_so(true)
            }
            Step::Again { mark, start } => {
                let is_same = place(self.memory.slots[*mark as usize]) == Some(at);
                Ok(Some((if is_same { next } else { *start }, at)))
            }
            Step::Place(place) => if_so(self.is_at(*place, at)),
            Step::Reference { group, fold } => self
                .take_reference(*group, *fold, at)
                .map(|end| end.map(|end| (next, end))),
            Step::Condition { group, no } => {
                let took_part = self.memory.group(*group as usize).is_some();
                Ok(Some((if took_part { next } else { *no }, at)))
            }
            Step::Atomic { end } => {
                let base = self.memory.frames.len();
                let found = self.run(next, at, None)?;
                self.forget_branches(base)?;
                Ok(found.map(|at| (*end, at)))
            }
            Step::LookAhead { negated, end } => {
                let base = self.memory.frames.len();
                let is_found = self.run(next, at, None)?.is_some();
                self.looked(base, is_found, *negated)?;
                Ok((is_found != *negated).then_some((*end, at)))
            }
            Step::LookBehind {
                negated,
                least,
                most,
                end,
            } => {
                let base = self.memory.frames.len();
                let mut is_found = false;
                // The longest first, as in PCRE2.
                for length in (*least as usize..=(*most as usize).min(at)).rev() {
                    is_found = self.run(next, at - length, Some(at))?.is_some();
                    if is_found {
                        break;
                    }
                }
                self.looked(base, is_found, *negated)?;
                Ok((is_found != *negated).then_some((*end, at)))
            }
        }
    }

    /// A look ahead or behind is over: what it found is the only way, or nothing of it stays.
    fn looked(&mut self, base: usize, is_found: bool, negated: bool) -> Taken {
        if !is_found {
            return Ok(());
        }
        if negated {
            self.undo(base);
            return Ok(());
        }
        self.forget_branches(base)
    }

    /// Slots hold what they did.
    fn undo(&mut self, base: usize) {
        while self.memory.frames.len() > base {
            if let Some(Frame::Restore { slot, was }) = self.memory.frames.pop() {
                self.memory.slots[slot as usize] = was;
            }
        }
    }

    /// Only what slots held is left to turn back to.
    fn forget_branches(&mut self, base: usize) -> Taken {
        let frames = &mut self.memory.frames;
        let count = frames.len() - base;
        let mut kept = base;
        for at in base..frames.len() {
            if let Frame::Restore { .. } = frames[at] {
                frames[kept] = frames[at];
                kept += 1;
            }
        }
        frames.truncate(kept);
        self.charge_bytes(count)
    }

    /// Goes back to the last place where there was another way; none when there is none above `base`.
    fn turn_back(&mut self, base: usize) -> Taken<Option<(u32, usize)>> {
        while self.memory.frames.len() > base {
            match self.memory.frames.pop() {
                None => break,
                Some(Frame::Branch { step, at }) => return Ok(Some((step, at as usize))),
                Some(Frame::Restore { slot, was }) => self.memory.slots[slot as usize] = was,
                Some(Frame::Fewer { step, low, at }) => {
                    if let Some(at) = self.take_fewer(step, low, at as usize)? {
                        return Ok(Some((step + 1, at)));
                    }
                }
                Some(Frame::More { step, at, left }) => {
                    if let Some(at) = self.take_more(step, at as usize, left)? {
                        return Ok(Some((step + 1, at)));
                    }
                }
            }
        }
        Ok(None)
    }

    fn take_run(&mut self, step: u32, run: &Run, at: usize) -> Taken<Option<usize>> {
        let rest = &self.subject[at..];
        let wanted = if run.order == Order::Least {
            run.least
        } else {
            run.most
        };
        let rest = &rest[..rest.len().min(wanted as usize)];
        let taken = match run.all_but {
            Some(byte) => memchr::memchr(byte, rest),
            None => rest.iter().position(|byte| !run.set.contains(*byte)),
        };
        let taken = taken.unwrap_or(rest.len());
        // A single byte is found many at a time.
        self.charge_bytes(if run.all_but.is_some() {
            taken / 4
        } else {
            taken
        })?;
        let least = run.least as usize;
        if taken < least {
            return Ok(None);
        }
        match run.order {
            Order::MostOnly => {}
            Order::Most if taken == least => {}
            Order::Most => self.push(Frame::Fewer {
                step,
                low: narrow(at + least),
                at: narrow(at + taken),
            })?,
            Order::Least => self.push(Frame::More {
                step,
                at: narrow(at + taken),
                left: run.most - run.least,
            })?,
        }
        Ok(Some(at + taken))
    }

    fn run_at(&self, step: u32) -> Option<&'m Run> {
        match &self.steps[step as usize] {
            Step::Run(run) => Some(run),
            _ => None,
        }
    }

    fn take_fewer(&mut self, step: u32, low: u32, at: usize) -> Taken<Option<usize>> {
        let next = self.run_at(step).and_then(|run| run.next);
        let fewer = &self.subject[low as usize..at];
        let length = match next {
            Some(byte) => memchr::memrchr(byte, fewer),
            None => fewer.len().checked_sub(1),
        };
        self.charge_bytes((fewer.len() - length.unwrap_or(0)) / 4)?;
        let Some(length) = length else {
            return Ok(None);
        };
        if length > 0 {
            self.push(Frame::Fewer {
                step,
                low,
                at: low + narrow(length),
            })?;
        }
        Ok(Some(low as usize + length))
    }

    fn take_more(&mut self, step: u32, at: usize, left: u32) -> Taken<Option<usize>> {
        let Some(run) = self.run_at(step) else {
            return Ok(None);
        };
        let rest = &self.subject[at..];
        let mut taken = 0;
        let found = loop {
            let is_taken = taken < left as usize
                && rest.get(taken).is_some_and(|byte| run.set.contains(*byte));
            if !is_taken {
                break None;
            }
            taken += 1;
            if run.next.is_none_or(|next| rest.get(taken) == Some(&next)) {
                break Some(at + taken);
            }
        };
        self.charge_bytes(taken)?;
        if let Some(at) = found {
            let left = left - narrow(taken);
            self.push(Frame::More {
                step,
                at: narrow(at),
                left,
            })?;
        }
        Ok(found)
    }

    fn take_reference(&mut self, group: u32, fold: bool, at: usize) -> Taken<Option<usize>> {
        let Some((start, end)) = self.memory.group(group as usize) else {
            return Ok(None);
        };
        self.charge_bytes(end - start)?;
        let wanted = &self.subject[start..end];
        let is_there = self
            .subject
            .get(at..at + wanted.len())
            .is_some_and(|there| match fold {
                true => there.eq_ignore_ascii_case(wanted),
                false => there == wanted,
            });
        Ok(is_there.then_some(at + wanted.len()))
    }

    fn is_at(&self, place: Place, at: usize) -> bool {
        let subject = self.subject;
        let is_word = |byte: Option<&u8>| {
            byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
        };
        let before = at.checked_sub(1).and_then(|at| subject.get(at));
        let after = subject.get(at);
        match place {
            Place::Start => at == 0,
            Place::SearchStart => at == self.begin,
            Place::End => after.is_none(),
            Place::EndOrNewline => matches!(&subject[at..], [] | [b'\n']),
            Place::LineStart => at == 0 || (before == Some(&b'\n') && after.is_some()),
            Place::LineEnd => after.is_none_or(|byte| *byte == b'\n'),
            Place::WordBoundary => is_word(before) != is_word(after),
            Place::WordInside => is_word(before) == is_word(after),
            Place::WordStart => !is_word(before) && is_word(after),
            Place::WordEnd => is_word(before) && !is_word(after),
        }
    }
}
