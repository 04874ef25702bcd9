//! What evaluating an expression does beside giving a value.
//!
//! Each row of a catalogue states its effects, as it states its needs. They are folded into
//! expressions, ACLs and conditions: who leaves out an evaluation, or does one early, asks whether
//! that would be noticed.

use std::ops::BitOr;

/// A set of effects.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub struct SideEffects(u8);

impl SideEffects {
    /// Nothing but a value.
    pub const NONE: SideEffects = SideEffects(0);
    /// Counters of stick tables are changed (`src_inc_gpc0`).
    pub const COUNTERS: SideEffects = SideEffects(1);
    /// Variables are set or taken away (`set-var`).
    pub const VARIABLES: SideEffects = SideEffects(1 << 1);
    /// Captures are made (`capture-req`).
    pub const CAPTURES: SideEffects = SideEffects(1 << 2);
    /// A line is sent to a sink of events (`debug`).
    pub const EVENTS: SideEffects = SideEffects(1 << 3);
    /// What a script does is not known.
    pub const ANY: SideEffects = SideEffects(u8::MAX);

    /// Both sets; `|` for constants.
    pub const fn and(self, other: SideEffects) -> SideEffects {
        SideEffects(self.0 | other.0)
    }

    /// Whether the sets share an effect.
    pub const fn intersects(self, other: SideEffects) -> bool {
        self.0 & other.0 != 0
    }

    /// Whether nothing is done.
    pub const fn is_none(self) -> bool {
        self.0 == 0
    }
}

impl BitOr for SideEffects {
    type Output = SideEffects;
    fn bitor(self, other: SideEffects) -> SideEffects {
        self.and(other)
    }
}
