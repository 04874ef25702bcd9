//! `capture`: stores a sample for the log.

use ballast_expr::{Expr, ExpressionError, Linker};

use super::MessageSide;
use crate::args::Args;
use crate::perform::{Perform, boxed};
use crate::reference::RuleReference;
use crate::row::ActionRow;
use crate::rule_set_kind::{RuleSetFlags, RuleSetKind};
use crate::run_state::{ActionOutcome, RunState};

pub(crate) const ROWS: &[ActionRow] = &[ActionRow::new(
    "capture",
    RuleSetFlags::of(&[
        RuleSetKind::TcpContent,
        RuleSetKind::HttpRequest,
        RuleSetKind::HttpResponse,
        RuleSetKind::HttpAfterResponse,
    ]),
    "<sample> { len <length> | id <id> }",
    "keep a sample for the log",
    |args| boxed(parse(args)),
)
.examples(
    &[
        "capture src len 10",
        "capture src id 0",
        "capture req.payload(0,4),hex len 8 if TRUE",
    ],
    &[
        "capture",
        "capture src",
        "capture src len",
        "capture src len 0",
        "capture src for 10",
    ],
)];

/// A capture.
#[derive(Clone, Debug, PartialEq)]
struct Capture {
    expr: Expr,
    /// The number of the frontend's capture.
    slot: usize,
    side: MessageSide,
}

fn parse(args: &mut Args<'_, '_, '_>) -> Result<Capture, ExpressionError> {
    const USAGE: &str = "expects <expression> [ 'len' <length> | id <idx> ]";
    if args.is_at_end() {
        return Err(args.error(USAGE));
    }
    let expr = args.expr()?;
    let side = MessageSide::of(args);
    let slot = match args.text(USAGE)? {
        "len" if side == MessageSide::Response => {
            return Err(args.error_before("expects 'id', found 'len'"));
        }
        "len" => {
            const POSITIVE: &str = "length must be > 0";
            if !args.env.capability.frontend {
                let title = args.env.title;
                return Err(args.error_before(format!("{title} has no frontend capability")));
            }
            let length = super::integer(args, 1..=u32::MAX >> 1, POSITIVE)?;
            args.env.new_captures.push(length);
            args.env.request_captures += 1;
            args.env.request_captures - 1
        }
        "id" if args.rule_set != RuleSetKind::TcpContent => {
            let id = args.text(USAGE)?;
            let id = id
                .parse::<u16>()
                .map_err(|_| args.error_before(format!("cannot parse id '{id}'")))?;
            let slot = usize::from(id);
            args.refer_to(match side {
                MessageSide::Request => RuleReference::RequestCapture(slot),
                MessageSide::Response => RuleReference::ResponseCapture(slot),
            });
            slot
        }
        _ => return Err(args.unknown("word", ["len", "id"])),
    };
    Ok(Capture { expr, slot, side })
}

impl Perform for Capture {
    fn perform(&self, run_state: &mut RunState<'_>) -> ActionOutcome {
        let held = match run_state.evaluate_or_wait(&self.expr) {
            Ok(Some(held)) => held,
            Ok(None) => return ActionOutcome::Next,
            Err(needs) => return ActionOutcome::NotYet(needs),
        };
        let mut out = std::mem::take(&mut run_state.workspace.out);
        out.clear();
        held.value(run_state.workspace).append_to(&mut out);
        match self.side {
            MessageSide::Request => run_state.transaction.capture_request(self.slot, &out),
            MessageSide::Response => run_state.transaction.capture_response(self.slot, &out),
        }
        run_state.workspace.out = out;
        ActionOutcome::Next
    }

    fn link(&mut self, linker: &mut Linker<'_>) -> Result<(), ExpressionError> {
        self.expr.link(linker)
    }
}
