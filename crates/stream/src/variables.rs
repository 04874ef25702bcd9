//! Variables that rules set (`set-var`): a few per scope, whose memory is reused.

use ballast_expr::{Value, VarName, VarScope};
use std::net::{Ipv4Addr, Ipv6Addr};

use crate::chain::Chain;

/// The variables of a session, or of an exchange.
#[derive(Debug, Default)]
pub(crate) struct Variables {
    slots: Vec<VariableSlot>,
    /// What expressions set while they were evaluated, and is not in the slots yet.
    assigned: Chain<VariableSlot>,
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

    /// Takes a value of at most so many bytes; a longer one leaves it unset.
    fn fill(&mut self, value: Option<Value<'_>>, bytes_max: usize) {
        self.bytes.clear();
        let mut keep = |bytes: &[u8], content| {
            if bytes.len() > bytes_max {
                return VariableContent::Unset;
            }
            self.bytes.extend_from_slice(bytes);
            content
        };
        self.content = match value {
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

/// Bytes that the variables of one session or exchange may take together, names included
/// (`tune.vars.*-max-size`, unlimited in HAProxy): beyond it a variable is not set.
const BYTES_MAX: usize = 1 << 20;

impl Variables {
    /// The value of a variable.
    pub(crate) fn value(&self, name: &VarName) -> Option<Value<'_>> {
        let is_named = |slot: &&VariableSlot| slot.name == *name;
        let assigned = self.assigned.iter().filter(is_named).last();
        let slot = assigned.or_else(|| self.slots.iter().find(is_named))?;
        slot.value()
    }

    /// Sets a variable while others are read, or unsets it: without a value, or where the value would
    /// pass the bound.
    pub(crate) fn assign(&self, name: &VarName, value: Option<Value<'_>>) {
        let mut slot = VariableSlot::new(name);
        let taken = self.bytes_taken();
        slot.fill(value, BYTES_MAX.saturating_sub(taken));
        // Beyond the bound of the chain a variable keeps its value, as one that does not fit.
        let _ = self.assigned.push(slot);
    }

    /// Moves what expressions set into the slots.
    pub(crate) fn settle(&mut self) {
        while let Some(slot) = self.assigned.pop_first() {
            match self.slots.iter_mut().find(|known| known.name == slot.name) {
                Some(known) => *known = slot,
                None => self.slots.push(slot),
            }
        }
    }

    /// The bytes that all variables take, names included.
    fn bytes_taken(&self) -> usize {
        let all = self.slots.iter().chain(self.assigned.iter());
        all.map(|slot| slot.bytes.len() + slot.name.name.len())
            .sum()
    }

    /// Sets a variable, or unsets it: without a value, or where the value would pass the bound.
    pub(crate) fn set(&mut self, name: &VarName, value: Option<Value<'_>>) {
        self.settle();
        let taken = self.bytes_taken();
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
        self.slots[at].fill(value, BYTES_MAX.saturating_sub(taken));
    }

    /// Forgets every value of a scope and keeps the memory.
    pub(crate) fn forget(&mut self, scope: VarScope) {
        self.settle();
        for slot in self
            .slots
            .iter_mut()
            .filter(|slot| slot.name.scope == scope)
        {
            slot.content = VariableContent::Unset;
        }
    }

    /// Forgets every value and keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.settle();
        for slot in &mut self.slots {
            slot.content = VariableContent::Unset;
            slot.bytes.clear();
        }
    }

    /// The bytes of memory that it holds, and the number of names.
    pub(crate) fn footprint(&self) -> (usize, usize) {
        let bytes = self.slots.iter().map(|slot| slot.bytes.capacity()).sum();
        (bytes, self.slots.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_is_set_changed_and_forgotten() {
        let name = VarName::parse("txn.a").unwrap();
        let mut variables = Variables::default();
        assert_eq!(variables.value(&name), None);
        variables.set(&name, Some(Value::Str(b"x")));
        assert_eq!(variables.value(&name), Some(Value::Str(b"x")));
        variables.set(&name, Some(Value::Int(3)));
        assert_eq!(variables.value(&name), Some(Value::Int(3)));
        variables.set(&name, None);
        assert_eq!(variables.value(&name), None);
    }

    #[test]
    fn what_passes_the_bound_is_not_kept() {
        let name = VarName::parse("sess.big").unwrap();
        let mut variables = Variables::default();
        variables.set(&name, Some(Value::Bin(&vec![0; BYTES_MAX + 1])));
        assert_eq!(variables.value(&name), None);
    }

    #[test]
    fn scopes_are_forgotten_apart() {
        let (req, txn) = (
            VarName::parse("req.a").unwrap(),
            VarName::parse("txn.a").unwrap(),
        );
        let mut variables = Variables::default();
        variables.set(&req, Some(Value::Bool(true)));
        variables.set(&txn, Some(Value::Bool(true)));
        variables.forget(VarScope::Req);
        assert_eq!(
            (variables.value(&req), variables.value(&txn)),
            (None, Some(Value::Bool(true)))
        );
    }
}
