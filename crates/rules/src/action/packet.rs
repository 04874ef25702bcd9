//! `set-mark`, `set-tos` and related actions, `set-nice`, `silent-drop`, `set-bandwidth-limit`:
//! options of packets and tasks.

use ballast_expr::{Expr, ExpressionError, Linker};

use crate::args::Args;
use crate::perform::{ParsedAction, Perform, boxed};
use crate::reference::RuleReference;
use crate::row::ActionRow;
use crate::rule_set_kind::{RuleSetFlags, RuleSetKind};
use crate::run_state::{ActionOutcome, RunState};
use crate::setting::ExchangeSetting;
use crate::units::{parse_delay, parse_mark, parse_size};
use crate::verdict::Verdict;

const MARK: &str = "{ <number> | <expr> }";

pub(crate) const ROWS: &[ActionRow] = &[
    ActionRow::new(
        "set-mark",
        RuleSetFlags::of(&[
            RuleSetKind::TcpConnection,
            RuleSetKind::TcpSession,
            RuleSetKind::TcpContent,
            RuleSetKind::TcpResponse,
            RuleSetKind::HttpRequest,
            RuleSetKind::HttpResponse,
        ]),
        "<mark>",
        "mark the packets to the client",
        |args| packets(args, PacketOption::ClientMark),
    )
    .examples(&["set-mark 0x10"], &["set-mark", "set-mark high"]),
    ActionRow::new(
        "set-tos",
        RuleSetFlags::of(&[
            RuleSetKind::TcpConnection,
            RuleSetKind::TcpSession,
            RuleSetKind::TcpContent,
            RuleSetKind::TcpResponse,
            RuleSetKind::HttpRequest,
            RuleSetKind::HttpResponse,
        ]),
        "<tos>",
        "set the DSCP of the packets to the client",
        |args| packets(args, PacketOption::ClientTos),
    )
    .examples(&["set-tos 46"], &["set-tos", "set-tos high"]),
    ActionRow::new(
        "set-fc-mark",
        RuleSetFlags::of(&[
            RuleSetKind::TcpConnection,
            RuleSetKind::TcpSession,
            RuleSetKind::TcpContent,
            RuleSetKind::TcpResponse,
            RuleSetKind::HttpRequest,
            RuleSetKind::HttpResponse,
        ]),
        MARK,
        "mark the packets to the client",
        |args| packets(args, PacketOption::ClientMark),
    )
    .examples(
        &["set-fc-mark 0x10", "set-fc-mark rand"],
        &["set-fc-mark", "set-fc-mark high"],
    ),
    ActionRow::new(
        "set-fc-tos",
        RuleSetFlags::of(&[
            RuleSetKind::TcpConnection,
            RuleSetKind::TcpSession,
            RuleSetKind::TcpContent,
            RuleSetKind::TcpResponse,
            RuleSetKind::HttpRequest,
            RuleSetKind::HttpResponse,
        ]),
        MARK,
        "set the DSCP of the packets to the client",
        |args| packets(args, PacketOption::ClientTos),
    )
    .examples(&["set-fc-tos 46"], &["set-fc-tos"]),
    ActionRow::new(
        "set-bc-mark",
        RuleSetFlags::of(&[RuleSetKind::TcpContent, RuleSetKind::HttpRequest]),
        MARK,
        "mark the packets to the server",
        |args| packets(args, PacketOption::ServerMark),
    )
    .examples(&["set-bc-mark 5"], &["set-bc-mark"]),
    ActionRow::new(
        "set-bc-tos",
        RuleSetFlags::of(&[RuleSetKind::TcpContent, RuleSetKind::HttpRequest]),
        MARK,
        "set the DSCP of the packets to the server",
        |args| packets(args, PacketOption::ServerTos),
    )
    .examples(&["set-bc-tos 5"], &["set-bc-tos"]),
    ActionRow::new(
        "set-nice",
        RuleSetFlags::of(&[
            RuleSetKind::TcpContent,
            RuleSetKind::TcpResponse,
            RuleSetKind::HttpRequest,
            RuleSetKind::HttpResponse,
        ]),
        "<nice>",
        "no effect: the exchanges of a worker have equal turns",
        |args| {
            // HAProxy reads anything but a number as 0.
            args.text("expects exactly 1 argument (integer value)")?;
            boxed(Ok(SetNice))
        },
    )
    .examples(&["set-nice 5", "set-nice -100"], &["set-nice"]),
    ActionRow::new(
        "silent-drop",
        RuleSetFlags::of(&[
            RuleSetKind::TcpConnection,
            RuleSetKind::TcpSession,
            RuleSetKind::TcpContent,
            RuleSetKind::TcpResponse,
            RuleSetKind::HttpRequest,
            RuleSetKind::HttpResponse,
        ]),
        "[ rst-ttl <ttl> ]",
        "forget the connection without telling the client",
        |args| {
            let mut hops = None;
            if args.take("rst-ttl") {
                args.text("missing rst-ttl value").map(drop)?;
                let given = args.last().parse::<u8>().ok();
                hops = Some(
                    given
                        .filter(|hops| *hops > 0)
                        .ok_or_else(|| args.error_before("valid rst-ttl values are [1-255]"))?,
                );
            }
            boxed(Ok(SilentDrop(hops)))
        },
    )
    .ends_the_set()
    .examples(
        &["silent-drop", "silent-drop rst-ttl 1 if TRUE"],
        &[
            "silent-drop now",
            "silent-drop rst-ttl",
            "silent-drop rst-ttl 0",
            "silent-drop rst-ttl 300",
        ],
    ),
    ActionRow::unimplemented(
        "set-bandwidth-limit",
        RuleSetFlags::of(&[
            RuleSetKind::TcpContent,
            RuleSetKind::TcpResponse,
            RuleSetKind::HttpRequest,
            RuleSetKind::HttpResponse,
        ]),
        "<name> [ limit { <expr> | <size> } ] [ period { <expr> | <time> } ]",
        "limit the bandwidth of the stream",
        bandwidth,
    )
    .examples(
        &[
            "set-bandwidth-limit slow",
            "set-bandwidth-limit slow limit 10k period 1s",
        ],
        &["set-bandwidth-limit", "set-bandwidth-limit slow limit"],
    ),
];

