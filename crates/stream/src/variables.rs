//! Variables that rules set (`set-var`): a few per scope, whose memory is reused.

use ballast_expr::{Value, VarName, VarScope};
use std::net::{Ipv4Addr, Ipv6Addr};

/// The variables of a session, or of an exchange.
#[derive(Debug, Default)]
pub(crate) struct Variables {
    slots: Vec<VariableSlot>,
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

/// Bytes that the variables of one session or exchange may take together, names included
/// (`tune.vars.*-max-size`, unlimited in HAProxy): beyond it a variable is not set.
const BYTES_MAX: usize = 1 << 20;

impl Variables {
    /// The value of a variable.
    pub(crate) fn value(&self, name: &VarName) -> Option<Value<'_>> {
        let slot = self.slots.iter().find(|slot| slot.name == *name)?;
        Some(match slot.content {
            VariableContent::Unset => return None,
            VariableContent::Bool(flag) => Value::Bool(flag),
            VariableContent::Int(number) => Value::Int(number),
            VariableContent::Ipv4(address) => Value::Ipv4(address),
            VariableContent::Ipv6(address) => Value::Ipv6(address),
            VariableContent::Str => Value::Str(&slot.bytes),
            VariableContent::Bin => Value::Bin(&slot.bytes),
            VariableContent::Meth => Value::Meth(&slot.bytes),
        })
    }

    /// Sets a variable, or unsets it: without a value, or where the value would pass the bound.
    pub(crate) fn set(&mut self, name: &VarName, value: Option<Value<'_>>) {
        let taken: usize = self
            .slots
            .iter()
            .map(|slot| slot.bytes.len() + slot.name.name.len())
            .sum();
        let at = match self.slots.iter().position(|slot| slot.name == *name) {
            Some(at) => at,
            None => {
                if value.is_none() {
                    return;
                }
                let slot = VariableSlot {
                    name: name.clone(),
                    content: VariableContent::Unset,
                    bytes: Vec::new(),
                };
                self.slots.push(slot);
                self.slots.len() - 1
            }
        };
        let slot = &mut self.slots[at];
        slot.bytes.clear();
        let mut keep = |bytes: &[u8], content| {
            if taken + bytes.len() > BYTES_MAX {
                return VariableContent::Unset;
            }
            slot.bytes.extend_from_slice(bytes);
            content
        };
        slot.content = match value {
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

    /// Forgets every value of a scope and keeps the memory.
    pub(crate) fn forget(&mut self, scope: VarScope) {
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
