//! `set-mark`, `set-tos` and related actions, `set-nice`, `silent-drop`, `set-bandwidth-limit`:
//! options of packets and tasks.

use ballast_expr::Error;

use super::integer;
use crate::args::Args;
use crate::reference::Reference;
use crate::row::ActionRow;
use crate::ruleset::{RuleSet, RuleSetFlags};
use crate::units::{parse_delay, parse_mark, parse_size};

const MARK: &str = "{ <number> | <expr> }";

pub(crate) const ROWS: &[ActionRow] = &[
    ActionRow::unimplemented(
        "set-mark",
        RuleSetFlags::of(&[
            RuleSet::TcpConnection,
            RuleSet::TcpSession,
            RuleSet::TcpContent,
            RuleSet::TcpResponse,
            RuleSet::HttpRequest,
            RuleSet::HttpResponse,
        ]),
        "<mark>",
        "mark the packets to the client",
        |args| mark(args, false),
    )
    .examples(&["set-mark 0x10"], &["set-mark", "set-mark high"]),
    ActionRow::unimplemented(
        "set-tos",
        RuleSetFlags::of(&[
            RuleSet::TcpConnection,
            RuleSet::TcpSession,
            RuleSet::TcpContent,
            RuleSet::TcpResponse,
            RuleSet::HttpRequest,
            RuleSet::HttpResponse,
        ]),
        "<tos>",
        "set the DSCP of the packets to the client",
        |args| mark(args, false),
    )
    .examples(&["set-tos 46"], &["set-tos", "set-tos high"]),
    ActionRow::unimplemented(
        "set-fc-mark",
        RuleSetFlags::of(&[
            RuleSet::TcpConnection,
            RuleSet::TcpSession,
            RuleSet::TcpContent,
            RuleSet::TcpResponse,
            RuleSet::HttpRequest,
            RuleSet::HttpResponse,
        ]),
        MARK,
        "mark the packets to the client",
        |args| mark(args, true),
    )
    .examples(
        &["set-fc-mark 0x10", "set-fc-mark rand"],
        &["set-fc-mark", "set-fc-mark high"],
    ),
    ActionRow::unimplemented(
        "set-fc-tos",
        RuleSetFlags::of(&[
            RuleSet::TcpConnection,
            RuleSet::TcpSession,
            RuleSet::TcpContent,
            RuleSet::TcpResponse,
            RuleSet::HttpRequest,
            RuleSet::HttpResponse,
        ]),
        MARK,
        "set the DSCP of the packets to the client",
        |args| mark(args, true),
    )
    .examples(&["set-fc-tos 46"], &["set-fc-tos"]),
    ActionRow::unimplemented(
        "set-bc-mark",
        RuleSetFlags::of(&[RuleSet::TcpContent, RuleSet::HttpRequest]),
        MARK,
        "mark the packets to the server",
        |args| mark(args, true),
    )
    .examples(&["set-bc-mark 5"], &["set-bc-mark"]),
    ActionRow::unimplemented(
        "set-bc-tos",
        RuleSetFlags::of(&[RuleSet::TcpContent, RuleSet::HttpRequest]),
        MARK,
        "set the DSCP of the packets to the server",
        |args| mark(args, true),
    )
    .examples(&["set-bc-tos 5"], &["set-bc-tos"]),
    ActionRow::unimplemented(
        "set-nice",
        RuleSetFlags::of(&[
            RuleSet::TcpContent,
            RuleSet::TcpResponse,
            RuleSet::HttpRequest,
            RuleSet::HttpResponse,
        ]),
        "<nice>",
        "set the priority of the task",
        |args| {
            // HAProxy reads anything but a number as 0 and clamps to -1024..1024.
            args.text("expects exactly 1 argument (integer value)")
                .map(drop)
        },
    )
    .examples(&["set-nice 5", "set-nice -100"], &["set-nice"]),
    ActionRow::unimplemented(
        "silent-drop",
        RuleSetFlags::of(&[
            RuleSet::TcpConnection,
            RuleSet::TcpSession,
            RuleSet::TcpContent,
            RuleSet::TcpResponse,
            RuleSet::HttpRequest,
            RuleSet::HttpResponse,
        ]),
        "[ rst-ttl <ttl> ]",
        "forget the connection without telling the client",
        |args| {
            if args.take("rst-ttl") {
                let message = "'rst-ttl' expects an integer between 0 and 255";
                integer(args, 0_u16..=255, message)?;
            }
            Ok(())
        },
    )
    .examples(
        &["silent-drop", "silent-drop rst-ttl 1 if TRUE"],
        &[
            "silent-drop now",
            "silent-drop rst-ttl",
            "silent-drop rst-ttl 300",
        ],
    ),
    ActionRow::unimplemented(
        "set-bandwidth-limit",
        RuleSetFlags::of(&[
            RuleSet::TcpContent,
            RuleSet::TcpResponse,
            RuleSet::HttpRequest,
            RuleSet::HttpResponse,
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

fn mark(args: &mut Args<'_, '_, '_>, asks: bool) -> Result<(), Error> {
    let text = args.text("expects exactly 1 argument (integer/hex value)")?;
    let number = parse_mark(text).map_err(|error| error.in_word(args.at() - 1));
    match number {
        Ok(_) => Ok(()),
        Err(error) if !asks || text.starts_with(|c: char| c.is_ascii_digit()) => Err(error),
        Err(_) => args.expr_of(text).map(drop),
    }
}

fn bandwidth(args: &mut Args<'_, '_, '_>) -> Result<(), Error> {
    let name = args.text("missing filter name")?;
    args.refer_to(Reference::BandwidthLimit(name.to_owned()));
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
