//! Variables that rules set (`set-var`) of a session, an exchange or a run of a health check: a few per
//! scope, whose memory is reused.

use std::net::{Ipv4Addr, Ipv6Addr};

use ballast_expr::{Value, VarName, VarScope};
use ballast_model::VariableLimits;

use crate::{Chain, ProcessVariables, VariableShare};

/// The variables of a session, of an exchange, or of one run of a health check.
#[derive(Debug, Default)]
pub struct Variables {
    slots: Vec<VariableSlot>,
    /// What expressions set while they were evaluated, and is not in the slots yet.
    assigned: Chain<VariableSlot>,
    /// What it takes of the limit of the process; nothing without such a limit.
    share: VariableShare,
}

#[derive(Debug)]
struct VariableSlot {
    name: VarName,
    content: VariableContent,
    bytes: Vec<u8>,
}

#[derive(Clone, Copy, Debug)]
enum VariableContent {
    Unset,
    Bool(bool),
    Int(i64),
    Ipv4(Ipv4Addr),
    Ipv6(Ipv6Addr),
    Str,
    Bin,
    Meth,
}

impl VariableSlot {
    fn new(name: &VarName) -> VariableSlot {
        VariableSlot {
            name: name.clone(),
            content: VariableContent::Unset,
            bytes: Vec::new(),
        }
    }

    fn value(&self) -> Option<Value<'_>> {
        Some(match self.content {
            VariableContent::Unset => return None,
            VariableContent::Bool(flag) => Value::Bool(flag),
            VariableContent::Int(number) => Value::Int(number),
            VariableContent::Ipv4(address) => Value::Ipv4(address),
            VariableContent::Ipv6(address) => Value::Ipv6(address),
            VariableContent::Str => Value::Str(&self.bytes),
            VariableContent::Bin => Value::Bin(&self.bytes),
            VariableContent::Meth => Value::Meth(&self.bytes),
        })
    }

    /// Bytes as limits count them: none when it is unset.
    fn counted_bytes(&self) -> usize {
        match self.content {
            VariableContent::Unset => 0,
            _ => VariableLimits::VARIABLE_BYTES + self.bytes.len(),
        }
    }

    /// Bytes of its text; `None` when it is unset.
    fn text_bytes(&self) -> Option<usize> {
        (!matches!(self.content, VariableContent::Unset)).then_some(self.bytes.len())
    }

    /// Takes a value whose text has at most so many bytes; a longer one leaves it unset, and so does
    /// any where there is no room at all.
    fn fill(&mut self, value: Option<Value<'_>>, room: Option<usize>) {
        self.bytes.clear();
        let mut keep = |bytes: &[u8], content| {
            if room.is_none_or(|room| bytes.len() > room) {
                return VariableContent::Unset;
            }
            self.bytes.extend_from_slice(bytes);
            content
        };
        self.content = match value.filter(|_| room.is_some()) {
            None => VariableContent::Unset,
            Some(Value::Bool(flag)) => VariableContent::Bool(flag),
            Some(Value::Int(number)) => VariableContent::Int(number),
            Some(Value::Ipv4(address)) => VariableContent::Ipv4(address),
            Some(Value::Ipv6(address)) => VariableContent::Ipv6(address),
            Some(Value::Str(bytes)) => keep(bytes, VariableContent::Str),
            Some(Value::Bin(bytes)) => keep(bytes, VariableContent::Bin),
            Some(Value::Meth(bytes)) => keep(bytes, VariableContent::Meth),
        };
    }
}

/// Bytes that the variables of one session or exchange may take together, names included, whatever
/// the configuration says: beyond it a variable is not set.
const BYTES_MAX: usize = 1 << 20;

/// What bounds the variables of a session or an exchange, beside what they take themselves.
#[derive(Clone, Copy, Debug, Default)]
pub struct VariableBounds<'c> {
    /// `tune.vars.*-max-size`, where any is set.
    limits: Option<&'c VariableLimits>,
    /// What the session's variables take, for those of an exchange; and the other way round.
    beside: usize,
    /// All variables of the process, where a limit bounds what they take together.
    process: Option<&'c ProcessVariables>,
}

