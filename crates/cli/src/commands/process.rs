//! Commands about the process.

use std::fmt::Write as _;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ballast_expr::text_of_bytes;
use ballast_model::CliLevel;
use ballast_stats::{InfoForm, ProcessLoad, StatForm, info};
use ballast_worker::{IoCounts, TaskCounts, io_counts, task_counts, timeout};

use crate::answer::CommandAnswer;
use crate::command::{Command, CommandCall};
use crate::shared::{CliShared, ProcessRole};

/// How long to wait for the counters of a worker.
const COUNTERS_WAIT: Duration = Duration::from_millis(200);

pub(crate) static COMMANDS: &[Command] = &[
    Command::new(
        &["show", "env"],
        "show env [var]",
        "list the environment, or one variable of it",
        environment,
    )
    .for_level(CliLevel::Operator),
    Command::new(
        &["show", "version"],
        "show version",
        "tell the version",
        |call| CommandAnswer::info(call.shared.version()),
    ),
];

pub(crate) static WORKER_COMMANDS: &[Command] = &[
    Command::new(
        &["show", "startup-logs"],
        "show startup-logs",
        "repeat what was said at the start",
        |call| CommandAnswer::Report(call.shared.startup_log()),
    )
    .for_level(CliLevel::Operator),
    Command::new(
        &["show", "activity"],
        "show activity [-1|0|thread_num]",
        "tell what each worker did so far",
        show_activity,
    )
    .for_level(CliLevel::Operator),
    Command::new(
        &["show", "info"],
        "show info [desc|json|typed|float]*",
        "tell about the process, its limits and counters",
        show_info,
    ),
];

fn environment(call: &mut CommandCall<'_>) -> CommandAnswer {
    let variables: Vec<(String, String)> = match &call.shared.role {
        // `setenv` and the like change the environment of the configuration, not of the process.
        ProcessRole::Worker(host) => {
            let generation = host.generation();
            let variables = generation.config.global.environment.iter();
            variables.cloned().collect()
        }
        ProcessRole::Master(_) => std::env::vars_os()
            .map(|(name, value)| {
                let text =
                    |os: std::ffi::OsString| text_of_bytes(os.as_encoded_bytes()).into_owned();
                (text(name), text(value))
            })
            .collect(),
    };
    let wanted = call.arg(0);
    let mut text = String::new();
    for (name, value) in &variables {
        if wanted.is_empty() || wanted == name {
            // One variable is one line, whatever its value.
            let value = value.replace(['\n', '\r'], " ");
            let _ = writeln!(text, "{name}={value}");
        }
    }
    if text.is_empty() && !wanted.is_empty() {
        return CommandAnswer::error("Variable not found");
    }
    CommandAnswer::Report(text)
}

fn show_info(call: &mut CommandCall<'_>) -> CommandAnswer {
    let ProcessRole::Worker(host) = &call.shared.role else {
        return CommandAnswer::Done;
    };
    let host = std::sync::Arc::clone(host);
    let (form, help) = form(call.args);
    let shown = InfoForm {
        form,
        help,
        fractions: call.args.iter().any(|word| word == "float"),
    };
    CommandAnswer::pending(async move {
        let tasks: usize = worker_counters()
            .await
            .iter()
            .map(|(tasks, _)| tasks.running + tasks.services)
            .sum();
        let load = ProcessLoad {
            tasks: u32::try_from(tasks).unwrap_or(u32::MAX),
            cli_sessions: 0,
        };
        CommandAnswer::Report(info(&*host, load, shown))
    })
}

/// The form that words ask for, and whether each line says what it means.
pub(crate) fn form(words: &[String]) -> (StatForm, bool) {
    let has = |wanted: &str| words.iter().any(|word| word == wanted);
    let help = has("desc");
    // As with HAProxy, the last format wins.
    let form = words.iter().rev().find_map(|word| match word.as_str() {
        "typed" => Some(StatForm::Typed {
            has_descriptions: help,
        }),
        "json" => Some(StatForm::Json),
        _ => None,
    });
    (form.unwrap_or_default(), help)
}

/// The counters of every worker, in order; zeros for a worker that does not answer in time.
async fn worker_counters() -> Vec<(TaskCounts, IoCounts)> {
    let count = ballast_worker::worker_count();
    if count == 0 {
        return vec![(task_counts(), io_counts())];
    }
    let mut all = Vec::with_capacity(count);
    for index in 0..count {
        let counts = match ballast_worker::mailbox(index) {
            Some(mailbox) => {
                timeout(COUNTERS_WAIT, mailbox.call(|| (task_counts(), io_counts()))).await
            }
            None => continue,
        };
        all.push(counts.ok().and_then(Result::ok).unwrap_or_default());
    }
    all
}

/// Shows the sums and each worker without a number or with a negative one, only the sums with 0,
/// else one worker.
fn show_activity(call: &mut CommandCall<'_>) -> CommandAnswer {
    let which = match call.arg(0) {
        "" => None,
        word => match word.parse::<i64>() {
            Ok(number) => usize::try_from(number).ok(),
            Err(_) => return CommandAnswer::error("Expects a thread number, 0 or -1."),
        },
    };
    CommandAnswer::pending(activity(which))
}

async fn activity(which: Option<usize>) -> CommandAnswer {
    let counters = worker_counters().await;
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let count = counters.len();
    if which.is_some_and(|worker| worker > count) {
        return CommandAnswer::error(format!("There are {count} threads."));
    }
    let mut text = format!("thread_id: {count} (1..{count})\n");
    let _ = writeln!(
        text,
        "date_now: {}.{:06}",
        now.as_secs(),
        now.subsec_micros()
    );
    type ReadCounter = fn(&(TaskCounts, IoCounts)) -> u64;
    let lines: [(&str, ReadCounter); 10] = [
        ("tasks", |(tasks, _)| {
            (tasks.running + tasks.services) as u64
        }),
        ("tasks_started", |(tasks, _)| tasks.started),
        ("tasks_panicked", |(tasks, _)| tasks.panicked),
        ("accepted", |(_, io)| io.accepts),
        ("recv", |(_, io)| io.receives),
        ("recv_in_vain", |(_, io)| io.receives_in_vain),
        ("recv_bytes", |(_, io)| io.received_bytes),
        ("send", |(_, io)| io.sends),
        ("send_in_vain", |(_, io)| io.sends_in_vain),
        ("send_bytes", |(_, io)| io.sent_bytes),
    ];
    for (name, read) in lines {
        let each: Vec<u64> = counters.iter().map(read).collect();
        let sum = each.iter().sum::<u64>();
        let _ = match which {
            None => {
                let each: Vec<String> = each.iter().map(u64::to_string).collect();
                writeln!(text, "{name}: {sum} [ {} ]", each.join(" "))
            }
            Some(0) => writeln!(text, "{name}: {sum}"),
            Some(worker) => writeln!(text, "{name}: {}", each.get(worker - 1).unwrap_or(&0)),
        };
    }
    CommandAnswer::Report(text)
}

/// The age of the process, for a timed prompt: `[days:hours:minutes:seconds]`.
pub(crate) fn age(shared: &CliShared) -> String {
    let seconds = match &shared.role {
        ProcessRole::Worker(host) => host.registry().process().started.elapsed().as_secs(),
        ProcessRole::Master(master) => master.processes().first().map_or(0, |row| row.uptime_s),
    };
    let (days, hours) = (seconds / 86_400, seconds / 3600 % 24);
    let (minutes, seconds) = (seconds / 60 % 60, seconds % 60);
    format!("[{days}:{hours:02}:{minutes:02}:{seconds:02}]")
}
