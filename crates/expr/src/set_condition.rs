//! When `set-var` sets a variable, manual 4.2 ("set-var") and 7.3.1.

use crate::value::Value;
use crate::vars::{VarName, VarScope};

/// A condition of `set-var`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum SetCondition {
    /// The new value is empty.
    Empty,
    /// There is a variable of this name.
    Exists,
    /// The variable is greater than the new value; holds unless both are integers.
    Greater,
    /// The variable is less than the new value; holds unless both are integers.
    Less,
    /// The new value is not empty.
    NotEmpty,
    /// There is no variable of this name.
    NotExists,
    /// The variable has no value.
    NotSet,
    /// The variable has a value.
    Set,
}

impl SetCondition {
    /// The words, and what they mean.
    pub const WORDS: [(&'static str, SetCondition); 8] = [
        ("ifempty", SetCondition::Empty),
        ("ifexists", SetCondition::Exists),
        ("ifgt", SetCondition::Greater),
        ("iflt", SetCondition::Less),
        ("ifnotempty", SetCondition::NotEmpty),
        ("ifnotexists", SetCondition::NotExists),
        ("ifnotset", SetCondition::NotSet),
        ("ifset", SetCondition::Set),
    ];

    /// The condition of this name.
    pub fn parse(word: &str) -> Option<SetCondition> {
        let found = SetCondition::WORDS.iter().find(|(known, _)| *known == word);
        found.map(|(_, condition)| *condition)
    }

    /// Whether it holds for the variable `name` with the value `now`, when `input` is to be its
    /// value.
    pub fn holds(self, name: &VarName, now: Option<Value<'_>>, input: Value<'_>) -> bool {
        // Variables of the process exist from the start.
        let exists = now.is_some() || name.scope == VarScope::Proc;
        let is_empty = match input {
            Value::Str(bytes) | Value::Bin(bytes) | Value::Meth(bytes) => bytes.is_empty(),
            _ => false,
        };
        match self {
            SetCondition::Empty => is_empty,
            SetCondition::NotEmpty => !is_empty,
            SetCondition::Exists => exists,
            SetCondition::NotExists => !exists,
            SetCondition::Set => now.is_some(),
            SetCondition::NotSet => now.is_none(),
            SetCondition::Greater => match (now, input) {
                (Some(Value::Int(now)), Value::Int(input)) => now > input,
                _ => true,
            },
            SetCondition::Less => match (now, input) {
                (Some(Value::Int(now)), Value::Int(input)) => now < input,
                _ => true,
            },
        }
    }
}
