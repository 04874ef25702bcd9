//! The process: identity, files, threads, limits on its end.
//!
//! Source: HAProxy configuration manual, section 3.1.

use ballast_model::{CloseSpread, Global};
use ballast_syntax::Diagnostic;
use ballast_topology::WordError;

use crate::args::{Args, Prefix};
use crate::bind::words::{group, user};
use crate::check;
use crate::context::Context;
use crate::keyword::{Row, Sections};

/// A row of this file's table.
type R = Row<Global>;

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
        "spreads the closing of connections at a soft stop",
        |global, args, _| {
            global.close_spread = match args.take("infinite") {
                true => Some(CloseSpread::Never),
                false => {
                    let time = args.time("a time or 'infinite'")?;
                    (!time.is_zero()).then_some(CloseSpread::Over(time))
                }
            };
            args.end()
        },
    )
    .examples("close-spread-time 10s", "close-spread-time soon"),
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
    .ignored("HAProxy 3.2 has no such word: threads are bound as 'cpu-policy' and 'cpu-map' say"),
    R::new(
        "cpu-map",
        Sections::GLOBAL,
        "[auto:]<thread-group>[/<thread-set>] <cpu-set>[,...] [...]",
        "processors that threads run on",
        |global, args, _| cpu_words(args, |words| global.cpu.cpu_map(words)),
    )
    .examples("cpu-map auto:1/1-4 0-3", "cpu-map 1/1"),
    R::new(
        "cpu-policy",
        Sections::GLOBAL,
        "<policy> [threads-per-core 1 | auto]",
        "which processors are used, and how they make thread groups",
        |global, args, _| cpu_words(args, |words| global.cpu.cpu_policy(words)),
    )
    .examples("cpu-policy performance", "cpu-policy"),
    R::new(
        "cpu-set",
        Sections::GLOBAL,
        "<directive> [<set>] [...]",
        "which processors may be used",
        |global, args, _| cpu_words(args, |words| global.cpu.cpu_set(words)),
    )
    .examples("cpu-set drop-cpu 0", "cpu-set"),
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
        |global, args, context| {
            context.declarations.has_description = true;
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
        "most threads of a thread group",
        |global, args, _| cpu_words(args, |words| global.cpu.max_threads_per_group(words)),
    )
    .examples("max-threads-per-group 16", "max-threads-per-group x"),
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
        |global, args, _| cpu_words(args, |words| global.cpu.nbthread(words)),
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
        "uses one NUMA node by default",
        |global, args, _| {
            global.cpu.numa_mapping = args.prefix != Prefix::No;
            args.rest();
            Ok(())
        },
    )
    .with_no_and_default()
    .examples("numa-cpu-mapping", ""),
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
        "<group> [<thread-range>...]",
        "threads of a group",
        |global, args, context| {
            let mut warnings = Vec::new();
            cpu_words(args, |words| {
                warnings = global.cpu.thread_group(words)?;
                Ok(())
            })?;
            for warning in warnings {
                context.warn("thread-group", warning, args.keyword_span());
            }
            Ok(())
        },
    )
    .examples("thread-group 1 1-4", "thread-group"),
    R::new(
        "thread-groups",
        Sections::GLOBAL,
        "<number>",
        "groups of threads",
        |global, args, _| cpu_words(args, |words| global.cpu.thread_groups(words)),
    )
    .examples("thread-groups 1", "thread-groups x"),
    R::new(
        "thread-hard-limit",
        Sections::GLOBAL,
        "<number>",
        "most threads, whatever else is written",
        |global, args, _| cpu_words(args, |words| global.cpu.thread_hard_limit(words)),
    )
    .examples("thread-hard-limit 64", "thread-hard-limit x"),
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

/// Takes all words of a line, for a reader that tells what is wrong in HAProxy's words.
fn cpu_words(
    args: &mut Args<'_>,
    read: impl FnOnce(&[&str]) -> Result<(), WordError>,
) -> Result<(), Diagnostic> {
    let words = args.texts();
    args.rest();
    read(&words).map_err(|error| args.wrong(error.0))
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
