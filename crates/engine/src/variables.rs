//! Variables of the process (`proc.`): set by the global section, by rules and by commands, read by
//! everybody.
//!
//! They are read far more often than set: a reader takes a snapshot of all of them for one
//! reference count and no lock, and a writer replaces the whole map.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;
use ballast_expr::Value;
use ballast_model::VariableLimits;

/// Bytes that all variables of the process may take together, names included, whatever the
/// configuration says: beyond it none is set.
pub(crate) const BYTES_MAX: usize = 1 << 20;

type VariableMap = BTreeMap<Arc<str>, Arc<StoredVariable>>;

/// The variables of the process.
#[derive(Debug, Default)]
pub struct ProcessVariables {
    names: ArcSwap<VariableMap>,
    /// Held while a variable is set, so that concurrent writers lose nothing.
    setting: Mutex<()>,
    /// `tune.vars.proc-max-size` or `tune.vars.global-max-size`, whichever is less; 0 is none.
    bytes_max: AtomicUsize,
}

/// A snapshot of all variables of the process.
#[derive(Clone, Debug)]
pub struct VariablesNow(Arc<VariableMap>);

/// Why a variable was not set.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum SetVariableError {
    /// The expression has no value.
    NoValue,
    /// All variables together would take more than they may.
    TooLarge,
}

#[derive(Debug)]
enum StoredVariable {
    Bool(bool),
    Int(i64),
    Ipv4(Ipv4Addr),
    Ipv6(Ipv6Addr),
    Str(Box<[u8]>),
    Bin(Box<[u8]>),
    Meth(Box<[u8]>),
}

impl StoredVariable {
    fn of(value: Value<'_>) -> Self {
        match value {
            Value::Bool(flag) => Self::Bool(flag),
            Value::Int(number) => Self::Int(number),
            Value::Ipv4(address) => Self::Ipv4(address),
            Value::Ipv6(address) => Self::Ipv6(address),
            Value::Str(bytes) => Self::Str(bytes.into()),
            Value::Bin(bytes) => Self::Bin(bytes.into()),
            Value::Meth(bytes) => Self::Meth(bytes.into()),
        }
    }

    fn value(&self) -> Value<'_> {
        match self {
            Self::Bool(flag) => Value::Bool(*flag),
            Self::Int(number) => Value::Int(*number),
            Self::Ipv4(address) => Value::Ipv4(*address),
            Self::Ipv6(address) => Value::Ipv6(*address),
            Self::Str(bytes) => Value::Str(bytes),
            Self::Bin(bytes) => Value::Bin(bytes),
            Self::Meth(bytes) => Value::Meth(bytes),
        }
    }

    fn byte_count(&self) -> usize {
        match self {
            Self::Str(bytes) | Self::Bin(bytes) | Self::Meth(bytes) => bytes.len(),
            _ => size_of::<Self>(),
        }
    }
}

impl VariablesNow {
    /// The value of the variable `proc.<name>`.
    pub fn value(&self, name: &str) -> Option<Value<'_>> {
        self.0.get(name).map(|kept| kept.value())
    }

    /// All that are set, by name (without `proc.`), in its order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, Value<'_>)> {
        self.0.iter().map(|(name, kept)| (&**name, kept.value()))
    }
}

/// Bytes of variables as limits count them: names are left out.
fn counted(names: &VariableMap) -> usize {
    let texts = names.values().map(|kept| match &**kept {
        StoredVariable::Str(bytes) | StoredVariable::Bin(bytes) | StoredVariable::Meth(bytes) => {
            bytes.len()
        }
        _ => 0,
    });
    texts
        .map(|text| text + VariableLimits::VARIABLE_BYTES)
        .sum()
}

impl ProcessVariables {
    /// All of them as they are now.
    pub fn now(&self) -> VariablesNow {
        VariablesNow(self.names.load_full())
    }

    /// Bytes that all take, as limits count them.
    pub fn counted_bytes(&self) -> usize {
        counted(&self.names.load())
    }

    /// Sets the limits of the configuration. What is there stays.
    pub fn limit(&self, limits: &VariableLimits) {
        let limits = [limits.process, limits.global];
        let least = limits.into_iter().flatten().min();
        self.bytes_max
            .store(least.unwrap_or(0) as usize, Ordering::Relaxed);
    }

    /// Sets `proc.<name>`, or removes it.
    ///
    /// # Errors
    /// [`SetVariableError::TooLarge`]; the variable is unchanged.
    pub fn set(&self, name: &Arc<str>, value: Option<Value<'_>>) -> Result<(), SetVariableError> {
        let _setting = self.setting.lock().unwrap_or_else(PoisonError::into_inner);
        let mut names = VariableMap::clone(&self.names.load());
        match value {
            None => {
                names.remove(name);
            }
            Some(value) => {
                names.insert(Arc::clone(name), Arc::new(StoredVariable::of(value)));
            }
        }
        let taken: usize = names
            .iter()
            .map(|(name, kept)| name.len() + kept.byte_count())
            .sum();
        let limit = self.bytes_max.load(Ordering::Relaxed);
        if taken > BYTES_MAX || (limit > 0 && counted(&names) > limit) {
            return Err(SetVariableError::TooLarge);
        }
        self.names.store(Arc::new(names));
        Ok(())
    }
}
