//! Events: the sinks that there are, and what the buffer holds.
//!
//! Source: management manual, section 9.3, "show events".

use std::sync::Arc;

use ballast_model::CliLevel;
use ballast_net::local_time;
use ballast_wire::syslog::{DateTime, Facility, Format, Level, Origin, TimestampText};

use super::target::{answer, control};
use crate::answer::CommandAnswer;
use crate::command::{Command, CommandCall};

/// The size of a piece of a report, about, in bytes.
const PIECE_BYTES: usize = 16 * 1024;

pub(crate) static COMMANDS: &[Command] = &[Command::new(
    &["show", "events"],
    "show events [<sink>] [-w] [-n] [-0]",
    "list the sinks of events, or show what is in one",
    |call| answer(events(call)),
)];

fn events(call: &CommandCall<'_>) -> Result<CommandAnswer, CommandAnswer> {
    match call.arg(0) {
        "" => Ok(CommandAnswer::Report(
            "Supported events sinks are listed below. Add -0(zero), -w(wait), -n(new). Any key to stop.\n    \
             stdout     : type=fd, 0 dropped, standard output (fd#1)\n    \
             stderr     : type=fd, 0 dropped, standard output (fd#2)\n    \
             buf0       : type=buffer, 0 dropped, in-memory ring buffer\n"
                .into(),
        )),
        // What is in a sink names clients, as stick tables and logs do.
        _ if call.session.level < CliLevel::Operator => Err(CommandAnswer::denied()),
        "buf0" => buffer(call),
        "stdout" | "stderr" => Err(CommandAnswer::error("Nothing to report for this sink")),
        _ => Err(CommandAnswer::error("No such event sink")),
    }
}

fn unknown_option() -> CommandAnswer {
    CommandAnswer::error("unknown option")
}

/// The events in the buffer, as they are at the time of the command.
fn buffer(call: &CommandCall<'_>) -> Result<CommandAnswer, CommandAnswer> {
    let (mut only_new, mut end) = (false, b'\n');
    for word in (1..)
        .map(|at| call.arg(at))
        .take_while(|word| !word.is_empty())
    {
        let Some(letters) = word.strip_prefix('-') else {
            return Err(unknown_option());
        };
        for letter in letters.chars() {
            match letter {
                'n' => only_new = true,
                '0' => end = 0,
                'w' => {
                    let why = "Waiting for events (-w) is not implemented: ask again instead.";
                    return Err(CommandAnswer::error(why));
                }
                _ => return Err(unknown_option()),
            }
        }
    }
    let process = Arc::clone(control(call)?.registry().process());
    let last = process.events.next_number();
    let mut next = if only_new { last } else { 0 };
    let origin = Origin::new(Format::Timed, Facility::default(), None, b"", 0);
    Ok(CommandAnswer::Pieces(Box::new(move |text| {
        if next >= last {
            return false;
        }
        let mut piece = Vec::new();
        next = process.events.read(next, |time_us, event| {
            write_event(&origin, time_us, event, &mut piece);
            piece.push(end);
            piece.len() < PIECE_BYTES
        });
        text.push_str(&String::from_utf8_lossy(&piece));
        true
    })))
}

fn write_event(origin: &Origin, time_us: u64, event: &[u8], out: &mut Vec<u8>) {
    let local = local_time(i64::try_from(time_us / 1_000_000).unwrap_or(i64::MAX));
    let stamp = TimestampText::new(&DateTime {
        year: local.year,
        month: local.month,
        day: local.day,
        hour: local.hour,
        minute: local.minute,
        second: local.second,
        utc_offset_s: local.utc_offset_s,
    });
    let microsecond = u32::try_from(time_us % 1_000_000).unwrap_or(0);
    origin.write_header(out, Level::Emerg, &stamp, microsecond, None);
    out.extend_from_slice(event);
}
