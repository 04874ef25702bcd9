//! Limits of the process, its logs, its probes and its command sockets.
//!
//! Source: HAProxy configuration manual, sections 3.1 and 3.2.

use ballast_model::{Global, StatusSet};
use ballast_syntax::{Diagnostic, TimeUnit};

use crate::args::{Args, Prefix};
use crate::check;
use crate::keyword::{Row, Sections};

/// A row of this file's table.
type R = Row<Global>;

/// The rows.
pub(super) const ROWS: &[R] = &[
    R::new("busy-polling", Sections::GLOBAL, "", "polls without sleeping", |global, args, _| {
        global.busy_polling = args.prefix == Prefix::None;
        args.end()
    })
    .with_no_and_default(),
    R::new("fd-hard-limit", Sections::GLOBAL, "<number>", "most descriptors when their number is automatic", |global, args, _| {
        global.descriptor_hard_limit = Some(args.count("a number")?);
        args.end()
    })
    .examples("fd-hard-limit 50000", "fd-hard-limit x"),
    R::new("log", Sections::GLOBAL, "<target> [len <length>] [format <format>] [sample <ranges>:<size>] [profile <name>] <facility> [<level> [<minlevel>]]", "where events are logged", |global, args, context| {
        if args.prefix == Prefix::No {
            global.log_targets.clear();
            return args.end();
        }
        let target = crate::log_line::target(args, context)?;
        global.log_targets.push(target);
        Ok(())
    })
    .with_no()
    .examples("log 127.0.0.1:514 len 2048 format rfc5424 local0 notice", "log 127.0.0.1 local9"),
    R::new("log-send-hostname", Sections::GLOBAL, "[<string>]", "puts the machine's name into log lines", |global, args, _| {
        global.log_send_hostname = Some(args.next().unwrap_or_default().to_owned());
        args.end()
    })
    .examples("log-send-hostname lb1", "log-send-hostname a b"),
    R::new("log-tag", Sections::GLOBAL, "<string>", "name of the program in log lines", |global, args, _| {
        global.log_tag = Some(args.text("a tag")?.to_owned());
        args.end()
    })
    .examples("log-tag lb", "log-tag"),
    R::new("max-spread-checks", Sections::GLOBAL, "<delay>", "longest spread of the first probes", |global, args, _| {
        global.spread_checks_max = Some(args.time("a delay")?);
        args.end()
    })
    .examples("max-spread-checks 5s", "max-spread-checks x"),
    R::new("maxcompcpuusage", Sections::GLOBAL, "<number>", "processor use above which nothing is compressed", check::percent)
        .examples("maxcompcpuusage 50", "maxcompcpuusage x")
        .ignored("acts on compression only"),
    R::new("maxcomprate", Sections::GLOBAL, "<number>", "compressed bytes per second", check::amount)
        .examples("maxcomprate 100", "maxcomprate x")
        .ignored("acts on compression only"),
    R::new("maxconn", Sections::GLOBAL, "<number>", "concurrent connections of the process", |global, args, _| {
        let count = args.count("a number")?;
        // Zero leaves it automatic.
        global.connection_count_max = (count > 0).then_some(count);
        args.end()
    })
    .examples("maxconn 10000", "maxconn many"),
    R::new("maxconnrate", Sections::GLOBAL, "<number>", "accepted connections per second", |global, args, _| {
        global.connection_rate_max = Some(args.count("a number")?);
        args.end()
    })
    .examples("maxconnrate 100", "maxconnrate x"),
    R::new("maxpipes", Sections::GLOBAL, "<number>", "pipes for splicing", |global, args, _| {
        global.pipe_count_max = Some(args.count("an integer argument.")?);
        args.end()
    })
    .examples("maxpipes 100", "maxpipes x"),
    R::new("maxsessrate", Sections::GLOBAL, "<number>", "sessions per second", |global, args, _| {
        global.session_rate_max = Some(args.count("a number")?);
        args.end()
    })
    .examples("maxsessrate 100", "maxsessrate x"),
    R::new("maxzlibmem", Sections::GLOBAL, "<number>", "memory of the compression library", check::amount)
        .examples("maxzlibmem 100", "maxzlibmem x")
        .ignored("acts on compression only"),
    R::new("noepoll", Sections::GLOBAL, "", "another way to wait for sockets", check::none).ignored("epoll is the only one"),
    R::new("noevports", Sections::GLOBAL, "", "another way to wait for sockets", check::none).ignored("epoll is the only one"),
    R::new("nogetaddrinfo", Sections::GLOBAL, "", "resolves names by gethostbyname", check::none).ignored("the system's resolver is asked in one way"),
    R::new("nokqueue", Sections::GLOBAL, "", "another way to wait for sockets", check::none).ignored("epoll is the only one"),
    R::new("nopoll", Sections::GLOBAL, "", "another way to wait for sockets", check::none).ignored("epoll is the only one"),
    R::new("quick-exit", Sections::GLOBAL, "", "ends without freeing memory", check::none).ignored("the system takes the memory of a process that ends"),
    R::new("no-quic", Sections::GLOBAL, "", "no QUIC", check::none).ignored("there is no QUIC to turn off"),
    R::new("noreuseport", Sections::GLOBAL, "", "binds without SO_REUSEPORT", |global, args, _| {
        global.no_reuseport = true;
        args.end()
    }),
    R::new("nosplice", Sections::GLOBAL, "", "copies instead of splicing", |global, args, _| {
        global.no_splice = true;
        args.end()
    }),
    R::new("server-state-base", Sections::GLOBAL, "<directory>", "where state files are", |_, args, context| {
        context.declarations.state_base = Some(args.text("a directory")?.to_owned());
        args.end()
    })
    .examples("server-state-base /var/lib/lb", "server-state-base"),
    R::new("server-state-file", Sections::GLOBAL, "<file>", "file of the servers' states", |global, args, _| {
        global.server_state_file = Some(args.text("a file name")?.to_owned());
        args.end()
    })
    .examples("server-state-file global", "server-state-file"),
    R::new("spread-checks", Sections::GLOBAL, "<0..50, in percent>", "varies the time between probes", |global, args, _| {
        let number = args.number("a percentage", 0..=50)?;
        global.spread_checks_percent = u8::try_from(number).expect("the range was checked");
        args.end()
    })
    .examples("spread-checks 5", "spread-checks 80"),
    R::new("stats bind-process", Sections::GLOBAL, "<process set>", "processes that serve the command socket", check::any)
        .refused("is not supported any more since HAProxy 2.5", ""),
    R::new("stats maxconn", Sections::GLOBAL, "<connections>", "concurrent callers of the command sockets", |global, args, _| {
        let number = args.number("a positive value", 1..=i64::from(i32::MAX))?;
            global.stats_connection_count_max = u32::try_from(number).ok();
        args.end()
    })
    .examples("stats maxconn 20", "stats maxconn x"),
    R::new("stats socket", Sections::GLOBAL, "[<address:port>|<path>] [param*]", "a command socket", |global, args, context| {
        let sockets = crate::bind::stats_socket(args, context)?;
        global.stats_sockets.extend(sockets);
        Ok(())
    })
    .examples("stats socket /run/lb.sock mode 660 level admin", "stats socket"),
    R::new("stats timeout", Sections::GLOBAL, "<timeout>", "longest silence of a caller", |global, args, _| {
        global.stats_timeout = Some(args.time_in("a time", TimeUnit::Millisecond)?);
        args.end()
    })
    .examples("stats timeout 30s", "stats timeout x"),
    R::new("stats-file", Sections::GLOBAL, "<path>", "counters taken over at start", |global, args, _| {
        global.stats_file = Some(args.text("a file path")?.to_owned());
        args.end()
    })
    .examples("stats-file /tmp/s", "stats-file"),
    R::new("ulimit-n", Sections::GLOBAL, "<number>", "descriptors of the process", |global, args, _| {
        global.descriptor_count_max = Some(args.count("a number")?);
        args.end()
    })
    .examples("ulimit-n 20000", "ulimit-n x"),
    R::new("http-err-codes", Sections::GLOBAL, "[+-]<range>[,...] ...", "statuses counted as errors of clients", |global, args, _| {
        codes(&mut global.status_counts.errors, args)
    })
    .examples("http-err-codes 400-499 -404 +500", "http-err-codes x"),
    R::new("http-fail-codes", Sections::GLOBAL, "[+-]<range>[,...] ...", "statuses counted as failures of servers", |global, args, _| {
        codes(&mut global.status_counts.failures, args)
    })
    .examples("http-fail-codes 500-599", "http-fail-codes -501,+505"),
];

