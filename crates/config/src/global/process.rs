//! The process: identity, files, threads, limits on its end.
//!
//! Source: HAProxy configuration manual, section 3.1.

use ballast_model::{CpuMap, Global};
use ballast_syntax::Diagnostic;

use crate::args::{Args, Prefix};
use crate::bind::words::{group, user};
use crate::check;
use crate::context::Context;
use crate::keyword::{Row, Sections};

/// A row of this file's table.
type R = Row<Global>;

/// The maximum number of threads, as in HAProxy's largest build.
const THREAD_COUNT_MAX: i64 = 4096;

/// The rows.
pub(super) const ROWS: &[R] = &[
    R::new(
        "chroot",
        Sections::GLOBAL,
        "<jail dir>",
        "directory the worker is locked into",
        |global, args, _| {
            global.chroot = Some(args.text("a directory")?.to_owned());
            args.end()
        },
    )
    .examples("chroot /var/lib/haproxy", "chroot"),
    R::new(
        "close-spread-time",
        Sections::GLOBAL,
        "<time> | infinite",
        "spreads the closing of idle connections at a soft stop",
        |_, args, _| {
            if !args.take("infinite") {
                args.time("a time or 'infinite'")?;
            }
            args.end()
        },
    )
    .examples("close-spread-time 10s", "close-spread-time soon")
    .ignored("idle connections end as their clients come back or leave"),
    R::new(
        "cluster-secret",
        Sections::GLOBAL,
        "<secret>",
        "secret that QUIC tokens are derived from",
        check::one,
    )
    .examples("cluster-secret x", "cluster-secret")
    .ignored("acts on QUIC only"),
    R::new(
        "cpu-affinity",
        Sections::GLOBAL,
        "<affinity>",
        "how threads are bound to processors",
        check::some,
    )
    .examples("cpu-affinity auto", "cpu-affinity")
    .ignored("threads go where the system puts them unless 'cpu-map' says otherwise"),
    R::new(
        "cpu-map",
        Sections::GLOBAL,
        "[auto:]<thread-group>[/<thread-set>] <cpu-set>[,...]",
        "processors that threads run on",
        cpu_map,
    )
    .examples("cpu-map auto:1/1-4 0-3", "cpu-map 1/1"),
    R::new(
        "cpu-policy",
        Sections::GLOBAL,
        "<policy>",
        "which processors are used",
        check::cpu_policy,
    )
    .examples("cpu-policy performance", "cpu-policy")
    .ignored("threads go where the system puts them unless 'cpu-map' says otherwise"),
    R::new(
        "cpu-set",
        Sections::GLOBAL,
        "<directive>...",
        "which processors may be used",
        check::cpu_set,
    )
    .examples("cpu-set drop-cpu 0", "cpu-set")
    .ignored("threads go where the system puts them unless 'cpu-map' says otherwise"),
    R::new(
        "daemon",
        Sections::GLOBAL,
        "",
        "detaches from the terminal",
        |global, args, _| {
            global.daemon = args.prefix == Prefix::None;
            args.end()
        },
    )
    .examples("daemon", "daemon now"),
    R::new(
        "default-path",
        Sections::GLOBAL,
        "current | config | parent | origin <path>",
        "what relative file names start from",
        default_path,
    )
    .examples("default-path config", "default-path here"),
    R::new(
        "description",
        Sections::GLOBAL,
        "<text>",
        "text shown by statistics",
        |global, args, _| {
            if args.is_empty() {
                return Err(args.missing_argument("a string argument"));
            }
            let words: Vec<_> = args
                .rest()
                .iter()
                .map(|word| word.text().to_owned())
                .collect();
            global.description = Some(words.join(" "));
            Ok(())
        },
    )
    .examples("description edge of the blue zone", "description"),
    R::new(
        "expose-deprecated-directives",
        Sections::GLOBAL,
        "",
        "allows deprecated keywords",
        check::none,
    )
    .ignored("what is accepted needs no leave"),
    R::new(
        "expose-experimental-directives",
        Sections::GLOBAL,
        "",
        "allows experimental keywords",
        |_, args, context| {
            context.declarations.experimental = true;
            args.end()
        },
    ),
    R::new(
        "external-check",
        Sections::GLOBAL,
        "[preserve-env]",
        "allows probes by programs",
        |global, args, _| {
            global.external_check = true;
            args.take("preserve-env");
            args.end()
        },
    )
    .examples("external-check", "external-check now"),
    R::new(
        "force-cfg-parser-pause",
        Sections::GLOBAL,
        "<timeout>",
        "waits after reading the configuration",
        check::time,
    )
    .examples("force-cfg-parser-pause 1s", "force-cfg-parser-pause x")
    .experimental()
    .ignored("it makes sense for HAProxy's developers"),
    R::new(
        "gid",
        Sections::GLOBAL,
        "<number>",
        "group of the worker, by number",
        |global, args, _| {
            global.group = Some(args.count("a number")?.to_string());
            args.end()
        },
    )
    .examples("gid 100", "gid staff"),
    R::new(
        "grace",
        Sections::GLOBAL,
        "<time>",
        "how long a soft stop goes on accepting",
        |global, args, _| {
            global.grace = Some(args.time("a time")?);
            args.end()
        },
    )
    .examples("grace 10s", "grace x"),
    R::new(
        "group",
        Sections::GLOBAL,
        "<group name>",
        "group of the worker, by name",
        |global, args, context| {
            global.group = Some(group(args, context)?);
            args.end()
        },
    )
    .examples("group haproxy", "group"),
    R::new(
        "hard-stop-after",
        Sections::GLOBAL,
        "<time>",
        "longest soft stop",
        |global, args, _| {
            global.hard_stop_after = Some(args.time("a time")?);
            args.end()
        },
    )
    .examples("hard-stop-after 30s", "hard-stop-after x"),
    R::new(
        "insecure-fork-wanted",
        Sections::GLOBAL,
        "",
        "allows starting programs without the rights of root",
        |global, args, _| {
            global.fork_allowed = args.prefix == Prefix::None;
            args.end()
        },
    )
    .with_no_and_default(),
    R::new(
        "insecure-setuid-wanted",
        Sections::GLOBAL,
        "",
        "allows programs with set-uid bits",
        check::none,
    )
    .with_no()
    .ignored("programs are started for external checks only"),
    R::new(
        "localpeer",
        Sections::GLOBAL,
        "<name>",
        "name of this process among peers",
        |global, args, _| {
            global.localpeer = Some(args.text("a name")?.to_owned());
            args.end()
        },
    )
    .examples("localpeer a", "localpeer"),
    R::new(
        "master-worker",
        Sections::GLOBAL,
        "[no-exit-on-failure]",
        "a master watches over the worker",
        |global, args, _| {
            global.master_worker = true;
            args.take("no-exit-on-failure");
            args.end()
        },
    )
    .examples("master-worker", "master-worker now"),
    R::new(
        "max-threads-per-group",
        Sections::GLOBAL,
        "<number>",
        "size of thread groups",
        check::form!((1..)),
    )
    .examples("max-threads-per-group 16", "max-threads-per-group x")
    .ignored("threads need no groups"),
    R::new(
        "mworker-max-reloads",
        Sections::GLOBAL,
        "<number>",
        "reloads after which an old worker is ended",
        check::form!((0..)),
    )
    .examples("mworker-max-reloads 3", "mworker-max-reloads x")
    .ignored("no old worker is left behind by a change"),
    R::new(
        "nbthread",
        Sections::GLOBAL,
        "<number>",
        "worker threads",
        |global, args, _| {
            let number = args.number("a number", 1..=THREAD_COUNT_MAX)?;
            global.thread_count = u16::try_from(number).ok();
            args.end()
        },
    )
    .examples("nbthread 4", "nbthread 0"),
    R::new(
        "no-memory-trimming",
        Sections::GLOBAL,
        "",
        "keeps freed memory",
        check::none,
    )
    .ignored("memory is not trimmed"),
    R::new(
        "node",
        Sections::GLOBAL,
        "<name>",
        "name of the machine in statistics",
        |global, args, _| {
            let name = args.text("a name")?;
            let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
            if !name.chars().all(is_name) {
                return Err(args.wrong("'node' expects letters, digits, '-', '_' and '.' only"));
            }
            global.node = Some(name.to_owned());
            args.end()
        },
    )
    .examples("node lb1", "node a/b"),
    R::new(
        "numa-cpu-mapping",
        Sections::GLOBAL,
        "",
        "binds threads to one NUMA node",
        check::none,
    )
    .with_no_and_default()
    .ignored("threads go where the system puts them unless 'cpu-map' says otherwise"),
    R::new(
        "pidfile",
        Sections::GLOBAL,
        "<path>",
        "file the process number is written to",
        |global, args, _| {
            global.pidfile = Some(args.text("a file name")?.to_owned());
            args.end()
        },
    )
    .examples("pidfile /run/ballast.pid", "pidfile"),
    R::new(
        "prealloc-fd",
        Sections::GLOBAL,
        "",
        "opens descriptors ahead",
        check::none,
    )
    .ignored("descriptor tables grow by themselves"),
    R::new(
        "quiet",
        Sections::GLOBAL,
        "",
        "says nothing at start",
        |global, args, _| {
            global.quiet = true;
            args.end()
        },
    ),
    R::new(
        "reload-keep-overrides",
        Sections::GLOBAL,
        "",
        "a reload keeps what operators set while the process ran",
        |global, args, _| {
            global.reload_keeps_overrides = true;
            args.end()
        },
    ),
    R::new(
        "set-dumpable",
        Sections::GLOBAL,
        "[on | off | libs]",
        "allows core dumps",
        |global, args, _| {
            let on =
                args.is_empty() || args.choice(&[("on", true), ("off", false), ("libs", true)])?;
            global.dumpable = args.prefix == Prefix::None && on;
            args.end()
        },
    )
    .with_no_and_default()
    .examples("set-dumpable", ""),
    R::new(
        "setcap",
        Sections::GLOBAL,
        "<capability>[,<capability>...]",
        "privileges the worker keeps",
        check::one,
    )
    .examples("setcap cap_net_bind_service", "setcap")
    .unimplemented("Linux capabilities"),
    R::new(
        "stress-level",
        Sections::GLOBAL,
        "<number>",
        "makes rare things happen more often",
        check::form!((0..9)),
    )
    .examples("stress-level 0", "stress-level x")
    .ignored("it makes sense for HAProxy's developers"),
    R::new(
        "strict-limits",
        Sections::GLOBAL,
        "",
        "a limit that cannot be raised stops the start",
        |global, args, _| {
            global.strict_limits = args.prefix != Prefix::No;
            args.end()
        },
    )
    .with_no_and_default(),
    R::new(
        "thread-group",
        Sections::GLOBAL,
        "<number> [<threads>...]",
        "threads of a group",
        check::thread_group,
    )
    .examples("thread-group 1 1-4", "thread-group")
    .ignored("threads need no groups"),
    R::new(
        "thread-groups",
        Sections::GLOBAL,
        "<number>",
        "groups of threads",
        check::form!((1..16)),
    )
    .examples("thread-groups 1", "thread-groups x")
    .ignored("threads need no groups"),
    R::new(
        "thread-hard-limit",
        Sections::GLOBAL,
        "<number>",
        "most threads when their number is automatic",
        check::form!((1..2147483647)),
    )
    .examples("thread-hard-limit 64", "thread-hard-limit x")
    .ignored("'nbthread' sets the number"),
    R::new(
        "uid",
        Sections::GLOBAL,
        "<number>",
        "user of the worker, by number",
        |global, args, _| {
            global.user = Some(args.count("a number")?.to_string());
            args.end()
        },
    )
    .examples("uid 100", "uid root"),
    R::new(
        "unix-bind",
        Sections::GLOBAL,
        "[prefix <prefix>] [mode <mode>] [user <user>] [uid <uid>] [group <group>] [gid <gid>]",
        "what unix binds get",
        unix_bind,
    )
    .examples("unix-bind prefix /run/lb mode 770", "unix-bind colour red"),
    R::new(
        "user",
        Sections::GLOBAL,
        "<user name>",
        "user of the worker, by name",
        |global, args, context| {
            global.user = Some(user(args, context)?);
            args.end()
        },
    )
    .examples("user haproxy", "user"),
    R::new(
        "warn-blocked-traffic-after",
        Sections::GLOBAL,
        "<time>",
        "warns of threads that stand still",
        check::second,
    )
    .examples(
        "warn-blocked-traffic-after 100ms",
        "warn-blocked-traffic-after x",
    )
    .ignored("no thread waits"),
    R::new(
        "zero-warning",
        Sections::GLOBAL,
        "",
        "warnings stop the start",
        |global, args, _| {
            global.zero_warning = true;
            args.end()
        },
    ),
];

