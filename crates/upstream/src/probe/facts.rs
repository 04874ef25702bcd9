//! What a probe's formats may ask of it: the response, the bytes, the names.

use std::time::{SystemTime, UNIX_EPOCH};

use ballast_expr::{Expr, Facts, LogFormat, Scratch, Time, Value, eval};
use ballast_message::Response;

use super::chance;
use super::probe_run::ProbeRun;

/// A probe as formats see it.
#[derive(Clone, Copy)]
pub(super) struct ProbeFacts<'a> {
    pub(super) probe: &'a ProbeRun<'a>,
    pub(super) response: Option<&'a Response>,
    pub(super) data: &'a [u8],
}

impl Facts for ProbeFacts<'_> {
    fn now(&self) -> Time {
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        Time {
            secs: i64::try_from(now.as_secs()).unwrap_or(i64::MAX),
            micros: now.subsec_micros(),
        }
    }

    fn random(&self) -> u64 {
        chance()
    }

    fn utc_offset_secs(&self, secs: i64) -> i32 {
        ballast_net::local_time(secs).utc_offset_s
    }

    fn response(&self) -> Option<&Response> {
        self.response
    }

    fn is_response_side(&self) -> bool {
        true
    }

    fn response_data(&self) -> Option<&[u8]> {
        Some(self.data)
    }

    fn backend_name(&self) -> Option<&str> {
        Some(self.probe.backend.name())
    }

    fn backend_id(&self) -> Option<i64> {
        Some(i64::from(self.probe.backend.model.common.id))
    }

    fn server_name(&self) -> Option<&str> {
        Some(self.probe.server.name())
    }

    fn server_id(&self) -> Option<i64> {
        Some(i64::from(self.probe.server.model.id))
    }

    fn hostname(&self) -> &str {
        &self.probe.node
    }

    fn pid(&self) -> i64 {
        i64::from(std::process::id())
    }
}

impl ProbeFacts<'_> {
    /// The bytes of a format.
    pub(super) fn bytes(&self, format: &LogFormat) -> Vec<u8> {
        let mut bytes = Vec::new();
        format.render(self, &mut Scratch::new(), &mut bytes);
        bytes
    }

    /// The text of a format.
    pub(super) fn text(&self, format: &LogFormat) -> String {
        String::from_utf8_lossy(&self.bytes(format)).into_owned()
    }

    /// The number of an expression.
    pub(super) fn number(&self, expr: &Expr) -> Option<u16> {
        match eval(expr, self, &mut Scratch::new())? {
            Value::Int(number) => u16::try_from(number).ok(),
            Value::Str(text) => std::str::from_utf8(text).ok()?.trim().parse().ok(),
            _ => None,
        }
    }
}
