//! Commands about parts that are not implemented: QUIC.
//!
//! Tools give these commands whatever the configuration is. They get the answers of an HAProxy
//! without such objects: lists are empty, and a named object is not found. A command that would
//! create an object is refused with a message of our own.
//!
//! Source: management manual, section 9.3; the messages, as seen of HAProxy 3.2.

use ballast_model::CliLevel;

use crate::answer::CommandAnswer;
use crate::command::Command;

pub(crate) static COMMANDS: &[Command] = &[Command::new(
    &["show", "quic"],
    "show quic [help|<format>] [<filter>]",
    "not implemented: list QUIC connections",
    |_| CommandAnswer::Report(QUIC_HEAD.into()),
)
.for_level(CliLevel::Operator)];

/// The head of the list of QUIC connections.
const QUIC_HEAD: &str = "# conn/frontend                     state   in_flight infl_p lost_p         \
                         Local Address           Foreign Address      local & remote CIDs\n";
