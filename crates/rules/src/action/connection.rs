//! Actions on the connection itself: `expect-proxy`, `switch-mode`, `attach-srv`, `close` and the
//! answers to a first QUIC datagram.

use ballast_expr::ExpressionError;

use crate::args::Args;
use crate::http_protocol::HttpProtocol;
use crate::perform::{Perform, boxed};
use crate::row::ActionRow;
use crate::rule_set_kind::{RuleSetFlags, RuleSetKind};
use crate::run_state::{ActionOutcome, RunState};
use crate::setting::{ExchangeSetting, ExpectedHeader};
use crate::verdict::Verdict;

pub(crate) const ROWS: &[ActionRow] = &[
    ActionRow::new(
        "expect-proxy",
        RuleSetFlags::of(&[RuleSetKind::TcpConnection]),
        "layer4",
        "read a PROXY header first",
        |args| {
            layer4(args, "expect-proxy")?;
            boxed(Ok(Expect(ExpectedHeader::Proxy)))
        },
    )
    .examples(
        &["expect-proxy layer4"],
        &["expect-proxy", "expect-proxy layer5"],
    ),
    ActionRow::new(
        "expect-netscaler-cip",
        RuleSetFlags::of(&[RuleSetKind::TcpConnection]),
        "layer4",
        "read a NetScaler header first",
        |args| {
            layer4(args, "expect-netscaler-cip")?;
            boxed(Ok(Expect(ExpectedHeader::NetscalerCip)))
        },
    )
    .examples(
        &["expect-netscaler-cip layer4"],
        &["expect-netscaler-cip", "expect-netscaler-cip layer5"],
    ),
    ActionRow::new(
        "switch-mode",
        RuleSetFlags::of(&[RuleSetKind::TcpContent]),
        "http [ proto <name> ]",
        "go on in HTTP mode",
        |args| boxed(switch_mode(args)),
    )
    .ends_the_set()
    .examples(
        &[
            "switch-mode http",
            "switch-mode http proto h1 if TRUE",
            "switch-mode http proto h2",
        ],
        &[
            "switch-mode",
            "switch-mode tcp",
            "switch-mode http proto",
            "switch-mode http proto h9",
        ],
    ),
    ActionRow::refused(
        "attach-srv",
        RuleSetFlags::of(&[RuleSetKind::TcpSession]),
        "<server> [ name <expr> ]",
        "lend the connection to a server",
        NO_REVERSE_HTTP,
    )
    .examples(&[], &["attach-srv be/s1"]),
    ActionRow::new(
        "close",
        RuleSetFlags::of(&[RuleSetKind::TcpResponse]),
        "",
        "close the connection to the server",
        |_| boxed(Ok(CloseServer)),
    )
    .ends_the_set()
    .examples(&["close if TRUE"], &["close now"]),
    ActionRow::unimplemented(
        "dgram-drop",
        RuleSetFlags::of(&[RuleSetKind::QuicInitial]),
        "",
        "ignore the datagram",
        |_| Ok(()),
    )
    .examples(&["dgram-drop"], &["dgram-drop now"]),
    ActionRow::unimplemented(
        "send-retry",
        RuleSetFlags::of(&[RuleSetKind::QuicInitial]),
        "",
        "make the client prove its address",
        |_| Ok(()),
    )
    .examples(&["send-retry unless FALSE"], &["send-retry now"]),
];

/// Why connections are not lent to servers, and servers not asked to connect.
pub const NO_REVERSE_HTTP: &str = "belongs to reverse HTTP, which HAProxy 3.2 calls experimental and which is not built in: connections go from here to servers, never the other way";

/// `expect-netscaler-cip`, `expect-proxy`.
#[derive(Clone, Debug, PartialEq)]
struct Expect(ExpectedHeader);

impl Perform for Expect {
    fn perform(&self, run_state: &mut RunState<'_>) -> ActionOutcome {
        run_state.transaction.set(ExchangeSetting::Expect(self.0));
        ActionOutcome::Next
    }
}

fn layer4(args: &mut Args<'_, '_, '_>, word: &'static str) -> Result<(), ExpressionError> {
    if args.take("layer4") {
        return Ok(());
    }
    let got = args.peek().unwrap_or_default();
    Err(args.error(format!("'{word}' only supports 'layer4' (got '{got}')")))
}

/// `close`.
#[derive(Clone, Debug, PartialEq)]
struct CloseServer;

impl Perform for CloseServer {
    fn perform(&self, _run_state: &mut RunState<'_>) -> ActionOutcome {
        ActionOutcome::Stop(Verdict::CloseServer)
    }
}

/// `switch-mode http`.
#[derive(Clone, Debug, PartialEq)]
struct SwitchToHttp(Option<HttpProtocol>);

impl Perform for SwitchToHttp {
    fn perform(&self, _run_state: &mut RunState<'_>) -> ActionOutcome {
        ActionOutcome::Stop(Verdict::SwitchToHttp(self.0))
    }
}

fn switch_mode(args: &mut Args<'_, '_, '_>) -> Result<SwitchToHttp, ExpressionError> {
    if !args.env.capability.frontend {
        let title = args.env.title;
        return Err(args.error(format!(
            "not allowed because {title} has no frontend capability"
        )));
    }
    let mode = args.text("'tcp-request switch-mode' expects a mode as argument")?;
    if mode != "http" {
        return Err(args.unknown("mode", ["http"]));
    }
    let mut protocol = None;
    if args.take("proto") {
        let proto = args.text("'proto' expects a protocol as argument")?;
        match proto {
            "h1" => protocol = Some(HttpProtocol::Http1),
            "h2" => protocol = Some(HttpProtocol::Http2),
            _ => return Err(args.unknown("protocol", ["h1", "h2"])),
        }
    }
    Ok(SwitchToHttp(protocol))
}
