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

/// The [`GateState`] of a frontend, and a number that changes with it. It outlives every generation.
#[derive(Debug, Default)]
pub struct Gate(AtomicU32);

/// The bits that hold the state; the number of changes is above them.
const STATE_BITS: u32 = 2;

impl Gate {
    /// The current state.
    pub fn state(&self) -> GateState {
        state_of(self.0.load(Ordering::Acquire))
    }

    /// A number that is different after each change.
    pub fn epoch(&self) -> u32 {
        self.0.load(Ordering::Acquire) >> STATE_BITS
    }

    /// Opens a frontend that was shut: a reload makes it listen again as configured. False when it
    /// was not shut.
    pub fn reopen(&self) -> bool {
        self.0
            .try_update(Ordering::AcqRel, Ordering::Acquire, |word| {
                let epoch = (word >> STATE_BITS).wrapping_add(1);
                let open = epoch << STATE_BITS | bits(GateState::Open);
                (state_of(word) == GateState::Shut).then_some(open)
            })
            .is_ok()
    }

    /// Changes the state; false when it was that already, or is shut.
    pub fn set(&self, to: GateState) -> bool {
        self.0
            .try_update(Ordering::AcqRel, Ordering::Acquire, |word| {
                let now = state_of(word);
                let epoch = (word >> STATE_BITS).wrapping_add(1);
                (now != to && now != GateState::Shut).then_some(epoch << STATE_BITS | bits(to))
            })
            .is_ok()
    }
}

fn state_of(word: u32) -> GateState {
    match word & ((1 << STATE_BITS) - 1) {
        0 => GateState::Open,
        1 => GateState::Paused,
        _ => GateState::Shut,
    }
}

fn bits(state: GateState) -> u32 {
    match state {
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
        assert_eq!((gate.state(), gate.epoch()), (GateState::Open, epoch + 2));
        assert!(gate.set(GateState::Shut));
        assert!(!gate.set(GateState::Open) && !gate.set(GateState::Paused));
        assert_eq!(gate.state(), GateState::Shut);
        assert!(gate.reopen() && !gate.reopen());
        assert_eq!((gate.state(), gate.epoch()), (GateState::Open, epoch + 4));
    }
}
