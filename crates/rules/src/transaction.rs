//! What rules act on: the one door between the rules and the traffic.

use ballast_expr::{Facts, Scratch, Value, VarName};
use ballast_message::{Request, Response};

/// An exchange (or a connection, before there is one) as rules may change it.
///
/// Asking and changing are apart: an expression is evaluated first, into the [`Workspace`],
/// while the transaction is only looked at; then it is changed.
pub trait Transaction {
    /// Hands the facts to `question`, once.
    fn ask(&self, question: &mut dyn FnMut(&dyn Facts));

    /// The request's head, while it is known.
    fn request_mut(&mut self) -> Option<&mut Request> {
        None
    }

    /// The response's head, while it is known: the server's, or in `http-after-response` the
    /// one made here.
    fn response_mut(&mut self) -> Option<&mut Response> {
        None
    }

    /// Where an answer made by a rule is put: head and body. What was there is forgotten.
    fn answer_mut(&mut self) -> (&mut Response, &mut Vec<u8>);

    /// Sets a variable, or forgets it. A scope that is not there (no transaction yet) is
    /// silently passed over, as HAProxy does.
    fn set_var(&mut self, name: &VarName, value: Option<Value<'_>>);

    /// Keeps `value` in request capture `slot`, cut to the slot's length; a slot that the
    /// frontend does not have is passed over.
    fn capture_request(&mut self, slot: usize, value: &[u8]);

    /// The same for response captures.
    fn capture_response(&mut self, slot: usize, value: &[u8]);

    /// Sets the level of the exchange's log line.
    fn set_log_level(&mut self, level: LogLevel);

    /// A rule could not rewrite the message: counted as `failed rewrites`.
    fn rewrite_failed(&mut self);
}

/// Memory that rules work in: one per worker, handed from run to run so that nothing is
/// allocated once it has grown.
#[derive(Debug, Default)]
pub struct Workspace {
    /// For expressions.
    pub scratch: Scratch,
    /// What was rendered or evaluated last.
    pub(crate) text: Vec<u8>,
    /// What is made of it.
    pub(crate) out: Vec<u8>,
}

impl Workspace {
    /// An empty workspace; nothing is allocated before the first use.
    pub fn new() -> Workspace {
        Workspace::default()
    }
}

/// `set-log-level`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum LogLevel {
    /// A syslog severity, from 0 (`emerg`) to 7 (`debug`).
    Severity(u8),
    /// `silent`: no line at all.
    Silent,
}
