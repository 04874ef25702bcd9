//! Commands about parts that are not implemented: stick tables, QUIC, updates of OCSP responses.
//!
//! Tools give these commands whatever the configuration is. They get the answers of an HAProxy
//! without such objects: lists are empty, and a named object is not found. A command that would
//! create an object is refused with a message of our own.
//!
//! Source: management manual, section 9.3; the messages, as seen of HAProxy 3.2.

use ballast_model::CliLevel;

use crate::answer::CommandAnswer;
use crate::change_record::ChangeScope;
use crate::command::{Command, CommandCall};

pub(crate) static COMMANDS: &[Command] = &[
    Command::new(
        &["clear", "table"],
        "clear table <table> [<filter>]*",
        "not implemented: remove entries of a stick table",
        |call| {
            table(
                call,
                "Required arguments: <table> \"data.<store_data_type>\" <operator> <value> or \
                 <table> key <key> or <table> ptr <ptr>",
            )
        },
    )
    .changing(ChangeScope::State),
    Command::new(
        &["set", "table"],
        "set table <table> key <k> [data.* <v>]*",
        "not implemented: write an entry of a stick table",
        |call| {
            table(
                call,
                "Required arguments: <table> key <key> [data.<store_data_type> <value>]* or \
                 <table> ptr <ptr> [data.<store_data_type> <value>]*",
            )
        },
    )
    .changing(ChangeScope::State),
    Command::new(
        &["show", "quic"],
        "show quic [help|<format>] [<filter>]",
        "not implemented: list QUIC connections",
        |_| CommandAnswer::Report(QUIC_HEAD.into()),
    )
    .for_level(CliLevel::Operator),
];

/// The head of the list of QUIC connections.
const QUIC_HEAD: &str = "# conn/frontend                     state   in_flight infl_p lost_p         \
                         Local Address           Foreign Address      local & remote CIDs\n";

fn table(call: &CommandCall<'_>, usage: &str) -> CommandAnswer {
    match call.arg(0) {
        "" => CommandAnswer::error(usage),
        _ => CommandAnswer::error("No such table"),
    }
}
