// tidy: table, because it is one row for each `tune.*` word.
//! `tune.*`: sizes that are honoured, and parameters of mechanisms that Ballast does not have.
//!
//! Source: HAProxy configuration manual, section 3.2.

use ballast_model::Global;
use ballast_syntax::Diagnostic;

use crate::args::Args;
use crate::check;
use crate::keyword::{Row, Sections};

/// A row of this file's table.
type R = Row<Global>;

/// The maximum number of sticky counters per connection.
const STICK_COUNTERS_MAX: u16 = u16::MAX;

const QUIC: &str = "acts on QUIC only";
const LUA: &str = "acts on Lua only";
const COPY: &str = "data are forwarded without extra copies where it pays";
const SCHEDULER: &str = "tasks are scheduled by the runtime of each worker";
const LOAD: &str = "a threshold of glitches holds whatever the load";
const H1: &str = "no violation of HTTP/1 that is let through is counted";
const DATAGRAMS: &str = "no proxy carries datagrams";
const MEMORY: &str = "buffers are held by exchanges that move data only";

/// Rows that are accepted for one reason: word, arguments, help, check.
macro_rules! noted {
    ($reason:expr; $($word:literal, $args:literal, $help:literal, $check:tt, $good:literal;)*) => {
        &[$(R::new($word, Sections::GLOBAL, $args, $help, check::form!($check))
            .examples(concat!($word, " ", $good), concat!($word, " a b c"))
            .ignored($reason)),*]
    };
}

