//! Whether a frontend accepts clients.

use std::sync::atomic::{AtomicU32, Ordering};

/// Whether a frontend listens, as commands set it.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum GateState {
    /// It listens.
    #[default]
    Open,
    /// It refuses clients until it is enabled again (`disable frontend`).
    Paused,
    /// It does not listen any more (`shutdown frontend`), until a reload drops the overrides.
    Shut,
}

/// The opening of a frontend, and a number that changes with it. It outlives every generation.
#[derive(Debug, Default)]
pub struct Gate(AtomicU32);

/// The bits that hold the opening; the number of changes is above them.
const OPENING_BITS: u32 = 2;

impl Gate {
    /// The current opening.
    pub fn opening(&self) -> GateState {
        opening(self.0.load(Ordering::Acquire))
    }

    /// A number that is different after each change.
    pub fn epoch(&self) -> u32 {
        self.0.load(Ordering::Acquire) >> OPENING_BITS
    }

    /// Opens a frontend that was shut: a reload makes it listen again as configured. False when it
    /// was not shut.
    pub fn reopen(&self) -> bool {
        self.0
            .try_update(Ordering::AcqRel, Ordering::Acquire, |word| {
                let epoch = (word >> OPENING_BITS).wrapping_add(1);
                let open = epoch << OPENING_BITS | bits(GateState::Open);
                (opening(word) == GateState::Shut).then_some(open)
            })
            .is_ok()
    }

    /// Changes the opening; false when it had that value already, or is shut.
    pub fn set(&self, to: GateState) -> bool {
        self.0
            .try_update(Ordering::AcqRel, Ordering::Acquire, |word| {
                let now = opening(word);
                let epoch = (word >> OPENING_BITS).wrapping_add(1);
                (now != to && now != GateState::Shut).then_some(epoch << OPENING_BITS | bits(to))
            })
            .is_ok()
    }
}

fn opening(word: u32) -> GateState {
    match word & ((1 << OPENING_BITS) - 1) {
        0 => GateState::Open,
        1 => GateState::Paused,
        _ => GateState::Shut,
    }
}

fn bits(opening: GateState) -> u32 {
    match opening {
        GateState::Open => 0,
        GateState::Paused => 1,
        GateState::Shut => 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_change_is_seen_and_only_a_reload_opens_what_was_shut() {
        let gate = Gate::default();
        assert!(!gate.set(GateState::Open));
        let epoch = gate.epoch();
        assert!(gate.set(GateState::Paused) && !gate.set(GateState::Paused));
        assert!(gate.set(GateState::Open));
        assert_eq!((gate.opening(), gate.epoch()), (GateState::Open, epoch + 2));
        assert!(gate.set(GateState::Shut));
        assert!(!gate.set(GateState::Open) && !gate.set(GateState::Paused));
        assert_eq!(gate.opening(), GateState::Shut);
        assert!(gate.reopen() && !gate.reopen());
        assert_eq!((gate.opening(), gate.epoch()), (GateState::Open, epoch + 4));
    }
}
