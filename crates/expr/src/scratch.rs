//! The caller's memory for samples that had to be computed.
//!
//! One evaluation appends to one buffer; handles are ranges in it, so that a converter can read
//! its input while it writes its output without a heap allocation of its own. The buffer keeps
//! its capacity from one evaluation to the next.

use crate::number_text::DateText;

/// Bytes of a sample: held by someone who outlives the evaluation, or kept in the scratch.
#[derive(Clone, Copy, Debug)]
pub(crate) enum SampleText<'f> {
    Held(&'f [u8]),
    Kept { start: u32, end: u32 },
}

/// Working memory for evaluations: one per worker, reused for every expression.
#[derive(Debug, Default)]
pub struct Scratch {
    data: Vec<u8>,
    spare: Vec<Vec<u8>>,
    /// The date that was written last.
    pub(crate) date: DateText,
}

/// Where a scratch stood.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ScratchMark(usize);

/// Bytes a scratch may hold before converters stop producing (HAProxy: one trash buffer of
/// `tune.bufsize`, 16 kB; we are more generous because several samples share one scratch).
const SCRATCH_BYTES_MAX: usize = 1 << 20;

impl Scratch {
    /// An empty scratch; it grows to what the expressions need and stays there.
    pub fn new() -> Scratch {
        Scratch::default()
    }

    /// Forgets every sample, keeps the memory.
    pub fn clear(&mut self) {
        self.data.clear();
    }

    pub(crate) fn mark(&self) -> ScratchMark {
        ScratchMark(self.data.len())
    }

    /// Forgets the samples made since `mark`; the caller holds none of them any more.
    pub(crate) fn rewind(&mut self, mark: ScratchMark) {
        self.data.truncate(mark.0);
    }

    pub(crate) fn bytes<'a>(&'a self, text: SampleText<'a>) -> &'a [u8] {
        match text {
            SampleText::Held(bytes) => bytes,
            SampleText::Kept { start, end } => self
                .data
                .get(start as usize..end as usize)
                .unwrap_or_default(),
        }
    }

    /// Part of a text without copying it.
    pub(crate) fn part<'f>(&self, text: SampleText<'f>, from: usize, to: usize) -> SampleText<'f> {
        let length = self.bytes(text).len();
        let (from, to) = (from.min(length), to.clamp(from.min(length), length));
        match text {
            SampleText::Held(bytes) => SampleText::Held(&bytes[from..to]),
            SampleText::Kept { start, .. } => SampleText::Kept {
                start: start + from as u32,
                end: start + to as u32,
            },
        }
    }

    /// Copies `bytes` into the scratch.
    pub(crate) fn keep(&mut self, bytes: &[u8]) -> SampleText<'static> {
        let start = self.data.len();
        let room = SCRATCH_BYTES_MAX.saturating_sub(start);
        self.data.extend_from_slice(&bytes[..bytes.len().min(room)]);
        SampleText::Kept {
            start: start as u32,
            end: self.data.len() as u32,
        }
    }

    /// A copy of a text, which `change` may rewrite in place.
    pub(crate) fn copy(
        &mut self,
        text: SampleText<'_>,
        change: impl FnOnce(&mut [u8]),
    ) -> SampleText<'static> {
        let start = self.data.len();
        let room = SCRATCH_BYTES_MAX.saturating_sub(start);
        match text {
            SampleText::Held(bytes) => {
                self.data.extend_from_slice(&bytes[..bytes.len().min(room)]);
            }
            SampleText::Kept { start, end } => {
                let (start, end) = (start as usize, end as usize);
                let end = end.min(start + room).min(self.data.len());
                self.data.extend_from_within(start.min(end)..end);
            }
        }
        change(&mut self.data[start..]);
        SampleText::Kept {
            start: start as u32,
            end: self.data.len() as u32,
        }
    }

    /// A spare buffer to write output into while the scratch is being read.
    pub(crate) fn open(&mut self) -> Vec<u8> {
        self.spare.pop().unwrap_or_default()
    }

    /// Takes a spare buffer back without keeping what is in it.
    pub(crate) fn discard(&mut self, mut spare: Vec<u8>) {
        spare.clear();
        self.spare.push(spare);
    }

    /// Keeps what was written and takes the spare buffer back.
    pub(crate) fn close(&mut self, mut out: Vec<u8>) -> SampleText<'static> {
        let text = self.keep(&out);
        out.clear();
        self.spare.push(out);
        text
    }
}