/// The rows that are honoured.
pub(super) const ROWS: &[R] = &[
    R::new(
        "tune.bufsize",
        Sections::GLOBAL,
        "<size>",
        "buffer of each direction of an exchange, in bytes",
        |global, args, _| {
            let size = args.size("a size", 1 << 30)?;
            args.end()?;
            if size < 1024 {
                return Err(args.wrong("'tune.bufsize' expects at least 1024 bytes"));
            }
            global.tune.buffer_bytes = u32::try_from(size).expect("the bound fits 32 bits");
            Ok(())
        },
    )
    .examples("tune.bufsize 32768", "tune.bufsize 10"),
    R::new(
        "tune.stick-counters",
        Sections::GLOBAL,
        "<number>",
        "tracked counters of a connection",
        |global, args, context| {
            let count = args.number("a number of counters", 0..=i64::from(STICK_COUNTERS_MAX))?;
            args.end()?;
            global.tune.stick_counters = u32::try_from(count).expect("the range was checked");
            context.stick_counters = global.tune.stick_counters;
            Ok(())
        },
    )
    .examples("tune.stick-counters 3", "tune.stick-counters a b c"),
    R::new(
        "tune.comp.maxlevel",
        Sections::GLOBAL,
        "<number>",
        "compression level",
        |_, args, _| {
            args.number("a level", 1..=9)?;
            args.end()
        },
    )
    .examples("tune.comp.maxlevel 3", "tune.comp.maxlevel 12")
    .ignored("acts on compression only"),
    R::new(
        "tune.http.cookielen",
        Sections::GLOBAL,
        "<number>",
        "bytes of a captured cookie",
        |global, args, _| {
            global.tune.cookie_bytes = args.count("a number")?;
            args.end()
        },
    )
    .examples("tune.http.cookielen 100", "tune.http.cookielen x"),
    R::new(
        "tune.http.logurilen",
        Sections::GLOBAL,
        "<number>",
        "bytes of a logged URI",
        |global, args, _| {
            global.tune.log_uri_bytes = args.count("a number")?;
            args.end()
        },
    )
    .examples("tune.http.logurilen 2048", "tune.http.logurilen x"),
    R::new(
        "tune.http.maxhdr",
        Sections::GLOBAL,
        "<number>",
        "fields of one head",
        |global, args, _| {
            let number = args.number("a number of headers", 1..=32767)?;
            global.tune.header_count_max = u16::try_from(number).expect("the range was checked");
            args.end()
        },
    )
    .examples("tune.http.maxhdr 128", "tune.http.maxhdr 0"),
    R::new(
        "tune.idle-pool.shared",
        Sections::GLOBAL,
        "on | off",
        "threads take each other's kept connections",
        |_, args, _| {
            args.choice(&[("on", ()), ("off", ()), ("auto", ()), ("full", ())])?;
            args.end()
        },
    )
    .examples("tune.idle-pool.shared off", "tune.idle-pool.shared maybe")
    .ignored("each worker keeps its own server connections"),
    R::new(
        "tune.maxaccept",
        Sections::GLOBAL,
        "<number>",
        "connections accepted per wake-up",
        |global, args, _| {
            let number = args.number("a number", -1..=i64::from(i32::MAX))?;
            global.tune.accept_count_max = i32::try_from(number).ok();
            args.end()
        },
    )
    .examples("tune.maxaccept 64", "tune.maxaccept x"),
    R::new(
        "tune.maxrewrite",
        Sections::GLOBAL,
        "<size>",
        "room kept for headers that rules add, in bytes",
        |global, args, _| {
            global.tune.rewrite_bytes = bytes(args)?;
            Ok(())
        },
    )
    .examples("tune.maxrewrite 1024", "tune.maxrewrite x"),
    R::new(
        "tune.pattern.cache-size",
        Sections::GLOBAL,
        "<number>",
        "remembered results of pattern lookups",
        check::form!((0..)),
    )
    .examples("tune.pattern.cache-size 0", "tune.pattern.cache-size x")
    .ignored("every lookup is made anew: no result is remembered"),
    R::new(
        "tune.pipesize",
        Sections::GLOBAL,
        "<size>",
        "size of splicing pipes, in bytes",
        |global, args, _| {
            let size = bytes(args)?;
            // Zero leaves it to the system.
            global.tune.pipe_bytes = (size > 0).then_some(size);
            Ok(())
        },
    )
    .examples("tune.pipesize 65536", "tune.pipesize x"),
    R::new(
        "tune.rcvbuf.client",
        Sections::GLOBAL,
        "<size>",
        "kernel receive buffer towards clients, in bytes",
        |global, args, _| {
            global.tune.receive_buffer_client = Some(bytes(args)?);
            Ok(())
        },
    )
    .examples("tune.rcvbuf.client 65536", "tune.rcvbuf.client x"),
    R::new(
        "tune.rcvbuf.server",
        Sections::GLOBAL,
        "<size>",
        "kernel receive buffer towards servers, in bytes",
        |global, args, _| {
            global.tune.receive_buffer_server = Some(bytes(args)?);
            Ok(())
        },
    )
    .examples("tune.rcvbuf.server 65536", "tune.rcvbuf.server x"),
    R::new(
        "tune.pool-high-fd-ratio",
        Sections::GLOBAL,
        "<number>",
        "percentage of descriptors in use from which on idle server connections are closed",
        |global, args, _| {
            global.tune.idle_percent_high = percentage(args)?;
            args.end()
        },
    )
    .examples("tune.pool-high-fd-ratio 25", "tune.pool-high-fd-ratio 101"),
    R::new(
        "tune.pool-low-fd-ratio",
        Sections::GLOBAL,
        "<number>",
        "percentage of descriptors in use up to which idle server connections are kept",
        |global, args, _| {
            global.tune.idle_percent_low = percentage(args)?;
            args.end()
        },
    )
    .examples("tune.pool-low-fd-ratio 20", "tune.pool-low-fd-ratio 101"),
    R::new(
        "tune.regex.max-steps",
        Sections::GLOBAL,
        "<number>",
        "Ballast's own: steps of one search for a regular expression that has to turn back",
        |global, args, _| {
            let number = args.number("a number of steps", 1000..=i64::from(u32::MAX))?;
            global.tune.regex_steps_max = u64::try_from(number).ok();
            args.end()
        },
    )
    .examples("tune.regex.max-steps 1000000", "tune.regex.max-steps 0"),
    R::new(
        "tune.sndbuf.client",
        Sections::GLOBAL,
        "<size>",
        "kernel send buffer towards clients, in bytes",
        |global, args, _| {
            global.tune.send_buffer_client = Some(bytes(args)?);
            Ok(())
        },
    )
    .examples("tune.sndbuf.client 65536", "tune.sndbuf.client x"),
    R::new(
        "tune.sndbuf.server",
        Sections::GLOBAL,
        "<size>",
        "kernel send buffer towards servers, in bytes",
        |global, args, _| {
            global.tune.send_buffer_server = Some(bytes(args)?);
            Ok(())
        },
    )
    .examples("tune.sndbuf.server 65536", "tune.sndbuf.server x"),
];

fn bytes(args: &mut Args<'_>) -> Result<u32, Diagnostic> {
    let size = args.size_of(
        "an integer argument.",
        u64::from(u32::MAX),
        |keyword, rest| format!("unexpected '{rest}' after size passed to '{keyword}'"),
    )?;
    args.end()?;
    Ok(u32::try_from(size).expect("the bound fits 32 bits"))
}

fn percentage(args: &mut Args<'_>) -> Result<u32, Diagnostic> {
    let number = args.number("a percentage", 0..=100)?;
    Ok(u32::try_from(number).expect("the range was checked"))
}