/// `[auto:]1/1-4 0-3`, or without group: the number before the slash is a process, of which there
/// is one.
fn cpu_map(
    global: &mut Global,
    args: &mut Args<'_>,
    _: &mut Context<'_>,
) -> Result<(), Diagnostic> {
    let text = args.text("a thread group and processors")?;
    let (auto, set) = match text.strip_prefix("auto:") {
        Some(set) => (true, set),
        None => (false, text),
    };
    let threads = match set.split_once('/') {
        Some((_, threads)) => number_set(args, threads, 64)?,
        None => {
            number_set(args, set, 64)?;
            Vec::new()
        }
    };
    let mut processors = Vec::new();
    if args.is_empty() {
        return Err(args.missing_argument("processors after the threads"));
    }
    while let Some(text) = args.next() {
        for part in text.split(',') {
            processors.extend(number_set(args, part, 4096)?);
        }
    }
    processors.sort_unstable();
    processors.dedup();
    if auto && !threads.is_empty() && threads.len() != processors.len() {
        return Err(args.wrong(
            "cpu-map : PROC/THREAD range and CPU sets must have the same size to be automatically \
             bound",
        ));
    }
    global.cpu_maps.push(CpuMap {
        threads,
        auto,
        processors,
    });
    Ok(())
}

/// `all`, `odd`, `even`, `3`, `1-4`, `2-`; `all` gives an empty list.
fn number_set(args: &Args<'_>, text: &str, last_max: u16) -> Result<Vec<u16>, Diagnostic> {
    let wrong = || args.wrong(format!("'{}' : invalid set '{text}'", args.keyword()));
    match text {
        "all" => return Ok(Vec::new()),
        "odd" | "even" => {
            let rest = u16::from(text == "odd");
            return Ok((1..=last_max).filter(|number| number % 2 == rest).collect());
        }
        _ => {}
    }
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let first: u16 = first.parse().map_err(|_| wrong())?;
    let last = match last {
        "" => last_max,
        _ => last.parse().map_err(|_| wrong())?,
    };
    if first > last || last > last_max {
        return Err(wrong());
    }
    Ok((first..=last).collect())
}

