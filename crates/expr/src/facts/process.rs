//! Our process and the machine it runs on.

use std::net::IpAddr;
use std::sync::Arc;

/// The process, seen by one of its workers.
pub trait ProcessFacts {
    /// The machine's name (`hostname`).
    fn hostname(&self) -> &str {
        ""
    }

    /// Whether the address is one of this machine's (`src_is_local`).
    fn is_local(&self, _address: IpAddr) -> bool {
        false
    }

    /// Seconds that local time is ahead of UTC at `_secs` since 1970.
    fn utc_offset_secs(&self, _secs: i64) -> i32 {
        0
    }

    /// An environment variable (`env`).
    fn env(&self, _name: &str) -> Option<Arc<[u8]>> {
        None
    }

    /// The process's number (`pid`).
    fn pid(&self) -> i64 {
        0
    }

    /// The worker's number, from 0 (`thread`).
    fn thread(&self) -> i64 {
        0
    }

    /// The process is stopping (`stopping`).
    fn is_stopping(&self) -> bool {
        false
    }

    /// Seconds since the process started (`uptime`).
    fn uptime_secs(&self) -> i64 {
        0
    }

    /// Milliseconds since the process started, wrapping: the time at which rates are read. `None`
    /// where there are none to read.
    fn rate_clock_ms(&self) -> Option<u32> {
        None
    }

    /// Sends a line to a sink of events (`debug`). A sink that there is not takes nothing.
    fn add_event(&self, _sink: &str, _text: &[u8]) {}

    /// Connections of the process (`act_conn`).
    fn connections(&self) -> i64 {
        0
    }
}