pub(super) const QUIC_ROWS: &[R] = noted! { QUIC;
    "tune.quic.be.cc.cubic-min-losses", "<number>", "losses before the window shrinks", amount, "2";
    "tune.quic.be.cc.hystart", "on | off", "slow start that ends early", ["on" "off"], "on";
    "tune.quic.be.cc.max-frame-loss", "<number>", "losses of one frame", amount, "10";
    "tune.quic.be.cc.max-win-size", "<size>", "largest congestion window", amount, "1m";
    "tune.quic.be.cc.reorder-ratio", "<number>", "reordering taken for loss", amount, "50";
    "tune.quic.be.max-idle-timeout", "<timeout>", "longest silence", time, "30s";
    "tune.quic.be.sec.glitches-threshold", "<number>", "odd frames until the connection ends", amount, "10";
    "tune.quic.be.stream.data-ratio", "<number>", "share of the window a stream may take", amount, "90";
    "tune.quic.be.stream.max-concurrent", "<number>", "streams on one connection", amount, "100";
    "tune.quic.be.stream.rxbuf", "<size>", "receive window", amount, "64k";
    "tune.quic.be.tx.pacing", "on | off", "spreads packets", ["on" "off"], "on";
    "tune.quic.be.tx.udp-gso", "on | off", "several packets in one call", ["on" "off"], "on";
    "tune.quic.fe.cc.cubic-min-losses", "<number>", "losses before the window shrinks", amount, "2";
    "tune.quic.fe.cc.hystart", "on | off", "slow start that ends early", ["on" "off"], "on";
    "tune.quic.fe.cc.max-frame-loss", "<number>", "losses of one frame", amount, "10";
    "tune.quic.fe.cc.max-win-size", "<size>", "largest congestion window", amount, "1m";
    "tune.quic.fe.cc.reorder-ratio", "<number>", "reordering taken for loss", amount, "50";
    "tune.quic.fe.max-idle-timeout", "<timeout>", "longest silence", time, "30s";
    "tune.quic.fe.sec.glitches-threshold", "<number>", "odd frames until the connection ends", amount, "10";
    "tune.quic.fe.sec.retry-threshold", "<number>", "half-open connections before clients must prove their address", amount, "100";
    "tune.quic.fe.sock-per-conn", "<mode>", "a socket for each connection", one, "default-on";
    "tune.quic.fe.stream.data-ratio", "<number>", "share of the window a stream may take", amount, "90";
    "tune.quic.fe.stream.max-concurrent", "<number>", "streams on one connection", amount, "100";
    "tune.quic.fe.stream.max-total", "<number>", "streams in the life of a connection", amount, "1000";
    "tune.quic.fe.stream.rxbuf", "<size>", "receive window", amount, "64k";
    "tune.quic.fe.tx.pacing", "on | off", "spreads packets", ["on" "off"], "on";
    "tune.quic.fe.tx.udp-gso", "on | off", "several packets in one call", ["on" "off"], "on";
    "tune.quic.frontend.conn-tx-buffers.limit", "<number>", "send buffers of a connection", (1 ..), "30";
    "tune.quic.frontend.glitches-threshold", "<number>", "odd frames until the connection ends", (1 ..), "10";
    "tune.quic.frontend.default-max-window-size", "<size>", "largest congestion window", (10240 .. 4294967296), "1m";
    "tune.quic.frontend.max-data-size", "<size>", "receive window of a connection", (1 .. 4294967295), "1m";
    "tune.quic.frontend.max-idle-timeout", "<timeout>", "longest silence", time, "30s";
    "tune.quic.frontend.max-streams-bidi", "<number>", "streams on one connection", (1 ..), "100";
    "tune.quic.frontend.max-tx-mem", "<size>", "memory for sending", (1 ..), "1m";
    "tune.quic.backend.max-idle-timeout", "<timeout>", "longest silence", time, "30s";
    "tune.quic.cc-hystart", "on | off", "slow start that ends early", ["on" "off"], "on";
    "tune.quic.cc.cubic.min-losses", "<number>", "losses before the window shrinks", (1 ..), "2";
    "tune.quic.disable-tx-pacing", "", "sends packets at once", none, "";
    "tune.quic.disable-udp-gso", "", "sends each packet in a call of its own", none, "";
    "tune.quic.frontend.stream-data-ratio", "<number>", "share of the window a stream may take", (1 .. 100), "90";
    "tune.quic.listen", "on | off", "accepts QUIC", ["on" "off"], "on";
    "tune.quic.max-frame-loss", "<number>", "losses of one frame", (1 ..), "10";
    "tune.quic.mem.tx-max", "<size>", "memory for sending", amount, "1m";
    "tune.quic.reorder-ratio", "<number>", "reordering taken for loss", (1 .. 100), "50";
    "tune.quic.retry-threshold", "<number>", "half-open connections before clients must prove their address", (1 ..), "100";
    "tune.quic.socket-owner", "connection | listener", "how sockets are shared", ["listener" "connection"], "listener";
    "tune.quic.zero-copy-fwd-send", "on | off", "forwards without a copy", ["on" "off"], "on";
};

