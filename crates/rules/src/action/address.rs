//! `set-src`, `set-dst` and their ports.

use ballast_expr::{Expr, ExpressionError, Linker};

use crate::args::Args;
use crate::perform::{ParsedAction, Perform, boxed};
use crate::row::ActionRow;
use crate::rule_set_kind::{RuleSetFlags, RuleSetKind};
use crate::run_state::{ActionOutcome, RunState};
use crate::setting::ExchangeSetting;

const PLACES: RuleSetFlags = RuleSetFlags::of(&[
    RuleSetKind::TcpConnection,
    RuleSetKind::TcpSession,
    RuleSetKind::TcpContent,
    RuleSetKind::HttpRequest,
]);

pub(crate) const ROWS: &[ActionRow] = &[
    ActionRow::new(
        "set-dst",
        PLACES,
        "<expr>",
        "set the destination address",
        |args| parse(args, End::DestinationAddress),
    )
    .examples(
        &["set-dst dst,ipmask(24)"],
        &["set-dst", "set-dst dst ipmask(24)"],
    ),
    ActionRow::new(
        "set-dst-port",
        PLACES,
        "<expr>",
        "set the destination port",
        |args| parse(args, End::DestinationPort),
    )
    .examples(&["set-dst-port int(80)"], &["set-dst-port"]),
    ActionRow::new(
        "set-src",
        PLACES,
        "<expr>",
        "set the source address",
        |args| parse(args, End::SourceAddress),
    )
    .examples(&["set-src src"], &["set-src", "set-src nothing"]),
    ActionRow::new(
        "set-src-port",
        PLACES,
        "<expr>",
        "set the source port",
        |args| parse(args, End::SourcePort),
    )
    .examples(&["set-src-port int(1024)"], &["set-src-port"]),
];

/// What of the client's addresses is set.
#[derive(Clone, Copy, Debug, PartialEq)]
enum End {
    SourceAddress,
    SourcePort,
    DestinationAddress,
    DestinationPort,
}

/// One of the four actions.
#[derive(Clone, Debug, PartialEq)]
struct SetAddress {
    end: End,
    value: Expr,
}

fn parse(args: &mut Args<'_, '_, '_>, end: End) -> ParsedAction {
    let before = args.at();
    let value = args.expr()?;
    if args.at() - before > 1 {
        // HAProxy reads one word here; converters must be joined to it by commas.
        return Err(
            args.error_before("expects one expression: converters follow the sample after a comma")
        );
    }
    boxed(Ok::<_, ExpressionError>(SetAddress { end, value }))
}

impl Perform for SetAddress {
    /// Without a value nothing is set, as in HAProxy.
    fn perform(&self, run_state: &mut RunState<'_>) -> ActionOutcome {
        let setting = match self.end {
            End::SourceAddress => run_state
                .address(&self.value)
                .map(ExchangeSetting::SourceAddress),
            End::DestinationAddress => run_state
                .address(&self.value)
                .map(ExchangeSetting::DestinationAddress),
            End::SourcePort => port(run_state, &self.value).map(ExchangeSetting::SourcePort),
            End::DestinationPort => {
                port(run_state, &self.value).map(ExchangeSetting::DestinationPort)
            }
        };
        if let Some(setting) = setting {
            run_state.transaction.set(setting);
        }
        ActionOutcome::Next
    }

    fn link(&mut self, linker: &mut Linker<'_>) -> Result<(), ExpressionError> {
        self.value.link(linker)
    }
}

/// The low 16 bits of a number, as in HAProxy.
#[expect(clippy::cast_possible_truncation, reason = "that is meant")]
fn port(run_state: &mut RunState<'_>, value: &Expr) -> Option<u16> {
    run_state.integer(value).map(|number| number as u16)
}
