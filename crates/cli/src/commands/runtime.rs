//! Commands that show the running process: workers, memory. Commands about
//! parts that are not implemented answer as an HAProxy without such objects.
//!
//! Source: management manual, section 9.3.

use std::fmt::Write as _;
use std::time::Duration;

use ballast_model::CliLevel;
use ballast_worker::{
    BufferUse, IoCounts, TaskCounts, buffer_use, io_counts, task_counts, timeout,
};

use crate::answer::CommandAnswer;
use crate::change_record::ChangeScope;
use crate::command::{Command, CommandCall};
use crate::commands::anonymous::NameMasking;
use crate::session::RequiredMode;
use crate::shared::ProcessRole;

/// How long to wait for the report of a worker.
const REPORT_WAIT: Duration = Duration::from_millis(200);

pub(crate) static COMMANDS: &[Command] = &[
    Command::new(
        &["show", "threads"],
        "show threads",
        "tell what each worker has to do",
        |_| CommandAnswer::pending(threads()),
    ),
    Command::new(
        &["show", "tasks"],
        "show tasks",
        "count the tasks of the workers",
        |_| CommandAnswer::pending(tasks()),
    ),
    Command::new(
        &["show", "pools"],
        "show pools [by*] [match <pfx>] [nb]",
        "tell the memory of buffers",
        |call| {
            let bytes = match &call.shared.role {
                ProcessRole::Worker(control) => {
                    control.generation().config.global.tune.buffer_bytes as usize
                }
                ProcessRole::Master(_) => 0,
            };
            CommandAnswer::pending(pools(bytes))
        },
    ),
    Command::new(
        &["debug", "counters"],
        "debug counters [?|all|bug|cnt|chk|glt]*",
        "not implemented: counters of rare events",
        |call| match call.arg(0) {
            "" => CommandAnswer::Done,
            _ => CommandAnswer::Report(
                "Count     Type Location function(): \"condition\" [comment]\n".into(),
            ),
        },
    )
    .for_level(CliLevel::Admin),
    Command::new(
        &["debug", "dev", "hash"],
        "debug dev hash   [msg]",
        "show a word as it is written under `set anon on`",
        |call| CommandAnswer::info(NameMasking::of(call.session).name(call.arg(0)).into_owned()),
    ),
    Command::new(
        &["debug", "dev"],
        "debug dev <what> [arg]*",
        "not implemented: commands for developers",
        |_| CommandAnswer::error("There are no developer's commands here: nothing was done."),
    )
    .for_level(CliLevel::Admin)
    .restricted(RequiredMode::Expert),
    Command::new(
        &["httpclient"],
        "httpclient <method> <URI>",
        "not implemented: send a request",
        |_| CommandAnswer::error("There is no HTTP client here: nothing was done."),
    )
    .for_level(CliLevel::Admin)
    .restricted(RequiredMode::Expert),
    Command::new(
        &["show", "profiling"],
        "show profiling [<what>|<#lines>|<opts>]*",
        "not implemented: what is profiled",
        |_| {
            CommandAnswer::Report(
                "Per-task CPU profiling              : off           \
                 # set profiling tasks {on|auto|off}\n\
                 Memory usage profiling              : off           \
                 # set profiling memory {on|off}\n"
                    .into(),
            )
        },
    )
    .for_level(CliLevel::Admin),
    Command::new(
        &["set", "profiling"],
        "set profiling <what> {auto|on|off}",
        "accepted without effect: profiling is not implemented",
        profiling,
    )
    .changing(ChangeScope::State)
    .for_level(CliLevel::Admin),
    Command::new(
        &["show", "trace"],
        "show trace [<module>]",
        "not implemented: list the modules that can be traced",
        |call| match call.arg(0) {
            word if !word.is_empty() && call.session.level < CliLevel::Operator => {
                CommandAnswer::denied()
            }
            _ => CommandAnswer::Report(TRACES.into()),
        },
    ),
    Command::new(
        &["trace"],
        "trace [<module>|0] [cmd [args...]]",
        "not implemented: trace a module",
        trace,
    )
    .for_level(CliLevel::Operator),
    Command::new(
        &["show", "resolvers"],
        "show resolvers [id]",
        "not implemented: the state of name servers",
        |call| match call.arg(0) {
            "" => CommandAnswer::Report(String::new()),
            _ => CommandAnswer::error("Can't find that resolvers section"),
        },
    ),
    Command::new(
        &["show", "peers"],
        "show peers [dict|-] [section]",
        "not implemented: the state of peers",
        |call| match call.arg(0) {
            "" | "-" | "dict" => CommandAnswer::Report(String::new()),
            _ => CommandAnswer::error("No such peers"),
        },
    ),
    Command::new(
        &["show", "cache"],
        "show cache",
        "not implemented: list the entries of caches",
        |_| CommandAnswer::Report(String::new()),
    )
    .for_level(CliLevel::Admin),
];

