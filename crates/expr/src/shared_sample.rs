//! A sample that consecutive conditions share.
//!
//! Conditions of one list often ask the same: `path_beg /a`, `path_beg /b`, `path_end .css`. The
//! sample of the last one is kept for the next, as long as the same facts are asked and no condition
//! in between does anything beside giving a value.

use crate::expr::Expr;
use crate::value::Sample;

/// Fetches whose samples may be shared, in alphabetical order: they give what the message or the
/// connection holds, without a copy, and evaluating a condition does not change it.
const FETCHES: &[&str] = &[
    "dst", "dst_port", "hdr", "method", "path", "pathq", "req.fhdr", "req.hdr", "res.fhdr",
    "res.hdr", "shdr", "src", "src_port", "status",
];

/// How the evaluation of a sample treats the one that is kept.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum SampleSharing {
    /// It leaves the kept one as it is.
    Apart,
    /// It uses the kept one, and keeps its own.
    Shared,
    /// It does more than give a value: nothing is kept over it.
    Forgets,
}

impl SampleSharing {
    /// How the sample of this expression is shared.
    pub(crate) fn of(expr: &Expr) -> Self {
        if !expr.effects().is_none() {
            Self::Forgets
        } else if expr.converters.is_empty() && FETCHES.contains(&expr.fetch.word) {
            Self::Shared
        } else {
            Self::Apart
        }
    }
}

/// The sample that was evaluated last, for conditions that ask the same of the same facts.
#[derive(Debug, Default)]
pub struct LastSample<'f> {
    expr: Option<&'f Expr>,
    sample: Option<Sample<'f>>,
}

impl<'f> LastSample<'f> {
    /// Forgets it: something was done that it may depend on.
    #[inline]
    pub fn forget(&mut self) {
        self.expr = None;
    }

    /// The sample of `expr`, if that is the last one; the inner `None` if it has no value.
    #[inline]
    pub(crate) fn of(&self, expr: &Expr) -> Option<Option<&Sample<'f>>> {
        let last = self.expr?;
        let is_same = std::ptr::eq(last.fetch, expr.fetch)
            && (last.args.is_empty() && expr.args.is_empty() || last.args == expr.args);
        is_same.then_some(self.sample.as_ref())
    }

    /// Keeps a sample without converters, which holds nothing of the scratch.
    #[inline]
    pub(crate) fn keep(&mut self, expr: &'f Expr, sample: Option<Sample<'f>>) {
        (self.expr, self.sample) = (Some(expr), sample);
    }
}