pub(super) const LUA_ROWS: &[R] = noted! { LUA;
    "tune.lua.bool-sample-conversion", "normal | pre-3.1-bug", "how booleans reach Lua", ["normal" "pre-3.1-bug"], "normal";
    "tune.lua.burst-timeout", "<timeout>", "longest run without a pause", time, "1s";
    "tune.lua.forced-yield", "<number>", "instructions between pauses", amount, "10000";
    "tune.lua.log.loggers", "on | off", "logs of scripts go to the log targets", ["on" "off"], "on";
    "tune.lua.log.stderr", "on | off | auto", "logs of scripts go to stderr", ["on" "auto" "off"], "auto";
    "tune.lua.maxmem", "<number>", "memory of scripts", amount, "64";
    "tune.lua.openlibs", "all | none | <lib>,...", "standard libraries loaded", one, "all";
    "tune.lua.service-timeout", "<timeout>", "longest run of a service", time, "4s";
    "tune.lua.session-timeout", "<timeout>", "longest run of an action", time, "4s";
    "tune.lua.task-timeout", "<timeout>", "longest run of a task", time, "4s";
};

/// Rows of limits of variables: word, help, the field.
macro_rules! variable_limits {
    ($($word:literal, $help:literal, $field:ident;)*) => {
        &[$(R::new($word, Sections::GLOBAL, "<size>", $help, |global, args, _| {
            let size = args.size("a size", u64::from(u32::MAX))?;
            args.end()?;
            let size = u32::try_from(size).expect("the bound fits 32 bits");
            global.tune.variables.$field = Some(size).filter(|size| *size != 0);
            Ok(())
        })
        .examples(concat!($word, " 1k"), concat!($word, " a b c"))),*]
    };
}

/// Limits of the memory of variables.
pub(super) const VARIABLE_LIMIT_ROWS: &[R] = variable_limits! {
    "tune.vars.check-max-size", "memory of the variables of a probe", check;
    "tune.vars.global-max-size", "memory of all variables", global;
    "tune.vars.proc-max-size", "memory of the process's variables", process;
    "tune.vars.reqres-max-size", "memory of a request's or response's variables", message;
    "tune.vars.sess-max-size", "memory of a session's variables, those of its exchanges included", session;
    "tune.vars.txn-max-size", "memory of an exchange's variables", transaction;
};

pub(super) const COPY_ROWS: &[R] = noted! { COPY;
    "tune.applet.zero-copy-forwarding", "on | off", "forwards without a copy", ["on" "off"], "on";
    "tune.disable-zero-copy-forwarding", "", "data are copied", none, "";
    "tune.h1.zero-copy-fwd-recv", "on | off", "receives without a copy", ["on" "off"], "on";
    "tune.h1.zero-copy-fwd-send", "on | off", "forwards without a copy", ["on" "off"], "on";
    "tune.h2.zero-copy-fwd-send", "on | off", "forwards without a copy", ["on" "off"], "on";
    "tune.pt.zero-copy-forwarding", "on | off", "forwards without a copy", ["on" "off"], "on";
    "tune.recv_enough", "<number>", "bytes that end a read", (0 .. 4294967295), "10k";
};