impl<'c> VariableBounds<'c> {
    /// The bounds under the configuration's limits: `beside` tells what the others of the session
    /// take, and is not asked without limits.
    pub fn new(
        limits: &'c VariableLimits,
        beside: impl FnOnce() -> usize,
        process: &'c ProcessVariables,
    ) -> Self {
        if !limits.is_any() {
            return Self::default();
        }
        let is_process_bounded = limits.process.is_some() || limits.global.is_some();
        Self {
            limits: Some(limits),
            beside: beside(),
            process: is_process_bounded.then_some(process),
        }
    }
}

impl Variables {
    /// The value of a variable.
    pub fn value(&self, name: &VarName) -> Option<Value<'_>> {
        self.slot(name)?.value()
    }

    /// Sets a variable while others are read, or unsets it: without a value, or where the value would
    /// pass the bound.
    pub fn assign(&self, name: &VarName, value: Option<Value<'_>>, bounds: VariableBounds<'_>) {
        let mut slot = VariableSlot::new(name);
        slot.fill(value, self.room(name, bounds, |slot| slot.name == *name));
        // Beyond the bound of the chain a variable keeps its value, as one that does not fit.
        let _ = self.assigned.push(slot);
        self.count(bounds);
    }

    /// Keeps the sum of the process, where a limit bounds it, or did.
    fn count(&self, bounds: VariableBounds<'_>) {
        match bounds.process {
            Some(process) => self.share.become_part(process, self.counted_bytes()),
            None if self.share.is_empty() => {}
            None => self.share.resize(0),
        }
    }

    /// Counts again, if it is counted, after values were forgotten or replaced.
    fn recount(&self) {
        if !self.share.is_empty() {
            self.share.resize(self.counted_bytes());
        }
    }

    /// Moves what expressions assigned into the slots.
    pub fn store_assigned(&mut self) {
        if self.assigned.iter().next().is_none() {
            return;
        }
        while let Some(slot) = self.assigned.pop_first() {
            match self.slots.iter_mut().find(|known| known.name == slot.name) {
                Some(known) => *known = slot,
                None => self.slots.push(slot),
            }
        }
        self.recount();
    }

    /// Bytes that all variables take, as limits count them.
    pub fn counted_bytes(&self) -> usize {
        let all = self.slots.iter().chain(self.assigned.iter());
        all.map(VariableSlot::counted_bytes).sum()
    }

    /// How long the text of a variable may be; `None` where it cannot be set at all. What it holds now,
    /// in the slots that are `its_own`, makes room.
    fn room(
        &self,
        name: &VarName,
        bounds: VariableBounds<'_>,
        its_own: impl Fn(&VariableSlot) -> bool,
    ) -> Option<usize> {
        let others = || {
            let all = self.slots.iter().chain(self.assigned.iter());
            all.filter(|slot| !its_own(slot))
        };
        let taken: usize = others()
            .map(|slot| slot.bytes.len() + slot.name.name.len())
            .sum();
        let mut room = BYTES_MAX.saturating_sub(taken);
        let Some(limits) = bounds.limits else {
            return Some(room);
        };
        let (mut message, mut all) = (0, 0);
        for slot in others() {
            let bytes = slot.counted_bytes();
            all += bytes;
            message += if slot.name.scope == name.scope {
                bytes
            } else {
                0
            };
        }
        let of_message = matches!(name.scope, VarScope::Req | VarScope::Res);
        let of_exchange = of_message || name.scope == VarScope::Txn;
        let of_check = name.scope == VarScope::Check;
        let session = all + bounds.beside;
        // What it holds is a part of the sum, if it was set while a limit of the process was.
        let held = self.share.bytes().saturating_sub(all);
        let process = bounds.process.map_or(0, ProcessVariables::taken_bytes);
        let process = process.saturating_sub(held);
        let steps = [
            (limits.message.filter(|_| of_message), message),
            (limits.transaction.filter(|_| of_exchange), all),
            (limits.check.filter(|_| of_check), message),
            (limits.session.filter(|_| !of_check), session),
            (limits.process, process),
            (limits.global, process),
        ];
        // A value that takes no more than the one before always fits: others may have passed a limit
        // that was higher.
        let text_now = self.slot(name).and_then(VariableSlot::text_bytes);
        for (limit, taken) in steps {
            if let Some(limit) = limit {
                let left = (limit as usize).checked_sub(taken + VariableLimits::VARIABLE_BYTES);
                room = room.min(left.max(text_now)?);
            }
        }
        Some(room)
    }

    /// Where the value of a variable is.
    fn slot(&self, name: &VarName) -> Option<&VariableSlot> {
        let is_named = |slot: &&VariableSlot| slot.name == *name;
        let assigned = self.assigned.iter().filter(is_named).last();
        assigned.or_else(|| self.slots.iter().find(is_named))
    }

    /// Sets a variable, or unsets it: without a value, or where the value would pass a bound.
    pub fn set(&mut self, name: &VarName, value: Option<Value<'_>>, bounds: VariableBounds<'_>) {
        self.store_assigned();
        let at = match self.slots.iter().position(|slot| slot.name == *name) {
            Some(at) => at,
            None => {
                if value.is_none() {
                    return;
                }
                self.slots.push(VariableSlot::new(name));
                self.slots.len() - 1
            }
        };
        // Nothing is assigned any more, so that one slot has the name.
        let its_own = &self.slots[at];
        let room = self.room(name, bounds, |slot| std::ptr::eq(slot, its_own));
        self.slots[at].fill(value, room);
        self.count(bounds);
    }

    /// Forgets every value of a scope and keeps the memory.
    pub fn forget(&mut self, scope: VarScope) {
        self.store_assigned();
        for slot in self
            .slots
            .iter_mut()
            .filter(|slot| slot.name.scope == scope)
        {
            slot.content = VariableContent::Unset;
        }
        self.recount();
    }

    /// Forgets every value and keeps the memory.
    pub fn clear(&mut self) {
        self.store_assigned();
        for slot in &mut self.slots {
            slot.content = VariableContent::Unset;
            slot.bytes.clear();
        }
        self.recount();
    }

    /// The bytes of memory that it holds, and the number of names.
    pub fn footprint(&self) -> (usize, usize) {
        let bytes = self.slots.iter().map(|slot| slot.bytes.capacity()).sum();
        (bytes, self.slots.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FREE: VariableBounds<'_> = VariableBounds {
        limits: None,
        beside: 0,
        process: None,
    };

    #[test]
    fn limits_of_narrow_scopes_are_within_those_of_wide_ones() {
        let limits = VariableLimits {
            session: Some(300),
            transaction: Some(200),
            message: Some(100),
            ..VariableLimits::default()
        };
        let process = ProcessVariables::default();
        let [req, txn, sess] =
            ["req.a", "txn.a", "sess.a"].map(|name| VarName::parse(name).unwrap());
        let is_set = |name: &VarName, length: usize, beside: usize| {
            let mut variables = Variables::default();
            let bounds = VariableBounds::new(&limits, || beside, &process);
            variables.set(name, Some(Value::Str(&vec![b'x'; length])), bounds);
            variables.value(name).is_some()
        };
        assert!(is_set(&req, 20, 0) && !is_set(&req, 21, 0));
        assert!(is_set(&txn, 120, 0) && !is_set(&txn, 121, 0));
        assert!(is_set(&sess, 220, 0) && !is_set(&sess, 221, 0));
        // What others of the session take is not there for these.
        assert!(is_set(&txn, 120, 100) && !is_set(&txn, 120, 101));
        assert!(
            !is_set(&req, 0, 221),
            "there is no room for a variable without a text"
        );
        // What a variable holds makes room for its next value.
        let mut variables = Variables::default();
        let bounds = VariableBounds::new(&limits, || 0, &process);
        for text in [[b'x'; 120], [b'y'; 120]] {
            variables.set(&txn, Some(Value::Str(&text)), bounds);
            assert_eq!(variables.value(&txn), Some(Value::Str(&text)));
        }
    }

    #[test]
    fn a_limit_of_the_process_bounds_all_sessions_together() {
        let limits = VariableLimits {
            global: Some(250),
            ..VariableLimits::default()
        };
        let process = ProcessVariables::default();
        process.limit(&limits);
        let bounds = || VariableBounds::new(&limits, || 0, &process);
        let [sess, req, own] =
            ["sess.a", "req.a", "proc.a"].map(|name| VarName::parse(name).unwrap());
        let (long, short) = ([b'x'; 60], [b'y'; 20]);
        let (mut first, mut second) = (Variables::default(), Variables::default());
        first.set(&sess, Some(Value::Str(&long)), bounds());
        assert_eq!(process.session_bytes(), 140);
        second.set(&sess, Some(Value::Str(&long)), bounds());
        assert_eq!((second.value(&sess), process.session_bytes()), (None, 140));
        second.assign(&req, Some(Value::Str(&short)), bounds());
        assert_eq!(process.session_bytes(), 240);
        // Those of the process are a part of it, and what makes it smaller is never refused.
        assert!(process.set(&own.name, Some(Value::Int(1))).is_err());
        first.set(&sess, Some(Value::Str(&short)), bounds());
        assert_eq!(process.session_bytes(), 200);
        let less = VariableLimits {
            global: Some(100),
            ..limits
        };
        let bounds = VariableBounds::new(&less, || 0, &process);
        first.set(&sess, Some(Value::Str(&short[..10])), bounds);
        assert_eq!(first.value(&sess), Some(Value::Str(&short[..10])));
        assert_eq!(process.session_bytes(), 190);
        second.forget(VarScope::Req);
        assert_eq!(process.session_bytes(), 90);
        first.clear();
        assert_eq!(process.session_bytes(), 0);
    }

    #[test]
    fn what_sessions_took_is_given_back() {
        let process = ProcessVariables::default();
        let limits = VariableLimits {
            process: Some(500),
            ..VariableLimits::default()
        };
        let [sess, txn] = ["sess.a", "txn.a"].map(|name| VarName::parse(name).unwrap());
        let mut variables = Variables::default();
        // Without a limit of the process nothing is counted.
        let limits_of_sessions = VariableLimits {
            session: Some(500),
            ..VariableLimits::default()
        };
        let bounds = VariableBounds::new(&limits_of_sessions, || 0, &process);
        variables.set(&sess, Some(Value::Int(1)), bounds);
        assert_eq!(process.session_bytes(), 0);
        let bounds = VariableBounds::new(&limits, || 0, &process);
        variables.assign(&txn, Some(Value::Int(1)), bounds);
        variables.assign(&txn, Some(Value::Int(2)), bounds);
        variables.store_assigned();
        assert_eq!(process.session_bytes(), 160);
        variables.set(&txn, None, bounds);
        assert_eq!(process.session_bytes(), 80);
        drop(variables);
        assert_eq!(process.session_bytes(), 0);
    }

    #[test]
    fn a_variable_is_set_changed_and_forgotten() {
        let name = VarName::parse("txn.a").unwrap();
        let mut variables = Variables::default();
        assert_eq!(variables.value(&name), None);
        variables.set(&name, Some(Value::Str(b"x")), FREE);
        assert_eq!(variables.value(&name), Some(Value::Str(b"x")));
        variables.set(&name, Some(Value::Int(3)), FREE);
        assert_eq!(variables.value(&name), Some(Value::Int(3)));
        variables.set(&name, None, FREE);
        assert_eq!(variables.value(&name), None);
    }

    #[test]
    fn what_passes_the_bound_is_not_kept() {
        let name = VarName::parse("sess.big").unwrap();
        let mut variables = Variables::default();
        variables.set(&name, Some(Value::Bin(&vec![0; BYTES_MAX + 1])), FREE);
        assert_eq!(variables.value(&name), None);
    }

    #[test]
    fn scopes_are_forgotten_apart() {
        let (req, txn) = (
            VarName::parse("req.a").unwrap(),
            VarName::parse("txn.a").unwrap(),
        );
        let mut variables = Variables::default();
        variables.set(&req, Some(Value::Bool(true)), FREE);
        variables.set(&txn, Some(Value::Bool(true)), FREE);
        variables.forget(VarScope::Req);
        assert_eq!(
            (variables.value(&req), variables.value(&txn)),
            (None, Some(Value::Bool(true)))
        );
    }
}
