//! Sections about logs: `ring`, `log-forward`, `log-profile`, `traces`.
//!
//! Source: HAProxy configuration manual, sections 3.9, 3.10 and 8.3.

use ballast_expr::Usage;

use super::OtherDraft;
use crate::check;
use crate::keyword::{Row, Sections};

type R = Row<OtherDraft>;

const G: Sections = Sections::RING;
const F: Sections = Sections::LOG_FORWARD;
const P: Sections = Sections::LOG_PROFILE;
const NAMED: &str = "acts where a log target names the section";
const FORWARD: &str = "log forwarding";

/// `ring`.
pub(super) const RING: &[R] = &[
    R::new(
        "backing-file",
        G,
        "<path>",
        "file that keeps the ring over restarts",
        check::one,
    )
    .examples("backing-file /tmp/r", "backing-file")
    .ignored(NAMED),
    R::new(
        "description",
        G,
        "<text>",
        "text shown by commands",
        check::some,
    )
    .examples("description events", "description")
    .ignored(NAMED),
    R::new(
        "format",
        G,
        "<format>",
        "how the header before the message is written",
        |_, args, _| {
            args.choice(&[
                ("iso", ()),
                ("local", ()),
                ("raw", ()),
                ("rfc3164", ()),
                ("rfc5424", ()),
                ("short", ()),
                ("priority", ()),
                ("timed", ()),
            ])?;
            args.end()
        },
    )
    .examples("format rfc5424", "format x")
    .ignored(NAMED),
    R::new("maxlen", G, "<length>", "bytes of a line", check::number)
        .examples("maxlen 1200", "maxlen x")
        .ignored(NAMED),
    R::new(
        "server",
        G,
        "<name> <address> [param*]",
        "where lines are sent",
        |_, args, _| {
            args.text("<name> and <addr>[:<port>] as arguments.")?;
            args.text("<name> and <addr>[:<port>] as arguments.")?;
            args.rest();
            Ok(())
        },
    )
    .examples("server a 192.0.2.1:514", "server")
    .ignored(NAMED),
    R::new("size", G, "<size>", "bytes of the ring", check::size)
        .examples("size 32764", "size x")
        .ignored(NAMED),
    R::new(
        "timeout",
        G,
        "connect | server <timeout>",
        "longest waits",
        |_, args, _| {
            args.choice(&[("connect", ()), ("server", ()), ("client", ())])?;
            args.time("a time")?;
            args.end()
        },
    )
    .examples("timeout connect 5s", "timeout queue 5s")
    .ignored(NAMED),
];

/// `log-forward`.
pub(super) const LOG_FORWARD: &[R] = &[
    R::new(
        "backlog",
        F,
        "<conns>",
        "connections the system may hold",
        check::number,
    )
    .examples("backlog 10", "backlog x")
    .unimplemented(FORWARD),
    R::new(
        "bind",
        F,
        "<addr> [param*]",
        "where messages come in by TCP",
        check::some,
    )
    .examples("bind :1514", "bind")
    .unimplemented(FORWARD),
    R::new(
        "dgram-bind",
        F,
        "<addr> [param*]",
        "where messages come in by UDP",
        check::some,
    )
    .examples("dgram-bind :1514", "dgram-bind")
    .unimplemented(FORWARD),
    R::new(
        "guid",
        F,
        "<string>",
        "the name that survives renames",
        check::one,
    )
    .examples("guid a", "guid")
    .unimplemented(FORWARD),
    R::new(
        "log",
        F,
        "<target> <facility>",
        "where messages go",
        |_, args, context| {
            if args.take("global") {
                return args.end();
            }
            crate::log_line::target(args, context).map(|_| ())
        },
    )
    .with_no()
    .examples("log 127.0.0.1 local0", "log 127.0.0.1")
    .unimplemented(FORWARD),
    R::new(
        "maxconn",
        F,
        "<conns>",
        "concurrent connections",
        check::number,
    )
    .examples("maxconn 10", "maxconn x")
    .unimplemented(FORWARD),
    R::new(
        "option assume-rfc6587-ntf",
        F,
        "",
        "messages end in a newline",
        check::none,
    )
    .with_no_default()
    .unimplemented(FORWARD),
    R::new(
        "option dont-parse-log",
        F,
        "",
        "messages pass as they are",
        check::none,
    )
    .with_no_default()
    .unimplemented(FORWARD),
    R::new(
        "option host",
        F,
        "{replace | fill | keep | append}",
        "the host name of messages",
        check::one,
    )
    .with_no_default()
    .examples("option host keep", "option host")
    .unimplemented(FORWARD),
    R::new(
        "timeout client",
        F,
        "<timeout>",
        "longest silence",
        check::time,
    )
    .examples("timeout client 5s", "timeout client x")
    .unimplemented(FORWARD),
];

/// `log-profile`.
pub(super) const LOG_PROFILE: &[R] = &[
    R::new("log-tag", P, "<string>", "name of the program", check::one)
        .examples("log-tag lb", "log-tag")
        .ignored(NAMED),
    R::new(
        "on",
        P,
        "<step> [drop] [format <fmt>] [sd <sd_fmt>]",
        "the line of a step",
        |_, args, context| {
            args.text("a step")?;
            while let Some(word) = args.next() {
                match word {
                    "drop" => {}
                    "format" | "sd" => {
                        let format = args.format("a format", Usage::Log)?;
                        context.check_format(&format, args.span());
                    }
                    _ => {
                        return Err(args.wrong(format!(
                            "'on' only supports 'drop', 'format' and 'sd' (got '{word}')"
                        )));
                    }
                }
            }
            Ok(())
        },
    )
    .examples("on close format \"%ci\"", "on close colour")
    .ignored(NAMED),
];

/// `traces`.
pub(super) const TRACES: &[R] = &[R::new(
    "trace",
    Sections::TRACES,
    "<source> <args...>",
    "traces of the program's insides",
    check::some,
)
.examples("trace h1 sink stderr", "trace")
.ignored("HAProxy's insides are not here to be traced")];