const TRACES: &str = "Supported trace sources and states (.=stopped, w=waiting, R=running) :\n";

/// The report of a worker about itself.
type WorkerReport = (TaskCounts, IoCounts, BufferUse);

/// The reports of all workers, in order; zeros for a worker that does not answer in time.
async fn collect_reports() -> Vec<WorkerReport> {
    fn own_report() -> WorkerReport {
        (task_counts(), io_counts(), buffer_use())
    }
    let count = ballast_worker::worker_count();
    if count == 0 {
        return vec![own_report()];
    }
    let mut all = Vec::with_capacity(count);
    for index in 0..count {
        let Some(mailbox) = ballast_worker::mailbox(index) else {
            continue;
        };
        let report = timeout(REPORT_WAIT, mailbox.call(own_report)).await;
        all.push(report.ok().and_then(Result::ok).unwrap_or_default());
    }
    all
}

async fn threads() -> CommandAnswer {
    let own = ballast_worker::worker_index();
    let mut text = String::new();
    for (index, (tasks, io, buffers)) in collect_reports().await.iter().enumerate() {
        let mark = if own == Some(index) { '*' } else { ' ' };
        let _ = write!(
            text,
            "{mark} Thread {number:<2}: act=1 tasks={} services={} buffers={}\n             \
             accepts={} recv={} send={} panics={}\n",
            tasks.running,
            tasks.services,
            buffers.in_use,
            io.accepts,
            io.receives,
            io.sends,
            tasks.panicked,
            number = index + 1,
        );
    }
    CommandAnswer::Report(text)
}

async fn tasks() -> CommandAnswer {
    let reports = collect_reports().await;
    let running: usize = reports.iter().map(|(tasks, ..)| tasks.running).sum();
    let services: usize = reports.iter().map(|(tasks, ..)| tasks.services).sum();
    let all = (running + services).max(1);
    let mut text = format!(
        "Running tasks: {} ({} threads)\n  \
         function                     places     %    lat_tot   lat_avg\n",
        running + services,
        reports.len()
    );
    for (name, count) in [("connections", running), ("services", services)] {
        let percent = count * 100 / all;
        let _ = writeln!(
            text,
            "  {name:<26} {count:>8} {percent:>5}          -         -"
        );
    }
    CommandAnswer::Report(text)
}

async fn pools(bytes: usize) -> CommandAnswer {
    let mut text = String::from("Dumping pools usage.\n");
    let (mut all_bytes, mut used_bytes) = (0_usize, 0_usize);
    for (index, (.., buffers)) in collect_reports().await.iter().enumerate() {
        let count = buffers.in_use + buffers.free;
        let (allocated, used) = (count * bytes, buffers.in_use * bytes);
        (all_bytes, used_bytes) = (all_bytes + allocated, used_bytes + used);
        let _ = writeln!(
            text,
            "  - Pool buffer.{} ({} bytes) : {count} allocated ({allocated} bytes), {} used, \
             needed_avg {}, 0 failures, 1 users",
            index + 1,
            bytes,
            buffers.in_use,
            buffers.in_use,
        );
    }
    let _ = writeln!(
        text,
        "Total: {all_bytes} bytes allocated, {used_bytes} used."
    );
    CommandAnswer::Report(text)
}

fn profiling(call: &mut CommandCall<'_>) -> CommandAnswer {
    match (call.arg(0), call.arg(1)) {
        ("tasks", "on" | "off" | "auto") => {}
        ("tasks", _) => return CommandAnswer::error("Expects 'on', 'auto', or 'off'."),
        ("memory", _) => return CommandAnswer::error("Memory profiling not compiled in."),
        _ => return CommandAnswer::error("Expects either 'tasks' or 'memory'."),
    }
    CommandAnswer::Done
}

fn trace(call: &mut CommandCall<'_>) -> CommandAnswer {
    match call.arg(0) {
        "" => CommandAnswer::Report(TRACES.into()),
        "0" => CommandAnswer::info("All traces now stopped"),
        name => CommandAnswer::error(format!("No such trace source '{name}'")),
    }
}
