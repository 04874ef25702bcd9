//! The interface between the rules and the traffic.

use ballast_expr::{Candidates, ConfigLine, Facts, Scratch, Value, VarName};
use ballast_message::{NoRoom, Request, Response};
use ballast_stick::{DataType, Key};

use crate::log_profile::{LogProfile, LogStep};
use crate::setting::ExchangeSetting;

/// An exchange (or a connection, before there is one) that rules read and change.
///
/// Reading and changing are separate: an expression is first evaluated into the [`Workspace`], with
/// the transaction borrowed immutably; then the transaction is changed.
pub trait Transaction {
    /// Calls `question` once, with the facts.
    fn with_facts(&self, question: &mut dyn FnMut(&dyn Facts));

    /// The request's head, while it is available.
    fn request_mut(&mut self) -> Option<&mut Request> {
        None
    }

    /// The response's head, while it is available: the server's, or in `http-after-response` the
    /// one made here.
    fn response_mut(&mut self) -> Option<&mut Response> {
        None
    }

    /// Storage for the response that a rule makes: head and body. The previous content is
    /// discarded.
    fn answer_mut(&mut self) -> (&mut Response, &mut Vec<u8>);

    /// Sets a variable, or removes it. If its scope does not exist (no transaction yet) nothing
    /// happens, as in HAProxy.
    fn set_var(&mut self, name: &VarName, value: Option<Value<'_>>);

    /// Stores `value` in request capture `slot`, cut to the slot's length; ignored if the frontend
    /// has no such slot.
    fn capture_request(&mut self, slot: usize, value: &[u8]);

    /// The same for response captures.
    fn capture_response(&mut self, slot: usize, value: &[u8]);

    /// Sets something for this exchange alone. What the rule set has none of is ignored.
    fn set(&mut self, _setting: ExchangeSetting) {}

    /// Adds a field to the 103 response that is sent before any other. `group` numbers the rules that
    /// share one: another number begins another response.
    ///
    /// # Errors
    /// The response has no room for it.
    fn early_hint(&mut self, _group: usize, _name: &[u8], _value: &[u8]) -> Result<(), NoRoom> {
        Ok(())
    }

    /// Sets the level of the exchange's log line.
    fn set_log_level(&mut self, level: LogLevel);

    /// Writes a line to the access log now (`do-log`), with a profile in place of those of the log
    /// targets if one is given.
    fn write_log(&mut self, _step: LogStep, _profile: Option<&LogProfile>) {}

    /// Notes the line of the rule that ended its rule set (`last_rule_line`).
    fn rule_ended(&mut self, _line: &ConfigLine) {}

    /// Notes the line of the rule that waits (`waiting_entity`); `None` when it goes on.
    fn rule_waits(&mut self, _line: Option<&ConfigLine>) {}

    /// Counts a rewrite that failed (`failed rewrites`).
    fn rewrite_failed(&mut self);

    /// Has sticky counter `number` track the entry of `key` in the table of that name, which is
    /// created if there is none. A counter that tracks an entry
    /// already keeps it.
    fn track(&mut self, _number: u32, _table: &str, _key: Key<'_>) {}

    /// Changes the entry that sticky counter `number` tracks; nothing if it tracks none, or its table
    /// does not store the data.
    fn change_tracked(&mut self, _number: u32, _change: EntryChange) {}
}

/// A change of an entry that a rule makes. Numbers are of 32 bits, and wrap.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum EntryChange {
    /// Adds to a general purpose counter, and to its rate.
    Add {
        /// The counter: `Gpc0`, `Gpc1`, or an array.
        data: DataType,
        /// The index in the array.
        element: u16,
        /// What is added.
        amount: u32,
    },
    /// Sets a general purpose tag.
    Set {
        /// The tag: `Gpt0` or an array.
        data: DataType,
        /// The index in the array.
        element: u16,
        /// The value.
        value: u32,
    },
}

/// Memory for running rules: one per worker, reused by all runs so that nothing is allocated once
/// it has grown.
#[derive(Debug)]
pub struct Workspace {
    /// For expressions.
    pub scratch: Scratch,
    /// The value that was evaluated last, unless it is a text.
    pub(crate) plain: Value<'static>,
    /// The text that was rendered or evaluated last.
    pub(crate) text: Vec<u8>,
    /// The text composed from it.
    pub(crate) out: Vec<u8>,
    /// Which rules may apply.
    pub(crate) candidates: Candidates,
}

impl Workspace {
    /// An empty workspace; nothing is allocated before the first use.
    pub fn new() -> Workspace {
        Workspace {
            scratch: Scratch::default(),
            plain: Value::Bool(false),
            text: Vec::new(),
            out: Vec::new(),
            candidates: Candidates::default(),
        }
    }
}

impl Default for Workspace {
    fn default() -> Workspace {
        Workspace::new()
    }
}

/// `set-log-level`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum LogLevel {
    /// A syslog severity, from 0 (`emerg`) to 7 (`debug`).
    Severity(u8),
    /// `silent`: no log line.
    Silent,
}