/// An option of packets, and where they go.
#[derive(Clone, Copy, Debug, PartialEq)]
enum PacketOption {
    ClientMark,
    ClientTos,
    ServerMark,
    ServerTos,
}

/// `set-fc-mark` and its relatives.
#[derive(Clone, Debug, PartialEq)]
struct SetPackets {
    option: PacketOption,
    value: Number,
}

/// A number, or what gives it.
#[derive(Clone, Debug, PartialEq)]
enum Number {
    Fixed(u32),
    Of(Expr),
}

fn packets(args: &mut Args<'_, '_, '_>, option: PacketOption) -> ParsedAction {
    let text = args.text("expects exactly 1 argument (integer/hex value)")?;
    let value = match parse_mark(text) {
        Some(number) => Number::Fixed(number),
        None => Number::Of(args.expr_of(text)?),
    };
    boxed(Ok(SetPackets { option, value }))
}

impl Perform for SetPackets {
    /// An expression without a value sets nothing. Of a TOS the low 8 bits are used, as in HAProxy.
    #[expect(clippy::cast_possible_truncation, reason = "HAProxy does so")]
    #[expect(clippy::cast_sign_loss, reason = "HAProxy does so")]
    fn perform(&self, run_state: &mut RunState<'_>) -> ActionOutcome {
        let number = match &self.value {
            Number::Fixed(number) => *number,
            Number::Of(expr) => match run_state.integer(expr) {
                Some(number) => number as u32,
                None => return ActionOutcome::Next,
            },
        };
        run_state.transaction.set(match self.option {
            PacketOption::ClientMark => ExchangeSetting::ClientMark(number),
            PacketOption::ClientTos => ExchangeSetting::ClientTos(number as u8),
            PacketOption::ServerMark => ExchangeSetting::ServerMark(number),
            PacketOption::ServerTos => ExchangeSetting::ServerTos(number as u8),
        });
        ActionOutcome::Next
    }

    fn link(&mut self, linker: &mut Linker<'_>) -> Result<(), ExpressionError> {
        match &mut self.value {
            Number::Fixed(_) => Ok(()),
            Number::Of(expr) => expr.link(linker),
        }
    }
}

/// `set-nice`.
#[derive(Clone, Debug, PartialEq)]
struct SetNice;

impl Perform for SetNice {
    fn perform(&self, _run_state: &mut RunState<'_>) -> ActionOutcome {
        ActionOutcome::Next
    }
}

/// `silent-drop`, and `rst-ttl`.
#[derive(Clone, Debug, PartialEq)]
struct SilentDrop(Option<u8>);

impl Perform for SilentDrop {
    fn perform(&self, _run_state: &mut RunState<'_>) -> ActionOutcome {
        ActionOutcome::Stop(Verdict::SilentDrop(self.0))
    }
}

fn bandwidth(args: &mut Args<'_, '_, '_>) -> Result<(), ExpressionError> {
    let name = args.text("missing filter name")?;
    args.refer_to(RuleReference::BandwidthLimit(name.to_owned()));
    loop {
        let size = match args.peek() {
            Some("limit") => true,
            Some("period") => false,
            _ => return Ok(()),
        };
        args.next();
        let missing = if size {
            "'limit' expects an expression or a size"
        } else {
            "'period' expects an expression or a time"
        };
        if args.is_at_end() {
            return Err(args.error(missing));
        }
        let text = args.peek().unwrap_or_default();
        let number = if size {
            parse_size(text).is_ok()
        } else {
            parse_delay(text).is_ok()
        };
        if number {
            args.next();
        } else {
            args.expr()?;
        }
    }
}
