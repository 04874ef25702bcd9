//! `show libs`, `show dev`: the first facts that the report of a crash needs.
//!
//! Source: management manual, section 9.3.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use ballast_model::CliLevel;

use crate::answer::CommandAnswer;
use crate::command::{Command, CommandCall};
use crate::shared::ProcessRole;

pub(crate) static COMMANDS: &[Command] = &[
    Command::new(
        &["show", "dev"],
        "show dev",
        "tell what is needed to read a report of a fault",
        developer,
    ),
    Command::new(
        &["show", "libs"],
        "show libs",
        "list the program and its libraries with their addresses",
        |_| match std::fs::read_to_string("/proc/self/maps") {
            Ok(maps) => CommandAnswer::Report(libraries(&maps)),
            Err(_) => CommandAnswer::error("The system does not tell of libraries."),
        },
    )
    .for_level(CliLevel::Operator),
];

fn developer(call: &mut CommandCall<'_>) -> CommandAnswer {
    let ProcessRole::Worker(control) = &call.shared.role else {
        return CommandAnswer::Done;
    };
    let facts = control.process_info();
    let read = |path: &str| {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        text.trim().escape_debug().to_string()
    };
    let processors = std::thread::available_parallelism().map_or(0, usize::from);
    let arguments: Vec<String> = std::env::args_os()
        .map(|word| word.to_string_lossy().escape_debug().to_string())
        .collect();
    let mut text = String::from("Version info\n");
    let mut line = |name: &str, value: &dyn std::fmt::Display| {
        let _ = writeln!(text, "  {name}: {value}");
    };
    line("version", &facts.version);
    line("build", &facts.build_info);
    line("architecture", &std::env::consts::ARCH);
    let _ = writeln!(text, "Platform info");
    let mut line = |name: &str, value: &dyn std::fmt::Display| {
        let _ = writeln!(text, "  {name}: {value}");
    };
    line("system", &read("/proc/sys/kernel/ostype"));
    line("release", &read("/proc/sys/kernel/osrelease"));
    line("processors", &processors);
    let _ = writeln!(text, "Process info");
    let mut line = |name: &str, value: &dyn std::fmt::Display| {
        let _ = writeln!(text, "  {name}: {value}");
    };
    line("pid", &facts.process_id);
    line("threads", &facts.thread_count);
    line("descriptors max", &facts.descriptor_count_max);
    line("connections max", &facts.connection_count_hard_max);
    line("generation", &control.generation().number);
    line("arguments", &arguments.join(" "));
    CommandAnswer::Report(text)
}

/// The files mapped into the process: from where to where, how much, and which. Those that hold
/// code; data files and memory without a name are left out.
fn libraries(maps: &str) -> String {
    let mut found: BTreeMap<&str, (u64, u64, bool)> = BTreeMap::new();
    for map in maps.lines() {
        let mut words = map.split_ascii_whitespace();
        let (Some(range), Some(access)) = (words.next(), words.next()) else {
            continue;
        };
        let Some(path) = words.nth(3).filter(|path| path.starts_with('/')) else {
            continue;
        };
        let bounds = range.split_once('-').and_then(|(from, to)| {
            let from = u64::from_str_radix(from, 16).ok()?;
            Some((from, u64::from_str_radix(to, 16).ok()?))
        });
        let Some((from, to)) = bounds else { continue };
        let known = found.entry(path).or_insert((from, to, false));
        *known = (
            known.0.min(from),
            known.1.max(to),
            known.2 || access.contains('x'),
        );
    }
    let mut text = String::new();
    for (path, (from, to, has_code)) in found {
        if has_code {
            let last = to - 1;
            let size = to - from;
            let _ = writeln!(text, "0x{from:012x}-0x{last:012x} (0x{size:07x}) {path}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::libraries;

    #[test]
    fn maps_of_one_file_are_one_library() {
        let maps = "55d000000000-55d000001000 r--p 00000000 fe:00 1  /usr/bin/a\n\
                    55d000001000-55d000003000 r-xp 00001000 fe:00 1  /usr/bin/a\n\
                    7f0000000000-7f0000001000 r--p 00000000 fe:00 2  /usr/share/data\n\
                    7f0000002000-7f0000003000 rw-p 00000000 00:00 0 \n\
                    7ffd00000000-7ffd00001000 r-xp 00000000 00:00 0  [vdso]\n";
        assert_eq!(
            libraries(maps),
            "0x55d000000000-0x55d000002fff (0x0003000) /usr/bin/a\n"
        );
        assert_eq!(libraries("nonsense\n"), "");
    }
}
