//! Sets of bytes, as the classes of an expression mean them.

use crate::pcre_escape::push_byte;

/// A set of bytes.
#[derive(Clone)]
pub(crate) struct ByteSet([bool; 256]);

impl ByteSet {
    /// The bytes of which `is_in` is true.
    pub(crate) fn of(is_in: impl Fn(u8) -> bool) -> ByteSet {
        let mut set = ByteSet([false; 256]);
        for byte in 0..=u8::MAX {
            set.0[usize::from(byte)] = is_in(byte);
        }
        set
    }

    /// Adds what is in another set, or what is not in it.
    pub(crate) fn add(&mut self, other: &ByteSet, negated: bool) {
        for (slot, is_in) in self.0.iter_mut().zip(other.0) {
            *slot |= is_in != negated;
        }
    }

    /// Adds the bytes from `first` to `last`.
    pub(crate) fn add_range(&mut self, first: u8, last: u8) {
        self.0[usize::from(first)..=usize::from(last)].fill(true);
    }

    /// Whether the byte is in the set.
    pub(crate) fn contains(&self, byte: u8) -> bool {
        self.0[usize::from(byte)]
    }

    /// The byte, in a set of one.
    pub(crate) fn single(&self) -> Option<u8> {
        self.only(true)
    }

    /// The byte that is not in the set, if there is but one.
    pub(crate) fn all_but_one(&self) -> Option<u8> {
        self.only(false)
    }

    /// Whether every byte is in the set.
    pub(crate) fn is_all(&self) -> bool {
        self.0.iter().all(|is_in| *is_in)
    }

    fn only(&self, wanted: bool) -> Option<u8> {
        let mut found = (0..=u8::MAX).filter(|byte| self.contains(*byte) == wanted);
        let first = found.next()?;
        found.next().is_none().then_some(first)
    }

    /// Writes the set as a class.
    pub(crate) fn write(&self, negated: bool, out: &mut String) {
        // Not every engine takes a class of nothing.
        if self.0.iter().all(|is_in| *is_in == negated) {
            out.push_str("[^\\x00-\\xFF]");
            return;
        }
        if self.0.iter().all(|is_in| *is_in != negated) {
            out.push_str("[\\x00-\\xFF]");
            return;
        }
        out.push_str(if negated { "[^" } else { "[" });
        let mut next = 0_usize;
        while let Some(first) = (next..256).find(|at| self.0[*at]) {
            let end = (first..256).find(|at| !self.0[*at]).unwrap_or(256);
            next = end;
            let byte = |at: usize| u8::try_from(at).expect("below 256");
            push_byte(out, byte(first));
            if end - first > 1 {
                out.push('-');
                push_byte(out, byte(end - 1));
            }
        }
        out.push(']');
    }
}