fn default_path(
    _: &mut Global,
    args: &mut Args<'_>,
    context: &mut Context<'_>,
) -> Result<(), Diagnostic> {
    let file = context.sources.name(args.span().file).to_owned();
    let directory = |path: &str| {
        path.rsplit_once('/')
            .map_or(".", |(parent, _)| parent)
            .to_owned()
    };
    let text = args.text("'current', 'config', 'parent' or 'origin <path>'")?;
    context.declarations.base = match text {
        "current" => None,
        "config" => Some(directory(&file)),
        "parent" => Some(format!("{}/..", directory(&file))),
        "origin" => Some(args.text("a directory")?.to_owned()),
        _ => {
            return Err(args.wrong(format!(
                "'default-path' only supports 'current', 'config', 'parent' and 'origin' (got '{text}')"
            )));
        }
    };
    args.end()
}

fn unix_bind(
    _: &mut Global,
    args: &mut Args<'_>,
    context: &mut Context<'_>,
) -> Result<(), Diagnostic> {
    if args.is_empty() {
        return Err(args.missing_argument("'prefix', 'mode', 'user', 'uid', 'group' or 'gid'"));
    }
    let mut unix = context.declarations.unix_bind.clone();
    while let Some(word) = args.next() {
        match word {
            "prefix" => unix.prefix = Some(args.text("a prefix")?.to_owned()),
            "mode" => {
                let text = args.text("an octal mode")?;
                let mode = u32::from_str_radix(text, 8).ok();
                unix.owner.mode =
                    Some(mode.ok_or_else(|| {
                        args.wrong(format!("'unix-bind' : invalid mode '{text}'"))
                    })?);
            }
            "user" => unix.owner.user = Some(user(args, context)?),
            "uid" => unix.owner.user = Some(args.count("a number")?.to_string()),
            "group" => unix.owner.group = Some(group(args, context)?),
            "gid" => unix.owner.group = Some(args.count("a number")?.to_string()),
            _ => {
                return Err(args.wrong(
                    "'unix-bind' only supports the 'prefix', 'mode', 'user', 'group', 'uid', and \
                     'gid' options",
                ));
            }
        }
    }
    context.declarations.unix_bind = unix;
    Ok(())
}
