//! Variables of the process (`proc.`): set by the global section, by rules and by commands, read by
//! everybody.
//!
//! They are read far more often than set: a reader takes a snapshot of all of them for one
//! reference count and no lock, and a writer replaces the whole map.

use std::cell::{Cell, OnceCell};
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
    /// What the variables of sessions and of their exchanges take, as limits count them.
    of_sessions: Arc<AtomicUsize>,
}

/// What the variables of one session or exchange take of what all of the process may take together.
/// It is given back when this is dropped.
#[derive(Debug, Default)]
pub struct VariableShare {
    bytes: Cell<usize>,
    /// The sum that it is part of, once it was.
    sum: OnceCell<Arc<AtomicUsize>>,
}

impl VariableShare {
    /// What it takes.
    pub fn bytes(&self) -> usize {
        self.bytes.get()
    }

    /// Whether it takes nothing.
    pub fn is_empty(&self) -> bool {
        self.bytes.get() == 0
    }

    /// Becomes so many bytes of the sum that these variables keep. Nobody is refused here: who takes
    /// more asks [`ProcessVariables::taken_bytes`] before.
    pub fn become_part(&self, of: &ProcessVariables, bytes: usize) {
        self.sum.get_or_init(|| Arc::clone(&of.of_sessions));
        self.resize(bytes);
    }

    /// Becomes so many bytes, if it is a part of a sum.
    pub fn resize(&self, bytes: usize) {
        let Some(sum) = self.sum.get() else {
            return;
        };
        let before = self.bytes.replace(bytes);
        // The sum is at least what this share was: the difference cannot pass zero.
        if bytes > before {
            sum.fetch_add(bytes - before, Ordering::Relaxed);
        } else {
            sum.fetch_sub(before - bytes, Ordering::Relaxed);
        }
    }
}

impl Drop for VariableShare {
    fn drop(&mut self) {
        if !self.is_empty() {
            self.resize(0);
        }
    }
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

    /// Bytes that they and those of all sessions take, as limits count them. Workers that set
    /// variables at the same moment do not see each other's: one such each may pass the limit.
    pub fn taken_bytes(&self) -> usize {
        counted(&self.names.load()) + self.of_sessions.load(Ordering::Relaxed)
    }

    /// Bytes that the variables of sessions and exchanges take, as limits count them: of those that
    /// were set while a limit was.
    pub fn session_bytes(&self) -> usize {
        self.of_sessions.load(Ordering::Relaxed)
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
        let counted_before = counted(&names);
        let is_given = value.is_some();
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
        let is_beyond_limit = || {
            let counted = counted(&names);
            counted > counted_before && counted + self.session_bytes() > limit
        };
        if is_given && (taken > BYTES_MAX || (limit > 0 && is_beyond_limit())) {
            return Err(SetVariableError::TooLarge);
        }
        self.names.store(Arc::new(names));
        Ok(())
    }
}