/// Ranges of statuses: words that set, add to (`+`) or remove from (`-`) the set.
fn codes(set: &mut StatusSet, args: &mut Args<'_>) -> Result<(), Diagnostic> {
    if args.is_empty() {
        return Err(args.missing_argument("a list of status codes"));
    }
    while let Some(text) = args.next() {
        let (ranges, is_in) = match (text.strip_prefix('+'), text.strip_prefix('-')) {
            (Some(ranges), _) => (ranges, true),
            (None, Some(ranges)) => (ranges, false),
            (None, None) => {
                *set = StatusSet::none();
                (text, true)
            }
        };
        for range in ranges.split(',') {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            let code = |text: &str| {
                let digits = text.bytes().all(|byte| byte.is_ascii_digit());
                let code = text.parse().ok().filter(|_| digits);
                code.filter(|code| StatusSet::RANGE.contains(code))
            };
            let (Some(first), Some(last)) = (code(first), code(last)) else {
                return Err(wrong_codes(args, text));
            };
            if first > last {
                return Err(wrong_codes(args, text));
            }
            set.set(first..=last, is_in);
        }
    }
    Ok(())
}

fn wrong_codes(args: &Args<'_>, text: &str) -> Diagnostic {
    args.wrong(format!(
        "Invalid status codes range '{text}' in '{}'. Ranges must be in the form \
         [+-]{{low[-{{high}}]}}[,...], from 100 to 599.",
        args.keyword()
    ))
}