pub(super) const SCHEDULER_ROWS: &[R] = noted! { SCHEDULER;
    "tune.epoll.mask-events", "<event>[,...]", "events that are not waited for", events, "rdhup";
    "tune.events.max-events-at-once", "<number>", "events sent in one go", (1 .. 10000), "100";
    "tune.fd.tables", "<number>", "tables of descriptors", amount, "1";
    "tune.idletimer", "<timeout>", "silence that ends a burst", time, "1s";
    "tune.listener.default-shards", "by-process | by-thread | by-group", "sockets a bind is split into", ["by-process" "by-thread" "by-group"], "by-group";
    "tune.listener.multi-queue", "on | fair | off", "spreads accepted connections", ["on" "fair" "off"], "on";
    "tune.max-checks-per-thread", "<number>", "probes a thread runs at once", amount, "10";
    "tune.max-rules-at-once", "<number>", "rules run in one go", (0 ..), "50";
    "tune.maxpollevents", "<number>", "events taken from the system at once", (0 .. 1000000), "200";
    "tune.renice.runtime", "<number>", "priority of the process", (-20 .. 19), "-10";
    "tune.renice.startup", "<number>", "priority while it starts", (-20 .. 19), "-10";
    "tune.runqueue-depth", "<number>", "tasks run in one go", amount, "200";
    "tune.sched.low-latency", "on | off", "short turns", ["on" "off"], "on";
    "tune.streams-elasticity", "<number>", "streams follow the load", amount, "50";
    "tune.takeover-other-tg-connections", "<mode>", "groups take each other's kept connections", ["none" "restricted" "full"], "restricted";
};

pub(super) const MEMORY_ROWS: &[R] = noted! { MEMORY;
    "tune.buffers.limit", "<number>", "buffers of the process", (0 ..), "1000";
    "tune.buffers.reserve", "<number>", "buffers kept for the end of exchanges", (0 ..), "2";
    "tune.bufsize.large", "<size>", "buffer of large messages", (1 .. 4294967295), "64k";
    "tune.bufsize.small", "<size>", "buffer of small messages", (1 .. 4294967295), "1k";
    "tune.cli.max-payload-size", "<size>", "largest payload of a command", amount, "1m";
    "tune.defaults.purge", "", "forgets defaults that nobody names", none, "";
    "tune.fail-alloc", "<number>", "allocations that fail on purpose", (0 .. 100), "0";
    "tune.memory.hot-size", "<number>", "memory each thread keeps", (1 ..), "512k";
    "tune.notsent-lowat.client", "<size>", "unsent data in the kernel towards clients", (0 .. 4294967295), "16k";
    "tune.notsent-lowat.server", "<size>", "unsent data in the kernel towards servers", (0 .. 4294967295), "16k";
    "tune.peers.max-updates-at-once", "<number>", "updates sent in one go", (1 .. 2147483647), "200";
    "tune.ring.queues", "<number>", "queues of a ring", (0 .. 16), "1";
};

pub(super) const LOAD_ROWS: &[R] = noted! { LOAD;
    "tune.glitches.kill.cpu-usage", "<number>", "load above which odd clients are cut", (0 .. 100), "50";
};

pub(super) const H1_ROWS: &[R] = noted! { H1;
    "tune.h1.be.glitches-threshold", "<number>", "oddities of a server until its connection ends", amount, "10";
    "tune.h1.fe.glitches-threshold", "<number>", "oddities of a client until its connection ends", amount, "10";
};

pub(super) const DATAGRAM_ROWS: &[R] = noted! { DATAGRAMS;
    "tune.rcvbuf.backend", "<size>", "kernel receive buffer of datagram sockets towards servers", (1 .. 2147483647), "64k";
    "tune.rcvbuf.frontend", "<size>", "kernel receive buffer of datagram sockets towards clients", (1 .. 2147483647), "64k";
    "tune.sndbuf.backend", "<size>", "kernel send buffer of datagram sockets towards servers", (1 .. 2147483647), "64k";
    "tune.sndbuf.frontend", "<size>", "kernel send buffer of datagram sockets towards clients", (1 .. 2147483647), "64k";
};

/// Experimental words, and words that are no longer supported.
pub(super) const BARE_ROWS: &[R] = &[
    R::new(
        "tune.chksize",
        Sections::GLOBAL,
        "<size>",
        "buffer of probes",
        check::any,
    )
    .refused("is not supported any more", "tune.bufsize <size>"),
    R::new(
        "tune.disable-fast-forward",
        Sections::GLOBAL,
        "",
        "data pass every layer",
        check::none,
    )
    .experimental()
    .ignored(COPY),
    R::new(
        "tune.fd.edge-triggered",
        Sections::GLOBAL,
        "on | off",
        "waits by edges",
        check::on_off,
    )
    .examples("tune.fd.edge-triggered on", "tune.fd.edge-triggered x")
    .experimental()
    .ignored(SCHEDULER),
    R::new(
        "tune.zlib.memlevel",
        Sections::GLOBAL,
        "<number>",
        "memory of the compression library",
        check::any,
    )
    .refused("belongs to a compression library that is not built in", ""),
    R::new(
        "tune.zlib.windowsize",
        Sections::GLOBAL,
        "<number>",
        "window of the compression library",
        check::any,
    )
    .refused("belongs to a compression library that is not built in", ""),
];
