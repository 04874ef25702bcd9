//! Log targets, and what is logged.

use std::sync::Arc;

use ballast_expr::LogFormat;
use ballast_rules::{LogProfile, LogSteps};

use crate::Address;

/// One `log` line (configuration manual, section 4.2, "log").
#[derive(Clone, Debug, PartialEq)]
pub struct LogTarget {
    /// The destination.
    pub endpoint: LogEndpoint,
    /// `len`: longer lines are cut; in bytes, 1024 by default.
    pub line_bytes_max: u32,
    /// `format`: how the header before the message is written. Without one it is that of RFC 3164 where
    /// `log-send-hostname` gives a name, else [`LogFormatName::Local`].
    pub format: Option<LogFormatName>,
    /// `sample`: which lines of how many are sent.
    pub sample: Option<LogSample>,
    /// `profile`: how the lines of exchanges are built, where it differs from what the proxy says.
    pub profile: Option<Arc<LogProfile>>,
    /// The syslog facility.
    pub facility: Facility,
    /// Lines less severe than this are not sent.
    pub level_max: Level,
    /// Lines more severe than this are sent with this level.
    pub level_min: Option<Level>,
}

/// Where log lines go.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum LogEndpoint {
    /// UDP datagrams.
    Udp(Address),
    /// Datagrams on a unix socket, usually `/dev/log`.
    Unix(String),
    /// `stdout`, `stderr` or `fd@N`: a descriptor.
    Fd(i32),
    /// `ring@name` or `tcp@...`: a named ring buffer.
    Ring(String),
    /// `backend@name`: a backend in `mode log`.
    Backend(String),
}

/// `format` of a `log` line.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum LogFormatName {
    /// RFC 3164 header without the host name.
    Local,
    /// RFC 3164.
    Rfc3164,
    /// RFC 5424.
    Rfc5424,
    /// `<level>` and the message.
    Priority,
    /// Level between angle brackets with the facility left out, for systemd.
    Short,
    /// RFC 3164's date with milliseconds, for terminals.
    Timed,
    /// ISO 8601 date before the message.
    Iso,
    /// The message alone.
    Raw,
}

/// `sample <ranges>:<size>`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct LogSample {
    /// Inclusive ranges of positions, from 1.
    pub ranges: Vec<(u32, u32)>,
    /// After how many lines the count starts again.
    pub size: u32,
}

/// A syslog facility, 0 to 23.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Facility(pub u8);

/// A syslog severity, from `emerg` (0) to `debug` (7).
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
#[expect(missing_docs, reason = "the names of RFC 5424, table 2")]
pub enum Level {
    Emerg = 0,
    Alert = 1,
    Crit = 2,
    Err = 3,
    Warning = 4,
    Notice = 5,
    Info = 6,
    #[default]
    Debug = 7,
}

/// What a frontend logs about its exchanges.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LogLines {
    /// `log-format`, or the format that `option httplog`, `tcplog` or `httpslog` stand for;
    /// `None` is the short default line.
    pub format: Option<LogFormat>,
    /// `error-log-format`.
    pub error_format: Option<LogFormat>,
    /// `log-format-sd`: structured data of RFC 5424 lines.
    pub structured_data: Option<LogFormat>,
    /// `option dontlognull`: connections that carried no byte are not logged.
    pub skip_null: bool,
    /// `option dontlog-normal`: successful exchanges are not logged.
    pub skip_normal: bool,
    /// `option logasap`: the line is written when the response's head has been received.
    pub as_soon_as_possible: bool,
    /// `option log-separate-errors`: failures are logged at level `err`.
    pub separate_errors: bool,
    /// `log-steps`: the steps at which a line is written; one line for an exchange when `None`.
    pub steps: Option<LogSteps>,
}
