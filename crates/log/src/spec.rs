//! Log targets as plain data.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use ballast_model::LogProfile;
use ballast_wire::syslog::{Facility, Format, LINE_BYTES_DEFAULT, Level};

use crate::limits::LINE_BYTES_RANGE;

/// The UDP port where none is given.
const PORT_DEFAULT: u16 = 514;

/// The targets of one proxy, or of the process itself.
#[derive(Clone, Debug)]
pub struct LogSetSpec {
    /// `log-tag`.
    pub tag: String,
    /// `log-send-hostname`: the name to send, if one is to be sent.
    pub hostname: Option<String>,
    /// Its `log` lines. A line that several sets share (`log global`) is the same `Arc` in each:
    /// its samples are counted together.
    pub targets: Vec<Arc<TargetSpec>>,
}

/// One `log` line (configuration manual, section 4.2, "log").
#[derive(Clone, Debug, PartialEq)]
pub struct TargetSpec {
    /// The endpoint.
    pub endpoint: Endpoint,
    /// The format of the header before the message; `None` for RFC 3164 where a host name is sent, and
    /// for the same without one elsewhere.
    pub format: Option<Format>,
    /// `len`: longer lines are cut, newline not counted; limited to [`LINE_BYTES_RANGE`].
    pub line_bytes_max: u32,
    /// Which lines of how many are sent; `None` for all.
    pub sample: Option<LineSampling>,
    /// How the lines of exchanges are built for this target, where it differs from the others.
    pub profile: Option<Arc<LogProfile>>,
    /// The facility.
    pub facility: Facility,
    /// Lines less severe than this are not sent.
    pub level_max: Level,
    /// Lines more severe than this are sent with this level.
    pub level_min: Level,
}

impl TargetSpec {
    /// A target with the manual's defaults: all levels, `local` format, 1024 bytes.
    pub fn new(endpoint: Endpoint, facility: Facility) -> Self {
        Self {
            endpoint,
            format: None,
            line_bytes_max: LINE_BYTES_DEFAULT,
            sample: None,
            profile: None,
            facility,
            level_max: Level::Debug,
            level_min: Level::Emerg,
        }
    }

    pub(crate) fn line_bytes_max(&self) -> usize {
        let (least, most) = LINE_BYTES_RANGE.into_inner();
        usize::try_from(self.line_bytes_max.clamp(least, most)).unwrap_or(usize::MAX)
    }
}

/// The destination of lines; equal endpoints share one socket.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum Endpoint {
    /// `stdout` (1), `stderr` (2), `fd@N` for an inherited descriptor.
    Fd(i32),
    /// `ring@name`. Accepted; its lines are dropped and counted for now.
    Ring(String),
    /// UDP datagrams; port 0 stands for 514.
    Udp(SocketAddr),
    /// Datagrams to a unix socket.
    Unix(PathBuf),
}

impl Endpoint {
    pub(crate) fn with_default_port(self) -> Self {
        match self {
            Self::Udp(mut address) if address.port() == 0 => {
                address.set_port(PORT_DEFAULT);
                Self::Udp(address)
            }
            other => other,
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fd(1) => f.write_str("stdout"),
            Self::Fd(2) => f.write_str("stderr"),
            Self::Fd(number) => write!(f, "fd@{number}"),
            Self::Ring(name) => write!(f, "ring@{name}"),
            Self::Udp(address) => write!(f, "{address}"),
            Self::Unix(path) => write!(f, "{}", path.display()),
        }
    }
}

/// `sample <ranges>:<size>`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct LineSampling {
    /// Inclusive ranges of positions, from 1.
    pub ranges: Vec<(u32, u32)>,
    /// After how many lines the count starts again; 0 means 1.
    pub size: u32,
}

impl LineSampling {
    /// Whether the line after `lines_before` others is sent.
    pub(crate) fn takes(&self, lines_before: u64) -> bool {
        let position = lines_before % u64::from(self.size.max(1)) + 1;
        let within =
            |(low, high): &(u32, u32)| u64::from(*low) <= position && position <= u64::from(*high);
        self.ranges.iter().any(within)
    }
}
