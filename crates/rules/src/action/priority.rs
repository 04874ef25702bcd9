//! `set-priority-class`, `set-priority-offset`: the place among those who wait for a server.

use ballast_expr::{Expr, ExpressionError, Linker};

use crate::args::Args;
use crate::perform::{ParsedAction, Perform, boxed};
use crate::row::ActionRow;
use crate::rule_set_kind::{RuleSetFlags, RuleSetKind};
use crate::run_state::{ActionOutcome, RunState};
use crate::setting::ExchangeSetting;

pub(crate) const ROWS: &[ActionRow] = &[
    ActionRow::new(
        "set-priority-class",
        RuleSetFlags::of(&[RuleSetKind::TcpContent, RuleSetKind::HttpRequest]),
        "<expr>",
        "set the class in queues: the lowest of -2047 to 2047 is served first",
        |args| set_priority(args, PriorityPart::Class),
    )
    .examples(
        &[
            "set-priority-class int(5)",
            "set-priority-class int(-5) if TRUE",
        ],
        &["set-priority-class", "set-priority-class 5"],
    ),
    ActionRow::new(
        "set-priority-offset",
        RuleSetFlags::of(&[RuleSetKind::TcpContent, RuleSetKind::HttpRequest]),
        "<expr>",
        "move the place in queues, by -524287 to 524287 milliseconds",
        |args| set_priority(args, PriorityPart::Offset),
    )
    .examples(
        &[
            "set-priority-offset int(5)",
            "set-priority-offset rand(9) if TRUE",
        ],
        &["set-priority-offset", "set-priority-offset 5"],
    ),
];

/// Which part of the priority is set.
#[derive(Clone, Copy, Debug, PartialEq)]
enum PriorityPart {
    Class,
    Offset,
}

#[derive(Clone, Debug, PartialEq)]
struct SetPriority {
    part: PriorityPart,
    value: Expr,
}

fn set_priority(args: &mut Args<'_, '_, '_>, part: PriorityPart) -> ParsedAction {
    let value = args.expr()?;
    boxed(Ok(SetPriority { part, value }))
}

impl Perform for SetPriority {
    /// An expression without a value sets nothing.
    fn perform(&self, run_state: &mut RunState<'_>) -> ActionOutcome {
        if let Some(number) = run_state.integer(&self.value) {
            run_state.transaction.set(match self.part {
                PriorityPart::Class => ExchangeSetting::PriorityClass(number),
                PriorityPart::Offset => ExchangeSetting::PriorityOffset(number),
            });
        }
        ActionOutcome::Next
    }

    fn link(&mut self, linker: &mut Linker<'_>) -> Result<(), ExpressionError> {
        self.value.link(linker)
    }
}
