//! The Runtime API: a line in, an answer out.
//!
//! A command is one row of a table: its words, who may give it, its help line, its handler. Rows
//! stand in one file per family under `commands`. What all share is here: cutting input into
//! commands ([`LineReader`]), finding the row, writing answers at the speed of whoever reads
//! them, and the modes of a session.
//!
//! Nothing a caller does holds up a worker or another caller: lines and payloads are bounded,
//! long answers are made piece by piece, a reader that stalls is cut off, and callers beyond
//! the limit wait in the kernel's queue.

mod answer;
mod catalogue;
mod certificate_files;
mod change_record;
mod command;
mod commands;
mod control;
mod conversation;
mod help;
mod json;
mod limits;
mod line;
mod serve;
mod server_action;
mod session;
mod shared;
mod sockets;

pub use answer::{AnswerSeverity, CommandAnswer, ReportBatches, ReportPieces};
pub use catalogue::{commands_of_master, commands_of_worker};
pub use certificate_files::change_certificate_files;
pub use change_record::{ChangeRecord, ChangeScope};
pub use command::{Command, CommandCall, CommandFamilies};
pub use commands::tables::{TableAction, table_answer};
pub use control::{
    BlockingWork, ChangeOutcome, Control, ControlError, HealthChange, IdleCount, IdleCounts,
};
pub use limits::CliLimits;
pub use line::{CommandInput, CommandLine, LineEvent, LineReader};
pub use serve::{serve, serve_master, serve_stream};
pub use server_action::act_on_server;
pub use session::{CliSession, RequiredMode, SessionMode};
pub use shared::{CliBind, Master, ProcessKind, ProcessRow, ReloadOutcome, TargetWorker};

#[cfg(test)]
mod tests;
