//! Sections about logs: `ring`, `log-forward`, `traces`.
//!
//! Source: HAProxy configuration manual, sections 3.9 and 3.10.

use super::PlainSectionDraft;
use crate::check;
use crate::keyword::{Row, Sections};

/// A row of this file's table.
type R = Row<PlainSectionDraft>;

const USED_BY_LOG_TARGETS: &str = "acts where a log target names the section";
const LOG_FORWARDING: &str = "log forwarding";

/// `ring`.
pub(super) const RING: &[R] = &[
    R::new(
        "backing-file",
        Sections::RING,
        "<path>",
        "file that keeps the ring over restarts",
        check::one,
    )
    .examples("backing-file /tmp/r", "backing-file")
    .ignored(USED_BY_LOG_TARGETS),
    R::new(
        "description",
        Sections::RING,
        "<text>",
        "text shown by commands",
        check::some,
    )
    .examples("description events", "description")
    .ignored(USED_BY_LOG_TARGETS),
    R::new(
        "format",
        Sections::RING,
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
    .ignored(USED_BY_LOG_TARGETS),
    R::new(
        "maxlen",
        Sections::RING,
        "<length>",
        "bytes of a line",
        check::number,
    )
    .examples("maxlen 1200", "maxlen x")
    .ignored(USED_BY_LOG_TARGETS),
    R::new(
        "server",
        Sections::RING,
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
    .ignored(USED_BY_LOG_TARGETS),
    R::new(
        "size",
        Sections::RING,
        "<size>",
        "bytes of the ring",
        check::size,
    )
    .examples("size 32764", "size x")
    .ignored(USED_BY_LOG_TARGETS),
    R::new(
        "timeout",
        Sections::RING,
        "connect | server <timeout>",
        "longest waits",
        |_, args, _| {
            args.choice(&[("connect", ()), ("server", ()), ("client", ())])?;
            args.time("a time")?;
            args.end()
        },
    )
    .examples("timeout connect 5s", "timeout queue 5s")
    .ignored(USED_BY_LOG_TARGETS),
];

/// `log-forward`.
pub(super) const LOG_FORWARD: &[R] = &[
    R::new(
        "backlog",
        Sections::LOG_FORWARD,
        "<conns>",
        "connections the system may hold",
        check::number,
    )
    .examples("backlog 10", "backlog x")
    .unimplemented(LOG_FORWARDING),
    R::new(
        "bind",
        Sections::LOG_FORWARD,
        "<addr> [param*]",
        "where messages come in by TCP",
        check::some,
    )
    .examples("bind :1514", "bind")
    .unimplemented(LOG_FORWARDING),
    R::new(
        "dgram-bind",
        Sections::LOG_FORWARD,
        "<addr> [param*]",
        "where messages come in by UDP",
        check::some,
    )
    .examples("dgram-bind :1514", "dgram-bind")
    .unimplemented(LOG_FORWARDING),
    R::new(
        "guid",
        Sections::LOG_FORWARD,
        "<string>",
        "the identifier that stays when the section is renamed",
        check::one,
    )
    .examples("guid a", "guid")
    .unimplemented(LOG_FORWARDING),
    R::new(
        "log",
        Sections::LOG_FORWARD,
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
    .unimplemented(LOG_FORWARDING),
    R::new(
        "maxconn",
        Sections::LOG_FORWARD,
        "<conns>",
        "concurrent connections",
        check::number,
    )
    .examples("maxconn 10", "maxconn x")
    .unimplemented(LOG_FORWARDING),
    R::new(
        "option assume-rfc6587-ntf",
        Sections::LOG_FORWARD,
        "",
        "messages end in a newline",
        check::none,
    )
    .with_no_and_default()
    .unimplemented(LOG_FORWARDING),
    R::new(
        "option dont-parse-log",
        Sections::LOG_FORWARD,
        "",
        "messages pass as they are",
        check::none,
    )
    .with_no_and_default()
    .unimplemented(LOG_FORWARDING),
    R::new(
        "option host",
        Sections::LOG_FORWARD,
        "{replace | fill | keep | append}",
        "the host name of messages",
        check::one,
    )
    .with_no_and_default()
    .examples("option host keep", "option host")
    .unimplemented(LOG_FORWARDING),
    R::new(
        "timeout client",
        Sections::LOG_FORWARD,
        "<timeout>",
        "longest silence",
        check::time,
    )
    .examples("timeout client 5s", "timeout client x")
    .unimplemented(LOG_FORWARDING),
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
