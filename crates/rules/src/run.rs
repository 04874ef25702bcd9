//! Running the rules of one place over one transaction.

use std::sync::Arc;

use ballast_expr::{Condition, Expr, LogFormat, Value, eval};
use ballast_message::NoRoom;

use crate::rule::Rule;
use crate::transaction::{Transaction, Workspace};

/// What the rules decided.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Verdict {
    /// The last rule was passed: go on.
    Continue,
    /// `allow`, `accept`: the rest of this place's rules is passed over; go on.
    Allow,
    /// The client gets an answer made here.
    Answer(Answer),
    /// `reject`: the connection closes without an answer.
    Close,
}

/// An answer that a rule gives in place of a server.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Answer {
    /// Why: decides counters and the termination state of the log line.
    pub cause: Cause,
    /// Its status; that of a raw page stands in the page.
    pub status: u16,
    /// Where it is.
    pub page: Page,
}

/// Why a rule answers.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Cause {
    /// `deny`: counted as denied, logged `PR` (`PH` in a response).
    Deny,
    /// A rewrite failed under `strict-mode on`: counted as an internal error, logged `I`.
    Fault,
    /// `redirect`: logged `LR`.
    Redirect,
    /// `return`: logged `LR`.
    Return,
}

/// Where an answer is.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Page {
    /// In [`Transaction::answer_mut`]: head and body.
    Made,
    /// The page of the proxy for the status: its `errorfile`, or the default one.
    Proxy,
    /// A whole response, head included, as a file holds it. Empty: nothing is sent and the
    /// connection closes.
    Raw(Arc<[u8]>),
    /// `use-service`: the service makes it.
    Service(Service),
}

/// What `use-service` names.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Service {
    /// `prometheus-exporter`.
    Metrics,
}

impl Answer {
    pub(crate) fn fault() -> Answer {
        Answer {
            cause: Cause::Fault,
            status: 500,
            page: Page::Proxy,
        }
    }

    pub(crate) fn service(service: Service) -> Answer {
        Answer {
            cause: Cause::Return,
            status: 200,
            page: Page::Service(service),
        }
    }
}

/// Runs `rules` in order until one decides.
pub fn run(rules: &[Rule], transaction: &mut dyn Transaction, space: &mut Workspace) -> Verdict {
    let mut stage = Stage {
        transaction,
        space,
        strict: true,
    };
    for rule in rules {
        if !stage.applies(rule.condition.as_ref()) {
            continue;
        }
        match rule.action.perform(&mut stage) {
            Step::Next => {}
            Step::Stop(verdict) => return verdict,
            Step::Failed => {
                stage.transaction.rewrite_failed();
                if stage.strict {
                    return Verdict::Answer(Answer::fault());
                }
            }
        }
    }
    Verdict::Continue
}

/// What an action leads to.
pub(crate) enum Step {
    /// The next rule.
    Next,
    /// The end of the rules.
    Stop(Verdict),
    /// The message could not be rewritten and is as it was.
    Failed,
}

impl From<Result<(), NoRoom>> for Step {
    fn from(result: Result<(), NoRoom>) -> Step {
        match result {
            Ok(()) => Step::Next,
            Err(NoRoom) => Step::Failed,
        }
    }
}

/// A run under way.
pub(crate) struct Stage<'t> {
    pub(crate) transaction: &'t mut dyn Transaction,
    pub(crate) space: &'t mut Workspace,
    /// `strict-mode`: a failed rewrite ends the exchange.
    pub(crate) strict: bool,
}

impl Stage<'_> {
    fn applies(&mut self, condition: Option<&Condition>) -> bool {
        let Some(condition) = condition else {
            return true;
        };
        let scratch = &mut self.space.scratch;
        let mut held = false;
        self.transaction
            .ask(&mut |facts| held = condition.holds(facts, scratch));
        held
    }

    /// Renders `format` into `space.text`.
    pub(crate) fn render(&mut self, format: &LogFormat) {
        self.space.text.clear();
        self.render_more(format);
    }

    /// Renders `format` behind what `space.text` holds.
    pub(crate) fn render_more(&mut self, format: &LogFormat) {
        if let Some(text) = format.as_literal() {
            self.space.text.extend_from_slice(text.as_bytes());
            return;
        }
        let Workspace { scratch, text, .. } = &mut *self.space;
        self.transaction
            .ask(&mut |facts| format.render(facts, scratch, text));
    }

    /// Evaluates `expr`; bytes lie in `space.text`. None when there is no value.
    pub(crate) fn evaluate(&mut self, expr: &Expr) -> Option<Held> {
        let Workspace { scratch, text, .. } = &mut *self.space;
        text.clear();
        let mut held = None;
        self.transaction.ask(&mut |facts| {
            held = eval(expr, facts, scratch).map(|value| Held::keep(value, text));
        });
        held
    }
}

/// A value whose bytes, if it has some, lie in the workspace's text.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Held {
    Plain(Value<'static>),
    Str,
    Bin,
    Meth,
}

impl Held {
    pub(crate) fn keep(value: Value<'_>, text: &mut Vec<u8>) -> Held {
        let (held, bytes) = match value {
            Value::Bool(flag) => return Held::Plain(Value::Bool(flag)),
            Value::Int(number) => return Held::Plain(Value::Int(number)),
            Value::Ipv4(address) => return Held::Plain(Value::Ipv4(address)),
            Value::Ipv6(address) => return Held::Plain(Value::Ipv6(address)),
            Value::Str(bytes) => (Held::Str, bytes),
            Value::Bin(bytes) => (Held::Bin, bytes),
            Value::Meth(bytes) => (Held::Meth, bytes),
        };
        text.extend_from_slice(bytes);
        held
    }

    pub(crate) fn value(self, text: &[u8]) -> Value<'_> {
        match self {
            Held::Plain(value) => value,
            Held::Str => Value::Str(text),
            Held::Bin => Value::Bin(text),
            Held::Meth => Value::Meth(text),
        }
    }
}
